/* command_convert.c - `hone convert`: MXFP4 weights to e4m3 by the exact fold, other blocks for
 * e4m3 weights, and checks of a checkpoint's scales. */
#include "cli/convert_print.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"

#include "convert/check.h"
#include "convert/convert.h"
#include "convert/pool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    KEY_BLOCK = 1000,
    KEY_SCALES,
    KEY_RULE,
    KEY_PAIR,
    KEY_SKIP,
    KEY_THREADS,
    KEY_REPLACE,
    KEY_REQUANTISE,
    KEY_NO_FOLD,
    KEY_CHECK,
    KEY_POW2,
    KEY_DEVICE
};

/* More threads than this wait for one another's writes. */
enum { MOST_THREADS = 16, MOST_PATTERNS = 64 };

typedef struct conversion {
    options o;
    plan_wishes wishes;
    pairing_rule pairs[MOST_PATTERNS];
    const char *skip[MOST_PATTERNS];
    const char *input, *output;
    const char *device; /* NULL: the host makes the codes */
    int64_t threads;    /* 0: one a core */
    bool replace;
    bool check, pow2, good; /* good: a check found nothing */
    progress progress;
} conversion;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- Options. ------------------------------------------------------------------------------ */

/* The row of a list of names that `text` is. */
static hone_status one_of(const char *what, const char *text, const char *const *names, size_t *out,
                          hone_error *error)
{
    char all[160] = "";
    size_t used = 0;

    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return HONE_OK;
        }
        used +=
            (size_t)snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return status_set(error, HONE_BAD_TEXT, what, 0, "'%s' is none of %s", text, all);
}

static hone_status parse_block(const char *text, plan_wishes *w, hone_error *error)
{
    static const char *const names[] = {"128x128", "32x32", "1x128", NULL};
    static const uint32_t sizes[][2] = {{128, 128}, {32, 32}, {1, 128}};
    size_t index = 0;
    hone_status status = one_of("--block", text, names, &index, error);

    if (status == HONE_OK) {
        w->block_rows = sizes[index][0];
        w->block_cols = sizes[index][1];
    }
    return status;
}

/* WEIGHT=SCALE, or WEIGHT=SCALE=WEIGHT=SCALE: the ends of names, in and out. */
static hone_status parse_pair(conversion *c, char *text, hone_error *error)
{
    char *parts[4] = {0}, *rest = text;
    size_t len = 0;

    for (char *one = strsep(&rest, "="); one != NULL && len < 5; one = strsep(&rest, "=")) {
        if (len < 4) {
            parts[len] = one;
        }
        len++;
    }
    if (len != 2 && len != 4) {
        return status_set(error, HONE_BAD_TEXT, "--pair", 0,
                          "'%s' is not WEIGHT=SCALE or WEIGHT=SCALE=WEIGHT=SCALE, the ends of "
                          "names such as .weight=.scale",
                          text);
    }
    if (c->wishes.names.given_len == MOST_PATTERNS) {
        return status_set(error, HONE_LIMIT, "--pair", 0, "over %d pairs", MOST_PATTERNS);
    }
    c->pairs[c->wishes.names.given_len++] = (pairing_rule){
        parts[0], parts[1], len == 4 ? parts[2] : parts[0], len == 4 ? parts[3] : parts[1]};
    return HONE_OK;
}

static hone_status add_path(conversion *c, const char *text, hone_error *error)
{
    if (c->input == NULL) {
        c->input = text;
    } else if (c->output == NULL) {
        c->output = text;
    } else {
        return status_set(error, HONE_BAD_ARGUMENT, "convert", 0,
                          "'%s' is one name too many; give INPUT and OUTPUT", text);
    }
    return HONE_OK;
}

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    static const char *const scales[] = {"e8m0", "f32", NULL};
    static const char *const rules[] = {"ceil", "amax", "nearest", NULL};
    conversion *c = context;
    hone_status status = HONE_OK;
    size_t index = 0;

    switch (key) {
    case KEY_BLOCK:
        return parse_block(text, &c->wishes, error);
    case KEY_SCALES:
        status = one_of("--scales", text, scales, &index, error);
        c->wishes.scales = index == 1 ? SAFETENSORS_F32 : SAFETENSORS_F8_E8M0;
        return status;
    case KEY_RULE:
        status = one_of("--rule", text, rules, &index, error);
        c->wishes.rule = PLAN_CEIL + (plan_rule)index;
        return status;
    case KEY_PAIR:
        return parse_pair(c, text, error);
    case KEY_SKIP:
        if (c->wishes.skip_len == MOST_PATTERNS) {
            return status_set(error, HONE_LIMIT, "--skip", 0, "over %d patterns", MOST_PATTERNS);
        }
        c->skip[c->wishes.skip_len++] = text;
        return HONE_OK;
    case KEY_THREADS:
        return options_number("--threads", text, 1, MOST_THREADS, &c->threads, error);
    case KEY_REPLACE:
        c->replace = true;
        return HONE_OK;
    case KEY_REQUANTISE:
        c->wishes.requantise = true;
        return HONE_OK;
    case KEY_NO_FOLD:
        c->wishes.fold = false;
        return HONE_OK;
    case KEY_CHECK:
        c->check = true;
        return HONE_OK;
    case KEY_POW2:
        c->pow2 = true;
        return HONE_OK;
    case KEY_DEVICE:
        c->device = text;
        return HONE_OK;
    default:
        return add_path(c, text, error);
    }
}

/* ---- The run. ------------------------------------------------------------------------------ */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int show(void *context, uint64_t done, uint64_t total)
{
    conversion *c = context;

    progress_show(&c->progress, done >> 20, total >> 20, "MiB", c->check ? c->input : c->output);
    return interrupted;
}

static unsigned threads_of(const conversion *c)
{
    const unsigned cores = pool_threads();

    return c->threads > 0 ? (unsigned)c->threads : cores < MOST_THREADS ? cores : MOST_THREADS;
}

static hone_status convert(conversion *c, const checkpoint *from, hone_error *error)
{
    hone_status status = HONE_OK;
    convert_options how = {
        .threads = threads_of(c), .replace = c->replace, .progress = show, .context = c};
    convert_row *rows = NULL;
    plan p = {0};
    double begin = now_s();

    TRY(plan_make(from, &c->wishes, &p, error));
    if (p.rows == 0) {
        status = status_set(error, HONE_NOT_FOUND, c->input, 0,
                            "holds no %s weight with scales that pair with it, so nothing was "
                            "written; --pair names others%s",
                            c->wishes.fold ? "MXFP4" : "e4m3",
                            c->wishes.requantise ? "" : ", --requantise takes e4m3 blocks too");
        goto done;
    }
    rows = calloc(p.rows, sizeof *rows);
    if (rows == NULL) {
        status = status_set(error, HONE_NO_MEMORY, c->input, 0, "a report of %zu rows", p.rows);
        goto done;
    }
    if (c->device != NULL) {
        TRY(device_fold_open(c->device, PLAN_TILE, &how.device, error));
        print_note(device_fold_note(how.device));
    }
    progress_begin(&c->progress);
    status = convert_run(&p, c->output, &how, rows, error);
    progress_clear(&c->progress);
    if (status == HONE_OK) {
        convert_print(&p, c->output, rows, now_s() - begin, c->o.json);
    }
done:
    device_fold_close(how.device);
    free(rows);
    plan_free(&p);
    return status;
}

/* The config.json beside a checkpoint's files; caller frees. */
static char *config_path(const char *input)
{
    struct stat facts;
    char *path = NULL;
    const char *slash = strrchr(input, '/');
    const bool folder = stat(input, &facts) == 0 && S_ISDIR(facts.st_mode);
    const size_t len = folder ? strlen(input) : slash != NULL ? (size_t)(slash - input) : 0;

    return asprintf(&path, "%.*s%sconfig.json", (int)len, input,
                    len > 0 || slash != NULL ? "/" : "") < 0
               ? NULL
               : path;
}

static hone_status check(conversion *c, const checkpoint *from, hone_error *error)
{
    hone_status status = HONE_OK;
    check_report report = {0};
    check_options how = {.names = c->wishes.names,
                         .skip = c->skip,
                         .skip_len = c->wishes.skip_len,
                         .pow2 = c->pow2,
                         .threads = threads_of(c),
                         .progress = show,
                         .context = c};
    char *config = config_path(c->input);

    if (config == NULL) {
        return status_set(error, HONE_NO_MEMORY, c->input, 0, "a path");
    }
    TRY(check_config(config, &how, error));
    progress_begin(&c->progress);
    status = check_run(from, &how, &report, error);
    progress_clear(&c->progress);
    if (status == HONE_OK) {
        convert_print_check(c->input, &report, c->o.json);
        c->good = report.len == 0;
    }
done:
    check_free(&report);
    free(config);
    return status;
}

static hone_status run(conversion *c, hone_error *error)
{
    hone_status status = HONE_OK;
    checkpoint *from = NULL;

    if (c->input == NULL || (c->output == NULL) != c->check) {
        return status_set(error, HONE_BAD_ARGUMENT, "convert", 0,
                          "give INPUT and OUTPUT: .safetensors files, or folders of shards; with "
                          "--check the INPUT alone");
    }
    c->wishes.names.given = c->pairs;
    c->wishes.skip = c->skip;
    TRY(checkpoint_open(c->input, &from, error));
    TRY(c->check ? check(c, from, error) : convert(c, from, error));
    if (from->folder && !c->check) {
        print_note("only tensors and their index were written: copy config.json and the rest, and "
                   "set its quantization_config to the new blocks");
    }
done:
    checkpoint_close(from);
    return status;
}

int command_convert(int argc, char **argv)
{
    static const struct argp_option own[] = {
        {"block", KEY_BLOCK, "SIZE", 0, "of the output's scales: 128x128, 32x32 or 1x128 (128x128)",
         0},
        {"scales", KEY_SCALES, "TYPE", 0, "of the output: e8m0 or f32 (e8m0)", 0},
        {"requantise", KEY_REQUANTISE, NULL, 0, "give e4m3 weights of other blocks these too", 0},
        {"rule", KEY_RULE, "NAME", 0,
         "of requantised scales: ceil (a power of two), amax (amax/448) or nearest (ceil)", 0},
        {"no-fold", KEY_NO_FOLD, NULL, 0, "leave MXFP4 weights as they are", 0},
        {"pair", KEY_PAIR, "W=S[=W=S]", 0,
         "ends of the names of weights and their scales, in and out; repeatable", 0},
        {"skip", KEY_SKIP, "PATTERN", 0, "leave tensors of such names as they are; repeatable", 0},
        {"check", KEY_CHECK, NULL, 0, "write nothing; look for scales and codes that are wrong", 0},
        {"pow2", KEY_POW2, NULL, 0,
         "of --check: ue8m0 is meant, as where config.json says scale_fmt ue8m0", 0},
        {"device", KEY_DEVICE, "SPEC", 0,
         "fold and requantise on cuda:0, emu:h20, ... instead of the host: the same bytes", 0},
        {"threads", KEY_THREADS, "N", 0, "1 to 16 (one for each core)", 0},
        {"replace", KEY_REPLACE, NULL, 0, "replace an output file that exists", 0},
        {0},
    };
    static const options_command command = {
        .name = "convert",
        .arguments = "INPUT [OUTPUT]",
        .about = "Convert a safetensors checkpoint, a file or a folder of shards: MXFP4 weights "
                 "become e4m3 with one power-of-two scale a block, exactly wherever that is "
                 "possible, and the report says where it is not and what other rules would cost.",
        .takes = OPTIONS_JSON,
        .own = own,
        .parse_own = parse_own,
    };
    const struct sigaction stop = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    hone_status status = HONE_OK;
    hone_error error = {0};
    conversion c = {.good = true,
                    .wishes = {.block_rows = 128,
                               .block_cols = 128,
                               .scales = SAFETENSORS_F8_E8M0,
                               .rule = PLAN_CEIL,
                               .fold = true}};

    TRY(options_parse(&command, argc, argv, &c.o, &c, &error));
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is a write's error */
    TRY(run(&c, &error));
done:
    return options_end(&c.o, status, &error, c.good);
}
