#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "store/internal.h"

static int take_number(void *context, sqlite3_stmt *row) {
    *(int64_t *)context = sqlite3_column_int64(row, 0);
    return 0;
}

int store_epoch_next(struct store *store, uint64_t *epoch) {
    int64_t last = 0;
    if (failpoint_write(FAILPOINT_epoch_write))
        return error_set_errno(ERROR_IO, "cannot write %s", store->path);
    int code = store_begin_durably(store);
    if (!code)
        code = store_run_statement(store, STATEMENT_EPOCH_LAST, NULL, 0, take_number, &last);
    if (!code)
        code = store_run_statement(
            store, STATEMENT_EPOCH_INSERT,
            VALUES(integer(last + 1), integer(clock_wall_ms()), integer(getpid())), NULL, NULL);
    code = store_end_durably(store, code);
    if (!code)
        *epoch = (uint64_t)last + 1;
    return code;
}

int store_run_next(struct store *store, int64_t *run) {
    return store_run_statement(store, STATEMENT_RUN_NEXT, NULL, 0, take_number, run);
}

int store_run_begin(struct store *store, struct store_run *run) {
    int64_t number = 0;
    int code = store_begin_durably(store);
    if (!code)
        code = store_run_next(store, &number);
    if (number < run->run)
        number = run->run;
    if (!code)
        code = store_run_statement(
            store, STATEMENT_RUN_INSERT,
            VALUES(integer(number), text(run->uuid), text(run->job), text(run->identity),
                   text(run->settings), text(run->data), text(run->build), integer(run->started_ms),
                   text(run->command), text(run->start_model), integer(run->start_run),
                   integer(run->sweep), count(run->member)),
            NULL, NULL);
    code = store_end_durably(store, code);
    if (!code)
        run->run = number;
    return code;
}

/* After a statement that changes one run. */
static int changed_run(struct store *store, int64_t run, int code) {
    if (!code && sqlite3_changes(store->database) != 1)
        code = error_set(ERROR_INTERNAL, "%s: there is no run %lld", store->path, (long long)run);
    return code;
}

int store_run_resume(struct store *store, int64_t run, const char *settings) {
    int code = store_begin_durably(store);
    if (!code)
        code = store_run_statement(store, STATEMENT_RUN_RESUME,
                                   VALUES(text(settings), integer(run)), NULL, NULL);
    return store_end_durably(store, changed_run(store, run, code));
}

int store_run_progress(struct store *store, int64_t run, double seconds) {
    return changed_run(
        store, run,
        store_collect(store, STATEMENT_RUN_SECONDS, VALUES(real(seconds), integer(run))));
}

int store_run_restarts(struct store *store, int64_t run, const char *role) {
    return changed_run(
        store, run, store_collect(store, STATEMENT_RUN_RESTARTS, VALUES(text(role), integer(run))));
}

int store_run_end(struct store *store, int64_t run, const char *reason, const char *result,
                  uint64_t steps, uint64_t evaluations, double loss, double gradient_max) {
    int code = store_begin_durably(store);
    if (!code)
        code = store_run_statement(store, STATEMENT_RUN_END,
                                   VALUES(integer(clock_wall_ms()), text(reason), text(result),
                                          count(steps), count(evaluations), real(loss),
                                          real(gradient_max), integer(run)),
                                   NULL, NULL);
    code = changed_run(store, run, code);
    if (!code)
        code =
            store_run_statement(store, STATEMENT_JOURNAL_DELETE, VALUES(integer(run)), NULL, NULL);
    store->chain_run = 0;
    return store_end_durably(store, code);
}
