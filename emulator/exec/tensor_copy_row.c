/* tensor_copy_row.c - moves the rows of a box: whole ones by copies of 16 bytes, what is outside
 * by a fill. */
#include "emulator/exec/tensor_copy.h"
#include "emulator/machine/access.h"

/* What an element outside becomes where zero is not wanted: a NaN in each float format. The value
 * is not documented. */
enum { FILL_NAN = 0x7ff7 };

typedef struct row_buffer {
    _Alignas(64) uint8_t data[TENSOR_ROW_BYTES], shadow[TENSOR_ROW_BYTES];
} row_buffer;

/* A pattern moves chunks within a line of shared memory; rows this far ahead are fetched early. */
enum { LINE = 128, CHUNK = 16, AHEAD = 8 };

/* 16 bytes, the halves exchanged. */
static void copy_flipped(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from + 8, 8);
    memcpy(to + 8, from, 8);
}

/* A whole line; what is XORed is the same for all of it. Chunk n of `plain` is chunk n ^ x of
 * `line`. */
static inline void put_line(uint8_t *line, const uint8_t *plain, uint32_t x)
{
    for (uint32_t n = 0; n < LINE; n += CHUNK) {
        memcpy(line + (n ^ x), plain + n, CHUNK);
    }
}

static inline void get_line(const uint8_t *line, uint8_t *plain, uint32_t x)
{
    for (uint32_t n = 0; n < LINE; n += CHUNK) {
        memcpy(plain + n, line + (n ^ x), CHUNK);
    }
}

void tensor_row_put(uint8_t *shared, uint32_t at, const uint8_t *row, uint32_t bytes,
                    const tensor_map_pattern *p)
{
    if (p->mask == 0) {
        memcpy(shared + at, row, bytes);
        return;
    }
    if (bytes == LINE && at % LINE == 0 && p->flip == 0) {
        put_line(shared + at, row, at >> p->shift & p->mask);
        return;
    }
    for (uint32_t n = 0; n < bytes; n += CHUNK) {
        uint8_t *to = shared + tensor_row_at(at + n, p);
        if ((at & p->flip) != 0) {
            copy_flipped(to, row + n);
        } else {
            memcpy(to, row + n, CHUNK);
        }
    }
}

void tensor_row_get(const uint8_t *shared, uint32_t at, uint8_t *row, uint32_t bytes,
                    const tensor_map_pattern *p)
{
    if (p->mask == 0) {
        memcpy(row, shared + at, bytes);
        return;
    }
    if (bytes == LINE && at % LINE == 0 && p->flip == 0) {
        get_line(shared + at, row, at >> p->shift & p->mask);
        return;
    }
    for (uint32_t n = 0; n < bytes; n += CHUNK) {
        const uint8_t *from = shared + tensor_row_at(at + n, p);
        if ((at & p->flip) != 0) {
            copy_flipped(row + n, from);
        } else {
            memcpy(row + n, from, CHUNK);
        }
    }
}

static const uint8_t written[TENSOR_ROW_BYTES] = {[0 ... TENSOR_ROW_BYTES - 1] = ACCESS_IS_WRITTEN};

static bool is_whole(const uint8_t *shadow, uint64_t bytes)
{
    return memcmp(shadow, written, bytes) == 0;
}

/* tf32 keeps 10 fraction bits; to nearest, ties away from zero, as cvt.rna does. How the engine
 * rounds is not documented. */
static uint32_t to_tf32(uint32_t bits)
{
    bool finite = (bits & 0x7f800000) != 0x7f800000;
    return finite ? (bits + 0x1000) & 0xffffe000 : bits;
}

static bool converts(const tensor_map *m)
{
    return m->type == TENSOR_MAP_F32_FTZ || m->type == TENSOR_MAP_TF32 ||
           m->type == TENSOR_MAP_TF32_FTZ;
}

static void convert(const tensor_map *m, uint8_t *row, uint64_t bytes)
{
    for (uint64_t n = 0; n < bytes; n += 4) {
        uint32_t bits = 0;
        memcpy(&bits, row + n, 4);
        if (m->type != TENSOR_MAP_TF32 && (bits & 0x7f800000) == 0) {
            bits &= 0x80000000; /* a subnormal */
        }
        bits = m->type == TENSOR_MAP_F32_FTZ ? bits : to_tf32(bits);
        memcpy(row + n, &bits, 4);
    }
}

/* Between dense elements in global memory, and 16 of them in each 16 bytes of shared memory. */
static void spread(const tensor_map *m, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    uint32_t group = tensor_map_types[m->type].global_bytes;

    for (uint64_t n = 0; n * group < bytes; n++) {
        memcpy(to + n * 16, from + n * group, group);
    }
}

static void gather(const tensor_map *m, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    uint32_t group = tensor_map_types[m->type].global_bytes;

    for (uint64_t n = 0; n * group < bytes; n++) {
        memcpy(to + n * group, from + n * 16, group);
    }
}

/* A row with nothing inside. */
static void fill_row(const tensor_copy *c, row_buffer *b)
{
    uint16_t nan = FILL_NAN;

    memset(b->data, 0, c->row_bytes);
    memset(b->shadow, ACCESS_IS_WRITTEN, c->row_bytes);
    for (uint32_t n = 0; c->map.fill != 0 && n < c->row_bytes; n += 2) {
        memcpy(b->data + n, &nan, 2);
    }
}

/* A row of shared memory from the bytes at `address`: what is outside filled, elements converted,
 * gaps left as never written. */
static void build_row(const tensor_copy *c, uint64_t address, row_buffer *b)
{
    const tensor_map *m = &c->map;
    const tensor_map_type_facts *t = &tensor_map_types[m->type];
    const uint8_t *data = (const uint8_t *)(uintptr_t)address;
    const uint8_t *shadow = c->range->shadow + (address - c->range->begin);
    uint64_t skip = tensor_map_shared_bytes(m, c->low);

    fill_row(c, b);
    if (t->global_bytes != t->shared_bytes) {
        memset(b->shadow + skip, ACCESS_UNWRITTEN, tensor_map_shared_bytes(m, c->high - c->low));
        spread(m, b->data + skip, data, c->inside_bytes);
        spread(m, b->shadow + skip, shadow, c->inside_bytes);
        return;
    }
    memcpy(b->data + skip, data, c->inside_bytes);
    memcpy(b->shadow + skip, shadow, c->inside_bytes);
    if (converts(m)) {
        convert(m, b->data + skip, c->inside_bytes);
    }
}

/* Where rows go. */
typedef struct destination {
    const tensor_map_pattern *pattern;
    const async_op *op;
    uint32_t at; /* of the next row */
} destination;

static void put(const destination *d, const tensor_copy *c, const uint8_t *data,
                const uint8_t *shadow)
{
    for (uint32_t n = 0; n < d->op->signals_len; n++) {
        cta *owner = d->op->signals[n].owner;
        tensor_row_put(owner->shared, d->at, data, c->row_bytes, d->pattern);
        if (shadow != NULL) {
            tensor_row_put(owner->shared_shadow, d->at, shadow, c->row_bytes, d->pattern);
        }
    }
}

/* All bytes that rows will come to are marked written; rows that are not correct that later. */
static void mark_written(const async_op *op, const tensor_copy *c, const tensor_map_pattern *p)
{
    for (uint32_t n = 0; n < op->signals_len; n++) {
        uint8_t *shadow = op->signals[n].owner->shared_shadow;
        if (c->pitch == c->row_bytes) {
            memset(shadow + c->at, ACCESS_IS_WRITTEN, tensor_box_extent(c));
            continue;
        }
        for (uint32_t r = 0; r < c->rows; r++) {
            tensor_row_put(shadow, c->at + r * c->pitch, written, c->row_bytes, p);
        }
    }
}

/* 128 shadow bytes at once. */
static inline bool is_whole_line(const uint8_t *shadow)
{
    uint64_t all = ACCESS_WRITTEN;

    for (uint32_t n = 0; n < LINE; n += 8) {
        uint64_t next;
        memcpy(&next, shadow + n, sizeof next);
        all &= next;
    }
    return all == ACCESS_WRITTEN;
}

/* Rows of a line, as most boxes have them, to one destination. */
static void load_lines(const tensor_copy *c, const tensor_slab *slab, const destination *d,
                       cta *owner)
{
    const uint8_t *data = (const uint8_t *)(uintptr_t)slab->address;
    const uint8_t *shadow = c->range->shadow + (slab->address - c->range->begin);
    uint32_t at = d->at;

    for (uint32_t r = slab->low; r < slab->high; r++, at += LINE) {
        uint32_t x = at >> d->pattern->shift & d->pattern->mask;
        __builtin_prefetch(data + AHEAD * slab->step);
        __builtin_prefetch(data + AHEAD * slab->step + 64);
        if (!c->range->whole) {
            __builtin_prefetch(shadow + AHEAD * slab->step);
            __builtin_prefetch(shadow + AHEAD * slab->step + 64);
        }
        put_line(owner->shared + at, data, x);
        if (!c->range->whole && !is_whole_line(shadow)) {
            put_line(owner->shared_shadow + at, shadow, x);
        }
        data += slab->step;
        shadow += slab->step;
    }
}

/* Whole rows of one size on both sides: copied as they are. */
static void load_whole(const tensor_copy *c, const tensor_slab *slab, destination *d)
{
    const uint8_t *data = (const uint8_t *)(uintptr_t)slab->address;
    const uint8_t *shadow = c->range->shadow + (slab->address - c->range->begin);

    if (c->row_bytes == LINE && c->pitch == LINE && d->pattern->flip == 0) {
        for (uint32_t n = 0; n < d->op->signals_len; n++) {
            load_lines(c, slab, d, d->op->signals[n].owner);
        }
        d->at += (slab->high - slab->low) * LINE;
        return;
    }
    for (uint32_t r = slab->low; r < slab->high; r++, d->at += c->pitch) {
        bool whole = c->range->whole || is_whole(shadow, c->row_bytes);
        put(d, c, data, whole ? NULL : shadow);
        data += slab->step;
        shadow += slab->step;
    }
}

static void load_parts(const tensor_copy *c, const tensor_slab *slab, destination *d)
{
    uint64_t address = slab->address;
    row_buffer b;

    for (uint32_t r = slab->low; r < slab->high; r++, d->at += c->pitch) {
        build_row(c, address, &b);
        put(d, c, b.data, is_whole(b.shadow, c->row_bytes) ? NULL : b.shadow);
        address += (uint64_t)slab->step;
    }
}

bool tensor_copy_load(async_op *op)
{
    const tensor_copy *c = (const tensor_copy *)(const void *)op->payload;
    destination d = {&tensor_map_patterns[c->map.swizzle], op, c->at};
    bool whole = c->inside_bytes == c->row_bytes && !converts(&c->map);
    tensor_slabs s = tensor_box_slabs(c);
    tensor_slab slab;
    row_buffer outside;

    fill_row(c, &outside);
    mark_written(op, c, d.pattern);
    while (tensor_box_next(&s, &slab)) {
        for (uint32_t r = 0; r < slab.low; r++, d.at += c->pitch) {
            put(&d, c, outside.data, NULL);
        }
        if (whole && slab.low < slab.high) {
            load_whole(c, &slab, &d);
        } else {
            load_parts(c, &slab, &d);
        }
        for (uint32_t r = slab.high; r < slab.rows; r++, d.at += c->pitch) {
            put(&d, c, outside.data, NULL);
        }
    }
    return true;
}

/* A source byte that nobody wrote, or that an operation is about to: only where it would reach
 * global memory. */
static bool check_source(const async_op *op, const tensor_copy *c, const uint8_t *shadow,
                         uint32_t row)
{
    uint64_t from = tensor_map_shared_bytes(&c->map, c->low);
    uint64_t to = tensor_map_shared_bytes(&c->map, c->high);
    uint32_t group = tensor_map_types[c->map.type].global_bytes;
    bool padded = group != tensor_map_types[c->map.type].shared_bytes;

    for (uint64_t n = from; n < to; n++) {
        if (shadow[n] == ACCESS_IS_WRITTEN || (padded && n % 16 >= group)) {
            continue;
        }
        bool pending = (shadow[n] & ACCESS_PENDING) != 0;
        if (!machine_checks(op->by,
                            pending ? HONE_EMU_CHECK_ASYNC : HONE_EMU_CHECK_UNINITIALISED)) {
            continue;
        }
        machine_fault(op->by, op->i, op->lane, c->at, pending ? FAULT_ASYNC : FAULT_UNINITIALISED,
                      "byte %llu of row %u of the box at %u of shared memory %s",
                      (unsigned long long)n, row, c->at,
                      pending ? "is still to be written by a copy on its way"
                              : "was never written and reaches global memory");
        return false;
    }
    return true;
}

bool tensor_copy_fetch(async_op *op)
{
    tensor_copy *c = (tensor_copy *)(void *)op->payload;
    const tensor_map_pattern *p = &tensor_map_patterns[c->map.swizzle];
    tensor_slabs s = tensor_box_slabs(c);
    uint32_t at = c->at, row = 0;
    uint8_t *to = c->data;
    tensor_slab slab;
    row_buffer b;

    while (tensor_box_next(&s, &slab)) {
        for (uint32_t r = 0; r < slab.rows; r++, at += c->pitch, to += c->row_bytes, row++) {
            tensor_row_get(c->source->shared, at, to, c->row_bytes, p);
            tensor_row_get(c->source->shared_shadow, at, b.shadow, c->row_bytes, p);
            bool inside = r >= slab.low && r < slab.high;
            if (inside && !check_source(op, c, b.shadow, row)) {
                return false;
            }
        }
    }
    return true;
}

/* A reduction adds to what lies there: garbage, where nobody wrote. */
static bool check_reduced(const async_op *op, const tensor_copy *c, uint64_t address)
{
    const uint8_t *shadow = c->range->shadow + (address - c->range->begin);
    const uint8_t *bad = memchr(shadow, ACCESS_UNWRITTEN, c->inside_bytes);

    if (bad == NULL || !machine_checks(op->by, HONE_EMU_CHECK_UNINITIALISED)) {
        return true;
    }
    machine_fault(
        op->by, op->i, op->lane, address + (uint64_t)(bad - shadow), FAULT_UNINITIALISED,
        "byte %llu of a row of the box, in global memory, is reduced and was never written",
        (unsigned long long)(bad - shadow));
    return false;
}

bool tensor_copy_store(async_op *op)
{
    tensor_copy *c = (tensor_copy *)(void *)op->payload;
    const tensor_map_type_facts *t = &tensor_map_types[c->map.type];
    const uint8_t *from = c->data + tensor_map_shared_bytes(&c->map, c->low);
    tensor_slabs s = tensor_box_slabs(c);
    tensor_slab slab;

    while (tensor_box_next(&s, &slab)) {
        uint64_t address = slab.address;
        const uint8_t *row = from + (uint64_t)slab.low * c->row_bytes;
        for (uint32_t r = slab.low; r < slab.high; r++, row += c->row_bytes) {
            uint8_t *to = (uint8_t *)(uintptr_t)address;
            if (c->kind == TENSOR_REDUCE) {
                if (!check_reduced(op, c, address)) {
                    return false;
                }
                tensor_reduce(&c->map, c->reduction, to, row, c->high - c->low);
            } else if (t->global_bytes != t->shared_bytes) {
                gather(&c->map, to, row, c->inside_bytes);
            } else {
                memcpy(to, row, c->inside_bytes);
            }
            if (c->kind == TENSOR_STORE) {
                memset(c->range->shadow + (address - c->range->begin), ACCESS_IS_WRITTEN,
                       c->inside_bytes);
            }
            address += (uint64_t)slab.step;
        }
        from += (uint64_t)slab.rows * c->row_bytes;
    }
    return true;
}
