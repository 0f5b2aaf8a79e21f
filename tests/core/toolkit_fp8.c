/* toolkit_fp8.c - see toolkit_fp8.h. */
#include "tests/core/toolkit_fp8.h"

#include <cuda_fp8.h>

uint8_t toolkit_e4m3(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

uint8_t toolkit_e5m2(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
}
