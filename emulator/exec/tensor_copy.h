/* tensor_copy.h - one operation of the engine on a box of a tensor: what is between its
 * instruction and its end.
 *
 * A box is rows along dimension 0, one after the other in shared memory, dimension 1 next fastest.
 * In global memory rows come in slabs of a constant step. What lies outside of the tensor is filled
 * by a load, and left alone by a store. */
#ifndef HONE_EMULATOR_TENSOR_COPY_H
#define HONE_EMULATOR_TENSOR_COPY_H

#include "emulator/machine/async.h"
#include "emulator/machine/tensor_map.h"

enum {
    TENSOR_ROW_BYTES = 2048,        /* the longest row: 256 elements of 8 bytes */
    TENSOR_COPY_BYTES = 227 * 1024, /* more than any CTA's shared memory is no box */
};

/* Of the handler: `kind`, */
typedef enum tensor_copy_kind {
    TENSOR_LOAD,
    TENSOR_STORE,
    TENSOR_REDUCE,
    TENSOR_PREFETCH,
} tensor_copy_kind;
/* and `target`. */
enum {
    TENSOR_COPY_MULTICAST = 1,
    TENSOR_COPY_ROWS = 2,   /* .tile::gather4, .tile::scatter4 */
    TENSOR_COPY_IM2COL = 4, /* .im2col with its offsets, .im2col_no_offs without */
};

typedef struct tensor_copy {
    tensor_map map;
    tensor_copy_kind kind;
    uint32_t modes;                 /* TENSOR_COPY_* */
    uint32_t reduction;             /* exec_atomic_kind */
    int64_t first[TENSOR_MAP_RANK]; /* coordinates of the box's first element */
    int64_t rows_at[4];             /* of TENSOR_COPY_ROWS: along dimension 1 */
    int64_t offsets[3];             /* of im2col, along W, H, D */
    cta *source;                    /* of a store: whose shared memory */
    uint32_t at;                    /* offset there, or in each destination */
    const memory_range *range;      /* all that lies inside; NULL: nothing does */
    /* Follows from the map: */
    uint32_t count[TENSOR_MAP_RANK]; /* elements along each dimension; 1 past the rank */
    uint32_t rows, row_bytes, pitch; /* in shared memory, gaps of padded types included */
    uint32_t low, high;              /* elements of each row that are inside */
    uint64_t low_bytes,
        inside_bytes; /* in global memory: from a row's first element, and how many */
    uint8_t data[];   /* of a store: rows as they were read, dense */
} tensor_copy;

/* Rows that follow one another. */
typedef struct tensor_slab {
    uint32_t rows;
    uint32_t low, high;          /* [low, high) lie inside along every dimension but the first */
    uint64_t address;            /* of the first byte inside of row `low` */
    int64_t step;                /* from row to row */
    int64_t at[TENSOR_MAP_RANK]; /* coordinates of row `low`; */
    uint32_t stride;             /* from row to row along dimension 1 */
} tensor_slab;
typedef struct tensor_slabs {
    const tensor_copy *c;
    uint32_t index[TENSOR_MAP_RANK];
    int64_t pixel[TENSOR_MAP_RANK]; /* of im2col: where the walk stands */
    uint32_t done;                  /* rows */
} tensor_slabs;

/* tensor_copy_box.c. The rest of *c from its map and coordinates; false after a fault: the
 * instruction does not go with the map. */
bool tensor_box_open(warp *w, const instruction *i, uint32_t lane, tensor_copy *c);
tensor_slabs tensor_box_slabs(const tensor_copy *c);
bool tensor_box_next(tensor_slabs *s, tensor_slab *out);
/* Finds the allocation; counts requests, sectors and lines. False after a fault: the map reaches
 * past it. */
bool tensor_box_find(warp *w, const instruction *i, uint32_t lane, tensor_copy *c);

static inline uint32_t tensor_box_bytes(const tensor_copy *c)
{
    return c->rows * c->row_bytes;
}
/* Shared memory from the first row's first byte to the last one's last. */
static inline uint32_t tensor_box_extent(const tensor_copy *c)
{
    return (c->rows - 1) * c->pitch + (c->pitch > c->row_bytes ? c->pitch : c->row_bytes);
}

/* Where the 16 bytes for `at` lie. */
static inline uint32_t tensor_row_at(uint32_t at, const tensor_map_pattern *p)
{
    return at ^ (at >> p->shift & p->mask);
}
/* tensor_copy_row.c: `bytes` of a row to and from its place in shared memory, swizzled. */
void tensor_row_put(uint8_t *shared, uint32_t at, const uint8_t *row, uint32_t bytes,
                    const tensor_map_pattern *p);
void tensor_row_get(const uint8_t *shared, uint32_t at, uint8_t *row, uint32_t bytes,
                    const tensor_map_pattern *p);
/* What async_op wants. */
bool tensor_copy_load(async_op *op);
bool tensor_copy_fetch(async_op *op);
bool tensor_copy_store(async_op *op);

/* tensor_copy_count.c: wavefronts of shared memory that a box's rows take. */
uint32_t tensor_box_wavefronts(const tensor_copy *c);

/* tensor_copy_reduce.c: whether the map's type has this reduction; and it, on `elements` of them.
 */
bool tensor_reduce_exists(const tensor_map *m, uint32_t reduction);
void tensor_reduce(const tensor_map *m, uint32_t reduction, uint8_t *to, const uint8_t *from,
                   uint64_t elements);

#endif
