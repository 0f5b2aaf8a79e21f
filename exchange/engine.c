/* engine.c - which winners an engine has a file for, its name, and the files. */
#include "exchange/engine.h"
#include "exchange/exchange_parts.h"

#include "core/digest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum part { PART_DENSE, PART_GATE_UP, PART_DOWN, PART_UNTOLD } part;

typedef struct entry {
    char file[384];
    int64_t bucket;
    engine_tile tile;
    hone_problem problem;
    device_kind kind;
    char problem_text[512], template_name[128], config[512], digest[65];
    double time_ns;
    int32_t timer;
} entry;

typedef struct gathering {
    const exchange_choice *choice;
    entry *list;
    size_t len, capacity;
    bool failed;
} gathering;

static bool is_chosen(const exchange_choice *c, const store_row *row, const hone_problem *problem)
{
    if (c->device != NULL && (device_kind_match(row->kind, c->device) != DEVICE_SAME ||
                              row->kind->emulated != c->device->emulated)) {
        return false;
    }
    for (size_t i = 0; i < c->problems_len; i++) {
        if (memcmp(&c->problems[i], problem, sizeof *problem) == 0) {
            return true;
        }
    }
    return c->problems_len == 0;
}

static int gather_winner(void *context, const store_winner *winner)
{
    gathering *g = context;
    const store_row *row = &winner->row;
    hone_problem problem;

    if (hone_problem_parse(row->problem_text, &problem, NULL) != HONE_OK ||
        !is_chosen(g->choice, row, &problem)) {
        return 0;
    }
    if (g->len == g->capacity) {
        const size_t wanted = g->capacity == 0 ? 16 : 2 * g->capacity;
        entry *grown = realloc(g->list, wanted * sizeof *grown);
        g->failed = grown == NULL;
        if (g->failed) {
            return 1;
        }
        g->list = grown;
        g->capacity = wanted;
    }
    entry *e = &g->list[g->len++];
    *e = (entry){.problem = problem,
                 .kind = *row->kind,
                 .time_ns = row->result.time_ns,
                 .timer = row->result.timer};
    snprintf(e->problem_text, sizeof e->problem_text, "%s", row->problem_text);
    snprintf(e->template_name, sizeof e->template_name, "%s", row->template_name);
    snprintf(e->config, sizeof e->config, "%s", row->config);
    digest_hex(row->template_digest, sizeof row->template_digest, e->digest);
    return 0;
}

static const hone_recipe *recipe_of(const hone_problem *p)
{
    return p->op == HONE_OP_FP8_GEMM ? &p->as.fp8_gemm.recipe : &p->as.moe_gemm.recipe;
}

/* Products whose weights have a scale for each block, e4m3 on both sides. */
static bool is_block_fp8(const hone_problem *p)
{
    if ((p->op != HONE_OP_FP8_GEMM && p->op != HONE_OP_MOE_GEMM) ||
        (p->op == HONE_OP_FP8_GEMM && (p->as.fp8_gemm.batch != 1 || p->as.fp8_gemm.m < 1)) ||
        (p->op == HONE_OP_MOE_GEMM &&
         (p->as.moe_gemm.group_layout == HONE_GROUPS_K || p->as.moe_gemm.tokens < 1))) {
        return false;
    }
    const hone_recipe *r = recipe_of(p);
    return r->a.element == HONE_DTYPE_E4M3 && r->b.element == HONE_DTYPE_E4M3 &&
           r->a.gran_mn == 1 && r->b.gran_mn > 1 && r->a.gran_k == r->b.gran_k;
}

/* A grouped product with an activation is gate and up; one without is what its partner among the
 * winners makes it: down reads half the columns of gate and up, and writes its k. */
static part part_of(const gathering *g, const entry *e)
{
    const hone_moe_gemm *p = &e->problem.as.moe_gemm;
    part made = PART_UNTOLD;

    if (e->problem.op == HONE_OP_FP8_GEMM) {
        return PART_DENSE;
    }
    if (p->activation != HONE_ACTIVATION_PLAIN) {
        return PART_GATE_UP;
    }
    for (size_t i = 0; i < g->len; i++) {
        const hone_moe_gemm *q = &g->list[i].problem.as.moe_gemm;
        if (g->list[i].problem.op != HONE_OP_MOE_GEMM || q->experts != p->experts) {
            continue;
        }
        const bool down = p->n == q->k && 2 * p->k == q->n;
        const bool gate_up = q->n == p->k && 2 * q->k == p->n;
        if (down || gate_up) {
            const part said = down ? PART_DOWN : PART_GATE_UP;
            if (made != PART_UNTOLD && made != said) {
                return PART_UNTOLD;
            }
            made = said;
        }
    }
    return made;
}

/* torch's name of a device with _ for spaces; vLLM has one name for all of the H200s. */
static void device_text(const device_kind *kind, engine_kind engine, char text[128])
{
    const char *at = NULL;

    snprintf(text, 128, "%s", kind->name);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == ' ' || *c == '/' ? '_' : *c;
    }
    at = strstr(text, "H200");
    if (engine == ENGINE_VLLM && at != NULL && (at == text || at[-1] == '_') &&
        (at[4] == '\0' || at[4] == '_')) {
        snprintf(text, 128, "NVIDIA_H200");
    }
}

/* N of experts is the width behind silu-and-mul. */
static void name_file(entry *e, engine_kind engine, part which)
{
    const hone_recipe *r = recipe_of(&e->problem);
    char device[128], block[64], key[96];

    device_text(&e->kind, engine, device);
    snprintf(block, sizeof block, engine == ENGINE_VLLM ? "[%d,%d]" : "[%d, %d]", r->b.gran_mn,
             r->b.gran_k);
    if (which == PART_DENSE) {
        const hone_fp8_gemm *p = &e->problem.as.fp8_gemm;
        snprintf(key, sizeof key, "N=%" PRId64 ",K=%" PRId64, p->n, p->k);
        e->bucket = p->m;
    } else {
        const hone_moe_gemm *p = &e->problem.as.moe_gemm;
        snprintf(key, sizeof key, "E=%" PRId64 ",N=%" PRId64, p->experts,
                 which == PART_DOWN ? p->k : p->n / 2);
        e->bucket = p->tokens;
    }
    snprintf(e->file, sizeof e->file, "%s,device_name=%s,dtype=fp8_w8a8,block_shape=%s%s", key,
             device, block, which == PART_DOWN ? "_down" : "");
}

/* Give entries their files; those that have none are taken out and counted. */
static void place(gathering *g, engine_kind engine, bool allow_modelled, engine_counts *c)
{
    for (size_t i = 0; i < g->len; i++) {
        entry *e = &g->list[i];
        if (!is_block_fp8(&e->problem)) {
            c->foreign++;
            continue;
        }
        const part which = part_of(g, e);
        if (e->timer == STORE_TIMER_MODELLED && !allow_modelled) {
            c->modelled++;
        } else if (which == PART_UNTOLD) {
            c->untold++;
        } else if (which == PART_DOWN && engine == ENGINE_VLLM) {
            c->foreign++;
        } else if (engine_tile_of(e->config, recipe_of(&e->problem)->b.gran_k, &e->tile) != NULL) {
            c->tile++;
        } else {
            name_file(e, engine, which);
        }
    }
}

/* Files, then buckets; of one bucket what writes plain rows first, as the engines' kernels do. */
static int by_file(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int names = strcmp(x->file, y->file);

    if (names != 0) {
        return names;
    }
    if (x->bucket != y->bucket) {
        return x->bucket < y->bucket ? -1 : 1;
    }
    if (x->problem.op == HONE_OP_MOE_GEMM &&
        x->problem.as.moe_gemm.activation != y->problem.as.moe_gemm.activation) {
        return x->problem.as.moe_gemm.activation < y->problem.as.moe_gemm.activation ? -1 : 1;
    }
    return strcmp(x->problem_text, y->problem_text);
}

static json_t *origin(const entry *e)
{
    const exchange_space space = {
        .problem_text = e->problem_text, .kind = e->kind, .template_name = e->template_name};
    json_t *object = exchange_space_facts(&space);

    if (object != NULL) {
        json_object_set_new(object, "config", json_string(e->config));
        json_object_set_new(object, "template_digest", json_string(e->digest));
        json_object_set_new(object, "time", json_real(e->time_ns / EXCHANGE_MS_NS));
        json_object_set_new(object, "timer", json_string(store_timer_name(e->timer)));
        json_object_set_new(object, "modelled", json_boolean(e->timer == STORE_TIMER_MODELLED));
    }
    return object;
}

static hone_status write_json(const char *folder, const char *file, const char *end,
                              const json_t *root, hone_error *error)
{
    char path[4096];
    char *text = json_dumps(root, JSON_INDENT(4));
    hone_status status = HONE_OK;

    if (text == NULL) {
        return exchange_no_memory(file, error);
    }
    if (snprintf(path, sizeof path, "%s/%s%s", folder, file, end) >= (int)sizeof path) {
        status = status_set(error, HONE_LIMIT, folder, 0, "a path over %zu bytes", sizeof path);
    } else {
        status = exchange_replace_file(path, text, strlen(text), error);
    }
    free(text);
    return status;
}

/* The entries of one file: what comes from where first, so that no file is without it. */
static hone_status write_file(const entry *list, size_t len, const char *folder, engine_counts *c,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    json_t *body = json_object(), *origins = json_object();

    for (size_t i = 0; i < len; i++) {
        const engine_tile *t = &list[i].tile;
        char key[24];
        if (i > 0 && list[i].bucket == list[i - 1].bucket) {
            c->crowded++;
            continue;
        }
        snprintf(key, sizeof key, "%" PRId64, list[i].bucket);
        json_object_set_new(
            body, key,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "BLOCK_SIZE_M", (json_int_t)t->block_m,
                      "BLOCK_SIZE_N", (json_int_t)t->block_n, "BLOCK_SIZE_K",
                      (json_int_t)t->block_k, "GROUP_SIZE_M", (json_int_t)t->group_m, "num_warps",
                      (json_int_t)t->warps, "num_stages", (json_int_t)t->stages));
        json_object_set_new(origins, key, origin(&list[i]));
        c->entries++;
    }
    TRY(write_json(folder, list[0].file, ".hone.json", origins, error));
    TRY(write_json(folder, list[0].file, ".json", body, error));
    c->files++;
done:
    json_decref(body);
    json_decref(origins);
    return status;
}

hone_status engine_write(store *s, const exchange_choice *choice, engine_kind kind,
                         bool allow_modelled, const char *folder, engine_counts *out,
                         hone_error *error)
{
    hone_status status = HONE_OK;
    gathering g = {.choice = choice};
    engine_counts counts = {0};

    TRY(store_winners(s, NULL, gather_winner, &g, error));
    if (g.failed) {
        status = exchange_no_memory(store_path(s), error);
        goto done;
    }
    place(&g, kind, allow_modelled, &counts);
    if (g.len > 0) {
        qsort(g.list, g.len, sizeof *g.list, by_file);
    }
    for (size_t i = 0, end; i < g.len; i = end) {
        for (end = i + 1; end < g.len && strcmp(g.list[end].file, g.list[i].file) == 0; end++) {
        }
        if (g.list[i].file[0] != '\0') {
            TRY(write_file(&g.list[i], end - i, folder, &counts, error));
        }
    }
    *out = counts;
done:
    free(g.list);
    return status;
}
