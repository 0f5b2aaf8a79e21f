// tiles.cu - f32 scales as kernels read them: column-major, with TMA's padding, or as words of four
// ue8m0 bytes, also those of a k-grouped product, in which every expert begins a word.
//
// Nothing is rounded: a value that is no power of two becomes NaN (0xff) in a word, and is counted.
// Row-major matrices turn in shared memory: rows of groups are read, columns of rows written. The
// scales of experts lie column by column already: a thread makes the words of four rows. Bytes
// equal hone_pack_scales's and hone_pack_scales_grouped's. Domains and launch: tiles.yaml.
#include "device/vector.cuh"
#include "device/warp.cuh"

struct Config {
    bool packed, grouped;
    int align;       // bytes that operands and rows of `scale` are multiples of
    int vec;         // floats of an access
    int threads;     // of a CTA
    int rows, lines; // of a tile of `out`: a line is a column of scales, or of words
};

template <Config C> struct Work {
    static constexpr int kGroups = C.lines * (C.packed ? 4 : 1); // of a tile
    static constexpr int kReads = C.rows * kGroups / C.vec / C.threads;
    static constexpr int kWrites = C.rows * C.lines / (C.grouped ? 4 : 1) / C.threads;

    static_assert(C.threads % 32 == 0 && C.threads <= 1024, "threads: whole warps");
    static_assert(C.vec <= 4 && is_pow2(C.vec) && kGroups % C.vec == 0, "vec: whole accesses");
    static_assert(C.grouped || kReads * C.vec * C.threads == C.rows * kGroups,
                  "lines: every thread reads alike");
    static_assert(kWrites >= 1 && kWrites * C.threads * (C.grouped ? 4 : 1) == C.rows * C.lines,
                  "rows: every thread writes alike");
    static_assert(C.grouped || C.threads % (kGroups / C.vec) == 0,
                  "lines: a thread keeps its column");
    static_assert(C.lines % 2 == 0 || C.grouped, "lines: columns of a tile in different banks");
};

constexpr u32 kOne = 0x3f800000u;

// The byte of a positive power of two from its float's bits: the exponent, or 0 for 2^-127.
__device__ __forceinline__ u32 code_of(u32 bits, u32 &wrong)
{
    const u32 exponent = bits >> 23;
    const bool normal = (bits & 0x007fffffu) == 0 && exponent - 1 < 254;
    const bool least = bits == 0x00400000u;

    wrong += normal || least ? 0 : 1;
    return normal ? exponent : least ? 0 : 0xff;
}

// A word of four of them, the lowest group first. Between powers of two and all else one test: the
// first have no mantissa, no sign, and neither end of the exponents.
__device__ __forceinline__ u32 word_of(u32 a, u32 b, u32 c, u32 d, u32 &wrong)
{
    constexpr u32 kLeast = 0x00800000u; // 2^-126
    const u32 most = max(max(a - kLeast, b - kLeast), max(c - kLeast, d - kLeast));

    if (((a | b | c | d) & 0x007fffffu) == 0 && most < 0x7f000000u) {
        return a >> 23 | b >> 15 | c >> 7 | d << 1;
    }
    return code_of(a, wrong) | code_of(b, wrong) << 8 | code_of(c, wrong) << 16 |
           code_of(d, wrong) << 24;
}

__device__ __forceinline__ void count(u64 *wrong, u32 mine)
{
    const u32 all = lanes_sum(mine);

    if (all > 0 && threadIdx.x % 32 == 0) {
        atomicAdd(wrong, u64(all));
    }
}

// Four words at once: compilers make four stores of a uint4 here, each of which touches all sectors.
__device__ __forceinline__ void store_words(u32 *to, const u32 (&words)[4])
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

// A tile's lines, four rows at a time, for lines that begin at multiples of 16 bytes.
template <Config C>
__device__ __forceinline__ void write_fours(const u32 (&tile)[C.rows][C.lines + 1], u32 *to,
                                            i32 there, i32 down, i32 across, i64 rows_padded)
{
    constexpr int kFours = C.rows / 4, kAll = kFours * C.lines;
#pragma unroll
    for (int first = 0; first < kAll; first += C.threads) {
        const int place = first + int(threadIdx.x), r = place % kFours * 4, l = place / kFours;
        if (r < down && l < across && place < kAll) {
            u32 words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = r + i < there ? tile[r + i][l] : kOne;
            }
            store_words(to + l * rows_padded + r, words);
        }
    }
}

// scale [rows, groups] of one matrix to a tile that begins at (row, line) of out [lines,
// rows_padded].
template <Config C>
__device__ __forceinline__ void turn(const u32 *scale, u32 *out, u64 *wrong, i64 row, i64 line,
                                     i64 rows, i64 groups, i64 rows_padded, i64 lines)
{
    using W = Work<C>;
    __shared__ u32 tile[C.rows][C.lines + 1];
    constexpr int kAcross = W::kGroups / C.vec, kDown = C.threads / kAcross;
    const i32 own = i32(threadIdx.x) / kAcross, g = i32(threadIdx.x) % kAcross * C.vec;
    const i64 group = line * (C.packed ? 4 : 1) + g;
    const u32 *from = scale + (row + own) * groups + group;
    const i32 there = i32(min(rows - row, i64(C.rows))), down = group < groups ? there : 0;
    Pack<u32, C.vec> in[W::kReads] = {}; // what lies outside is 0, in words
    u32 mine = 0;

#pragma unroll
    for (int t = 0; t < W::kReads; t++, from += kDown * groups) {
        if (own + t * kDown < down) {
            in[t] = pack_load<C.vec, C.align>(from);
        }
    }
#pragma unroll
    for (int t = 0; t < W::kReads; t++) {
        const i32 r = own + t * kDown;
        const bool inside = r < down;
        if constexpr (C.packed && C.vec == 4) {
            const u32 *v = in[t].v;
            tile[r][g / 4] = inside ? word_of(v[0], v[1], v[2], v[3], mine) : 0;
        } else if constexpr (C.packed) {
            using Codes = typename Word<C.vec>::Type;
            u32 codes = 0;
#pragma unroll
            for (int i = 0; i < C.vec; i++) {
                codes |= (inside ? code_of(in[t].v[i], mine) : 0) << (8 * i);
            }
            reinterpret_cast<Codes *>(tile[r])[g / C.vec] = Codes(codes);
        } else {
#pragma unroll
            for (int i = 0; i < C.vec; i++) {
                tile[r][g + i] = in[t].v[i];
            }
        }
    }
    __syncthreads();
    if (!C.packed && rows_padded % 4 == 0 && u64(out) % 16 == 0) {
        write_fours<C>(tile, out + line * rows_padded + row, there,
                       i32(min(rows_padded - row, i64(C.rows))),
                       i32(min(lines - line, i64(C.lines))), rows_padded);
        return;
    }
#pragma unroll
    for (int t = 0; t < W::kWrites; t++) {
        const int place = int(threadIdx.x) + t * C.threads;
        const int r = place % C.rows, l = place / C.rows;
        if (row + r < rows_padded && line + l < lines) {
            const u32 padding = C.packed ? 0 : kOne;
            out[(line + l) * rows_padded + row + r] = row + r < rows ? tile[r][l] : padding;
        }
    }
    if constexpr (C.packed) {
        count(wrong, mine);
    }
}

// Where the groups of a line of words lie in `scale`, how many they are, and how many all experts
// have: by a warp, four experts a lane.
__device__ __forceinline__ void find_line(const i32 *ks, i32 experts, i32 gran_k, i64 line,
                                          i64 &first, i32 &groups, i64 &total)
{
    const i32 lane = i32(threadIdx.x) % 32;
    i64 sizes[4], all = 0, words = 0;

#pragma unroll
    for (int i = 0; i < 4; i++) {
        const i64 k = 4 * lane + i < experts ? max(ks[4 * lane + i], 0) : 0;
        sizes[i] = (k + gran_k - 1) / gran_k;
        all += sizes[i];
        words += (sizes[i] + 3) / 4;
    }
    i64 group = all, word = words; // up to and with this lane's
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const i64 more = __shfl_up_sync(0xffffffffu, group, step);
        const i64 further = __shfl_up_sync(0xffffffffu, word, step);
        group += lane >= step ? more : 0;
        word += lane >= step ? further : 0;
    }
    total = __shfl_sync(0xffffffffu, group, 31);
    group -= all;
    word -= words;
    const bool here = line >= word && line < word + words;
    if (here) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const i64 own = (sizes[i] + 3) / 4;
            if (line >= word && line < word + own) {
                const i64 done = 4 * (line - word);
                first = group + done;
                groups = i32(sizes[i] - done < 4 ? sizes[i] - done : 4);
            }
            group += sizes[i];
            word += own;
        }
    }
    if (__ballot_sync(0xffffffffu, here) == 0 && lane == 0) {
        first = 0; // a line behind the last expert's
        groups = 0;
    }
}

// scale [groups, rows] of all experts to a tile of out [lines, rows].
template <Config C>
__device__ __forceinline__ void gather(const u32 *scale, u32 *out, const i32 *ks, u64 *wrong,
                                       i64 row, i64 line, i64 rows, i64 groups, i64 lines,
                                       i32 experts, i32 gran_k)
{
    using W = Work<C>;
    __shared__ i64 first[C.lines];
    __shared__ i32 there[C.lines];
    u32 mine = 0;

    for (int l = int(threadIdx.x) / 32; l < C.lines; l += C.threads / 32) {
        i64 total;
        find_line(ks, experts, gran_k, line + l, first[l], there[l], total);
        if (line + l == 0 && threadIdx.x == 0 && groups > total) { // no expert has them
            atomicAdd(wrong, u64((groups - total) * (rows - row < C.rows ? rows - row : C.rows)));
        }
    }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < W::kWrites; t++) {
        const int place = int(threadIdx.x) + t * C.threads;
        const int r = place % (C.rows / 4) * 4, l = place / (C.rows / 4);
        if (row + r < rows && line + l < lines) {
            const i64 left = groups - first[l];
            const i32 present = i32(left < there[l] ? max(left, i64(0)) : there[l]);
            const u32 *from = scale + first[l] * rows + row + r;
            Pack<u32, 4> in[4] = {};
            u32 words[4] = {};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (i < present) {
                    in[i] = pack_load<4, C.align>(from + i * rows);
                }
            }
            mine += 4 * u32(there[l] - present);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (present == 4) {
                    words[j] = word_of(in[0].v[j], in[1].v[j], in[2].v[j], in[3].v[j], mine);
                    continue;
                }
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    words[j] |= (i < present ? code_of(in[i].v[j], mine) : 0) << (8 * i);
                }
            }
            store_words(out + (line + l) * rows + row + r, words);
        }
    }
    count(wrong, mine);
}

template <Config C>
__global__ void __launch_bounds__(C.threads)
    scale_pack_tiles(const u32 *__restrict__ scale, u32 *__restrict__ out,
                     const i32 *__restrict__ ks, u64 *__restrict__ wrong, i64 rows, i64 groups,
                     i64 rows_padded, i64 lines, i64 row_tiles, i64 line_tiles, i32 experts,
                     i32 gran_k)
{
    const i64 place = i64(blockIdx.x), batch = place / (row_tiles * line_tiles);
    const i64 row = place % row_tiles * C.rows, line = place / row_tiles % line_tiles * C.lines;

    if constexpr (C.grouped) {
        gather<C>(scale, out, ks, wrong, row, line, rows, groups, lines, experts, gran_k);
    } else {
        turn<C>(scale + batch * rows * groups, out + batch * lines * rows_padded, wrong, row, line,
                rows, groups, rows_padded, lines);
    }
}
