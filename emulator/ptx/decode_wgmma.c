/* decode_wgmma.c - wgmma.* of Hopper. */
#include "emulator/ptx/build.h"

bool ptx_decode_wgmma(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}
