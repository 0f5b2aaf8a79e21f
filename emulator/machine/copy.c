/* copy.c - cp.async: the queue of each warp. */
#include "emulator/machine/copy.h"
#include "emulator/machine/access.h"

#include <stdlib.h>

static async_copy *new_copy(warp *w)
{
    async_copy *list =
        machine_grow(w->run, w->copies, w->copies_len, &w->copies_capacity, sizeof *list);

    if (list == NULL) {
        return NULL;
    }
    w->copies = list;
    return &w->copies[w->copies_len++];
}

static bool touch(const warp *w, const async_copy *c, uint32_t mask)
{
    uint64_t to[MACHINE_LANES];
    uint32_t whole = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        to[lane] = c->to[lane];
        whole |= (uint32_t)(c->from_bytes[lane] == c->bytes) << lane;
    }
    for (EACH_LANE(lane, mask & ~whole)) {
        if (!race_task_touch(c->task, NULL, c->from[lane], c->from_bytes[lane], 1, 0, RACE_READ)) {
            return false;
        }
    }
    return race_task_touch_lanes(c->task, NULL, c->from, mask & whole, c->bytes, RACE_READ) &&
           race_task_touch_lanes(c->task, w->cta, to, mask, c->bytes, RACE_WRITE);
}

/* Shadow of one lane's 4, 8 or 16 bytes: from `from`, with `more` set in each byte. */
static void copy_shadow(uint8_t *to, const uint8_t *from, uint32_t bytes, uint8_t more)
{
    uint64_t word = 0;
    uint32_t half = 0;

    if (bytes == 4) {
        memcpy(&half, from, sizeof half);
        half |= (uint32_t)(more * ACCESS_WRITTEN);
        memcpy(to, &half, sizeof half);
        return;
    }
    for (uint32_t n = 0; n < bytes; n += 8) {
        memcpy(&word, from + n, sizeof word);
        word |= more * ACCESS_WRITTEN;
        memcpy(to + n, &word, sizeof word);
    }
}

/* One lane's copy out of an allocation; what it does not fetch becomes zero. */
static void move_lane(cta *t, const async_copy *c, uint32_t lane, const memory_range *r,
                      uint8_t more)
{
    uint32_t bytes = c->from_bytes[lane], at = c->to[lane];
    const uint8_t *from = (const uint8_t *)(uintptr_t)c->from[lane];
    uint8_t *shadow = t->shared_shadow + at;

    if (bytes == c->bytes) {
        const uint64_t written[2] = {ACCESS_WRITTEN, ACCESS_WRITTEN};
        access_copy(t->shared + at, from, bytes);
        copy_shadow(shadow,
                    r->whole ? (const uint8_t *)written : r->shadow + (c->from[lane] - r->begin),
                    bytes, more);
        return;
    }
    memset(shadow, ACCESS_IS_WRITTEN, c->bytes);
    memset(t->shared + at, 0, c->bytes);
    if (bytes > 0) {
        memcpy(t->shared + at, from, bytes);
        memcpy(shadow, r->shadow + (c->from[lane] - r->begin), bytes);
    }
    copy_shadow(shadow, shadow, c->bytes, more);
}

/* `more`: a mark that the bytes get beside what they are. */
static bool move(warp *w, const async_copy *c, uint32_t mask, uint8_t more)
{
    uint64_t at[MACHINE_LANES];
    const memory_range *all = access_last_range(w, c->i, c->from, mask, c->bytes, at);

    if (c->task != NULL && !touch(w, c, mask)) {
        return false;
    }
    for (EACH_LANE(lane, mask)) {
        const memory_range *r = all;
        if (r == NULL && c->from_bytes[lane] > 0) {
            touched_range *t = global_range(w, c->i, lane, c->from[lane], c->from_bytes[lane]);
            if (t == NULL) {
                return false;
            }
            r = t->range;
        }
        move_lane(w->cta, c, lane, r, more);
    }
    return true;
}

/* Until the copy is done its bytes are nothing. */
static void set_pending(cta *t, const async_copy *c, uint32_t mask)
{
    static const uint8_t pending[16] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};

    _Static_assert(ACCESS_PENDING == 2, "what `pending` holds");
    for (EACH_LANE(lane, mask)) {
        access_copy(t->shared_shadow + c->to[lane], pending, c->bytes);
    }
}

/* The bytes are there already: from now on they may be looked at. */
static void unmark(cta *t, const async_copy *c, uint32_t mask)
{
    for (EACH_LANE(lane, mask)) {
        uint8_t *shadow = t->shared_shadow + c->to[lane];
        for (uint32_t n = 0; n < c->bytes; n += 4) {
            uint32_t word = 0;
            memcpy(&word, shadow + n, sizeof word);
            word &= (uint32_t)ACCESS_WRITTEN;
            memcpy(shadow + n, &word, sizeof word);
        }
    }
}

/* Lanes that have committed as often share an entry. */
static bool queue(warp *w, const async_copy *c, uint32_t mask)
{
    uint32_t group = w->committed[machine_lowest(mask)], same = 0;
    bool late = w->run->launch->timing == HONE_EMU_LATEST;
    bool marks = machine_checks(w, HONE_EMU_CHECK_ASYNC);

    for (EACH_LANE(lane, mask)) {
        same |= (uint32_t)(w->committed[lane] == group) << lane;
    }
    async_copy *entry = new_copy(w);
    if (entry == NULL) {
        return false;
    }
    *entry = *c;
    entry->mask = same;
    entry->group = group;
    entry->serial = w->copies_started++;
    entry->task = race_issue(w, c->i, RACE_COPY);
    entry->moved = !late;
    w->cta->marked |= marks;
    if (!late && !move(w, entry, same, marks ? ACCESS_PENDING : 0)) {
        return false;
    }
    if (late && marks) {
        set_pending(w->cta, entry, same);
    }
    if (!late && !marks && entry->task == NULL) {
        w->copies_len--; /* nothing is left to do */
    }
    return same == mask || queue(w, c, mask & ~same);
}

bool copy_start(warp *w, const async_copy *c, uint32_t mask)
{
    return queue(w, c, mask);
}

/* Which copies, and who is told. */
typedef struct picked {
    uint32_t mask, allowed;
    bool all, joins;
    uint64_t serial; /* those before */
    race_clock **told;
} picked;

/* The lanes of a copy whose group is not among the youngest `allowed` that each has committed. */
static uint32_t due_lanes(const warp *w, const async_copy *c, const picked *p)
{
    uint32_t due = 0;

    if (c->serial >= p->serial) {
        return 0;
    }
    for (uint32_t lane = 0; lane < MACHINE_LANES && !p->all; lane++) {
        due |= (uint32_t)((uint64_t)c->group + p->allowed < w->committed[lane]) << lane;
    }
    return c->mask & p->mask & (p->all ? MACHINE_ALL : due);
}

static void finish_lanes(warp *w, const async_copy *c, uint32_t due, const picked *p)
{
    if (c->moved) {
        unmark(w->cta, c, due);
    } else if (!w->run->faulted) {
        move(w, c, due, 0);
    }
    if (p->joins) {
        race_task_join(w, c->task);
    }
}

/* Nobody waits for the copy any more, nor will be told of it. */
static bool is_over(const warp *w, const async_copy *c)
{
    return c->mask == 0 && (w->copies_tracked == 0 || c->task == NULL);
}

static void finish(warp *w, const picked *p)
{
    uint32_t kept = 0;

    for (uint32_t n = 0; n < w->copies_len; n++) {
        async_copy *c = &w->copies[n];
        uint32_t due = due_lanes(w, c, p);
        if (due != 0) {
            finish_lanes(w, c, due, p);
        }
        if (p->told != NULL && c->serial < p->serial) {
            race_task_release(c->task, p->told);
        }
        c->mask &= ~due;
        if (is_over(w, c)) {
            race_task_free(c->task);
            continue;
        }
        if (kept != n) {
            w->copies[kept] = *c;
        }
        kept++;
    }
    w->copies_len = kept;
}

void copy_track_begin(warp *w)
{
    w->copies_tracked++;
}

void copy_track_end(warp *w)
{
    w->copies_tracked--;
    finish(w, &(picked){.mask = 0});
}

void copy_wait(warp *w, uint32_t mask, uint32_t allowed, bool all)
{
    finish(w,
           &(picked){
               .mask = mask, .allowed = allowed, .all = all, .joins = true, .serial = UINT64_MAX});
}

void copy_finish(warp *w, uint32_t mask, uint64_t serial, race_clock **told)
{
    finish(w, &(picked){.mask = mask, .all = true, .serial = serial, .told = told});
}

void copy_leave(warp *w, uint32_t mask)
{
    if (w->copies_len > 0) {
        finish(w, &(picked){.mask = mask, .all = true, .serial = UINT64_MAX});
    }
}

void copy_forget(warp *w)
{
    for (uint32_t n = 0; n < w->copies_len; n++) {
        race_task_free(w->copies[n].task);
    }
    w->copies_len = w->copies_tracked = 0;
}

void copy_close(warp *w)
{
    copy_forget(w);
    free(w->copies);
    w->copies = NULL;
}
