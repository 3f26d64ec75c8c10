/* Answers to questions about the run: copies, so that no caller sees into the machine. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/coordinator.h"
#include "coordinator/steering_parts.h"

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
    return c->settings.shards + c->settings.replicas;
}

void coordinator_range(const struct coordinator *c, uint32_t index, uint64_t *first,
                       uint64_t *count) {
    uint64_t blocks = (c->parameters + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    uint64_t start = blocks * index / c->settings.shards * BLOCK_ELEMENTS;
    uint64_t end = blocks * (index + 1) / c->settings.shards * BLOCK_ELEMENTS;
    if (end > c->parameters)
        end = c->parameters;
    *first = start < end ? start : end;
    *count = end - *first;
}

static void view_downpour(const struct coordinator *c, struct downpour_view *view) {
    const struct downpour *d = &c->steering->downpour;
    const struct downpour_settings *s = &c->settings.downpour;
    struct downpour_data data = pouring_data(&c->settings);
    *view = (struct downpour_view){.epochs = s->epochs, .alone = s->alone};
    if (!s->epochs)
        return;
    view->running = downpour_runs(d);
    view->epoch = d->epoch;
    view->minibatch = d->minibatch;
    view->minibatches = downpour_minibatches(s, &data, d->epoch);
    view->done = d->done;
    view->redone = d->redone;
    view->rate = downpour_rate(s, d->epoch);
    view->loss = downpour_loss(d, &data);
    view->measures = s->measures;
    view->holdout = d->holdout;
    view->best_epoch = d->best_epoch;
    view->stopped_early = downpour_stopped_early(d, s);
}

/* Before the first evaluation it is not known how many that will ask for. */
static uint32_t chunks_asked_for(const struct plan *plan) {
    return plan->wanted_chunks ? plan->wanted_chunks : plan->chunks;
}

struct coordinator_view coordinator_view(const struct coordinator *c) {
    const struct steering *s = c->steering;
    const struct optimizer *o = &s->optimizer;
    struct coordinator_view view = {
        .phase = c->phase,
        .reason = o->reason,
        .attempt = c->recovery.attempt,
        .ticked_ns = c->ticked_ns,
        .parameters = c->parameters,
        .evaluations = s->evaluations,
        .rounds = o->rounds,
        .backup_copies = s->backup_copies,
        .stale = c->stale,
        .durable = c->recovery.durable_count > 0,
        .durable_step = c->recovery.durable[0].step,
        .evaluation = {.number = s->evaluation.number,
                       .running = s->evaluation.running,
                       .started_ns = s->evaluation.started_ns,
                       .chunks = chunks_asked_for(&s->plan),
                       .counted = s->plan.counted_chunks},
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
        .fall = optimizer_fall(o),
        .answer = optimizer_answer(o),
        .gradient_tolerance = o->settings.gradient_tolerance,
        .steps_max = o->settings.steps_max,
        .preconditioner = o->preconditioner,
    };
    view_downpour(c, &view.downpour);
    memcpy(view.safeguards, o->safeguards, sizeof view.safeguards);
    return view;
}

struct worker_view coordinator_worker(const struct coordinator *c, uint32_t link) {
    const struct member *member = &c->membership.members[link];
    struct worker_view view = {
        .role = member->role,
        .index = member->index,
        .incarnation = member->incarnation,
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
        const struct workload *workload = workload_of(c, link);
        view.portions = workload->portions;
        view.chunks = workload->chunks;
        view.chunks_per_ns = workload->chunks_per_ns;
    }
    return view;
}

/* ---- chunks ---- */

static void view_counted(const struct plan *plan, struct chunk_view *chunks) {
    for (uint32_t i = 0; i < plan->chunks; i++) {
        bool counted = plan_is_counted(plan, (struct run){.first = i, .count = 1});
        chunks[i] = counted ? (struct chunk_view){CHUNK_COUNTED, plan->by[i]}
                            : (struct chunk_view){CHUNK_WAITING, -1};
    }
}

/* Of chunks with a backup copy, the replica that had them first is named. */
static void view_handed(const struct handed *handed, int replica, struct chunk_view *chunks) {
    for (uint32_t i = handed->run.first; i < handed->run.first + handed->run.count; i++) {
        if (chunks[i].state == CHUNK_COUNTED)
            continue;
        if (handed->backed_up)
            chunks[i] = (struct chunk_view){CHUNK_BACKED_UP, replica};
        else if (chunks[i].state == CHUNK_WAITING)
            chunks[i] = (struct chunk_view){CHUNK_RUNNING, replica};
    }
}

/* Copies those that the evaluation asks for. */
static void pick(const struct evaluation_parts *parts, const struct chunk_view *all,
                 struct chunk_view *chunks) {
    for (uint32_t i = 0; i < parts->count; i++) {
        memcpy(chunks, all + parts->items[i].first, parts->items[i].count * sizeof *chunks);
        chunks += parts->items[i].count;
    }
}

void coordinator_chunks(const struct coordinator *c, struct chunk_view *chunks) {
    const struct plan *plan = &c->steering->plan;
    struct chunk_view *all = memory_new(plan->chunks, sizeof *all);
    view_counted(plan, all);
    for (uint32_t i = 0; i < c->settings.replicas; i++) {
        const struct workload *workload = &c->steering->workloads[i];
        for (uint32_t j = 0; j < workload->handed_count; j++)
            view_handed(&workload->handed[j], (int)i, all);
    }
    if (plan->wanted_chunks)
        pick(&plan->wanted, all, chunks);
    else
        memcpy(chunks, all, plan->chunks * sizeof *chunks);
    free(all);
}
