/* One evaluation on a replica: fetch the point, compute portions, accrue, flush. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replica/state.h"

static bool is_current(struct replica *replica, uint32_t attempt, uint32_t number) {
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
        if (replica->activity == ACTIVITY_COMPUTING)
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
    return NULL;
}

/* Weights are listed for the kind that is over listed ones, and are those of the model. */
static const char *weights_fault(const struct replica *replica,
                                 const struct evaluation_parts *parts,
                                 const struct u64_list *weights) {
    const struct replica_setup *setup = &replica->setup;
    const struct layout_tensor *all = &setup->layout.tensor[0];
    bool wanted = setup->precondition == PRECONDITION_LISTED;
    bool listed = parts->items[0].kind == EVALUATION_LISTED;
    if (evaluation_sums(parts) == SUMS_TRIANGLE && listed != wanted)
        return "asked for curvature by other parameters than was set up for";
    if (weights->length > (listed ? setup->block_columns : 0))
        return "asked for more weights than was set up for";
    if (weights->length && weights->items[weights->length - 1] >= all->rows * all->columns)
        return "asked for weights that the model has not";
    return NULL;
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

void replica_on_evaluate(struct replica *replica, const struct message_evaluate *message,
                         int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    bool newer = message->attempt == replica->attempt &&
                 (!evaluation->running || evaluation->number < message->evaluation);
    if (!newer) {
        replica->counters.stale++;
        return;
    }
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
    if (fault) {
        replica_fail(replica, ERROR_INTERNAL, fault, out);
        return;
    }
    assert(!evaluation->running && !evaluation->accrual.count && !evaluation->portion_count);
    evaluation->running = true;
    evaluation->attempt = message->attempt;
    evaluation->number = message->evaluation;
    evaluation->parts = parts;
    evaluation->bounds = message->bounds;
    evaluation->sampling = (struct row_sampling){message->rate, message->floor, message->dice};
    keep_weights(&evaluation->weights, replica, &message->weights);
    accrual_clear(&evaluation->accrual, evaluation_totals(&evaluation->parts));
    replica_advance(replica, now_ns, out);
}

/* ---- the trial point ---- */

static void fetch(struct replica *replica, uint32_t shard, struct outbox *out) {
    const struct evaluation *evaluation = &replica->evaluation;
    replica_send(replica, replica->shards[shard].link,
                 &(struct message){.type = MESSAGE_FETCH,
                                   .fetch = {evaluation->attempt, evaluation->number}},
                 out);
}

/* Room for a point, and for a vector of rows. */
static void make_own_parameters(struct replica *replica) {
    if (replica->own_parameters)
        return;
    const struct sums_sizes *sizes = &replica->flushes.sizes;
    uint64_t rows = evaluation_sums_total(SUMS_ROWS, sizes);
    uint64_t most = sizes->parameters > rows ? sizes->parameters : rows;
    replica->own_parameters_bytes = most * sizeof(double);
    replica->own_parameters = memory_map(replica->own_parameters_bytes);
}

/* A shard's part of the point of the evaluation: of the parameters, or of a vector of rows. */
static struct range fetched_range(const struct replica *replica, uint32_t shard) {
    const struct range *range = &replica->ranges[shard];
    if (!parts_take_rows(&replica->evaluation.parts))
        return *range;
    struct sums_range rows =
        evaluation_sums_range(SUMS_ROWS, &replica->flushes.sizes, range->first, range->count);
    return (struct range){rows.first, rows.count};
}

/* With one shard the point is used where it lies. The parts of several shards are copied together.
 */
static void take_parameters(struct replica *replica, uint32_t shard, struct range range,
                            const struct bulk *bulk) {
    assert(shard < replica->shard_count && bulk->length == range.count * sizeof(double));
    if (replica->shard_count == 1) {
        kept_bulk_release(&replica->kept);
        bulk_keep(bulk, &replica->kept);
        replica->parameters = replica->kept.data;
        return;
    }
    make_own_parameters(replica);
    assert((range.first + range.count) * sizeof(double) <= replica->own_parameters_bytes);
    heartbeat_copy(replica->own_parameters + range.first, bulk->data, bulk->length);
    replica->parameters = replica->own_parameters;
}

/* The gradient of l2 by a tensor's weights, whose rows have these penalties, or 1; answers l2's
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
 */
static void point_from_kronecker(struct kronecker_point *point, const struct layout *layout,
                                 const struct column_scaling *columns, double l2, double *vector) {
    assert(point->set && point->kronecker);
    kronecker_apply(point->kronecker, point->work, vector);
    point->change = (struct objective_change){
        .kronecker = point->kronecker, .columns = columns, .pull = point->pull};
    for (uint32_t t = 0; t < layout->count; t++)
        if (layout->tensor[t].regularized)
            point->change.penalty +=
                penalise(&layout->tensor[t], t == 0 ? columns : NULL, l2, vector, point->pull);
}

/* Rows are computed with weights and biases. To be called when the whole point is here. What is no
 * point of parameters has no scale. */
static void point_from_scaled(struct replica *replica) {
    if (!replica->setup.scaled || parts_take_rows(&replica->evaluation.parts))
        return;
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

void replica_on_parameters(struct replica *replica, uint32_t shard, const struct message *message,
                           int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    struct shard_link *from = &replica->shards[shard];
    const struct message_parameters *parameters = &message->parameters;
    if (!is_current(replica, parameters->attempt, parameters->evaluation) &&
        !(mutant(DERIVATIVES_OF_OTHERS) && evaluation->running))
        return;
    if (!evaluation->asked || from->fetched) {
        replica->counters.stale++;
        return;
    }
    struct range range = fetched_range(replica, shard);
    if (parameters->first != range.first || parameters->count != range.count) {
        replica_fail(replica, ERROR_INTERNAL,
                     "a shard sent another range of the parameters than it has", out);
        return;
    }
    take_parameters(replica, shard, range, &message->bulk);
    from->fetched = true;
    /* A shard sends the point after it began this evaluation, and from then on reads no flush of an
     * earlier one. When all shards have sent it, the memory of those flushes is free. */
    if (++evaluation->fetched == replica->shard_count) {
        flush_pool_drop_others(&replica->flushes, evaluation->attempt, evaluation->number);
        point_from_scaled(replica);
    }
    replica_advance(replica, now_ns, out);
}

/* ---- portions ---- */

void replica_on_portion(struct replica *replica, const struct message_portion *message,
                        int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    if (!is_current(replica, message->attempt, message->evaluation))
        return;
    MEMORY_ROOM(evaluation->portions, evaluation->portion_count, evaluation->portion_capacity);
    evaluation->portions[evaluation->portion_count++] =
        (struct portion){{message->first, message->count}, message->flags};
    evaluation->resting = false;
    replica_advance(replica, now_ns, out);
}

void replica_on_rest(struct replica *replica, const struct message_rest *message, int64_t now_ns,
                     struct outbox *out) {
    if (!is_current(replica, message->attempt, message->evaluation))
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

static void start_portion(struct replica *replica, int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    assert(evaluation->portion_count && replica->activity == ACTIVITY_NONE && !replica->abandoned);
    assert(evaluation->fetched == replica->shard_count && replica->parameters);
    replica->computing = evaluation->portions[0];
    assert(!(replica->computing.flags & PORTION_SOLO) || !evaluation->accrual.count);
    evaluation->portion_count--;
    memmove(evaluation->portions, evaluation->portions + 1,
            evaluation->portion_count * sizeof *evaluation->portions);
    bool sums = sums_needed(evaluation) != SUMS_NONE;
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
                             .parts = evaluation->parts,
                             .point = (uint64_t)evaluation->attempt << 32 | evaluation->number,
                             .parameters = replica->parameters,
                             .change = replica->kronecker.used ? &replica->kronecker.change : NULL,
                             .bounds = evaluation->bounds,
                             .sampling = evaluation->sampling,
                             .weights = evaluation->weights,
                             .sums = sums,
                             .clear = clear,
                         }});
    if (!evaluation->portion_count && !(replica->computing.flags & PORTION_LAST))
        want(replica, out);
}

void replica_computed(struct replica *replica, const struct computed *computed, int64_t now_ns,
                      struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    bool wanted = !replica->abandoned;
    assert(replica->activity == ACTIVITY_COMPUTING && !replica->gathering);
    replica->activity = ACTIVITY_NONE;
    replica->abandoned = false;
    if (wanted && computed->error) {
        replica_fail(replica, computed->error, computed->reason, out);
        return;
    }
    if (wanted) {
        accrual_add(&evaluation->accrual, replica->computing.chunks, computed, replica->started_ns,
                    now_ns);
        evaluation->exceeded |= computed->exceeded;
        evaluation->flush_due |= (replica->computing.flags & (PORTION_SOLO | PORTION_LAST)) != 0;
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
                   replica->ready && !replica->error && !evaluation->starved;
    int64_t flush_ns = waiting ? evaluation->accrual.since_ns + replica->flush_ns : INT64_MAX;
    int64_t retry_ns = replica_retry_ns(replica);
    return flush_ns < retry_ns ? flush_ns : retry_ns;
}

static bool must_flush(const struct replica *replica, int64_t now_ns) {
    const struct evaluation *evaluation = &replica->evaluation;
    if (!evaluation->accrual.count)
        return false;
    bool idle = !evaluation->portion_count;
    return evaluation->flush_due || (idle && evaluation->resting) ||
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
    struct flush *flush = flush_start(&replica->flushes, &id, &evaluation->accrual, sums);
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
    replica_act(replica,
                &(struct action){.kind = ACTION_GATHER,
                                 .into = flush->buffer->start,
                                 .sums = evaluation_sums_total(sums, &replica->flushes.sizes)});
    return true;
}

/* The threads have added their sums into the flush's buffer and zeroed their own. If the evaluation
 * was abandoned meanwhile, the flush is dropped. */
void replica_gathered(struct replica *replica, int64_t now_ns, struct outbox *out) {
    bool wanted = !replica->abandoned;
    assert(replica->activity == ACTIVITY_GATHERING && replica->gathering);
    replica->activity = ACTIVITY_NONE;
    replica->abandoned = false;
    replica->sums_dirty = false;
    if (wanted) {
        const struct layout_tensor *bias = layout_input_bias(&replica->setup.layout);
        bool shards_scale = replica->setup.scaled && !replica->kronecker.used;
        if (shards_scale && replica->gathering->sums == SUMS_PARAMETERS && bias)
            flush_keep_biases(replica->gathering, bias->first, bias->columns);
        flush_encode(&replica->flushes, replica->gathering, replica->ranges,
                     replica->setup.layout.tensor[0].columns);
        stage(replica, replica->gathering, out);
    } else {
        flush_drop(&replica->flushes, replica->gathering);
    }
    replica->gathering = NULL;
    replica_advance(replica, now_ns, out);
}

void replica_on_staged(struct replica *replica, uint32_t shard,
                       const struct message_staged *message, struct outbox *out) {
    if (!is_current(replica, message->flush.attempt, message->flush.evaluation))
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
    if (evaluation->asked && !link->fetched)
        fetch(replica, shard, out);
    for (struct flush *flush = replica->flushes.first; flush; flush = flush->next)
        if (flush != replica->gathering && !flush->staged[shard] &&
            flush->id.attempt == evaluation->attempt && flush->id.evaluation == evaluation->number)
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

void replica_advance(struct replica *replica, int64_t now_ns, struct outbox *out) {
    struct evaluation *evaluation = &replica->evaluation;
    if (!evaluation->running || !replica->ready || replica->error ||
        replica->activity != ACTIVITY_NONE)
        return;
    if (!evaluation->asked) {
        /* Not while a thread computes: it may read the last point in the memory that the next point
         * will take, here or on the shard. */
        assert(replica->ready && replica->activity == ACTIVITY_NONE && !evaluation->fetched);
        evaluation->asked = true;
        for (uint32_t i = 0; i < replica->shard_count; i++) {
            replica->shards[i].fetched = false;
            fetch(replica, i, out);
        }
    }
    if (evaluation->fetched < replica->shard_count)
        return;
    evaluation->starved = must_flush(replica, now_ns) && !begin_flush(replica, out);
    if (evaluation->portion_count && !evaluation->starved && replica->activity == ACTIVITY_NONE)
        start_portion(replica, now_ns, out);
}

void replica_timer(struct replica *replica, int64_t now_ns, struct outbox *out) {
    replica->now_ns = now_ns;
    replica_retry_shards(replica, out);
    replica_advance(replica, now_ns, out);
}
