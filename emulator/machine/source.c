/* source.c - instructions to lines of CUDA. */
#include "emulator/machine/source.h"
#include "emulator/machine/machine.h"

#include <stdio.h>
#include <stdlib.h>

void source_files_free(source_files *f)
{
    for (uint32_t n = 0; n < f->len; n++) {
        free(f->list[n].path);
    }
    free(f->list);
    *f = (source_files){0};
}

const char *source_path(const source_files *f, uint32_t number)
{
    for (uint32_t n = 0; n < f->len; n++) {
        if (f->list[n].number == number) {
            return f->list[n].path;
        }
    }
    return "";
}

const ptx_place *source_place(const ptx_kernel *k, const instruction *i)
{
    static const ptx_place unknown = {0};
    bool inside = i >= k->code && i < k->code + k->code_len;

    return inside ? &k->places[i - k->code] : &unknown;
}

void source_fill_fault(const ptx_kernel *k, const instruction *i, hone_emu_fault *f)
{
    const ptx_place *at = source_place(k, i);

    f->ptx_line = i->line;
    f->source_line = (int32_t)at->line;
    f->caller_line = (int32_t)at->caller_line;
    snprintf(f->source, sizeof f->source, "%s", source_path(k->files, at->file));
    snprintf(f->caller, sizeof f->caller, "%s", source_path(k->files, at->caller_file));
}
