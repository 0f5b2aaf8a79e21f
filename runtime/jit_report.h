/* jit_report.h - inside the JIT: what ptxas says of a kernel, out of a compile's log. */
#ifndef HONE_RUNTIME_JIT_REPORT_H
#define HONE_RUNTIME_JIT_REPORT_H

#include "cache/kernel_cache.h"

#include <stddef.h>

/* ptxas' figures of one kernel, by its lowered name. False when the log does not have them. */
bool jit_report_resources(const char *log, size_t len, const char *lowered, kernel_function *out);

/* Count ptxas' messages that something costs the kernel speed: wgmma is serialised (C7510, C7512,
 * C7514 ...), an arrive or a wait was injected (C7519, C7517), setmaxnreg is ignored (C7508). One
 * that names no kernel of the program counts for each. The first, cleaned and without the kernel's
 * name, is written to `first` ("" without any). */
int32_t jit_report_remarks(const char *log, size_t len, const char *lowered, char *first,
                           size_t capacity);

#endif
