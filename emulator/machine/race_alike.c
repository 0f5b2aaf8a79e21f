/* race_alike.c - lanes that go to different places, all of them in one state: how a warp goes
 * through tiles that others wrote. One decision for all lanes, and no search for runs. */
#include "emulator/machine/race_state.h"

#include <string.h>

enum { FRESH = 0xfd }; /* in place of a lane: none of this access was here yet */

/* The state of each lane's units, and who was there. */
typedef struct places {
    uint32_t *write[MACHINE_LANES], *read[MACHINE_LANES];
    uint8_t *who[MACHINE_LANES]; /* NULL: not kept */
    uint32_t units;              /* of a lane */
    uint32_t many;               /* lanes that stand for others at the same place as well */
} places;

/* Lanes of `mask` without those that go where one before them goes, as long as all are close
 * together. */
static uint32_t without_repeats(const uint64_t at[MACHINE_LANES], uint32_t mask, uint32_t bytes,
                                uint32_t *many)
{
    uint64_t begin = at[machine_lowest(mask)] & ~(UINT64_C(64) * bytes - 1), seen = 0, again = 0;
    uint32_t shift = (uint32_t)__builtin_ctz(bytes), lanes = 0;

    for (EACH_LANE(lane, mask)) {
        uint64_t cell = (at[lane] - begin) >> shift, bit = UINT64_C(1) << cell % 64;
        if (cell >= 64) {
            return mask;
        }
        lanes |= (uint32_t)((seen & bit) == 0) << lane;
        again |= seen & bit;
        seen |= bit;
    }
    for (EACH_LANE(lane, again != 0 ? lanes : 0)) {
        *many |= (uint32_t)(again >> ((at[lane] - begin) >> shift) & 1) << lane;
    }
    return lanes;
}

/* False where the lanes' parts are less than units. */
static bool find_places(race_visit *v, const uint64_t at[MACHINE_LANES], uint32_t mask,
                        uint32_t bytes, places *out)
{
    uint64_t base = UINT64_MAX;
    race_page *p = NULL;
    uint32_t shift = (uint32_t)__builtin_ctz(bytes);

    for (EACH_LANE(lane, mask)) {
        if (at[lane] / RACE_PAGE != base) {
            uint32_t before = p != NULL ? p->shift : shift;
            p = race_visit_page(v, at[lane]);
            if (p == NULL || p->shift > shift || (base != UINT64_MAX && p->shift != before)) {
                return false;
            }
            race_page_spread(p);
            base = at[lane] / RACE_PAGE;
        }
        uint32_t unit = (uint32_t)(at[lane] % RACE_PAGE) >> p->shift;
        out->write[lane] = p->write + unit;
        out->read[lane] = p->read + unit;
        out->who[lane] = p->writer == NULL       ? NULL
                         : v->kind == RACE_WRITE ? p->writer + unit
                                                 : p->reader + unit;
    }
    out->units = bytes >> p->shift;
    return true;
}

enum { STATES = 16 };

/* The states of the lanes' units before the access, and after it. */
typedef struct states {
    struct {
        uint32_t write, read, next_write, next_read;
        bool again; /* this warp has read such words since its lanes last met */
    } of[STATES];
    uint32_t len;
    uint8_t lane[MACHINE_LANES]; /* index of each lane's */
} states;

/* Four words of state. */
typedef uint32_t four __attribute__((vector_size(16)));

/* The lanes' loops are compiled for each number of units that there is: `len` is a constant. */
#define ALIKE_INLINE static inline __attribute__((always_inline))

ALIKE_INLINE uint32_t differ(const uint32_t *units, uint32_t len, uint32_t state)
{
    four x, expected = (four){0} + state, all = {0};
    uint32_t differs = 0;

    for (uint32_t k = 0; k < len; k += 4) {
        if (len >= 4) {
            memcpy(&x, units + k, sizeof x);
            all |= x ^ expected;
        }
    }
    for (uint32_t k = 0; len < 4 && k < len; k++) {
        differs |= units[k] ^ state;
    }
    return len < 4 ? differs : all[0] | all[1] | all[2] | all[3];
}

ALIKE_INLINE void set_all(uint32_t *units, uint32_t len, uint32_t state)
{
    four value = (four){0} + state;

    for (uint32_t k = 0; len >= 4 && k < len; k += 4) {
        memcpy(units + k, &value, sizeof value);
    }
    for (uint32_t k = 0; len < 4 && k < len; k++) {
        units[k] = state;
    }
}

ALIKE_INLINE void set_who(uint8_t *who, uint32_t len, uint8_t lane)
{
    for (uint32_t k = 0; k < len; k++) {
        who[k] = lane;
    }
}

/* False where a lane's units differ, or there are too many states. */
ALIKE_INLINE bool find_states(const places *p, uint32_t len, uint32_t mask, states *out)
{
    uint32_t at = 0, differs = 0;

    out->len = 0;
    for (EACH_LANE(lane, mask)) {
        uint32_t write = *p->write[lane], read = *p->read[lane];
        if (out->len == 0 || out->of[at].write != write || out->of[at].read != read) {
            at = 0;
            while (at < out->len && (out->of[at].write != write || out->of[at].read != read)) {
                at++;
            }
            if (at == STATES) {
                return false;
            }
            out->len += at == out->len;
            out->of[at].write = write;
            out->of[at].read = read;
        }
        out->lane[lane] = (uint8_t)at;
        differs |= differ(p->write[lane], len, write) | differ(p->read[lane], len, read);
    }
    return differs == 0;
}

/* False where an access is refused, and where lanes of the warp itself were before: what they do to
 * one another's words is looked at one by one. */
static bool decide_states(race_visit *v, states *s)
{
    bool lanes = v->owner != NULL && v->task == NULL;

    for (uint32_t n = 0; n < s->len; n++) {
        uint32_t write = s->of[n].write, read = s->of[n].read;
        bool own_read = lanes && (read & RACE_SET) == 0 && race_own_now(v, read & RACE_INDEX);
        if ((lanes && race_own_now(v, write)) || (own_read && v->kind == RACE_WRITE) ||
            !race_decide(v, write, read)) {
            return false;
        }
        s->of[n].again = own_read;
        s->of[n].next_write = v->next_write;
        s->of[n].next_read = v->next_read;
    }
    return true;
}

/* Who was there: `several` where it is more than one lane, of this access or, of words that were
 * read again, of those before. */
ALIKE_INLINE void note_who(const places *p, uint32_t len, const states *s, uint32_t mask,
                           uint8_t several)
{
    for (EACH_LANE(lane, mask)) {
        if (!s->of[s->lane[lane]].again) {
            set_who(p->who[lane], len, FRESH);
        }
    }
    for (EACH_LANE(lane, mask)) {
        for (uint32_t k = 0; k < len; k++) {
            uint8_t was = p->who[lane][k];
            bool alone = (was == FRESH || was == lane) && (p->many >> lane & 1) == 0;
            p->who[lane][k] = alone ? (uint8_t)lane : several;
        }
    }
}

ALIKE_INLINE void note_lanes(const race_visit *v, const places *p, uint32_t len, const states *s,
                             uint32_t mask)
{
    if (v->owner == NULL || v->task != NULL) {
        return;
    }
    if (v->together || v->kind == RACE_ATOMIC) {
        for (EACH_LANE(lane, mask)) {
            set_who(p->who[lane], len, RACE_NOBODY);
        }
    } else {
        note_who(p, len, s, mask, v->kind == RACE_WRITE ? RACE_NOBODY : RACE_MANY);
    }
}

ALIKE_INLINE bool visit_places(race_visit *v, const places *p, uint32_t len, uint32_t mask)
{
    states s;

    if (!find_states(p, len, mask, &s) || !decide_states(v, &s)) {
        return false;
    }
    for (EACH_LANE(lane, mask)) {
        uint32_t n = s.lane[lane];
        if (v->kind == RACE_WRITE) {
            set_all(p->write[lane], len, s.of[n].next_write);
        }
        set_all(p->read[lane], len, s.of[n].next_read);
    }
    note_lanes(v, p, len, &s, mask);
    return true;
}

bool race_visit_alike(race_visit *v, const uint64_t at[MACHINE_LANES], uint32_t mask,
                      uint32_t bytes)
{
    places p;

    p.many = 0;
    if (v->kind == RACE_READ && v->owner != NULL && v->task == NULL && !v->together) {
        mask = without_repeats(at, mask, bytes, &p.many);
    }
    if (!find_places(v, at, mask, bytes, &p)) {
        return false;
    }
    switch (p.units) {
    case 1:
        return visit_places(v, &p, 1, mask);
    case 2:
        return visit_places(v, &p, 2, mask);
    case 4:
        return visit_places(v, &p, 4, mask);
    case 8:
        return visit_places(v, &p, 8, mask);
    default:
        return false;
    }
}
