/* The rim of the simulated coordinator: carries out records before it sends messages. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/coordinator.h"
#include "tests/sim/cluster.h"
#include "tests/sim/network.h"

struct coordinator_process {
    struct coordinator *machine;
    struct output out;
    uint32_t links[SIM_WORKERS_MAX]; /* by the machine's links: the network's, 0 for none */
    bool dismissed;
};

static const char *const addresses[] = {"shard 0", "shard 1", "shard 2", "shard 3"};

/* ---- records ---- */

static void take_step(struct process *process, const struct store_step *step) {
    struct cluster *cluster = cluster_of(process);
    struct outcome *outcome = &cluster->outcome;
    world_say(process->world, "step %llu accepted, loss %.17g", (unsigned long long)step->step,
              step->loss);
    if (step->step > JOB_STEPS_MAX)
        world_fail(process->world, "step %llu is beyond the limit", (unsigned long long)step->step);
    else
        outcome->step[step->step] = (struct job_step){true, step->loss, step->gradient_max};
}

static void take_slice(struct process *process, const struct record *record) {
    struct cluster *cluster = cluster_of(process);
    memcpy(cluster->outcome.model + record->slice.first, record->slice.values,
           record->slice.count * sizeof(double));
}

static void take_record(struct process *process, const struct record *record) {
    switch (record->kind) {
    case RECORD_STEP:
        take_step(process, &record->step);
        break;
    case RECORD_SLICE:
        take_slice(process, record);
        break;
    case RECORD_EVENT:
        world_say(process->world, "event: %s", record->event.text);
        break;
    case RECORD_EVALUATION:
        world_say(process->world, "evaluation %llu: %s, loss %.17g",
                  (unsigned long long)record->evaluation.evaluation, record->evaluation.outcome,
                  record->evaluation.loss);
        break;
    case RECORD_WORKER:
    case RECORD_PORTION:
        break;
    }
}

static void drain(struct process *process) {
    struct coordinator_process *self = process->state;
    for (uint32_t i = 0; i < self->out.record_count && process_acts(process); i++)
        take_record(process, &self->out.records[i]);
    const struct outbox *outbox = &self->out.messages;
    for (size_t i = 0; i < outbox->count && process_acts(process); i++) {
        const struct envelope *envelope = &outbox->envelopes[i];
        network_send(process, self->links[envelope->to], outbox, envelope);
    }
    output_clear(&self->out);
}

/* ---- the end ---- */

static void conclude(struct process *process) {
    struct coordinator_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    cluster->ended = true;
    cluster->outcome.reason = self->machine->optimizer.reason;
    cluster->outcome.steps = self->machine->optimizer.step;
    cluster->outcome.ended_ns = process->world->now_ns;
    coordinator_dismiss(self->machine, "the run has ended", &self->out);
    drain(process);
    process_end(process, true);
}

static void finish_step(struct process *process, int code) {
    struct coordinator_process *self = process->state;
    drain(process);
    if (process->dying)
        return;
    if (code) {
        world_fail(process->world, "the run failed: %s", error_text());
        error_clear();
    } else if (self->machine->phase == PHASE_READ) {
        conclude(process);
    }
}

/* ---- life ---- */

static void connect_worker(struct process *process, uint32_t link) {
    struct coordinator_process *self = process->state;
    struct process *worker = cluster_worker(cluster_of(process), link);
    if (!network_connect(process, worker, &self->links[link])) {
        world_fail(process->world, "%s cannot be reached", worker->name);
        return;
    }
    coordinator_opened(self->machine, link, &self->out);
}

static void begin(struct process *process) {
    struct coordinator_process *self = memory_new(1, sizeof *self);
    const struct cluster *cluster = cluster_of(process);
    const struct job *job = cluster->job;
    process->state = self;
    output_init(&self->out);
    self->machine = coordinator_new(&(struct coordinator_settings){
        .optimizer = job->optimizer,
        .shape = job->shape,
        .history_type = job->history_type,
        .data = &job->data,
        .set_path = "the set",
        .run = "run",
        .epoch = process->life,
        .shards = cluster->shape.shards,
        .replicas = cluster->shape.replicas,
        .threads = 1,
        .portion_chunks = cluster->shape.portion_chunks,
        .flush_ms = cluster->shape.flush_ms,
        .reconnect_seconds = cluster->shape.reconnect_seconds,
        .shard_addresses = addresses,
    });
    for (uint32_t i = 0; i < coordinator_links(self->machine); i++)
        connect_worker(process, i);
    finish_step(process, 0);
}

static void end(struct process *process) {
    struct coordinator_process *self = process->state;
    coordinator_free(self->machine);
    output_release(&self->out);
    free(self);
}

/* ---- what happens to it ---- */

static uint32_t worker_of(const struct coordinator_process *self, uint32_t link) {
    for (uint32_t i = 0; i < coordinator_links(self->machine); i++)
        if (self->links[i] == link)
            return i;
    return UINT32_MAX;
}

static void message(struct process *process, uint32_t link, const struct message *taken) {
    struct coordinator_process *self = process->state;
    uint32_t worker = worker_of(self, link);
    if (worker == UINT32_MAX)
        return;
    int code = coordinator_step(self->machine, worker, taken, process->world->now_ns, &self->out);
    finish_step(process, code);
}

static void gone(struct process *process, uint32_t link) {
    struct coordinator_process *self = process->state;
    uint32_t worker = worker_of(self, link);
    if (worker != UINT32_MAX)
        world_fail(process->world, "the coordinator lost a worker");
}

static void alarm(struct process *process, uint64_t which) {
    (void)process, (void)which;
}

const struct behaviour coordinator_behaviour = {
    .begin = begin, .end = end, .message = message, .gone = gone, .alarm = alarm};
