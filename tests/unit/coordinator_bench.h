/* A coordinator's state machine on the bench: two shards and two replicas that exist only as what a
 * test says in their names. */
#ifndef DML_TESTS_COORDINATOR_BENCH_H
#define DML_TESTS_COORDINATOR_BENCH_H

#include "coordinator/machine/coordinator.h"
#include "tests/cluster/decoded.h"

enum { SHARD_0, SHARD_1, REPLICA_0, REPLICA_1, LINKS };

#define TERM 7
#define CHUNKS 8

struct fixture {
    struct coordinator *coordinator;
    struct output out;
    struct set_info data;
    struct coordinator_settings settings;
    struct maxima maxima; /* as flushes say … */
    bool exceeded;        /* … and whether that is beyond the bound */
    uint64_t busy_ns;     /* how long their chunks took */
    int64_t now_ns;       /* when messages come */
    uint32_t turn, taken; /* messages that come in one turn, 0 is as 1; of this one so far */
};

/* For cmocka: a coordinator that has greeted all four. */
int bench_set_up(void **state);
int bench_tear_down(void **state);

/* Another coordinator in place of the one there, with these settings. */
void bench_begin(struct fixture *f, const struct coordinator_settings *settings);

/* Feeds one message; what was sent before its turn is forgotten. */
int bench_feed(struct fixture *f, uint32_t link, struct message message);

/* The first message of a type sent to a link, decoded; fails the test if there is none. */
struct message bench_sent(const struct fixture *f, uint32_t link, enum message_type type);
size_t bench_count_sent(const struct fixture *f, uint32_t link, enum message_type type);
/* Where in the output that message is. */
size_t bench_place(const struct fixture *f, uint32_t link, enum message_type type);

/* The first record of a kind; fails the test if there is none. */
const struct record *bench_recorded(const struct fixture *f, enum record_kind kind);
size_t bench_count_recorded(const struct fixture *f, enum record_kind kind);

/* How many chunks are in this state. */
uint32_t bench_chunks(const struct fixture *f, enum chunk_state state);

struct message bench_welcome(const struct fixture *f, uint32_t link, uint64_t proof);
void bench_welcome_all(struct fixture *f);
void bench_ready_all(struct fixture *f);

/* Up to the first evaluation; its messages are in the output. */
void bench_start(struct fixture *f);

struct flush_id bench_flush_id(const struct fixture *f, uint32_t replica, uint32_t sequence);

/* A FLUSHED of `chunks` chunks from `first` on, with a loss of `chunks` and half of that on the
 * holdout. */
int bench_flush(struct fixture *f, uint32_t replica, uint32_t sequence, uint32_t first,
                uint32_t chunks);
void bench_folded(struct fixture *f, uint32_t shard, uint32_t replica, uint32_t sequence);

/* Both shards answer the program that is out with the same scalars, halves of sums. */
void bench_answer(struct fixture *f, const double *scalars, uint32_t count);

/* Through the first evaluation and its measurement, with this gradient. */
void bench_finish_first(struct fixture *f, double gradient_square, double gradient_max);

int bench_lose(struct fixture *f, uint32_t link);
/* The worker is started anew, greeted, and has answered. */
void bench_return(struct fixture *f, uint32_t link);

/* The worker has what it was set up with. */
void bench_ready(struct fixture *f, uint32_t link);

void bench_checkpointed(struct fixture *f, uint32_t shard, uint64_t digest);

/* A coordinator with a folder for checkpoints, every step durable, after its first evaluation. */
void bench_start_durable(struct fixture *f);

/* ---- inside the machine: what would take a test long to bring about, or cannot be seen ---- */

/* The replica computes so many chunks a nanosecond. */
void bench_pace(struct fixture *f, uint32_t replica, double chunks_per_ns);
/* It could add nothing in time to so many evaluations. */
void bench_pass_over(struct fixture *f, uint32_t replica, uint32_t evaluations);
/* Flushes are expected to take so long, from the end of computing to their verdicts. */
void bench_delivery(struct fixture *f, double ns);
/* It runs on a host of its own, not on that of all the others. */
void bench_move_away(struct fixture *f, uint32_t replica);
/* It was told to rest. */
void bench_rest(struct fixture *f, uint32_t replica);
/* The first chunks that it was handed have been given to another one too. */
void bench_back_up(struct fixture *f, uint32_t replica);
/* All chunks that wait are taken, by nobody that is there. */
void bench_hand_out_all(struct fixture *f);
/* There is an older durable step, with the state of the newest. */
void bench_add_durable(struct fixture *f, uint64_t step);
const struct lbfgs *bench_optimizer(const struct fixture *f);

#endif
