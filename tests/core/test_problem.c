/* test_problem.c - a problem's identity: every field is in the key and in the text, wrong ones are
 * named. */
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

static const char *const bases[] = {
    "fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x128-128x128,out=bf16",
    "fp8_gemm:m=16,n=1024,k=4096,batch=8,recipe=ue8m0-1x32-32x32,out=f32,order=fixed",
    "fp8_gemm:m=16,n=1024,k=4096,recipe=f32-1x128-e2m1/ue8m0/1x32",
    "act_quant:m=64,k=7168,in=bf16",
    "act_quant:m=64,k=5120,scale=ue8m0,group=32",
    "act_quant:m=64,k=2048,scale=ue8m0,group=64,experts=8,row_set=masked,activation=silu_mul_v4",
    "act_quant:m=64,k=512,experts=8,row_set=gathered,tokens=9,topk=4",
    "weight_quant:n=576,k=7168,gran_n=32,gran_k=32,scale=ue8m0",
    "mxfp4_fold:n=2048,k=7168",
    "mxfp4_fold:n=33,k=96,batch=3,block_rows=32,block_cols=32,scale=f32",
    "scale_pack:rows=37,groups=56",
    "scale_pack:rows=20,groups=70,experts=9,gran_k=32",
    "moe_align:tokens=64,experts=32,topk=8,group_layout=contiguous",
    "moe_align:tokens=7,m=90,experts=9,topk=3,group_layout=psum,row_align=32,ids=i64,align=8",
    "moe_combine:tokens=64,n=7168,topk=8",
    "topk:rows=64,width=65536,k=2048",
    "topk:rows=3,width=520,stride=768,k=705,in=bf16,span=both,pick=blocked,block=8,pin=1,drop=1,"
    "sort=by_score",
    "mqa_logits:tokens=2048,keys=8192,heads=64",
    "mqa_logits:tokens=3,keys=520,width=300,stride=768,heads=8,dims=64,element=e2m1,span="
    "compressed,"
    "clean=1,out=bf16",
    "mqa_logits_paged:batch=64,width=65536,pages=5000,heads=32,record=index_132-split-pow2_amax",
    "mqa_logits_paged:batch=3,width=513,stride=768,pages=40,next_n=6,heads=64,page_size=32,"
    "table_stride=19,page_stride=2304,record=index_68-split-pow2_tiny,out=bf16",
    "topk:rows=9,width=16384,k=512,span=compressed,pick=listed,block=8,align=4",
    "index_prepare:tokens=64,pages=100,heads=64,hadamard=1,record=index_132-split-pow2_amax",
    "index_prepare:tokens=3,pages=2,page_stride=2180,page_size=32,heads=8,rope=last,pairs=halves,"
    "record=index_68-split-pow2_tiny",
    "moe_combine:tokens=3,n=33,m=90,topk=6,in=f32,out=f32,accumulate=1",
    "kv_quant:tokens=64,pages=100,record=v41_528-split-pow2_amax",
    "kv_quant:tokens=3,pages=2,record=v32_656-interleaved-pow2_scale",
    "kv_quant:tokens=3,pages=2,record=index_132-split-raw_amax",
    "fold:m=64,k=5120",
    "fold:m=3,k=288,scale_layout=row,q_scale_layout=col",
    "kv_quant:tokens=3,pages=2,record=v4_584-split-pow2_amax",
    "kv_quant:tokens=3,pages=2,record=nvfp4_352-interleaved-e4m3_up",
    "kv_quant:tokens=3,pages=2,record=fp8_576-flat-tensor",
    "moe_gemm:tokens=64,experts=32,topk=8,n=4096,k=7168,group_layout=contiguous,recipe=f32-1x128-"
    "128x128",
    "moe_gemm:m=64,tokens=8,experts=6,n=256,k=512,group_layout=masked,recipe=ue8m0-1x32-32x32,"
    "activation=silu_mul_v4,out=e4m3",
    "moe_gemm:tokens=3,experts=500,n=64,k=96,group_layout=psum,row_align=8,recipe=ue8m0-1x32-e2m1/"
    "1x32,out=f32,fill=1",
    "moe_gemm:m=16,tokens=8,experts=6,n=256,k=512,group_layout=grouped_k,recipe=f32-1x128-1x128,"
    "out=f32,accumulate=1",
    "moe_gemm:tokens=0,experts=1,n=64,k=96,group_layout=psum,recipe=ue8m0-1x32-1x32",
    "kv_gather:tokens=3,pages=2,record=v41_528-split-pow2_amax",
    "kv_gather:tokens=3,pages=2,sequences=2,table_pages=5,by=table,to=raw,record=index_132-split-"
    "raw_amax",
};

static bool same_key(const hone_problem *a, const hone_problem *b)
{
    uint8_t ka[PROBLEM_KEY_MAX], kb[PROBLEM_KEY_MAX];
    size_t la = problem_key(a, ka), lb = problem_key(b, kb);
    problem_hash ha = problem_key_hash(ka, la), hb = problem_key_hash(kb, lb);
    bool bytes = la == lb && memcmp(ka, kb, la) == 0;

    ck_assert(bytes == (ha.low == hb.low && ha.high == hb.high));
    return bytes;
}

/* A value other than the present one; legal where the field alone decides that. */
static int64_t other_value(const problem_field *field, int64_t value)
{
    if (field->kind != PROBLEM_ENUM) {
        return value + 1 <= field->most ? value + 1 : value - 1;
    }
    for (uint32_t i = 0; i < field->names_len; i++) {
        if (field->names[i] != NULL && (int64_t)i != value) {
            return i;
        }
    }
    return value + 1;
}

START_TEST(every_field_changed_alone_changes_the_key)
{
    hone_problem p = parsed(bases[_i]);
    size_t count;
    const problem_field *fields = problem_fields(p.op, &count);

    for (size_t i = 0; i < count; i++) {
        hone_problem q = p;
        problem_field_set(&q, &fields[i],
                          other_value(&fields[i], problem_field_get(&p, &fields[i])));
        ck_assert_msg(!same_key(&p, &q), "%s", fields[i].name);
    }
    hone_problem q = p;
    q.op = p.op % 3 + 1;
    ck_assert(!same_key(&p, &q));
    q = p;
    ck_assert(same_key(&p, &q));
}
END_TEST

/* The key is one copy of the struct: this is what makes that the same as writing each field of the
 * table. */
START_TEST(the_key_is_the_tables_fields_in_order_without_gaps)
{
    hone_problem p = parsed(bases[_i]);
    uint8_t key[PROBLEM_KEY_MAX], slow[PROBLEM_KEY_MAX];
    size_t count, used = 0, len = problem_key(&p, key);
    const problem_field *fields = problem_fields(p.op, &count);

    slow[used++] = PROBLEM_KEY_VERSION;
    for (int b = 0; b < 4; b++) {
        slow[used++] = (uint8_t)((uint32_t)p.op >> (8 * b));
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)problem_field_get(&p, &fields[i]);
        for (int b = 0; b < (fields[i].kind == PROBLEM_SIZE ? 8 : 4); b++) {
            slow[used++] = (uint8_t)(value >> (8 * b));
        }
    }
    ck_assert_uint_eq(used, len);
    ck_assert_mem_eq(key, slow, len);
}
END_TEST

START_TEST(text_and_key_give_the_problem_back)
{
    hone_problem p = parsed(bases[_i]), q, r;
    char text[512], again[512];
    uint8_t key[PROBLEM_KEY_MAX];

    ck_assert_int_eq(hone_problem_format(&p, text, sizeof text, &e), HONE_OK);
    q = parsed(text);
    ck_assert(same_key(&p, &q));
    ck_assert_int_eq(hone_problem_format(&q, again, sizeof again, &e), HONE_OK);
    ck_assert_str_eq(text, again);
    ck_assert_int_eq(problem_from_key(key, problem_key(&p, key), &r, &e), HONE_OK);
    ck_assert(same_key(&p, &r));
    char before = text[0];
    ck_assert_int_eq(hone_problem_format(&p, text, strlen(again), &e), HONE_LIMIT);
    ck_assert_int_eq(text[0], before);
}
END_TEST

START_TEST(a_key_that_differs_in_sizes_alone_needs_no_check_of_the_rest)
{
    const hone_problem like = parsed(bases[_i]);
    hone_problem r;
    uint8_t key[PROBLEM_KEY_MAX];
    size_t count = 0;
    const problem_field *fields = problem_fields(like.op, &count);

    for (size_t i = 0; i < count; i++) {
        const bool size = fields[i].kind == PROBLEM_SIZE;
        const int64_t value = problem_field_get(&like, &fields[i]);
        const int64_t values[] = {value, value + 1, fields[i].most + 1, fields[i].least - 1};
        for (size_t v = 0; v < (size ? ARRAY_LEN(values) : 2); v++) {
            hone_problem p = like;
            problem_field_set(&p, &fields[i], values[v]);
            const bool legal = v == 0 || (size && v == 1);
            const size_t len = problem_key(&p, key);
            ck_assert_msg(problem_from_key_like(key, len, &like, &r) == legal, "%s=%lld",
                          fields[i].name, (long long)values[v]);
            ck_assert(!legal || same_key(&p, &r));
            ck_assert(!problem_from_key_like(key, len - 1, &like, &r));
        }
    }
}
END_TEST

/* The key is frozen: stores hold it. */
START_TEST(a_key_never_changes_between_versions)
{
    static const uint8_t want[] = {
        3,  2, 0, 0, 0,           /* version, op */
        5,  0, 0, 0, 0,  0, 0, 0, /* m */
        0,  2, 0, 0, 0,  0, 0, 0, /* k */
        1,  0, 0, 0, 0,  0, 0, 0, /* experts */
        0,  0, 0, 0, 0,  0, 0, 0, /* tokens: its rows are x's own */
        2,  0, 0, 0, 4,  0, 0, 0, /* in bf16, out e4m3 */
        7,  0, 0, 0, 32, 0, 0, 0, /* scale ue8m0, group */
        4,  0, 0, 0, 1,  0, 0, 0, /* packed, pow2_amax */
        1,  0, 0, 0, 1,  0, 0, 0, /* activation plain, row_set every */
        0,  0, 0, 0, 0,  0, 0, 0, /* topk, count */
        16, 0, 0, 0,              /* align */
    };
    hone_problem p = parsed("act_quant:m=5,k=512,scale=ue8m0,group=32");
    uint8_t key[PROBLEM_KEY_MAX];

    ck_assert_uint_eq(problem_key(&p, key), sizeof want);
    ck_assert_mem_eq(key, want, sizeof want);
}
END_TEST

static const parsed_wrong wrong[] = {
    {"", HONE_BAD_TEXT, "op"},
    {"gemm:m=1", HONE_BAD_TEXT, "gemm"},
    {"fp8_gemm", HONE_BAD_TEXT, "op:field"},
    {"fp8_gemm:", HONE_BAD_TEXT, "field=value"},
    {"fp8_gemm:m=1", HONE_BAD_TEXT, "n=..."},
    {"fp8_gemm:m=1,n=8,k=8", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,m=1,n=8,k=8,recipe=f32-1x32-1x32", HONE_BAD_TEXT, "second time"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,a_gran_k=32", HONE_BAD_TEXT, "second time"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,stride=4", HONE_BAD_TEXT, "stride"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,", HONE_BAD_TEXT, "field=value"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32-", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-01x32-1x32", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f64-1x32-1x32", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x64-1x64", HONE_BAD_PROBLEM, "a_gran_k=64"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x128-128x64", HONE_BAD_PROBLEM, "b_gran_k=64"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=bf16-1x32-1x32", HONE_BAD_PROBLEM, "a_scale"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=e4m3/f32/1x128+e5m2/f32/1x128", HONE_BAD_PROBLEM, "b_element"},
    {"fp8_gemm:m=1,n=8,k=32,recipe=e2m1/f32/1x128+e4m3/f32/1x128", HONE_BAD_PROBLEM, "a_element"},
    {"fp8_gemm:m=1,n=8,k=48,recipe=f32-1x32-e2m1/1x32", HONE_BAD_PROBLEM, "multiple of 32"},
    {"fp8_gemm:m=1,n=8,k=32,recipe=f32-1x32-e2m1/f32/x1x32", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=32,recipe=f32-1x32-e2m1/f32/f32/1x32", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=32,recipe=f32-e2m1/1x32-1x32", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=32,recipe=f32-1x32-/1x32", HONE_BAD_TEXT, "recipe"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,out=f16", HONE_BAD_PROBLEM, "out"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,out=e9m9", HONE_BAD_TEXT, "out=e9m9"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,accumulate=2", HONE_BAD_PROBLEM, "accumulate=2"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,align=3", HONE_BAD_PROBLEM, "align=3"},
    {"fp8_gemm:m=1,n=33,k=32,recipe=f32-1x32-1x32,align=16", HONE_BAD_PROBLEM, "align=16"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,align=5000000000", HONE_BAD_PROBLEM, "align"},
    {"fp8_gemm:m=-1,n=8,k=8,recipe=f32-1x32-1x32", HONE_BAD_PROBLEM, "m=-1"},
    {"fp8_gemm:m=010,n=8,k=8,recipe=f32-1x32-1x32", HONE_BAD_TEXT, "m=010"},
    {"fp8_gemm:m=0x1,n=8,k=8,recipe=f32-1x32-1x32", HONE_BAD_TEXT, "m=0x1"},
    {"fp8_gemm:m=9999999999999999999,n=8,k=8,recipe=f32-1x32-1x32", HONE_BAD_TEXT, "m="},
    {"fp8_gemm:m=1099511627776,n=1099511627776,k=16,recipe=f32-1x32-1x32", HONE_OVERFLOW, "d"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=ue8m0-1x32-1x32,a_scale_layout=tma", HONE_BAD_PROBLEM,
     "a_scale_layout"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-1x32,b_scale_layout=packed", HONE_BAD_PROBLEM,
     "b_scale_layout"},
    {"fp8_gemm:m=1,n=8,k=8,recipe=f32-1x32-32x32,b_scale_layout=tma", HONE_BAD_PROBLEM,
     "b_scale_layout"},
    {"fold:m=1,k=100", HONE_BAD_PROBLEM, "k=100"},
    {"fold:m=1,k=128,scale=f32", HONE_BAD_PROBLEM, "need not be powers of two"},
    {"fold:m=1,k=128,element=e2m1", HONE_BAD_PROBLEM, "element"},
    {"fold:m=1,k=128,group=128", HONE_BAD_PROBLEM, "groups of 32"},
    {"fold:m=1,k=128,q_scale_layout=tma", HONE_BAD_PROBLEM, "q_scale_layout"},
    {"act_quant:m=1,k=100", HONE_BAD_PROBLEM, "k=100"},
    {"act_quant:m=1,k=128,group=16", HONE_BAD_PROBLEM, "group"},
    {"act_quant:m=1,k=128,group=96", HONE_BAD_PROBLEM, "group"},
    {"act_quant:m=1,k=96,group=64", HONE_BAD_PROBLEM, "k=96"},
    {"act_quant:m=1,k=128,experts=4", HONE_BAD_PROBLEM, "experts"},
    {"act_quant:m=1,k=128,experts=4,row_set=listed", HONE_BAD_PROBLEM, "experts"},
    {"act_quant:m=1,k=128,row_set=some", HONE_BAD_TEXT, "row_set"},
    {"act_quant:m=1,k=128,tokens=4", HONE_BAD_PROBLEM, "tokens"},
    {"act_quant:m=1,k=128,row_set=listed,topk=4", HONE_BAD_PROBLEM, "topk"},
    {"act_quant:m=1,k=128,row_set=gathered,tokens=536870912,topk=4", HONE_BAD_PROBLEM, "topk"},
    {"act_quant:m=1,k=128,row_set=gathered,tokens=-1", HONE_BAD_PROBLEM, "tokens"},
    {"act_quant:m=1,k=128,activation=gelu", HONE_BAD_TEXT, "activation"},
    {"act_quant:m=1,k=128,count=2", HONE_BAD_PROBLEM, "count"},
    {"act_quant:m=1099511627776,k=128,experts=1099511627776,row_set=masked", HONE_OVERFLOW, "x"},
    {"weight_quant:n=1,k=128,gran_n=64", HONE_BAD_PROBLEM, "gran_n=64"},
    {"weight_quant:n=1,k=128,gran_n=32,gran_k=64", HONE_BAD_PROBLEM, "gran_k=64"},
    {"weight_quant:n=1,k=128,in=e4m3", HONE_BAD_PROBLEM, "in"},
    {"weight_quant:n=1,k=128,out=bf16", HONE_BAD_PROBLEM, "out"},
    {"weight_quant:n=1,k=128,scale=ue8m0,rule=raw_amax", HONE_BAD_PROBLEM, "rule"},
    {"weight_quant:n=1,k=128,scale_layout=tma", HONE_BAD_PROBLEM, "scale_layout"},
    {"weight_quant:n=1,k=20,align=8", HONE_BAD_PROBLEM, "align=8"},
    {"act_quant:m=1,k=128,out=e5m2", HONE_BAD_PROBLEM, "out"},
    {"act_quant:m=1,k=128,in=e4m3", HONE_BAD_PROBLEM, "in"},
    {"act_quant:m=1,k=128,scale=ue8m0,rule=raw_amax", HONE_BAD_PROBLEM, "rule"},
    {"act_quant:m=1,k=128,scale=ue8m0,rule=raw_tiny", HONE_BAD_PROBLEM, "rule"},
    {"mxfp4_fold:n=1,k=48", HONE_BAD_PROBLEM, "k=48"},
    {"mxfp4_fold:n=1,k=64,block_rows=64", HONE_BAD_PROBLEM, "block_rows=64"},
    {"mxfp4_fold:n=1,k=64,block_rows=32", HONE_BAD_PROBLEM, "block_cols=128"},
    {"mxfp4_fold:n=1,k=64,scale=bf16", HONE_BAD_PROBLEM, "scale"},
    {"mxfp4_fold:n=1,k=64,align=32", HONE_BAD_PROBLEM, "align"},
    {"mxfp4_fold:n=1099511627776,k=1099511627776", HONE_OVERFLOW, "codes"},
    {"scale_pack:rows=4,groups=4,scale=bf16", HONE_BAD_PROBLEM, "scale"},
    {"scale_pack:rows=4,groups=4,scale_layout=row", HONE_BAD_PROBLEM, "row-major already"},
    {"scale_pack:rows=4,groups=4,scale=ue8m0,scale_layout=col", HONE_BAD_PROBLEM, "packed"},
    {"scale_pack:rows=4,groups=4,scale=f32,scale_layout=packed", HONE_BAD_PROBLEM, "ue8m0"},
    {"scale_pack:rows=4,groups=4,scale=ue8m0,scale_layout=tma", HONE_BAD_PROBLEM, "4-byte"},
    {"scale_pack:rows=4,groups=4,gran_k=32", HONE_BAD_PROBLEM, "gran_k"},
    {"scale_pack:rows=4,groups=4,experts=2,gran_k=64", HONE_BAD_PROBLEM, "gran_k"},
    {"scale_pack:rows=4,groups=4,experts=129", HONE_BAD_PROBLEM, "experts=129"},
    {"scale_pack:rows=4,groups=4,experts=2,batch=2", HONE_BAD_PROBLEM, "batch"},
    {"scale_pack:rows=4,groups=4,experts=2,scale=f32", HONE_BAD_PROBLEM, "packed"},
    {"scale_pack:rows=6,groups=4,experts=2", HONE_BAD_PROBLEM, "rows=6"},
    {"scale_pack:rows=6,groups=5,align=8", HONE_BAD_PROBLEM, "align=8"},
    {"scale_pack:rows=1099511627776,groups=1099511627776", HONE_OVERFLOW, "scale"},
    {"kv_quant:tokens=1,pages=1", HONE_BAD_TEXT, "record"},
    {"kv_quant:tokens=1,pages=1,record=v41_528", HONE_BAD_TEXT, "record"},
    {"kv_quant:tokens=1,pages=1,record=v41_528-split-raw_amax", HONE_BAD_PROBLEM, "record_rule"},
    {"kv_quant:tokens=1,pages=1,record=v32_656-split-pow2_scale", HONE_BAD_PROBLEM,
     "record_layout"},
    {"kv_quant:tokens=1,pages=1,record=index_132-interleaved-raw_amax", HONE_BAD_PROBLEM,
     "record_layout"},
    {"kv_quant:tokens=1,pages=1,record=index_132-split-raw_amax-v2", HONE_BAD_PROBLEM,
     "record_version"},
    {"kv_quant:tokens=1,pages=1,record=index_132-split-raw_amax,page_size=48", HONE_BAD_PROBLEM,
     "page_size"},
    {"kv_quant:tokens=1,pages=1,record=index_132-split-raw_amax,page_stride=8447", HONE_BAD_PROBLEM,
     "page_stride"},
    {"kv_quant:tokens=1,pages=1,record=index_132-split-raw_amax,in=f16", HONE_BAD_PROBLEM, "in"},
    {"kv_quant:tokens=1,pages=1,record=v4_584-split-pow2_amax,page_stride=37376", HONE_BAD_PROBLEM,
     "multiple of 576"},
    {"kv_quant:tokens=1,pages=1,record=v41_528-split-pow2_amax,page_stride=34048", HONE_BAD_PROBLEM,
     "multiple of 512"},
    {"kv_quant:tokens=1,pages=1,record=v41_528-interleaved-pow2_amax,page_stride=34304",
     HONE_BAD_PROBLEM, "multiple of 528"},
    {"kv_quant:tokens=1,pages=1,record=v4_584-interleaved-pow2_amax", HONE_BAD_PROBLEM,
     "pages of this record are split"},
    {"kv_quant:tokens=1,pages=1,record=v41_288-split-pow2_amax", HONE_BAD_PROBLEM,
     "made by e4m3_near, e4m3_up"},
    {"kv_quant:tokens=1,pages=1,record=index_68-split-pow2_scale", HONE_BAD_PROBLEM,
     "made by pow2_amax, pow2_tiny"},
    {"kv_quant:tokens=1,pages=1,record=fp8_576-flat-raw_amax", HONE_BAD_PROBLEM, "made by tensor"},
    {"kv_quant:tokens=1,pages=1,record=bf16_1024-split-unscaled", HONE_BAD_PROBLEM, "are flat"},
    {"act_quant:m=1,k=128,rule=tensor", HONE_BAD_PROBLEM, "rule"},
    {"kv_gather:tokens=1,pages=1,record=v4_584-split-pow2_amax,page_stride=37376", HONE_BAD_PROBLEM,
     "multiple of 576"},
    {"kv_gather:tokens=1,pages=1,record=index_132-split-raw_amax,sequences=2", HONE_BAD_PROBLEM,
     "by=table"},
    {"kv_gather:tokens=1,pages=1,record=index_132-split-raw_amax,to=f32", HONE_BAD_TEXT, "to=f32"},
    {"kv_gather:tokens=1,pages=1,record=index_132-split-raw_amax,by=table,sequences=2147483647",
     HONE_BAD_PROBLEM, "2^31"},
};

START_TEST(a_wrong_field_is_named_and_nothing_is_written)
{
    parsed_refuses(&wrong[_i]);
}
END_TEST

START_TEST(every_recipe_that_is_named_in_plans_is_an_identity)
{
    static const char *const recipes[] = {
        "f32-1x128-128x128",    "f32-1x128-1x128",
        "f32-1x32-32x32",       "ue8m0-1x32-32x32",
        "f32-1x32-1x32",        "ue8m0-1x32-1x32",
        "f32-1x32-128x128",     "f32-1x128-1x32",
        "ue8m0-1x128-128x128",  "e4m3/f32/1x128+e4m3/ue8m0/1x32",
        "ue8m0-1x32-e2m1/1x32", "f32-1x128-e2m1/ue8m0/1x32",
        "f32-1x128-e2m1/1x32",  "ue8m0-1x32-e2m1/32x32",
    };
    hone_problem seen[ARRAY_LEN(recipes)];
    char text[128], back[64];

    for (size_t i = 0; i < ARRAY_LEN(recipes); i++) {
        snprintf(text, sizeof text, "fp8_gemm:m=16,n=256,k=256,recipe=%s", recipes[i]);
        seen[i] = parsed(text);
        problem_recipe_format(&seen[i].as.fp8_gemm.recipe, back);
        ck_assert_str_eq(back, recipes[i]);
        for (size_t j = 0; j < i; j++) {
            ck_assert(!same_key(&seen[i], &seen[j]));
        }
    }
}
END_TEST

START_TEST(a_problem_that_was_only_begun_is_refused_by_name)
{
    hone_problem p;

    problem_init(&p, HONE_OP_FP8_GEMM);
    p.as.fp8_gemm.m = p.as.fp8_gemm.n = p.as.fp8_gemm.k = 128;
    p.as.fp8_gemm.recipe = (hone_recipe){{HONE_DTYPE_E4M3, HONE_DTYPE_F32, 1, 128},
                                         {HONE_DTYPE_E4M3, HONE_DTYPE_F32, 128, 128}};
    ck_assert_int_eq(hone_problem_check(&p, &e), HONE_BAD_PROBLEM);
    ck_assert_ptr_nonnull(strstr(e.message, "a_scale_layout"));
    problem_derive(&p);
    ck_assert_int_eq(hone_problem_check(&p, &e), HONE_OK);
    p.size--;
    ck_assert_int_eq(hone_problem_check(&p, &e), HONE_BAD_ARGUMENT);
    problem_init(&p, 99);
    ck_assert_int_eq(hone_problem_check(&p, &e), HONE_BAD_PROBLEM);
    ck_assert_int_eq(hone_problem_check(NULL, &e), HONE_BAD_ARGUMENT);
}
END_TEST

/* Random changes, legal or not: what is legal goes through text and key unchanged; nothing crashes.
 */
START_TEST(random_problems_round_trip_or_are_refused)
{
    char text[512];
    uint8_t key[PROBLEM_KEY_MAX];
    hone_problem bases_read[ARRAY_LEN(bases)];
    int legal = 0;

    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        bases_read[i] = parsed(bases[i]);
    }
    srand(1);
    for (int round = 0; round < 40000; round++) {
        size_t count;
        hone_problem p, q, r;
        p = bases_read[(size_t)rand() % ARRAY_LEN(bases)];
        const problem_field *fields = problem_fields(p.op, &count);
        for (int change = rand() % 4; change >= 0; change--) {
            size_t i = (size_t)rand() % count;
            int64_t value = fields[i].kind == PROBLEM_ENUM ? rand() % (int)(fields[i].names_len + 1)
                                                           : (int64_t)1 << rand() % 10;
            problem_field_set(&p, &fields[i], rand() % 50 == 0 ? value - 1 : value);
        }
        if (hone_problem_check(&p, NULL) != HONE_OK) {
            continue;
        }
        legal++;
        bool good = hone_problem_format(&p, text, sizeof text, NULL) == HONE_OK &&
                    hone_problem_parse(text, &q, NULL) == HONE_OK &&
                    problem_from_key(key, problem_key(&p, key), &r, NULL) == HONE_OK &&
                    memcmp(&p, &q, sizeof p) == 0 && memcmp(&p, &r, sizeof p) == 0;
        if (!good) {
            ck_abort_msg("%s", text);
        }
    }
    ck_assert_int_gt(legal, 1000);
}
END_TEST

START_TEST(hostile_text_and_keys_never_crash)
{
    static const char alphabet[] = "fp8_gem:m=1,nkrecipe=f32-1x-/+\xff\x01 %s";
    char text[160];
    uint8_t key[PROBLEM_KEY_MAX];
    hone_problem p;

    srand(2);
    for (int round = 0; round < 60000; round++) {
        size_t len =
            (size_t)snprintf(text, sizeof text, "%s", bases[(size_t)rand() % ARRAY_LEN(bases)]);
        for (int i = rand() % 6; i >= 0; i--) {
            text[(size_t)rand() % len] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        }
        text[rand() % 4 == 0 ? (size_t)rand() % len : len] = '\0';
        hone_problem_parse(text, &p, &e);
        size_t key_len = (size_t)rand() % sizeof key;
        for (size_t i = 0; i < key_len; i++) {
            key[i] = (uint8_t)(i == 0 ? 1 : i < 5 ? (i == 1 ? rand() % 7 : 0) : rand());
        }
        problem_from_key(key, rand() % 2 ? key_len : 97, &p, &e);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problem");
    const int all = (int)ARRAY_LEN(bases);

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, every_field_changed_alone_changes_the_key, 0, all);
    tcase_add_loop_test(tests, the_key_is_the_tables_fields_in_order_without_gaps, 0, all);
    tcase_add_loop_test(tests, text_and_key_give_the_problem_back, 0, all);
    tcase_add_loop_test(tests, a_key_that_differs_in_sizes_alone_needs_no_check_of_the_rest, 0,
                        all);
    tcase_add_test(tests, a_key_never_changes_between_versions);
    tcase_add_loop_test(tests, a_wrong_field_is_named_and_nothing_is_written, 0,
                        (int)ARRAY_LEN(wrong));
    tcase_add_test(tests, every_recipe_that_is_named_in_plans_is_an_identity);
    tcase_add_test(tests, a_problem_that_was_only_begun_is_refused_by_name);
    tcase_add_test(tests, random_problems_round_trip_or_are_refused);
    tcase_add_test(tests, hostile_text_and_keys_never_crash);
    return suite_run("core/problem", tests);
}
