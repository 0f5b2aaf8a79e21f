/* image.c - what kind of image a program hands over, and whether this device takes its PTX. */
#include "emulator/driver/shim.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First bytes of images that are not text. */
static const struct {
    uint8_t magic[4];
    const char *what;
} binaries[] = {
    {{0x7f, 'E', 'L', 'F'}, "a cubin (ELF)"},
    {{0x50, 0xed, 0x55, 0xba}, "a fat binary"},
    {{0xb1, 0x43, 0x62, 0x46}, "a fat binary's wrapper"},
};

/* The text after white space and comments. */
static const char *skip_blank(const char *p)
{
    for (;;) {
        if (isspace((unsigned char)*p)) {
            p++;
        } else if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            p = end != NULL ? end + 2 : p + strlen(p);
        } else {
            return p;
        }
    }
}

/* The operand of a directive of the head (.version, .target, .address_size); NULL when it does not
 * stand there. */
static const char *head_directive(const char *text, const char *name)
{
    const char *p = skip_blank(text);
    while (*p == '.') {
        size_t len = strcspn(p, " \t\r\n/");
        if (strlen(name) == len && strncmp(p, name, len) == 0) {
            return skip_blank(p + len);
        }
        p = skip_blank(p + len);
        p = skip_blank(p + strcspn(p, "\r\n/"));
    }
    return NULL;
}

/* Code for an arch runs on later ones; with suffix a only on that arch, with f on its family's
 * later ones. */
static bool runs_on(long target, char suffix, long arch)
{
    if (suffix == 'a') {
        return target == arch;
    }
    if (suffix == 'f') {
        return target / 10 == arch / 10 && target <= arch;
    }
    return target <= arch;
}

static CUresult check_target(const char *text, int32_t arch, char *log, size_t log_capacity)
{
    const char *target = head_directive(text, ".target");
    if (target == NULL || strncmp(target, "sm_", 3) != 0 || !isdigit((unsigned char)target[3])) {
        snprintf(log, log_capacity, "no .target sm_XY directive at the head of the PTX\n");
        return CUDA_ERROR_INVALID_PTX;
    }
    char *end = NULL;
    long number = strtol(target + 3, &end, 10);
    char suffix = *end == 'a' || *end == 'f' ? *end : '\0';
    if (!runs_on(number, suffix, arch)) {
        snprintf(log, log_capacity,
                 ".target %.*s does not run on sm_%d; compile for compute_%d or earlier\n",
                 (int)strcspn(target, " \t\r\n,/"), target, arch, arch);
        return CUDA_ERROR_INVALID_PTX;
    }
    return CUDA_SUCCESS;
}

CUresult shim_image_check(const void *image, int32_t arch, char *log, size_t log_capacity)
{
    for (size_t i = 0; i < ARRAY_LEN(binaries); i++) {
        /* A short text ends within these four bytes: strncmp stops there. */
        if (strncmp(image, (const char *)binaries[i].magic, sizeof binaries[i].magic) == 0) {
            snprintf(log, log_capacity,
                     "the image is %s: the emulator executes PTX only; load what NVRTC's "
                     "nvrtcGetPTX gives\n",
                     binaries[i].what);
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        }
    }
    if (head_directive(image, ".version") == NULL) {
        snprintf(log, log_capacity,
                 "the image does not begin with a .version directive: not PTX\n");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return check_target(image, arch, log, log_capacity);
}
