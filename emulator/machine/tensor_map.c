/* tensor_map.c - the rules of a tensor map, as the toolkit's header (cuda.h of CUDA 13.0) gives
 * them, and its fields as PTX replaces them. */
#include "emulator/machine/tensor_map.h"

enum {
    BOX_MAX = 256,
    PIXELS_MAX = 1024,
    CHANNELS_MAX = 256,
    ELEMENT_STRIDE_MAX = 8,
    PAD_UNIT = 128, /* elements of dimension 0 that padded types come in */
};
#define STRIDE_LIMIT (UINT64_C(1) << 40)

const tensor_map_type_facts tensor_map_types[TENSOR_MAP_TYPES] = {
    [TENSOR_MAP_U8] = {"uint8", 16, 16, false},
    [TENSOR_MAP_U16] = {"uint16", 32, 32, false},
    [TENSOR_MAP_U32] = {"uint32", 64, 64, false},
    [TENSOR_MAP_S32] = {"int32", 64, 64, false},
    [TENSOR_MAP_U64] = {"uint64", 128, 128, false},
    [TENSOR_MAP_S64] = {"int64", 128, 128, false},
    [TENSOR_MAP_F16] = {"float16", 32, 32, true},
    [TENSOR_MAP_F32] = {"float32", 64, 64, true},
    [TENSOR_MAP_F64] = {"float64", 128, 128, true},
    [TENSOR_MAP_BF16] = {"bfloat16", 32, 32, true},
    [TENSOR_MAP_F32_FTZ] = {"float32-ftz", 64, 64, true},
    [TENSOR_MAP_TF32] = {"tfloat32", 64, 64, true},
    [TENSOR_MAP_TF32_FTZ] = {"tfloat32-ftz", 64, 64, true},
    [TENSOR_MAP_U4] = {"16u4-align8b", 8, 8, false},
    [TENSOR_MAP_U4_PAD] = {"16u4-align16b", 8, 16, false},
    [TENSOR_MAP_U6_PAD] = {"16u6-align16b", 12, 16, false},
};

const tensor_map_pattern tensor_map_patterns[TENSOR_MAP_SWIZZLES] = {
    [TENSOR_MAP_PLAIN] = {"none", 0, 0, 0, 0},
    [TENSOR_MAP_SWIZZLE_32B] = {"32B", 32, 3, 0x10, 0},
    [TENSOR_MAP_SWIZZLE_64B] = {"64B", 64, 3, 0x30, 0},
    [TENSOR_MAP_SWIZZLE_128B] = {"128B", 128, 3, 0x70, 0},
    [TENSOR_MAP_SWIZZLE_128B_ATOM_32B] = {"128B-atom-32B", 128, 2, 0x60, 0},
    [TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B] = {"128B-atom-32B-flip-8B", 128, 2, 0x60, 0x80},
    [TENSOR_MAP_SWIZZLE_128B_ATOM_64B] = {"128B-atom-64B", 128, 1, 0x40, 0},
};

#define REFUSE(...) return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, __VA_ARGS__)

static bool is_padded(const tensor_map *m)
{
    return m->type == TENSOR_MAP_U4_PAD || m->type == TENSOR_MAP_U6_PAD;
}

static hone_status check_kinds(const tensor_map *m, hone_error *error)
{
    uint32_t least = m->interleave != TENSOR_MAP_DENSE || m->mode != TENSOR_MAP_TILED ? 3 : 1;

    if (m->type >= TENSOR_MAP_TYPES) {
        REFUSE("data type %u; there are 0 to %d", m->type, TENSOR_MAP_TYPES - 1);
    }
    if (m->interleave > TENSOR_MAP_INTERLEAVE_32B) {
        REFUSE("interleave %u; there are 0 to 2", m->interleave);
    }
    if (m->swizzle >= TENSOR_MAP_SWIZZLES) {
        REFUSE("swizzle %u; there are 0 to %d", m->swizzle, TENSOR_MAP_SWIZZLES - 1);
    }
    if (m->promotion > 3) {
        REFUSE("L2 promotion %u; there are 0 to 3", m->promotion);
    }
    if (m->fill > 1) {
        REFUSE("out-of-bounds fill %u; there are 0 and 1", m->fill);
    }
    if (m->rank < least || m->rank > TENSOR_MAP_RANK) {
        REFUSE("rank %u; %u to %d are possible%s", m->rank, least, TENSOR_MAP_RANK,
               m->mode != TENSOR_MAP_TILED ? " with im2col"
               : least == 3                ? " with interleave"
                                           : "");
    }
    if (m->fill == 1 && !tensor_map_types[m->type].is_float) {
        REFUSE("NaN fill of type %s, which has no NaN", tensor_map_types[m->type].name);
    }
    return HONE_OK;
}

static hone_status check_global(const tensor_map *m, hone_error *error)
{
    const char *type = tensor_map_types[m->type].name;
    bool wide = m->interleave == TENSOR_MAP_INTERLEAVE_32B || is_padded(m);
    uint32_t unit = wide ? 32 : 16;
    uint32_t multiple = is_padded(m) ? PAD_UNIT : m->type == TENSOR_MAP_U4 ? 2 : 1;

    if (m->address % unit != 0) {
        REFUSE("address %#llx is not a multiple of %u%s%s%s", (unsigned long long)m->address, unit,
               wide ? ", as " : "",
               !wide          ? ""
               : is_padded(m) ? type
                              : "32B interleave",
               wide ? " takes" : "");
    }
    for (uint32_t d = 0; d < m->rank; d++) {
        if (tensor_map_dim(m, d) == 0) {
            REFUSE("dimension %u has no elements; 1 to 2^32 are possible", d);
        }
    }
    if (tensor_map_dim(m, 0) % multiple != 0) {
        REFUSE("dimension 0 has %llu elements, no multiple of %u, as %s takes",
               (unsigned long long)tensor_map_dim(m, 0), multiple, type);
    }
    for (uint32_t d = 1; d < m->rank; d++) {
        uint64_t stride = m->strides[d - 1];
        if (stride % unit != 0) {
            REFUSE("stride %llu of dimension %u is not a multiple of %u",
                   (unsigned long long)stride, d, unit);
        }
        if (stride >= STRIDE_LIMIT) {
            REFUSE("stride %llu of dimension %u; strides are below 2^40",
                   (unsigned long long)stride, d);
        }
    }
    return HONE_OK;
}

/* Dimension 0 has no element stride unless channels are interleaved. */
static hone_status check_element_strides(const tensor_map *m, hone_error *error)
{
    for (uint32_t d = m->interleave == TENSOR_MAP_DENSE; d < m->rank; d++) {
        if (m->element_strides[d] == 0 || m->element_strides[d] > ELEMENT_STRIDE_MAX) {
            REFUSE("element stride %u of dimension %u; 1 to %d are possible", m->element_strides[d],
                   d, ELEMENT_STRIDE_MAX);
        }
    }
    return HONE_OK;
}

static hone_status check_box(const tensor_map *m, hone_error *error)
{
    for (uint32_t d = 0; d < m->rank; d++) {
        if (m->box[d] == 0 || m->box[d] > BOX_MAX) {
            REFUSE("box of %u elements along dimension %u; 1 to %d are possible", m->box[d], d,
                   BOX_MAX);
        }
    }
    if (is_padded(m) && m->box[0] != PAD_UNIT) {
        REFUSE("box of %u elements along dimension 0; %s takes %d", m->box[0],
               tensor_map_types[m->type].name, PAD_UNIT);
    }
    /* In sixteenths of a byte: a box of 4-bit elements may end inside one. */
    uint32_t sixteenths = (uint32_t)m->box[0] * tensor_map_types[m->type].shared_bytes;
    if (m->interleave == TENSOR_MAP_DENSE && sixteenths % 256 != 0) {
        REFUSE("box of %u %s along dimension 0 is %u bytes, no multiple of 16", m->box[0],
               tensor_map_types[m->type].name, sixteenths / 16);
    }
    return HONE_OK;
}

static hone_status check_pixels(const tensor_map *m, hone_error *error)
{
    uint32_t spatial = m->mode == TENSOR_MAP_IM2COL ? m->rank - 2u : 1;
    int32_t limit = spatial == 1 ? 32768 : spatial == 2 ? 128 : 16;

    for (uint32_t d = 0; d < spatial; d++) {
        if (m->lower[d] < -limit || m->lower[d] >= limit || m->upper[d] < -limit ||
            m->upper[d] >= limit) {
            REFUSE("corner offsets %d and %d along dimension %u; %d to %d are possible at rank %u",
                   m->lower[d], m->upper[d], d + 1, -limit, limit - 1, m->rank);
        }
        if ((int64_t)tensor_map_dim(m, d + 1) + m->upper[d] - m->lower[d] <= 0) {
            REFUSE("corner offsets %d and %d leave nothing of the %llu pixels along dimension %u",
                   m->lower[d], m->upper[d], (unsigned long long)tensor_map_dim(m, d + 1), d + 1);
        }
    }
    if (m->box[0] == 0 || m->box[0] > CHANNELS_MAX) {
        REFUSE("%u channels a pixel; 1 to %d are possible", m->box[0], CHANNELS_MAX);
    }
    if (is_padded(m) && m->box[0] != PAD_UNIT) {
        REFUSE("%u channels a pixel; %s takes %d", m->box[0], tensor_map_types[m->type].name,
               PAD_UNIT);
    }
    if (m->mode != TENSOR_MAP_IM2COL_W128 && (m->box[1] == 0 || m->box[1] > PIXELS_MAX)) {
        REFUSE("%u pixels a column; 1 to %d are possible", m->box[1], PIXELS_MAX);
    }
    return HONE_OK;
}

/* Which patterns a padded type may have; the others may have any. */
static bool swizzle_fits_type(const tensor_map *m)
{
    uint32_t allowed = 1u << TENSOR_MAP_PLAIN | 1u << TENSOR_MAP_SWIZZLE_128B |
                       1u << TENSOR_MAP_SWIZZLE_128B_ATOM_32B;

    allowed |= m->type == TENSOR_MAP_U6_PAD ? 1u << TENSOR_MAP_SWIZZLE_128B_ATOM_64B : 0;
    return !is_padded(m) || (allowed >> m->swizzle & 1) != 0;
}

static hone_status check_swizzle(const tensor_map *m, hone_error *error)
{
    const tensor_map_pattern *p = &tensor_map_patterns[m->swizzle];
    uint64_t inner = tensor_map_shared_bytes(m, m->box[0]);
    bool wide = m->mode == TENSOR_MAP_IM2COL_W || m->mode == TENSOR_MAP_IM2COL_W128;

    if (m->type == TENSOR_MAP_U6_PAD && m->interleave != TENSOR_MAP_DENSE) {
        REFUSE("interleave of %s, which takes none", tensor_map_types[m->type].name);
    }
    if (m->interleave == TENSOR_MAP_INTERLEAVE_32B && m->swizzle != TENSOR_MAP_SWIZZLE_32B) {
        REFUSE("swizzle %s with 32B interleave, which takes 32B", p->name);
    }
    if (!swizzle_fits_type(m)) {
        REFUSE("swizzle %s of type %s, which does not take it", p->name,
               tensor_map_types[m->type].name);
    }
    if (wide && m->swizzle != TENSOR_MAP_SWIZZLE_64B && m->swizzle != TENSOR_MAP_SWIZZLE_128B &&
        m->swizzle != TENSOR_MAP_SWIZZLE_128B_ATOM_32B) {
        REFUSE("swizzle %s; wide im2col takes 64B, 128B or 128B-atom-32B", p->name);
    }
    if (m->interleave == TENSOR_MAP_DENSE && p->span != 0 && inner > p->span) {
        REFUSE("box of %llu bytes along dimension 0; swizzle %s takes up to %u",
               (unsigned long long)inner, p->name, p->span);
    }
    return HONE_OK;
}

/* Not a rule: that strides grow. The header's formula says so, yet programs pass 0 for a dimension
 * of one element, and the driver takes it. */
hone_status tensor_map_check(const tensor_map *m, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_kinds(m, error));
    TRY(check_global(m, error));
    TRY(check_element_strides(m, error));
    TRY(m->mode == TENSOR_MAP_TILED ? check_box(m, error) : check_pixels(m, error));
    TRY(check_swizzle(m, error));
done:
    return status;
}

static hone_status replace_kind(uint8_t *kind, uint64_t value, uint32_t limit, hone_error *error)
{
    if (value >= limit) {
        REFUSE("value %llu; 0 to %u are possible", (unsigned long long)value, limit - 1);
    }
    *kind = (uint8_t)value;
    return HONE_OK;
}

static hone_status replace_type(tensor_map *m, uint64_t value, hone_error *error)
{
    /* PTX numbers them in another order than the driver: .f32.ftz comes before .f64. */
    static const uint8_t types[] = {
        TENSOR_MAP_U8,       TENSOR_MAP_U16, TENSOR_MAP_U32,    TENSOR_MAP_S32,
        TENSOR_MAP_U64,      TENSOR_MAP_S64, TENSOR_MAP_F16,    TENSOR_MAP_F32,
        TENSOR_MAP_F32_FTZ,  TENSOR_MAP_F64, TENSOR_MAP_BF16,   TENSOR_MAP_TF32,
        TENSOR_MAP_TF32_FTZ, TENSOR_MAP_U4,  TENSOR_MAP_U4_PAD, TENSOR_MAP_U6_PAD,
    };
    if (value >= ARRAY_LEN(types)) {
        REFUSE("value %llu; 0 to %zu are possible", (unsigned long long)value,
               ARRAY_LEN(types) - 1);
    }
    m->type = types[value];
    return HONE_OK;
}

/* PTX has 16, 32, 32 with a flip, and 64 bytes as atoms of a 128-byte pattern. */
static hone_status replace_atomicity(tensor_map *m, uint64_t value, hone_error *error)
{
    static const uint8_t swizzles[] = {TENSOR_MAP_SWIZZLE_128B, TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
                                       TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
                                       TENSOR_MAP_SWIZZLE_128B_ATOM_64B};

    if (value >= ARRAY_LEN(swizzles) || (value > 0 && m->swizzle < TENSOR_MAP_SWIZZLE_128B)) {
        REFUSE("value %llu for swizzle %s; 0 to 3 are possible, and only 0 below 128B",
               (unsigned long long)value, tensor_map_patterns[m->swizzle].name);
    }
    m->swizzle = m->swizzle < TENSOR_MAP_SWIZZLE_128B ? m->swizzle : swizzles[value];
    return HONE_OK;
}

static hone_status replace_box(uint16_t *box, uint64_t value, hone_error *error)
{
    if (value > BOX_MAX) {
        REFUSE("value %llu; 1 to %d are possible", (unsigned long long)value, BOX_MAX);
    }
    *box = (uint16_t)value;
    return HONE_OK;
}

hone_status tensor_map_replace(tensor_map *m, tensor_map_field field, uint32_t order,
                               uint64_t value, hone_error *error)
{
    if (order >= TENSOR_MAP_RANK - (field == TENSOR_MAP_FIELD_STRIDE)) {
        REFUSE("dimension %u; a map has %d", order, TENSOR_MAP_RANK);
    }
    switch (field) {
    case TENSOR_MAP_FIELD_ADDRESS:
        m->address = value;
        break;
    case TENSOR_MAP_FIELD_RANK:
        m->rank = value < UINT8_MAX ? (uint8_t)(value + 1) : UINT8_MAX;
        break;
    case TENSOR_MAP_FIELD_BOX:
        return replace_box(&m->box[order], value, error);
    case TENSOR_MAP_FIELD_DIM:
        m->dims[order] = (uint32_t)value;
        m->whole &= (uint8_t) ~(1u << order);
        break;
    case TENSOR_MAP_FIELD_STRIDE:
        m->strides[order] = value;
        break;
    case TENSOR_MAP_FIELD_ELEMENT_STRIDE:
        return replace_kind(&m->element_strides[order], value, ELEMENT_STRIDE_MAX + 1, error);
    case TENSOR_MAP_FIELD_TYPE:
        return replace_type(m, value, error);
    case TENSOR_MAP_FIELD_INTERLEAVE:
        return replace_kind(&m->interleave, value, TENSOR_MAP_INTERLEAVE_32B + 1, error);
    case TENSOR_MAP_FIELD_SWIZZLE:
        return replace_kind(&m->swizzle, value, TENSOR_MAP_SWIZZLE_128B + 1, error);
    case TENSOR_MAP_FIELD_ATOMICITY:
        return replace_atomicity(m, value, error);
    case TENSOR_MAP_FIELD_FILL:
        return replace_kind(&m->fill, value, 2, error);
    case TENSOR_MAP_FIELDS:
        break;
    }
    return HONE_OK;
}
