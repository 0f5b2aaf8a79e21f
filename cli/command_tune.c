/* command_tune.c - `hone tune`: sweep the problems of a model, or those named, on each device, and
 * report. */
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/tune_forecast.h"

#include "bench/report.h"
#include "tuner/sweep.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MODEL  "deepseek-v4.1-flash"
#define DEFAULT_BUDGET 16
#define PATH_BYTES     4096

enum {
    KEY_BUDGET = 1000,
    KEY_JOBS,
    KEY_SEED,
    KEY_STRATEGY,
    KEY_DEADLINE,
    KEY_MEMORY,
    KEY_SECONDS,
    KEY_DEVICE_SECONDS,
    KEY_ENOUGH,
    KEY_DRY_RUN,
    KEY_EVERY_SIZE
};

typedef struct tune {
    options o;
    uint64_t budget, seed;
    int jobs;
    uint32_t deadline_ms;
    uint64_t memory_bytes;
    sweep_limits limits;
    bool dry_run, every_size;
    const strategy *strategy;
    templates *templates;
    llm_problem *problems;
    hone_problem *plain; /* the same, as the sweep takes them */
    size_t problems_len;
    store *store;
    char path[PATH_BYTES], command[1024];
    progress progress;
    sweep_summary total;
} tune;

/* The program's own: a signal handler can reach nothing else. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    tune *t = context;
    hone_status status = HONE_OK;
    int64_t value = 0;

    switch (key) {
    case KEY_BUDGET:
        TRY(options_number("--budget", text, 0, 1000000, &value, error));
        t->budget = (uint64_t)value;
        break;
    case KEY_JOBS:
        TRY(options_number("--jobs", text, 1, 256, &value, error));
        t->jobs = (int)value;
        break;
    case KEY_SEED:
        TRY(options_number("--seed", text, 0, INT64_MAX, &value, error));
        t->seed = (uint64_t)value;
        break;
    case KEY_DEADLINE:
        TRY(options_number("--deadline", text, 1, 86400, &value, error));
        t->deadline_ms = (uint32_t)value * 1000;
        break;
    case KEY_MEMORY:
        TRY(options_number("--memory", text, 1, INT64_MAX >> 20, &value, error));
        t->memory_bytes = (uint64_t)value << 20;
        break;
    case KEY_SECONDS:
        TRY(options_number("--seconds", text, 1, INT32_MAX, &value, error));
        t->limits.seconds = (double)value;
        break;
    case KEY_DEVICE_SECONDS:
        TRY(options_number("--device-seconds", text, 1, INT32_MAX, &value, error));
        t->limits.device_seconds = (double)value;
        break;
    case KEY_ENOUGH:
        TRY(options_number("--enough", text, 1, 100, &value, error));
        t->limits.roof_percent = (double)value;
        break;
    case KEY_DRY_RUN:
        t->dry_run = true;
        break;
    case KEY_EVERY_SIZE:
        t->every_size = true;
        break;
    case KEY_STRATEGY:
        t->strategy = strategy_find(text);
        if (t->strategy == NULL) {
            status = status_set(error, HONE_UNKNOWN, "--strategy", 0,
                                "no strategy '%s'; there are model, random, exhaustive and guided", text);
        }
        break;
    default:
        status = status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "'%s' is no option of tune", text);
    }
done:
    return status;
}

static int show_progress(void *context, const sweep_progress *p)
{
    tune *t = context;
    char doing[128];

    snprintf(doing, sizeof doing, "problem %llu of %llu: %s", (unsigned long long)p->problem,
             (unsigned long long)p->problems, p->doing);
    progress_show(&t->progress, p->done, p->total, "candidates", doing);
    return interrupted != 0;
}

static void show_problem(void *context, const hone_problem *problem, bool has_winner,
                         const char *reason)
{
    tune *t = context;
    char text[512];

    if (has_winner || hone_problem_format(problem, text, sizeof text, NULL) != HONE_OK) {
        return;
    }
    progress_clear(&t->progress);
    fprintf(stderr, "hone: no winner for %s: %s\n", text, reason);
}

static void add_summary(sweep_summary *to, const sweep_summary *from)
{
    to->problems += from->problems;
    to->winners += from->winners;
    to->settled += from->settled;
    to->tried += from->tried;
    to->ok += from->ok;
    to->rejected += from->rejected;
    to->pruned += from->pruned;
    to->agreed += from->agreed;
    to->restarts += from->restarts;
    to->unfinished += from->unfinished;
    to->device_seconds += from->device_seconds;
    to->generation = from->generation > to->generation ? from->generation : to->generation;
}

/* Devices of one kind, which share the work. */
static hone_status tune_kind(tune *t, const device *d, const char *const *specs, size_t specs_len,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_summary summary = {0};

    print_note(d->note);
    if (t->store == NULL &&
        !t->dry_run) { /* not before a device is there: a wrong name leaves no file behind */
        TRY(store_open(t->path, STORE_WRITE, &t->store, error));
    }
    const sweep_options asked = {
        .problems = t->plain,
        .problems_len = t->problems_len,
        .device = d,
        .specs = specs,
        .specs_len = specs_len,
        .store = t->store,
        .templates = t->templates,
        .strategy = t->strategy,
        .engine = engine_open_device,
        .budget = t->budget,
        .seed = t->seed,
        .jobs = t->jobs,
        .deadline_ms = t->deadline_ms,
        .memory_bytes = t->memory_bytes,
        .limits = t->limits,
        .every_size = t->every_size,
        .routing = &t->o.routing,
        .command = t->command,
        .progress = show_progress,
        .ended = show_problem,
        .context = t,
    };
    if (t->dry_run) {
        return tune_forecast(&asked, t->path, t->o.json, error);
    }
    progress_begin(&t->progress);
    status = sweep_run(&asked, &summary, error);
    progress_clear(&t->progress);
    if (status == HONE_OK || status == HONE_CANCELLED) {
        add_summary(&t->total, &summary);
    }
done:
    return status;
}

/* Two proofs at once would slow each other on a GPU; emulated devices are as many as are named. */
static hone_status check_twice(device *const *list, size_t len, hone_error *error)
{
    for (size_t i = 0; i < len; i++) {
        for (size_t k = 0; k < i; k++) {
            if (!list[i]->gpu.facts.emulated && !list[k]->gpu.facts.emulated &&
                list[i]->ordinal == list[k]->ordinal) {
                return status_set(error, HONE_BAD_ARGUMENT, "--device", 0,
                                  "%s and %s are one GPU; name it once", list[k]->spec,
                                  list[i]->spec);
            }
        }
    }
    return HONE_OK;
}

/* Kinds are tuned one after the other, in the order in which they were named. */
static hone_status tune_devices(tune *t, hone_error *error)
{
    hone_status status = HONE_OK;
    device *list[OPTIONS_MAX_DEVICES] = {NULL};
    bool tuned[OPTIONS_MAX_DEVICES] = {false};

    for (size_t i = 0; i < t->o.devices_len; i++) {
        TRY(device_describe(t->o.devices[i], &list[i], error));
    }
    TRY(check_twice(list, t->o.devices_len, error));
    for (size_t i = 0; i < t->o.devices_len; i++) {
        const char *specs[OPTIONS_MAX_DEVICES];
        size_t specs_len = 0;
        for (size_t k = i; !tuned[i] && k < t->o.devices_len; k++) {
            const device_kind *a = &list[i]->kind, *b = &list[k]->kind;
            if (a->emulated == b->emulated && device_kind_match(a, b) == DEVICE_SAME) {
                specs[specs_len++] = list[k]->spec;
                tuned[k] = k > i;
            }
        }
        if (specs_len > 0) {
            TRY(tune_kind(t, list[i], specs, specs_len, error));
        }
    }
done:
    for (size_t i = 0; i < t->o.devices_len; i++) {
        device_close(list[i]);
    }
    return status;
}

static hone_status prepare(tune *t, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(options_problems(&t->o, DEFAULT_MODEL, &t->problems, &t->problems_len, error));
    t->plain = calloc(t->problems_len + 1, sizeof *t->plain);
    if (t->plain == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "tune", 0, "%zu problems", t->problems_len);
        goto done;
    }
    for (size_t i = 0; i < t->problems_len; i++) {
        t->plain[i] = t->problems[i].problem;
    }
    if (t->problems_len == 0) {
        status =
            status_set(error, HONE_BAD_ARGUMENT, t->o.ops, 0,
                       "the model has no problem of these ops; `hone models show --problems` lists "
                       "what it has");
        goto done;
    }
    TRY(templates_open(&t->templates, error));
    TRY(options_store_path(&t->o, t->path, sizeof t->path, error));
done:
    return status;
}

static void print_summary(const tune *t, FILE *to)
{
    const sweep_summary *s = &t->total;

    if (s->settled == s->problems) {
        fprintf(to, "Nothing left to do: %llu problems are tuned in %s\n",
                (unsigned long long)s->problems, t->path);
        return;
    }
    fprintf(
        to,
        "%llu of %llu problems have a winner; %llu candidates tried: %llu proved, %llu rejected, "
        "%llu pruned; generation %llu in %s\n",
        (unsigned long long)s->winners, (unsigned long long)s->problems,
        (unsigned long long)s->tried, (unsigned long long)s->ok, (unsigned long long)s->rejected,
        (unsigned long long)s->pruned, (unsigned long long)s->generation, t->path);
    if (s->agreed > 0) {
        fprintf(to,
                "%llu problems lie between two sizes that agree: their winner was tried, and "
                "nothing searched (--every-size does)\n",
                (unsigned long long)s->agreed);
    }
    if (s->unfinished > 0) {
        fprintf(to, "%llu problems were cut short by a limit; the same command goes on from here\n",
                (unsigned long long)s->unfinished);
    }
    if (s->restarts > 0) {
        fprintf(to, "candidates ended their device's process %llu times; it was replaced\n",
                (unsigned long long)s->restarts);
    }
}

/* The winners, as `hone report` shows them, or as JSON with what this run did. */
static hone_status print_result(const tune *t, hone_error *error)
{
    hone_status status = HONE_OK;
    const sweep_summary *s = &t->total;
    report r = {0};

    if (t->o.json) {
        json_t *row = json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I}", "store", t->path,
            "problems", (json_int_t)s->problems, "winners", (json_int_t)s->winners, "settled",
            (json_int_t)s->settled, "tried", (json_int_t)s->tried, "proved", (json_int_t)s->ok,
            "rejected", (json_int_t)s->rejected, "pruned", (json_int_t)s->pruned, "unfinished",
            (json_int_t)s->unfinished, "device_seconds", s->device_seconds, "restarts",
            (json_int_t)s->restarts, "generation", (json_int_t)s->generation);
        print_json(row);
        json_decref(row);
        return HONE_OK;
    }
    if (s->settled < s->problems) {
        TRY(report_read(t->store, NULL, &r, error));
        report_print_text(&r, stdout, false);
    }
    print_summary(t, stdout);
done:
    report_free(&r);
    return status;
}

static void describe_command(int argc, char **argv, char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity, "hone");

    for (int i = 0; i < argc && used < capacity; i++) {
        used += (size_t)snprintf(text + used, capacity - used, " %s", argv[i]);
    }
}

static hone_status tune_all(tune *t, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_error closing = {0};

    TRY(prepare(t, error));
    TRY(tune_devices(t, error));
    if (t->dry_run) {
        goto done;
    }
    TRY(print_result(t, error));
done:
    /* A store that cannot be closed well is a failure that nothing may hide. */
    if (store_close(t->store, &closing) != HONE_OK && status == HONE_OK) {
        status = closing.status;
        *error = closing;
    }
    return status;
}

int command_tune(int argc, char **argv)
{
    static const struct argp_option own[] = {
        {"budget", KEY_BUDGET, "N", 0, "candidates of a problem; 0 is no limit (16)", 0},
        {"jobs", KEY_JOBS, "N", 0,
         "compile workers, and host threads of a proof (one for each core)", 0},
        {"deadline", KEY_DEADLINE, "SECONDS", 0,
         "after which a candidate counts as hanging (60; 600 on an emulated device)", 0},
        {"memory", KEY_MEMORY, "MIB", 0,
         "of a device that a problem's operands and workspace may take; a candidate over it is a "
         "row (all)",
         0},
        {"seconds", KEY_SECONDS, "N", 0,
         "of wall time, after which the sweep ends with what it has; the same command goes on (no "
         "limit)",
         0},
        {"device-seconds", KEY_DEVICE_SECONDS, "N", 0,
         "the same for the time that candidates take on devices (no limit)", 0},
        {"enough", KEY_ENOUGH, "PERCENT", 0,
         "of the roof: a problem's search ends with a candidate that reaches it (no end)", 0},
        {"dry-run", KEY_DRY_RUN, NULL, 0, "say what there is to do, and do nothing", 0},
        {"every-size", KEY_EVERY_SIZE, NULL, 0,
         "search for sizes too that lie between two whose winners are the same", 0},
        {"seed", KEY_SEED, "N", 0, "of random draws and test data (1)", 0},
        {"strategy", KEY_STRATEGY, "NAME", 0, "model, random, exhaustive or guided (model)", 0},
        {0},
    };
    static const options_command command = {
        .name = "tune",
        .about = "Compile, prove and time candidates for each problem, keep the winners in the "
                 "store, and "
                 "report. Goes on where an earlier run stopped.",
        .takes = OPTIONS_MODEL | OPTIONS_PROBLEM | OPTIONS_DEVICE | OPTIONS_STORE | OPTIONS_JSON |
                 OPTIONS_ROUTING,
        .own = own,
        .parse_own = parse_own,
    };
    const struct sigaction stop = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    hone_status status = HONE_OK;
    hone_error error = {0};
    tune t = {.budget = DEFAULT_BUDGET, .seed = 1, .strategy = strategy_at(0)};

    describe_command(argc, argv, t.command, sizeof t.command);
    TRY(options_parse(&command, argc, argv, &t.o, &t, &error));
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    TRY(tune_all(&t, &error));
done:
    templates_close(t.templates);
    free(t.problems);
    free(t.plain);
    return options_end(&t.o, status, &error, t.total.winners == t.total.problems);
}
