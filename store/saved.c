/* Writing what a run resumes from: attempts, the journal, durable steps. */
#include "base/clock.h"
#include "base/hash.h"
#include "store/internal.h"

uint64_t store_attempt_checksum(int64_t run, uint32_t attempt) {
    const uint64_t row[] = {(uint64_t)run, attempt};
    return hash64(row, sizeof row);
}

uint64_t store_journal_checksum(int64_t run, uint64_t chain, const void *data, size_t length) {
    const uint64_t row[] = {(uint64_t)run, chain};
    return hash64_seeded(data, length, hash64(row, sizeof row));
}

uint64_t store_durable_checksum(int64_t run, uint32_t attempt, uint64_t step,
                                const struct value *digests, const struct value *state) {
    const uint64_t row[] = {(uint64_t)run, attempt, step, digests->length, state->length};
    uint64_t seed = hash64_seeded(digests->blob, digests->length, hash64(row, sizeof row));
    return hash64_seeded(state->blob, state->length, seed);
}

static int commit_or_abandon(struct store *store, int code) {
    if (!code)
        return store_commit_durably(store);
    store_abandon(store);
    return code;
}

int store_attempt(struct store *store, int64_t run, uint32_t attempt) {
    int code = store_collect(store, STATEMENT_ATTEMPT_INSERT,
                             VALUES(integer(run), count(attempt), integer(clock_wall_ms()),
                                    count(store_attempt_checksum(run, attempt))));
    return commit_or_abandon(store, code);
}

static int delete_journal(struct store *store, int64_t run) {
    store->chain_run = run;
    store->chain = 0;
    return store_collect(store, STATEMENT_JOURNAL_DELETE, VALUES(integer(run)));
}

static int take_chain(void *context, sqlite3_stmt *row) {
    *(uint64_t *)context = (uint64_t)sqlite3_column_int64(row, 0);
    return 0;
}

/* The checksum of the run's last entry is in memory while one run writes. */
static int find_chain(struct store *store, int64_t run) {
    if (store->chain_run == run)
        return 0;
    store->chain_run = run;
    store->chain = 0;
    return store_run_statement(store, STATEMENT_JOURNAL_LAST, VALUES(integer(run)), take_chain,
                               &store->chain);
}

int store_journal(struct store *store, int64_t run, const void *data, size_t length, bool begins) {
    int code = begins ? delete_journal(store, run) : find_chain(store, run);
    if (!code) {
        store->chain = store_journal_checksum(run, store->chain, data, length);
        code = store_collect(store, STATEMENT_JOURNAL_INSERT,
                             VALUES(integer(run), blob(data, length), count(store->chain)));
    }
    if (code)
        store->chain_run = 0;
    return code;
}

/* All of it is one commit: a crash leaves either the step before with its journal, or this step
 * without one. */
int store_durable_step(struct store *store, int64_t run, uint32_t attempt, uint64_t step,
                       const void *data, size_t length, const uint64_t *digests, uint32_t shards) {
    struct value named = blob(digests, shards * sizeof *digests), state = blob(data, length);
    uint64_t checksum = store_durable_checksum(run, attempt, step, &named, &state);
    int code = store_collect(store, STATEMENT_DURABLE_INSERT,
                             VALUES(integer(run), count(step), count(attempt),
                                    integer(clock_wall_ms()), named, state, count(checksum)));
    if (!code)
        code = store_collect(store, STATEMENT_DURABLE_KEEP, VALUES(integer(run)));
    if (!code)
        code = delete_journal(store, run);
    return commit_or_abandon(store, code);
}

int store_roll_back(struct store *store, int64_t run, uint64_t epochs, uint64_t step,
                    uint64_t durable) {
    int code =
        store_collect(store, STATEMENT_DOWNPOUR_EPOCHS_UNDO, VALUES(integer(run), count(epochs)));
    if (!code)
        code = store_collect(store, STATEMENT_STEPS_UNDO, VALUES(integer(run), count(step)));
    if (!code)
        code = store_collect(store, STATEMENT_DURABLE_UNDO, VALUES(integer(run), count(durable)));
    return code;
}
