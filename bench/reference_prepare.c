/* reference_prepare.c - an indexer's queries and keys made ready, each step in float64 and then
 * rounded as the op says (include/hone_index.h). */
#include "bench/reference.h"

#include "core/numfmt.h"

#include <math.h>
#include <string.h>

enum { DIMS = 128, ROTATED = 64, ANGLES = ROTATED / 2 };

/* Rounded to bf16. */
static double brain(double x)
{
    uint8_t bytes[2];

    numfmt_encode(HONE_DTYPE_BF16, bytes, 0, (float)x);
    return (double)numfmt_decode(HONE_DTYPE_BF16, bytes, 0);
}

/* Sums and products of two fp32 in float64 round to fp32 as if they were exact: it has more than
 * twice the digits. */
static double single(double x)
{
    return (double)(float)x;
}

static void rotate(const hone_index_prepare *p, const inputs *in, int64_t token, double x[DIMS])
{
    const bool halves = p->pairs == HONE_PAIRS_HALVES;
    double *first = x + (p->rope == HONE_ROPE_LAST ? DIMS - ROTATED : 0);

    for (int i = 0; i < ANGLES; i++) {
        const uint64_t at = (uint64_t)(token * ROTATED + i);
        const double cosine = (double)numfmt_decode(HONE_DTYPE_F32, in->image[2], at);
        const double sine = (double)numfmt_decode(HONE_DTYPE_F32, in->image[2], at + ANGLES);
        double *a = first + (halves ? i : 2 * i), *b = a + (halves ? ANGLES : 1);
        const double left = single(single(*a * cosine) - single(*b * sine));
        *b = brain(single(single(*b * cosine) + single(*a * sine)));
        *a = brain(left);
    }
}

static void transform(double x[DIMS])
{
    for (int apart = 1; apart < DIMS; apart *= 2) {
        for (int i = 0; i < DIMS; i++) {
            if ((i & apart) == 0) {
                const double a = x[i], b = x[i + apart];
                x[i] = single(a + b);
                x[i + apart] = single(a - b);
            }
        }
    }
    for (int i = 0; i < DIMS; i++) {
        x[i] = brain(single(x[i] * (double)(float)sqrt(1.0 / DIMS)));
    }
}

/* A row of q or k before it is quantised. Adds what of it is NaN or infinite. */
static void prepare(const hone_index_prepare *p, const inputs *in, int64_t token,
                    const uint8_t *row, float out[DIMS], uint64_t *nonfinite)
{
    double x[DIMS];

    for (int i = 0; i < DIMS; i++) {
        x[i] = (double)numfmt_decode(HONE_DTYPE_BF16, row, (uint64_t)i);
    }
    if (p->rope != HONE_ROPE_NONE) {
        rotate(p, in, token, x);
    }
    if (p->hadamard) {
        transform(x);
    }
    for (int i = 0; i < DIMS; i++) {
        out[i] = isfinite(x[i]) ? (float)x[i] : NAN; /* one NaN, of no sign */
        *nonfinite += !isfinite(x[i]);
    }
}

/* Its codes, and its scales in `scales`; the last one. */
static float quantise(const hone_index_prepare *p, const record_layout *layout, const float x[DIMS],
                      uint8_t *codes, uint8_t *scales)
{
    const int32_t bits = numfmt_dtype_bits((hone_dtype)layout->element);
    float scale = 0.0f;

    for (int32_t tile = 0; tile < record_tiles(layout); tile++) {
        const int32_t first = tile * layout->tile;
        scale = numfmt_quantise(x + first, (size_t)layout->tile, (hone_scale_rule)p->record.rule,
                                (hone_dtype)layout->element, codes + first * bits / 8, NULL);
        numfmt_encode((hone_dtype)layout->scale, scales, (uint64_t)tile, scale);
    }
    return scale;
}

static void put_head(const hone_index_prepare *p, const record_layout *layout, const inputs *in,
                     int64_t head, reference_prepared *out)
{
    const float factor = (float)sqrt(1.0 / (p->heads * DIMS));
    float x[DIMS], weight = numfmt_decode(HONE_DTYPE_F32, in->image[4], (uint64_t)head);
    uint8_t scales[4];

    prepare(p, in, head / p->heads, in->image[0] + head * 2 * DIMS, x, &out->nonfinite);
    const float scale = quantise(p, layout, x, out->codes + head * layout->data_bytes, scales);
    weight = (float)((double)weight * factor);
    if (layout->element == HONE_DTYPE_E2M1) {
        memcpy(out->q_scale + 4 * head, scales, sizeof scales);
    } else {
        weight = (float)((double)weight * scale);
    }
    out->weights[head] = weight;
}

static void put_key(const hone_index_prepare *p, const record_layout *layout, const inputs *in,
                    int64_t token, reference_prepared *out)
{
    float x[DIMS];
    int64_t slot = 0;

    memcpy(&slot, in->image[3] + token * 8, sizeof slot);
    if (slot < 0) {
        return;
    }
    if (slot / p->page_size >= p->pages) {
        out->dropped++;
        return;
    }
    uint8_t *page = out->cache + slot / p->page_size * p->page_stride;
    const int64_t within = slot % p->page_size;
    prepare(p, in, token, in->image[1] + token * 2 * DIMS, x, &out->nonfinite);
    quantise(p, layout, x, page + record_data_offset(layout, within),
             page + record_scale_offset(layout, within, 0));
}

hone_status reference_prepare(const hone_index_prepare *p, const inputs *in,
                              reference_prepared *out, hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout = {0};

    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    for (int64_t head = 0; head < p->tokens * p->heads; head++) {
        put_head(p, &layout, in, head, out);
    }
    for (int64_t token = 0; token < p->tokens; token++) {
        put_key(p, &layout, in, token, out);
    }
done:
    return status;
}
