/* checked_fixture.c - operands on a device, and the checked mode's word on them. */
#include "tests/runtime/checked_fixture.h"

#include "bench/inputs.h"
#include "runtime/check_values.h"
#include "tests/runtime/store_fixture.h"

#include <check.h>
#include <string.h>

hone_error checked_error;

void checked_put(const checked_memory *m, size_t operand, uint64_t offset, const void *bytes,
                 size_t len)
{
    ck_assert_int_eq(m->d->driver->cuMemcpyHtoD(m->args[operand].address + offset, bytes, len),
                     CUDA_SUCCESS);
}

void checked_open(checked_memory *m, device *d, const char *text, uint64_t most)
{
    memset(m, 0, sizeof *m);
    m->d = d;
    m->problem = store_fixture_problem(text);
    ck_assert_int_eq(device_enter(d, &checked_error), HONE_OK);
    ck_assert_int_eq(hone_operands(&m->problem, m->operands, &m->len, &checked_error), HONE_OK);
    for (size_t i = 0; i < m->len; i++) {
        const uint64_t bytes = m->operands[i].bytes < most ? m->operands[i].bytes : most;
        CUdeviceptr address = 0;
        ck_assert_int_eq(d->driver->cuMemAlloc(&address, bytes + 16), CUDA_SUCCESS);
        m->args[i] = (hone_arg){address, m->operands[i].bytes, 0};
    }
}

void checked_open_right(checked_memory *m, device *d, const char *text)
{
    inputs in = {0};

    checked_open(m, d, text, UINT64_MAX);
    ck_assert_msg(inputs_make(&m->problem, INPUTS_NORMAL, 7, &in, &checked_error) == HONE_OK, "%s",
                  checked_error.message);
    for (size_t i = 0; i < m->len; i++) {
        checked_put(m, i, 0, in.image[i], m->operands[i].bytes);
    }
    inputs_free(&in);
}

void checked_close(checked_memory *m)
{
    for (size_t i = 0; i < m->len; i++) {
        m->d->driver->cuMemFree(m->args[i].address);
    }
}

hone_status checked_status(const checked_memory *m, int32_t level)
{
    const check_request r = {.device = m->d,
                             .problem = &m->problem,
                             .operands = m->operands,
                             .args = m->args,
                             .level = level};

    memset(&checked_error, 0, sizeof checked_error);
    return check_values(&r, &checked_error);
}

device *checked_device(void)
{
    device *d = NULL;

    ck_assert_msg(device_open("emu:h20", &d, &checked_error) == HONE_OK, "%s",
                  checked_error.message);
    return d;
}
