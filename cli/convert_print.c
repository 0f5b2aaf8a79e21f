/* convert_print.c - see convert_print.h. */
#include "cli/convert_print.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

static double relative(double error, double square)
{
    return square > 0 ? sqrt(error / square) : 0;
}

/* ---- Text. --------------------------------------------------------------------------------- */

static void print_fold(const convert_row *r, const plan *p)
{
    const fold_sums *f = &r->fold;
    const uint64_t others = f->blocks - f->exact;

    printf("fold       %s: %" PRIu64 " of %" PRIu64 " blocks of %ux%u exact",
           r->item->entry->tensor->name, f->exact, f->blocks, p->wishes.block_rows,
           p->wishes.block_cols);
    if (others > 0) {
        printf(", %" PRIu64 " not: %" PRIu64 " elements changed, error %.2e of those blocks",
               others, f->inexact, relative(f->fold, f->inexact_square));
    }
    printf("; amax/448 would cost %.2e, nearest UE8M0 %.2e (%" PRIu64 " saturated)\n",
           relative(f->amax, f->square), relative(f->nearest, f->square), f->saturated);
}

static void print_requantise(const convert_row *r, const plan *p)
{
    const requantise_sums *q = &r->requantise;
    const pairing *pair = &r->item->pair;

    printf("requantise %s: %" PRIu64 "x%" PRIu64 " to %ux%u, %" PRIu64 " of %" PRIu64
           " blocks exact, error %.2e, %" PRIu64 " saturated",
           r->item->entry->tensor->name, pair->block_rows, pair->block_cols, p->wishes.block_rows,
           p->wishes.block_cols, q->exact, q->blocks, relative(q->error, q->square), q->saturated);
    if (q->nan_codes > 0) {
        printf(", %" PRIu64 " NaN kept", q->nan_codes);
    }
    putchar('\n');
}

/* What all rows of a kind come to. */
typedef struct totals {
    uint64_t folded, requantised;
    fold_sums fold;
    requantise_sums requantise;
} totals;

static totals add_up(const plan *p, const convert_row *rows)
{
    totals t = {0};

    for (size_t i = 0; i < p->rows; i++) {
        if (rows[i].item->kind == PLAN_FOLD) {
            t.folded++;
            fold_sums_add(&t.fold, &rows[i].fold);
        } else {
            t.requantised++;
            requantise_sums_add(&t.requantise, &rows[i].requantise);
        }
    }
    return t;
}

static uint64_t copied(const plan *p)
{
    uint64_t items = 0;

    for (size_t i = 0; i < p->from->shards_len; i++) {
        items += p->shards[i].items_len;
    }
    return items - p->rows;
}

static void print_totals(const plan *p, const char *path, const totals *t, double seconds)
{
    printf("%" PRIu64 " folded (%" PRIu64 " of %" PRIu64 " blocks exact), %" PRIu64
           " requantised (error %.2e), %" PRIu64 " copied: %.2f GB in %s, %.2f s, %.2f GB/s\n",
           t->folded, t->fold.exact, t->fold.blocks, t->requantised,
           relative(t->requantise.error, t->requantise.square), copied(p), (double)p->bytes * 1e-9,
           path, seconds, seconds > 0 ? (double)p->bytes * 1e-9 / seconds : 0);
}

/* ---- JSON. --------------------------------------------------------------------------------- */

static json_t *fold_json(const fold_sums *f)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I}", "blocks",
                     (json_int_t)f->blocks, "blocks_exact", (json_int_t)f->exact, "blocks_wide",
                     (json_int_t)f->wide, "elements", (json_int_t)f->elements, "inexact",
                     (json_int_t)f->inexact, "error", relative(f->fold, f->square),
                     "error_of_inexact_blocks", relative(f->fold, f->inexact_square), "amax_448",
                     relative(f->amax, f->square), "nearest_ue8m0", relative(f->nearest, f->square),
                     "nearest_saturated", (json_int_t)f->saturated);
}

static json_t *requantise_json(const requantise_sums *q)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:I}", "blocks", (json_int_t)q->blocks,
                     "blocks_exact", (json_int_t)q->exact, "elements", (json_int_t)q->elements,
                     "inexact", (json_int_t)q->inexact, "error", relative(q->error, q->square),
                     "saturated", (json_int_t)q->saturated, "nan_codes", (json_int_t)q->nan_codes);
}

static json_t *row_json(const convert_row *r)
{
    const bool fold = r->item->kind == PLAN_FOLD;
    const pairing *pair = &r->item->pair;
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:[I, I]}", "tensor", r->item->entry->tensor->name,
        "scales", pair->scale->tensor->name, "done", fold ? "fold" : "requantise", "batch",
        (json_int_t)pair->batch, "rows", (json_int_t)pair->rows, "cols", (json_int_t)pair->cols,
        "from_block", (json_int_t)pair->block_rows, (json_int_t)pair->block_cols);

    json_object_update_new(root, fold ? fold_json(&r->fold) : requantise_json(&r->requantise));
    return root;
}

/* An object whose last member is a list: what comes before it, then one value at a time, so that a
 * checkpoint of many tensors costs no memory of its own. */
static void begin_list(json_t *before, const char *name)
{
    fputs("{", stdout);
    json_dumpf(before, stdout, JSON_EMBED);
    printf(", \"%s\": [", name);
    json_decref(before);
}

static void print_next(json_t *value, size_t index)
{
    fputs(index > 0 ? ",\n  " : "\n  ", stdout);
    json_dumpf(value, stdout, 0);
    json_decref(value);
}

static void end_list(void)
{
    puts("\n]}");
}

static void print_as_json(const plan *p, const char *path, const convert_row *rows, const totals *t,
                          double seconds)
{
    begin_list(json_pack("{s:s, s:s, s:[i, i], s:s, s:I, s:I, s:I, s:I, s:f, s:o, s:o}", "input",
                         p->from->path, "output", path, "block", (int)p->wishes.block_rows,
                         (int)p->wishes.block_cols, "scales",
                         p->wishes.scales == SAFETENSORS_F32 ? "f32" : "e8m0", "folded",
                         (json_int_t)t->folded, "requantised", (json_int_t)t->requantised, "copied",
                         (json_int_t)copied(p), "bytes", (json_int_t)p->bytes, "seconds", seconds,
                         "fold", fold_json(&t->fold), "requantise",
                         requantise_json(&t->requantise)),
               "tensors");
    for (size_t i = 0; i < p->rows; i++) {
        print_next(row_json(&rows[i]), i);
    }
    end_list();
}

void convert_print(const plan *p, const char *path, const convert_row *rows, double seconds,
                   bool json)
{
    const totals t = add_up(p, rows);

    if (json) {
        print_as_json(p, path, rows, &t, seconds);
        return;
    }
    for (size_t i = 0; i < p->rows; i++) {
        if (rows[i].item->kind == PLAN_FOLD) {
            print_fold(&rows[i], p);
        } else {
            print_requantise(&rows[i], p);
        }
    }
    print_totals(p, path, &t, seconds);
}

/* ---- Checks. ------------------------------------------------------------------------------- */

static void print_finding(const check_finding *f)
{
    printf("%-8s %s: %s", check_name(f->kind), f->tensor->name, check_text(f->kind));
    if (f->detail[0] != '\0') {
        printf(" (%s)", f->detail);
    }
    if (f->of > 0) {
        printf(": %" PRIu64 " of %" PRIu64 ", the first at [%" PRIu64 ", %" PRIu64 "]", f->count,
               f->of, f->row, f->col);
    }
    printf("; %s\n", check_remedy(f->kind));
}

void convert_print_check(const char *path, const check_report *r, bool json)
{
    if (!json) {
        for (size_t i = 0; i < r->len; i++) {
            print_finding(&r->findings[i]);
        }
        printf("%s: %" PRIu64 " e4m3 and %" PRIu64 " MXFP4 weights, %" PRIu64 " scales, %" PRIu64
               " of them no powers of two: %s\n",
               path, r->weights, r->mxfp4, r->scales, r->not_pow2,
               r->len == 0 ? "nothing wrong was found" : "the check FAILED");
        return;
    }
    begin_list(json_pack("{s:s, s:I, s:I, s:I, s:I}", "input", path, "e4m3_weights",
                         (json_int_t)r->weights, "mxfp4_weights", (json_int_t)r->mxfp4, "scales",
                         (json_int_t)r->scales, "not_pow2", (json_int_t)r->not_pow2),
               "findings");
    for (size_t i = 0; i < r->len; i++) {
        const check_finding *f = &r->findings[i];
        print_next(json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "finding",
                             check_name(f->kind), "tensor", f->tensor->name, "text",
                             check_text(f->kind), "remedy", check_remedy(f->kind), "detail",
                             f->detail, "count", (json_int_t)f->count, "of", (json_int_t)f->of,
                             "row", (json_int_t)f->row, "col", (json_int_t)f->col),
                   i);
    }
    end_list();
}
