/* winners.c - see winners.h. */
#include "benchmarks/winners.h"

#include "runtime/default.h"
#include "tests/runtime/store_fixture.h"

#include <stdio.h>
#include <stdlib.h>

/* The analytical choice for one row: its 16-row tile is legal for every M. */
static void choose_config(const hone_problem *problem, char *name, size_t name_len, char *text,
                          size_t text_len)
{
    templates *t = NULL;
    default_choice choice;
    size_t count = 0;
    gpu g;

    if (gpu_find("h20", &g, NULL) != HONE_OK || templates_open(&t, NULL) != HONE_OK ||
        default_rank(t, problem, &g, 0, &choice, 1, &count, NULL, NULL) != HONE_OK || count != 1 ||
        manifest_config_format(choice.m, &choice.config, text, text_len, NULL) != HONE_OK) {
        fprintf(stderr, "no template serves the benchmark's problems\n");
        exit(1);
    }
    snprintf(name, name_len, "%s", manifest_name(choice.m));
    templates_close(t);
}

winners *winners_make(void)
{
    static const int64_t rows[] = {1, 16, 64, 256, 4096};
    char name[64], config_text[512];
    winners *w = calloc(1, sizeof *w);
    fixture_winner *list = calloc(WINNERS_COUNT, sizeof *list);

    if (w == NULL || list == NULL) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    const hone_problem first =
        store_fixture_problem("fp8_gemm:m=1,n=128,k=128,recipe=f32-1x128-128x128");
    choose_config(&first, name, sizeof name, config_text, sizeof config_text);
    for (int i = 0; i < WINNERS_COUNT; i++) {
        w->problems[i] = first;
        w->problems[i].as.fp8_gemm.m = rows[i % 5];
        w->problems[i].as.fp8_gemm.n = 128 * (1 + i / 5 % 100);
        w->problems[i].as.fp8_gemm.k = 128 * (1 + i / 500);
        list[i] = (fixture_winner){.problem = w->problems[i],
                                   .kind = store_fixture_kind("h20", true),
                                   .template_name = name,
                                   .config = config_text,
                                   .time_ns = 1000 + i};
    }
    folder_make(w->folder);
    snprintf(w->store, sizeof w->store, "%s/hone.db", w->folder);
    snprintf(w->cache, sizeof w->cache, "%s/kernels.db", w->folder);
    if (!store_fixture_write(w->store, list, WINNERS_COUNT)) {
        exit(1);
    }
    free(list);
    return w;
}

void winners_remove(winners *w)
{
    folder_remove(w->folder);
    free(w);
}

hone_runtime *winners_open(const winners *w)
{
    const hone_options options = {.size = sizeof options, .cache_path = w->cache};
    hone_runtime *rt = NULL;
    hone_error error;

    if (hone_open(w->store, "emu:h20", &options, &rt, &error) != HONE_OK) {
        fprintf(stderr, "open: %s\n", error.message);
        exit(1);
    }
    return rt;
}
