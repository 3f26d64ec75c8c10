/* The evaluation that runs: its beginning and end, and replicas that come and go meanwhile. */
#include <assert.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/dispatch/dispatch.h"

/* ---- the workers ---- */

void roster_send(const struct roster *roster, uint32_t link, struct message message,
                 struct output *out) {
    assert(link < roster_links(roster));
    message.term = roster->term;
    outbox_add(&out->messages, link, &message);
}

void roster_send_shards(const struct roster *roster, struct message message, struct output *out) {
    assert(roster->shards > 0 && roster->shards <= SHARDS_MAX);
    for (uint32_t i = 0; i < roster->shards; i++)
        if (roster->members[i].connected)
            roster_send(roster, i, message, out);
}

void roster_send_replicas(const struct roster *roster, struct message message, struct output *out) {
    assert(roster->replicas > 0 && roster->replicas <= REPLICAS_MAX);
    for (uint32_t i = roster->shards; i < roster_links(roster); i++)
        if (roster->members[i].connected)
            roster_send(roster, i, message, out);
}

/* ---- life ---- */

void dispatch_init(struct dispatch *d, const struct roster *roster,
                   const struct dispatch_settings *settings) {
    assert(settings->chunks > 0 && roster->shards > 0 && roster->replicas > 0);
    *d = (struct dispatch){.settings = *settings, .roster = roster};
    uint32_t most =
        settings->replicas_most > roster->replicas ? settings->replicas_most : roster->replicas;
    d->workloads = memory_new(most, sizeof *d->workloads);
    plan_init(&d->plan, settings->chunks, settings->strip, most);
}

void dispatch_release(struct dispatch *d) {
    decisions_release(&d->decisions);
    plan_release(&d->plan);
    bytes_release(&d->log);
    bytes_release(&d->folds);
    bytes_release(&d->drops);
    for (uint32_t i = 0; i < d->roster->replicas; i++)
        free(d->workloads[i].dispatched);
    free(d->workloads);
}

void dispatch_forget(struct dispatch *d) {
    d->evaluation.running = d->evaluation.given_up = false;
    d->evaluation.number = 0;
    d->journalled = false;
    bytes_clear(&d->log);
    bytes_clear(&d->folds);
    bytes_clear(&d->drops);
    decisions_clear(&d->decisions);
    for (uint32_t i = 0; i < d->roster->replicas; i++) {
        d->workloads[i].idle = false;
        workload_clear(&d->workloads[i]);
    }
}

/* ---- one evaluation ---- */

uint32_t dispatch_prepare(struct dispatch *d, const struct evaluation_request *request) {
    assert(!d->evaluation.running && d->evaluation.number < UINT32_MAX);
    assert(request->parts.count > 0 && request->parts.count <= EVALUATION_PARTS_MAX);
    d->evaluation.request = *request;
    d->evaluations += !request->minibatch;
    return ++d->evaluation.number;
}

/* The home ranges are those of the replicas that are present, in the order of their links. */
static void divide_homes(struct dispatch *d) {
    uint32_t homes = 0;
    for (uint32_t i = d->roster->shards; i < roster_links(d->roster); i++)
        if (!d->roster->members[i].vacant)
            workload_of(d, i)->home = homes++;
    assert(homes == d->roster->present);
    plan_divide(&d->plan, homes ? homes : 1);
}

/* An evaluation starts from nothing counted. */
static void clear_evaluation(struct dispatch *d, int64_t now_ns) {
    struct current_evaluation *evaluation = &d->evaluation;
    evaluation->running = true;
    evaluation->given_up = evaluation->exceeded = evaluation->shared = false;
    evaluation->maxima = (struct maxima){0};
    evaluation->started_ns = now_ns;
    totals_init(&evaluation->totals, evaluation_totals(&evaluation->request.parts));
    divide_homes(d);
    plan_begin(&d->plan, &evaluation->request.parts);
    d->expected_ns = 0;
    decisions_clear(&d->decisions);
    bytes_clear(&d->log);
    bytes_clear(&d->drops);
    backup_expect_delivery(d);
    for (uint32_t i = d->roster->shards; i < roster_links(d->roster); i++) {
        workload_clear(workload_of(d, i));
        workload_of(d, i)->told = false;
    }
    assert(!d->decisions.count && d->plan.waiting == d->plan.wanted_chunks);
}

void dispatch_expect(struct dispatch *d, uint32_t link) {
    struct workload *workload = workload_of(d, link);
    const uint32_t replica = link - d->roster->shards;
    assert(!d->roster->members[link].vacant && !workload->dispatched_count);
    workload->home = mutant(HOME_OF_PLACE) ? replica : replica % d->plan.homes;
}

void dispatch_join(struct dispatch *d, uint32_t link, int64_t now_ns, struct output *out) {
    assert(d->roster->members[link].ready);
    if (!d->evaluation.running)
        return;
    portions_announce(d, link, out);
    portions_send_next(d, link, now_ns, out);
}

/* EVALUATE goes out without waiting for the shards to run the program that forms the point. A
 * replica that asks for the point too early is answered when the shard's BEGIN is through. */
void dispatch_begin(struct dispatch *d, int64_t now_ns, struct output *out) {
    assert(!d->evaluation.running && d->evaluation.number > 0 && !d->folds.length);
    clear_evaluation(d, now_ns);
    if (d->evaluation.request.minibatch) {
        portions_share_out(d, now_ns, out);
        return;
    }
    for (uint32_t i = d->roster->shards; i < roster_links(d->roster); i++)
        if (d->roster->members[i].ready)
            dispatch_join(d, i, now_ns, out);
}

bool dispatch_is_counted(const struct dispatch *d) {
    assert(d->decisions.unfolded <= d->decisions.folds);
    return d->evaluation.running && plan_complete(&d->plan);
}

void dispatch_end(struct dispatch *d) {
    assert(dispatch_is_counted(d));
    d->evaluation.running = false;
}

void dispatch_give_up(struct dispatch *d) {
    d->evaluation.given_up |= d->evaluation.running;
    d->evaluation.running = false;
    assert(!d->evaluation.given_up || d->evaluation.number > 0);
}

/* What the replica had in hand goes back, also what it may have staged: its flushes are of a dead
 * incarnation now and will be dropped, so nothing is counted twice. */
void dispatch_lose(struct dispatch *d, uint32_t link, int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(d, link);
    uint32_t waiting = d->plan.waiting;
    assert(!d->roster->members[link].ready); /* or its chunks would come back to it */
    assert(waiting + d->plan.counted_chunks <= d->plan.wanted_chunks);
    workload->idle = workload->told = false;
    workload_forget_rate(workload);
    if (d->evaluation.running && !mutant(CHUNKS_LOST)) {
        for (uint32_t i = 0; i < workload->dispatched_count; i++) {
            struct chunk_ranges one = {.items = &workload->dispatched[i].range, .length = 1};
            plan_return(&d->plan, &one);
        }
    }
    if (d->plan.waiting > waiting)
        output_event(out, "returned", "%u chunks that replica %u had in hand go to others",
                     d->plan.waiting - waiting, d->roster->members[link].index);
    workload_clear(workload);
    dispatch_wake_idle(d, now_ns, out);
}

/* ---- going on from a journal ---- */

/* The journal's decisions are in force again before anything else can be counted. Replicas may
 * bring what the former coordinator gave to them, so several may have the same chunks in hand. */
void dispatch_rejoin(struct dispatch *d, const struct bytes *log, int64_t now_ns,
                     struct output *out) {
    assert(!d->evaluation.running);
    d->evaluation.request.minibatch = false; /* those are not journalled */
    clear_evaluation(d, now_ns);
    d->evaluation.shared = true;
    commit_replay(d, log, out);
    assert(d->plan.counted_chunks + d->plan.waiting == d->plan.wanted_chunks);
}

/* ---- in the machine's record ---- */

/* Refuses parts that are malformed, or go beyond the data. */
static void serialize_parts(struct codec *codec, struct evaluation_parts *parts, uint32_t chunks) {
    assert(!codec->out || parts->count <= EVALUATION_PARTS_MAX);
    serialize_u32(codec, &parts->count);
    serialize_fails_if(codec, parts->count > EVALUATION_PARTS_MAX);
    for (uint32_t i = 0; i < parts->count && !codec->in.failed; i++) {
        struct evaluation_part *part = &parts->items[i];
        serialize_u32(codec, &part->kind);
        serialize_u32(codec, &part->first);
        serialize_u32(codec, &part->count);
        serialize_fails_if(codec, part->first > chunks || part->count > chunks - part->first);
    }
    if (parts->count > EVALUATION_PARTS_MAX)
        parts->count = 0;
    const struct part_list list = evaluation_list(parts);
    serialize_fails_if(codec, parts->count && evaluation_fault(&list));
}

void serialize_maxima(struct codec *codec, struct maxima *maxima) {
    if (codec->out)
        maxima_encode(maxima, codec->out);
    else
        *maxima = maxima_decode(&codec->in);
    serialize_fails_if(codec, maxima_fault(maxima) != NULL);
}

static void serialize_weights(struct codec *codec, struct evaluation_request *request) {
    serialize_u32(codec, &request->weight_count);
    serialize_fails_if(codec, request->weight_count > WORKING_SET_MAX);
    for (uint32_t i = 0; i < request->weight_count && !codec->in.failed; i++)
        serialize_u64(codec, &request->weights[i]);
    if (codec->in.failed)
        request->weight_count = 0;
}

void dispatch_serialize(struct codec *codec, struct dispatch *d) {
    struct current_evaluation *evaluation = &d->evaluation;
    struct evaluation_request *request = &evaluation->request;
    assert(d->plan.chunks == d->settings.chunks);
    serialize_u32(codec, &evaluation->number);
    serialize_parts(codec, &request->parts, d->plan.chunks);
    /* There are none before the first evaluation. */
    if (codec->out)
        bounds_encode(&request->bounds, codec->out);
    else
        request->bounds = bounds_decode(&codec->in);
    serialize_fails_if(codec, request->bounds.count && bounds_fault(&request->bounds));
    serialize_f64(codec, &request->sampling.rate);
    serialize_f64(codec, &request->sampling.floor);
    serialize_u64(codec, &request->sampling.sample_seed);
    serialize_weights(codec, request);
    serialize_bool(codec, &evaluation->exceeded);
    serialize_maxima(codec, &evaluation->maxima);
    serialize_u64(codec, &d->evaluations);
}
