/* generation.c - take a generation into memory: one read of one row, everything bounds-checked, the
 * file closed. */
#include "cache/generation.h"

#include "cache/generation_format.h"
#include "cache/row.h"
#include "cache/store_file.h"

#include <stdlib.h>
#include <string.h>

struct generation {
    uint64_t number;
    uint8_t content[DIGEST_BYTES];
    unsigned char *bytes; /* the packed blob; keys and texts point into it */
    device_kind *kinds;
    generation_winner *winners;
    size_t winners_len;
};

/* Where the parts of a blob lie, once its sizes are known to fit. */
typedef struct parts {
    packed_head head;
    const unsigned char *kinds, *winners;
    const char *pool;
} parts;

static bool find_parts(const unsigned char *bytes, size_t len, parts *out)
{
    if (len < sizeof out->head) {
        return false;
    }
    memcpy(&out->head, bytes, sizeof out->head);
    size_t kinds = out->head.kinds_len * sizeof(packed_kind);
    size_t winners = out->head.winners_len * sizeof(packed_winner);
    size_t rest = len - sizeof out->head;
    if (out->head.magic != PACKED_MAGIC || kinds > rest || winners > rest - kinds ||
        out->head.pool_bytes != rest - kinds - winners || out->head.pool_bytes == 0) {
        return false;
    }
    out->kinds = bytes + sizeof out->head;
    out->winners = out->kinds + kinds;
    out->pool = (const char *)out->winners + winners;
    return out->pool[out->head.pool_bytes - 1] == '\0';
}

static void unpack_kind(const unsigned char *bytes, device_kind *out)
{
    packed_kind kind;

    memcpy(&kind, bytes, sizeof kind);
    memset(out, 0, sizeof *out);
    memcpy(out->name, kind.name, sizeof out->name - 1);
    out->arch = kind.arch;
    out->sm_count = kind.sm_count;
    out->smem_per_block = kind.smem;
    out->mem_gib = kind.mem_gib;
    out->mem_100gb_s = kind.mem_100gb_s;
    out->emulated = kind.emulated != 0;
}

/* The problem of a key. Neighbours mostly differ in sizes alone, and the packer put in none that
 * was not legal: what was checked for the winner before (`like`, or NULL) is not checked again. */
static bool unpack_problem(const generation_winner *like, generation_winner *out)
{
    return (like != NULL &&
            problem_from_key_like(out->key, out->key_len, &like->problem, &out->problem)) ||
           problem_from_key(out->key, out->key_len, &out->problem, NULL) == HONE_OK;
}

/* False when an offset leaves the pool or the key is not that of a problem. `out` is one of the
 * generation's winners, in order. */
static bool unpack_winner(const parts *p, size_t index, const device_kind *kinds,
                          generation_winner *out)
{
    const unsigned char *at = p->winners + index * sizeof(packed_winner);
    packed_winner w;
    uint64_t pool = p->head.pool_bytes;

    memcpy(&w, at, sizeof w);
    if (w.kind >= p->head.kinds_len || w.template_name >= pool || w.config >= pool ||
        w.nvrtc >= pool || w.key > pool || w.key_len > pool - w.key || w.id == 0) {
        return false;
    }
    *out = (generation_winner){
        .id = w.id,
        .key = (const uint8_t *)p->pool + w.key,
        .key_len = w.key_len,
        .template_name = p->pool + w.template_name,
        .config = p->pool + w.config,
        .kind = &kinds[w.kind],
        .time_ns = w.time_ns,
        .timer = w.timer,
        .verdict = w.verdict,
        .template_digest = at + offsetof(packed_winner, template_digest),
        .nvrtc = p->pool + w.nvrtc,
        .driver = w.driver,
    };
    return w.time_ns > 0 && unpack_problem(index > 0 ? out - 1 : NULL, out);
}

/* Whether the bytes in g->bytes are a table of winners; fills the rest of *g. */
static hone_status unpack(generation *g, size_t len, bool *whole, hone_error *error)
{
    parts p;

    *whole = find_parts(g->bytes, len, &p);
    if (!*whole) {
        return HONE_OK;
    }
    g->winners_len = p.head.winners_len;
    g->kinds = calloc(p.head.kinds_len + 1u, sizeof *g->kinds);
    g->winners = malloc((g->winners_len + 1) * sizeof *g->winners);
    if (g->kinds == NULL || g->winners == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "generation");
    }
    for (size_t i = 0; i < p.head.kinds_len; i++) {
        unpack_kind(p.kinds + i * sizeof(packed_kind), &g->kinds[i]);
    }
    for (size_t i = 0; i < g->winners_len && *whole; i++) {
        *whole = unpack_winner(&p, i, g->kinds, &g->winners[i]);
    }
    return HONE_OK;
}

/* The generation in the statement's current row; *out stays NULL when it is damaged. */
static hone_status take(sqlite3_stmt *row, generation **out, hone_error *error)
{
    hone_status status = HONE_OK;
    generation *g = NULL;
    bool whole = false;

    if (!row_intact(row, "generations", 0, STORE_GENERATION_COLUMNS) ||
        sqlite3_column_bytes(row, 2) != DIGEST_BYTES) {
        return HONE_OK;
    }
    size_t len = (size_t)sqlite3_column_bytes(row, 3);
    g = calloc(1, sizeof *g);
    if (g == NULL || (g->bytes = malloc(len + 1)) == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "generation");
        goto done;
    }
    g->number = (uint64_t)sqlite3_column_int64(row, 0);
    memcpy(g->content, sqlite3_column_blob(row, 2), DIGEST_BYTES);
    memcpy(g->bytes, sqlite3_column_blob(row, 3), len);
    TRY(unpack(g, len, &whole, error));
    if (whole) {
        *out = g;
        g = NULL;
    }
done:
    generation_free(g);
    return status;
}

hone_status generation_load(const char *path, generation **out, hone_error *error)
{
    hone_status status = HONE_OK;
    database *file = NULL;
    sqlite3_stmt *statement = NULL;
    generation *made = NULL;
    bool row = true;
    int seen = 0;

    TRY(database_open(path, DATABASE_READ, &store_schema, &file, error));
    TRY(database_prepare(file, "SELECT * FROM generations ORDER BY number DESC", &statement,
                         error));
    while (made == NULL) {
        TRY(database_step(file, statement, &row, error));
        if (!row) {
            break;
        }
        seen++;
        TRY(take(statement, &made, error));
    }
    if (made == NULL) {
        status = seen == 0 ? status_set(error, HONE_NOT_FOUND, path, 0,
                                        "holds no winners yet: let a sweep end (hone tune)")
                           : status_set(error, HONE_STORE_DAMAGED, path, 0,
                                        "every generation is damaged; run hone tune on the store");
        goto done;
    }
    *out = made;
done:
    sqlite3_finalize(statement);
    database_close(file);
    return status;
}

void generation_free(generation *g)
{
    if (g != NULL) {
        free(g->bytes);
        free(g->kinds);
        free(g->winners);
        free(g);
    }
}

uint64_t generation_number(const generation *g)
{
    return g->number;
}

const uint8_t *generation_digest(const generation *g)
{
    return g->content;
}

size_t generation_len(const generation *g)
{
    return g->winners_len;
}

const generation_winner *generation_at(const generation *g, size_t index)
{
    return &g->winners[index];
}

generation_grade generation_grade_of(const generation_winner *winner,
                                     const uint8_t template_digest[32], const char *nvrtc,
                                     int32_t driver)
{
    if (memcmp(winner->template_digest, template_digest, DIGEST_BYTES) != 0) {
        return GENERATION_STALE;
    }
    return strcmp(winner->nvrtc, nvrtc) == 0 && winner->driver == driver ? GENERATION_CURRENT
                                                                         : GENERATION_SUSPECT;
}
