/* One evaluation on a replica: ask for the point, compute portions, accrue, flush. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replica/state.h"

bool replica_is_current(struct replica *replica, uint32_t attempt, uint32_t number) {
    const struct evaluation *evaluation = &replica->evaluation;
    bool current =
        evaluation->running && evaluation->attempt == attempt && evaluation->number == number;
    if (!current)
        replica->counters.stale++;
    return current;
}

/* ---- its beginning and end ---- */

void replica_abandon(struct replica *replica) {
    struct evaluation *evaluation = &replica->evaluation;
    if (replica->activity != ACTIVITY_NONE && !replica->abandoned) {
        replica->abandoned = true;
        if (replica->activity != ACTIVITY_GATHERING)
            replica_act(replica, &(struct action){.kind = ACTION_STOP});
    }
    struct portion *portions = evaluation->portions;
    uint32_t capacity = evaluation->portion_capacity;
    struct accrual accrual = evaluation->accrual;
    accrual_clear(&accrual, 0);
    *evaluation =
        (struct evaluation){.portions = portions, .portion_capacity = capacity, .accrual = accrual};
}

/* NULL, or why vectors of rows cannot be as the evaluation wants them. */
static const char *rows_fault(const struct replica *replica, const struct evaluation_parts *parts) {
    bool wanted = evaluation_sums(parts) == SUMS_ROWS || parts_take_rows(parts);
    if (parts_mix_points(parts))
        return "asked for parts at a point and parts at a vector of rows";
    if (wanted && !replica->setup.rows)
        return "asked for vectors of rows, but not set up for them";
    if (parts_are_upper(parts) &&
        (!replica->setup.strip_columns || !layout_upper(&replica->setup.layout).count))
        return "asked for upper layers, but not set up for a network in tiles";
    return NULL;
}

/* Weights are listed for the kind that is over listed ones, and are those of the model. */
static const char *weights_fault(const struct replica *replica,
                                 const struct evaluation_parts *parts,
                                 const struct u64_list *weights) {
    const struct replica_setup *setup = &replica->setup;
    const struct layout_tensor *all = &setup->layout.tensor[0];
    bool wanted = setup->precondition == PRECONDITION_LISTED;
    bool listed = kind_row(parts->items[0].kind)->listed;
    if (evaluation_sums(parts) == SUMS_TRIANGLE && listed != wanted)
        return "asked for curvature by other parameters than was set up for";
    if (weights->length > (listed ? setup->block_columns : 0))
        return "asked for more weights than was set up for";
    if (weights->length && weights->items[weights->length - 1] >= all->rows * all->columns)
        return "asked for weights that the model has not";
    return NULL;
}

/* How many strips the tiles of the first part are of. */
static uint32_t strips_of_parts(const struct replica *replica,
                                const struct evaluation_parts *parts) {
    const struct replica_setup *setup = &replica->setup;
    bool all = kind_row(parts->items[0].kind)->strips == STRIPS_ALL;
    return all ? layout_strips(&setup->layout, setup->strip_columns) : 1;
}

/* The tiles of each strip: where the first part is of upper layers, all parts lie in one strip. */
static uint32_t strip_tiles(const struct evaluation_parts *parts, uint32_t strips) {
    const struct evaluation_part *first = &parts->items[0], *last = first + parts->count - 1;
    return part_is_upper(parts, 0) ? last->first + last->count : first->count / strips;
}

/* In tiles an evaluation has one part, except for a network, which may have a second one: the
 * gradient of the upper layers follows that of the first, as the tiles of one more strip; the loss
 * of held-out rows follows the derivatives of all other rows, in the same strip. */
static const char *tiles_fault(const struct replica *replica,
                               const struct evaluation_parts *parts) {
    const struct evaluation_part *first = &parts->items[0], *second = first + 1;
    if (!replica->setup.strip_columns)
        return NULL;
    enum kind_strips over = kind_row(first->kind)->strips;
    uint32_t strips = strips_of_parts(replica, parts), tiles = strip_tiles(parts, strips);
    if (parts->count > 1) {
        enum kind_strips next = kind_row(second->kind)->strips;
        bool beside = part_is_upper(parts, 0)
                          ? next == STRIPS_HOLDOUT
                          : over == STRIPS_ALL && next == STRIPS_UPPER && second->count <= tiles;
        if (parts->count > 2 || second->first != first->count || !beside)
            return "asked for parts of tiles";
    }
    if (first->first || over == STRIPS_UPPER)
        return "asked for parts of tiles";
    if (replica->chunk_row && tiles > replica->chunk_count)
        return "asked for more tiles than the set has";
    if (over == STRIPS_NONE || over == STRIPS_HOLDOUT)
        return "asked for what tiles have not";
    return first->count % strips ? "asked for strips of various numbers of tiles" : NULL;
}

static void keep_weights(struct weight_list *list, const struct replica *replica,
                         const struct u64_list *weights) {
    uint64_t outputs = replica->setup.layout.tensor[0].columns;
    assert(weights->length <= WORKING_SET_MAX && outputs > 0);
    list->count = weights->length;
    for (uint32_t i = 0; i < weights->length; i++) {
        list->column[i] = (uint32_t)(weights->items[i] / outputs);
        list->output[i] = (uint32_t)(weights->items[i] % outputs);
    }
}

/* Whether an evaluation takes the place of the one that runs. A later one does; and an older one
 * of a later coordinator: its journal may end before the evaluation that the former one began last,
 * which no shard has heard of then. One that runs already goes on. */
static bool takes_its_place(const struct replica *replica, const struct message_evaluate *message) {
    const struct evaluation *evaluation = &replica->evaluation;
    if (message->attempt != replica->attempt)
        return false;
    return !evaluation->running || evaluation->number < message->evaluation ||
           (evaluation->number > message->evaluation && evaluation->term < replica->term);
}

void replica_on_evaluate(struct replica *replica, const struct message_evaluate *message,
                         int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    if (!takes_its_place(replica, message)) {
        replica->counters.stale++;
        return;
    }
    replica_forget_needs(replica);
    needs_count_anew(&replica->needs);
    replica_abandon(replica);
    const struct evaluation_parts parts = evaluation_parts_of(&message->parts);
    bool curvature = evaluation_sums(&parts) == SUMS_TRIANGLE;
    if (message->bounds.count != (curvature ? 1 : layout_bounds(&replica->setup.layout))) {
        replica_fail(replica, ERROR_INTERNAL,
                     "an evaluation has not as many bounds as its parameters have", out);
        return;
    }
    if (curvature && replica->setup.precondition == PRECONDITION_NONE) {
        replica_fail(replica, ERROR_INTERNAL,
                     "asked for curvature, but not set up for a preconditioner", out);
        return;
    }
    const char *fault = rows_fault(replica, &parts);
    fault = fault ? fault : weights_fault(replica, &parts, &message->weights);
    fault = fault ? fault : tiles_fault(replica, &parts);
    if (fault) {
        replica_fail(replica, ERROR_INTERNAL, fault, out);
        return;
    }
    assert(!evaluation->running && !evaluation->accrual.count && !evaluation->portion_count);
    for (uint32_t i = 0; i < replica->copy.count && mutant(CHUNKS_FORGOTTEN); i++)
        if (replica->copy.places[i].state == PLACE_HERE)
            replica->copy.places[i].state = PLACE_MISSING;
    evaluation->running = true;
    evaluation->term = replica->term;
    evaluation->attempt = message->attempt;
    evaluation->number = message->evaluation;
    evaluation->parts = parts;
    evaluation->bounds = message->bounds;
    evaluation->sampling =
        (struct row_sampling){message->rate, message->floor, message->sample_seed};
    evaluation->has_upper = replica->upper && mutant(UPPER_KEPT);
    keep_weights(&evaluation->weights, replica, &message->weights);
    accrual_clear(&evaluation->accrual, evaluation_totals(&evaluation->parts));
    evaluation->fetch_by_portion = replica_is_over_few(replica);
    if (evaluation->fetch_by_portion)
        needs_clear(&replica->of_few);
    replica_advance(replica, now_ns, out);
}

/* ---- portions ---- */

/* Chunks: the tiles of each strip have as many numbers. */
uint32_t replica_tiles_of_strip(const struct replica *replica) {
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    return strip_tiles(parts, strips_of_parts(replica, parts));
}

uint32_t replica_strip_of(const struct replica *replica, const struct portion *portion) {
    uint32_t first = portion->chunks.first;
    return replica->setup.strip_columns ? first / replica_tiles_of_strip(replica) : 0;
}

static bool is_of_one_strip(const struct replica *replica, struct chunk_range chunks) {
    const struct evaluation_parts *parts = &replica->evaluation.parts;
    const struct evaluation_part *last = &parts->items[parts->count - 1];
    if (!replica->setup.strip_columns)
        return true;
    uint32_t tiles = replica_tiles_of_strip(replica);
    return chunks.first < last->first + last->count && chunks.count <= tiles - chunks.first % tiles;
}

void replica_on_portion(struct replica *replica, const struct message_portion *message,
                        int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    const struct portion portion = {{message->first, message->count}, message->flags};
    if (!replica_is_current(replica, message->attempt, message->evaluation))
        return;
    if (!is_of_one_strip(replica, portion.chunks)) {
        replica_fail(replica, ERROR_INTERNAL, "a portion has tiles of several strips, or of none",
                     out);
        return;
    }
    MEMORY_ROOM(evaluation->portions, evaluation->portion_count, evaluation->portion_capacity);
    evaluation->portions[evaluation->portion_count++] = portion;
    evaluation->resting = false;
    replica_copy_advance(replica, out);
    replica_advance(replica, now_ns, out);
}

void replica_on_rest(struct replica *replica, const struct message_rest *message, int64_t now_ns,
                     struct outbox *out) {
    if (!replica_is_current(replica, message->attempt, message->evaluation))
        return;
    replica->evaluation.resting = true;
    replica_advance(replica, now_ns, out);
}

static void want(struct replica *replica, struct outbox *out) {
    const struct evaluation *evaluation = &replica->evaluation;
    replica_send(
        replica, replica->coordinator,
        &(struct message){.type = MESSAGE_WANT, .want = {evaluation->attempt, evaluation->number}},
        out);
}

/* Which integer sums of the current portions are needed. */
static enum sums_layout sums_needed(const struct evaluation *evaluation) {
    return evaluation->exceeded ? SUMS_NONE : evaluation_sums(&evaluation->parts);
}

/* Which of them a flush of what is accrued has: all others are 0. */
static struct range sums_accrued(const struct replica *replica, enum sums_layout sums) {
    const struct replica_setup *setup = &replica->setup;
    const struct sums_sizes *sizes = &replica->flushes.sizes;
    const struct evaluation *evaluation = &replica->evaluation;
    if (sums == SUMS_ROWS) {
        struct row_range rows = evaluation->accrual.rows;
        assert(rows.first <= rows.end && rows.end <= sizes->rows);
        return (struct range){rows.first * sizes->outputs,
                              (rows.end - rows.first) * sizes->outputs};
    }
    if (sums == SUMS_PARAMETERS) {
        struct layout_span span =
            layout_strip(&setup->layout, setup->strip_columns, evaluation->strip);
        return (struct range){span.first, span.count};
    }
    if (kind_row(evaluation->parts.items[0].kind)->listed)
        return (struct range){
            0, evaluation_listed_sums(sizes, setup->block_columns, evaluation->weights.count)};
    return (struct range){0, evaluation_sums_total(sums, sizes)};
}

static void start_portion(struct replica *replica, int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    assert(evaluation->portion_count && replica->activity == ACTIVITY_NONE && !replica->abandoned);
    assert(evaluation->fetched == replica->shard_count);
    assert(replica->parameters || !evaluation->fetch.range.count);
    replica->computing = evaluation->portions[0];
    evaluation->strip = replica_strip_of(replica, &replica->computing);
    assert(!(replica->computing.flags & PORTION_SOLO) || !evaluation->accrual.count);
    evaluation->portion_count--;
    memmove(evaluation->portions, evaluation->portions + 1,
            evaluation->portion_count * sizeof *evaluation->portions);
    bool sums = sums_needed(evaluation) != SUMS_NONE;
    bool upper = replica_is_upper(replica, &replica->computing);
    /* While nothing is accrued, sums that are not zero are void: of an abandoned evaluation, or of
     * portions that exceeded a bound. */
    bool clear = sums && replica->sums_dirty && !evaluation->accrual.count && !mutant(SUMS_KEPT);
    replica->activity = ACTIVITY_COMPUTING;
    replica->sums_dirty |= sums;
    replica->started_ns = now_ns;
    replica_act(
        replica,
        &(struct action){.kind = ACTION_COMPUTE,
                         .computation = {
                             .first = replica->computing.chunks.first,
                             .count = replica->computing.chunks.count,
                             .strip = evaluation->strip,
                             .parts = evaluation->parts,
                             .point = replica->points,
                             .parameters = replica->parameters,
                             .first_number = replica_is_of_rows(replica, evaluation->fetch.vector)
                                                 ? evaluation->fetch.range.first
                                                 : 0,
                             .upper = upper ? replica->upper : NULL,
                             .tiles_below = replica_tiles_below(replica, &replica->computing),
                             .columns = replica_learns(replica)
                                            ? needs_strip(&replica->needs, evaluation->strip)
                                            : NULL,
                             .scaled = replica->scaled.point,
                             .change = replica->kronecker.change,
                             .bounds = evaluation->bounds,
                             .sampling = evaluation->sampling,
                             .weights = evaluation->weights,
                             .sums = sums,
                             .clear = clear,
                             .flushed = portion_is_flushed(&replica->computing),
                         }});
    if (!evaluation->portion_count && !(replica->computing.flags & PORTION_LAST))
        want(replica, out);
}

void replica_computed(struct replica *replica, const struct computed *computed, int64_t now_ns,
                      struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    bool wanted = !replica->abandoned;
    bool scanned = replica->activity == ACTIVITY_SCANNING;
    assert((scanned || replica->activity == ACTIVITY_COMPUTING) && !replica->gathering);
    replica->activity = ACTIVITY_NONE;
    replica->abandoned = false;
    if (wanted && computed->error) {
        replica_fail(replica, computed->error, computed->reason, out);
        return;
    }
    if (wanted && scanned) {
        needs_learn(replica_needs(replica), replica->computing.chunks.first,
                    replica->computing.chunks.count);
        if (evaluation->fetch.plan == PLAN_NEEDED)
            evaluation->fetch.plan = PLAN_OUTDATED;
        evaluation->scanned_strip = replica_strip_of(replica, &replica->computing) + 1;
    } else if (wanted) {
        if (replica_learns(replica) && !computed->stopped)
            needs_learn(&replica->needs, replica->computing.chunks.first,
                        replica->computing.chunks.count);
        if (replica->needs.chunk_count)
            needs_count(&replica->needs, evaluation->strip, replica->computing.chunks.count);
        accrual_add(&evaluation->accrual, replica->computing.chunks, computed, replica->started_ns,
                    now_ns);
        evaluation->exceeded |= computed->exceeded;
        evaluation->flush_due |= portion_is_flushed(&replica->computing);
        if (mutant(BACKUP_WITH_OTHER_WORK))
            evaluation->flush_due = (replica->computing.flags & PORTION_LAST) != 0;
        replica->counters.portions++;
    }
    replica_advance(replica, now_ns, out);
}

/* ---- flushes ---- */

int64_t replica_deadline_ns(const struct replica *replica) {
    const struct evaluation *evaluation = &replica->evaluation;
    bool waiting = evaluation->accrual.count && replica->activity == ACTIVITY_NONE &&
                   replica->ready && !replica->error && !evaluation->starved &&
                   evaluation->fetched == replica->shard_count;
    int64_t flush_ns = waiting ? evaluation->accrual.since_ns + replica->flush_ns : INT64_MAX;
    int64_t retry_ns = replica_retry_ns(replica), copy_ns = replica_copy_deadline_ns(replica);
    retry_ns = copy_ns < retry_ns ? copy_ns : retry_ns;
    return flush_ns < retry_ns ? flush_ns : retry_ns;
}

static bool must_flush(const struct replica *replica, int64_t now_ns) {
    const struct evaluation *evaluation = &replica->evaluation;
    if (!evaluation->accrual.count)
        return false;
    bool idle = !evaluation->portion_count;
    bool other_strip =
        !idle && replica_strip_of(replica, &evaluation->portions[0]) != evaluation->strip;
    return evaluation->flush_due || (idle && evaluation->resting) ||
           (other_strip && !mutant(STRIPS_IN_ONE_FLUSH)) ||
           (!idle && evaluation->portions[0].flags & PORTION_SOLO &&
            !mutant(BACKUP_WITH_OTHER_WORK)) ||
           now_ns >= evaluation->accrual.since_ns + replica->flush_ns;
}

static void stage(struct replica *replica, struct flush *flush, struct outbox *out) {
    for (uint32_t i = 0; i < replica->shard_count; i++)
        if (replica->shards[i].greeted) /* others get it when they greet: replica_resume_shard() */
            flush_stage(flush, i, replica->shards[i].link, replica->term, out);
    replica->counters.flushes++;
}

/* False if no buffer is free: replica_advance() tries again after the next commit decision. */
static bool begin_flush(struct replica *replica, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    struct flush_id id = {evaluation->attempt, evaluation->number, replica->incarnation,
                          replica->sequence + 1};
    assert(evaluation->accrual.count && !replica->gathering);
    enum sums_layout sums = evaluation->accrual.exceeded ? SUMS_NONE : sums_needed(evaluation);
    struct range covers = sums_accrued(replica, sums);
    struct flush *flush = flush_start(&replica->flushes, &id, &evaluation->accrual, sums, covers);
    if (!flush)
        return false;
    replica->sequence++;
    evaluation->flush_due = false;
    if (!flush->buffer) {
        stage(replica, flush, out);
        return true;
    }
    replica->activity = ACTIVITY_GATHERING;
    replica->gathering = flush;
    replica_act(replica, &(struct action){.kind = ACTION_GATHER,
                                          .into = flush->buffer->start,
                                          .first = sums == SUMS_ROWS ? covers.first : 0,
                                          .sums = covers.count});
    return true;
}

/* The threads hold no sums now. Of an evaluation that was abandoned the flush is dropped. */
void replica_gathered(struct replica *replica, const struct sum_lists *listed, int64_t now_ns,
                      struct outbox *out) {
    bool wanted = !replica->abandoned;
    assert(replica->activity == ACTIVITY_GATHERING && replica->gathering);
    replica->activity = ACTIVITY_NONE;
    replica->abandoned = false;
    replica->sums_dirty = false;
    if (wanted) {
        const struct layout_tensor *bias = layout_input_bias(&replica->setup.layout);
        uint64_t outputs = replica->setup.layout.tensor[0].columns;
        bool shards_scale = replica->setup.scaled && !replica->kronecker.used;
        if (shards_scale && replica->gathering->sums == SUMS_PARAMETERS && bias)
            flush_keep_biases(replica->gathering, bias->first, bias->columns, listed);
        flush_encode(&replica->flushes, replica->gathering, replica->ranges, replica->remote,
                     outputs, listed);
        stage(replica, replica->gathering, out);
    } else {
        flush_drop(&replica->flushes, replica->gathering);
    }
    replica->gathering = NULL;
    replica_advance(replica, now_ns, out);
}

void replica_on_staged(struct replica *replica, uint32_t shard,
                       const struct message_staged *message, struct outbox *out) {
    if (!replica_is_current(replica, message->flush.attempt, message->flush.evaluation))
        return;
    struct flush *flush = flush_find(&replica->flushes, &message->flush);
    if (!flush || flush == replica->gathering ||
        message->incarnation != replica->shards[shard].incarnation) {
        replica->counters.stale++;
        return;
    }
    bool everywhere = flush_staged(&replica->flushes, flush, shard, message->incarnation);
    if (everywhere && replica->coordinator && !replica->returning)
        flush_report(&replica->flushes, flush, replica->coordinator, replica->term, out);
}

/* Only the commit decision ends a flush: until then a shard on this host may read its slice in the
 * buffer. */
void replica_on_verdict(struct replica *replica, const struct message_verdict *message,
                        int64_t now_ns, struct outbox *out) {
    struct flush *flush = flush_find(&replica->flushes, &message->flush);
    if (!flush || flush == replica->gathering) {
        replica->counters.stale++;
        return;
    }
    if (message->accepted)
        replica->counters.accepted++;
    else
        replica->counters.dropped++;
    flush_drop(&replica->flushes, flush);
    replica_advance(replica, now_ns, out);
}

void replica_resume_shard(struct replica *replica, uint32_t shard, struct outbox *out) {
    const struct evaluation *evaluation = &replica->evaluation;
    struct shard_link *link = &replica->shards[shard];
    if (!evaluation->running)
        return;
    if (evaluation->fetch.plan != PLAN_NOTHING && !link->fetched)
        replica_fetch(replica, shard, out);
    for (struct flush *flush = replica->flushes.first; flush; flush = flush->next)
        if (flush != replica->gathering && flush->id.attempt == evaluation->attempt &&
            flush->id.evaluation == evaluation->number && !flush->staged[shard])
            flush_stage(flush, shard, link->link, replica->term, out);
}

void replica_lose_portions(struct replica *replica) {
    struct evaluation *evaluation = &replica->evaluation;
    evaluation->portion_count = 0;
    /* The next coordinator may hand out again what is accrued here. In a flush together with new
     * portions, a chunk that others have counted meanwhile would spoil the new ones too. */
    evaluation->flush_due = true;
}

void replica_resume_coordinator(struct replica *replica, struct outbox *out) {
    const struct evaluation *evaluation = &replica->evaluation;
    if (!evaluation->running)
        return;
    for (struct flush *flush = replica->flushes.first; flush; flush = flush->next)
        if (flush->staged_count == replica->shard_count &&
            flush->id.attempt == evaluation->attempt && flush->id.evaluation == evaluation->number)
            flush_report(&replica->flushes, flush, replica->coordinator, replica->term, out);
    if (replica->activity == ACTIVITY_NONE && !evaluation->portion_count && !evaluation->resting)
        want(replica, out);
}

/* ---- what comes next ---- */

/* Notes which columns the next portion has, which is then planned anew. */
static void scan_portion(struct replica *replica) {
    const struct evaluation *evaluation = &replica->evaluation;
    replica->computing = evaluation->portions[0];
    const uint32_t strip = replica_strip_of(replica, &replica->computing);
    replica->activity = ACTIVITY_SCANNING;
    replica_act(replica, &(struct action){.kind = ACTION_COMPUTE,
                                          .computation = {
                                              .first = replica->computing.chunks.first,
                                              .count = replica->computing.chunks.count,
                                              .parts = evaluation->parts,
                                              .columns = needs_strip(replica_needs(replica), strip),
                                              .scan_only = true,
                                          }});
}

void replica_advance(struct replica *replica, int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    if (!evaluation->running || !replica->ready || replica->error ||
        replica->activity != ACTIVITY_NONE)
        return;
    /* Where all portions need the same, it is asked for as soon as the evaluation begins. */
    if (evaluation->fetch.plan == PLAN_NOTHING && !replica_plans_by_portion(replica)) {
        const struct fetch ahead = replica_plan(replica, NULL);
        replica_ask(replica, &ahead, out);
    }
    if (evaluation->fetch.plan != PLAN_NOTHING && evaluation->fetched != replica->shard_count)
        return;
    /* A flush that is due is made first, and may wait for a buffer. */
    evaluation->starved = must_flush(replica, now_ns) && !begin_flush(replica, out);
    if (evaluation->starved || replica->activity != ACTIVITY_NONE || !evaluation->portion_count)
        return;
    /* Computes the next portion, or gets what that takes. */
    const struct fetch fetch = replica_plan(replica, &evaluation->portions[0]);
    bool uses_rows = fetch.plan == PLAN_NOTHING || fetch.plan == PLAN_SCAN;
    if (uses_rows && !replica_copy_has(replica, &evaluation->portions[0]))
        return;
    if (fetch.plan == PLAN_NOTHING)
        start_portion(replica, now_ns, out);
    else if (fetch.plan == PLAN_SCAN)
        scan_portion(replica);
    else
        replica_ask(replica, &fetch, out);
}

void replica_timer(struct replica *replica, int64_t now_ns, struct outbox *out) {
    replica->now_ns = now_ns;
    replica_retry_shards(replica, out);
    replica_copy_timer(replica, out);
    replica_advance(replica, now_ns, out);
}
