/* The inside of a replica, shared by replica.c (life, links, dispatch), setup.c and
 * evaluation.c. */
#ifndef DML_REPLICA_STATE_H
#define DML_REPLICA_STATE_H

#include <stdbool.h>
#include "base/layout.h"
#include "objective/kronecker.h"
#include "replica/flush.h"
#include "replica/replica.h"
#include "wire/bulk.h"

struct shard_link {
    uint32_t link;    /* 0: none */
    bool connecting;  /* ACTION_CONNECT has not been answered yet */
    bool placed;      /* SHARD_AT has come for this attempt */
    bool greeted;     /* the link is up and leads to the right incarnation */
    bool met;         /* it has greeted at least once */
    bool fetched;     /* its part of the trial point is here */
    uint32_t tries;   /* failed ones, since it greeted last */
    int64_t retry_ns; /* when to try again; 0: no retry */
    uint64_t incarnation;
    char *address;
};

struct portion {
    struct chunk_range chunks;
    uint8_t flags;
};

enum activity { ACTIVITY_NONE, ACTIVITY_COMPUTING, ACTIVITY_GATHERING };

struct evaluation {
    bool running;
    uint32_t attempt, number;
    struct evaluation_parts parts;
    struct bounds bounds;
    struct row_sampling sampling;
    bool asked;               /* FETCH went out */
    uint32_t fetched;         /* shards whose part of the trial point is here */
    bool resting;             /* REST came, and no portion since */
    bool flush_due;           /* the last portion asked for a flush behind it */
    bool starved;             /* a flush is due, but all buffers are in use */
    bool exceeded;            /* a derivative was beyond the bound: no sums from now on */
    struct portion *portions; /* handed out and not yet started */
    uint32_t portion_count, portion_capacity;
    struct accrual accrual;
};

/* The Kronecker factors (objective/kronecker.h) of a network: the shards' vectors are scaled by
 * these, on top of the scaled columns, and so is the gradient that goes to them. What weights cost
 * is added here, since it is no sum over elements there. Zeroed memory is one that is not used. */
struct kronecker_point {
    bool used;                      /* the layout says so */
    bool set;                       /* the factors have come for this attempt */
    struct kronecker *kronecker;    /* owned */
    struct kronecker_work *work;    /* owned */
    double *pull;                   /* of change; owned */
    struct objective_change change; /* at the point that was fetched last */
};

struct replica {
    struct replica_identity identity;
    struct replica_counters counters;

    /* the coordinator */
    uint32_t coordinator; /* its link; 0: none */
    uint64_t term;        /* the highest seen */
    uint64_t incarnation;
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
    struct column_scaling *columns; /* the scaling of the point that is fetched; NULL: none */
    uint64_t columns_set;           /* of them, those that came since the last REPLICA_SETUP */
    struct kronecker_point kronecker;

    /* the trial point */
    double *own_parameters; /* n elements: the parts of several shards are copied here, and what a
                               scaled point comes to */
    size_t own_parameters_bytes;
    struct kept_bulk kept; /* with one shard: the shard's memory, or its message */
    const double *parameters;

    /* work */
    struct evaluation evaluation;
    enum activity activity;
    struct portion computing; /* the portion in work */
    int64_t started_ns;
    bool abandoned;  /* the current work belongs to an evaluation that is over */
    bool sums_dirty; /* the workers' sums are not all zero */
    struct flush *gathering;
    struct flush_pool flushes;
    uint32_t sequence; /* of the last flush */

    struct action *actions;
    uint32_t action_first, action_count, action_capacity;
};

void replica_act(struct replica *replica, const struct action *action);
void replica_send(struct replica *replica, uint32_t to, struct message *message,
                  struct outbox *out);
void replica_fail(struct replica *replica, int error, const char *reason, struct outbox *out);
void replica_tell_failure(struct replica *replica, struct outbox *out);

/* Forgets the shards, the set and what was made for it. The workers must have let go of it. */
void replica_release_setup(struct replica *replica);

/* Notes that a shard does not answer, and retries later: perhaps only the connection broke. If the
 * shard is dead, the coordinator replaces it and sends the new address. A shard that was never
 * reached in TRIES_MAX tries is an error of the set-up. */
void replica_shard_missing(struct replica *replica, uint32_t index, int error, const char *reason,
                           struct outbox *out);

/* Asks for a connection to the shard; a connection that is still being made is given up. */
void replica_connect_shard(struct replica *replica, uint32_t index);

/* Makes the retries that are due; and when the next one is: INT64_MAX if there is none. */
void replica_retry_shards(struct replica *replica, struct outbox *out);
int64_t replica_retry_ns(const struct replica *replica);

/* Forgets the running evaluation. Current work is told to stop, and its answer ignored. */
void replica_abandon(struct replica *replica);

/* Does what can be done now: fetch, flush, compute. */
void replica_advance(struct replica *replica, int64_t now_ns, struct outbox *out);

/* Sends a shard again everything that it has not answered. */
void replica_resume_shard(struct replica *replica, uint32_t shard, struct outbox *out);

/* Forgets the portions that are not begun: the next coordinator does not know that they were handed
 * out. What is accrued becomes a flush of its own. */
void replica_lose_portions(struct replica *replica);

/* Reports again, to the new coordinator that has set this replica up, everything that has no
 * verdict. */
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
