/* probe_ranks.c - boxes of tensor maps of one to five dimensions: element strides of one to three,
 * every swizzle, zeros and NaN outside, coordinates before, in and past the tensor. */
#include "tests/device/probe.h"

#include <stdlib.h>
#include <string.h>

enum { TILE_WORDS = 512, ROW = 256, STEPS = 3, SWIZZLES = 4, ATOMS = 3 };

/* A case's words, as golden files have them. */
enum { RANK, SWIZZLE, BYTES, NAN_FILL, BOX, STEP = BOX + 5, AT = STEP + 5, FIELDS = AT + 5 };
_Static_assert((int)FIELDS == (int)PROBE_RANKS_WORDS, "in_each of the probes");

static const uint32_t dims[5] = {ROW, 8, 5, 4, 3}; /* of one byte each; of words, ROW / 4 */

static uint32_t elements(const int32_t *box, uint32_t d)
{
    return d == 0 ? dims[0] / (uint32_t)box[BYTES] : dims[d];
}

/* Elements along each dimension but the first that a box of that rank brings: 16 rows at most. */
static const uint32_t counts[6][5] = {{0}, {1}, {1, 8}, {1, 4, 2}, {1, 3, 2, 2}, {1, 2, 2, 2, 2}};

/* The n-th of all: a rank, a swizzle, a stride; the fill alternates, so that each swizzle has both.
 */
static void make_case(int32_t *box, uint32_t n, uint32_t swizzle, uint32_t span)
{
    uint32_t rank = 1 + n / STEPS % 5, step = 1 + n % STEPS;
    bool nan = (rank + swizzle + step) % 2 == 0;
    const int32_t before[5] = {-3, -1, -1, -2, -1};

    memset(box, 0, FIELDS * sizeof *box);
    box[RANK] = (int32_t)rank;
    box[SWIZZLE] = (int32_t)swizzle;
    box[BYTES] = nan ? 4 : 1;
    box[NAN_FILL] = nan;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t stride = 1 + (step - 1 + (d > 0 ? d - 1 : 0)) % STEPS, most = elements(box, d);
        uint32_t count = d == 0 ? span / (uint32_t)box[BYTES] : counts[rank][d];
        int32_t past = (int32_t)most - 2;
        box[STEP + d] = (int32_t)stride; /* of dimension 0 it is given, and means nothing */
        /* one more than the last one needs, where the stride leaves room: it brings nothing */
        box[BOX + d] = (int32_t)(d == 0 ? count : (count - 1) * stride + 1 + (stride > 1));
        box[AT + d] = (n + d) % 3 == 0 ? before[d] : (n + d) % 3 == 1 ? 1 : past;
    }
}

void probe_fill_ranks(const probe *p, uint32_t *in)
{
    for (uint32_t n = 0; n < p->cases; n++) {
        uint32_t swizzle = n / (5 * STEPS) % SWIZZLES;
        make_case((int32_t *)in + (size_t)n * FIELDS, n, swizzle,
                  swizzle == 0 ? 64 : 16u << swizzle);
    }
}

/* Chunks of 32 and 64 bytes under the pattern of 128: swizzles 4 to 6. */
void probe_fill_atoms(const probe *p, uint32_t *in)
{
    for (uint32_t n = 0; n < p->cases; n++) {
        make_case((int32_t *)in + (size_t)n * FIELDS, n, SWIZZLES + n / (5 * STEPS) % ATOMS, 128);
    }
}

static hone_status encode(const device *d, const int32_t *box, uint64_t address, CUtensorMap *map,
                          hone_error *error)
{
    cuuint64_t size[5], strides[4] = {ROW, ROW * 8, ROW * 40, ROW * 160};
    cuuint32_t extent[5], steps[5];

    for (uint32_t k = 0; k < 5; k++) {
        size[k] = elements(box, k);
        extent[k] = (cuuint32_t)box[BOX + k];
        steps[k] = (cuuint32_t)box[STEP + k];
    }
    return driver_check(
        d->driver,
        d->driver->cuTensorMapEncodeTiled(
            map, box[BYTES] == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            (cuuint32_t)box[RANK], (void *)(uintptr_t)address, size, strides, extent, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)box[SWIZZLE],
            CU_TENSOR_MAP_L2_PROMOTION_NONE,
            box[NAN_FILL] ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                          : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled", error);
}

static hone_status run_box(const device *d, CUfunction f, int32_t *box, uint64_t tensor,
                           uint64_t out, hone_error *error)
{
    hone_status status = HONE_OK;
    CUtensorMap map;
    uint32_t bytes = (uint32_t)box[BYTES];
    int32_t *at = box + AT;
    void *params[] = {&map, &out, at, at + 1, at + 2, at + 3, at + 4, box + RANK, &bytes};

    for (int32_t k = 0; k < box[RANK]; k++) {
        int32_t step = k > 0 ? box[STEP + k] : 1;
        bytes *= (uint32_t)((box[BOX + k] + step - 1) / step);
    }
    TRY(encode(d, box, tensor, &map, error));
    TRY(driver_check(d->driver,
                     d->driver->cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL),
                     "cuLaunchKernel", error));
    TRY(driver_check(d->driver, d->driver->cuCtxSynchronize(), "cuCtxSynchronize", error));
done:
    return status;
}

hone_status probe_run_ranks(const probe *p, const device *d, CUfunction f, golden *g,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *v = d->driver;
    CUdeviceptr tensor = 0, out = 0;
    static const uint32_t size = ROW * 8 * 5 * 4 * 3;
    uint8_t *content = malloc(size);

    if (content == NULL) {
        return status_set(error, HONE_NO_MEMORY, p->name, 0, "a tensor");
    }
    for (uint32_t n = 0; n < size; n++) { /* no byte is 0 or 0xa5, which the kernel fills with */
        content[n] = (uint8_t)(1 + (n * 37 + n / 251) % 150);
    }
    TRY(driver_check(v, v->cuMemAlloc(&tensor, size), "cuMemAlloc", error));
    TRY(driver_check(v, v->cuMemAlloc(&out, TILE_WORDS * 4), "cuMemAlloc", error));
    TRY(driver_check(v, v->cuMemcpyHtoD(tensor, content, size), "cuMemcpyHtoD", error));
    for (uint32_t n = 0; n < p->cases; n++) {
        int32_t box[FIELDS];
        memcpy(box, g->in + (size_t)n * FIELDS, sizeof box);
        TRY(run_box(d, f, box, tensor, out, error));
        TRY(driver_check(v, v->cuMemcpyDtoH(g->out + (size_t)n * p->out_each, out, TILE_WORDS * 4),
                         "cuMemcpyDtoH", error));
    }
done:
    v->cuMemFree(tensor);
    v->cuMemFree(out);
    free(content);
    return status;
}
