/* emu_check.c - a kernel under many orders of its warps and both timings of asynchronous work: no
 * fault, and the same bits from all. */
#include "cli/emu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *timing_name(int timing)
{
    return timing == HONE_EMU_LATEST ? "latest" : "issue";
}

/* What the first run left in each buffer. */
typedef struct outcome {
    uint8_t *bytes[LAUNCH_ARGUMENTS];
    bool filled;
} outcome;

static hone_status read_all(const emu_session *s, outcome *out, hone_error *error)
{
    hone_status status = HONE_OK;

    for (size_t n = 0; n < s->o->memory_len; n++) {
        if (s->o->memory[n]->kind == LAUNCH_BUFFER) {
            TRY(emu_session_read(s, n, &out->bytes[n], error));
        }
    }
    out->filled = true;
done:
    return status;
}

static void free_all(outcome *o)
{
    for (size_t n = 0; n < LAUNCH_ARGUMENTS; n++) {
        free(o->bytes[n]);
        o->bytes[n] = NULL;
    }
}

static void report_difference(const emu_session *s, size_t which, uint64_t at, uint64_t seed,
                              int timing, json_t *root)
{
    const char *name = s->o->memory[which]->name;

    if (root != NULL) {
        json_object_set_new(root, "difference",
                            json_pack("{s:s, s:I, s:I, s:s}", "buffer", name, "byte",
                                      (json_int_t)at, "seed", (json_int_t)seed, "timing",
                                      timing_name(timing)));
        return;
    }
    printf("schedule-dependent: buffer %s differs from the first run's at byte %" PRIu64
           "\n  with --seed %" PRIu64 " --timing %s\n",
           name, at, seed, timing_name(timing));
}

static bool same(const emu_session *s, const outcome *first, const outcome *now, uint64_t seed,
                 int timing, json_t *root)
{
    for (size_t n = 0; n < s->o->memory_len; n++) {
        uint64_t len = now->bytes[n] != NULL ? s->o->memory[n]->bytes : 0, at = 0;
        if (len == 0 || memcmp(first->bytes[n], now->bytes[n], len) == 0) {
            continue;
        }
        while (first->bytes[n][at] == now->bytes[n][at]) {
            at++;
        }
        report_difference(s, n, at, seed, timing, root);
        return false;
    }
    return true;
}

static hone_status try_schedule(emu_session *s, const emu_code *c, uint64_t seed, int timing,
                                outcome *first, json_t *root, bool *good, hone_error *error)
{
    hone_status status = HONE_OK;
    outcome now = {.filled = false};
    const bool is_first = !first->filled;

    TRY(emu_session_launch(s, seed, timing, good, error));
    if (!*good) {
        emu_report_fault(s, c, root);
        if (root == NULL) {
            printf("  with --seed %" PRIu64 " --timing %s\n", seed, timing_name(timing));
        } else {
            json_object_set_new(root, "seed", json_integer((json_int_t)seed));
            json_object_set_new(root, "timing", json_string(timing_name(timing)));
        }
        goto done;
    }
    TRY(read_all(s, is_first ? first : &now, error));
    *good = is_first || same(s, first, &now, seed, timing, root);
done:
    free_all(&now);
    return status;
}

hone_status emu_check(emu_session *s, const emu_code *c, json_t *root, bool *good,
                      hone_error *error)
{
    hone_status status = HONE_OK;
    const emu_options *o = s->o;
    outcome first = {.filled = false};
    int runs = 0;

    *good = true;
    for (int n = 0; n < o->schedules; n++) {
        for (int timing = HONE_EMU_AT_ISSUE; *good && timing <= HONE_EMU_LATEST; timing++) {
            if (o->timing >= 0 && o->timing != timing) {
                continue;
            }
            TRY(try_schedule(s, c, o->seed + (uint64_t)n, timing, &first, root, good, error));
            runs++;
        }
    }
    if (root != NULL) {
        json_object_set_new(root, "good", json_boolean(*good));
        json_object_set_new(root, "runs", json_integer(runs));
    } else if (*good) {
        printf("nothing wrong: %d runs of %s, %d orders of its warps, the same bits from all\n",
               runs, c->entry, o->schedules);
    }
done:
    free_all(&first);
    return status;
}
