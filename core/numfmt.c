/* numfmt.c - encode and decode narrow number formats, bit by bit: no library rounding mode, no
 * table. */
#include "core/numfmt.h"

#include "core/status.h"

#include <math.h>
#include <string.h>

/* A format with a sign bit above `exponent_bits` and `mantissa_bits`. */
typedef struct small_format {
    uint32_t exponent_bits, mantissa_bits;
    int32_t bias;
    uint32_t top; /* code that all larger magnitudes take: the largest finite one, or infinity */
    uint32_t nan; /* code of NaN, sign dropped */
} small_format;

static const small_format e4m3 = {4, 3, 7, 0x7e, 0x7f};
static const small_format e5m2 = {5, 2, 15, 0x7b, 0x7f};
static const small_format e2m1 = {2, 1, 1, 0x7, 0x7};
static const small_format f16 = {5, 10, 15, 0x7c00, 0x7fff};

static uint32_t small_encode(const small_format *f, float x)
{
    uint32_t bits = numfmt_bits(x) & 0x7fffffff;
    uint32_t sign = (numfmt_bits(x) >> 31) << (f->exponent_bits + f->mantissa_bits);

    if (bits > 0x7f800000) {
        return f->nan;
    }
    /* A subnormal float has the exponent of the smallest normal one, without the implied bit. */
    int32_t exponent = (int32_t)(bits >> 23);
    uint32_t significand = (bits & 0x7fffff) | (exponent != 0 ? 0x800000u : 0);
    int32_t target = (exponent != 0 ? exponent : 1) - 127 + f->bias; /* biased exponent there */
    int32_t shift = 23 - (int32_t)f->mantissa_bits + (target < 1 ? 1 - target : 0);

    if (shift > 25) { /* below a quarter of the smallest subnormal: also keeps the shifts legal */
        return sign;
    }
    uint32_t kept = significand >> shift, rest = significand & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1)) ? 1 : 0;

    /* The implied bit in `kept` adds the last unit of the exponent; so does a carry out of
     * rounding. */
    uint32_t code = kept + ((uint32_t)(target > 1 ? target - 1 : 0) << f->mantissa_bits);
    return sign | (code > f->top ? f->top : code);
}

static float small_decode(const small_format *f, uint32_t code)
{
    uint32_t mantissa = code & ((1u << f->mantissa_bits) - 1);
    uint32_t exponent = (code >> f->mantissa_bits) & ((1u << f->exponent_bits) - 1);
    uint32_t sign = (code >> (f->exponent_bits + f->mantissa_bits)) & 1;

    if (exponent == 0) { /* mantissa * 2^(1 - bias - mantissa_bits), exact */
        float quantum =
            numfmt_float((uint32_t)(127 + 1 - f->bias - (int32_t)f->mantissa_bits) << 23);
        return numfmt_float(numfmt_bits((float)mantissa * quantum) | sign << 31);
    }
    uint32_t biased = (uint32_t)((int32_t)exponent - f->bias + 127);
    return numfmt_float(sign << 31 | biased << 23 | mantissa << (23 - f->mantissa_bits));
}

uint8_t numfmt_e4m3_encode(float x)
{
    return (uint8_t)small_encode(&e4m3, x);
}

float numfmt_e4m3_decode(uint8_t code)
{
    return (code & 0x7f) == 0x7f ? NAN : small_decode(&e4m3, code);
}

uint8_t numfmt_e5m2_encode(float x)
{
    return (uint8_t)small_encode(&e5m2, x);
}

float numfmt_e5m2_decode(uint8_t code)
{
    return numfmt_f16_decode((uint16_t)(code << 8)); /* e5m2 is the upper byte of an f16 */
}

uint8_t numfmt_e2m1_encode(float x)
{
    return (uint8_t)small_encode(&e2m1, x);
}

float numfmt_e2m1_decode(uint8_t code)
{
    return small_decode(&e2m1, code & 0xfu);
}

uint8_t numfmt_ue4m3_encode(float x)
{
    return numfmt_e4m3_encode(fabsf(x));
}

float numfmt_ue4m3_decode(uint8_t code)
{
    return numfmt_e4m3_decode(code & 0x7f);
}

float numfmt_ue8m0_decode(uint8_t code)
{
    if (code == 0xff) {
        return NAN;
    }
    return numfmt_float(code == 0 ? 0x00400000u
                                  : (uint32_t)code << 23); /* 2^-127 is a subnormal float */
}

uint16_t numfmt_bf16_encode(float x)
{
    uint32_t bits = numfmt_bits(x);

    if ((bits & 0x7fffffff) > 0x7f800000) {
        return 0x7fff;
    }
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float numfmt_bf16_decode(uint16_t code)
{
    return numfmt_float((uint32_t)code << 16);
}

uint16_t numfmt_f16_encode(float x)
{
    return (uint16_t)small_encode(&f16, x);
}

float numfmt_f16_decode(uint16_t code)
{
    if ((code & 0x7c00) == 0x7c00) {
        return (code & 0x3ff) != 0 ? NAN : (code & 0x8000 ? -INFINITY : INFINITY);
    }
    return small_decode(&f16, code);
}

uint8_t numfmt_ue8m0_ceil(float x)
{
    uint32_t bits = numfmt_bits(x);

    if ((bits & 0x7fffffff) > 0x7f800000 || bits == 0x7f800000) {
        return 0xff;
    }
    if (bits >> 31) {
        return 1;
    }
    uint32_t code = (bits >> 23) + ((bits & 0x7fffff) != 0 ? 1 : 0);
    return (uint8_t)(code < 1 ? 1 : code > 254 ? 254 : code);
}

bool numfmt_ue8m0_exact(float x, uint8_t *code)
{
    const uint32_t bits = numfmt_bits(x);

    if (bits == 0x00400000) { /* 2^-127, the one subnormal among them */
        *code = 0;
        return true;
    }
    if ((bits & 0x807fffff) != 0 || bits == 0 || bits == 0x7f800000) {
        return false;
    }
    *code = (uint8_t)(bits >> 23);
    return true;
}

float numfmt_decode(hone_dtype dtype, const void *array, uint64_t index)
{
    const uint8_t *bytes = array;
    uint16_t half;
    float whole;

    switch (dtype) {
    case HONE_DTYPE_F32:
        memcpy(&whole, bytes + 4 * index, sizeof whole);
        return whole;
    case HONE_DTYPE_BF16:
    case HONE_DTYPE_F16:
        memcpy(&half, bytes + 2 * index, sizeof half);
        return dtype == HONE_DTYPE_BF16 ? numfmt_bf16_decode(half) : numfmt_f16_decode(half);
    case HONE_DTYPE_E4M3:
        return numfmt_e4m3_decode(bytes[index]);
    case HONE_DTYPE_E5M2:
        return numfmt_e5m2_decode(bytes[index]);
    case HONE_DTYPE_E2M1:
        return numfmt_e2m1_decode((uint8_t)(bytes[index / 2] >> (index % 2 * 4)));
    case HONE_DTYPE_UE8M0:
        return numfmt_ue8m0_decode(bytes[index]);
    case HONE_DTYPE_UE4M3:
        return numfmt_ue4m3_decode(bytes[index]);
    case HONE_DTYPE_NONE:
        break;
    }
    return NAN;
}

void numfmt_encode(hone_dtype dtype, void *array, uint64_t index, float x)
{
    uint8_t *bytes = array;
    unsigned shift = index % 2 * 4;
    uint16_t half;

    switch (dtype) {
    case HONE_DTYPE_F32:
        memcpy(bytes + 4 * index, &x, sizeof x);
        break;
    case HONE_DTYPE_BF16:
    case HONE_DTYPE_F16:
        half = dtype == HONE_DTYPE_BF16 ? numfmt_bf16_encode(x) : numfmt_f16_encode(x);
        memcpy(bytes + 2 * index, &half, sizeof half);
        break;
    case HONE_DTYPE_E4M3:
        bytes[index] = numfmt_e4m3_encode(x);
        break;
    case HONE_DTYPE_E5M2:
        bytes[index] = numfmt_e5m2_encode(x);
        break;
    case HONE_DTYPE_E2M1:
        bytes[index / 2] =
            (uint8_t)((bytes[index / 2] & ~(0xfu << shift)) | numfmt_e2m1_encode(x) << shift);
        break;
    case HONE_DTYPE_UE8M0:
        bytes[index] = numfmt_ue8m0_ceil(x);
        break;
    case HONE_DTYPE_UE4M3:
        bytes[index] = numfmt_ue4m3_encode(x);
        break;
    case HONE_DTYPE_NONE:
        break;
    }
}

static const struct {
    const char *name;
    int bits;
} dtypes[] = {
#define X(text, NAME, value, width) [value] = {#text, width},
    HONE_DTYPE_MAP(X)
#undef X
};

const char *numfmt_dtype_name(hone_dtype dtype)
{
    return (size_t)dtype < ARRAY_LEN(dtypes) ? dtypes[dtype].name : NULL;
}

int numfmt_dtype_bits(hone_dtype dtype)
{
    return (size_t)dtype < ARRAY_LEN(dtypes) ? dtypes[dtype].bits : -1;
}

hone_dtype numfmt_dtype_parse(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        if (strlen(dtypes[i].name) == len && memcmp(dtypes[i].name, name, len) == 0) {
            return (hone_dtype)i;
        }
    }
    return HONE_DTYPE_NONE;
}
