/* test_index_schedule.c - the schedule's metadata against kernels.md 3.3's formulas, written out,
 * and what a schedule is for: every split once. */
#include "core/index_schedule.h"
#include "core/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_BATCH = 300, MOST_SMS = 200 };

/* The golden vectors of kernels.md, App. B. */
START_TEST(golden_vectors)
{
    static const int32_t lengths[] = {300, 700};
    static const int32_t atom_first[] = {0, 0, 0, 1, 1, 0, 1, 1, 2, 0};
    static const int32_t split_first[] = {0, 0, 1, 0, 1, 1, 1, 2, 2, 0};
    const index_schedule s = {lengths, 2, 1, 1, 256, 4};
    int32_t meta[10];

    index_schedule_atom_first(&s, meta);
    ck_assert_mem_eq(meta, atom_first, sizeof meta);
    index_schedule_split_first(&s, meta);
    ck_assert_mem_eq(meta, split_first, sizeof meta);
}
END_TEST

typedef struct drawn {
    int32_t lengths[MOST_BATCH];
    index_schedule s;
    int64_t seg[MOST_BATCH], prefix[MOST_BATCH]; /* inclusive */
} drawn;

static void draw(drawn *d, uint64_t *state)
{
    static const int32_t odd[] = {0, -1, 1, 255, 256, 257, INT32_MIN, 131072};
    const int32_t next_n = 1 + (int32_t)random_below(state, 8);
    int64_t sum = 0;

    d->s = (index_schedule){d->lengths, 1 + (int64_t)random_below(state, MOST_BATCH),
                            1,          (next_n + 1) / 2,
                            256,        1 + (int32_t)random_below(state, MOST_SMS)};
    for (int64_t b = 0; b < d->s.batch; b++) {
        d->lengths[b] = random_below(state, 3) == 0 ? odd[random_below(state, 8)]
                                                    : (int32_t)random_below(state, 5000);
        d->seg[b] = d->lengths[b] > 0 ? (d->lengths[b] + 255) / 256 : 0;
        d->prefix[b] = sum += d->seg[b];
    }
}

/* The spec's sm_90 text, by searching. */
START_TEST(atom_first_is_the_formula)
{
    uint64_t state = 5;
    drawn d;
    int32_t meta[2 * MOST_SMS + 2];

    for (int round = 0; round < 400; round++) {
        draw(&d, &state);
        const int64_t atoms = d.s.atoms, total = d.prefix[d.s.batch - 1] * atoms;
        const int64_t q = total / d.s.sms, pivot = d.s.sms - total % d.s.sms;
        index_schedule_atom_first(&d.s, meta);
        ck_assert_int_eq(index_schedule_total(&d.s), total);
        for (int64_t sm = 0; sm < d.s.sms; sm++) {
            const int64_t at = sm * q + (sm > pivot ? sm - pivot : 0);
            int64_t b = 0;
            while (b < d.s.batch && d.prefix[b] * atoms <= at) {
                b++;
            }
            const int64_t off = at - (b > 0 ? d.prefix[b - 1] * atoms : 0);
            const bool past = b == d.s.batch;
            ck_assert_int_eq(meta[2 * sm], past ? b * atoms : b * atoms + off / d.seg[b]);
            ck_assert_int_eq(meta[2 * sm + 1], past ? 0 : off % d.seg[b]);
        }
        ck_assert_int_eq(meta[2 * d.s.sms], d.s.batch * atoms);
        ck_assert_int_eq(meta[2 * d.s.sms + 1], 0);
    }
}
END_TEST

/* The spec's sm_100 text, whose rows are next_n to a request. */
START_TEST(split_first_is_the_formula)
{
    uint64_t state = 6;
    drawn d;
    int32_t meta[2 * MOST_SMS + 2];

    for (int round = 0; round < 400; round++) {
        draw(&d, &state);
        const int64_t next_n = d.s.atoms, total = d.prefix[d.s.batch - 1] * next_n;
        const int64_t q = total / d.s.sms, rem = total % d.s.sms;
        index_schedule_split_first(&d.s, meta);
        for (int64_t sm = 0; sm <= d.s.sms; sm++) {
            const int64_t w = sm * q + (sm < rem ? sm : rem);
            int64_t b = 0;
            while (b < d.s.batch && d.prefix[b] * next_n <= w) {
                b++;
            }
            const int64_t before = b > 0 ? d.prefix[b - 1] * next_n : 0;
            ck_assert_int_eq(meta[2 * sm], b * next_n);
            ck_assert_int_eq(meta[2 * sm + 1], b == d.s.batch ? 0 : (w - before) / next_n);
        }
    }
}
END_TEST

/* With one atom: every split of every request is one SM's, and no two SMs' numbers of them differ
 * by more than one. Lengths lie `stride` apart. */
START_TEST(every_split_is_made_once)
{
    void (*const by[])(const index_schedule *, int32_t *) = {index_schedule_atom_first,
                                                             index_schedule_split_first};
    uint64_t state = 7;
    drawn d;
    int32_t meta[2 * MOST_SMS + 2], apart[3 * MOST_BATCH];

    for (int round = 0; round < 200; round++) {
        draw(&d, &state);
        for (int64_t b = 0; b < d.s.batch; b++) {
            memset(apart + 3 * b, 0x11, 3 * sizeof *apart);
            apart[3 * b] = d.lengths[b];
        }
        d.s.atoms = 1;
        d.s.lengths = apart;
        d.s.stride = 3;
        const int64_t total = index_schedule_total(&d.s);
        by[_i](&d.s, meta);
        int64_t row = 0, split = 0, made = 0;
        for (int32_t sm = 0; sm < d.s.sms; sm++) {
            int64_t mine = 0;
            while (row < d.s.batch && d.seg[row] == 0) {
                row++;
            }
            ck_assert(meta[2 * sm] == row && meta[2 * sm + 1] == split);
            while (row < meta[2 * sm + 2] ||
                   (row == meta[2 * sm + 2] && split < meta[2 * sm + 3])) {
                mine += row < d.s.batch && split < d.seg[row];
                split++;
                if (row >= d.s.batch || split >= d.seg[row]) {
                    row++;
                    split = 0;
                }
            }
            ck_assert(mine == total / d.s.sms || mine == total / d.s.sms + 1);
            made += mine;
        }
        ck_assert_int_eq(made, total);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("index_schedule");

    tcase_add_test(tests, golden_vectors);
    tcase_add_test(tests, atom_first_is_the_formula);
    tcase_add_test(tests, split_first_is_the_formula);
    tcase_add_loop_test(tests, every_split_is_made_once, 0, 2);
    return suite_run("core/index_schedule", tests);
}
