/* tensor_copy_count.c - what a box costs shared memory. */
#include "emulator/exec/tensor_copy.h"

#include <string.h>

enum { CHUNK = 16, GROUPS = MACHINE_LINE / CHUNK }; /* four banks give a chunk */

/* The engine is taken to move 128 bytes of a box at once, in the box's order, as a warp's 16-byte
 * accesses do. Dense rows never conflict: a pattern exchanges chunks within lines of 128 bytes, and
 * a box begins with one. Rows that are narrower than the pattern's span leave banks out, and meet
 * in others. */
uint32_t tensor_box_wavefronts(const tensor_copy *c)
{
    const tensor_map_pattern *p = &tensor_map_patterns[c->map.swizzle];
    uint32_t in_group[GROUPS] = {0}, worst = 0, sum = 0, chunks = 0;

    if (c->pitch == c->row_bytes) {
        return (tensor_box_bytes(c) + MACHINE_LINE - 1) / MACHINE_LINE;
    }
    for (uint32_t r = 0; r < c->rows; r++) {
        for (uint32_t n = 0; n < c->row_bytes; n += CHUNK) {
            uint32_t group = tensor_row_at(c->at + r * c->pitch + n, p) / CHUNK % GROUPS;
            worst = ++in_group[group] > worst ? in_group[group] : worst;
            if (++chunks % GROUPS == 0) {
                sum += worst;
                worst = 0;
                memset(in_group, 0, sizeof in_group);
            }
        }
    }
    return sum + worst;
}
