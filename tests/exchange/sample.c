/* sample.c - see sample.h. */
#include "tests/exchange/sample.h"

#include "tests/support/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double samples[] = {2501.5, 2499.25, 2500.125};

static store_result result_of(size_t i)
{
    const int32_t outcome = STORE_OK + (int32_t)(i % (STORE_UNMEASURED - STORE_OK + 1));
    store_result r = scratch_result((int)i);

    r.outcome = outcome;
    r.samples_ns = samples;
    r.samples_len = i % 4;
    if (outcome != STORE_OK) {
        r.time_ns = 0;
        r.timer = STORE_TIMER_NONE;
        r.samples_len = 0;
        r.reason = "row 3: \"1\" \xc3\xbc is no 2, by\ta tab";
        r.cosine = NAN;
    } else {
        r.reason = "";
        r.time_ns = 2500.0 / 3 + (double)i;
    }
    return r;
}

void sample_store(size_t count)
{
    static const int vec[] = {4, 8}, threads[] = {64, 128, 256}, rows[] = {1, 2, 4, 8};
    const store_sweep sweep = {"hone tune", "13.0.88", 13000, 7};
    const device_kind kind = scratch_kind();
    int64_t sweep_id = 0, device = 0, problem = 0, id = 0;
    hone_problem p;
    hone_error e = {0};
    store *s = NULL;
    char text[64];

    ck_assert_msg(store_open(scratch_here.path, STORE_WRITE, &s, &e) == HONE_OK, "%s", e.message);
    ck_assert_int_eq(hone_problem_parse(SAMPLE_PROBLEM, &p, &e), HONE_OK);
    ck_assert_int_eq(store_sweep_begin(s, &sweep, &sweep_id, &e), HONE_OK);
    ck_assert_int_eq(store_device_id(s, &kind, &device, &e), HONE_OK);
    ck_assert_int_eq(store_problem_id(s, &p, &problem, &e), HONE_OK);
    for (size_t i = 0; i < count; i++) {
        const store_result r = result_of(i);
        store_key key = {problem, device, SAMPLE_TEMPLATE, text, {0}, NULL};
        snprintf(text, sizeof text, "vec=%d threads=%d rows=%d repeat=%zu", vec[i % 2],
                 threads[i / 2 % 3], rows[i / 6 % 4], 1 + i / 24);
        memset(key.template_digest, 0xa5, sizeof key.template_digest);
        ck_assert_msg(store_candidate_record(s, sweep_id, &key, &r, &id, &e) == HONE_OK, "%s",
                      e.message);
    }
    ck_assert_int_eq(store_sweep_end(s, sweep_id, &e), HONE_OK);
    ck_assert_int_eq(store_close(s, &e), HONE_OK);
}

exchange_set sample_collect(void)
{
    const exchange_choice all = {0};
    exchange_set set = {0};
    store *s = NULL;

    ck_assert_int_eq(store_open(scratch_here.path, STORE_READ, &s, &scratch_error), HONE_OK);
    ck_assert_msg(exchange_collect(s, &all, &set, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    store_close(s, NULL);
    return set;
}

const char *sample_path(const char *name)
{
    static char paths[2][FOLDER_BYTES + 64];
    static int turn;

    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%.60s", scratch_here.folder, name);
    return paths[turn];
}

char *sample_text(exchange_format format, size_t *len)
{
    exchange_set set = sample_collect();
    const char *path = sample_path("sample.json");

    ck_assert_uint_eq(set.spaces_len, 1);
    ck_assert_msg(exchange_write(&set.spaces[0], format, NULL, path, &scratch_error) == HONE_OK,
                  "%s", scratch_error.message);
    exchange_free(&set);
    return file_read(path, len);
}

hone_status sample_read(const char *text, size_t len, exchange_format format,
                        const exchange_given *given, exchange_set *out, bool *torn)
{
    const char *path = sample_path("read.json");

    unlink(path); /* a file system may flush one that is cut and written anew: milliseconds */
    file_write(path, text, len);
    scratch_error = (hone_error){0};
    return exchange_read(path, format, given, out, torn, &scratch_error);
}

char *sample_replace(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    const size_t bytes = strlen(text) + strlen(to) + 1;
    char *made = malloc(bytes);

    ck_assert_msg(at != NULL, "no %s in %.300s", from, text);
    snprintf(made, bytes, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return made;
}
