/* place.c - .file and .loc: lines of the CUDA source, kept with the kernel and its module. */
#include "emulator/ptx/build.h"
#include "emulator/ptx/parse.h"

#include <stdlib.h>
#include <string.h>

/* The number that stands next on this line; 0 when there is none. */
static uint32_t take_number(ptx_parser *p, int32_t line)
{
    bool there = p->token.kind == PTX_NUMBER && p->token.line == line && p->token.width == 0;
    uint32_t value = there && p->token.value <= INT32_MAX ? (uint32_t)p->token.value : 0;

    if (there) {
        ptx_parse_next(p);
    }
    return value;
}

/* Directives of nested calls come from the outside in: a caller that was itself inlined is the
 * place before this one, and knows who called it. */
static void find_caller(const ptx_place *before, ptx_place *place)
{
    if (before != NULL && before->caller_line != 0 && before->file == place->caller_file &&
        before->line == place->caller_line) {
        place->caller_file = before->caller_file;
        place->caller_line = before->caller_line;
    }
}

hone_status ptx_parse_loc(ptx_parser *p, int32_t line)
{
    ptx_place *place = ptx_arena_take(p->arena, sizeof *place);

    if (place == NULL) {
        return status_set(p->error, HONE_NO_MEMORY, "ptx", line, "a source line");
    }
    *place = (ptx_place){.file = take_number(p, line)};
    place->line = take_number(p, line);
    while (p->token.kind != PTX_END && p->token.line == line) {
        bool inlined = p->token.kind == PTX_NAME && ptx_text_is(p->token.text, "inlined_at");
        ptx_parse_next(p);
        if (inlined) {
            place->caller_file = take_number(p, line);
            place->caller_line = take_number(p, line);
        }
    }
    find_caller(p->place, place);
    p->place = place;
    return HONE_OK;
}

hone_status ptx_parse_file(ptx_parser *p, int32_t line)
{
    uint32_t number = take_number(p, line);

    if (p->token.kind == PTX_STRING && p->token.line == line) {
        ptx_file *file = ptx_arena_take(p->arena, sizeof *file);
        if (file == NULL) {
            return status_set(p->error, HONE_NO_MEMORY, "ptx", line, "a source file's name");
        }
        *file = (ptx_file){.number = number, .path = p->token.text};
        *p->files = file;
        p->files = &file->next;
    }
    return ptx_parse_skip_line(p, line);
}

hone_status ptx_place_keep(const ptx_builder *b, ptx_kernel *out)
{
    out->places = calloc(b->code_len + 1u, sizeof *out->places);
    if (out->places == NULL) {
        return status_set(b->error, HONE_NO_MEMORY, "ptx", 0, "a kernel's source lines");
    }
    for (uint32_t n = 0; n < b->code_len; n++) {
        if (b->place_at[n] != NULL) {
            out->places[n] = *b->place_at[n];
        }
    }
    return HONE_OK;
}

hone_status ptx_place_files(const ptx_tree *t, source_files *out, hone_error *error)
{
    size_t count = 0;

    for (const ptx_file *f = t->files; f != NULL; f = f->next) {
        count++;
    }
    out->list = calloc(count + 1, sizeof *out->list);
    for (const ptx_file *f = t->files; out->list != NULL && f != NULL; f = f->next) {
        char *path = strndup(f->path.at, f->path.len);
        if (path == NULL) {
            return status_set(error, HONE_NO_MEMORY, "ptx", 0, "source files' names");
        }
        out->list[out->len++] = (source_file){f->number, path};
    }
    return out->list != NULL ? HONE_OK
                             : status_set(error, HONE_NO_MEMORY, "ptx", 0, "source files' names");
}
