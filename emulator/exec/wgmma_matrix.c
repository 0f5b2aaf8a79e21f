/* wgmma_matrix.c - operands of wgmma in shared memory: descriptors, their rules, and where each
 * 16-byte chunk lies. */
#include "emulator/exec/wgmma.h"
#include "emulator/machine/access.h"
#include "emulator/machine/wide.h"

enum {
    PATTERN_ROW = 128, /* bytes: the swizzle's rows are bits 7.. of an address */
    FIELD = 0x3fff,    /* 14 bits, in units of 16 bytes */
};

/* The swizzle of an address. */
static inline uint32_t swizzled(const wgmma_matrix *m, uint32_t at)
{
    return at ^ (((at / PATTERN_ROW - m->base) & (m->width - 1)) << 4);
}

/* Where the first row of a core matrix lies before the swizzle. The width is a power of two. */
static inline uint32_t core_at(const wgmma_matrix *m, uint32_t block, uint32_t half)
{
    if (m->width == 1) {
        return m->start + block * m->stride + half * m->leading;
    }
    if (m->across) {
        uint32_t group = block >> __builtin_ctz(m->width);
        return m->start + (block & (m->width - 1)) * 16 + group * m->leading + half * m->stride;
    }
    return m->start + block * m->stride + half * 16;
}

/* Where row `row` of a core matrix lies: of MN when K-major, of K when MN-major. */
static inline uint32_t row_at(const wgmma_matrix *m, uint32_t block, uint32_t half, uint32_t row)
{
    return swizzled(m, core_at(m, block, half) + row * 16 * m->width);
}

/* The last row's end is the furthest: strides are not negative, and the swizzle stays in its row.
 */
static uint32_t end_of(const wgmma_matrix *m, uint32_t first, uint32_t blocks)
{
    uint32_t end = 0;

    for (uint32_t corner = 0; corner < 4; corner++) {
        uint32_t block = corner & 1 ? first + blocks - 1 : first;
        for (uint32_t row = 0; row < 8; row++) {
            uint32_t at = row_at(m, block, corner >> 1, row) + 16;
            end = at > end ? at : end;
        }
    }
    return end;
}

/* No less than that, and cheap: the swizzle stays in its row of the pattern. */
static uint32_t bound_of(const wgmma_matrix *m, uint32_t first, uint32_t blocks)
{
    uint32_t end = 0;

    for (uint32_t corner = 0; corner < 4; corner++) {
        uint32_t at = core_at(m, corner & 1 ? first + blocks - 1 : first, corner >> 1);
        end = at > end ? at : end;
    }
    end += 7 * 16 * m->width + 16;
    return (end + PATTERN_ROW - 1) / PATTERN_ROW * PATTERN_ROW;
}

bool wgmma_matrix_open(warp *w, const instruction *i, uint64_t descriptor, bool across, char name,
                       uint32_t first, uint32_t blocks, wgmma_matrix *out)
{
    static const uint32_t widths[] = {1, 8, 4, 2};
    wgmma_matrix m = {.start = (uint32_t)(descriptor & FIELD) << 4,
                      .leading = (uint32_t)(descriptor >> 16 & FIELD) << 4,
                      .stride = (uint32_t)(descriptor >> 32 & FIELD) << 4,
                      .width = widths[descriptor >> 62],
                      .base = (uint32_t)(descriptor >> 49 & 7),
                      .across = across};
    uint32_t pattern = PATTERN_ROW * m.width,
             off = (m.start / PATTERN_ROW - m.base) & (m.width - 1);

    /* A base offset of 0 says nothing: the swizzle goes by address bits, wherever the tile begins.
     */
    if (m.width > 1 && m.base != 0 && off != 0) {
        machine_fault(w, i, 0, m.start, FAULT_PRECONDITION,
                      "descriptor %016llx of %c starts at %u, %u bytes into its swizzle pattern of "
                      "%u; its base offset is %u",
                      (unsigned long long)descriptor, name, m.start, off * PATTERN_ROW, pattern,
                      m.base);
        return false;
    }
    uint32_t end = bound_of(&m, first, blocks);
    end = end > w->cta->shared_bytes ? end_of(&m, first, blocks) : 0;
    if (end > w->cta->shared_bytes) {
        machine_fault(w, i, 0, m.start, FAULT_OUT_OF_BOUNDS,
                      "descriptor %016llx of %c reaches to %u; the CTA's shared memory ends at %u",
                      (unsigned long long)descriptor, name, end, w->cta->shared_bytes);
        return false;
    }
    *out = m;
    return true;
}

/* 16 bytes: of a row, or of its shadow. */
typedef uint64_t vec16 __attribute__((vector_size(16)));
typedef uint16_t halves __attribute__((vector_size(16)));

/* Eight rows of eight halves, turned: interleaved three times, each with what lies four behind. */
static void turn_halves(vec16 rows[8])
{
    halves from[8], to[8];

    memcpy(from, rows, sizeof from);
    for (uint32_t n = 0; n < 3; n++) {
        for (uint32_t k = 0; k < 4; k++) {
            to[2 * k] = __builtin_shufflevector(from[k], from[k + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            to[2 * k + 1] =
                __builtin_shufflevector(from[k], from[k + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(from, to, sizeof from);
    }
    memcpy(rows, from, sizeof from);
}

/* The swizzle moves both chunks of a row as one. */
static inline bool in_pairs(const wgmma_matrix *m)
{
    return m->width > 1 && !m->across && m->start % 32 == 0;
}

/* Blocks lie whole patterns apart, so that the swizzle is the same in each. */
static inline bool is_alike(const wgmma_matrix *m)
{
    return !m->across && m->stride % (PATTERN_ROW * 8) == 0;
}

static void place_rows(const wgmma_matrix *m, uint32_t block, wgmma_rows *p)
{
    uint32_t at = core_at(m, block, 0), pitch = 16 * m->width;
    uint32_t beside = in_pairs(m) ? 0 : core_at(m, block, 1);

    for (uint32_t row = 0; row < 8; row++, at += pitch, beside += pitch) {
        p->low[row] = swizzled(m, at);
        p->high[row] = in_pairs(m) ? p->low[row] ^ 16 : swizzled(m, beside);
    }
}

/* What rows hold against what lay before them, and what their shadow says. */
typedef struct row_look {
    vec16 different, all, any;
} row_look;

MACHINE_WIDEST static void look_at_rows(const uint8_t *data, const uint8_t *shadow,
                                        const wgmma_rows *rows, const uint32_t *low,
                                        const uint32_t *high, row_look *out)
{
    vec16 different = {0}, all = {UINT64_MAX, UINT64_MAX}, any = {0}, x, was, said;

    for (uint32_t row = 0; row < 16; row++) {
        uint32_t at = row < 8 ? rows->low[row] : rows->high[row - 8];
        memcpy(&x, data + at, sizeof x);
        memcpy(&was, row < 8 ? low + 4 * row : high + 4 * (row - 8), sizeof was);
        memcpy(&said, shadow + at, sizeof said);
        different |= x ^ was;
        all &= said;
        any |= said;
    }
    *out = (row_look){different, all, any};
}

/* How often the most wanted 16 bytes of the 128 that the banks give at once are wanted. */
static uint32_t wavefronts_of(const wgmma_matrix *m, uint32_t block, uint32_t half)
{
    uint32_t banks = 0, most = 0;

    for (uint32_t row = 0; row < 8; row++) {
        uint32_t shift = (row_at(m, block, half, row) >> 4 & 7) * 4;
        banks += 1u << shift;
        most = (banks >> shift & 15) > most ? banks >> shift & 15 : most;
    }
    return most;
}

/* Wavefronts of a block; where blocks lie whole patterns apart they are those of the one before. */
static void count_wavefronts(const wgmma_matrix *m, uint32_t block, wgmma_read *read)
{
    if (!is_alike(m) || read->last == 0) {
        read->last = wavefronts_of(m, block, 0) + wavefronts_of(m, block, 1);
    }
    read->wavefronts += read->last;
}

/* Notes what the shadow bytes said. */
static void note_shadow(wgmma_read *read, const vec16 *all, const vec16 *any)
{
    uint64_t both = (*all)[0] & (*all)[1], either = (*any)[0] | (*any)[1];

    for (uint32_t shift = 32; shift >= 8; shift /= 2) {
        both &= both >> shift;
        either |= either >> shift;
    }
    read->shadow &= (uint8_t)both;
    read->marks |= (uint8_t)either;
}

/* MN-major: the eight rows are turned before they are compared. */
static bool turn_block(const uint8_t *data, const wgmma_rows *p, uint32_t low[MACHINE_LANES],
                       uint32_t high[MACHINE_LANES])
{
    vec16 rows[16];

    for (uint32_t row = 0; row < 8; row++) {
        memcpy(&rows[row], data + p->low[row], sizeof *rows);
        memcpy(&rows[8 + row], data + p->high[row], sizeof *rows);
    }
    turn_halves(rows);
    turn_halves(rows + 8);
    bool same =
        memcmp(low, rows, sizeof rows / 2) == 0 && memcmp(high, rows + 8, sizeof rows / 2) == 0;
    memcpy(low, rows, sizeof rows / 2);
    memcpy(high, rows + 8, sizeof rows / 2);
    return !same;
}

bool wgmma_matrix_block(const cta *c, const wgmma_matrix *m, uint32_t block,
                        uint32_t low[MACHINE_LANES], uint32_t high[MACHINE_LANES], wgmma_read *read)
{
    const wgmma_rows *rows = &read->rows;
    row_look look;

    if (!read->placed) {
        place_rows(m, block, &read->rows);
        read->block = block;
        read->placed = is_alike(m);
    }
    const uint64_t ahead = read->placed ? (uint64_t)(block - read->block) * m->stride : 0;
    const uint8_t *data = c->shared + ahead;
    look_at_rows(data, c->shared_shadow + ahead, rows, low, high, &look);
    note_shadow(read, &look.all, &look.any);
    if (read->counts) {
        count_wavefronts(m, block, read);
    }
    if (m->across) {
        return turn_block(data, rows, low, high);
    }
    if ((look.different[0] | look.different[1]) == 0) { /* mostly: a group's warps share B */
        return false;
    }
    for (uint32_t row = 0; row < 8; row++) {
        memcpy(low + 4 * row, data + rows->low[row], 16);
        memcpy(high + 4 * row, data + rows->high[row], 16);
    }
    return true;
}

static uint8_t refused_marks(const warp *w)
{
    return machine_checks(w, HONE_EMU_CHECK_ASYNC) ? ACCESS_PENDING | ACCESS_MBARRIER : 0;
}

static bool refuse_byte(warp *w, const instruction *i, uint32_t at, char name)
{
    uint8_t shadow = w->cta->shared_shadow[at];

    if ((shadow & refused_marks(w) & ACCESS_PENDING) != 0) {
        machine_fault(w, i, 0, at, FAULT_ASYNC,
                      "%c is read at %u of shared memory, where a copy in flight will write", name,
                      at);
        return true;
    }
    if ((shadow & refused_marks(w)) != 0) {
        machine_fault(w, i, 0, at, FAULT_MBARRIER,
                      "%c is read at %u of shared memory, where an mbarrier lives", name, at);
        return true;
    }
    if ((shadow & ACCESS_IS_WRITTEN) == 0 && machine_checks(w, HONE_EMU_CHECK_UNINITIALISED)) {
        machine_fault(w, i, 0, at, FAULT_UNINITIALISED,
                      "%c is read at %u of shared memory, which was never written", name, at);
        return true;
    }
    return false;
}

bool wgmma_matrix_refuse(warp *w, const instruction *i, const wgmma_matrix *m, char name,
                         uint32_t first, uint32_t blocks, const wgmma_read *read)
{
    bool written = (read->shadow & ACCESS_IS_WRITTEN) != 0;

    if ((written || !machine_checks(w, HONE_EMU_CHECK_UNINITIALISED)) &&
        (read->marks & refused_marks(w)) == 0) {
        return false;
    }
    for (uint32_t row = 0; row < 16 * blocks; row++) { /* eight of each half */
        uint32_t at = row_at(m, first + row / 16, row / 8 % 2, row % 8);
        for (uint32_t byte = 0; byte < 16; byte++) {
            if (refuse_byte(w, i, at + byte, name)) {
                return true;
            }
        }
    }
    return false;
}

/* The whole rows of the swizzle are read: eight together are one run of bytes. */
static bool touch_whole(race_task *t, cta *owner, const wgmma_matrix *m, uint32_t first,
                        uint32_t blocks)
{
    uint32_t bytes = 8 * 16 * m->width, start = m->start / (16 * m->width) * (16 * m->width);

    if (!m->across) {
        return race_task_touch(t, owner, start + first * m->stride, bytes, blocks, m->stride,
                               RACE_READ);
    }
    start += first / m->width * m->leading;
    return race_task_touch(t, owner, start, bytes, blocks / m->width, m->leading, RACE_READ) &&
           race_task_touch(t, owner, start + m->stride, bytes, blocks / m->width, m->leading,
                           RACE_READ);
}

/* The 16 bytes of a page that were read and not told of yet. */
typedef struct reads {
    race_task *task;
    cta *owner;
    uint32_t page;
    uint64_t chunks;
} reads;

static bool tell_reads(reads *r)
{
    uint64_t chunks = r->chunks;

    r->chunks = 0;
    return chunks == 0 ||
           race_task_read_chunks(r->task, r->owner, r->page * RACE_READ_PAGE, chunks, 1, 0);
}

static bool add_read(reads *r, uint32_t at)
{
    bool good = at / RACE_READ_PAGE == r->page || tell_reads(r);

    r->page = at / RACE_READ_PAGE;
    r->chunks |= UINT64_C(1) << (at % RACE_READ_PAGE / 16);
    return good;
}

/* Where chunk `chunk` of a row of the swizzle lies, of K-major ones. */
static uint32_t chunk_at(const wgmma_matrix *m, uint32_t block, uint32_t row, uint32_t chunk)
{
    uint32_t start = m->start / (16 * m->width) * (16 * m->width) + block * m->stride;

    return swizzled(m, start + row * 16 * m->width + chunk * 16);
}

/* Some of the chunks of K-major rows. Where a block is a page, all blocks are alike. */
static bool touch_rows(reads *r, const wgmma_matrix *m, uint32_t first, uint32_t blocks,
                       uint32_t chunks)
{
    uint32_t at = chunk_at(m, first, 0, 0) / RACE_READ_PAGE * RACE_READ_PAGE;
    bool alike = m->width == 8 && (m->start | m->stride) / 128 % 8 == 0, good = true;

    for (uint32_t n = 0; good && n < 8 * (alike ? 1 : blocks); n++) {
        for (uint32_t left = chunks; good && left != 0; left &= left - 1) {
            good = add_read(r, chunk_at(m, first + n / 8, n % 8, machine_lowest(left)));
        }
    }
    return alike ? race_task_read_chunks(r->task, r->owner, at, r->chunks, blocks, m->stride)
                 : good && tell_reads(r);
}

/* Some of the blocks of MN-major rows. */
static bool touch_columns(reads *r, const wgmma_matrix *m, uint32_t first, uint32_t blocks)
{
    bool good = true;

    for (uint32_t n = 0; good && n < 16 * blocks; n++) {
        good = add_read(r, row_at(m, first + n / 8 % blocks, n / 8 / blocks, n % 8));
    }
    return good && tell_reads(r);
}

bool wgmma_matrix_touch(race_task *t, cta *owner, const wgmma_matrix *m, uint32_t first,
                        uint32_t blocks, uint32_t chunks)
{
    reads r = {.task = t, .owner = owner};

    if (m->width == 1) {
        return race_task_touch(t, owner, row_at(m, first, 0, 0), 128, blocks, m->stride,
                               RACE_READ) &&
               race_task_touch(t, owner, row_at(m, first, 1, 0), 128, blocks, m->stride, RACE_READ);
    }
    if (m->across ? (first | blocks) % m->width == 0 && m->start % 128 == 0
                  : chunks == (1u << m->width) - 1) {
        return touch_whole(t, owner, m, first, blocks);
    }
    return m->across ? touch_columns(&r, m, first, blocks)
                     : touch_rows(&r, m, first, blocks, chunks);
}
