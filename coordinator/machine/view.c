/* Answers to questions about the run: copies, so that no caller sees into the machine. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/driver.h"
#include "coordinator/machine/machine.h"

enum coordinator_phase coordinator_phase(const struct coordinator *c) {
    return c->phase;
}

bool coordinator_is_fenced(const struct coordinator *c) {
    return c->fenced;
}

const struct coordinator_settings *coordinator_settings(const struct coordinator *c) {
    return &c->settings;
}

uint32_t coordinator_links(const struct coordinator *c) {
    assert(c->settings.shards > 0 && c->settings.shards <= SHARDS_MAX);
    return c->settings.shards + c->settings.replicas;
}

/* Shards have as many blocks each, but where the first one must have more: it has all elements of
 * the preconditioner's block, which begins the vector. */
static uint64_t range_begin(const struct coordinator *c, uint64_t index) {
    const struct preconditioner_settings *settings = &c->settings.optimizer.preconditioner;
    uint64_t block = 0; /* elements */
    if (settings->form == PRECONDITION_FULL)
        block = c->parameters;
    else if (settings->form == PRECONDITION_LEADING)
        block = layout_block_weights(&c->settings.layout, settings->block_columns);
    uint64_t blocks = (c->parameters + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    uint64_t shards = c->settings.shards, begin = blocks * index / shards;
    uint64_t least = (block + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    if (index && least > 1 && least > blocks / shards)
        begin = shards > 1 ? least + (blocks - least) * (index - 1) / (shards - 1) : blocks;
    return begin * BLOCK_ELEMENTS < c->parameters ? begin * BLOCK_ELEMENTS : c->parameters;
}

void coordinator_range(const struct coordinator *c, uint32_t index, uint64_t *first,
                       uint64_t *count) {
    assert(index < c->settings.shards);
    uint64_t start = range_begin(c, index), end = range_begin(c, index + 1);
    *first = start;
    *count = end - start;
    assert(start <= end && end <= c->parameters);
}

struct coordinator_view coordinator_view(const struct coordinator *c) {
    assert(c->recovery.durable_count <= 2);
    const struct lbfgs *o = &c->driver->optimizer.lbfgs;
    const struct plan *plan = &c->dispatch.plan;
    struct coordinator_view view = {
        .phase = c->phase,
        .reason = o->reason,
        .attempt = c->roster.attempt,
        .ticked_ns = c->ticked_ns,
        .parameters = c->parameters,
        .evaluations = c->dispatch.evaluations,
        .rounds = o->rounds,
        .backup_copies = c->dispatch.backup_copies,
        .stale = c->stale + c->dispatch.stale,
        .durable = c->recovery.durable_count > 0,
        .durable_step = c->recovery.durable[0].step,
        .evaluation = {.number = c->dispatch.evaluation.number,
                       .running = c->dispatch.evaluation.running,
                       .started_ns = c->dispatch.evaluation.started_ns,
                       /* before the first one it is not known how many it will ask for */
                       .chunks = plan->wanted_chunks ? plan->wanted_chunks : plan->chunks,
                       .counted = plan->counted_chunks},
        .started = o->started,
        .step = o->step,
        .loss = o->loss,
        .gradient_max = o->gradient_max,
        .holdout = o->holdout,
        .norms = o->norms,
        .l1 = o->settings.l1,
        .l2 = c->settings.l2_shown,
        .nonzero = o->nonzero,
        .gap_bound = o->gap_bound,
        .gap_estimate = o->gap_estimate,
        .fall = lbfgs_fall(o),
        .answer = lbfgs_answer(o),
        .gradient_tolerance = o->settings.gradient_tolerance,
        .steps_max = o->settings.steps_max,
        .preconditioner = o->preconditioner,
        .summary = o->summary.found,
        .downpour = downpour_view(&c->driver->optimizer.downpour),
    };
    memcpy(view.safeguards, o->safeguards, sizeof view.safeguards);
    return view;
}

struct worker_view coordinator_worker(const struct coordinator *c, uint32_t link) {
    assert(link < coordinator_links(c));
    const struct member *member = &c->roster.members[link];
    struct worker_view view = {
        .role = member->role,
        .index = member->index,
        .incarnation = member->incarnation,
        .vacant = member->vacant,
        .leaving = member->leaving,
        .connected = member->connected,
        .welcomed = member->welcomed,
        .ready = member->ready,
        .restarts = member->restarts,
        .pid = member->pid,
        .threads = member->threads,
        .device = member->device,
        .host = member->host,
    };
    if (member->role == ROLE_REPLICA) {
        const struct workload *workload = workload_of(&c->dispatch, link);
        const uint32_t told = setup_replica_threads(c, link);
        view.threads = told ? told : member->threads;
        view.portions = workload->portions;
        view.chunks = workload->chunks;
        view.chunks_per_ns = workload->chunks_per_ns;
    }
    return view;
}

/* ---- chunks ---- */

/* If chunks have a backup copy, the replica that had them first is named. */
static void view_portion(const struct dispatched *portion, int replica, struct chunk_view *chunks) {
    assert(portion->range.count > 0 && replica >= 0);
    for (uint32_t i = portion->range.first; i < portion->range.first + portion->range.count; i++) {
        if (chunks[i].state == CHUNK_COUNTED)
            continue;
        if (portion->backed_up)
            chunks[i] = (struct chunk_view){CHUNK_BACKED_UP, replica};
        else if (chunks[i].state == CHUNK_WAITING)
            chunks[i] = (struct chunk_view){CHUNK_RUNNING, replica};
    }
}

void coordinator_chunks(const struct coordinator *c, struct chunk_view *chunks) {
    const struct plan *plan = &c->dispatch.plan;
    struct chunk_view *all = memory_new(plan->chunks, sizeof *all);
    assert(plan->wanted_chunks <= plan->chunks);
    for (uint32_t i = 0; i < plan->chunks; i++) {
        bool counted = plan_is_counted(plan, (struct chunk_range){.first = i, .count = 1});
        all[i] = counted ? (struct chunk_view){CHUNK_COUNTED, plan->by[i]}
                         : (struct chunk_view){CHUNK_WAITING, -1};
    }
    for (uint32_t i = 0; i < c->settings.replicas; i++) {
        const struct workload *workload = &c->dispatch.workloads[i];
        for (uint32_t j = 0; j < workload->dispatched_count; j++)
            view_portion(&workload->dispatched[j], (int)i, all);
    }
    if (!plan->wanted_chunks)
        memcpy(chunks, all, plan->chunks * sizeof *chunks);
    for (uint32_t i = 0; plan->wanted_chunks && i < plan->wanted.count; i++) {
        const struct evaluation_part *part = &plan->wanted.items[i];
        memcpy(chunks, all + part->first, part->count * sizeof *chunks);
        chunks += part->count;
    }
    free(all);
}
