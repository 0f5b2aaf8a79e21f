/* handle.c - opaque handles as tagged table indices, and the objects behind them. */
#include "emulator/driver/shim.h"

#include <stdlib.h>

/* A handle is 0x5e | kind | 16 bits of generation | 32 bits of index: not a canonical address, so
 * that a program that follows one stops at once, and a stale one is told from its slot's next
 * owner. */
enum { TAG = 0x5e, TAG_SHIFT = 56, KIND_SHIFT = 48, GENERATION_SHIFT = 32 };

typedef struct slot {
    void *object; /* NULL: free */
    shim_kind kind;
    uint16_t generation;
    uint32_t next_free;
} slot;

/* One process has one driver: handles carry no pointer to a state, so that the state must be
 * global. */
static struct {
    pthread_mutex_t lock;
    slot *slots;
    uint32_t len, capacity, free_head; /* free_head: index + 1; 0: none */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The index of an unused slot, or UINT32_MAX. */
static uint32_t take_slot(void)
{
    if (table.free_head != 0) {
        uint32_t index = table.free_head - 1;
        table.free_head = table.slots[index].next_free;
        return index;
    }
    if (table.len == table.capacity) {
        uint32_t capacity = table.capacity != 0 ? table.capacity * 2 : 64;
        slot *slots = realloc(table.slots, capacity * sizeof *slots);
        if (slots == NULL) {
            return UINT32_MAX;
        }
        table.slots = slots;
        table.capacity = capacity;
    }
    table.slots[table.len] = (slot){0};
    return table.len++;
}

void *shim_handle_new(shim_kind kind, void *object)
{
    uint64_t handle = 0;
    pthread_mutex_lock(&table.lock);
    uint32_t index = take_slot();
    if (index != UINT32_MAX) {
        slot *s = &table.slots[index];
        s->object = object;
        s->kind = kind;
        handle = (uint64_t)TAG << TAG_SHIFT | (uint64_t)kind << KIND_SHIFT |
                 (uint64_t)s->generation << GENERATION_SHIFT | index;
    }
    pthread_mutex_unlock(&table.lock);
    return (void *)(uintptr_t)handle;
}

/* The live slot of a handle, or NULL. The lock is held. */
static slot *find_slot(const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    uint32_t index = (uint32_t)bits;
    if (bits >> TAG_SHIFT != TAG || index >= table.len) {
        return NULL;
    }
    slot *s = &table.slots[index];
    bool same = s->object != NULL && (bits >> KIND_SHIFT & 0xff) == (uint64_t)s->kind &&
                (bits >> GENERATION_SHIFT & 0xffff) == s->generation;
    return same ? s : NULL;
}

void *shim_handle_get(shim_kind kind, const void *handle)
{
    pthread_mutex_lock(&table.lock);
    const slot *s = find_slot(handle);
    void *object = s != NULL && s->kind == kind ? s->object : NULL;
    pthread_mutex_unlock(&table.lock);
    return object;
}

void shim_handle_drop(const void *handle)
{
    pthread_mutex_lock(&table.lock);
    slot *s = find_slot(handle);
    if (s != NULL) {
        s->object = NULL;
        s->generation++;
        s->next_free = table.free_head;
        table.free_head = (uint32_t)(uintptr_t)handle + 1;
    }
    pthread_mutex_unlock(&table.lock);
}

void *shim_object_new(shim_context *c, shim_kind kind, size_t size)
{
    shim_object *object = calloc(1, size);
    if (object == NULL) {
        return NULL;
    }
    object->handle = shim_handle_new(kind, object);
    if (object->handle == NULL) {
        free(object);
        return NULL;
    }
    object->kind = kind;
    object->context = c;
    if (c != NULL) {
        object->next = c->objects;
        if (c->objects != NULL) {
            c->objects->previous = object;
        }
        c->objects = object;
    }
    return object;
}

void *shim_object_get(const shim_context *c, shim_kind kind, const void *handle)
{
    shim_object *object = shim_handle_get(kind, handle);
    return object != NULL && object->context == c ? object : NULL;
}

void shim_object_destroy(shim_object *object)
{
    shim_handle_drop(object->handle);
    if (object->release != NULL) {
        object->release(object);
    }
    if (object->next != NULL) {
        object->next->previous = object->previous;
    }
    if (object->previous != NULL) {
        object->previous->next = object->next;
    } else if (object->context != NULL) {
        object->context->objects = object->next;
    }
    free(object);
}
