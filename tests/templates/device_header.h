/* device_header.h - a header of templates/device/ as text, to be compiled in a suite's own kernel.
 */
#ifndef HONE_TESTS_TEMPLATES_DEVICE_HEADER_H
#define HONE_TESTS_TEMPLATES_DEVICE_HEADER_H

/* The header without what NVRTC would look for in files; the caller frees it. Fails the test where
 * it cannot be read. */
char *device_header(const char *name);

#endif
