/* fold_lanes.h - the fold of a tile, one text compiled for four instruction sets: the file that
 * includes this defines FOLD_LANES, the name of its table (CMakeLists.txt gives its flags). */
#include "convert/fold_lanes_table.h"

#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* How many of a byte's two codes have magnitude c, in byte c of a word. */
#define ONE(code)   (UINT64_C(1) << 8 * ((code)&7))
#define PAIR(byte)  (ONE(byte) + ONE((byte) >> 4))
#define PAIRS_4(b)  PAIR(b), PAIR((b) + 1), PAIR((b) + 2), PAIR((b) + 3)
#define PAIRS_16(b) PAIRS_4(b), PAIRS_4((b) + 4), PAIRS_4((b) + 8), PAIRS_4((b) + 12)
#define PAIRS_64(b) PAIRS_16(b), PAIRS_16((b) + 16), PAIRS_16((b) + 32), PAIRS_16((b) + 48)
static const uint64_t pairs[256] = {PAIRS_64(0), PAIRS_64(64), PAIRS_64(128), PAIRS_64(192)};

/* The largest magnitude's code. */
static inline uint8_t largest_of(uint64_t counts)
{
    return (uint8_t)(7 - __builtin_clzll(counts) / 8);
}

/* A group holds 32 codes, so that no byte of the sum overflows. */
static void count_plain(const uint8_t *codes, size_t groups, uint64_t *counts, uint8_t *largest)
{
    for (size_t g = 0; g < groups; g++) {
        uint64_t low = 0, high = 0, sum = 0;
        memcpy(&low, codes + 16 * g, 8);
        memcpy(&high, codes + 16 * g + 8, 8);
        for (int i = 0; i < 64; i += 8) {
            sum += pairs[low >> i & 0xff] + pairs[high >> i & 0xff];
        }
        counts[g] = sum;
        largest[g] = largest_of(sum);
    }
}

/* Vectors of `W` bits, a group in each 128. Two magnitudes are counted at a time: a code becomes 1,
 * 32 or 0, and eight bytes of an even and an odd code sum to n + 32 * m, n and m at most 16. Four
 * such pairs fill a word; its two halves are added in the end. */
#define COUNT_TABLES                                                                               \
    {                                                                                              \
        {1, 32, 0, 0, 0, 0, 0, 0, 1, 32, 0, 0, 0, 0, 0, 0},                                        \
            {0, 0, 1, 32, 0, 0, 0, 0, 0, 0, 1, 32, 0, 0, 0, 0},                                    \
            {0, 0, 0, 0, 1, 32, 0, 0, 0, 0, 0, 0, 1, 32, 0, 0},                                    \
            {0, 0, 0, 0, 0, 0, 1, 32, 0, 0, 0, 0, 0, 0, 1, 32},                                    \
    }
#define COUNT_VECTOR(V, W, AND)                                                                    \
    static inline V count_##W(V both, const V *tables)                                             \
    {                                                                                              \
        const V mask = _mm##W##_set1_epi8(15), fives = _mm##W##_set1_epi16(31);                    \
        const V even = AND(both, mask), odd = AND(_mm##W##_srli_epi16(both, 4), mask);             \
        V all = _mm##W##_sad_epu8(_mm##W##_add_epi8(_mm##W##_shuffle_epi8(tables[3], even),        \
                                                    _mm##W##_shuffle_epi8(tables[3], odd)),        \
                                  _mm##W##_set1_epi8(0));                                          \
        for (int i = 2; i >= 0; i--) {                                                             \
            const V two = _mm##W##_add_epi8(_mm##W##_shuffle_epi8(tables[i], even),                \
                                            _mm##W##_shuffle_epi8(tables[i], odd));                \
            all = _mm##W##_add_epi64(_mm##W##_slli_epi64(all, 16),                                 \
                                     _mm##W##_sad_epu8(two, _mm##W##_set1_epi8(0)));               \
        }                                                                                          \
        all = _mm##W##_add_epi64(AND(all, fives),                                                  \
                                 _mm##W##_slli_epi64(AND(_mm##W##_srli_epi64(all, 5), fives), 8)); \
        return _mm##W##_add_epi64(all, _mm##W##_shuffle_epi32(all, 0x4e));                         \
    }

#if defined(__AVX512BW__)
COUNT_VECTOR(__m512i, 512, _mm512_and_si512)

static void count(const uint8_t *codes, size_t groups, uint64_t *counts, uint8_t *largest)
{
    static const uint8_t bytes[4][16] = COUNT_TABLES;
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    __m512i tables[4];
    size_t g = 0;

    for (int i = 0; i < 4; i++) {
        tables[i] = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)bytes[i]));
    }
    for (; g + 8 <= groups; g += 8) {
        const __m512i low = count_512(_mm512_loadu_si512(codes + 16 * g), tables);
        const __m512i high = count_512(_mm512_loadu_si512(codes + 16 * g + 64), tables);
        const __m512i sums = _mm512_permutex2var_epi64(low, even, high);
        const __m512i zeros = _mm512_srli_epi64(_mm512_lzcnt_epi64(sums), 3);
        _mm512_storeu_si512(counts + g, sums);
        _mm_storel_epi64((__m128i *)(largest + g),
                         _mm512_cvtepi64_epi8(_mm512_sub_epi64(_mm512_set1_epi64(7), zeros)));
    }
    count_plain(codes + 16 * g, groups - g, counts + g, largest + g);
}
#elif defined(__AVX2__)
COUNT_VECTOR(__m256i, 256, _mm256_and_si256)

static void count(const uint8_t *codes, size_t groups, uint64_t *counts, uint8_t *largest)
{
    static const uint8_t bytes[4][16] = COUNT_TABLES;
    __m256i tables[4];
    size_t g = 0;

    for (int i = 0; i < 4; i++) {
        tables[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes[i]));
    }
    for (; g + 2 <= groups; g += 2) {
        const __m256i sums =
            count_256(_mm256_loadu_si256((const __m256i *)(codes + 16 * g)), tables);
        counts[g] = (uint64_t)_mm256_extract_epi64(sums, 0);
        counts[g + 1] = (uint64_t)_mm256_extract_epi64(sums, 2);
        largest[g] = largest_of(counts[g]);
        largest[g + 1] = largest_of(counts[g + 1]);
    }
    count_plain(codes + 16 * g, groups - g, counts + g, largest + g);
}
#else
static void count(const uint8_t *codes, size_t groups, uint64_t *counts, uint8_t *largest)
{
    count_plain(codes, groups, counts, largest);
}
#endif

#if defined(__AVX2__)
static void fold_one(const uint8_t *codes, const uint8_t *table, uint8_t *out)
{
    const __m128i values = _mm_loadu_si128((const __m128i *)table);
    const __m128i both = _mm_loadu_si128((const __m128i *)codes);
    const __m128i mask = _mm_set1_epi8(15);
    const __m128i even = _mm_shuffle_epi8(values, _mm_and_si128(both, mask));
    const __m128i odd = _mm_shuffle_epi8(values, _mm_and_si128(_mm_srli_epi16(both, 4), mask));

    _mm_storeu_si128((__m128i *)out, _mm_unpacklo_epi8(even, odd));
    _mm_storeu_si128((__m128i *)(out + 16), _mm_unpackhi_epi8(even, odd));
}
#else
static void fold_one(const uint8_t *codes, const uint8_t *table, uint8_t *out)
{
    for (int i = 0; i < 16; i++) {
        out[2 * i] = table[codes[i] & 15];
        out[2 * i + 1] = table[codes[i] >> 4];
    }
}
#endif

#if defined(__AVX512BW__)
/* Four groups: each 128-bit lane looks its codes up in a row of its own. */
static void fold_four(const uint8_t *codes, const uint8_t *rows, const uint8_t (*table)[16],
                      uint8_t *out)
{
    __m512i values = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)table[rows[0]]));
    values = _mm512_inserti32x4(values, _mm_loadu_si128((const __m128i *)table[rows[1]]), 1);
    values = _mm512_inserti32x4(values, _mm_loadu_si128((const __m128i *)table[rows[2]]), 2);
    values = _mm512_inserti32x4(values, _mm_loadu_si128((const __m128i *)table[rows[3]]), 3);
    const __m512i both = _mm512_loadu_si512(codes), mask = _mm512_set1_epi8(15);
    const __m512i even = _mm512_shuffle_epi8(values, _mm512_and_si512(both, mask));
    const __m512i odd =
        _mm512_shuffle_epi8(values, _mm512_and_si512(_mm512_srli_epi16(both, 4), mask));
    const __m512i low = _mm512_unpacklo_epi8(even, odd), high = _mm512_unpackhi_epi8(even, odd);
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);

    _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
    _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi64(low, second, high));
}
#endif

static void fold(const uint8_t *codes, size_t groups, const uint8_t *rows,
                 const uint8_t (*table)[16], uint8_t *out)
{
    size_t g = 0;

#if defined(__AVX512BW__)
    for (; g + 4 <= groups; g += 4) {
        fold_four(codes + 16 * g, rows + g, table, out + 32 * g);
    }
#endif
    for (; g < groups; g++) {
        fold_one(codes + 16 * g, table[rows[g]], out + 32 * g);
    }
}

#include "convert/fold_block.h"
#include "convert/requantise_block.h"

extern const fold_lanes FOLD_LANES;
const fold_lanes FOLD_LANES = {FOLD_LANES_NAME, run, requantise};
