/* routed_time.c - a manifest's estimate, of as many tiles as the rows of experts make. */
#include "bench/routed_time.h"

#include "core/integer.h"
#include "runtime/plan_work.h"

#include <stdlib.h>

/* Of drawn distributions: any would do. */
#define SEED 1

/* Rows are cut where there is no room for them, as inputs are; counts what is left. */
static uint64_t lay_out(const hone_moe_gemm *p, const plan_cover *cover, const int64_t *rows,
                        routed_time *out)
{
    const bool masked = p->group_layout == HONE_GROUPS_MASKED;
    const int64_t columns = p->activation == HONE_ACTIVATION_PLAIN ? p->n : p->n / 2;
    int64_t at = 0, blocks = 0;

    for (int64_t e = 0; e < p->experts; e++) {
        const int64_t room = masked ? p->m : p->m - at;
        const int64_t own = rows[e] < room ? rows[e] : room;
        out->rows += own;
        out->touched += own > 0;
        blocks += integer_ceil_div(own, cover->rows);
        at += masked ? 0 : integer_round_up(own, p->row_align);
        at = at < p->m ? at : p->m;
    }
    out->rows_made = blocks * cover->rows;
    return (uint64_t)(blocks * integer_ceil_div(columns, cover->columns));
}

static hone_status predict(const plan *made, const hone_problem *problem, const gpu *g,
                           uint64_t tiles, routed_time *out, hone_error *error)
{
    hone_status status = HONE_OK;
    double flop = 0, bytes = 0;

    problem_work_routed(problem, out->rows, out->touched, &flop, &bytes);
    for (uint32_t i = 0; i < made->launches_len; i++) {
        const plan_launch *l = &made->launches[i];
        perf_work work;
        perf_answer answer;
        plan_work_estimate(made, l, problem, &work);
        if (l == plan_work_main(made)) {
            plan_work_retile(made, tiles, &work);
            work.dram_bytes = bytes;
            work.l2_bytes = work.l2_bytes > bytes ? work.l2_bytes : bytes;
        }
        TRY(perf_predict(g, &work, &answer, error));
        out->ns += answer.ns;
        out->bound = l == plan_work_main(made) ? answer.bound : out->bound;
    }
    out->roof = roofline_of_work(g, problem, flop, bytes, out->ns);
done:
    return status;
}

hone_status routed_time_of(const manifest *m, const config *c, const hone_problem *problem,
                           const gpu *g, const routing *how, routed_time *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_moe_gemm *p = &problem->as.moe_gemm;
    const bool by_rows =
        problem->op == HONE_OP_MOE_GEMM && p->group_layout != HONE_GROUPS_K && p->tokens > 0;
    routed_time made = {0};
    uint64_t state = SEED;
    int64_t *rows = calloc(by_rows ? (size_t)p->experts : 1, sizeof *rows);
    plan *planned = malloc(sizeof *planned);

    if (rows == NULL || planned == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "rows of experts");
        goto done;
    }
    if (!by_rows) {
        status =
            status_set(error, HONE_UNSUPPORTED, NULL, 0, "only a moe_gemm has rows of experts");
        goto done;
    }
    TRY(routing_check(how, problem, error));
    TRY(routing_rows(how, p->experts, p->tokens * p->topk, &state, rows, error));
    TRY(manifest_plan(m, problem, &g->facts, c, planned, error));
    if (planned->cover.rows == 0 || planned->estimate.tiles <= 0) {
        status = status_set(error, HONE_UNSUPPORTED, NULL, 0, "%s has no cover or counts no tiles",
                            manifest_name(m));
        goto done;
    }
    TRY(predict(planned, problem, g, lay_out(p, &planned->cover, rows, &made), &made, error));
    *out = made;
done:
    free(planned);
    free(rows);
    return status;
}
