/* check.c - pairs by their names and shapes first; then their bytes, piece by piece on all threads.
 */
#include "convert/check.h"

#include "convert/bounded_json.h"
#include "convert/check_scan.h"
#include "convert/check_zero.h"
#include "convert/plan.h"
#include "convert/pool.h"
#include "core/integer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *text, *remedy;
} kinds[] = {
#define X(name, NAME, text, remedy) {#name, text, remedy},
    CHECK_MAP(X)
#undef X
};

const char *check_name(check_kind kind)
{
    return kind < CHECK_KINDS ? kinds[kind].name : "?";
}

const char *check_text(check_kind kind)
{
    return kind < CHECK_KINDS ? kinds[kind].text : "?";
}

const char *check_remedy(check_kind kind)
{
    return kind < CHECK_KINDS ? kinds[kind].remedy : "?";
}

/* Blocks from which on it is no chance that the largest code of each is 448. */
static const uint64_t blocks_tell = 8;

/* Bytes that are looked at through one window, at most. */
static const uint64_t window_most = 8 * PLAN_TILE;

/* A pair whose bytes are looked at: first its scales' pieces, then its codes' (e4m3 only). */
typedef struct item {
    pairing pair;
    uint64_t first_job, scale_jobs, code_jobs;
    uint64_t code_rows; /* of a piece: whole blocks where they are not too large; 0: bytes */
    check_counts counts;
} item;

typedef struct checking {
    const checkpoint *c;
    const check_options *o;
    item *items;
    size_t items_len;
    uint64_t jobs, bytes;
    _Atomic uint64_t done;
    check_report report;
    size_t capacity;
} checking;

typedef struct piece_result {
    check_counts counts;
    uint64_t bytes;
} piece_result;

/* ---- Findings. ----------------------------------------------------------------------------- */

static check_finding *add(checking *k, check_kind kind, const safetensors_tensor *tensor,
                          hone_error *error)
{
    check_report *r = &k->report;

    if (r->len == k->capacity) {
        const size_t more = k->capacity == 0 ? 16 : 2 * k->capacity;
        check_finding *grown = realloc(r->findings, more * sizeof *grown);
        if (grown == NULL) {
            status_set(error, HONE_NO_MEMORY, k->c->path, 0, "%zu findings", more);
            return NULL;
        }
        r->findings = grown;
        k->capacity = more;
    }
    check_finding *f = &r->findings[r->len++];
    *f = (check_finding){.kind = kind, .tensor = tensor};
    return f;
}

static hone_status find_pair(checking *k, check_kind kind, const pairing *p, hone_error *error)
{
    char weight[90], scale[90];
    check_finding *f = add(k, kind, p->scale != NULL ? p->scale->tensor : p->weight->tensor, error);

    if (f == NULL) {
        return HONE_NO_MEMORY;
    }
    if (p->scale != NULL) {
        snprintf(f->detail, sizeof f->detail, "weight %s, scales %s",
                 safetensors_describe(p->weight->tensor, weight, sizeof weight),
                 safetensors_describe(p->scale->tensor, scale, sizeof scale));
    }
    return HONE_OK;
}

static hone_status find_count(checking *k, check_kind kind, const item *i, uint64_t of,
                              hone_error *error)
{
    const bool codes = kind == CHECK_CODES;
    const safetensors_tensor *tensor =
        codes || kind == CHECK_ROUNDED ? i->pair.weight->tensor : i->pair.scale->tensor;
    const uint64_t width = codes ? i->pair.cols : i->pair.scale_cols;
    check_finding *f = add(k, kind, tensor, error);

    if (f == NULL) {
        return HONE_NO_MEMORY;
    }
    f->count = kind == CHECK_ROUNDED ? i->counts.topped : i->counts.count[kind];
    f->of = of;
    f->row = width > 0 ? i->counts.first[kind] / width : 0;
    f->col = width > 0 ? i->counts.first[kind] % width : 0;
    return HONE_OK;
}

static hone_status find_counts(checking *k, const item *i, hone_error *error)
{
    static const check_kind of_scales[] = {CHECK_ZERO, CHECK_NEGATIVE, CHECK_NAN_, CHECK_INFINITE,
                                           CHECK_PADDING};
    hone_status status = HONE_OK;
    const check_counts *n = &i->counts;

    k->report.scales += n->scales;
    k->report.not_pow2 += n->not_pow2;
    if (2 * (i->pair.words ? n->float_words : n->byte_words) > n->words) {
        return find_pair(k, CHECK_WORDS, &i->pair, error); /* read as what they are not */
    }
    for (size_t m = 0; m < ARRAY_LEN(of_scales); m++) {
        if (n->count[of_scales[m]] > 0) {
            TRY(find_count(k, of_scales[m], i, n->scales, error));
        }
    }
    if (k->o->pow2 && n->not_pow2 > 0) {
        TRY(find_count(k, CHECK_POW2, i, n->scales, error));
    }
    if (n->count[CHECK_CODES] > 0) {
        TRY(find_count(k, CHECK_CODES, i, i->pair.weight->tensor->bytes, error));
    }
    if (n->not_pow2 == 0 && n->blocks >= blocks_tell && n->topped >= n->blocks - n->blocks / 10) {
        TRY(find_count(k, CHECK_ROUNDED, i, n->blocks, error));
    }
done:
    return status;
}

/* ---- What is looked at. -------------------------------------------------------------------- */

/* Whether the scales are one a block of `block`, as far as their shape says. */
static bool is_block(const pairing *p, const int64_t block[2])
{
    const uint64_t unit = p->words ? 4 : 1;
    const uint64_t wide = integer_ceil_div_u64(p->cols, (uint64_t)block[1]);

    return p->scale_rows == integer_ceil_div_u64(p->rows, (uint64_t)block[0]) &&
           integer_ceil_div_u64(p->scale_cols, unit) == integer_ceil_div_u64(wide, unit);
}

static void add_item(checking *k, const pairing *p)
{
    item *i = &k->items[k->items_len++];

    *i = (item){.pair = *p, .first_job = k->jobs};
    i->scale_jobs = integer_ceil_div_u64(p->scale->tensor->bytes, PLAN_TILE);
    k->bytes += p->scale->tensor->bytes;
    if (p->kind == PAIRING_E4M3 && p->weight->tensor->bytes > 0) {
        const uint64_t fits = PLAN_TILE / p->cols, whole = p->block_rows;
        i->code_rows = fits >= whole ? fits / whole * whole : fits > 0 ? fits : 1;
        if (fits < whole && whole <= window_most / p->cols) {
            i->code_rows = whole;
        }
        i->code_rows = p->cols > window_most ? 0 : i->code_rows;
        i->code_jobs = i->code_rows > 0 ? p->batch * integer_ceil_div_u64(p->rows, i->code_rows)
                                        : integer_ceil_div_u64(p->weight->tensor->bytes, PLAN_TILE);
        k->bytes += p->weight->tensor->bytes;
    }
    k->jobs += i->scale_jobs + i->code_jobs;
}

static hone_status look_at(checking *k, const checkpoint_entry *entry, hone_error *error)
{
    hone_status status = HONE_OK;
    const check_options *o = k->o;
    const pairing p = pairing_of(k->c, &o->names, entry);

    if (pairing_is_named(o->skip, o->skip_len, entry->tensor->name)) {
        return HONE_OK;
    }
    switch (p.kind) {
    case PAIRING_UNSCALED:
        return find_pair(k, CHECK_MISSING, &p, error);
    case PAIRING_BAD_DTYPE:
        return find_pair(k, CHECK_DTYPE, &p, error);
    case PAIRING_BAD_SHAPE:
        return find_pair(k, CHECK_SHAPE, &p, error);
    case PAIRING_MXFP4:
        k->report.mxfp4++;
        add_item(k, &p);
        return HONE_OK;
    case PAIRING_E4M3:
        k->report.weights++;
        if (o->block[0] > 0 && !is_block(&p, o->block)) {
            TRY(find_pair(k, CHECK_BLOCK, &p, error));
        }
        add_item(k, &p);
        return HONE_OK;
    default:
        if (pairing_is_orphan(k->c, &o->names, entry)) {
            check_finding *f = add(k, CHECK_ORPHAN, entry->tensor, error);
            return f != NULL ? HONE_OK : HONE_NO_MEMORY;
        }
    }
done:
    return status;
}

/* ---- Pieces. ------------------------------------------------------------------------------- */

static item *item_of(const checking *k, uint64_t job)
{
    size_t low = 0, high = k->items_len;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (k->items[middle].first_job <= job) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &k->items[low];
}

static hone_status scan_scales(const checking *k, const item *i, uint64_t piece, piece_result *r,
                               hone_error *error)
{
    const safetensors_tensor *t = i->pair.scale->tensor;
    const uint64_t unit = safetensors_dtype_bits(t->dtype) / 8, offset = piece * PLAN_TILE;
    safetensors_window window;

    r->bytes = t->bytes - offset < PLAN_TILE ? t->bytes - offset : PLAN_TILE;
    hone_status status =
        safetensors_view(k->c->shards[i->pair.scale->shard], t, offset, r->bytes, &window, error);
    if (status == HONE_OK) {
        check_scan_scales(window.bytes, r->bytes / unit, &i->pair, offset / unit, &r->counts);
        if (unit == 1 || i->pair.words) {
            status = check_zero(k->c, &i->pair, window.bytes, r->bytes, offset, &r->counts, error);
        }
        safetensors_unview(&window);
    }
    return status;
}

/* The place of a piece of codes: rows of one matrix, or bytes of a row that is too long. */
static void place_codes(const item *i, uint64_t piece, uint64_t *offset, uint64_t *rows,
                        uint64_t *cols)
{
    const pairing *p = &i->pair;

    if (i->code_rows == 0) {
        *offset = piece * PLAN_TILE;
        *rows = 1;
        *cols = p->weight->tensor->bytes - *offset < PLAN_TILE ? p->weight->tensor->bytes - *offset
                                                               : PLAN_TILE;
        return;
    }
    const uint64_t pieces = integer_ceil_div_u64(p->rows, i->code_rows);
    const uint64_t row = piece % pieces * i->code_rows;
    *offset = (piece / pieces * p->rows + row) * p->cols;
    *rows = p->rows - row < i->code_rows ? p->rows - row : i->code_rows;
    *cols = p->cols;
}

static hone_status scan_codes(const checking *k, const item *i, uint64_t piece, piece_result *r,
                              hone_error *error)
{
    const pairing *p = &i->pair;
    uint64_t offset = 0, rows = 0, cols = 0;
    safetensors_window window;

    place_codes(i, piece, &offset, &rows, &cols);
    r->bytes = rows * cols;
    hone_status status = safetensors_view(k->c->shards[p->weight->shard], p->weight->tensor, offset,
                                          r->bytes, &window, error);
    if (status == HONE_OK) {
        check_scan_codes(window.bytes, rows, cols, offset, p->block_rows, p->block_cols,
                         &r->counts);
        safetensors_unview(&window);
    }
    return status;
}

static hone_status scan_piece(void *context, uint64_t job, void *scratch, void *result,
                              hone_error *error)
{
    const checking *k = context;
    const item *i = item_of(k, job);
    const uint64_t piece = job - i->first_job;

    (void)scratch;
    return piece < i->scale_jobs ? scan_scales(k, i, piece, result, error)
                                 : scan_codes(k, i, piece - i->scale_jobs, result, error);
}

static void merge(void *context, uint64_t job, const void *result)
{
    checking *k = context;
    const piece_result *r = result;

    check_counts_add(&item_of(k, job)->counts, &r->counts);
    k->done += r->bytes;
}

static int show(void *context, uint64_t done)
{
    const checking *k = context;

    (void)done;
    return k->o->progress(k->o->context, k->done, k->bytes);
}

/* ---- All. ---------------------------------------------------------------------------------- */

static int by_name(const void *left, const void *right)
{
    const check_finding *a = left, *b = right;
    const int order = strcmp(a->tensor->name, b->tensor->name);

    return order != 0 ? order : (int)a->kind - (int)b->kind;
}

hone_status check_run(const checkpoint *c, const check_options *options, check_report *out,
                      hone_error *error)
{
    hone_status status = HONE_OK;
    checking k = {.c = c, .o = options, .items = calloc(c->entries_len + 1, sizeof *k.items)};
    pool_work work = {.threads = options->threads,
                      .result_bytes = sizeof(piece_result),
                      .context = &k,
                      .run = scan_piece,
                      .merge = merge,
                      .progress = options->progress != NULL ? show : NULL};

    if (k.items == NULL) {
        return status_set(error, HONE_NO_MEMORY, c->path, 0, "%zu tensors", c->entries_len);
    }
    for (size_t i = 0; i < c->entries_len; i++) {
        TRY(look_at(&k, &c->entries[i], error));
    }
    work.jobs = k.jobs;
    TRY(pool_run(&work, error));
    for (size_t i = 0; i < k.items_len; i++) {
        TRY(find_counts(&k, &k.items[i], error));
    }
    if (k.report.len > 0) {
        qsort(k.report.findings, k.report.len, sizeof *k.report.findings, by_name);
    }
    *out = k.report;
    k.report = (check_report){0};
done:
    check_free(&k.report);
    free(k.items);
    return status;
}

void check_free(check_report *report)
{
    free(report->findings);
    *report = (check_report){0};
}

hone_status check_config(const char *path, check_options *o, hone_error *error)
{
    json_t *root = NULL;

    if (access(path, F_OK) != 0) {
        return HONE_OK;
    }
    hone_status status = bounded_json_read(path, &root, error);
    if (status != HONE_OK) {
        return status;
    }
    const json_t *inner = json_object_get(root, "text_config");
    const json_t *quant = json_object_get(root, "quantization_config");
    quant = quant != NULL ? quant : json_object_get(inner, "quantization_config");
    quant = quant != NULL ? quant : root;
    const char *format = json_string_value(json_object_get(quant, "scale_fmt"));
    o->pow2 = o->pow2 || (format != NULL && strcmp(format, "ue8m0") == 0);
    const json_t *block = json_object_get(quant, "weight_block_size");
    const json_int_t rows = json_integer_value(json_array_get(block, 0));
    const json_int_t cols = json_integer_value(json_array_get(block, 1));
    if (json_array_size(block) == 2 && rows > 0 && cols > 0) {
        o->block[0] = rows;
        o->block[1] = cols;
    }
    json_decref(root);
    return HONE_OK;
}
