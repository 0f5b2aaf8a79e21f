/* safetensors.c - what a tensor is: dtypes, bytes, its description. */
#include "convert/safetensors.h"

#include "core/checked.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
#define X(name, bits) {#name, bits},
    SAFETENSORS_DTYPE_MAP(X)
#undef X
};

const char *safetensors_dtype_name(safetensors_dtype dtype)
{
    return dtype < SAFETENSORS_DTYPES ? dtypes[dtype].name : "?";
}

unsigned safetensors_dtype_bits(safetensors_dtype dtype)
{
    return dtype < SAFETENSORS_DTYPES ? dtypes[dtype].bits : 0;
}

hone_status safetensors_bytes(const char *source, const safetensors_tensor *tensor, uint64_t *out,
                              hone_error *error)
{
    uint64_t bits = safetensors_dtype_bits(tensor->dtype);
    bool fits = true, empty = false;
    char text[200];

    for (uint32_t i = 0; i < tensor->rank; i++) {
        empty = empty || tensor->shape[i] == 0;
    }
    for (uint32_t i = 0; i < tensor->rank && !empty; i++) {
        fits = fits && checked_mul_u64(bits, tensor->shape[i], &bits);
    }
    if (empty) {
        bits = 0;
    }
    if (!fits || bits > INT64_MAX) {
        return status_set(error, HONE_OVERFLOW, source, 0,
                          "tensor '%.200s': %s has more bytes than a file can hold; fetch or write "
                          "the file again",
                          tensor->name, safetensors_describe(tensor, text, sizeof text));
    }
    if (bits % 8 != 0) {
        return status_set(error, HONE_BAD_TEXT, source, 0,
                          "tensor '%.200s': %s does not fill whole bytes; pad its last dimension",
                          tensor->name, safetensors_describe(tensor, text, sizeof text));
    }
    *out = bits / 8;
    return HONE_OK;
}

const char *safetensors_describe(const safetensors_tensor *tensor, char *text, size_t capacity)
{
    int used = snprintf(text, capacity, "%s [", safetensors_dtype_name(tensor->dtype));

    for (uint32_t i = 0; i < tensor->rank && used >= 0 && (size_t)used < capacity; i++) {
        used += snprintf(text + used, capacity - (size_t)used, "%s%" PRIu64, i > 0 ? ", " : "",
                         tensor->shape[i]);
    }
    if (used >= 0 && (size_t)used < capacity) {
        snprintf(text + used, capacity - (size_t)used, "]");
    }
    return text;
}
