/* The I/O shell of a simulated shard, and what the ledger looks at. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "numeric/setup.h"
#include "shard/pass_plan.h"
#include "shard/state.h"
#include "tests/sim/cluster.h"
#include "tests/cluster/host.h"
#include "wire/program.h"

enum { ALARM_TAKEN, ALARM_WRITTEN };

struct shard_process {
    struct worker_host host;
    struct shard *shard;
    struct local_secret secret;
    bool is_writing;
    bool has_device;
    struct shard_action writing;
    uint64_t written; /* hash of what is to be written */
};

/* The disk that the shard's folder is on. */
static struct virtual_disk *disk_of(const struct process *process) {
    struct cluster *cluster = cluster_of(process);
    return cluster->shape.apart ? &cluster->own[cluster->hosts.at[process->index]] : &cluster->disk;
}

static bool shares(void *context, const char *state, const char *holder) {
    (void)state, (void)holder;
    return !cluster_of(context)->shape.apart;
}

static int own_folder(void *context, char **path) {
    (void)context;
    *path = memory_copy_string("own");
    return 0;
}

static void begin(struct process *process) {
    static uint64_t proof;
    if (!proof)
        proof = numeric_proof_vectors();
    struct shard_process *self = memory_new(1, sizeof *self);
    process->state = self;
    self->secret = cluster_secret(process);
    self->shard = shard_new(
        &(struct shard_self){.pid = process->life,
                             .host = "here",
                             .description = "simulated",
                             .proof = proof,
                             .own_folder = own_folder,
                             .shares = shares,
                             .context = process,
                             .local = cluster_of(process)->shape.local ? self->secret.digits : ""});
    worker_host_init(&self->host);
}

/* ---- what the ledger sees ---- */

/* The process whose call is under way. */
static struct process *observed;

static void check_staging(struct process *process) {
    const struct shard_process *self = process->state;
    const struct shard *shard = self->shard;
    for (size_t i = 0; i < shard->staging.staged_count; i++) {
        const struct flush_id *id = &shard->staging.staged[i].id;
        if (id->attempt != shard->attempt || id->evaluation != shard->evaluation)
            world_fail(process->world, "%s still keeps a slice of evaluation %u", process->name,
                       id->evaluation);
    }
}

int __real_operation_list_read(struct operation_list *list, const struct blob *program,
                               struct slot_counts slots);
int __wrap_operation_list_read(struct operation_list *list, const struct blob *program,
                               struct slot_counts slots);

static bool makes_step(const struct operation_list *list) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].code == OPERATION_ADAGRAD)
            return true;
    return false;
}

/* A shard reads a program when it is about to run it; the linker leads it here. A program with
 * CHECK is about to use the shard's sum. */
int __wrap_operation_list_read(struct operation_list *list, const struct blob *program,
                               struct slot_counts slots) {
    int code = __real_operation_list_read(list, program, slots);
    const struct shard_process *self = observed->state;
    const struct shard *shard = self->shard;
    struct cluster *cluster = cluster_of(observed);
    if (code || !list->count || list->items[0].code != OPERATION_CHECK)
        return code;
    ledger_use(&cluster->ledger, observed->name, shard->attempt, shard->evaluation,
               shard->staging.folded, shard->staging.folded_count);
    if (makes_step(list))
        ledger_learn(&cluster->ledger);
    return 0;
}

/* ---- the disk ---- */

/* Of the vectors of a checkpoint: they must not change until it is written. */
static uint64_t hash_of_job(const struct process *process) {
    const struct shard_process *self = process->state;
    const struct checkpoint_job *job = self->writing.job;
    const struct registers *registers = &self->shard->registers;
    size_t element = history_size(registers->history_type);
    uint64_t hash = 0;
    for (uint32_t i = 0; i < CHECKPOINT_POINTS; i++)
        if (job->points[i])
            hash = hash64_seeded(job->points[i], job->bytes, hash);
    const struct checkpoint_header *header = &job->checkpoint.header;
    for (uint32_t i = 0; i < checkpoint_entries(header); i++)
        for (uint32_t j = 0; j < 2 && job->vectors[i][j]; j++) {
            bool margins = j == 1 && i >= header->pairs;
            size_t elements = margins ? (size_t)header->numbers : registers->count;
            hash = hash64_seeded(job->vectors[i][j], elements * element, hash);
        }
    return hash;
}

static void carry_out(struct process *process, const struct shard_action *action) {
    struct shard_process *self = process->state;
    struct cluster *cluster = cluster_of(process);
    if (action->kind != SHARD_WRITE) {
        cluster->tally.brought += action->kind == SHARD_LOAD && self->shard->saving.apart.brought;
        shard_carry_out(self->shard, &disk_of(process)->disk, action, &self->host.out);
        return;
    }
    self->writing = *action;
    self->is_writing = true;
    self->written = hash_of_job(process);
    world_alarm(process,
                process->world->now_ns + world_delay(process->world, cluster->shape.disk_ns / 4),
                ALARM_TAKEN);
}

static char *path_of_job(const struct shard_process *self) {
    const struct checkpoint_job *job = self->writing.job;
    return step_path(job->folder, job->checkpoint.header.step);
}

static void answer_written(struct shard_process *self, int code) {
    self->is_writing = false;
    shard_written(self->shard, code, error_text(), &self->host.out);
    error_clear();
}

/* The file is written, but not safe. */
static void take(struct process *process) {
    struct shard_process *self = process->state;
    const struct cluster *cluster = cluster_of(process);
    if (hash_of_job(process) != self->written)
        world_fail(process->world, "%s changed vectors that it was writing", process->name);
    int code = checkpoint_write(self->writing.job, &disk_of(process)->slow);
    if (code) {
        answer_written(self, code);
        return;
    }
    shard_taken(self->shard, &self->host.out);
    world_alarm(process,
                process->world->now_ns + world_delay(process->world, cluster->shape.disk_ns),
                ALARM_WRITTEN);
}

static void finish_writing(struct process *process) {
    struct shard_process *self = process->state;
    char *path = path_of_job(self);
    answer_written(self, virtual_disk_publish(disk_of(process), path));
    free(path);
}

/* The process dies while a file is written: it is there, or half of it, or nothing. */
static void break_off(struct process *process) {
    const struct shard_process *self = process->state;
    struct virtual_disk *disk = disk_of(process);
    char *path = path_of_job(self);
    if (atomic_load(&self->writing.job->taken) && world_chance(process->world, 3))
        virtual_disk_publish(disk, path);
    else if (world_chance(process->world, 2))
        virtual_disk_litter(disk, path);
    error_clear();
    free(path);
}

static void finish_step(struct process *process) {
    struct shard_process *self = process->state;
    struct shard_action action;
    while (shard_next_action(self->shard, &action) && process_acts(process))
        carry_out(process, &action);
    check_staging(process);
    worker_host_drain(process, &self->host);
}

/* Only from a shard that is at work, and was not set up with the CPU. */
static void fail_device(struct process *process) {
    struct shard_process *self = process->state;
    const struct shard *shard = self->shard;
    if (!self->has_device || !shard->ready || !shard->coordinator)
        return;
    world_say(process->world, "the device of %s fails", process->name);
    cluster_of(process)->tally.devices_failed++;
    self->has_device = false;
    shard_answer(shard, shard->coordinator,
                 (struct message){.type = MESSAGE_FAILED,
                                  .failed = {-ERROR_UNAVAILABLE, "the device is lost", 1}},
                 &self->host.out);
}

/* ---- what happens to it ---- */

static void end(struct process *process) {
    struct shard_process *self = process->state;
    if (self->is_writing)
        break_off(process);
    shard_free(self->shard);
    worker_host_release(&self->host);
    free(self);
}

static void message(struct process *process, uint32_t link, const struct message *taken) {
    struct shard_process *self = process->state;
    if (worker_host_takes(process, &self->host, link, taken))
        return;
    observed = process;
    if (taken->type == MESSAGE_SHARD_SETUP)
        self->has_device = cluster_of(process)->shape.devices &&
                           strcmp(taken->shard_setup.machine.device, "cpu") != 0;
    if (taken->type == MESSAGE_STAGE)
        ledger_stage(&cluster_of(process)->ledger, &taken->stage);
    shard_step(self->shard, link, taken, process->world->now_ns, &self->host.out);
    finish_step(process);
    worker_host_message(process, &self->host, link, taken);
}

static void gone(struct process *process, uint32_t link) {
    struct shard_process *self = process->state;
    shard_peer_gone(self->shard, link);
    finish_step(process);
    worker_host_gone(process, &self->host, link);
}

static void alarm(struct process *process, uint64_t which) {
    struct shard_process *self = process->state;
    if (which >= HOST_ALARMS) {
        worker_host_alarm(process, &self->host, which);
        return;
    }
    observed = process;
    if (which == ALARM_DEVICE)
        fail_device(process);
    else if (which == ALARM_TAKEN)
        take(process);
    else
        finish_writing(process);
    finish_step(process);
}

const struct behaviour shard_behaviour = {
    .begin = begin, .end = end, .message = message, .gone = gone, .alarm = alarm};
