/* The store: one SQLite database a state folder, STATE/dml.db, through one connection.
 *
 * It holds the runs, every step and evaluation, what was counted when, processes, events and
 * models, and the coordinator's terms. WAL and exclusive locking; `PRAGMA user_version` is the
 * schema's version, and a database of a newer version is refused by name.
 *
 * Durability. store_term_next(), store_run_begin(), store_run_continue(), store_run_derive(),
 * store_run_resume(), store_run_end(), store_attempt(), store_durable_step(), store_sweep_begin(),
 * store_sweep_end() and store_publish() return after the disk has them, and all that was collected
 * before. Everything else is collected in an open transaction that store_flush() commits
 * (synchronous = NORMAL): the caller does that every 100 ms or so, and before it sends what relies
 * on a journal entry. A crash of the process loses what was not flushed, a crash of the machine
 * perhaps a little more.
 *
 * Threads. The thread that opened a store alone uses it: the coordinator's event loop. Every
 * statement asserts that.
 *
 * Damage. Opening checks the structure of the file, and what a run resumes from has checksums. */
#ifndef DML_STORE_STORE_H
#define DML_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store; /* opaque */

/* Whether a database of an older version may be brought up to date, after which older programs
 * refuse it: 0, or the error that opening it answers. `preview` is what it would become, in memory.
 */
typedef int store_may_upgrade(struct store *preview);

/* Opens or makes STATE/dml.db (the state folder must exist). ERROR_CREATE, ERROR_IO (damaged, or it
 * could not be read: says what to do), ERROR_AGAIN (locked by another process). `may` is asked
 * before a database of an older version is changed; NULL: it is changed in any case. */
int store_open(const char *state_folder, store_may_upgrade *may, struct store **store);

/* As store_open(), but makes no database: ERROR_UNAVAILABLE if there is none. */
int store_open_existing(const char *state_folder, store_may_upgrade *may, struct store **store);

/* Opens for reading what is there; ERROR_UNAVAILABLE if there is no database. One of an older
 * version stays as it is: the store is then a copy in memory. */
int store_open_to_read(const char *state_folder, struct store **store);

/* ERROR_UNAVAILABLE if there is no database. */
int store_check_existing(const char *state_folder);

/* Reads what is there and writes nothing to the folder, neither lock nor log: for a caller who may
 * only read it, also while a coordinator works in it. The store is in memory. Its files are copied
 * to a private folder below TMPDIR or /tmp in between. ERROR_UNAVAILABLE if there is no database,
 * ERROR_AGAIN if it does not stand still for long enough. */
int store_read(const char *state_folder, struct store **store);

/* The state folder that the store, or what it is a copy of, was opened in; free it. */
char *store_folder(const struct store *store);

/* Copies what is committed into memory: for reading, when the file and its lock are let go. */
int store_copy(struct store *store, struct store **copy);

/* Commits and closes. */
int store_close(struct store *store);

int store_flush(struct store *store);

/* The next term of this state folder, durable before it returns; from 1. */
int store_term_next(struct store *store, uint64_t *term);

struct store_saved;

struct store_run {
    int64_t run;                  /* from 1 */
    const char *uuid;             /* names the run to its workers */
    const char *job;              /* name */
    const char *identity;         /* job_identity() */
    const char *settings;         /* JSON */
    const char *data;             /* fingerprint of the set */
    const char *build;            /* what computes here */
    int64_t started_ms, ended_ms; /* wall clock; ended_ms is 0 while it runs */
    const char *reason;           /* NULL while it runs */
    const char *result;           /* JSON, or NULL */
    uint64_t steps, evaluations;
    double loss, gradient_max;
    double seconds;    /* spent on it, by the last store_run_progress() */
    uint64_t restarts; /* how often it was resumed */
    uint64_t restarts_coordinator, restarts_shard, restarts_replica;
    const char *command; /* that began it: "run", "retrain" or, of store_run_derive(), "publish";
                            NULL in what is begun: "run" */
    const char *start_model; /* SHA-256 of the model that it started from; "" or NULL: from zero */
    int64_t start_run;       /* the run of that model; 0: not known here */
    int64_t sweep;           /* that it belongs to; 0: none */
    uint32_t member;         /* of the sweep: which one, from 0 */
    const char *tag, *note;  /* of people; "": none. Ignored in what is begun */
    int64_t continues;       /* the run from whose end it went on; 0: it began anew */
    int64_t origin; /* the run that began anew and whose checkpoints it has; often itself */
    char *owned;    /* holds the texts of a run that was found; else NULL, and they are others' */
};

/* Frees the texts of a run that was found, and zeroes it. Harmless on one that was not. */
void store_run_release(struct store_run *run);

/* The number that the next run gets: files that must exist before the run begins are named by it.
 */
int store_run_next(struct store *store, int64_t *run);

/* Begins a run; run->run is set: to that number, or to what it was if that is larger. */
int store_run_begin(struct store *store, struct store_run *run);

/* Begins a run that goes on from the end of another one, from->run, so that this one and its model
 * stay what they are. It takes over all that the other one would go on from, `saved`, and its uuid,
 * as its workers know it; it gets copies of the sources, steps, evaluations and epochs. Of `run`
 * count the settings, the build, started_ms, the command and the number, as for store_run_begin().
 * In one commit: a crash leaves either the other run, which can go on, or the new one. */
int store_run_continue(struct store *store, const struct store_run *from,
                       const struct store_saved *saved, struct store_run *run);

/* Records a run that trained nothing: its model, in `folder`, has the parameters of the model of
 * another run, `from`, which has ended, and other details. `figures` are those of the model on the
 * holdout, as JSON, or NULL. Of `run` count the number, as for store_run_begin(), the identity, the
 * settings, the result and started_ms; what the training came to is that of the other run, with
 * copies of its sources, steps, evaluations and epochs. In one commit, durable. */
int store_run_derive(struct store *store, const struct store_run *from, const char *folder,
                     const char *sha256, const char *figures, struct store_run *run);

/* Ends it; `result` is JSON or NULL. Deletes its journal, as its workers end as well. */
int store_run_end(struct store *store, int64_t run, const char *reason, const char *result,
                  uint64_t steps, uint64_t evaluations, double loss, double gradient_max);

/* The newest run of this identity and data, if it can go on: if it has not ended, or ended for a
 * reason that `can_resume` accepts, also one without a durable step. Else *found is false and *run
 * zeroed, here and below. Release it with store_run_release(). */
int store_run_unfinished(struct store *store, const char *identity, const char *data,
                         bool (*can_resume)(const char *reason), struct store_run *run,
                         bool *found);

/* The newest run of a member of a sweep, if it can go on: as store_run_unfinished(). */
int store_run_of_member(struct store *store, int64_t sweep, uint32_t member,
                        bool (*can_resume)(const char *reason), struct store_run *run, bool *found);

/* The run goes on: it has no end any more, has these settings, and one restart more. */
int store_run_resume(struct store *store, int64_t run, const char *settings);

/* The seconds spent on the run until now, those before it was resumed included. */
int store_run_progress(struct store *store, int64_t run, double seconds);

/* Counts a restart of a "coordinator", "shard" or "replica". */
int store_run_restarts(struct store *store, int64_t run, const char *role);

/* Gives a run another tag and note; NULL: it keeps what it has. Collected. */
int store_run_label(struct store *store, int64_t run, const char *tag, const char *note);

struct store_step {
    uint64_t step; /* 0 is the starting point */
    double loss, gradient_max, step_length;
    double holdout_loss;     /* mean over the holdout; NaN without early stopping */
    double holdout_accuracy; /* NaN without early stopping or without classes */
    uint32_t trials;         /* evaluations this step took */
    uint32_t history;        /* pairs in use */
    const char *note;        /* safeguards that fired, or "" */
    int64_t wall_ms;
    uint64_t
        evaluation; /* only read: the number of the one that was accepted; 0: none is recorded */
};
int store_step(struct store *store, int64_t run, const struct store_step *step);

struct store_evaluation {
    uint64_t evaluation;
    uint32_t attempt;
    uint64_t step;      /* the step it was made for */
    double step_length; /* 0 for the first */
    double loss;        /* objective, L2 included; may not be finite */
    double slope;       /* g·d at the trial */
    uint64_t examples;  /* counted: each exactly once */
    double seconds;
    const char *outcome; /* "accepted", "rejected", "not finite", "bound exceeded" */
};
int store_evaluation(struct store *store, int64_t run, const struct store_evaluation *evaluation);

/* An epoch of Downpour that is through. */
struct store_epoch {
    uint64_t epoch; /* from 1 */
    uint64_t minibatches, rows;
    double loss;             /* mean over its minibatches, each before its step */
    double holdout_loss;     /* mean over the holdout at its end; NaN without one */
    double holdout_accuracy; /* NaN without a holdout or without classes */
    double seconds;
    int64_t wall_ms; /* of its end */
};
int store_downpour_epoch(struct store *store, int64_t run, const struct store_epoch *epoch);

/* A flush that was counted, with one run of chunks; several rows a flush. */
int store_portion(struct store *store, int64_t run, uint32_t attempt, uint64_t evaluation,
                  uint64_t incarnation, uint32_t sequence, uint32_t first_chunk, uint32_t chunks);

/* A worker of the run. */
struct store_process_row {
    const char *role;
    uint32_t index;
    uint64_t incarnation;
    int pid;
    const char *host;
    const char *address; /* where it listens ("unix:…") */
    const char *device;  /* what it computes on ("cpu") */
    const char *state;   /* "running", "ended", "lost", … */
    uint64_t portions;   /* only read: rows of that incarnation in the portions table */
};
/* A process was started or has ended, or more is known of it. An address or device of "" leaves the
 * stored one as it is. */
int store_process(struct store *store, int64_t run, const struct store_process_row *process);

/* Collected. Its number, if `event` is not NULL: for store_event_again(). */
int store_event(struct store *store, int64_t run, const char *kind, const char *text,
                int64_t *event);

/* The event came again: gives it the time of now, and a text that says how often. Collected. */
int store_event_again(struct store *store, int64_t event, const char *text);

/* ---- models, what they were made from, and which of them is live ---- */

/* Collected: the end of the run, which follows, makes it durable. */
int store_model(struct store *store, int64_t run, const char *folder, const char *sha256);

/* Figures on the holdout, as JSON. Collected. */
int store_model_figures(struct store *store, int64_t run, const char *figures);

/* The model's folder is gone. Collected. */
int store_model_removed(struct store *store, int64_t run);

struct store_model_row {
    int64_t run;
    int64_t wall_ms;
    const char *folder, *sha256;
    int64_t removed_ms;  /* 0: it is kept */
    const char *figures; /* JSON, or "" */
};
/* Models in the order of their writing. */
int store_models(struct store *store,
                 int (*each)(void *context, const struct store_model_row *model), void *context);

/* Gives `each` the models of the runs of a sweep. */
int store_models_of_sweep(struct store *store, int64_t sweep,
                          int (*each)(void *context, const struct store_model_row *model),
                          void *context);

/* Runs whose models were not removed, each once, in the order of their writing; and the sweep that
 * each is of, or 0. */
int store_models_kept(struct store *store, int (*each)(void *context, int64_t run, int64_t sweep),
                      void *context);

/* The newest sweep that has a run; 0 if there is none. */
int store_sweep_run_last(struct store *store, int64_t *sweep);

/* The newest run that had this model; 0 if there is none. */
int store_model_run(struct store *store, const char *sha256, int64_t *run);

struct store_source {
    uint32_t position; /* in the order of reading, from 0 */
    const char *path;
    const char *fingerprint; /* of the source's bytes and how they were read: names its pack */
    uint64_t bytes, rows;
};
/* Collected. */
int store_source(struct store *store, int64_t run, const struct store_source *source);

/* The sources of a run, in the order of reading. */
int store_sources(struct store *store, int64_t run,
                  int (*each)(void *context, const struct store_source *source), void *context);

struct store_publication {
    int64_t publication, wall_ms; /* set by the store */
    const char *kind;             /* "published", "refused", "rolled back" or "kept" */
    int64_t run;                  /* whose model is live from now on, was refused or is kept */
    int64_t previous_run;         /* whose model was live before; 0: none */
    const char *text;             /* why, for people */
    int64_t settled_ms;           /* when all that follows from it was done; 0: not yet */
};
/* Durable. */
int store_publish(struct store *store, const struct store_publication *publication);
/* Durable. */
int store_publication_settled(struct store *store, int64_t publication);
/* Oldest first. */
int store_publications(struct store *store,
                       int (*each)(void *context, const struct store_publication *publication),
                       void *context);

/* ---- sweeps: several runs of one job, of which one is chosen ---- */

struct store_sweep {
    int64_t sweep;            /* from 1; set by the store */
    const char *identity;     /* job_identity() */
    const char *settings;     /* of the whole job, as JSON */
    const char *data;         /* fingerprint of all rows that are trained on */
    const char *evaluated_on; /* fingerprints of the files that members are compared on, or "" */
    const char *sources;      /* the files that it was begun with, as JSON */
    const char *start_model;  /* SHA-256 of the model that it starts from; "": from zero */
    int64_t started_ms;
    int64_t ended_ms;   /* 0: it has not ended. Set by the store, as what follows */
    int64_t winner;     /* the run that was chosen; 0: none */
    const char *result; /* JSON; NULL: none */
    int64_t decided; /* the last publication before its end; later ones are about its models, too */
};

/* Durable. */
int store_sweep_begin(struct store *store, struct store_sweep *sweep);

/* `winner` is 0 and `result` NULL if there is no model. Durable. */
int store_sweep_end(struct store *store, int64_t sweep, int64_t winner, const char *result);

/* Oldest first. ERROR_IO if one is damaged. */
int store_sweeps(struct store *store, int (*each)(void *context, const struct store_sweep *sweep),
                 void *context);

/* Gives `each` one sweep, or none: by its number, or the newest sweep of a job. */
int store_sweep_find(struct store *store, int64_t sweep,
                     int (*each)(void *context, const struct store_sweep *sweep), void *context);
int store_sweep_last_of(struct store *store, const char *identity,
                        int (*each)(void *context, const struct store_sweep *sweep), void *context);

/* Its number; 0: there is none. */
int store_sweep_last(struct store *store, int64_t *sweep);

/* ---- invocations: what came of each command that trains ---- */

#define INVOCATIONS_KEPT 500 /* rows */

/* The reason of those that are lost. */
#define INVOCATION_LOST                                                                            \
    "its end is not recorded: it was killed, its machine went down, or its disk was full"

/* Invocations, one after the other, of which nothing differs but the time are one row. */
struct store_invocation {
    int64_t invocation;         /* the number of the last of them, from 1, rising */
    const char *command;        /* "run" or "retrain" */
    int64_t first_ms;           /* when the first of them began */
    int64_t began_ms, ended_ms; /* of the last of them; ended_ms is 0 if it has not ended */
    uint64_t times;             /* how many they are */
    const char *outcome;        /* what it came to; "": it has not ended; "lost": it never did */
    int status;                 /* with which it exited; −1 if it did not */
    const char *reason;         /* for people */
    int64_t run;                /* that it worked on; 0: it came to none */
};

/* Commits what was collected, and with it that a command begins; only the newest INVOCATIONS_KEPT
 * rows stay. One before it that has not ended is lost from now on, and *lost_ms is when it began;
 * else 0. The caller holds the lock of the state folder. */
int store_invocation_begin(struct store *store, const char *command, int64_t *invocation,
                           int64_t *lost_ms);

/* Commits what was collected, and with it what the invocation came to: `outcome`, `status`,
 * `reason` and `run`. */
int store_invocation_end(struct store *store, const struct store_invocation *invocation);

/* Oldest first. */
int store_invocations(struct store *store,
                      int (*each)(void *context, const struct store_invocation *invocation),
                      void *context);

/* ---- what a run resumes from ---- */

/* This attempt is in force from now on. Durable. */
int store_attempt(struct store *store, int64_t run, uint32_t attempt);

/* Appends an entry to the journal of the run; one that `begins` replaces all earlier ones.
 * Collected: store_flush() before anything relies on it. */
int store_journal(struct store *store, int64_t run, const void *data, size_t length, bool begins);

/* Commits what was collected, and with it the step, its state and the digest of each shard's
 * checkpoint. The two durable steps committed last are kept, the journal goes. Durable. After an
 * error nothing since the last commit is kept. */
int store_durable_step(struct store *store, int64_t run, uint32_t attempt, uint64_t step,
                       const void *data, size_t length, const uint64_t *digests, uint32_t shards);

/* Undoes what is later than these epochs and steps, and the durable steps later than `durable`,
 * which have numbers of their own. Evaluations stay: each says its attempt. Collected. */
int store_roll_back(struct store *store, int64_t run, uint64_t epochs, uint64_t step,
                    uint64_t durable);

struct store_blob {
    void *data;
    size_t length;
};

struct store_saved {
    uint32_t attempt;    /* the one in force; 0: none yet */
    uint32_t step_count; /* durable steps, the one committed last first */
    struct {
        uint64_t step;
        uint32_t attempt;
        struct store_blob state;
        uint64_t *digests; /* [shards] */
        uint32_t shards;
    } steps[2];
    struct store_blob *journal; /* in the order of writing */
    uint32_t journal_count;
};

/* Reads copies of what was saved. ERROR_IO, and nothing read, if any of it is damaged.
 * Release with store_saved_release(), which may also follow an error. */
int store_saved_read(struct store *store, int64_t run, struct store_saved *saved);
void store_saved_release(struct store_saved *saved);

/* ---- reading ---- */

/* Calls `each` for the newest run of each job, in the order of the jobs' names; as store_runs(). */
int store_runs_newest(struct store *store, int (*each)(void *context, const struct store_run *run),
                      void *context);

/* Calls `each` for the runs, oldest first; strings are valid in the call. Another answer than 0
 * ends it and is returned. */
int store_runs(struct store *store, int (*each)(void *context, const struct store_run *run),
               void *context);

/* The newest run, or that of a number. Release it with store_run_release(). */
int store_run_last(struct store *store, struct store_run *run, bool *found);
int store_run_find(struct store *store, int64_t number, struct store_run *run, bool *found);

/* The newest run of a job that is no member of a sweep. */
int store_run_last_of(struct store *store, const char *identity, struct store_run *run,
                      bool *found);

/* Those of them that started from no model, newest first, as store_runs(); and the runs of a sweep,
 * oldest first. */
int store_runs_cold(struct store *store, const char *identity,
                    int (*each)(void *context, const struct store_run *run), void *context);
int store_runs_of_sweep(struct store *store, int64_t sweep,
                        int (*each)(void *context, const struct store_run *run), void *context);

/* The newest run with this tag; 0 if there is none, or the tag is empty. */
int store_run_tagged(struct store *store, const char *tag, int64_t *run);

/* Each reason that some run has, once; NULL of those that have not ended. */
int store_reasons(struct store *store, int (*each)(void *context, const char *reason),
                  void *context);

/* The origins of run `keep` and of those that have not ended: whose checkpoints they go on with. */
int store_origins_open(struct store *store, int64_t keep,
                       int (*each)(void *context, int64_t origin), void *context);

/* Epochs of Downpour from number `since` on, and steps likewise, oldest first. */
int store_downpour_epochs(struct store *store, int64_t run, uint64_t since,
                          int (*each)(void *context, const struct store_epoch *epoch),
                          void *context);
int store_steps(struct store *store, int64_t run, uint64_t since,
                int (*each)(void *context, const struct store_step *step), void *context);

int store_processes(struct store *store, int64_t run,
                    int (*each)(void *context, const struct store_process_row *process),
                    void *context);

/* A host that workers of a run are started on. */
struct store_host {
    uint32_t position; /* in the list of hosts; not read */
    const char *host;
    uint32_t threads;        /* of a replica there; 0: it takes what the host has */
    uint32_t workers;        /* that are up there */
    const char *state, *why; /* "up", "set aside", …; why a worker failed there last, or "" */
    uint64_t failures;       /* in all */
};
/* Collected. */
int store_host(struct store *store, int64_t run, const struct store_host *host);
/* In the order of the list. */
int store_hosts(struct store *store, int64_t run,
                int (*each)(void *context, const struct store_host *host), void *context);

struct store_event_row {
    int64_t event; /* from 1, rising */
    int64_t wall_ms;
    const char *kind, *text;
};
/* Events of the run from number `since` on, oldest first. */
int store_events(struct store *store, int64_t run, int64_t since,
                 int (*each)(void *context, const struct store_event_row *event), void *context);

/* The newest model of a run: its folder and hash, each "" if there is none. Free both, also after
 * an error; either may be NULL. */
int store_model_of(struct store *store, int64_t run, char **folder, char **sha256);

#endif
