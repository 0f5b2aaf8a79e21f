/* sample.h - a space with a candidate of every outcome, and files and stores of it. */
#ifndef TESTS_EXCHANGE_SAMPLE_H
#define TESTS_EXCHANGE_SAMPLE_H

#include "exchange/exchange.h"
#include "tests/cache/scratch.h"

#define SAMPLE_PROBLEM  "act_quant:m=16,k=256,scale=ue8m0,group=32"
#define SAMPLE_TEMPLATE "act_quant/groups"

/* Fill the store of the test with `count` candidates of the sample's problem, by turns of every
 * outcome but in flight. */
void sample_store(size_t count);

/* The set of that store. Caller frees it. */
exchange_set sample_collect(void);

/* A file's path in the test's folder; a text that lives until the next call but one. */
const char *sample_path(const char *name);

/* Write the sample's space and read the file; `len` as file_read's. Caller frees the text. */
char *sample_text(exchange_format format, size_t *len);

/* Read a text as a file. Caller frees *out when it is HONE_OK. */
hone_status sample_read(const char *text, size_t len, exchange_format format,
                        const exchange_given *given, exchange_set *out, bool *torn);

/* A copy of the text with the first `from` made `to`; the test fails when there is none. Caller
 * frees it. */
char *sample_replace(const char *text, const char *from, const char *to);

#endif
