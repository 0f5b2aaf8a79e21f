/* mutants.c - the table of faulty variants, and how one is made. */
#include "tests/templates/mutants.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GEMM    "fp8_gemm/mma_sync"
#define GEMM_CU "fp8_gemm/mma_sync.cu"
#define GEMM_TILE                                                                                  \
    "block_m=32 block_n=48 block_k=128 warps_m=2 warps_n=2 stages=2 promote=32 raster=1 "          \
    "residency=1"
#define GEMM_TAIL "fp8_gemm:m=33,n=136,k=160,recipe=f32-1x128-128x128"
#define GEMM_ROWS                                                                                  \
    "fp8_gemm:m=33,n=136,k=256,recipe=f32-1x32-32x32,a_scale_layout=row,b_scale_layout=row"
#define ACT      "act_quant/groups"
#define ACT_TILE "vec=8 threads=64 rows=1 repeat=1"
#define ACT_POW2 "act_quant:m=5,k=384,scale=ue8m0,group=32"
#define FOLD     "fold/groups"
#define FOLD_CUH "device/fold.cuh"
#define FOLD_ODD "fold:m=253,k=2080"
#define FOLDED   "vec=8 threads=64 rows=1 repeat=2"
#define KV       "kv_quant/tokens"
#define KV_CU    "kv_quant/tokens.cu"
#define KV_TILE  "vec=16 tokens_cta=4"
#define KV_PAGES                                                                                   \
    "kv_quant:tokens=40,pages=5,page_size=32,record_format=v41_528,record_layout=split,record_"    \
    "rule=pow2_amax"

const mutant mutants[] = {
    {"scale row and column swapped", GEMM, "device/scale_layout.cuh",
     "return row * row_stride + group * group_stride;",
     "return row * group_stride + group * row_stride;", GEMM_ROWS, GEMM_TILE,
     "row-major scales handed to a kernel that reads them column-major: the classic silent error"},
    {"K tail unmasked", GEMM, "device/tile_copy.cuh",
     "const i32 present = row < rows ? k - at : 0;", "const i32 present = row < rows ? 16 : 0;",
     GEMM_TAIL, GEMM_TILE, "the tail of K is the next row's beginning"},
    {"N tail unmasked", GEMM, "device/output.cuh", "if (r < m && c < n) {", "if (r < m) {",
     GEMM_TAIL, GEMM_TILE, "a tile wider than what is left of N writes into the next row"},
    {"last K block dropped", GEMM, GEMM_CU, "block < line.blocks; block++",
     "block < line.blocks - 1; block++", GEMM_TAIL, GEMM_TILE,
     "a pipeline that is drained one block early"},
    {"scale of the next group", GEMM, "device/scale_tile.cuh",
     "const i32 group = block * BlockK / GranK + i32(i / Lines);",
     "const i32 group = block * BlockK / GranK + i32(i / Lines) + 1;", GEMM_ROWS, GEMM_TILE,
     "a prefetched scale that is one group ahead of its data"},
    {"promotion past the scale group", GEMM, GEMM_CU,
     "a_scales + interval * C.promote / C.a_gran_k * C.block_m", "a_scales", GEMM_ROWS, GEMM_TILE,
     "a K tile wider than the group: all of it takes the first group's scale"},
    {"missing __syncthreads", GEMM, GEMM_CU, "__syncthreads(); //", "//", GEMM_ROWS, GEMM_TILE,
     "a warp reads what another has not yet copied"},
    {"half of the output unwritten", GEMM, "device/output.cuh", "i < TilesM * 2; i++",
     "i < TilesM * 2; i += 2", GEMM_ROWS, GEMM_TILE,
     "passes where an earlier candidate filled the rest"},
    {"floor instead of ceiling", ACT, "device/formats.cuh",
     "(bits >> 23) + ((bits & 0x7fffffu) != 0)", "bits >> 23", ACT_POW2, ACT_TILE,
     "a power-of-two scale that is too small saturates the payload"},
    {"payload of every second lane unwritten", ACT, "act_quant/groups.cu", "if (valid) {",
     "if (valid && lane % 2 == 0) {", ACT_POW2, ACT_TILE,
     "a vector width that does not cover its group"},
    {"folded codes rounded half up", FOLD, FOLD_CUH, "(significand + half - 1 + odd) >> drop",
     "(significand + half) >> drop", FOLD_ODD, FOLDED, "ties go to the even code"},
    {"folded codes lose their last bit's weight", FOLD, FOLD_CUH, "exponent > shift",
     "exponent >= shift", FOLD_ODD, FOLDED, "a normal code becomes the subnormal that looks alike"},
    {"changes not counted", FOLD, "fold/groups.cu", "if (all > 0 &&", "if (all > 1000000 &&",
     FOLD_ODD, FOLDED, "an inexact fold that nobody hears of"},
    {"page off by one", KV, KV_CU, "return cache + page * page_stride;",
     "return cache + (page > 0 ? page - 1 : page) * page_stride;", KV_PAGES, KV_TILE,
     "a token overwrites the same place of the page before"},
    {"slot -1 written", KV, KV_CU, "if (slot < 0) {", "if (slot < -1) {", KV_PAGES, KV_TILE,
     "a padding row writes before the cache"},
};
const size_t mutants_len = ARRAY_LEN(mutants);

size_t mutant_count(const char *text, const char *find)
{
    size_t count = 0;

    for (const char *at = strstr(text, find); at != NULL; at = strstr(at + 1, find)) {
        count++;
    }
    return count;
}

/* Index of the mutant's file among the headers; headers_len for the source itself, one more when it
 * is neither. */
static size_t place_of(const template_source *source, const mutant *m)
{
    size_t len = strlen(m->file);

    if (strcmp(m->file + len - 3, ".cu") == 0) {
        return source->headers_len;
    }
    for (size_t i = 0; i < source->headers_len; i++) {
        if (strcmp(source->names[i], m->file) == 0) {
            return i;
        }
    }
    return source->headers_len + 1;
}

const char *mutant_file(const template_source *source, const mutant *m)
{
    size_t place = place_of(source, m);

    if (place > source->headers_len) {
        return NULL;
    }
    return place == source->headers_len ? source->source : source->headers[place];
}

static char *change(const char *text, const mutant *m)
{
    const char *at = strstr(text, m->find);
    size_t capacity = strlen(text) + strlen(m->replace) + 1;
    char *made = malloc(capacity);

    ck_assert_msg(at != NULL && made != NULL, "%s: '%s' is not in %s", m->name, m->find, m->file);
    snprintf(made, capacity, "%.*s%s%s", (int)(at - text), text, m->replace, at + strlen(m->find));
    return made;
}

mutated mutant_apply(const template_source *source, const mutant *m)
{
    const char *text = mutant_file(source, m);
    mutated made = {.source = *source};
    size_t place = place_of(source, m);

    made.headers = calloc(source->headers_len, sizeof *made.headers);
    ck_assert_msg(text != NULL && made.headers != NULL, "%s: no file %s", m->name, m->file);
    made.text = change(text, m);
    for (size_t i = 0; i < source->headers_len; i++) {
        made.headers[i] = i == place ? made.text : source->headers[i];
    }
    made.source.headers = made.headers;
    if (place == source->headers_len) {
        made.source.source = made.text;
    }
    return made;
}

void mutant_free(mutated *made)
{
    free(made->headers);
    free(made->text);
    *made = (mutated){0};
}
