/* memory.c - global memory of an emulated device: one sparse arena, a sorted table of ranges, a
 * quarantine.
 *
 * The arena and its shadow are reserved once and cost nothing until touched. Space is handed out by
 * a cursor that runs upwards, so that a freed address stays in quarantine as long as possible
 * before it is used again. */
#include "emulator/machine/memory.h"

#include "core/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,   /* red zones and blocks are whole pages, so that freed ones can be dropped */
    GRANULE = 256, /* what an allocation is charged for, in multiples */
    QUARANTINE_MAX = 16384, /* freed ranges kept: a bound on the table, not on what they cover */
    ARENA_FACTOR = 2,       /* arena over capacity: room for gaps and for what is in quarantine */
};

typedef struct block {
    memory_range range; /* first: a range that was found is its block */
    bool adopted;       /* the host's bytes and a shadow of their own, outside the arena */
    struct block *next; /* in quarantine, oldest first */
} block;

struct device_memory {
    uint64_t capacity, used, epoch;
    memory_budget *budget; /* NULL: whatever the host has */
    uint64_t charged;      /* of it, by this memory */
    uint8_t *arena, *shadow;
    uint64_t arena_bytes, cursor; /* cursor: offset of the next free page in the arena */
    block **table;                /* sorted by begin */
    size_t table_len, table_capacity;
    block *oldest, *newest;
    size_t quarantine_len;
};

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* A mapping that may be larger than the machine: pages exist when they are first written. */
static uint8_t *map_sparse(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Ask for huge pages, or no more of them, where they lie inside a large allocation: kernels take
 * rows far apart, and looking up a page for each costs as much as what is in it. Pages are given
 * for bytes that the budget has been charged for, and no others. A host without them goes on. */
static void advise_huge(uint64_t begin, uint64_t bytes, int advice)
{
    enum { HUGE_PAGE = 2 << 20 };
    uint64_t from = round_up(begin, HUGE_PAGE), end = (begin + bytes) / HUGE_PAGE * HUGE_PAGE;

    if (bytes >= 2 * HUGE_PAGE && end > from) {
        madvise((void *)(uintptr_t)from, end - from, advice);
    }
}

static void advise_range(const memory_range *r, int advice)
{
    uint64_t pages = round_up(r->end - r->begin, PAGE);

    advise_huge(r->begin, pages, advice);
    advise_huge((uint64_t)(uintptr_t)r->shadow, pages, advice);
}

hone_status memory_open(uint64_t capacity, device_memory **out, hone_error *error)
{
    if (capacity == 0 || capacity > UINT64_C(1) << 42) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "a device memory of %" PRIu64
                          " bytes; between 1 byte and 4 TiB are possible",
                          capacity);
    }
    device_memory *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "memory table");
    }
    m->capacity = capacity;
    m->cursor = PAGE;
    m->arena_bytes = round_up(capacity, PAGE) * ARENA_FACTOR + (UINT64_C(64) << 20);
    m->arena = map_sparse(m->arena_bytes);
    m->shadow = map_sparse(m->arena_bytes);
    if (m->arena == NULL || m->shadow == NULL) {
        uint64_t bytes = m->arena_bytes;
        memory_close(m);
        return status_set(error, HONE_NO_MEMORY, NULL, 0,
                          "reserving 2 x %" PRIu64
                          " bytes of address space for the emulated memory; "
                          "vm.overcommit_memory=2 or a ulimit -v refuses it",
                          bytes);
    }
    *out = m;
    return HONE_OK;
}

void memory_set_budget(device_memory *m, memory_budget *budget)
{
    m->budget = budget;
}

hone_status memory_charge(device_memory *m, uint64_t bytes, hone_error *error)
{
    memory_budget *b = m->budget;

    if (b == NULL) {
        return HONE_OK;
    }
    uint64_t used = __atomic_load_n(&b->used, __ATOMIC_RELAXED);
    do {
        if (used > b->limit || bytes > b->limit - used) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0,
                              "%" PRIu64 " bytes of host memory for the emulator: %" PRIu64
                              " of %" PRIu64 " are in use (HONE_EMU_MEMORY)",
                              bytes, used, b->limit);
        }
    } while (!__atomic_compare_exchange_n(&b->used, &used, used + bytes, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    __atomic_add_fetch(&m->charged, bytes, __ATOMIC_RELAXED);
    return HONE_OK;
}

void memory_discharge(device_memory *m, uint64_t bytes)
{
    if (m->budget != NULL) {
        __atomic_sub_fetch(&m->budget->used, bytes, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&m->charged, bytes, __ATOMIC_RELAXED);
    }
}

static void destroy_block(block *b)
{
    if (b->adopted) {
        munmap(b->range.shadow, b->range.end - b->range.begin);
    }
    free(b);
}

void memory_close(device_memory *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < m->table_len; i++) {
        destroy_block(m->table[i]);
    }
    if (m->arena != NULL) {
        munmap(m->arena, m->arena_bytes);
    }
    if (m->shadow != NULL) {
        munmap(m->shadow, m->arena_bytes);
    }
    memory_discharge(m, m->charged);
    free(m->table);
    free(m);
}

/* Index of the first block that begins above `address`. */
static size_t table_above(const device_memory *m, uint64_t address)
{
    size_t low = 0, high = m->table_len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->table[middle]->range.begin <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const memory_range *memory_find(const device_memory *m, uint64_t address)
{
    size_t above = table_above(m, address);
    if (above == 0 || address >= m->table[above - 1]->range.end) {
        return NULL;
    }
    return &m->table[above - 1]->range;
}

static hone_status table_insert(device_memory *m, block *b, hone_error *error)
{
    if (m->table_len == m->table_capacity) {
        size_t capacity = m->table_capacity != 0 ? m->table_capacity * 2 : 64;
        block **table = realloc(m->table, capacity * sizeof *table);
        if (table == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "memory table of %zu ranges",
                              capacity);
        }
        m->table = table;
        m->table_capacity = capacity;
    }
    size_t at = table_above(m, b->range.begin);
    memmove(m->table + at + 1, m->table + at, (m->table_len - at) * sizeof *m->table);
    m->table[at] = b;
    m->table_len++;
    return HONE_OK;
}

static void table_remove(device_memory *m, const block *b)
{
    size_t at = table_above(m, b->range.begin) - 1;
    m->table_len--;
    memmove(m->table + at, m->table + at + 1, (m->table_len - at) * sizeof *m->table);
}

static void evict_oldest(device_memory *m)
{
    block *b = m->oldest;
    m->oldest = b->next;
    if (m->oldest == NULL) {
        m->newest = NULL;
    }
    m->quarantine_len--;
    table_remove(m, b);
    destroy_block(b);
}

/* The first gap of `bytes` pages with a page of red zone on both sides, from the arena's start. */
static bool first_gap(const device_memory *m, uint64_t bytes, uint64_t *offset)
{
    uint64_t base = (uint64_t)(uintptr_t)m->arena, at = PAGE;
    for (size_t i = 0; i < m->table_len; i++) {
        const block *b = m->table[i];
        if (b->adopted) {
            continue;
        }
        if (b->range.begin - base >= at + bytes + PAGE) {
            break;
        }
        at = round_up(b->range.end - base, PAGE) + PAGE;
    }
    *offset = at;
    return at + bytes + PAGE <= m->arena_bytes;
}

/* Where `bytes` (whole pages) go: at the cursor, or, once the arena is used up, into gaps of what
 * is live. */
static bool place(device_memory *m, uint64_t bytes, uint64_t *offset)
{
    if (m->cursor + bytes + PAGE <= m->arena_bytes) {
        *offset = m->cursor;
        m->cursor += bytes + PAGE;
        return true;
    }
    while (m->oldest != NULL) {
        evict_oldest(m);
    }
    return first_gap(m, bytes, offset);
}

hone_status memory_allocate(device_memory *m, uint64_t bytes, uint64_t *address, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t offset = 0, host = 0; /* host: contents and shadow */
    block *b = NULL;

    if (bytes == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "an allocation of 0 bytes");
    }
    if (bytes > m->capacity || round_up(bytes, GRANULE) > m->capacity - m->used) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0,
                          "%" PRIu64 " bytes asked for, %" PRIu64 " of the device's %" PRIu64
                          " are free",
                          bytes, m->capacity - m->used, m->capacity);
    }
    TRY(memory_charge(m, 2 * round_up(bytes, PAGE), error));
    host = 2 * round_up(bytes, PAGE);
    b = calloc(1, sizeof *b);
    if (b == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "memory range");
        goto done;
    }
    if (!place(m, round_up(bytes, PAGE), &offset)) {
        status =
            status_set(error, HONE_NO_MEMORY, NULL, 0,
                       "no gap of %" PRIu64 " bytes: the emulated memory is fragmented", bytes);
        goto done;
    }
    b->range.begin = (uint64_t)(uintptr_t)(m->arena + offset);
    b->range.end = b->range.begin + bytes;
    b->range.shadow = m->shadow + offset;
    TRY(table_insert(m, b, error));
    advise_range(&b->range, MADV_HUGEPAGE);
    m->used += round_up(bytes, GRANULE);
    *address = b->range.begin;
    b = NULL;
    host = 0;
done:
    memory_discharge(m, host);
    free(b);
    return status;
}

hone_status memory_adopt(device_memory *m, void *host, uint64_t bytes, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t begin = (uint64_t)(uintptr_t)host, end = 0;
    block *b = NULL;
    uint8_t *shadow = NULL;
    uint64_t charged = 0;

    if (host == NULL || bytes == 0 || !checked_add_u64(begin, bytes, &end)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "host memory of %" PRIu64 " bytes at %p cannot be mapped", bytes, host);
    }
    size_t above = table_above(m, end - 1);
    if (above > 0 && m->table[above - 1]->range.end > begin) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "host memory at %p overlaps memory that the device already has", host);
    }
    TRY(memory_charge(m, bytes, error));
    charged = bytes;
    b = calloc(1, sizeof *b);
    shadow = map_sparse(bytes);
    if (b == NULL || shadow == NULL) {
        status =
            status_set(error, HONE_NO_MEMORY, NULL, 0, "shadow of %" PRIu64 " host bytes", bytes);
        goto done;
    }
    memset(shadow, 1, bytes); /* the host may have written any of it, unseen */
    *b = (block){.range = {.begin = begin, .end = end, .shadow = shadow, .whole = true},
                 .adopted = true};
    TRY(table_insert(m, b, error));
    b = NULL;
    shadow = NULL;
    charged = 0;
done:
    memory_discharge(m, charged);
    free(b);
    if (shadow != NULL) {
        munmap(shadow, bytes);
    }
    return status;
}

/* The live block that begins at `address`. */
static block *block_at(const device_memory *m, uint64_t address)
{
    size_t above = table_above(m, address);
    block *b = above > 0 ? m->table[above - 1] : NULL;
    return b != NULL && b->range.begin == address && !b->range.freed ? b : NULL;
}

void memory_set_constant(device_memory *m, uint64_t address)
{
    block *b = block_at(m, address);
    if (b != NULL) {
        b->range.constant = true;
    }
}

void memory_set_whole(device_memory *m, const memory_range *range, bool whole)
{
    block *b = block_at(m, range->begin);
    if (b != NULL) {
        b->range.whole = whole;
    }
}

void memory_forget_whole(device_memory *m)
{
    for (size_t n = 0; n < m->table_len; n++) {
        m->table[n]->range.whole = false;
    }
}

static hone_status not_an_allocation(const device_memory *m, uint64_t address, hone_error *error)
{
    const memory_range *range = memory_find(m, address);
    const char *why = range == NULL  ? "nothing is allocated there"
                      : range->freed ? "it was freed before"
                                     : "it lies inside an allocation, or is of the other kind";
    return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "freeing 0x%" PRIx64 ": %s", address, why);
}

hone_status memory_release(device_memory *m, const void *host, hone_error *error)
{
    uint64_t address = (uint64_t)(uintptr_t)host;
    block *b = block_at(m, address);
    if (b == NULL || !b->adopted) {
        return not_an_allocation(m, address, error);
    }
    table_remove(m, b);
    memory_discharge(m, b->range.end - b->range.begin);
    destroy_block(b);
    return HONE_OK;
}

hone_status memory_free(device_memory *m, uint64_t address, hone_error *error)
{
    block *b = block_at(m, address);
    if (b == NULL || b->adopted) {
        return not_an_allocation(m, address, error);
    }
    uint64_t bytes = b->range.end - b->range.begin, pages = round_up(bytes, PAGE);
    madvise((void *)(uintptr_t)b->range.begin, pages, MADV_DONTNEED);
    madvise(b->range.shadow, pages, MADV_DONTNEED);
    advise_range(&b->range, MADV_NOHUGEPAGE);
    memory_discharge(m, 2 * pages);
    m->used -= round_up(bytes, GRANULE);
    b->range.freed = true;
    b->next = NULL;
    if (m->newest != NULL) {
        m->newest->next = b;
    } else {
        m->oldest = b;
    }
    m->newest = b;
    if (++m->quarantine_len > QUARANTINE_MAX) {
        evict_oldest(m);
    }
    return HONE_OK;
}

void memory_info(const device_memory *m, uint64_t *used, uint64_t *capacity)
{
    *used = m->used;
    *capacity = m->capacity;
}

void memory_begin_epoch(device_memory *m)
{
    m->epoch++;
}

uint64_t memory_epoch(const device_memory *m)
{
    return m->epoch;
}
