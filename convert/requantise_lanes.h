/* requantise_lanes.h - codes of one old scale under a new one, each by itself, in fold_lanes.h's
 * text, and what that costs: the same whatever the instruction set, floats being added in one
 * order.
 */
#include "convert/requantise_tile.h"

#include "core/numfmt.h"

enum { LANES = 32, NAN_MAGNITUDE = 127, MAGNITUDES_E4M3 = 128 };

/* Of one block: what it costs, lane by lane. */
typedef struct lane_sums {
    double square[LANES], error[LANES];
    uint64_t inexact, saturated, nans;
} lane_sums;

/* `yes` where a < b, else `no`, without a branch that would keep loops from being vectors. */
static inline int32_t choose_less(int32_t a, int32_t b, int32_t yes, int32_t no)
{
    const int32_t mask = -(int32_t)(a < b);

    return (yes & mask) | (no & ~mask);
}

/* An e4m3 magnitude as a float: an exponent's bias more, but for subnormals, which are 2^-6 less
 * than the normal number of their bits. */
static inline float decode(int32_t m)
{
    const float small = numfmt_float((uint32_t)((m << 20) + (121 << 23))) - 0x1p-6f;

    return numfmt_float(
        (uint32_t)choose_less(m, 8, (int32_t)numfmt_bits(small), (m << 20) + (120 << 23)));
}

/* And back, to nearest even and saturating, of 0 to 2^8 * 448: rounded by its bits, or where e4m3
 * is subnormal by adding 2^14, whose unit is 2^-9. */
static inline int32_t encode(float x)
{
    const int32_t bits = (int32_t)numfmt_bits(x);
    const int32_t normal = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120 << 3);
    const int32_t small = (int32_t)numfmt_bits(x + 0x1p14f) - (141 << 23);
    const int32_t made = choose_less(bits, 121 << 23, small, normal);

    return choose_less(made, 126, made, 126);
}

/* 32 codes of one old scale under the new one; `out` may be `in`. Two loops, of 4 and of 8 bytes
 * an element, that compilers make vectors of. */
static void requantise_lanes(const uint8_t *in, float from, float to, uint8_t *out,
                             lane_sums *restrict sums)
{
    uint8_t codes[LANES];
    float values[LANES], made[LANES];
    int32_t saturated = 0, nans = 0;
    uint64_t inexact = 0;

    memcpy(codes, in, LANES);
    for (int i = 0; i < LANES; i++) {
        const int32_t m = codes[i] & 0x7f, kept = choose_less(m, NAN_MAGNITUDE, m, 0);
        const float value = decode(kept), scaled = value * from / to;
        const int32_t code = encode(scaled);
        values[i] = value;
        made[i] = decode(code);
        out[i] = (uint8_t)(choose_less(m, NAN_MAGNITUDE, code, m) | (codes[i] & 0x80));
        saturated += (int32_t)numfmt_bits(scaled) > 0x43e00000; /* 448 */
        nans += m == NAN_MAGNITUDE;
    }
    for (int i = 0; i < LANES; i++) {
        const double value = (double)values[i] * (double)from, got = (double)made[i] * (double)to;
        sums->square[i] += value * value;
        sums->error[i] += (got - value) * (got - value);
        inexact += got != value;
    }
    sums->inexact += inexact;
    sums->saturated += (uint32_t)saturated;
    sums->nans += (uint32_t)nans;
}
