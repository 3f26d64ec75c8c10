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
#ifndef DML_COORDINATOR_MACHINE_COORDINATOR_H
#define DML_COORDINATOR_MACHINE_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "optimizer/optimizer.h"
#include "coordinator/dispatch/output.h"
#include "data/set/set.h"
#include "numeric/vector.h"
#include "objective/shape.h"
#include "store/store.h"

struct coordinator;

enum coordinator_phase {
    PHASE_REJOINING,        /* after a restart: the living shards say what they hold */
    PHASE_SETTING_UP,       /* workers are greeted, set up, restored */
    PHASE_RUNNING,          /* the optimizer runs */
    PHASE_FINAL_CHECKPOINT, /* the last step is made durable, so that the run can go on from it */
    PHASE_READING,          /* the model is read from the shards */
    PHASE_READ,             /* all of it was handed out as records */
    PHASE_STOPPED,          /* cancelled, where it can be resumed; no model */
    PHASE_DISMISSED,        /* the workers were told to exit */
    PHASE_FAILED,           /* the run cannot go on: error_text() says why */
};

struct coordinator_settings {
    struct downpour_settings downpour;   /* comes first, if it has epochs */
    struct optimizer_settings optimizer; /* without `tensors`, which follow from the layout */
    struct objective_shape shape;
    struct layout layout; /* of the parameters */
    enum history_type history_type;
    /* The scaling of each column; outlives the coordinator. NULL: not scaled. */
    const struct column_scaling *scaling;
    /* The limits of each column, in scaled parameters; outlives the coordinator. NULL unless the
     * settings of the optimizer say that there are limits. */
    const struct column_limit *limits;
    bool diagonal;         /* the scaling is a diagonal preconditioner */
    const double *factors; /* of a network with Kronecker factors: kronecker_size() doubles, outlive
                              the coordinator; then replicas add l2, and the optimizer has none */
    uint64_t factor_count;
    double l2_of_replicas;
    double l2_shown; /* of the job; the optimizer's may be in the unit of the labels, or 0 */
    const struct set_info *data; /* outlives the coordinator, as do the strings */
    const int16_t *exponents; /* base exponents as the layout numbers them; outlive the coordinator.
                                 NULL: those of the data's columns */
    const uint8_t *extra_bits; /* what sums for errors of estimates add to each of these, as
                             fixed_extra_bits() says; NULL: nothing; outlives the coordinator */
    const char *set_path;
    const char *run; /* names the run to its workers */
    uint64_t term;
    uint32_t shards, replicas; /* replicas: coordinator_expect() adds to them */
    uint32_t replicas_most;    /* that there may be in all; 0: there are no elastic ones */
    uint32_t replicas_fixed;   /* with that: those from this one on are elastic, and vacant at first
                                */
    uint32_t threads;          /* per replica; 0: the replica decides */
    uint32_t portion_chunks;   /* 0: adapts */
    bool backup_copies;        /* whether replicas compute copies of what others are late with */
    uint32_t flush_ms, reconnect_seconds;
    const char *device;                 /* see device/find.h; NULL: "auto" */
    const char *scratch;                /* where replicas keep copies of chunks; NULL: nowhere */
    const char *const *shard_addresses; /* [shards], as replicas reach them */
    /* [replicas], may change between calls; NULL: not known */
    const char *const *replica_addresses;
    const char *state;  /* the state folder's path from the root, for workers of other hosts; NULL:
                           all see it */
    const char *holder; /* and what its lock says: guard_text() */
    const char *shards_folder; /* checkpoints go to its subfolders 0, 1, …; "": none */
    int64_t checkpoint_ns;     /* from one checkpoint to the next; 0: every step */
    uint32_t restarts_max;     /* of one worker, before the run gives up */
    bool by_hand[2]; /* shards, replicas: others start them, so the I/O shell alone says how long to
                      * wait
                      */
    uint32_t on_hosts; /* how many there are that workers are started on, replica i on host i modulo
                          that; 0: all are here. Some may be away: the run begins with the first
                          replica, and the caller decides when to give up */
    const uint32_t *replica_threads; /* [replicas], may change between calls; NULL: `threads` */
    /* Where to start; outlives the coordinator. */
    const double *start;       /* [parameters], scaled if the run is, or NULL: at zero */
    const double *start_pairs; /* curvature pairs, oldest first: s, then y, [parameters] each */
    uint32_t start_pair_count;
    uint32_t pairs_kept;   /* newest curvature pairs to hand out after the model, at most */
    const double *squares; /* [columns], of columns that are not scaled, where the gap is
                              estimated; outlives the coordinator. Else NULL */
    const struct store_saved *saved; /* of a run that is resumed, or NULL; for _new() alone */
};

/* Whether the run can be taken up by this program: ERROR_UNAVAILABLE, with what to do, if its state
 * is of another version. To be asked before anything of the run is changed. */
int coordinator_check_saved(const struct store_saved *saved, int64_t run);

/* NULL, with the error set, if what was saved does not fit the run: ERROR_DATA. */
struct coordinator *coordinator_new(const struct coordinator_settings *settings);
void coordinator_free(struct coordinator *coordinator);

/* ---- what happens to it ---- */

/* The first call. */
void coordinator_begin(struct coordinator *coordinator, int64_t now_ns, struct output *out);

/* A connection to the worker stands: greets it. */
void coordinator_opened(struct coordinator *coordinator, uint32_t link, int64_t now_ns,
                        struct output *out);

/* The worker's connection or process is gone. Returns 0, or the error that ends the run. */
int coordinator_lost(struct coordinator *coordinator, uint32_t link, const char *why,
                     int64_t now_ns, struct output *out);

/* ---- replicas that join and leave: elastic ones ---- */

/* A replica is expected in this place from now on: a vacant one, or the next after all links if
 * there may be more. If the replica in it was to leave, it stays. The caller connects to it. */
void coordinator_expect(struct coordinator *coordinator, uint32_t link);

/* The replica in this place is not to be used any more. If it is connected, it works on until the
 * evaluation ends and another one is ready, or until it is lost. Then the place is vacant
 * (RECORD_LEFT). Harmless if it is. */
void coordinator_let_go(struct coordinator *coordinator, uint32_t link, int64_t now_ns,
                        struct output *out);

/* Tells the machine of a worker that ended for lack of memory. `why` completes "replica 2 …". One
 * that was `refused` memory would be again, and ends the run; one that the system killed for want
 * of it is replaced once, as others may have used it. A worker of a host or of someone else is lost
 * as any other is. */
int coordinator_starved(struct coordinator *coordinator, uint32_t link, const char *why,
                        bool refused, int64_t now_ns, struct output *out);

/* A message from `link`. Returns 0, or the error that ends the run (phase is PHASE_FAILED). */
int coordinator_step(struct coordinator *coordinator, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out);

/* Time passes: pings, silent workers, backup copies. Returns what coordinator_step() does. */
int coordinator_tick(struct coordinator *coordinator, int64_t now_ns, struct output *out);

/* The turn is over: adds to the output what was gathered for it over several calls. To be called
 * before the output is carried out. */
void coordinator_end_turn(struct coordinator *coordinator, struct output *out);

/* Ends the run for an outside reason, at the last accepted point. Does nothing if the run is ending
 * already, or at a time limit that comes before the first accepted point: call again. */
void coordinator_stop(struct coordinator *coordinator, enum reason reason, int64_t now_ns,
                      struct output *out);

/* Ends the run as cancelled, at once (PHASE_STOPPED): a later run goes on from the newest durable
 * step. */
void coordinator_abandon(struct coordinator *coordinator);

/* Tells the workers to exit. */
void coordinator_dismiss(struct coordinator *coordinator, const char *why, bool again,
                         struct output *out);

/* ---- what it answers; all of it as of the last call, and changing nothing ---- */

/* How far the run is: see enum coordinator_phase. */
enum coordinator_phase coordinator_phase(const struct coordinator *coordinator);

/* Whether a later coordinator has taken the run over. The workers then belong to that one. */
bool coordinator_is_fenced(const struct coordinator *coordinator);

/* As they were given to coordinator_new(), but for `saved` and the number of replicas. */
const struct coordinator_settings *coordinator_settings(const struct coordinator *coordinator);

/* Shards and replicas together. */
uint32_t coordinator_links(const struct coordinator *coordinator);

/* How many curvature pairs are handed out after the model. */
uint32_t coordinator_pairs_kept(const struct coordinator *coordinator);

/* Elements [*first, *first + *count) of every vector belong to shard `index`. */
void coordinator_range(const struct coordinator *coordinator, uint32_t index, uint64_t *first,
                       uint64_t *count);

/* How far the run is. */
struct coordinator_view {
    enum coordinator_phase phase;
    enum reason reason; /* why it ends; REASON_NONE while it goes on */
    uint32_t attempt;
    int64_t ticked_ns; /* time of the last coordinator_tick() */
    uint64_t parameters;
    uint64_t evaluations;   /* made in all, redone ones included */
    uint64_t rounds;        /* programs that returned scalars */
    uint64_t backup_copies; /* portions that a second replica was given too */
    uint64_t stale;         /* messages ignored: repeated, or of other attempts or evaluations */
    bool durable;           /* whether any step is durable */
    uint64_t durable_step;  /* the newest that is */
    struct {
        uint32_t number; /* of this attempt, from 1 */
        bool running;
        int64_t started_ns;
        uint32_t chunks, counted; /* that it asks for; of these */
    } evaluation;
    struct downpour_view downpour;
    /* The last accepted point. All but `step` are valid only if `started`. */
    bool started;
    uint64_t step;
    double loss, gradient_max;
    struct held holdout; /* with patience */
    struct tensor_norms norms;
    double l1, l2;
    uint64_t nonzero;              /* with l1: weights that are not 0, without the intercept */
    double fall;                   /* of the loss towards x, a step: lbfgs_fall() */
    double gap_bound;              /* with l1: of F above its minimum; NaN: not known */
    double gap_estimate;           /* of the same, not a bound; NaN: not known */
    struct optimizer_point answer; /* the model, if the run ended now */
    double gradient_tolerance;     /* the run ends at this gradient_max */
    uint64_t steps_max;            /* or at this step */
    struct preconditioner preconditioner;
    struct summary_found summary; /* which errors of estimates are handed out after the model */
    uint64_t safeguards[SAFEGUARDS];
};
struct coordinator_view coordinator_view(const struct coordinator *coordinator);

/* A worker. The last three fields are 0 for a shard. */
struct worker_view {
    enum role role;
    uint32_t index;
    uint64_t incarnation;
    bool vacant;  /* a place for a replica, and none is expected there */
    bool leaving; /* an elastic replica that works only until the evaluation ends */
    bool connected, welcomed;
    bool ready; /* set up for this attempt; a shard: restored too */
    uint32_t restarts;
    uint32_t pid, threads;
    const char *host;     /* valid until the next call that changes the machine */
    const char *device;   /* on which it computes, as it says; "": not known. Valid as `host` */
    uint64_t portions;    /* handed out to it, over the run */
    uint64_t chunks;      /* counted from it, over the run */
    double chunks_per_ns; /* of its last flush; 0: not known */
};
struct worker_view coordinator_worker(const struct coordinator *coordinator, uint32_t link);

/* What became of a chunk in the evaluation that runs, or ran last. */
enum chunk_state { CHUNK_WAITING, CHUNK_RUNNING, CHUNK_BACKED_UP, CHUNK_COUNTED };
struct chunk_view {
    enum chunk_state state;
    int replica; /* that has it, had it first, or computed the counted copy; −1: none */
};
/* Describes the chunks for which the evaluation asks, in order: chunks[view.evaluation.chunks]. */
void coordinator_chunks(const struct coordinator *coordinator, struct chunk_view *chunks);

#endif
