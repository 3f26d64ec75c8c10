/* How much of the time a cluster computes, by virtual time: the real state machines of coordinator,
 * shards and replicas with a model of what computing, sending and adding takes. doc/SCALE.md says
 * what the model is, and what came out.
 *
 *     efficiency REPLICAS SHARDS PARAMETERS COMPUTE_S [NAME=VALUE]...
 *
 * Prints a line of JSON. The vectors of the machines have a few elements; bytes and times are as if
 * they had PARAMETERS, and vectors of rows as many as `rows` says. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "bench/efficiency_model.h"
#include "bench/tiny_data.h"
#include "coordinator/machine/machine.h"
#include "numeric/setup.h"
#include "objective/halves.h"
#include "replica/compute.h"
#include "replica/state.h"
#include "shard/shard.h"
#include "tests/cluster/decoded.h"
#include "tests/cluster/host.h"
#include "tests/cluster/network.h"
#include "wire/program.h"

enum { EVALUATIONS_WARM = 3, EVALUATIONS = 2, DIRECTIONS = 10 };

#define TICK_NS 100e6
#define LOCAL_NS 20e3      /* between processes of one host, which share memory */
#define HEADER_BYTES 120.0 /* of a frame, and of packets */
#define RANGE_ELEMENTS 4   /* of a shard */
#define BULKY_BYTES 4096.0 /* smaller messages do not wait behind others: packets take turns */

enum { ALARM_TICK, ALARM_WORKED, ALARM_DEADLINE };

/* The coordinator, then shards, then replicas. */
static struct world world;

/* A host sends and receives with the same bandwidth, both at once. */
static struct {
    double bytes_a_ns, latency_ns;
    struct host_load {
        double sending_ns, receiving_ns; /* until when it does so */
        double sent_bytes;
    } * hosts;
    uint64_t messages;
} network;

static struct {
    struct coordinator *machine;
    struct output out;
    const char **addresses;
    uint32_t evaluations, turn; /* messages of this turn so far */
    double began_ns, began_worked_ns, began_passes, began_bytes;
    uint64_t began_messages, began_copies, flushes;
} self;

struct shard_state {
    struct worker_host host;
    struct shard *machine;
    double staged_ns; /* to fold what is staged */
    uint32_t staged;  /* flushes that are */
};

struct replica_state {
    struct worker_host host;
    struct replica *machine;
    char host_name[24];
    double slowness;
    struct objective_scratch *scratch, *last_scratch; /* the other one: of the last strip */
    struct sums_sizes sizes;
    int64_t *sums; /* by columns or by rows: room for the most */
    struct action action;
    uint64_t work; /* what an alarm is for */
    bool stopped;
    int64_t deadline_ns;
};

/* ---- the network ---- */

static uint32_t listed(const struct blob *flushes) {
    return flushes->length / FLUSH_ID_BYTES;
}

static bool is_bulky(enum message_type type) {
    return type == MESSAGE_PARAMETERS || type == MESSAGE_STAGE;
}

static double bytes_of(const struct parcel *parcel) {
    double bulk = 0;
    if (is_bulky(parcel->type)) {
        struct message message =
            decoded_body(parcel->type, parcel->term, parcel->body, parcel->length);
        bulk = bulk_of(&message).bytes;
    }
    return HEADER_BYTES + (double)parcel->length + bulk;
}

/* Until when a host is at it, of which it is not free before `free_ns`. */
static double pass(double *free_ns, double at_ns, double bytes) {
    double done_ns =
        (bytes > BULKY_BYTES ? fmax(*free_ns, at_ns) : at_ns) + bytes / network.bytes_a_ns;
    if (bytes > BULKY_BYTES)
        *free_ns = done_ns;
    return done_ns;
}

static double sent(const struct process *from, const struct process *to,
                   const struct parcel *parcel, double at_ns) {
    double bytes = bytes_of(parcel);
    network.messages++;
    if (to->host == from->host)
        return at_ns + LOCAL_NS;
    network.hosts[from->host].sent_bytes += bytes;
    double left_ns = pass(&network.hosts[from->host].sending_ns, at_ns, bytes);
    return left_ns - bytes / network.bytes_a_ns + network.latency_ns;
}

static double received(const struct process *from, const struct process *to,
                       const struct parcel *parcel) {
    double *free_ns = &network.hosts[to->host].receiving_ns;
    return to->host == from->host ? 0 : pass(free_ns, world.exact_ns, bytes_of(parcel));
}

/* What it costs a worker to send what is in its outbox, and to put it through TLS unless the other
 * end is on its host. */
static void send_all(struct process *process, struct worker_host *host) {
    double ns = 0;
    for (size_t i = 0; i < host->out.count; i++) {
        const struct envelope *envelope = &host->out.envelopes[i];
        bool far = network_peer(process, envelope->to)->host != process->host;
        ns += model.worker_ns;
        if (far && is_bulky(envelope->type)) {
            struct message message = decoded(&host->out, envelope);
            ns += bulk_of(&message).send_ns;
        }
    }
    world_spend(process, ns);
    worker_host_drain(process, host);
}

/* ---- shards ---- */

static double worker_cost(const struct process *process, enum message_type type) {
    (void)process;
    return type == MESSAGE_PING ? -1 : model.worker_ns;
}

/* What comes with a message, in the loop of who gets it. */
static void spend_on_bulk(struct process *process, uint32_t from, const struct message *message) {
    if (network_peer(process, from)->host != process->host)
        world_spend(process, bulk_of(message).receive_ns);
}

/* Answers what it would have taken to fold them. */
static double forget_staged(struct shard_state *shard, uint32_t flushes) {
    uint32_t gone = flushes < shard->staged ? flushes : shard->staged;
    double ns = gone ? shard->staged_ns * gone / shard->staged : 0;
    shard->staged -= gone;
    shard->staged_ns -= ns;
    return ns;
}

/* A FOLD adds those of its flushes that are here. */
static void spend_on_folds(struct process *process, uint32_t flushes) {
    struct shard_state *shard = process->state;
    world_spend(process, forget_staged(shard, flushes));
}

static void on_shard_message(struct process *process, uint32_t from,
                             const struct message *message) {
    struct shard_state *shard = process->state;
    struct shard_action action;
    spend_on_bulk(process, from, message);
    if (message->type == MESSAGE_PING)
        world_spend(process, model.worker_ns); /* to send PONG */
    if (message->type == MESSAGE_PROGRAM)
        world_spend(process, program_ns(&message->program));
    if (message->type == MESSAGE_STAGE) {
        shard->staged_ns += stage_fold_ns(&message->stage);
        shard->staged++;
    }
    if (message->type == MESSAGE_FOLD)
        spend_on_folds(process, listed(&message->fold.flushes));
    if (message->type == MESSAGE_DROP)
        forget_staged(shard, listed(&message->drop.flushes));
    if (worker_host_takes(process, &shard->host, from, message))
        return;
    shard_step(shard->machine, from, message, world.now_ns, &shard->host.out);
    while (shard_next_action(shard->machine, &action))
        fprintf(stderr, "efficiency: a shard has something to do on disk\n");
    send_all(process, &shard->host);
}

static void begin_shard(struct process *process) {
    struct shard_state *shard = process->state = memory_new(1, sizeof *shard);
    uint32_t index = process->number - 1;
    process->host =
        1 + (value_of("own_hosts") != 0 ? model.replicas + index : index % model.replicas);
    shard->machine =
        shard_new(&(struct shard_self){.pid = 1, .host = "shard", .description = "bench"});
    worker_host_init(&shard->host);
}

static const struct behaviour shard_behaviour = {
    .begin = begin_shard, .message = on_shard_message, .cost = worker_cost};

/* ---- replicas ---- */

static void compute(struct replica_state *replica, struct computed *computed) {
    const struct computation *computation = &replica->action.computation;
    const struct objective_shape shape =
        objective_strip(&tiny.shape, tiny.info.strip_columns, computation->strip);
    const struct objective_scale scale = {.uniform = tiny.info.uniform_exponent,
                                          .bounds = computation->bounds};
    bool last = computation->strip + 1 == model.strips;
    const struct kernel_place place = {.shape = &shape,
                                       .scale = &scale,
                                       .parameters = computation->parameters,
                                       .first_number = computation->first_number,
                                       .sizes = &replica->sizes,
                                       .sums = computation->sums ? replica->sums : NULL,
                                       .scratch = last ? replica->last_scratch : replica->scratch};
    for (uint32_t i = 0; i < computation->count && !replica->stopped; i++) {
        uint32_t tile = computation->first + i;
        struct rows rows = tiny_rows(tile % tiny.info.chunks, computation->strip);
        int code = kernel_run(&place, &computation->parts, tile, &rows, computed);
        computed->error = computed->error ? computed->error : code;
    }
    computed->stopped = replica->stopped;
}

static void after_replica(struct process *process);

static void on_worked(struct process *process) {
    struct replica_state *replica = process->state;
    struct computed computed;
    computed_init(&computed, &replica->action.computation.parts);
    compute(replica, &computed);
    replica->work++;
    replica_computed(replica->machine, &computed, world.now_ns, &replica->host.out);
    after_replica(process);
}

static void make_sums(struct replica_state *replica) {
    replica->sums = memory_map(evaluation_sums_most(&replica->sizes) * sizeof(int64_t));
}

static void start_computing(struct process *process, const struct action *action) {
    struct replica_state *replica = process->state;
    /* A kind that needs no point reads a number of each row and multiplies nothing. */
    bool reads = kind_row(action->computation.parts.items[0].kind)->point == POINT_NONE;
    double takes_ns = action->computation.count * model.chunk_ns * replica->slowness;
    takes_ns = reads ? takes_ns / 10 : takes_ns;
    replica->action = *action;
    replica->stopped = false;
    if (action->computation.clear) {
        memory_unmap(replica->sums, evaluation_sums_most(&replica->sizes) * sizeof(int64_t));
        make_sums(replica);
    }
    world_alarm_exact(process, world.exact_ns + takes_ns, ALARM_WORKED + ((++replica->work) << 8));
}

static void stop_computing(struct process *process) {
    struct replica_state *replica = process->state;
    replica->stopped = true;
    world_alarm_exact(process, world.exact_ns, ALARM_WORKED + ((++replica->work) << 8));
}

static void gather(struct process *process, const struct action *action) {
    struct replica_state *replica = process->state;
    double scale = sums_scale(replica->machine->evaluation.number);
    int64_t *sums = action->into;
    memcpy(sums, replica->sums + action->first, action->sums * sizeof *sums);
    for (uint64_t i = 0; i < action->sums; i++)
        sums[i] = sums[i] ? sums[i] : 1; /* all are there, if hardly: `share` tells how many */
    memset(replica->sums + action->first, 0, action->sums * sizeof *replica->sums);
    world_spend(process, model.gather_ns * (double)action->sums * scale);
    self.flushes++;
    replica_gathered(replica->machine, NULL, world.now_ns, &replica->host.out);
}

static void connect_shard(struct process *process, uint32_t shard) {
    struct replica_state *replica = process->state;
    uint32_t link;
    network_connect(process, &world.processes[1 + shard], &link);
    replica_connected(replica->machine, shard, link, 0, "", &replica->host.out);
}

/* Sparse rows would need columns of many chunks: `needs` stands for them. */
static void open_set(struct replica_state *replica, const struct replica_setup *setup,
                     int64_t now_ns) {
    uint64_t *first = memory_new((size_t)tiny.info.chunks + 1, sizeof *first);
    for (uint32_t i = 0; i <= tiny.info.chunks; i++)
        first[i] = (uint64_t)i * tiny.rows;
    if (setup->rows)
        replica_rows_of_chunks(replica->machine, first, tiny.info.chunks);
    free(first);
    replica->sizes = replica_sums_sizes(setup);
    make_sums(replica);
    replica_opened(replica->machine, 0, "", now_ns, &replica->host.out);
}

static void carry_out(struct process *process, const struct action *action) {
    struct replica_state *replica = process->state;
    int64_t now_ns = world.now_ns;
    if (action->kind == ACTION_OPEN_SET)
        open_set(replica, &action->setup, now_ns);
    else if (action->kind == ACTION_CONNECT)
        connect_shard(process, action->shard);
    else if (action->kind == ACTION_COMPUTE)
        start_computing(process, action);
    else if (action->kind == ACTION_STOP)
        stop_computing(process);
    else if (action->kind == ACTION_GATHER)
        gather(process, action);
}

static void after_replica(struct process *process) {
    struct replica_state *replica = process->state;
    struct action action;
    int64_t now_ns = world.now_ns;
    while (replica_next_action(replica->machine, &action))
        carry_out(process, &action);
    if (now_ns >= replica_deadline_ns(replica->machine))
        replica_timer(replica->machine, now_ns, &replica->host.out);
    while (replica_next_action(replica->machine, &action))
        carry_out(process, &action);
    int64_t deadline_ns = replica_deadline_ns(replica->machine);
    if (deadline_ns != NEVER_NS && deadline_ns != replica->deadline_ns) {
        replica->deadline_ns = deadline_ns;
        world_alarm(process, deadline_ns, ALARM_DEADLINE);
    }
    send_all(process, &replica->host);
}

static void on_replica_message(struct process *process, uint32_t from,
                               const struct message *message) {
    struct replica_state *replica = process->state;
    spend_on_bulk(process, from, message);
    if (message->type == MESSAGE_EVALUATE)
        note_kind(&message->evaluate);
    if (worker_host_takes(process, &replica->host, from, message))
        return;
    replica_step(replica->machine, from, message, world.now_ns, &replica->host.out);
    after_replica(process);
}

static void on_replica_alarm(struct process *process, uint64_t what) {
    const struct replica_state *replica = process->state;
    if (what == ALARM_DEADLINE)
        after_replica(process);
    else if (what >> 8 == replica->work)
        on_worked(process);
}

static void begin_replica(struct process *process) {
    struct replica_state *replica = process->state = memory_new(1, sizeof *replica);
    uint32_t index = process->number - 1 - model.shards;
    process->host = 1 + index;
    snprintf(replica->host_name, sizeof replica->host_name, "host-%" PRIu32, index);
    replica->slowness = 1 + value_of("spread") * ((double)(index * 7919 % 101) / 100 - 0.5);
    const struct objective_shape first = objective_strip(&tiny.shape, tiny.info.strip_columns, 0);
    const struct objective_shape last =
        objective_strip(&tiny.shape, tiny.info.strip_columns, model.strips - 1);
    replica->scratch = objective_scratch_new(&first);
    replica->last_scratch = objective_scratch_new(&last);
    replica->machine = replica_new(&(struct replica_identity){
        .pid = 1, .threads = 1, .host = replica->host_name, .description = "bench"});
    worker_host_init(&replica->host);
}

static const struct behaviour replica_behaviour = {.begin = begin_replica,
                                                   .message = on_replica_message,
                                                   .alarm = on_replica_alarm,
                                                   .cost = worker_cost};

/* ---- the coordinator ---- */

static double coordinator_cost(const struct process *process, enum message_type type) {
    (void)process;
    if (type == MESSAGE_PONG)
        return -1;
    return type == MESSAGE_FOLDED ? model.fold_message_ns : model.message_ns;
}

static double worked_by(uint32_t first, uint32_t count) {
    double most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = fmax(most, world.processes[first + i].worked_ns);
    return most;
}

/* Of tiles two evaluations, of products and of a gradient, are one pass. */
static double passes(void) {
    return (double)self.machine->dispatch.evaluations / (model.strips > 1 ? 2 : 1);
}

static double sent_bytes(void) {
    double bytes = 0;
    for (uint32_t i = 0; i <= model.replicas; i++)
        bytes += network.hosts[i].sent_bytes;
    return bytes;
}

static void report(void) {
    const struct process *coordinator = &world.processes[0];
    double done = passes() - self.began_passes;
    double ns = (world.exact_ns - self.began_ns) / done;
    printf("{\"replicas\": %" PRIu32 ", \"shards\": %" PRIu32 ", \"strips\": %" PRIu32
           ", \"parameters\": %.0f, "
           "\"compute_s\": %g, \"evaluation_s\": %.4f, \"efficiency\": %.4f, "
           "\"messages\": %.0f, \"flushes\": %.0f, \"host_mb\": %.3f, \"coordinator_busy\": %.3f, "
           "\"shard_busy\": %.3f, \"copies\": %.0f}\n",
           model.replicas, model.shards, model.strips, model.parameters, model.compute_ns / 1e9,
           ns / 1e9, model.compute_ns / ns, (double)(network.messages - self.began_messages) / done,
           (double)self.flushes / done,
           (sent_bytes() - self.began_bytes) / done / model.replicas / 1e6,
           (coordinator->worked_ns - self.began_worked_ns) / (ns * done),
           worked_by(1, model.shards) / world.exact_ns,
           (double)(self.machine->dispatch.backup_copies - self.began_copies) / done);
    world.over = true;
}

/* An evaluation, or of tiles a step. */
static void note_evaluation(void) {
    self.evaluations++;
    if (self.evaluations == EVALUATIONS_WARM) {
        self.began_ns = world.exact_ns;
        self.began_passes = passes();
        self.began_worked_ns = world.processes[0].worked_ns;
        self.began_messages = network.messages;
        self.began_bytes = sent_bytes();
        self.began_copies = self.machine->dispatch.backup_copies;
        self.flushes = 0;
    } else if (self.evaluations == EVALUATIONS_WARM + EVALUATIONS) {
        report();
    }
}

static double fold_cost(size_t bytes) {
    return model.fold_message_ns + model.id_ns * (double)(bytes / FLUSH_ID_BYTES);
}

/* What comes while it is busy is one turn of its loop: its output goes out at the end. */
static void after_step(struct process *process, int code) {
    if (code) {
        fprintf(stderr, "efficiency: %s\n", error_text());
        exit(70);
    }
    bool more = world_more_waits(process) && value_of("lists") != 0;
    if (output_may_wait(&self.out) && more && ++self.turn < model.replicas + model.shards)
        return;
    self.turn = 0;
    coordinator_end_turn(self.machine, &self.out);
    for (uint32_t i = 0; i < self.out.record_count; i++) {
        if (self.out.records[i].kind == (model.strips > 1 ? RECORD_STEP : RECORD_EVALUATION))
            note_evaluation();
        if (self.out.records[i].kind == RECORD_START) {
            fputs("efficiency: a worker was lost\n", stderr);
            exit(70);
        }
    }
    const struct outbox *messages = &self.out.messages;
    for (size_t i = 0; i < messages->count; i++) {
        const struct envelope *envelope = &messages->envelopes[i];
        bool lists = envelope->type == MESSAGE_FOLD || envelope->type == MESSAGE_DROP;
        world_spend(process, lists ? fold_cost(envelope->body_length) : model.message_ns);
        network_send(process, envelope->to + 1, messages, envelope); /* each when it is its turn */
    }
    output_clear(&self.out);
}

static void on_coordinator_message(struct process *process, uint32_t from,
                                   const struct message *message) {
    if (message->type == MESSAGE_FOLDED)
        world_spend(process, model.id_ns * listed(&message->folded.flushes));
    after_step(process, coordinator_step(self.machine, from - 1, message, world.now_ns, &self.out));
}

static void on_tick(struct process *process, uint64_t what) {
    world_alarm_exact(process, world.exact_ns + TICK_NS, what);
    after_step(process, coordinator_tick(self.machine, world.now_ns, &self.out));
}

/* Its link i is link i + 1 of the network. */
static void begin_coordinator(struct process *process) {
    uint32_t link;
    self.addresses = memory_new(model.shards, sizeof *self.addresses);
    for (uint32_t i = 0; i < model.shards; i++)
        self.addresses[i] = "tls:shard:1";
    self.machine = coordinator_new(&(struct coordinator_settings){
        .optimizer = {.memory = 5,
                      .bias_scale = 1,
                      .steps_max = 1000,
                      .outputs = 1,
                      .directions = model.strips > 1 ? DIRECTIONS : 0},
        .shape = tiny.shape,
        .layout = objective_layout(&tiny.shape),
        .data = &tiny.info,
        .set_path = "/set",
        .run = "run",
        .term = 1,
        .shards = model.shards,
        .replicas = model.replicas,
        .threads = 1,
        .backup_copies = value_of("backup") != 0,
        .flush_ms = (uint32_t)value_of("flush_ms"),
        .shard_addresses = self.addresses,
        .shards_folder = "",
        .checkpoint_ns = INT64_MAX,
        .restarts_max = 0,
    });
    /* As of the model that it stands for. */
    self.machine->dispatch.settings.parameters = (uint64_t)(model.parameters / model.strips);
    output_init(&self.out);
    coordinator_begin(self.machine, 0, &self.out);
    for (uint32_t i = 0; i < model.shards + model.replicas; i++) {
        network_connect(process, &world.processes[1 + i], &link);
        coordinator_opened(self.machine, i, 0, &self.out);
    }
    world_alarm_exact(process, TICK_NS, ALARM_TICK);
    after_step(process, 0);
}

static const struct behaviour coordinator_behaviour = {.begin = begin_coordinator,
                                                       .message = on_coordinator_message,
                                                       .alarm = on_tick,
                                                       .cost = coordinator_cost};

/* ---- life ---- */

/* As few columns as will do, each shard some of them, and a few blocks of rows. */
static void make_data(void) {
    uint32_t chunks = model.replicas * (uint32_t)value_of("chunks") / model.strips;
    uint32_t columns = (model.shards * RANGE_ELEMENTS + model.strips - 1) / model.strips;
    uint32_t rows = model.strips > 1 ? (4 * model.shards * ROW_BLOCK + chunks - 1) / chunks : 1;
    tiny_make(chunks ? chunks : 1, rows, model.strips, columns);
    model.column_scale = model.parameters / (double)tiny.shape.features;
    model.row_scale = model.rows / (double)tiny.info.rows;
}

static void make_network(void) {
    static const struct pace pace = {sent, received};
    uint32_t processes = 1 + model.shards + model.replicas;
    network.bytes_a_ns = value_of("gigabits") / 8;
    network.latency_ns = value_of("latency_us") * 1e3;
    network.hosts = memory_new(processes, sizeof *network.hosts);
    world_init(&world, 0, processes);
    network_pace(world.network, &pace);
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fputs("Usage: efficiency REPLICAS SHARDS PARAMETERS COMPUTE_S [NAME=VALUE]...\n", stderr);
        return 64;
    }
    numeric_setup();
    model_read(argc, argv);
    make_data();
    make_network();
    for (uint32_t i = world.process_count; i-- > 0;) {
        world.processes[i].behaviour = i > model.shards ? &replica_behaviour
                                       : i              ? &shard_behaviour
                                                        : &coordinator_behaviour;
        sim_process_begin(&world.processes[i]);
    }
    world_run(&world, NEVER_NS);
    return world.over ? 0 : 70;
}
