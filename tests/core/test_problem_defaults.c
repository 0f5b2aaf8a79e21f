/* test_problem_defaults.c - what a problem's text leaves out: fields that follow from others. */
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static hone_error e;

/* What serving uses where the text says nothing (problem_derive). */
static const struct {
    const char *text, *derived;
} defaults[] = {
    {"fp8_gemm:m=1,n=16,k=128,recipe=f32-1x128-128x128", ",a_scale_layout=tma,b_scale_layout=row,"},
    {"fp8_gemm:m=1,n=16,k=128,recipe=f32-1x128-1x128", ",a_scale_layout=tma,b_scale_layout=tma,"},
    {"fp8_gemm:m=1,n=16,k=128,recipe=ue8m0-1x32-32x32",
     ",a_scale_layout=packed,b_scale_layout=row,"},
    {"fp8_gemm:m=1,n=16,k=32,recipe=ue8m0-1x32-e2m1/1x32",
     ",a_scale_layout=packed,b_scale_layout=packed,batch_layout=outer,align=16"},
    {"fp8_gemm:m=1,n=33,k=64,recipe=f32-1x32-1x32", ",align=2"},
    {"fp8_gemm:m=1,n=33,k=64,recipe=f32-1x32-1x32,out=f32", ",align=4"},
    {"fp8_gemm:m=1,n=32,k=161,recipe=f32-1x32-1x32", ",align=1"},
    {"fold:m=1,k=32", ",group=32,out_group=128,scale_layout=packed,q_scale_layout=packed,align=16"},
    {"act_quant:m=1,k=128",
     "scale_layout=tma,rule=raw_amax,activation=plain,row_set=every,count=0,align=16"},
    {"weight_quant:n=1,k=24", "gran_n=128,gran_k=128,scale_layout=row,rule=raw_amax,align=8"},
    {"weight_quant:n=1,k=64,gran_n=1,gran_k=32", "scale_layout=tma,rule=raw_amax,align=16"},
    {"weight_quant:n=1,k=64,gran_n=32,gran_k=32,scale=ue8m0", "scale_layout=row,rule=pow2_amax,"},
    {"act_quant:m=1,k=128,scale=ue8m0", "scale_layout=packed,rule=pow2_amax,"},
    {"mxfp4_fold:n=1,k=96", ",batch=1,block_rows=128,block_cols=128,scale=ue8m0,align=16"},
    {"scale_pack:rows=3,groups=6",
     ",batch=1,experts=0,gran_k=128,scale=ue8m0,scale_layout=packed,align=8"},
    {"scale_pack:rows=3,groups=7,scale=f32", ",scale_layout=tma,align=4"},
    {"scale_pack:rows=3,groups=8,scale_layout=col", ",scale=f32,scale_layout=col,align=16"},
    {"scale_pack:rows=8,groups=7,experts=3",
     ",batch=1,experts=3,gran_k=128,scale=ue8m0,scale_layout=packed,align=16"},
    /* 16 entries of 4 experts: 3 of them in 125 rows of padding at worst, then whole units */
    {"moe_align:tokens=8,experts=4,topk=2,group_layout=contiguous",
     "tokens=8,m=512,experts=4,topk=2,group_layout=contiguous,row_align=128,ids=i32,align=16"},
    {"moe_align:tokens=1,experts=256,topk=8,group_layout=psum", "m=1024,"},
    {"moe_align:tokens=5,experts=256,topk=1,group_layout=psum,row_align=1", "m=5,"},
    {"moe_align:tokens=2,experts=1,topk=1,group_layout=psum", "m=128,"},
    {"moe_align:tokens=129,experts=4,topk=2,group_layout=masked", "m=256,"},
    {"moe_align:tokens=0,experts=4,topk=2,group_layout=contiguous", "m=0,"},
    {"moe_align:tokens=8,m=3,experts=4,topk=2,group_layout=contiguous", "m=3,"},
    {"moe_gemm:tokens=8,topk=2,experts=4,n=64,k=128,group_layout=contiguous,recipe=f32-1x128-"
     "128x128",
     "moe_gemm:m=512,n=64,k=128,tokens=8,experts=4,recipe=f32-1x128-128x128,topk=2,group_layout="
     "contiguous,row_align=128,out=bf16,activation=plain,order=any,accumulate=0,fill=0,a_scale_"
     "layout=tma,b_scale_layout=row,align=16"},
    {"moe_gemm:tokens=129,experts=4,n=64,k=128,group_layout=masked,recipe=f32-1x128-128x128",
     "m=256,"},
    {"moe_gemm:tokens=8,experts=4,n=256,k=128,group_layout=psum,recipe=ue8m0-1x32-32x32,"
     "activation=silu_mul,out=e4m3",
     "out=e4m3,activation=silu_mul,out_scale=ue8m0,out_group=32,out_scale_layout=packed,out_rule="
     "pow2_amax,"},
    {"moe_gemm:tokens=8,experts=4,n=256,k=128,group_layout=psum,recipe=f32-1x128-e2m1/ue8m0/1x32,"
     "activation=silu_mul,out=e4m3",
     "out_scale=f32,out_group=128,out_scale_layout=tma,out_rule=raw_amax,"},
    {"moe_combine:tokens=8,n=24,topk=2", "m=16,topk=2,in=bf16,out=bf16,accumulate=0,align=16"},
    {"moe_combine:tokens=8,n=7,topk=2,out=f32", "align=2"},
    {"kv_quant:tokens=1,pages=1,record=v41_528-split-pow2_amax", "page_stride=33792,page_size=64"},
    {"kv_quant:tokens=1,pages=1,record=index_132-split-raw_amax,page_size=32", "page_stride=4224,"},
    {"kv_quant:tokens=1,pages=1,record=v4_584-split-pow2_amax", "page_stride=37440,"},
    {"kv_gather:tokens=1,pages=1,record=v4_584-split-pow2_amax",
     "page_stride=37440,sequences=1,table_pages=1,page_size=64,to=bf16,by=slots,"},
};

/* What a short recipe leaves out is A's dtypes. */
START_TEST(a_short_recipe_means_the_same_as_in_full)
{
    static const char *const pairs[][2] = {
        {"f32-1x32-e4m3/32x32", "e4m3/f32/1x32+e4m3/f32/32x32"},
        {"ue8m0-1x32-e2m1/1x32", "e4m3/ue8m0/1x32+e2m1/ue8m0/1x32"},
        {"f32-1x128-e2m1/ue8m0/1x32", "e4m3/f32/1x128+e2m1/ue8m0/1x32"},
        {"f32-1x128-e4m3/ue8m0/1x32", "e4m3/f32/1x128+e4m3/ue8m0/1x32"},
    };
    hone_recipe brief, full;

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        ck_assert_int_eq(problem_recipe_parse(pairs[i][0], strlen(pairs[i][0]), &brief, &e),
                         HONE_OK);
        ck_assert_int_eq(problem_recipe_parse(pairs[i][1], strlen(pairs[i][1]), &full, &e),
                         HONE_OK);
        ck_assert_mem_eq(&brief, &full, sizeof brief);
    }
}
END_TEST

START_TEST(defaults_are_what_serving_uses)
{
    char text[512];
    hone_problem p = parsed(defaults[_i].text);

    ck_assert_int_eq(hone_problem_format(&p, text, sizeof text, &e), HONE_OK);
    ck_assert_msg(strstr(text, defaults[_i].derived) != NULL, "%s", text);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problem_defaults");

    tcase_add_test(tests, a_short_recipe_means_the_same_as_in_full);
    tcase_add_loop_test(tests, defaults_are_what_serving_uses, 0, (int)ARRAY_LEN(defaults));
    return suite_run("core/problem_defaults", tests);
}
