/* options.c - the options that commands share. */
#include "cli/options.h"

#include "cache/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MODEL = 256,
    KEY_TP,
    KEY_EP,
    KEY_OPS,
    KEY_M,
    KEY_ALL_MODELS,
    KEY_PROBLEM,
    KEY_FROM,
    KEY_FOLD,
    KEY_DEVICE,
    KEY_STORE,
    KEY_ROUTING,
    KEY_JSON,
};

static const struct {
    unsigned takes;
    struct argp_option option;
} commons[] = {
    {OPTIONS_MODEL,
     {"model", KEY_MODEL, "NAME", 0, "a model of `hone models`, or a config.json", 0}},
    {OPTIONS_MODEL, {"all-models", KEY_ALL_MODELS, NULL, 0, "every model of `hone models`", 0}},
    {OPTIONS_MODEL, {"tp", KEY_TP, "N", 0, "tensor-parallel degree (1)", 0}},
    {OPTIONS_MODEL, {"ep", KEY_EP, "N", 0, "expert-parallel degree (1)", 0}},
    {OPTIONS_MODEL, {"ops", KEY_OPS, "LIST", 0, "ops by commas (all)", 0}},
    {OPTIONS_MODEL,
     {"m", KEY_M, "LIST", 0, "token counts by commas, or all (1,16,64,256,4096)", 0}},
    {OPTIONS_PROBLEM,
     {"problem", KEY_PROBLEM, "TEXT", 0, "fp8_gemm:m=16,n=7168,k=2048,...; repeatable", 0}},
    {OPTIONS_PROBLEM,
     {"from", KEY_FROM, "FILE", 0,
      "a file of problems, a line each, with how often each was asked for before it if that is "
      "known; those asked for most come first",
      0}},
    {OPTIONS_PROBLEM,
     {"fold", KEY_FOLD, "MODE", 0,
      "products with ue8m0 scales of 32 as they are when folded: k, block or n "
      "(docs/kernels/fp8_gemm_fold.md)",
      0}},
    {OPTIONS_DEVICE,
     {"device", KEY_DEVICE, "SPEC", 0, "auto, cuda:0, emu:h20, ... (auto); repeatable", 0}},
    {OPTIONS_ROUTING,
     {"routing", KEY_ROUTING, "HOW", 0,
      "how tokens spread over the experts of moe_gemm while it is timed: balanced, uniform, zipf, "
      "zipf:EXPONENT, one, or a file with a histogram, a number for each expert (balanced)",
      0}},
    {OPTIONS_STORE,
     {"store", KEY_STORE, "FILE", 0, "the store ($HONE_STORE, else $XDG_DATA_HOME/hone/hone.db)",
      0}},
    {OPTIONS_JSON, {"json", KEY_JSON, NULL, 0, "print JSON", 0}},
};

typedef struct parsing {
    const options_command *command;
    options *o;
    void *context;
    hone_status status;
    hone_error error;
} parsing;

hone_status options_number(const char *what, const char *text, int64_t least, int64_t most,
                           int64_t *out, hone_error *error)
{
    char *end = NULL;
    long long value = strtoll(text, &end, 10);

    if (end == text || *end != '\0' || value < least || value > most) {
        return status_set(error, HONE_BAD_TEXT, what, 0,
                          "'%s' is no whole number from %lld to %lld", text, (long long)least,
                          (long long)most);
    }
    *out = value;
    return HONE_OK;
}

static hone_status parse_m(options *o, const char *text, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t len = 1, filled = 0;
    int64_t *list = NULL;
    char *copy = NULL, *rest = NULL;

    if (strcmp(text, "all") == 0) {
        o->m_len = shapes_m_all(&o->m);
        return HONE_OK;
    }
    for (const char *at = text; *at != '\0'; at++) {
        len += *at == ',';
    }
    list = calloc(len, sizeof *list);
    copy = strdup(text);
    if (list == NULL || copy == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "--m", 0, "a list of %zu", len);
        goto done;
    }
    rest = copy;
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        TRY(options_number("--m", item, 1, INT64_C(1) << 40, &list[filled], error));
        filled++;
    }
    free(o->m_given);
    o->m = o->m_given = list;
    o->m_len = filled;
    list = NULL;
done:
    free(list);
    free(copy);
    return status;
}

static hone_status parse_degree(const char *what, const char *text, int *out, hone_error *error)
{
    int64_t value = 0;
    hone_status status = options_number(what, text, 1, 4096, &value, error);

    *out = status == HONE_OK ? (int)value : *out;
    return status;
}

static hone_status add_problem(options *o, const char *text, hone_error *error)
{
    const char **grown = realloc(o->problems, (o->problems_len + 1) * sizeof *grown);

    if (grown == NULL) {
        return status_set(error, HONE_NO_MEMORY, "--problem", 0, "a list of problems");
    }
    o->problems = grown;
    o->problems[o->problems_len++] = text;
    return HONE_OK;
}

static hone_status add_device(options *o, const char *text, hone_error *error)
{
    if (o->devices_len == OPTIONS_MAX_DEVICES) {
        return status_set(error, HONE_LIMIT, "--device", 0, "over %d devices", OPTIONS_MAX_DEVICES);
    }
    o->devices[o->devices_len++] = text;
    return HONE_OK;
}

static hone_status parse_fold(options *o, const char *text, hone_error *error)
{
    static const char *const modes[] = {
        [HONE_FOLD_K] = "k", [HONE_FOLD_BLOCK] = "block", [HONE_FOLD_N] = "n"};

    for (size_t i = 1; i < ARRAY_LEN(modes); i++) {
        if (strcmp(modes[i], text) == 0) {
            o->fold = (hone_fold_mode)i;
            return HONE_OK;
        }
    }
    return status_set(error, HONE_UNKNOWN, "--fold", 0,
                      "no way '%s' to fold; there are k (both operands to 128 of K), block (and B "
                      "to 128x128) and n (B alone, to 128x32)",
                      text);
}

static hone_status parse_common(options *o, int key, char *text, hone_error *error)
{
    switch (key) {
    case KEY_MODEL:
        o->model = text;
        return HONE_OK;
    case KEY_OPS:
        o->ops = text;
        return HONE_OK;
    case KEY_STORE:
        o->store = text;
        return HONE_OK;
    case KEY_JSON:
        o->json = true;
        return HONE_OK;
    case KEY_TP:
        return parse_degree("--tp", text, &o->tp, error);
    case KEY_EP:
        return parse_degree("--ep", text, &o->ep, error);
    case KEY_M:
        return parse_m(o, text, error);
    case KEY_ALL_MODELS:
        o->all_models = true;
        return HONE_OK;
    case KEY_FROM:
        o->from = text;
        return HONE_OK;
    case KEY_PROBLEM:
        return add_problem(o, text, error);
    case KEY_FOLD:
        return parse_fold(o, text, error);
    case KEY_ROUTING:
        routing_free(&o->routing);
        return routing_parse(text, &o->routing, error);
    default:
        return add_device(o, text, error);
    }
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
    parsing *p = state->input;
    bool common = key >= KEY_MODEL && key <= KEY_JSON;
    bool own = (key > 0 && key < ARGP_KEY_END && !common) || key == ARGP_KEY_ARG;

    if (!common && (!own || p->command->parse_own == NULL)) {
        return ARGP_ERR_UNKNOWN;
    }
    p->status = common ? parse_common(p->o, key, text, &p->error)
                       : p->command->parse_own(key, text, p->context, &p->error);
    if (p->status != HONE_OK) {
        argp_error(state, "%s%s%s", p->error.source, p->error.source[0] != '\0' ? ": " : "",
                   p->error.message);
    }
    return 0;
}

hone_status options_parse(const options_command *command, int argc, char **argv, options *out,
                          void *context, hone_error *error)
{
    enum { MOST = 64 };
    struct argp_option list[MOST + 1] = {0};
    char name[64];
    size_t len = 0;
    options o = {.tp = 1, .ep = 1, .routing = *routing_balanced()};
    parsing p = {.command = command, .o = &o, .context = context};
    const struct argp argp = {list, parse_key, command->arguments, command->about, NULL,
                              NULL, NULL};

    for (const struct argp_option *own = command->own;
         own != NULL && own->name != NULL && len < MOST; own++) {
        list[len++] = *own;
    }
    for (size_t i = 0; i < ARRAY_LEN(commons) && len < MOST; i++) {
        if ((command->takes & commons[i].takes) != 0) {
            list[len++] = commons[i].option;
        }
    }
    o.m_len = shapes_m_default(&o.m);
    snprintf(name, sizeof name, "hone %s", command->name);
    argv[0] = name;
    argp_err_exit_status = CLI_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &p) != 0) {
        options_free(&o);
        return status_set(error, HONE_BAD_ARGUMENT, name, 0, "wrong usage; see --help");
    }
    if (o.devices_len == 0) {
        o.devices[o.devices_len++] = "auto";
    }
    *out = o;
    return HONE_OK;
}

void options_free(options *o)
{
    free(o->m_given);
    free(o->problems);
    routing_free(&o->routing);
    *o = (options){0};
}

hone_status options_store_path(const options *o, char *path, size_t capacity, hone_error *error)
{
    if (o->store == NULL) {
        return store_default_path(path, capacity, error);
    }
    if ((size_t)snprintf(path, capacity, "%s", o->store) >= capacity) {
        return status_set(error, HONE_LIMIT, "--store", 0, "a path over %zu bytes", capacity - 1);
    }
    return HONE_OK;
}

/* Print an error as one line on stderr and give its exit code. */
static int fail(const hone_error *error)
{
    static const struct {
        hone_status status;
        int code;
    } codes[] = {
        {HONE_NO_DEVICE, CLI_ENVIRONMENT},  {HONE_ENVIRONMENT, CLI_ENVIRONMENT},
        {HONE_DRIVER, CLI_ENVIRONMENT},     {HONE_WORKER, CLI_ENVIRONMENT},
        {HONE_NO_MEMORY, CLI_ENVIRONMENT},  {HONE_STORE_IO, CLI_ENVIRONMENT},
        {HONE_STORE_BUSY, CLI_ENVIRONMENT}, {HONE_IO, CLI_ENVIRONMENT},
        {HONE_COMPILE, CLI_FAILED},         {HONE_WRONG, CLI_FAILED},
        {HONE_NOT_FOUND, CLI_FAILED},       {HONE_STORE_DAMAGED, CLI_FAILED},
        {HONE_CANCELLED, CLI_FAILED},
    };

    fputs("hone: ", stderr);
    if (error->source[0] != '\0') {
        fprintf(stderr, "%s:", error->source);
        if (error->line > 0) {
            fprintf(stderr, "%d:", error->line);
        }
        fputc(' ', stderr);
    }
    fprintf(stderr, "%s\n",
            error->message[0] != '\0' ? error->message : hone_status_text(error->status));
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].status == error->status) {
            return codes[i].code;
        }
    }
    return CLI_USAGE;
}

int options_end(options *o, hone_status status, const hone_error *error, bool good)
{
    options_free(o);
    if (status != HONE_OK) {
        return fail(error);
    }
    return good ? CLI_DONE : CLI_FAILED;
}
