/* mqa_pages.h - paged scores of a cache whose first page is not there. */
#ifndef HONE_TESTS_MQA_PAGES_H
#define HONE_TESTS_MQA_PAGES_H

#include "bench/inputs.h"

/* Runs a pinned config of mqa_logits_paged on an emulated GPU and holds it to the reference. No
 * request has page 0, so nobody may read it, neither for keys past a length nor for pages that are
 * none: the emulator traps what no allocation has. */
void mqa_pages_hold(const char *spec, const char *text, const char *template, const char *pinned,
                    inputs_kind kind);
/* The same of requests with one to five query tokens each, as varlen batches have them: a row each
 * (next_n=1), the rows of a request with the same pages, each with one key more than the row before
 * it. */
void mqa_pages_hold_shared(const char *spec, const char *text, const char *template,
                           const char *pinned, inputs_kind kind);

#endif
