/* gpu.c - reads GPU descriptions: every number is bounded and required, but for one, and a row of
 * one table. */
#include "models/gpu.h"

#include "models/fields.h"
#include "models/names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { GPU_SCHEMA = 1 };

#define GPU_WHOLE(section, key, member, least, most)                                               \
    {                                                                                              \
        section, key, FIELD_INT32, offsetof(gpu, facts.member), least, most, 1, NULL, false        \
    }
#define GPU_UNITS(key, member, unit, most)                                                         \
    {                                                                                              \
        NULL, key, FIELD_INT64, offsetof(gpu, facts.member), 1, most, unit, NULL, false            \
    }
#define GPU_REAL(section, key, member, least, most)                                                \
    {                                                                                              \
        section, key, FIELD_REAL, offsetof(gpu, member), least, most, 1, NULL, false               \
    }

static const field fields[] = {
    GPU_WHOLE(NULL, "arch", arch, 70, 200),
    GPU_WHOLE(NULL, "sm_count", sm_count, 1, 1024),
    GPU_WHOLE(NULL, "clock_mhz", clock_mhz, 100, 10000),
    GPU_UNITS("l2_mib", l2_bytes, 1 << 20, 1 << 20),
    GPU_UNITS("mem_mib", mem_bytes, 1 << 20, 1 << 30),
    GPU_UNITS("mem_gbs", mem_bytes_per_s, 1000000000, 1e6),
    GPU_REAL(NULL, "l2_bytes_per_clk", l2_bytes_per_clk, 1, 1e6),
    GPU_REAL(NULL, "dram_latency_ns", dram_latency_ns, 1, 1e5),
    GPU_REAL(NULL, "launch_ns", launch_ns, 1, 1e6),
    GPU_WHOLE("per_sm", "threads", threads_per_sm, 32, 65536),
    GPU_WHOLE("per_sm", "blocks", blocks_per_sm, 1, 1024),
    GPU_WHOLE("per_sm", "registers", regs_per_sm, 1024, 1 << 20),
    GPU_WHOLE("per_sm", "shared_bytes", smem_per_sm, 1024, 1 << 24),
    GPU_WHOLE("per_sm", "shared_block_bytes", smem_per_block, 1024, 1 << 24),
    GPU_WHOLE("per_sm", "shared_reserved_bytes", smem_reserved, 0, 65536),
    {NULL, "tensor_sustained", FIELD_REAL, offsetof(gpu, tensor_sustained), 0.1, 1, 1, NULL, true},
    GPU_REAL("per_sm", "fp32_lanes", fp32_lanes, 1, 4096),
    GPU_REAL("per_sm", "sfu_lanes", sfu_lanes, 1, 4096),
    GPU_REAL("per_sm", "issue_slots", issue_slots, 1, 64),
    GPU_REAL("per_sm", "shared_bytes_per_clk", shared_bytes_per_clk_sm, 4, 4096),
};

/* Keys that hold no single number. */
static const char *const other_keys[] = {"name", "tensor_tflops", "mma_sync_tflops", "unverified",
                                         NULL};

static const char *const mma_names[GPU_MMA_KINDS + 1] = {"fp8",  "bf16",  "f16", "s8",
                                                         "tf32", "mxfp8", "fp4", NULL};

const char *gpu_mma_name(gpu_mma kind)
{
    return (unsigned)kind < GPU_MMA_KINDS ? mma_names[kind] : "?";
}

/* TFLOP/s of the whole chip by kind become FLOP per clock and SM, at the file's own clock. */
static hone_status read_rates(const document *d, const document_node *map, const gpu *g,
                              double rates[GPU_MMA_KINDS], hone_error *error)
{
    hone_status status = HONE_OK;
    double clocks = (double)g->facts.sm_count * g->facts.clock_mhz * 1e6;

    TRY(document_known_keys(d, map, mma_names, error));
    for (size_t i = 0; i < GPU_MMA_KINDS; i++) {
        const document_node *node = document_get(map, mma_names[i]);
        double tflops = 0;

        if (node == NULL) {
            continue;
        }
        TRY(document_real(d, node, &tflops, error));
        if (!(tflops >= 0 && tflops <= 1e6)) {
            return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                              "'%s' is %s TFLOP/s; it must be from 0 to 1e6", mma_names[i],
                              node->text);
        }
        rates[i] = tflops * 1e12 / clocks;
    }
done:
    return status;
}

static bool is_key(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (strcmp(fields[i].key, text) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(other_keys) - 1; i++) {
        if (strcmp(other_keys[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static hone_status read_unverified(const document *d, const document_node *list, gpu *g,
                                   hone_error *error)
{
    hone_status status = HONE_OK;
    size_t used = 0;

    for (size_t i = 0; i < list->len; i++) {
        const char *text = NULL;

        TRY(document_text(d, &list->items[i], &text, error));
        if (!is_key(text)) {
            return status_set(error, HONE_BAD_MODEL, document_source(d), list->items[i].line,
                              "'%s' under 'unverified' is no key of a GPU description", text);
        }
        size_t room = sizeof g->unverified - used;
        int len = snprintf(g->unverified + used, room, "%s%s", i == 0 ? "" : ",", text);
        if (len < 0 || (size_t)len >= room) {
            return status_set(error, HONE_LIMIT, document_source(d), list->line,
                              "'unverified' is longer than %zu characters",
                              sizeof g->unverified - 1);
        }
        used += (size_t)len;
    }
done:
    return status;
}

static hone_status read_texts(const document *d, gpu *g, hone_error *error)
{
    hone_status status = HONE_OK;
    const document_node *root = document_root(d), *node = NULL;

    TRY(fields_require(d, root, "name", DOCUMENT_SCALAR, &node, error));
    TRY(fields_copy_text(d, node, g->facts.name, sizeof g->facts.name, error));
    TRY(fields_require(d, root, "unverified", DOCUMENT_LIST, &node, error));
    TRY(read_unverified(d, node, g, error));
    TRY(fields_require(d, root, "tensor_tflops", DOCUMENT_MAP, &node, error));
    TRY(read_rates(d, node, g, g->flop_per_clk_sm, error));
    memcpy(g->mma_sync_per_clk_sm, g->flop_per_clk_sm, sizeof g->mma_sync_per_clk_sm);
    if (document_get(root, "mma_sync_tflops") != NULL) {
        TRY(fields_require(d, root, "mma_sync_tflops", DOCUMENT_MAP, &node, error));
        TRY(read_rates(d, node, g, g->mma_sync_per_clk_sm, error));
    }
done:
    return status;
}

static void take_slug(const char *source, char slug[48])
{
    const char *slash = strrchr(source, '/'), *base = slash == NULL ? source : slash + 1;
    size_t len = strcspn(base, ".");

    snprintf(slug, 48, "%.*s", (int)(len < 47 ? len : 47), base);
}

hone_status gpu_parse(const char *source, const char *text, size_t len, gpu *out, hone_error *error)
{
    hone_status status = HONE_OK;
    document *d = NULL;
    gpu g = {.facts.emulated = true, .tensor_sustained = 1};

    TRY(document_parse(source, text, len, &d, error));
    TRY(fields_read(d, fields, ARRAY_LEN(fields), other_keys, GPU_SCHEMA, &g, error));
    TRY(read_texts(d, &g, error));
    take_slug(source, g.slug);
    if (g.facts.smem_per_block > g.facts.smem_per_sm) {
        status = status_set(error, HONE_BAD_MODEL, source, 0,
                            "'shared_block_bytes' is above 'shared_bytes': a block runs on one SM");
        goto done;
    }
    *out = g;
done:
    document_free(d);
    return status;
}

hone_status gpu_find(const char *slug, gpu *out, hone_error *error)
{
    const embedded_file *file = models_file("gpu", slug);

    if (file == NULL) {
        return models_unknown("GPU", slug, models_gpu_names, error);
    }
    return gpu_parse(file->name, file->bytes, embedded_len(file), out, error);
}

hone_status gpu_find_by_name(const char *product, gpu *out, hone_error *error)
{
    for (size_t i = 0; models_gpu_names[i] != NULL; i++) {
        gpu g;
        hone_status status = gpu_find(models_gpu_names[i], &g, error);

        if (status != HONE_OK) {
            return status;
        }
        if (strcmp(g.facts.name, product) == 0) {
            *out = g;
            return HONE_OK;
        }
    }
    return models_unknown("GPU with the product name", product, models_gpu_names, error);
}

size_t gpu_list(const char *const **slugs)
{
    *slugs = models_gpu_names;
    return models_names_len(models_gpu_names);
}
