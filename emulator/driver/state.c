/* state.c - the process's devices, and how a driver call enters and leaves one. */
#include "emulator/cupti/record.h"
#include "emulator/driver/shim.h"

#include "core/checked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One process has one driver: its entry points take no state, so that this must be global. */
static struct {
    pthread_mutex_t lock;
    char (*names)[48]; /* slugs asked for; NULL: the default */
    size_t names_len;
    shim_device *devices;
    size_t devices_len;   /* 0 until started */
    memory_budget budget; /* host memory of all devices */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* HONE_OK when the running devices are just these. */
static hone_status same_devices(const char *const *names, size_t count, hone_error *error)
{
    bool same = count == state.devices_len;
    for (size_t i = 0; same && i < count; i++) {
        same = strcmp(names[i], state.devices[i].gpu.slug) == 0;
    }
    return same ? HONE_OK
                : status_set(
                      error, HONE_BAD_ARGUMENT, NULL, 0,
                      "the emulated devices are fixed once cuInit was called; set them before");
}

static hone_status configure(const char *const *names, size_t count, hone_error *error)
{
    hone_status status = HONE_OK;
    char(*copies)[48] = NULL;
    gpu g;

    if (state.devices_len != 0) {
        return same_devices(names, count, error);
    }
    copies = calloc(count, sizeof *copies);
    if (copies == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "%zu device names", count);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(gpu_find(names[i], &g, error));
        snprintf(copies[i], sizeof copies[i], "%s", names[i]);
    }
    free(state.names);
    state.names = copies;
    state.names_len = count;
    copies = NULL;
done:
    free(copies);
    return status;
}

hone_status shim_configure(const char *const *names, size_t count, hone_error *error)
{
    if (names == NULL || count == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "no device names given");
    }
    pthread_mutex_lock(&state.lock);
    hone_status status = configure(names, count, error);
    pthread_mutex_unlock(&state.lock);
    return status;
}

static CUresult start_device(shim_device *d, int ordinal, const char *slug,
                             hone_emu_arithmetic arithmetic)
{
    *d = (shim_device){
        .ordinal = ordinal, .arithmetic = arithmetic, .checks = HONE_EMU_CHECK_ALL, .threads = 1};
    if (gpu_find(slug, &d->gpu, NULL) != HONE_OK) {
        return CUDA_ERROR_NO_DEVICE;
    }
    pthread_mutex_init(&d->lock, NULL);
    return CUDA_SUCCESS;
}

/* HONE_EMU_MEMORY: bytes, or with K, M or G behind. Without it three quarters of what the machine
 * has. False when it is no size. */
static bool read_budget(const char *text, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end = NULL;
    uint64_t value = 0, unit = 1;

    if (text == NULL || *text == '\0') {
        *out = (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * 3 * (uint64_t)sysconf(_SC_PAGE_SIZE);
        return true;
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || errno != 0) {
        return false;
    }
    const char *letter = *end != '\0' ? strchr(units, *end) : NULL;
    if (letter != NULL) {
        unit = UINT64_C(1) << (10 * (letter - units + 1));
        end++;
    }
    return *end == '\0' && value > 0 && checked_mul_u64(value, unit, out);
}

/* HONE_EMU_ARITHMETIC: what a device's tensor units do until set_arithmetic says otherwise. Without
 * it the hardware's. False when it is none of the three. */
static bool read_arithmetic(const char *text, hone_emu_arithmetic *out)
{
    static const struct {
        const char *name;
        hone_emu_arithmetic mode;
    } modes[] = {{"hw", HONE_EMU_HW}, {"exact", HONE_EMU_EXACT}, {"fast", HONE_EMU_FAST}};

    if (text == NULL || *text == '\0') {
        *out = HONE_EMU_HW;
        return true;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(text, modes[i].name) == 0) {
            *out = modes[i].mode;
            return true;
        }
    }
    return false;
}

memory_budget *shim_budget(void)
{
    return &state.budget;
}

static CUresult start(void)
{
    static const char standard[1][48] = {"h20"};
    const char(*names)[48] = state.names != NULL ? (const char(*)[48])state.names : standard;
    size_t count = state.names != NULL ? state.names_len : 1;
    hone_emu_arithmetic arithmetic = HONE_EMU_HW;
    if (!read_budget(getenv("HONE_EMU_MEMORY"), &state.budget.limit) ||
        !read_arithmetic(getenv("HONE_EMU_ARITHMETIC"), &arithmetic) ||
        !shim_faults_valid(getenv("HONE_EMU_FAULTS"))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    shim_device *devices = calloc(count, sizeof *devices);
    if (devices == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        CUresult result = start_device(&devices[i], (int)i, names[i], arithmetic);
        if (result != CUDA_SUCCESS) {
            free(devices);
            return result;
        }
    }
    state.devices = devices;
    __atomic_store_n(&state.devices_len, count, __ATOMIC_RELEASE); /* read without the lock */
    return CUDA_SUCCESS;
}

CUresult shim_start(void)
{
    pthread_mutex_lock(&state.lock);
    bool first = state.devices_len == 0;
    CUresult result = first ? start() : CUDA_SUCCESS;
    pthread_mutex_unlock(&state.lock);
    if (first && cupti_listens()) {
        cupti_file_devices();
    }
    return result;
}

size_t shim_device_count(void)
{
    return __atomic_load_n(&state.devices_len, __ATOMIC_ACQUIRE);
}

shim_device *shim_device_at(int ordinal)
{
    return ordinal >= 0 && (size_t)ordinal < shim_device_count() ? &state.devices[ordinal] : NULL;
}

CUresult shim_lock(int ordinal, bool arguments, shim_device **out)
{
    if (shim_device_count() == 0) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    shim_device *d = shim_device_at(ordinal);
    if (d == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!arguments) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&d->lock);
    *out = d;
    return CUDA_SUCCESS;
}

void shim_unlock(shim_device *d)
{
    pthread_mutex_unlock(&d->lock);
}

CUresult shim_enter_aside(shim_context **out, bool arguments)
{
    if (shim_device_count() == 0) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    shim_context *c = shim_context_current();
    if (c == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    pthread_mutex_lock(&c->device->lock);
    CUresult result = c->alive ? c->sticky : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (result == CUDA_SUCCESS && !arguments) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS) {
        shim_unlock(c->device);
        return result;
    }
    *out = c;
    return CUDA_SUCCESS;
}

void shim_forget_writes(shim_context *c)
{
    machine_writes_free(c->memory, &c->written);
}

CUresult shim_enter(shim_context **out, bool arguments)
{
    CUresult result = shim_enter_aside(out, arguments);

    if (result == CUDA_SUCCESS) {
        shim_forget_writes(*out);
    }
    return result;
}

void shim_leave(shim_context *c)
{
    cupti_note *note = c->device->note;
    c->device->note = NULL;
    shim_unlock(c->device);
    if (note != NULL) {
        cupti_file(note);
    }
}

CUresult shim_result(hone_status status)
{
    switch (status) {
    case HONE_OK:
        return CUDA_SUCCESS;
    case HONE_BAD_ARGUMENT:
    case HONE_OVERFLOW:
        return CUDA_ERROR_INVALID_VALUE;
    case HONE_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case HONE_BAD_TEXT:
    case HONE_UNSUPPORTED:
        return CUDA_ERROR_INVALID_PTX;
    default:
        return CUDA_ERROR_UNKNOWN;
    }
}

CUresult shim_note(shim_device *d, CUresult result, const char *kind, const char *message)
{
    d->fault = (hone_emu_fault){.result = (int32_t)result, .warp = -1, .lane = -1};
    snprintf(d->fault.kind, sizeof d->fault.kind, "%s", kind);
    snprintf(d->fault.message, sizeof d->fault.message, "%s", message);
    return result;
}

bool shim_result_sticks(CUresult result)
{
    static const CUresult stick[] = {
        CUDA_ERROR_ECC_UNCORRECTABLE,    CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,       CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,   CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,           CUDA_ERROR_LAUNCH_FAILED,
    };
    for (size_t i = 0; i < ARRAY_LEN(stick); i++) {
        if (stick[i] == result) {
            return true;
        }
    }
    return false;
}
