#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "store/internal.h"
#include "store/schema.h"

/* How long another process may hold the database: long enough for a command that reads it. */
#define BUSY_MS 500

#define QUOTE(x) #x
#define QUOTED(x) QUOTE(x)

/* Exclusive locking comes first: then the log needs no shared memory, and one connection is all
 * there can be. */
static const char *const settings = "PRAGMA locking_mode = EXCLUSIVE;"
                                    "PRAGMA journal_mode = WAL;"
                                    "PRAGMA synchronous = NORMAL;"
                                    "PRAGMA foreign_keys = ON;"
                                    "PRAGMA cell_size_check = ON;";

static int execute(struct store *store, const char *sql) {
    int result = sqlite3_exec(store->database, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : store_failed(store, result);
}

static int read_version(struct store *store, int *version) {
    sqlite3_stmt *statement;
    int result = sqlite3_prepare_v2(store->database, "PRAGMA user_version", -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result != SQLITE_ROW) {
        int code = store_failed(store, result);
        sqlite3_finalize(statement);
        return code;
    }
    *version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return 0;
}

/* Makes the tables of a new database. An older version would be brought up to date here. */
static int prepare_schema(struct store *store) {
    int version = 0;
    int code = read_version(store, &version);
    if (code)
        return code;
    if (version > STORE_VERSION)
        return error_set(ERROR_UNAVAILABLE,
                         "%s was written by a newer dml: it has version %d, this one knows up to "
                         "version %d; use the newer dml, or another state folder",
                         store->path, version, STORE_VERSION);
    if (version == STORE_VERSION)
        return 0;
    return execute(store, "BEGIN IMMEDIATE;" SCHEMA
                          "PRAGMA user_version = " QUOTED(STORE_VERSION) ";COMMIT;");
}

/* Takes the lock, which is held until the store is closed. */
static int take_lock(struct store *store) {
    int code = execute(store, "BEGIN EXCLUSIVE");
    return code ? code : execute(store, "COMMIT");
}

static void free_texts(char *texts[KEPT_TEXTS]) {
    for (int i = 0; i < KEPT_TEXTS; i++)
        free(texts[i]);
}

/* What is not committed is rolled back. */
static void release(struct store *store) {
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close(store->database);
    free_texts(store->run_texts);
    free_texts(store->model_texts);
    free(store->path);
    free(store);
}

static int open_database(const char *state_folder, int flags, struct store **opened) {
    struct store *store = memory_new(1, sizeof *store);
    store->path = memory_format("%s/dml.db", state_folder);
    int result = sqlite3_open_v2(store->path, &store->database, flags, NULL);
    int code = result == SQLITE_OK ? 0 : store_failed(store, result);
    if (!code && failpoint_write(FAILPOINT_store_open))
        code = error_set_errno(ERROR_IO, "cannot open %s", store->path);
    sqlite3_extended_result_codes(store->database, 1);
    sqlite3_busy_timeout(store->database, BUSY_MS);
    if (!code)
        code = execute(store, settings);
    if (!code)
        code = take_lock(store);
    if (!code)
        code = prepare_schema(store);
    if (code) {
        release(store);
        return code;
    }
    failpoint(FAILPOINT_store_opened);
    *opened = store;
    return 0;
}

int store_open(const char *state_folder, struct store **store) {
    return open_database(state_folder, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, store);
}

int store_open_existing(const char *state_folder, struct store **store) {
    char *path = memory_format("%s/dml.db", state_folder);
    struct stat status;
    int code = 0;
    if (stat(path, &status) && errno == ENOENT)
        code =
            error_set(ERROR_UNAVAILABLE, "%s: there is no such file: nothing was run there", path);
    free(path);
    return code ? code : open_database(state_folder, SQLITE_OPEN_READWRITE, store);
}

int store_close(struct store *store) {
    if (!store)
        return 0;
    int code = store_flush(store);
    release(store);
    return code;
}

/* What cannot be committed is rolled back. The failpoints are those around the commit. */
static int commit(struct store *store, unsigned before, unsigned after) {
    if (sqlite3_get_autocommit(store->database))
        return 0;
    int code = failpoint_write(before)
                   ? error_set_errno(ERROR_IO, "cannot write %s", store->path)
                   : store_run_statement(store, STATEMENT_COMMIT, NULL, 0, NULL, NULL);
    if (code && !sqlite3_get_autocommit(store->database))
        store_run_statement(store, STATEMENT_ROLLBACK, NULL, 0, NULL, NULL);
    if (!code)
        failpoint(after);
    return code;
}

int store_flush(struct store *store) {
    return commit(store, FAILPOINT_store_commit, FAILPOINT_store_committed);
}

int store_begin_durably(struct store *store) {
    int code = store_flush(store);
    if (!code)
        code = execute(store, "PRAGMA synchronous = FULL");
    if (!code)
        code = store_run_statement(store, STATEMENT_BEGIN, NULL, 0, NULL, NULL);
    return code;
}

int store_end_durably(struct store *store, int code) {
    if (code && !sqlite3_get_autocommit(store->database))
        store_run_statement(store, STATEMENT_ROLLBACK, NULL, 0, NULL, NULL);
    if (!code)
        code = commit(store, FAILPOINT_store_commit_full, FAILPOINT_store_committed_full);
    int restored = execute(store, "PRAGMA synchronous = NORMAL");
    return code ? code : restored;
}
