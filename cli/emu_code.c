/* emu_code.c - a kernel's file to PTX: as it is, or through NVRTC in its worker. */
#include "cli/emu.h"

#include "core/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 64 << 20 };

hone_status emu_read_file(const char *path, char **out, size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    FILE *f = fopen(path, "rbe");
    char *text = NULL;
    size_t used = 0, capacity = 1 << 16;

    if (f == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, path, 0, "cannot be read");
    }
    do {
        char *grown = realloc(text, capacity *= 2);
        if (grown == NULL || capacity > FILE_MOST) {
            text = grown != NULL ? grown : text;
            status = status_set(error, HONE_LIMIT, path, 0, "over %d MiB", FILE_MOST >> 21);
            goto done;
        }
        text = grown;
        used += fread(text + used, 1, capacity - used - 1, f);
    } while (used == capacity - 1);
    if (ferror(f)) {
        status = status_set(error, HONE_IO, path, 0, "cannot be read whole");
        goto done;
    }
    text[used] = '\0';
    *out = text;
    if (len != NULL) {
        *len = used;
    }
    text = NULL;
done:
    free(text);
    fclose(f);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* The path is part of the key: it stands in the line information. */
static void digest_path(const char *path, uint8_t out[DIGEST_BYTES])
{
    digest d;

    digest_begin(&d);
    digest_text(&d, "hone emu");
    digest_text(&d, path);
    digest_end(&d, out);
}

static hone_status compile(const emu_options *o, int32_t arch, const char *expression, emu_code *c,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options compiler = {.workers = 1};
    emu_headers headers = {.len = 0};
    jit_request request = {
        .name = o->file, .entries = {expression}, .entries_len = 1, .arch = arch, .lineinfo = true};
    compiled *made = NULL;
    jit *j = NULL;

    TRY(emu_headers_collect(o, c->text, &headers, error));
    request.source = (template_source){.source = c->text,
                                       .headers = (const char *const *)headers.texts,
                                       .names = (const char *const *)headers.names,
                                       .headers_len = headers.len};
    digest_path(o->file, request.digest);
    TRY(jit_open(&compiler, &j, error));
    TRY(jit_compile(j, &request, &made, error));
    c->ptx = made->ptx;
    c->entry = made->kernels[0].lowered;
    c->report = made->kernels[0];
    c->report.entry = c->report.lowered = NULL;
    made->ptx = NULL;
    made->kernels[0].lowered = NULL;
done:
    compiled_free(made);
    jit_close(j);
    emu_headers_free(&headers);
    return status;
}

hone_status emu_code_open(const emu_options *o, int32_t arch, emu_code *out, hone_error *error)
{
    hone_status status = HONE_OK;
    emu_code c = {.is_cuda = !ends_with(o->file, ".ptx")};
    char *expression = NULL;

    if (!ends_with(o->file, ".ptx") && !ends_with(o->file, ".cu")) {
        return status_set(error, HONE_BAD_ARGUMENT, o->file, 0,
                          "a kernel's file ends in .cu or .ptx");
    }
    TRY(emu_read_file(o->file, &c.text, NULL, error));
    if (!c.is_cuda) {
        c.ptx = strdup(c.text);
        if (c.ptx == NULL) {
            status = status_set(error, HONE_NO_MEMORY, o->file, 0, "its text");
            goto done;
        }
        TRY(emu_entry_of_ptx(o->file, c.ptx, o->kernel, &c.entry, error));
    } else {
        if (o->kernel == NULL) {
            TRY(emu_entry_of_cuda(o->file, c.text, &expression, error));
        }
        TRY(compile(o, arch, o->kernel != NULL ? o->kernel : expression, &c, error));
    }
    *out = c;
    c = (emu_code){.text = NULL};
done:
    free(expression);
    emu_code_close(&c);
    return status;
}

void emu_code_close(emu_code *c)
{
    free(c->text);
    free(c->ptx);
    free(c->entry);
    *c = (emu_code){.text = NULL};
}
