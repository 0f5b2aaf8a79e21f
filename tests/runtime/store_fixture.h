/* store_fixture.h - a store with winners, made through cache/store.h as a sweep makes it. */
#ifndef HONE_TESTS_RUNTIME_STORE_FIXTURE_H
#define HONE_TESTS_RUNTIME_STORE_FIXTURE_H

#include "cache/store.h"
#include "templates/manifest.h"

/* One winner: its problem, where it was timed, what it is. */
typedef struct fixture_winner {
    hone_problem problem;
    device_kind kind;
    const char *template_name, *config; /* NULL: the analytical choice for the kind's GPU */
    double time_ns;
    bool stale; /* proved with another text of its template */
} fixture_winner;

/* The kind of an emulated GPU ("h20"); a measured one when `emulated` is false. */
device_kind store_fixture_kind(const char *gpu_slug, bool emulated);

/* A winner on that kind, of a problem given as text: the analytical choice. */
fixture_winner store_fixture_winner(const char *gpu_slug, bool emulated, const char *problem,
                                    double time_ns);

/* Look up a problem given as text. */
hone_status store_fixture_ask(const hone_runtime *rt, const char *text, hone_choice *out);

/* Write the winners and pack a generation. Anything that fails prints why and returns false. */
bool store_fixture_write(const char *path, const fixture_winner *winners, size_t len);

/* A problem from text; prints why and aborts when it does not parse. */
hone_problem store_fixture_problem(const char *text);

#endif
