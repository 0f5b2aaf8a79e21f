/* api.c - the extension table: what a test or a tuner steers and reads beside the driver API. */
#include "emulator/cupti/record.h"
#include "emulator/driver/shim.h"

#include <stdlib.h>
#include <string.h>

/* The device, locked; a status that names the rule when there is none. */
static hone_status lock_device(int ordinal, shim_device **out, hone_error *error)
{
    CUresult result = shim_lock(ordinal, true, out);
    if (result == CUDA_SUCCESS) {
        return HONE_OK;
    }
    return status_set(error, HONE_NO_DEVICE, NULL, 0,
                      result == CUDA_ERROR_NOT_INITIALIZED
                          ? "emulated device %d: cuInit was not called yet"
                          : "emulated device %d: there is none of that number",
                      ordinal);
}

static hone_status set_arithmetic(int device, hone_emu_arithmetic mode, hone_error *error)
{
    shim_device *d = NULL;
    if (mode < HONE_EMU_EXACT || mode > HONE_EMU_HW) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "arithmetic %d; 1 (exact), 2 (fast) or 3 (hw) are possible", (int)mode);
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        d->arithmetic = mode;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_schedule(int device, uint64_t seed, hone_error *error)
{
    shim_device *d = NULL;
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        d->seed = seed;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_checks(int device, int checks, hone_error *error)
{
    shim_device *d = NULL;
    if (checks < 0 || checks > (HONE_EMU_CHECK_ALL | HONE_EMU_CHECK_STRICT)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "checks %d; they are a mask of hone_emu_check, 0 to %d", checks,
                          HONE_EMU_CHECK_ALL | HONE_EMU_CHECK_STRICT);
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        d->checks = (uint32_t)checks;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_timing(int device, hone_emu_timing timing, hone_error *error)
{
    shim_device *d = NULL;
    if (timing != HONE_EMU_AT_ISSUE && timing != HONE_EMU_LATEST) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "timing %d; 0 (at issue) and 1 (latest) are possible", (int)timing);
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        d->timing = timing;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_threads(int device, int threads, hone_error *error)
{
    shim_device *d = NULL;
    if (threads < 1 || threads > 64) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "%d host threads; 1 to 64 are possible", threads);
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        d->threads = threads;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_sample(int device, const uint64_t *ctas, size_t count, hone_error *error)
{
    hone_status status = HONE_OK;
    shim_device *d = NULL;
    uint64_t *copy = NULL;

    if (count != 0 && ctas == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "%zu CTAs, but no list of them",
                          count);
    }
    copy = count != 0 ? calloc(count, sizeof *copy) : NULL;
    if (count != 0 && copy == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a sample of %zu CTAs", count);
    }
    if (copy != NULL) {
        memcpy(copy, ctas, count * sizeof *copy);
    }
    TRY(lock_device(device, &d, error));
    free(d->sample);
    d->sample = copy;
    d->sample_len = count;
    copy = NULL;
    shim_unlock(d);
done:
    free(copy);
    return status;
}

static hone_status set_resources(void *function, const hone_emu_resources *resources,
                                 hone_error *error)
{
    shim_function *f = shim_handle_get(SHIM_FUNCTION, function);
    if (f == NULL || resources == NULL || resources->registers < 0 || resources->registers > 255) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          f == NULL ? "not a live CUfunction"
                                    : "a resource report needs 0 to 255 registers a thread");
    }
    pthread_mutex_lock(&f->head.context->device->lock);
    f->resources = *resources;
    shim_unlock(f->head.context->device);
    return HONE_OK;
}

static hone_status last_counters(int device, hone_emu_counters *out, hone_error *error)
{
    shim_device *d = NULL;
    if (out == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "nowhere to write the counters");
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        *out = d->counters;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_profile(int device, int on, hone_error *error)
{
    shim_device *d = NULL;
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        d->profiles = on != 0;
        shim_unlock(d);
    }
    return status;
}

static hone_status last_profile(int device, hone_emu_line *lines, size_t capacity, size_t *len,
                                hone_error *error)
{
    shim_device *d = NULL;
    if (len == NULL || (lines == NULL && capacity != 0)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "nowhere to write the profile");
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        *len = d->profile.len;
        size_t most = *len < capacity ? *len : capacity;
        if (most > 0) {
            memcpy(lines, d->profile.lines, most * sizeof *lines);
        }
        shim_unlock(d);
    }
    return status;
}

static hone_status last_estimate(int device, hone_emu_estimate *out, hone_error *error)
{
    shim_device *d = NULL;
    if (out == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "nowhere to write the estimate");
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        *out = d->estimate;
        shim_unlock(d);
    }
    return status;
}

static hone_status last_fault(int device, hone_emu_fault *out, hone_error *error)
{
    shim_device *d = NULL;
    if (out == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "nowhere to write the fault");
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        *out = d->fault;
        shim_unlock(d);
    }
    return status;
}

static hone_status last_places(int device, char *text, size_t capacity, size_t *len,
                               hone_error *error)
{
    shim_device *d = NULL;
    if (len == NULL || (text == NULL && capacity != 0)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "nowhere to write the places");
    }
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        const char *places = d->places != NULL ? d->places : "";
        *len = strlen(places);
        if (capacity > 0) {
            size_t most = *len < capacity ? *len : capacity - 1;
            memcpy(text, places, most);
            text[most] = '\0';
        }
        shim_unlock(d);
    }
    return status;
}

/* Modes, samples and a fault that was asked for stay: they are the caller's, not the process's. */
static hone_status reset(int device, hone_error *error)
{
    shim_device *d = NULL;
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        for (shim_context *c = d->contexts; c != NULL; c = c->next) {
            c->sticky = CUDA_SUCCESS;
        }
        memset(&d->fault, 0, sizeof d->fault);
        memset(&d->counters, 0, sizeof d->counters);
        memset(&d->estimate, 0, sizeof d->estimate);
        machine_profile_free(&d->profile);
        free(d->places);
        d->places = NULL;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_launch_fault(int device, uint64_t nth, int result, hone_error *error)
{
    shim_device *d = NULL;
    hone_status status = lock_device(device, &d, error);
    if (status == HONE_OK) {
        d->launches = 0;
        d->fault_from = nth;
        d->fault_result = (CUresult)result;
        shim_unlock(d);
    }
    return status;
}

static hone_status set_cupti_faults(const hone_emu_cupti_faults *faults, hone_error *error)
{
    (void)error;
    cupti_set_faults(faults);
    return HONE_OK;
}

const hone_emu_api *hone_emu_api_v1(void)
{
    static const hone_emu_api api = {
        .version = HONE_EMU_VERSION,
        .set_devices = shim_configure,
        .set_arithmetic = set_arithmetic,
        .set_schedule = set_schedule,
        .set_checks = set_checks,
        .set_timing = set_timing,
        .set_threads = set_threads,
        .set_sample = set_sample,
        .set_resources = set_resources,
        .last_counters = last_counters,
        .last_fault = last_fault,
        .last_places = last_places,
        .set_profile = set_profile,
        .last_profile = last_profile,
        .last_estimate = last_estimate,
        .reset = reset,
        .set_launch_fault = set_launch_fault,
        .set_cupti_faults = set_cupti_faults,
    };
    return &api;
}
