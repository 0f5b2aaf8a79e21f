/* test_tensor_map.c - cuTensorMapEncode*: each rule of the toolkit's header, its last good value on
 * either side taken and the first bad one refused, with the reason. */
#include "tests/emulator/shim_driver.h"
#include "tests/emulator/tensor_map_rules.h"

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

/* By the field's name, with its index last. */
static void apply(arguments *a, const tensor_map_edit *e)
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

static arguments plain(tensor_map_call c)
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

static CUresult encode(arguments *a, tensor_map_call c)
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
    const tensor_map_rule *rule = &tensor_map_rules[_i];
    arguments a = plain(rule->call);
    hone_emu_fault fault;

    for (size_t n = 0; n < ARRAY_LEN(rule->edits) && rule->edits[n].field != NULL; n++) {
        apply(&a, &rule->edits[n]);
    }
    CUresult result = encode(&a, rule->call);
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    if (rule->why == NULL) {
        ck_assert_msg(result == CUDA_SUCCESS, "%s: %s", rule->name, fault.message);
        return;
    }
    ck_assert_msg(result == CUDA_ERROR_INVALID_VALUE, "%s: not refused", rule->name);
    ck_assert_str_eq(fault.kind, "tensor-map");
    ck_assert_msg(rule->edits[0].field == NULL || strcmp(rule->edits[0].field, "map_offset") == 0
                      ? strstr(fault.message, rule->why) != NULL
                      : strcmp(fault.message, rule->why) == 0,
                  "%s: %s", rule->name, fault.message);
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

START_TEST(a_kernel_loads_a_box_by_a_map_among_its_parameters)
{
    static const char ptx[] =
        ".version 8.8\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{\n"
        ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %x<9>; .shared .align 128 .b8 s[512];\n"
        "mov.b64 %x0, map; cvta.param.u64 %x0, %x0; ld.param.u64 %x1, [out]; mov.u32 %r0, s;\n"
        "mov.u32 %r1, 16; mov.u32 %r2, 3; mbarrier.init.shared::cta.b64 [%r0], 1;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 128;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+128], "
        "[%x0, {%r1, %r2}], [%r0];\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], "
        "0;\n@!%p1 bra W;\nld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%r0+192];\n"
        "st.global.v4.u32 [%x1], {%r3,%r4,%r5,%r6};\nret;\n}\n";
    arguments a = plain(TILED);
    CUfunction k = shim_driver_function(&d, ptx, "k");
    CUdeviceptr tensor = 0, out = 0;
    uint32_t data[8][64], got[4];

    for (uint32_t n = 0; n < 512; n++) {
        data[n / 64][n % 64] = n;
    }
    SHIM_OK(&d, cuMemAlloc(&tensor, sizeof data));
    SHIM_OK(&d, cuMemAlloc(&out, sizeof got));
    SHIM_OK(&d, cuMemcpyHtoD(tensor, data, sizeof data));
    a.address = tensor;
    a.rank = 2;
    a.dims[1] = 8;
    a.box[1] = 2; /* 2 rows of 16 */
    ck_assert_int_eq(encode(&a, TILED), CUDA_SUCCESS);
    SHIM_OK(&d, cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&a.maps[0], &out}, NULL));
    SHIM_OK(&d, cuMemcpyDtoH(got, out, sizeof got));
    ck_assert_mem_eq(got, &data[4][16], sizeof got);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tensor maps");
    tcase_add_checked_fixture(tests, start, NULL);
    tcase_add_loop_test(
        tests, a_map_that_keeps_the_rules_is_made_and_one_that_does_not_is_refused_with_the_reason,
        0, (int)tensor_map_rules_len);
    tcase_add_test(tests, an_address_is_replaced_by_the_same_rules);
    tcase_add_test(tests, a_kernel_loads_a_box_by_a_map_among_its_parameters);
    tcase_add_test(tests, devices_before_sm_90_have_no_tensor_maps);
    tcase_add_test(tests, the_calls_are_found_by_name_from_the_version_that_brought_them);
    return suite_run("emulator/tensor_map", tests);
}
