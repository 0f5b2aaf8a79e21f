/* pack_scales.c - f32 scales to ue8m0 codes in the layouts that kernels read: exact, or refused. */
#include "core/problem.h"

#include "core/checked.h"
#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>

static hone_status check_layouts(hone_scale_layout from, hone_scale_layout to, hone_error *error)
{
    if (from != HONE_SCALES_ROW && from != HONE_SCALES_COL && from != HONE_SCALES_TMA) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "pack_scales: f32 scales lie in row, col or tma layout");
    }
    if (to != HONE_SCALES_ROW && to != HONE_SCALES_COL && to != HONE_SCALES_PACKED) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "pack_scales: ue8m0 scales lie in row, col or packed layout");
    }
    return HONE_OK;
}

/* A matrix of scales, and where it lies. */
typedef struct place {
    int64_t rows, groups;
    hone_scale_layout from, to;
} place;

static float scale_at(const float *scales, const place *p, int64_t row, int64_t group)
{
    return scales[problem_scale_offset(p->rows, p->groups, HONE_DTYPE_F32, p->from, row, group) /
                  sizeof *scales];
}

/* One that has no code, by its place. */
static hone_status refuse_scale(float scale, int64_t first, int64_t second, const char *what,
                                hone_error *error)
{
    return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                      "%s [%" PRId64 ", %" PRId64 "] = %.9g is no power of two from "
                      "2^-127 to 2^127 and has no ue8m0 code; quantise again with a "
                      "power-of-two rule (rounding the scale alone changes the matrix)",
                      what, first, second, (double)scale);
}

/* The first that has no code. */
static hone_status check_scales(const float *scales, const place *p, hone_error *error)
{
    for (int64_t row = 0; row < p->rows && p->groups > 0; row++) {
        for (int64_t group = 0; group < p->groups; group++) {
            const float scale = scale_at(scales, p, row, group);
            uint8_t code;
            if (!numfmt_ue8m0_exact(scale, &code)) {
                return refuse_scale(scale, row, group, "scale", error);
            }
        }
    }
    return HONE_OK;
}

hone_status hone_pack_scales(const float *scales, int64_t rows, int64_t groups,
                             hone_scale_layout from, hone_scale_layout to, uint8_t *out,
                             uint64_t capacity, hone_error *error)
{
    hone_status status = HONE_OK;
    const place p = {rows, groups, from, to};
    uint64_t read = 0, written = 0;

    TRY(check_layouts(from, to, error));
    TRY(problem_scale_bytes(rows, groups, HONE_DTYPE_F32, from, &read, error));
    TRY(problem_scale_bytes(rows, groups, HONE_DTYPE_UE8M0, to, &written, error));
    if ((scales == NULL && read > 0) || (out == NULL && written > 0)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "pack_scales: scales and out must not be NULL");
    }
    if (capacity < written) {
        return status_set(error, HONE_LIMIT, NULL, 0,
                          "pack_scales: the codes need %" PRIu64 " bytes", written);
    }
    TRY(check_scales(scales, &p, error));
    if (written > 0) {
        memset(out, 0, written);
    }
    for (int64_t row = 0; row < rows && groups > 0; row++) {
        for (int64_t group = 0; group < groups; group++) {
            uint8_t *code =
                out + problem_scale_offset(rows, groups, HONE_DTYPE_UE8M0, to, row, group);
            numfmt_ue8m0_exact(scale_at(scales, &p, row, group), code);
        }
    }
done:
    return status;
}

/* ---- K-grouped. ---------------------------------------------------------------------------- */

enum { EXPERTS_MOST = 128 };

typedef struct grouped {
    const int64_t *k;
    int64_t rows, experts, gran_k;
    int64_t groups, words; /* of all experts */
} grouped;

static int64_t groups_of(const grouped *g, int64_t expert)
{
    return integer_ceil_div(g->k[expert], g->gran_k);
}

/* Check the shapes and add the experts up. */
static hone_status add_up(grouped *g, uint64_t *bytes, hone_error *error)
{
    uint64_t read = 0;

    if (g->rows < 0 || g->rows % 4 != 0 || g->experts < 0 || g->experts > EXPERTS_MOST ||
        (g->gran_k != 32 && g->gran_k != 128) || (g->k == NULL && g->experts > 0)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "pack_scales_grouped: rows=%" PRId64
                          " is a multiple of 4, experts=%" PRId64
                          " from 0 to %d with a k each, gran_k=%" PRId64 " 32 or 128",
                          g->rows, g->experts, EXPERTS_MOST, g->gran_k);
    }
    for (int64_t e = 0; e < g->experts; e++) {
        if (g->k[e] < 0 || __builtin_add_overflow(g->groups, groups_of(g, e), &g->groups)) {
            return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                              "pack_scales_grouped: k[%" PRId64 "]=%" PRId64
                              " is negative, or the sum is over 2^63",
                              e, g->k[e]);
        }
        g->words += integer_ceil_div(groups_of(g, e), 4);
    }
    if (!checked_mul_u64((uint64_t)g->groups, 4, &read) ||
        !checked_mul_u64(read, (uint64_t)g->rows, &read)) {
        return status_set(error, HONE_OVERFLOW, NULL, 0, "pack_scales_grouped: over 2^64 bytes");
    }
    *bytes = (uint64_t)g->words * 4 * (uint64_t)g->rows; /* at most `read` and 3 words an expert */
    return HONE_OK;
}

static hone_status check_grouped(const float *scales, const grouped *g, hone_error *error)
{
    uint8_t code = 0;

    for (int64_t i = 0; i < g->groups * g->rows; i++) {
        if (!numfmt_ue8m0_exact(scales[i], &code)) {
            return refuse_scale(scales[i], i / g->rows, i % g->rows, "scale [group, row]", error);
        }
    }
    return HONE_OK;
}

hone_status hone_pack_scales_grouped(const float *scales, int64_t rows, const int64_t *k,
                                     int64_t experts, int32_t gran_k, uint8_t *out,
                                     uint64_t capacity, uint64_t *bytes, hone_error *error)
{
    hone_status status = HONE_OK;
    grouped g = {.k = k, .rows = rows, .experts = experts, .gran_k = gran_k};
    uint64_t needed = 0;
    uint8_t *word = out;

    TRY(add_up(&g, &needed, error));
    if (bytes != NULL) {
        *bytes = needed;
    }
    if (needed > 0 && (scales == NULL || out == NULL)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "pack_scales_grouped: scales and out must not be NULL");
    }
    if (capacity < needed) {
        return status_set(error, HONE_LIMIT, NULL, 0,
                          "pack_scales_grouped: the words need %" PRIu64 " bytes", needed);
    }
    TRY(check_grouped(scales, &g, error));
    if (needed > 0) {
        memset(out, 0, needed);
    }
    for (int64_t e = 0; e < experts && needed > 0; e++) {
        for (int64_t group = 0; group < groups_of(&g, e); group++, scales += rows) {
            for (int64_t row = 0; row < rows; row++) {
                numfmt_ue8m0_exact(scales[row], &word[group / 4 * 4 * rows + 4 * row + group % 4]);
            }
        }
        word += integer_ceil_div(groups_of(&g, e), 4) * 4 * rows;
    }
done:
    return status;
}
