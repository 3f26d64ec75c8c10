/* A replica on a bench: what goes in, what comes out, and the ways to READY and into an evaluation.
 * Every function asserts what it expects. */
#ifndef DML_TESTS_UNIT_REPLICA_BENCH_H
#define DML_TESTS_UNIT_REPLICA_BENCH_H

#include "replica/replica.h"

enum { COORDINATOR = 7, FIRST_SHARD = 11, TERM = 3, ATTEMPT = 2, INCARNATION = 40 };
enum { PARAMETERS = 3 * BLOCK_ELEMENTS, FLUSH_MS = 1000 };

/* A replica on the bench, with what it has put out and nobody has looked at yet. */
struct bench {
    struct replica *replica;
    struct outbox outbox;
    size_t seen; /* envelopes of the outbox */
    uint32_t shards;
    uint64_t term, incarnation; /* as the last HELLO said */
    uint32_t attempt;
    const char *device;  /* of the set-up */
    const char *address; /* of every shard */
    int64_t now_ns;
    double point[PARAMETERS] __attribute__((aligned(64)));
};

/* ---- what comes out ---- */
struct message sent(struct bench *bench, uint32_t to, enum message_type type);
struct action asked(struct bench *bench, enum action_kind kind);
void nothing_more(struct bench *bench);

/* ---- what goes in ---- */
void give(struct bench *bench, uint32_t from, struct message message);
extern const struct part_list gradient_parts;
void evaluate(struct bench *bench, uint32_t evaluation);
void portion(struct bench *bench, uint32_t evaluation, uint32_t first, uint8_t flags);
void rest(struct bench *bench, uint32_t evaluation);
void verdict(struct bench *bench, struct flush_id id, bool accepted);
void staged(struct bench *bench, uint32_t shard, struct flush_id id);
uint64_t first_of(const struct bench *bench, uint32_t shard);
uint64_t count_of(const struct bench *bench, uint32_t shard);
void parameters(struct bench *bench, uint32_t evaluation, uint32_t shard);
void computed(struct bench *bench, double derivative_max, bool exceeded);
/* The answer for a portion of ten rows: all of `values` derivatives are zero. */
void end_portion(struct bench *bench, uint32_t row, uint32_t values);
void gathered(struct bench *bench);
double loss_of(struct blob blob);

/* ---- the way to READY, and into an evaluation ---- */
void hello(struct bench *bench, uint64_t term, const char *run);
void shard_at(struct bench *bench, uint32_t shard, uint64_t incarnation);
void connect_shard(struct bench *bench, uint32_t shard);
void greeted(struct bench *bench, uint32_t shard);
/* For a linear model that knows nothing of rows; the layout is of the caller. */
struct message_replica_setup replica_setup_of(const struct bench *bench, struct blob layout);
void setup_message(struct bench *bench);
void set_up(struct bench *bench);
void bench_new(struct bench *bench, uint32_t shards);
void bench_ready(struct bench *bench, uint32_t shards);
void bench_ready_at(struct bench *bench, uint32_t shards, const char *address);
void fetch(struct bench *bench, uint32_t evaluation);
void begin(struct bench *bench, uint32_t evaluation);
struct computation started(struct bench *bench, uint32_t first);
/* Hands a portion to a replica that holds no other: the replica starts to compute it, and asks for
 * the next unless this is the last. */
struct computation take_up(struct bench *bench, uint32_t evaluation, uint32_t first, uint8_t flags);
struct flush_id dense_flush(struct bench *bench);
struct flush_id flushed(struct bench *bench);
/* The one portion that was accrued is computed and staged: what the first shard is sent. */
struct message_stage one_portion_computed(struct bench *bench);
/* A portion of its own in evaluation 1: its flush, staged. */
struct flush_id solo(struct bench *bench, uint32_t first);
void bench_free(struct bench *bench);

#endif
