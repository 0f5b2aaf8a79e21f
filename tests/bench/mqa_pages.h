/* mqa_pages.h - paged scores of a cache whose first page is not there. */
#ifndef HONE_TESTS_MQA_PAGES_H
#define HONE_TESTS_MQA_PAGES_H

#include "bench/inputs.h"

/* Runs a pinned config of mqa_logits_paged on an emulated GPU and holds it to the reference. No
 * request has page 0, so nobody may read it, neither for keys past a length nor for pages that are
 * none: the emulator traps what no allocation has. */
void mqa_pages_hold(const char *spec, const char *text, const char *template, const char *pinned,
                    inputs_kind kind);

#endif
