/* emu_profile.c - a launch's counters, and its lines by what they cost: a small profiler. */
#include "cli/emu.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *text;
} counters[] = {
#define X(name, text) {#name, text},
    HONE_EMU_COUNTERS(X)
#undef X
};
enum { FIRST = offsetof(hone_emu_counters, warp_instructions) / sizeof(uint64_t) };

/* A line of the table: of CUDA where the PTX says, else of PTX. */
typedef struct row {
    hone_emu_line line;
    double clocks;
} row;

/* Clocks of an SM that the line's busiest pipe takes for all that it did, were the others idle:
 * issue slots, shared memory's wavefronts of 128 bytes, the SM's share of L2's bytes, the matrix
 * unit at the rate of the launch's most frequent product. It ranks lines; it is no time. */
static double clocks_of(const gpu *g, const hone_emu_counters *c, const hone_emu_line *l)
{
    size_t kind = 0;
    double clocks = (double)l->warp_instructions / g->issue_slots;
    double shared =
        ((double)l->shared_wavefronts * 128 + (double)(l->tma_load_bytes + l->tma_store_bytes)) /
        g->shared_bytes_per_clk_sm;
    double l2 = (double)l->global_sectors * 32 * g->facts.sm_count / g->l2_bytes_per_clk;

    for (size_t n = 1; n < GPU_MMA_KINDS; n++) {
        kind = c->tensor_macs[n] > c->tensor_macs[kind] ? n : kind;
    }
    double rate =
        c->warpgroup_macs[kind] > 0 ? g->flop_per_clk_sm[kind] : g->mma_sync_per_clk_sm[kind];
    double tensor = rate > 0 ? (double)l->macs * 2 / rate : 0;
    clocks = shared > clocks ? shared : clocks;
    clocks = l2 > clocks ? l2 : clocks;
    return tensor > clocks ? tensor : clocks;
}

static int by_place(const void *a, const void *b)
{
    const row *x = a, *y = b;
    int paths = strcmp(x->line.source, y->line.source);

    return paths != 0 ? paths
                      : (x->line.source_line > y->line.source_line) -
                            (x->line.source_line < y->line.source_line);
}

static int by_cost(const void *a, const void *b)
{
    const row *x = a, *y = b;

    if (x->clocks != y->clocks) {
        return x->clocks < y->clocks ? 1 : -1;
    }
    return (x->line.ptx_line > y->line.ptx_line) - (x->line.ptx_line < y->line.ptx_line);
}

/* Lines of PTX that one line of CUDA became, as one. */
static size_t join_rows(row *rows, size_t len)
{
    size_t kept = 0;

    qsort(rows, len, sizeof *rows, by_place);
    for (size_t n = 0; n < len; n++) {
        hone_emu_line *last = kept > 0 ? &rows[kept - 1].line : NULL;
        const hone_emu_line *l = &rows[n].line;
        if (last == NULL || l->source_line == 0 || by_place(&rows[kept - 1], &rows[n]) != 0) {
            rows[kept++] = rows[n];
            continue;
        }
        rows[kept - 1].clocks += rows[n].clocks;
        last->ptx_line = l->ptx_line < last->ptx_line ? l->ptx_line : last->ptx_line;
#define X(name) last->name += l->name;
        HONE_EMU_LINE_COUNTERS(X)
#undef X
        for (size_t k = 0; k < ARRAY_LEN(l->tensor_macs); k++) {
            last->tensor_macs[k] += l->tensor_macs[k];
        }
        if (l->source_unique_lines > last->source_unique_lines) {
            last->source_unique_lines = l->source_unique_lines;
        }
    }
    return kept;
}

static hone_status read_rows(const emu_session *s, const hone_emu_counters *c, row **out,
                             size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_emu_api *emu = s->device->driver->emu;
    hone_emu_line *lines = NULL;
    row *rows = NULL;
    size_t count = 0;

    TRY(emu->last_profile(s->device->ordinal, NULL, 0, &count, error));
    lines = calloc(count + 1, sizeof *lines);
    rows = calloc(count + 1, sizeof *rows);
    if (lines == NULL || rows == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "%zu lines", count);
        goto done;
    }
    TRY(emu->last_profile(s->device->ordinal, lines, count, &count, error));
    for (size_t n = 0; n < count; n++) {
        rows[n] = (row){lines[n], clocks_of(&s->device->gpu, c, &lines[n])};
    }
    *len = join_rows(rows, count);
    qsort(rows, *len, sizeof *rows, by_cost);
    *out = rows;
    rows = NULL;
done:
    free(lines);
    free(rows);
    return status;
}

static void print_counters(const hone_emu_estimate *e)
{
    const uint64_t *values = &e->total.warp_instructions;
    bool sampled = e->total.ctas_run < e->total.ctas_total;

    printf("\ncounters of %" PRIu64 " CTAs", e->total.ctas_total);
    if (sampled) {
        printf(", from %" PRIu64 " drawn at random, +- one standard error", e->total.ctas_run);
    }
    printf("\n");
    for (size_t n = 0; n < ARRAY_LEN(counters); n++) {
        double error = e->error[FIRST + n];
        if (values[n] == 0) {
            continue;
        }
        printf("  %16" PRIu64, values[n]);
        if (sampled && isnan(error)) {
            printf(" (of the sample) ");
        } else if (sampled) {
            printf(" +- %-12.4g ", error);
        }
        printf("  %s\n", counters[n].text);
    }
    for (size_t n = 0; n < GPU_MMA_KINDS; n++) {
        if (e->total.tensor_macs[n] > 0) {
            printf("  %16" PRIu64 "  multiply-adds of %s, %" PRIu64 " of them by wgmma\n",
                   e->total.tensor_macs[n], gpu_mma_name((gpu_mma)n), e->total.warpgroup_macs[n]);
        }
    }
}

static double ratio(uint64_t a, uint64_t b)
{
    return b > 0 ? (double)a / (double)b : 0;
}

static void print_ratios(const hone_emu_counters *c)
{
    const struct {
        double value;
        uint64_t of;
        const char *text;
    } ratios[] = {
        {ratio(c->thread_instructions, c->warp_instructions), c->warp_instructions,
         "active lanes an instruction, of 32"},
        {ratio(c->global_load_sectors, c->global_load_requests), c->global_load_requests,
         "sectors a global load"},
        {ratio(c->global_store_sectors, c->global_store_requests), c->global_store_requests,
         "sectors a global store"},
        {ratio(c->shared_wavefronts, c->shared_requests), c->shared_requests,
         "wavefronts a shared request"},
        {ratio(c->shared_conflicts * 100, c->shared_wavefronts), c->shared_wavefronts,
         "% of shared wavefronts are conflicts"},
    };

    for (size_t n = 0; n < ARRAY_LEN(ratios); n++) {
        if (ratios[n].of > 0) {
            printf("  %16.2f  %s\n", ratios[n].value, ratios[n].text);
        }
    }
}

/* The text of a row's line, without its indentation. */
static const char *row_text(const emu_session *s, const emu_code *c, const row *r, size_t *len)
{
    const hone_emu_line *l = &r->line;
    bool ours = c->is_cuda && l->source_line > 0 && emu_is_file(s->o, l->source);
    const char *text = ours                  ? emu_line(c->text, l->source_line, len)
                       : l->source_line == 0 ? emu_line(c->ptx, l->ptx_line, len)
                                             : NULL;

    while (text != NULL && *len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        (*len)--;
    }
    return text;
}

static void place_of(const emu_session *s, const row *r, char *text, size_t capacity)
{
    const hone_emu_line *l = &r->line;
    const char *slash = strrchr(l->source, '/');

    if (l->source_line == 0) {
        snprintf(text, capacity, "PTX %d", l->ptx_line);
    } else if (emu_is_file(s->o, l->source)) {
        snprintf(text, capacity, "%d", l->source_line);
    } else {
        snprintf(text, capacity, "%s:%d", slash != NULL ? slash + 1 : l->source, l->source_line);
    }
}

/* Of a row what is not 0: classes of instructions, memory, products, waits. */
static void print_details(const hone_emu_line *l)
{
    const struct {
        const char *text;
        uint64_t value;
    } details[] = {
        {"alu", l->alu},
        {"fp32", l->fp32},
        {"fp64", l->fp64},
        {"half", l->half},
        {"sfu", l->sfu},
        {"conversion", l->conversion},
        {"control", l->control},
        {"memory", l->memory},
        {"tensor", l->tensor},
        {"async", l->async},
        {"bytes of distinct lines", l->source_unique_lines * 128},
        {"bytes copied to shared memory", l->async_copy_bytes + l->tma_load_bytes},
        {"bytes copied from it", l->tma_store_bytes},
        {"shared wavefronts of boxes", l->tma_wavefronts},
        {"of them conflicts", l->tma_conflicts},
        {"arrivals at barriers", l->barriers},
        {"arrivals at mbarriers", l->mbarrier_arrivals},
        {"waits", l->waits},
    };
    const char *before = "        ";

    for (size_t n = 0; n < ARRAY_LEN(details); n++) {
        if (details[n].value > 0) {
            printf("%s%" PRIu64 " %s", before, details[n].value, details[n].text);
            before = ", ";
        }
    }
    for (size_t n = 0; n < GPU_MMA_KINDS; n++) {
        if (l->tensor_macs[n] > 0) {
            printf("%s%" PRIu64 " multiply-adds of %s", before, l->tensor_macs[n],
                   gpu_mma_name((gpu_mma)n));
            before = ", ";
        }
    }
    printf("%s", before[0] == ',' ? "\n" : "");
}

static void print_rows(const emu_session *s, const emu_code *c, const row *rows, size_t len)
{
    double all = 0;
    size_t most = s->o->rows > 0 && (size_t)s->o->rows < len ? (size_t)s->o->rows : len;

    for (size_t n = 0; n < len; n++) {
        all += rows[n].clocks;
    }
    printf("\n%6s %12s %6s %8s %8s %10s  %s\n", "cost", "warp instr", "lanes", "sect/req",
           "wave/req", "conflicts", "line");
    for (size_t n = 0; n < most; n++) {
        const hone_emu_line *l = &rows[n].line;
        char place[64];
        size_t text_len = 0;
        const char *text = row_text(s, c, &rows[n], &text_len);
        place_of(s, &rows[n], place, sizeof place);
        printf("%5.1f%% %12" PRIu64 " %6.1f %8.2f %8.2f %10" PRIu64 "  %s",
               all > 0 ? rows[n].clocks / all * 100 : 0, l->warp_instructions,
               ratio(l->thread_instructions, l->warp_instructions),
               ratio(l->global_sectors, l->global_requests),
               ratio(l->shared_wavefronts, l->shared_requests), l->shared_conflicts, place);
        if (text != NULL) {
            printf("  %.*s", (int)(text_len < 100 ? text_len : 100), text);
        }
        printf("\n");
        print_details(l);
    }
    if (most < len) {
        printf("  ... and %zu lines more (--rows 0 shows all)\n", len - most);
    }
}

static json_t *counters_json(const hone_emu_estimate *e, bool errors)
{
    const uint64_t *values = &e->total.warp_instructions;
    json_t *object = json_object();

    for (size_t n = 0; n < ARRAY_LEN(counters); n++) {
        double error = e->error[FIRST + n];
        json_object_set_new(object, counters[n].name,
                            !errors        ? json_integer((json_int_t)values[n])
                            : isnan(error) ? json_null()
                                           : json_real(error));
    }
    return object;
}

static json_t *macs_json(const uint64_t *macs)
{
    json_t *object = json_object();

    for (size_t n = 0; n < GPU_MMA_KINDS; n++) {
        json_object_set_new(object, gpu_mma_name((gpu_mma)n), json_integer((json_int_t)macs[n]));
    }
    return object;
}

static json_t *rows_json(const row *rows, size_t len)
{
    json_t *list = json_array();

    for (size_t n = 0; n < len; n++) {
        const hone_emu_line *l = &rows[n].line;
        json_t *one = json_pack("{s:i, s:s, s:i, s:f}", "ptx_line", l->ptx_line, "source",
                                l->source, "source_line", l->source_line, "clocks", rows[n].clocks);
#define X(name) json_object_set_new(one, #name, json_integer((json_int_t)l->name));
        HONE_EMU_LINE_COUNTERS(X)
#undef X
        json_object_set_new(one, "unique_lines", json_integer((json_int_t)l->source_unique_lines));
        json_object_set_new(one, "tensor_macs", macs_json(l->tensor_macs));
        json_array_append_new(list, one);
    }
    return list;
}

hone_status emu_report_profile(const emu_session *s, const emu_code *c, json_t *root,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    hone_emu_estimate e;
    row *rows = NULL;
    size_t len = 0;

    TRY(s->device->driver->emu->last_estimate(s->device->ordinal, &e, error));
    TRY(read_rows(s, &e.total, &rows, &len, error));
    if (root == NULL) {
        print_counters(&e);
        print_ratios(&e.total);
        print_rows(s, c, rows, len);
        goto done;
    }
    json_object_set_new(root, "ctas_run", json_integer((json_int_t)e.total.ctas_run));
    json_object_set_new(root, "ctas_total", json_integer((json_int_t)e.total.ctas_total));
    json_object_set_new(root, "counters", counters_json(&e, false));
    json_object_set_new(root, "standard_errors", counters_json(&e, true));
    json_object_set_new(root, "macs", macs_json(e.total.tensor_macs));
    json_object_set_new(root, "warpgroup_macs", macs_json(e.total.warpgroup_macs));
    json_object_set_new(root, "lines", rows_json(rows, len));
done:
    free(rows);
    return status;
}
