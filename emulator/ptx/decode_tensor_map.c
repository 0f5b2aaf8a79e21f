/* decode_tensor_map.c - cp.async.bulk.tensor, tensormap.replace, prefetch.tensormap. */
#include "emulator/ptx/build.h"

bool ptx_decode_bulk_tensor(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_tensormap(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_prefetch(ptx_builder *b, ptx_form *f)
{
    return !ptx_form_has(f, "tensormap") && ptx_decode_nothing(b, f);
}
