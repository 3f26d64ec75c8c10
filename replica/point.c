/* The point of an evaluation on a replica: asked for, put together, and turned into weights. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replica/state.h"
#include "wire/wanted.h"

bool replica_is_of_rows(const struct replica *replica, enum fetch_vector vector) {
    return vector == FETCH_MARGINS ||
           (vector == FETCH_GIVEN && parts_take_rows(&replica->evaluation.parts));
}

bool replica_is_upper(const struct replica *replica, const struct portion *portion) {
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    uint32_t part = evaluation_part_at(parts, portion->chunks.first);
    return part < parts->count && part_is_upper(parts, part);
}

/* What shards of this host have is used where it lies, or copied at the speed of memory. */
static bool some_are_remote(const struct replica *replica) {
    bool remote = false;
    for (uint32_t i = 0; i < replica->shard_count; i++)
        remote |= replica->remote[i];
    return remote;
}

/* ---- a part of a vector of rows ---- */

static bool is_of_network(const struct replica *replica) {
    return replica->setup.strip_columns && layout_upper(&replica->setup.layout).count;
}

/* Of a network always: there is no memory for a number for each row and unit. */
static bool fetches_by_rows(const struct replica *replica) {
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    return replica->chunk_row && (parts_take_rows(parts) || parts_are_upper(parts)) &&
           (is_of_network(replica) || some_are_remote(replica));
}

/* The number of the first row of a chunk; of a chunk that the set does not have, the number after
 * the last row. */
static uint64_t number_of_row(const struct replica *replica, uint64_t chunk) {
    uint64_t end = replica->chunk_count, rows = replica->flushes.sizes.rows;
    uint64_t row = replica->chunk_row[chunk < end ? chunk : end];
    return (row < rows ? row : rows) * replica->flushes.sizes.outputs;
}

/* The numbers of a portion's rows, if it is known which these are. */
static struct range rows_of(const struct replica *replica, const struct portion *portion) {
    if (!fetches_by_rows(replica))
        return (struct range){0, evaluation_sums_total(SUMS_ROWS, &replica->flushes.sizes)};
    uint64_t chunk = portion->chunks.first;
    if (replica->setup.strip_columns)
        chunk %= replica_tiles_of_strip(replica);
    uint64_t first = number_of_row(replica, chunk);
    return (struct range){first, number_of_row(replica, chunk + portion->chunks.count) - first};
}

/* Portions follow one another: as many numbers again as there were in a row, so that there are few
 * questions, and at most twice as many numbers as are needed. Shards of this host answer fast.
 * Numbers of a network lie where a strip of its first layer does, so no more than that are asked
 * for, unless a portion needs more. */
static struct range more_rows(struct replica *replica, enum fetch_vector vector,
                              struct range numbers) {
    struct evaluation *evaluation = &replica->evaluation;
    const struct range *here = &evaluation->fetch.range;
    bool follows = evaluation->fetch.plan != PLAN_NOTHING && vector == evaluation->fetch.vector &&
                   numbers.first >= here->first && numbers.first <= here->first + here->count;
    uint64_t before = follows && some_are_remote(replica) ? evaluation->in_succession : 0;
    const struct sums_sizes *sizes = &replica->flushes.sizes;
    uint64_t all = evaluation_sums_total(SUMS_ROWS, sizes), left = all - numbers.first;
    uint64_t most = is_of_network(replica) ? sizes->strip : all;
    uint64_t more = before < most ? before : most;
    assert(numbers.count <= left);
    numbers.count = numbers.count > more ? numbers.count : more;
    numbers.count = numbers.count < left ? numbers.count : left;
    evaluation->in_succession = before + numbers.count;
    return numbers;
}

/* What a shard has of the elements that were asked for. It has nothing where the count is 0. */
static struct range fetched_range(const struct replica *replica, uint32_t shard) {
    const struct evaluation *evaluation = &replica->evaluation;
    bool of_rows = replica_is_of_rows(replica, evaluation->fetch.vector);
    enum sums_layout kind = of_rows ? SUMS_ROWS : SUMS_PARAMETERS;
    const struct range *of_shard = &replica->ranges[shard];
    struct sums_range own =
        evaluation_sums_range(kind, &replica->flushes.sizes, of_shard->first, of_shard->count);
    return range_intersection((struct range){own.first, own.count}, evaluation->fetch.range);
}

/* Room for a point, or a strip of it, and for a vector of rows. */
static void make_own_parameters(struct replica *replica) {
    if (replica->own_parameters)
        return;
    const struct sums_sizes *sizes = &replica->flushes.sizes;
    uint64_t rows = evaluation_sums_total(SUMS_ROWS, sizes);
    uint64_t point = sizes->strip ? sizes->strip : sizes->parameters;
    replica->own_parameters_bytes = (point > rows ? point : rows) * sizeof(double);
    replica->own_parameters = memory_map(replica->own_parameters_bytes);
}

/* ---- a part of the point ---- */

/* Which strip the point at hand is of. */
static uint32_t strip_at_hand(const struct replica *replica) {
    const struct replica_setup *setup = &replica->setup;
    uint64_t width = setup->strip_columns * setup->layout.tensor[0].columns;
    return width ? (uint32_t)(replica->evaluation.fetch.range.first / width) : 0;
}

/* What of its elements a shard is asked for. Bits are of whole words, and none of columns that lie
 * before the shard's range, or in other strips. */
static struct wanted wanted_of(struct replica *replica, uint32_t shard) {
    const struct layout_tensor *weights = &replica->setup.layout.tensor[0];
    const struct range own = fetched_range(replica, shard);
    if (replica->evaluation.fetch.plan != PLAN_NEEDED || !replica->remote[shard] || !own.count)
        return (struct wanted){0};
    const uint32_t strip = strip_at_hand(replica), noted = mutant(NEEDS_OF_OTHER_STRIP) ? 0 : strip;
    uint64_t before = (uint64_t)strip * replica->setup.strip_columns, width = weights->columns;
    uint64_t end = (own.first + own.count + width - 1) / width;
    end = end < weights->rows ? end : weights->rows;
    assert(weights->first == 0 && own.first / width >= before);
    uint64_t first = (own.first / width - before) / 64 * 64;
    if (before + first >= end)
        return (struct wanted){0};
    return (struct wanted){.column = before + first,
                           .columns = end - before - first,
                           .width = (uint32_t)width,
                           .words = needs_strip(replica_needs(replica), noted) + first / 64};
}

static void list_centred(struct replica *replica) {
    struct scaled_rows *scaled = &replica->scaled;
    scaled->count = 0;
    for (uint32_t j = 0; j < replica->setup.layout.tensor[0].rows; j++) {
        if (replica->columns[j].mean == 0)
            continue;
        MEMORY_ROOM(scaled->centred, scaled->count, scaled->capacity);
        scaled->centred[scaled->count++] = j;
    }
    scaled->listed = true;
}

/* One value in so many elements. */
enum { FEW = 4 };

static bool uses_few_weights(const struct replica *replica) {
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    uint64_t outputs = replica->setup.layout.tensor[0].columns, chunks = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        if (kind_row(parts->items[i].kind)->point != POINT_SCALED)
            return false;
        chunks += parts->items[i].count;
    }
    return replica->scaled.chunk_values && !replica->setup.strip_columns &&
           chunks * replica->scaled.chunk_values * outputs <
               replica->flushes.sizes.parameters / FEW;
}

/* Whether a part of the point is of use. */
static bool may_be_partial(const struct replica *replica) {
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    return some_are_remote(replica) && replica->needs.chunk_count && !replica->kronecker.used &&
           !parts_take_rows(parts) && !parts_take_no_point(parts) && !parts_are_upper(parts);
}

bool replica_is_over_few(const struct replica *replica) {
    return may_be_partial(replica) && uses_few_weights(replica);
}

bool replica_learns(const struct replica *replica) {
    const struct chunk_range *chunks = &replica->computing.chunks;
    return may_be_partial(replica) && !replica->evaluation.fetch_by_portion &&
           !needs_knows(&replica->needs, chunks->first, chunks->count);
}

/* How many chunks of a strip are known, of those that the evaluation is over. */
static uint64_t known_of_strip(const struct replica *replica, uint32_t strip) {
    const struct needs *needs = &replica->needs;
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    uint64_t known = 0;
    if (needs->strip_count > 1) {
        uint32_t tiles = needs->chunk_count / needs->strip_count;
        return needs_known(needs, strip * tiles, tiles);
    }
    for (uint32_t i = 0; i < parts->count; i++)
        known += needs_known(needs, parts->items[i].first, parts->items[i].count);
    return known;
}

/* Chunks are computed now and then for others, and what is known of them widens every question
 * until it is asked for all. So where that is half as many again as a replica computes, it learns
 * anew. */
void replica_forget_needs(struct replica *replica) {
    struct needs *needs = &replica->needs;
    if (!replica->evaluation.running || replica->activity != ACTIVITY_NONE ||
        replica->evaluation.fetch_by_portion || !may_be_partial(replica))
        return;
    for (uint32_t strip = 0; strip < needs->strip_count; strip++) {
        uint64_t computed = needs->computed[strip];
        if (computed && known_of_strip(replica, strip) > computed + computed / 2)
            needs_forget(needs, strip);
    }
}

struct needs *replica_needs(struct replica *replica) {
    return replica->evaluation.fetch_by_portion ? &replica->of_few : &replica->needs;
}

/* ---- the plan ---- */

/* Whether the portion's columns are to be scanned before the point is fetched, as they are not
 * known and a part of the point may be enough. Of tiles that is the first portion of a strip, so
 * that there are few questions, and those that are flushes of their own, mostly another's work. */
static bool must_scan(struct replica *replica, const struct portion *portion) {
    const struct evaluation *evaluation = &replica->evaluation;
    const enum fetch_plan here = evaluation->fetch.plan;
    const uint32_t strip = replica_strip_of(replica, portion);
    bool wanted = here != PLAN_WHOLE;
    if (!evaluation->fetch_by_portion)
        wanted = replica->setup.strip_columns && may_be_partial(replica) &&
                 !(here == PLAN_STRIP && strip_at_hand(replica) == strip) &&
                 (evaluation->scanned_strip != strip + 1 || portion->flags & PORTION_SOLO);
    return wanted &&
           !needs_knows(replica_needs(replica), portion->chunks.first, portion->chunks.count) &&
           !mutant(NEEDS_NOT_LOOKED_AT);
}

/* Which elements of which vector a portion is computed with. Kinds that need no point ask all the
 * same, for no elements: the answers say that the shards have begun the evaluation. Portions of the
 * layers above a network's first need the parameters of these, once an evaluation, and then the
 * margins of their rows. */
static struct fetch elements_of(const struct replica *replica, const struct portion *portion) {
    const struct replica_setup *setup = &replica->setup;
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    enum fetch_plan of_rows = fetches_by_rows(replica) ? PLAN_ROWS : PLAN_WHOLE;
    if (parts_take_no_point(parts))
        return (struct fetch){PLAN_WHOLE, FETCH_GIVEN, {0, 0}};
    if (portion && replica_is_upper(replica, portion)) {
        struct layout_span span = layout_upper(&setup->layout);
        if (!replica->evaluation.has_upper)
            return (struct fetch){PLAN_UPPER, FETCH_POINT, {span.first, span.count}};
        return (struct fetch){of_rows, FETCH_MARGINS, rows_of(replica, portion)};
    }
    if (parts_take_rows(parts))
        return (struct fetch){of_rows, FETCH_GIVEN, rows_of(replica, portion)};
    uint32_t strip = portion ? replica_strip_of(replica, portion) : 0;
    struct layout_span span = layout_strip(&setup->layout, setup->strip_columns, strip);
    return (struct fetch){
        setup->strip_columns ? PLAN_STRIP : PLAN_WHOLE, FETCH_GIVEN, {span.first, span.count}};
}

/* Whether what was fetched last has these elements, and all columns that the portion needs. */
static bool is_at_hand(const struct replica *replica, const struct fetch *wanted,
                       const struct portion *portion) {
    const struct evaluation *evaluation = &replica->evaluation;
    const struct fetch *here = &evaluation->fetch;
    bool of_rows = replica_is_of_rows(replica, wanted->vector);
    bool same = wanted->vector == here->vector || (mutant(MARGINS_FOR_DERIVATIVES) && of_rows &&
                                                   replica_is_of_rows(replica, here->vector));
    if (here->plan == PLAN_NOTHING || !same)
        return false;
    if (mutant(STRIP_KEPT) && !fetches_by_rows(replica) && wanted->vector == here->vector)
        return true;
    if (of_rows)
        return wanted->range.first >= here->range.first &&
               wanted->range.first - here->range.first <= here->range.count &&
               (wanted->range.count <=
                    here->range.count - (wanted->range.first - here->range.first) ||
                mutant(ROWS_NOT_LOOKED_AT));
    if (wanted->range.first != here->range.first)
        return false;
    if ((here->plan != PLAN_NEEDED && here->plan != PLAN_OUTDATED) || mutant(NEEDS_NOT_LOOKED_AT))
        return true;
    return here->plan == PLAN_NEEDED &&
           (evaluation->fetch_by_portion ||
            needs_knows(&replica->needs, portion->chunks.first, portion->chunks.count));
}

/* Whether the columns that are known to be needed will do. Without tiles a point is asked for
 * again, for a portion, because these were not enough: then it is the whole. */
static bool needed_will_do(struct replica *replica, const struct portion *portion) {
    bool known = !portion || replica->evaluation.fetch_by_portion ||
                 (replica->setup.strip_columns &&
                  needs_knows(&replica->needs, portion->chunks.first, portion->chunks.count));
    if (!known || !may_be_partial(replica))
        return false;
    if (replica->setup.scaled && !replica->scaled.listed)
        list_centred(replica);
    /* Centred columns have a part in the biases of every row. */
    for (uint32_t i = 0; replica->setup.scaled && i < replica->scaled.count; i++)
        needs_add_column(replica_needs(replica), replica->scaled.centred[i]);
    return needs_are_few(replica_needs(replica), portion ? replica_strip_of(replica, portion) : 0);
}

bool replica_plans_by_portion(const struct replica *replica) {
    return replica->setup.strip_columns || replica->evaluation.fetch_by_portion ||
           fetches_by_rows(replica);
}

struct fetch replica_plan(struct replica *replica, const struct portion *portion) {
    assert(portion || !replica_plans_by_portion(replica));
    if (portion && must_scan(replica, portion))
        return (struct fetch){.plan = PLAN_SCAN};
    struct fetch wanted = elements_of(replica, portion);
    if (portion && is_at_hand(replica, &wanted, portion))
        return (struct fetch){.plan = PLAN_NOTHING};
    if (wanted.plan == PLAN_ROWS)
        wanted.range = more_rows(replica, wanted.vector, wanted.range);
    else if (wanted.plan != PLAN_UPPER && needed_will_do(replica, portion))
        wanted.plan = PLAN_NEEDED;
    return wanted;
}

/* ---- asking ---- */

/* A shard keeps the bits that came last. That it has them is known when it has answered by them: of
 * a FETCH of a former term it takes no notice. */
void replica_fetch(struct replica *replica, uint32_t shard, struct outbox *out) {
    const struct evaluation *evaluation = &replica->evaluation;
    const struct wanted wanted = wanted_of(replica, shard);
    struct shard_link *link = &replica->shards[shard];
    link->asked = wanted_key_of(&wanted);
    bool kept = wanted_key_equal(&link->asked, &link->answered);
    if (wanted.columns && !kept)
        link->answered = (struct wanted_key){0};
    replica_send(replica, link->link,
                 &(struct message){.type = MESSAGE_FETCH,
                                   .fetch = {.attempt = evaluation->attempt,
                                             .evaluation = evaluation->number,
                                             .vector = (uint8_t)evaluation->fetch.vector,
                                             .first = evaluation->fetch.range.first,
                                             .count = evaluation->fetch.range.count,
                                             .column = wanted.column,
                                             .columns = wanted.columns,
                                             .width = wanted.width,
                                             .hash = link->asked.hash},
                                   .bulk = {.data = kept ? NULL : wanted.words,
                                            .length = kept ? 0 : wanted_bytes(wanted.columns)}},
                 out);
}

void replica_ask(struct replica *replica, const struct fetch *fetch, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    assert(replica->ready && replica->activity == ACTIVITY_NONE);
    assert(fetch->plan != PLAN_NOTHING && fetch->plan != PLAN_SCAN);
    bool same = evaluation->fetch.plan != PLAN_NOTHING &&
                (fetch->range.first == evaluation->fetch.range.first || fetches_by_rows(replica));
    assert(!evaluation->accrual.count || same || parts_are_upper(&evaluation->parts) ||
           mutant(STRIPS_IN_ONE_FLUSH));
    evaluation->fetch = *fetch;
    evaluation->fetched = 0;
    replica->points++;
    if (fetch->plan == PLAN_NEEDED) {
        make_own_parameters(replica);
        /* What is not fetched must be a number, as a scaled point is walked through as a whole, but
         * where few of its weights are used. */
        if (!evaluation->fetch_by_portion)
            memset(replica->own_parameters, 0, fetch->range.count * sizeof(double));
    }
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        bool has_none = evaluation->begun && fetch->range.count && !fetched_range(replica, i).count;
        replica->shards[i].fetched = has_none;
        if (has_none)
            evaluation->fetched++;
        else
            replica_fetch(replica, i, out);
    }
    assert(evaluation->fetched < replica->shard_count);
}

/* With one shard the point is used where it lies. The parts of several shards are copied together,
 * where more than a few places are read: memory of this process has larger pages. So is what a part
 * of the point has. */
static void take_parameters(struct replica *replica, uint32_t shard, struct range range,
                            const struct wanted *wanted, const struct bulk *bulk) {
    assert(shard < replica->shard_count && bulk->length <= range.count * sizeof(double));
    if (replica->shard_count == 1 && replica->evaluation.fetch.plan != PLAN_NEEDED) {
        kept_bulk_release(&replica->kept);
        bulk_keep(bulk, &replica->kept);
        replica->parameters = replica->kept.data;
        return;
    }
    if (uses_few_weights(replica) && replica->evaluation.fetch.plan != PLAN_NEEDED) {
        /* Over few weights a point of several shards is used where they have it, too. */
        assert(!replica->evaluation.fetch.range.first);
        if (!replica->joined.start)
            joined_init(&replica->joined, replica->flushes.sizes.parameters * sizeof(double),
                        replica->shard_count);
        joined_put(&replica->joined, shard, range.first * sizeof(double), bulk);
        replica->parameters = (const double *)(const void *)replica->joined.start;
        return;
    }
    make_own_parameters(replica);
    replica->parameters = replica->own_parameters;
    if (!range.count)
        return;
    uint64_t at = range.first - replica->evaluation.fetch.range.first;
    assert((at + range.count) * sizeof(double) <= replica->own_parameters_bytes);
    if (wanted->columns)
        wanted_scatter(wanted, range.first, range.count, bulk->data, replica->own_parameters + at);
    else
        heartbeat_copy(replica->own_parameters + at, bulk->data, bulk->length);
}

/* The gradient of l2 by a tensor's weights, whose rows have these penalties, or 1; returns l2's
 * part of the loss. */
static double penalise(const struct layout_tensor *tensor, const struct column_scaling *columns,
                       double l2, const double *vector, double *pull) {
    double cost = 0;
    for (uint64_t j = 0; j < tensor->rows; j++)
        for (uint64_t k = 0; k < tensor->columns; k++) {
            uint64_t i = tensor->first + j * tensor->columns + k;
            double penalty = columns ? columns[j].penalty : 1;
            pull[i] = l2 * penalty * vector[i];
            cost += pull[i] * vector[i];
        }
    return cost / 2;
}

/* Undoes the Kronecker factors, in place: columns stay scaled. Notes how the gradient is changed.
 * Another coordinator may be about to send the same factors again. */
static void point_from_kronecker(struct kronecker_point *point, const struct layout *layout,
                                 const struct column_scaling *columns, double l2, double *vector) {
    assert(point->used && point->kronecker);
    kronecker_apply(point->kronecker, point->work, vector);
    point->change = (struct objective_change){
        .kronecker = point->kronecker, .columns = columns, .pull = point->pull};
    for (uint32_t t = 0; t < layout->count; t++)
        if (layout->tensor[t].regularized)
            point->change.penalty +=
                penalise(&layout->tensor[t], t == 0 ? columns : NULL, l2, vector, point->pull);
}

/* ---- a point that stays scaled ---- */

/* Only the biases are made, of the centred columns: of others they have nothing. */
static void keep_scaled(struct replica *replica) {
    const struct layout *layout = &replica->setup.layout;
    const struct layout_tensor *weights = &layout->tensor[0], *bias = layout_input_bias(layout);
    struct scaled_rows *scaled = &replica->scaled;
    struct scaling_walk walk = {0};
    if (!scaled->listed)
        list_centred(replica);
    scaled->point = (struct scaled_point){.columns = replica->columns};
    if (!bias)
        return;
    uint64_t room = bias->columns > weights->columns ? bias->columns : weights->columns;
    if (!scaled->bias)
        scaled->bias = memory_new(room, sizeof *scaled->bias);
    scaling_walk_begin(&walk, layout, replica->columns);
    for (uint32_t i = 0; i < scaled->count; i++) {
        uint64_t at = weights->first + scaled->centred[i] * weights->columns;
        scaling_walk_from_scaled(&walk, at, weights->columns, replica->parameters + at,
                                 scaled->bias);
    }
    scaling_walk_from_scaled(&walk, bias->first, bias->columns, replica->parameters + bias->first,
                             scaled->bias);
    scaling_walk_end(&walk);
    scaled->point.bias = scaled->bias;
}

/* Rows are computed with weights and biases. To be called when the whole point is here. What is no
 * point of parameters has no scale. */
static void point_from_scaled(struct replica *replica) {
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    replica->scaled.point = (struct scaled_point){0};
    if (!replica->setup.scaled || parts_take_rows(parts) || parts_take_no_point(parts))
        return;
    if (uses_few_weights(replica)) {
        keep_scaled(replica);
        return;
    }
    struct scaling_walk walk = {0};
    const struct layout *layout = &replica->setup.layout;
    uint64_t n = layout_parameters(layout);
    make_own_parameters(replica);
    double *own = replica->own_parameters;
    if (replica->parameters != own)
        heartbeat_copy(own, replica->parameters, n * sizeof *own);
    if (replica->kronecker.used)
        point_from_kronecker(&replica->kronecker, layout, replica->columns, replica->setup.l2, own);
    scaling_walk_begin(&walk, layout, replica->columns);
    scaling_walk_from_scaled(&walk, 0, n, own, own);
    scaling_walk_end(&walk);
    replica->parameters = own;
}

/* Beside these come vectors of rows, which take the point's place. */
static void keep_upper(struct replica *replica) {
    uint64_t count = replica->evaluation.fetch.range.count;
    if (!replica->upper)
        replica->upper = memory_new(count, sizeof *replica->upper);
    memcpy(replica->upper, replica->parameters, count * sizeof *replica->upper);
    failpoint(FAILPOINT_upper_fetched);
    replica->evaluation.has_upper = true;
}

void replica_on_parameters(struct replica *replica, uint32_t shard, const struct message *message,
                           int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    struct shard_link *from = &replica->shards[shard];
    const struct message_parameters *parameters = &message->parameters;
    if (!replica_is_current(replica, parameters->attempt, parameters->evaluation) &&
        !(mutant(DERIVATIVES_OF_OTHERS) && evaluation->running))
        return;
    if (evaluation->fetch.plan == PLAN_NOTHING || from->fetched ||
        parameters->vector != evaluation->fetch.vector) {
        replica->counters.stale++;
        return;
    }
    struct range range = fetched_range(replica, shard);
    const struct wanted wanted = wanted_of(replica, shard);
    uint64_t total = wanted_total(&wanted, range.first, range.count);
    bool fits = parameters->count == range.count &&
                (!range.count || parameters->first == range.first) &&
                message->bulk.length == total * sizeof(double);
    if (!fits &&
        (replica->setup.strip_columns || replica->needs.chunk_count || fetches_by_rows(replica))) {
        /* An answer that comes twice, as the coordinator was another one: of a former strip, or of
         * a part of the point. */
        replica->counters.stale++;
        return;
    }
    if (!fits) {
        replica_fail(replica, ERROR_INTERNAL,
                     "a shard sent another range of the parameters than it has", out);
        return;
    }
    take_parameters(replica, shard, range, &wanted, &message->bulk);
    from->fetched = true;
    if (from->asked.columns)
        from->answered = from->asked;
    /* A shard sends the point after it began this evaluation, and from then on reads no flush of an
     * earlier one. When all shards have sent it, the memory of those flushes is free. */
    if (++evaluation->fetched == replica->shard_count) {
        evaluation->begun = true;
        flush_pool_drop_others(&replica->flushes, evaluation->attempt, evaluation->number);
        point_from_scaled(replica);
        if (evaluation->fetch.vector == FETCH_POINT)
            keep_upper(replica);
    }
    replica_advance(replica, now_ns, out);
}
