/* How much of the time a cluster computes, by virtual time: the real state machines of coordinator,
 * shards and replicas with a model of what computing, sending and adding takes. doc/SCALE.md says
 * what the model is, and what came out.
 *
 *     efficiency REPLICAS SHARDS PARAMETERS COMPUTE_S [NAME=VALUE]...
 *
 * Prints a line of JSON. The vectors of the machines have a few elements; times are as if they had
 * PARAMETERS. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "bench/tiny_data.h"
#include "bench/virtual.h"
#include "coordinator/machine/machine.h"
#include "numeric/setup.h"
#include "replica/compute.h"
#include "replica/replica.h"
#include "shard/shard.h"

enum { EVALUATIONS_WARM = 3, EVALUATIONS = 3 };

#define TICK_NS 100e6

enum { ALARM_TICK, ALARM_WORKED, ALARM_DEADLINE };

/* What can be set on the command line. Times of processors are as measured: see doc/SCALE.md. */
static struct parameter {
    const char *name;
    double value;
} table[] = {
    {"gigabits", 10},    /* of a host's link, in either direction */
    {"latency_us", 100}, /* one way */
    {"spread", 0.1},     /* (slowest − fastest) / mean of the replicas */
    {"chunks", 1000},    /* a replica's */
    {"flush_ms", 1000},  /* as the job says */
    {"message_us", 10},  /* the coordinator's, to receive or to send one */
    {"fold_us", 1},      /* the same of one to or from a shard: they come together */
    {"worker_us", 10},   /* the same of a worker */
    {"stream_ns", 1.4},  /* a byte through TLS, at either end */
    {"fold_ns", 2},      /* an element folded */
    {"gather_ns", 1},    /* an element put together on a replica */
    {"program_ns", 20},  /* an element of a shard, in both programs of a step */
    {"backup", 1},       /* backup copies */
    {"own_hosts", 0},    /* shards have hosts of their own */
};

static double value_of(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name))
            return table[i].value;
    fprintf(stderr, "efficiency: there is no %s\n", name);
    exit(64);
}

static struct {
    uint32_t replicas, shards;
    double parameters, compute_ns, chunk_ns;
    double slice; /* elements of a shard */
    double message_ns, fold_message_ns, worker_ns, stream_ns, fold_ns, gather_ns, program_ns;
} model;

static struct {
    struct coordinator *machine;
    struct output out;
    const char **addresses;
    uint32_t evaluations;
    double began_ns, began_worked_ns;
    uint64_t began_messages, began_copies, flushes;
} self;

struct replica_state {
    struct replica *machine;
    char host[24];
    double slowness;
    struct objective_scratch *scratch;
    int64_t sums[TINY_FEATURES + 1];
    struct action action;
    uint64_t work; /* what an alarm is for */
    bool stopped;
    double deadline_ns;
    double computed_ns; /* in all */
};

/* ---- what bulk stands for ---- */

static double bulk_bytes(const struct envelope *envelope) {
    bool vector = envelope->type == MESSAGE_PARAMETERS || envelope->type == MESSAGE_STAGE;
    return vector ? model.slice * sizeof(double) : (double)envelope->bulk.length;
}

/* Those of a message that a process puts through TLS, unless the other end is on its host. */
static double streamed(const struct virtual_process *process, uint32_t other,
                       enum message_type type) {
    bool vector = type == MESSAGE_PARAMETERS || type == MESSAGE_STAGE;
    return vector && network.processes[other].host != process->host ? model.slice * sizeof(double)
                                                                    : 0;
}

/* What it costs a worker to send what is in its outbox. */
static void spend_on_sending(struct virtual_process *process) {
    double ns = 0;
    for (size_t i = 0; i < process->out.count; i++) {
        const struct envelope *envelope = &process->out.envelopes[i];
        ns += model.worker_ns + model.stream_ns * streamed(process, envelope->to, envelope->type);
    }
    virtual_spend(process, ns);
}

static void answer_ping(struct virtual_process *process, uint32_t from,
                        const struct message *ping) {
    outbox_add(
        &process->out, from,
        &(struct message){.type = MESSAGE_PONG, .term = ping->term, .pong = {ping->ping.number}});
}

/* ---- shards ---- */

static double shard_cost(struct virtual_process *process, const struct message *message) {
    double ns = model.worker_ns;
    if (message->type == MESSAGE_STAGE)
        ns += model.stream_ns * model.slice * sizeof(double);
    if (message->type == MESSAGE_FOLD)
        ns += model.fold_ns * model.slice;
    if (message->type == MESSAGE_PROGRAM)
        ns += model.program_ns * model.slice / 2;
    (void)process;
    return ns;
}

/* Links of a shard and of a replica are numbers of processes + 1; the coordinator's are those of
 * processes − 1. */
static void from_links(struct outbox *out) {
    for (size_t i = 0; i < out->count; i++)
        out->envelopes[i].to--;
}

static void on_shard_message(struct virtual_process *process, uint32_t from,
                             const struct message *message) {
    struct shard_action action;
    if (message->type == MESSAGE_PING) {
        answer_ping(process, from, message);
    } else {
        shard_step(process->state, from + 1, message, (int64_t)network.now_ns, &process->out);
        while (shard_next_action(process->state, &action))
            fprintf(stderr, "efficiency: a shard has something to do on disk\n");
        from_links(&process->out);
    }
    spend_on_sending(process);
    virtual_send(process);
}

static const struct virtual_role shard_role = {.cost = shard_cost, .message = on_shard_message};

/* ---- replicas ---- */

static double replica_cost(struct virtual_process *process, const struct message *message) {
    (void)process;
    return model.worker_ns + (message->type == MESSAGE_PARAMETERS
                                  ? model.stream_ns * model.slice * sizeof(double)
                                  : 0);
}

static void compute(struct replica_state *replica, struct computed *computed) {
    const struct computation *computation = &replica->action.computation;
    const struct objective_scale scale = {.uniform = tiny.info.uniform_exponent,
                                          .bounds = computation->bounds};
    const struct kernel_place place = {.shape = &tiny.shape,
                                       .scale = &scale,
                                       .parameters = computation->parameters,
                                       .sums = computation->sums ? replica->sums : NULL,
                                       .scratch = replica->scratch};
    for (uint32_t i = 0; i < computation->count && !replica->stopped; i++) {
        uint32_t chunk = computation->first + i;
        kernel_run(&place, &computation->parts, chunk, &tiny.row[chunk % TINY_PATTERNS], computed);
    }
    computed->stopped = replica->stopped;
}

static void after_replica(struct virtual_process *process);

static void on_worked(struct virtual_process *process) {
    struct replica_state *replica = process->state;
    struct computed computed;
    computed_init(&computed, &replica->action.computation.parts);
    compute(replica, &computed);
    replica->work++;
    replica_computed(replica->machine, &computed, (int64_t)network.now_ns, &process->out);
    after_replica(process);
}

static void start_computing(struct virtual_process *process, const struct action *action) {
    struct replica_state *replica = process->state;
    double takes_ns = action->computation.count * model.chunk_ns * replica->slowness;
    replica->action = *action;
    replica->stopped = false;
    replica->computed_ns += takes_ns;
    if (action->computation.clear)
        memset(replica->sums, 0, sizeof replica->sums);
    virtual_alarm(process, network.now_ns + takes_ns, ALARM_WORKED + ((++replica->work) << 8));
}

static void stop_computing(struct virtual_process *process) {
    struct replica_state *replica = process->state;
    replica->stopped = true;
    virtual_alarm(process, network.now_ns, ALARM_WORKED + ((++replica->work) << 8));
}

static void gather(struct virtual_process *process, const struct action *action) {
    struct replica_state *replica = process->state;
    memcpy(action->into, replica->sums, action->sums * sizeof *replica->sums);
    memset(replica->sums, 0, sizeof replica->sums);
    virtual_spend(process, model.gather_ns * model.parameters);
    self.flushes++;
    replica_gathered(replica->machine, (int64_t)network.now_ns, &process->out);
}

static void carry_out(struct virtual_process *process, const struct action *action) {
    struct replica_state *replica = process->state;
    int64_t now_ns = (int64_t)network.now_ns;
    if (action->kind == ACTION_OPEN_SET)
        replica_opened(replica->machine, 0, "", now_ns, &process->out);
    else if (action->kind == ACTION_CONNECT)
        replica_connected(replica->machine, action->shard, action->shard + 2, 0, "", &process->out);
    else if (action->kind == ACTION_COMPUTE)
        start_computing(process, action);
    else if (action->kind == ACTION_STOP)
        stop_computing(process);
    else if (action->kind == ACTION_GATHER)
        gather(process, action);
}

static void after_replica(struct virtual_process *process) {
    struct replica_state *replica = process->state;
    struct action action;
    int64_t now_ns = (int64_t)network.now_ns;
    while (replica_next_action(replica->machine, &action))
        carry_out(process, &action);
    if (now_ns >= replica_deadline_ns(replica->machine))
        replica_timer(replica->machine, now_ns, &process->out);
    while (replica_next_action(replica->machine, &action))
        carry_out(process, &action);
    int64_t deadline_ns = replica_deadline_ns(replica->machine);
    if (deadline_ns != INT64_MAX && (double)deadline_ns != replica->deadline_ns) {
        replica->deadline_ns = (double)deadline_ns;
        virtual_alarm(process, replica->deadline_ns, ALARM_DEADLINE);
    }
    from_links(&process->out);
    spend_on_sending(process);
    virtual_send(process);
}

static void on_replica_message(struct virtual_process *process, uint32_t from,
                               const struct message *message) {
    struct replica_state *replica = process->state;
    if (message->type == MESSAGE_PING) {
        answer_ping(process, from, message);
        virtual_send(process);
        return;
    }
    replica_step(replica->machine, from + 1, message, (int64_t)network.now_ns, &process->out);
    after_replica(process);
}

static void on_replica_alarm(struct virtual_process *process, uint64_t what) {
    const struct replica_state *replica = process->state;
    if (what == ALARM_DEADLINE)
        after_replica(process);
    else if (what >> 8 == replica->work)
        on_worked(process);
}

static const struct virtual_role replica_role = {
    .cost = replica_cost, .message = on_replica_message, .alarm = on_replica_alarm};

/* ---- the coordinator ---- */

static double coordinator_cost(struct virtual_process *process, const struct message *message) {
    (void)process;
    return message->type == MESSAGE_FOLDED ? model.fold_message_ns : model.message_ns;
}

static double worked_by(uint32_t first, uint32_t count) {
    double most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = fmax(most, network.processes[first + i].worked_ns);
    return most;
}

static void report(void) {
    const struct virtual_process *coordinator = &network.processes[0];
    double ns = (network.now_ns - self.began_ns) / EVALUATIONS;
    printf("{\"replicas\": %" PRIu32 ", \"shards\": %" PRIu32 ", \"parameters\": %.0f, "
           "\"compute_s\": %g, \"evaluation_s\": %.4f, \"efficiency\": %.4f, "
           "\"messages\": %.0f, \"flushes\": %.0f, \"coordinator_busy\": %.3f, "
           "\"shard_busy\": %.3f, \"copies\": %.0f}\n",
           model.replicas, model.shards, model.parameters, model.compute_ns / 1e9, ns / 1e9,
           model.compute_ns / ns, (double)(network.messages - self.began_messages) / EVALUATIONS,
           (double)self.flushes / EVALUATIONS,
           (coordinator->worked_ns - self.began_worked_ns) / (ns * EVALUATIONS),
           worked_by(1, model.shards) / network.now_ns,
           (double)(self.machine->dispatch.backup_copies - self.began_copies) / EVALUATIONS);
    network.over = true;
}

/* The machine counts its few parameters until it has divided them among shards. */
static void note_evaluation(void) {
    self.machine->parameters = (uint64_t)model.parameters;
    self.evaluations++;
    if (self.evaluations == EVALUATIONS_WARM) {
        self.began_ns = network.now_ns;
        self.began_worked_ns = network.processes[0].worked_ns;
        self.began_messages = network.messages;
        self.began_copies = self.machine->dispatch.backup_copies;
        self.flushes = 0;
    } else if (self.evaluations == EVALUATIONS_WARM + EVALUATIONS) {
        report();
    }
}

static void after_step(struct virtual_process *process, int code) {
    if (code) {
        fprintf(stderr, "efficiency: %s\n", error_text());
        exit(70);
    }
    for (uint32_t i = 0; i < self.out.record_count; i++) {
        if (self.out.records[i].kind == RECORD_EVALUATION)
            note_evaluation();
        if (self.out.records[i].kind == RECORD_START) {
            fputs("efficiency: a worker was lost\n", stderr);
            exit(70);
        }
    }
    struct outbox *messages = &self.out.messages;
    for (size_t i = 0; i < messages->count; i++) {
        struct message copy;
        const char *why;
        const struct envelope *envelope = &messages->envelopes[i];
        if (message_decode(envelope->type, outbox_body(messages, envelope), envelope->body_length,
                           &copy, &why))
            exit(70);
        copy.term = envelope->term;
        copy.bulk = envelope->bulk;
        outbox_add(&process->out, envelope->to + 1, &copy);
        virtual_spend(process,
                      copy.type == MESSAGE_FOLD ? model.fold_message_ns : model.message_ns);
        virtual_send(process); /* each when it is its turn */
    }
    output_clear(&self.out);
}

static void on_coordinator_message(struct virtual_process *process, uint32_t from,
                                   const struct message *message) {
    after_step(process, coordinator_step(self.machine, from - 1, message, (int64_t)network.now_ns,
                                         &self.out));
}

static void on_tick(struct virtual_process *process, uint64_t what) {
    virtual_alarm(process, network.now_ns + TICK_NS, what);
    after_step(process, coordinator_tick(self.machine, (int64_t)network.now_ns, &self.out));
}

static const struct virtual_role coordinator_role = {
    .cost = coordinator_cost, .message = on_coordinator_message, .alarm = on_tick};

static void start_coordinator(void) {
    struct virtual_process *process = &network.processes[0];
    self.addresses = memory_new(model.shards, sizeof *self.addresses);
    for (uint32_t i = 0; i < model.shards; i++)
        self.addresses[i] = "unix:/shard";
    self.machine = coordinator_new(&(struct coordinator_settings){
        .optimizer = {.memory = 5, .bias_scale = 1, .steps_max = 1000},
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
    output_init(&self.out);
    coordinator_begin(self.machine, 0, &self.out);
    for (uint32_t i = 0; i < model.shards + model.replicas; i++)
        coordinator_opened(self.machine, i, 0, &self.out);
    virtual_alarm(process, TICK_NS, ALARM_TICK);
    after_step(process, 0);
}

/* ---- life ---- */

static void make_shard(struct virtual_process *process, uint32_t index) {
    process->role = &shard_role;
    process->host =
        1 + (value_of("own_hosts") != 0 ? model.replicas + index : index % model.replicas);
    process->state =
        shard_new(&(struct shard_self){.pid = 1, .host = "shard", .description = "bench"});
}

static void make_replica(struct virtual_process *process, uint32_t index) {
    struct replica_state *replica = memory_new(1, sizeof *replica);
    process->role = &replica_role;
    process->host = 1 + index;
    process->state = replica;
    snprintf(replica->host, sizeof replica->host, "host-%" PRIu32, index);
    replica->slowness = 1 + value_of("spread") * ((double)(index * 7919 % 101) / 100 - 0.5);
    replica->scratch = objective_scratch_new(&tiny.shape);
    replica->machine = replica_new(&(struct replica_identity){
        .pid = 1, .threads = 1, .host = replica->host, .description = "bench"});
}

static void read_arguments(int argc, char **argv) {
    for (int i = 5; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (equals)
            *equals = '\0';
        value_of(argv[i]);
        for (size_t j = 0; j < sizeof table / sizeof *table; j++)
            if (!strcmp(table[j].name, argv[i]) && equals)
                table[j].value = strtod(equals + 1, NULL);
    }
    model.replicas = (uint32_t)strtoul(argv[1], NULL, 10);
    model.shards = (uint32_t)strtoul(argv[2], NULL, 10);
    model.parameters = strtod(argv[3], NULL);
    model.compute_ns = strtod(argv[4], NULL) * 1e9;
    model.chunk_ns = model.compute_ns / value_of("chunks");
    model.slice = model.parameters / model.shards;
    model.message_ns = value_of("message_us") * 1e3;
    model.fold_message_ns = value_of("fold_us") * 1e3;
    model.worker_ns = value_of("worker_us") * 1e3;
    model.stream_ns = value_of("stream_ns");
    model.fold_ns = value_of("fold_ns");
    model.gather_ns = value_of("gather_ns");
    model.program_ns = value_of("program_ns");
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fputs("Usage: efficiency REPLICAS SHARDS PARAMETERS COMPUTE_S [NAME=VALUE]...\n", stderr);
        return 64;
    }
    numeric_setup();
    read_arguments(argc, argv);
    tiny_make(model.replicas * (uint32_t)value_of("chunks"));
    virtual_init(1 + model.shards + model.replicas, 1 + model.shards + model.replicas);
    network.bytes_a_ns = value_of("gigabits") / 8;
    network.latency_ns = value_of("latency_us") * 1e3;
    network.bulk_bytes = bulk_bytes;
    network.processes[0].role = &coordinator_role;
    for (uint32_t i = 0; i < model.shards; i++)
        make_shard(&network.processes[1 + i], i);
    for (uint32_t i = 0; i < model.replicas; i++)
        make_replica(&network.processes[1 + model.shards + i], i);
    start_coordinator();
    virtual_run();
    return network.over ? 0 : 70;
}
