/* corner_log.c - see corner_log.h. */
#include "tests/bench/corner_log.h"

#include "core/digest.h"

#include <check.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_VARIABLE "HONE_CORNER_LOG"

uint64_t corner_log_key(const corner_candidate *c, const hone_problem *problem, const plan *p,
                        uint64_t seed)
{
    hone_error error = {0};
    char text[512];
    uint8_t made[DIGEST_BYTES];
    uint64_t key;
    digest d;

    ck_assert_int_eq(hone_problem_format(problem, text, sizeof text, &error), HONE_OK);
    digest_begin(&d);
    digest_text(&d, c->d->gpu.slug);
    digest_text(&d, text);
    digest_u64(&d, seed);
    digest_bytes(&d, c->code->ptx, c->code->ptx_len);
    for (uint32_t i = 0; i < p->launches_len; i++) {
        const plan_launch *l = &p->launches[i];
        const size_t from = offsetof(plan_launch, grid); /* its name is in the PTX */
        digest_bytes(&d, (const uint8_t *)l + from, sizeof *l - from);
    }
    digest_u64(&d, p->workspace_bytes);
    digest_u64(&d, p->workspace_zeroed);
    digest_bytes(&d, &p->cover, sizeof p->cover);
    digest_bytes(&d, &p->tolerance, sizeof p->tolerance);
    digest_end(&d, made);
    memcpy(&key, made, sizeof key);
    return key;
}

bool corner_log_has(uint64_t key)
{
    const char *path = getenv(LOG_VARIABLE);
    FILE *log = path != NULL ? fopen(path, "r") : NULL;
    char line[1024];
    bool found = false;

    while (log != NULL && !found && fgets(line, sizeof line, log) != NULL) {
        /* A line that was cut short by a kill says nothing. */
        found = strchr(line, '\n') != NULL && strtoull(line, NULL, 16) == key;
    }
    if (log != NULL) {
        fclose(log);
    }
    return found;
}

void corner_log_add(uint64_t key, const corner_candidate *c, const hone_problem *problem)
{
    const char *path = getenv(LOG_VARIABLE);
    hone_error error = {0};
    char text[512];

    if (path == NULL) {
        return;
    }
    FILE *log = fopen(path, "a");
    ck_assert_msg(log != NULL, LOG_VARIABLE "=%s: cannot be written", path);
    ck_assert_int_eq(hone_problem_format(problem, text, sizeof text, &error), HONE_OK);
    fprintf(log, "%016" PRIx64 " %s | %s | %s | %s\n", key, c->d->gpu.slug, manifest_name(c->m),
            text, c->text);
    ck_assert_int_eq(fclose(log), 0);
}

void corner_log_prove(corner_proofs *of, const corner_candidate *c, const plan *launches,
                      corner_count *count)
{
    const uint64_t key = corner_log_key(c, &of->problem, launches, of->seed);
    hone_error error = {0};
    char text[512] = "";
    prove_result r;

    if (corner_log_has(key)) {
        count->logged++;
        return;
    }
    hone_problem_format(&of->problem, text, sizeof text, NULL);
    ck_assert_msg(of->made != NULL ||
                      prover_open(of->d, &of->problem, of->seed, &of->made, &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(prover_run(of->made, c->module, launches, c->code, &r, &error) == HONE_OK,
                  "%s: %s", text, error.message);
    ck_assert_msg(r.outcome == STORE_OK, "%s, %u CTAs, %s: %s", text, launches->launches[0].grid[0],
                  c->text, r.reason);
    ck_assert_double_le(r.verify.max_err_ratio, 1.0);
    corner_log_add(key, c, &of->problem);
    count->made++;
}
