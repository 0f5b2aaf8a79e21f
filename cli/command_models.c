/* command_models.c - `hone models`: which architectures there are, and what one of them asks of a
 * rank. */
#include "cli/options.h"
#include "cli/print.h"

#include "core/numfmt.h"
#include "models/llm.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_PROBLEMS = 1000, KEY_BLOCK };

/* The command's own arguments: `show NAME`, --problems, --block. */
typedef struct models_request {
    bool show, problems;
    const char *name; /* NULL: not given */
    int block;        /* 0: as the model is stored */
} models_request;

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    models_request *r = context;
    int64_t block = 0;
    hone_status status = HONE_OK;

    switch (key) {
    case KEY_PROBLEMS:
        r->problems = true;
        return HONE_OK;
    case KEY_BLOCK:
        status = options_number("--block", text, 1, 4096, &block, error);
        r->block = (int)block;
        return status;
    default:
        break;
    }
    if (!r->show && strcmp(text, "show") == 0) {
        r->show = true;
    } else if (r->show && r->name == NULL) {
        r->name = text;
    } else {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "'%s' is not understood: say `hone models` or `hone models show NAME`",
                          text);
    }
    return HONE_OK;
}

/* "e4m3, ue8m0 32x32", or the dtype alone. */
static void format_store(int32_t dtype, int32_t scale, int32_t block_n, int32_t block_k,
                         char text[48])
{
    const char *name = numfmt_dtype_name((hone_dtype)dtype);

    if (block_n == 0) {
        snprintf(text, 48, "%s", name);
        return;
    }
    snprintf(text, 48, "%s, %s %dx%d", name, numfmt_dtype_name((hone_dtype)scale), (int)block_n,
             (int)block_k);
}

static void format_quant(const llm_quant *q, char text[48])
{
    format_store(q->dtype, q->scale, q->block_n, q->block_k, text);
}

static json_t *model_json(const llm *l, double billions)
{
    char weights[48], routed[48];

    format_quant(&l->weights, weights);
    format_quant(&l->routed, routed);
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:f}", "model", llm_name(l),
                     "attention", llm_attention_name(l->attention), "layers", (json_int_t)l->layers,
                     "hidden", (json_int_t)l->hidden, "vocab", (json_int_t)l->vocab, "experts",
                     (json_int_t)l->experts, "topk", (json_int_t)l->topk, "weights", weights,
                     "routed", l->experts > 0 ? routed : "none", "billion_parameters", billions);
}

static void print_model(const llm *l, double billions)
{
    char weights[48], routed[48];

    format_quant(&l->weights, weights);
    format_quant(&l->routed, routed);
    printf("%-22s %8.2f B  %3lld layers  %-10s  weights %s", llm_name(l), billions,
           (long long)l->layers, llm_attention_name(l->attention), weights);
    if (l->experts > 0) {
        printf("; %lld experts, top %lld, %s", (long long)l->experts, (long long)l->topk, routed);
    }
    putchar('\n');
}

/* One line, or one element of `rows` when that is given. */
static hone_status show_model(const llm *l, json_t *rows, hone_error *error)
{
    double billions = 0;
    hone_status status = llm_parameters(l, &billions, error);

    if (status != HONE_OK) {
        return status;
    }
    if (rows == NULL) {
        print_model(l, billions);
    } else {
        json_array_append_new(rows, model_json(l, billions));
    }
    return HONE_OK;
}

static hone_status list_models(json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    const char *const *names = NULL;
    size_t len = llm_list(&names);
    llm *l = NULL;

    for (size_t i = 0; i < len; i++) {
        TRY(llm_open(names[i], &l, error));
        TRY(show_model(l, rows, error));
        llm_close(l);
        l = NULL;
    }
done:
    llm_close(l);
    return status;
}

static void print_shape(const shape *s)
{
    char store[48], size[64];

    format_store(s->dtype, s->scale, s->block_n, s->block_k, store);
    if (s->record.format != 0) {
        snprintf(size, sizeof size, "row of %lld", (long long)s->k);
    } else {
        snprintf(size, sizeof size, "%lld x %lld", (long long)s->n, (long long)s->k);
    }
    printf("  %-22s %-4s %-16s", s->use, s->split, size);
    if (s->experts > 0) {
        printf(" %4lld experts", (long long)s->experts);
    } else if (s->batch > 1) {
        printf(" %4lld batch  ", (long long)s->batch);
    } else {
        printf("             ");
    }
    printf("  %-20s x%d\n", store, (int)s->layers);
    if (s->refused[0] != '\0') {
        printf("    refused: %s\n", s->refused);
    }
}

static json_t *shape_json(const shape *s)
{
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:[i, i], s:i, s:s?}", "use", s->use, "split",
        s->split, "n", (json_int_t)s->n, "k", (json_int_t)s->k, "batch", (json_int_t)s->batch,
        "experts", (json_int_t)s->experts, "dtype", numfmt_dtype_name((hone_dtype)s->dtype),
        "scale", numfmt_dtype_name((hone_dtype)s->scale), "block", (int)s->block_n, (int)s->block_k,
        "layers", (int)s->layers, "refused", s->refused[0] != '\0' ? s->refused : NULL);
}

static hone_status show_shapes(const llm *l, const options *o, json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    shape *shapes = NULL;
    size_t len = 0;

    TRY(llm_shapes(l, o->tp, o->ep, &shapes, &len, error));
    for (size_t i = 0; i < len; i++) {
        if (rows == NULL) {
            print_shape(&shapes[i]);
        } else {
            json_array_append_new(rows, shape_json(&shapes[i]));
        }
    }
done:
    free(shapes);
    return status;
}

static hone_status show_problems(const llm *l, const options *o, json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    llm_problem *problems = NULL;
    size_t len = 0;
    char text[512];

    TRY(llm_problems(l, o->tp, o->ep, o->m, o->m_len, o->ops, &problems, &len, error));
    for (size_t i = 0; i < len; i++) {
        TRY(hone_problem_format(&problems[i].problem, text, sizeof text, error));
        if (rows == NULL) {
            printf("  %-22s x%-4d %s\n", problems[i].use, (int)problems[i].launches, text);
        } else {
            json_array_append_new(rows,
                                  json_pack("{s:s, s:i, s:s}", "use", problems[i].use, "launches",
                                            (int)problems[i].launches, "problem", text));
        }
    }
done:
    free(problems);
    return status;
}

/* The model as it is stored, or re-blocked. */
static hone_status open_asked(const models_request *r, const options *o, llm **out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    llm *stored = NULL;
    const char *name = r->name != NULL ? r->name : o->model;

    if (name == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "no model is named; `hone models` lists them");
    }
    TRY(llm_open(name, &stored, error));
    if (r->block > 0) {
        TRY(llm_reblock(stored, r->block, out, error));
    } else {
        *out = stored;
        stored = NULL;
    }
done:
    llm_close(stored);
    return status;
}

/* `models` takes one row, and gets its shapes and problems. */
static hone_status show(const models_request *r, const options *o, json_t *models,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    llm *l = NULL;
    json_t *shapes = NULL, *problems = NULL;

    TRY(open_asked(r, o, &l, error));
    TRY(show_model(l, models, error));
    if (models != NULL) {
        json_t *row = json_array_get(models, 0);

        shapes = json_array();
        problems = json_array();
        json_object_set_new(row, "tp", json_integer(o->tp));
        json_object_set_new(row, "ep", json_integer(o->ep));
        json_object_set_new(row, "shapes", shapes);
        if (r->problems) {
            json_object_set_new(row, "problems", problems);
        } else {
            json_decref(problems);
        }
    }
    TRY(show_shapes(l, o, shapes, error));
    if (r->problems) {
        TRY(show_problems(l, o, problems, error));
    }
done:
    llm_close(l);
    return status;
}

int command_models(int argc, char **argv)
{
    static const struct argp_option own[] = {
        {"problems", KEY_PROBLEMS, NULL, 0, "show: the problems that its layers pose, too", 0},
        {"block", KEY_BLOCK, "N", 0, "show: as if its weights were e4m3 in blocks of N x N", 0},
        {0},
    };
    static const options_command command = {
        .name = "models",
        .arguments = "\nshow NAME",
        .about = "List the models, or show the matrices of one rank of a model at --tp and --ep. "
                 "NAME may be the path of a Hugging Face config.json.",
        .takes = OPTIONS_MODEL | OPTIONS_JSON,
        .own = own,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options o = {0};
    models_request request = {0};
    json_t *models = NULL;

    TRY(options_parse(&command, argc, argv, &o, &request, &error));
    models = o.json ? json_array() : NULL;
    request.show = request.show || o.model != NULL;
    if (request.show) {
        TRY(show(&request, &o, models, &error));
    } else {
        TRY(list_models(models, &error));
    }
    print_json(request.show ? json_array_get(models, 0) : models);
done:
    json_decref(models);
    return options_end(&o, status, &error, true);
}
