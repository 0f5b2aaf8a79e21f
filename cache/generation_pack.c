/* generation_pack.c - put all winners of a store into one blob, the same bytes for the same
 * winners. */
#include "cache/generation_format.h"
#include "cache/store_file.h"
#include "core/moment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is gathered before it is laid out. Texts repeat from winner to winner: each is kept once, by
 * a small hash table of offsets into the pool. */
typedef struct packer {
    packed_winner *winners;
    packed_kind *kinds;
    char *pool;
    uint32_t *texts; /* offset + 1 of a text in the pool; 0: free */
    size_t winners_len, winners_capacity, kinds_len, kinds_capacity, pool_len, pool_capacity;
    size_t texts_len, texts_capacity; /* capacity: a power of two */
    hone_status status;
    hone_error *error;
} packer;

/* Make room for one more element. */
static bool grow(packer *p, void **array, size_t *capacity, size_t needed, size_t element)
{
    if (needed <= *capacity) {
        return true;
    }
    size_t larger = needed * 2 + 64;
    void *grown = realloc(*array, larger * element);
    if (grown == NULL) {
        p->status = status_set(p->error, HONE_NO_MEMORY, NULL, 0, "generation");
        return false;
    }
    *array = grown;
    *capacity = larger;
    return true;
}

/* Append bytes to the pool; the offset in *at. */
static bool pool_add(packer *p, const void *bytes, size_t len, uint32_t *at)
{
    if (p->pool_len + len > UINT32_MAX / 2) {
        p->status = status_set(p->error, HONE_LIMIT, NULL, 0, "a generation of over 2 GiB");
        return false;
    }
    if (!grow(p, (void **)&p->pool, &p->pool_capacity, p->pool_len + len, 1)) {
        return false;
    }
    memcpy(p->pool + p->pool_len, bytes, len);
    *at = (uint32_t)p->pool_len;
    p->pool_len += len;
    return true;
}

/* The slot of a text: where it stands, or the free one where it belongs. */
static uint32_t *text_slot(const packer *p, const char *text)
{
    problem_hash hash = problem_key_hash((const uint8_t *)text, strlen(text));

    for (size_t i = (size_t)hash.low;; i++) {
        uint32_t *slot = &p->texts[i & (p->texts_capacity - 1)];
        if (*slot == 0 || strcmp(p->pool + *slot - 1, text) == 0) {
            return slot;
        }
    }
}

/* Keep the table at most half full. */
static bool texts_grow(packer *p)
{
    uint32_t *old = p->texts;
    size_t old_capacity = p->texts_capacity;

    if (2 * (p->texts_len + 1) <= p->texts_capacity) {
        return true;
    }
    p->texts_capacity = old_capacity == 0 ? 256 : 2 * old_capacity;
    p->texts = calloc(p->texts_capacity, sizeof *p->texts);
    if (p->texts == NULL) {
        p->texts = old;
        p->texts_capacity = old_capacity;
        p->status = status_set(p->error, HONE_NO_MEMORY, NULL, 0, "generation");
        return false;
    }
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i] != 0) {
            *text_slot(p, p->pool + old[i] - 1) = old[i];
        }
    }
    free(old);
    return true;
}

static bool text_add(packer *p, const char *text, uint32_t *at)
{
    if (!texts_grow(p)) {
        return false;
    }
    uint32_t *slot = text_slot(p, text);
    if (*slot == 0) {
        if (!pool_add(p, text, strlen(text) + 1, at)) {
            return false;
        }
        *slot = *at + 1;
        p->texts_len++;
    }
    *at = *slot - 1;
    return true;
}

static bool kind_add(packer *p, const device_kind *kind, uint32_t *at)
{
    packed_kind made;

    memset(&made, 0, sizeof made);
    memcpy(made.name, kind->name, strnlen(kind->name, sizeof made.name - 1));
    made.arch = kind->arch;
    made.sm_count = kind->sm_count;
    made.smem = kind->smem_per_block;
    made.mem_gib = kind->mem_gib;
    made.mem_100gb_s = kind->mem_100gb_s;
    made.emulated = kind->emulated;
    for (size_t i = 0; i < p->kinds_len; i++) {
        if (memcmp(&p->kinds[i], &made, sizeof made) == 0) {
            *at = (uint32_t)i;
            return true;
        }
    }
    if (!grow(p, (void **)&p->kinds, &p->kinds_capacity, p->kinds_len + 1, sizeof *p->kinds)) {
        return false;
    }
    *at = (uint32_t)p->kinds_len;
    p->kinds[p->kinds_len++] = made;
    return true;
}

static int add_winner(void *context, const store_winner *winner)
{
    packer *p = context;
    const store_row *row = &winner->row;
    hone_problem problem;
    uint8_t key[PROBLEM_KEY_MAX];
    packed_winner made;

    /* A text that this version no longer reads is left out: a miss, not a failure (cases.md 18). */
    if (hone_problem_parse(row->problem_text, &problem, NULL) != HONE_OK) {
        return 0;
    }
    size_t key_len = problem_key(&problem, key);
    problem_hash hash = problem_key_hash(key, key_len);
    memset(&made, 0, sizeof made);
    made.id = winner->id;
    made.time_ns = row->result.time_ns;
    made.hash_low = hash.low;
    made.hash_high = hash.high;
    made.key_len = (uint32_t)key_len;
    made.timer = row->result.timer;
    made.verdict = winner->verdict;
    made.driver = row->driver;
    memcpy(made.template_digest, row->template_digest, sizeof made.template_digest);
    if (!pool_add(p, key, key_len, &made.key) ||
        !text_add(p, row->template_name, &made.template_name) ||
        !text_add(p, row->config, &made.config) || !text_add(p, row->nvrtc, &made.nvrtc) ||
        !kind_add(p, row->kind, &made.kind) ||
        !grow(p, (void **)&p->winners, &p->winners_capacity, p->winners_len + 1,
              sizeof *p->winners)) {
        return 1;
    }
    p->winners[p->winners_len++] = made;
    return 0;
}

/* The parts in one run of bytes, owned by the caller. */
static hone_status lay_out(const packer *p, unsigned char **out, size_t *len, hone_error *error)
{
    packed_head head = {
        .magic = PACKED_MAGIC,
        .kinds_len = (uint32_t)p->kinds_len,
        .winners_len = (uint32_t)p->winners_len,
        .pool_bytes = p->pool_len + 1, /* a NUL at the end bounds every text */
    };
    const struct {
        const void *bytes;
        size_t len;
    } parts[] = {
        {&head, sizeof head},
        {p->kinds, p->kinds_len * sizeof *p->kinds},
        {p->winners, p->winners_len * sizeof *p->winners},
        {p->pool, p->pool_len},
    };
    size_t total = 1, at = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        total += parts[i].len;
    }
    unsigned char *made = calloc(total, 1);
    if (made == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "generation");
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].len > 0) {
            memcpy(made + at, parts[i].bytes, parts[i].len);
        }
        at += parts[i].len;
    }
    *out = made;
    *len = total;
    return HONE_OK;
}

/* The newest generation's number and content digest; number 0 when there is none that is intact. */
static hone_status newest(store *s, int64_t *number, uint8_t content[DIGEST_BYTES],
                          hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *row = NULL;
    bool found = false;

    *number = 0;
    TRY(store_query(s, STORE_SQL_LIST_GENERATIONS, NULL, 0, &row, &found, error));
    if (found && row_intact(row, "generations", 0, STORE_GENERATION_COLUMNS) &&
        sqlite3_column_bytes(row, 2) == DIGEST_BYTES) {
        *number = sqlite3_column_int64(row, 0);
        memcpy(content, sqlite3_column_blob(row, 2), DIGEST_BYTES);
    }
done:
    sqlite3_reset(row);
    return status;
}

static hone_status write_generation(store *s, const unsigned char *bytes, size_t len,
                                    const uint8_t content[DIGEST_BYTES], int64_t *number,
                                    hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;

    TRY(store_write_begin(s, error));
    TRY(store_next_id(s, STORE_SQL_NEXT_GENERATION, number, error));
    TRY(store_statement(s, STORE_SQL_PUT_GENERATION, &statement, error));
    const cell cells[] = {cell_int(*number), cell_int(moment_ms(CLOCK_REALTIME)),
                          cell_blob(content, DIGEST_BYTES), cell_blob(bytes, len)};
    TRY(row_write(s->file, statement, "generations", cells, ARRAY_LEN(cells), error));
    TRY(store_query(s, STORE_SQL_DROP_GENERATIONS, number, 1, &statement, NULL, error));
    sqlite3_reset(statement);
    TRY(store_flush(s, error));
done:
    return status == HONE_OK ? status : store_write_failed(s, status);
}

hone_status store_pack(store *s, uint64_t *number, hone_error *error)
{
    hone_status status = HONE_OK;
    packer p = {.error = error};
    unsigned char *bytes = NULL;
    size_t len = 0;
    digest d;
    uint8_t content[DIGEST_BYTES], before[DIGEST_BYTES];
    int64_t made = 0;

    TRY(store_flush(s, error));
    TRY(store_winners(s, NULL, add_winner, &p, error));
    TRY(p.status);
    TRY(lay_out(&p, &bytes, &len, error));
    digest_begin(&d);
    digest_bytes(&d, bytes, len);
    digest_end(&d, content);
    TRY(newest(s, &made, before, error));
    if (made == 0 || memcmp(content, before, sizeof content) != 0) {
        TRY(write_generation(s, bytes, len, content, &made, error));
    }
    if (number != NULL) {
        *number = (uint64_t)made;
    }
done:
    free(bytes);
    free(p.winners);
    free(p.kinds);
    free(p.pool);
    free(p.texts);
    return status;
}
