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

enum { TRIES_MAX = 20 };
#define RETRY_NS (500 * NS_PER_MS)

/* ---- releasing a set-up ---- */

static void forget_address(struct shard_link *shard) {
    free(shard->address);
    free(shard->local);
    free(shard->local_address);
}

static void forget_shards(struct replica *replica) {
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        if (replica->shards[i].link)
            replica_act(replica,
                        &(struct action){.kind = ACTION_CLOSE, .link = replica->shards[i].link});
        forget_address(&replica->shards[i]);
    }
    free(replica->shards);
    free(replica->ranges);
    free(replica->apart);
    replica->shards = NULL;
    replica->ranges = NULL;
    replica->apart = NULL;
    replica->shard_count = 0;
}

static void release_kronecker(struct kronecker_point *point) {
    kronecker_work_free(point->work);
    kronecker_free(point->kronecker);
    free(point->pull);
    *point = (struct kronecker_point){0};
}

static void release_work(struct replica *replica) {
    flush_pool_release(&replica->flushes);
    kept_bulk_release(&replica->kept);
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
    free((void *)replica->setup.finer.data);
    replica->setup = (struct replica_setup){0};
}

static void forget_columns(struct replica *replica) {
    free(replica->columns);
    free(replica->scaled.centred);
    free(replica->scaled.bias);
    free(replica->upper);
    replica->columns = NULL;
    replica->upper = NULL;
    replica->scaled = (struct scaled_rows){0};
    needs_release(&replica->needs);
    needs_release(&replica->of_few);
    free(replica->chunk_row);
    replica->chunk_row = NULL;
}

void replica_release_setup(struct replica *replica) {
    forget_columns(replica);
    release_kronecker(&replica->kronecker);
    forget_shards(replica);
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
                                               .description = identity->description}},
                 out);
}

static void greet(struct replica *replica, struct shard_link *shard, struct outbox *out) {
    shard->greeted = replica->ready = false;
    replica_send(replica, shard->link,
                 &(struct message){.type = MESSAGE_GREET,
                                   .greet = {.protocol = PROTOCOL_VERSION,
                                             .run = replica->run,
                                             .incarnation = replica->incarnation,
                                             .local = shard->local_address ? shard->local : ""}},
                 out);
}

/* The coordinator has given this replica a new incarnation: nothing that the former one computed
 * will be counted or asked for. The data set stays open. */
static void become_another(struct replica *replica, struct outbox *out) {
    replica_abandon(replica);
    flush_pool_forget(&replica->flushes, replica->gathering);
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        replica->shards[i].placed = false;
        greet(replica, &replica->shards[i], out);
    }
    replica->ready = false;
}

/* The same or a new coordinator greets this incarnation again, so what it computed still counts. It
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
            greet(replica, shard, out);
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
    welcome(replica, out);
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

static void check_ready(struct replica *replica, int64_t now_ns, struct outbox *out) {
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
           !strcmp(setup->scratch, message->scratch) && !strcmp(setup->device, message->device) &&
           !memcmp(&setup->loss, message->loss.data, sizeof setup->loss) &&
           layout_equal(&setup->layout, layout) && setup->activation == message->activation &&
           setup->precision == message->precision && setup->threads == message->threads &&
           setup->precondition == message->precondition &&
           setup->block_columns == message->block_columns && setup->rows == message->rows &&
           setup->strip_columns == message->strip_columns &&
           setup->scaled == message->coordinates && setup->unit == message->unit &&
           setup->l2 == message->l2 && same_blob(&setup->plugin, &message->plugin) &&
           same_blob(&setup->finer, &message->finer);
}

static void open_anew(struct replica *replica, const struct message_replica_setup *message,
                      const struct layout *layout) {
    forget_shards(replica);
    release_texts(replica);
    replica->opened = false;
    replica->error = 0;
    replica->device_failed = false;
    replica_computes_on(replica, "cpu");
    assert(!replica->shards && !replica->opened);
    replica->shard_count = message->shards;
    replica->shards = memory_new(message->shards, sizeof *replica->shards);
    replica->ranges = memory_new(message->shards, sizeof *replica->ranges);
    replica->apart = memory_new(message->shards, sizeof *replica->apart);
    replica->setup = (struct replica_setup){
        .set = memory_copy_string(message->set),
        .fingerprint = memory_copy_string(message->fingerprint),
        .objective = memory_copy_string(message->objective),
        .scratch = memory_copy_string(message->scratch),
        .device = memory_copy_string(message->device),
        .on_host = message->on_host,
        .layout = *layout,
        .activation = message->activation,
        .precision = message->precision,
        .threads = message->threads,
        .precondition = message->precondition,
        .block_columns = message->block_columns,
        .rows = message->rows,
        .strip_columns = message->strip_columns,
        .scaled = message->coordinates,
        .unit = message->unit,
        .l2 = message->l2,
        .plugin = copy_blob(&message->plugin),
        .finer = copy_blob(&message->finer),
    };
    memcpy(&replica->setup.loss, message->loss.data, sizeof replica->setup.loss);
    forget_columns(replica);
    release_kronecker(&replica->kronecker);
    replica->kronecker.used = objective_is_kronecker(layout);
    if (message->coordinates)
        replica->columns = memory_new(columns_of(replica), sizeof *replica->columns);
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

/* Pieces come in order, so the columns that are lacking are the last ones. */
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
    if (piece->count)
        memcpy(replica->columns + piece->first, message->bulk.data,
               piece->count * sizeof *replica->columns);
    replica->columns_set += piece->count;
    assert(replica->columns_set <= columns);
    check_ready(replica, now_ns, out);
}

/* NULL, or what is wrong with the factors. */
static const char *set_factors(struct kronecker_point *point, const struct layout *layout,
                               const struct bulk *factors) {
    bool used = point->used;
    if (!used || factors->length != kronecker_size(layout) * sizeof(double))
        return "factors came of other coordinates than there are";
    release_kronecker(point);
    point->used = used;
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
    const char *fault = set_factors(&replica->kronecker, &replica->setup.layout, &message->bulk);
    if (fault)
        replica_fail(replica, ERROR_INTERNAL, fault, out);
    else
        check_ready(replica, now_ns, out);
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
    check_ready(replica, now_ns, out);
}

void replica_connect_shard(struct replica *replica, uint32_t index) {
    struct shard_link *shard = &replica->shards[index];
    assert(index < replica->shard_count && shard->address && !shard->link);
    const char *address = shard->local_address ? shard->local_address : shard->address;
    replica->apart[index] = !address_is_unix(address);
    shard->connecting = true;
    replica_act(replica,
                &(struct action){.kind = ACTION_CONNECT, .shard = index, .address = address});
}

/* What a host of the same name lets nobody reach is asked for as on another host. */
static void give_local_up(struct shard_link *shard) {
    free(shard->local_address);
    shard->local_address = NULL;
}

/* Whether the replica is connected or connecting to this shard already. */
static bool is_there(const struct replica *replica, const struct message_shard_at *message) {
    const struct shard_link *shard = &replica->shards[message->index];
    const struct range *range = &replica->ranges[message->index];
    return (shard->link || shard->connecting) && shard->incarnation == message->incarnation &&
           !strcmp(shard->address, message->address) && !strcmp(shard->local, message->local) &&
           range->first == message->first && range->count == message->count;
}

/* What is known of a shard stays if it is the same incarnation, whose link is down now: its part of
 * the trial point must not be fetched again, over what threads compute with. Another incarnation
 * has begun no evaluation of this attempt. */
static void move_shard(struct replica *replica, const struct message_shard_at *message) {
    struct shard_link *shard = &replica->shards[message->index];
    struct range *range = &replica->ranges[message->index];
    bool same = shard->incarnation == message->incarnation && range->first == message->first &&
                range->count == message->count;
    bool fetched = replica->evaluation.asked && shard->fetched;
    bool met = same && shard->met;
    if (fetched && !same)
        replica_abandon(replica);
    if (shard->link)
        replica_act(replica, &(struct action){.kind = ACTION_CLOSE, .link = shard->link});
    forget_address(shard);
    *shard = (struct shard_link){
        .incarnation = message->incarnation,
        .address = memory_copy_string(message->address),
        .local = memory_copy_string(message->local),
        .local_address = *message->local ? local_address(message->local) : NULL,
        .met = met,
        .fetched = fetched && same,
    };
    *range = (struct range){message->first, message->count};
    replica_connect_shard(replica, message->index);
}

void replica_on_shard_at(struct replica *replica, const struct message_shard_at *message,
                         int64_t now_ns, struct outbox *out) {
    if (message->attempt != replica->attempt || message->index >= replica->shard_count) {
        replica->counters.stale++;
        return;
    }
    uint64_t n = layout_parameters(&replica->setup.layout);
    if (message->first > n || message->count > n - message->first) {
        replica_fail(replica, ERROR_INTERNAL, "the coordinator gave a shard a range beyond the end",
                     out);
        return;
    }
    if (!is_there(replica, message))
        move_shard(replica, message);
    replica->shards[message->index].placed = true;
    replica->ready = false;
    check_ready(replica, now_ns, out);
}

void replica_shard_missing(struct replica *replica, uint32_t index, int error, const char *reason,
                           struct outbox *out) {
    struct shard_link *shard = &replica->shards[index];
    assert(index < replica->shard_count);
    if (!shard->link && !mutant(LOCAL_KEPT))
        give_local_up(shard);
    char *text = memory_format("shard %u at %s: %s", index, shard->address, reason);
    if (shard->met || ++shard->tries < TRIES_MAX) {
        log_debug("%s", text);
        shard->retry_ns = replica->now_ns + RETRY_NS;
    } else {
        replica_fail(replica, error, text, out);
    }
    free(text);
}

void replica_retry_shards(struct replica *replica, struct outbox *out) {
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        struct shard_link *shard = &replica->shards[i];
        if (!shard->retry_ns || replica->now_ns < shard->retry_ns)
            continue;
        shard->retry_ns = 0;
        if (shard->link)
            greet(replica, shard, out);
        else
            replica_connect_shard(replica, i);
    }
}

int64_t replica_retry_ns(const struct replica *replica) {
    int64_t first_ns = INT64_MAX;
    for (uint32_t i = 0; i < replica->shard_count; i++)
        if (replica->shards[i].retry_ns && replica->shards[i].retry_ns < first_ns)
            first_ns = replica->shards[i].retry_ns;
    return first_ns;
}

void replica_connected(struct replica *replica, uint32_t index, uint32_t link, int error,
                       const char *reason, struct outbox *out) {
    struct shard_link *shard = index < replica->shard_count ? &replica->shards[index] : NULL;
    if (!shard || !shard->connecting) { /* a new set-up has come meanwhile */
        if (!error)
            replica_act(replica, &(struct action){.kind = ACTION_CLOSE, .link = link});
        return;
    }
    shard->connecting = false;
    shard->link = error ? 0 : link;
    shard->answered = (struct wanted_key){0};
    if (error && shard->local_address) {
        log_debug("shard %u is not reached within this host: %s", index, reason);
        give_local_up(shard);
        replica_connect_shard(replica, index);
    } else if (error) {
        replica_shard_missing(replica, index, error, reason, out);
    } else {
        greet(replica, shard, out);
    }
}

void replica_on_greeted(struct replica *replica, uint32_t index,
                        const struct message_greeted *message, int64_t now_ns, struct outbox *out) {
    struct shard_link *shard = &replica->shards[index];
    if (message->index != index || message->incarnation != shard->incarnation) {
        replica_shard_missing(replica, index, ERROR_UNAVAILABLE, "another shard answers there",
                              out);
        return;
    }
    bool again = shard->met;
    assert(shard->link && !shard->connecting);
    shard->greeted = shard->met = true;
    shard->tries = 0;
    shard->retry_ns = 0;
    if (again)
        replica_resume_shard(replica, index, out);
    check_ready(replica, now_ns, out);
}
