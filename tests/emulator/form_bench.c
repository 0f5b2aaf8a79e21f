/* form_bench.c - forms in kernels: operands in registers of all widths, results compared. */
#include "tests/emulator/form_bench.h"
#include "tests/emulator/ptx_bench.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 };

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

    for (uint32_t t = 0; t < FORM_THREADS; t++) {
        const uint64_t *v = in + 4 * t;
        uint64_t want = 0, got;
        memcpy(&got, out + 2 * FORM_TOGETHER * t, sizeof got);
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

void form_bench_run(const integer_form *forms, size_t len, const uint64_t in[4 * FORM_THREADS])
{
    static uint32_t out[2 * FORM_TOGETHER * FORM_THREADS];
    static char body[32768];
    ptx_bench b;

    /* lanes of 16-bit registers have more than 16 bits: signs above them must not show */
    size_t used = (size_t)sprintf(body, "mov.b64 %%x0, {%%a0, %%a1}; mov.b64 %%x1, {%%a2, %%a3}; "
                                        "mov.b64 %%x2, {%%a4, %%a5}; mov.b64 %%x3, {%%a6, %%a7};\n"
                                        "cvt.s16.s32 %%h0, %%a0; cvt.s16.s32 %%h1, %%a2; "
                                        "cvt.s16.s32 %%h2, %%a4; cvt.s16.s32 %%h3, %%a6;\n");
    for (uint32_t n = 0; n < FORM_TOGETHER; n++) {
        used += n < len ? write_form(&forms[n], 2 * n, body + used)
                        : (size_t)sprintf(body + used, "mov.u32 %%d%u, 0; mov.u32 %%d%u, 0;", 2 * n,
                                          2 * n + 1);
    }
    char *ptx = ptx_bench_wrap(body, 8, 2 * FORM_TOGETHER);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "line %d: %s\n%s", b.error.line,
                  b.error.message, body);
    uint64_t from = ptx_bench_buffer(&b, in, 4 * FORM_THREADS * sizeof *in),
             to = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){FORM_THREADS / BLOCK, 1, 1},
                                (uint32_t[]){BLOCK, 1, 1}, (void *[]){&from, &to}) == HONE_OK,
                  "%s", b.error.message);
    ptx_bench_read(&b, to, out, sizeof out);
    for (size_t n = 0; n < len; n++) {
        size_t compared = 0;
        compare(&forms[n], in, out + 2 * n, &compared);
        ck_assert_uint_gt(compared, FORM_THREADS / 8); /* fns: a base below 32 */
    }
    ptx_bench_close(&b);
    free(ptx);
}
