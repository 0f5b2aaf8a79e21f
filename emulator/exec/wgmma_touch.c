/* wgmma_touch.c - what a warp's other instructions may do to the registers of wgmma; fence,
 * commit_group and wait_group. */
#include "emulator/exec/wgmma_flight.h"

/* A copy is in flight like its source, whose value it keeps. What is copied has to be there. */
static bool copy_held(warp *w, wgmma_flight *f, const uint32_t *numbers)
{
    held_register *to = &f->registers[numbers[0]], *from = &f->registers[numbers[1]];

    if (to != from) {
        f->held += !wgmma_is_held(to);
        *to = *from;
        to->hold = HOLD_COPY;
        to->touched = 0;
        to->copied = false;
        from->copied = true;
    }
    return wgmma_perform_below(w, f, UINT32_MAX);
}

/* Compilers put copies between a fence and its wgmma: a copy is as old as what it copies. */
static void note_copy(wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    held_register *to = &f->registers[numbers[0]], *from = &f->registers[numbers[1]];

    to->touched = wgmma_touched(f, from) & (TOUCH_READ | TOUCH_WRITTEN);
    to->touched_in = f->fences;
    to->touch_line = from->touch_line;
    if (to->touched == 0) {
        from->touched = TOUCH_COPIED;
        from->touched_in = f->fences;
        from->touch_line = i->line;
    }
}

static inline void note_touch(const wgmma_flight *f, held_register *r, const instruction *i,
                              uint8_t touch)
{
    r->touched = wgmma_touched(f, r) | touch;
    r->touched_in = f->fences;
    r->touch_line = i->line;
}

/* Whether products in flight hold this register against such a touch. */
static bool is_guarded(const held_register *r, bool copies, bool writes)
{
    return (r->hold != HOLD_NONE && !(writes && r->copied)) || (r->is_a && (writes || !copies));
}

/* Nobody may touch what is in flight. False: the instruction must not run. */
static bool clear_touch(warp *w, wgmma_flight *f, const instruction *i, const uint32_t *numbers,
                        bool copies)
{
    uint32_t len = (uint32_t)i->results + i->sources;

    for (uint32_t n = 0; f->held > 0 && n < len;
         n++) { /* sources are read before results are written */
        uint32_t k = (n + i->results) % len;
        bool writes = k < i->results;
        held_register *r = numbers[k] != MACHINE_NONE ? &f->registers[numbers[k]] : NULL;
        if (r == NULL || !wgmma_is_held(r)) {
            continue;
        }
        if (!is_guarded(r, copies, writes)) {
            if (writes) { /* its value lives on in the copy */
                r->hold = HOLD_NONE;
                f->held -= !wgmma_is_held(r);
            }
            continue;
        }
        if (machine_checks(w, HONE_EMU_CHECK_ASYNC)) {
            wgmma_refuse_in_flight(w, i, r->line, writes ? "written" : "read");
            return false;
        }
        if (!wgmma_finish(w, f, UINT32_MAX)) {
            return false;
        }
    }
    return true;
}

/* Registers that nothing holds, used and not copied: nearly all there are. False: nothing was done,
 * a product in flight holds one. */
static bool touch_free(wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    uint32_t results = i->results, len = results + i->sources, held = 0;

    for (uint32_t k = 0; f->held > 0 && k < len; k++) {
        held |= numbers[k] != MACHINE_NONE && wgmma_is_held(&f->registers[numbers[k]]);
    }
    if (held != 0) {
        return false;
    }
    for (uint32_t k = 0; k < len; k++) {
        if (numbers[k] != MACHINE_NONE) {
            note_touch(f, &f->registers[numbers[k]], i, k < results ? TOUCH_WRITTEN : TOUCH_READ);
        }
    }
    return true;
}

static bool before_touch(warp *w, wgmma_flight *f, const instruction *i, uint32_t mask)
{
    const uint32_t *numbers = w->run->kernel->watched + i->numbers;
    bool copies = (i->flags & FLAG_MOVE) != 0 && mask == w->live;
    /* compilers set constants behind the fence */
    bool clears = (i->flags & FLAG_CLEAR) != 0 && !machine_checks(w, HONE_EMU_CHECK_STRICT);

    if (!copies && !clears && touch_free(f, i, numbers)) {
        return true;
    }
    if (copies && f->registers[numbers[1]].hold != HOLD_NONE && !f->registers[numbers[0]].is_a) {
        return copy_held(w, f, numbers);
    }
    if (!clear_touch(w, f, i, numbers, copies)) {
        return false;
    }
    if (copies) {
        note_copy(f, i, numbers);
        return true;
    }
    for (uint32_t k = 0; k < (uint32_t)i->results + i->sources; k++) {
        if (numbers[k] != MACHINE_NONE && !clears) {
            note_touch(f, &f->registers[numbers[k]], i,
                       k < i->results ? TOUCH_WRITTEN : TOUCH_READ);
        }
    }
    return true;
}

void exec_wgmma_touch(warp *w, const instruction *i, uint32_t mask)
{
    if (w->wgmma == NULL || before_touch(w, w->wgmma->flight, i, mask)) {
        i->watched(w, i, mask);
    }
}
