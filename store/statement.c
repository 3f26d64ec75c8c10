#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "store/internal.h"

static const char *const sql_of[] = {
#define X(name, sql) [STATEMENT_##name] = sql,
    STATEMENT_TABLE(X)
#undef X
};

static_assert(sizeof sql_of / sizeof *sql_of == STATEMENTS, "every statement has its text");

int store_damaged(struct store *store, const char *how) {
    return error_set(ERROR_IO,
                     "%s is damaged (%s); move it away, with dml.db-wal beside it: a run that is "
                     "unfinished then starts anew, as checkpoints alone are not enough to go on; "
                     "packs and models are not in it",
                     store->path, how);
}

/* What the system last said about a file of the database; 0: nothing but good. */
static int last_errno(struct store *store, int which) {
    sqlite3_file *file = NULL;
    int number = 0;
    if (sqlite3_file_control(store->database, "main", which, &file) == SQLITE_OK && file &&
        file->pMethods)
        file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
    return number;
}

static int could_not_be_read(struct store *store, const char *ending, int number) {
    return error_set(ERROR_IO, "%s%s could not be read (%s); nothing was changed; try again",
                     store->path, ending, number ? strerror(number) : "input/output error");
}

int store_unsound(struct store *store, const char *how) {
    int database = last_errno(store, SQLITE_FCNTL_FILE_POINTER);
    int journal = last_errno(store, SQLITE_FCNTL_JOURNAL_POINTER);
    if (database || !journal)
        return database ? could_not_be_read(store, "", database) : store_damaged(store, how);
    return could_not_be_read(store, store->network ? "-journal" : "-wal", journal);
}

static int failed_io(struct store *store, int result) {
    const bool writing = result == SQLITE_IOERR_WRITE || result == SQLITE_IOERR_FSYNC ||
                         result == SQLITE_IOERR_DIR_FSYNC || result == SQLITE_IOERR_TRUNCATE ||
                         result == SQLITE_IOERR_DELETE || result == SQLITE_IOERR_CLOSE;
    int number = sqlite3_system_errno(store->database);
    errno = number;
    if (!writing)
        return could_not_be_read(store, "", number);
    return number ? error_set_errno(ERROR_IO, "cannot write %s", store->path)
                  : error_set(ERROR_IO, "cannot write %s", store->path);
}

int store_failed(struct store *store, int result) {
    const char *path = store->path;
    switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(ERROR_AGAIN,
                         "%s is in use by another process; wait for it, or ask it "
                         "with `dml-coordinator status`",
                         path);
    case SQLITE_FULL:
        return error_set(ERROR_IO, "cannot write %s: disk full; make room and start again", path);
    case SQLITE_NOMEM:
        return error_set(ERROR_UNAVAILABLE, "there is not enough memory for %s", path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return store_unsound(store, sqlite3_errstr(result));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return error_set(ERROR_PERMISSION, "cannot write %s: permission denied", path);
    case SQLITE_CANTOPEN:
        errno = sqlite3_system_errno(store->database);
        return errno ? error_set_errno(ERROR_CREATE, "cannot open %s", path)
                     : error_set(ERROR_CREATE, "cannot open %s", path);
    case SQLITE_IOERR:
        return failed_io(store, result);
    default:
        return error_set(ERROR_INTERNAL, "%s: %s", path, sqlite3_errmsg(store->database));
    }
}

int store_fenced(const struct store *store) {
    return error_set(ERROR_AGAIN, "%s belongs to another process now: nothing is written to it",
                     store->path);
}

int store_may_write(struct store *store) {
    int code = store->fenced ? store_fenced(store) : guard_check();
    store->fenced |= code == ERROR_AGAIN;
    return code;
}

static int bind(sqlite3_stmt *prepared, int position, const struct value *value) {
    switch (value->type) {
    case VALUE_INTEGER:
        return sqlite3_bind_int64(prepared, position, value->integer);
    case VALUE_REAL:
        return sqlite3_bind_double(prepared, position, value->real);
    case VALUE_TEXT:
        break;
    case VALUE_BLOB:
        return sqlite3_bind_blob64(prepared, position, value->length ? value->blob : "",
                                   value->length, SQLITE_STATIC);
    }
    return sqlite3_bind_text(prepared, position, value->text, -1, SQLITE_STATIC);
}

static int prepare(struct store *store, enum statement statement, const struct value *values,
                   size_t values_count, sqlite3_stmt **prepared) {
    sqlite3_stmt **kept = &store->statements[statement];
    int result = SQLITE_OK;
    if (!*kept)
        result = sqlite3_prepare_v3(store->database, sql_of[statement], -1,
                                    SQLITE_PREPARE_PERSISTENT, kept, NULL);
    assert(result != SQLITE_OK || sqlite3_bind_parameter_count(*kept) == (int)values_count);
    for (size_t i = 0; result == SQLITE_OK && i < values_count; i++)
        result = bind(*kept, (int)i + 1, &values[i]);
    *prepared = *kept;
    return result == SQLITE_OK ? 0 : store_failed(store, result);
}

int store_run_statement(struct store *store, enum statement statement, const struct value *values,
                        size_t values_count, row_take *take, void *context) {
    sqlite3_stmt *prepared;
    assert(statement < STATEMENTS && pthread_equal(store->owner, pthread_self()));
    if (store->fenced)
        return store_fenced(store);
    int code = prepare(store, statement, values, values_count, &prepared);
    if (code)
        return code;
    assert(!sqlite3_stmt_busy(prepared)); /* or whoever reads its rows would read them anew */
    int result;
    while (!code && (result = sqlite3_step(prepared)) != SQLITE_DONE) {
        if (result != SQLITE_ROW)
            code = store_failed(store, result);
        else if (take)
            code = take(context, prepared);
    }
    sqlite3_reset(prepared);
    sqlite3_clear_bindings(prepared);
    return code;
}

int store_collect(struct store *store, enum statement statement, const struct value *values,
                  size_t values_count) {
    int code = 0;
    if (!store->fenced && sqlite3_get_autocommit(store->database)) {
        code = store_may_write(store);
        store->moves_log = true;
        if (!code)
            code = store_run_statement(store, STATEMENT_BEGIN, NULL, 0, NULL, NULL);
    }
    return code ? code : store_run_statement(store, statement, values, values_count, NULL, NULL);
}

int store_take_number(void *context, sqlite3_stmt *row) {
    *(int64_t *)context = sqlite3_column_int64(row, 0);
    return 0;
}

double column_real(sqlite3_stmt *row, int column) {
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return NAN;
    return sqlite3_column_double(row, column);
}

const char *column_text(sqlite3_stmt *row, int column) {
    return (const char *)sqlite3_column_text(row, column);
}
