/* mutants.c - the table of faulty variants, and how one is made. */
#include "tests/templates/mutants.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GEMM          "fp8_gemm/mma_sync"
#define GEMM_CU       "fp8_gemm/mma_sync.cu"
#define GEMM_MULTIPLY "fp8_gemm/mma_sync_multiply.cuh"
#define GEMM_PARTS    "fp8_gemm/mma_sync_parts.cuh"
#define GEMM_PIPELINE "fp8_gemm/mma_sync_pipeline.cuh"
#define GEMM_TILE                                                                                  \
    "swap=0 block_m=32 block_n=48 block_k=128 warps_m=2 warps_n=2 warps_k=1 split_k=1 stages=2 "   \
    "promote=32 raster=1 residency=1"
/* K shared by three CTAs, of four warps in two shares; and B's rows as the instruction's. */
#define GEMM_SHARED                                                                                \
    "swap=0 block_m=16 block_n=32 block_k=64 warps_m=1 warps_n=2 warps_k=2 split_k=3 stages=2 "    \
    "promote=32 raster=1 residency=1"
#define GEMM_SWAPPED                                                                               \
    "swap=1 block_m=8 block_n=32 block_k=64 warps_m=1 warps_n=2 warps_k=1 split_k=2 stages=2 "     \
    "promote=32 raster=1 residency=1"
#define GEMM_LONG "fp8_gemm:m=33,n=136,k=480,recipe=f32-1x32-32x32"
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
#define ACT_GATE                                                                                   \
    "act_quant:m=7,k=256,in=f16,activation=silu_mul_v4,experts=5,row_set=masked,count=1"
#define ACT_GATHER  "act_quant:m=21,k=256,experts=3,row_set=gathered,tokens=10,topk=4"
#define ACT_LIST    "act_quant:m=40,k=128,row_set=listed,group=64"
#define WEIGHT      "weight_quant/blocks"
#define WEIGHT_CU   "weight_quant/blocks.cu"
#define WEIGHT_ALL  "weight_quant:n=130,k=150"
#define MXFP4       "mxfp4_fold/blocks"
#define MXFP4_CU    "mxfp4_fold/blocks.cu"
#define SCALES      "scale_pack/tiles"
#define SCALES_CU   "scale_pack/tiles.cu"
#define SCALES_TILE "vec=4 threads=64 tile_rows=64 tile_lines=4"
#define SORT        "moe_align/sort"
#define SORT_CU     "moe_align/sort.cu"
#define SORT_TILE   "threads=128 items=1 least_ctas=1"
#define SORT_LABELS "moe_align:tokens=37,experts=9,topk=4,group_layout=contiguous,row_align=16"
#define SORT_ENDS   "moe_align:tokens=37,experts=40,topk=4,group_layout=psum,row_align=16"
#define SORT_WIDE   "moe_align:tokens=37,experts=9,topk=4,group_layout=masked,ids=i64"
#define SORT_K      "moe_align:tokens=37,m=70,experts=9,topk=4,group_layout=grouped_k,row_align=16"
#define SORT_TIGHT  "moe_align:tokens=37,m=5,experts=9,topk=4,group_layout=masked"
#define SUM         "moe_combine/tokens"
#define SUM_CU      "moe_combine/tokens.cu"
#define SUM_TILE    "vec=4 threads=64 tokens_cta=1 repeat=1 batch=2"
#define SUM_BF16    "moe_combine:tokens=13,n=40,topk=6"
#define SUM_F32     "moe_combine:tokens=13,n=40,topk=6,in=f32,out=f32"
#define KV          "kv_quant/tokens"
#define KV_CU       "kv_quant/tokens.cu"
#define KV_PAGE     "device/kv_page.cuh"
#define KV_TILE     "pieces=2 tokens_cta=4"
#define FP4         "kv_quant/nibbles"
#define FP4_CU      "kv_quant/nibbles.cu"
#define FP4_TILE    "pieces=4 tokens_cta=4"
#define FP4_PAGES   "kv_quant:tokens=40,pages=3,record=nvfp4_352-interleaved-e4m3_up"
#define GATHER_TABLE                                                                               \
    "kv_gather:tokens=40,pages=3,to=raw,by=table,sequences=3,table_pages=1,record=v32_656-"        \
    "interleaved-pow2_scale"
#define KV_PAGES                                                                                   \
    "kv_quant:tokens=40,pages=5,page_size=32,record_format=v41_528,record_layout=split,record_"    \
    "rule=pow2_amax"

const mutant mutants[] = {
    {"scale row and column swapped", GEMM, "device/scale_layout.cuh",
     "return row * row_stride + group * group_stride;",
     "return row * group_stride + group * row_stride;", GEMM_ROWS, GEMM_TILE,
     "row-major scales handed to a kernel that reads them column-major: the classic silent error"},
    {"K tail unmasked", GEMM, "device/tile_copy.cuh", "half_row<Half>(row) < rows ? k - at : 0;",
     "half_row<Half>(row) < rows ? 16 : 0;", GEMM_TAIL, GEMM_TILE,
     "the tail of K is the next row's beginning"},
    {"N tail unmasked", GEMM, "device/output.cuh", "if (kept && c < n) {", "if (kept) {", GEMM_TAIL,
     GEMM_TILE, "a tile wider than what is left of N writes into the next row"},
    {"last K block dropped", GEMM, GEMM_PIPELINE, "block < line.blocks; block++",
     "block < line.blocks - 1; block++", GEMM_TAIL, GEMM_TILE,
     "a pipeline that is drained one block early"},
    {"scale of the next group", GEMM, "device/scale_tile.cuh",
     "const i32 group = block * BlockK / GranK + i32(i / Lines);",
     "const i32 group = block * BlockK / GranK + i32(i / Lines) + 1;", GEMM_ROWS, GEMM_TILE,
     "a prefetched scale that is one group ahead of its data"},
    {"promotion past the scale group", GEMM, GEMM_MULTIPLY,
     "interval * C.promote / kRowGroup * kRowLines", "0", GEMM_ROWS, GEMM_TILE,
     "a K tile wider than the group: all of it takes the first group's scale"},
    {"missing __syncthreads", GEMM, GEMM_PIPELINE, "__syncthreads(); //", "//", GEMM_ROWS,
     GEMM_TILE, "a warp reads what another has not yet copied"},
    {"half of the output unwritten", GEMM, "device/output.cuh", "i < TilesM * 2; i++",
     "i < TilesM * 2; i += 2", GEMM_ROWS, GEMM_TILE,
     "passes where an earlier candidate filled the rest"},
    {"parts not released", GEMM, GEMM_PARTS, "atom.acq_rel.gpu", "atom.acquire.gpu", GEMM_LONG,
     GEMM_SHARED, "the last CTA may read a part before it is in memory"},
    {"arrival before all threads have stored", GEMM, GEMM_PARTS,
     "__syncthreads(); // the arrival below", "//", GEMM_LONG, GEMM_SHARED,
     "one thread's release speaks for those that a barrier put before it"},
    {"the last but one adds", GEMM, GEMM_PARTS, "== C.split_k - 1", "== C.split_k - 2", GEMM_LONG,
     GEMM_SHARED, "a counter that is compared one too early: a part is missing"},
    {"the first adds", GEMM, GEMM_PARTS, "== C.split_k - 1", "== 0", GEMM_LONG, GEMM_SHARED,
     "the last arriver chosen wrongly"},
    {"every CTA adds", GEMM, GEMM_PARTS, "if (!__syncthreads_or(last)) {",
     "if (!__syncthreads_or(true)) {", GEMM_LONG, GEMM_SHARED,
     "tiles stored by CTAs that have not seen all parts"},
    {"counter not of the tile", GEMM, GEMM_PARTS, "arrive(counter + tile)", "arrive(counter)",
     GEMM_LONG, GEMM_SHARED, "tiles that share a counter wait for one another's parts"},
    {"parts of another tile", GEMM, GEMM_PARTS, "tile * C.split_k * kPart", "tile * kPart",
     GEMM_LONG, GEMM_SHARED, "parts of neighbouring tiles lie on one another"},
    {"a part added twice", GEMM, GEMM_PARTS, "from = first + p * kPart",
     "from = first + (p > 0 ? p - 1 : p) * kPart", GEMM_LONG, GEMM_SHARED,
     "one part twice, the last one never"},
    {"own sum not cleared", GEMM, GEMM_PARTS, "[i % 4] = 0.0f;", "[i % 4] *= 1.0f;", GEMM_LONG,
     GEMM_SHARED, "the last CTA's part counts twice"},
    {"parts of K overlap", GEMM, GEMM_CU, "part * each + min(part, more)", "part * each", GEMM_LONG,
     GEMM_SHARED, "blocks that do not divide evenly: one is read twice, one never"},
    {"warps' sums over a stage in use", GEMM, GEMM_PARTS, "__syncthreads(); // all have read", "//",
     GEMM_LONG, GEMM_SHARED, "sums stored where another warp still multiplies"},
    {"warps' sums read early", GEMM, GEMM_PARTS, "__syncthreads(); // the sums are there", "//",
     GEMM_LONG, GEMM_SHARED, "sums added before their warps have stored them"},
    {"a share of K dropped", GEMM, GEMM_PARTS, "s < C.warps_k; s++", "s < C.warps_k - 1; s++",
     GEMM_LONG, GEMM_SHARED, "warps that multiplied for nothing"},
    {"every warp multiplies the first share", GEMM, GEMM_MULTIPLY, "share * T::kIntervals + n", "n",
     GEMM_LONG, GEMM_SHARED, "warps that share K and take the same part of it"},
    {"turned tile stored straight", GEMM, "device/output.cuh", "lane % 4 * 2 + odd;",
     "lane % 4 * 2;", GEMM_LONG, GEMM_SWAPPED, "both lanes of a pair write one row"},
    {"M tail of a turned tile unmasked", GEMM, "device/output.cuh",
     "if (c < n && row_kept(rows, r)) {", "if (c < n) {", GEMM_LONG, GEMM_SWAPPED,
     "a tile of eight rows of which one exists"},
    {"scale of sixteen rows taken by eight", GEMM, GEMM_PIPELINE, "row + lane / 4 : row / 16",
     "row + lane / 4 : row / 8", GEMM_LONG, GEMM_SWAPPED,
     "a line of B's scales is another number of rows when B's rows are the instruction's"},
    {"floor instead of ceiling", ACT, "device/quantise.cuh", "bits + 0x1fffffu", "bits", ACT_POW2,
     ACT_TILE, "a power-of-two scale that is too small saturates the payload"},
    {"ceiling of 480, not 448", ACT, "device/quantise.cuh", "0x1fffffu", "0x0fffffu",
     "act_quant:m=64,k=512,scale=ue8m0,group=64", ACT_TILE, "e4m3 ends at 1.75 * 2^8"},
    {"payload of every second lane unwritten", ACT, "act_quant/groups.cu", "if (valid) {",
     "if (valid && lane % 2 == 0) {", ACT_POW2, ACT_TILE,
     "a vector width that does not cover its group"},
    {"folded codes one binade off where they are rounded", FOLD, FOLD_CUH, "u32(15 - shift)",
     "u32(14 - shift)", FOLD_ODD, FOLDED, "what falls below the normal numbers is half as large"},
    {"folded codes lose their first bit", FOLD, FOLD_CUH, "u32(shift + 1) * 0x08080808u",
     "u32(shift) * 0x08080808u", FOLD_ODD, FOLDED,
     "a normal code becomes the subnormal that looks alike"},
    {"changes not counted", FOLD, "fold/groups.cu", "if (all > 0 &&", "if (all > 1000000 &&",
     FOLD_ODD, FOLDED, "an inexact fold that nobody hears of"},
    {"up for gate", ACT, "device/activation.cuh", "return silu(gate) * up;",
     "return silu(up) * gate;", ACT_GATE, ACT_TILE, "the halves of a row exchanged"},
    {"clamp forgotten", ACT, "device/activation.cuh", "gate = gate > 10.0f ? 10.0f : gate;", "",
     ACT_GATE, ACT_TILE, "right until an outlier comes"},
    {"clamp that swallows NaN", ACT, "device/activation.cuh", "gate > 10.0f ? 10.0f : gate",
     "fminf(gate, 10.0f)", ACT_GATE, ACT_TILE, "fminf returns the other operand of a NaN"},
    {"exp without its sign", ACT, "device/activation.cuh", "-1.44269504f", "1.44269504f", ACT_GATE,
     ACT_TILE, "silu(-g)"},
    {"2^x for e^x", ACT, "device/activation.cuh", "g * -1.44269504f", "-g", ACT_GATE, ACT_TILE,
     "near enough at small g to look right"},
    {"ups one group off", ACT, "act_quant/groups.cu", "first + i * k", "first + i * (k - C.group)",
     ACT_GATE, ACT_TILE, "a row's second half begins at k"},
    {"one row too many of an expert", ACT, "act_quant/groups.cu", "return row < rows[expert];",
     "return row <= rows[expert];", ACT_GATE, ACT_TILE, "an off-by-one in the mask"},
    {"first expert's count for all", ACT, "act_quant/groups.cu", "rows[expert]", "rows[0]",
     ACT_GATE, ACT_TILE, "the count is not indexed"},
    {"scales of all experts in one place", ACT, "act_quant/groups.cu", "expert * scale_expert + at",
     "at", ACT_GATE, ACT_TILE, "scales of the last expert win"},
    {"row of expert 0 left out", ACT, "act_quant/groups.cu", "return rows[row] >= 0;",
     "return rows[row] > 0;", ACT_LIST, ACT_TILE, "0 is an expert"},
    {"absent rows written", ACT, "act_quant/groups.cu", "return rows[row] >= 0;", "return true;",
     ACT_LIST, ACT_TILE, "garbage of rows that nobody sent"},
    {"entries taken for tokens", ACT, "act_quant/groups.cu", "rows[at_row] / topk : 0",
     "rows[at_row] : 0", ACT_GATHER, ACT_TILE, "a token has topk entries"},
    {"entries that no token has are read", ACT, "act_quant/groups.cu", "< u32(entries);",
     "< 0x80000000u;", ACT_GATHER, ACT_TILE, "a stale index from another batch"},
    {"negative entries read", ACT, "act_quant/groups.cu",
     "return u32(rows[expert * m + row]) < u32(entries);",
     "return rows[expert * m + row] < entries;", ACT_GATHER, ACT_TILE, "-1 / topk is token 0"},
    {"rows of the first expert for all", ACT, "act_quant/groups.cu", "u32(rows[expert * m + row])",
     "u32(rows[row])", ACT_GATHER, ACT_TILE, "the list is not indexed by expert"},
    {"dropped rows counted by every CTA", ACT, "act_quant/groups.cu",
     "row < m && first == 0 && lane == 0", "row < m && lane == 0", ACT_GATHER, ACT_TILE,
     "a row has many groups"},
    {"1e-4 under a scale that has no floor", ACT, "device/quantise.cuh",
     "Rule == POW2_TINY ? 1 : 114", "114", "act_quant:m=5,k=384,in=f32,rule=pow2_tiny", ACT_TILE,
     "blocks of small scales become zeros"},
    {"infinity becomes 448", ACT, "device/quantise.cuh", "if (!plain) { // rare", "if (false) {",
     "act_quant:m=40,k=256", ACT_TILE, "an overflow that looks like a number"},
    {"specials of one lane counted for all", ACT, "act_quant/groups.cu",
     "if (C.count && own >= kInfinityBits)", "if (C.count && own >= kInfinityBits && lane == 0)",
     ACT_GATE, ACT_TILE, "each lane has elements of its own"},
    {"maximum of one warp", WEIGHT, WEIGHT_CU, "own = max(own, warps[first + i]);", "", WEIGHT_ALL,
     "vec=8 row_threads=16 blocks=1", "a block is several warps"},
    {"maxima read before they are written", WEIGHT, WEIGHT_CU, "__syncthreads();", "", WEIGHT_ALL,
     "vec=8 row_threads=16 blocks=1", "a race"},
    {"tail columns read from the next row", WEIGHT, WEIGHT_CU,
     "if (column + N <= end) {\n        constexpr", "if (true) {\n        constexpr", WEIGHT_ALL,
     "vec=8 row_threads=16 blocks=1", "k is no multiple of the block"},
    {"tail columns written into the next row", WEIGHT, WEIGHT_CU,
     "if (column + 4 * Words <= end) {", "if (true) {", WEIGHT_ALL, "vec=8 row_threads=16 blocks=1",
     "overwrites the next row's beginning, or is overwritten"},
    {"halves of a row kept", WEIGHT, WEIGHT_CU, "second ? left : right, 1);",
     "second ? right : left, 1);", "weight_quant:n=7,k=550,gran_n=1,gran_k=32",
     "vec=16 row_threads=1 blocks=32", "a wide store of the other half's codes"},
    {"rows past n read", WEIGHT, WEIGHT_CU, "if (valid && at.row < n) {\n            load_below",
     "if (valid) {\n            load_below", WEIGHT_ALL, "vec=8 row_threads=16 blocks=1",
     "a last block of rows that are not there"},
    {"specials not counted", WEIGHT, WEIGHT_CU, "atomicAdd(special, u64(specials));", "",
     WEIGHT_ALL, "vec=8 row_threads=16 blocks=1", "silent"},
    {"each lane's own maximum", MXFP4, MXFP4_CU, "largest = block_max<C>(largest);", "",
     "mxfp4_fold:n=7,k=1120,block_rows=1", "threads=32 per=1 side=1",
     "a scale that only part of its block agrees on"},
    {"last rows of a matrix unmasked", MXFP4, MXFP4_CU, "row < n && group < groups",
     "group < groups", "mxfp4_fold:n=130,k=416", "threads=256 per=2 side=1",
     "a block that is cut off goes on in the next matrix, or past the end"},
    {"the first of two blocks' maxima for both", MXFP4, MXFP4_CU, "warps[block][i]", "warps[0][i]",
     "mxfp4_fold:n=130,k=416", "threads=256 per=4 side=2", "a block under its neighbour's scale"},
    {"signs dropped", MXFP4, MXFP4_CU, "signs << 7", "0", "mxfp4_fold:n=33,k=96",
     "threads=128 per=4 side=1", "prmt's sign mode that an intrinsic hides"},
    {"a group's halves not exchanged", MXFP4, MXFP4_CU,
     "__shfl_xor_sync(kAll, odd ? left[i] : right[i], 1)", "odd ? left[i] : right[i]",
     "mxfp4_fold:n=33,k=96", "threads=256 per=4 side=2", "half of each group is the neighbour's"},
    {"mantissas dropped", SCALES, SCALES_CU, "(bits & 0x007fffffu) == 0 && exponent - 1 < 254",
     "exponent - 1 < 254", "scale_pack:rows=37,groups=56", SCALES_TILE,
     "a scale rounded down alone (cases.md 2)"},
    {"2^-127 taken for nothing", SCALES, SCALES_CU, "bits == 0x00400000u", "false",
     "scale_pack:rows=37,groups=56", SCALES_TILE, "the least code refused"},
    {"wrong ones not counted", SCALES, SCALES_CU, "atomicAdd(wrong, u64(all));", "",
     "scale_pack:rows=37,groups=56", SCALES_TILE, "silent"},
    {"no barrier between turns", SCALES, SCALES_CU,
     "    __syncthreads();\n    if (!C.packed &&", "    if (!C.packed &&",
     "scale_pack:rows=37,groups=56", SCALES_TILE,
     "columns are written before their rows are there"},
    {"padding rows left out", SCALES, SCALES_CU, "row + r < rows_padded && line + l < lines",
     "row + r < rows && line + l < lines", "scale_pack:rows=37,groups=56", SCALES_TILE,
     "whole words of which a reader makes NaN (cases.md 2)"},
    {"zeros for padding, four rows at a time", SCALES, SCALES_CU,
     "r + i < there ? tile[r + i][l] : kOne", "tile[r + i][l]",
     "scale_pack:rows=37,groups=57,scale=f32,scale_layout=tma",
     "vec=1 threads=64 tile_rows=32 tile_lines=32", "a reader of whole words divides by them"},
    {"experts' words filled through", SCALES, SCALES_CU, "const i64 own = (sizes[i] + 3) / 4;",
     "const i64 own = sizes[i] / 4;", "scale_pack:rows=132,groups=70,experts=9,gran_k=32",
     "vec=4 threads=64 tile_rows=64 tile_lines=8", "an expert that does not begin a word"},
    {"a group of the next expert", SCALES, SCALES_CU,
     "groups = i32(sizes[i] - done < 4 ? sizes[i] - done : 4);", "groups = 4;",
     "scale_pack:rows=132,groups=70,experts=9,gran_k=32",
     "vec=4 threads=64 tile_rows=64 tile_lines=8", "bytes that no group has"},
    {"-1 taken for an expert", SORT, SORT_CU, "u64(i64(id)) < u64(C.experts) ? i32(id) : -1",
     "u64(i64(id)) < u64(C.experts) ? i32(id) : 0", SORT_LABELS, SORT_TILE,
     "other ranks' tokens go to an expert (cases.md 72)"},
    {"wide ids cut", SORT, SORT_CU, "u64(i64(id)) < u64(C.experts)", "u32(id) < u32(C.experts)",
     SORT_WIDE, SORT_TILE, "2^32 becomes expert 0"},
    {"experts not aligned", SORT, SORT_CU, "return (rows + (C.unit - 1)) / C.unit * C.unit;",
     "return rows;", SORT_LABELS, SORT_TILE, "a tile of two experts (cases.md 12)"},
    {"padding not written", SORT, SORT_CU, "    source[row] = -1;\n", "", SORT_LABELS, SORT_TILE,
     "a row of the step before"},
    {"labels of padding not written", SORT, SORT_CU, "        groups[row] = -1;\n", "", SORT_LABELS,
     SORT_TILE, "an expert's weights for rows that are not there"},
    {"rows behind all experts not written", SORT, SORT_CU,
     "for (u32 row = s.end + thread; row < m; row += threads)", "for (u32 row = m; row < m;)",
     SORT_LABELS, SORT_TILE, "the same, past the last expert"},
    {"chunks before left out", SORT, SORT_CU, "s.before[x] + s.own[warp][x] + rank[i]",
     "s.own[warp][x] + rank[i]", SORT_LABELS, SORT_TILE, "two entries in one row"},
    {"warps before left out", SORT, SORT_CU, "s.own[w][expert] = u16(all);",
     "s.own[w][expert] = 0;", SORT_LABELS, SORT_TILE, "two entries in one row"},
    {"ranks by lane from above", SORT, SORT_CU, "__popc(alike & ((1u << lane) - 1))",
     "__popc(alike & ~((2u << lane) - 1))", SORT_LABELS, SORT_TILE, "not the entries' order"},
    {"runs of experts begin anew", SORT, SORT_CU,
     "runs = lanes_sum(lane < expert / 32 && lane < S::kRuns ? s.sums[lane] : 0);", "", SORT_ENDS,
     SORT_TILE, "the 33rd expert at row 0"},
    {"rows past the room are written", SORT, SORT_CU, "expert[i] >= 0 && nth < s.held[x]",
     "expert[i] >= 0", SORT_TIGHT, SORT_TILE, "the next expert's rows (cases.md 59)"},
    {"a batch does not wait for the one before", SORT, SORT_CU,
     "        __syncwarp();\n    }\n    return", "    }\n    return", SORT_LABELS,
     "threads=128 items=4 least_ctas=1", "a count read too early"},
    {"K ends within a unit", SORT, SORT_CU, "u32(m) / C.unit * C.unit", "u32(m)", SORT_K, SORT_TILE,
     "a product would leave the rest out"},
    {"lost entries not counted", SORT, SORT_CU, "lost += all - held;", "", SORT_TIGHT, SORT_TILE,
     "silent"},
    {"products rounded before they are added", SUM, SUM_CU,
     "__fmaf_rn(by, in[b][t].at(i), sum[t][i])",
     "__fadd_rn(__fmul_rn(by, in[b][t].at(i)), sum[t][i])", SUM_F32, SUM_TILE,
     "other bits than the order says"},
    {"rows without a place added", SUM, SUM_CU, "if (u32(at(b)) < u32(m) && column < n) {",
     "if (column < n) {", SUM_BF16, SUM_TILE, "a read before the first row (cases.md 72)"},
    {"stale rows added", SUM, SUM_CU,
     "if (u32(at(b)) < u32(m) && first + t * W::kLanes * C.vec < n) {",
     "if (first + t * W::kLanes * C.vec < n) {", SUM_BF16, SUM_TILE,
     "what another entry left in a register"},
    {"one row too many", SUM, SUM_CU, "place[j] >= m ? 1 : 0", "place[j] > m ? 1 : 0", SUM_BF16,
     SUM_TILE, "not counted"},
    {"sums begin anew for each batch", SUM, SUM_CU, "j += C.batch) {\n",
     "j += C.batch) {\n        sum[0][0] = 0.0f;\n", SUM_BF16, SUM_TILE, "the last entries alone"},
    {"odd columns of a pair", SUM, SUM_CU, "i + 1 < C.vec ? sum[i + 1] : 0.0f", "sum[i]", SUM_BF16,
     SUM_TILE, "each even column twice"},
    {"y not added to", SUM, SUM_CU, "for (int t = 0; C.accumulate && t < C.repeat; t++)",
     "for (int t = 0; false && t < C.repeat; t++)", SUM_BF16 ",accumulate=1", SUM_TILE,
     "the shared expert is lost"},
    {"page off by one", KV, KV_PAGE, "return {cache + page * page_stride,",
     "return {cache + (page > 0 ? page - 1 : page) * page_stride,", KV_PAGES, KV_TILE,
     "a token overwrites the same place of the page before"},
    {"slot -1 written", KV, KV_PAGE, "u64(page) < u64(pages) &&", "page < pages &&", KV_PAGES,
     KV_TILE, "a padding row writes before the cache"},
    {"codes not exchanged", KV, "device/kv_pieces.cuh",
     "lane_xor<W / Words>(own[W % Words])", "own[W % Words]", KV_PAGES, KV_TILE,
     "wide stores of another lane's codes"},
    {"ties away from even", FP4, "device/e2m1_codes.cuh", "HalfPairs::line(q, 0x40004000u,",
     "HalfPairs::line(q + 0x00010001u, 0x40004000u,", FP4_PAGES, FP4_TILE,
     "0.25 becomes 0.5: the tie goes to the odd code"},
    {"scales not permuted", FP4, FP4_CU, "C.permuted ? 8 * (tile % 4) + tile / 4 : tile", "tile",
     FP4_PAGES, FP4_TILE, "a reader finds each scale elsewhere"},
    {"scale of amax over 6 rounded to nearest", FP4, FP4_CU, "if constexpr (Rule == E4M3_UP) {",
     "if constexpr (false) {", FP4_PAGES, FP4_TILE, "the largest element saturates"},
    {"more than 6 times the largest scale", FP4, FP4_CU, "0x00800080u : 0x3ad73ad7u",
     "0x00800080u : 0x00800080u", "kv_quant:tokens=40,pages=3,record=v41_288-split-e4m3_near",
     FP4_TILE, "what is past the last code wraps around"},
    {"tail counted", KV, KV_CU, "if (Work<C>::kWithin && tail) {", "if (false) {",
     "kv_quant:tokens=40,pages=3,record=v4_584-split-pow2_amax", KV_TILE,
     "NaN that is copied as it is, and changed nothing"},
    {"a sequence's first row left out", "kv_gather/raw", "device/kv_source.cuh",
     "const bool after = row >= g.starts[middle];", "const bool after = row > g.starts[middle];",
     GATHER_TABLE, "pieces=2 tokens_cta=8", "it is read as the one past the sequence before"},
    {"pages past the cache are read", "kv_gather/raw", "device/kv_source.cuh",
     "if (page >= g.pages) {", "if (page > g.pages) {",
     "kv_gather:tokens=40,pages=3,to=raw,record=v32_656-interleaved-pow2_scale",
     "pieces=2 tokens_cta=8", "an access outside of the cache"},
    {"a row's own scale for all its tiles", "kv_gather/values", "kv_gather/values.cu",
     "const i32 tile = element / C.tile,", "const i32 tile = 0 * element / C.tile,",
     "kv_gather:tokens=40,pages=3,record=v41_288-split-e4m3_near", "pieces=4 tokens_cta=4",
     "each tile under the first one's scale"},
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
