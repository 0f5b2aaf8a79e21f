/* race.c - vector clocks. Nothing is looked for yet: every access is well. */
#include "emulator/machine/race.h"

#include <stdlib.h>

struct race_task {
    int none;
};

hone_status race_open(cluster *c, hone_error *error)
{
    (void)c;
    (void)error;
    return HONE_OK;
}
void race_begin(cluster *c)
{
    (void)c;
}
void race_close(cluster *c)
{
    (void)c;
}
bool race_touch(warp *w, const instruction *i, cta *owner, const uint64_t at[MACHINE_LANES],
                uint32_t mask, uint32_t bytes, race_access kind)
{
    (void)w, (void)i, (void)owner, (void)at, (void)mask, (void)bytes, (void)kind;
    return true;
}
void race_release(warp *w, race_clock **to)
{
    (void)w, (void)to;
}
void race_acquire(warp *w, const race_clock *from)
{
    (void)w, (void)from;
}
void race_clock_free(race_clock **c)
{
    *c = NULL;
}
void race_warp_sync(warp *w, uint32_t mask)
{
    (void)w, (void)mask;
}
void race_fence_proxy(warp *w)
{
    (void)w;
}
race_task *race_issue(warp *w, const instruction *i, race_engine engine)
{
    (void)w, (void)i, (void)engine;
    return NULL;
}
bool race_task_touch(race_task *t, cta *owner, uint64_t at, uint64_t bytes, uint64_t rows,
                     uint64_t stride, race_access kind)
{
    (void)t, (void)owner, (void)at, (void)bytes, (void)rows, (void)stride, (void)kind;
    return true;
}
void race_task_release(const race_task *t, race_clock **to)
{
    (void)t, (void)to;
}
void race_task_join(warp *w, const race_task *t)
{
    (void)w, (void)t;
}
void race_task_free(race_task *t)
{
    (void)t;
}
