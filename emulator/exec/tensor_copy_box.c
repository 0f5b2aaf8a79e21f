/* tensor_copy_box.c - which bytes of global and of shared memory a box means. */
#include "emulator/exec/tensor_copy.h"
#include "emulator/exec/exec.h"

#include <stdio.h>
#include <string.h>

#define FAULT(...) machine_fault(w, i, lane, 0, FAULT_TENSOR_MAP, __VA_ARGS__)

enum { PAD_UNIT = 128 };

static bool is_padded(const tensor_map *m)
{
    return tensor_map_types[m->type].shared_bytes != tensor_map_types[m->type].global_bytes;
}

static bool modes_agree(warp *w, const instruction *i, uint32_t lane, const tensor_copy *c)
{
    const tensor_map *m = &c->map;
    bool im2col = (c->modes & TENSOR_COPY_IM2COL) != 0;

    if (im2col != (m->mode == TENSOR_MAP_IM2COL) || m->mode > TENSOR_MAP_IM2COL) {
        FAULT("%s copy by a map made for %s", im2col ? "an im2col" : "a tiled",
              m->mode == TENSOR_MAP_TILED    ? "tiles"
              : m->mode == TENSOR_MAP_IM2COL ? "im2col"
                                             : "wide im2col");
        return false;
    }
    if (m->rank != i->elements) {
        FAULT("a %ud copy by a map of rank %u", i->elements, m->rank);
        return false;
    }
    if ((c->modes & TENSOR_COPY_ROWS) && m->box[1] != 1) {
        FAULT("four rows by a map whose box has %u along dimension 1; it takes 1", m->box[1]);
        return false;
    }
    if (m->interleave != TENSOR_MAP_DENSE) {
        machine_fault(w, i, lane, 0, FAULT_UNSUPPORTED,
                      "a copy by a map with interleave; such maps are made, but not used here");
        return false;
    }
    return true;
}

static bool type_agrees(warp *w, const instruction *i, uint32_t lane, const tensor_copy *c)
{
    const tensor_map *m = &c->map;
    const char *type = tensor_map_types[m->type].name;
    bool load = c->kind == TENSOR_LOAD || c->kind == TENSOR_PREFETCH;
    int64_t unit = is_padded(m) ? PAD_UNIT : m->type == TENSOR_MAP_U4 ? 2 : 1;

    if (m->type == TENSOR_MAP_U4_PAD && !load) {
        FAULT("a store of %s, which can only be loaded", type);
        return false;
    }
    if (m->type == TENSOR_MAP_U6_PAD && load && m->swizzle == TENSOR_MAP_SWIZZLE_128B_ATOM_64B) {
        FAULT("a load of %s with swizzle 128B-atom-64B, which can only be stored", type);
        return false;
    }
    if (c->kind == TENSOR_REDUCE && !tensor_reduce_exists(m, c->reduction)) {
        FAULT("type %s does not have this reduction", type);
        return false;
    }
    if (c->first[0] % unit != 0) {
        FAULT("coordinate 0 is %lld, no multiple of %lld, as %s takes", (long long)c->first[0],
              (long long)unit, type);
        return false;
    }
    return true;
}

/* Of `count` elements from `first` on, `step` apart: those in [0, dim). */
static void clip(int64_t first, uint32_t step, uint32_t count, uint64_t dim, uint32_t *low,
                 uint32_t *high)
{
    uint64_t skip = first < 0 ? ((uint64_t)-first + step - 1) / step : 0;
    uint64_t fit = first >= (int64_t)dim ? 0 : ((uint64_t)((int64_t)dim - 1 - first)) / step + 1;

    *low = skip < count ? (uint32_t)skip : count;
    *high = fit < count ? (uint32_t)fit : count;
    *high = *high < *low ? *low : *high;
}

bool tensor_box_open(warp *w, const instruction *i, uint32_t lane, tensor_copy *c)
{
    const tensor_map *m = &c->map;
    bool im2col = (c->modes & TENSOR_COPY_IM2COL) != 0;

    if (!modes_agree(w, i, lane, c) || !type_agrees(w, i, lane, c)) {
        return false;
    }
    c->rows = 1;
    c->count[0] = m->box[0];
    for (uint32_t d = 1; d < TENSOR_MAP_RANK; d++) {
        c->count[d] = d < m->rank && !im2col ? tensor_map_count(m, d) : 1;
        c->rows *= c->count[d];
    }
    c->rows = im2col ? m->box[1] : (c->modes & TENSOR_COPY_ROWS) ? 4 : c->rows;
    c->row_bytes = (uint32_t)tensor_map_shared_bytes(m, m->box[0]);
    c->pitch = tensor_map_patterns[m->swizzle].span;
    c->pitch = c->pitch > c->row_bytes ? c->pitch : c->row_bytes;
    if (c->row_bytes % 16 != 0 || (uint64_t)c->rows * c->pitch > TENSOR_COPY_BYTES) {
        FAULT("a box of %u rows of %u bytes; rows are multiples of 16, a box is at most %u bytes",
              c->rows, c->row_bytes, TENSOR_COPY_BYTES);
        return false;
    }
    clip(c->first[0], 1, m->box[0], tensor_map_dim(m, 0), &c->low, &c->high);
    c->low_bytes = tensor_map_global_bytes(m, c->low);
    c->inside_bytes = tensor_map_global_bytes(m, c->high - c->low);
    return true;
}

tensor_slabs tensor_box_slabs(const tensor_copy *c)
{
    tensor_slabs s = {.c = c};

    memcpy(s.pixel, c->first, sizeof s.pixel);
    return s;
}

/* Address of the first byte inside, from coordinates of dimensions 1 and up. */
static uint64_t address_of(const tensor_copy *c, const int64_t at[TENSOR_MAP_RANK])
{
    uint64_t address = c->map.address + c->low_bytes +
                       (uint64_t)(c->first[0] * tensor_map_types[c->map.type].global_bytes / 16);

    for (uint32_t d = 1; d < c->map.rank; d++) {
        address += (uint64_t)at[d] * c->map.strides[d - 1];
    }
    return address;
}

static bool is_inside(const tensor_copy *c, const int64_t at[TENSOR_MAP_RANK], uint32_t from)
{
    for (uint32_t d = from; d < c->map.rank; d++) {
        if (at[d] < 0 || (uint64_t)at[d] >= tensor_map_dim(&c->map, d)) {
            return false;
        }
    }
    return c->low < c->high;
}

/* A slab of the one row at `at`. */
static void single(const tensor_copy *c, tensor_slab *out)
{
    out->rows = 1;
    out->high = is_inside(c, out->at, 1);
    out->address = address_of(c, out->at);
}

/* Pixels along W, then H, then D inside of the corners, then N. */
static void next_pixel(tensor_slabs *s, tensor_slab *out)
{
    const tensor_map *m = &s->c->map;
    uint32_t spatial = m->rank - 2u;

    for (uint32_t d = 0; d < m->rank; d++) {
        out->at[d] = s->pixel[d] + (d >= 1 && d <= spatial ? s->c->offsets[d - 1] : 0);
    }
    single(s->c, out);
    for (uint32_t d = 1; d <= spatial; d++) {
        s->pixel[d] += m->element_strides[d];
        if (s->pixel[d] < (int64_t)tensor_map_dim(m, d) + m->upper[d - 1]) {
            return;
        }
        s->pixel[d] = m->lower[d - 1];
    }
    s->pixel[spatial + 1] += m->element_strides[spatial + 1];
}

/* All rows along dimension 1, then on along those above. */
static void next_tile(tensor_slabs *s, tensor_slab *out)
{
    const tensor_copy *c = s->c;
    const tensor_map *m = &c->map;

    for (uint32_t d = 1; d < m->rank; d++) {
        out->at[d] = c->first[d] + (int64_t)s->index[d] * m->element_strides[d];
    }
    out->rows = c->count[1];
    if (m->rank == 1) {
        out->high = is_inside(c, out->at, 1);
    } else if (is_inside(c, out->at, 2)) {
        clip(c->first[1], m->element_strides[1], c->count[1], tensor_map_dim(m, 1), &out->low,
             &out->high);
        out->stride = m->element_strides[1];
        out->at[1] += (int64_t)out->low * out->stride;
        out->step = (int64_t)(m->strides[0] * out->stride);
    }
    out->address = address_of(c, out->at);
    for (uint32_t d = 2; d < m->rank && ++s->index[d] == c->count[d]; d++) {
        s->index[d] = 0;
    }
}

bool tensor_box_next(tensor_slabs *s, tensor_slab *out)
{
    *out = (tensor_slab){.at = {s->c->first[0]}};
    if (s->done == s->c->rows) {
        return false;
    }
    if (s->c->modes & TENSOR_COPY_IM2COL) {
        next_pixel(s, out);
    } else if (s->c->modes & TENSOR_COPY_ROWS) {
        out->at[1] = s->c->rows_at[s->done];
        single(s->c, out);
    } else {
        next_tile(s, out);
    }
    s->done += out->rows;
    return true;
}

/* The row at `at` does not lie in the map's allocation: along which dimension it went too far, the
 * one that contributed most. */
static void refuse(warp *w, const instruction *i, uint32_t lane, const tensor_copy *c,
                   const int64_t at[TENSOR_MAP_RANK])
{
    const tensor_map *m = &c->map;
    uint64_t address = address_of(c, at), worst = 0;
    const memory_range *near = memory_find(w->run->launch->memory, m->address);
    uint32_t blame = 0;
    char place[96];

    for (uint32_t d = 1; d < m->rank; d++) {
        uint64_t far = (uint64_t)at[d] * m->strides[d - 1];
        blame = far > worst ? d : blame;
        worst = far > worst ? far : worst;
    }
    if (near == NULL || address + c->inside_bytes <= near->end) {
        snprintf(place, sizeof place, "in no allocation");
    } else if (near->freed) {
        snprintf(place, sizeof place, "in an allocation that was freed");
    } else {
        snprintf(place, sizeof place, "%llu bytes past the end of its allocation of %llu",
                 (unsigned long long)(address + c->inside_bytes - near->end),
                 (unsigned long long)(near->end - near->begin));
    }
    machine_fault(w, i, lane, address,
                  near != NULL && near->freed ? FAULT_USE_AFTER_FREE : FAULT_OUT_OF_BOUNDS,
                  "tensor map of %s at %#llx: coordinate %lld of dimension %u, which has %llu "
                  "elements, lies %s",
                  tensor_map_types[m->type].name, (unsigned long long)m->address,
                  (long long)(blame == 0 ? at[0] + c->high - 1 : at[blame]), blame,
                  (unsigned long long)tensor_map_dim(m, blame), place);
}

/* All rows do not lie in one allocation: the first that lies in none, or in another. */
static void refuse_first(warp *w, const instruction *i, uint32_t lane, const tensor_copy *c)
{
    tensor_slabs s = tensor_box_slabs(c);
    tensor_slab slab;

    while (tensor_box_next(&s, &slab)) {
        for (uint32_t r = slab.low; r < slab.high; r++, slab.at[1] += slab.stride) {
            uint64_t address = slab.address + (uint64_t)((r - slab.low) * slab.step);
            if (global_range(w, i, MACHINE_NONE, address, c->inside_bytes) == NULL) {
                refuse(w, i, lane, c, slab.at);
                return;
            }
        }
    }
    machine_fault(w, i, lane, c->map.address, FAULT_UNSUPPORTED,
                  "tensor map at %#llx: the rows of a box lie in several allocations",
                  (unsigned long long)c->map.address);
}

static void count_rows(warp *w, const tensor_copy *c, touched_range *t)
{
    tensor_slabs s = tensor_box_slabs(c);
    uint64_t sectors = 0;
    tensor_slab slab;

    while (tensor_box_next(&s, &slab)) {
        uint64_t begin = slab.address;
        for (uint32_t r = slab.low; r < slab.high; r++, begin += (uint64_t)slab.step) {
            uint64_t end = begin + c->inside_bytes;
            sectors += (end - 1) / MACHINE_SECTOR - begin / MACHINE_SECTOR + 1;
            global_mark_lines(t, begin, end);
        }
    }
    if (c->kind == TENSOR_LOAD) {
        w->run->counters.global_load_sectors += sectors;
    } else if (c->kind != TENSOR_PREFETCH) {
        w->run->counters.global_store_sectors += sectors;
    }
}

bool tensor_box_find(warp *w, const instruction *i, uint32_t lane, tensor_copy *c)
{
    tensor_slabs s = tensor_box_slabs(c);
    uint64_t low = UINT64_MAX, high = 0;
    tensor_slab slab;

    while (tensor_box_next(&s, &slab)) {
        if (slab.low < slab.high) {
            uint64_t last = slab.address + (uint64_t)((slab.high - slab.low - 1) * slab.step);
            low = slab.address < low ? slab.address : low;
            high = last + c->inside_bytes > high ? last + c->inside_bytes : high;
        }
    }
    if (high == 0) {
        return true; /* nothing is inside */
    }
    touched_range *t = global_range(w, i, MACHINE_NONE, low, high - low);
    if (t == NULL) {
        if (!w->run->faulted) {
            refuse_first(w, i, lane, c);
        }
        return false;
    }
    bool stores = c->kind == TENSOR_STORE || c->kind == TENSOR_REDUCE;
    if (stores && !global_writable(w, i, lane, low, t->range)) {
        return false;
    }
    c->range = t->range;
    count_rows(w, c, t);
    return true;
}
