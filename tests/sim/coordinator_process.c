/* The I/O shell of the simulated coordinator, as coordinator/run/cluster_loop.c is that of the real
 * one: carries out records before it sends messages, starts workers anew, and keeps time. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/machine/coordinator.h"
#include "coordinator/machine/copies.h"
#include "coordinator/machine/hosts.h"
#include "tests/sim/cluster.h"
#include "tests/cluster/decoded.h"
#include "tests/cluster/network.h"
#include "tests/sim/copies.h"
#include "tests/sim/outcome.h"
#include "wire/program.h"

enum { ALARM_TICK, ALARM_TURN, ALARM_COPY, ALARM_START };

#define TICK_NS (100 * NS_PER_MS)
#define TURN_NS NS_PER_MS
#define RETRY_NS (500 * NS_PER_MS)
#define RESTARTS_MAX 10

struct worker_link {
    uint32_t connection; /* the network's number for it; 0: none */
    int64_t start_ns;    /* when it is to be started anew; 0: not */
    int64_t give_up_ns;  /* when a worker that a supervisor starts counts as lost for good */
    uint32_t replica;    /* that is in this place, by index, if the cluster is elastic */
    uint32_t leaves;     /* the connection of a replica that has left, to be closed; 0: none */
    bool hangs;          /* its start on a mute host was begun; it is given up at start_ns */
};

struct coordinator_process {
    uint64_t term;
    struct coordinator *machine;
    struct copies *copies;
    struct copies_action copying; /* the action that is under way on the disk */
    bool copies_now;
    struct output out;
    struct hosts hosts; /* none: workers are started on its own */
    struct worker_link links[SIM_WORKERS_MAX];
    bool cancelled;
    uint32_t follows; /* whether the next look at the names is for those that leave */
};

/* Of shards on other hosts than the replicas', and of those that share memory with them. */
static const char *const addresses_apart[] = {"host:0", "host:1", "host:2", "host:3"};
static const char *const addresses_here[] = {"unix:0", "unix:1", "unix:2", "unix:3"};
static const char *const replica_addresses[] = {"host:4", "other:5", "host:6", "other:7"};

/* ---- records ---- */

/* Replaces a start that is still to come. */
static void start_soon(struct process *process, uint32_t number, int64_t delay_ns) {
    struct coordinator_process *self = process->state;
    self->links[number].start_ns = process->world->now_ns + delay_ns;
    world_alarm(process, self->links[number].start_ns, ALARM_START + number);
}

/* A coordinator whose lock was lost cannot commit to what has become another's database. */
static bool owns_store(const struct process *process) {
    const struct coordinator_process *self = process->state;
    return self->term == cluster_of(process)->store.term;
}

/* Of a record that a later coordinator goes on from. */
static void note_stored(struct process *process, const struct record *record) {
    const struct coordinator_process *self = process->state;
    struct tally *tally = &cluster_of(process)->tally;
    bool to_step = record->kind == RECORD_ROLL_BACK && !record->roll_back.to_start;
    if (record->kind == RECORD_ATTEMPT)
        world_say(process->world, "attempt %u is in force", record->attempt);
    if (record->kind == RECORD_DURABLE_STEP)
        world_say(process->world, "step %llu is durable", (unsigned long long)record->durable.step);
    tally->steps_durable += record->kind == RECORD_DURABLE_STEP;
    tally->to_starts += record->kind == RECORD_ROLL_BACK && !to_step;
    tally->to_steps += to_step;
    tally->common_back += to_step && cluster_of(process)->job->optimizer.directions;
    tally->into_downpour += to_step && coordinator_view(self->machine).downpour.running;
    if (record->kind == RECORD_ROLL_BACK)
        outcome_undo(process, record);
}

static int store_record(struct process *process, const struct record *record) {
    const struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    if (!owns_store(process))
        return error_set(ERROR_AGAIN, "the database is another coordinator's");
    note_stored(process, record);
    return virtual_store_record(&cluster->store, record, self->out.blobs.data,
                                cluster->shape.shards);
}

static struct process *worker_at(struct process *process, uint32_t number) {
    const struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    bool elastic = cluster->shape.elastic && number >= cluster->shape.shards;
    return elastic ? cluster_replica(cluster, self->links[number].replica)
                   : cluster_worker(cluster, number);
}

static void note_left(struct process *process, uint32_t number) {
    struct coordinator_process *self = process->state;
    struct tally *tally = &cluster_of(process)->tally;
    self->links[number].start_ns = 0;
    self->links[number].leaves = self->links[number].connection;
    tally->left++;
    tally->left_at_work += coordinator_view(self->machine).evaluation.running;
}

/* What was sent to a replica that has left is on its way. */
static void close_left(struct process *process) {
    struct coordinator_process *self = process->state;
    for (uint32_t i = 0; i < coordinator_links(self->machine); i++) {
        struct worker_link *link = &self->links[i];
        if (!link->leaves)
            continue;
        network_close(process, link->leaves);
        link->connection = link->leaves = 0;
    }
}

/* A worker of a host is started where and when `hosts` says. */
static int restart_worker(struct process *process, const struct record *record) {
    struct coordinator_process *self = process->state;
    uint32_t number = record->start.link;
    int64_t now_ns = process->world->now_ns;
    cluster_of(process)->tally.restarts++;
    copies_lost(self->copies, number);
    self->links[number].give_up_ns = 0;
    self->links[number].hangs = false;
    int64_t when_ns =
        self->hosts.count ? hosts_failed(&self->hosts, number, record->start.why, now_ns) : now_ns;
    if (when_ns == INT64_MAX)
        return error_set(ERROR_UNAVAILABLE, "no host is left");
    if (cluster_of(process)->shape.elastic && !record->start.met)
        when_ns += 4 * RETRY_NS;
    start_soon(process, number, when_ns - now_ns + world_delay(process->world, 20 * NS_PER_MS));
    return 0;
}

static void note_worker(struct process *process, uint32_t number) {
    struct coordinator_process *self = process->state;
    if (self->hosts.count && coordinator_worker(self->machine, number).welcomed)
        hosts_worker_up(&self->hosts, number, process->world->now_ns);
}

static bool is_stored(const struct record *record) {
    return record->kind <= RECORD_ROLL_BACK;
}

static int take_record(struct process *process, const struct record *record) {
    if (is_stored(record))
        return store_record(process, record);
    if (record->kind == RECORD_START)
        return restart_worker(process, record);
    if (record->kind == RECORD_LEFT)
        note_left(process, record->left);
    else if (record->kind == RECORD_WORKER)
        note_worker(process, record->worker.link);
    else if (!owns_store(process))
        return 0;
    else
        outcome_take(process, record);
    return 0;
}

static bool is_collected(const struct record *record) {
    return record->kind == RECORD_JOURNAL || record->kind == RECORD_ROLL_BACK;
}

static int carry_out(struct process *process) {
    struct coordinator_process *self = process->state;
    bool commit = false;
    int code = 0;
    for (uint32_t i = 0; i < self->out.record_count && !code && process_acts(process); i++) {
        code = take_record(process, &self->out.records[i]);
        commit |= is_collected(&self->out.records[i]);
    }
    if (commit && !code && owns_store(process) && process_acts(process))
        code = virtual_store_flush(&cluster_of(process)->store);
    return code;
}

/* Every evaluation is of chunks that the job knows of. */
static void note_evaluation(struct process *process, const struct message_evaluate *evaluate) {
    struct cluster *cluster = cluster_of(process);
    if (!job_evaluates(cluster->job, ledger_evaluate(&cluster->ledger, evaluate)))
        world_fail(process->world, "evaluation %u is of chunks that are none of the job's",
                   evaluate->evaluation);
}

/* Whether the program that is sent now was journalled. */
static bool is_journalled(const struct output *out) {
    for (uint32_t i = 0; i < out->record_count; i++)
        if (out->records[i].kind == RECORD_JOURNAL && out->records[i].journal.begins)
            return true;
    return false;
}

/* Whether the program uses what was folded. */
static bool begins_with_check(const struct message_program *program) {
    static struct operation operation;
    struct cursor cursor = cursor_over(program->operations.data, program->operations.length);
    return program_next(&cursor, &operation) && operation.code == OPERATION_CHECK;
}

/* Tells the ledger of an evaluation, of a FOLD, and of a program that uses the folds. If that is
 * not journalled it may follow them at once, and the shard's own check is the one that counts. */
static void note_sent(struct process *process, const struct envelope *envelope) {
    const struct coordinator_process *self = process->state;
    const struct outbox *outbox = &self->out.messages;
    struct ledger *ledger = &cluster_of(process)->ledger;
    struct message message = decoded(outbox, envelope);
    if (message.type == MESSAGE_EVALUATE) {
        note_evaluation(process, &message.evaluate);
        return;
    }
    if (message.type == MESSAGE_FOLD) {
        struct cursor ids = cursor_over(message.fold.flushes.data, message.fold.flushes.length);
        while (cursor_left(&ids)) {
            const struct flush_id id = flush_id_decode(&ids);
            ledger_fold(ledger, envelope->term, envelope->to, &id);
        }
        return;
    }
    if (message.type == MESSAGE_PROGRAM && begins_with_check(&message.program) &&
        is_journalled(&self->out))
        ledger_round(ledger, envelope->term, message.program.attempt);
}

/* Whether this output begins an evaluation with the program that ends the one before, and the
 * journal will not say so. */
static bool runs_ahead(const struct coordinator_process *self) {
    const struct outbox *outbox = &self->out.messages;
    bool begins = false, ends = false;
    for (size_t i = 0; i < outbox->count; i++) {
        struct message message = decoded(outbox, &outbox->envelopes[i]);
        begins |= message.type == MESSAGE_EVALUATE;
        ends |= message.type == MESSAGE_PROGRAM && begins_with_check(&message.program);
    }
    return begins && ends && !is_journalled(&self->out);
}

/* The power of its machine goes while it sends: the shards hear nothing of this output, and the
 * journal loses its tail. The replicas hear all. */
static bool cut_ahead(struct process *process) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    const struct virtual_store *store = &cluster->store;
    if (!cluster->cut_ahead || !owns_store(process) || store->synced == store->committed ||
        !runs_ahead(self))
        return false;
    cluster->cut_ahead = false;
    cluster->tally.ahead++;
    world_say(process->world, "the power goes before any shard hears of the next evaluation");
    virtual_store_power_cut(&cluster->store, &process->world->random);
    process->dying = true;
    return true;
}

static void send_messages(struct process *process) {
    struct coordinator_process *self = process->state;
    const struct outbox *outbox = &self->out.messages;
    bool cut = cut_ahead(process);
    for (size_t i = 0; i < outbox->count && (cut || process_acts(process)); i++) {
        const struct envelope *envelope = &outbox->envelopes[i];
        if (cut && envelope->to < cluster_of(process)->shape.shards)
            continue;
        note_sent(process, envelope);
        if (self->links[envelope->to].connection)
            network_send(process, self->links[envelope->to].connection, outbox, envelope);
    }
}

/* ---- the end ---- */

static void dismiss(struct process *process, const char *why) {
    struct coordinator_process *self = process->state;
    output_clear(&self->out);
    coordinator_dismiss(self->machine, why, false, &self->out);
    send_messages(process);
    if (!process->dying)
        sim_process_end(process, true);
}

/* The run ends early; the same command is given again. */
static void give_up(struct process *process, int code) {
    struct cluster *cluster = cluster_of(process);
    world_say(process->world, "the run ends early: %s", error_text());
    if (!cluster_expects(cluster, code, error_text()))
        world_fail(process->world, "the run failed: %s", error_text());
    error_clear();
    cluster->tally.early_ends++;
    if (cluster->was_damaged && code == ERROR_DATA) {
        cluster->refused = cluster->ended = true;
        cluster->tally.refusals++;
    }
    dismiss(process, "the run ended early");
}

static bool was_cancelled(const struct coordinator_process *self) {
    return coordinator_view(self->machine).reason == REASON_CANCELLED;
}

static void conclude(struct process *process) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    if (!owns_store(process)) {
        give_up(process, error_set(ERROR_AGAIN, "the database is another coordinator's"));
        return;
    }
    if (was_cancelled(self)) {
        cluster->tally.cancelled++;
        dismiss(process, "the run was cancelled");
        return;
    }
    cluster->ended = true;
    struct coordinator_view view = coordinator_view(self->machine);
    cluster->outcome.reason = view.reason;
    cluster->outcome.steps = view.step;
    cluster->outcome.evaluations = view.evaluations;
    cluster->outcome.minibatches = view.downpour.done;
    cluster->outcome.answer = view.answer;
    cluster->outcome.ended_ns = process->world->now_ns;
    dismiss(process, "the run has ended");
}

/* The output of a step may wait for more, as it does where several messages come in one turn of the
 * loop. What waits dies with the process. */
static void finish_step(struct process *process, int code) {
    struct coordinator_process *self = process->state;
    if (self->cancelled && !code)
        coordinator_stop(self->machine, REASON_CANCELLED, process->world->now_ns, &self->out);
    if (!code && output_may_wait(&self->out) && world_chance(process->world, 2)) {
        world_alarm(process, process->world->now_ns + world_delay(process->world, TURN_NS),
                    ALARM_TURN);
        return;
    }
    coordinator_end_turn(self->machine, &self->out);
    int stored = carry_out(process);
    if (!stored)
        send_messages(process);
    close_left(process);
    output_clear(&self->out);
    code = code ? code : stored;
    if (process->dying)
        return;
    if (code)
        give_up(process, code);
    else if (coordinator_phase(self->machine) == PHASE_READ ||
             coordinator_phase(self->machine) == PHASE_STOPPED)
        conclude(process);
}

/* ---- copies of checkpoints ---- */

/* One action at a time, as in the thread of the real one. */
static void copy_next(struct process *process) {
    struct coordinator_process *self = process->state;
    if (process->dying || !self->copies || self->copies_now ||
        !copies_next_action(self->copies, &self->copying))
        return;
    self->copies_now = true;
    int64_t usual_ns = cluster_of(process)->shape.disk_ns / 8;
    world_alarm(process, process->world->now_ns + world_delay(process->world, usual_ns),
                ALARM_COPY);
}

/* Gives the machine a message that the copies have let through, or nothing. */
static void pass_on(struct process *process, uint32_t worker, const struct message *message) {
    struct coordinator_process *self = process->state;
    finish_step(process, message ? coordinator_step(self->machine, worker, message,
                                                    process->world->now_ns, &self->out)
                                 : 0);
    if (process->alive)
        copy_next(process);
}

/* A coordinator that was replaced changes nothing more on the disk. */
static void end_copying(struct process *process) {
    struct coordinator_process *self = process->state;
    struct copies_action *action = &self->copying;
    const uint32_t shard = action->shard;
    if (!process_acts(process))
        return;
    if (owns_store(process) || action->kind == COPIES_READ)
        copies_carry_out(&cluster_of(process)->disk.disk, action);
    else
        action->code = ERROR_AGAIN;
    const struct message *passed = copies_done(self->copies, action, &self->out.messages);
    self->copies_now = false;
    cluster_of(process)->tally.delivered += passed && !passed->checkpointed.status;
    pass_on(process, shard, passed);
}

/* ---- workers ---- */

static bool connect_worker(struct process *process, uint32_t number) {
    struct coordinator_process *self = process->state;
    struct process *worker = worker_at(process, number);
    struct worker_link *link = &self->links[number];
    if (!network_connect(process, worker, &link->connection)) {
        link->connection = 0;
        return false;
    }
    coordinator_opened(self->machine, number, process->world->now_ns, &self->out);
    return true;
}

static int lose(struct process *process, uint32_t number, const char *why) {
    struct coordinator_process *self = process->state;
    return coordinator_lost(self->machine, number, why, process->world->now_ns, &self->out);
}

/* Starts a worker on its host, which may be down, or so mute that the start hangs. */
static int start_on_host(struct process *process, uint32_t number) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    struct process *worker = cluster_worker(cluster, number);
    struct worker_link *link = &self->links[number];
    uint32_t host = self->hosts.workers[number].host;
    if (link->hangs)
        return lose(process, number, "it does not answer");
    hosts_started(&self->hosts, number, process->world->now_ns);
    sim_process_end(worker, false);
    if (virtual_host_is_down(cluster, host)) {
        link->hangs = cluster->hosts.items[host].mute;
        if (!link->hangs)
            return lose(process, number, "its host is down");
        start_soon(process, number, SIM_MUTE_NS);
        return 0;
    }
    cluster->tally.moves += cluster->hosts.at[number] != host;
    cluster->hosts.at[number] = host;
    sim_process_begin(worker);
    return connect_worker(process, number) ? 0 : lose(process, number, "it cannot be reached");
}

static int start_worker(struct process *process, uint32_t number) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    struct process *worker = worker_at(process, number);
    struct worker_link *link = &self->links[number];
    int64_t now_ns = process->world->now_ns;
    if (!link->start_ns || now_ns < link->start_ns)
        return 0;
    link->start_ns = 0;
    if (link->connection)
        network_close(process, link->connection);
    link->connection = 0;
    if (self->hosts.count)
        return start_on_host(process, number);
    if (cluster->shape.launched) {
        sim_process_end(worker, false);
        sim_process_begin(worker);
    }
    if (!link->give_up_ns)
        link->give_up_ns = now_ns + cluster->shape.reconnect_seconds * NS_PER_S;
    if (connect_worker(process, number))
        return 0;
    if (now_ns > link->give_up_ns && !(cluster->shape.elastic && number >= cluster->shape.shards))
        return error_set(ERROR_UNAVAILABLE, "%s cannot be reached", worker->name);
    start_soon(process, number, RETRY_NS);
    return 0;
}

/* As watch_hosts() of the real one. */
static int watch_hosts(struct process *process) {
    struct coordinator_process *self = process->state;
    int64_t now_ns = process->world->now_ns;
    uint32_t late;
    hosts_tick(&self->hosts, now_ns);
    while ((late = hosts_late(&self->hosts, now_ns)) != HOSTS_NONE &&
           !self->links[late].connection) {
        hosts_start_now(&self->hosts, late, now_ns);
        self->links[late].hangs = false;
        start_soon(process, late, 0);
    }
    return late == HOSTS_NONE ? 0 : lose(process, late, "it does not answer");
}

/* ---- replicas that a name lists ---- */

static bool is_listed(const struct cluster *cluster, uint32_t replica) {
    return cluster->names.listed >> replica & 1;
}

static bool is_vacant(const struct coordinator_process *self, uint32_t number) {
    return coordinator_worker(self->machine, number).vacant;
}

static int let_go(struct process *process) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    uint32_t first = cluster->shape.shards + cluster->shape.fixed;
    for (uint32_t i = first; i < coordinator_links(self->machine); i++)
        if (!is_vacant(self, i) && !is_listed(cluster, self->links[i].replica))
            coordinator_let_go(self->machine, i, process->world->now_ns, &self->out);
    return 0;
}

/* One that computes other bits is not the first: what others compute would then be refused. */
static bool may_join(const struct process *process, uint32_t replica) {
    const struct coordinator_process *self = process->state;
    const struct cluster *cluster = cluster_of(process);
    bool proven = false;
    for (uint32_t i = cluster->shape.shards; i < coordinator_links(self->machine); i++)
        proven |= coordinator_worker(self->machine, i).welcomed;
    return is_listed(cluster, replica) && (proven || replica != cluster->shape.odd);
}

/* The place where it was last, or any that is vacant, or a new one. */
static uint32_t place_for(struct process *process, uint32_t replica) {
    const struct coordinator_process *self = process->state;
    const struct cluster *cluster = cluster_of(process);
    uint32_t links = coordinator_links(self->machine), found = links;
    for (uint32_t i = cluster->shape.shards + cluster->shape.fixed; i < links; i++) {
        bool known = cluster->names.at[i - cluster->shape.shards] == replica;
        if (is_vacant(self, i) && (known || found == links || world_chance(process->world, 2)))
            found = i;
        if (is_vacant(self, i) && known)
            break;
    }
    return found;
}

static int join(struct process *process, uint32_t replica) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    for (uint32_t i = cluster->shape.shards; i < coordinator_links(self->machine); i++) {
        if (is_vacant(self, i) || self->links[i].replica != replica)
            continue;
        if (coordinator_worker(self->machine, i).leaving)
            coordinator_expect(self->machine, i);
        return 0;
    }
    uint32_t place = place_for(process, replica);
    if (place == cluster->shape.shards + SIM_PLACES_MAX)
        return 0;
    coordinator_expect(self->machine, place);
    cluster->tally.joined++;
    cluster->tally.refused_joiners += replica == cluster->shape.odd;
    self->links[place] = (struct worker_link){.replica = replica};
    cluster->names.at[place - cluster->shape.shards] = replica;
    cluster->names.places = coordinator_links(self->machine) - cluster->shape.shards;
    world_say(process->world, "replica %u is expected in place %u", replica,
              place - cluster->shape.shards);
    return connect_worker(process, place) ? 0 : lose(process, place, "it cannot be reached");
}

/* A name is asked now and then; while nobody can tell, all stays as it is. Those that have left are
 * let go before another one takes their place. */
static int follow_names(struct process *process, bool joins) {
    const struct cluster *cluster = cluster_of(process);
    int code = 0;
    if (!cluster->shape.elastic || cluster->names.failing)
        return 0;
    if (!joins)
        return let_go(process);
    for (uint32_t i = cluster->shape.fixed; i < cluster->shape.replicas && !code; i++)
        if (may_join(process, i))
            code = join(process, i);
    return code;
}

/* ---- life ---- */

/* Whether a worker that may live is to be looked for where it was. */
static bool adopts(struct process *process, uint32_t number) {
    struct coordinator_process *self = process->state;
    const struct cluster *cluster = cluster_of(process);
    return !self->hosts.count ||
           hosts_adopt(&self->hosts, number, cluster->hosts.at[number], process->world->now_ns);
}

static int find_workers(struct process *process) {
    struct coordinator_process *self = process->state;
    int code = 0;
    uint32_t links = coordinator_links(self->machine), shards = cluster_of(process)->shape.shards;
    for (uint32_t i = shards; i < links && cluster_of(process)->shape.elastic; i++)
        self->links[i].replica = cluster_of(process)->names.at[i - shards];
    for (uint32_t i = 0; i < links && !code; i++)
        if (!is_vacant(self, i) && (!adopts(process, i) || !connect_worker(process, i)))
            code = lose(process, i, "it did not outlive the last coordinator");
    return code;
}

static struct coordinator *new_machine(struct process *process) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    const struct job *job = cluster->job;
    struct store_saved saved;
    struct store_blob *journal;
    virtual_store_read(&cluster->store, &saved, &journal);
    bool resumed = cluster->runs++ > 0;
    self->term = virtual_store_term(&cluster->store);
    struct coordinator *machine = coordinator_new(&(struct coordinator_settings){
        .downpour = job->downpour,
        .optimizer = job->optimizer,
        .shape = job->shape,
        .layout = objective_layout(&job->shape),
        .scaling = job->columns,
        .limits = job->limits,
        .squares = job->squares,
        .history_type = job->history_type,
        .data = &job->data,
        .exponents = job->own_exponents,
        .set_path = "the set",
        .run = "run",
        .term = self->term,
        .shards = cluster->shape.shards,
        .replicas = cluster->shape.elastic ? cluster->names.places : cluster->shape.replicas,
        .replicas_most = cluster->shape.elastic ? SIM_PLACES_MAX : 0,
        .replicas_fixed = cluster->shape.fixed,
        .by_hand[1] = cluster->shape.elastic,
        .threads = 1,
        .portion_chunks = cluster->shape.portion_chunks,
        .backup_copies = cluster->shape.backup_copies,
        .flush_ms = cluster->shape.flush_ms,
        .reconnect_seconds = cluster->shape.reconnect_seconds,
        .shard_addresses = cluster->shape.shared_memory ? addresses_here : addresses_apart,
        .replica_addresses = cluster->shape.local ? replica_addresses : NULL,
        .shards_folder = "shards",
        .checkpoint_ns = cluster->shape.checkpoint_ns,
        .restarts_max = RESTARTS_MAX,
        .on_hosts = self->hosts.count,
        .replica_threads = self->hosts.threads,
        .start = job->origin,
        .start_pairs = job->pairs,
        .start_pair_count = job->pair_count,
        .pairs_kept = 2,
        .saved = resumed ? &saved : NULL,
    });
    free(journal);
    return machine;
}

static void find_hosts(struct process *process) {
    struct coordinator_process *self = process->state;
    const struct cluster_shape *shape = &cluster_of(process)->shape;
    for (uint32_t i = 0; i < shape->hosts; i++)
        hosts_add(&self->hosts, (char[]){(char)('a' + i), '\0'}, NULL, 1);
    if (shape->hosts)
        hosts_begin(&self->hosts, shape->shards, shape->replicas);
}

static void begin(struct process *process) {
    struct coordinator_process *self = memory_new(1, sizeof *self);
    process->state = self;
    output_init(&self->out);
    find_hosts(process);
    self->machine = new_machine(process);
    self->copies = copies_new("shards", self->term, cluster_of(process)->shape.shards);
    world_alarm(process, process->world->now_ns + TICK_NS, ALARM_TICK);
    coordinator_begin(self->machine, process->world->now_ns, &self->out);
    int code = find_workers(process);
    finish_step(process, code ? code : follow_names(process, true));
}

static void end(struct process *process) {
    struct coordinator_process *self = process->state;
    if (owns_store(process))
        virtual_store_crash(&cluster_of(process)->store);
    struct coordinator_view view = coordinator_view(self->machine);
    cluster_of(process)->tally.backups += view.backup_copies;
    cluster_of(process)->tally.minibatches += view.downpour.done;
    coordinator_free(self->machine);
    copies_free(self->copies);
    copies_action_release(&self->copying);
    hosts_release(&self->hosts);
    output_release(&self->out);
    free(self);
}

/* ---- what happens to it ---- */

static uint32_t worker_of(const struct coordinator_process *self, uint32_t connection) {
    for (uint32_t i = 0; i < coordinator_links(self->machine); i++)
        if (self->links[i].connection == connection)
            return i;
    return UINT32_MAX;
}

static void note_folded(struct process *process, uint32_t worker, const struct message *taken) {
    struct cursor ids = cursor_over(taken->folded.flushes.data, taken->folded.flushes.length);
    while (cursor_left(&ids)) {
        const struct flush_id id = flush_id_decode(&ids);
        ledger_folded(&cluster_of(process)->ledger, taken->term, worker, &id);
    }
}

static void message(struct process *process, uint32_t link, const struct message *taken) {
    struct coordinator_process *self = process->state;
    uint32_t worker = worker_of(self, link);
    if (taken->type == MESSAGE_FOLDED)
        note_folded(process, worker, taken);
    if (worker == UINT32_MAX)
        return;
    if (taken->type == MESSAGE_READ_SET) {
        if (taken->term == self->term)
            copies_answer(process, link, taken);
        return;
    }
    pass_on(process, worker, copies_take(self->copies, worker, taken, &self->out.messages));
}

static void gone(struct process *process, uint32_t link) {
    struct coordinator_process *self = process->state;
    uint32_t worker = worker_of(self, link);
    if (worker == UINT32_MAX)
        return;
    self->links[worker].connection = 0;
    copies_lost(self->copies, worker);
    finish_step(process, coordinator_lost(self->machine, worker, "its connection closed",
                                          process->world->now_ns, &self->out));
}

static void alarm(struct process *process, uint64_t which) {
    struct coordinator_process *self = process->state;
    int code;
    if (which == ALARM_TICK) {
        world_alarm(process, process->world->now_ns + TICK_NS, ALARM_TICK);
        code = owns_store(process) ? virtual_store_flush(&cluster_of(process)->store) : 0;
        if (!code && self->hosts.count)
            code = watch_hosts(process);
        if (!code && world_chance(process->world, 2))
            code = follow_names(process, !self->follows++);
        self->follows %= 2;
        if (!code)
            code = coordinator_tick(self->machine, process->world->now_ns, &self->out);
    } else if (which == ALARM_TURN) {
        code = 0;
    } else if (which == ALARM_COPY) {
        end_copying(process);
        return;
    } else if (which == ALARM_CANCEL) {
        self->cancelled = true;
        code = 0;
    } else {
        code = start_worker(process, (uint32_t)(which - ALARM_START));
    }
    finish_step(process, code);
}

const struct behaviour coordinator_behaviour = {
    .begin = begin, .end = end, .message = message, .gone = gone, .alarm = alarm};
