/* The rim of a simulated shard, and what the ledger looks at. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/setup.h"
#include "shard/state.h"
#include "tests/sim/cluster.h"
#include "tests/sim/host.h"
#include "wire/program.h"

struct shard_process {
    struct worker_host host;
    struct shard *shard;
};

static void begin(struct process *process) {
    static uint64_t proof;
    if (!proof)
        proof = numeric_proof_vectors();
    struct shard_process *self = memory_new(1, sizeof *self);
    process->state = self;
    self->shard = shard_new(&(struct shard_self){
        .pid = process->life, .host = "here", .description = "simulated", .proof = proof});
    worker_host_init(&self->host);
}

static void end(struct process *process) {
    struct shard_process *self = process->state;
    shard_free(self->shard);
    worker_host_release(&self->host);
    free(self);
}

/* ---- what the ledger sees ---- */

static bool uses_evaluation(const struct message *message) {
    struct cursor cursor =
        cursor_over(message->program.operations.data, message->program.operations.length);
    static struct operation operation;
    return program_next(&cursor, &operation) && operation.code == OPERATION_CHECK;
}

static void check_staging(struct process *process, const struct shard *shard) {
    for (size_t i = 0; i < shard->staging.staged_count; i++) {
        const struct flush_id *id = &shard->staging.staged[i].id;
        if (id->attempt != shard->attempt || id->evaluation != shard->evaluation)
            world_fail(process->world, "%s still keeps a slice of evaluation %u", process->name,
                       id->evaluation);
    }
}

/* A program that begins with CHECK is the moment when the sum becomes a gradient. */
static void run_program(struct process *process, uint32_t link, const struct message *message) {
    struct shard_process *self = process->state;
    struct shard *shard = self->shard;
    uint64_t number = shard->last.number;
    struct flush_id *folded = NULL;
    size_t count = shard->staging.folded_count;
    uint32_t evaluation = shard->evaluation;
    bool uses = uses_evaluation(message);
    if (uses) {
        folded = memory_new(count, sizeof *folded);
        memcpy(folded, shard->staging.folded, count * sizeof *folded);
    }
    shard_step(shard, link, message, process->world->now_ns, &self->host.out);
    if (uses && shard->last.number != number)
        ledger_use(&cluster_of(process)->ledger, process->name, shard->attempt, evaluation, folded,
                   count);
    free(folded);
    check_staging(process, shard);
}

/* ---- */

static void message(struct process *process, uint32_t link, const struct message *taken) {
    struct shard_process *self = process->state;
    if (taken->type == MESSAGE_STAGE)
        ledger_stage(&cluster_of(process)->ledger, &taken->stage);
    if (taken->type == MESSAGE_PROGRAM)
        run_program(process, link, taken);
    else
        shard_step(self->shard, link, taken, process->world->now_ns, &self->host.out);
    worker_host_drain(process, &self->host);
    worker_host_message(process, &self->host, link, taken);
}

static void gone(struct process *process, uint32_t link) {
    struct shard_process *self = process->state;
    shard_peer_gone(self->shard, link);
    worker_host_drain(process, &self->host);
    worker_host_gone(process, &self->host, link);
}

static void alarm(struct process *process, uint64_t which) {
    struct shard_process *self = process->state;
    worker_host_alarm(process, &self->host, which);
}

const struct behaviour shard_behaviour = {
    .begin = begin, .end = end, .message = message, .gone = gone, .alarm = alarm};
