/* command_emu.c - `hone emu run|profile|check`: any kernel, launched as described on an emulated
 * GPU. */
#include "cli/emu.h"
#include "cli/options.h"
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_KERNEL = 1000,
    KEY_GRID,
    KEY_BLOCK,
    KEY_CLUSTER,
    KEY_SHARED,
    KEY_ARG,
    KEY_BUFFER,
    KEY_DUMP,
    KEY_OUT,
    KEY_SAMPLE,
    KEY_SEED,
    KEY_THREADS,
    KEY_SCHEDULES,
    KEY_ARITHMETIC,
    KEY_CHECKS,
    KEY_TIMING,
    KEY_ROWS,
    CHECK_SCHEDULES = 8,
    ROWS = 20,
};

static const struct argp_option own_options[] = {
    {"kernel", KEY_KERNEL, "NAME", 0,
     "the kernel; of a template k<float, 4>; default: the only one", 0},
    {"grid", KEY_GRID, "X,Y,Z", 0, "CTAs (1)", 0},
    {"block", KEY_BLOCK, "X,Y,Z", 0, "threads of a CTA (1)", 0},
    {"cluster", KEY_CLUSTER, "X,Y,Z", 0, "CTAs of a cluster (1)", 0},
    {"shared", KEY_SHARED, "BYTES", 0, "dynamic shared memory (0)", 0},
    {"arg", KEY_ARG, "SPEC", 0,
     "the next argument: i32:5 (i8 to u64), f32:1.5, f64:1, null, hex:DIGITS, "
     "buf:BYTES[:zero|unwritten|random:SEED|floats:SEED|iota|fill:WORD|file:PATH][:NAME], "
     "tmap:BUFFER:TYPE:dims=64x32:box=64x8[:strides=..][:steps=..][:swizzle=128][:interleave=16]"
     "[:l2=128][:oob=nan]",
     0},
    {"buffer", KEY_BUFFER, "SPEC", 0, "memory that is no argument, for tensor maps: buf:...:NAME",
     0},
    {"include", 'I', "DIR", 0, "look for headers here; repeatable", 0},
    {"dump", KEY_DUMP, "NAME[:TYPE][:COUNT]", 0, "print a buffer after the launch (8 of f32)", 0},
    {"out", KEY_OUT, "NAME=PATH", 0, "write a buffer to a file", 0},
    {"sample", KEY_SAMPLE, "N", 0, "run N CTAs drawn at random, scale counters to the grid", 0},
    {"seed", KEY_SEED, "N", 0, "order of the warps, and of the sample (0)", 0},
    {"threads", KEY_THREADS, "N", 0, "host threads (1)", 0},
    {"schedules", KEY_SCHEDULES, "N", 0, "seeds that check tries, each with both timings (8)", 0},
    {"arithmetic", KEY_ARITHMETIC, "MODE", 0, "of matrix products: exact, fast, hw (hw)", 0},
    {"checks", KEY_CHECKS, "LIST", 0,
     "uninitialised, barriers, async, proxy, races, global-races, strict; memory, all (but for "
     "strict), none (all)",
     0},
    {"timing", KEY_TIMING, "WHEN", 0, "asynchronous copies happen at issue or latest (issue)", 0},
    {"rows", KEY_ROWS, "N", 0, "lines that profile shows, 0: all (20)", 0},
    {0},
};

static const launch_word arithmetics[] = {
    {"exact", HONE_EMU_EXACT}, {"fast", HONE_EMU_FAST}, {"hw", HONE_EMU_HW}};
static const launch_word timings[] = {{"issue", HONE_EMU_AT_ISSUE}, {"latest", HONE_EMU_LATEST}};
static const launch_word checks[] = {
    {"uninitialised", HONE_EMU_CHECK_UNINITIALISED},
    {"barriers", HONE_EMU_CHECK_BARRIERS},
    {"async", HONE_EMU_CHECK_ASYNC},
    {"proxy", HONE_EMU_CHECK_PROXY},
    {"races", HONE_EMU_CHECK_RACES},
    {"global-races", HONE_EMU_CHECK_GLOBAL_RACES},
    {"strict", HONE_EMU_CHECK_STRICT},
    {"memory", HONE_EMU_CHECK_MEMORY},
    {"all", HONE_EMU_CHECK_ALL},
    {"none", 0},
};

/* The command's own options, and which of the three it is. */
typedef struct emu_command {
    emu_options o;
    const char *verb;
} emu_command;

void emu_options_free(emu_options *o)
{
    for (size_t n = 0; n < o->memory_len; n++) {
        launch_argument_free(o->memory[n]);
        free(o->memory[n]);
    }
    *o = (emu_options){.file = NULL};
}

static hone_status add_memory(emu_options *o, const char *text, bool is_parameter,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    launch_argument *a = NULL;

    if (o->memory_len == LAUNCH_ARGUMENTS) {
        return status_set(error, HONE_LIMIT, "--arg", 0, "more than %d", LAUNCH_ARGUMENTS);
    }
    a = calloc(1, sizeof *a);
    if (a == NULL) {
        return status_set(error, HONE_NO_MEMORY, "--arg", 0, "an argument");
    }
    status = launch_text_argument(text, o->memory_len, a, error);
    if (status == HONE_OK && !is_parameter && a->kind != LAUNCH_BUFFER) {
        status = status_set(error, HONE_BAD_TEXT, "--buffer", 0, "'%.80s' is no buf:...", text);
    }
    for (size_t n = 0; status == HONE_OK && a->kind == LAUNCH_BUFFER && n < o->memory_len; n++) {
        if (o->memory[n]->kind == LAUNCH_BUFFER && strcmp(o->memory[n]->name, a->name) == 0) {
            status =
                status_set(error, HONE_BAD_TEXT, NULL, 0, "two buffers are named '%s'", a->name);
        }
    }
    if (status != HONE_OK) {
        launch_argument_free(a);
        free(a);
        return status;
    }
    a->is_parameter = is_parameter;
    o->memory[o->memory_len++] = a;
    return HONE_OK;
}

static hone_status add_listed(emu_options *o, int key, const char *text, hone_error *error)
{
    size_t *len = key == KEY_DUMP  ? &o->dumps_len
                  : key == KEY_OUT ? &o->outputs_len
                                   : &o->includes_len;
    hone_status status = HONE_OK;

    if (*len == EMU_LIST) {
        return status_set(error, HONE_LIMIT, text, 0, "more than %d of that option", EMU_LIST);
    }
    if (key == KEY_DUMP) {
        TRY(launch_text_dump(text, &o->dumps[*len], error));
    } else if (key == KEY_OUT) {
        TRY(launch_text_output(text, &o->outputs[*len], error));
    } else {
        o->includes[*len] = text;
    }
    (*len)++;
done:
    return status;
}

/* Whole numbers: where they go, and their bounds. */
static hone_status set_number(emu_options *o, int key, const char *text, hone_error *error)
{
    static const struct {
        int key;
        const char *name;
        int64_t least, most;
    } bounds[] = {

        {KEY_SAMPLE, "--sample", 1, INT32_MAX}, {KEY_SEED, "--seed", 0, INT64_MAX},
        {KEY_THREADS, "--threads", 1, 64},      {KEY_SCHEDULES, "--schedules", 1, EMU_SCHEDULES},
        {KEY_ROWS, "--rows", 0, 1 << 20},
    };
    size_t n = 0;
    int64_t value = 0;

    while (n + 1 < ARRAY_LEN(bounds) && bounds[n].key != key) {
        n++;
    }
    hone_status status =
        options_number(bounds[n].name, text, bounds[n].least, bounds[n].most, &value, error);
    if (status != HONE_OK) {
        return status;
    }
    o->sample = key == KEY_SAMPLE ? (uint64_t)value : o->sample;
    o->seed = key == KEY_SEED ? (uint64_t)value : o->seed;
    o->threads = key == KEY_THREADS ? (int)value : o->threads;
    o->schedules = key == KEY_SCHEDULES ? (int)value : o->schedules;
    o->rows = key == KEY_ROWS ? (int)value : o->rows;
    return HONE_OK;
}

static hone_status take_argument(emu_command *c, char *text, hone_error *error)
{
    if (c->verb == NULL) {
        if (strcmp(text, "run") != 0 && strcmp(text, "profile") != 0 &&
            strcmp(text, "check") != 0) {
            return status_set(error, HONE_BAD_ARGUMENT, text, 0, "run, profile or check");
        }
        c->verb = text;
        return HONE_OK;
    }
    if (c->o.file != NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, text, 0, "one file is enough");
    }
    c->o.file = text;
    return HONE_OK;
}

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    emu_command *c = context;
    emu_options *o = &c->o;
    uint64_t bytes = 0;
    hone_status status = HONE_OK;

    switch (key) {
    case KEY_KERNEL:
        o->kernel = text;
        return HONE_OK;
    case KEY_GRID:
        return launch_text_dims("--grid", text, o->grid, error);
    case KEY_BLOCK:
        return launch_text_dims("--block", text, o->block, error);
    case KEY_CLUSTER:
        return launch_text_dims("--cluster", text, o->cluster, error);
    case KEY_SHARED:
        status = strcmp(text, "0") == 0
                     ? HONE_OK
                     : launch_text_bytes("--shared", text, 1 << 20, &bytes, error);
        o->shared_bytes = (uint32_t)bytes;
        return status;
    case KEY_ARG:
    case KEY_BUFFER:
        return add_memory(o, text, key == KEY_ARG, error);
    case KEY_DUMP:
    case KEY_OUT:
    case 'I':
        return add_listed(o, key, text, error);
    case KEY_ARITHMETIC:
        return launch_text_word("--arithmetic", text, arithmetics, ARRAY_LEN(arithmetics),
                                &o->arithmetic, error);
    case KEY_TIMING:
        return launch_text_word("--timing", text, timings, ARRAY_LEN(timings), &o->timing, error);
    case KEY_CHECKS:
        return launch_text_words("--checks", text, checks, ARRAY_LEN(checks), &o->checks, error);
    case ARGP_KEY_ARG:
        return take_argument(c, text, error);
    default:
        return set_number(o, key, text, error);
    }
}

/* run and profile: one launch. */
static hone_status run_once(emu_session *s, const emu_code *c, bool profile, json_t *root,
                            bool *good, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_emu_api *emu = s->device->driver->emu;

    TRY(emu->set_profile(s->device->ordinal, profile, error));
    TRY(emu_session_launch(s, s->o->seed, s->o->timing < 0 ? HONE_EMU_AT_ISSUE : s->o->timing, good,
                           error));
    if (!*good) {
        emu_report_fault(s, c, root);
        goto done;
    }
    TRY(emu_report_launch(s, c, root, error));
    if (profile) {
        TRY(emu_report_profile(s, c, root, error));
    }
    TRY(emu_report_outputs(s, root, error));
done:
    return status;
}

static hone_status work(const emu_command *c, device *d, json_t *root, bool *good,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    emu_code code = {.text = NULL};
    emu_session s = {.device = NULL};

    TRY(emu_code_open(&c->o, d->gpu.facts.arch, &code, error));
    TRY(emu_session_open(&c->o, d, &code, &s, error));
    if (strcmp(c->verb, "check") == 0) {
        TRY(emu_check(&s, &code, root, good, error));
    } else {
        TRY(run_once(&s, &code, strcmp(c->verb, "profile") == 0, root, good, error));
    }
done:
    emu_session_close(&s);
    emu_code_close(&code);
    return status;
}

static hone_status open_device(const options *common, device **out, hone_error *error)
{
    const char *spec = strcmp(common->devices[0], "auto") == 0 ? "emu:h20" : common->devices[0];

    if (common->devices_len != 1 || strncmp(spec, "emu:", 4) != 0) {
        return status_set(error, HONE_BAD_ARGUMENT, "--device", 0,
                          "hone emu takes one emulated GPU, such as emu:h20");
    }
    return device_open(spec, out, error);
}

static hone_status check_options(const emu_command *c, hone_error *error)
{
    if (c->verb == NULL || c->o.file == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, "hone emu", 0,
                          "run, profile or check, and a .cu or .ptx file are needed; see --help");
    }
    for (int d = 0; d < 3; d++) {
        if (c->o.grid[d] % c->o.cluster[d] != 0) {
            return status_set(error, HONE_BAD_ARGUMENT, "--cluster", 0,
                              "the grid's %u is no multiple of the cluster's %u", c->o.grid[d],
                              c->o.cluster[d]);
        }
    }
    return HONE_OK;
}

int command_emu(int argc, char **argv)
{
    static const options_command command = {
        .name = "emu",
        .arguments = "run|profile|check FILE.cu|FILE.ptx",
        .about = "Launch a kernel on an emulated GPU. run prints what it wrote, profile what it "
                 "cost and which lines cost most, check the first error that any order of warps "
                 "or timing of copies shows: memory, races, barriers, asynchronous copies. Exit: "
                 "0, 1 on an error of the kernel, 2 on wrong usage, 3 where something lacks.",
        .takes = OPTIONS_DEVICE | OPTIONS_JSON,
        .own = own_options,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options common = {0};
    emu_command c = {.o = {.grid = {1, 1, 1},
                           .block = {1, 1, 1},
                           .cluster = {1, 1, 1},
                           .arithmetic = HONE_EMU_HW,
                           .checks = HONE_EMU_CHECK_ALL,
                           .timing = -1,
                           .threads = 1,
                           .schedules = CHECK_SCHEDULES,
                           .rows = ROWS}};
    device *d = NULL;
    json_t *root = NULL;
    bool good = true;

    TRY(options_parse(&command, argc, argv, &common, &c, &error));
    TRY(check_options(&c, &error));
    TRY(open_device(&common, &d, &error));
    root = common.json ? json_object() : NULL;
    TRY(work(&c, d, root, &good, &error));
    print_json(root);
done:
    json_decref(root);
    device_close(d);
    emu_options_free(&c.o);
    return options_end(&common, status, &error, good);
}
