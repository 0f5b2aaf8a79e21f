/* test_exec_random.c - random programs without branches (but with guards), run by the machine and
 * by a second evaluator that walks one thread at a time over the same list of operations. Finds
 * what single operations cannot: registers that share a slot, guards, results that overwrite
 * sources. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 12, PREDICATES = 3, STEPS = 60, THREADS = 64, PROGRAMS = 40 };

typedef struct thread_state {
    uint32_t r[REGISTERS];
    bool p[PREDICATES];
} thread_state;

typedef struct step {
    uint32_t op, d, a, b, c, guard; /* guard: 0 none, 1 + 2 * predicate + negated */
} step;

static const struct {
    const char *text; /* d, a, b, c */
    char result;      /* r or p */
} ops[] = {
    {"add.u32 %%r%u, %%r%u, %%r%u;", 'r'},
    {"sub.u32 %%r%u, %%r%u, %%r%u;", 'r'},
    {"mul.lo.u32 %%r%u, %%r%u, %%r%u;", 'r'},
    {"xor.b32 %%r%u, %%r%u, %%r%u;", 'r'},
    {"mad.lo.u32 %%r%u, %%r%u, %%r%u, %%r%u;", 'r'},
    {"{ .reg .b64 %%w, %%v; mul.wide.u32 %%w, %%r%2$u, %%r%3$u; shr.u64 %%v, %%w, 16; cvt.u32.u64 "
     "%%r%1$u, %%v; }",
     'r'},
    {"{ .reg .b64 %%w; mov.b64 %%w, {%%r%2$u, %%r%3$u}; shl.b64 %%w, %%w, 7; mov.b64 {_, %%r%1$u}, "
     "%%w; }",
     'r'},
    {"setp.lt.u32 %%p%u, %%r%u, %%r%u;", 'p'},
    {"setp.eq.u32 %%p%u, %%r%u, %%r%u;", 'p'},
    {"selp.b32 %%r%u, %%r%u, %%r%u, %%p%u;", 'r'},
    {"and.pred %%p%u, %%p%u, %%p%u;", 'p'},
    {"not.pred %%p%u, %%p%u;", 'p'},
    {"shfl.sync.bfly.b32 %%r%u, %%r%u, 5, 31, -1;", 'r'},
    {"st.shared.u32 [%%m], %%r%2$u; ld.shared.u16 %%r%1$u, [%%m+2];", 'r'},
};
enum { OP_SHUFFLE = 12 };

static void make_program(step *steps, uint64_t *state)
{
    for (uint32_t n = 0; n < STEPS; n++) {
        step *s = &steps[n];
        s->op = (uint32_t)(random_next(state) % ARRAY_LEN(ops));
        bool predicates = ops[s->op].result == 'p';
        bool from_predicates = strstr(ops[s->op].text, ".pred") != NULL;
        uint32_t sources = from_predicates ? PREDICATES : REGISTERS;
        s->d = (uint32_t)random_next(state) % (predicates ? PREDICATES : REGISTERS);
        s->a = (uint32_t)random_next(state) % sources;
        s->b = (uint32_t)random_next(state) % sources;
        s->c = (uint32_t)random_next(state) % PREDICATES;
        /* a guarded shfl would need the guard of the other lane; braces and pairs take no guard */
        bool guarded =
            s->op != OP_SHUFFLE && *ops[s->op].text != '{' && strchr(ops[s->op].text, '[') == NULL;
        s->guard = guarded && random_next(state) % 3 == 0
                       ? 1 + (uint32_t)random_next(state) % (2 * PREDICATES)
                       : 0;
    }
}

static char *print_program(const step *steps)
{
    char *text = calloc(1, STEPS * 160 + 4096);
    size_t used = (size_t)sprintf(text,
                                  ".shared .b32 mem[%d]; .reg .b32 %%m; .reg .pred %%p<3>;\n"
                                  "mov.u32 %%r31, %%tid.x; mad.lo.u32 %%m, %%r31, 4, mem;\n",
                                  THREADS);

    for (uint32_t n = 0; n < REGISTERS; n++) {
        used += (size_t)sprintf(text + used, "mov.u32 %%r%u, %%a%u;\n", n, n);
    }
    for (uint32_t n = 0; n < PREDICATES; n++) {
        used += (size_t)sprintf(text + used, "setp.gt.s32 %%p%u, %%r%u, 0;\n", n, n);
    }
    for (uint32_t n = 0; n < STEPS; n++) {
        const step *s = &steps[n];
        if (s->guard != 0) {
            used += (size_t)sprintf(text + used, "@%s%%p%u ", (s->guard - 1) & 1 ? "!" : "",
                                    (s->guard - 1) / 2);
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        used += (size_t)sprintf(text + used, ops[s->op].text, s->d, s->a, s->b, s->c);
#pragma GCC diagnostic pop
        text[used++] = '\n';
    }
    for (uint32_t n = 0; n < REGISTERS; n++) {
        used += (size_t)sprintf(text + used, "mov.u32 %%d%u, %%r%u;\n", n, n);
    }
    return text;
}

static void evaluate(const step *s, thread_state *t, const thread_state *before, uint32_t thread)
{
    uint32_t a = t->r[s->a], b = t->r[s->b];

    if (s->guard != 0 && t->p[(s->guard - 1) / 2] == (bool)((s->guard - 1) & 1)) {
        return;
    }
    switch (s->op) {
    case 0:
        t->r[s->d] = a + b;
        break;
    case 1:
        t->r[s->d] = a - b;
        break;
    case 2:
        t->r[s->d] = a * b;
        break;
    case 3:
        t->r[s->d] = a ^ b;
        break;
    case 4:
        t->r[s->d] = a * b + t->r[s->c];
        break;
    case 5:
        t->r[s->d] = (uint32_t)((uint64_t)a * b >> 16);
        break;
    case 6:
        t->r[s->d] = b << 7 | a >> 25;
        break;
    case 7:
        t->p[s->d] = a < b;
        break;
    case 8:
        t->p[s->d] = a == b;
        break;
    case 9:
        t->r[s->d] = t->p[s->c] ? a : b;
        break;
    case 10:
        t->p[s->d] = t->p[s->a] && t->p[s->b];
        break;
    case 11:
        t->p[s->d] = !t->p[s->a];
        break;
    case OP_SHUFFLE:
        t->r[s->d] = before[thread ^ 5].r[s->a];
        break;
    default:
        t->r[s->d] = a >> 16;
        break;
    }
}

START_TEST(a_random_program_gives_what_the_second_evaluator_gives)
{
    static uint32_t in[THREADS * REGISTERS], out[THREADS * REGISTERS];
    static thread_state threads[THREADS], before[THREADS];
    uint64_t state = 977 + (uint64_t)_i * 7919;
    step steps[STEPS];
    ptx_bench b;

    make_program(steps, &state);
    for (uint32_t n = 0; n < ARRAY_LEN(in); n++) {
        in[n] = random_next(&state) % 4 == 0 ? (uint32_t)random_next(&state) % 3
                                             : (uint32_t)random_next(&state);
        threads[n / REGISTERS].r[n % REGISTERS] = in[n];
    }
    for (uint32_t t = 0; t < THREADS; t++) {
        for (uint32_t n = 0; n < PREDICATES; n++) {
            threads[t].p[n] = (int32_t)threads[t].r[n] > 0;
        }
    }
    for (uint32_t n = 0; n < STEPS; n++) {
        memcpy(before, threads, sizeof before);
        for (uint32_t t = 0; t < THREADS; t++) {
            evaluate(&steps[n], &threads[t], before, t);
        }
    }
    char *body = print_program(steps), *ptx = ptx_bench_wrap(body, REGISTERS, REGISTERS);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "line %d: %s\n%s", b.error.line,
                  b.error.message, ptx);
    uint64_t d_in = ptx_bench_buffer(&b, in, sizeof in),
             d_out = ptx_bench_buffer(&b, NULL, sizeof out);
    b.launch.schedule_seed = (uint64_t)_i;
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){THREADS, 1, 1},
                                (void *[]){&d_in, &d_out}) == HONE_OK,
                  "%s", b.error.message);
    ptx_bench_read(&b, d_out, out, sizeof out);
    for (uint32_t n = 0; n < ARRAY_LEN(out); n++) {
        ck_assert_msg(out[n] == threads[n / REGISTERS].r[n % REGISTERS],
                      "program %d, thread %u, register %u:\n%s", _i, n / REGISTERS, n % REGISTERS,
                      ptx);
    }
    ptx_bench_close(&b);
    free(body);
    free(ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_random");

    tcase_add_loop_test(tests, a_random_program_gives_what_the_second_evaluator_gives, 0, PROGRAMS);
    return suite_run("emulator/exec_random", tests);
}
