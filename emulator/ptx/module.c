/* module.c - a loaded module: its kernels, decoded, and its variables in device memory. */
#include "emulator/ptx/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS_LEN = 4096 }; /* names of operations: about a thousand */

struct ptx_module {
    ptx_kernel *kernels;
    uint32_t kernels_len;
    ptx_global *globals;
    uint32_t globals_len;
    source_files files;
};

static void free_kernel(ptx_kernel *k)
{
    free(k->name);
    free(k->code);
    free(k->operands);
    free(k->targets);
    free(k->watched);
    free(k->image);
    free(k->poison);
    free(k->specials);
    free(k->places);
}

void ptx_module_unload(ptx_module *m, device_memory *memory)
{
    if (m == NULL) {
        return;
    }
    for (uint32_t n = 0; n < m->kernels_len; n++) {
        free_kernel(&m->kernels[n]);
    }
    for (uint32_t n = 0; n < m->globals_len; n++) {
        if (m->globals[n].address != 0) {
            memory_free(memory, m->globals[n].address, NULL);
        }
        free(m->globals[n].copy);
    }
    source_files_free(&m->files);
    free(m->kernels);
    free(m->globals);
    free(m);
}

ptx_kernel *ptx_module_kernel(ptx_module *m, const char *name)
{
    for (uint32_t n = 0; n < m->kernels_len; n++) {
        if (strcmp(m->kernels[n].name, name) == 0) {
            return &m->kernels[n];
        }
    }
    return NULL;
}

ptx_kernel *ptx_module_kernel_at(ptx_module *m, uint32_t index)
{
    return index < m->kernels_len ? &m->kernels[index] : NULL;
}

bool ptx_module_global(const ptx_module *m, const char *name, uint64_t *address, uint64_t *bytes)
{
    for (uint32_t n = 0; n < m->globals_len; n++) {
        if (strcmp(m->globals[n].copy, name) == 0) {
            *address = m->globals[n].address;
            *bytes = m->globals[n].bytes;
            return true;
        }
    }
    return false;
}

void ptx_kernel_describe(const ptx_kernel *k, ptx_kernel_facts *out)
{
    *out = (ptx_kernel_facts){.name = k->name,
                              .static_shared_bytes = k->static_shared_bytes,
                              .local_bytes = k->local_bytes,
                              .params_len = k->params_len,
                              .max_threads = k->max_threads,
                              .params_bytes = k->params_bytes,
                              .max_cluster_rank = k->max_cluster_rank,
                              .min_ctas = k->min_ctas,
                              .max_registers = k->max_registers,
                              .explicit_cluster = k->explicit_cluster,
                              .talks = k->talks,
                              .image_bytes = k->image_bytes};
    memcpy(out->required_threads, k->required_threads, sizeof out->required_threads);
    memcpy(out->required_cluster, k->cluster, sizeof out->required_cluster);
    memcpy(out->param_offset, k->param_offset, sizeof out->param_offset);
    memcpy(out->param_bytes, k->param_bytes, sizeof out->param_bytes);
}

static void add_op(ptx_op *ops, ptx_text name, const exec_row *row)
{
    uint32_t h = 5381;

    for (size_t n = 0; n < name.len; n++) {
        h = h * 33 ^ (unsigned char)name.at[n];
    }
    h &= OPS_LEN - 1;
    while (ops[h].row != NULL) {
        h = (h + 1) & (OPS_LEN - 1);
    }
    ops[h] = (ptx_op){name, row};
}

static void add_table(ptx_op *ops, const exec_row *rows, size_t len)
{
    for (size_t r = 0; r < len; r++) {
        const char *at = rows[r].names;
        while (*at != '\0') {
            size_t n = strcspn(at, " ");
            add_op(ops, (ptx_text){at, n}, &rows[r]);
            at += n + strspn(at + n, " ");
        }
    }
}

/* Of a variable that is declared before, or of a function; under a mask, its byte. */
static uint64_t address_of(const ptx_module *m, const ptx_tree *t, const ptx_operand *o)
{
    uint64_t value = ptx_function_address(t, o->name);

    for (uint32_t g = 0; g < m->globals_len; g++) {
        if (ptx_text_equal(m->globals[g].name, o->name)) {
            value = m->globals[g].address;
        }
    }
    value += (uint64_t)o->offset;
    return o->value != 0 ? (value & o->value) >> __builtin_ctzll(o->value) : value;
}

/* {1, 2, {3}}: braces only group. Returns bytes written; fails softly on what is too much. */
static uint64_t write_initial(const ptx_module *m, const ptx_tree *t, const ptx_variable *v,
                              const ptx_operand *items, uint32_t len, uint8_t *to, uint64_t room)
{
    uint64_t used = 0;

    for (uint32_t n = 0; n < len && room - used >= v->element_bytes; n++) {
        uint64_t value = ptx_number_as(&items[n], v->element_bytes);
        if (items[n].kind == PTX_OPERAND_VECTOR) {
            used +=
                write_initial(m, t, v, items[n].items, items[n].items_len, to + used, room - used);
            continue;
        }
        if (items[n].kind == PTX_OPERAND_NAME) {
            value = address_of(m, t, &items[n]);
        }
        memcpy(to + used, &value, v->element_bytes < 8 ? v->element_bytes : 8);
        used += v->element_bytes;
    }
    return used;
}

static hone_status make_global(ptx_module *m, const ptx_tree *t, const ptx_variable *v,
                               device_memory *memory, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t bytes = (uint64_t)v->element_bytes * v->count;
    ptx_global *g = &m->globals[m->globals_len++]; /* from here on unload frees it */
    uint8_t *content = calloc(1, bytes + 16);

    g->copy = malloc(v->name.len + 1);
    if (content == NULL || g->copy == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "ptx", v->line, "a variable of %llu bytes",
                            (unsigned long long)bytes);
        goto done;
    }
    memcpy(g->copy, v->name.at, v->name.len);
    g->copy[v->name.len] = '\0';
    g->name = v->name;
    g->bytes = bytes;
    g->space = v->space;
    TRY(memory_allocate(memory, bytes > 0 ? bytes : 1, &g->address, error));
    write_initial(m, t, v, v->initial, v->initial_len, content, bytes);
    TRY(memory_write(memory, g->address, content, bytes, error));
    if (v->space == PTX_CONST) {
        memory_set_constant(memory, g->address);
    }
done:
    free(content);
    return status;
}

static hone_status make_globals(ptx_module *m, const ptx_tree *t, device_memory *memory,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    uint32_t count = 0;

    for (const ptx_variable_link *l = t->variables; l != NULL; l = l->next) {
        count += l->variable.space == PTX_GLOBAL || l->variable.space == PTX_CONST;
    }
    m->globals = calloc(count + 1u, sizeof *m->globals);
    if (m->globals == NULL) {
        return status_set(error, HONE_NO_MEMORY, "ptx", 0, "the module's variables");
    }
    for (const ptx_variable_link *l = t->variables; l != NULL; l = l->next) {
        if (l->variable.space == PTX_GLOBAL || l->variable.space == PTX_CONST) {
            TRY(make_global(m, t, &l->variable, memory, error));
        }
    }
done:
    return status;
}

static hone_status make_kernel(ptx_module *m, const ptx_tree *t, const ptx_function *f,
                               const ptx_op *ops, ptx_report *report, hone_error *error)
{
    ptx_builder *b = calloc(1, sizeof *b);

    if (b == NULL) {
        return status_set(error, HONE_NO_MEMORY, "ptx", 0, "a kernel");
    }
    b->tree = t;
    b->ops = ops;
    b->ops_len = OPS_LEN;
    b->globals = m->globals;
    b->globals_len = m->globals_len;
    b->report = report;
    b->error = error;
    b->guard = MACHINE_NONE;
    ptx_kernel *k = &m->kernels[m->kernels_len++];
    k->files = &m->files;
    hone_status status = ptx_decode_kernel(b, f, k);
    ptx_build_close(b);
    free(b);
    return status;
}

static hone_status make_kernels(ptx_module *m, const ptx_tree *t, ptx_report *report,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    uint32_t count = 0;
    size_t len = 0;
    const exec_row *rows = NULL;
    ptx_op *ops = calloc(OPS_LEN, sizeof *ops);

    for (const ptx_function *f = t->functions; f != NULL; f = f->next) {
        count += f->is_entry && f->has_body;
    }
    m->kernels = calloc(count + 1u, sizeof *m->kernels);
    if (ops == NULL || m->kernels == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "ptx", 0, "the module's kernels");
        goto done;
    }
    rows = exec_table(&len);
    add_table(ops, rows, len);
    rows = exec_table_rare(&len);
    add_table(ops, rows, len);
    rows = exec_round_table(&len);
    add_table(ops, rows, len);
    for (const ptx_function *f = t->functions; f != NULL; f = f->next) {
        if (f->is_entry && f->has_body) {
            TRY(make_kernel(m, t, f, ops, report, error));
        }
    }
done:
    free(ops);
    return status;
}

hone_status ptx_module_load(const char *text, size_t len, device_memory *memory, ptx_module **out,
                            char *log, size_t log_capacity, hone_error *error)
{
    hone_status status = HONE_OK;
    ptx_tree tree = {0};
    ptx_report report = {0};
    ptx_module *m = calloc(1, sizeof *m);

    if (log != NULL && log_capacity > 0) {
        log[0] = '\0';
    }
    if (m == NULL) {
        return status_set(error, HONE_NO_MEMORY, "ptx", 0, "a module");
    }
    TRY(ptx_parse(text, len, &tree, error));
    TRY(ptx_place_files(&tree, &m->files, error));
    TRY(make_globals(m, &tree, memory, error));
    TRY(make_kernels(m, &tree, &report, error));
    if (report.count > 0) {
        const char *list = report.text != NULL ? report.text : "";
        if (log != NULL && log_capacity > 0) {
            snprintf(log, log_capacity, "%s", list);
        }
        status = status_set(error, HONE_UNSUPPORTED, "ptx", report.first_line,
                            "the emulator lacks %u instruction forms:\n%s", report.count, list);
        goto done;
    }
    *out = m;
    m = NULL;
done:
    ptx_module_unload(m, memory);
    ptx_tree_close(&tree);
    free(report.text);
    return status;
}
