/* plan_work.h - the work of a plan's launches as the performance model takes it: from a manifest's
 * estimate alone, or as the frame that an emulated launch's counters fill. */
#ifndef HONE_RUNTIME_PLAN_WORK_H
#define HONE_RUNTIME_PLAN_WORK_H

#include "models/perf.h"
#include "templates/manifest.h"

/* What of a launch no counter tells: threads, cluster, shared memory (dynamic), pipeline, and, for
 * the plan's main launch, how its CTAs share out the work. Counts are 0. */
void plan_work_frame(const plan *p, const plan_launch *l, perf_work *out);

/* The launch that does the work: the one with the most threads. Borrowed from the plan. */
const plan_launch *plan_work_main(const plan *p);

/* The work of one launch by the manifest's estimate, without compiling; a guess from the problem
 * where the manifest is silent. Launches beside the main one move the workspace. */
void plan_work_estimate(const plan *p, const plan_launch *l, const hone_problem *problem,
                        perf_work *out);

/* The work of a moe_gemm's main launch on other rows than the estimate takes for given: such that
 * its cover parts D in `tiles`, which all tiles' counts grow with. Nothing where the plan has no
 * cover or its estimate no tiles; `dram_bytes` is the caller's. */
void plan_work_retile(const plan *p, uint64_t tiles, perf_work *work);

#endif
