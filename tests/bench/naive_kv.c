/* naive_kv.c - the KV ops' plain doubles: byte maps of kernels.md 4.3 to 4.7 written out, one row a
 * record; e2m1 and e4m3 scales by search. */
#include "tests/bench/naive.h"

#include "core/numfmt.h"

#include <math.h>
#include <string.h>

/* Bytes of a token: data, scales, tail; dims under scales, and of a row. */
typedef struct map {
    int64_t dims, row_dims, tile, data, scales, tail, token;
} map;

static map map_of(const hone_record *r)
{
    switch (r->format) {
    case HONE_KV_INDEX_FP8_132:
        return (map){128, 128, 128, 128, 4, 0, 132};
    case HONE_KV_MLA_FP8_656:
        return (map){512, 576, 128, 512, 16, 128, 656};
    case HONE_KV_MLA_FP8_584:
        return (map){448, 512, 64, 448, 8, 128, 584};
    case HONE_KV_MLA_FP4_288:
        return (map){512, 512, 16, 256, 32, 0, 288};
    case HONE_KV_INDEX_FP4_68:
        return (map){128, 128, 32, 64, 4, 0, 68};
    case HONE_KV_MLA_NVFP4_352:
        return (map){512, 576, 16, 256, 32, 64, 352};
    case HONE_KV_MLA_FP8_576:
        return (map){0, 576, 1, 576, 0, 0, 576};
    case HONE_KV_MLA_BF16_1152:
        return (map){0, 576, 1, 1152, 0, 0, 1152};
    case HONE_KV_MLA_BF16_1024:
        return (map){0, 512, 1, 1024, 0, 0, 1024};
    default:
        return (map){512, 512, 32, 512, 16, 0, 528};
    }
}

/* Where token t's data, scales and tail begin in a page. */
static void offsets(const hone_record *r, const map *m, int64_t page_size, naive_fault fault,
                    int64_t t, int64_t at[3])
{
    bool split = (r->layout == HONE_PAGE_SPLIT) != (fault == NAIVE_OTHER_LAYOUT);

    if (r->format == HONE_KV_MLA_FP8_656) { /* the only tail behind its scales */
        at[0] = 656 * t;
        at[1] = at[0] + 512;
        at[2] = at[0] + 528;
        return;
    }
    at[0] = split ? (m->data + m->tail) * t : m->token * t;
    at[1] = split ? (m->data + m->tail) * page_size + m->scales * t : at[0] + m->data + m->tail;
    at[2] = at[0] + m->data;
}

static uint8_t nearest_e2m1(double x)
{
    static const double value[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    int best = 0;

    for (int code = 1; code < 8; code++) {
        double far = fabs(fabs(x) - value[code]), near = fabs(fabs(x) - value[best]);
        best = far < near || (far == near && code % 2 == 0) ? code : best;
    }
    return (uint8_t)(best + (signbit(x) ? 8 : 0));
}

/* kernels.md 4.5, 4.7: nearest, ties to the even code, or the least that is not below. */
static uint8_t e4m3_scale(double s, bool up)
{
    int best = 1;

    s = fmin(fmax(s, 0x1p-9), 448.0);
    for (int code = 1; code <= 0x7e; code++) {
        double value = (double)numfmt_e4m3_decode((uint8_t)code);
        double old = (double)numfmt_e4m3_decode((uint8_t)best);
        double far = fabs(value - s), near = fabs(old - s);
        if (up ? value >= s && (old < s || value < old)
               : far < near || (far == near && code % 2 == 0)) {
            best = code;
        }
    }
    return (uint8_t)best;
}

/* A tile of e2m1 and its scale's byte. */
static uint8_t put_nibbles(const float *x, int64_t len, int32_t rule, uint8_t *codes)
{
    double amax = 0.0, s = 0.0;
    bool spoiled = false;
    uint8_t byte = 0;

    for (int64_t i = 0; i < len; i++) {
        spoiled = spoiled || !isfinite(x[i]);
        amax = fmax(amax, fabs((double)x[i]));
    }
    if (rule == HONE_RULE_E4M3_NEAR || rule == HONE_RULE_E4M3_UP) {
        byte = e4m3_scale(amax / 6.0, rule == HONE_RULE_E4M3_UP);
        s = (double)numfmt_e4m3_decode(byte);
        byte = spoiled ? 0x7f : byte;
    } else {
        double least = rule == HONE_RULE_POW2_TINY ? 6.0 * 0x1p-126 : (double)1e-4f;
        int exponent = -126;
        while (6.0 * ldexp(1.0, exponent) < fmax(amax, least)) {
            exponent++;
        }
        s = ldexp(1.0, exponent);
        byte = spoiled ? 0xff : (uint8_t)(exponent + 127);
    }
    for (int64_t i = 0; i < len; i += 2) {
        codes[i / 2] = (uint8_t)(spoiled ? 0
                                         : (uint8_t)(nearest_e2m1((double)x[i] / s) |
                                                     nearest_e2m1((double)x[i + 1] / s) << 4));
    }
    return byte;
}

static void put_tile(const hone_kv_quant *p, naive_fault fault, const float *x, int64_t tile,
                     const map *m, uint8_t *data, uint8_t *scales)
{
    if (m->data * 2 == m->dims) { /* e2m1 */
        bool permuted = p->record.format == HONE_KV_MLA_NVFP4_352;
        scales[permuted ? 8 * (tile & 3) + (tile >> 2) : tile] =
            put_nibbles(x, m->tile, p->record.rule, data + tile * m->tile / 2);
        return;
    }
    float scale = naive_quantise(x, (int32_t)m->tile, p->record.rule, fault, data + tile * m->tile);
    if (m->scales / (m->dims / m->tile) == 4) {
        memcpy(scales + 4 * tile, &scale, 4);
    } else {
        scales[tile] = (uint8_t)(ilogbf(scale) + 127);
    }
}

/* e4m3 of the rest of a row, or its bytes. */
static void put_rest(const hone_kv_quant *p, const inputs *in, const uint8_t *row, const map *m,
                     uint8_t *data, uint8_t *tail)
{
    float scale = 1.0f;

    if (p->record.rule == HONE_RULE_TENSOR) {
        memcpy(&scale, in->image[5], sizeof scale);
    }
    if (p->record.rule == HONE_RULE_UNSCALED) {
        memcpy(data, row, (size_t)m->data);
    }
    for (int64_t i = 0; p->record.rule == HONE_RULE_TENSOR && i < m->data; i++) {
        float x = numfmt_decode(HONE_DTYPE_BF16, row, (uint64_t)i);
        data[i] =
            scale > 0.0f && isfinite(scale) && isfinite(x) ? numfmt_e4m3_encode(x / scale) : 0x7f;
    }
    if (m->tail == 128) {
        memcpy(tail, row + 2 * m->dims, 128);
    }
    for (int64_t i = 0; m->tail == 64 && i < 64; i++) {
        float x = numfmt_decode(HONE_DTYPE_BF16, row, (uint64_t)(m->dims + i));
        tail[i] = isfinite(x) ? numfmt_e4m3_encode(x) : 0x7f;
    }
}

/* NaN and infinities that are not merely copied. */
static uint64_t count_special(const hone_kv_quant *p, const inputs *in, const uint8_t *row,
                              const map *m)
{
    float scale = 1.0f;
    uint64_t count = 0;
    int64_t dims = m->tail == 128 ? m->dims : m->row_dims;

    if (p->record.rule == HONE_RULE_TENSOR) {
        memcpy(&scale, in->image[5], sizeof scale);
    }
    for (int64_t i = 0; p->record.rule != HONE_RULE_UNSCALED && i < dims; i++) {
        count += !isfinite(numfmt_decode(HONE_DTYPE_BF16, row, (uint64_t)i)) ||
                 !(scale > 0.0f && isfinite(scale));
    }
    return count;
}

static void put_token(const hone_kv_quant *p, const inputs *in, naive_fault fault,
                      const uint8_t *row, int64_t slot, uint8_t *cache)
{
    const map m = map_of(&p->record);
    int64_t page = slot / p->page_size, at[3];
    float x[128];

    page = fault == NAIVE_PAGE_OFF && p->pages > 1 ? (page + 1) % p->pages : page;
    offsets(&p->record, &m, p->page_size, fault, slot % p->page_size, at);
    cache += page * p->page_stride;
    memset(cache + at[1], 0, (size_t)m.scales);
    for (int64_t tile = 0; tile < m.dims / m.tile; tile++) {
        for (int64_t i = 0; i < m.tile; i++) {
            x[i] = numfmt_decode(HONE_DTYPE_BF16, row, (uint64_t)(tile * m.tile + i));
        }
        put_tile(p, fault, x, tile, &m, cache + at[0], cache + at[1]);
    }
    put_rest(p, in, row, &m, cache + at[0], cache + at[2]);
}

void naive_kv_quant(const hone_kv_quant *p, const inputs *in, naive_fault fault, inputs *out)
{
    const map m = map_of(&p->record);
    uint64_t dropped = 0, nonfinite = 0;

    memcpy(&dropped, in->image[3], sizeof dropped);
    memcpy(&nonfinite, in->image[4], sizeof nonfinite);
    for (int64_t t = 0; t < p->tokens; t++) {
        const uint8_t *row = in->image[0] + 2 * t * m.row_dims;
        int64_t slot = 0;
        memcpy(&slot, in->image[1] + 8 * t, sizeof slot);
        if (slot >= p->pages * p->page_size) {
            dropped += fault == NAIVE_NO_COUNT ? 0 : 1;
        } else if (slot >= 0 && !(fault == NAIVE_HALF && t >= p->tokens / 2)) {
            put_token(p, in, fault, row, slot, out->image[2]);
            nonfinite += fault == NAIVE_NO_COUNT ? 0 : count_special(p, in, row, &m);
        } else if (fault ==
                   NAIVE_SLOT_MINUS) { /* lands on the token's place before the cache's first */
            put_token(p, in, fault, row, 0, out->image[2]);
        }
    }
    memcpy(out->image[3], &dropped, sizeof dropped);
    memcpy(out->image[4], &nonfinite, sizeof nonfinite);
}

/* ---- kv_gather ------------------------------------------------------------------------------- */

/* The slot of a row: -1 for zeros, -2 for a row that is left alone; *past: counted. */
static int64_t slot_of(const hone_kv_gather *p, const inputs *in, int64_t row, bool *past)
{
    int64_t slot = 0, page = 0, at = 0;

    *past = false;
    if (p->by == HONE_GATHER_SLOTS) {
        memcpy(&slot, in->image[1] + 8 * row, sizeof slot);
        *past = slot >= p->pages * p->page_size;
        return slot < 0 || *past ? -1 : slot;
    }
    const int32_t *table = (const int32_t *)(const void *)in->image[1];
    const int32_t *starts = (const int32_t *)(const void *)in->image[2];
    int64_t s = 0;
    while (s < p->sequences && !(starts[s] <= row && row < starts[s + 1])) {
        s++;
    }
    if (s == p->sequences) {
        return -2;
    }
    at = row - starts[s];
    *past = at >= p->table_pages * p->page_size;
    page = *past ? -1 : table[s * p->table_pages + at / p->page_size];
    *past = *past || page >= p->pages;
    return *past || page < 0 ? -1 : page * p->page_size + at % p->page_size;
}

static double scale_of(const hone_kv_gather *p, const inputs *in, const map *m,
                       const uint8_t *scales, int64_t tile)
{
    float wide = 0.0f;

    if (p->record.rule == HONE_RULE_TENSOR) {
        memcpy(&wide, in->image[6], sizeof wide);
        return (double)wide;
    }
    if (m->data * 2 == m->dims && m->tile == 16) {
        bool permuted = p->record.format == HONE_KV_MLA_NVFP4_352;
        return (double)numfmt_e4m3_decode(scales[permuted ? 8 * (tile & 3) + (tile >> 2) : tile]);
    }
    if (m->tile == 128) {
        memcpy(&wide, scales + 4 * tile, sizeof wide);
        return (double)wide;
    }
    return scales[tile] == 0xff ? (double)NAN : ldexp(1.0, scales[tile] - 127);
}

static void values(const hone_kv_gather *p, const inputs *in, const map *m, const uint8_t *page,
                   const int64_t at[3], uint8_t *to)
{
    static const double e2m1[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    const int64_t dims = m->dims > 0 ? m->dims : m->row_dims;

    for (int64_t i = 0; i < dims; i++) {
        const uint8_t *code = page + at[0];
        double x = 0.0;
        if (m->data * 2 == m->dims) {
            int nibble = i % 2 == 0 ? code[i / 2] & 15 : code[i / 2] >> 4;
            x = nibble < 8 ? e2m1[nibble] : -e2m1[nibble - 8];
        } else {
            x = (double)numfmt_e4m3_decode(code[i]);
        }
        float product = (float)(x * scale_of(p, in, m, page + at[1], i / m->tile));
        numfmt_encode(HONE_DTYPE_BF16, to, (uint64_t)i, product);
    }
    if (m->tail == 128) {
        memcpy(to + 2 * dims, page + at[2], 128);
    }
    for (int64_t i = 0; m->tail == 64 && i < 64; i++) {
        numfmt_encode(HONE_DTYPE_BF16, to, (uint64_t)(dims + i),
                      numfmt_e4m3_decode(page[at[2] + i]));
    }
}

void naive_kv_gather(const hone_kv_gather *p, const inputs *in, naive_fault fault, inputs *out)
{
    const map m = map_of(&p->record);
    const bool raw = p->to == HONE_GATHER_RAW, plain = p->record.rule == HONE_RULE_UNSCALED;
    const int64_t width = raw || plain ? m.data + m.tail : 2 * m.row_dims;
    uint64_t dropped = 0;

    memcpy(&dropped, in->image[5], sizeof dropped);
    for (int64_t row = 0; row < p->tokens; row++) {
        uint8_t *to = out->image[3] + row * width, *scales = out->image[4] + row * m.scales;
        bool past = false;
        int64_t slot = slot_of(p, in, row, &past), at[3];
        dropped += past && fault != NAIVE_NO_COUNT;
        if (slot == -2 || (fault == NAIVE_HALF && row >= p->tokens / 2)) {
            continue;
        }
        if (slot == -1) {
            memset(to, fault == NAIVE_SLOT_MINUS ? 1 : 0, (size_t)width);
            memset(scales, 0, raw ? (size_t)m.scales : 0);
            continue;
        }
        int64_t page = slot / p->page_size;
        page = fault == NAIVE_PAGE_OFF ? (page + 1) % p->pages : page;
        const uint8_t *from = in->image[0] + page * p->page_stride;
        offsets(&p->record, &m, p->page_size, fault, slot % p->page_size, at);
        if (raw || plain) {
            memcpy(to, from + at[0], (size_t)m.data);
            memcpy(to + m.data, from + at[2], (size_t)m.tail);
            memcpy(scales, from + at[1], raw ? (size_t)m.scales : 0);
        } else {
            values(p, in, &m, from, at, to);
        }
    }
    memcpy(out->image[5], &dropped, sizeof dropped);
}
