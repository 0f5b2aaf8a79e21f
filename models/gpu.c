/* gpu.c - reads GPU descriptions: every key is required, bounded, and a row of one table. */
#include "models/gpu.h"

#include "core/document.h"
#include "models/names.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { GPU_SCHEMA = 1 };

typedef enum gpu_store { GPU_INT32, GPU_INT64, GPU_REAL } gpu_store;

/* One number of a description: where it stands, where it goes (times scale), and what is plausible. */
typedef struct gpu_field {
    const char *section, *key; /* section NULL: at the top */
    gpu_store store;
    size_t offset;
    int64_t scale;
    double least, most;
} gpu_field;

#define GPU_SECTION "per_sm"

static const gpu_field fields[] = {
    {NULL, "arch", GPU_INT32, offsetof(gpu, facts.arch), 1, 70, 200},
    {NULL, "sm_count", GPU_INT32, offsetof(gpu, facts.sm_count), 1, 1, 1024},
    {NULL, "clock_mhz", GPU_INT32, offsetof(gpu, facts.clock_mhz), 1, 100, 10000},
    {GPU_SECTION, "threads", GPU_INT32, offsetof(gpu, facts.threads_per_sm), 1, 32, 65536},
    {GPU_SECTION, "blocks", GPU_INT32, offsetof(gpu, facts.blocks_per_sm), 1, 1, 1024},
    {GPU_SECTION, "registers", GPU_INT32, offsetof(gpu, facts.regs_per_sm), 1, 1024, 1 << 20},
    {GPU_SECTION, "shared_bytes", GPU_INT32, offsetof(gpu, facts.smem_per_sm), 1, 1024, 1 << 24},
    {GPU_SECTION, "shared_block_bytes", GPU_INT32, offsetof(gpu, facts.smem_per_block), 1, 1024, 1 << 24},
    {GPU_SECTION, "shared_reserved_bytes", GPU_INT32, offsetof(gpu, facts.smem_reserved), 1, 0, 65536},
    {GPU_SECTION, "fp32_lanes", GPU_REAL, offsetof(gpu, fp32_lanes), 1, 1, 4096},
    {GPU_SECTION, "sfu_lanes", GPU_REAL, offsetof(gpu, sfu_lanes), 1, 1, 4096},
    {GPU_SECTION, "issue_slots", GPU_REAL, offsetof(gpu, issue_slots), 1, 1, 64},
    {GPU_SECTION, "shared_bytes_per_clk", GPU_REAL, offsetof(gpu, shared_bytes_per_clk_sm), 1, 4, 4096},
    {NULL, "l2_mib", GPU_INT64, offsetof(gpu, facts.l2_bytes), 1 << 20, 1, 1 << 20},
    {NULL, "l2_bytes_per_clk", GPU_REAL, offsetof(gpu, l2_bytes_per_clk), 1, 1, 1e6},
    {NULL, "mem_mib", GPU_INT64, offsetof(gpu, facts.mem_bytes), 1 << 20, 1, 1 << 30},
    {NULL, "mem_gbs", GPU_INT64, offsetof(gpu, facts.mem_bytes_per_s), 1000000000, 1, 1e6},
    {NULL, "dram_latency_ns", GPU_REAL, offsetof(gpu, dram_latency_ns), 1, 1, 1e5},
    {NULL, "launch_ns", GPU_REAL, offsetof(gpu, launch_ns), 1, 1, 1e6},
};

/* Keys that hold no single number. */
static const char *const other_keys[] = {"schema", "name",           GPU_SECTION,
                                         "tensor_tflops", "mma_sync_tflops", "unverified"};

static const char *const mma_names[GPU_MMA_KINDS + 1] = {"fp8",  "bf16",  "f16", "s8",
                                                         "tf32", "mxfp8", "fp4", NULL};

const char *gpu_mma_name(gpu_mma kind)
{
    return (unsigned)kind < GPU_MMA_KINDS ? mma_names[kind] : "?";
}

static hone_status require_node(const document *d, const document_node *map, const char *key,
                                document_kind kind, const document_node **out, hone_error *error)
{
    static const char *const kinds[] = {"a scalar", "a list", "a map"};
    const document_node *node = document_get(map, key);

    if (node == NULL) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), map->line, "'%s' is missing", key);
    }
    if (node->kind != kind) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line, "'%s' must be %s", key,
                          kinds[kind]);
    }
    *out = node;
    return HONE_OK;
}

static hone_status read_field(const document *d, const gpu_field *field, gpu *g, hone_error *error)
{
    hone_status status = HONE_OK;
    const document_node *map = document_root(d), *node = NULL;
    int64_t whole = 0;
    double real = 0;
    char *to = (char *)g + field->offset;

    if (field->section != NULL) {
        TRY(require_node(d, map, field->section, DOCUMENT_MAP, &map, error));
    }
    TRY(require_node(d, map, field->key, DOCUMENT_SCALAR, &node, error));
    if (field->store == GPU_REAL) {
        TRY(document_real(d, node, &real, error));
    } else {
        TRY(document_int(d, node, &whole, error));
        real = (double)whole;
    }
    if (!(real >= field->least && real <= field->most)) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                          "'%s' is %s; it must be from %g to %g", field->key, node->text, field->least,
                          field->most);
    }
    switch (field->store) {
    case GPU_INT32:
        *(int32_t *)to = (int32_t)whole;
        break;
    case GPU_INT64:
        *(int64_t *)to = whole * field->scale;
        break;
    case GPU_REAL:
        *(double *)to = real;
        break;
    }
done:
    return status;
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
                              "'%s' is %s TFLOP/s; it must be from 0 to 1e6", mma_names[i], node->text);
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
    for (size_t i = 0; i < ARRAY_LEN(other_keys); i++) {
        if (strcmp(other_keys[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static hone_status read_unverified(const document *d, const document_node *list, gpu *g, hone_error *error)
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
                              "'unverified' is longer than %zu characters", sizeof g->unverified - 1);
        }
        used += (size_t)len;
    }
done:
    return status;
}

static hone_status check_keys(const document *d, hone_error *error)
{
    hone_status status = HONE_OK;
    const document_node *root = document_root(d), *section = NULL, *node = NULL;
    const char *top[ARRAY_LEN(fields) + ARRAY_LEN(other_keys) + 1] = {NULL};
    const char *inner[ARRAY_LEN(fields) + 1] = {NULL};
    size_t top_len = 0, inner_len = 0;
    int64_t schema = 0;

    if (root->kind != DOCUMENT_MAP) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), root->line,
                          "a GPU description is a map");
    }
    for (size_t i = 0; i < ARRAY_LEN(other_keys); i++) {
        top[top_len++] = other_keys[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (fields[i].section == NULL) {
            top[top_len++] = fields[i].key;
        } else {
            inner[inner_len++] = fields[i].key;
        }
    }
    TRY(document_known_keys(d, root, top, error));
    TRY(require_node(d, root, GPU_SECTION, DOCUMENT_MAP, &section, error));
    TRY(document_known_keys(d, section, inner, error));
    TRY(require_node(d, root, "schema", DOCUMENT_SCALAR, &node, error));
    TRY(document_int(d, node, &schema, error));
    if (schema != GPU_SCHEMA) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                          "schema %lld; this build reads schema %d", (long long)schema, GPU_SCHEMA);
    }
done:
    return status;
}

static hone_status copy_text(const document *d, const document_node *node, char *to, size_t capacity,
                             hone_error *error)
{
    if (node->len == 0 || node->len >= capacity) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                          "a name has from 1 to %zu characters", capacity - 1);
    }
    memcpy(to, node->text, node->len + 1);
    return HONE_OK;
}

static hone_status read_texts(const document *d, gpu *g, hone_error *error)
{
    hone_status status = HONE_OK;
    const document_node *root = document_root(d), *node = NULL;

    TRY(require_node(d, root, "name", DOCUMENT_SCALAR, &node, error));
    TRY(copy_text(d, node, g->facts.name, sizeof g->facts.name, error));
    TRY(require_node(d, root, "unverified", DOCUMENT_LIST, &node, error));
    TRY(read_unverified(d, node, g, error));
    TRY(require_node(d, root, "tensor_tflops", DOCUMENT_MAP, &node, error));
    TRY(read_rates(d, node, g, g->flop_per_clk_sm, error));
    memcpy(g->mma_sync_per_clk_sm, g->flop_per_clk_sm, sizeof g->mma_sync_per_clk_sm);
    if (document_get(root, "mma_sync_tflops") != NULL) {
        TRY(require_node(d, root, "mma_sync_tflops", DOCUMENT_MAP, &node, error));
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
    gpu g = {.facts.emulated = true};

    TRY(document_parse(source, text, len, &d, error));
    TRY(check_keys(d, error));
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        TRY(read_field(d, &fields[i], &g, error));
    }
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
