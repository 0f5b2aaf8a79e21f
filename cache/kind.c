/* kind.c - device kinds from device facts. */
#include "cache/kind.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define GIB ((int64_t)1 << 30)

/* Drivers and hypervisors keep different amounts for themselves: large memories are told apart in
 * steps of 8 GiB. */
static int32_t memory_class(int64_t bytes)
{
    int64_t gib = (bytes + GIB / 2) / GIB;

    return (int32_t)(gib < 32 ? gib : (bytes + 4 * GIB) / (8 * GIB) * 8);
}

void device_kind_of(const device_facts *facts, device_kind *out)
{
    const char *name = facts->name;

    memset(out, 0, sizeof *out);
    while (isspace((unsigned char)*name)) {
        name++;
    }
    size_t len = strnlen(name, sizeof out->name - 1);
    while (len > 0 && isspace((unsigned char)name[len - 1])) {
        len--;
    }
    memcpy(out->name, name, len);
    out->arch = facts->arch;
    out->sm_count = facts->sm_count;
    out->smem_per_block = facts->smem_per_block;
    out->mem_gib = memory_class(facts->mem_bytes);
    out->mem_100gb_s = (int32_t)((facts->mem_bytes_per_s + 50000000000) / 100000000000);
    out->emulated = facts->emulated;
}

device_match device_kind_match(const device_kind *have, const device_kind *want)
{
    bool same_build = have->arch == want->arch && have->sm_count == want->sm_count &&
                      have->smem_per_block == want->smem_per_block;
    bool same_bandwidth =
        have->mem_100gb_s == 0 || want->mem_100gb_s == 0 || have->mem_100gb_s == want->mem_100gb_s;

    if (!same_build) {
        return DEVICE_OTHER;
    }
    return strcmp(have->name, want->name) == 0 && have->mem_gib == want->mem_gib && same_bandwidth
               ? DEVICE_SAME
               : DEVICE_NEAR;
}

void device_kind_text(const device_kind *kind, char text[192])
{
    char arch[16];

    device_arch_text(kind->arch, arch);
    snprintf(text, 192, "%s%s, %s, %d SMs, %d KiB, %d GiB, %d.%d TB/s", kind->name,
             kind->emulated ? " (emulated)" : "", arch, kind->sm_count, kind->smem_per_block / 1024,
             kind->mem_gib, kind->mem_100gb_s / 10, kind->mem_100gb_s % 10);
}
