/* fault.c - files the first fault of a launch: where it happened, and what the driver reports for
 * it. */
#include "emulator/machine/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* CUresult values, from cuda.h: 700 illegal address, 702 launch timeout, 710 assert, 715 illegal
 * instruction, 716 misaligned address, 719 launch failed. */
static const struct {
    const char *name;
    int32_t result;
} kinds[] = {
    [FAULT_OUT_OF_BOUNDS] = {"out-of-bounds", 700},
    [FAULT_USE_AFTER_FREE] = {"use-after-free", 700},
    [FAULT_MISALIGNED] = {"misaligned", 716},
    [FAULT_UNINITIALISED] = {"uninitialised", 719},
    [FAULT_DEADLOCK] = {"deadlock", 702},
    [FAULT_BARRIER_DIVERGENCE] = {"barrier-divergence", 719},
    [FAULT_HANG] = {"hang", 702},
    [FAULT_TRAP] = {"trap", 719},
    [FAULT_ASSERT] = {"assert", 710},
    [FAULT_UNSUPPORTED] = {"unsupported", 715},
    [FAULT_RACE] = {"race", 719},
    [FAULT_ASYNC] = {"async-misuse", 719},
    [FAULT_PROXY] = {"proxy-fence", 719},
    [FAULT_MEMBERMASK] = {"membermask", 719},
    [FAULT_MBARRIER] = {"mbarrier", 719},
    [FAULT_TENSOR_MAP] = {"tensor-map", 719},
    [FAULT_REGISTERS] = {"registers", 719},
    [FAULT_PRECONDITION] = {"precondition", 719},
};

void machine_fault(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                   machine_fault_kind kind, const char *format, ...)
{
    run_state *run = w->run;
    hone_emu_fault *f = &run->fault;
    va_list arguments;

    if (run->faulted) {
        return;
    }
    run->faulted = true;
    f->result = kinds[kind].result;
    snprintf(f->kind, sizeof f->kind, "%s", kinds[kind].name);
    snprintf(f->kernel, sizeof f->kernel, "%s", run->kernel->name);
    va_start(arguments, format);
    vsnprintf(f->message, sizeof f->message, format, arguments);
    va_end(arguments);
    source_fill_fault(run->kernel, i, f);
    f->warp = (int32_t)w->index;
    f->lane = (int32_t)lane;
    f->cta = w->cta->linear;
    f->address = address;
}
