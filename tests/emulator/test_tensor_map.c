/* test_tensor_map.c - cuTensorMapEncode*: each rule of the toolkit's header, its last good value on
 * either side taken and the first bad one refused, with the reason. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

static shim_driver d;

static void start(void)
{
    shim_driver_start(&d, "h20,l4");
}

/* All that the calls take. */
typedef struct arguments {
    CUtensorMap maps[2];
    size_t map_offset; /* bytes */
    uint64_t address, type, rank, interleave, swizzle, promotion, fill, channels, pixels, mode;
    cuuint64_t dims[6], strides[5];
    cuuint32_t box[6], element_strides[6];
    int lower[3], upper[3];
    bool no_dims, no_strides, no_box, no_element_strides;
} arguments;

typedef enum call { TILED, IM2COL, WIDE } call;

/* A field of the arguments, by name, and what becomes of it. */
typedef struct edit {
    const char *field;
    int64_t value;
} edit;

static const struct {
    const char *name;
    call call;
    edit edits[6];
    const char *why; /* NULL: taken */
} cases[] = {
    {"a plain map", TILED, {{0}}, NULL},
    {"a map at a multiple of 64", TILED, {{"map_offset", 64}}, NULL},
    {"a map at a multiple of 32 only", TILED, {{"map_offset", 32}}, "is not a multiple of 64"},
    {"no dimensions", TILED, {{"no_dims", 1}}, "dimensions, strides or element strides are NULL"},
    {"no strides", TILED, {{"no_strides", 1}}, "dimensions, strides or element strides are NULL"},
    {"no strides at rank 1", TILED, {{"no_strides", 1}, {"rank", 1}}, NULL},
    {"no box", TILED, {{"no_box", 1}}, "the box is NULL"},
    {"no element strides",
     TILED,
     {{"no_element_strides", 1}},
     "dimensions, strides or element strides are NULL"},

    {"type 0", TILED, {{"type", 0}}, NULL},
    {"type 16", TILED, {{"type", 16}}, "data type 16; there are 0 to 15"},
    {"type 2^32 - 1", TILED, {{"type", 0xffffffff}}, "data type 255; there are 0 to 15"},
    {"interleave 3", TILED, {{"interleave", 3}}, "interleave 3; there are 0 to 2"},
    {"swizzle 6", TILED, {{"swizzle", 6}}, NULL},
    {"swizzle 7", TILED, {{"swizzle", 7}}, "swizzle 7; there are 0 to 6"},
    {"promotion 3", TILED, {{"promotion", 3}}, NULL},
    {"promotion 4", TILED, {{"promotion", 4}}, "L2 promotion 4; there are 0 to 3"},
    {"fill 1 of a float", TILED, {{"fill", 1}}, NULL},
    {"fill 2", TILED, {{"fill", 2}}, "out-of-bounds fill 2; there are 0 and 1"},
    {"NaN fill of integers",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_INT32}, {"fill", 1}},
     "NaN fill of type int32, which has no NaN"},
    {"NaN fill of 4-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B}, {"fill", 1}},
     "NaN fill of type 16u4-align8b, which has no NaN"},

    {"rank 0", TILED, {{"rank", 0}}, "rank 0; 1 to 5 are possible"},
    {"rank 1", TILED, {{"rank", 1}}, NULL},
    {"rank 5", TILED, {{"rank", 5}}, NULL},
    {"rank 6", TILED, {{"rank", 6}}, "rank 6; 1 to 5 are possible"},
    {"rank 2 with interleave",
     TILED,
     {{"rank", 2}, {"interleave", 1}},
     "rank 2; 3 to 5 are possible with interleave"},
    {"rank 3 with interleave", TILED, {{"rank", 3}, {"interleave", 1}}, NULL},

    {"an address of 16", TILED, {{"address", 16}}, NULL},
    {"an address of 8", TILED, {{"address", 8}}, "address 0x8 is not a multiple of 16"},
    {"an address of 16 with 32B interleave",
     TILED,
     {{"address", 16}, {"rank", 3}, {"interleave", 2}, {"swizzle", 1}},
     "address 0x10 is not a multiple of 32, as 32B interleave takes"},
    {"an address of 32 with 32B interleave",
     TILED,
     {{"address", 32}, {"rank", 3}, {"interleave", 2}, {"swizzle", 1}},
     NULL},
    {"an address of 16 of padded 4-bit values",
     TILED,
     {{"address", 16},
      {"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B},
      {"dims0", 256},
      {"box0", 128}},
     "address 0x10 is not a multiple of 32, as 16u4-align16b takes"},
    {"an address of 16 of padded 6-bit values",
     TILED,
     {{"address", 16},
      {"type", CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B},
      {"dims0", 256},
      {"box0", 128}},
     "address 0x10 is not a multiple of 32, as 16u6-align16b takes"},

    {"a dimension of 1", TILED, {{"dims0", 1}}, NULL},
    {"a dimension of 0",
     TILED,
     {{"dims1", 0}},
     "dimension 1 has no elements; 1 to 2^32 are possible"},
    {"a dimension of 2^32", TILED, {{"dims1", INT64_C(1) << 32}}, NULL},
    {"a dimension of 2^32 + 1",
     TILED,
     {{"dims1", (INT64_C(1) << 32) + 1}},
     "dimension 1 has 4294967297 elements; 1 to 2^32 are possible"},
    {"4-bit values in pairs",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B}, {"dims0", 34}, {"box0", 32}},
     NULL},
    {"an odd number of 4-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B}, {"dims0", 35}},
     "dimension 0 has 35 elements, no multiple of 2, as 16u4-align8b takes"},
    {"128 padded 4-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B}, {"dims0", 128}, {"box0", 128}},
     NULL},
    {"130 padded 4-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B}, {"dims0", 130}, {"box0", 128}},
     "dimension 0 has 130 elements, no multiple of 128, as 16u4-align16b takes"},
    {"192 padded 6-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B}, {"dims0", 192}, {"box0", 128}},
     "dimension 0 has 192 elements, no multiple of 128, as 16u6-align16b takes"},

    {"a stride of 16", TILED, {{"strides0", 16}}, NULL},
    {"a stride of 0, as programs give dimensions of one element", TILED, {{"strides0", 0}}, NULL},
    {"a stride of 24",
     TILED,
     {{"strides0", 24}},
     "stride 24 of dimension 1 is not a multiple of 16"},
    {"a stride below 2^40", TILED, {{"strides1", (INT64_C(1) << 40) - 16}}, NULL},
    {"a stride of 2^40",
     TILED,
     {{"strides1", INT64_C(1) << 40}},
     "stride 1099511627776 of dimension 2; strides are below 2^40"},
    {"a stride of a dimension that is not there", TILED, {{"rank", 2}, {"strides1", 1}}, NULL},
    {"a stride of 48 with 32B interleave",
     TILED,
     {{"strides0", 48}, {"rank", 3}, {"interleave", 2}, {"swizzle", 1}},
     "stride 48 of dimension 1 is not a multiple of 32"},
    {"a stride of 48 of padded 6-bit values",
     TILED,
     {{"strides0", 48},
      {"type", CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B},
      {"dims0", 128},
      {"box0", 128}},
     "stride 48 of dimension 1 is not a multiple of 32"},

    {"a box of 256", TILED, {{"box1", 256}}, NULL},
    {"a box of 257",
     TILED,
     {{"box1", 257}},
     "box of 257 elements along dimension 1; 1 to 256 are possible"},
    {"a box of 0",
     TILED,
     {{"box2", 0}},
     "box of 0 elements along dimension 2; 1 to 256 are possible"},
    {"a box of 2^32 - 1",
     TILED,
     {{"box1", 0xffffffff}},
     "box of 65535 elements along dimension 1; 1 to 256 are possible"},
    {"a box of 16 bytes", TILED, {{"box0", 4}}, NULL},
    {"a box of 20 bytes",
     TILED,
     {{"box0", 5}},
     "box of 5 float32 along dimension 0 is 20 bytes, no multiple of 16"},
    {"a box of 20 bytes, interleaved", TILED, {{"box0", 5}, {"rank", 3}, {"interleave", 1}}, NULL},
    {"a box of 32 4-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B}, {"box0", 32}},
     NULL},
    {"a box of 16 4-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B}, {"box0", 16}},
     "box of 16 16u4-align8b along dimension 0 is 8 bytes, no multiple of 16"},
    {"a box of 64 padded 4-bit values",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B}, {"dims0", 128}, {"box0", 64}},
     "box of 64 elements along dimension 0; 16u4-align16b takes 128"},

    {"an element stride of 8", TILED, {{"element_strides1", 8}}, NULL},
    {"an element stride of 9",
     TILED,
     {{"element_strides1", 9}},
     "element stride 9 of dimension 1; 1 to 8 are possible"},
    {"an element stride of 0",
     TILED,
     {{"element_strides2", 0}},
     "element stride 0 of dimension 2; 1 to 8 are possible"},
    {"an element stride of dimension 0, which is ignored", TILED, {{"element_strides0", 0}}, NULL},
    {"an element stride of dimension 0, interleaved",
     TILED,
     {{"element_strides0", 0}, {"rank", 3}, {"interleave", 1}},
     "element stride 0 of dimension 0; 1 to 8 are possible"},

    {"32 bytes of a 32B pattern", TILED, {{"swizzle", 1}, {"box0", 8}}, NULL},
    {"48 bytes of a 32B pattern",
     TILED,
     {{"swizzle", 1}, {"box0", 12}},
     "box of 48 bytes along dimension 0; swizzle 32B takes up to 32"},
    {"64 bytes of a 64B pattern", TILED, {{"swizzle", 2}, {"box0", 16}}, NULL},
    {"80 bytes of a 64B pattern",
     TILED,
     {{"swizzle", 2}, {"box0", 20}},
     "box of 80 bytes along dimension 0; swizzle 64B takes up to 64"},
    {"128 bytes of a 128B pattern", TILED, {{"swizzle", 3}, {"box0", 32}}, NULL},
    {"144 bytes of a 128B pattern",
     TILED,
     {{"swizzle", 3}, {"box0", 36}},
     "box of 144 bytes along dimension 0; swizzle 128B takes up to 128"},
    {"144 bytes of atoms of 32",
     TILED,
     {{"swizzle", 4}, {"box0", 36}},
     "box of 144 bytes along dimension 0; swizzle 128B-atom-32B takes up to 128"},
    {"144 bytes of atoms of 32 with a flip",
     TILED,
     {{"swizzle", 5}, {"box0", 36}},
     "box of 144 bytes along dimension 0; swizzle 128B-atom-32B-flip-8B takes up to 128"},
    {"144 bytes of atoms of 64",
     TILED,
     {{"swizzle", 6}, {"box0", 36}},
     "box of 144 bytes along dimension 0; swizzle 128B-atom-64B takes up to 128"},
    {"144 bytes of a 128B pattern, interleaved",
     TILED,
     {{"swizzle", 3}, {"box0", 36}, {"rank", 3}, {"interleave", 1}},
     NULL},
    {"32B interleave with another pattern",
     TILED,
     {{"rank", 3}, {"interleave", 2}, {"swizzle", 2}},
     "swizzle 64B with 32B interleave, which takes 32B"},
    {"padded 6-bit values, interleaved",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B},
      {"dims0", 128},
      {"box0", 128},
      {"rank", 3},
      {"interleave", 1}},
     "interleave of 16u6-align16b, which takes none"},
    {"padded 6-bit values, atoms of 64",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B},
      {"dims0", 128},
      {"box0", 128},
      {"swizzle", 6}},
     NULL},
    {"padded 6-bit values, 64B pattern",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B},
      {"dims0", 128},
      {"box0", 128},
      {"swizzle", 2}},
     "swizzle 64B of type 16u6-align16b, which does not take it"},
    {"padded 4-bit values, atoms of 32",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B},
      {"dims0", 128},
      {"box0", 128},
      {"swizzle", 4}},
     NULL},
    {"padded 4-bit values, atoms of 64",
     TILED,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B},
      {"dims0", 128},
      {"box0", 128},
      {"swizzle", 6}},
     "swizzle 128B-atom-64B of type 16u4-align16b, which does not take it"},

    {"a plain image", IM2COL, {{0}}, NULL},
    {"an image of rank 2", IM2COL, {{"rank", 2}}, "rank 2; 3 to 5 are possible with im2col"},
    {"corners of one dimension",
     IM2COL,
     {{"rank", 3}, {"lower0", -32768}, {"upper0", 32767}},
     NULL},
    {"a corner of one dimension past 16 bits",
     IM2COL,
     {{"rank", 3}, {"upper0", 32768}},
     "corner offsets 0 and 32768 along dimension 1 do not fit 16 bits"},
    {"corners of two dimensions", IM2COL, {{"lower1", -128}, {"upper1", 127}}, NULL},
    {"a corner of two dimensions below -128",
     IM2COL,
     {{"lower1", -129}},
     "corner offsets -129 and 0 along dimension 1; -128 to 127 are possible at rank 4"},
    {"a corner of two dimensions above 127",
     IM2COL,
     {{"upper0", 128}},
     "corner offsets 0 and 128 along dimension 2; -128 to 127 are possible at rank 4"},
    {"corners of three dimensions", IM2COL, {{"rank", 5}, {"lower0", -16}, {"upper2", 15}}, NULL},
    {"a corner of three dimensions above 15",
     IM2COL,
     {{"rank", 5}, {"upper2", 16}},
     "corner offsets 0 and 16 along dimension 1; -16 to 15 are possible at rank 5"},
    {"corners one pixel apart", IM2COL, {{"lower1", 19}, {"dims1", 20}}, NULL},
    {"corners that meet",
     IM2COL,
     {{"lower1", 20}, {"dims1", 20}},
     "corner offsets 20 and 0 leave nothing of the 20 pixels along dimension 1"},
    {"256 channels", IM2COL, {{"channels", 256}}, NULL},
    {"257 channels", IM2COL, {{"channels", 257}}, "257 channels a pixel; 1 to 256 are possible"},
    {"64 channels of padded 4-bit values",
     IM2COL,
     {{"type", CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B}, {"dims0", 128}, {"channels", 64}},
     "64 channels a pixel; 16u4-align16b takes 128"},
    {"1024 pixels", IM2COL, {{"pixels", 1024}}, NULL},
    {"1025 pixels", IM2COL, {{"pixels", 1025}}, "1025 pixels a column; 1 to 1024 are possible"},
    {"36 channels of a 128B pattern",
     IM2COL,
     {{"channels", 36}, {"swizzle", 3}},
     "box of 144 bytes along dimension 0; swizzle 128B takes up to 128"},

    {"a wide image", WIDE, {{0}}, NULL},
    {"a wide image of another mode",
     WIDE,
     {{"mode", 2}},
     "wide im2col mode 2; there are W and W128"},
    {"a wide corner past 16 bits",
     WIDE,
     {{"lower0", -32769}},
     "corner offsets -32769 and 0 along dimension 1 do not fit 16 bits"},
    {"a wide image without a pattern",
     WIDE,
     {{"swizzle", 0}},
     "swizzle none; wide im2col takes 64B, 128B or 128B-atom-32B"},
    {"a wide image with atoms of 64",
     WIDE,
     {{"swizzle", 6}},
     "swizzle 128B-atom-64B; wide im2col takes 64B, 128B or 128B-atom-32B"},
    {"1025 pixels, W",
     WIDE,
     {{"pixels", 1025}, {"mode", 0}},
     "1025 pixels a column; 1 to 1024 are possible"},
    {"1025 pixels, W128, where they are ignored", WIDE, {{"pixels", 1025}, {"mode", 1}}, NULL},
};

/* By the field's name, with its index last. */
static void apply(arguments *a, const edit *e)
{
    static const struct {
        const char *name;
        size_t offset, bytes;
    } fields[] = {
#define FIELD(f) {#f, offsetof(arguments, f), sizeof((arguments *)0)->f}
#define ITEM(f, n)                                                                                 \
    {                                                                                              \
#f #n, offsetof(arguments, f) +                                                            \
                   n * sizeof((arguments *)0)->f[0], sizeof((arguments *)0)->f[0]                  \
    }
        FIELD(map_offset),
        FIELD(address),
        FIELD(type),
        FIELD(rank),
        FIELD(interleave),
        FIELD(swizzle),
        FIELD(promotion),
        FIELD(fill),
        FIELD(channels),
        FIELD(pixels),
        FIELD(mode),
        FIELD(no_dims),
        FIELD(no_strides),
        FIELD(no_box),
        FIELD(no_element_strides),
        ITEM(dims, 0),
        ITEM(dims, 1),
        ITEM(strides, 0),
        ITEM(strides, 1),
        ITEM(box, 0),
        ITEM(box, 1),
        ITEM(box, 2),
        ITEM(element_strides, 0),
        ITEM(element_strides, 1),
        ITEM(element_strides, 2),
        ITEM(lower, 0),
        ITEM(lower, 1),
        ITEM(upper, 0),
        ITEM(upper, 1),
        ITEM(upper, 2),
#undef FIELD
#undef ITEM
    };
    for (size_t n = 0; n < ARRAY_LEN(fields); n++) {
        if (strcmp(fields[n].name, e->field) == 0) { /* little-endian: the low bytes are first */
            memcpy((char *)a + fields[n].offset, &e->value, fields[n].bytes);
            return;
        }
    }
    ck_abort_msg("no field %s", e->field);
}

static arguments plain(call c)
{
    arguments a = {.address = 0x10000,
                   .type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                   .rank = c == TILED ? 3 : 4,
                   .swizzle = c == WIDE ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                   .channels = 32,
                   .pixels = 64,
                   .dims = {64, 100, 100, 8, 8, 8},
                   .strides = {256, 25600, 2560000, 20480000, 163840000},
                   .box = {16, 8, 4, 2, 1, 1},
                   .element_strides = {1, 1, 1, 1, 1, 1}};
    return a;
}

static CUresult encode(arguments *a, call c)
{
    CUtensorMap *to = (void *)((char *)a->maps + a->map_offset);
    void *address = (void *)(uintptr_t)a->address;
    const cuuint64_t *dims = a->no_dims ? NULL : a->dims;
    const cuuint64_t *strides = a->no_strides ? NULL : a->strides;
    const cuuint32_t *steps = a->no_element_strides ? NULL : a->element_strides;

    switch (c) {
    case TILED:
        return d.cuTensorMapEncodeTiled(
            to, (CUtensorMapDataType)a->type, (cuuint32_t)a->rank, address, dims, strides,
            a->no_box ? NULL : a->box, steps, (CUtensorMapInterleave)a->interleave,
            (CUtensorMapSwizzle)a->swizzle, (CUtensorMapL2promotion)a->promotion,
            (CUtensorMapFloatOOBfill)a->fill);
    case IM2COL:
        return d.cuTensorMapEncodeIm2col(
            to, (CUtensorMapDataType)a->type, (cuuint32_t)a->rank, address, dims, strides, a->lower,
            a->upper, (cuuint32_t)a->channels, (cuuint32_t)a->pixels, steps,
            (CUtensorMapInterleave)a->interleave, (CUtensorMapSwizzle)a->swizzle,
            (CUtensorMapL2promotion)a->promotion, (CUtensorMapFloatOOBfill)a->fill);
    case WIDE:
        break;
    }
    return d.cuTensorMapEncodeIm2colWide(
        to, (CUtensorMapDataType)a->type, (cuuint32_t)a->rank, address, dims, strides, a->lower[0],
        a->upper[0], (cuuint32_t)a->channels, (cuuint32_t)a->pixels, steps,
        (CUtensorMapInterleave)a->interleave, (CUtensorMapIm2ColWideMode)a->mode,
        (CUtensorMapSwizzle)a->swizzle, (CUtensorMapL2promotion)a->promotion,
        (CUtensorMapFloatOOBfill)a->fill);
}

START_TEST(a_map_that_keeps_the_rules_is_made_and_one_that_does_not_is_refused_with_the_reason)
{
    arguments a = plain(cases[_i].call);
    hone_emu_fault fault;

    for (size_t n = 0; n < ARRAY_LEN(cases[_i].edits) && cases[_i].edits[n].field != NULL; n++) {
        apply(&a, &cases[_i].edits[n]);
    }
    CUresult result = encode(&a, cases[_i].call);
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    if (cases[_i].why == NULL) {
        ck_assert_msg(result == CUDA_SUCCESS, "%s: %s", cases[_i].name, fault.message);
        return;
    }
    ck_assert_msg(result == CUDA_ERROR_INVALID_VALUE, "%s: not refused", cases[_i].name);
    ck_assert_str_eq(fault.kind, "tensor-map");
    ck_assert_msg(cases[_i].edits[0].field == NULL ||
                          strcmp(cases[_i].edits[0].field, "map_offset") == 0
                      ? strstr(fault.message, cases[_i].why) != NULL
                      : strcmp(fault.message, cases[_i].why) == 0,
                  "%s: %s", cases[_i].name, fault.message);
    static const CUtensorMap untouched[2];
    ck_assert_mem_eq(a.maps, untouched, sizeof untouched);
}
END_TEST

START_TEST(an_address_is_replaced_by_the_same_rules)
{
    arguments a = plain(TILED), other = plain(TILED);
    static CUtensorMap none;
    hone_emu_fault fault;

    other.address = 0x20000;
    ck_assert_int_eq(encode(&a, TILED), CUDA_SUCCESS);
    ck_assert_int_eq(encode(&other, TILED), CUDA_SUCCESS);
    SHIM_OK(&d, cuTensorMapReplaceAddress(&a.maps[0], (void *)(uintptr_t)0x20000));
    ck_assert_mem_eq(&a.maps[0], &other.maps[0], sizeof a.maps[0]);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuTensorMapReplaceAddress(&a.maps[0], (void *)(uintptr_t)0x20008));
    ck_assert_mem_eq(&a.maps[0], &other.maps[0], sizeof a.maps[0]);
    d.emu->last_fault(0, &fault, NULL);
    ck_assert_str_eq(fault.message, "address 0x20008 is not a multiple of 16");
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(&none, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(NULL, NULL));
}
END_TEST

START_TEST(devices_before_sm_90_have_no_tensor_maps)
{
    arguments a = plain(TILED);
    CUcontext context = NULL;

    SHIM_OK(&d, cuDevicePrimaryCtxRetain(&context, 1));
    SHIM_OK(&d, cuCtxSetCurrent(context));
    ck_assert_int_eq(encode(&a, TILED), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(the_calls_are_found_by_name_from_the_version_that_brought_them)
{
    static const struct {
        const char *name;
        int version;
    } calls[] = {{"cuTensorMapEncodeTiled", 12000},
                 {"cuTensorMapEncodeIm2col", 12000},
                 {"cuTensorMapEncodeIm2colWide", 12080},
                 {"cuTensorMapReplaceAddress", 12000}};

    for (size_t n = 0; n < ARRAY_LEN(calls); n++) {
        void *found = NULL;
        CUdriverProcAddressQueryResult status;
        SHIM_OK(&d, cuGetProcAddress(calls[n].name, &found, calls[n].version, 0, &status));
        ck_assert_ptr_nonnull(found);
        ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
        d.cuGetProcAddress(calls[n].name, &found, calls[n].version - 10, 0, &status);
        ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tensor maps");
    tcase_add_checked_fixture(tests, start, NULL);
    tcase_add_loop_test(
        tests, a_map_that_keeps_the_rules_is_made_and_one_that_does_not_is_refused_with_the_reason,
        0, (int)ARRAY_LEN(cases));
    tcase_add_test(tests, an_address_is_replaced_by_the_same_rules);
    tcase_add_test(tests, devices_before_sm_90_have_no_tensor_maps);
    tcase_add_test(tests, the_calls_are_found_by_name_from_the_version_that_brought_them);
    return suite_run("emulator/tensor_map", tests);
}
