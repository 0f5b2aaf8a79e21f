/* round.c - .rz, .rm and .rp: rare, so lane by lane under the processor's rounding mode. Built
 * with -frounding-math; each mode has handlers of its own. */
#include "emulator/exec/exec.h"
#include "emulator/exec/math.h"

#include <fenv.h>

#define ROUNDED(id, mode, arity, T, canonical, expression)                                         \
    static void id(warp *w, const instruction *i, uint32_t mask)                                   \
    {                                                                                              \
        T *d = (T *)(void *)(w->r + i->o[0]);                                                      \
        const T *pa = (const T *)(const void *)(w->r + i->o[1]);                                   \
        const T *pb = (const T *)(const void *)(w->r + i->o[(arity) > 1 ? 2 : 1]);                 \
        const T *pc = (const T *)(const void *)(w->r + i->o[(arity) > 2 ? 3 : 1]);                 \
        int before = fegetround();                                                                 \
        fesetround(mode);                                                                          \
        for (EACH_LANE(lane, mask)) {                                                              \
            volatile T a = pa[lane], b = pb[lane], c = pc[lane];                                   \
            (void)b;                                                                               \
            (void)c;                                                                               \
            volatile T r = (expression);                                                           \
            d[lane] = canonical(r);                                                                \
        }                                                                                          \
        fesetround(before);                                                                        \
    }
#define AS_IT_IS(x) (x) /* the payload of a double's NaN is the host's */
#define ROUNDED_MODE(suffix, mode)                                                                 \
    ROUNDED(add_##suffix, mode, 2, float, math_canonical, a + b)                                   \
    ROUNDED(sub_##suffix, mode, 2, float, math_canonical, a - b)                                   \
    ROUNDED(mul_##suffix, mode, 2, float, math_canonical, a *b)                                    \
    ROUNDED(fma_##suffix, mode, 3, float, math_canonical, fmaf(a, b, c))                           \
    ROUNDED(div_##suffix, mode, 2, float, math_canonical, a / b)                                   \
    ROUNDED(rcp_##suffix, mode, 1, float, math_canonical, 1.0f / a)                                \
    ROUNDED(sqrt_##suffix, mode, 1, float, math_canonical, sqrtf(a))                               \
    ROUNDED(add64_##suffix, mode, 2, double, AS_IT_IS, a + b)                                      \
    ROUNDED(sub64_##suffix, mode, 2, double, AS_IT_IS, a - b)                                      \
    ROUNDED(mul64_##suffix, mode, 2, double, AS_IT_IS, a *b)                                       \
    ROUNDED(fma64_##suffix, mode, 3, double, AS_IT_IS, fma(a, b, c))                               \
    ROUNDED(div64_##suffix, mode, 2, double, AS_IT_IS, a / b)                                      \
    ROUNDED(rcp64_##suffix, mode, 1, double, AS_IT_IS, 1.0 / a)                                    \
    ROUNDED(sqrt64_##suffix, mode, 1, double, AS_IT_IS, sqrt(a))
ROUNDED_MODE(rz, FE_TOWARDZERO)
ROUNDED_MODE(rm, FE_DOWNWARD)
ROUNDED_MODE(rp, FE_UPWARD)

#define CONVERTED(id, mode, S, D, canonical)                                                       \
    static void id(warp *w, const instruction *i, uint32_t mask)                                   \
    {                                                                                              \
        D *d = (D *)(void *)(w->r + i->o[0]);                                                      \
        const S *pa = (const S *)(const void *)(w->r + i->o[1]);                                   \
        int before = fegetround();                                                                 \
        fesetround(mode);                                                                          \
        for (EACH_LANE(lane, mask)) {                                                              \
            volatile S a = pa[lane];                                                               \
            volatile D r = (D)a;                                                                   \
            d[lane] = canonical(r);                                                                \
        }                                                                                          \
        fesetround(before);                                                                        \
    }
#define CONVERTED_MODE(suffix, mode)                                                               \
    CONVERTED(cvt_##suffix##_s32, mode, int32_t, float, math_canonical)                            \
    CONVERTED(cvt_##suffix##_u32, mode, uint32_t, float, math_canonical)                           \
    CONVERTED(cvt_##suffix##_s64, mode, int64_t, float, math_canonical)                            \
    CONVERTED(cvt_##suffix##_u64, mode, uint64_t, float, math_canonical)                           \
    CONVERTED(cvt_##suffix##_f64, mode, double, float, math_canonical)                             \
    CONVERTED(cvt64_##suffix##_s64, mode, int64_t, double, AS_IT_IS)                               \
    CONVERTED(cvt64_##suffix##_u64, mode, uint64_t, double, AS_IT_IS)
CONVERTED_MODE(rz, FE_TOWARDZERO)
CONVERTED_MODE(rm, FE_DOWNWARD)
CONVERTED_MODE(rp, FE_UPWARD)

#define ROUNDED_ROWS(suffix)                                                                       \
    {"add." #suffix ".f32", "w=ww", add_##suffix, PIPE_FP32, TAINT_UNION},                         \
        {"sub." #suffix ".f32", "w=ww", sub_##suffix, PIPE_FP32, TAINT_UNION},                     \
        {"mul." #suffix ".f32", "w=ww", mul_##suffix, PIPE_FP32, TAINT_UNION},                     \
        {"fma." #suffix ".f32 mad." #suffix ".f32", "w=www", fma_##suffix, PIPE_FP32,              \
         TAINT_UNION},                                                                             \
        {"div." #suffix ".f32", "w=ww", div_##suffix, PIPE_SFU, TAINT_UNION},                      \
        {"rcp." #suffix ".f32", "w=w", rcp_##suffix, PIPE_SFU, TAINT_UNION},                       \
        {"sqrt." #suffix ".f32", "w=w", sqrt_##suffix, PIPE_SFU, TAINT_UNION},                     \
        {"cvt." #suffix ".f32.s32", "w=w", cvt_##suffix##_s32, PIPE_CONVERSION, TAINT_UNION},      \
        {"cvt." #suffix ".f32.u32", "w=w", cvt_##suffix##_u32, PIPE_CONVERSION, TAINT_UNION},      \
        {"cvt." #suffix ".f32.s64", "w=d", cvt_##suffix##_s64, PIPE_CONVERSION, TAINT_UNION},      \
        {"cvt." #suffix ".f32.u64", "w=d", cvt_##suffix##_u64, PIPE_CONVERSION, TAINT_UNION},      \
        {"cvt." #suffix ".f32.f64", "w=d", cvt_##suffix##_f64, PIPE_CONVERSION, TAINT_UNION},      \
        {"cvt." #suffix ".f64.s64", "d=d", cvt64_##suffix##_s64, PIPE_CONVERSION, TAINT_UNION},    \
        {"cvt." #suffix ".f64.u64", "d=d", cvt64_##suffix##_u64, PIPE_CONVERSION, TAINT_UNION},    \
        {"add." #suffix ".f64", "d=dd", add64_##suffix, PIPE_FP64, TAINT_UNION},                   \
        {"sub." #suffix ".f64", "d=dd", sub64_##suffix, PIPE_FP64, TAINT_UNION},                   \
        {"mul." #suffix ".f64", "d=dd", mul64_##suffix, PIPE_FP64, TAINT_UNION},                   \
        {"fma." #suffix ".f64 mad." #suffix ".f64", "d=ddd", fma64_##suffix, PIPE_FP64,            \
         TAINT_UNION},                                                                             \
        {"div." #suffix ".f64", "d=dd", div64_##suffix, PIPE_FP64, TAINT_UNION},                   \
        {"rcp." #suffix ".f64", "d=d", rcp64_##suffix, PIPE_FP64, TAINT_UNION},                    \
        {"sqrt." #suffix ".f64", "d=d", sqrt64_##suffix, PIPE_FP64, TAINT_UNION},

static const exec_row rows[] = {ROUNDED_ROWS(rz) ROUNDED_ROWS(rm) ROUNDED_ROWS(rp)};

const exec_row *exec_round_table(size_t *len)
{
    *len = ARRAY_LEN(rows);
    return rows;
}
