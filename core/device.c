/* device.c - names of architectures. */
#include "core/device.h"

#include <stdio.h>

void device_arch_text(int32_t arch, char text[16])
{
    snprintf(text, 16, "sm_%d%s", (int)arch, arch >= 90 ? "a" : "");
}
