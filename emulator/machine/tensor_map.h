/* tensor_map.h - what a tensor map says: the 128 bytes that cuTensorMapEncode* fill and that
 * cp.async.bulk.tensor reads.
 *
 * The real layout is not published; ours is a struct behind a magic value. Rules of the toolkit's
 * header are checked when a map is made and, as a kernel may replace any field, again when a
 * changed one is used. */
#ifndef HONE_EMULATOR_TENSOR_MAP_H
#define HONE_EMULATOR_TENSOR_MAP_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TENSOR_MAP_BYTES = 128,
    TENSOR_MAP_ALIGN = 64,
    TENSOR_MAP_RANK = 5,
    TENSOR_MAP_WHY = 256, /* bytes of a reason, enough for each rule with its figures */
};
#define TENSOR_MAP_MAGIC UINT64_C(0x70616D726F736E74)

/* Values as in cuda.h's CUtensorMapDataType. */
typedef enum tensor_map_type {
    TENSOR_MAP_U8,
    TENSOR_MAP_U16,
    TENSOR_MAP_U32,
    TENSOR_MAP_S32,
    TENSOR_MAP_U64,
    TENSOR_MAP_S64,
    TENSOR_MAP_F16,
    TENSOR_MAP_F32,
    TENSOR_MAP_F64,
    TENSOR_MAP_BF16,
    TENSOR_MAP_F32_FTZ,
    TENSOR_MAP_TF32,
    TENSOR_MAP_TF32_FTZ,
    TENSOR_MAP_U4,     /* 16 of them in 8 bytes, dense on both sides */
    TENSOR_MAP_U4_PAD, /* 8 bytes and, in shared memory, 8 of gap */
    TENSOR_MAP_U6_PAD, /* 12 bytes and, in shared memory, 4 of gap */
    TENSOR_MAP_TYPES,
} tensor_map_type;

typedef enum tensor_map_interleave {
    TENSOR_MAP_DENSE,
    TENSOR_MAP_INTERLEAVE_16B,
    TENSOR_MAP_INTERLEAVE_32B,
} tensor_map_interleave;

typedef enum tensor_map_swizzle {
    TENSOR_MAP_PLAIN,
    TENSOR_MAP_SWIZZLE_32B,
    TENSOR_MAP_SWIZZLE_64B,
    TENSOR_MAP_SWIZZLE_128B,
    TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
    TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
    TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
    TENSOR_MAP_SWIZZLES,
} tensor_map_swizzle;

typedef enum tensor_map_mode {
    TENSOR_MAP_TILED,
    TENSOR_MAP_IM2COL,
    TENSOR_MAP_IM2COL_W,
    TENSOR_MAP_IM2COL_W128,
} tensor_map_mode;

typedef struct tensor_map {
    uint64_t magic;
    uint64_t address;
    uint64_t strides[TENSOR_MAP_RANK - 1]; /* bytes, of dimensions 1 and up */
    uint64_t epoch; /* of the launch that changed it last (memory_epoch); 0: the host's */
    uint32_t dims[TENSOR_MAP_RANK]; /* elements; 2^32 is a 0 whose bit in `whole` is set */
    int16_t lower[3], upper[3];     /* im2col: corners along W, H, D */
    uint16_t box[TENSOR_MAP_RANK];  /* im2col: channels, then pixels */
    uint8_t element_strides[TENSOR_MAP_RANK];
    uint8_t whole, type, rank, interleave, swizzle, promotion, fill, mode;
    uint8_t reserved[17];
} tensor_map;
_Static_assert(sizeof(tensor_map) == TENSOR_MAP_BYTES, "a CUtensorMap");

typedef struct tensor_map_type_facts {
    const char *name;
    /* Bytes of 16 elements in global memory, and in shared memory with their gap. */
    uint8_t global_bytes, shared_bytes;
    bool is_float;
} tensor_map_type_facts;
extern const tensor_map_type_facts tensor_map_types[TENSOR_MAP_TYPES];

/* An address in shared memory is XORed: a ^ (a >> shift & mask), with bit 3 flipped as well where
 * `flip` has a bit of a in common. Rows begin at multiples of `span` where a box is narrower. */
typedef struct tensor_map_pattern {
    const char *name;
    uint8_t span, shift, mask, flip;
} tensor_map_pattern;
extern const tensor_map_pattern tensor_map_patterns[TENSOR_MAP_SWIZZLES];

static inline uint64_t tensor_map_dim(const tensor_map *m, uint32_t d)
{
    return (uint64_t)m->dims[d] | (uint64_t)(m->whole >> d & 1) << 32;
}
/* Elements along `d` that a box moves: with an element stride, only each s-th. */
static inline uint32_t tensor_map_count(const tensor_map *m, uint32_t d)
{
    return (m->box[d] + m->element_strides[d] - 1u) / m->element_strides[d];
}
/* Bytes of `elements` along dimension 0. */
static inline uint64_t tensor_map_global_bytes(const tensor_map *m, uint64_t elements)
{
    return elements * tensor_map_types[m->type].global_bytes / 16;
}
static inline uint64_t tensor_map_shared_bytes(const tensor_map *m, uint64_t elements)
{
    return elements * tensor_map_types[m->type].shared_bytes / 16;
}

/* HONE_BAD_ARGUMENT: which rule of the toolkit's header the map breaks, with figures. */
hone_status tensor_map_check(const tensor_map *m, hone_error *error);

/* A field as `tensormap.replace` sets it. `order`: which dimension, where there is one per
 * dimension (global_stride: 0 is that of dimension 1). The value is as PTX gives it: a rank less
 * one, PTX's own numbers of types. HONE_BAD_ARGUMENT for a value that has no meaning. Whether the
 * fields fit together shows at the next use. */
typedef enum tensor_map_field {
    TENSOR_MAP_FIELD_ADDRESS,
    TENSOR_MAP_FIELD_RANK,
    TENSOR_MAP_FIELD_BOX,
    TENSOR_MAP_FIELD_DIM,
    TENSOR_MAP_FIELD_STRIDE,
    TENSOR_MAP_FIELD_ELEMENT_STRIDE,
    TENSOR_MAP_FIELD_TYPE,
    TENSOR_MAP_FIELD_INTERLEAVE,
    TENSOR_MAP_FIELD_SWIZZLE,
    TENSOR_MAP_FIELD_ATOMICITY,
    TENSOR_MAP_FIELD_FILL,
    TENSOR_MAP_FIELDS,
} tensor_map_field;
hone_status tensor_map_replace(tensor_map *m, tensor_map_field field, uint32_t order,
                               uint64_t value, hone_error *error);

#endif
