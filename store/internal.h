/* What the files of the store share: the connection, its statements, and how one is run. */
#ifndef DML_STORE_INTERNAL_H
#define DML_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

/* The version of the schema, `PRAGMA user_version`. Raise it with every change of a table, and add
 * to UPGRADES in schema.h what brings a database of the version before up to it. */
#define STORE_VERSION 1

/* `PRAGMA application_id` of every database, "dml1". What programs before the first release made
 * has none, whatever its version. */
#define STORE_APPLICATION 0x646d6c31

/* What a program makes and reads. There is one of these; tests put a later one in its place. */
struct store_schema {
    int version;
    const char *const *upgrades; /* [n] brings a database of version n to the next */
};
extern const struct store_schema *store_schema;

#define RUN_COLUMNS                                                                                \
    "r.run, r.uuid, r.job, r.identity, r.settings, r.data, r.build, r.started_ms, "                \
    "coalesce(r.ended_ms, 0), r.reason, r.result, "                                                \
    "coalesce(r.steps, (SELECT max(step) FROM steps s WHERE s.run = r.run), 0), "                  \
    "coalesce(r.evaluations, (SELECT count(*) FROM evaluations e WHERE e.run = r.run)), "          \
    "iif(r.ended_ms IS NULL, l.loss, r.loss), "                                                    \
    "iif(r.ended_ms IS NULL, l.gradient_max, r.gradient_max), "                                    \
    "r.seconds, r.restarts, r.restarts_coordinator, r.restarts_shard, r.restarts_replica, "        \
    "r.command, r.start_model, r.start_run, r.sweep, r.member, r.tag, r.note, r.continues, "       \
    "iif(r.origin = 0, r.run, r.origin) "                                                          \
    "FROM runs r LEFT JOIN steps l ON l.run = r.run AND "                                          \
    "l.step = (SELECT max(step) FROM steps m WHERE m.run = r.run)"

#define SWEEP_COLUMNS                                                                              \
    "sweep, identity, settings, data, judged, sources, start_model, started_ms, ended_ms, "        \
    "winner, result, checksum, decided FROM sweeps"

/* The invocation before that of a number, and whether it came to what that came to. */
#define INVOCATION_BEFORE "(SELECT max(invocation) FROM invocations WHERE invocation < ?1)"
#define INVOCATIONS_EQUAL                                                                          \
    "(b.command, b.outcome, b.status, b.reason, b.run) = "                                         \
    "(i.command, i.outcome, i.status, i.reason, i.run)"

#define MODEL_COLUMNS "m.run, m.wall_ms, m.folder, m.sha256, m.removed_ms, m.figures FROM models m"

/* Gives one run what the table has of another. */
#define COPY(table, columns)                                                                       \
    "INSERT INTO " table " (run, " columns ") SELECT ?, " columns " FROM " table " WHERE run = ?"

/* Every statement there is; each is prepared at its first use and kept. */
#define STATEMENT_TABLE(X)                                                                         \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(TERM_LAST, "SELECT coalesce(max(epoch), 0) FROM epochs")                                     \
    X(TERM_INSERT, "INSERT INTO epochs (epoch, wall_ms, pid) VALUES (?, ?, ?)")                    \
    X(RUN_NEXT, "SELECT coalesce(max(run), 0) + 1 FROM runs")                                      \
    X(RUN_INSERT, "INSERT INTO runs (run, uuid, job, identity, settings, data, build, "            \
                  "started_ms, command, start_model, start_run, sweep, member) "                   \
                  "VALUES (?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, 'run'), coalesce(?, ''), ?, ?, ?)") \
    X(RUN_RENAME, "UPDATE runs SET uuid = uuid || '.' || run WHERE run = ?")                       \
    X(RUN_CONTINUE, "INSERT INTO runs (run, uuid, job, identity, settings, data, build, "          \
                    "started_ms, seconds, command, start_model, start_run, sweep, member, "        \
                    "continues, origin) SELECT ?, ?, job, identity, ?, data, ?, ?, seconds, "      \
                    "coalesce(?, 'run'), start_model, start_run, sweep, member, run, "             \
                    "iif(origin = 0, run, origin) FROM runs WHERE run = ?")                        \
    X(SOURCES_COPY, COPY("sources", "position, path, fingerprint, bytes, rows"))                   \
    X(STEPS_COPY, COPY("steps", "step, loss, gradient_max, step_length, trials, history, note, "   \
                                "wall_ms, holdout_loss, holdout_accuracy"))                        \
    X(EVALUATIONS_COPY,                                                                            \
      COPY("evaluations", "attempt, evaluation, step, step_length, loss, slope, "                  \
                          "examples, seconds, outcome"))                                           \
    X(DOWNPOUR_EPOCHS_COPY,                                                                        \
      COPY("downpour_epochs", "epoch, minibatches, rows, loss, holdout_loss, "                     \
                              "holdout_accuracy, seconds, wall_ms"))                               \
    X(RUN_END, "UPDATE runs SET ended_ms = ?, reason = ?, result = ?, steps = ?, "                 \
               "evaluations = ?, loss = ?, gradient_max = ? WHERE run = ?")                        \
    X(RUN_UNFINISHED,                                                                              \
      "SELECT " RUN_COLUMNS " WHERE r.identity = ? AND r.data = ? ORDER BY r.run DESC LIMIT 1")    \
    X(RUN_OF_MEMBER, "SELECT " RUN_COLUMNS " WHERE r.sweep = ? AND r.sweep > 0 AND "               \
                     "r.member = ? ORDER BY r.run DESC LIMIT 1")                                   \
    X(RUN_LAST_OF, "SELECT " RUN_COLUMNS " WHERE r.run = "                                         \
                   "(SELECT max(run) FROM runs WHERE identity = ? AND sweep = 0)")                 \
    X(RUNS_COLD, "SELECT " RUN_COLUMNS " WHERE r.identity = ? AND r.sweep = 0 AND "                \
                 "r.start_model = '' ORDER BY r.run DESC")                                         \
    X(RUNS_OF_SWEEP, "SELECT " RUN_COLUMNS " WHERE r.sweep = ? AND r.sweep > 0 ORDER BY r.run")    \
    X(RUN_TAGGED, "SELECT coalesce(max(run), 0) FROM runs WHERE tag = ? AND tag > ''")             \
    X(REASONS, "SELECT reason FROM runs GROUP BY reason")                                          \
    X(ORIGINS_OPEN, "SELECT iif(origin = 0, run, origin) FROM runs "                               \
                    "WHERE reason IS NULL OR run = ?")                                             \
    X(SWEEP_LAST, "SELECT coalesce(max(sweep), 0) FROM sweeps")                                    \
    X(SWEEP_INSERT, "INSERT INTO sweeps (sweep, identity, settings, data, judged, sources, "       \
                    "start_model, started_ms, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")       \
    X(SWEEP_NEXT, "SELECT coalesce(max(sweep), 0) + 1 FROM sweeps")                                \
    X(SWEEP_END, "UPDATE sweeps SET ended_ms = ?, winner = ?, result = ?, decided = "              \
                 "(SELECT coalesce(max(publication), 0) FROM publications) WHERE sweep = ?")       \
    X(SWEEPS, "SELECT " SWEEP_COLUMNS " ORDER BY sweep")                                           \
    X(SWEEP, "SELECT " SWEEP_COLUMNS " WHERE sweep = ?")                                           \
    X(SWEEP_LAST_OF, "SELECT " SWEEP_COLUMNS " WHERE sweep = "                                     \
                     "(SELECT max(sweep) FROM sweeps WHERE identity = ?)")                         \
    X(RUN_RESUME, "UPDATE runs SET settings = ?, restarts = restarts + 1, ended_ms = NULL, "       \
                  "reason = NULL, result = NULL, steps = NULL, evaluations = NULL, "               \
                  "loss = NULL, gradient_max = NULL WHERE run = ?")                                \
    X(RUN_SECONDS, "UPDATE runs SET seconds = ? WHERE run = ?")                                    \
    X(RUN_RESTARTS, "UPDATE runs SET "                                                             \
                    "restarts_coordinator = restarts_coordinator + (?1 = 'coordinator'), "         \
                    "restarts_shard = restarts_shard + (?1 = 'shard'), "                           \
                    "restarts_replica = restarts_replica + (?1 = 'replica') WHERE run = ?2")       \
    X(RUN_LABEL, "UPDATE runs SET tag = coalesce(?, tag), note = coalesce(?, note) WHERE run = ?") \
    X(ATTEMPT_INSERT, "INSERT INTO attempts (run, attempt, wall_ms, checksum) "                    \
                      "VALUES (?, ?, ?, ?)")                                                       \
    X(ATTEMPT_LAST, "SELECT attempt, checksum FROM attempts WHERE run = ? "                        \
                    "ORDER BY attempt DESC LIMIT 1")                                               \
    X(JOURNAL_INSERT, "INSERT INTO journal (run, data, checksum) VALUES (?, ?, ?)")                \
    X(JOURNAL_DELETE, "DELETE FROM journal WHERE run = ?")                                         \
    X(JOURNAL_LAST, "SELECT checksum FROM journal WHERE run = ? ORDER BY entry DESC LIMIT 1")      \
    X(JOURNAL, "SELECT data, checksum FROM journal WHERE run = ? ORDER BY entry")                  \
    X(DURABLE_INSERT, "INSERT INTO durable_steps (run, step, attempt, wall_ms, digests, state, "   \
                      "checksum) VALUES (?, ?, ?, ?, ?, ?, ?)")                                    \
    X(DURABLE_KEEP, "DELETE FROM durable_steps WHERE run = ?1 AND number NOT IN (SELECT number "   \
                    "FROM durable_steps WHERE run = ?1 ORDER BY number DESC LIMIT 2)")             \
    X(DURABLE, "SELECT step, attempt, digests, state, checksum FROM durable_steps "                \
               "WHERE run = ? ORDER BY number DESC LIMIT 2")                                       \
    X(DURABLE_UNDO, "DELETE FROM durable_steps WHERE run = ? AND step > ?")                        \
    X(DOWNPOUR_EPOCHS_UNDO, "DELETE FROM downpour_epochs WHERE run = ? AND epoch > ?")             \
    X(STEPS_UNDO, "DELETE FROM steps WHERE run = ? AND step > ?")                                  \
    X(STEP_INSERT, "INSERT OR REPLACE INTO steps (run, step, loss, gradient_max, step_length, "    \
                   "trials, history, note, wall_ms, holdout_loss, holdout_accuracy) "              \
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                     \
    X(DOWNPOUR_EPOCH_PUT,                                                                          \
      "INSERT OR REPLACE INTO downpour_epochs (run, epoch, minibatches, rows, loss, "              \
      "holdout_loss, holdout_accuracy, seconds, wall_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")      \
    X(DOWNPOUR_EPOCHS, "SELECT epoch, minibatches, rows, loss, holdout_loss, holdout_accuracy, "   \
                       "seconds, wall_ms FROM downpour_epochs WHERE run = ? AND epoch >= ? "       \
                       "ORDER BY epoch")                                                           \
    X(EVALUATION_INSERT, "INSERT INTO evaluations (run, attempt, evaluation, step, step_length, "  \
                         "loss, slope, examples, seconds, outcome) "                               \
                         "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                  \
    X(PORTION_INSERT, "INSERT INTO portions (run, attempt, evaluation, first_chunk, chunks, "      \
                      "incarnation, sequence) VALUES (?, ?, ?, ?, ?, ?, ?)")                       \
    X(PROCESS_PUT, "INSERT INTO processes (run, role, idx, incarnation, pid, host, address, "      \
                   "device, state, started_ms, changed_ms) "                                       \
                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10) "                        \
                   "ON CONFLICT (run, role, idx, incarnation) DO UPDATE SET pid = excluded.pid, "  \
                   "host = excluded.host, state = excluded.state, "                                \
                   "address = iif(excluded.address = '', address, excluded.address), "             \
                   "device = iif(excluded.device = '', device, excluded.device), "                 \
                   "changed_ms = excluded.changed_ms")                                             \
    X(HOST_PUT, "INSERT OR REPLACE INTO hosts (run, position, host, threads, workers, state, "     \
                "why, failures, changed_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")                   \
    X(HOSTS, "SELECT host, threads, workers, state, why, failures FROM hosts "                     \
             "WHERE run = ? ORDER BY position")                                                    \
    X(EVENT_INSERT, "INSERT INTO events (run, wall_ms, kind, text) VALUES (?, ?, ?, ?)")           \
    X(EVENT_CHANGE, "UPDATE events SET wall_ms = ?, text = ? WHERE event = ?")                     \
    X(EVENTS, "SELECT event, wall_ms, kind, text FROM events WHERE run = ? AND event >= ? "        \
              "ORDER BY event")                                                                    \
    X(MODEL_INSERT, "INSERT INTO models (run, wall_ms, folder, sha256) VALUES (?, ?, ?, ?)")       \
    X(MODELS, "SELECT " MODEL_COLUMNS " ORDER BY m.model")                                         \
    X(MODELS_OF_SWEEP, "SELECT " MODEL_COLUMNS " JOIN runs r ON r.run = m.run "                    \
                       "WHERE r.sweep = ? AND r.sweep > 0 ORDER BY m.model")                       \
    X(MODELS_KEPT, "SELECT m.run, r.sweep FROM models m JOIN runs r ON r.run = m.run "             \
                   "WHERE m.removed_ms = 0 GROUP BY m.run ORDER BY min(m.model)")                  \
    X(SWEEP_RUN_LAST, "SELECT coalesce(max(sweep), 0) FROM runs WHERE sweep > 0")                  \
    X(MODEL_RUN, "SELECT run FROM models WHERE sha256 = ? ORDER BY model DESC LIMIT 1")            \
    X(MODEL_FIGURES, "UPDATE models SET figures = ? WHERE run = ?")                                \
    X(MODEL_REMOVED, "UPDATE models SET removed_ms = ? WHERE run = ?")                             \
    X(SOURCE_INSERT, "INSERT OR REPLACE INTO sources (run, position, path, fingerprint, bytes, "   \
                     "rows) VALUES (?, ?, ?, ?, ?, ?)")                                            \
    X(SOURCES, "SELECT position, path, fingerprint, bytes, rows FROM sources WHERE run = ? "       \
               "ORDER BY position")                                                                \
    X(PUBLICATION_INSERT, "INSERT INTO publications (wall_ms, kind, run, previous_run, text) "     \
                          "VALUES (?, ?, ?, ?, ?)")                                                \
    X(PUBLICATION_SETTLED, "UPDATE publications SET settled_ms = ? WHERE publication = ?")         \
    X(PUBLICATIONS, "SELECT publication, wall_ms, kind, run, previous_run, text, settled_ms "      \
                    "FROM publications ORDER BY publication")                                      \
    X(RUNS, "SELECT " RUN_COLUMNS " ORDER BY r.run")                                               \
    X(RUNS_NEWEST, "SELECT " RUN_COLUMNS                                                           \
                   " WHERE r.run IN (SELECT max(run) FROM runs GROUP BY job) ORDER BY r.job")      \
    X(RUN, "SELECT " RUN_COLUMNS " WHERE r.run = ?")                                               \
    X(RUN_LAST, "SELECT " RUN_COLUMNS " ORDER BY r.run DESC LIMIT 1")                              \
    X(STEPS, "SELECT s.step, loss, gradient_max, step_length, trials, history, note, wall_ms, "    \
             "holdout_loss, holdout_accuracy, coalesce(e.last, 0) FROM steps s LEFT JOIN "         \
             "(SELECT step, max(evaluation) AS last FROM evaluations WHERE run = ?1 AND "          \
             "step >= ?2 AND outcome = 'accepted' GROUP BY step) e ON e.step = s.step "            \
             "WHERE run = ?1 AND s.step >= ?2 ORDER BY s.step")                                    \
    X(PROCESSES, "SELECT p.role, p.idx, p.incarnation, p.pid, p.host, p.address, "                 \
                 "p.device, p.state, coalesce(c.portions, 0) FROM processes p LEFT JOIN "          \
                 "(SELECT incarnation, count(*) AS portions FROM portions WHERE run = ?1 "         \
                 "GROUP BY incarnation) c "                                                        \
                 "ON p.role = 'replica' AND c.incarnation = p.incarnation "                        \
                 "WHERE p.run = ?1 ORDER BY p.role, p.idx, p.incarnation")                         \
    X(INVOCATION_OPEN, "SELECT invocation, began_ms FROM invocations WHERE outcome = '' AND "      \
                       "invocation = (SELECT max(invocation) FROM invocations)")                   \
    X(INVOCATION_INSERT, "INSERT INTO invocations (command, first_ms, began_ms) "                  \
                         "VALUES (?1, ?2, ?2)")                                                    \
    X(INVOCATION_END, "UPDATE invocations SET ended_ms = ?, outcome = ?, status = ?, reason = ?, " \
                      "run = ? WHERE invocation = ?")                                              \
    X(INVOCATION_REPEATS, "UPDATE invocations AS i SET times = i.times + b.times, "                \
                          "first_ms = b.first_ms FROM invocations b WHERE i.invocation = ?1 AND "  \
                          "b.invocation = " INVOCATION_BEFORE " AND " INVOCATIONS_EQUAL)           \
    X(INVOCATION_DELETE_BEFORE, "DELETE FROM invocations WHERE invocation = " INVOCATION_BEFORE)   \
    X(INVOCATIONS_DELETE, "DELETE FROM invocations WHERE invocation <= "                           \
                          "(SELECT invocation FROM invocations ORDER BY invocation DESC "          \
                          "LIMIT 1 OFFSET ?)")                                                     \
    X(INVOCATIONS, "SELECT invocation, command, first_ms, began_ms, ended_ms, times, outcome, "    \
                   "status, reason, run FROM invocations ORDER BY invocation")                     \
    X(MODEL_OF, "SELECT folder, sha256 FROM models WHERE run = ? ORDER BY model DESC LIMIT 1")

enum statement {
#define X(name, sql) STATEMENT_##name,
    STATEMENT_TABLE(X)
#undef X
        STATEMENTS
};

struct store {
    sqlite3 *database;
    pthread_t owner; /* the thread that opened it, and alone uses it */
    char *path;
    bool network;   /* the file lies on a network file system */
    bool fenced;    /* another process took over: the database is not touched any more */
    bool moves_log; /* more was written than invocations: closing moves the log into the file */
    sqlite3_stmt *statements[STATEMENTS];
    int64_t chain_run; /* the run that `chain` is of; 0: it is not known */
    uint64_t chain;    /* checksum of the last entry of that run's journal */
};

/* A value for a statement. Texts and blobs are not copied; a NULL text is NULL. */
struct value {
    enum { VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB } type;
    int64_t integer;
    double real;
    const char *text;
    const void *blob;
    size_t length; /* of the blob */
};

static inline struct value integer(int64_t number) {
    return (struct value){.type = VALUE_INTEGER, .integer = number};
}

static inline struct value count(uint64_t number) {
    return integer((int64_t)number);
}

static inline struct value real(double number) {
    return (struct value){.type = VALUE_REAL, .real = number};
}

static inline struct value text(const char *string) {
    return (struct value){.type = VALUE_TEXT, .text = string};
}

static inline struct value blob(const void *data, size_t length) {
    return (struct value){.type = VALUE_BLOB, .blob = data, .length = length};
}

/* Takes one row; an answer other than 0 ends the reading and is returned. */
typedef int row_take(void *context, sqlite3_stmt *row);

/* A row_take for one row of one number: context is an int64_t or an uint64_t. */
int store_take_number(void *context, sqlite3_stmt *row);

/* Runs a statement to its end; `take` may be NULL. Outside a transaction it is one of its own. */
int store_run_statement(struct store *store, enum statement statement, const struct value *values,
                        size_t values_count, row_take *take, void *context);

#define VALUES(...)                                                                                \
    (const struct value[]){__VA_ARGS__},                                                           \
        sizeof((struct value[]){__VA_ARGS__}) / sizeof(struct value)

/* Runs a statement as part of the open transaction, which it begins if there is none. */
int store_collect(struct store *store, enum statement statement, const struct value *values,
                  size_t values_count);

/* Runs a statement in a transaction of its own, which is on the disk when this returns 0. */
int store_run_durably(struct store *store, enum statement statement, const struct value *values,
                      size_t values_count);

/* A transaction that is on the disk when store_end_durably() returns 0. What was collected before
 * is committed first. store_end_durably() rolls back if `code` is not 0. */
int store_begin_durably(struct store *store);
int store_end_durably(struct store *store, int code);

/* Commits what is open and syncs the log. SQLite does not change `synchronous` within a
 * transaction, so the commit is as for NORMAL; the log then has what a commit with FULL writes. */
int store_commit_durably(struct store *store);

/* Rolls back what is open, if anything is. */
void store_abandon(struct store *store);

/* The checksums of what a run resumes from. Each covers where its row belongs; an entry's covers
 * all entries before it by `chain`, the checksum of the one before, or 0. */
uint64_t store_attempt_checksum(int64_t run, uint32_t attempt);
uint64_t store_journal_checksum(int64_t run, uint64_t chain, const void *data, size_t length);
uint64_t store_durable_checksum(int64_t run, uint32_t attempt, uint64_t step,
                                const struct value *digests, const struct value *state);

/* Opens the database of a state folder whose files lie in `files`, the folder itself or one with
 * copies. Messages and store_folder() name the state folder. `may` as for store_open(). */
int store_open_files(const char *state_folder, const char *files, int flags, store_may_upgrade *may,
                     struct store **store);

/* Says that the file is damaged, how, and what to do. */
int store_damaged(struct store *store, const char *how);

/* Says that of a file that SQLite finds damaged, unless the system failed to read it: to SQLite a
 * page that could not be read is damage, too. */
int store_unsound(struct store *store, const char *how);

/* Whether this process may still write (base/file.h): asked before a transaction begins and before
 * it is committed. From the first time that it may not, the store is fenced: it answers
 * ERROR_AGAIN to everything, and its file is left as it is. */
int store_may_write(struct store *store);
int store_fenced(const struct store *store); /* that error */

/* Describes the failure of an SQLite call. Returns the code. */
int store_failed(struct store *store, int result);

/* The column as a double, NaN for NULL: SQLite keeps NaN as NULL. */
double column_real(sqlite3_stmt *row, int column);

/* The column as a text that is valid until the row is left; NULL for NULL. */
const char *column_text(sqlite3_stmt *row, int column);

#endif
