/* parse.c - a module's text to a tree: directives, variables, functions. What an instruction
 * means is the decoder's business; here it is a name and operands. */
#include "emulator/ptx/parse.h"

#include <stdlib.h>
#include <string.h>

void ptx_parse_next(ptx_parser *p)
{
    p->token = ptx_lex(&p->lexer);
}

hone_status ptx_parse_fail(const ptx_parser *p, const char *what)
{
    size_t len = p->token.text.len < 40 ? p->token.text.len : 40;
    if (p->token.kind == PTX_END) {
        return status_set(p->error, HONE_BAD_TEXT, "ptx", p->token.line,
                          "the text ends where %s is expected; is it cut off?", what);
    }
    return status_set(p->error, HONE_BAD_TEXT, "ptx", p->token.line, "%s is expected at \"%.*s\"",
                      what, (int)len, p->token.text.at);
}

bool ptx_parse_mark(const ptx_parser *p, char mark)
{
    return p->token.kind == PTX_MARK && p->token.mark == mark;
}

bool ptx_parse_accept(ptx_parser *p, char mark)
{
    if (!ptx_parse_mark(p, mark)) {
        return false;
    }
    ptx_parse_next(p);
    return true;
}

hone_status ptx_parse_expect(ptx_parser *p, char mark)
{
    char what[] = "\"?\"";

    if (ptx_parse_accept(p, mark)) {
        return HONE_OK;
    }
    what[1] = mark;
    return ptx_parse_fail(p, what);
}

hone_status ptx_parse_skip_line(ptx_parser *p, int32_t line)
{
    while (p->token.kind != PTX_END && p->token.line == line) {
        ptx_parse_next(p);
    }
    return HONE_OK;
}

int ptx_parse_type_bytes(ptx_text type)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {
        {"pred", 0}, {"b8", 1},    {"u8", 1},     {"s8", 1},     {"b16", 2},   {"u16", 2},
        {"s16", 2},  {"f16", 2},   {"bf16", 2},   {"b32", 4},    {"u32", 4},   {"s32", 4},
        {"f32", 4},  {"f16x2", 4}, {"bf16x2", 4}, {"tf32", 4},   {"b64", 8},   {"u64", 8},
        {"s64", 8},  {"f64", 8},   {"e4m3x2", 2}, {"e5m2x2", 2}, {"b128", 16}, {"f32x2", 8},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (ptx_text_is(type, types[i].name)) {
            return types[i].bytes;
        }
    }
    return -1;
}

bool ptx_parse_space(ptx_text word, ptx_space *out)
{
    static const struct {
        const char *name;
        ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL},
                  {"shared", PTX_SHARED},
                  {"param", PTX_PARAM},
                  {"local", PTX_LOCAL},
                  {"const", PTX_CONST}};
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        if (ptx_text_is(word, spaces[i].name)) {
            *out = spaces[i].space;
            return true;
        }
    }
    return false;
}

static hone_status parse_params(ptx_parser *p, ptx_variable **out, uint32_t *len)
{
    hone_status status = HONE_OK;
    ptx_variable *list = NULL;
    uint32_t n = 0, capacity = 0;

    *len = 0;
    if (!ptx_parse_accept(p, '(')) {
        return HONE_OK;
    }
    while (!ptx_parse_mark(p, ')')) {
        if (n > 0) {
            TRY(ptx_parse_expect(p, ','));
        }
        ptx_variable v = {0};
        if (p->token.kind != PTX_DIRECTIVE) {
            status = ptx_parse_fail(p, ".param");
            goto done;
        }
        ptx_parse_next(p);
        TRY(ptx_parse_variable(p, PTX_PARAM, &v));
        if (n == capacity) {
            uint32_t more = capacity * 2 + 8;
            ptx_variable *bigger = ptx_arena_take(p->arena, more * sizeof *bigger);
            if (bigger == NULL) {
                status = status_set(p->error, HONE_NO_MEMORY, "ptx", v.line, "parameters");
                goto done;
            }
            if (n > 0) {
                memcpy(bigger, list, n * sizeof *list);
            }
            list = bigger;
            capacity = more;
        }
        list[n++] = v;
    }
    ptx_parse_next(p);
    *out = list;
    *len = n;
done:
    return status;
}

/* x{, y{, z}}; dimensions that are left out are 1. */
static void parse_dimensions(ptx_parser *p, uint32_t out[3])
{
    uint32_t n = 0;

    while (n < 3 && p->token.kind == PTX_NUMBER) {
        out[n++] = p->token.value < 65536 ? (uint32_t)p->token.value : 65536;
        ptx_parse_next(p);
        if (!ptx_parse_accept(p, ',')) {
            break;
        }
    }
    for (; n > 0 && n < 3; n++) {
        out[n] = 1;
    }
}

static uint32_t threads_in(const uint32_t dims[3], uint32_t otherwise)
{
    uint64_t count = (uint64_t)dims[0] * dims[1] * dims[2];

    return count > 0 && count <= 1024 ? (uint32_t)count : otherwise;
}

static void parse_tuning_word(ptx_parser *p, ptx_text word, ptx_function *f)
{
    uint32_t dims[3] = {0};

    if (ptx_text_is(word, "pragma")) {
        ptx_parse_next(p);
        ptx_parse_accept(p, ';');
    } else if (ptx_text_is(word, "explicitcluster")) {
        f->explicit_cluster = true;
    } else if (ptx_text_is(word, "reqnctapercluster")) {
        parse_dimensions(p, f->cluster);
    } else {
        parse_dimensions(p, dims);
    }
    if (ptx_text_is(word, "maxntid")) {
        f->max_threads = threads_in(dims, f->max_threads);
    } else if (ptx_text_is(word, "reqntid")) {
        memcpy(f->required_threads, dims, sizeof dims);
        f->max_threads = threads_in(dims, f->max_threads);
    } else if (ptx_text_is(word, "maxclusterrank")) {
        f->max_cluster_rank = dims[0];
    } else if (ptx_text_is(word, "minnctapersm")) {
        f->min_ctas = dims[0];
    } else if (ptx_text_is(word, "maxnreg")) {
        f->max_registers = dims[0];
    }
}

/* Between a signature and its body: .maxntid x, y, z and its kin. */
static void parse_tuning(ptx_parser *p, ptx_function *f)
{
    while (p->token.kind != PTX_END && !ptx_parse_mark(p, '{') && !ptx_parse_mark(p, ';')) {
        ptx_token word = p->token;

        ptx_parse_next(p);
        if (word.kind == PTX_DIRECTIVE) {
            parse_tuning_word(p, word.text, f);
        }
    }
}

static hone_status parse_function(ptx_parser *p, bool is_entry, ptx_function **tail_out)
{
    hone_status status = HONE_OK;
    ptx_function *f = ptx_arena_take(p->arena, sizeof *f);

    if (f == NULL) {
        return status_set(p->error, HONE_NO_MEMORY, "ptx", p->token.line, "a function");
    }
    *f = (ptx_function){.is_entry = is_entry};
    if (!is_entry) {
        TRY(parse_params(p, &f->results, &f->results_len));
    }
    if (p->token.kind != PTX_NAME) {
        return ptx_parse_fail(p, "a function's name");
    }
    f->name = p->token.text;
    ptx_parse_next(p);
    TRY(parse_params(p, &f->params, &f->params_len));
    parse_tuning(p, f);
    if (ptx_parse_accept(p, '{')) {
        f->has_body = true;
        TRY(ptx_parse_body(p, &f->body));
    } else {
        TRY(ptx_parse_expect(p, ';'));
    }
    *tail_out = f;
done:
    return status;
}

static hone_status parse_module_variable(ptx_parser *p, ptx_space space, bool is_extern,
                                         ptx_variable_link ***tail)
{
    hone_status status = HONE_OK;
    const ptx_variable *first = NULL;

    do {
        ptx_variable_link *link = ptx_arena_take(p->arena, sizeof *link);
        if (link == NULL) {
            return status_set(p->error, HONE_NO_MEMORY, "ptx", p->token.line, "a variable");
        }
        link->next = NULL;
        TRY(ptx_parse_variable(p, space, &link->variable));
        link->variable.is_extern = is_extern;
        if (first != NULL) { /* .global .b32 a, b: the type stands once */
            link->variable.element_bytes = first->element_bytes;
            link->variable.align = first->align;
        }
        first = first == NULL ? &link->variable : first;
        **tail = link;
        *tail = &link->next;
    } while (ptx_parse_accept(p, ','));
    status = ptx_parse_expect(p, ';');
done:
    return status;
}

static hone_status skip_section(ptx_parser *p)
{
    while (p->token.kind != PTX_END && !ptx_parse_mark(p, '}')) {
        ptx_parse_next(p);
    }
    return ptx_parse_expect(p, '}');
}

static bool is_word_of(ptx_text t, const char *const *words, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (ptx_text_is(t, words[i])) {
            return true;
        }
    }
    return false;
}

static hone_status parse_alias(ptx_parser *p, ptx_tree *t)
{
    hone_status status = HONE_OK;
    ptx_alias *a = ptx_arena_take(p->arena, sizeof *a);

    if (a == NULL) {
        return status_set(p->error, HONE_NO_MEMORY, "ptx", p->token.line, "an alias");
    }
    a->name = p->token.text;
    ptx_parse_next(p);
    TRY(ptx_parse_expect(p, ','));
    a->of = p->token.text;
    ptx_parse_next(p);
    TRY(ptx_parse_expect(p, ';'));
    a->next = t->aliases;
    t->aliases = a;
done:
    return status;
}

/* Addresses of 32 bits are for chips long gone: their kernels would read pointers that are none. */
static hone_status parse_address_size(ptx_parser *p)
{
    if (p->token.kind != PTX_NUMBER || p->token.value != 64) {
        return ptx_parse_fail(p, "an address size of 64");
    }
    ptx_parse_next(p);
    return HONE_OK;
}

static hone_status parse_module(ptx_parser *p, ptx_tree *t)
{
    static const char *const one_line[] = {"version", "target", "loc", "pragma"};
    static const char *const linkage[] = {"visible", "extern", "weak", "common"};
    hone_status status = HONE_OK;
    ptx_function **functions = &t->functions;
    ptx_variable_link **variables = &t->variables;
    bool is_extern = false;

    while (p->token.kind != PTX_END) {
        ptx_token word = p->token;
        ptx_space space = PTX_GLOBAL;
        if (word.kind != PTX_DIRECTIVE) {
            return ptx_parse_fail(p, "a directive");
        }
        ptx_parse_next(p);
        if (is_word_of(word.text, linkage, ARRAY_LEN(linkage))) {
            is_extern = is_extern || ptx_text_is(word.text, "extern");
            continue;
        }
        if (is_word_of(word.text, one_line, ARRAY_LEN(one_line))) {
            TRY(ptx_parse_skip_line(p, word.line));
        } else if (ptx_text_is(word.text, "address_size")) {
            TRY(parse_address_size(p));
        } else if (ptx_text_is(word.text, "file")) {
            TRY(ptx_parse_file(p, word.line));
        } else if (ptx_text_is(word.text, "alias")) {
            TRY(parse_alias(p, t));
        } else if (ptx_text_is(word.text, "section")) {
            TRY(skip_section(p));
        } else if (ptx_text_is(word.text, "entry") || ptx_text_is(word.text, "func")) {
            TRY(parse_function(p, ptx_text_is(word.text, "entry"), functions));
            functions = &(*functions)->next;
        } else if (ptx_parse_space(word.text, &space)) {
            TRY(parse_module_variable(p, space, is_extern, &variables));
        } else {
            p->token = word;
            return ptx_parse_fail(p, "a known module directive");
        }
        is_extern = false;
    }
done:
    return status;
}

hone_status ptx_parse(const char *text, size_t len, ptx_tree *out, hone_error *error)
{
    ptx_parser p = {.lexer = {text, text + len, 1}, .arena = &out->arena, .error = error};

    *out = (ptx_tree){0};
    p.files = &out->files;
    ptx_parse_next(&p);
    hone_status status = parse_module(&p, out);
    free(p.stack);
    return status;
}

void ptx_tree_close(ptx_tree *t)
{
    ptx_arena_close(&t->arena);
}
