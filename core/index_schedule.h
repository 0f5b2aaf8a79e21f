/* index_schedule.h - how paged scores are parted over SMs (kernels.md 3.3): exact integers.
 *
 * A request's keys are cut into splits of `split`; SM s begins at pair s of (row, split) and ends
 * where SM s + 1 begins. The last pair is (rows, 0). Pure functions; thread-safe. */
#ifndef HONE_CORE_INDEX_SCHEDULE_H
#define HONE_CORE_INDEX_SCHEDULE_H

#include <stdint.h>

/* Lengths are those that requests are scheduled by (int32 [batch]); below 0 counts as 0. `atoms`:
 * rows that a request's query tokens are, each of which reads its splits for itself. */
typedef struct index_schedule {
    const int32_t *lengths;
    int64_t batch, stride; /* elements of `lengths` from request to request */
    int32_t atoms, split, sms;
} index_schedule;

/* Splits in all, each atom's counted. */
int64_t index_schedule_total(const index_schedule *s);

/* meta[sms + 1][2]. An atom's splits come one after another; the last total % sms SMs have one
 * split more (sm_90). */
void index_schedule_atom_first(const index_schedule *s, int32_t *meta);

/* The same, but a request's splits go on before the atoms do, and the first total % sms SMs have
 * the one more (sm_100; hone's templates, with one atom). */
void index_schedule_split_first(const index_schedule *s, int32_t *meta);

#endif
