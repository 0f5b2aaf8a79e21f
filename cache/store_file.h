/* store_file.h - what the parts of the store share: the handle, its transaction and its statements.
 * Private to cache/. */
#ifndef HONE_CACHE_STORE_FILE_H
#define HONE_CACHE_STORE_FILE_H

#include "cache/row.h"
#include "cache/store.h"

/* Every statement of the store. One row: its name, the table that it reads whole rows of, its text.
 */
#define STORE_SQL_MAP(X)                                                                           \
    X(PUT_SWEEP, "INSERT OR REPLACE INTO sweeps VALUES(?,?,?,?,?,?,?,?,?,?,?)")                    \
    X(PUT_PROBLEM, "INSERT OR REPLACE INTO problems VALUES(?,?,?,?,?)")                            \
    X(PUT_DEVICE, "INSERT OR REPLACE INTO devices VALUES(?,?,?,?,?,?,?,?,?)")                      \
    X(PUT_CANDIDATE,                                                                               \
      "INSERT OR REPLACE INTO candidates VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"               \
      ",?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                                                     \
    X(PUT_WINNER, "INSERT OR REPLACE INTO winners VALUES(?,?,?,?,?,?,?)")                          \
    X(PUT_DEFAULT, "INSERT OR REPLACE INTO defaults VALUES(?,?,?,?,?)")                            \
    X(PUT_GENERATION, "INSERT OR REPLACE INTO generations VALUES(?,?,?,?,?)")                      \
    X(GET_SWEEP, "SELECT * FROM sweeps WHERE id=?")                                                \
    X(GET_PROBLEM, "SELECT * FROM problems WHERE id=?")                                            \
    X(FIND_PROBLEM, "SELECT * FROM problems WHERE hash=?4")                                        \
    X(GET_DEVICE, "SELECT * FROM devices WHERE id=?")                                              \
    X(FIND_DEVICE, "SELECT * FROM devices WHERE name=?2 AND arch=?3 AND sm_count=?4"               \
                   " AND smem=?5 AND mem_gib=?6 AND mem_100gb_s=?7 AND emulated=?8")               \
    X(GET_CANDIDATE, "SELECT * FROM candidates WHERE id=?")                                        \
    X(FIND_CANDIDATE, "SELECT * FROM candidates WHERE problem=? AND device=? AND template=?"       \
                      " AND config=?")                                                             \
    X(FIND_WINNER, "SELECT * FROM winners WHERE problem=? AND device=?")                           \
    X(FIND_DEFAULT, "SELECT * FROM defaults WHERE problem=? AND device=?")                         \
    X(LIST_CANDIDATES, "SELECT * FROM candidates WHERE (?1=0 OR problem=?1)"                       \
                       " AND (?2=0 OR device=?2) AND (?3=0 OR sweep=?3) AND (?4=0 OR id=?4)"       \
                       " AND (?5=0 OR outcome=?5) ORDER BY id")                                    \
    X(LIST_WINNERS, "SELECT * FROM winners WHERE (?1=0 OR problem=?1)"                             \
                    " AND (?2=0 OR device=?2) AND (?4=0 OR candidate=?4)"                          \
                    " ORDER BY device, problem")                                                   \
    X(NEXT_SWEEP, "SELECT coalesce(max(id),0)+1 FROM sweeps")                                      \
    X(NEXT_PROBLEM, "SELECT coalesce(max(id),0)+1 FROM problems")                                  \
    X(NEXT_DEVICE, "SELECT coalesce(max(id),0)+1 FROM devices")                                    \
    X(NEXT_CANDIDATE, "SELECT coalesce(max(id),0)+1 FROM candidates")                              \
    X(NEXT_WINNER, "SELECT coalesce(max(id),0)+1 FROM winners")                                    \
    X(NEXT_DEFAULT, "SELECT coalesce(max(id),0)+1 FROM defaults")                                  \
    X(NEXT_GENERATION, "SELECT coalesce(max(number),0)+1 FROM generations")                        \
    X(LIST_GENERATIONS, "SELECT * FROM generations ORDER BY number DESC")                          \
    X(DROP_GENERATIONS, "DELETE FROM generations WHERE number<=?-2")

typedef enum store_sql {
#define X(NAME, text) STORE_SQL_##NAME,
    STORE_SQL_MAP(X)
#undef X
        STORE_SQL_LEN
} store_sql;

/* Columns of each table, its digest included. */
enum {
    STORE_SWEEP_COLUMNS = 11,
    STORE_PROBLEM_COLUMNS = 5,
    STORE_DEVICE_COLUMNS = 9,
    STORE_CANDIDATE_COLUMNS = 36,
    STORE_WINNER_COLUMNS = 7,
    STORE_GENERATION_COLUMNS = 5,
    STORE_DEFAULT_COLUMNS = 5,
};

/* The first version of the schema that has the table `defaults`. */
enum { STORE_VERSION_DEFAULTS = 2 };

struct store {
    database *file;
    store_mode mode;
    sqlite3_stmt *statements[STORE_SQL_LEN];
    store_committed_fn committed;
    void *committed_context;
    bool writing;         /* a transaction is open */
    uint64_t pending;     /* finished candidates in it */
    int64_t committed_ms; /* monotonic time of the last COMMIT */
    hone_status broken;   /* a failed write: nothing more is written through this handle */
    int64_t sweep;        /* sweep whose facts follow; 0: none */
    char sweep_nvrtc[64];
    int32_t sweep_driver;
    int64_t problem; /* problem whose text follows; 0: none */
    char problem_text[512];
    int64_t device; /* device whose kind follows; 0: none */
    device_kind kind;
    double *samples; /* of the row being visited */
    size_t samples_capacity;
};

extern const database_schema store_schema;

/* The statement, reset and compiled on first use. */
hone_status store_statement(store *s, store_sql which, sqlite3_stmt **out, hone_error *error);

/* Open a transaction unless one is open. Refuses read-only and broken handles. Call it before the
 * reads that the write rests on: a read that is under way keeps an old snapshot, which no wait can
 * turn into a write. */
hone_status store_write_begin(store *s, hone_error *error);
/* Undo the transaction that a failed write stands in, if any, and then let nothing more through. A
 * refused argument is no failed write. Returns `status`. */
hone_status store_write_failed(store *s, hone_status status);

/* Count a finished candidate; commits when the batch is full or the last commit is 100 ms ago. */
hone_status store_write_pending(store *s, hone_error *error);

/* First free id of a table. */
hone_status store_next_id(store *s, store_sql which, int64_t *id, hone_error *error);

/* Bind integers from parameter 1 on and step; *row says whether there is a row. */
hone_status store_query(store *s, store_sql which, const int64_t *values, int values_len,
                        sqlite3_stmt **out, bool *row, hone_error *error);

/* Facts of a sweep into the handle. HONE_BAD_ARGUMENT when there is none. */
hone_status store_load_sweep(store *s, int64_t id, hone_error *error);

/* Text of a problem, kind of a device into the handle; *found = false when missing or damaged. */
hone_status store_load_problem(store *s, int64_t id, bool *found, hone_error *error);
hone_status store_load_device(store *s, int64_t id, bool *found, hone_error *error);

/* The candidate in the statement's current row, from its whole and intact columns. The pointers in
 * *out live until the statement's next step and the handle's next visit. */
hone_status store_row_read(store *s, sqlite3_stmt *statement, store_row *out, bool *intact,
                           hone_error *error);

/* The intact row of a key, without problem_text and kind; *found = false when there is none. The
 * caller resets *statement. */
hone_status store_row_find(store *s, const store_key *key, store_row *out, sqlite3_stmt **statement,
                           bool *found, hone_error *error);

/* Write a row over the one of its id, in the open transaction. */
hone_status store_row_write(store *s, const store_row *row, hone_error *error);

/* Refuse what is no result: an outcome that is none, an `ok` without a time, figures that are not
 * finite. HONE_BAD_ARGUMENT. */
hone_status store_result_check(const store *s, const store_result *r, hone_error *error);

/* Refuse a candidate that is not an `ok` one of this problem and device. */
hone_status store_require_ok(store *s, int64_t problem, int64_t device, int64_t candidate,
                             hone_error *error);

/* A problem's analytical default on a device: its time, 0 when it is not known, by which timer and
 * under which condition; a text that does not fit is cut, and then equals none. */
typedef struct store_default {
    double ns;
    int32_t timer;
    char tokens[128];
} store_default;
hone_status store_default_time(store *s, int64_t problem, int64_t device, store_default *out,
                               hone_error *error);

/* Whether a sweep's process still runs and has not ended the sweep, or what it ended with. */
typedef enum sweep_fate { SWEEP_ALIVE, SWEEP_ENDED, SWEEP_ENDED_WITH_MACHINE } sweep_fate;
hone_status store_sweep_fate(store *s, int64_t id, sweep_fate *fate, hone_error *error);

/* Whether an in-flight row that was begun `attempts` times, the last time by a sweep of that fate,
 * is tried no more. */
bool store_gives_up(sweep_fate fate, int32_t attempts);

#endif
