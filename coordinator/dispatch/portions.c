/* Handing out chunks: how long a portion is, how a short evaluation is shared out, and which
 * replica has which chunks. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/dispatch/plan.h"
#include "coordinator/dispatch/dispatch.h"

/* A portion should be worth its messages, and short enough that the replicas end together. A flush
 * costs a pass over the gradient, so wide models have longer portions. */
#define PORTION_NS_MIN 2e6
#define PORTION_NS_PER_PARAMETER 13.0
/* The coordinator takes some 20 µs for the two messages of a portion: it may be busy with portions
 * for two fifths of the time. */
#define PORTION_NS_PER_REPLICA 50e3
#define PORTION_NS_MAX 1e9
#define PORTIONS_LEFT 4 /* a portion takes at most this fraction of the time left */

/* An evaluation that is expected to take no longer is shared out at its beginning, with one flush
 * for each replica: to ask for more would take as long as to compute it. */
#define SHARED_NS_MAX (PORTIONS_LEFT * PORTION_NS_MIN)
/* What one more flush costs the coordinator and the shards. */
#define FLUSH_NS 100e3
#define FLUSH_NS_PER_PARAMETER 2.0

/* A replica that was too slow for so many evaluations in a row is given a trial portion: it may be
 * faster now. */
#define PASSED_OVER_MAX 32

/* A portion shorter than this, or than its flush takes, is not worth a flush of its own. */
#define SOLO_NS_MIN 20e6

/* ---- portions ---- */

/* How many chunks the replica should be given next. Until its speed is known it gets an eighth of
 * its share, so that a slow one holds up nobody for long. Several replicas end together if portions
 * become shorter towards the end; one alone gets all at once. */
static uint32_t portion_chunks(struct dispatch *d, const struct workload *workload) {
    assert(d->plan.waiting > 0);
    if (d->settings.portion_chunks)
        return d->settings.portion_chunks;
    if (!(workload->chunks_per_ns > 0)) {
        uint32_t chunks = d->plan.chunks / (8 * d->roster->present);
        return chunks ? chunks : 1;
    }
    double next_ns = PORTION_NS_MAX;
    if (d->roster->present > 1) {
        double left_ns = d->plan.waiting / rates_of(d)->of_all;
        double messages_ns = PORTION_NS_PER_REPLICA * (double)d->roster->present;
        double flush_ns = PORTION_NS_PER_PARAMETER * (double)d->settings.parameters;
        double least_ns = fmax(fmax(PORTION_NS_MIN, messages_ns), flush_ns);
        next_ns = fmin(fmax(left_ns / PORTIONS_LEFT, least_ns), PORTION_NS_MAX);
    }
    double chunks = fmin(next_ns * workload->chunks_per_ns, d->plan.chunks);
    return chunks < 1 ? 1 : (uint32_t)chunks;
}

void portions_announce(struct dispatch *d, uint32_t link, struct output *out) {
    assert(d->evaluation.running);
    struct message message = {.type = MESSAGE_EVALUATE};
    if (workload_of(d, link)->told)
        return;
    workload_of(d, link)->told = true;
    message.evaluate = (struct message_evaluate){
        .attempt = d->roster->attempt,
        .evaluation = d->evaluation.number,
        .bounds = d->evaluation.request.bounds,
        .rate = d->evaluation.request.sampling.rate,
        .floor = d->evaluation.request.sampling.floor,
        .sample_seed = d->evaluation.request.sampling.sample_seed,
        .parts = evaluation_list(&d->evaluation.request.parts),
        .weights = {d->evaluation.request.weights, d->evaluation.request.weight_count},
    };
    roster_send(d->roster, link, message, out);
}

static void send_portion(struct dispatch *d, uint32_t link, struct chunk_range range, uint8_t flags,
                         int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(d, link);
    /* A replica that is being set up anew may still ask for work, and gets it: it computes when it
     * is ready. */
    assert(d->evaluation.running);
    assert(range.count > 0 && range.count <= d->plan.chunks - range.first);
    portions_announce(d, link, out);
    struct message message = {.type = MESSAGE_PORTION};
    message.portion = (struct message_portion){.attempt = d->roster->attempt,
                                               .evaluation = d->evaluation.number,
                                               .first = range.first,
                                               .count = range.count,
                                               .flags = flags};
    workload->idle = flags & PORTION_LAST; /* it will not ask for more */
    workload->portions++;
    workload_note(workload, range, now_ns);
    roster_send(d->roster, link, message, out);
}

/* ---- those that are too slow for this evaluation ---- */

/* The better of its last two flushes: whatever held up one of them may be over. */
static double best_rate(const struct workload *workload) {
    assert(workload->chunks_per_ns >= 0 && workload->before >= 0);
    return fmax(workload->chunks_per_ns, workload->before);
}

/* Whether the others are expected to have done everything before it has done one chunk. If they are
 * not done when they were expected to be, the expectation was wrong and no longer counts. */
static bool would_be_late(struct dispatch *d, const struct workload *workload, int64_t now_ns) {
    double rate = best_rate(workload), expected_ns = d->expected_ns;
    assert(now_ns >= d->evaluation.started_ns);
    if (!(rate > 0) || !(expected_ns > 0) || !d->settings.backup_copies ||
        SLOW_FACTOR * rate * d->roster->present >= rates_of(d)->of_all)
        return false;
    double elapsed_ns = (double)(now_ns - d->evaluation.started_ns);
    return elapsed_ns + 1 / rate > expected_ns && elapsed_ns < expected_ns + 1 / rate;
}

static bool send_portion_if_any(struct dispatch *d, uint32_t link, int64_t now_ns,
                                struct output *out) {
    const struct workload *workload = workload_of(d, link);
    uint32_t home = workload->home;
    struct chunk_range range;
    if (d->plan.waiting == 0 || would_be_late(d, workload, now_ns))
        return false;
    plan_take(&d->plan, home, portion_chunks(d, workload), &range);
    assert(range.count > 0); /* as chunks wait */
    /* A range that belongs to the end of the evaluation, and may get a backup copy, is a flush of
     * its own: if the copy is counted first, the flush that is dropped holds no other work. */
    double ns = range.count / workload->chunks_per_ns; /* infinite: not known yet */
    bool tail = ns >= fmax(SOLO_NS_MIN, d->delivery_ns) && isfinite(ns) &&
                d->plan.waiting <= range.count * d->roster->present && backup_is_expected(d, link);
    uint8_t flags = tail ? PORTION_SOLO : 0;
    flags |= d->plan.waiting == 0 ? PORTION_LAST : 0;
    send_portion(d, link, range, flags, now_ns, out);
    return true;
}

static void send_backup_if_any(struct dispatch *d, struct backup_search *search, uint32_t link,
                               int64_t now_ns, struct output *out) {
    struct dispatched *slowest = backup_find(d, search, link, now_ns);
    assert(d->evaluation.running && d->settings.backup_copies);
    if (!slowest || (slowest->trial && would_be_late(d, workload_of(d, link), now_ns)))
        return;
    assert(!slowest->backed_up); /* a portion is copied once */
    slowest->backed_up = true;
    d->evaluation.shared = true;
    d->backup_copies++;
    send_portion(d, link, slowest->range, PORTION_SOLO | PORTION_LAST, now_ns, out);
}

void portions_send_next(struct dispatch *d, uint32_t link, int64_t now_ns, struct output *out) {
    assert(d->evaluation.running);
    if (!send_portion_if_any(d, link, now_ns, out)) {
        struct message message = {.type = MESSAGE_REST};
        message.rest = (struct message_rest){.attempt = d->roster->attempt,
                                             .evaluation = d->evaluation.number};
        workload_of(d, link)->idle = true;
        if (workload_of(d, link)->told)
            roster_send(d->roster, link, message, out);
    }
}

/* ---- the beginning of a minibatch ---- */

/* The replica `i` places after that in whose home range the minibatch begins. So short ones,
 * which go to few replicas, are computed where their rows may be in the cache. */
static uint32_t link_behind_home(const struct dispatch *d, uint32_t i) {
    const struct plan *plan = &d->plan;
    uint32_t home = plan_home(plan, plan->wanted.items[0].first);
    assert(i < d->roster->replicas && plan->wanted.count > 0);
    return d->roster->shards + (home + i) % d->roster->replicas;
}

/* Shares the minibatch out among the replicas that are ready. Returns how many these are, or 0 if
 * the rate of one is not known. */
static uint32_t divide_minibatch(struct dispatch *d, struct share *shares) {
    uint32_t count = 0;
    double flush_ns = FLUSH_NS + FLUSH_NS_PER_PARAMETER * (double)d->settings.parameters;
    for (uint32_t i = 0; i < d->roster->replicas; i++) {
        uint32_t link = link_behind_home(d, i);
        if (!d->roster->members[link].ready)
            continue;
        shares[count].chunks_per_ns = best_rate(workload_of(d, link));
        if (!(shares[count++].chunks_per_ns > 0))
            return 0;
    }
    assert(count <= d->roster->replicas);
    if (count)
        d->expected_ns = shares_divide(shares, count, d->plan.waiting, flush_ns);
    return count;
}

/* Adds the other range to this one if they touch. */
static bool join_ranges(struct chunk_range *one, struct chunk_range other) {
    assert(one->count > 0 && other.count > 0);
    if (one->first + one->count != other.first && other.first + other.count != one->first)
        return false;
    one->first = other.first < one->first ? other.first : one->first;
    one->count += other.count;
    return true;
}

/* A share may consist of several ranges. Each becomes a portion, and only the last one ends with a
 * flush. */
static void send_share(struct dispatch *d, uint32_t link, uint32_t chunks, int64_t now_ns,
                       struct output *out) {
    uint32_t home = workload_of(d, link)->home;
    struct chunk_range all = {0}, range; /* all: taken, and not sent yet */
    workload_of(d, link)->idle = true;
    while (chunks && plan_take(&d->plan, home, chunks, &range)) {
        chunks -= range.count;
        if (all.count && !join_ranges(&all, range)) {
            send_portion(d, link, all, 0, now_ns, out);
            all = range;
        } else if (!all.count) {
            all = range;
        }
    }
    if (all.count)
        send_portion(d, link, all, PORTION_LAST, now_ns, out);
}

/* Gives replicas that were too slow for long a trial portion, one chunk, to learn how fast they are
 * now. Nobody waits for that chunk: another replica copies it. Returns whether any got one. The
 * caller does this first: later no chunk may be left. */
static bool try_slow_ones(struct dispatch *d, int64_t now_ns, struct output *out) {
    bool tried = false;
    for (uint32_t link = d->roster->shards; link < roster_links(d->roster); link++) {
        struct workload *workload = workload_of(d, link);
        if (!d->roster->members[link].ready || !would_be_late(d, workload, now_ns))
            workload->passed_over = 0;
        else
            workload->passed_over++;
        struct chunk_range range;
        if (workload->passed_over <= PASSED_OVER_MAX ||
            !plan_take(&d->plan, workload->home, 1, &range))
            continue;
        assert(d->roster->members[link].ready && !workload->dispatched_count);
        send_portion(d, link, range, PORTION_SOLO | PORTION_LAST, now_ns, out);
        workload->dispatched[workload->dispatched_count - 1].trial = true;
        workload->passed_over = 0;
        tried = true;
    }
    return tried;
}

void portions_share_out(struct dispatch *d, int64_t now_ns, struct output *out) {
    struct share *shares = memory_new(d->roster->replicas, sizeof *shares);
    uint32_t count = d->settings.portion_chunks ? 0 : divide_minibatch(d, shares);
    bool at_once = count && d->expected_ns <= SHARED_NS_MAX;
    bool tried = try_slow_ones(d, now_ns, out);
    assert(d->evaluation.running && d->evaluation.request.minibatch);
    assert(!at_once || count <= d->roster->replicas);
    for (uint32_t i = 0, k = 0; i < d->roster->replicas; i++) {
        uint32_t link = link_behind_home(d, i);
        if (!d->roster->members[link].ready)
            continue;
        uint32_t chunks = shares[k++].chunks;
        if (workload_of(d, link)->dispatched_count)
            continue; /* it has a trial portion */
        if (at_once)
            send_share(d, link, chunks, now_ns, out);
        else
            portions_send_next(d, link, now_ns, out);
    }
    free(shares);
    if (tried)
        dispatch_wake_idle(d, now_ns, out); /* who has got nothing copies it at once */
}

/* ---- later ---- */

void dispatch_wake_idle(struct dispatch *d, int64_t now_ns, struct output *out) {
    if (!d->evaluation.running)
        return;
    bool copy = backup_is_due(d, now_ns);
    if (d->plan.waiting == 0 && !copy)
        return;
    /* What another replica's flush has counted need not be computed any more. This is looked for
     * when it matters: at each flush it would be a walk over all replicas. */
    for (uint32_t i = 0; i < d->roster->replicas && d->evaluation.shared; i++)
        workload_forget_counted(&d->workloads[i], &d->plan);
    struct backup_search search = {0};
    for (uint32_t i = d->roster->shards, end = roster_links(d->roster); i < end; i++) {
        const struct workload *workload = workload_of(d, i);
        bool free = workload->idle || workload->dispatched_count == 0;
        if (d->roster->members[i].ready && free && !send_portion_if_any(d, i, now_ns, out) && copy)
            send_backup_if_any(d, &search, i, now_ns, out);
    }
    backup_search_release(&search);
}
