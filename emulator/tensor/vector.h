/* vector.h - the host's vectors for tile.h, and the few operations that C's vectors
 * lack.
 *
 * Opens the code generation of TENSOR_LEVEL (3 AVX-512, 2 AVX2 and FMA, 1 baseline);
 * tensor_tile_end.h closes it. Vectors go by pointer: passed by value their ABI would depend on the
 * level. */
#include "emulator/tensor/lanes.h"

#include <math.h>
#include <string.h>
#if TENSOR_LEVEL > 1
#include <immintrin.h>
#endif

#if TENSOR_LEVEL == 3
#define TENSOR_FEATURES "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
#elif TENSOR_LEVEL == 2
#define TENSOR_FEATURES "avx2,fma"
#endif

#define TENSOR_PRAGMA(text) _Pragma(#text)
#if TENSOR_LEVEL > 1
#ifdef __clang__
#define TENSOR_PUSH(features)                                                                      \
    TENSOR_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
TENSOR_PUSH(TENSOR_FEATURES)
#else
#define TENSOR_PUSH(features) TENSOR_PRAGMA(GCC target(features))
#pragma GCC push_options
TENSOR_PUSH(TENSOR_FEATURES)
#endif
#endif

#define LANES (1 << (TENSOR_LEVEL + 1)) /* of 32 bits: 16, 8, 4 */

typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int8_t vb __attribute__((vector_size(4 * LANES)));
typedef uint8_t vub __attribute__((vector_size(4 * LANES)));
typedef int16_t vh __attribute__((vector_size(4 * LANES)));
typedef double vd __attribute__((vector_size(4 * LANES)));
typedef int64_t vl __attribute__((vector_size(4 * LANES)));
typedef int32_t vi_half __attribute__((vector_size(2 * LANES)));
typedef float vf_half __attribute__((vector_size(2 * LANES)));

#define VECTOR_INLINE static inline __attribute__((always_inline))
#define SPLAT(x)      ((vi){0} + (int32_t)(x))
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VECTOR_UNROLL /* clang does so anyway; checked code takes minutes to compile unrolled */
#else
#define VECTOR_UNROLL TENSOR_PRAGMA(GCC unroll 32)
#endif

#if TENSOR_LEVEL == 3
#define VECTOR_CALL(operation) _mm512_##operation
typedef __m512i vector_native;
typedef __m512 vector_native_float;
#elif TENSOR_LEVEL == 2
#define VECTOR_CALL(operation) _mm256_##operation
typedef __m256i vector_native;
typedef __m256 vector_native_float;
#endif

/* x = the larger (>) or smaller (<) of x and y, lane by lane. */
#if TENSOR_LEVEL > 1
#define VECTOR_SELECT(name, type, operation, keeps)                                                \
    VECTOR_INLINE void name(vi *x, const vi *y)                                                    \
    {                                                                                              \
        *x = (vi)VECTOR_CALL(operation)((vector_native)*x, (vector_native)*y);                     \
    }
#else
#define VECTOR_SELECT(name, type, operation, keeps)                                                \
    VECTOR_INLINE void name(vi *x, const vi *y)                                                    \
    {                                                                                              \
        type keep = (type)((type)*x keeps(type) * y);                                              \
        *x = (vi)(((type)*x & keep) | ((type)*y & ~keep));                                         \
    }
#endif
VECTOR_SELECT(vector_max8, vb, max_epi8, >)
VECTOR_SELECT(vector_max16, vh, max_epi16, >)
VECTOR_SELECT(vector_max32, vi, max_epi32, >)
VECTOR_SELECT(vector_min32, vi, min_epi32, <)

/* sum = a * b + sum, rounded once. */
VECTOR_INLINE void vector_fma(vf *sum, const vf *a, float b)
{
#if TENSOR_LEVEL > 1
    *sum = (vf)VECTOR_CALL(fmadd_ps)((vector_native_float)*a, VECTOR_CALL(set1_ps)(b),
                                     (vector_native_float)*sum);
#else
    for (size_t i = 0; i < LANES; i++) {
        (*sum)[i] = fmaf((*a)[i], b, (*sum)[i]);
    }
#endif
}

VECTOR_INLINE bool vector_any(const vi *x)
{
#if TENSOR_LEVEL == 3
    return _mm512_test_epi32_mask((__m512i)*x, (__m512i)*x) != 0;
#elif TENSOR_LEVEL == 2
    return _mm256_testz_si256((__m256i)*x, (__m256i)*x) == 0;
#else
    vl lanes = (vl)*x;
    return (lanes[0] | lanes[1]) != 0;
#endif
}

/* Some lane, taken as unsigned, is above the bound. */
VECTOR_INLINE bool vector_exceeds(const vi *x, uint32_t bound)
{
#if TENSOR_LEVEL == 3
    return _mm512_cmpgt_epu32_mask((__m512i)*x, _mm512_set1_epi32((int32_t)bound)) != 0;
#else
    vi above = (vi)((vu)*x > (vu){0} + bound);
    return vector_any(&above);
#endif
}

VECTOR_INLINE void vector_load(vi *x, const uint32_t *from)
{
    memcpy(x, from, sizeof *x);
}

#if TENSOR_LEVEL > 1
#define VECTOR_UNPACK(which, p, q)                                                                 \
    (vi) VECTOR_CALL(unpack##which)((vector_native)(p), (vector_native)(q))
#else
#define VECTOR_UNPACK(which, p, q)   VECTOR_UNPACK_##which(p, q)
#define VECTOR_UNPACK_lo_epi32(p, q) __builtin_shufflevector(p, q, 0, 4, 1, 5)
#define VECTOR_UNPACK_hi_epi32(p, q) __builtin_shufflevector(p, q, 2, 6, 3, 7)
#define VECTOR_UNPACK_lo_epi64(p, q) __builtin_shufflevector(p, q, 0, 1, 4, 5)
#define VECTOR_UNPACK_hi_epi64(p, q) __builtin_shufflevector(p, q, 2, 3, 6, 7)
#endif

/* 4x4 transposes within each 128 bits of four vectors: its own inverse. */
VECTOR_INLINE void vector_turn(vi x[4])
{
    vi low01 = VECTOR_UNPACK(lo_epi32, x[0], x[1]), high01 = VECTOR_UNPACK(hi_epi32, x[0], x[1]);
    vi low23 = VECTOR_UNPACK(lo_epi32, x[2], x[3]), high23 = VECTOR_UNPACK(hi_epi32, x[2], x[3]);

    x[0] = VECTOR_UNPACK(lo_epi64, low01, low23);
    x[1] = VECTOR_UNPACK(hi_epi64, low01, low23);
    x[2] = VECTOR_UNPACK(lo_epi64, high01, high23);
    x[3] = VECTOR_UNPACK(hi_epi64, high01, high23);
}

#if TENSOR_LEVEL == 3 /* the compiler splits these conversions in four */
VECTOR_INLINE void vector_widen(vd out[2], const vi *x)
{
    out[0] = (vd)_mm512_cvtepi32_pd(_mm512_castsi512_si256((__m512i)*x));
    out[1] = (vd)_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64((__m512i)*x, 1));
}

VECTOR_INLINE void vector_widen_float(vd out[2], const vf *x)
{
    __m512i bits = (__m512i)*x;
    out[0] = (vd)_mm512_cvtps_pd((__m256)_mm512_castsi512_si256(bits));
    out[1] = (vd)_mm512_cvtps_pd((__m256)_mm512_extracti64x4_epi64(bits, 1));
}
#else
VECTOR_INLINE void vector_widen(vd out[2], const vi *x)
{
    vi_half half[2];

    memcpy(half, x, sizeof half);
    out[0] = __builtin_convertvector(half[0], vd);
    out[1] = __builtin_convertvector(half[1], vd);
}

VECTOR_INLINE void vector_widen_float(vd out[2], const vf *x)
{
    vf_half half[2];

    memcpy(half, x, sizeof half);
    out[0] = __builtin_convertvector(half[0], vd);
    out[1] = __builtin_convertvector(half[1], vd);
}
#endif

VECTOR_INLINE void vector_narrow(vf *out, const vd x[2])
{
    vf_half half[2] = {__builtin_convertvector(x[0], vf_half),
                       __builtin_convertvector(x[1], vf_half)};

    memcpy(out, half, sizeof half);
}

/* To fp32 toward zero; of normal numbers. */
VECTOR_INLINE void vector_narrow_toward_zero(vf *out, const vd x[2])
{
#if TENSOR_LEVEL == 3
    enum { TOWARD_ZERO = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC };
    __m512i low =
        _mm512_castsi256_si512((__m256i)_mm512_cvt_roundpd_ps((__m512d)x[0], TOWARD_ZERO));
    *out =
        (vf)_mm512_inserti64x4(low, (__m256i)_mm512_cvt_roundpd_ps((__m512d)x[1], TOWARD_ZERO), 1);
#else
    int64_t keep = -(INT64_C(1) << (52 - 23));
    vd kept[2] = {(vd)((vl)x[0] & keep), (vd)((vl)x[1] & keep)};

    vector_narrow(out, kept);
#endif
}

/* x[0] + x[1] + x[2] to fp32 toward zero; |x[2]| < 2^29. */
VECTOR_INLINE void vector_sum_toward_zero(vf *out, const vi x[3])
{
    vd total[2], more[2];
#if TENSOR_LEVEL == 3
    /* Unsigned, since a value past the bound may wrap: both upper bits stay clear within it. */
    vu first = (vu)x[0] + (1u << 29), second = (vu)x[1] + (1u << 29);
    vi large = (vi)((first | second) & 0xc0000000u);

    if (!vector_any(&large)) {
        *out = (vf)_mm512_cvt_roundepi32_ps((__m512i)(x[0] + x[1] + x[2]),
                                            _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        return;
    }
#endif
    vector_widen(total, &x[0]);
    for (uint32_t i = 1; i < 3; i++) {
        vector_widen(more, &x[i]);
        total[0] += more[0];
        total[1] += more[1];
    }
    vector_narrow_toward_zero(out, total);
}
