/* toolkit_narrow.c - see toolkit_narrow.h. */
#include "tests/emulator/toolkit_narrow.h"

#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

uint8_t toolkit_e2m1(float x)
{
    return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
}

uint8_t toolkit_e2m3(float x)
{
    return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest);
}

uint8_t toolkit_e3m2(float x)
{
    return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest);
}

uint8_t toolkit_ue8m0(float x, bool up, bool saturate)
{
    return __nv_cvt_float_to_e8m0(x, saturate ? __NV_SATFINITE : __NV_NOSAT,
                                  up ? cudaRoundPosInf : cudaRoundZero);
}

uint16_t toolkit_from_e2m3(uint8_t code)
{
    return __nv_cvt_fp6_to_halfraw(code, __NV_E2M3).x;
}

uint16_t toolkit_from_e3m2(uint8_t code)
{
    return __nv_cvt_fp6_to_halfraw(code, __NV_E3M2).x;
}

uint16_t toolkit_from_e2m1(uint8_t code)
{
    return __nv_cvt_fp4_to_halfraw(code, __NV_E2M1).x;
}
