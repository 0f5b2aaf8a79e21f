/* test_space_import.c - definitions of other tuners: strangers' JSON is a status, and the spaces
 * hold what was counted elsewhere. */
#include "core/random.h"
#include "templates/space.h"
#include "templates/space_import.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Definitions. -------------------------------------------------------------------------- */

static const char good[] =
    "{\"params\": {\"x\": [1, 2, 4, 8, 16], \"y\": [3, 1, 2], \"z\": [true, false], "
    "\"_w\": [-1, 7], \"u\": [0, 1, 2, 3, 4, 5]}, \"constants\": {\"k\": 6, \"lang\": \"CUDA\"}, "
    "\"restrictions\": [\"k % y == 0 and x * y <= 16\", \"z == 0 or _w > 0\", \"x + u < 18\", "
    "\"u % y == 0\"]}";

static manifest *import(const char *text, size_t len, hone_status wanted)
{
    manifest *m = NULL;
    hone_error error = {0};

    ck_assert_msg(space_import("x.json", text, len, &m, &error) == wanted, "%s", error.message);
    ck_assert(wanted == HONE_OK || error.message[0] != '\0');
    return m;
}

static space *open_space(const manifest *m)
{
    space *s = NULL;
    hone_error error = {0};

    ck_assert_msg(space_open(m, NULL, NULL, &s, &error) == HONE_OK, "%s", error.message);
    return s;
}

static bool legal(const int64_t v[5])
{
    return 6 % v[1] == 0 && v[0] * v[1] <= 16 && (v[2] == 0 || v[3] > 0) && v[0] + v[4] < 18 &&
           v[4] % v[1] == 0;
}

static const int64_t lists[5][6] = {
    {1, 2, 4, 8, 16}, {3, 1, 2}, {1, 0}, {-1, 7}, {0, 1, 2, 3, 4, 5}};
static const uint32_t lens[5] = {5, 3, 2, 2, 6};

/* The place of a config in the raw product. */
static uint32_t place_of(const config *c)
{
    uint32_t place = 0;

    for (uint32_t p = 0; p < 5; p++) {
        uint32_t v = 0;
        while (lists[p][v] != c->value[p]) {
            v++;
            ck_assert_uint_lt(v, lens[p]);
        }
        place = place * lens[p] + v;
    }
    return place;
}

#define RAW (5 * 3 * 2 * 2 * 6)

static uint32_t brute(bool set[RAW])
{
    uint32_t count = 0;
    config c = {.len = 5};

    for (uint32_t i = 0; i < RAW; i++) {
        uint32_t rest = i;
        for (int p = 4; p >= 0; p--) {
            c.value[p] = lists[p][rest % lens[p]];
            rest /= lens[p];
        }
        set[i] = legal(c.value);
        count += set[i];
    }
    return count;
}

START_TEST(a_definition_is_its_legal_configs)
{
    bool set[RAW], has = false, found = true;
    manifest *m = import(good, strlen(good), HONE_OK);
    space *s = open_space(m);
    uint32_t wanted = brute(set), got = 0;
    uint64_t count = 0;
    config c;

    while (found) {
        ck_assert_int_eq(space_next(s, 0, &c, &found, NULL), HONE_OK);
        if (found) {
            ck_assert(set[place_of(&c)]);
            ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
            ck_assert(has);
            set[place_of(&c)] = false; /* none twice */
            got++;
        }
    }
    ck_assert_uint_eq(got, wanted);
    ck_assert_int_eq(space_count(s, 0, &count, NULL), HONE_OK);
    ck_assert_uint_eq(count, wanted);
    c = (config){.len = 5, .value = {16, 3, 0, -1, 0}};
    ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
    ck_assert(!has);
    c = (config){.len = 5, .value = {3, 1, 0, 7, 0}}; /* no value of x */
    ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
    ck_assert(!has);
    c.len = 4;
    ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_BAD_ARGUMENT);
    space_close(s);
    manifest_free(m);
}
END_TEST

START_TEST(draws_are_even_by_chi_square)
{
    bool set[RAW], found = false, uniform = false;
    static uint32_t seen[RAW];
    manifest *m = import(good, strlen(good), HONE_OK);
    space *s = open_space(m);
    const uint32_t len = brute(set), draws = 200 * len;
    uint64_t seed = 5;
    double chi = 0;
    config c;

    for (uint32_t i = 0; i < draws; i++) {
        ck_assert_int_eq(space_draw(s, &seed, 100000, &c, &found, &uniform, NULL), HONE_OK);
        ck_assert(found && uniform && set[place_of(&c)]);
        seen[place_of(&c)]++;
    }
    for (uint32_t i = 0; i < RAW; i++) {
        chi += set[i] ? ((double)seen[i] - 200) * ((double)seen[i] - 200) / 200 : 0;
    }
    /* Mean len - 1, variance twice that: five deviations either way. */
    const double mean = len - 1, spread = 5 * 1.42 * (double)len / 10;
    ck_assert_double_lt(chi, mean + spread);
    ck_assert_double_gt(chi, mean - spread);
    space_close(s);
    manifest_free(m);
}
END_TEST

/* Steps from one config to another in one parameter's list; 0 when others differ too, or none. */
static uint32_t steps(const config *a, const config *b, uint32_t *param)
{
    uint32_t differ = 0, at[2] = {0, 0};

    for (uint32_t p = 0; p < 5; p++) {
        if (a->value[p] != b->value[p]) {
            differ++;
            *param = p;
            for (uint32_t v = 0; v < lens[p]; v++) {
                at[0] = lists[p][v] == a->value[p] ? v : at[0];
                at[1] = lists[p][v] == b->value[p] ? v : at[1];
            }
        }
    }
    return differ != 1 ? 0 : at[0] > at[1] ? at[0] - at[1] : at[1] - at[0];
}

START_TEST(neighbours_are_all_and_only_the_legal_ones)
{
    bool found = true;
    manifest *m = import(good, strlen(good), HONE_OK);
    space *s = open_space(m);
    static config all[RAW], near[64];
    size_t len = 0, got = 0;

    while (found && len < RAW) {
        ck_assert_int_eq(space_next(s, 0, &all[len], &found, NULL), HONE_OK);
        len += found;
    }
    for (size_t i = 0; i < len; i++) {
        uint32_t wanted = 0, param = 0, sides[5][2] = {{0}};
        for (size_t k = 0; k < len; k++) {
            const uint32_t away = steps(&all[i], &all[k], &param);
            wanted += away > 0;
            if (away > 0) {
                uint32_t v = 0; /* the one that comes first in the list */
                while (lists[param][v] != all[i].value[param] &&
                       lists[param][v] != all[k].value[param]) {
                    v++;
                }
                const bool above = lists[param][v] == all[i].value[param];
                sides[param][above] = 1;
            }
        }
        ck_assert_int_eq(space_neighbours(s, &all[i], SPACE_ANY_VALUE, near, 64, &got, NULL),
                         HONE_OK);
        ck_assert_uint_eq(got, wanted);
        for (size_t k = 0; k < got; k++) {
            ck_assert(legal(near[k].value));
            ck_assert_uint_gt(steps(&all[i], &near[k], &param), 0);
        }
        uint32_t nearest = 0;
        for (uint32_t p = 0; p < 5; p++) {
            nearest += sides[p][0] + sides[p][1];
        }
        ck_assert_int_eq(space_neighbours(s, &all[i], SPACE_NEXT_VALUE, near, 64, &got, NULL),
                         HONE_OK);
        ck_assert_uint_eq(got, nearest);
        ck_assert_int_eq(space_neighbours(s, &all[i], SPACE_ANY_VALUE, near, 1, &got, NULL),
                         HONE_OK);
        ck_assert_uint_eq(got, wanted); /* counted past the capacity */
    }
    space_close(s);
    manifest_free(m);
}
END_TEST

static const struct {
    const char *text;
    hone_status status;
} bad[] = {
    {"", HONE_BAD_TEXT},
    {"[]", HONE_BAD_TEXT},
    {"{}", HONE_BAD_TEXT},
    {"{\"params\": {}}", HONE_BAD_TEXT},
    {"{\"params\": [1]}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": []}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": 3}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1, 1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1.5]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [\"x\"]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a b\": [1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"\": [1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"params\": {\"b\": [1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [99999999999999999999]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": \"a > 1\"}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": [1]}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": [\"b > 1\"]}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": [\"lang > 1\"], \"constants\": "
     "{\"lang\": \"x\"}}",
     HONE_BAD_TEXT},
};

START_TEST(bad_definitions_are_refused)
{
    ck_assert_ptr_null(import(bad[_i].text, strlen(bad[_i].text), bad[_i].status));
}
END_TEST

START_TEST(limits_are_statuses)
{
    static char text[SPACE_IMPORT_BYTES + 2];
    size_t used = (size_t)sprintf(text, "{\"params\": {");

    for (int i = 0; i < 33; i++) {
        used += (size_t)sprintf(text + used, "%s\"p%d\": [1]", i > 0 ? ", " : "", i);
    }
    used += (size_t)sprintf(text + used, "}}");
    import(text, used, HONE_LIMIT);
    used = (size_t)sprintf(text, "{\"params\": {\"a\": [0");
    for (int i = 1; i < 257; i++) {
        used += (size_t)sprintf(text + used, ", %d", i);
    }
    used += (size_t)sprintf(text + used, "]}}");
    import(text, used, HONE_LIMIT);
    used = (size_t)sprintf(text, "{\"params\": {\"a\": [1]}, \"restrictions\": [\"a > 0\"");
    for (int i = 0; i < 64; i++) {
        used += (size_t)sprintf(text + used, ", \"a > 0\"");
    }
    used += (size_t)sprintf(text + used, "]}");
    import(text, used, HONE_LIMIT);
    memset(text, ' ', SPACE_IMPORT_BYTES + 1);
    import(text, SPACE_IMPORT_BYTES + 1, HONE_LIMIT);
    memset(text, '[', 100000);
    import(text, 100000, HONE_BAD_TEXT);
}
END_TEST

START_TEST(broken_bytes_are_a_status)
{
    char text[sizeof good];
    uint64_t seed = 4;
    uint32_t taken = 0;

    for (size_t len = 0; len < sizeof good - 1; len++) {
        import(good, len, HONE_BAD_TEXT);
    }
    for (int i = 0; i < 5000; i++) {
        manifest *m = NULL;
        space *s = NULL;
        hone_error error = {0};
        memcpy(text, good, sizeof good);
        text[random_below(&seed, sizeof good - 1)] = (char)random_below(&seed, 256);
        text[random_below(&seed, sizeof good - 1)] = (char)(32 + random_below(&seed, 95));
        if (space_import("x", text, sizeof good - 1, &m, &error) == HONE_OK) {
            uint64_t count = 0;
            taken++;
            if (space_open(m, NULL, NULL, &s, &error) == HONE_OK) {
                space_count(s, 100000, &count, &error);
            }
            space_close(s);
            manifest_free(m);
        }
    }
    ck_assert_uint_gt(taken, 50);
}
END_TEST

/* ---- What Kernel Tuner's solver, brute force and two other programs counted (search.md 4). -- */

static const struct {
    const char *name;
    double raw;
    uint64_t legal;
} counted[] = {
    {"pnpoly", 8184, 8184},           {"conv_milo", 10240, 4362},
    {"adding", 13312, 4654},          {"conv15", 18432, 7520},
    {"conv15hub", 16896, 6768},       {"dedisp_milo", 22272, 11130},
    {"gemm", 82944, 17956},           {"pnpolyhub", 4092, 4092},
    {"big_prl2", 36864, 1200},        {"big_gemm", 663552, 116928},
    {"big_microhh", 1166400, 138600}, {"big_prl4", 9437184, 10800},
    {"big_expdist", 9732096, 294000}, {"big_hotspot", 22200000, 349853},
    {"big_prl8", 2415919104, 48720},
};

START_TEST(recorded_spaces_hold_what_was_counted)
{
    char name[128], path[1024];
    size_t len = 0;
    uint64_t count = 0, walked = 0, seed = 3;
    bool found = true, uniform = false, has = false;
    config c;

    snprintf(name, sizeof name, "data/search/spaces/%s.json", counted[_i].name);
    if (!file_find_shared(name, path, sizeof path)) {
        return;
    }
    char *text = file_read(path, &len);
    manifest *m = import(text, len, HONE_OK);
    space *s = open_space(m);
    ck_assert_double_eq(space_raw_size(s), counted[_i].raw);
    ck_assert_int_eq(space_count(s, 2000000, &count, NULL), HONE_OK);
    ck_assert_uint_eq(count, counted[_i].legal);
    while (found) {
        ck_assert_int_eq(space_next(s, 0, &c, &found, NULL), HONE_OK);
        walked += found;
    }
    ck_assert_uint_eq(walked, counted[_i].legal);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(space_draw(s, &seed, 2000000, &c, &found, &uniform, NULL), HONE_OK);
        ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
        ck_assert(found && uniform && has);
    }
    space_close(s);
    manifest_free(m);
    free(text);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("import");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_definition_is_its_legal_configs);
    tcase_add_test(tests, draws_are_even_by_chi_square);
    tcase_add_test(tests, neighbours_are_all_and_only_the_legal_ones);
    tcase_add_loop_test(tests, bad_definitions_are_refused, 0, (int)ARRAY_LEN(bad));
    tcase_add_test(tests, limits_are_statuses);
    tcase_add_test(tests, broken_bytes_are_a_status);
    tcase_add_loop_test(tests, recorded_spaces_hold_what_was_counted, 0, (int)ARRAY_LEN(counted));
    return suite_run("templates/space_import", tests);
}
