/* fold_problem.c - folding as an opt-in: what a report must say, and which problem a folded one is.
 */
#include "core/problem.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>

hone_status hone_fold_accept(const hone_fold_report *report, double limit, hone_error *error)
{
    const double most = limit == 0.0 ? HONE_FOLD_LIMIT : limit;

    if (report == NULL || report->size != sizeof *report || !(most > 0.0)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: a report that hone_fold_scales filled, and a limit over 0 (or 0 "
                          "for the default)");
    }
    if (!(report->channel <= most)) {
        return status_set(error, HONE_LIMIT, NULL, 0,
                          "fold: %" PRIu64 " of %" PRIu64 " elements are inexact (columns are off "
                          "by %.2e, the worst by %.2e, the whole by %.2e; groups lie up to %d "
                          "binades apart), over the limit of %.2e for a column; take the exact "
                          "recipe",
                          report->inexact, report->elements, report->channel, report->worst_channel,
                          report->frobenius, report->spread, most);
    }
    return HONE_OK;
}

static hone_status check_foldable(const hone_problem *problem, hone_fold_mode mode,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_recipe *recipe = &problem->as.fp8_gemm.recipe;

    TRY(hone_problem_check(problem, error));
    if (mode != HONE_FOLD_K && mode != HONE_FOLD_BLOCK && mode != HONE_FOLD_N) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "fold: mode %d", (int)mode);
    }
    if (problem->op != HONE_OP_FP8_GEMM) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "fold: %s has no scales of two operands; an fp8_gemm is folded",
                          problem_op_name(problem->op));
    }
    if (recipe->b.element != HONE_DTYPE_E4M3) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "b_element=%s: codes of e2m1 have no exponents to shift; fold needs e4m3",
                          numfmt_dtype_name((hone_dtype)recipe->b.element));
    }
    if (recipe->a.scale != HONE_DTYPE_UE8M0 || recipe->b.scale != HONE_DTYPE_UE8M0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "a_scale=%s, b_scale=%s: f32 scales need not be powers of two, and only "
                          "those fold; hone_pack_scales makes ue8m0 of them or says which is not",
                          numfmt_dtype_name((hone_dtype)recipe->a.scale),
                          numfmt_dtype_name((hone_dtype)recipe->b.scale));
    }
done:
    return status;
}

/* Layouts that the coarser scales have no longer, and what follows from them, are derived anew. */
static void set_b(hone_fp8_gemm *p, int32_t gran_mn, int32_t gran_k)
{
    p->recipe.b.gran_mn = gran_mn;
    p->recipe.b.gran_k = gran_k;
    if (gran_mn > 1 && p->b_scale_layout == HONE_SCALES_PACKED) {
        p->b_scale_layout = 0;
    }
}

hone_status hone_fold_problem(const hone_problem *problem, hone_fold_mode mode, hone_problem *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    hone_problem made;

    if (problem == NULL || out == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: problem and out must not be NULL");
    }
    TRY(check_foldable(problem, mode, error));
    made = *problem;
    hone_fp8_gemm *p = &made.as.fp8_gemm;
    if (mode == HONE_FOLD_N) {
        if (p->recipe.b.gran_mn == 32) {
            set_b(p, 128, p->recipe.b.gran_k);
        }
    } else {
        p->recipe.a.gran_k = 128;
        set_b(p, mode == HONE_FOLD_BLOCK ? 128 : p->recipe.b.gran_mn, 128);
    }
    if (memcmp(&made.as, &problem->as, sizeof made.as) == 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          mode == HONE_FOLD_N ? "fold: B has no scales of 32 rows to fold along N"
                                              : "fold: no operand has scales of 32 to fold");
    }
    problem_derive(&made);
    TRY(hone_problem_check(&made, error));
    *out = made;
done:
    return status;
}
