/* Telling workers what they work on, and restoring shards. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/machine/machine.h"
#include "coordinator/driver.h"
#include "wire/address.h"
#include "wire/program.h"

static const int16_t *exponents_of(const struct coordinator *c) {
    return c->settings.exponents ? c->settings.exponents : c->settings.data->exponent;
}

static bool is_uniform(const struct coordinator *c) {
    return !c->settings.exponents && c->settings.data->uniform;
}

/* Base exponents that a shard's range touches, in pieces of bounded size. */
static void send_exponents(const struct coordinator *c, uint32_t link, uint64_t first,
                           uint64_t count, struct output *out) {
    assert(link < c->settings.shards && first + count <= c->parameters);
    const uint64_t piece = 1 << 20;
    const struct layout *layout = &c->settings.layout;
    uint64_t next = count ? layout_exponent_of(layout, first) : 0;
    uint64_t end = count ? layout_exponent_of(layout, first + count - 1) + 1 : next;
    while (next < end) {
        uint64_t exponents = end - next < piece ? end - next : piece;
        struct message message = {.type = MESSAGE_EXPONENTS};
        message.exponents = (struct message_exponents){
            .attempt = c->roster.attempt, .first = next, .count = exponents};
        message.bulk =
            (struct bulk){.data = exponents_of(c) + next, .length = exponents * sizeof(int16_t)};
        roster_send(&c->roster, link, message, out);
        next += exponents;
    }
}

/* The scaling of columns [first, end), in pieces of bounded size. */
static void send_scaling(const struct coordinator *c, uint32_t link, uint64_t first, uint64_t end,
                         struct output *out) {
    const struct column_scaling *columns = c->settings.scaling;
    assert(columns && end <= c->settings.layout.tensor[0].rows);
    const uint64_t piece = 1 << 17;
    while (first < end) {
        uint64_t count = end - first < piece ? end - first : piece;
        struct message message = {.type = MESSAGE_COORDINATES};
        message.coordinates = (struct message_coordinates){
            .attempt = c->roster.attempt, .first = first, .count = count};
        message.bulk =
            (struct bulk){.data = columns + first, .length = count * sizeof(struct column_scaling)};
        roster_send(&c->roster, link, message, out);
        first += count;
    }
}

/* Sends the squares of columns that are not scaled, in messages of a bounded size. */
static void send_squares(const struct coordinator *c, uint32_t link, uint64_t first, uint64_t end,
                         struct output *out) {
    assert(c->settings.squares && end <= c->settings.layout.tensor[0].rows);
    const uint64_t piece = 1 << 19;
    while (first < end) {
        uint64_t count = end - first < piece ? end - first : piece;
        struct message message = {.type = MESSAGE_SQUARES};
        message.squares =
            (struct message_squares){.attempt = c->roster.attempt, .first = first, .count = count};
        message.bulk =
            (struct bulk){.data = c->settings.squares + first, .length = count * sizeof(double)};
        roster_send(&c->roster, link, message, out);
        first += count;
    }
}

/* Sends the limits of columns, in messages of a bounded size. */
static void send_limits(const struct coordinator *c, uint32_t link, uint64_t first, uint64_t end,
                        struct output *out) {
    assert(c->settings.limits && end <= c->settings.layout.tensor[0].rows);
    const uint64_t piece = 1 << 17;
    while (first < end) {
        uint64_t count = end - first < piece ? end - first : piece;
        struct message message = {.type = MESSAGE_LIMITS};
        message.limits =
            (struct message_limits){.attempt = c->roster.attempt, .first = first, .count = count};
        bool shifted = c->roster.attempt > 1 && first && mutant(LIMITS_SHIFTED);
        message.bulk = (struct bulk){.data = c->settings.limits + first - shifted,
                                     .length = count * sizeof(struct column_limit)};
        roster_send(&c->roster, link, message, out);
        first += count;
    }
}

/* What a shard must know of the columns that its range touches. */
static void send_shard_columns(const struct coordinator *c, uint32_t link, uint64_t first,
                               uint64_t count, bool measured, bool limited, struct output *out) {
    const struct layout_tensor *weights = &c->settings.layout.tensor[0];
    uint64_t end = (first + count + weights->columns - 1) / weights->columns;
    assert(link < c->settings.shards && weights->columns > 0);
    if (end > weights->rows)
        end = weights->rows;
    first /= weights->columns;
    if (count && measured && c->settings.scaling)
        send_scaling(c, link, first, end, out);
    else if (count && measured)
        send_squares(c, link, first, end, out);
    if (count && limited)
        send_limits(c, link, first, end, out);
}

void setup_send_vector(const struct coordinator *c, uint32_t link, uint8_t register_,
                       const double *vector, struct output *out) {
    const uint64_t piece = 1 << 18;
    uint64_t first, count;
    assert(link < c->settings.shards && register_ < REGISTERS);
    coordinator_range(c, link, &first, &count);
    for (uint64_t sent = 0; sent < count; sent += piece) {
        uint64_t elements = count - sent < piece ? count - sent : piece;
        struct message message = {.type = MESSAGE_START};
        message.start = (struct message_start){.attempt = c->roster.attempt,
                                               .program = driver_next_program(c),
                                               .register_ = register_,
                                               .first = first + sent,
                                               .count = elements};
        message.bulk =
            (struct bulk){.data = vector + first + sent, .length = elements * sizeof(double)};
        roster_send(&c->roster, link, message, out);
    }
}

/* Whether shards are sent the start. One that restores a checkpoint has its vectors from there. */
static bool starts(const struct coordinator *c) {
    bool forgotten = c->roster.attempt > 1 && mutant(START_FORGOTTEN);
    return c->settings.start && !c->recovery.restoring && !forgotten;
}

/* Whether columns are scaled. With factors on top of that only replicas are told. */
static bool has_scaling(const struct coordinator *c) {
    bool forgotten = c->roster.attempt > 1 && mutant(SCALING_FORGOTTEN);
    return c->settings.scaling && !forgotten;
}

/* Whether a run needs what devices do not compute: tiles; of shards limits of columns; of replicas
 * the second derivatives of listed columns, those of outputs that act on each other though they
 * share their weights, and those of the errors of estimates. Such a worker
 * computes on the processor altogether. */
static bool is_of_processor(const struct coordinator *c, bool replica) {
    const struct optimizer_settings *settings = &c->settings.optimizer;
    if (!replica)
        return settings->limited;
    enum precondition form = settings->preconditioner.form;
    bool pairs = objective_of(c->settings.shape.kind)->second_sums != NULL;
    return c->settings.data->strip_columns || settings->summary != SUMMARY_NONE ||
           form == PRECONDITION_LISTED || (pairs && form != PRECONDITION_NONE);
}

/* The device of the job; the CPU instead of one that has failed on this worker, or that cannot. */
static const char *device_for(const struct coordinator *c, uint32_t link) {
    assert(link < coordinator_links(c));
    bool replica = link >= c->settings.shards;
    return is_of_processor(c, replica) || c->roster.members[link].device_failed
               ? "cpu"
               : c->settings.device;
}

/* A shard measures rows in as many threads as replicas have for it: they wait meanwhile. 0: as it
 * sees fit. */
static uint32_t shard_threads(const struct coordinator *c) {
    uint32_t share = c->settings.threads * c->settings.replicas / c->settings.shards;
    return !c->settings.threads ? 0 : share ? share : 1;
}

uint32_t setup_replica_threads(const struct coordinator *c, uint32_t link) {
    assert(link >= c->settings.shards);
    return c->settings.replica_threads ? c->settings.replica_threads[link - c->settings.shards]
                                       : c->settings.threads;
}

/* How many workers of its role come before it on its host: by that number it chooses among the
 * devices there. A shard that has moved may get the same device as another one. */
static uint32_t on_host(const struct coordinator *c, uint32_t link) {
    assert(link < coordinator_links(c));
    uint32_t index = c->roster.members[link].index;
    return c->settings.on_hosts ? index / c->settings.on_hosts : index;
}

/* What goes with SHARD_SETUP because it is too large for it. */
static void send_shard_data(const struct coordinator *c, uint32_t link,
                            const struct message_shard_setup *setup, struct output *out) {
    assert(setup->first + setup->count <= c->parameters);
    if (!setup->uniform || setup->hessian.precondition)
        send_exponents(c, link, setup->first, setup->count, out);
    send_shard_columns(c, link, setup->first, setup->count,
                       setup->scaling.coordinates || setup->scaling.measured, setup->box.limited,
                       out);
    if (setup->start)
        setup_send_vector(c, link, REGISTER_X, c->settings.start, out);
}

/* Whether gradients are taken apart into products, so that shards keep vectors of rows. */
static bool has_products(const struct coordinator *c) {
    return c->settings.optimizer.directions || c->settings.data->strip_columns;
}

/* The extra bits of sums for errors of estimates. */
static struct blob extra_bits_of(const struct coordinator *c) {
    const uint8_t *extra_bits = c->settings.extra_bits;
    uint64_t exponents = layout_exponents(&c->settings.layout);
    assert(!extra_bits || exponents <= PRECONDITION_PARAMETERS_MAX + 1);
    return (struct blob){extra_bits, extra_bits ? (uint32_t)exponents : 0};
}

/* What a shard must know of rows, where it keeps vectors of them. Those of a network in tiles are
 * of its first layer, and replicas find the losses. */
static void add_row_setup(const struct coordinator *c, struct message_shard_setup *setup) {
    const struct optimizer_settings *optimizer = &c->settings.optimizer;
    setup->rows.objective = "";
    if (!has_products(c))
        return;
    setup->rows.directions = optimizer->directions;
    setup->rows.total = set_vector_rows(c->settings.data);
    setup->rows.held = setup->rows.total - c->settings.data->rows;
    setup->rows.tiles = c->settings.data->strip_columns > 0;
    if (coordinator_has_upper(&c->settings)) {
        setup->rows.outputs = (uint32_t)c->settings.layout.tensor[0].columns;
    } else {
        setup->rows.outputs = optimizer->outputs;
        setup->rows.weighted = optimizer->weighted;
        setup->rows.offsets = optimizer->offsets;
        setup->rows.objective = objective_name(c->settings.shape.kind);
        assert(setup->rows.outputs == c->settings.shape.outputs);
    }
    setup->rows.loss =
        (struct blob){&c->settings.shape.loss, (uint32_t)sizeof c->settings.shape.loss};
    assert(setup->rows.total > 0 && setup->rows.outputs > 0);
}

void setup_shard(const struct coordinator *c, uint32_t link, struct output *out) {
    assert(link < c->settings.shards && c->roster.members[link].welcomed);
    const struct set_info *data = c->settings.data;
    const struct layout_tensor *bias = layout_input_bias(&c->settings.layout);
    uint64_t bias_number = bias ? bias->first_exponent : 0;
    bool preconditioned = c->settings.optimizer.preconditioner.form != PRECONDITION_NONE;
    uint64_t first, count;
    struct bytes layout;
    bytes_init(&layout);
    layout_encode(&c->settings.layout, &layout);
    char *folder = *c->settings.shards_folder
                       ? memory_format("%s/%u", c->settings.shards_folder, link)
                       : memory_copy_string("");
    coordinator_range(c, link, &first, &count);
    struct message message = {.type = MESSAGE_SHARD_SETUP};
    message.shard_setup = (struct message_shard_setup){
        .attempt = c->roster.attempt,
        .layout = {layout.data, (uint32_t)layout.length},
        .first = first,
        .count = count,
        .slots = c->settings.optimizer.memory + 2,
        .history_type = (uint8_t)c->settings.history_type,
        .weight_sum = data->weight_sum,
        .uniform = is_uniform(c),
        .uniform_exponent = data->uniform_exponent,
        .start = starts(c),
        .keeps_best = c->settings.optimizer.patience > 0,
        .hessian.precondition = (uint8_t)c->settings.optimizer.preconditioner.form,
        .hessian.block_columns = c->settings.optimizer.preconditioner.block_columns,
        .box.used = settings_boxed(&c->settings.optimizer),
        .box.limited =
            c->settings.optimizer.limited && !(c->roster.attempt > 1 && mutant(LIMITS_FORGOTTEN)),
        .adagrad = c->settings.downpour.epochs > 0,
        .scaling.coordinates = has_scaling(c) && !c->settings.factors,
        .scaling.measured = gap_by_columns(&c->settings.optimizer.gap),
        .scaling.bias_exponent =
            is_uniform(c) ? data->uniform_exponent : exponents_of(c)[bias_number],
        .scaling.block_bias_exponent = preconditioned ? exponents_of(c)[bias_number] : 0,
        .folder = folder,
        .machine.threads = shard_threads(c),
        .machine.on_host = on_host(c, link),
        .machine.device = device_for(c, link),
        .hessian.extra_bits = extra_bits_of(c),
    };
    add_row_setup(c, &message.shard_setup);
    roster_send(&c->roster, link, message, out);
    free(folder);
    bytes_release(&layout);
    send_shard_data(c, link, &message.shard_setup, out);
}

static void send_factors(const struct coordinator *c, uint32_t link, struct output *out) {
    assert(c->settings.factors && c->settings.factor_count > 0);
    struct message message = {.type = MESSAGE_FACTORS};
    message.factors.attempt = c->roster.attempt;
    message.bulk = (struct bulk){.data = c->settings.factors,
                                 .length = c->settings.factor_count * sizeof(double)};
    roster_send(&c->roster, link, message, out);
}

/* The secret of a shard is for replicas of its host. */
static const char *local_of(const struct coordinator *c, uint32_t shard, uint32_t link) {
    const char *const *replicas = c->settings.replica_addresses;
    const char *address = replicas ? replicas[link - c->settings.shards] : NULL;
    const char *there = c->settings.shard_addresses[shard];
    return address && there && address_same_host(address, there) ? c->roster.members[shard].local
                                                                 : "";
}

static void send_shard_addresses(const struct coordinator *c, uint32_t link, struct output *out) {
    uint64_t parameters = 0;
    for (uint32_t i = 0; i < c->settings.shards; i++) {
        uint64_t first, count;
        coordinator_range(c, i, &first, &count);
        struct message message = {.type = MESSAGE_SHARD_AT};
        message.shard_at = (struct message_shard_at){
            .attempt = c->roster.attempt,
            .index = i,
            .incarnation = c->roster.members[i].incarnation,
            .first = first,
            .count = count,
            .address = c->settings.shard_addresses[i],
            .local = local_of(c, i, link),
        };
        roster_send(&c->roster, link, message, out);
        parameters += count;
    }
    assert(parameters == c->parameters);
}

/* That of the shards, which take no other sums. */
static uint32_t block_of_replicas(const struct coordinator *c) {
    const struct preconditioner_settings *settings = &c->settings.optimizer.preconditioner;
    bool leading = settings->form == PRECONDITION_LEADING;
    bool other = leading && c->roster.attempt > 1 && mutant(OTHER_BLOCK);
    return settings->block_columns - other;
}

static void set_up_replica(const struct coordinator *c, uint32_t link, struct output *out) {
    assert(link >= c->settings.shards && link < coordinator_links(c));
    assert(c->roster.members[link].welcomed && !c->roster.members[link].introduced);
    const struct plugin_source *source = objective_source(&c->settings.shape);
    struct bytes layout, plugin;
    bytes_init(&layout);
    bytes_init(&plugin);
    if (source)
        plugin_source_encode(source, &plugin);
    layout_encode(&c->settings.layout, &layout);
    struct message message = {.type = MESSAGE_REPLICA_SETUP};
    message.replica_setup = (struct message_replica_setup){
        .attempt = c->roster.attempt,
        .set = c->settings.set_path,
        .fingerprint = c->settings.data->fingerprint,
        .objective = objective_name(c->settings.shape.kind),
        .loss = {&c->settings.shape.loss, sizeof c->settings.shape.loss},
        .layout = {layout.data, (uint32_t)layout.length},
        .activation = (uint8_t)c->settings.shape.network.activation,
        .precision = (uint8_t)c->settings.shape.network.precision,
        .unit = c->settings.shape.network.unit,
        .l2 = c->settings.l2_of_replicas,
        .shards = c->settings.shards,
        .machine.threads = setup_replica_threads(c, link),
        .flush_ms = c->settings.flush_ms,
        .scratch = c->settings.scratch,
        .machine.on_host = on_host(c, link),
        .machine.device = device_for(c, link),
        .hessian.precondition = (uint8_t)c->settings.optimizer.preconditioner.form,
        .hessian.block_columns = block_of_replicas(c),
        .coordinates = has_scaling(c),
        .rows = has_products(c) ? set_vector_rows(c->settings.data) : 0,
        .strip_columns = c->settings.data->strip_columns,
        .plugin = {plugin.data, (uint32_t)plugin.length},
        .hessian.extra_bits = extra_bits_of(c),
    };
    roster_send(&c->roster, link, message, out);
    bytes_release(&layout);
    bytes_release(&plugin);
    if (message.replica_setup.coordinates)
        send_scaling(c, link, 0, c->settings.layout.tensor[0].rows, out);
    if (c->settings.factors)
        send_factors(c, link, out);
    send_shard_addresses(c, link, out);
}

/* Replicas greet the shards that they are told of, and a shard refuses them before HELLO has told
 * it its run. So no replica hears of the shards before all of them have answered WELCOME. */
void setup_replicas(struct coordinator *c, struct output *out) {
    for (uint32_t i = 0; i < c->settings.shards; i++)
        if (!c->roster.members[i].welcomed)
            return;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++) {
        struct member *replica = &c->roster.members[i];
        if (replica->welcomed && !replica->introduced)
            set_up_replica(c, i, out);
        replica->introduced = replica->welcomed;
    }
}

void setup_forget_replicas(struct coordinator *c) {
    assert(c->phase == PHASE_SETTING_UP);
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        c->roster.members[i].introduced = c->roster.members[i].ready = false;
}

void setup_begin(struct coordinator *c, struct output *out) {
    assert(!c->dispatch.evaluation.running && !c->recovery.pending.running);
    c->phase = PHASE_SETTING_UP;
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        struct member *worker = &c->roster.members[i];
        worker->ready = worker->introduced = false;
        if (worker->role == ROLE_SHARD && worker->welcomed)
            setup_shard(c, i, out);
    }
    setup_replicas(c, out);
}

/* ---- workers that are ready, and the beginning ---- */

/* Whether the run does not begin without this worker. A replica that others start is not waited
 * for: its host may be down for the night. Nor is one on a host, which joins when it has opened the
 * data. One that this machine starts is there in a moment, unless it was lost. */
static bool is_waited_for(const struct coordinator *c, const struct member *worker) {
    assert(!worker->ready);
    if (mutant(REPLICA_AWAITED) || worker->role == ROLE_SHARD)
        return true;
    bool comes_soon = !c->settings.by_hand[1] && !worker->restarts;
    return !c->settings.on_hosts && (worker->welcomed || comes_soon);
}

/* All shards, all replicas that are waited for, and at least one replica must be ready. */
void setup_start_if_complete(struct coordinator *c, int64_t now_ns, struct output *out) {
    bool any = false;
    if (c->phase != PHASE_SETTING_UP)
        return;
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        const struct member *worker = &c->roster.members[i];
        if (!worker->ready && is_waited_for(c, worker))
            return;
        any |= worker->role == ROLE_REPLICA && worker->ready;
    }
    if (!any)
        return;
    assert(c->roster.attempt > 0 && !c->dispatch.evaluation.running);
    c->phase = PHASE_RUNNING;
    c->recovery.checkpoint_began_ns = now_ns;
    driver_start(c, now_ns, out);
}

static void restore_shard(const struct coordinator *c, uint32_t link, struct output *out) {
    assert(c->recovery.restoring && c->recovery.durable_count > 0 && link < c->settings.shards);
    struct message message = {.type = MESSAGE_RESTORE};
    message.restore = (struct message_restore){.attempt = c->roster.attempt,
                                               .step = c->recovery.durable[0].step,
                                               .digest = c->recovery.durable[0].digests[link]};
    roster_send(&c->roster, link, message, out);
}

/* Only a device is an event, the CPU is what everybody expects. */
void note_device(struct coordinator *c, uint32_t link, const char *device, struct output *out) {
    assert(link < coordinator_links(c));
    struct member *worker = &c->roster.members[link];
    if (!strcmp(worker->device, device))
        return;
    snprintf(worker->device, sizeof worker->device, "%s", device);
    output_worker(out, link, "running");
    if (strcmp(device, "cpu") != 0)
        output_event(out, "worker", "%s %u computes on %s", role_name(worker->role), worker->index,
                     worker->device);
}

int on_ready(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
             struct output *out) {
    assert(link < coordinator_links(c));
    struct member *worker = &c->roster.members[link];
    if (message->ready.attempt != c->roster.attempt || worker->ready || !worker->welcomed ||
        c->phase == PHASE_REJOINING) {
        c->stale++;
        return 0;
    }
    note_device(c, link, message->ready.device, out);
    if (worker->role == ROLE_SHARD && c->recovery.restoring) {
        restore_shard(c, link, out);
        return 0;
    }
    worker->ready = true;
    if (c->phase == PHASE_RUNNING && worker->role == ROLE_REPLICA)
        dispatch_join(&c->dispatch, link, now_ns, out);
    setup_start_if_complete(c, now_ns, out);
    return 0;
}

/* One shard cannot read its checkpoint: all go back to the one before, as their vectors must be of
 * the same step. But a checkpoint of another version is whole: going back would give it up, and the
 * one before is probably of that version, too. */
static int restore_older(struct coordinator *c, uint32_t link,
                         const struct message_restored *restored, struct output *out) {
    assert(restored->status && c->phase == PHASE_SETTING_UP);
    if (restored->status == (uint32_t)-ERROR_UNAVAILABLE)
        return error_set(ERROR_UNAVAILABLE, "shard %u cannot restore step %llu: %s", link,
                         (unsigned long long)restored->step, restored->reason);
    output_event(out, "checkpoint", "shard %u cannot restore step %llu: %s", link,
                 (unsigned long long)restored->step, restored->reason);
    if (c->recovery.durable_count < 2)
        return error_set(ERROR_DATA,
                         "shard %u cannot restore step %llu: %s; no other durable step is left: "
                         "put the file back, or start anew with --fresh",
                         link, (unsigned long long)restored->step, restored->reason);
    struct durable_step damaged = c->recovery.durable[0];
    c->recovery.durable[0] = c->recovery.durable[1];
    c->recovery.durable[1] = damaged;
    c->recovery.durable_count = 1;
    recovery_roll_back(c, "a damaged checkpoint", out);
    assert(c->recovery.restoring && c->recovery.durable_count == 1);
    return 0;
}

int on_restored(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
                struct output *out) {
    const struct message_restored *restored = &message->restored;
    assert(link < c->settings.shards);
    const struct member *shard = &c->roster.members[link];
    if (restored->attempt != c->roster.attempt || c->phase != PHASE_SETTING_UP || shard->ready ||
        !shard->welcomed) {
        c->stale++;
        return 0;
    }
    if (restored->status)
        return restore_older(c, link, restored, out);
    c->roster.members[link].ready = true;
    setup_start_if_complete(c, now_ns, out);
    return 0;
}
