/* decode_bulk.c - cp.async.bulk between two places, fences. */
#include "emulator/ptx/build.h"

bool ptx_decode_bulk(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_fence(ptx_builder *b, ptx_form *f)
{
    if (ptx_form_has(f, "proxy") || ptx_form_has(f, "mbarrier_init")) {
        return false;
    }
    return ptx_decode_nothing(b, f);
}
