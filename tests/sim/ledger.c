#include "tests/sim/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/cluster/world.h"

void ledger_init(struct ledger *ledger, struct world *world, uint32_t chunks) {
    *ledger = (struct ledger){.world = world, .chunks = chunks};
    ledger->counted = memory_new(chunks, sizeof *ledger->counted);
    ledger->learnt = memory_new(chunks, sizeof *ledger->learnt);
}

void ledger_release(struct ledger *ledger) {
    free(ledger->flushes);
    free(ledger->ranges);
    free(ledger->evaluations);
    free(ledger->folds);
    free(ledger->counted);
    free(ledger->learnt);
}

/* ---- evaluations ---- */

static const struct ledger_evaluation *find_evaluation(const struct ledger *ledger,
                                                       uint32_t attempt, uint32_t number) {
    for (uint32_t i = ledger->evaluation_count; i-- > 0;)
        if (ledger->evaluations[i].attempt == attempt && ledger->evaluations[i].number == number)
            return &ledger->evaluations[i];
    return NULL;
}

uint64_t ledger_evaluate(struct ledger *ledger, const struct message_evaluate *evaluate) {
    const struct ledger_evaluation *known =
        find_evaluation(ledger, evaluate->attempt, evaluate->evaluation);
    uint64_t chunks = 0;
    for (uint32_t i = 0; i < evaluate->parts.length; i++)
        for (uint32_t j = 0; j < evaluate->parts.items[i].count; j++)
            chunks |= UINT64_C(1) << (evaluate->parts.items[i].first + j);
    if (known && known->chunks != chunks)
        world_fail(ledger->world, "evaluation %u of attempt %u was of other chunks before",
                   evaluate->evaluation, evaluate->attempt);
    if (known)
        return chunks;
    MEMORY_ROOM(ledger->evaluations, ledger->evaluation_count, ledger->evaluation_capacity);
    ledger->evaluations[ledger->evaluation_count++] =
        (struct ledger_evaluation){evaluate->attempt, evaluate->evaluation, chunks};
    return chunks;
}

/* ---- flushes ---- */

static const struct ledger_flush *find(const struct ledger *ledger, const struct flush_id *id) {
    for (uint32_t i = ledger->flush_count; i-- > 0;)
        if (flush_id_equal(&ledger->flushes[i].id, id))
            return &ledger->flushes[i];
    return NULL;
}

static bool says_the_same(const struct ledger *ledger, const struct ledger_flush *flush,
                          const struct chunk_ranges *ranges) {
    return flush->ranges == ranges->length &&
           !memcmp(ledger->ranges + flush->first_range, ranges->items,
                   ranges->length * sizeof *ranges->items);
}

static void add_range(struct ledger *ledger, struct chunk_range range) {
    MEMORY_ROOM(ledger->ranges, ledger->range_count, ledger->range_capacity);
    ledger->ranges[ledger->range_count++] = range;
}

void ledger_stage(struct ledger *ledger, const struct message_stage *stage) {
    const struct ledger_flush *known = find(ledger, &stage->flush);
    if (known) {
        if (!says_the_same(ledger, known, &stage->portions))
            world_fail(ledger->world, "two flushes have the same id");
        return;
    }
    MEMORY_ROOM(ledger->flushes, ledger->flush_count, ledger->flush_capacity);
    ledger->flushes[ledger->flush_count++] =
        (struct ledger_flush){stage->flush, ledger->range_count, stage->portions.length};
    for (uint32_t i = 0; i < stage->portions.length; i++)
        add_range(ledger, stage->portions.items[i]);
}

static void count_flush(struct ledger *ledger, const struct ledger_flush *flush) {
    for (uint32_t i = 0; i < flush->ranges; i++) {
        const struct chunk_range *range = &ledger->ranges[flush->first_range + i];
        for (uint32_t chunk = range->first; chunk < range->first + range->count; chunk++)
            if (chunk >= ledger->chunks)
                world_fail(ledger->world, "chunk %u was counted, which is beyond the end", chunk);
            else if (ledger->counted[chunk] < 255)
                ledger->counted[chunk]++;
    }
}

void ledger_use(struct ledger *ledger, const char *shard, uint32_t attempt, uint32_t evaluation,
                const struct flush_id *folded, size_t count) {
    const struct ledger_evaluation *announced = find_evaluation(ledger, attempt, evaluation);
    uint64_t chunks = announced ? announced->chunks : 0;
    memset(ledger->counted, 0, ledger->chunks);
    ledger->used++;
    for (size_t i = 0; i < count; i++) {
        const struct ledger_flush *flush = find(ledger, &folded[i]);
        if (!flush || folded[i].attempt != attempt || folded[i].evaluation != evaluation)
            world_fail(ledger->world, "%s folded a flush that does not belong to evaluation %u",
                       shard, evaluation);
        else
            count_flush(ledger, flush);
    }
    for (uint32_t chunk = 0; chunk < ledger->chunks; chunk++)
        if (ledger->counted[chunk] != (chunks >> chunk & 1))
            world_fail(ledger->world, "%s counted chunk %u %u times in evaluation %u of attempt %u",
                       shard, chunk, ledger->counted[chunk], evaluation, attempt);
}

void ledger_learn(struct ledger *ledger) {
    for (uint32_t chunk = 0; chunk < ledger->chunks; chunk++)
        ledger->learnt[chunk] += ledger->counted[chunk];
}

/* ---- folds ---- */

static struct ledger_fold *find_fold(const struct ledger *ledger, uint64_t term, uint32_t shard,
                                     const struct flush_id *id) {
    for (uint32_t i = 0; i < ledger->fold_count; i++) {
        struct ledger_fold *fold = &ledger->folds[i];
        if (fold->term == term && fold->shard == shard && flush_id_equal(&fold->id, id))
            return fold;
    }
    return NULL;
}

void ledger_fold(struct ledger *ledger, uint64_t term, uint32_t shard, const struct flush_id *id) {
    if (find_fold(ledger, term, shard, id))
        return;
    MEMORY_ROOM(ledger->folds, ledger->fold_count, ledger->fold_capacity);
    ledger->folds[ledger->fold_count++] = (struct ledger_fold){term, shard, *id};
}

void ledger_folded(struct ledger *ledger, uint64_t term, uint32_t shard,
                   const struct flush_id *id) {
    struct ledger_fold *fold = find_fold(ledger, term, shard, id);
    if (fold)
        *fold = ledger->folds[--ledger->fold_count];
}

void ledger_round(struct ledger *ledger, uint64_t term, uint32_t attempt) {
    for (uint32_t i = 0; i < ledger->fold_count; i++)
        if (ledger->folds[i].term == term && ledger->folds[i].id.attempt == attempt)
            world_fail(ledger->world, "an evaluation is used before shard %u confirmed a fold",
                       ledger->folds[i].shard);
}
