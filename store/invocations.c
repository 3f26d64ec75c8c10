#include <assert.h>

#include "base/clock.h"
#include "store/internal.h"

/* One that never ended has no status: −1. */
static const struct store_invocation lost = {
    .outcome = "lost",
    .status = -1,
    .reason = INVOCATION_LOST,
};

/* An invocation that came to what the one before came to takes its place and counts it: cron may
 * start a command every minute that has nothing to do. */
static int put_end(struct store *store, int64_t number, int64_t ended_ms,
                   const struct store_invocation *end) {
    assert(number > 0 && *end->outcome);
    int code = store_collect(store, STATEMENT_INVOCATION_END,
                             VALUES(integer(ended_ms), text(end->outcome), integer(end->status),
                                    text(end->reason), integer(end->run), integer(number)));
    if (!code)
        code = store_collect(store, STATEMENT_INVOCATION_REPEATS, VALUES(integer(number)));
    if (!code && sqlite3_changes(store->database))
        code = store_collect(store, STATEMENT_INVOCATION_DELETE_BEFORE, VALUES(integer(number)));
    return code;
}

static int take_open(void *context, sqlite3_stmt *row) {
    struct store_invocation *open = context;
    open->invocation = sqlite3_column_int64(row, 0);
    open->began_ms = sqlite3_column_int64(row, 1);
    return 0;
}

int store_invocation_begin(struct store *store, const char *command, int64_t *invocation,
                           int64_t *lost_ms) {
    struct store_invocation open = {0};
    const bool moves_log = store->moves_log;
    int code = store_run_statement(store, STATEMENT_INVOCATION_OPEN, NULL, 0, take_open, &open);
    if (!code && open.invocation)
        code = put_end(store, open.invocation, 0, &lost);
    if (!code)
        code = store_collect(store, STATEMENT_INVOCATION_INSERT,
                             VALUES(text(command), integer(clock_wall_ms())));
    *invocation = sqlite3_last_insert_rowid(store->database);
    *lost_ms = open.began_ms;
    if (!code)
        code =
            store_collect(store, STATEMENT_INVOCATIONS_DELETE, VALUES(integer(INVOCATIONS_KEPT)));
    store->moves_log = moves_log;
    return code ? code : store_flush(store);
}

int store_invocation_end(struct store *store, const struct store_invocation *invocation) {
    const bool moves_log = store->moves_log;
    int code = put_end(store, invocation->invocation, clock_wall_ms(), invocation);
    store->moves_log = moves_log;
    return code ? code : store_flush(store);
}

struct each_invocation {
    int (*each)(void *context, const struct store_invocation *invocation);
    void *context;
};

static int take_invocation(void *context, sqlite3_stmt *row) {
    const struct each_invocation *invocations = context;
    struct store_invocation invocation = {
        .invocation = sqlite3_column_int64(row, 0),
        .command = column_text(row, 1),
        .first_ms = sqlite3_column_int64(row, 2),
        .began_ms = sqlite3_column_int64(row, 3),
        .ended_ms = sqlite3_column_int64(row, 4),
        .times = (uint64_t)sqlite3_column_int64(row, 5),
        .outcome = column_text(row, 6),
        .status = sqlite3_column_int(row, 7),
        .reason = column_text(row, 8),
        .run = sqlite3_column_int64(row, 9),
    };
    return invocations->each(invocations->context, &invocation);
}

int store_invocations(struct store *store,
                      int (*each)(void *context, const struct store_invocation *invocation),
                      void *context) {
    return store_run_statement(store, STATEMENT_INVOCATIONS, NULL, 0, take_invocation,
                               &(struct each_invocation){each, context});
}
