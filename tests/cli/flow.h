/* flow.h - the small tuned store that the suites of the whole flow start from. */
#ifndef HONE_TESTS_CLI_FLOW_H
#define HONE_TESTS_CLI_FLOW_H

#include "tests/cli/program.h"

/* One problem of each op, small enough to be proved whole. */
#define FLOW_GEMM(m) "fp8_gemm:m=" m ",n=64,k=128,recipe=f32-1x128-128x128"
#define FLOW_ACT     "act_quant:m=5,k=256"
#define FLOW_KV                                                                                    \
    "kv_quant:tokens=9,pages=3,record_format=index_132,record_layout=split,record_rule=raw_amax"
#define FLOW_PROBLEMS " --problem " FLOW_GEMM("16") " --problem " FLOW_ACT " --problem " FLOW_KV " "
#define FLOW_DEVICES  "--device emu:h20 --device emu:rtx4090 "

/* Tune the three on both devices, two candidates each, into the place's default store. */
#define FLOW_TUNE "hone tune" FLOW_PROBLEMS FLOW_DEVICES "--budget 2 "

#endif
