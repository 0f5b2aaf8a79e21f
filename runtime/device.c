/* device.c - opens a device by its text and learns its facts, from the driver or from models/gpu.
 */
#include "runtime/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char emulated_note[] =
    "no CUDA device: using the emulated emu:h20, whose times are modelled, not measured";

/* Attributes that become facts as they are. */
static const struct {
    CUdevice_attribute attribute;
    size_t offset;
} attributes[] = {
#define X(attribute, fact) {CU_DEVICE_ATTRIBUTE_##attribute, offsetof(device_facts, fact)},
    DEVICE_ATTRIBUTE_MAP(X)
#undef X
};

static hone_status read_attribute(const driver *d, CUdevice ordinal, CUdevice_attribute attribute,
                                  int *out, hone_error *error)
{
    return driver_check(d, d->cuDeviceGetAttribute(out, attribute, ordinal), "cuDeviceGetAttribute",
                        error);
}

/* The facts as the driver says them. */
static hone_status read_facts(const driver *d, CUdevice ordinal, device_facts *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    device_facts f = {.emulated = d->emu != NULL};
    int major = 0, minor = 0, clock_khz = 0, memory_khz = 0, bus_bits = 0, l2 = 0;
    size_t memory = 0;

    TRY(driver_check(d, d->cuDeviceGetName(f.name, sizeof f.name, ordinal), "cuDeviceGetName",
                     error));
    TRY(driver_check(d, d->cuDeviceTotalMem(&memory, ordinal), "cuDeviceTotalMem", error));
    TRY(read_attribute(d, ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, error));
    TRY(read_attribute(d, ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, error));
    TRY(read_attribute(d, ordinal, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &clock_khz, error));
    TRY(read_attribute(d, ordinal, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &memory_khz, error));
    TRY(read_attribute(d, ordinal, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bus_bits, error));
    TRY(read_attribute(d, ordinal, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2, error));
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
        int value = 0;
        TRY(read_attribute(d, ordinal, attributes[i].attribute, &value, error));
        memcpy((char *)&f + attributes[i].offset, &value, sizeof value);
    }
    f.arch = major * 10 + minor;
    f.clock_mhz = clock_khz / 1000;
    f.l2_bytes = l2;
    f.mem_bytes = (int64_t)memory;
    f.mem_bytes_per_s = (int64_t)memory_khz * 1000 * 2 * bus_bits / 8; /* two transfers a clock */
    *out = f;
done:
    return status;
}

/* A GPU without a description by its name still has its arch's rates; the facts stay its own. */
static hone_status describe(const device_facts *facts, gpu *out, bool *known, hone_error *error)
{
    const char *const *slugs = NULL;
    const size_t count = gpu_list(&slugs);
    gpu g, best = {.slug = ""};

    *known =
        gpu_find_by_name(facts->name, &best, NULL) == HONE_OK && best.facts.arch == facts->arch;
    for (size_t i = 0; !*known && i < count; i++) {
        /* The newest arch that is not newer; the first of equals, since slugs are sorted. */
        if (gpu_find(slugs[i], &g, NULL) == HONE_OK && g.facts.arch <= facts->arch &&
            (best.facts.arch > facts->arch || g.facts.arch > best.facts.arch)) {
            best = g;
        }
    }
    if (best.slug[0] == '\0') {
        return status_set(error, HONE_UNSUPPORTED, facts->name, 0,
                          "sm_%d is older than any GPU that hone describes", facts->arch);
    }
    best.facts = *facts;
    *out = best;
    return HONE_OK;
}

static hone_status open_context(device *d, hone_error *error)
{
    hone_status status = HONE_OK;

    if (d->described) {
        return HONE_OK;
    }
    TRY(driver_check(d->driver, d->driver->cuDevicePrimaryCtxRetain(&d->context, d->ordinal),
                     "cuDevicePrimaryCtxRetain", error));
    TRY(device_enter(d, error));
done:
    return status;
}

/* "GPU-" and 32 hex digits with dashes between, or the same without "GPU-", as 16 bytes. */
static bool parse_uuid(const char *text, CUuuid *out)
{
    int digits = 0;

    text += strncmp(text, "GPU-", 4) == 0 ? 4 : 0;
    memset(out, 0, sizeof *out);
    for (; *text != '\0'; text++) {
        const char *hex = "0123456789abcdef", *at = strchr(hex, *text | 0x20);
        if (*text == '-') {
            continue;
        }
        if (at == NULL || digits == 32) {
            return false;
        }
        out->bytes[digits / 2] = (char)(out->bytes[digits / 2] << 4 | (int)(at - hex));
        digits++;
    }
    return digits == 32;
}

/* A small number without sign or leading zero; -1 for anything else. */
static int parse_ordinal(const char *text)
{
    size_t len = strspn(text, "0123456789");

    return len > 0 && len <= 3 && text[len] == '\0' && (len == 1 || text[0] != '0') ? atoi(text)
                                                                                    : -1;
}

static hone_status find_cuda(const driver *d, const char *which, CUdevice *out, hone_error *error)
{
    hone_status status = HONE_OK;
    CUuuid wanted, have;
    CUdevice candidate = 0;
    const int ordinal = parse_ordinal(which);
    int count = 0;

    if (ordinal < 0 && !parse_uuid(which, &wanted)) {
        return status_set(error, HONE_BAD_TEXT, which, 0,
                          "a CUDA device is cuda:NUMBER or cuda:UUID");
    }
    TRY(driver_check(d, d->cuDeviceGetCount(&count), "cuDeviceGetCount", error));
    for (int i = 0; i < count; i++) {
        TRY(driver_check(d, d->cuDeviceGet(&candidate, i), "cuDeviceGet", error));
        if (ordinal < 0) {
            TRY(driver_check(d, d->cuDeviceGetUuid(&have, candidate), "cuDeviceGetUuid", error));
        }
        if (ordinal < 0 ? memcmp(&have, &wanted, sizeof have) == 0 : i == ordinal) {
            *out = candidate;
            goto done;
        }
    }
    status =
        status_set(error, HONE_NO_DEVICE, which, 0, "no such CUDA device; there are %d", count);
done:
    return status;
}

static hone_status open_cuda(const char *which, device *d, hone_error *error)
{
    hone_status status = HONE_OK;
    device_facts facts;

    TRY(driver_open_cuda(&d->driver, error));
    TRY(find_cuda(d->driver, which, &d->ordinal, error));
    TRY(read_facts(d->driver, d->ordinal, &facts, error));
    TRY(describe(&facts, &d->gpu, &d->gpu_known, error));
    snprintf(d->spec, sizeof d->spec, "cuda:%.58s", which);
    TRY(open_context(d, error));
done:
    return status;
}

/* An emulated device's name is the product's behind "hone emulator: ", so that nobody takes it for
 * a real one. */
static bool is_product(const char *name, const char *product)
{
    const size_t len = strlen(name), product_len = strlen(product);

    return len > product_len && name[len - product_len - 1] == ' ' &&
           strcmp(name + len - product_len, product) == 0;
}

/* `skip`: how many of that kind are passed over. */
static hone_status open_emulated(const char *slug, int skip, device *d, hone_error *error)
{
    hone_status status = HONE_OK;
    char name[sizeof d->gpu.facts.name + 32];
    int count = 0;
    bool found = false;

    TRY(gpu_find(slug, &d->gpu, error));
    d->gpu.facts.emulated = true;
    d->gpu_known = true;
    TRY(driver_open_emulator(&d->driver, error));
    TRY(driver_check(d->driver, d->driver->cuDeviceGetCount(&count), "cuDeviceGetCount", error));
    for (int i = 0; i < count && !found; i++) {
        TRY(driver_check(d->driver, d->driver->cuDeviceGet(&d->ordinal, i), "cuDeviceGet", error));
        TRY(driver_check(d->driver, d->driver->cuDeviceGetName(name, sizeof name, d->ordinal),
                         "cuDeviceGetName", error));
        found = is_product(name, d->gpu.facts.name) && skip-- == 0;
    }
    if (!found) {
        status = status_set(error, HONE_NO_DEVICE, slug, 0,
                            "this process started the emulator without this GPU");
        goto done;
    }
    snprintf(d->spec, sizeof d->spec, "emu:%s", d->gpu.slug);
    TRY(open_context(d, error));
done:
    return status;
}

static hone_status open_spec(const char *spec, device *d, hone_error *error)
{
    if (strncmp(spec, "cuda:", 5) == 0) {
        return open_cuda(spec + 5, d, error);
    }
    if (strncmp(spec, "emu:", 4) == 0) {
        return open_emulated(spec + 4, 0, d, error);
    }
    return status_set(error, HONE_BAD_TEXT, spec, 0,
                      "a device is auto, cuda:NUMBER, cuda:UUID or emu:GPU");
}

static hone_status open_device(const char *spec, bool described, device **out, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool any = strcmp(spec, "auto") == 0;
    device *d = calloc(1, sizeof *d);

    if (d == NULL) {
        return status_set(error, HONE_NO_MEMORY, spec, 0, "a device");
    }
    d->described = described;
    status = open_spec(any ? "cuda:0" : spec, d, error);
    if (any && status == HONE_NO_DEVICE) {
        driver_close(d->driver);
        *d = (device){.described = described};
        status = open_spec("emu:h20", d, error);
        memcpy(d->note, emulated_note, sizeof emulated_note);
    }
    if (status != HONE_OK) {
        goto done;
    }
    device_kind_of(&d->gpu.facts, &d->kind);
    *out = d;
    d = NULL;
done:
    device_close(d);
    return status;
}

hone_status device_open(const char *spec, device **out, hone_error *error)
{
    return open_device(spec, false, out, error);
}

hone_status device_describe(const char *spec, device **out, hone_error *error)
{
    return open_device(spec, true, out, error);
}

hone_status device_open_twin(const device *d, device **out, hone_error *error)
{
    hone_status status = HONE_OK;
    device *twin = NULL;

    if (d->driver->emu == NULL) {
        return status_set(error, HONE_NO_DEVICE, d->spec, 0, "only emulated devices have a twin");
    }
    twin = calloc(1, sizeof *twin);
    if (twin == NULL) {
        return status_set(error, HONE_NO_MEMORY, d->spec, 0, "a device");
    }
    TRY(open_emulated(d->gpu.slug, 1, twin, error));
    twin->kind = d->kind;
    *out = twin;
    twin = NULL;
done:
    device_close(twin);
    return status;
}

void device_close(device *d)
{
    if (d == NULL) {
        return;
    }
    if (d->context != NULL) {
        d->driver->cuDevicePrimaryCtxRelease(d->ordinal);
    }
    driver_close(d->driver);
    free(d);
}

hone_status device_enter(const device *d, hone_error *error)
{
    return driver_check(d->driver, d->driver->cuCtxSetCurrent(d->context), "cuCtxSetCurrent",
                        error);
}

hone_status device_borrow(const device *d, CUcontext *previous, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(driver_check(d->driver, d->driver->cuCtxGetCurrent(previous), "cuCtxGetCurrent", error));
    if (*previous != d->context) {
        TRY(device_enter(d, error));
    }
done:
    return status;
}

void device_return(const device *d, CUcontext previous)
{
    if (previous != d->context) {
        d->driver->cuCtxSetCurrent(previous);
    }
}

static void list_add(device_entry *out, size_t capacity, size_t *count, const char *family,
                     const char *which, const device_facts *facts)
{
    if (*count < capacity) {
        snprintf(out[*count].spec, sizeof out[*count].spec, "%s:%s", family, which);
        out[*count].facts = *facts;
    }
    (*count)++;
}

hone_status device_list(device_entry *out, size_t capacity, size_t *count, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *cuda = NULL;
    const char *const *slugs = NULL;
    const size_t slugs_len = gpu_list(&slugs);
    size_t found = 0;
    int cuda_len = 0;

    if (driver_open_cuda(&cuda, NULL) == HONE_OK) {
        TRY(driver_check(cuda, cuda->cuDeviceGetCount(&cuda_len), "cuDeviceGetCount", error));
    }
    for (int i = 0; i < cuda_len; i++) {
        CUdevice ordinal = 0;
        device_facts facts;
        char which[16];
        TRY(driver_check(cuda, cuda->cuDeviceGet(&ordinal, i), "cuDeviceGet", error));
        TRY(read_facts(cuda, ordinal, &facts, error));
        snprintf(which, sizeof which, "%d", i);
        list_add(out, capacity, &found, "cuda", which, &facts);
    }
    for (size_t i = 0; i < slugs_len; i++) {
        gpu g;
        TRY(gpu_find(slugs[i], &g, error));
        g.facts.emulated = true;
        list_add(out, capacity, &found, "emu", slugs[i], &g.facts);
    }
    *count = found;
done:
    driver_close(cuda);
    return status;
}
