#include "coordinator/dispatch/round.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/exact.h"
#include "wire/program.h"

void round_init(struct round *round, uint32_t shards) {
    assert(shards > 0 && shards <= SHARDS_MAX);
    memset(round, 0, sizeof *round);
    round->shards = shards;
    round->sums = memory_new(SCALARS_MAX, sizeof *round->sums);
}

void round_release(struct round *round) {
    free(round->sums);
    round->sums = NULL;
    free(round->listed);
    round->listed = NULL;
}

/* Notes which scalars are maxima, and resets all. */
static void scalars_prepare(struct round *round, const struct bytes *program) {
    struct cursor cursor = cursor_over(program->data, program->length);
    struct operation operation;
    round->scalars = round->listed_count = 0;
    round->lists = false;
    while (program_next(&cursor, &operation)) {
        uint32_t yields = operation_scalars(&operation);
        round->lists |= operation.code == OPERATION_LIST;
        assert(round->scalars + yields <= SCALARS_MAX);
        for (uint32_t i = 0; i < yields; i++) {
            uint32_t scalar = round->scalars++;
            round->is_max[scalar] = operation_yields_max(&operation);
            round->maxima[scalar] = 0;
            exact_init(&round->sums[scalar]);
        }
    }
    assert(!cursor.failed);
}

void round_begin(struct round *round, const struct bytes *program) {
    assert(program->length > 0 && round->shards > 0);
    round->number++;
    round->hash = program_hash(program->data, program->length);
    round->running = true;
    round->answered = 0;
    memset(round->has_answered, 0, sizeof round->has_answered);
    scalars_prepare(round, program);
    assert(round->number > 0 && round->scalars <= SCALARS_MAX);
}

/* A shard lists at most its support and as many others. */
static bool merge_listed(struct round *round, struct cursor *cursor) {
    uint32_t count = cursor_u32(cursor);
    if (count > 2 * WORKING_SET_MAX)
        return false;
    const void *list = cursor_take(cursor, (size_t)count * LISTED_BYTES);
    for (uint32_t i = 0; list && i < count; i++) {
        const struct listed listed = listed_at(list, i);
        if (!listed_is_valid(&listed))
            return false;
        MEMORY_ROOM(round->listed, round->listed_count, round->listed_capacity);
        round->listed[round->listed_count++] = listed;
    }
    return list || !count;
}

static bool merge_scalars(struct round *round, const struct blob *scalars) {
    assert(round->running && round->scalars <= SCALARS_MAX);
    struct cursor cursor = cursor_over(scalars->data, scalars->length);
    for (uint32_t i = 0; i < round->scalars; i++) {
        if (round->is_max[i]) {
            round->maxima[i] = fmax(round->maxima[i], cursor_f64(&cursor));
            continue;
        }
        struct exact part;
        if (!exact_decode(&part, &cursor))
            return false;
        exact_merge(&round->sums[i], &part);
    }
    if (round->lists && !merge_listed(round, &cursor))
        return false;
    return !cursor.failed && cursor_left(&cursor) == 0;
}

enum round_answer round_take(struct round *round, uint32_t shard, uint64_t number,
                             const struct blob *scalars) {
    assert(shard < round->shards);
    if (!round->running || number != round->number || round->has_answered[shard])
        return ROUND_IGNORED;
    assert(round->answered < round->shards);
    if (!merge_scalars(round, scalars))
        return ROUND_BROKEN;
    round->has_answered[shard] = true;
    if (++round->answered < round->shards)
        return ROUND_WAIT;
    round->running = false;
    return ROUND_DONE;
}

void round_scalars(const struct round *round, double *scalars) {
    assert(!round->running && round->answered == round->shards);
    for (uint32_t i = 0; i < round->scalars; i++)
        scalars[i] = round->is_max[i] ? round->maxima[i] : exact_value(&round->sums[i]);
}
