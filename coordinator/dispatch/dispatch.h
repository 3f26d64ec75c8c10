/* Dispatch: who computes which chunks of the evaluation that runs, and which of what they send
 * counts.
 *
 * It is told of an evaluation, hands out its chunks, has late ones computed twice, decides on each
 * flush once, and adds up what it accepts; whoever began the evaluation reads the sums when
 * dispatch_is_counted(). It knows neither what asks for evaluations nor what becomes of them: it
 * may use wire/, numeric/ and base/, and of the coordinator this folder alone. It calls nobody
 * back: what it wants done is in the output. */
#ifndef DML_COORDINATOR_DISPATCH_DISPATCH_H
#define DML_COORDINATOR_DISPATCH_DISPATCH_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "coordinator/dispatch/output.h"
#include "coordinator/dispatch/plan.h"
#include "numeric/exact.h"
#include "wire/evaluation.h"
#include "wire/message.h"

struct codec;

/* ---- the workers ---- */

struct member {
    enum role role;
    uint32_t index;
    uint64_t incarnation;
    bool elastic; /* a place for a replica that may join and leave while the run goes on */
    bool vacant;  /* such a place, and no replica is expected there */
    bool leaving; /* such a replica: it is let go when the evaluation ends, or it is lost */
    bool connected, welcomed;
    bool shares;     /* since it was welcomed: it sees the state folder */
    bool introduced; /* replica: has been told of the data and of the shards */
    bool ready;      /* set up for this attempt; shard: restored too */
    uint32_t restarts;
    int64_t heard_ns; /* when it last said something */
    uint32_t pid, threads;
    char host[64];
    char local[LOCAL_SECRET_DIGITS + 1]; /* shard: for replicas of its host; "": none */
    char device[128];                    /* what it computes on, of its last READY; "": not known */
    bool device_failed; /* with `device` auto it is set up with the CPU from now on */
};

/* The workers by link, and what every message to them carries. The machine owns and changes it. */
struct roster {
    struct member *members;    /* [shards + replicas]; more replicas may be added */
    uint32_t shards, replicas; /* vacant places of replicas included */
    uint32_t present;          /* replicas without vacant places */
    uint64_t term;             /* of this coordinator */
    uint32_t attempt;          /* what belongs to another one is ignored */
};

static inline uint32_t roster_links(const struct roster *roster) {
    return roster->shards + roster->replicas;
}

/* Sends to one link, with the term filled in. */
void roster_send(const struct roster *roster, uint32_t link, struct message message,
                 struct output *out);
/* To all of a role that are connected. What the others miss, they learn when they are set up. */
void roster_send_shards(const struct roster *roster, struct message message, struct output *out);
void roster_send_replicas(const struct roster *roster, struct message message, struct output *out);

/* ---- the state ---- */

/* A portion that a replica has in hand: not all of its chunks are counted. */
struct dispatched {
    struct chunk_range range;
    int64_t at_ns;
    bool backed_up; /* another replica has a copy */
    bool trial;     /* of a slow replica, to learn its rate: an idle one copies it at once */
};

/* What a replica has to do, and how fast it does it. */
struct workload {
    uint32_t home;     /* its home range in the evaluation that runs */
    bool told;         /* of the evaluation that runs */
    bool idle;         /* will not ask for more: was told to rest, or given a portion marked LAST */
    uint64_t portions; /* handed out to it, over the run */
    uint64_t chunks;   /* counted from it, over the run */
    double chunks_per_ns;  /* of its last flush; 0: not known */
    double before;         /* the speed of the flush before the last one */
    uint32_t passed_over;  /* evaluations in a row that it was too slow for */
    double delivery_ns;    /* of its last flush: from the end of computing to the decision */
    uint32_t slow_flushes; /* in a row, the last one included: it was much slower than others */
    struct dispatched *dispatched;
    uint32_t dispatched_count, dispatched_capacity;
};

/* What follows from the rates of all replicas. Of many, a few may have changed since. */
struct rates {
    bool known;
    uint32_t changed;  /* flushes since */
    uint32_t count;    /* replicas whose rate was known */
    double of_all;     /* the sum of those that are ready, chunks a ns */
    double upper_half; /* half of those known are at least so fast, chunks a ns */
};

/* What is to be evaluated. */
struct evaluation_request {
    struct evaluation_parts parts;
    struct bounds bounds;         /* of the derivatives, or of the curvature on a row's part */
    struct row_sampling sampling; /* of the curvature */
    uint32_t weight_count;        /* of LISTED; else 0 */
    uint64_t weights[WORKING_SET_MAX];
    bool minibatch; /* short: shared out at once if it can be; leaves no record */
};

/* The evaluation that runs, or ran last. */
struct current_evaluation {
    struct evaluation_request request;
    uint32_t number; /* of this attempt, from 1 */
    bool running;
    bool given_up; /* it was ended before its chunks were counted */
    bool exceeded; /* some derivative was beyond the bound */
    bool shared;   /* several replicas may have the same chunks in hand, some of them counted */
    struct maxima maxima;
    int64_t started_ns;
    struct totals totals; /* over the chunks counted */
};

/* The flushes of one evaluation and what was decided on each; commit.c. */
struct decisions {
    struct decision *items;
    uint32_t count, capacity;
    struct flush_index index; /* into `items` */
    uint32_t unfolded;        /* accepted flushes that some shard has not confirmed */
    uint64_t folds;           /* accepted flushes */
    uint64_t fold_hash;       /* sum (mod 2⁶⁴) of their ids' hashes */
};

struct dispatch_settings {
    uint32_t chunks; /* evaluations cover some or all of the first so many of the set, or tiles */
    uint32_t strip;  /* as in struct plan */
    uint64_t parameters;     /* of which a flush may have sums */
    uint32_t portion_chunks; /* 0: adapts */
    bool backup_copies;
    uint32_t replicas_most; /* that there may be in all; 0: as many as there are now */
};

struct dispatch {
    struct dispatch_settings settings;
    const struct roster *roster;
    uint64_t evaluations; /* made in all, redone ones included, minibatches not */
    struct current_evaluation evaluation;
    struct plan plan;
    struct decisions decisions;
    struct bytes log;   /* of this evaluation's accepted flushes, each after its length (u32) */
    struct bytes drops; /* ids of flushes that shards are to forget */
    bool journalled;    /* each of them is also a record for the journal */
    struct bytes folds; /* ids of accepted flushes that the shards are still to be told of */
    uint64_t stale;     /* messages ignored */

    struct workload *workloads; /* [replicas]; more may be added */
    uint64_t backup_copies;
    int64_t looked_ns; /* when portions worth copying were last looked for */
    struct rates rates;
    double delivery_ns; /* that a flush is expected to take at most */
    double expected_ns; /* that the evaluation takes if all keep their speed; 0: not known */
};

/* Both must outlive it and stay where they are. */
void dispatch_init(struct dispatch *d, const struct roster *roster,
                   const struct dispatch_settings *settings);
void dispatch_release(struct dispatch *d);

/* The workload of the replica on this link. */
static inline struct workload *workload_of(const struct dispatch *d, uint32_t link) {
    assert(link >= d->roster->shards && link < roster_links(d->roster));
    return &d->workloads[link - d->roster->shards];
}

/* ---- one evaluation ---- */

/* Notes the evaluation to do next, and returns its number. Before it is begun, the shards must be
 * sent the program whose BEGIN has that number. */
uint32_t dispatch_prepare(struct dispatch *d, const struct evaluation_request *request);
/* Hands out the evaluation that was prepared. */
void dispatch_begin(struct dispatch *d, int64_t now_ns, struct output *out);
/* Gives idle replicas the chunks that wait, or backup copies of what is late. To be called as time
 * passes. */
void dispatch_wake_idle(struct dispatch *d, int64_t now_ns, struct output *out);
/* Whether the evaluation runs and all its chunks are counted. Some shards may still have to confirm
 * folds: d->decisions.unfolded. */
bool dispatch_is_counted(const struct dispatch *d);
/* Ends it, complete: no flush counts any more. */
void dispatch_end(struct dispatch *d);
/* Ends it before that, if it runs. Its flushes get no more decisions, not even to be dropped: while
 * the journal names it, a later coordinator may go on with it and accept them. */
void dispatch_give_up(struct dispatch *d);
/* Forgets it, with the numbers of the attempt. */
void dispatch_forget(struct dispatch *d);

/* ---- replicas that come and go ---- */

/* A replica is expected in a place that was vacant or did not exist. Home ranges are divided among
 * the replicas that are present when an evaluation begins: one that joins within it shares the
 * range of another one. */
void dispatch_expect(struct dispatch *d, uint32_t link);
void dispatch_join(struct dispatch *d, uint32_t link, int64_t now_ns, struct output *out);
/* The chunks that it had in hand and that are not counted go to others. */
void dispatch_lose(struct dispatch *d, uint32_t link, int64_t now_ns, struct output *out);

/* ---- messages ---- */

void dispatch_wanted(struct dispatch *d, uint32_t link, const struct message_want *want,
                     int64_t now_ns, struct output *out);
/* Whether the flush counts now; whether the last shard has folded one of these: then the evaluation
 * may be complete. */
bool dispatch_flushed(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                      int64_t now_ns, struct output *out);
bool dispatch_folded(struct dispatch *d, uint32_t link, const struct message_folded *folded,
                     struct output *out);

/* Has the shards fold what was accepted and not sent yet. To be called before a program that uses
 * the folds, and a few times a second. */
void dispatch_send_folds(struct dispatch *d, struct output *out);
/* Has the shards fold what was accepted only if that is much, or if nothing else is awaited. To be
 * called at the end of each turn. */
void dispatch_send_due_folds(struct dispatch *d, struct output *out);

/* ---- going on from a journal ---- */

/* Whether the shard has what the log of a former coordinator tells of, and no more. */
bool dispatch_fits(const struct bytes *log, const struct message_holding *holding);
/* Begins the journalled evaluation again, and repeats the decisions of the log. */
void dispatch_rejoin(struct dispatch *d, const struct bytes *log, int64_t now_ns,
                     struct output *out);

/* Its part of the machine's record. */
void dispatch_serialize(struct codec *codec, struct dispatch *d);
void serialize_maxima(struct codec *codec, struct maxima *maxima);

/* ---- for the sources of this folder ----
 *
 * In their order: each calls only those before it. */

/* ---- backup.c ---- */

/* A replica is slow if others are faster by more than this factor. */
#define SLOW_FACTOR 2.0

void workload_note(struct workload *workload, struct chunk_range range, int64_t now_ns);
/* These forget of what the replica has in hand: portions that are counted; portions that the ranges
 * cover; all. */
void workload_forget_counted(struct workload *workload, const struct plan *plan);
void workload_forget(struct workload *workload, const struct chunk_ranges *ranges);
void workload_clear(struct workload *workload);

/* The rate at which the replica computed the flush that was just counted. */
void workload_note_rate(struct dispatch *d, uint32_t link, double chunks_per_ns);
/* A replica that came or went shows in them from the next flushes on. */
const struct rates *rates_of(struct dispatch *d);
/* A flush with these chunks, which the replica had in hand, is accepted now. */
void workload_note_delivery(struct workload *workload, const struct chunk_ranges *ranges,
                            int64_t now_ns);
/* Its process is gone: nothing is known of the next one's rate. */
void workload_forget_rate(struct workload *workload);

/* An evaluation begins: what its flushes will take follows from those of the last one. */
void backup_expect_delivery(struct dispatch *d);
/* Whether the next portion of this replica may get a backup copy before it is silent: a replica on
 * another host may copy it, or this one was slow in its last flushes. */
bool backup_is_expected(const struct dispatch *d, uint32_t link);
/* Whether it is time to look for portions worth copying. */
bool backup_is_due(struct dispatch *d, int64_t now_ns);

/* A portion in hand that may be worth copying: `place` among those of its replica. */
struct late {
    uint32_t link, place;
    bool trial;
    double remaining_ns; /* that its flush will still take */
};

/* What one walk over all that is in hand finds, for all replicas that have nothing to do: made when
 * the first of them asks, and valid while nothing is forgotten of what is in hand. {0} at first. */
struct backup_search {
    bool done;
    struct late *late;     /* the worst first */
    uint32_t first, count; /* those before `first` have copies */
    double too_slow;       /* replicas of this rate, chunks a ns, bring no copy sooner */
};

void backup_search_release(struct backup_search *search);
/* The portion of another replica that this one should copy; NULL if none is worth it. A portion is
 * copied once. */
struct dispatched *backup_find(const struct dispatch *d, struct backup_search *search,
                               uint32_t link, int64_t now_ns);

/* ---- portions.c ---- */

/* Tells the replica of the evaluation, unless it was told. */
void portions_announce(struct dispatch *d, uint32_t link, struct output *out);
/* Hands out a minibatch: at once if it is short, and not to those that would be late. */
void portions_share_out(struct dispatch *d, int64_t now_ns, struct output *out);
/* Sends the replica its next portion, or to rest. */
void portions_send_next(struct dispatch *d, uint32_t link, int64_t now_ns, struct output *out);

/* ---- commit.c ---- */

void decisions_clear(struct decisions *decisions);
void decisions_release(struct decisions *decisions);
/* Counts the flushes of the log and has them folded by shards that have not yet. */
void commit_replay(struct dispatch *d, const struct bytes *log, struct output *out);

#endif
