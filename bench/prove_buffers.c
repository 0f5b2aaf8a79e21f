/* prove_buffers.c - a problem's operands on the device, guarded.
 *
 * An emulated device traps every access outside an allocation by itself, which a red zone of ours
 * would only hide: there operands are allocated exactly. */
#include "bench/prove_parts.h"

#include <stdlib.h>
#include <string.h>

static hone_status allocate(prove_buffers *b, uint64_t bytes, uint64_t *base, hone_error *error)
{
    const driver *d = b->d->driver;
    CUdeviceptr made = 0;
    hone_status status =
        driver_check(d, d->cuMemAlloc(&made, bytes + 2 * b->zone + 1), "cuMemAlloc", error);

    if (status == HONE_OK) {
        *base = made;
    }
    return status;
}

hone_status prove_buffers_open(const device *d, const inputs *in, prove_buffers *out,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    prove_buffers b = {.d = d, .zone = d->driver->emu != NULL ? 0 : VERIFY_RED_ZONE_BYTES};

    TRY(device_enter(d, error));
    for (; b.len < in->len; b.len++) {
        TRY(allocate(&b, in->operand[b.len].bytes, &b.base[b.len], error));
        b.address[b.len] = b.base[b.len] + b.zone;
    }
    TRY(prove_buffers_reset(&b, in, NULL, error));
    *out = b;
    b = (prove_buffers){.d = d};
done:
    prove_buffers_close(&b);
    return status;
}

void prove_buffers_close(prove_buffers *b)
{
    if (b->d == NULL) {
        return;
    }
    device_enter(b->d, NULL);
    for (size_t i = 0; i < b->len; i++) {
        b->d->driver->cuMemFree(b->base[i]);
    }
    if (b->workspace_bytes > 0) {
        b->d->driver->cuMemFree(b->workspace - b->zone);
    }
    memset(b, 0, sizeof *b);
}

hone_status prove_buffers_workspace(prove_buffers *b, uint64_t bytes, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = b->d->driver;
    uint64_t base = 0;

    if (bytes > b->workspace_bytes) {
        TRY(allocate(b, bytes, &base, error));
        if (b->workspace_bytes > 0) {
            d->cuMemFree(b->workspace - b->zone);
        }
        b->workspace = base + b->zone;
        b->workspace_bytes = bytes;
    }
    if (bytes > 0) {
        TRY(driver_check(d, d->cuMemsetD8(b->workspace, VERIFY_POISON, bytes), "cuMemsetD8",
                         error));
    }
done:
    return status;
}

/* Whether an image is one byte over and over, as poisoned outputs are: a fill is cheaper than a
 * copy. */
static bool is_poison(const uint8_t *image, uint64_t bytes)
{
    return bytes > 0 && image[0] == VERIFY_POISON && memcmp(image, image + 1, bytes - 1) == 0;
}

static hone_status reset_one(const prove_buffers *b, const inputs *in, size_t i, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = b->d->driver;
    uint64_t bytes = in->operand[i].bytes;

    if (b->zone > 0) {
        TRY(driver_check(d, d->cuMemsetD8(b->base[i], VERIFY_RED_ZONE_BYTE, b->zone), "cuMemsetD8",
                         error));
        TRY(driver_check(d, d->cuMemsetD8(b->address[i] + bytes, VERIFY_RED_ZONE_BYTE, b->zone),
                         "cuMemsetD8", error));
    }
    if (bytes == 0) {
        return HONE_OK;
    }
    if (is_poison(in->image[i], bytes)) {
        TRY(driver_check(d, d->cuMemsetD8(b->address[i], VERIFY_POISON, bytes), "cuMemsetD8",
                         error));
    } else {
        TRY(driver_check(d, d->cuMemcpyHtoD(b->address[i], in->image[i], bytes), "cuMemcpyHtoD",
                         error));
    }
done:
    return status;
}

hone_status prove_buffers_reset(const prove_buffers *b, const inputs *in, const inputs *loaded,
                                hone_error *error)
{
    hone_status status = HONE_OK;

    for (size_t i = 0; i < in->len; i++) {
        if (loaded == NULL || loaded->image[i] != in->image[i] || in->operand[i].access != 1) {
            TRY(reset_one(b, in, i, error));
        }
    }
done:
    return status;
}

static hone_status zone_hit(const prove_buffers *b, uint64_t address, bool *hit, hone_error *error)
{
    uint8_t zone[VERIFY_RED_ZONE_BYTES];
    const driver *d = b->d->driver;
    hone_status status =
        driver_check(d, d->cuMemcpyDtoH(zone, address, b->zone), "cuMemcpyDtoH", error);

    *hit = status == HONE_OK && verify_red_zone(zone, b->zone) != b->zone;
    return status;
}

hone_status prove_buffers_read(const prove_buffers *b, inputs *out, int *hit, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = b->d->driver;

    *hit = -1;
    for (size_t i = 0; i < out->len; i++) {
        uint64_t bytes = out->operand[i].bytes;
        bool before = false, behind = false;
        if (out->operand[i].access != 1 && bytes > 0) {
            TRY(driver_check(d, d->cuMemcpyDtoH(out->image[i], b->address[i], bytes),
                             "cuMemcpyDtoH", error));
        }
        if (b->zone > 0) {
            TRY(zone_hit(b, b->base[i], &before, error));
            TRY(zone_hit(b, b->address[i] + bytes, &behind, error));
        }
        *hit = before || behind ? (int)i : *hit;
    }
done:
    return status;
}
