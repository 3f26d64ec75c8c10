/* Handing out chunks: how long a portion is, how a short evaluation is shared out, and which
 * replica has which chunks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/dispatch/plan.h"
#include "coordinator/steering_parts.h"

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
/* What one more flush makes the coordinator and the shards do. */
#define FLUSH_NS 100e3
#define FLUSH_NS_PER_PARAMETER 2.0

/* A replica that could add nothing in time to so many evaluations is tried: it may be faster now.
 */
#define PASSED_OVER_MAX 32

/* A portion shorter than this, or than its flush takes, is not worth a flush of its own. */
#define SOLO_NS_MIN 20e6

/* ---- which replica has which chunks ---- */

static void note(struct workload *workload, struct run run, int64_t now_ns) {
    MEMORY_ROOM(workload->handed, workload->handed_count, workload->handed_capacity);
    workload->handed[workload->handed_count++] = (struct handed){.run = run, .at_ns = now_ns};
}

void handing_clear(struct workload *workload) {
    workload->handed_count = 0;
}

static void remove_at(struct workload *workload, uint32_t i) {
    workload->handed_count--;
    memmove(workload->handed + i, workload->handed + i + 1,
            (workload->handed_count - i) * sizeof *workload->handed);
}

void handing_forget_counted(struct workload *workload, const struct plan *plan) {
    for (uint32_t i = workload->handed_count; i-- > 0;)
        if (plan_is_counted(plan, workload->handed[i].run))
            remove_at(workload, i);
}

bool handing_covers(const struct run_list *runs, struct run run) {
    for (uint32_t i = 0; i < runs->length; i++) {
        struct run one = runs->items[i];
        if (one.first <= run.first && run.first + run.count <= one.first + one.count)
            return true;
    }
    return false;
}

void handing_forget(struct workload *workload, const struct run_list *runs) {
    for (uint32_t i = workload->handed_count; i-- > 0;)
        if (handing_covers(runs, workload->handed[i].run))
            remove_at(workload, i);
}

/* ---- portions ---- */

/* Added up again when a replica's rate has changed. That those come and go is noticed with the next
 * flush of any. */
static double rate_of_all(struct coordinator *c) {
    struct steering *steering = c->steering;
    if (steering->rate_known)
        return steering->rate;
    steering->rate_known = true;
    steering->rate = 0;
    for (uint32_t i = c->settings.shards, end = coordinator_links(c); i < end; i++)
        if (c->membership.members[i].ready)
            steering->rate += workload_of(c, i)->chunks_per_ns;
    return steering->rate;
}

static double portion_ns_min(const struct coordinator *c) {
    double messages_ns = PORTION_NS_PER_REPLICA * (double)c->settings.replicas;
    return fmax(fmax(PORTION_NS_MIN, messages_ns),
                PORTION_NS_PER_PARAMETER * (double)c->parameters);
}

/* How long the next portion should take. Several replicas end together if portions become shorter
 * towards the end; one alone gets all at once. */
static double portion_ns(struct coordinator *c) {
    if (c->settings.replicas == 1)
        return PORTION_NS_MAX;
    double left_ns = c->steering->plan.waiting / rate_of_all(c);
    return fmin(fmax(left_ns / PORTIONS_LEFT, portion_ns_min(c)), PORTION_NS_MAX);
}

/* How many chunks the replica should be given next. Until its speed is known it gets an eighth of
 * its share, so that a slow one holds up nobody for long. */
static uint32_t portion_chunks(struct coordinator *c, const struct workload *workload) {
    if (c->settings.portion_chunks)
        return c->settings.portion_chunks;
    if (!(workload->chunks_per_ns > 0)) {
        uint32_t chunks = c->steering->plan.chunks / (8 * c->settings.replicas);
        return chunks ? chunks : 1;
    }
    double chunks = fmin(portion_ns(c) * workload->chunks_per_ns, c->steering->plan.chunks);
    return chunks < 1 ? 1 : (uint32_t)chunks;
}

/* The tail is the end of an evaluation, when backup copies are given. Where they are to be expected
 * every portion of it is a flush of its own: if a copy is counted first, the flush that is dropped
 * holds no other work. */
static bool is_tail(const struct coordinator *c, uint32_t link, struct run run) {
    double ns = run.count / workload_of(c, link)->chunks_per_ns; /* infinite: not known yet */
    return ns >= fmax(SOLO_NS_MIN, c->steering->delivery_ns) && isfinite(ns) &&
           c->steering->plan.waiting <= run.count * c->settings.replicas &&
           copying_expects(c, link);
}

static void send_portion(struct coordinator *c, uint32_t link, struct run run, uint8_t flags,
                         int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(c, link);
    evaluating_tell(c, link, out);
    struct message message = {.type = MESSAGE_PORTION};
    message.portion = (struct message_portion){.attempt = c->recovery.attempt,
                                               .evaluation = c->steering->evaluation.number,
                                               .first = run.first,
                                               .count = run.count,
                                               .flags = flags};
    workload->idle = flags & PORTION_LAST; /* it will not ask for more */
    workload->portions++;
    note(workload, run, now_ns);
    send_to(c, link, message, out);
}

static void send_rest(struct coordinator *c, uint32_t link, struct output *out) {
    struct message message = {.type = MESSAGE_REST};
    message.rest = (struct message_rest){.attempt = c->recovery.attempt,
                                         .evaluation = c->steering->evaluation.number};
    workload_of(c, link)->idle = true;
    if (workload_of(c, link)->told)
        send_to(c, link, message, out);
}

/* ---- those that are too slow for this evaluation ---- */

/* The better of its last two flushes: whatever held up one of them may be over. */
static double best_rate(const struct workload *workload) {
    return fmax(workload->chunks_per_ns, workload->before);
}

/* Whether the others are expected to have done everything before it has done one chunk. Once it
 * turns out that they have not, what was expected does not count. */
static bool would_be_late(struct coordinator *c, const struct workload *workload, int64_t now_ns) {
    double rate = best_rate(workload), expected_ns = c->steering->expected_ns;
    if (!(rate > 0) || !(expected_ns > 0) || !c->settings.backup_copies ||
        COPYING_SLOW_FACTOR * rate * c->settings.replicas >= rate_of_all(c))
        return false;
    double elapsed_ns = (double)(now_ns - c->steering->evaluation.started_ns);
    return elapsed_ns + 1 / rate > expected_ns && elapsed_ns < expected_ns + 1 / rate;
}

/* Gives it a chunk to see how fast it is now. Nobody waits for that: others copy it. */
static bool try_again(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(c, link);
    struct run run;
    if (!plan_take(&c->steering->plan, c->membership.members[link].index, 1, &run))
        return false;
    send_portion(c, link, run, PORTION_SOLO | PORTION_LAST, now_ns, out);
    workload->handed[workload->handed_count - 1].trial = true;
    workload->passed_over = 0;
    return true;
}

static bool give_portion(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    const struct workload *workload = workload_of(c, link);
    uint32_t home = c->membership.members[link].index;
    struct run run;
    if (c->steering->plan.waiting == 0 || would_be_late(c, workload, now_ns))
        return false;
    if (!plan_take(&c->steering->plan, home, portion_chunks(c, workload), &run))
        return false;
    uint8_t flags = is_tail(c, link, run) ? PORTION_SOLO : 0;
    flags |= c->steering->plan.waiting == 0 ? PORTION_LAST : 0;
    send_portion(c, link, run, flags, now_ns, out);
    return true;
}

static bool give_backup(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct handed *slowest = c->settings.backup_copies ? copying_worth(c, link, now_ns) : NULL;
    if (!slowest || (slowest->trial && would_be_late(c, workload_of(c, link), now_ns)))
        return false;
    slowest->backed_up = true;
    c->steering->evaluation.shared = true;
    c->steering->backup_copies++;
    send_portion(c, link, slowest->run, PORTION_SOLO | PORTION_LAST, now_ns, out);
    return true;
}

void handing_give(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    if (!give_portion(c, link, now_ns, out))
        send_rest(c, link, out);
}

/* ---- the beginning of a minibatch ---- */

/* The replica `i` places behind that in whose home range the minibatch begins. So short ones,
 * which go to few replicas, are computed where their rows may be in the cache. */
static uint32_t link_behind_home(const struct coordinator *c, uint32_t i) {
    const struct plan *plan = &c->steering->plan;
    uint32_t home = plan_home(plan, plan->wanted.items[0].first);
    return c->settings.shards + (home + i) % c->settings.replicas;
}

/* Shares the evaluation out among the replicas that are ready; returns how many these are, or 0 if
 * the speed of one is not known. */
static uint32_t divide(struct coordinator *c, struct share *shares) {
    uint32_t count = 0;
    double flush_ns = FLUSH_NS + FLUSH_NS_PER_PARAMETER * (double)c->parameters;
    for (uint32_t i = 0; i < c->settings.replicas; i++) {
        uint32_t link = link_behind_home(c, i);
        if (!c->membership.members[link].ready)
            continue;
        shares[count].chunks_per_ns = best_rate(workload_of(c, link));
        if (!(shares[count++].chunks_per_ns > 0))
            return 0;
    }
    if (count)
        c->steering->expected_ns =
            shares_divide(shares, count, c->steering->plan.waiting, flush_ns);
    return count;
}

/* Whether the run could be made one with the other: then it is. */
static bool join(struct run *one, struct run other) {
    if (one->first + one->count != other.first && other.first + other.count != one->first)
        return false;
    one->first = other.first < one->first ? other.first : one->first;
    one->count += other.count;
    return true;
}

/* Its share may be of several runs. Only the last portion ends with a flush. */
static void give_share(struct coordinator *c, uint32_t link, uint32_t chunks, int64_t now_ns,
                       struct output *out) {
    uint32_t home = c->membership.members[link].index;
    struct run all = {0}, run;
    workload_of(c, link)->idle = true;
    while (chunks && plan_take(&c->steering->plan, home, chunks, &run)) {
        chunks -= run.count;
        if (all.count && !join(&all, run)) {
            send_portion(c, link, all, 0, now_ns, out);
            all = run;
        } else if (!all.count) {
            all = run;
        }
    }
    if (all.count)
        send_portion(c, link, all, PORTION_LAST, now_ns, out);
}

/* Those that were passed over for long come first, or all would be handed out. */
static bool try_slow_ones(struct coordinator *c, int64_t now_ns, struct output *out) {
    bool tried = false;
    for (uint32_t link = c->settings.shards; link < coordinator_links(c); link++) {
        struct workload *workload = workload_of(c, link);
        if (!c->membership.members[link].ready || !would_be_late(c, workload, now_ns))
            workload->passed_over = 0;
        else if (++workload->passed_over > PASSED_OVER_MAX)
            tried |= try_again(c, link, now_ns, out);
    }
    return tried;
}

void handing_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct share *shares = memory_new(c->settings.replicas, sizeof *shares);
    uint32_t count = c->settings.portion_chunks ? 0 : divide(c, shares);
    bool at_once = count && c->steering->expected_ns <= SHARED_NS_MAX;
    bool tried = try_slow_ones(c, now_ns, out);
    for (uint32_t i = 0, k = 0; i < c->settings.replicas; i++) {
        uint32_t link = link_behind_home(c, i);
        if (!c->membership.members[link].ready)
            continue;
        uint32_t chunks = shares[k++].chunks;
        if (workload_of(c, link)->handed_count)
            continue; /* it is tried */
        if (at_once)
            give_share(c, link, chunks, now_ns, out);
        else
            handing_give(c, link, now_ns, out);
    }
    free(shares);
    if (tried)
        handing_wake_idle(c, now_ns, out); /* who has got nothing copies it at once */
}

/* ---- later ---- */

/* A replica is free if it will not ask for more (it rests, or was given a portion marked LAST), or
 * if nothing is left of what it was handed. */
static bool is_free(const struct coordinator *c, uint32_t link) {
    const struct workload *workload = workload_of(c, link);
    return c->membership.members[link].ready && (workload->idle || workload->handed_count == 0);
}

void handing_wake_idle(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (!c->steering->evaluation.running)
        return;
    bool copy = copying_may_look(c, now_ns);
    if (c->steering->plan.waiting == 0 && !copy)
        return;
    for (uint32_t i = c->settings.shards, end = coordinator_links(c); i < end; i++)
        if (is_free(c, i) && !give_portion(c, i, now_ns, out) && copy)
            give_backup(c, i, now_ns, out);
}
