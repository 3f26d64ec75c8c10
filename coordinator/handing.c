/* Handing out chunks: how long a portion is, which replica has which, and backup copies of what
 * takes long. Backup copies are those of MapReduce, but only where a fresh copy is expected to
 * finish first (Zaharia et al., "Improving MapReduce performance in heterogeneous environments",
 * OSDI 2008), and between processes of one host only if the holder is proven slow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

/* A portion shorter than this, or than its flush takes, is not worth a flush of its own. */
#define SOLO_NS_MIN 20e6

/* The holder must be expected to need at least this time, and longer than the copy by this factor.
 */
#define BACKUP_GAIN 1.5
#define BACKUP_REMAINING_NS 20e6

/* To look for portions worth copying costs a look at all that is in hand, for each replica that
 * rests. So with many replicas it is done at most once in this time for each two of them: 20 ms for
 * a thousand. */
#define LOOK_NS_A_PAIR 20
#define LOOK_ALWAYS 32 /* replicas: fewer cost nothing */

/* A replica is proven slow if each of its last SLOW_FLUSHES flushes showed less than 1/SLOW_FACTOR
 * of the median rate of the others; or, for as long as it is silent, once it has held a portion for
 * SILENT_FACTOR times as long as the portion should take. */
#define SLOW_FACTOR 2.0
#define SLOW_FLUSHES 2
#define SILENT_FACTOR 4.0

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

static bool covers(const struct run_list *runs, struct run run) {
    for (uint32_t i = 0; i < runs->length; i++) {
        struct run one = runs->items[i];
        if (one.first <= run.first && run.first + run.count <= one.first + one.count)
            return true;
    }
    return false;
}

void handing_forget(struct workload *workload, const struct run_list *runs) {
    for (uint32_t i = workload->handed_count; i-- > 0;)
        if (covers(runs, workload->handed[i].run))
            remove_at(workload, i);
}

/* ---- who is slow ---- */

/* Whether at least half of the other replicas were faster than this one by SLOW_FACTOR. */
static bool is_behind(const struct coordinator *c, uint32_t link) {
    double rate = workload_of(c, link)->chunks_per_ns;
    uint32_t others = 0, faster = 0;
    for (uint32_t i = c->settings.shards, end = coordinator_links(c); i < end; i++) {
        double other = workload_of(c, i)->chunks_per_ns;
        if (i == link || !(other > 0))
            continue;
        others++;
        faster += other > SLOW_FACTOR * rate;
    }
    return others && 2 * faster >= others;
}

void handing_note_rate(struct coordinator *c, uint32_t link, double chunks_per_ns) {
    struct workload *workload = workload_of(c, link);
    workload->chunks_per_ns = chunks_per_ns;
    c->steering->rate_known = false;
    workload->slow_flushes = is_behind(c, link) ? workload->slow_flushes + 1 : 0;
}

void handing_forget_rate(struct workload *workload) {
    workload->chunks_per_ns = 0;
    workload->delivery_ns = 0;
    workload->slow_flushes = 0;
}

static bool was_slow(const struct workload *workload) {
    return workload->slow_flushes >= SLOW_FLUSHES;
}

static bool is_silent(const struct coordinator *c, const struct workload *owner,
                      const struct workload *copier, const struct handed *handed, int64_t now_ns) {
    double rate = owner->chunks_per_ns > 0 ? owner->chunks_per_ns : copier->chunks_per_ns;
    double elapsed = (double)(now_ns - handed->at_ns) - c->steering->delivery_ns;
    return elapsed * rate >= SILENT_FACTOR * handed->run.count;
}

/* ---- delivery ---- */

/* With many replicas, most of what the coordinator waits for at the end of an evaluation is
 * computed already and on its way to the shards. To copy that would only add to what is under way.
 *
 * A portion is handed out when its replica starts on the one before. */
void handing_note_delivery(struct workload *workload, const struct run_list *runs, int64_t now_ns) {
    const struct handed *last = NULL;
    uint32_t chunks = 0, before = 0;
    for (uint32_t i = 0; i < workload->handed_count; i++) {
        const struct handed *handed = &workload->handed[i];
        if (!covers(runs, handed->run) || handed->backed_up)
            continue;
        before = chunks;
        chunks = handed->run.count;
        last = handed;
    }
    if (!last || !(workload->chunks_per_ns > 0))
        return;
    double computed_ns = (chunks + before) / workload->chunks_per_ns;
    workload->delivery_ns = fmax((double)(now_ns - last->at_ns) - computed_ns, 0);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Flushes that all come at the end wait for one another at the shards: the last of them about twice
 * as long as the median. One that took far longer than the others says nothing about those. */
void handing_expect_delivery(struct coordinator *c) {
    uint32_t count = 0;
    double *known = memory_new(c->settings.replicas, sizeof *known);
    for (uint32_t i = 0; i < c->settings.replicas; i++)
        if (c->steering->workloads[i].delivery_ns > 0)
            known[count++] = c->steering->workloads[i].delivery_ns;
    qsort(known, count, sizeof *known, compare);
    c->steering->delivery_ns = count ? 2 * known[(count - 1) / 2] : 0;
    free(known);
}

static bool on_one_host(const struct coordinator *c, uint32_t a, uint32_t b) {
    return strcmp(c->membership.members[a].host, c->membership.members[b].host) == 0;
}

/* ---- backup copies ---- */

/* Replicas of one host share its processors and its memory: one that is late there is usually held
 * up by the others, and a copy would hold it up more. So there a copy needs proof. */
static bool may_copy(const struct coordinator *c, uint32_t owner, uint32_t copier,
                     const struct handed *handed, int64_t now_ns) {
    const struct workload *of_owner = workload_of(c, owner);
    return !on_one_host(c, owner, copier) || was_slow(of_owner) ||
           is_silent(c, of_owner, workload_of(c, copier), handed, now_ns);
}

/* Whether what this replica is handed now may be copied although it does not fall silent. */
static bool expects_copies(const struct coordinator *c, uint32_t link) {
    if (!c->settings.backup_copies || was_slow(workload_of(c, link)))
        return c->settings.backup_copies;
    for (uint32_t i = c->settings.shards, end = coordinator_links(c); i < end; i++)
        if (c->membership.members[i].ready && !on_one_host(c, i, link))
            return true;
    return false;
}

/* How long it will still be until the owner's flush is accepted. If it is late already, it is
 * expected to need as long again as it has taken. */
static double remaining_ns(const struct coordinator *c, const struct workload *owner,
                           const struct handed *handed, int64_t now_ns) {
    double elapsed = (double)(now_ns - handed->at_ns);
    double total = owner->chunks_per_ns > 0 ? handed->run.count / owner->chunks_per_ns : 0;
    total += c->steering->delivery_ns;
    return elapsed < total ? total - elapsed : elapsed;
}

/* What others have in hand and the replica on `link` should copy; NULL if nothing is worth it. A
 * portion is copied once. */
static struct handed *worth_copying(const struct coordinator *c, uint32_t link, int64_t now_ns) {
    const struct workload *copier = workload_of(c, link);
    struct handed *slowest = NULL;
    double longest = BACKUP_REMAINING_NS;
    if (copier->handed_count || !(copier->chunks_per_ns > 0))
        return NULL;
    for (uint32_t i = c->settings.shards, end = coordinator_links(c); i < end; i++) {
        struct workload *owner = workload_of(c, i);
        for (uint32_t j = 0; j < owner->handed_count && i != link; j++) {
            struct handed *handed = &owner->handed[j];
            double remaining = remaining_ns(c, owner, handed, now_ns);
            double fresh = handed->run.count / copier->chunks_per_ns + c->steering->delivery_ns;
            if (!handed->backed_up && remaining > longest && remaining > BACKUP_GAIN * fresh &&
                may_copy(c, i, link, handed, now_ns)) {
                slowest = handed;
                longest = remaining;
            }
        }
    }
    return slowest;
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
           c->steering->plan.waiting <= run.count * c->settings.replicas && expects_copies(c, link);
}

static void send_portion(struct coordinator *c, uint32_t link, struct run run, uint8_t flags,
                         int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(c, link);
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
    send_to(c, link, message, out);
}

static bool give_portion(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    const struct workload *workload = workload_of(c, link);
    uint32_t home = c->membership.members[link].index;
    struct run run;
    if (c->steering->plan.waiting == 0)
        return false;
    if (!plan_take(&c->steering->plan, home, portion_chunks(c, workload), &run))
        return false;
    uint8_t flags = is_tail(c, link, run) ? PORTION_SOLO : 0;
    flags |= c->steering->plan.waiting == 0 ? PORTION_LAST : 0;
    send_portion(c, link, run, flags, now_ns, out);
    return true;
}

static bool give_backup(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct handed *slowest = c->settings.backup_copies ? worth_copying(c, link, now_ns) : NULL;
    if (!slowest)
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

/* A replica is free if it will not ask for more (it rests, or was given a portion marked LAST), or
 * if nothing is left of what it was handed. */
static bool is_free(const struct coordinator *c, uint32_t link) {
    const struct workload *workload = workload_of(c, link);
    return c->membership.members[link].ready && (workload->idle || workload->handed_count == 0);
}

/* Whether some portion takes so long that a copy of it could be worth it. */
static bool is_any_late(const struct coordinator *c, int64_t now_ns) {
    for (uint32_t i = c->settings.shards, end = coordinator_links(c); i < end; i++) {
        const struct workload *owner = workload_of(c, i);
        for (uint32_t j = 0; j < owner->handed_count; j++)
            if (!owner->handed[j].backed_up &&
                remaining_ns(c, owner, &owner->handed[j], now_ns) > BACKUP_REMAINING_NS)
                return true;
    }
    return false;
}

/* Whether it is time to look for portions worth copying, and there may be any. */
static bool may_look(struct coordinator *c, int64_t now_ns) {
    int64_t replicas = c->settings.replicas;
    int64_t pause_ns = replicas < LOOK_ALWAYS ? 0 : replicas * replicas * LOOK_NS_A_PAIR;
    if (now_ns - c->steering->looked_ns < pause_ns)
        return false;
    c->steering->looked_ns = now_ns;
    return is_any_late(c, now_ns);
}

void handing_wake_idle(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (!c->steering->evaluation.running)
        return;
    bool copy = may_look(c, now_ns);
    if (c->steering->plan.waiting == 0 && !copy)
        return;
    for (uint32_t i = c->settings.shards, end = coordinator_links(c); i < end; i++)
        if (is_free(c, i) && !give_portion(c, i, now_ns, out) && copy)
            give_backup(c, i, now_ns, out);
}
