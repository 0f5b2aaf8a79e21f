/* tune_forecast.c - a forecast in a temporary folder, printed. */
#include "cli/tune_forecast.h"
#include "cli/print.h"

#include "tuner/forecast.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a store leaves in its folder. */
static void remove_folder(const char *folder)
{
    static const char *const files[] = {"forecast.db", "forecast.db-wal", "forecast.db-shm",
                                        "forecast.db-journal", "forecast.db.lock"};
    char path[4200];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

static hone_status make_folder(char *folder, size_t capacity, hone_error *error)
{
    const char *temporary = secure_getenv("TMPDIR");

    if (temporary == NULL || temporary[0] != '/') {
        temporary = "/tmp";
    }
    if ((size_t)snprintf(folder, capacity,
                         "%s/hone-"
                         "XX"
                         "XX"
                         "XX",
                         temporary) >= capacity) {
        return status_set(error, HONE_LIMIT, "TMPDIR", 0, "a path over %zu bytes", capacity - 1);
    }
    if (mkdtemp(folder) == NULL) {
        return status_set(error, HONE_IO, folder, 0, "%s", strerror(errno));
    }
    return HONE_OK;
}

static void print_forecast(const sweep_options *o, const forecast *f, bool json)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const double jobs = o->jobs > 0 ? o->jobs : cores > 0 ? (double)cores : 1;

    if (json) {
        json_t *row = json_pack("{s:s, s:I, s:I, s:I, s:I, s:f}", "device", o->device->spec,
                                "problems", (json_int_t)f->problems, "settled",
                                (json_int_t)f->settled, "candidates", (json_int_t)f->candidates,
                                "kernels", (json_int_t)f->kernels, "compile_s", f->compile_s);
        print_json(row);
        json_decref(row);
        return;
    }
    printf("%s: %llu problems, %llu of which have nothing left to do; %llu candidates, %llu "
           "kernels to compile",
           o->device->spec, (unsigned long long)f->problems, (unsigned long long)f->settled,
           (unsigned long long)f->candidates, (unsigned long long)f->kernels);
    if (f->compile_s > 0) {
        printf(", %.0f s of %.0f compilers if none is cached, by what the store knows of the "
               "templates",
               f->compile_s / jobs, jobs);
    }
    printf("; nothing was tried\n");
}

hone_status tune_forecast(const sweep_options *options, const char *path, bool json,
                          hone_error *error)
{
    hone_status status = HONE_OK;
    store *from = NULL;
    char folder[4096] = "";
    forecast f;

    TRY(make_folder(folder, sizeof folder, error));
    if (access(path, F_OK) == 0) {
        TRY(store_open(path, STORE_READ, &from, error));
    }
    TRY(forecast_make(options, from, folder, &f, error));
    print_forecast(options, &f, json);
done:
    store_close(from, NULL);
    if (folder[0] != '\0') {
        remove_folder(folder);
    }
    return status;
}
