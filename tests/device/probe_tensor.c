/* probe_tensor.c - boxes of tensor maps: every swizzle, coordinates before, in and past the tensor,
 * element strides, and what fills the rest. */
#include "tests/device/probe.h"

#include <string.h>

enum { TILE_WORDS = 2048, WIDTH = 256, HEIGHT = 40, DEPTH = 3 };

/* A case's words: rank, swizzle, element bytes (1 or 4), box (x, y, z), coordinates, NaN fill. */
enum { RANK, SWIZZLE, BYTES, BOX_X, BOX_Y, BOX_Z, AT_X, AT_Y, AT_Z, NAN_FILL, BOX_FIELDS };
_Static_assert(BOX_FIELDS == 10, "in_each of the probe");

static const int32_t boxes[][BOX_FIELDS] = {
    {2, 0, 1, 128, 8, 1, 0, 0, 0, 0},     {2, 0, 1, 256, 16, 1, 0, 3, 0, 0},
    {2, 1, 1, 32, 64, 1, 16, 5, 0, 0},    {2, 2, 1, 64, 64, 1, 32, 5, 0, 0},
    {2, 3, 1, 128, 64, 1, 64, 5, 0, 0},   {2, 3, 1, 128, 32, 1, -16, -3, 0, 0},
    {2, 3, 1, 128, 32, 1, 240, 30, 0, 0}, {2, 2, 1, 64, 32, 1, -80, 0, 0, 0},
    {2, 1, 1, 32, 32, 1, 250, 38, 0, 0},  {2, 0, 4, 32, 16, 1, 0, 0, 0, 0},
    {2, 0, 4, 32, 16, 1, 50, 33, 0, 1},   {2, 3, 4, 32, 16, 1, 60, 38, 0, 1},
    {2, 3, 4, 32, 16, 1, -7, -2, 0, 1},   {2, 0, 4, 8, 4, 1, 100, 100, 0, 0},
    {3, 0, 1, 64, 8, 2, 0, 4, 1, 0},      {3, 3, 1, 128, 8, 3, 64, 36, 1, 0},
    {3, 2, 4, 16, 8, 3, 3, -1, -1, 0},    {3, 1, 4, 8, 40, 2, 62, 0, 2, 1},
};

void probe_fill_boxes(const probe *p, uint32_t *in)
{
    memcpy(in, boxes, (size_t)p->cases * p->in_each * sizeof *in);
}

/* Rows of fewer bytes than the span of the swizzle. */
static const int32_t narrow[][BOX_FIELDS] = {
    {2, 3, 1, 64, 32, 1, 0, 0, 0, 0},    {2, 3, 1, 16, 40, 1, 32, 0, 0, 0},
    {2, 3, 1, 112, 9, 1, 16, 3, 0, 0},   {2, 2, 1, 32, 40, 1, 0, 0, 0, 0},
    {2, 2, 1, 48, 24, 1, 16, 2, 0, 0},   {2, 1, 1, 16, 40, 1, 64, 0, 0, 0},
    {2, 3, 4, 8, 32, 1, 4, 1, 0, 0},     {3, 3, 1, 32, 8, 3, 0, 4, 0, 0},
    {2, 3, 1, 64, 16, 1, -32, 30, 0, 0}, {2, 3, 4, 12, 16, 1, 58, -4, 0, 1},
};

void probe_fill_narrow(const probe *p, uint32_t *in)
{
    memcpy(in, narrow, (size_t)p->cases * p->in_each * sizeof *in);
}

static hone_status encode(const device *d, const int32_t *box, uint64_t address, CUtensorMap *map,
                          hone_error *error)
{
    uint32_t bytes = (uint32_t)box[BYTES], rank = (uint32_t)box[RANK];
    cuuint64_t dims[3] = {WIDTH / bytes, HEIGHT, DEPTH}, strides[2] = {WIDTH, WIDTH * HEIGHT};
    cuuint32_t extent[3] = {(cuuint32_t)box[BOX_X], (cuuint32_t)box[BOX_Y], (cuuint32_t)box[BOX_Z]};
    cuuint32_t steps[3] = {1, 1, 1};

    return driver_check(
        d->driver,
        d->driver->cuTensorMapEncodeTiled(
            map, bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank,
            (void *)(uintptr_t)address, dims, strides, extent, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            (CUtensorMapSwizzle)box[SWIZZLE], CU_TENSOR_MAP_L2_PROMOTION_NONE,
            box[NAN_FILL] ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                          : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled", error);
}

static hone_status run_box(const device *d, CUfunction f, const int32_t *box, uint64_t tensor,
                           uint64_t out, hone_error *error)
{
    hone_status status = HONE_OK;
    CUtensorMap map;
    int32_t x = box[AT_X], y = box[AT_Y], z = box[AT_Z], rank = box[RANK];
    uint32_t bytes = (uint32_t)(box[BOX_X] * box[BOX_Y] * box[BOX_Z] * box[BYTES]);
    void *params[] = {&map, &out, &x, &y, &z, &rank, &bytes};

    TRY(encode(d, box, tensor, &map, error));
    TRY(driver_check(d->driver,
                     d->driver->cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL),
                     "cuLaunchKernel", error));
    TRY(driver_check(d->driver, d->driver->cuCtxSynchronize(), "cuCtxSynchronize", error));
done:
    return status;
}

hone_status probe_run_boxes(const probe *p, const device *d, CUfunction f, golden *g,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *v = d->driver;
    CUdeviceptr tensor = 0, out = 0;
    uint8_t content[WIDTH * HEIGHT * DEPTH];

    for (size_t n = 0; n < sizeof content;
         n++) { /* no byte is 0 or 0xa5, which the kernel fills with */
        content[n] = (uint8_t)(1 + (n * 37 + n / 251) % 150);
    }
    TRY(driver_check(v, v->cuMemAlloc(&tensor, sizeof content), "cuMemAlloc", error));
    TRY(driver_check(v, v->cuMemAlloc(&out, TILE_WORDS * 4), "cuMemAlloc", error));
    TRY(driver_check(v, v->cuMemcpyHtoD(tensor, content, sizeof content), "cuMemcpyHtoD", error));
    for (uint32_t n = 0; n < p->cases; n++) {
        int32_t box[BOX_FIELDS];
        memcpy(box, g->in + (size_t)n * p->in_each, sizeof box);
        TRY(run_box(d, f, box, tensor, out, error));
        TRY(driver_check(v, v->cuMemcpyDtoH(g->out + (size_t)n * p->out_each, out, TILE_WORDS * 4),
                         "cuMemcpyDtoH", error));
    }
done:
    v->cuMemFree(tensor);
    v->cuMemFree(out);
    return status;
}
