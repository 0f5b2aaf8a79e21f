/* emu_report.c - what is printed of a launch: its fault with the lines around it, its outputs. */
#include "cli/emu.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *emu_line(const char *text, int line, size_t *len)
{
    for (int n = 1; text != NULL && n < line; n++) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    *len = text != NULL ? strcspn(text, "\n") : 0;
    return text != NULL && *text != '\0' ? text : NULL;
}

void emu_print_around(const char *text, int line, int around)
{
    for (int n = line - around > 1 ? line - around : 1; n <= line + around; n++) {
        size_t len = 0;
        const char *at = emu_line(text, n, &len);
        if (at != NULL) {
            printf("  %c %5d | %.*s\n", n == line ? '>' : ' ', n, (int)len, at);
        }
    }
}

/* The compiler puts a folder before a relative path. */
bool emu_is_file(const emu_options *o, const char *path)
{
    size_t len = strlen(path), own = strlen(o->file);

    return len >= own && strcmp(path + len - own, o->file) == 0 &&
           (len == own || path[len - own - 1] == '/');
}

static const char *shown_path(const emu_options *o, const char *path)
{
    return emu_is_file(o, path) ? o->file : path;
}

static void place_text(const emu_options *o, const hone_emu_fault *f, char *text, size_t capacity)
{
    if (f->source[0] == '\0') {
        snprintf(text, capacity, "PTX line %d", f->ptx_line);
    } else if (f->caller[0] == '\0') {
        snprintf(text, capacity, "%s:%d (PTX line %d)", shown_path(o, f->source), f->source_line,
                 f->ptx_line);
    } else {
        snprintf(text, capacity, "%s:%d, inlined at %s:%d (PTX line %d)", shown_path(o, f->source),
                 f->source_line, shown_path(o, f->caller), f->caller_line, f->ptx_line);
    }
}

/* The CUDA lines around the fault: of the file itself, or where it was inlined there. */
static void print_source(const emu_options *o, const emu_code *c, const hone_emu_fault *f)
{
    if (!c->is_cuda) {
        return;
    }
    if (emu_is_file(o, f->source)) {
        emu_print_around(c->text, f->source_line, 2);
    } else if (f->caller[0] != '\0' && emu_is_file(o, f->caller)) {
        emu_print_around(c->text, f->caller_line, 2);
    }
}

static void index_text(const emu_options *o, uint64_t cta, char *text, size_t capacity)
{
    snprintf(text, capacity, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, cta % o->grid[0],
             cta / o->grid[0] % o->grid[1], cta / o->grid[0] / o->grid[1]);
}

/* The buffer that an address lies in or near: what is out of bounds is mostly just behind one. */
static void near_text(const emu_session *s, uint64_t address, char *text, size_t capacity)
{
    enum { NEAR = 1 << 20 };
    int64_t least = NEAR;

    text[0] = '\0';
    for (size_t n = 0; n < s->o->memory_len; n++) {
        const launch_argument *a = s->o->memory[n];
        int64_t offset = (int64_t)(address - s->address[n]);
        int64_t apart = offset < 0 ? -offset : offset - (int64_t)a->bytes + 1;
        if (a->kind == LAUNCH_BUFFER && s->address[n] != 0 && apart < least) {
            least = apart;
            snprintf(text, capacity, "byte %" PRId64 " of buffer %s, which has %" PRIu64, offset,
                     a->name, a->bytes);
        }
    }
}

/* Where each warp stands that cannot go on. */
static void print_places(const char *places)
{
    const char *line = NULL;
    size_t len = 0;

    printf("  where each warp stands:\n");
    for (int n = 1; (line = emu_line(places, n, &len)) != NULL; n++) {
        printf("    %.*s\n", (int)len, line);
    }
}

static json_t *places_json(const char *places)
{
    json_t *list = json_array();
    const char *line = NULL;
    size_t len = 0;

    for (int n = 1; (line = emu_line(places, n, &len)) != NULL; n++) {
        json_array_append_new(list, json_stringn(line, len));
    }
    return list;
}

void emu_report_fault(const emu_session *s, const emu_code *c, json_t *root)
{
    const hone_emu_fault *f = &s->fault;
    char place[512], cta[64], near[160];

    near_text(s, f->address, near, sizeof near);
    place_text(s->o, f, place, sizeof place);
    index_text(s->o, f->cta, cta, sizeof cta);
    if (root != NULL) {
        json_object_set_new(root, "fault",
                            json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:I, s:i, s:i, s:I, s:s}",
                                      "kind", f->kind, "message", f->message, "ptx_line",
                                      f->ptx_line, "source", shown_path(s->o, f->source),
                                      "source_line", f->source_line, "place", place, "cta",
                                      (json_int_t)f->cta, "warp", f->warp, "lane", f->lane,
                                      "address", (json_int_t)f->address, "near", near));
        if (s->places != NULL) {
            json_object_set_new(json_object_get(root, "fault"), "places", places_json(s->places));
        }
        return;
    }
    printf("%s: %s\n  at %s, CTA (%s), warp %d", f->kind, f->message, place, cta, f->warp);
    if (f->lane >= 0 && f->lane < 32) {
        printf(", lane %d", f->lane);
    }
    printf("%s%s\n", near[0] != '\0' ? "\n  the address is " : "", near);
    if (s->places != NULL) {
        print_places(s->places);
    }
    print_source(s->o, c, f);
    printf("  PTX:\n");
    emu_print_around(c->ptx, f->ptx_line, 2);
}

static hone_status write_output(const emu_session *s, const launch_output *out, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t which = 0;
    uint8_t *bytes = NULL;
    FILE *f = NULL;

    TRY(emu_session_find(s, out->name, &which, error));
    TRY(emu_session_read(s, which, &bytes, error));
    f = fopen(out->path, "wbe");
    if (f == NULL) {
        status = status_set(error, HONE_IO, out->path, 0, "cannot be written");
        goto done;
    }
    size_t len = s->o->memory[which]->bytes;
    bool whole = fwrite(bytes, 1, len, f) == len;
    if (fclose(f) != 0 || !whole) {
        status = status_set(error, HONE_IO, out->path, 0, "cannot be written whole");
    }
done:
    free(bytes);
    return status;
}

/* A number where JSON has it, else its text. */
static json_t *element_json(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    return value != NULL ? value : json_string(text);
}

static hone_status dump(const emu_session *s, const launch_dump *d, json_t *dumps,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    size_t which = 0;
    uint8_t *bytes = NULL;
    json_t *list = dumps != NULL ? json_array() : NULL;

    TRY(emu_session_find(s, d->name, &which, error));
    TRY(emu_session_read(s, which, &bytes, error));
    uint64_t len = s->o->memory[which]->bytes * 8 / launch_text_dump_bits(d);
    len = d->count < len ? d->count : len;
    if (list == NULL) {
        printf("%s:", d->name);
    }
    for (uint64_t n = 0; n < len; n++) {
        char text[40];
        launch_text_element(d, bytes, n, text, sizeof text);
        if (list != NULL) {
            json_array_append_new(list, element_json(text));
        } else {
            printf("%s%s", n % 8 == 0 && len > 8 ? "\n  " : " ", text);
        }
    }
    if (list != NULL) {
        json_object_set(dumps, d->name, list);
    } else {
        printf("\n");
    }
done:
    json_decref(list);
    free(bytes);
    return status;
}

hone_status emu_report_outputs(const emu_session *s, json_t *root, hone_error *error)
{
    hone_status status = HONE_OK;
    json_t *dumps = root != NULL ? json_object() : NULL;

    for (size_t n = 0; n < s->o->dumps_len; n++) {
        TRY(dump(s, &s->o->dumps[n], dumps, error));
    }
    for (size_t n = 0; n < s->o->outputs_len; n++) {
        TRY(write_output(s, &s->o->outputs[n], error));
    }
    if (root != NULL) {
        json_object_set(root, "buffers", dumps);
    }
done:
    json_decref(dumps);
    return status;
}

/* CTAs of the kernel that an SM holds, as the driver says. */
static hone_status occupancy(const emu_session *s, int *ctas, hone_error *error)
{
    const emu_options *o = s->o;
    const driver *d = s->device->driver;

    return driver_check(
        d,
        d->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctas, s->function, (int)(o->block[0] * o->block[1] * o->block[2]), o->shared_bytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", error);
}

static void print_launch(const emu_session *s, const emu_code *c, int ctas)
{
    const emu_options *o = s->o;
    const device_facts *f = &s->device->gpu.facts;
    unsigned threads = o->block[0] * o->block[1] * o->block[2];

    printf("%s on %s: grid %ux%ux%u, block %ux%ux%u", c->entry, s->device->spec, o->grid[0],
           o->grid[1], o->grid[2], o->block[0], o->block[1], o->block[2]);
    if (o->cluster[0] * o->cluster[1] * o->cluster[2] > 1) {
        printf(", cluster %ux%ux%u", o->cluster[0], o->cluster[1], o->cluster[2]);
    }
    printf("\n");
    if (c->report.registers > 0) {
        printf("  %d registers, %d B spilled, %d B static and %u B dynamic shared memory (ptxas)\n",
               c->report.registers, c->report.spill_bytes, c->report.static_shared_bytes,
               o->shared_bytes);
    }
    printf("  an SM holds %d CTAs: %u of %d threads%s\n", ctas, threads * (unsigned)ctas,
           f->threads_per_sm,
           c->report.registers > 0 ? "" : " (registers not known: the file is PTX)");
    printf("  modelled time %.3f us (a model's, not measured)\n", s->modelled_ns * 1e-3);
}

hone_status emu_report_launch(const emu_session *s, const emu_code *c, json_t *root,
                              hone_error *error)
{
    const emu_options *o = s->o;
    int ctas = 0;
    hone_status status = occupancy(s, &ctas, error);

    if (status != HONE_OK) {
        return status;
    }
    if (root == NULL) {
        print_launch(s, c, ctas);
        return HONE_OK;
    }
    json_t *launch = json_pack(
        "{s:s, s:s, s:[iii], s:[iii], s:[iii], s:i, s:i, s:i, s:i, s:i, s:f}", "kernel", c->entry,
        "device", s->device->spec, "grid", (int)o->grid[0], (int)o->grid[1], (int)o->grid[2],
        "block", (int)o->block[0], (int)o->block[1], (int)o->block[2], "cluster",
        (int)o->cluster[0], (int)o->cluster[1], (int)o->cluster[2], "dynamic_shared_bytes",
        (int)o->shared_bytes, "registers", c->report.registers, "spill_bytes",
        c->report.spill_bytes, "static_shared_bytes", c->report.static_shared_bytes, "ctas_per_sm",
        ctas, "modelled_us", s->modelled_ns * 1e-3);
    json_object_set_new(root, "launch", launch);
    return HONE_OK;
}
