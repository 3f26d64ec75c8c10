/* The inside of a replica, shared by replica.c (life, dispatch), setup.c, links.c, evaluation.c and
 * point.c. */
#ifndef DML_REPLICA_STATE_H
#define DML_REPLICA_STATE_H

#include <stdbool.h>
#include "base/layout.h"
#include "objective/kronecker.h"
#include "replica/flush.h"
#include "replica/joined.h"
#include "replica/needs.h"
#include "replica/replica.h"
#include "wire/bulk.h"
#include "wire/wanted.h"

struct shard_link {
    uint32_t link;              /* 0: none */
    bool connecting;            /* ACTION_CONNECT has not been answered yet */
    bool placed;                /* SHARD_AT has come for this attempt */
    bool greeted;               /* the link is up and leads to the right incarnation */
    bool met;                   /* it has greeted at least once: the address is right */
    bool fetched;               /* what it has of the elements that were asked for is here */
    struct wanted_key asked;    /* which bits the last FETCH had; zeros: none */
    struct wanted_key answered; /* those on this link that it keeps, as it has answered by them */
    uint32_t tries;             /* that failed since it greeted last */
    int64_t retry_ns;           /* when to try again; 0: no retry */
    uint64_t incarnation;
    char *address;
    char *local;         /* its secret, if it is on this host; else "" */
    char *local_address; /* as follows from that; NULL: there is none, or nobody answers there */
};

struct portion {
    struct chunk_range chunks;
    uint8_t flags;
};

/* Whether a flush follows it. */
static inline bool portion_is_flushed(const struct portion *portion) {
    return portion->flags & (PORTION_SOLO | PORTION_LAST);
}

/* What a portion takes before it can be computed: replica_plan() alone decides. */
enum fetch_plan {
    PLAN_NOTHING, /* what is at hand will do; of an evaluation, nothing was asked for yet */
    PLAN_SCAN,    /* first a look at which columns the portion has */
    PLAN_WHOLE,   /* the whole point, or the whole vector of rows */
    PLAN_STRIP,   /* of tiles: the strip that the portion is of */
    PLAN_NEEDED, /* of point or strip, from shards on other hosts, the columns known to be needed */
    PLAN_OUTDATED, /* was PLAN_NEEDED; more columns are known to be needed since */
    PLAN_ROWS,  /* of a vector of rows, the numbers of the portion's rows, and some that follow */
    PLAN_UPPER, /* of a network in tiles: the parameters of the layers above the first */
};

/* The plan, and which elements of which vector it fetches. */
struct fetch {
    enum fetch_plan plan;
    enum fetch_vector vector;
    struct range range;
};

enum activity {
    ACTIVITY_NONE,
    ACTIVITY_SCANNING, /* which columns the next portion has */
    ACTIVITY_COMPUTING,
    ACTIVITY_GATHERING,
};

struct evaluation {
    bool running;
    uint64_t term; /* of the coordinator that began it */
    uint32_t attempt, number;
    struct evaluation_parts parts;
    struct bounds bounds;
    struct row_sampling sampling;
    struct weight_list weights;
    uint32_t strip;           /* of what is accrued, or, where nothing is, was computed last */
    struct fetch fetch;       /* what FETCH went out for last, */
    uint32_t fetched;         /* and how many shards have sent what they have of it */
    uint64_t in_succession;   /* how many numbers of rows were asked for, one after the other */
    bool has_upper;           /* the parameters of the upper layers are in replica->upper */
    bool fetch_by_portion;    /* over so few chunks that each portion's columns are scanned first */
    uint32_t scanned_strip;   /* + 1: of tiles, where columns of a portion were scanned last */
    bool begun;               /* all have answered before: each has begun the evaluation */
    bool resting;             /* REST came last: there is no portion for now */
    bool flush_due;           /* the last portion asked for a flush after it */
    bool starved;             /* a flush is due, but all buffers are in use */
    bool exceeded;            /* a derivative was beyond its bound: no sums from now on */
    struct portion *portions; /* handed out and not yet started */
    uint32_t portion_count, portion_capacity;
    struct accrual accrual;
};

/* The Kronecker factors (objective/kronecker.h) of a network. The shards' vectors are scaled by
 * these, on top of the scaled columns, and so is the gradient that goes to them. Replicas add l2,
 * as the norm of the weights is no sum over scaled elements. Zeroed memory: there are none. */
struct kronecker_point {
    bool used;                      /* the layout says that there are some */
    bool set;                       /* the factors have come for this attempt */
    struct kronecker *kronecker;    /* owned */
    struct kronecker_work *work;    /* owned */
    double *pull;                   /* what `change` refers to; owned */
    struct objective_change change; /* at the point that was fetched last; zeroed: at none */
};

/* Memory that threads may compute with though their work is given up, and who frees it. */
struct deferred_frees {
    void *memory;
    void (*release)(void *memory);
};

/* A scaled point that is not turned into weights, since few of them are used: see
 * replica_rows_are_sparse(). Zeroed memory: it is. */
struct scaled_rows {
    uint64_t chunk_values;     /* of the set; 0: points are always turned into weights */
    bool listed;               /* `centred` is of the columns at hand */
    uint32_t *centred;         /* columns whose mean is not 0; owned */
    uint32_t count, capacity;  /* of them */
    double *bias;              /* owned */
    struct scaled_point point; /* that was fetched last; zeroed: it was turned into weights */
};

enum place_state {
    PLACE_UNKNOWN, /* nobody has looked whether the copy has it */
    PLACE_LOOKING,
    PLACE_MISSING, /* to be asked for; perhaps a part of it has come */
    PLACE_HERE,
};

/* A part of the set's file that has a checksum. */
struct copy_place {
    struct set_range range;
    uint64_t asked, received; /* of its bytes, from the first on */
    enum place_state state;
    uint8_t tries; /* times in a row that it came with a wrong checksum */
};

#define SET_REQUESTS_MAX 64

struct set_request {
    uint32_t place;
    struct set_range range;
};

/* The copy of a set that comes by messages: which places are here, and which are asked for. */
struct set_copy {
    struct copy_place head;    /* its range is the part that is lacking */
    struct copy_place *places; /* owned */
    uint32_t count;
    uint32_t heads; /* of a set in tiles: how many of the places are heads of chunks, else 0 */
    struct set_request requests[SET_REQUESTS_MAX]; /* unanswered, in their order */
    uint32_t request_count;
    int64_t waits_ns; /* since when no answer has come, if there are requests */
};

struct replica {
    struct replica_identity identity;
    struct replica_counters counters;

    /* the coordinator */
    uint32_t coordinator; /* its link; 0: none */
    uint64_t term;        /* the highest seen */
    uint64_t incarnation;
    bool shares;    /* this host has the state folder */
    uint64_t since; /* the term in which it became this incarnation */
    char *run;      /* NULL before the first HELLO */
    bool returning; /* a new coordinator has come and has not set this replica up yet */

    int64_t now_ns; /* of the last step */

    /* set-up */
    uint32_t attempt;
    bool opened, ready;
    int error;                  /* not 0: what went wrong; waits for a new set-up */
    char *failure;              /* and its text */
    bool device_failed;         /* and whether only the device is to blame */
    char device[256];           /* what it computes on */
    struct replica_setup setup; /* its texts are owned */
    int64_t flush_ns;
    uint32_t shard_count;
    struct shard_link *shards;
    struct range *ranges;           /* a shard each */
    bool *remote;                   /* of each shard: no memory is shared with it */
    struct column_scaling *columns; /* the scaling of the point that is fetched; NULL: none */
    uint64_t columns_set;           /* of them, those that came since the last REPLICA_SETUP */
    struct kronecker_point kronecker;
    struct scaled_rows scaled;
    struct needs needs;  /* of the set at hand; zeroed memory: points are fetched whole */
    struct needs of_few; /* the needs of the evaluation under way, over few chunks */
    uint64_t *chunk_row; /* first row of each chunk, and the end of the last; owned. NULL: vectors
                             of rows are fetched whole */
    uint32_t chunk_count;
    struct set_copy copy; /* zeroed memory, unless the set-up says `copied` */

    double *upper; /* parameters of the upper layers of a network, of the evaluation under way */

    /* the trial point, or of tiles a strip of it, or a vector of rows, or some rows of it */
    double *own_parameters; /* the parts of several shards put together, and the weights that a
                               scaled point stands for; room for the longest */
    size_t own_parameters_bytes;
    struct kept_bulk kept; /* with one shard: the shard's memory, or its message */
    struct joined joined;  /* with several: their memory, for evaluations over few weights */
    const double *parameters;
    uint64_t points; /* that were asked for, or parts of one: the number of the one at hand */

    /* work */
    struct evaluation evaluation;
    enum activity activity;
    struct portion computing; /* the portion in work */
    int64_t started_ns;
    bool abandoned;  /* the work under way belongs to an evaluation that is over */
    bool sums_dirty; /* the workers' sums are not all zero */
    struct flush *gathering;
    struct flush_pool flushes;
    uint32_t sequence; /* of the last flush */

    struct deferred_frees
        *deferred_frees; /* of former set-ups: released once no thread is at work; owned */
    size_t deferred_count, deferred_capacity;

    struct action *actions;
    uint32_t action_first, action_count, action_capacity;
};

void replica_act(struct replica *replica, const struct action *action);
void replica_send(struct replica *replica, uint32_t to, struct message *message,
                  struct outbox *out);
void replica_fail(struct replica *replica, int error, const char *reason, struct outbox *out);
void replica_tell_failure(struct replica *replica, struct outbox *out);

/* Forgets the shards, the set and what was made for it. No worker may use any of it. */
void replica_release_setup(struct replica *replica);

/* READY, once the set is open, all that was announced is here, and every shard has greeted. */
void replica_check_ready(struct replica *replica, int64_t now_ns, struct outbox *out);

/* Closes the links to the shards, and forgets these. */
void replica_forget_shards(struct replica *replica);

/* Says to a shard who this replica is; not ready before it answers. Nothing without a link. */
void replica_greet(struct replica *replica, struct shard_link *shard, struct outbox *out);

/* Notes that a shard does not answer, and retries later, as perhaps only the connection broke. If
 * the shard is dead, the coordinator replaces it and sends the new address. It is an error of the
 * set-up if a shard was not reached once in TRIES_MAX tries. */
void replica_shard_missing(struct replica *replica, uint32_t index, int error, const char *reason,
                           struct outbox *out);

/* Asks for a connection to the shard; a connection that is still being made is given up. */
void replica_connect_shard(struct replica *replica, uint32_t index);

/* ---- copy.c: a set that comes by messages ---- */

/* Begins a copy, of which nothing is here. */
void replica_copy_begin(struct replica *replica);
void replica_copy_release(struct set_copy *copy);

/* Looks at, and asks for, what the portions in hand lack. */
void replica_copy_advance(struct replica *replica, struct outbox *out);

/* Whether the rows of a portion are here: always, if they do not come by messages. */
bool replica_copy_has(const struct replica *replica, const struct portion *portion);

/* No answer comes any more to what was asked for. */
void replica_copy_forget_requests(struct replica *replica);

/* When what is not answered is asked for again; INT64_MAX: never. */
int64_t replica_copy_deadline_ns(const struct replica *replica);
void replica_copy_timer(struct replica *replica, struct outbox *out);

void replica_on_set_bytes(struct replica *replica, const struct message *message, int64_t now_ns,
                          struct outbox *out);

/* Of what number the first tile of the portion's rows is, if it is of the layers above the first:
 * numbers of portions are that of chunks or tiles, plus this. */
uint32_t replica_tiles_below(const struct replica *replica, const struct portion *portion);

/* Makes the retries that are due. */
void replica_retry_shards(struct replica *replica, struct outbox *out);

/* When the next retry is due; INT64_MAX if there is none. */
int64_t replica_retry_ns(const struct replica *replica);

/* Forgets the evaluation. Work under way is told to stop, and its answer is ignored. */
void replica_abandon(struct replica *replica);

/* Whether this is the evaluation under way. If not, what came counts as stale. */
bool replica_is_current(struct replica *replica, uint32_t attempt, uint32_t number);

/* What comes before this portion is computed. NULL stands for any portion, where all need the same:
 * then the point is asked for before a portion is here. */
struct fetch replica_plan(struct replica *replica, const struct portion *portion);

/* Whether the first portion tells what to ask for. */
bool replica_plans_by_portion(const struct replica *replica);

/* Whether elements of this vector are of rows. */
bool replica_is_of_rows(const struct replica *replica, enum fetch_vector vector);

/* Whether a portion is of the layers above the first. */
bool replica_is_upper(const struct replica *replica, const struct portion *portion);

/* How many tiles there are in a strip of the evaluation, and which strip a portion is of. */
uint32_t replica_tiles_of_strip(const struct replica *replica);
uint32_t replica_strip_of(const struct replica *replica, const struct portion *portion);

/* Asks every shard for what the plan says, the first time in an evaluation also one that has
 * nothing of it: its answer tells that it has begun the evaluation. Not while a thread computes: it
 * may read the last point in the memory that the next one will take, here or on the shard. */
void replica_ask(struct replica *replica, const struct fetch *fetch, struct outbox *out);

/* Whether the columns of the chunks in hand are noted: where a part may be fetched, if they are not
 * known. */
bool replica_learns(const struct replica *replica);

/* At the end of an evaluation: forgets those of a strip where too many are of chunks that
 * were not computed. */
void replica_forget_needs(struct replica *replica);

/* What the evaluation goes by. */
struct needs *replica_needs(struct replica *replica);

/* Whether, in an evaluation that begins, a part of the point is fetched for each portion. */
bool replica_is_over_few(const struct replica *replica);

/* Asks one shard for what was asked for last. */
void replica_fetch(struct replica *replica, uint32_t shard, struct outbox *out);

/* Does what the state allows now: fetches the point, makes a flush, computes a portion. */
void replica_advance(struct replica *replica, int64_t now_ns, struct outbox *out);

/* Sends a shard again everything that it has not answered. */
void replica_resume_shard(struct replica *replica, uint32_t shard, struct outbox *out);

/* Forgets the portions that are not begun, since the next coordinator does not know that they were
 * handed out. What is accrued becomes a flush of its own. */
void replica_lose_portions(struct replica *replica);

/* Reports every flush without a commit decision again, to the new coordinator that has set this
 * replica up. */
void replica_resume_coordinator(struct replica *replica, struct outbox *out);

/* Messages. */
void replica_on_hello(struct replica *replica, uint32_t from, const struct message *message,
                      struct outbox *out);
void replica_on_setup(struct replica *replica, const struct message_replica_setup *message);
void replica_on_coordinates(struct replica *replica, const struct message *message, int64_t now_ns,
                            struct outbox *out);
void replica_on_factors(struct replica *replica, const struct message *message, int64_t now_ns,
                        struct outbox *out);
void replica_on_shard_at(struct replica *replica, const struct message_shard_at *message,
                         int64_t now_ns, struct outbox *out);
void replica_on_greeted(struct replica *replica, uint32_t index,
                        const struct message_greeted *message, int64_t now_ns, struct outbox *out);
void replica_on_evaluate(struct replica *replica, const struct message_evaluate *message,
                         int64_t now_ns, struct outbox *out);
void replica_on_portion(struct replica *replica, const struct message_portion *message,
                        int64_t now_ns, struct outbox *out);
void replica_on_rest(struct replica *replica, const struct message_rest *message, int64_t now_ns,
                     struct outbox *out);
void replica_on_parameters(struct replica *replica, uint32_t shard, const struct message *message,
                           int64_t now_ns, struct outbox *out);
void replica_on_staged(struct replica *replica, uint32_t shard,
                       const struct message_staged *message, struct outbox *out);
void replica_on_verdict(struct replica *replica, const struct message_verdict *message,
                        int64_t now_ns, struct outbox *out);

#endif
