/* mqa_pages.c - paged scores of a cache whose first page is not there. */
#include "tests/bench/mqa_pages.h"

#include "tests/bench/prove_fixture.h"

#include <check.h>
#include <string.h>

/* Runs of one to five rows get the pages of their last one. */
static void share_pages(const hone_mqa_logits_paged *p, inputs *in)
{
    const size_t row = (size_t)p->table_stride * 4;
    int64_t first = 0;

    ck_assert_int_eq(p->next_n, 1);
    for (int64_t run = 1; first < p->batch; first += run, run = run % 5 + 1) {
        const int64_t last = first + run < p->batch ? first + run - 1 : p->batch - 1;
        int32_t length = 0;
        memcpy(&length, in->image[4] + 4 * last, sizeof length);
        for (int64_t r = first; r < last; r++) {
            const int32_t own = length > INT32_MIN + 5 ? length - (int32_t)(last - r) : length;
            memcpy(in->image[4] + 4 * r, &own, sizeof own);
            memcpy(in->image[5] + (size_t)r * row, in->image[5] + (size_t)last * row, row);
        }
    }
}

static void hold(const char *spec, const char *text, const char *template, const char *pinned,
                 inputs_kind kind, bool shared)
{
    prove_fixture f;
    inputs in, out;
    hone_error error = {0};
    uint64_t address[HONE_MAX_OPERANDS], base[HONE_MAX_OPERANDS];
    verify_result verdict;

    prove_fixture_open(&f, spec, text, template, pinned, NULL, NULL);
    const driver *d = f.d->driver;
    const uint64_t page = (uint64_t)f.problem.as.mqa_logits_paged.page_stride;
    ck_assert_int_eq(inputs_make(&f.problem, kind, 5, &in, &error), HONE_OK);
    if (shared) {
        share_pages(&f.problem.as.mqa_logits_paged, &in);
    }
    ck_assert_int_eq(inputs_copy_outputs(&in, &out, &error), HONE_OK);
    ck_assert_int_eq(device_enter(f.d, &error), HONE_OK);
    for (size_t i = 0; i < in.len; i++) {
        const uint64_t skip = i == 2 ? page : 0, bytes = in.operand[i].bytes - skip;
        CUdeviceptr made = 0;
        ck_assert_int_eq(d->cuMemAlloc(&made, bytes + 1), 0);
        ck_assert(bytes == 0 || d->cuMemcpyHtoD(made, in.image[i] + skip, bytes) == 0);
        base[i] = made;
        address[i] = made - skip;
    }
    ck_assert_int_eq(d->emu->set_checks((int)f.d->ordinal, HONE_EMU_CHECK_ALL, &error), HONE_OK);
    ck_assert_int_eq(module_launch(f.m, &f.plan, address, in.len, 0, NULL, &error), HONE_OK);
    ck_assert_msg(driver_check(d, d->cuCtxSynchronize(), "cuCtxSynchronize", &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_int_eq(d->cuMemcpyDtoH(out.image[6], base[6], in.operand[6].bytes), 0);
    const verify_request request = {
        .problem = &f.problem,
        .before = &in,
        .after = (const uint8_t *const *)out.image,
        .tolerance = (double)f.plan.tolerance,
        .wide = verify_unit_is_wide(f.d->gpu.facts.arch, f.plan.fraction_bits),
        .ctas_run = 1,
        .ctas_total = 1};
    ck_assert_int_eq(verify_outputs(&request, &verdict, &error), HONE_OK);
    ck_assert_msg(verdict.passed, "%s", verdict.reason);
    for (size_t i = 0; i < in.len; i++) {
        d->cuMemFree(base[i]);
    }
    inputs_free_outputs(&out);
    inputs_free(&in);
    prove_fixture_close(&f);
}

void mqa_pages_hold(const char *spec, const char *text, const char *template, const char *pinned,
                    inputs_kind kind)
{
    hold(spec, text, template, pinned, kind, false);
}

void mqa_pages_hold_shared(const char *spec, const char *text, const char *template,
                           const char *pinned, inputs_kind kind)
{
    hold(spec, text, template, pinned, kind, true);
}
