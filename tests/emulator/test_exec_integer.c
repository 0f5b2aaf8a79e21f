/* test_exec_integer.c - every integer form on random and adversarial operands, against references
 * that are written from the manual. */
#include "tests/emulator/integer_forms.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 1024,
    BLOCK = 128,
    TOGETHER = 24, /* forms of one kernel */
    PARTS = 5,     /* of the list, for processors beside this one */
};

/* Where carries, signs, widths and counts end. */
static const uint64_t edges[] = {
    0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7fff, 0x8000,
    0x8001, 0xffff, 0x10000, 0x7fffff, 0x800000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
    0x100000000, 0x7fff8000, 0x80007fff, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 1,
    UINT64_MAX - 127, UINT64_MAX - 32767, UINT64_MAX - INT32_MAX, 0x5555555555555555,
    0xaaaaaaaaaaaaaaaa,
    /* floats: near the ends of integers, halves, no numbers */
    0x4effffff4f000000, 0x4f7fffff4f800000, 0xcf000001cf000000, 0x3fe000003f000000,
    0xbfe00000bf000000, 0x3ff800003fc00000, 0x7ff000007f800000, 0xfff80000ff800001,
    0x7c007e017fc00000, 0x43e0000000000000, 0xc3e0000000000000, 0x41dfffffffc00000,
    0x000000010000fbff};

static uint64_t operand(uint64_t *state)
{
    uint64_t kind = random_next(state) % 8, r = random_next(state);

    if (kind < 3) {
        return edges[r % (sizeof edges / sizeof *edges)];
    }
    if (kind == 3) { /* counts and places */
        return r % 72;
    }
    if (kind == 4) { /* a few bits set, or all but a few */
        uint64_t few = r & random_next(state) & random_next(state) & random_next(state);
        return r & 1 ? few : ~few;
    }
    return kind == 5 ? r >> random_next(state) % 64 : r;
}

/* The register that an operand of that letter has; `n`: which, results have number 10. */
static size_t put_register(char *to, char kind, uint32_t n, uint32_t word)
{
    return (size_t)(kind == 'h'   ? sprintf(to, "%%h%u", n)
                    : kind == 'd' ? sprintf(to, "%%x%u", n)
                    : n == 10     ? sprintf(to, "%%d%u", word)
                                  : sprintf(to, "%%a%u", 2 * n));
}

/* The form's text with its registers; its result in words `word` and the next. */
static size_t write_form(const integer_form *f, uint32_t word, char *to)
{
    char plain[128];
    const char *text = f->text, *sources = strchr(f->signature, '=') + 1;
    size_t used = 0;

    if (*text == '\0') {
        size_t len = (size_t)sprintf(plain, "%s $d", f->name);
        for (size_t n = 0; n < strlen(sources); n++) {
            len += (size_t)sprintf(plain + len, ", $%zu", n);
        }
        strcpy(plain + len, ";");
        text = plain;
    }
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            to[used++] = *text;
            continue;
        }
        text++;
        used += *text == 'd'
                    ? put_register(to + used, f->signature[0], 10, word)
                    : put_register(to + used, sources[*text - '0'], (uint32_t)(*text - '0'), 0);
    }
    const char *end = f->signature[0] == 'h'   ? " cvt.u32.u16 %%d%u, %%h10; mov.u32 %%d%u, 0;\n"
                      : f->signature[0] == 'd' ? " mov.b64 {%%d%u, %%d%u}, %%x10;\n"
                                               : "";
    if (*end == '\0') {
        return used + (size_t)sprintf(to + used, " mov.u32 %%d%u, 0;\n", word + 1);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return used + (size_t)sprintf(to + used, end, word, word + 1);
#pragma GCC diagnostic pop
}

static void compare(const integer_form *f, const uint64_t *in, const uint32_t *out,
                    size_t *compared)
{
    uint32_t bits = f->signature[0] == 'h' ? 16 : f->signature[0] == 'w' ? 32 : 64;

    for (uint32_t t = 0; t < THREADS; t++) {
        const uint64_t *v = in + 4 * t;
        uint64_t want = 0, got;
        memcpy(&got, out + 2 * TOGETHER * t, sizeof got);
        if (!f->reference(f, v, &want)) {
            continue;
        }
        want = bits < 64 ? want & ((UINT64_C(1) << bits) - 1) : want;
        ck_assert_msg(got == want, "%s of %llx %llx %llx %llx: %llx, not %llx", f->name,
                      (unsigned long long)v[0], (unsigned long long)v[1], (unsigned long long)v[2],
                      (unsigned long long)v[3], (unsigned long long)got, (unsigned long long)want);
        (*compared)++;
    }
}

/* Up to TOGETHER forms in one kernel. */
static void run_forms(const integer_form *forms, size_t len, uint64_t seed)
{
    static uint64_t in[4 * THREADS];
    static uint32_t out[2 * TOGETHER * THREADS];
    static char body[32768];
    uint64_t state = seed * 7919 + 3;
    ptx_bench b;

    /* lanes of 16-bit registers have more than 16 bits: signs above them must not show */
    size_t used = (size_t)sprintf(body, "mov.b64 %%x0, {%%a0, %%a1}; mov.b64 %%x1, {%%a2, %%a3}; "
                                        "mov.b64 %%x2, {%%a4, %%a5}; mov.b64 %%x3, {%%a6, %%a7};\n"
                                        "cvt.s16.s32 %%h0, %%a0; cvt.s16.s32 %%h1, %%a2; "
                                        "cvt.s16.s32 %%h2, %%a4; cvt.s16.s32 %%h3, %%a6;\n");
    for (uint32_t n = 0; n < TOGETHER; n++) {
        used += n < len ? write_form(&forms[n], 2 * n, body + used)
                        : (size_t)sprintf(body + used, "mov.u32 %%d%u, 0; mov.u32 %%d%u, 0;", 2 * n,
                                          2 * n + 1);
    }
    for (size_t n = 0; n < 4 * THREADS; n++) {
        in[n] = operand(&state);
        if (n % 4 > 0 && random_next(&state) % 6 == 0) { /* equal, or next to it */
            in[n] = in[n - 1] + random_next(&state) % 3 - 1;
        }
    }
    char *ptx = ptx_bench_wrap(body, 8, 2 * TOGETHER);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "line %d: %s\n%s", b.error.line,
                  b.error.message, body);
    uint64_t from = ptx_bench_buffer(&b, in, sizeof in),
             to = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){THREADS / BLOCK, 1, 1},
                                (uint32_t[]){BLOCK, 1, 1}, (void *[]){&from, &to}) == HONE_OK,
                  "%s", b.error.message);
    ptx_bench_read(&b, to, out, sizeof out);
    for (size_t n = 0; n < len; n++) {
        size_t compared = 0;
        compare(&forms[n], in, out + 2 * n, &compared);
        ck_assert_uint_gt(compared, THREADS / 8); /* fns: a base below 32 */
    }
    ptx_bench_close(&b);
    free(ptx);
}

START_TEST(every_form_gives_what_the_manual_says)
{
    static integer_form forms[INTEGER_FORMS];
    size_t len = integer_forms_list(forms);

    for (size_t n = TOGETHER * (size_t)_i; n < len; n += TOGETHER * PARTS) {
        run_forms(forms + n, len - n < TOGETHER ? len - n : TOGETHER, n);
    }
}
END_TEST

/* Whether a form of the list of libraries' forms is integer arithmetic. */
static bool is_arithmetic(const char *form)
{
    static const char *const bases[] = {
        "abs.", "add.", "and.", "bfi.",  "cvt.", "div.",  "mad.",  "max.", "min.", "mov.", "mul.",
        "neg.", "not.", "or.",  "popc.", "rem.", "selp.", "setp.", "shl.", "shr.", "sub.", "xor."};
    const char *type = strrchr(form, '.');
    bool known = false,
         whole = type != NULL && strchr("sub", type[1]) != NULL && type[2] >= '0' && type[2] <= '9';

    for (size_t n = 0; n < sizeof bases / sizeof *bases; n++) {
        known = known || strncmp(form, bases[n], strlen(bases[n])) == 0;
    }
    return known && whole;
}

START_TEST(every_form_that_libraries_have_is_here)
{
    static integer_form forms[INTEGER_FORMS];
    size_t len = integer_forms_list(forms), found = 0;
    char path[512];

    if (!file_find_shared("data/ptx_forms.csv", path, sizeof path)) {
        printf("SKIP the list of forms: it is not here\n");
        return;
    }
    char *csv = file_read(path, NULL), *rest = NULL;
    for (char *line = strtok_r(csv, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *form = line + 2;
        bool here = false;
        if ((line[0] != '1' && line[0] != '2') || strchr(form, ',') == NULL) {
            continue;
        }
        *strchr(form, ',') = '\0';
        if (!is_arithmetic(form)) {
            continue;
        }
        for (size_t n = 0; n < len && !here; n++) {
            here = strcmp(forms[n].name, form) == 0;
        }
        ck_assert_msg(here, "%s has no reference", form);
        found++;
    }
    ck_assert_uint_gt(found, 70);
    free(csv);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_integer");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, every_form_gives_what_the_manual_says, 0, PARTS);
    tcase_add_test(tests, every_form_that_libraries_have_is_here);
    return suite_run("emulator/exec_integer", tests);
}
