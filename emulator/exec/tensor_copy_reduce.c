/* tensor_copy_reduce.c - cp.reduce.async.bulk.tensor: what global memory holds, combined with a
 * box, element by element. */
#include "emulator/exec/tensor_copy.h"
#include "emulator/exec/exec.h"

#include <string.h>

/* By type of the map: how exec_combine reads it, and which reductions PTX gives it. */
#define BIT(kind) (1u << (kind))
#define ORDERED   (BIT(ATOMIC_ADD) | BIT(ATOMIC_MIN) | BIT(ATOMIC_MAX))
#define BITWISE   (BIT(ATOMIC_AND) | BIT(ATOMIC_OR) | BIT(ATOMIC_XOR))
static const struct {
    uint8_t type;
    uint16_t reductions;
} reducible[TENSOR_MAP_TYPES] = {
    [TENSOR_MAP_U32] = {ATOMIC_UNSIGNED, ORDERED | BITWISE | BIT(ATOMIC_INC) | BIT(ATOMIC_DEC)},
    [TENSOR_MAP_S32] = {ATOMIC_SIGNED, ORDERED | BITWISE},
    [TENSOR_MAP_U64] = {ATOMIC_UNSIGNED, ORDERED | BITWISE},
    [TENSOR_MAP_S64] = {ATOMIC_SIGNED, BIT(ATOMIC_MIN) | BIT(ATOMIC_MAX) | BITWISE},
    [TENSOR_MAP_F16] = {ATOMIC_F16, ORDERED},
    [TENSOR_MAP_BF16] = {ATOMIC_BF16, ORDERED},
    [TENSOR_MAP_F32] = {ATOMIC_F32, BIT(ATOMIC_ADD)},
    [TENSOR_MAP_F32_FTZ] = {ATOMIC_F32, BIT(ATOMIC_ADD)},
    [TENSOR_MAP_F64] = {ATOMIC_F64, BIT(ATOMIC_ADD)},
};

bool tensor_reduce_exists(const tensor_map *m, uint32_t reduction)
{
    return (reducible[m->type].reductions >> reduction & 1) != 0;
}

void tensor_reduce(const tensor_map *m, uint32_t reduction, uint8_t *to, const uint8_t *from,
                   uint64_t elements)
{
    uint32_t size = tensor_map_types[m->type].global_bytes / 16u;
    const instruction how = {.kind = (uint8_t)EXEC_ATOMIC(reduction, reducible[m->type].type),
                             .element_bytes = (uint8_t)size};

    for (uint64_t n = 0; n < elements; n++, to += size, from += size) {
        uint64_t old = 0, value = 0;
        memcpy(&old, to, size);
        memcpy(&value, from, size);
        old = exec_combine(&how, old, value);
        memcpy(to, &old, size);
    }
}
