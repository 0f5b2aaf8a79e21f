/* kind.h - device kinds: what a winner is valid for. Arch, SM count, shared memory, memory size and
 * bandwidth class, product name (cases.md 20: names alone vary with the driver, SM counts differ
 * under one name). A plain value. */
#ifndef HONE_CACHE_KIND_H
#define HONE_CACHE_KIND_H

#include "core/device.h"

#include <stddef.h>

typedef struct device_kind {
    char name[96]; /* product name, trimmed */
    int32_t arch, sm_count;
    int32_t smem_per_block; /* bytes, opt-in */
    int32_t mem_gib;        /* to the nearest 8 from 32 on: drivers reserve different amounts */
    int32_t mem_100gb_s;    /* bandwidth in steps of 100 GB/s; 0 when unknown */
    bool emulated;          /* its times are modelled */
} device_kind;

void device_kind_of(const device_facts *facts, device_kind *out);

/* How well a winner made on `have` fits the device `want`; `emulated` is not looked at. */
typedef enum device_match {
    DEVICE_OTHER, /* not to be served */
    DEVICE_NEAR, /* same arch, SM count and shared memory under another name, memory or bandwidth */
    DEVICE_SAME,
} device_match;
device_match device_kind_match(const device_kind *have, const device_kind *want);

/* "NVIDIA H20, sm_90, 78 SMs, 227 KiB, 96 GiB, 4.0 TB/s": for people. `text` holds 192 bytes. */
void device_kind_text(const device_kind *kind, char text[192]);

#endif
