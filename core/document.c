/* document.c - build a tree from libyaml's events, with every limit checked while events arrive: a
 * hostile text is refused before it costs anything. */
#include "core/document.h"

#include "core/arena.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define MAX_BYTES  ((size_t)64 << 10)
#define MAX_DEPTH  16
#define MAX_EVENTS 10000

struct document {
    arena memory;
    const char *source;
    const document_node *root;
};

/* State of one parse. Finished nodes wait in `pending` until their container ends and takes them as
 * one run. */
typedef struct builder {
    document *d;
    yaml_parser_t *parser;
    hone_error *error;
    uint32_t events;
    document_node *pending;
    size_t pending_len, pending_capacity;
} builder;

static hone_status refuse(builder *b, int line, const char *rule)
{
    return status_set(b->error, HONE_BAD_TEXT, b->d->source, line, "%s", rule);
}

static int line_of(yaml_mark_t mark)
{
    return (int)mark.line + 1;
}

static hone_status next_event(builder *b, yaml_event_t *event)
{
    if (++b->events > MAX_EVENTS) {
        return status_set(b->error, HONE_LIMIT, b->d->source, line_of(b->parser->mark),
                          "over %d parts; split the description", MAX_EVENTS);
    }
    if (!yaml_parser_parse(b->parser, event)) {
        const char *problem = b->parser->problem != NULL ? b->parser->problem : "not YAML";
        return b->parser->error == YAML_MEMORY_ERROR
                   ? status_set(b->error, HONE_NO_MEMORY, b->d->source, 0, "YAML parser")
                   : refuse(b, line_of(b->parser->problem_mark), problem);
    }
    return HONE_OK;
}

static hone_status push(builder *b, const document_node *node)
{
    if (b->pending_len == b->pending_capacity) {
        size_t capacity = b->pending_capacity == 0 ? 64 : 2 * b->pending_capacity;
        document_node *grown = realloc(b->pending, capacity * sizeof *grown);
        if (grown == NULL) {
            return status_set(b->error, HONE_NO_MEMORY, b->d->source, 0, "description");
        }
        b->pending = grown;
        b->pending_capacity = capacity;
    }
    b->pending[b->pending_len++] = *node;
    return HONE_OK;
}

/* Move every `step`-th pending node from `first` on into the arena. */
static const document_node *take(builder *b, size_t first, size_t step, size_t count)
{
    document_node *taken = arena_alloc(&b->d->memory, (count > 0 ? count : 1) * sizeof *taken);

    for (size_t i = 0; taken != NULL && i < count; i++) {
        taken[i] = b->pending[first + i * step];
    }
    return taken;
}

static int compare_keys(const void *a, const void *b)
{
    const document_node *const *left = a, *const *right = b;

    return strcmp((*left)->text, (*right)->text);
}

/* Sorting keeps a map of thousands of keys cheap. */
static hone_status refuse_duplicates(builder *b, const document_node *map)
{
    hone_status status = HONE_OK;
    const document_node **sorted = calloc(map->len + 1, sizeof *sorted);

    if (sorted == NULL) {
        return status_set(b->error, HONE_NO_MEMORY, b->d->source, 0, "description");
    }
    for (size_t i = 0; i < map->len; i++) {
        sorted[i] = &map->keys[i];
    }
    qsort(sorted, map->len, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < map->len && status == HONE_OK; i++) {
        if (strcmp(sorted[i - 1]->text, sorted[i]->text) == 0) {
            int first = sorted[i - 1]->line, second = sorted[i]->line;
            status =
                status_set(b->error, HONE_BAD_TEXT, b->d->source, first > second ? first : second,
                           "key \"%.64s\" stands a second time", sorted[i]->text);
        }
    }
    free(sorted);
    return status;
}

static hone_status add_scalar(builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    int line = line_of(event->start_mark);

    if (event->data.scalar.tag != NULL) {
        return refuse(b, line, "tags are not allowed; quote what is text");
    }
    if (event->data.scalar.anchor != NULL) {
        return refuse(b, line, "anchors are not allowed; write the value out");
    }
    if (memchr(text, 0, len) != NULL) {
        return refuse(b, line, "a NUL byte in text");
    }
    document_node node = {
        .kind = DOCUMENT_SCALAR,
        .line = line,
        .quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
        .text = arena_text(&b->d->memory, text, len),
        .len = len,
    };
    if (node.text == NULL) {
        return status_set(b->error, HONE_NO_MEMORY, b->d->source, 0, "description");
    }
    return push(b, &node);
}

static hone_status check_key(builder *b, const document_node *key)
{
    if (key->kind != DOCUMENT_SCALAR) {
        return refuse(b, key->line, "a key must be plain text");
    }
    if (!key->quoted && strcmp(key->text, "<<") == 0) {
        return refuse(b, key->line, "merge keys are not allowed; write the values out");
    }
    return HONE_OK;
}

/* Turn what is pending from `first` on into one list or map. */
static hone_status close_container(builder *b, document_node *node, size_t first)
{
    hone_status status = HONE_OK;
    size_t count = b->pending_len - first;

    if (node->kind == DOCUMENT_MAP) {
        for (size_t i = first; i < b->pending_len; i += 2) {
            TRY(check_key(b, &b->pending[i]));
        }
        node->len = count / 2;
        node->keys = take(b, first, 2, node->len);
        node->items = take(b, first + 1, 2, node->len);
    } else {
        node->len = count;
        node->items = take(b, first, 1, node->len);
    }
    if (node->items == NULL || (node->kind == DOCUMENT_MAP && node->keys == NULL)) {
        return status_set(b->error, HONE_NO_MEMORY, b->d->source, 0, "description");
    }
    if (node->kind == DOCUMENT_MAP) {
        TRY(refuse_duplicates(b, node));
    }
    b->pending_len = first;
    TRY(push(b, node));
done:
    return status;
}

static hone_status add_node(builder *b, const yaml_event_t *event, int depth);

/* The children of a container whose start event was read. */
static hone_status add_children(builder *b, document_node *node, yaml_event_type_t end, int depth)
{
    hone_status status = HONE_OK;
    size_t first = b->pending_len;
    yaml_event_t event;

    for (;;) {
        memset(&event, 0, sizeof event);
        TRY(next_event(b, &event));
        if (event.type == end) {
            break;
        }
        TRY(add_node(b, &event, depth + 1));
        yaml_event_delete(&event);
    }
    TRY(close_container(b, node, first));
done:
    yaml_event_delete(&event);
    return status;
}

static hone_status add_node(builder *b, const yaml_event_t *event, int depth)
{
    bool map = event->type == YAML_MAPPING_START_EVENT;
    bool list = event->type == YAML_SEQUENCE_START_EVENT;
    int line = line_of(event->start_mark);
    document_node node = {.kind = map ? DOCUMENT_MAP : DOCUMENT_LIST, .line = line};

    if (event->type == YAML_SCALAR_EVENT) {
        return add_scalar(b, event);
    }
    if (!map && !list) {
        return refuse(b, line, "aliases are not allowed; write the value out");
    }
    if (depth >= MAX_DEPTH) {
        return status_set(b->error, HONE_LIMIT, b->d->source, line, "nested over %d deep",
                          MAX_DEPTH);
    }
    if ((map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor) != NULL) {
        return refuse(b, line, "anchors are not allowed; write the value out");
    }
    if ((map ? event->data.mapping_start.tag : event->data.sequence_start.tag) != NULL) {
        return refuse(b, line, "tags are not allowed");
    }
    return add_children(b, &node, map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT, depth);
}

/* Read one event that must be of `type`. */
static hone_status expect(builder *b, yaml_event_type_t type, const char *rule)
{
    hone_status status = HONE_OK;
    yaml_event_t event;

    memset(&event, 0, sizeof event);
    TRY(next_event(b, &event));
    if (event.type != type) {
        status = refuse(b, line_of(event.start_mark), rule);
        goto done;
    }
    if (type == YAML_DOCUMENT_START_EVENT && (event.data.document_start.version_directive != NULL ||
                                              event.data.document_start.tag_directives.start !=
                                                  event.data.document_start.tag_directives.end)) {
        status = refuse(b, line_of(event.start_mark), "directives are not allowed");
    }
done:
    yaml_event_delete(&event);
    return status;
}

static hone_status build(builder *b)
{
    hone_status status = HONE_OK;
    yaml_event_t event;

    memset(&event, 0, sizeof event);
    TRY(expect(b, YAML_STREAM_START_EVENT, "not YAML"));
    TRY(expect(b, YAML_DOCUMENT_START_EVENT, "the description is empty"));
    TRY(next_event(b, &event));
    TRY(add_node(b, &event, 0));
    TRY(expect(b, YAML_DOCUMENT_END_EVENT, "more than one description"));
    TRY(expect(b, YAML_STREAM_END_EVENT, "more than one description in a file"));
    b->d->root = take(b, 0, 1, 1);
    if (b->d->root == NULL) {
        status = status_set(b->error, HONE_NO_MEMORY, b->d->source, 0, "description");
    }
done:
    yaml_event_delete(&event);
    return status;
}

hone_status document_parse(const char *source, const char *text, size_t len, document **out,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    yaml_parser_t parser;
    builder b = {.parser = &parser, .error = error};
    bool parsing = false;

    if (len > MAX_BYTES) {
        return status_set(error, HONE_LIMIT, source, 0, "%zu bytes; a description has at most %zu",
                          len, MAX_BYTES);
    }
    if (len > 0 && memchr(text, 0, len) != NULL) {
        return status_set(error, HONE_BAD_TEXT, source, 0, "a NUL byte in text");
    }
    b.d = calloc(1, sizeof *b.d);
    if (b.d == NULL || (b.d->source = arena_text(&b.d->memory, source, strlen(source))) == NULL ||
        !yaml_parser_initialize(&parser)) {
        status = status_set(error, HONE_NO_MEMORY, source, 0, "description");
        goto done;
    }
    parsing = true;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    TRY(build(&b));
    *out = b.d;
    b.d = NULL;
done:
    if (parsing) {
        yaml_parser_delete(&parser);
    }
    free(b.pending);
    document_free(b.d);
    return status;
}

void document_free(document *d)
{
    if (d != NULL) {
        arena_free(&d->memory);
        free(d);
    }
}

const document_node *document_root(const document *d)
{
    return d->root;
}

const char *document_source(const document *d)
{
    return d->source;
}
