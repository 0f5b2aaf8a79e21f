/* reference_scales.c - scales as kernels read them, value by value: where each comes from. */
#include "bench/reference.h"

#include <math.h>
#include <string.h>

void reference_scale_pack_shape(const hone_scale_pack *p, int64_t *lines, int64_t *rows)
{
    const bool packed = p->scale_layout == HONE_SCALES_PACKED, grouped = p->experts > 0;

    *lines = grouped ? (p->groups + 3 * p->experts) / 4 : packed ? (p->groups + 3) / 4 : p->groups;
    *rows = grouped || p->scale_layout == HONE_SCALES_COL ? p->rows : (p->rows + 3) / 4 * 4;
}

static float scale_at(const hone_scale_pack *p, const inputs *in, int64_t batch, int64_t group,
                      int64_t row)
{
    const int64_t at =
        p->experts > 0 ? group * p->rows + row : (batch * p->rows + row) * p->groups + group;
    float scale;

    memcpy(&scale, in->image[0] + 4 * at, sizeof scale);
    return scale;
}

static uint32_t code_of(float scale, uint64_t *wrong)
{
    int exponent = 0;

    /* frexp gives NaN, infinities and 0 back as they are. */
    if (frexp((double)scale, &exponent) == 0.5 && exponent - 1 >= -127 && exponent - 1 <= 127) {
        return (uint32_t)(exponent - 1 + 127);
    }
    ++*wrong;
    return 0xff;
}

/* The first group of a line of words, how many it holds of its expert's, and how many all experts
 * have; groups are counted through all experts. */
static int64_t groups_of_line(const hone_scale_pack *p, const inputs *in, int64_t line,
                              int64_t *first, int64_t *total)
{
    int64_t found = 0;

    int64_t before = 0, words = 0;

    for (int32_t e = 0; e < p->experts; e++) {
        int32_t k = 0;
        memcpy(&k, in->image[2] + 4 * e, sizeof k);
        const int64_t groups = k > 0 ? ((int64_t)k + p->gran_k - 1) / p->gran_k : 0;
        for (int64_t done = 0; done < groups; done += 4, words++) {
            if (words == line) {
                *first = before + done;
                found = groups - done < 4 ? groups - done : 4;
            }
        }
        before += groups;
    }
    *total = before;
    return found;
}

uint32_t reference_scale_pack(const hone_scale_pack *p, const inputs *in, int64_t batch,
                              int64_t line, int64_t row, uint64_t *wrong)
{
    const bool packed = p->scale_layout == HONE_SCALES_PACKED;
    int64_t first = 4 * line, count = p->groups - first < 4 ? p->groups - first : 4;
    uint32_t word = 0;

    if (!packed) {
        const float scale = row < p->rows ? scale_at(p, in, batch, line, row) : 1.0f;
        memcpy(&word, &scale, sizeof word);
        return word;
    }
    if (p->experts > 0) {
        int64_t total = 0;
        count = groups_of_line(p, in, line, &first, &total);
        *wrong +=
            line == 0 && row < p->rows && total < p->groups ? (uint64_t)(p->groups - total) : 0;
    }
    for (int64_t i = 0; i < count && row < p->rows; i++) {
        if (first + i < p->groups) {
            word |= code_of(scale_at(p, in, batch, first + i, row), wrong) << 8 * i;
        } else {
            ++*wrong;
        }
    }
    return word;
}
