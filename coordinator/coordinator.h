/* The coordinator's state machine: one message in, messages and records out. It opens no socket,
 * reads no clock and holds no parameter vector.
 *
 * Links are numbered: shard i is link i, replica j is link shards + j. After coordinator_begin()
 * the caller connects to the workers and calls coordinator_opened() for each, or coordinator_lost()
 * for one that is not there; feeds messages to coordinator_step(); calls coordinator_tick() about
 * ten times a second; and after each call carries out what is in `out.records`, in order, and then
 * sends what is in `out.messages`. That order is what makes records durable before they have
 * effects.
 *
 * The machine goes through the phases in order, and back to PHASE_SETTING_UP when a shard is lost;
 * it stays in PHASE_READ until the caller has put the model where it belongs and calls
 * coordinator_dismiss(). */
#ifndef DML_COORDINATOR_COORDINATOR_H
#define DML_COORDINATOR_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/verdicts.h"
#include "coordinator/optimizer.h"
#include "coordinator/plan.h"
#include "coordinator/rounds.h"
#include "data/set.h"
#include "numeric/exact.h"
#include "numeric/vector.h"
#include "objective/objective.h"
#include "store/store.h"
#include "wire/outbox.h"

enum coordinator_phase {
    PHASE_REJOINING,  /* after a restart: the living shards say what they hold */
    PHASE_SETTING_UP, /* workers are greeted, set up, restored */
    PHASE_RUNNING,    /* the optimizer runs */
    PHASE_SEALING,    /* the last step is made durable, so that the run can go on from it */
    PHASE_READING,    /* the model is read from the shards */
    PHASE_READ,       /* all of it was handed out as records */
    PHASE_STOPPED,    /* cancelled, where it can be resumed; no model */
    PHASE_DISMISSED,  /* the workers were told to exit */
    PHASE_FAILED,     /* the run cannot go on: error_text() says why */
};

/* What the store kept of a run that is resumed. Nothing in it is owned. */
struct coordinator_saved {
    uint32_t attempt;
    uint32_t step_count; /* durable steps, newest first */
    struct {
        uint64_t step;
        struct blob state;
        const uint64_t *digests; /* a shard each */
    } steps[2];
    const struct blob *journal;
    uint32_t journal_count;
};

struct coordinator_settings {
    struct optimizer_settings optimizer;
    struct objective_shape shape;
    enum history_type history_type;
    const struct set_info *data; /* outlives the coordinator, as do the strings */
    const char *set_path;
    const char *run; /* names the run to its workers */
    uint64_t epoch;
    uint32_t shards, replicas;
    uint32_t threads;        /* per replica; 0: the replica decides */
    uint32_t portion_chunks; /* 0: adapts */
    bool backup_copies;      /* whether one replica is given what another has and is late with */
    uint32_t flush_ms, reconnect_seconds;
    const char *const *shard_addresses; /* [shards], as replicas reach them */
    const char *shards_folder;          /* checkpoints go to its subfolders 0, 1, …; "": none */
    int64_t checkpoint_ns;              /* from one checkpoint to the next; 0: every step */
    uint32_t restarts_max;              /* of one worker, before the run gives up */
    /* Where to start; outlives the coordinator. */
    const double *start;       /* [parameters], or NULL: at zero */
    const double *start_pairs; /* curvature pairs, oldest first: s, then y, [parameters] each */
    uint32_t start_pair_count;
    uint32_t pairs_kept; /* of the last curvature pairs, as many are handed out behind the model */
    const struct coordinator_saved *saved; /* of a run that is resumed, or NULL; read by _new() */
};

/* What is to be stored, shown or kept, in order. */
enum record_kind {
    RECORD_ATTEMPT,      /* durable before anything else happens */
    RECORD_JOURNAL,      /* committed before messages are sent */
    RECORD_DURABLE_STEP, /* one transaction, durable before messages are sent */
    RECORD_ROLL_BACK,    /* steps after this one are undone */
    RECORD_START,        /* start the worker of this link anew and connect to it */
    RECORD_STEP,
    RECORD_EVALUATION,
    RECORD_PORTION,
    RECORD_WORKER, /* a worker changed its state */
    RECORD_EVENT,
    RECORD_SLICE, /* part of the model: valid until the step that made it returns to its caller */
};

struct record {
    enum record_kind kind;
    union {
        uint32_t attempt;
        struct {
            size_t offset, length; /* in output.blobs */
            bool begins;           /* all earlier entries are void */
        } journal;
        struct {
            uint64_t step;
            uint32_t attempt;
            size_t offset, length;   /* of the state, in output.blobs */
            const uint64_t *digests; /* a shard each; valid until the step returns */
        } durable;
        struct {
            bool to_start; /* nothing is left of the run */
            uint64_t step;
        } roll_back;
        uint32_t start; /* link */
        struct store_step step;
        struct store_evaluation evaluation;
        struct {
            struct flush_id flush;
            struct run run;
        } portion;
        struct {
            uint32_t link;
            const char *state;
        } worker;
        struct {
            const char *kind;
            char text[256];
        } event;
        struct {
            uint32_t vector; /* 0: the model; then s and y of each kept pair, oldest first */
            uint64_t first, count;
            const double *values;
        } slice;
    };
    char note[256]; /* what store_step.note points to */
};

struct output {
    struct outbox messages;
    struct record *records;
    uint32_t record_count, record_capacity;
    struct bytes blobs; /* what records refer to */
};

void output_init(struct output *output);
void output_release(struct output *output);
void output_clear(struct output *output);

/* Chunks that a replica was handed and that are not all counted. */
struct handed {
    struct run run;
    int64_t at_ns;
    bool backed_up; /* another replica has a copy */
};

struct worker {
    enum role role;
    uint32_t index;
    uint64_t incarnation;
    bool connected, welcomed;
    bool introduced; /* replica: has been told of the data and of the shards */
    bool ready;      /* set up for this attempt; shard: restored too */
    bool idle;       /* replica: was told to rest, has not been given more */
    uint32_t restarts;
    int64_t heard_ns; /* when it last said something */
    uint32_t pid, threads;
    char host[64];
    uint64_t portions;    /* handed out to it, over the run */
    uint64_t chunks;      /* counted from it, over the run */
    double chunks_per_ns; /* of its last flush; 0: not known */
    struct handed *handed;
    uint32_t handed_count, handed_capacity;
};

struct evaluation {
    uint32_t number; /* of this attempt, from 1 */
    bool running;
    bool exceeded; /* some derivative was beyond the bound */
    int derivative_exponent;
    double derivative_max;
    int64_t started_ns;
    struct exact loss;         /* Σ over the chunks counted */
    struct exact holdout_loss; /* the same over those of the holdout */
};

/* A checkpoint that the shards are writing. */
struct sealing {
    bool running;
    uint64_t step;
    struct bytes state;
    uint32_t missing; /* shards that have not finished */
    bool done[SHARDS_MAX];
    uint64_t digests[SHARDS_MAX];
};

struct durable_step {
    uint64_t step;
    struct bytes state;
    uint64_t digests[SHARDS_MAX];
};

struct coordinator {
    struct coordinator_settings settings;
    enum coordinator_phase phase;
    struct optimizer optimizer;
    enum optimizer_want want; /* what the program that is out is for */
    struct worker *workers;   /* [shards + replicas], by link */
    uint64_t incarnations;    /* issued in this epoch */
    uint32_t attempt;
    struct round round;
    struct plan plan;
    struct verdicts verdicts;
    struct evaluation evaluation;
    uint64_t evaluations; /* made in all, redone ones included */
    uint64_t backup_copies;
    double derivative_max_at_x; /* largest derivative of the evaluation that x came from */
    uint64_t parameters;
    bool loading; /* the curvature pairs to start with; this many are there: */
    uint32_t loaded;
    uint32_t read_vector; /* which is being read, as in records … */
    uint64_t read;        /* … and how much of it was */
    uint64_t proof[3];    /* by role: the proof that all must match; 0: none yet */
    uint64_t stale;       /* messages ignored: of other attempts, evaluations, repeated */
    bool finishing;       /* the program that is out is the last */
    bool fenced;          /* a later coordinator has taken over: the workers are its own */
    struct bytes program; /* the program that is out */

    struct durable_step durable[2]; /* newest first */
    uint32_t durable_count;
    bool restoring; /* from durable[0]; else from the start */
    struct sealing sealing;
    int64_t sealed_ns; /* when the last checkpoint began */

    bool journalling;         /* evaluations are long enough for it */
    bool journalled;          /* the program that is out is in the journal */
    struct bytes verdict_log; /* accepted verdicts of this evaluation: u32 length, entry, … */
    struct bytes rejoined;    /* the same, out of the journal, until the shards have agreed */

    int64_t ticked_ns, pinged_ns;
    uint64_t pings;
};

struct coordinator *coordinator_new(const struct coordinator_settings *settings);
void coordinator_free(struct coordinator *coordinator);

/* The first call. */
void coordinator_begin(struct coordinator *coordinator, int64_t now_ns, struct output *out);

/* A connection to the worker stands: greets it. */
void coordinator_opened(struct coordinator *coordinator, uint32_t link, int64_t now_ns,
                        struct output *out);

/* The worker's connection or process is gone. Answers 0, or the error that ends the run. */
int coordinator_lost(struct coordinator *coordinator, uint32_t link, const char *why,
                     int64_t now_ns, struct output *out);

/* A message from `link`. Answers 0, or the error that ends the run (phase is PHASE_FAILED). */
int coordinator_step(struct coordinator *coordinator, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out);

/* Time passes: pings, silent workers, backup copies. Answers as coordinator_step(). */
int coordinator_tick(struct coordinator *coordinator, int64_t now_ns, struct output *out);

/* Ends the run for an outside reason, at the last accepted point; nothing if it is ending already.
 * A time limit before the first accepted point waits for that: call again. */
void coordinator_stop(struct coordinator *coordinator, enum reason reason, int64_t now_ns,
                      struct output *out);

/* Tells the workers to exit. */
void coordinator_dismiss(struct coordinator *coordinator, const char *why, struct output *out);

/* How many curvature pairs are handed out behind the model. */
uint32_t coordinator_pairs_kept(const struct coordinator *coordinator);

/* Elements [*first, *first + *count) of every vector belong to shard `index`. */
void coordinator_range(const struct coordinator *coordinator, uint32_t index, uint64_t *first,
                       uint64_t *count);

static inline uint32_t coordinator_links(const struct coordinator *coordinator) {
    return coordinator->settings.shards + coordinator->settings.replicas;
}

#endif
