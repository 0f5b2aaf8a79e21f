/* test_damage.c - thousands of damaged images of a store: SQLite's own check finds a third of
 * flipped bits, the rows' digests must find what is left. */
#include "cache/generation.h"
#include "cache/store.h"
#include "tests/cache/scratch.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static scratch dir;

static void setup(void)
{
    scratch_make(&dir);
}

static void teardown(void)
{
    scratch_remove(&dir);
}

static char *image;
static size_t image_len;

static int same_row(void *context, const store_row *row)
{
    int *changed = context;
    char config[64], text[512];
    int i = (int)row->result.time_ns - 1000;
    hone_problem p = scratch_problem(i < 0 || i > 100000 ? 0 : i);
    store_key key = scratch_key(0, 0, i % 7, config);
    store_result want = scratch_result(i);

    hone_problem_format(&p, text, sizeof text, NULL);
    *changed += strcmp(row->problem_text, text) != 0 || strcmp(row->config, config) != 0 ||
                strcmp(row->template_name, key.template_name) != 0 ||
                row->result.time_ns != want.time_ns || row->result.registers != want.registers ||
                row->result.samples_len != want.samples_len ||
                memcmp(row->result.samples_ns, want.samples_ns, 3 * sizeof(double)) != 0 ||
                row->result.cosine != want.cosine || row->kind->sm_count != 78;
    return 0;
}

/* What one damaged image gives: served rows that differ from what was stored. Refusal of all is
 * fine. */
static void try_image(const char *bytes, size_t len, int *changed, int *refused)
{
    generation *g = NULL;
    store *s = NULL;

    file_write(dir.path, bytes, len);
    if (generation_load(dir.path, &g, NULL) == HONE_OK) {
        for (size_t i = 0; i < generation_len(g); i++) {
            *changed += scratch_is_ours(generation_at(g, i)) ? 0 : 1;
        }
    } else {
        ++*refused;
    }
    generation_free(g);
    if (store_open(dir.path, STORE_READ, &s, NULL) == HONE_OK) {
        store_candidates(s, NULL, same_row, changed, NULL);
    }
    store_close(s, NULL);
}

START_TEST(no_flipped_bit_changes_what_is_served)
{
    uint64_t seed = scratch_seed();
    int changed = 0, refused = 0;

    scratch_fill(dir.path, 40);
    image = file_read(dir.path, &image_len);
    for (int i = 0; i < 3000; i++) {
        uint64_t at = random_next(&seed) % (image_len * 8);
        image[at / 8] ^= (char)(1u << at % 8);
        try_image(image, image_len, &changed, &refused);
        image[at / 8] ^= (char)(1u << at % 8);
        ck_assert_msg(changed == 0, "bit %llu", (unsigned long long)at);
    }
    ck_assert_int_gt(refused, 0);
    free(image);
}
END_TEST

START_TEST(nor_does_a_cut_or_a_run_of_noise)
{
    uint64_t seed = scratch_seed();
    int changed = 0, refused = 0;

    scratch_fill(dir.path, 40);
    image = file_read(dir.path, &image_len);
    char *noisy = malloc(image_len);
    for (int i = 0; i < 600; i++) {
        size_t len = image_len, at = random_next(&seed) % image_len;
        memcpy(noisy, image, image_len);
        if (i % 3 == 0) {
            len = at;
        }
        for (size_t k = at; k < at + 64 && k < len; k++) {
            noisy[k] = (char)random_next(&seed);
        }
        try_image(noisy, len, &changed, &refused);
        ck_assert_int_eq(changed, 0);
    }
    ck_assert_int_gt(refused, 0);
    free(noisy);
    free(image);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("damage");

    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, no_flipped_bit_changes_what_is_served);
    tcase_add_test(tests, nor_does_a_cut_or_a_run_of_noise);
    return suite_run("cache/damage", tests);
}
