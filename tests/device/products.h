/* products.h - what the fp8 products' templates give on a device, as goldens: one pinned config of
 * each way that a kernel adds up, a problem whose sizes meet no tile, inputs from a seed. The order
 * of every addition is the kernel's own and the tensor units' arithmetic is the emulator's claim,
 * so that a real device and an emulated one must give the same bits. */
#ifndef HONE_TESTS_DEVICE_PRODUCTS_H
#define HONE_TESTS_DEVICE_PRODUCTS_H

#include "runtime/device.h"
#include "tests/device/golden.h"

typedef struct product {
    const char *name, *template, *problem, *config;
} product;

extern const product products[];
extern const size_t products_len;

/* Whether its template serves the device. HONE_BAD_ARGUMENT, HONE_BAD_MANIFEST. */
hone_status product_is_for(const product *p, const device *d, bool *serves, hone_error *error);

/* Compile it, launch it once and read D: a case is a row of D, its words are the row's bytes. What
 * does not end well is HONE_DRIVER with the reason. late: on an emulated device another order of
 * warps, and copies as late as the rules allow. The caller frees *out. */
hone_status product_ask(const product *p, const device *d, bool late, golden *out,
                        hone_error *error);

#endif
