/* access_count.c - what an access costs: sectors and lines of global memory, wavefronts of shared.
 */
#include "emulator/machine/access.h"
#include "emulator/machine/wide.h"

/* ---- Global memory ------------------------------------------------------------------------- */

/* Distinct 32-byte sectors; lanes are mostly in ascending order, so the last few are looked at
 * first. */
static uint32_t find_sectors(const uint64_t address[MACHINE_LANES], uint32_t mask,
                             uint64_t seen[MACHINE_LANES])
{
    uint32_t n = 0;

    for (EACH_LANE(lane, mask)) {
        uint64_t sector = address[lane] / MACHINE_SECTOR;
        uint32_t k = n;
        bool fresh = n == 0 || sector > seen[n - 1];
        while (!fresh && k > 0 && seen[k - 1] != sector) {
            k--;
        }
        if (fresh || k == 0) {
            seen[n++] = sector;
        }
    }
    return n;
}

/* Counts them, and marks their lines. */
static uint32_t count_sectors(touched_range *t, const uint64_t address[MACHINE_LANES],
                              uint32_t mask)
{
    uint64_t seen[MACHINE_LANES], begin = t->range->begin, marked = UINT64_MAX;
    uint32_t n = find_sectors(address, mask, seen);

    for (uint32_t k = 0; k < n; k++) { /* one may begin before the allocation's first byte */
        uint64_t at = seen[k] * MACHINE_SECTOR, line = (at - begin) / MACHINE_LINE;
        if (line != marked || at < begin) {
            global_mark_lines(t, at < begin ? begin : at, at + 1);
        }
        marked = line;
    }
    return n;
}

void access_count_global(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                         uint32_t mask, uint32_t bytes, bool store)
{
    hone_emu_counters *c = &w->run->counters;
    touched_range *t = &w->run->touched[w->run->hit[i - w->run->kernel->code] - 1];
    uint64_t lanes = mask == MACHINE_ALL ? MACHINE_LANES : (uint64_t)__builtin_popcount(mask);
    uint64_t asked = lanes * bytes, sectors = 0, stride = access_stride(address, mask);

    if (stride == bytes || stride <= MACHINE_SECTOR) { /* none is left out */
        uint64_t end = address[MACHINE_LANES - 1] + bytes;
        sectors = (end - 1) / MACHINE_SECTOR - address[0] / MACHINE_SECTOR + 1;
        global_mark_lines(t, address[0], end);
    } else {
        sectors = count_sectors(t, address, mask);
    }
    c->global_requests++;
    if (store) {
        c->global_store_requests++;
        c->global_store_bytes += asked;
        c->global_store_sectors += sectors;
    } else {
        c->global_load_bytes += asked;
        c->global_load_sectors += sectors;
    }
}

/* ---- Shared memory ------------------------------------------------------------------------- */

/* What `len` lanes, a multiple of eight of them, ask of the banks, which give words of 1 << shift
 * bytes in turn: the lowest and the highest address, and a bit for each bank. */
typedef struct asked {
    uint64_t low, high;
    uint32_t banks;
} asked;

MACHINE_WIDEST static void ask(const uint64_t *address, uint32_t len, uint32_t shift, asked *out)
{
    uint64_t low = UINT64_MAX, high = 0, banks = 0;

    for (uint32_t lane = 0; lane < len; lane++) {
        uint64_t a = address[lane];
        low = a < low ? a : low;
        high = a > high ? a : high;
        banks |= UINT64_C(1) << ((a >> shift) & (len - 1));
    }
    *out = (asked){low, high, (uint32_t)banks};
}

/* Whether `len` lanes, each of 128 / len aligned bytes or less, take one wavefront: they lie within
 * what all banks give at once, or use all banks once, the pattern that kernels aim at. */
static bool is_conflict_free(const uint64_t *address, uint32_t len, uint32_t bytes)
{
    asked a;

    ask(address, len, len == 32 ? 2 : len == 16 ? 3 : 4, &a);
    return a.high / 4 * 4 + bytes <= a.low / 4 * 4 + MACHINE_LINE ||
           (uint32_t)__builtin_popcount(a.banks) == len;
}

/* Places that were asked for: of each bank the first, and those beyond it. */
typedef struct asked_words {
    uint64_t first[32], beyond[MACHINE_LANES];
    uint32_t banks, beyond_len; /* banks: those that have a first */
} asked_words;

/* Whether a word is asked for the first time. */
static inline bool is_new(asked_words *s, uint64_t word)
{
    uint32_t bank = word % 32;

    if ((s->banks >> bank & 1) == 0) {
        s->banks |= UINT32_C(1) << bank;
        s->first[bank] = word;
        return true;
    }
    bool known = s->first[bank] == word;
    for (uint32_t k = 0; k < s->beyond_len && !known; k++) {
        known = s->beyond[k] == word;
    }
    if (!known) {
        s->beyond[s->beyond_len++] = word;
    }
    return !known;
}

/* The most distinct words that one bank must give. */
static uint32_t wavefronts(const uint64_t address[MACHINE_LANES], uint32_t mask, uint32_t words)
{
    asked_words seen;
    uint32_t in_bank[32] = {0}, worst = 0;

    seen.banks = seen.beyond_len = 0;
    for (EACH_LANE(lane, mask)) {
        uint64_t word = address[lane] / 4;
        for (uint32_t k = 0, len = is_new(&seen, word) ? words : 0; k < len; k++) {
            uint32_t bank = (uint32_t)(word + k) % 32;
            in_bank[bank]++;
            worst = in_bank[bank] > worst ? in_bank[bank] : worst;
        }
    }
    return worst;
}

/* All lanes lie in one row of the banks, `len` of them at a time: those of dense accesses and of
 * one place. */
static bool is_narrow(uint64_t stride, uint32_t len, uint32_t bytes)
{
    return stride <= MACHINE_LINE && bytes <= 16 && stride * (len - 1) + bytes <= MACHINE_LINE;
}

/* Whether each lane asks for what lane n ^ `by` does, which is there. */
static bool asks_with(const uint64_t address[MACHINE_LANES], uint32_t mask, uint32_t by)
{
    for (EACH_LANE(lane, mask)) {
        if ((mask >> (lane ^ by) & 1) == 0 || address[lane] != address[lane ^ by]) {
            return false;
        }
    }
    return true;
}

/* Lanes of one wavefront: what 128 bytes serve. A load whose neighbours, or whose lanes two apart,
 * ask for the same place brings twice as many, since registers come back two in one: so the vendor
 * on sm_70 and sm_75 (forums.developer.nvidia.com/t/77228); seen on H100 and A10 for half warps at
 * one place each (t/373160). */
static uint32_t lanes_at_once(const access_window *win, uint32_t mask, uint32_t bytes, bool load)
{
    uint32_t lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
    bool varies = win->stride == ACCESS_NO_STRIDE;

    if (lanes < 32 && load &&
        (win->stride == 0 ||
         (varies && (asks_with(win->at, mask, 1) || asks_with(win->at, mask, 2))))) {
        lanes *= 2;
    }
    return lanes;
}

void access_count_shared(warp *w, const access_window *win, uint32_t mask, uint32_t bytes,
                         bool load)
{
    hone_emu_counters *c = &w->run->counters;
    uint32_t lanes = lanes_at_once(win, mask, bytes, load), words = bytes <= 4 ? 1 : bytes / 4;

    c->shared_requests++;
    if (bytes >= 4 && is_narrow(win->stride, lanes, bytes)) {
        c->shared_wavefronts += MACHINE_LANES / lanes;
        return;
    }
    uint32_t least = words > 4 ? words / 4 : 1; /* a part's bytes over 128 */
    for (uint32_t first = 0; first < MACHINE_LANES; first += lanes) {
        uint32_t part = lanes == 32 ? MACHINE_ALL : ((UINT32_C(1) << lanes) - 1) << first;
        if ((mask & part) == part && bytes <= 16 &&
            is_conflict_free(win->at + first, lanes, bytes)) {
            c->shared_wavefronts++;
        } else if ((mask & part) != 0) {
            uint32_t fronts = wavefronts(win->at, mask & part, words);
            c->shared_wavefronts += fronts;
            c->shared_conflicts += fronts > least ? fronts - least : 0;
        }
    }
}

void access_count_matrix(warp *w, const access_window *win, uint32_t mask)
{
    hone_emu_counters *c = &w->run->counters;
    uint64_t before = c->shared_wavefronts;

    access_count_shared(w, win, mask, 16, false);
    c->matrix_phases += (uint64_t)__builtin_popcount(mask) / 8;
    c->matrix_wavefronts += c->shared_wavefronts - before;
}
