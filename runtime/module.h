/* module.h - compiled kernels loaded on a device, and the one way to launch a plan: proving and
 * serving use it.
 *
 * A module is immutable once loaded; several threads may launch it at the same time. */
#ifndef HONE_RUNTIME_MODULE_H
#define HONE_RUNTIME_MODULE_H

#include "runtime/device.h"
#include "runtime/jit.h"
#include "runtime/kept.h"

typedef struct module module;

/* Load what was compiled for `p`: the cubin on a CUDA device, the PTX (with ptxas' figures) on an
 * emulated one. Dynamic shared memory past 48 KiB is opted in to. Borrows the device; copies what
 * it needs of `c`. HONE_UNSUPPORTED when a kernel does not fit the device, HONE_DRIVER when the
 * driver refuses the code. */
hone_status module_load(const device *d, const plan *p, const compiled *c, module **out,
                        hone_error *error);
void module_unload(module *m); /* NULL is fine. Not while a captured graph may still launch it */

/* Launch the plan's launches in order on `stream` (NULL: the default one). `operands` are device
 * addresses in hone_operands' order; `workspace` holds plan.workspace_bytes, of which the first
 * plan.workspace_zeroed are zeroed before. The plan may be another one than at loading (other
 * sizes) as long as its entries are the same. Capture-safe; returns before the kernels end. Makes
 * the device's context current for the call and restores the caller's. */
hone_status module_launch(const module *m, const plan *p, const uint64_t *operands,
                          size_t operands_len, uint64_t workspace, CUstream stream,
                          hone_error *error);

/* The same, with tensor maps that earlier launches of this very plan encoded; what is new is added.
 * `maps` may be NULL. */
hone_status module_launch_kept(const module *m, const plan *p, kept_maps *maps,
                               const uint64_t *operands, size_t operands_len, uint64_t workspace,
                               CUstream stream, hone_error *error);

/* CTAs of the launch's kernel that fit an SM together, as the driver says. */
hone_status module_occupancy(const module *m, const plan *p, uint32_t launch, int32_t *ctas,
                             hone_error *error);

#endif
