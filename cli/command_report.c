/* command_report.c - `hone report`: what a store knows about its devices, for people or as JSON. */
#include "cli/options.h"
#include "cli/print.h"

#include "bench/report.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_DETAILS = 1000, KEY_OUTPUT = 'o' };

typedef struct wishes {
    bool details;
    const char *output; /* NULL: standard output */
} wishes;

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    wishes *w = context;

    switch (key) {
    case KEY_DETAILS:
        w->details = true;
        return HONE_OK;
    case KEY_OUTPUT:
        w->output = text;
        return HONE_OK;
    default:
        return status_set(error, HONE_BAD_ARGUMENT, "report", 0, "takes no plain argument, '%s'",
                          text != NULL ? text : "");
    }
}

static hone_status print_report(const report *r, const options *o, const wishes *w,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    FILE *to = w->output == NULL ? stdout : fopen(w->output, "w");

    if (to == NULL) {
        return status_set(error, HONE_IO, w->output, 0, "cannot be opened for writing");
    }
    if (o->json) {
        status = report_print_json(r, to, error);
    } else {
        report_print_text(r, to, w->details);
    }
    bool failed = ferror(to) != 0;
    failed = (to == stdout ? fflush(to) : fclose(to)) != 0 || failed;
    if (status == HONE_OK && failed) {
        status = status_set(error, HONE_IO, w->output, 0, "the report could not be written");
    }
    return status;
}

int command_report(int argc, char **argv)
{
    static const struct argp_option own[] = {
        {"details", KEY_DETAILS, NULL, 0, "show configs and every reason", 0},
        {"output", KEY_OUTPUT, "FILE", 0, "write to FILE", 0},
        {0},
    };
    static const options_command command = {
        .name = "report",
        .about = "Print a store's winners, what bounds them, and what was rejected and why.",
        .takes = OPTIONS_DEVICE | OPTIONS_STORE | OPTIONS_JSON,
        .own = own,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options o = {0};
    wishes w = {0};
    store *s = NULL;
    report r = {0};
    device_kind kind;
    char path[512];

    TRY(options_parse(&command, argc, argv, &o, &w, &error));
    TRY(options_store_path(&o, path, sizeof path, &error));
    bool all = strcmp(o.devices[0], "auto") == 0;
    if (!all) {
        TRY(options_device_kind(o.devices[0], &kind, &error));
    }
    TRY(store_open(path, STORE_READ, &s, &error));
    TRY(report_read(s, all ? NULL : &kind, &r, &error));
    TRY(print_report(&r, &o, &w, &error));
done:
    report_free(&r);
    store_close(s, NULL);
    return options_end(&o, status, &error, true);
}
