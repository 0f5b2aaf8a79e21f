/* options.h - the options that commands share, parsed by argp, and what they name: problems and a
 * store.
 *
 * A command gives one options_command and gets an options; its own options and arguments go through
 * its function. */
#ifndef HONE_CLI_OPTIONS_H
#define HONE_CLI_OPTIONS_H

#include "bench/routing.h"
#include "cache/kind.h"
#include "cli/cli.h"
#include "models/shapes.h"

#include <argp.h>
#include <stdbool.h>

/* Which common options a command takes. */
enum {
    OPTIONS_MODEL = 1,    /* --model --all-models --tp --ep --ops --m */
    OPTIONS_PROBLEM = 2,  /* --problem, repeatable; --from --fold */
    OPTIONS_DEVICE = 4,   /* --device, repeatable */
    OPTIONS_STORE = 8,    /* --store */
    OPTIONS_JSON = 16,    /* --json */
    OPTIONS_ROUTING = 32, /* --routing */
};

#define OPTIONS_MAX_DEVICES 16

/* What was asked for. Texts are borrowed from argv. */
typedef struct options {
    const char *model; /* NULL when not given */
    bool all_models;
    const char *from;  /* a file of problems; NULL when not given */
    const char *ops;   /* NULL: all */
    const char *store; /* NULL: the default path */
    int tp, ep;        /* 1 when not given */
    bool json;
    const int64_t *m; /* the default list when not given */
    size_t m_len;
    int64_t *m_given; /* owned; NULL when not given */
    const char **problems;
    size_t problems_len;
    hone_fold_mode fold;                      /* 0 when not given */
    routing routing;                          /* balanced when not given */
    const char *devices[OPTIONS_MAX_DEVICES]; /* "auto" when not given */
    size_t devices_len;
} options;

/* An option or argument of the command itself (argp's key; ARGP_KEY_ARG is a plain argument). A
 * failure's message is printed and ends the program with CLI_USAGE. */
typedef hone_status (*options_own_fn)(int key, char *text, void *context, hone_error *error);

typedef struct options_command {
    const char *name;              /* "tune" */
    const char *arguments, *about; /* for --help; arguments may be NULL */
    unsigned takes;                /* OPTIONS_... */
    const struct argp_option *own; /* ended by {0}; NULL: none. Keys from 1000 on, or letters */
    options_own_fn parse_own;      /* NULL: neither own options nor arguments */
} options_command;

/* Parse; --help and wrong usage print and end the program. Caller frees with options_free. */
hone_status options_parse(const options_command *command, int argc, char **argv, options *out,
                          void *context, hone_error *error);
void options_free(options *o);

/* The problems that are asked for: those of --problem; those of --from's file, by how often they
 * were asked for; those of --model or of --all-models; those of `standard` (a model's name, or
 * NULL) when none of these is given, and two of them are not given together. With --fold each that
 * can be folded is the one that it then is; one that was named itself and cannot is refused, and so
 * is a model without any. Without duplicates. Caller frees *out with free(). HONE_BAD_ARGUMENT:
 * nothing named, or two ways. HONE_BAD_PROBLEM: the histogram of --routing has another length than
 * a problem's experts. */
hone_status options_problems(const options *o, const char *standard, llm_problem **out,
                             size_t *count, hone_error *error);

/* Where the store lies: --store, else the default path. `path` is filled. */
hone_status options_store_path(const options *o, char *path, size_t capacity, hone_error *error);

/* The kind behind a device's text. Nothing is opened: a store may speak of GPUs that are not here.
 */
hone_status options_device_kind(const char *spec, device_kind *out, hone_error *error);

/* A whole number of an option's text, within bounds; HONE_BAD_TEXT names `what`. */
hone_status options_number(const char *what, const char *text, int64_t least, int64_t most,
                           int64_t *out, hone_error *error);

/* The end of a command: frees the options, prints the error, if any, as one line on stderr, and
 * gives the exit code: that of the error, else CLI_DONE when the results are `good`, else
 * CLI_FAILED. */
int options_end(options *o, hone_status status, const hone_error *error, bool good);

#endif
