/* tensor_map.c - cuTensorMapEncode*: fills a tensor map that keeps the header's rules; which rule
 * another one breaks is noted for hone_emu_api.last_fault. */
#include "emulator/driver/shim.h"

#include "emulator/machine/tensor_map.h"

#include <string.h>

_Static_assert(sizeof(CUtensorMap) == sizeof(tensor_map), "one fills the other");
_Static_assert((int)CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B == TENSOR_MAP_U6_PAD &&
                   (int)CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ == TENSOR_MAP_TF32_FTZ &&
                   (int)CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B == TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
                   (int)CU_TENSOR_MAP_INTERLEAVE_32B == TENSOR_MAP_INTERLEAVE_32B,
               "the driver's numbers");

enum { TENSOR_MAP_ARCH = 90 };

/* What the three calls share. */
typedef struct encoding {
    CUtensorMap *to;
    unsigned type, rank, interleave, swizzle, promotion, fill;
    const void *address;
    const cuuint64_t *dims, *strides;
    const cuuint32_t *element_strides;
    tensor_map_mode mode;
} encoding;

/* From the parameters, whose names the calls share. */
#define ENCODING(how)                                                                              \
    {                                                                                              \
        .to = tensorMap, .type = (unsigned)tensorDataType, .rank = tensorRank,                     \
        .interleave = (unsigned)interleave, .swizzle = (unsigned)swizzle,                          \
        .promotion = (unsigned)l2Promotion, .fill = (unsigned)oobFill, .address = globalAddress,   \
        .dims = globalDim, .strides = globalStrides, .element_strides = elementStrides,            \
        .mode = (how)                                                                              \
    }

/* A number as the map keeps it; one that does not fit is out of its rule's range as well. */
static uint8_t narrow(uint64_t value)
{
    return value < UINT8_MAX ? (uint8_t)value : UINT8_MAX;
}

static uint16_t narrow_box(uint64_t value)
{
    return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

/* Corners that do not fit 16 bits are refused at every rank. */
static bool corner(int lower, int upper, tensor_map *m, uint32_t d)
{
    m->lower[d] = (int16_t)lower;
    m->upper[d] = (int16_t)upper;
    return m->lower[d] == lower && m->upper[d] == upper;
}

static hone_status encode(const encoding *e, tensor_map *m, hone_error *error)
{
    bool strided = e->rank > 1 && e->rank <= TENSOR_MAP_RANK;

    if (e->to == NULL || (uintptr_t)e->to % TENSOR_MAP_ALIGN != 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "the map at %p is not a multiple of %d", (void *)e->to, TENSOR_MAP_ALIGN);
    }
    if (e->dims == NULL || e->element_strides == NULL || (strided && e->strides == NULL)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "dimensions, strides or element strides are NULL");
    }
    m->magic = TENSOR_MAP_MAGIC;
    m->address = (uint64_t)(uintptr_t)e->address;
    m->type = narrow(e->type);
    m->rank = narrow(e->rank);
    m->interleave = narrow(e->interleave);
    m->swizzle = narrow(e->swizzle);
    m->promotion = narrow(e->promotion);
    m->fill = narrow(e->fill);
    m->mode = (uint8_t)e->mode;
    for (uint32_t d = 0; d < e->rank && d < TENSOR_MAP_RANK; d++) {
        if (e->dims[d] > UINT64_C(1) << 32) {
            return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                              "dimension %u has %llu elements; 1 to 2^32 are possible", d,
                              (unsigned long long)e->dims[d]);
        }
        m->dims[d] = (uint32_t)e->dims[d];
        m->whole |= (uint8_t)((e->dims[d] >> 32) << d);
        m->element_strides[d] = narrow(e->element_strides[d]);
        if (d > 0) {
            m->strides[d - 1] = e->strides[d - 1];
        }
    }
    if (m->interleave == TENSOR_MAP_DENSE) {
        m->element_strides[0] = 1; /* what is given there is ignored */
    }
    return tensor_map_check(m, error);
}

/* Enter, make and check the map that `m` has been prepared for, and hand it out. */
static CUresult finish(const encoding *e, tensor_map *m, hone_status before, hone_error *error)
{
    shim_context *c = NULL;
    CUresult result = shim_enter_aside(&c, true);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (c->device->gpu.facts.arch < TENSOR_MAP_ARCH) {
        result = shim_note(c->device, CUDA_ERROR_NOT_SUPPORTED, "tensor-map",
                           "tensor maps need compute capability 9.0");
    } else if (before != HONE_OK || encode(e, m, error) != HONE_OK) {
        result = shim_note(c->device, CUDA_ERROR_INVALID_VALUE, "tensor-map", error->message);
    } else {
        memcpy(e->to, m, sizeof *m);
    }
    shim_leave(c);
    return result;
}

CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    const cuuint32_t *boxDim, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    hone_error error = {0};
    hone_status status = HONE_OK;
    tensor_map m = {0};
    encoding e = ENCODING(TENSOR_MAP_TILED);

    if (boxDim == NULL) {
        status = status_set(&error, HONE_BAD_ARGUMENT, NULL, 0, "the box is NULL");
    }
    for (uint32_t d = 0; boxDim != NULL && d < tensorRank && d < TENSOR_MAP_RANK; d++) {
        m.box[d] = narrow_box(boxDim[d]);
    }
    return finish(&e, &m, status, &error);
}

CUresult CUDAAPI cuTensorMapEncodeIm2col(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    hone_error error = {0};
    hone_status status = HONE_OK;
    tensor_map m = {.box = {narrow_box(channelsPerPixel), narrow_box(pixelsPerColumn)}};
    encoding e = ENCODING(TENSOR_MAP_IM2COL);
    uint32_t spatial = tensorRank >= 3 && tensorRank <= TENSOR_MAP_RANK ? tensorRank - 2 : 0;

    if (pixelBoxLowerCorner == NULL || pixelBoxUpperCorner == NULL) {
        status = status_set(&error, HONE_BAD_ARGUMENT, NULL, 0, "the corners are NULL");
        spatial = 0;
    }
    for (uint32_t d = 0; d < spatial; d++) { /* D, H, W; the map's dimensions are C, W, H, D, N */
        uint32_t given = spatial - 1 - d;
        if (!corner(pixelBoxLowerCorner[given], pixelBoxUpperCorner[given], &m, d)) {
            status = status_set(&error, HONE_BAD_ARGUMENT, NULL, 0,
                                "corner offsets %d and %d along dimension %u do not fit 16 bits",
                                pixelBoxLowerCorner[given], pixelBoxUpperCorner[given], d + 1);
        }
    }
    return finish(&e, &m, status, &error);
}

CUresult CUDAAPI cuTensorMapEncodeIm2colWide(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
    CUtensorMapFloatOOBfill oobFill)
{
    hone_error error = {0};
    hone_status status = HONE_OK;
    tensor_map m = {.box = {narrow_box(channelsPerPixel), narrow_box(pixelsPerColumn)}};
    encoding e = ENCODING(mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W ? TENSOR_MAP_IM2COL_W
                                                                   : TENSOR_MAP_IM2COL_W128);

    if (mode != CU_TENSOR_MAP_IM2COL_WIDE_MODE_W && mode != CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128) {
        status = status_set(&error, HONE_BAD_ARGUMENT, NULL, 0,
                            "wide im2col mode %d; there are W and W128", (int)mode);
    }
    if (!corner(pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth, &m, 0)) {
        status = status_set(&error, HONE_BAD_ARGUMENT, NULL, 0,
                            "corner offsets %d and %d along dimension 1 do not fit 16 bits",
                            pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth);
    }
    return finish(&e, &m, status, &error);
}

static hone_status replace_address(CUtensorMap *map, const void *address, hone_error *error)
{
    tensor_map m;

    if (map == NULL || (uintptr_t)map % TENSOR_MAP_ALIGN != 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "the map at %p is not a multiple of %d", (void *)map, TENSOR_MAP_ALIGN);
    }
    memcpy(&m, map, sizeof m);
    if (m.magic != TENSOR_MAP_MAGIC) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "no tensor map at %p", (void *)map);
    }
    m.address = (uint64_t)(uintptr_t)address;
    hone_status status = tensor_map_check(&m, error);
    if (status == HONE_OK) {
        memcpy(map, &m, sizeof m);
    }
    return status;
}

CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    hone_error error = {0};
    shim_context *c = NULL;
    CUresult result = shim_enter_aside(&c, true);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (replace_address(tensorMap, globalAddress, &error) != HONE_OK) {
        result = shim_note(c->device, CUDA_ERROR_INVALID_VALUE, "tensor-map", error.message);
    }
    shim_leave(c);
    return result;
}
