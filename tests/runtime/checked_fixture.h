/* checked_fixture.h - operands of a problem on an emulated device, and what the checked mode says
 * of them. Failures end the test. */
#ifndef HONE_TESTS_RUNTIME_CHECKED_FIXTURE_H
#define HONE_TESTS_RUNTIME_CHECKED_FIXTURE_H

#include "core/problem.h"
#include "runtime/device.h"

/* What checked_status was told last. */
extern hone_error checked_error;

/* Operands of a problem on a device. */
typedef struct checked_memory {
    device *d;
    hone_problem problem;
    size_t len;
    hone_operand operands[HONE_MAX_OPERANDS];
    hone_arg args[HONE_MAX_OPERANDS];
} checked_memory;

device *checked_device(void);

/* Room for operands, at most `most` bytes of each. */
void checked_open(checked_memory *m, device *d, const char *text, uint64_t most);
/* With operands that are all right. */
void checked_open_right(checked_memory *m, device *d, const char *text);
void checked_close(checked_memory *m);
void checked_put(const checked_memory *m, size_t operand, uint64_t offset, const void *bytes,
                 size_t len);
hone_status checked_status(const checked_memory *m, int32_t level);

#endif
