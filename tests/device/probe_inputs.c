/* probe_inputs.c - inputs that find what a unit does at its edges: exponents far apart, sums that
 * cancel, subnormals, and a few NaN and infinities. */
#include "core/random.h"
#include "tests/device/probe.h"

#include <string.h>

static size_t words_of(const probe *p)
{
    return (size_t)p->cases * p->in_each;
}

/* One stream for each probe, so that adding one moves no other. */
static uint64_t seed_of(const probe *p)
{
    uint64_t seed = UINT64_C(0x686f6e65);
    for (const char *c = p->name; *c != '\0'; c++) {
        seed = seed * 131 + (unsigned char)*c;
    }
    return seed;
}

void probe_fill_random(const probe *p, uint32_t *in)
{
    uint64_t seed = seed_of(p);
    for (size_t n = 0; n < words_of(p); n++) {
        in[n] = (uint32_t)random_next(&seed);
    }
}

void probe_fill_codes(const probe *p, uint32_t *in)
{
    for (size_t n = 0; n < words_of(p); n++) {
        in[n] = (uint32_t)n;
    }
}

static uint32_t edge_number(uint64_t *seed)
{
    static const uint32_t edges[] = {0,          0x80000000, 1,          0x007fffff, 0x00800000,
                                     0x3f800000, 0xbf800000, 0x7f7fffff, 0x7f800000, 0xff800000,
                                     0x7fc00000, 0x7f800001, 0x43e00000, 0x43e80000, 0x3f7fffff};
    uint64_t r = random_next(seed);
    if (r % 16 == 0) {
        return edges[r / 16 % ARRAY_LEN(edges)];
    }
    return (uint32_t)(r >> 32);
}

void probe_fill_numbers(const probe *p, uint32_t *in)
{
    uint64_t seed = seed_of(p);
    for (size_t n = 0; n < words_of(p); n++) {
        in[n] = edge_number(&seed);
    }
}

/* A code of `bits` whose exponent lies within `span` of the top of its field; never NaN or
 * infinity. */
static uint32_t code_near(uint64_t *seed, uint32_t bits, uint32_t exponent_bits, uint32_t span)
{
    uint32_t fraction_bits = bits - 1 - exponent_bits, top = (1u << exponent_bits) - 2;
    uint64_t r = random_next(seed);
    uint32_t down = (uint32_t)(r % (span + 1));
    uint32_t exponent = down > top ? 0 : top - down;
    uint32_t fraction = (uint32_t)(r >> 16) & ((1u << fraction_bits) - 1);
    uint32_t sign = (uint32_t)(r >> 60) & 1;
    return sign << (bits - 1) | exponent << fraction_bits | fraction;
}

/* Operands of one case share a span of exponents; c lies near their products, far above, far below,
 * or cancels. */
static void fill_products(const probe *p, uint32_t *in, uint32_t bits, uint32_t exponent_bits,
                          uint32_t c_words)
{
    uint64_t seed = seed_of(p);
    uint32_t operands = p->in_each - c_words;

    for (uint32_t n = 0; n < p->cases; n++) {
        uint32_t *at = in + (size_t)n * p->in_each;
        uint32_t span = (uint32_t)(random_next(&seed) % (1u << exponent_bits));
        bool special = n % 16 == 15;
        for (uint32_t k = 0; k < operands; k++) {
            for (uint32_t e = 0; e < 32; e += bits) {
                uint32_t code = special && random_next(&seed) % 64 == 0
                                    ? (uint32_t)random_next(&seed) & ((1u << bits) - 1)
                                    : code_near(&seed, bits, exponent_bits, span);
                at[k] |= code << e;
            }
        }
        uint32_t centre = 100 + (uint32_t)(random_next(&seed) % 50);
        for (uint32_t k = 0; k < c_words; k++) {
            uint64_t r = random_next(&seed);
            at[operands + k] = r % 4 == 0 ? 0
                                          : (uint32_t)(r >> 63) << 31 |
                                                (centre + (uint32_t)(r >> 40) % 12) << 23 |
                                                ((uint32_t)r & 0x7fffff);
        }
    }
}

static uint32_t c_words(const probe *p)
{
    return p->in_each <= 384 ? 128 : 512; /* a warp's, or a warpgroup's */
}
void probe_fill_e4m3(const probe *p, uint32_t *in)
{
    fill_products(p, in, 8, 4, c_words(p));
}
void probe_fill_e5m2(const probe *p, uint32_t *in)
{
    fill_products(p, in, 8, 5, c_words(p));
}
void probe_fill_bf16(const probe *p, uint32_t *in)
{
    fill_products(p, in, 16, 8, c_words(p));
}
void probe_fill_f16(const probe *p, uint32_t *in)
{
    fill_products(p, in, 16, 5, c_words(p));
}

/* Words of four bits' codes and of bytes' are the same random ones: what they stand for differs. */
void probe_fill_e2m1(const probe *p, uint32_t *in)
{
    fill_products(p, in, 8, 4, c_words(p));
}

void probe_fill_scales(const probe *p, uint32_t *in)
{
    enum { ONE = 127, CASES = 8 };
    for (uint32_t n = 0; n < p->cases; n++) {
        for (uint32_t k = 0; k < p->in_each; k++) {
            bool rows = k < 32, told = rows == (n < CASES);
            for (uint32_t byte = 0; byte < 4; byte++) {
                uint32_t code = told ? 60 + 4 * (k % 32) + byte : ONE;
                in[(size_t)n * p->in_each + k] |= code << 8 * byte;
            }
        }
    }
}
