/* Reading what a run resumes from, and proving that it is what was written. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/internal.h"

struct reading {
    struct store *store;
    int64_t run;
    uint64_t chain; /* checksum of the journal entry before */
    struct store_saved *saved;
};

static int take_attempt(void *context, sqlite3_stmt *row) {
    struct reading *reading = context;
    uint32_t attempt = (uint32_t)sqlite3_column_int64(row, 0);
    if (store_attempt_checksum(reading->run, attempt) != (uint64_t)sqlite3_column_int64(row, 1))
        return store_damaged(reading->store, "the checksum of an attempt is wrong");
    reading->saved->attempt = attempt;
    return 0;
}

static struct value column_blob(sqlite3_stmt *row, int column) {
    const void *data = sqlite3_column_blob(row, column);
    return blob(data ? data : "", (size_t)sqlite3_column_bytes(row, column));
}

static struct store_blob copied(const struct value *value) {
    struct store_blob copy = {memory_new(1, value->length), value->length};
    memcpy(copy.data, value->blob, value->length);
    return copy;
}

static int take_durable(void *context, sqlite3_stmt *row) {
    struct reading *reading = context;
    struct store_saved *saved = reading->saved;
    uint64_t step = (uint64_t)sqlite3_column_int64(row, 0);
    uint32_t attempt = (uint32_t)sqlite3_column_int64(row, 1);
    struct value digests = column_blob(row, 2), state = column_blob(row, 3);
    uint64_t checksum = store_durable_checksum(reading->run, attempt, step, &digests, &state);
    if (checksum != (uint64_t)sqlite3_column_int64(row, 4))
        return store_damaged(reading->store, "the checksum of a durable step is wrong");
    if (attempt > saved->attempt)
        return store_damaged(reading->store, "the attempt of a durable step is missing");
    uint32_t i = saved->step_count++;
    saved->steps[i].step = step;
    saved->steps[i].attempt = attempt;
    saved->steps[i].state = copied(&state);
    saved->steps[i].digests = copied(&digests).data;
    saved->steps[i].shards = (uint32_t)(digests.length / sizeof(uint64_t));
    return 0;
}

static int take_entry(void *context, sqlite3_stmt *row) {
    struct reading *reading = context;
    struct store_saved *saved = reading->saved;
    struct value data = column_blob(row, 0);
    reading->chain = store_journal_checksum(reading->run, reading->chain, data.blob, data.length);
    if (reading->chain != (uint64_t)sqlite3_column_int64(row, 1))
        return store_damaged(reading->store, "the checksum of a journal entry is wrong");
    uint32_t i = saved->journal_count++;
    if ((i & (i - 1)) == 0) /* doubles at powers of two */
        saved->journal =
            memory_resize(saved->journal, i ? 2 * (size_t)i : 1, sizeof *saved->journal);
    saved->journal[i] = copied(&data);
    return 0;
}

int store_saved_read(struct store *store, int64_t run, struct store_saved *saved) {
    struct reading reading = {.store = store, .run = run, .saved = saved};
    *saved = (struct store_saved){0};
    int code = store_run_statement(store, STATEMENT_ATTEMPT_LAST, VALUES(integer(run)),
                                   take_attempt, &reading);
    if (!code)
        code = store_run_statement(store, STATEMENT_DURABLE, VALUES(integer(run)), take_durable,
                                   &reading);
    if (!code)
        code = store_run_statement(store, STATEMENT_JOURNAL, VALUES(integer(run)), take_entry,
                                   &reading);
    if (code)
        store_saved_release(saved);
    return code;
}

void store_saved_release(struct store_saved *saved) {
    for (uint32_t i = 0; i < saved->step_count; i++) {
        free(saved->steps[i].state.data);
        free(saved->steps[i].digests);
    }
    for (uint32_t i = 0; i < saved->journal_count; i++)
        free(saved->journal[i].data);
    free(saved->journal);
    *saved = (struct store_saved){0};
}
