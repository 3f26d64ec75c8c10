/* The coordinator's state machine: one message in, messages and records out. It opens no socket,
 * reads no clock and holds no parameter vector.
 *
 * Links are numbered: shard i is link i, replica j is link shards + j. The caller connects to the
 * workers, calls coordinator_opened() for each, feeds messages to coordinator_step(), and after
 * each call sends what is in `out.messages` and stores what is in `out.records`, in order.
 *
 * The machine goes through the phases in order; it stays in PHASE_READ until the caller has put the
 * model where it belongs and calls coordinator_dismiss(). */
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
    PHASE_SETTING_UP, /* workers are greeted and set up */
    PHASE_RUNNING,    /* the optimizer runs */
    PHASE_READING,    /* the model is read from the shards */
    PHASE_READ,       /* all of it was handed out as records */
    PHASE_DISMISSED,  /* the workers were told to exit */
    PHASE_FAILED,     /* the run cannot go on: error_text() says why */
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
    uint32_t flush_ms, reconnect_seconds;
    const char *const *shard_addresses; /* [shards], as replicas reach them */
};

/* What is to be stored, shown or kept, in order. */
enum record_kind {
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
};

void output_init(struct output *output);
void output_release(struct output *output);
void output_clear(struct output *output);

struct worker {
    enum role role;
    uint32_t index;
    uint64_t incarnation;
    bool welcomed, ready;
    bool introduced; /* replica: has been told of the data and of the shards */
    bool idle;       /* replica: was told to rest, has not been given more */
    uint32_t pid, threads;
    char host[64];
    uint64_t portions;    /* handed out to it, over the run */
    uint64_t chunks;      /* counted from it, over the run */
    double chunks_per_ns; /* of its last flush; 0: not known */
};

struct evaluation {
    uint32_t number; /* of this attempt, from 1 */
    bool running;
    bool exceeded; /* some derivative was beyond the bound */
    int derivative_exponent;
    double derivative_max;
    int64_t started_ns;
    struct exact loss; /* Σ over the chunks counted */
};

struct coordinator {
    struct coordinator_settings settings;
    enum coordinator_phase phase;
    struct optimizer optimizer;
    struct worker *workers; /* [shards + replicas], by link */
    uint32_t attempt;
    struct round round;
    struct plan plan;
    struct verdicts verdicts;
    struct evaluation evaluation;
    uint64_t evaluations;       /* made in all, redone ones included */
    double derivative_max_at_x; /* largest derivative of the evaluation that x came from */
    uint64_t parameters;
    uint64_t read;        /* parameters read so far */
    uint64_t proof[3];    /* by role: the proof that all must match; 0: none yet */
    uint64_t stale;       /* messages ignored: of other attempts, evaluations, repeated */
    bool finishing;       /* the program that is out is the last */
    struct bytes program; /* scratch */
};

struct coordinator *coordinator_new(const struct coordinator_settings *settings);
void coordinator_free(struct coordinator *coordinator);

/* A worker's connection is there: greets it. */
void coordinator_opened(struct coordinator *coordinator, uint32_t link, struct output *out);

/* A message from `link`. Answers 0, or the error that ends the run (phase is PHASE_FAILED). */
int coordinator_step(struct coordinator *coordinator, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out);

/* Ends the run for an outside reason, at the last accepted point; nothing if it is ending already,
 * or if there is no accepted point yet (then it ends at the first one: call again). */
void coordinator_stop(struct coordinator *coordinator, enum reason reason, struct output *out);

/* Tells the workers to exit. */
void coordinator_dismiss(struct coordinator *coordinator, const char *why, struct output *out);

/* Elements [*first, *first + *count) of every vector belong to shard `index`. */
void coordinator_range(const struct coordinator *coordinator, uint32_t index, uint64_t *first,
                       uint64_t *count);

static inline uint32_t coordinator_links(const struct coordinator *coordinator) {
    return coordinator->settings.shards + coordinator->settings.replicas;
}

#endif
