/* tensor_map_use.c - finds the map of an operation, and tells stale ones. */
#include "emulator/machine/tensor_map_use.h"

#include <stdlib.h>
#include <string.h>

/* What this CTA's engine holds of an address. */
typedef struct seen_map {
    uint64_t address;
    uint8_t bytes[TENSOR_MAP_BYTES];
} seen_map;

struct tensor_map_seen {
    seen_map *maps;
    uint32_t len, capacity;
};

#define FAULT(kind, ...) machine_fault(w, i, lane, address, kind, __VA_ARGS__)

static seen_map *find(const cta *c, uint64_t address)
{
    for (uint32_t n = 0; c->maps != NULL && n < c->maps->len; n++) {
        if (c->maps->maps[n].address == address) {
            return &c->maps->maps[n];
        }
    }
    return NULL;
}

static bool remember(warp *w, uint64_t address, const uint8_t *bytes)
{
    cta *c = w->cta;
    seen_map *s = find(c, address);

    if (c->maps == NULL) {
        c->maps = calloc(1, sizeof *c->maps);
    }
    if (c->maps == NULL) {
        machine_out_of_memory(w->run);
        return false;
    }
    if (s == NULL) {
        seen_map *list =
            machine_grow(w->run, c->maps->maps, c->maps->len, &c->maps->capacity, sizeof *list);
        if (list == NULL) {
            return false;
        }
        c->maps->maps = list;
    }
    s = s != NULL ? s : &c->maps->maps[c->maps->len++];
    s->address = address;
    memcpy(s->bytes, bytes, sizeof s->bytes);
    return true;
}

/* Its bytes, with their shadow in global memory; NULL after a fault. */
static const uint8_t *find_bytes(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                                 const uint8_t **shadow)
{
    uint64_t offset = address & ~MACHINE_WINDOW(0xff);

    *shadow = NULL;
    if (address % TENSOR_MAP_ALIGN != 0) {
        FAULT(FAULT_MISALIGNED, "tensor map at %#llx, which is not a multiple of %d",
              (unsigned long long)address, TENSOR_MAP_ALIGN);
        return NULL;
    }
    switch (address >> 56) {
    case PTX_PARAM:
        if (offset + TENSOR_MAP_BYTES > w->run->kernel->params_bytes) {
            FAULT(FAULT_OUT_OF_BOUNDS,
                  "tensor map at offset %llu of the parameters; they have %u bytes",
                  (unsigned long long)offset, w->run->kernel->params_bytes);
            return NULL;
        }
        return w->run->launch->params + offset;
    case PTX_SHARED:
    case PTX_LOCAL:
        FAULT(FAULT_TENSOR_MAP,
              "tensor map in %s memory; the engine reads one in global, constant or parameter "
              "memory",
              address >> 56 == PTX_SHARED ? "shared" : "local");
        return NULL;
    default:
        break;
    }
    const touched_range *t = global_range(w, i, lane, address, TENSOR_MAP_BYTES);
    if (t == NULL) {
        return NULL;
    }
    *shadow = t->range->shadow + (address - t->range->begin);
    return (const uint8_t *)(uintptr_t)address;
}

static bool is_written(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                       const uint8_t *shadow)
{
    for (uint32_t n = 0; machine_checks(w, HONE_EMU_CHECK_UNINITIALISED) && n < TENSOR_MAP_BYTES;
         n++) {
        if ((shadow[n] & 1) == 0) {
            FAULT(FAULT_UNINITIALISED, "byte %u of the tensor map at %#llx was never written", n,
                  (unsigned long long)address);
            return false;
        }
    }
    return true;
}

static bool is_fresh(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                     const tensor_map *m)
{
    const seen_map *s = find(w->cta, address);
    const uint8_t *bytes = (const uint8_t *)m;
    uint32_t n = 0;

    if (!machine_checks(w, HONE_EMU_CHECK_PROXY)) {
        return true;
    }
    if (s == NULL && m->epoch == memory_epoch(w->run->launch->memory)) {
        FAULT(FAULT_TENSOR_MAP,
              "tensor map at %#llx was written by this launch, and no "
              "fence.proxy.tensormap::generic.acquire of it came before in this CTA",
              (unsigned long long)address);
        return false;
    }
    if (s == NULL) {
        return remember(w, address, bytes);
    }
    while (n < TENSOR_MAP_BYTES && s->bytes[n] == bytes[n]) {
        n++;
    }
    if (n < TENSOR_MAP_BYTES) {
        FAULT(FAULT_TENSOR_MAP,
              "tensor map at %#llx was changed (byte %u) since this CTA used or acquired it; "
              "fence.proxy.tensormap::generic.acquire comes between",
              (unsigned long long)address, n);
    }
    return n == TENSOR_MAP_BYTES;
}

bool tensor_map_open(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                     tensor_map *out)
{
    hone_error error = {0};
    const uint8_t *shadow = NULL, *bytes = find_bytes(w, i, lane, address, &shadow);

    if (bytes == NULL || (shadow != NULL && !is_written(w, i, lane, address, shadow))) {
        return false;
    }
    memcpy(out, bytes, sizeof *out);
    if (out->magic != TENSOR_MAP_MAGIC) {
        FAULT(FAULT_TENSOR_MAP, "no tensor map at %#llx", (unsigned long long)address);
        return false;
    }
    if (shadow != NULL && !is_fresh(w, i, lane, address, out)) {
        return false;
    }
    if (out->epoch != 0 && tensor_map_check(out, &error) != HONE_OK) {
        FAULT(FAULT_TENSOR_MAP, "tensor map at %#llx: %s", (unsigned long long)address,
              error.message);
        return false;
    }
    return true;
}

bool tensor_map_exists(warp *w, const instruction *i, uint32_t lane, uint64_t address)
{
    const uint8_t *shadow = NULL;

    return find_bytes(w, i, lane, address, &shadow) != NULL;
}

bool tensor_map_acquire(warp *w, const instruction *i, uint32_t lane, uint64_t address)
{
    const uint8_t *shadow = NULL, *bytes = find_bytes(w, i, lane, address, &shadow);

    return bytes != NULL && (shadow == NULL || remember(w, address, bytes));
}

bool tensor_map_change(warp *w, const instruction *i, uint32_t lane, uint8_t *bytes,
                       tensor_map_field field, uint32_t order, uint64_t value)
{
    static const tensor_map zeros;
    hone_error error = {0};
    uint64_t address = value;
    tensor_map m;

    memcpy(&m, bytes, sizeof m);
    if (memcmp(&m, &zeros, sizeof m) == 0) {
        m.magic = TENSOR_MAP_MAGIC;
    }
    if (m.magic != TENSOR_MAP_MAGIC) {
        FAULT(FAULT_TENSOR_MAP, "the 128 bytes are no tensor map");
        return false;
    }
    if (tensor_map_replace(&m, field, order, value, &error) != HONE_OK) {
        FAULT(FAULT_TENSOR_MAP, "%s", error.message);
        return false;
    }
    memcpy(bytes, &m, sizeof m);
    tensor_map_date(w, bytes);
    return true;
}

void tensor_map_date(const warp *w, uint8_t *bytes)
{
    uint64_t magic = 0, epoch = memory_epoch(w->run->launch->memory);

    memcpy(&magic, bytes, sizeof magic);
    if (magic == TENSOR_MAP_MAGIC) {
        memcpy(bytes + offsetof(tensor_map, epoch), &epoch, sizeof epoch);
    }
}

void tensor_map_forget(cta *c)
{
    if (c->maps != NULL) {
        c->maps->len = 0;
    }
}

void tensor_map_close(cta *c)
{
    if (c->maps != NULL) {
        free(c->maps->maps);
        free(c->maps);
        c->maps = NULL;
    }
}
