/* pack_scales.c - f32 scales to ue8m0 codes in the layouts that kernels read: exact, or refused. */
#include "core/problem.h"

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

/* The first that has no code, by its place. */
static hone_status check_scales(const float *scales, const place *p, hone_error *error)
{
    for (int64_t row = 0; row < p->rows && p->groups > 0; row++) {
        for (int64_t group = 0; group < p->groups; group++) {
            const float scale = scale_at(scales, p, row, group);
            uint8_t code;
            if (!numfmt_ue8m0_exact(scale, &code)) {
                return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                                  "scale [%" PRId64 ", %" PRId64 "] = %.9g is no power of two from "
                                  "2^-127 to 2^127 and has no ue8m0 code; quantise again with a "
                                  "power-of-two rule (rounding the scale alone changes the matrix)",
                                  row, group, (double)scale);
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
