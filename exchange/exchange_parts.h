/* exchange_parts.h - what the parts of exchange/ share. Private to it. */
#ifndef HONE_EXCHANGE_PARTS_H
#define HONE_EXCHANGE_PARTS_H

#include "exchange/exchange.h"

#include <jansson.h>
#include <stdio.h>

/* ---- Sets. */

/* A new space at the end of the set, zeroed; NULL when memory is out. */
exchange_space *exchange_add_space(exchange_set *set);
exchange_row *exchange_add_row(exchange_space *space);
hone_status exchange_no_memory(const char *source, hone_error *error);

/* Split "a=1 b=2" into names and values; false when it is no such text or too long. Names are
 * copied into `memory`. */
bool exchange_split_config(arena *memory, const char *text, const char *names[MANIFEST_MAX_PARAMS],
                           int64_t values[MANIFEST_MAX_PARAMS], size_t *len);
/* And back; NULL when memory is out. */
const char *exchange_join_config(arena *memory, const char *const *names, const int64_t *values,
                                 size_t len);

/* ---- Files. */

/* Read one JSON object of a file. With `torn` (not NULL) one that a crash cut short is completed
 * behind its last whole row, a list or object two deep, and *torn says so. Caller drops *out. */
hone_status exchange_read_json(const char *path, bool *torn, json_t **out, hone_error *error);

/* ---- Provenance: what the formats have no fields for, in an object named "hone". */

json_t *exchange_space_facts(const exchange_space *space); /* new reference; NULL: memory */
json_t *exchange_row_facts(const exchange_row *row);

/* What is read from where: for messages. */
typedef struct exchange_source {
    const char *path;
    exchange_format format;
    char row[160]; /* "row '16,1'"; "" outside of rows */
    arena *memory;
    hone_error *error;
} exchange_source;
hone_status exchange_refuse(const exchange_source *from, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Problem, template and device of a space, from the object (may be NULL) and what is given. */
hone_status exchange_take_space(const exchange_source *from, const json_t *facts,
                                const exchange_given *given, exchange_space *space);
/* All of a row that the object says (may be NULL: nothing); its outcome must be of the same class
 * as row->result.outcome. */
hone_status exchange_take_row(const exchange_source *from, const json_t *facts, exchange_row *row);

/* A number: finite, from `least` to `most`. */
hone_status exchange_number(const exchange_source *from, const json_t *value, const char *name,
                            double least, double most, double *out);
hone_status exchange_samples(const exchange_source *from, const json_t *list, store_result *out);
/* A parameter's value: an integer, true or false. */
hone_status exchange_value(const exchange_source *from, const json_t *value, const char *name,
                           int64_t *out);

/* "2023-12-22 09:54:05+00:00" from and to Unix milliseconds; 0 for what is none. */
void exchange_time_text(int64_t ms, char text[32]);
int64_t exchange_time_read(const char *text);

/* The name of a device as files of other tuners say it: an emulated one must not be taken for the
 * GPU itself. */
void exchange_device_name(const device_kind *kind, char name[128]);

/* ---- The formats. */

hone_status cachefile_print(const exchange_space *space, const manifest *m, FILE *to);
hone_status cachefile_take(exchange_source *from, const json_t *root, const exchange_given *given,
                           exchange_space *space);
hone_status t4_print(const exchange_space *space, FILE *to);
hone_status t4_take(exchange_source *from, const json_t *root, const exchange_given *given,
                    exchange_space *space);

/* One word for an outcome in each format, which several share; "" for what is no outcome of a file:
 * in flight, imported. */
const char *exchange_word(exchange_format format, int32_t outcome);
/* The outcome that a word stands for when nothing more is known; 0: no such word. */
int32_t exchange_outcome(exchange_format format, const char *word);

#define EXCHANGE_MS_NS   1e6
#define EXCHANGE_MOST_MS 1e12 /* thirty years: no kernel's time */

#endif
