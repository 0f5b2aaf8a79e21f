/* corner.c - see corner.h. */
#include "tests/bench/corner.h"

#include "bench/prove_parts.h"
#include "templates/space.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool corner_plan(const corner_candidate *c, const hone_problem *problem, int32_t sms, plan *out)
{
    hone_error error = {0};
    device_facts facts = c->d->gpu.facts;
    char why[160];
    bool legal = false;

    facts.sm_count = sms > 0 ? sms : facts.sm_count;
    ck_assert_msg(manifest_legal(c->m, problem, &facts, &c->config, &legal, why, &error) == HONE_OK,
                  "%s: %s", c->text, error.message);
    if (legal) {
        ck_assert_msg(manifest_plan(c->m, problem, &facts, &c->config, out, &error) == HONE_OK,
                      "%s: %s", c->text, error.message);
    }
    return legal;
}

/* A template's texts, all copied, the source last. */
typedef struct texts {
    size_t len;
    char **text;
} texts;

static texts texts_copy(const template_source *source)
{
    texts t = {.len = source->headers_len + 1};

    t.text = calloc(t.len, sizeof *t.text);
    ck_assert_ptr_nonnull(t.text);
    for (size_t i = 0; i < t.len; i++) {
        t.text[i] = strdup(i < source->headers_len ? source->headers[i] : source->source);
        ck_assert_ptr_nonnull(t.text[i]);
    }
    return t;
}

static void texts_free(texts *t)
{
    for (size_t i = 0; i < t->len; i++) {
        free(t->text[i]);
    }
    free(t->text);
}

static void texts_edit(texts *t, const corner_edit *edit)
{
    size_t i = t->len - 1; /* the source first */

    for (size_t n = 0; n < t->len && strstr(t->text[i], edit->old) == NULL; n++) {
        i = n;
    }
    const char *at = strstr(t->text[i], edit->old);
    ck_assert_msg(at != NULL, "the template no longer says '%s'", edit->old);
    const size_t capacity = strlen(t->text[i]) + strlen(edit->new) + 1;
    char *made = malloc(capacity);
    ck_assert_ptr_nonnull(made);
    snprintf(made, capacity, "%.*s%s%s", (int)(at - t->text[i]), t->text[i], edit->new,
             at + strlen(edit->old));
    free(t->text[i]);
    t->text[i] = made;
}

void corner_open(corner_candidate *c, const device *d, const hone_problem *problem,
                 const manifest *m, const config *chosen)
{
    corner_open_edited(c, d, problem, m, chosen, NULL, 0);
}

void corner_open_edited(corner_candidate *c, const device *d, const hone_problem *problem,
                        const manifest *m, const config *chosen, const corner_edit *edits,
                        size_t len)
{
    hone_error error = {0};
    jit_request request;
    plan *p = calloc(1, sizeof *p);

    ck_assert_ptr_nonnull(p);
    *c = (corner_candidate){.d = d, .m = m, .config = *chosen};
    manifest_config_format(m, chosen, c->text, sizeof c->text, NULL);
    ck_assert_msg(corner_plan(c, problem, 0, p), "%s: not legal", c->text);
    ck_assert_int_eq(
        jit_request_plan(prove_fixture_templates(), m, p, d->gpu.facts.arch, &request, &error),
        HONE_OK);
    texts t = texts_copy(&request.source);
    for (size_t i = 0; i < len; i++) {
        texts_edit(&t, &edits[i]);
    }
    request.source.source = t.text[t.len - 1];
    request.source.headers = (const char *const *)t.text;
    ck_assert_msg(jit_compile(prove_fixture_compiler(), &request, &c->code, &error) == HONE_OK,
                  "%s: %s", c->text, error.message);
    texts_free(&t);
    ck_assert_msg(module_load(d, p, c->code, &c->module, &error) == HONE_OK, "%s: %s", c->text,
                  error.message);
    free(p);
}

void corner_close(corner_candidate *c)
{
    module_unload(c->module);
    compiled_free(c->code);
    *c = (corner_candidate){.d = NULL};
}

hone_problem corner_problem(const char *recipe, int64_t m, int64_t n, int64_t k)
{
    hone_error error = {0};
    hone_problem problem;
    char text[256];

    snprintf(text, sizeof text, "fp8_gemm:m=%lld,n=%lld,k=%lld,recipe=%s", (long long)m,
             (long long)n, (long long)k, recipe);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    return problem;
}

bool corner_default(const device *d, const hone_problem *problem, const manifest *m, config *out)
{
    enum { RANKED = 4096 };
    default_choice *ranked = calloc(RANKED, sizeof *ranked);
    hone_error error = {0};
    size_t count = 0, i = 0;

    ck_assert_ptr_nonnull(ranked);
    ck_assert_msg(default_rank(prove_fixture_templates(), problem, &d->gpu, 0, ranked, RANKED,
                               &count, NULL, &error) == HONE_OK,
                  "%s", error.message);
    while (i < count && ranked[i].m != m) {
        i++;
    }
    const bool found = i < count;
    if (found) {
        *out = ranked[i].config;
    }
    free(ranked);
    return found;
}

/* Note a config's values in `seen`, a bit each; whether one of them is new. */
static bool has_new_value(const manifest *m, const config *c, uint32_t seen[MANIFEST_MAX_PARAMS])
{
    bool any = false;

    for (uint32_t i = 0; i < c->len; i++) {
        const int64_t *values;
        const uint32_t len = manifest_param_values(m, i, &values);
        for (uint32_t v = 0; v < len && v < 32; v++) {
            const uint32_t bit = values[v] == c->value[i] ? UINT32_C(1) << v : 0;
            any = any || (bit & ~seen[i]) != 0;
            seen[i] |= bit;
        }
    }
    return any;
}

size_t corner_draw(const device *d, const hone_problem *problem, const manifest *m, uint64_t seed,
                   size_t most, config *out)
{
    enum { DRAWS = 2000 };
    const char *asked = getenv("HONE_SEED");
    hone_error error = {0};
    uint32_t seen[MANIFEST_MAX_PARAMS] = {0};
    space *s = NULL;
    size_t len = 0;

    seed += asked != NULL ? strtoull(asked, NULL, 10) : 0;
    ck_assert_msg(space_open(m, problem, &d->gpu.facts, &s, &error) == HONE_OK, "%s",
                  error.message);
    for (int i = 0; i < DRAWS && len < most; i++) {
        bool found = false, uniform = false;
        ck_assert_int_eq(space_draw(s, &seed, 0, &out[len], &found, &uniform, &error), HONE_OK);
        ck_assert_msg(found, "%s: no legal config", manifest_name(m));
        len += has_new_value(m, &out[len], seen);
    }
    space_close(s);
    return len;
}

/* ---- Schedules ------------------------------------------------------------------------------- */

typedef struct schedules {
    const corner_candidate *c;
    const plan *p;
    prove_buffers buffers;
    inputs in, first, other; /* operands; D of the first schedule, of the others */
} schedules;

static void run_schedule(schedules *s, uint64_t seed, int timing, inputs *into, char why[240])
{
    const prove_launch how = {
        .schedule = seed, .timing = (hone_emu_timing)timing, .thorough = true};
    hone_error error = {0};
    prove_result result = {.outcome = STORE_OK};
    int hit = -1;

    ck_assert_int_eq(prove_buffers_reset(&s->buffers, &s->in, NULL, &error), HONE_OK);
    ck_assert_int_eq(prove_buffers_workspace(&s->buffers, s->p->workspace_bytes, &error), HONE_OK);
    ck_assert_msg(prove_launch_once(&s->buffers, s->c->module, s->p, &how, &result, NULL, &error) ==
                      HONE_OK,
                  "%s", error.message);
    if (result.outcome != STORE_OK) {
        snprintf(why, 240, "seed %d, timing %d: %.200s", (int)seed, timing, result.reason);
        return;
    }
    ck_assert_int_eq(prove_buffers_read(&s->buffers, into, &hit, &error), HONE_OK);
}

void corner_schedules(const corner_candidate *c, const hone_problem *problem, const plan *p,
                      uint64_t seeds, char why[240])
{
    hone_error error = {0};
    schedules s = {.c = c, .p = p};

    why[0] = '\0';
    ck_assert_int_eq(inputs_make(problem, INPUTS_HOLES, 5, &s.in, &error), HONE_OK);
    ck_assert_int_eq(inputs_copy_outputs(&s.in, &s.first, &error), HONE_OK);
    ck_assert_int_eq(inputs_copy_outputs(&s.in, &s.other, &error), HONE_OK);
    ck_assert_int_eq(prove_buffers_open(c->d, &s.in, &s.buffers, &error), HONE_OK);
    for (uint64_t seed = 0; seed < seeds && why[0] == '\0'; seed++) {
        for (int timing = HONE_EMU_AT_ISSUE; timing <= HONE_EMU_LATEST && why[0] == '\0';
             timing++) {
            const bool is_first = seed == 0 && timing == HONE_EMU_AT_ISSUE;
            run_schedule(&s, seed, timing, is_first ? &s.first : &s.other, why);
            if (why[0] == '\0' && !is_first &&
                memcmp(s.first.image[4], s.other.image[4], s.in.operand[4].bytes) != 0) {
                snprintf(why, 240, "seed %d, timing %d: other bits", (int)seed, timing);
            }
        }
    }
    prove_buffers_close(&s.buffers);
    inputs_free_outputs(&s.other);
    inputs_free_outputs(&s.first);
    inputs_free(&s.in);
}

verify_result corner_judge(const corner_candidate *c, const hone_problem *problem, const inputs *in)
{
    const prove_launch how = {.schedule = 0};
    hone_error error = {0};
    prove_result run = {.outcome = STORE_OK};
    verify_result result = {.passed = false};
    inputs after = {0};
    prove_buffers buffers;
    plan *p = calloc(1, sizeof *p);
    int hit = -1;

    ck_assert_ptr_nonnull(p);
    ck_assert(corner_plan(c, problem, 0, p));
    ck_assert_int_eq(inputs_copy_outputs(in, &after, &error), HONE_OK);
    ck_assert_int_eq(prove_buffers_open(c->d, in, &buffers, &error), HONE_OK);
    ck_assert_msg(prove_launch_once(&buffers, c->module, p, &how, &run, NULL, &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(run.outcome == STORE_OK, "%s", run.reason);
    ck_assert_int_eq(prove_buffers_read(&buffers, &after, &hit, &error), HONE_OK);
    const verify_request request = {.problem = problem,
                                    .before = in,
                                    .after = (const uint8_t *const *)after.image,
                                    .tolerance = p->tolerance,
                                    .wide =
                                        verify_unit_is_wide(c->d->gpu.facts.arch, p->fraction_bits),
                                    .ctas_run = 1,
                                    .ctas_total = 1};
    ck_assert_int_eq(verify_outputs(&request, &result, &error), HONE_OK);
    prove_buffers_close(&buffers);
    inputs_free_outputs(&after);
    free(p);
    return result;
}
