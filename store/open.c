#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/memory.h"
#include "store/internal.h"
#include "store/schema.h"

/* How long another process may hold the database: long enough for a command that reads it. On a
 * network file system anybody may read it while a run goes on. */
#define BUSY_MS 500
#define BUSY_NETWORK_MS 5000

/* Exclusive locking comes first: then the log needs no shared memory, and one connection is all
 * there can be. NORMAL comes before WAL: the change to it writes to an empty file, which needs no
 * more. */
static const char *const local_settings = "PRAGMA locking_mode = EXCLUSIVE;"
                                          "PRAGMA synchronous = NORMAL;"
                                          "PRAGMA journal_mode = WAL;";

/* WAL and exclusive locking are for one host. With EXCLUSIVE a database that was in WAL mode is
 * taken out of it without shared memory; then a process that lost its lock does not keep its
 * successor out. EXTRA, because a journal that was removed but is back after a power cut would undo
 * the last commit. */
static const char *const network_settings = "PRAGMA locking_mode = EXCLUSIVE;"
                                            "PRAGMA journal_mode = DELETE;"
                                            "PRAGMA locking_mode = NORMAL;"
                                            "PRAGMA synchronous = EXTRA;";

/* Without spilling nothing is written before a commit, and before a commit we look whether we still
 * may (base/file.h). */
static const char *const common_settings = "PRAGMA foreign_keys = ON;"
                                           "PRAGMA cell_size_check = ON;"
                                           "PRAGMA cache_spill = OFF;";

static int execute(struct store *store, const char *sql) {
    if (store->fenced)
        return store_fenced(store);
    int result = sqlite3_exec(store->database, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : store_failed(store, result);
}

/* A row of a check that is not "ok" says what is damaged. */
static int take_finding(void *context, int columns, char **values, char **names) {
    (void)columns, (void)names;
    if (strcmp(values[0], "ok") == 0)
        return 0;
    return store_unsound(context, values[0]);
}

static int check(struct store *store, const char *pragma) {
    int result = sqlite3_exec(store->database, pragma, take_finding, store, NULL);
    if (result == SQLITE_ABORT)
        return ERROR_IO;
    return result == SQLITE_OK ? 0 : store_failed(store, result);
}

/* What a run resumes from must belong to a run: a row whose run is missing is damage. */
#define CHECK_REFERENCES                                                                           \
    "PRAGMA foreign_key_check(attempts);"                                                          \
    "PRAGMA foreign_key_check(journal);"                                                           \
    "PRAGMA foreign_key_check(durable_steps);"

static const char *const upgrades[STORE_VERSION + 1] = {[1] = UPGRADES};
static const struct store_schema own_schema = {STORE_VERSION, upgrades};
const struct store_schema *store_schema = &own_schema;

static int bring_up_to_date(struct store *store, int version) {
    int code = version ? 0 : execute(store, SCHEMA);
    if (!code && !version)
        code = execute(store, SCHEMA_MORE);
    for (int i = version; version && !code && i < store_schema->version; i++)
        code = execute(store, store_schema->upgrades[i]);
    char *mark = memory_format("PRAGMA application_id = %d; PRAGMA user_version = %d",
                               STORE_APPLICATION, store_schema->version);
    if (!code)
        code = execute(store, mark);
    free(mark);
    return code;
}

/* The version of a database that this program knows; 0 of an empty file. */
static int read_known_version(struct store *store, int *version) {
    sqlite3_stmt *statement;
    int application = 0;
    int result = sqlite3_prepare_v2(
        store->database,
        "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id", -1,
        &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    const int code = result == SQLITE_ROW ? 0 : store_failed(store, result);
    if (!code) {
        *version = sqlite3_column_int(statement, 0);
        application = sqlite3_column_int(statement, 1);
    }
    sqlite3_finalize(statement);
    if (code)
        return code;
    if (*version > store_schema->version || (*version && application != STORE_APPLICATION))
        return error_set(ERROR_UNAVAILABLE,
                         "%s has version %d, and this program reads version %d: a newer or a "
                         "development version of dml made it; use that program, or another state "
                         "folder",
                         store->path, *version, store_schema->version);
    return *version < 0 ? store_damaged(store, "its version is negative") : 0;
}

/* A copy of an older database in memory, brought up to date. The file stays as it is. */
static int preview_upgrade(struct store *store, int version, struct store **preview) {
    struct store *copy = NULL;
    int code = store_copy(store, &copy);
    if (!code)
        code = bring_up_to_date(copy, version);
    if (code)
        store_close(copy);
    else
        *preview = copy;
    return code;
}

/* Makes the tables of a new database, and those that an older one lacks. An older program refuses
 * the database from then on. So what has to be looked at first is looked at in a preview: a run
 * that only an older program can end must not be locked out of both. */
static int prepare_schema(struct store *store, store_may_upgrade *may) {
    struct store *preview = NULL;
    int version = 0;
    int code = read_known_version(store, &version);
    if (!code && version && version < store_schema->version && may) {
        code = preview_upgrade(store, version, &preview);
        if (!code)
            code = may(preview);
        store_close(preview);
    }
    if (code || version == store_schema->version)
        return code;
    code = store_begin_durably(store);
    if (!code)
        code = bring_up_to_date(store, version);
    return store_end_durably(store, code);
}

/* ---- a new database ---- */

/* A log or journal of a database that is there no more: SQLite would play it back. */
static void remove_beside(const char *file) {
    static const char *const endings[] = {"-wal", "-journal"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char *path = memory_format("%s%s", file, endings[i]);
        unlink(path);
        free(path);
    }
}

static int put_in_place(struct store *store, const char *made, const char *file) {
    int code = store_may_write(store), descriptor = open(made, O_RDWR | O_CLOEXEC);
    if (!code && (descriptor < 0 || fsync(descriptor) ||
                  failpoint_write(FAILPOINT_store_commit_full) || rename(made, file)))
        code = error_set_errno(ERROR_IO, "cannot write %s", store->path);
    if (descriptor >= 0)
        close(descriptor);
    if (!code)
        failpoint(FAILPOINT_store_committed_full);
    return code;
}

/* On a local disk a database is made under another name and put in its place whole: its making
 * needs no journal and a single sync. The new name is on the disk with the first commit that is,
 * since SQLite then syncs the folder of its new log. Until then nothing was promised. */
static int make_database(struct store *store, const char *file) {
    char *made = memory_format("%s.new", file);
    unlink(made); /* of a process that was killed */
    remove_beside(made);
    remove_beside(file);
    int result =
        sqlite3_open_v2(made, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    int code = result == SQLITE_OK ? 0 : store_failed(store, result);
    if (!code)
        code = execute(store, "PRAGMA journal_mode = OFF;"
                              "PRAGMA synchronous = OFF;"
                              "PRAGMA locking_mode = EXCLUSIVE;"
                              "BEGIN");
    if (!code)
        code = bring_up_to_date(store, 0);
    if (!code) /* as a log in front of it takes it */
        code = execute(store, "COMMIT; PRAGMA journal_mode = WAL");
    sqlite3_close(store->database);
    store->database = NULL;
    if (!code)
        code = put_in_place(store, made, file);
    if (code)
        unlink(made);
    free(made);
    return code;
}

/* ---- opening and closing ---- */

/* To close a database is to write to it: the log is copied into it, and a journal is removed. So a
 * database that another process has taken over is left open until this process ends, in a list that
 * keeps it reachable. */
struct left {
    sqlite3 *database;
    struct left *before;
};

/* To move the log into the file takes three syncs, which is too much for a command that had nothing
 * to do, or only read: the log is as good, and whoever writes more moves all of it. An empty log is
 * removed. */
static void close_database(struct store *store) {
    static struct left *last;
    if (store->fenced || !guard_holds()) {
        struct left *left = memory_new(1, sizeof *left);
        *left = (struct left){.database = store->database, .before = last};
        last = left;
        return;
    }
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
    struct stat status;
    const bool keeps_log = store->database && !store->moves_log;
    const char *file = keeps_log ? sqlite3_db_filename(store->database, "main") : NULL;
    if (file && *file && !stat(sqlite3_filename_wal(file), &status) && status.st_size > 0)
        sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(store->database);
}

/* What is not committed is rolled back. */
static void store_release(struct store *store) {
    close_database(store);
    free(store->path);
    free(store);
}

/* Locks the database and checks the structure of its file. *store is to be released in any case. */
static int open_locked(const char *state_folder, const char *files, int flags,
                       struct store **opened) {
    struct store *store = *opened = memory_new(1, sizeof *store);
    char *file = memory_format("%s/dml.db", files);
    store->path = memory_format("%s/dml.db", state_folder);
    store->owner = pthread_self();
    store->network = filesystem_is_network(files);
    const bool missing = access(file, F_OK) && errno == ENOENT;
    int code =
        missing && (flags & SQLITE_OPEN_CREATE) && !store->network ? make_database(store, file) : 0;
    const int result = code ? SQLITE_OK : sqlite3_open_v2(file, &store->database, flags, NULL);
    free(file);
    if (result != SQLITE_OK)
        code = store_failed(store, result);
    if (code)
        return code;
    sqlite3_extended_result_codes(store->database, 1);
    sqlite3_busy_timeout(store->database, store->network ? BUSY_NETWORK_MS : BUSY_MS);
    if (failpoint_write(FAILPOINT_store_open))
        code = error_set_errno(ERROR_IO, "cannot open %s", store->path);
    if (!code)
        code = execute(store, store->network ? network_settings : local_settings);
    if (!code)
        code = execute(store, common_settings);
    if (!code)
        code = execute(store,
                       "BEGIN EXCLUSIVE; COMMIT"); /* the lock stays until the store is closed */
    if (!code)
        code = check(store, "PRAGMA quick_check(1)"); /* reads the whole file */
    return code;
}

/* Hands over a store that was prepared, or releases it. */
static int finish_opening(struct store *store, int code, struct store **opened) {
    if (!code)
        code = check(store, CHECK_REFERENCES);
    if (code) {
        store_release(store);
        return code;
    }
    failpoint(FAILPOINT_store_opened);
    *opened = store;
    return 0;
}

int store_open_files(const char *state_folder, const char *files, int flags, store_may_upgrade *may,
                     struct store **opened) {
    struct store *store;
    int code = open_locked(state_folder, files, flags, &store);
    if (!code)
        code = prepare_schema(store, may);
    return finish_opening(store, code, opened);
}

int store_open(const char *state_folder, store_may_upgrade *may, struct store **store) {
    return store_open_files(state_folder, state_folder, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                            may, store);
}

int store_open_existing(const char *state_folder, store_may_upgrade *may, struct store **store) {
    int code = store_check_existing(state_folder);
    return code ? code
                : store_open_files(state_folder, state_folder, SQLITE_OPEN_READWRITE, may, store);
}

/* A copy takes the place of an older database. */
int store_open_to_read(const char *state_folder, struct store **opened) {
    struct store *store, *preview = NULL;
    int version = 0;
    int code = store_check_existing(state_folder);
    if (code)
        return code;
    code = open_locked(state_folder, state_folder, SQLITE_OPEN_READWRITE, &store);
    if (!code)
        code = read_known_version(store, &version);
    if (!code && version && version < store_schema->version) {
        code = preview_upgrade(store, version, &preview);
        if (!code) {
            store_close(store);
            store = preview;
        }
    } else if (!code && !version) {
        code = prepare_schema(store, NULL);
    }
    return finish_opening(store, code, opened);
}

int store_check_existing(const char *state_folder) {
    char *path = memory_format("%s/dml.db", state_folder);
    struct stat status;
    int code = 0;
    if (stat(path, &status) && errno == ENOENT)
        code =
            error_set(ERROR_UNAVAILABLE, "%s: there is no such file: nothing was run there", path);
    free(path);
    return code;
}

char *store_folder(const struct store *store) {
    return path_folder(store->path);
}

int store_close(struct store *store) {
    if (!store)
        return 0;
    int code = store_flush(store);
    store_release(store);
    return code;
}

void store_abandon(struct store *store) {
    store->chain_run = 0;
    if (!store->fenced && !sqlite3_get_autocommit(store->database))
        store_run_statement(store, STATEMENT_ROLLBACK, NULL, 0, NULL, NULL);
}

/* What cannot be committed is rolled back. `before` is the failpoint before the commit. */
static int commit(struct store *store, unsigned before) {
    assert(!sqlite3_get_autocommit(store->database)); /* a transaction is open */
    int code = failpoint_write(before) ? error_set_errno(ERROR_IO, "cannot write %s", store->path)
                                       : store_may_write(store);
    if (!code)
        code = store_run_statement(store, STATEMENT_COMMIT, NULL, 0, NULL, NULL);
    if (code)
        store_abandon(store);
    return code;
}

int store_flush(struct store *store) {
    if (store->fenced || sqlite3_get_autocommit(store->database))
        return 0;
    int code = commit(store, FAILPOINT_store_commit);
    if (!code)
        failpoint(FAILPOINT_store_committed);
    return code;
}

int store_commit_durably(struct store *store) {
    int code = commit(store, FAILPOINT_store_commit_full);
    /* A commit with synchronous = NORMAL is in the log file, but perhaps not on the disk. On a
     * network file system every commit is. */
    if (!code && !store->network) {
        sqlite3_file *log = NULL;
        int result =
            sqlite3_file_control(store->database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
        if (result == SQLITE_OK)
            result =
                log && log->pMethods ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : SQLITE_IOERR;
        if (result != SQLITE_OK)
            code = store_failed(store, result);
    }
    if (!code)
        failpoint(FAILPOINT_store_committed_full);
    return code;
}

int store_begin_durably(struct store *store) {
    int code = store_may_write(store);
    store->moves_log = true;
    if (!code)
        code = store_flush(store);
    if (!code && !store->network)
        code = execute(store, "PRAGMA synchronous = FULL");
    if (!code)
        code = store_run_statement(store, STATEMENT_BEGIN, NULL, 0, NULL, NULL);
    assert(code || !sqlite3_get_autocommit(store->database));
    return code;
}

int store_end_durably(struct store *store, int code) {
    if (code)
        store_abandon(store);
    else if (!(code = commit(store, FAILPOINT_store_commit_full)))
        failpoint(FAILPOINT_store_committed_full);
    int restored =
        store->network || store->fenced ? 0 : execute(store, "PRAGMA synchronous = NORMAL");
    return code ? code : restored;
}

int store_run_durably(struct store *store, enum statement statement, const struct value *values,
                      size_t values_count) {
    int code = store_begin_durably(store);
    if (!code)
        code = store_run_statement(store, statement, values, values_count, NULL, NULL);
    return store_end_durably(store, code);
}
