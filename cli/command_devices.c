/* command_devices.c - `hone devices`: the CUDA devices of this machine, and the GPUs that can be
 * emulated. */
#include "cli/options.h"
#include "cli/print.h"

#include "models/perf.h"
#include "runtime/device.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The description that goes with a device: its own, or its product's; false when there is none. */
static bool find_description(const device_entry *entry, gpu *out)
{
    if (strncmp(entry->spec, "emu:", 4) == 0) {
        return gpu_find(entry->spec + 4, out, NULL) == HONE_OK;
    }
    return gpu_find_by_name(entry->facts.name, out, NULL) == HONE_OK;
}

static double tera(const gpu *g, gpu_mma kind)
{
    return perf_peak_flops(g, kind) / 1e12;
}

/* "-" where the unit lacks the kind. */
static void format_tera(const gpu *g, gpu_mma kind, char text[16])
{
    double value = tera(g, kind);

    snprintf(text, 16, value > 0 ? "%.1f" : "-", value);
}

static void print_heading(void)
{
    printf("%-22s %-50s %-8s %4s %6s %7s %7s %7s %7s  %s\n", "device", "name", "arch", "SMs", "MHz",
           "GiB", "GB/s", "bf16", "fp8", "unverified");
}

static void print_device(const device_entry *entry, const gpu *g)
{
    const device_facts *f = &entry->facts;
    char arch[16], bf16[16], fp8[16];

    device_arch_text(f->arch, arch);
    printf("%-22s %-50s %-8s %4d %6d %7.1f %7.0f ", entry->spec, f->name, arch, (int)f->sm_count,
           (int)f->clock_mhz, (double)f->mem_bytes / (1 << 30), (double)f->mem_bytes_per_s / 1e9);
    if (g == NULL) {
        printf("%7s %7s  no description of this product\n", "?", "?");
        return;
    }
    format_tera(g, GPU_MMA_BF16, bf16);
    format_tera(g, GPU_MMA_FP8, fp8);
    printf("%7s %7s  %s\n", bf16, fp8, g->unverified);
}

static json_t *device_json(const device_entry *entry, const gpu *g)
{
    const device_facts *f = &entry->facts;
    char arch[16];

    device_arch_text(f->arch, arch);
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:b, s:i, s:i, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i}", "device",
        entry->spec, "name", f->name, "arch", arch, "emulated", f->emulated, "sm_count",
        (int)f->sm_count, "clock_mhz", (int)f->clock_mhz, "mem_bytes", (json_int_t)f->mem_bytes,
        "mem_bytes_per_s", (json_int_t)f->mem_bytes_per_s, "l2_bytes", (json_int_t)f->l2_bytes,
        "smem_per_sm", (int)f->smem_per_sm, "smem_per_block", (int)f->smem_per_block,
        "threads_per_sm", (int)f->threads_per_sm, "blocks_per_sm", (int)f->blocks_per_sm,
        "regs_per_sm", (int)f->regs_per_sm);

    if (g != NULL) {
        json_t *rates = json_object();

        for (int kind = 0; kind < GPU_MMA_KINDS; kind++) {
            json_object_set_new(rates, gpu_mma_name((gpu_mma)kind),
                                json_real(tera(g, (gpu_mma)kind)));
        }
        json_object_set_new(row, "tensor_tflops", rates);
        json_object_set_new(row, "unverified", json_string(g->unverified));
    }
    return row;
}

static hone_status list_devices(device_entry **out, size_t *count, hone_error *error)
{
    hone_status status = HONE_OK;
    device_entry *list = NULL;
    size_t len = 0, capacity = 0;

    do {
        capacity = len;
        free(list);
        list = calloc(capacity + 1, sizeof *list);
        if (list == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "a list of %zu devices", capacity);
        }
        TRY(device_list(list, capacity, &len, error));
    } while (len > capacity);
    *out = list;
    *count = len;
    list = NULL;
done:
    free(list);
    return status;
}

static void show_devices(const device_entry *list, size_t len, json_t *rows)
{
    if (rows == NULL) {
        print_heading();
    }
    for (size_t i = 0; i < len; i++) {
        gpu g;
        const gpu *description = find_description(&list[i], &g) ? &g : NULL;

        if (rows == NULL) {
            print_device(&list[i], description);
        } else {
            json_array_append_new(rows, device_json(&list[i], description));
        }
    }
}

int command_devices(int argc, char **argv)
{
    static const options_command command = {
        .name = "devices",
        .about = "List the CUDA devices of this machine and the GPUs that can be emulated, with "
                 "their dense peak TFLOP/s and the figures that no good source confirms.",
        .takes = OPTIONS_JSON,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options o = {0};
    device_entry *list = NULL;
    json_t *rows = NULL;
    size_t len = 0;

    TRY(options_parse(&command, argc, argv, &o, NULL, &error));
    TRY(list_devices(&list, &len, &error));
    rows = o.json ? json_array() : NULL;
    show_devices(list, len, rows);
    print_json(rows);
done:
    json_decref(rows);
    free(list);
    return options_end(&o, status, &error, true);
}
