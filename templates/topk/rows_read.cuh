// rows_read.cuh - a row's candidates: where they lie, their scores, and what index each has.
//
// They are read in units: columns by 16 bytes, which lie at multiples of 16 wherever the row
// begins; blocks, and what parts chose, one by one.
#pragma once
#include "device/order_key.cuh"
#include "topk/rows_bits.cuh"

enum Span : int { WHOLE = 1, ENDS = 2, BOTH = 3, COMPRESSED = 4 };
enum Pick : int { COLUMNS = 1, BLOCKED = 2, LISTED_BLOCKS = 3 };
enum Sort : int { BY_INDEX = 1, BY_SCORE = 2 };

constexpr u32 kInfinity = 0x7f800000u, kNan = 0x7fffffffu;

struct Config {
    int in;      // Dtype
    int span;    // Span
    int pick;    // Pick
    int block;   // columns
    int pin;     // 1: the last block counts as +inf
    int drop;    // 1: -inf and NaN are no candidates
    int sort;    // Sort
    int network; // 1: what is chosen is sorted; 0: written from a bitmap
    int list;    // candidates that a CTA has room for
    int threads; // of a CTA
    int cluster; // CTAs that share a row
    int parts;   // parts of a row that are chosen from apart; 1: none
};

template <int In> struct ScoreOf {
    using Type = float;
};
template <> struct ScoreOf<BF16> {
    using Type = u16;
};

__device__ __forceinline__ float score(float x)
{
    return x;
}

__device__ __forceinline__ float score(u16 bf16)
{
    return __uint_as_float(u32(bf16) << 16);
}

// 16 bytes of scores.
template <typename T> struct Scores {
    Pack<u32, 4> word;

    __device__ __forceinline__ explicit Scores(const T *from)
        : word(pack_load<4, 16>(reinterpret_cast<const u32 *>(from)))
    {
    }

    __device__ __forceinline__ float at(int i) const
    {
        if constexpr (sizeof(T) == 4) {
            return __uint_as_float(word.v[i]);
        } else { // the lower half first
            return __uint_as_float(i % 2 == 0 ? word.v[i / 2] << 16 : word.v[i / 2] & 0xffff0000u);
        }
    }
};

// Scores, bounds and lists of all rows; `chosen`: what the parts of rows chose.
template <Config C> struct Operands {
    const typename ScoreOf<C.in>::Type *scores;
    const i32 *start, *end, *list;
    const u64 *chosen;
    i64 width, stride;
    i32 k;
};

// Merges: the candidates are those that parts chose.
template <Config C, bool Merges> struct Row {
    using T = typename ScoreOf<C.in>::Type;
    static constexpr bool kWide = C.pick != BLOCKED && !Merges;
    static constexpr int kUnit = kWide ? 16 / int(sizeof(T)) : 1; // candidates
    static constexpr int kAhead = kUnit == 8 ? 2 : 4;             // units in flight
    static constexpr int kBatch = kUnit * kAhead;
    static constexpr u32 kWholeUnit = (1u << kUnit) - 1;
    // Pairs of scores compared as they lie, in which nothing but their value counts.
#if __CUDA_ARCH__ >= 900
    static constexpr bool kPairs = kUnit == 8 && C.pick == COLUMNS;
#else
    static constexpr bool kPairs = false;
#endif
    static constexpr int kPairedAhead = 4;

    const T *at;       // the first candidate's first score
    const i32 *list;   // of this row
    const u64 *chosen; // of this row's parts, one behind the other; 0: none
    i32 len, columns;  // candidates; of blocks, their columns
    i32 limit;         // positions of listed blocks
    i32 skew;          // scores from a multiple of 16 bytes to `at`

    __device__ __forceinline__ Row(const Operands<C> &o, i64 row)
    {
        const i32 most = C.pick == LISTED_BLOCKS ? 0x7fffffff : i32(o.width);
        i32 first = 0, last = most;

        if constexpr (C.span == BOTH || C.span == COMPRESSED) {
            first = min(max(o.start[row], 0), most);
        }
        if constexpr (C.span != WHOLE) {
            last = min(max(o.end[row], first), most);
        }
        at = o.scores + row * o.stride + (C.span == BOTH && C.pick != LISTED_BLOCKS ? first : 0);
        limit = last - first;
        columns = C.pick == LISTED_BLOCKS ? i32(o.width) : limit;
        len = C.pick == BLOCKED ? columns / C.block + (columns % C.block > 0 ? 1 : 0) : columns;
        list = C.pick == LISTED_BLOCKS ? o.list + row * (o.width / C.block) : nullptr;
        skew = kWide ? i32(u64(at) / sizeof(T) % kUnit) : 0;
        if constexpr (Merges) {
            chosen = o.chosen + row * C.parts * o.k;
            len = C.parts * o.k;
        }
    }

    __device__ __forceinline__ i32 units() const
    {
        return len > 0 ? (len + skew + kUnit - 1) / kUnit : 0;
    }

    // Candidate j of a unit; below 0 or at least `len`: none.
    __device__ __forceinline__ i32 index(i32 unit, i32 j) const
    {
        return unit * kUnit - skew + j;
    }

    // The best of a block. NaN where all of it is.
    __device__ __forceinline__ float block_score(i32 block) const
    {
        constexpr int kPack = 16 / int(sizeof(T));
        const i32 first = block * C.block, held = min(columns - first, C.block);
        float best = __uint_as_float(kNan);

        if (C.pin && first + held == columns) { // the last one
            return __uint_as_float(kInfinity);
        }
        if (C.block % kPack == 0 && held == C.block && u64(at) % 16 == 0) {
#pragma unroll
            for (int i = 0; i < C.block; i += kPack) {
                const Scores<T> in(at + first + i);
#pragma unroll
                for (int j = 0; j < kPack; j++) {
                    best = fmaxf(best, in.at(j));
                }
            }
        } else {
#pragma unroll 1
            for (i32 i = 0; i < held; i++) {
                best = fmaxf(best, score(at[first + i]));
            }
        }
        return best;
    }

    __device__ __forceinline__ float score_of(i32 candidate) const
    {
        if constexpr (Merges) {
            return score_of_key(u32(chosen[candidate] >> 32));
        } else {
            return C.pick == BLOCKED ? block_score(candidate) : score(at[candidate]);
        }
    }

    // Whether units between these two are whole ones.
    __device__ __forceinline__ bool whole(i32 first, i32 last, i32 stop) const
    {
        return first >= (skew > 0 ? 1 : 0) && last < min((len + skew) / kUnit, stop);
    }

    // Whole units unit + a * step: a bit for each score that is at least both of `least`, of bf16;
    // bit 4 a + i stands for the unit's score 2 i, bit 16 + 4 a + i for the one behind it.
    __device__ __forceinline__ u32 paired_hits(i32 unit, i32 step, u32 least) const
    {
        Pack<u32, 4> word[kPairedAhead];

#pragma unroll
        for (int a = 0; a < kPairedAhead; a++) {
            word[a] =
                pack_load<4, 16>(reinterpret_cast<const u32 *>(at + index(unit + a * step, 0)));
        }
        return pair_hits(word, least);
    }

    // One unit, where not all of a batch are whole.
    __device__ __forceinline__ u32 read_unit(i32 unit, i32 stop, float *x) const
    {
        u32 there = 0;

        if (kWide && unit >= (skew > 0 ? 1 : 0) && unit < min((len + skew) / kUnit, stop)) {
            const Scores<T> in(at + index(unit, 0));
#pragma unroll
            for (int j = 0; j < kUnit; j++) {
                x[j] = in.at(j);
            }
            return kWholeUnit;
        }
#pragma unroll
        for (int j = 0; j < kUnit; j++) { // somewhere within the row, so that nothing branches
            const i32 wanted = index(unit, j), c = min(max(wanted, 0), len - 1);
            bool held = unit < stop && wanted == c;
            if constexpr (Merges) {
                held = held && chosen[c] != 0;
            }
            there |= held ? 1u << j : 0;
            x[j] = score_of(c);
        }
        return there;
    }

    // Units unit + a * step below `stop`: scores, and bit a * kUnit + j for each candidate there
    // is.
    template <int Ahead>
    __device__ __forceinline__ u32 read(i32 unit, i32 step, i32 stop,
                                        float (&x)[Ahead * kUnit]) const
    {
        u32 there = 0;

        if constexpr (kWide && Ahead > 1) {
            if (whole(unit, unit + (Ahead - 1) * step, stop)) {
#pragma unroll
                for (int a = 0; a < Ahead; a++) {
                    const Scores<T> in(at + index(unit + a * step, 0));
#pragma unroll
                    for (int j = 0; j < kUnit; j++) {
                        x[a * kUnit + j] = in.at(j);
                    }
                }
                return kept<Ahead>(unit, step, x, 0xffffffffu >> (32 - Ahead * kUnit));
            }
        }
#pragma unroll
        for (int a = 0; a < Ahead; a++) {
            there |= read_unit(unit + a * step, stop, x + a * kUnit) << a * kUnit;
        }
        return Merges ? there : kept<Ahead>(unit, step, x, there);
    }

    // Without those that are dropped, and columns that have no position.
    template <int Ahead>
    __device__ __forceinline__ u32 kept(i32 unit, i32 step, const float (&x)[Ahead * kUnit],
                                        u32 there) const
    {
#pragma unroll
        for (int a = 0; C.pick == LISTED_BLOCKS && a < Ahead; a++) {
            there &= visible(index(unit + a * step, 0)) << a * kUnit | ~(kWholeUnit << a * kUnit);
        }
#pragma unroll
        for (int i = 0; C.drop != 0 && i < Ahead * kUnit; i++) {
            there &= x[i] > -__uint_as_float(kInfinity) ? ~0u : ~(1u << i);
        }
        return there;
    }

    // Of listed blocks: a bit for each column from `c` on, of a unit, whose position is the row's.
    // It lies in two blocks at most.
    __device__ __forceinline__ u32 visible(i32 c) const
    {
        const i32 block = max(c, 0) / C.block, next = min((block + 1) * C.block - c, kUnit);
        u32 seen = 0;

        seen = visible_of(block, 0, next, c);
        if ((C.block % kUnit != 0 || skew != 0) && next < kUnit) {
            seen |= visible_of(block + 1, next, kUnit, c);
        }
        return seen;
    }

    // Bits `from` to `to` - 1 of columns from `c` on, as far as this block's positions go. A block
    // that begins past the row's end, or is none, has none; below it no product overflows.
    __device__ __forceinline__ u32 visible_of(i32 block, i32 from, i32 to, i32 c) const
    {
        const i32 own = block * C.block < len ? list[block] : -1;
        const i32 within = c + from - block * C.block;
        const i32 most = min(limit - own * C.block - within, to - from);

        return u32(own) > u32(limit) / C.block ? 0 : ((1u << max(most, 0)) - 1) << from;
    }

    // What is written for a candidate.
    __device__ __forceinline__ i32 written(i32 candidate) const
    {
        const i32 c = Merges ? candidate_index(chosen[candidate]) : candidate;

        if constexpr (C.pick == LISTED_BLOCKS && (C.parts == 1 || Merges)) {
            return list[c / C.block] * C.block + c % C.block;
        }
        return c;
    }
};
