/* check_values.h - the checked mode of serving: values of operands, looked at before a launch.
 *
 * For finding faults, not for speed: the stream is waited for and operands are read to the host,
 * chunk by chunk. What is wrong for an op is written in check_values.c alone, a row for each op. */
#ifndef HONE_RUNTIME_CHECK_VALUES_H
#define HONE_RUNTIME_CHECK_VALUES_H

#include "core/problem.h"
#include "runtime/device.h"

typedef struct check_request {
    const device *device;
    const hone_problem *problem;
    const hone_operand *operands; /* in the order of args */
    const hone_arg *args;
    CUstream stream;
    int32_t level; /* hone_checked, not off */
} check_request;

/* HONE_BAD_ARGUMENT names the first value that is wrong (hone_launch says which are),
 * HONE_UNSUPPORTED a stream that is being captured. HONE_DRIVER when the stream holds an error or
 * memory cannot be read. Thread-safe; leaves the caller's context current. */
hone_status check_values(const check_request *r, hone_error *error);

#endif
