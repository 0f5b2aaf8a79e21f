/* store_identity.c - sweeps, problems and devices: the rows that candidates point to. */
#include "cache/store_file.h"

#include "core/moment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process is told from a later one of the same number by when it started and by the boot. */
typedef struct process_mark {
    int64_t pid, started;
    char boot[48];
} process_mark;

/* Read a small file of /proc; "" when it cannot be. */
static void read_small(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, capacity - 1) : 0;

    text[len > 0 ? len : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* Start time of a process in ticks since boot, 0 when there is none (field 22 of its stat, counted
 * from behind the name, which may hold anything). */
static int64_t process_started(int64_t pid)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_small(path, text, sizeof text);
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? strtoll(at, NULL, 10) : 0;
}

static void mark_process(process_mark *out)
{
    out->pid = getpid();
    out->started = process_started(out->pid);
    read_small("/proc/sys/kernel/random/boot_id", out->boot, sizeof out->boot);
    out->boot[strcspn(out->boot, "\n")] = '\0';
}

/* A sweep as its row has it. */
typedef struct sweep_row {
    store_sweep facts;
    process_mark process;
    int64_t begun_ms, ended_ms;
} sweep_row;

static hone_status write_sweep(store *s, int64_t id, const sweep_row *row, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *insert = NULL;

    TRY(store_statement(s, STORE_SQL_PUT_SWEEP, &insert, error));
    const cell cells[] = {
        cell_int(id),
        cell_text(row->facts.command),
        cell_text(row->facts.nvrtc),
        cell_int(row->facts.driver),
        cell_int((int64_t)row->facts.seed),
        cell_int(row->process.pid),
        cell_int(row->process.started),
        cell_text(row->process.boot),
        cell_int(row->begun_ms),
        cell_int(row->ended_ms),
    };
    TRY(row_write(s->file, insert, "sweeps", cells, ARRAY_LEN(cells), error));
done:
    return status;
}

/* The sweep's row; text is borrowed from *statement until its reset. */
static hone_status read_sweep(store *s, int64_t id, sweep_row *out, sqlite3_stmt **statement,
                              bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *row = NULL;

    TRY(store_query(s, STORE_SQL_GET_SWEEP, &id, 1, &row, found, error));
    *found = *found && row_intact(row, "sweeps", 0, STORE_SWEEP_COLUMNS);
    *statement = row;
    if (*found) {
        *out = (sweep_row){
            .facts = {row_text(row, 1), row_text(row, 2), sqlite3_column_int(row, 3),
                      (uint64_t)sqlite3_column_int64(row, 4)},
            .process = {sqlite3_column_int64(row, 5), sqlite3_column_int64(row, 6), ""},
            .begun_ms = sqlite3_column_int64(row, 8),
            .ended_ms = sqlite3_column_int64(row, 9),
        };
        snprintf(out->process.boot, sizeof out->process.boot, "%s", row_text(row, 7));
    }
done:
    return status;
}

hone_status store_sweep_begin(store *s, const store_sweep *sweep, int64_t *id, hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t made = 0;
    sweep_row row = {.facts = *sweep, .begun_ms = moment_ms(CLOCK_REALTIME)};

    mark_process(&row.process);
    TRY(store_write_begin(s, error));
    TRY(store_next_id(s, STORE_SQL_NEXT_SWEEP, &made, error));
    TRY(write_sweep(s, made, &row, error));
    TRY(store_flush(s, error));
    *id = made;
done:
    return status == HONE_OK ? status : store_write_failed(s, status);
}

hone_status store_sweep_end(store *s, int64_t id, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    sweep_row row;
    bool found = false;

    TRY(store_write_begin(s, error));
    TRY(read_sweep(s, id, &row, &statement, &found, error));
    if (!found) {
        status =
            status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0, "no sweep %lld", (long long)id);
        goto done;
    }
    row.ended_ms = moment_ms(CLOCK_REALTIME);
    TRY(write_sweep(s, id, &row, error));
    sqlite3_reset(statement);
    TRY(store_flush(s, error));
done:
    sqlite3_reset(statement);
    return status == HONE_OK ? status : store_write_failed(s, status);
}

hone_status store_sweep_fate(store *s, int64_t id, sweep_fate *fate, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    sweep_row row;
    process_mark now;
    bool found = false;

    TRY(read_sweep(s, id, &row, &statement, &found, error));
    mark_process(&now);
    const bool same_boot = found && strcmp(row.process.boot, now.boot) == 0;
    const bool alive =
        same_boot && row.ended_ms == 0 && row.process.started == process_started(row.process.pid);
    *fate = alive ? SWEEP_ALIVE : same_boot ? SWEEP_ENDED : SWEEP_ENDED_WITH_MACHINE;
    sqlite3_reset(statement);
done:
    return status;
}

hone_status store_load_sweep(store *s, int64_t id, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    sweep_row row;
    bool found = false;

    if (s->sweep == id) {
        return HONE_OK;
    }
    TRY(read_sweep(s, id, &row, &statement, &found, error));
    if (!found) {
        return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0, "no sweep %lld",
                          (long long)id);
    }
    snprintf(s->sweep_nvrtc, sizeof s->sweep_nvrtc, "%s", row.facts.nvrtc);
    s->sweep_driver = row.facts.driver;
    s->sweep = id;
    sqlite3_reset(statement);
done:
    return status;
}

/* A table whose rows are told apart by all their columns but the id. */
typedef struct identity_table {
    const char *name;
    int columns; /* digest included */
    store_sql find, next, put;
} identity_table;

static const identity_table problems = {"problems", STORE_PROBLEM_COLUMNS, STORE_SQL_FIND_PROBLEM,
                                        STORE_SQL_NEXT_PROBLEM, STORE_SQL_PUT_PROBLEM};
static const identity_table devices = {"devices", STORE_DEVICE_COLUMNS, STORE_SQL_FIND_DEVICE,
                                       STORE_SQL_NEXT_DEVICE, STORE_SQL_PUT_DEVICE};

/* The row that the cells' unique columns lead to: its id (0: none), and whether it is intact and
 * equal. */
static hone_status find_identity(store *s, const identity_table *table, const cell *cells,
                                 int64_t *id, bool *same, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *row = NULL;
    int last = table->columns - 1;

    TRY(store_statement(s, table->find, &row, error));
    for (int i = 1; i < last; i++) {
        row_bind(row, i + 1, &cells[i]); /* the statement takes those that it has a number for */
    }
    TRY(database_step(s->file, row, same, error));
    *id = *same ? sqlite3_column_int64(row, 0) : 0;
    *same = *same && row_intact(row, table->name, 0, table->columns);
    for (int i = 1; i < last && *same; i++) {
        *same = row_equal(row, i, &cells[i]);
    }
done:
    sqlite3_reset(row);
    sqlite3_clear_bindings(row);
    return status;
}

/* Find the row of the cells or make it; cells[0] takes its id. A damaged row is written anew in its
 * place, so that what points to it is whole again. Looked up a second time under the lock: another
 * process may have been faster. */
static hone_status have_identity(store *s, const identity_table *table, cell *cells, int64_t *id,
                                 hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *insert = NULL;
    bool same = false, open = s->writing;
    int64_t made = 0;

    TRY(find_identity(s, table, cells, &made, &same, error));
    if (!same) {
        TRY(store_write_begin(s, error));
        TRY(find_identity(s, table, cells, &made, &same, error));
    }
    if (!same && made == 0) {
        TRY(store_next_id(s, table->next, &made, error));
    }
    if (!same) {
        cells[0] = cell_int(made);
        TRY(store_statement(s, table->put, &insert, error));
        TRY(row_write(s->file, insert, table->name, cells, (size_t)table->columns - 1, error));
    }
    if (!open) {
        TRY(store_flush(s, error));
    }
    *id = made;
done:
    return status == HONE_OK ? status : store_write_failed(s, status);
}

hone_status store_problem_id(store *s, const hone_problem *problem, int64_t *id, hone_error *error)
{
    hone_status status = HONE_OK;
    char text[512];
    uint8_t key[PROBLEM_KEY_MAX];

    TRY(hone_problem_format(problem, text, sizeof text, error));
    size_t key_len = problem_key(problem, key);
    problem_hash hash = problem_key_hash(key, key_len);
    cell cells[] = {cell_int(0), cell_text(text), cell_blob(key, key_len),
                    cell_blob(&hash, sizeof hash)};
    TRY(have_identity(s, &problems, cells, id, error));
done:
    return status;
}

hone_status store_device_id(store *s, const device_kind *kind, int64_t *id, hone_error *error)
{
    cell cells[] = {
        cell_int(0),
        cell_text(kind->name),
        cell_int(kind->arch),
        cell_int(kind->sm_count),
        cell_int(kind->smem_per_block),
        cell_int(kind->mem_gib),
        cell_int(kind->mem_100gb_s),
        cell_int(kind->emulated),
    };

    return have_identity(s, &devices, cells, id, error);
}

static void read_kind(sqlite3_stmt *row, device_kind *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", row_text(row, 1));
    out->arch = sqlite3_column_int(row, 2);
    out->sm_count = sqlite3_column_int(row, 3);
    out->smem_per_block = sqlite3_column_int(row, 4);
    out->mem_gib = sqlite3_column_int(row, 5);
    out->mem_100gb_s = sqlite3_column_int(row, 6);
    out->emulated = sqlite3_column_int(row, 7) != 0;
}

/* The whole row of an id; *row is to be reset when it was found. */
static hone_status find_row(store *s, int64_t id, int sql, const char *table, int columns,
                            sqlite3_stmt **row, bool *found, hone_error *error)
{
    hone_status status = store_query(s, sql, &id, 1, row, found, error);

    *found = status == HONE_OK && *found && row_intact(*row, table, 0, columns);
    return status;
}

hone_status store_load_problem(store *s, int64_t id, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *row = NULL;

    *found = s->problem == id;
    if (!*found) {
        TRY(find_row(s, id, STORE_SQL_GET_PROBLEM, "problems", STORE_PROBLEM_COLUMNS, &row, found,
                     error));
        if (*found) {
            snprintf(s->problem_text, sizeof s->problem_text, "%s", row_text(row, 1));
            s->problem = id;
        }
        sqlite3_reset(row);
    }
done:
    return status;
}

hone_status store_load_device(store *s, int64_t id, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *row = NULL;

    *found = s->device == id;
    if (!*found) {
        TRY(find_row(s, id, STORE_SQL_GET_DEVICE, "devices", STORE_DEVICE_COLUMNS, &row, found,
                     error));
        if (*found) {
            read_kind(row, &s->kind);
            s->device = id;
        }
        sqlite3_reset(row);
    }
done:
    return status;
}
