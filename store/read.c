#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/internal.h"

static struct store_run run_of_row(sqlite3_stmt *row) {
    return (struct store_run){
        .run = sqlite3_column_int64(row, 0),
        .uuid = column_text(row, 1),
        .job = column_text(row, 2),
        .identity = column_text(row, 3),
        .settings = column_text(row, 4),
        .data = column_text(row, 5),
        .build = column_text(row, 6),
        .started_ms = sqlite3_column_int64(row, 7),
        .ended_ms = sqlite3_column_int64(row, 8),
        .reason = column_text(row, 9),
        .result = column_text(row, 10),
        .steps = (uint64_t)sqlite3_column_int64(row, 11),
        .evaluations = (uint64_t)sqlite3_column_int64(row, 12),
        .loss = column_real(row, 13),
        .gradient_max = column_real(row, 14),
        .seconds = column_real(row, 15),
        .restarts = (uint64_t)sqlite3_column_int64(row, 16),
        .restarts_coordinator = (uint64_t)sqlite3_column_int64(row, 17),
        .restarts_shard = (uint64_t)sqlite3_column_int64(row, 18),
        .restarts_replica = (uint64_t)sqlite3_column_int64(row, 19),
        .command = column_text(row, 20),
        .start_model = column_text(row, 21),
        .start_run = sqlite3_column_int64(row, 22),
        .sweep = sqlite3_column_int64(row, 23),
        .member = (uint32_t)sqlite3_column_int64(row, 24),
        .tag = column_text(row, 25),
        .note = column_text(row, 26),
        .continues = sqlite3_column_int64(row, 27),
        .origin = sqlite3_column_int64(row, 28),
    };
}

struct each_run {
    int (*each)(void *context, const struct store_run *run);
    void *context;
};

static int take_run(void *context, sqlite3_stmt *row) {
    const struct each_run *runs = context;
    struct store_run run = run_of_row(row);
    return runs->each(runs->context, &run);
}

int store_runs(struct store *store, int (*each)(void *context, const struct store_run *run),
               void *context) {
    return store_run_statement(store, STATEMENT_RUNS, NULL, 0, take_run,
                               &(struct each_run){each, context});
}

int store_runs_newest(struct store *store, int (*each)(void *context, const struct store_run *run),
                      void *context) {
    return store_run_statement(store, STATEMENT_RUNS_NEWEST, NULL, 0, take_run,
                               &(struct each_run){each, context});
}

int store_runs_cold(struct store *store, const char *identity,
                    int (*each)(void *context, const struct store_run *run), void *context) {
    return store_run_statement(store, STATEMENT_RUNS_COLD, VALUES(text(identity)), take_run,
                               &(struct each_run){each, context});
}

int store_runs_of_sweep(struct store *store, int64_t sweep,
                        int (*each)(void *context, const struct store_run *run), void *context) {
    return store_run_statement(store, STATEMENT_RUNS_OF_SWEEP, VALUES(integer(sweep)), take_run,
                               &(struct each_run){each, context});
}

/* ---- what some runs have ---- */

struct each_reason {
    int (*each)(void *context, const char *reason);
    void *context;
};

static int take_reason(void *context, sqlite3_stmt *row) {
    const struct each_reason *reasons = context;
    return reasons->each(reasons->context, column_text(row, 0));
}

int store_reasons(struct store *store, int (*each)(void *context, const char *reason),
                  void *context) {
    return store_run_statement(store, STATEMENT_REASONS, NULL, 0, take_reason,
                               &(struct each_reason){each, context});
}

struct each_origin {
    int (*each)(void *context, int64_t origin);
    void *context;
};

static int take_origin(void *context, sqlite3_stmt *row) {
    const struct each_origin *origins = context;
    return origins->each(origins->context, sqlite3_column_int64(row, 0));
}

int store_origins_open(struct store *store, int64_t keep,
                       int (*each)(void *context, int64_t origin), void *context) {
    return store_run_statement(store, STATEMENT_ORIGINS_OPEN, VALUES(integer(keep)), take_origin,
                               &(struct each_origin){each, context});
}

int store_run_tagged(struct store *store, const char *tag, int64_t *run) {
    return store_run_statement(store, STATEMENT_RUN_TAGGED, VALUES(text(tag)), store_take_number,
                               run);
}

/* ---- one run ---- */

/* Copies the texts of a row, which go with it, into one block. */
static void own_texts(struct store_run *run) {
    const char **texts[] = {&run->uuid,    &run->job,         &run->identity, &run->settings,
                            &run->data,    &run->build,       &run->reason,   &run->result,
                            &run->command, &run->start_model, &run->tag,      &run->note};
    const size_t count = sizeof texts / sizeof *texts;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += *texts[i] ? strlen(*texts[i]) + 1 : 0;
    char *at = run->owned = memory_new(bytes, 1);
    for (size_t i = 0; i < count; i++)
        if (*texts[i]) {
            char *copy = at;
            at = stpcpy(at, *texts[i]) + 1;
            *texts[i] = copy;
        }
    assert(at == run->owned + bytes);
}

void store_run_release(struct store_run *run) {
    free(run->owned);
    *run = (struct store_run){0};
}

static int take_one_run(void *context, sqlite3_stmt *row) {
    struct store_run *run = context;
    *run = run_of_row(row);
    own_texts(run);
    return 0;
}

/* The run of a statement that has one row, or none. */
static int read_one_run(struct store *store, enum statement statement, const struct value *values,
                        size_t values_count, struct store_run *run, bool *found) {
    *run = (struct store_run){0};
    int code = store_run_statement(store, statement, values, values_count, take_one_run, run);
    if (code)
        store_run_release(run);
    *found = run->run != 0;
    return code;
}

int store_run_last(struct store *store, struct store_run *run, bool *found) {
    return read_one_run(store, STATEMENT_RUN_LAST, NULL, 0, run, found);
}

int store_run_find(struct store *store, int64_t number, struct store_run *run, bool *found) {
    return read_one_run(store, STATEMENT_RUN, VALUES(integer(number)), run, found);
}

int store_run_last_of(struct store *store, const char *identity, struct store_run *run,
                      bool *found) {
    return read_one_run(store, STATEMENT_RUN_LAST_OF, VALUES(text(identity)), run, found);
}

static int drop_ended(int code, bool (*can_resume)(const char *reason), struct store_run *run,
                      bool *found) {
    if (*found && run->ended_ms && !can_resume(run->reason))
        store_run_release(run);
    *found = run->run != 0;
    return code;
}

int store_run_unfinished(struct store *store, const char *identity, const char *data,
                         bool (*can_resume)(const char *reason), struct store_run *run,
                         bool *found) {
    int code = read_one_run(store, STATEMENT_RUN_UNFINISHED, VALUES(text(identity), text(data)),
                            run, found);
    return drop_ended(code, can_resume, run, found);
}

int store_run_of_member(struct store *store, int64_t sweep, uint32_t member,
                        bool (*can_resume)(const char *reason), struct store_run *run,
                        bool *found) {
    int code = read_one_run(store, STATEMENT_RUN_OF_MEMBER, VALUES(integer(sweep), count(member)),
                            run, found);
    return drop_ended(code, can_resume, run, found);
}

/* ---- what a run has ---- */

struct each_step {
    int (*each)(void *context, const struct store_step *step);
    void *context;
};

static int take_step(void *context, sqlite3_stmt *row) {
    const struct each_step *steps = context;
    struct store_step step = {
        .step = (uint64_t)sqlite3_column_int64(row, 0),
        .loss = column_real(row, 1),
        .gradient_max = column_real(row, 2),
        .step_length = column_real(row, 3),
        .trials = (uint32_t)sqlite3_column_int64(row, 4),
        .history = (uint32_t)sqlite3_column_int64(row, 5),
        .note = column_text(row, 6),
        .wall_ms = sqlite3_column_int64(row, 7),
        .holdout_loss = column_real(row, 8),
        .holdout_accuracy = column_real(row, 9),
        .evaluation = (uint64_t)sqlite3_column_int64(row, 10),
    };
    return steps->each(steps->context, &step);
}

int store_steps(struct store *store, int64_t run, uint64_t since,
                int (*each)(void *context, const struct store_step *step), void *context) {
    return store_run_statement(store, STATEMENT_STEPS, VALUES(integer(run), count(since)),
                               take_step, &(struct each_step){each, context});
}

struct each_epoch {
    int (*each)(void *context, const struct store_epoch *epoch);
    void *context;
};

static int take_epoch(void *context, sqlite3_stmt *row) {
    const struct each_epoch *epochs = context;
    struct store_epoch epoch = {
        .epoch = (uint64_t)sqlite3_column_int64(row, 0),
        .minibatches = (uint64_t)sqlite3_column_int64(row, 1),
        .rows = (uint64_t)sqlite3_column_int64(row, 2),
        .loss = column_real(row, 3),
        .holdout_loss = column_real(row, 4),
        .holdout_accuracy = column_real(row, 5),
        .seconds = column_real(row, 6),
        .wall_ms = sqlite3_column_int64(row, 7),
    };
    return epochs->each(epochs->context, &epoch);
}

int store_downpour_epochs(struct store *store, int64_t run, uint64_t since,
                          int (*each)(void *context, const struct store_epoch *epoch),
                          void *context) {
    return store_run_statement(store, STATEMENT_DOWNPOUR_EPOCHS, VALUES(integer(run), count(since)),
                               take_epoch, &(struct each_epoch){each, context});
}

struct each_process {
    int (*each)(void *context, const struct store_process_row *process);
    void *context;
};

static int take_process(void *context, sqlite3_stmt *row) {
    const struct each_process *processes = context;
    struct store_process_row process = {
        .role = column_text(row, 0),
        .index = (uint32_t)sqlite3_column_int64(row, 1),
        .incarnation = (uint64_t)sqlite3_column_int64(row, 2),
        .pid = sqlite3_column_int(row, 3),
        .host = column_text(row, 4),
        .address = column_text(row, 5),
        .device = column_text(row, 6),
        .state = column_text(row, 7),
        .portions = (uint64_t)sqlite3_column_int64(row, 8),
    };
    return processes->each(processes->context, &process);
}

int store_processes(struct store *store, int64_t run,
                    int (*each)(void *context, const struct store_process_row *process),
                    void *context) {
    return store_run_statement(store, STATEMENT_PROCESSES, VALUES(integer(run)), take_process,
                               &(struct each_process){each, context});
}

struct each_host {
    int (*each)(void *context, const struct store_host *host);
    void *context;
};

static int take_host(void *context, sqlite3_stmt *row) {
    const struct each_host *hosts = context;
    struct store_host host = {
        .host = column_text(row, 0),
        .threads = (uint32_t)sqlite3_column_int64(row, 1),
        .workers = (uint32_t)sqlite3_column_int64(row, 2),
        .state = column_text(row, 3),
        .why = column_text(row, 4),
        .failures = (uint64_t)sqlite3_column_int64(row, 5),
    };
    return hosts->each(hosts->context, &host);
}

int store_hosts(struct store *store, int64_t run,
                int (*each)(void *context, const struct store_host *host), void *context) {
    return store_run_statement(store, STATEMENT_HOSTS, VALUES(integer(run)), take_host,
                               &(struct each_host){each, context});
}

struct each_event {
    int (*each)(void *context, const struct store_event_row *event);
    void *context;
};

static int take_event(void *context, sqlite3_stmt *row) {
    const struct each_event *events = context;
    struct store_event_row event = {
        .event = sqlite3_column_int64(row, 0),
        .wall_ms = sqlite3_column_int64(row, 1),
        .kind = column_text(row, 2),
        .text = column_text(row, 3),
    };
    return events->each(events->context, &event);
}

int store_events(struct store *store, int64_t run, int64_t since,
                 int (*each)(void *context, const struct store_event_row *event), void *context) {
    return store_run_statement(store, STATEMENT_EVENTS, VALUES(integer(run), integer(since)),
                               take_event, &(struct each_event){each, context});
}

struct model_texts {
    char *folder, *sha256;
};

static int take_model(void *context, sqlite3_stmt *row) {
    struct model_texts *texts = context;
    texts->folder = memory_copy_string(column_text(row, 0));
    texts->sha256 = memory_copy_string(column_text(row, 1));
    return 0;
}

/* The text goes to whoever wants it; "" if there is none. */
static void hand_over(char *found, char **wanted) {
    if (wanted)
        *wanted = found ? found : memory_copy_string("");
    else
        free(found);
}

int store_model_of(struct store *store, int64_t run, char **folder, char **sha256) {
    struct model_texts texts = {0};
    int code =
        store_run_statement(store, STATEMENT_MODEL_OF, VALUES(integer(run)), take_model, &texts);
    hand_over(texts.folder, folder);
    hand_over(texts.sha256, sha256);
    return code;
}

/* ---- what a run resumes from: checksums prove that it is what was written ---- */

struct resume_read {
    struct store *store;
    int64_t run;
    uint64_t chain; /* checksum of the journal entry before */
    struct store_saved *saved;
};

static int take_attempt(void *context, sqlite3_stmt *row) {
    struct resume_read *reading = context;
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
    struct resume_read *reading = context;
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
    assert(i < sizeof saved->steps / sizeof *saved->steps); /* the statement has a LIMIT */
    saved->steps[i].step = step;
    saved->steps[i].attempt = attempt;
    saved->steps[i].state = copied(&state);
    saved->steps[i].digests = copied(&digests).data;
    saved->steps[i].shards = (uint32_t)(digests.length / sizeof(uint64_t));
    return 0;
}

static int take_entry(void *context, sqlite3_stmt *row) {
    struct resume_read *reading = context;
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
    struct resume_read reading = {.store = store, .run = run, .saved = saved};
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
