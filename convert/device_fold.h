/* device_fold.h - tiles folded or requantised on a device, by the templates mxfp4_fold/blocks and
 * weight_quant/blocks: the bytes are the host's (convert/fold_tile.h, convert/requantise_tile.h),
 * which still works out what they cost. */
#ifndef HONE_CONVERT_DEVICE_FOLD_H
#define HONE_CONVERT_DEVICE_FOLD_H

#include "convert/fold_tile.h"
#include "convert/requantise_tile.h"
#include "core/status.h"

typedef struct device_fold device_fold;

/* Open a device ("auto", "cuda:0", "emu:h20"), with room for tiles of `elements` elements and as
 * many new scales as groups of 32; compiles nothing yet. Caller closes *out. As device_open. */
hone_status device_fold_open(const char *spec, uint64_t elements, device_fold **out,
                             hone_error *error);
void device_fold_close(device_fold *f); /* NULL is fine */

/* What a caller should show: times are modelled; "" when there is nothing. */
const char *device_fold_note(const device_fold *f);

/* Fold a tile whose `out` is dense: tile->out and tile->out_scales are written. All tiles of a
 * handle have one block size. HONE_WRONG when the device's scales are not those that
 * tile->out_scales held before: they come from the host. HONE_COMPILE, HONE_DRIVER, HONE_LIMIT for
 * a tile that is too large. Thread-safe: one tile at a time. */
hone_status device_fold_run(device_fold *f, const fold_tile *tile, hone_error *error);

/* Requantise a tile whose `out` is not its `codes`, and which has no bad scale: tile->out is
 * written; tile->out_scales are the host's, which the device's must be (HONE_WRONG). The rules are
 * weight_quant's pow2_tiny and raw_tiny, its input the values in fp32. HONE_UNSUPPORTED for the
 * rule `nearest` and blocks that no template has; else as device_fold_run. */
hone_status device_fold_requantise(device_fold *f, const requantise_tile *tile, hone_error *error);

#endif
