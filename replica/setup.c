/* A replica's handshake and set-up. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replica/state.h"
#include "wire/address.h"

/* ---- releasing a set-up ---- */

/* Work that is given up goes on for a while: until then threads read what they were given. */
static void release_after_work(struct replica *replica, void *memory,
                               void (*release)(void *memory)) {
    if (replica->activity == ACTIVITY_NONE) {
        release(memory);
        return;
    }
    MEMORY_ROOM(replica->deferred_frees, replica->deferred_count, replica->deferred_capacity);
    replica->deferred_frees[replica->deferred_count++] = (struct deferred_frees){memory, release};
}

static void release_factors(void *kronecker) {
    kronecker_free(kronecker);
}

static void release_kronecker(struct replica *replica) {
    struct kronecker_point *point = &replica->kronecker;
    kronecker_work_free(point->work);
    release_after_work(replica, point->kronecker, release_factors);
    release_after_work(replica, point->pull, free);
    *point = (struct kronecker_point){0};
}

static void release_work(struct replica *replica) {
    /* No thread is at work. */
    for (size_t i = 0; i < replica->deferred_count; i++)
        replica->deferred_frees[i].release(replica->deferred_frees[i].memory);
    free(replica->deferred_frees);
    replica->deferred_frees = NULL;
    replica->deferred_count = replica->deferred_capacity = 0;
    flush_pool_release(&replica->flushes);
    kept_bulk_release(&replica->kept);
    joined_release(&replica->joined);
    memory_unmap(replica->own_parameters, replica->own_parameters_bytes);
    replica->own_parameters = NULL;
    replica->parameters = NULL;
    assert(!replica->flushes.first);
    replica->gathering = NULL;
    replica->activity = ACTIVITY_NONE;
    replica->abandoned = false;
    replica->sums_dirty = false;
}

static void release_texts(struct replica *replica) {
    free((char *)replica->setup.set);
    free((char *)replica->setup.fingerprint);
    free((char *)replica->setup.objective);
    free((char *)replica->setup.scratch);
    free((char *)replica->setup.device);
    free((void *)replica->setup.plugin.data);
    free((void *)replica->setup.extra_bits.data);
    replica->setup = (struct replica_setup){0};
}

static void forget_needs(struct replica *replica, struct needs *needs) {
    release_after_work(replica, needs->columns, free);
    needs->columns = NULL;
    needs_release(needs);
}

static void forget_columns(struct replica *replica) {
    release_after_work(replica, replica->columns, free);
    free(replica->scaled.centred);
    release_after_work(replica, replica->scaled.bias, free);
    release_after_work(replica, replica->upper, free);
    replica->columns = NULL;
    replica->upper = NULL;
    replica->scaled = (struct scaled_rows){0};
    forget_needs(replica, &replica->needs);
    forget_needs(replica, &replica->of_few);
    free(replica->chunk_row);
    replica->chunk_row = NULL;
}

void replica_release_setup(struct replica *replica) {
    forget_columns(replica);
    release_kronecker(replica);
    replica_forget_shards(replica);
    replica_copy_release(&replica->copy);
    release_work(replica);
    release_texts(replica);
}

/* ---- handshake ---- */

/* Why a HELLO cannot be accepted; NULL if it can. */
static const char *check_hello(const struct replica *replica, uint64_t term,
                               const struct message_hello *hello) {
    if (hello->protocol != PROTOCOL_VERSION)
        return "this replica speaks another version of the protocol; use one build everywhere";
    if (hello->role != ROLE_REPLICA)
        return "this is a replica; the coordinator was told otherwise";
    if (term < replica->term && !mutant(NO_TERM_CHECK))
        return "this replica works for a later coordinator of the run";
    if (replica->run && strcmp(replica->run, hello->run))
        return "this replica works for another run";
    return NULL;
}

static void welcome(struct replica *replica, struct outbox *out) {
    const struct replica_identity *identity = &replica->identity;
    replica_send(replica, replica->coordinator,
                 &(struct message){.type = MESSAGE_WELCOME,
                                   .welcome = {.protocol = PROTOCOL_VERSION,
                                               .role = ROLE_REPLICA,
                                               .incarnation = replica->incarnation,
                                               .since = replica->since,
                                               .pid = identity->pid,
                                               .host = identity->host,
                                               .threads = identity->threads,
                                               .proof = identity->proof,
                                               .description = identity->description,
                                               .shares = replica->shares}},
                 out);
}

/* The coordinator has given this replica a new incarnation: nothing that the former one computed
 * will be counted or asked for. The data set stays open. */
static void become_another(struct replica *replica, struct outbox *out) {
    replica_abandon(replica);
    flush_pool_forget(&replica->flushes, replica->gathering);
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        replica->shards[i].placed = false;
        replica_greet(replica, &replica->shards[i], out);
    }
    replica->ready = false;
}

/* This coordinator or a new one greets this incarnation again, so what it computed still counts. It
 * is reported only after the set-up: before that the coordinator may not know where the run is, and
 * would ignore the report and wait for another. So no shard counts as placed: otherwise a link that
 * breaks and comes back before the set-up would make the replica ready. Shards that already know
 * the new term have ignored what was sent with the old one, and get it again now. */
static void take_up(struct replica *replica, struct outbox *out) {
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        struct shard_link *shard = &replica->shards[i];
        shard->placed = false;
        if (shard->greeted)
            replica_resume_shard(replica, i, out);
        else if (shard->link)
            replica_greet(replica, shard, out);
    }
    replica->returning = true;
    replica_lose_portions(replica);
    if (replica->error)
        replica_tell_failure(replica, out);
}

void replica_on_hello(struct replica *replica, uint32_t from, const struct message *message,
                      struct outbox *out) {
    const struct message_hello *hello = &message->hello;
    const char *why_not = check_hello(replica, message->term, hello);
    if (why_not) {
        outbox_add(out, from,
                   &(struct message){.type = MESSAGE_REFUSED,
                                     .term = message->term, /* else it would be ignored */
                                     .refused = {.reason = why_not}});
        return;
    }
    bool another = replica->run && hello->incarnation != replica->incarnation;
    if (another || !replica->run)
        replica->since = message->term;
    if (!replica->run)
        replica->run = memory_copy_string(hello->run);
    replica->term = message->term;
    replica->coordinator = from;
    replica->incarnation = hello->incarnation;
    replica->shares =
        !replica->identity.shares ||
        replica->identity.shares(replica->identity.context, hello->state, hello->holder);
    welcome(replica, out);
    replica_copy_forget_requests(replica);
    if (another)
        become_another(replica, out);
    else
        take_up(replica, out);
}

/* ---- set-up ---- */

/* A linear model has as many biases as outputs, and without biases as many weights a feature. */
struct sums_sizes replica_sums_sizes(const struct replica_setup *setup) {
    const struct layout_tensor *bias = layout_input_bias(&setup->layout);
    struct sums_sizes sizes =
        evaluation_sums_sizes(&setup->layout, setup->precondition, setup->block_columns);
    sizes.rows = setup->rows;
    if (setup->strip_columns)
        sizes.strip = layout_strip_most(&setup->layout, setup->strip_columns);
    if (setup->rows)
        sizes.outputs = (uint32_t)(bias ? bias->columns : setup->layout.tensor[0].columns);
    return sizes;
}

static uint64_t columns_of(const struct replica *replica) {
    return replica->setup.scaled ? replica->setup.layout.tensor[0].rows : 0;
}

void replica_check_ready(struct replica *replica, int64_t now_ns, struct outbox *out) {
    bool ready = replica->opened && replica->columns_set == columns_of(replica) &&
                 replica->kronecker.used == replica->kronecker.set;
    for (uint32_t i = 0; i < replica->shard_count; i++)
        ready &= replica->shards[i].placed && replica->shards[i].greeted;
    bool became = ready && !replica->ready;
    assert(!ready || replica->shard_count);
    replica->ready = ready;
    if (!became)
        return;
    replica_send(
        replica, replica->coordinator,
        &(struct message){.type = MESSAGE_READY, .ready = {replica->attempt, replica->device}},
        out);
    if (replica->returning)
        replica_resume_coordinator(replica, out);
    replica->returning = false;
    replica_copy_advance(replica, out);
    replica_advance(replica, now_ns, out);
}

static bool same_blob(const struct blob *a, const struct blob *b) {
    return a->length == b->length && (!a->length || !memcmp(a->data, b->data, a->length));
}

static struct blob copy_blob(const struct blob *blob) {
    void *copy = blob->length ? memory_new(blob->length, 1) : NULL;
    if (blob->length)
        memcpy(copy, blob->data, blob->length);
    return (struct blob){copy, blob->length};
}

/* Whether the replica has everything open already that the set-up asks for. */
static bool is_open(const struct replica *replica, const struct message_replica_setup *message,
                    const struct layout *layout) {
    const struct replica_setup *setup = &replica->setup;
    return replica->opened && !replica->error && replica->shard_count == message->shards &&
           !strcmp(setup->set, message->set) && !strcmp(setup->fingerprint, message->fingerprint) &&
           !strcmp(setup->objective, message->objective) &&
           !strcmp(setup->scratch, message->scratch) && setup->copied == !replica->shares &&
           !strcmp(setup->device, message->machine.device) &&
           !memcmp(&setup->loss, message->loss.data, sizeof setup->loss) &&
           layout_equal(&setup->layout, layout) && setup->activation == message->activation &&
           setup->precision == message->precision && setup->threads == message->machine.threads &&
           setup->precondition == message->hessian.precondition &&
           setup->block_columns == message->hessian.block_columns && setup->rows == message->rows &&
           setup->strip_columns == message->strip_columns &&
           setup->scaled == message->coordinates && setup->unit == message->unit &&
           setup->l2 == message->l2 && same_blob(&setup->plugin, &message->plugin) &&
           same_blob(&setup->extra_bits, &message->hessian.extra_bits);
}

static void open_anew(struct replica *replica, const struct message_replica_setup *message,
                      const struct layout *layout) {
    replica_forget_shards(replica);
    release_texts(replica);
    replica->opened = false;
    replica->error = 0;
    replica->device_failed = false;
    replica_computes_on(replica, "cpu");
    assert(!replica->shards && !replica->opened);
    replica->shard_count = message->shards;
    replica->shards = memory_new(message->shards, sizeof *replica->shards);
    replica->ranges = memory_new(message->shards, sizeof *replica->ranges);
    replica->remote = memory_new(message->shards, sizeof *replica->remote);
    replica->setup = (struct replica_setup){
        .set = memory_copy_string(message->set),
        .fingerprint = memory_copy_string(message->fingerprint),
        .objective = memory_copy_string(message->objective),
        .copied = !replica->shares,
        .scratch = memory_copy_string(message->scratch),
        .device = memory_copy_string(message->machine.device),
        .on_host = message->machine.on_host,
        .layout = *layout,
        .activation = message->activation,
        .precision = message->precision,
        .threads = message->machine.threads,
        .precondition = message->hessian.precondition,
        .block_columns = message->hessian.block_columns,
        .rows = message->rows,
        .strip_columns = message->strip_columns,
        .scaled = message->coordinates,
        .unit = message->unit,
        .l2 = message->l2,
        .plugin = copy_blob(&message->plugin),
        .extra_bits = copy_blob(&message->hessian.extra_bits),
    };
    memcpy(&replica->setup.loss, message->loss.data, sizeof replica->setup.loss);
    forget_columns(replica);
    release_kronecker(replica);
    replica->kronecker.used = objective_is_kronecker(layout);
    if (message->coordinates)
        replica->columns = memory_new(columns_of(replica), sizeof *replica->columns);
    replica_copy_release(&replica->copy);
    if (replica->setup.copied)
        replica_copy_begin(replica);
    else
        replica_act(replica, &(struct action){.kind = ACTION_OPEN_SET, .setup = replica->setup});
}

void replica_on_setup(struct replica *replica, const struct message_replica_setup *message) {
    if (message->attempt < replica->attempt) {
        replica->counters.stale++;
        return;
    }
    struct layout layout;
    const char *fault = layout_decode(message->layout.data, message->layout.length, &layout);
    assert(!fault); /* message_fault() has looked */
    bool open = is_open(replica, message, &layout);
    if (message->attempt != replica->attempt || !open)
        replica_abandon(replica);
    replica->attempt = message->attempt;
    replica->flush_ns = (int64_t)message->flush_ms * NS_PER_MS;
    replica->ready = false;
    if (!open)
        open_anew(replica, message, &layout);
    replica->columns_set = 0;
    replica->scaled.listed = false;
    replica->kronecker.set = false;
    for (uint32_t i = 0; i < replica->shard_count; i++)
        replica->shards[i].placed = false;
}

/* Pieces come in order, so the columns that are lacking are the last ones. Another coordinator says
 * the same again, while threads read it: then nothing is written. */
void replica_on_coordinates(struct replica *replica, const struct message *message, int64_t now_ns,
                            struct outbox *out) {
    const struct message_coordinates *piece = &message->coordinates;
    uint64_t columns = columns_of(replica);
    if (piece->attempt != replica->attempt || piece->first < replica->columns_set) {
        replica->counters.stale++;
        return;
    }
    if (piece->first > replica->columns_set || piece->count > columns - piece->first) {
        replica_fail(replica, ERROR_INTERNAL, "coordinates came of other columns than there are",
                     out);
        return;
    }
    struct column_scaling *own = replica->columns + piece->first;
    size_t bytes = piece->count * sizeof *own;
    if (bytes && memcmp(own, message->bulk.data, bytes))
        memcpy(own, message->bulk.data, bytes);
    replica->columns_set += piece->count;
    assert(replica->columns_set <= columns);
    replica_check_ready(replica, now_ns, out);
}

/* NULL, or what is wrong with the factors. Those that are here already stay, with the point that
 * they were applied to: another coordinator takes up an evaluation that goes on. */
static const char *set_factors(struct replica *replica, const struct bulk *factors) {
    struct kronecker_point *point = &replica->kronecker;
    const struct layout *layout = &replica->setup.layout;
    if (!point->used || factors->length != kronecker_size(layout) * sizeof(double))
        return "factors came of other coordinates than there are";
    if (point->kronecker && kronecker_is_of(point->kronecker, factors->data)) {
        point->set = true;
        return NULL;
    }
    if (point->kronecker && replica->evaluation.running)
        return "factors came that are not those of the evaluation";
    release_kronecker(replica);
    point->used = true;
    point->kronecker = kronecker_new(layout, (const double *)factors->data);
    if (!point->kronecker)
        return "factors came that are none";
    point->work = kronecker_work_new(point->kronecker);
    point->pull = memory_new(layout_parameters(layout), sizeof *point->pull);
    point->set = true;
    return NULL;
}

void replica_on_factors(struct replica *replica, const struct message *message, int64_t now_ns,
                        struct outbox *out) {
    if (message->factors.attempt != replica->attempt) {
        replica->counters.stale++;
        return;
    }
    const char *fault = set_factors(replica, &message->bulk);
    if (fault)
        replica_fail(replica, ERROR_INTERNAL, fault, out);
    else
        replica_check_ready(replica, now_ns, out);
}

/* Why a model cannot be computed in tiles, or NULL. */
static const char *tiles_fault(const struct replica_setup *setup) {
    const struct layout_tensor *weight = &setup->layout.tensor[0];
    bool linear = layout_find(&setup->layout, TENSOR_WEIGHT) == weight;
    if (!setup->strip_columns)
        return NULL;
    if (!linear && (!layout_upper(&setup->layout).count || objective_is_kronecker(&setup->layout)))
        return "set up for tiles of a model that has no first layer of its own";
    if (setup->plugin.length || setup->scaled)
        return "set up for tiles of a model of a plug-in, or of one that is scaled";
    if (setup->strip_columns >= weight->rows)
        return "set up for tiles of one strip";
    if (setup->precondition != PRECONDITION_NONE || !setup->rows)
        return "set up for tiles with a preconditioner, or without vectors of rows";
    return NULL;
}

void replica_opened(struct replica *replica, int error, const char *reason, int64_t now_ns,
                    struct outbox *out) {
    assert(!replica->opened);
    release_work(replica);
    const char *fault = tiles_fault(&replica->setup);
    if (error || fault) {
        replica_fail(replica, error ? error : ERROR_INTERNAL, error ? reason : fault, out);
        return;
    }
    struct sums_sizes sizes = replica_sums_sizes(&replica->setup);
    flush_pool_init(&replica->flushes, replica->shard_count, &sizes);
    replica->opened = true;
    replica_check_ready(replica, now_ns, out);
}
