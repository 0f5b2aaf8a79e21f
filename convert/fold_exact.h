/* fold_exact.h - what exact blocks of the fold cost by the other rules, in fold_lanes.h's text.
 *
 * What amax / 448 or a power of two loses of a code depends on the block's largest magnitude, the
 * code, and how far its exponent lies from the magnitude's. So codes are only counted, by those
 * three, in whole numbers, and priced once for many blocks. */
#include "core/fold_mxfp4.h"
#include "core/integer.h"

#include <stdbool.h>

/* A lane for each of the eight magnitudes. Vectors are wider than some of the processors, and add
 * in the same order on all. */
typedef uint8_t lanes_u8 __attribute__((vector_size(8)));
typedef uint16_t lanes_u16 __attribute__((vector_size(16)));
typedef uint32_t lanes_u32 __attribute__((vector_size(32)));
typedef double lanes_f64 __attribute__((vector_size(64)));

/* What amax / 448 and the nearest power of two would cost, a lane for each magnitude. */
typedef struct others {
    lanes_f64 amax, nearest;
    lanes_u32 saturated;
} others;

/* The code and exponent of a block's amax, and the exponent of the power of two that is nearest to
 * amax / 448. */
typedef struct peak {
    int code, top, near;
} peak;

static double sum_f64(const lanes_f64 *v)
{
    double sum = 0;

    for (int c = 0; c < COSTS_CODES; c++) {
        sum += (*v)[c];
    }
    return sum;
}

static uint64_t sum_u32(const lanes_u32 *v)
{
    uint64_t sum = 0;

    for (int c = 0; c < COSTS_CODES; c++) {
        sum += (*v)[c];
    }
    return sum;
}

static inline peak peak_of(int code, int top, const fold_costs *costs)
{
    const int power = top + costs->nearest[code];

    return (peak){code, top, power < 0 ? 0 : power};
}

/* The square of the values of `codes`, how many of each magnitude stand at an exponent; and add
 * what the other rules would cost them. Further down than the tables go, all is lost. */
static inline void add_others(const lanes_u32 *codes, int e, const peak *p, const fold_costs *costs,
                              lanes_f64 *square, others *o)
{
    const lanes_f64 n = __builtin_convertvector(*codes, lanes_f64);
    const int row = fold_costs_row(e - p->near);
    lanes_f64 lost;
    lanes_u32 mask;

    memcpy(&lost, costs->square, sizeof lost);
    *square = n * lost * costs->four[e];
    memcpy(&lost, costs->power[row], sizeof lost);
    o->nearest += e - p->near < COSTS_LEAST ? *square : n * lost * costs->four[p->near];
    memcpy(&lost, costs->amax[p->code][fold_costs_row(e - p->top)], sizeof lost);
    o->amax += e - p->top < COSTS_LEAST ? *square : n * lost * costs->four[p->top];
    memcpy(&mask, costs->saturates[row], sizeof mask);
    o->saturated += *codes & mask;
}

/* A block's largest magnitude is a number, twice its exponent and the halves of its code: that of
 * code c at exponent e is 2 e + c, and 0.5 (code 1), a whole octave below 1, is 2 e. One number is
 * one magnitude. `TOPS` of them are counted between two prices; exponents lie 14 below a block's
 * top at most, else it is not exact, and 3 above (0.5 three octaves up is 4). */
enum { MAGNITUDES = 2 * 254 + 8, TOPS = 32, BELOW = FOLD_MXFP4_SPREAD, ABOVE = 3 };
enum { PLACES = BELOW + ABOVE + 2 };

/* Sums of neighbours lie apart, so that the next need not wait for the last to be stored. */
enum { COPIES = 4 };
typedef struct exact_place {
    lanes_u32 copies[COPIES];
} exact_place;

typedef struct exact_counts {
    exact_place codes[TOPS][PLACES]; /* the last place: groups that do not count */
    int magnitudes[TOPS];
    unsigned len;
    uint8_t tops[MAGNITUDES]; /* one more than where a magnitude stands, 0 where it does not */
    lanes_f64 square;
    others others;
} exact_counts;

static inline int magnitude_number(int code, int e)
{
    return 2 * e + code - (code == 1);
}

/* As a code at an exponent, 4 or 6 where there is one. */
static inline int magnitude_top(int magnitude)
{
    return magnitude < 6 ? 0 : magnitude / 2 - 3;
}

/* Of a block without a magnitude (-1), which has nothing to price: any. */
static inline peak peak_of_magnitude(int magnitude, const fold_costs *costs)
{
    const int top = magnitude_top(magnitude), code = magnitude - 2 * top;

    return peak_of(code > 0 ? code : 1, top, costs);
}

static void exact_price(exact_counts *x, const fold_costs *costs)
{
    for (unsigned t = 0; t < x->len; t++) {
        const int top = magnitude_top(x->magnitudes[t]);
        const peak p = peak_of_magnitude(x->magnitudes[t], costs);
        for (int place = 0; place < PLACES - 1; place++) {
            const lanes_u32 *n = x->codes[t][place].copies;
            const lanes_u32 all = n[0] + n[1] + n[2] + n[3];
            lanes_f64 square;
            if (sum_u32(&all) > 0) {
                add_others(&all, top - BELOW + place, &p, costs, &square, &x->others);
                x->square += square;
            }
        }
        x->tops[x->magnitudes[t]] = 0;
    }
    memset(x->codes, 0, x->len * sizeof x->codes[0]);
    x->len = 0;
}

/* Where codes of blocks of this magnitude are counted, by their exponent less the magnitude's top
 * and BELOW more. */
static inline exact_place *exact_places(exact_counts *x, int magnitude, const fold_costs *costs)
{
    if (x->tops[magnitude] == 0) {
        if (x->len == TOPS) {
            exact_price(x, costs);
        }
        x->magnitudes[x->len++] = magnitude;
        x->tops[magnitude] = (uint8_t)x->len;
    }
    return x->codes[x->tops[magnitude] - 1];
}

/* Add a group's counts, a byte each, to a place's. */
static inline void add_counts(lanes_u32 *place, uint64_t counts)
{
#if defined(__AVX2__)
    __m256i *sums = (__m256i *)place;
    const __m256i more = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)counts));
    _mm256_storeu_si256(sums, _mm256_add_epi32(_mm256_loadu_si256(sums), more));
#else
    lanes_u8 bytes;

    memcpy(&bytes, &counts, sizeof bytes);
    *place += __builtin_convertvector(bytes, lanes_u32);
#endif
}

static void exact_begin(exact_counts *x)
{
    memset(x, 0, sizeof *x);
}

static void exact_end(exact_counts *x, const fold_costs *costs, fold_sums *sums)
{
    exact_price(x, costs);
    sums->square += sum_f64(&x->square);
    sums->amax += sum_f64(&x->others.amax);
    sums->nearest += sum_f64(&x->others.nearest);
    sums->saturated += sum_u32(&x->others.saturated);
}
