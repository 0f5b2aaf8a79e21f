/* tensor_copy_map.c - tensormap.replace, tensormap.cp_fenceproxy and the fence that makes a changed
 * map known to the engine. */
#include "emulator/exec/exec.h"
#include "emulator/machine/access.h"
#include "emulator/machine/race.h"
#include "emulator/machine/tensor_map_use.h"

/* The 128 bytes of each lane's map are there, and nothing is about to write them. */
static uint32_t open_maps(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                          uint32_t mask, access_window *win)
{
    ptx_space space = PTX_GLOBAL;
    uint32_t lanes = access_open(w, i, address, mask, TENSOR_MAP_BYTES, &space, win);
    bool constant = lanes != 0 && win->range != NULL && win->range->constant;

    if (lanes != 0 && (constant || (space != PTX_GLOBAL && space != PTX_SHARED))) {
        machine_fault(w, i, machine_lowest(lanes), address[machine_lowest(lanes)], FAULT_TENSOR_MAP,
                      "a map in %s memory cannot be changed",
                      constant             ? "constant"
                      : space == PTX_PARAM ? "parameter"
                                           : "local");
        return 0;
    }
    if (lanes != 0 && space == PTX_SHARED && !access_unmarked(w, i, lanes, TENSOR_MAP_BYTES, win)) {
        return 0;
    }
    return lanes;
}

static bool is_written(warp *w, const instruction *i, uint32_t lane, const uint8_t *shadow)
{
    if (!machine_checks(w, HONE_EMU_CHECK_UNINITIALISED)) {
        return true;
    }
    for (uint32_t n = 0; n < TENSOR_MAP_BYTES; n++) {
        if ((shadow[n] & ACCESS_IS_WRITTEN) == 0) {
            machine_fault(w, i, lane, 0, FAULT_UNINITIALISED,
                          "byte %u of the map was never written", n);
            return false;
        }
    }
    return true;
}

void exec_tensor_map_replace(warp *w, const instruction *i, uint32_t mask)
{
    uint64_t address[MACHINE_LANES];
    uint32_t left = mask;
    access_window win;

    if (taint_refuse(w, i, i->o[1], mask, "a field of a tensor map") ||
        !access_addresses(w, i, i->o[0], mask, TENSOR_MAP_ALIGN, address)) {
        return;
    }
    while (left != 0) {
        uint32_t lanes = open_maps(w, i, address, left, &win);
        if (lanes == 0 || !race_touch(w, i, win.owner, win.owner != NULL ? win.at : address, lanes,
                                      TENSOR_MAP_BYTES, RACE_WRITE)) {
            return;
        }
        for (EACH_LANE(lane, lanes)) {
            uint64_t value = i->element_bytes == 8 ? machine_r64(w, i->o[1])[lane]
                                                   : machine_r32(w, i->o[1])[lane];
            if (!is_written(w, i, lane, win.shadow + win.at[lane]) ||
                !tensor_map_change(w, i, lane, win.data + win.at[lane], (tensor_map_field)i->kind,
                                   i->elements, value)) {
                return;
            }
        }
        left &= ~lanes;
    }
}

/* All lanes together: one copy from shared to global memory, and a release of it. */
void exec_tensor_map_publish(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t lane = machine_lowest(mask), one = UINT32_C(1) << lane;
    uint64_t from[MACHINE_LANES], to[MACHINE_LANES];
    uint64_t at = machine_r64(w, i->o[1])[lane];
    access_window win;

    if (taint_refuse(w, i, i->o[1], mask, "the address of a tensor map") ||
        !access_addresses(w, i, i->o[0], one, TENSOR_MAP_BYTES, from)) {
        return;
    }
    if (at % TENSOR_MAP_BYTES != 0) {
        machine_fault(w, i, lane, at, FAULT_MISALIGNED,
                      "tensor map at %#llx, which is not a multiple of %d", (unsigned long long)at,
                      TENSOR_MAP_BYTES);
        return;
    }
    touched_range *t = global_range(w, i, lane, at, TENSOR_MAP_BYTES);
    if (t == NULL || !global_writable(w, i, lane, at, t->range) ||
        open_maps(w, i, from, one, &win) != one) {
        return;
    }
    for (uint32_t n = 0; n < MACHINE_LANES; n++) {
        to[n] = at;
    }
    if (!race_touch(w, i, win.owner, win.at, one, TENSOR_MAP_BYTES, RACE_READ) ||
        !race_touch(w, i, NULL, to, one, TENSOR_MAP_BYTES, RACE_WRITE)) {
        return;
    }
    memcpy((uint8_t *)(uintptr_t)at, win.data + win.at[lane], TENSOR_MAP_BYTES);
    memcpy(t->range->shadow + (at - t->range->begin), win.shadow + win.at[lane], TENSOR_MAP_BYTES);
    tensor_map_date(w, (uint8_t *)(uintptr_t)at);
    global_mark_lines(t, at, at + TENSOR_MAP_BYTES);
    w->run->counters.global_store_bytes += TENSOR_MAP_BYTES;
    w->run->counters.global_store_sectors += TENSOR_MAP_BYTES / MACHINE_SECTOR;
}

static void each_map(warp *w, const instruction *i, uint32_t mask,
                     bool (*act)(warp *w, const instruction *i, uint32_t lane, uint64_t address))
{
    const uint64_t *address = machine_r64(w, i->o[0]);

    if (taint_refuse(w, i, i->o[0], mask, "the address of a tensor map")) {
        return;
    }
    for (EACH_LANE(lane, mask)) {
        if (!act(w, i, lane, address[lane])) {
            return;
        }
    }
}

void exec_tensor_map_acquire(warp *w, const instruction *i, uint32_t mask)
{
    each_map(w, i, mask, tensor_map_acquire);
}

void exec_tensor_map_prefetch(warp *w, const instruction *i, uint32_t mask)
{
    each_map(w, i, mask, tensor_map_exists);
}
