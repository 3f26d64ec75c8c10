/* An account of what counts, kept apart from the machines that are tested: which flush brought
 * which chunks, as its slices said when they reached the shards, and what the shards had folded
 * when the optimizer used an evaluation. */
#ifndef DML_TESTS_SIM_LEDGER_H
#define DML_TESTS_SIM_LEDGER_H

#include "wire/message.h"

struct world;

struct ledger_flush {
    struct flush_id id;
    uint32_t first_range, ranges; /* in ledger.ranges */
};

/* An evaluation as its EVALUATE says, whoever sent it. */
struct ledger_evaluation {
    uint32_t attempt, number;
    uint64_t chunks; /* bit set */
};

struct ledger_fold {
    uint64_t term; /* of the coordinator that told it */
    uint32_t shard;
    struct flush_id id;
};

struct ledger {
    struct world *world;
    uint32_t chunks;
    struct ledger_flush *flushes;
    uint32_t flush_count, flush_capacity;
    struct chunk_range *ranges;
    uint32_t range_count, range_capacity;
    struct ledger_evaluation *evaluations;
    uint32_t evaluation_count, evaluation_capacity;
    struct ledger_fold *folds; /* told and not confirmed */
    uint32_t fold_count, fold_capacity;
    uint8_t *counted; /* [chunks], scratch */
    uint32_t *learnt; /* [chunks]: steps of Downpour that each was in */
    uint64_t used;    /* evaluations that shards let the optimizer use */
};

void ledger_init(struct ledger *ledger, struct world *world, uint32_t chunks);
void ledger_release(struct ledger *ledger);

/* A coordinator announces an evaluation. Returns its chunks; fails the world if the same number
 * stood for others before. */
uint64_t ledger_evaluate(struct ledger *ledger, const struct message_evaluate *evaluate);

/* A slice reached a shard. Fails the world if the same flush said other chunks before. */
void ledger_stage(struct ledger *ledger, const struct message_stage *stage);

/* A shard lets its sum of these flushes be used as that of one evaluation. Fails the world unless
 * each chunk that was announced is in the flushes once, and no other. */
void ledger_use(struct ledger *ledger, const char *shard, uint32_t attempt, uint32_t evaluation,
                const struct flush_id *folded, size_t count);

/* The same program makes a step of Downpour with it. */
void ledger_learn(struct ledger *ledger);

/* A coordinator tells a shard to fold, hears that it did, and sends a program, journalled before,
 * that uses the folds of this attempt. Fails the world if it did not hear of all of them before. */
void ledger_fold(struct ledger *ledger, uint64_t term, uint32_t shard, const struct flush_id *id);
void ledger_folded(struct ledger *ledger, uint64_t term, uint32_t shard, const struct flush_id *id);
void ledger_round(struct ledger *ledger, uint64_t term, uint32_t attempt);

#endif
