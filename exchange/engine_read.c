/* engine_read.c - an engine's config file as seeds: tiles by bucket, without times or a device. */
#include "exchange/engine.h"
#include "exchange/exchange_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *theirs, *ours;
    int64_t most;
} fields[] = {
    {"BLOCK_SIZE_M", "block_m", 4096}, {"BLOCK_SIZE_N", "block_n", 4096},
    {"BLOCK_SIZE_K", "block_k", 4096}, {"GROUP_SIZE_M", "raster", 1 << 20},
    {"num_warps", "warps", 64},        {"num_stages", "stages", 64},
};

/* A bucket's key: decimal digits alone, as engines read and write it. */
static hone_status take_bucket(const exchange_source *from, const char *key, int64_t *out)
{
    const size_t len = strlen(key);

    if (len == 0 || len > 12 || strspn(key, "0123456789") != len || key[0] == '0') {
        return exchange_refuse(from, "'%.60s' is no bucket of M: a number from 1 on", key);
    }
    *out = strtoll(key, NULL, 10);
    return HONE_OK;
}

static hone_status print_seed(exchange_source *from, const char *key, const json_t *tile, FILE *to)
{
    hone_status status = HONE_OK;
    int64_t bucket = 0;

    TRY(take_bucket(from, key, &bucket));
    snprintf(from->row, sizeof from->row, "bucket '%.20s'", key);
    if (!json_is_object(tile)) {
        return exchange_refuse(from, "is no object");
    }
    fprintf(to, "m=%" PRId64, bucket);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const json_t *value = json_object_get(tile, fields[i].theirs);
        const json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) || number < 1 || number > fields[i].most) {
            return exchange_refuse(from, "'%s' is no whole number from 1 to %" PRId64,
                                   fields[i].theirs, fields[i].most);
        }
        fprintf(to, " %s=%" JSON_INTEGER_FORMAT, fields[i].ours, number);
    }
    fputc('\n', to);
    from->row[0] = '\0';
done:
    return status;
}

hone_status engine_read_seeds(const char *path, char **out, uint64_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    exchange_source from = {.path = path, .error = error};
    json_t *root = NULL, *tile;
    const char *key;
    char *text = NULL;
    size_t bytes = 0;
    uint64_t seeds = 0;
    FILE *to = open_memstream(&text, &bytes);

    if (to == NULL) {
        return exchange_no_memory(path, error);
    }
    TRY(exchange_read_json(path, NULL, &root, error));
    json_object_foreach(root, key, tile)
    {
        if (strcmp(key, "triton_version") != 0) { /* vLLM's; SGLang's own reader cannot take it */
            TRY(print_seed(&from, key, tile, to));
            seeds++;
        }
    }
    const bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed) {
        to = NULL;
        status = exchange_no_memory(path, error);
        goto done;
    }
    to = NULL;
    *out = text;
    *len = seeds;
    text = NULL;
done:
    if (to != NULL) {
        fclose(to);
    }
    free(text);
    json_decref(root);
    return status;
}
