#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/clock.h"
#include "base/memory.h"
#include "store/internal.h"

int store_term_next(struct store *store, uint64_t *term) {
    int64_t last = 0;
    if (failpoint_write(FAILPOINT_epoch_write))
        return error_set_errno(ERROR_IO, "cannot write %s", store->path);
    int code = store_begin_durably(store);
    if (!code)
        code = store_run_statement(store, STATEMENT_TERM_LAST, NULL, 0, store_take_number, &last);
    if (!code)
        code = store_run_statement(
            store, STATEMENT_TERM_INSERT,
            VALUES(integer(last + 1), integer(clock_wall_ms()), integer(getpid())), NULL, NULL);
    code = store_end_durably(store, code);
    if (!code)
        *term = (uint64_t)last + 1;
    return code;
}

int store_run_next(struct store *store, int64_t *run) {
    return store_run_statement(store, STATEMENT_RUN_NEXT, NULL, 0, store_take_number, run);
}

/* The number of a run that begins, which is at least `least`. */
static int choose_number(struct store *store, int64_t least, int64_t *number) {
    int code = store_run_next(store, number);
    if (*number < least)
        *number = least;
    assert(code || *number > 0);
    return code;
}

int store_run_begin(struct store *store, struct store_run *run) {
    int64_t number = 0;
    int code = store_begin_durably(store);
    if (!code)
        code = choose_number(store, run->run, &number);
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

int store_run_label(struct store *store, int64_t run, const char *tag, const char *note) {
    return changed_run(
        store, run,
        store_collect(store, STATEMENT_RUN_LABEL, VALUES(text(tag), text(note), integer(run))));
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

/* ---- what happens within a run: epochs, steps, evaluations, portions, processes, events ---- */

int store_step(struct store *store, int64_t run, const struct store_step *step) {
    return store_collect(
        store, STATEMENT_STEP_INSERT,
        VALUES(integer(run), count(step->step), real(step->loss), real(step->gradient_max),
               real(step->step_length), count(step->trials), count(step->history), text(step->note),
               integer(step->wall_ms), real(step->holdout_loss), real(step->holdout_accuracy)));
}

int store_downpour_epoch(struct store *store, int64_t run, const struct store_epoch *epoch) {
    return store_collect(store, STATEMENT_DOWNPOUR_EPOCH_PUT,
                         VALUES(integer(run), count(epoch->epoch), count(epoch->minibatches),
                                count(epoch->rows), real(epoch->loss), real(epoch->holdout_loss),
                                real(epoch->holdout_accuracy), real(epoch->seconds),
                                integer(epoch->wall_ms)));
}

int store_evaluation(struct store *store, int64_t run, const struct store_evaluation *evaluation) {
    return store_collect(store, STATEMENT_EVALUATION_INSERT,
                         VALUES(integer(run), count(evaluation->attempt),
                                count(evaluation->evaluation), count(evaluation->step),
                                real(evaluation->step_length), real(evaluation->loss),
                                real(evaluation->slope), count(evaluation->examples),
                                real(evaluation->seconds), text(evaluation->outcome)));
}

int store_portion(struct store *store, int64_t run, uint32_t attempt, uint64_t evaluation,
                  uint64_t incarnation, uint32_t sequence, uint32_t first_chunk, uint32_t chunks) {
    return store_collect(store, STATEMENT_PORTION_INSERT,
                         VALUES(integer(run), count(attempt), count(evaluation), count(first_chunk),
                                count(chunks), count(incarnation), count(sequence)));
}

int store_process(struct store *store, int64_t run, const struct store_process_row *process) {
    return store_collect(store, STATEMENT_PROCESS_PUT,
                         VALUES(integer(run), text(process->role), count(process->index),
                                count(process->incarnation), integer(process->pid),
                                text(process->host), text(process->address), text(process->device),
                                text(process->state), integer(clock_wall_ms())));
}

int store_host(struct store *store, int64_t run, const struct store_host *host) {
    return store_collect(store, STATEMENT_HOST_PUT,
                         VALUES(integer(run), count(host->position), text(host->host),
                                count(host->threads), count(host->workers), text(host->state),
                                text(host->why), count(host->failures), integer(clock_wall_ms())));
}

int store_event(struct store *store, int64_t run, const char *kind, const char *words,
                int64_t *event) {
    int code =
        store_collect(store, STATEMENT_EVENT_INSERT,
                      VALUES(integer(run), integer(clock_wall_ms()), text(kind), text(words)));
    if (!code && event)
        *event = sqlite3_last_insert_rowid(store->database);
    return code;
}

int store_event_again(struct store *store, int64_t event, const char *words) {
    return store_collect(store, STATEMENT_EVENT_CHANGE,
                         VALUES(integer(clock_wall_ms()), text(words), integer(event)));
}

/* ---- what a run resumes from: attempts, the journal, durable steps ---- */

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

static int insert_attempt(struct store *store, int64_t run, uint32_t attempt) {
    return store_collect(store, STATEMENT_ATTEMPT_INSERT,
                         VALUES(integer(run), count(attempt), integer(clock_wall_ms()),
                                count(store_attempt_checksum(run, attempt))));
}

int store_attempt(struct store *store, int64_t run, uint32_t attempt) {
    assert(run > 0 && attempt > 0);
    return commit_or_abandon(store, insert_attempt(store, run, attempt));
}

static int delete_journal(struct store *store, int64_t run) {
    store->chain_run = run;
    store->chain = 0;
    return store_collect(store, STATEMENT_JOURNAL_DELETE, VALUES(integer(run)));
}

int store_journal(struct store *store, int64_t run, const void *data, size_t length, bool begins) {
    assert(run > 0); /* chain_run 0 means that no chain is known */
    int code = begins ? delete_journal(store, run) : 0;
    /* The checksum of the journal's last entry is in memory while the same run goes on writing. */
    if (!code && store->chain_run != run) {
        store->chain_run = run;
        store->chain = 0;
        code = store_run_statement(store, STATEMENT_JOURNAL_LAST, VALUES(integer(run)),
                                   store_take_number, &store->chain);
    }
    if (!code) {
        store->chain = store_journal_checksum(run, store->chain, data, length);
        code = store_collect(store, STATEMENT_JOURNAL_INSERT,
                             VALUES(integer(run), blob(data, length), count(store->chain)));
    }
    if (code)
        store->chain_run = 0;
    return code;
}

static int insert_durable(struct store *store, int64_t run, uint32_t attempt, uint64_t step,
                          struct value digests, struct value state) {
    uint64_t checksum = store_durable_checksum(run, attempt, step, &digests, &state);
    return store_collect(store, STATEMENT_DURABLE_INSERT,
                         VALUES(integer(run), count(step), count(attempt), integer(clock_wall_ms()),
                                digests, state, count(checksum)));
}

/* All of it is one commit: a crash leaves either the step before with its journal, or this step
 * without one. */
int store_durable_step(struct store *store, int64_t run, uint32_t attempt, uint64_t step,
                       const void *data, size_t length, const uint64_t *digests, uint32_t shards) {
    assert(run > 0 && attempt > 0);
    int code = insert_durable(store, run, attempt, step, blob(digests, shards * sizeof *digests),
                              blob(data, length));
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

/* ---- a run that goes on from the end of another one ---- */

/* Under another number their checksums are others. The newest is the last. */
static int move_saved(struct store *store, int64_t from, int64_t to,
                      const struct store_saved *saved) {
    int code = insert_attempt(store, to, saved->attempt);
    for (uint32_t i = saved->step_count; i && !code; i--)
        code = insert_durable(
            store, to, saved->steps[i - 1].attempt, saved->steps[i - 1].step,
            blob(saved->steps[i - 1].digests, saved->steps[i - 1].shards * sizeof(uint64_t)),
            blob(saved->steps[i - 1].state.data, saved->steps[i - 1].state.length));
    return code ? code
                : store_collect(store, STATEMENT_DURABLE_UNDO, VALUES(integer(from), integer(-1)));
}

/* What was recorded of a training becomes that of another run, too. */
static int copy_training(struct store *store, int64_t from, int64_t to) {
    static const enum statement copies[] = {STATEMENT_SOURCES_COPY, STATEMENT_STEPS_COPY,
                                            STATEMENT_EVALUATIONS_COPY,
                                            STATEMENT_DOWNPOUR_EPOCHS_COPY};
    int code = 0;
    for (size_t i = 0; i < sizeof copies / sizeof copies[0] && !code; i++)
        code = store_collect(store, copies[i], VALUES(integer(to), integer(from)));
    return code;
}

int store_run_continue(struct store *store, const struct store_run *from,
                       const struct store_saved *saved, struct store_run *run) {
    assert(from->ended_ms && saved->step_count);
    int64_t number = 0;
    int code = store_begin_durably(store);
    if (!code)
        code = choose_number(store, run->run, &number);
    if (!code)
        code = store_collect(store, STATEMENT_RUN_RENAME, VALUES(integer(from->run)));
    if (!code)
        code = store_collect(store, STATEMENT_RUN_CONTINUE,
                             VALUES(integer(number), text(from->uuid), text(run->settings),
                                    text(run->build), integer(run->started_ms), text(run->command),
                                    integer(from->run)));
    if (!code)
        code = move_saved(store, from->run, number, saved);
    if (!code)
        code = copy_training(store, from->run, number);
    code = store_end_durably(store, code);
    if (!code)
        run->run = number;
    return code;
}

/* ---- a run whose model has the parameters of another one ---- */

int store_run_derive(struct store *store, const struct store_run *from, const char *folder,
                     const char *sha256, const char *figures, struct store_run *run) {
    assert(from->ended_ms && from->reason && run->result);
    int64_t number = 0;
    int code = store_begin_durably(store);
    if (!code)
        code = choose_number(store, run->run, &number);
    char *uuid = memory_format("%s.%lld", from->uuid, (long long)number);
    if (!code)
        code = store_collect(store, STATEMENT_RUN_INSERT,
                             VALUES(integer(number), text(uuid), text(from->job),
                                    text(run->identity), text(run->settings), text(from->data),
                                    text(from->build), integer(run->started_ms), text("publish"),
                                    text(sha256), integer(from->run), integer(0), integer(0)));
    free(uuid);
    if (!code)
        code = store_collect(store, STATEMENT_RUN_END,
                             VALUES(integer(clock_wall_ms()), text(from->reason), text(run->result),
                                    count(from->steps), count(from->evaluations), real(from->loss),
                                    real(from->gradient_max), integer(number)));
    if (!code)
        code = copy_training(store, from->run, number);
    if (!code)
        code = store_model(store, number, folder, sha256);
    if (!code && figures)
        code = store_model_figures(store, number, figures);
    code = store_end_durably(store, code);
    if (!code)
        run->run = number;
    return code;
}
