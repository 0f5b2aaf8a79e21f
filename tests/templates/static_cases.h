/* static_cases.h - the matrix kernels whose machine code is judged: 128x128 and 128x160 tiles of
 * each recipe that sm_90a serves. Shared by a suite and a benchmark. */
#ifndef HONE_TESTS_TEMPLATES_STATIC_CASES_H
#define HONE_TESTS_TEMPLATES_STATIC_CASES_H

#include "bench/sass.h"
#include "runtime/jit.h"

#define STATIC_TEMPLATE "fp8_gemm/sm90_wgmma"

typedef struct static_case {
    const char *recipe, *more; /* more of the problem's text: ",out=f32", or "" */
    int rows, columns;         /* of the tile that two warpgroups make */
    int chunks, sets, loader_registers;
} static_case;

extern const static_case static_cases[];
extern const size_t static_cases_len;

/* A compiled case: its code and the counts of its one kernel. */
typedef struct static_answer {
    compiled *code;
    sass_function sass;
    char config[400];
} static_answer;

/* Compile for sm_90a and read. HONE_UNSUPPORTED when the config is not legal. The caller ends *out
 * with static_answer_free. */
hone_status static_compile(const static_case *c, const templates *t, jit *j, static_answer *out,
                           hone_error *error);
void static_answer_free(static_answer *a);

/* Instructions of a warp for 128 of K of its tile. */
double static_instructions(const static_case *c, const sass_count *loop);

#endif
