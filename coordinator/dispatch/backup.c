/* Backup copies of what takes long: who is slow, how long a flush takes to be accepted, and what a
 * replica that has nothing to do should copy. Copies are those of MapReduce, but only where a fresh
 * copy is expected to finish first (Zaharia et al., "Improving MapReduce performance in
 * heterogeneous environments", OSDI 2008), and between processes of one host only if the holder is
 * proven slow. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/dispatch/dispatch.h"

/* The holder must be expected to need at least this time, and longer than the copy by this factor.
 */
#define BACKUP_GAIN 1.5
#define BACKUP_REMAINING_NS 20e6

/* Many replicas pause between two searches for portions worth copying, for this time for each pair
 * of them: 20 ms for a thousand. What is late at the end mostly waits for the shards, as all the
 * rest does, and copies of it add to that: 10,000 replicas that searched each 200 ms copied nearly
 * a portion each, and took a seventh longer (doc/SCALE.md). */
#define LOOK_NS_A_PAIR 20
#define LOOK_ALWAYS 32 /* replicas: fewer cost nothing */

/* A replica is proven slow if each of its last SLOW_FLUSHES flushes showed less than
 * 1/SLOW_FACTOR of the median rate of the others; or, for as long as it is silent, once it
 * has held a portion for SILENT_FACTOR times as long as the portion should take. */
#define SLOW_FLUSHES 2
#define SILENT_FACTOR 4.0

/* Rates are looked at again when more than this part of those known has changed: to look at all and
 * to sort them for each flush would take the coordinator of thousands of replicas longer than the
 * flush. */
#define RATES_PART 8

/* ---- what a replica has in hand ---- */

void workload_note(struct workload *workload, struct chunk_range range, int64_t now_ns) {
    assert(range.count > 0);
    MEMORY_ROOM(workload->dispatched, workload->dispatched_count, workload->dispatched_capacity);
    workload->dispatched[workload->dispatched_count++] =
        (struct dispatched){.range = range, .at_ns = now_ns};
    assert(workload->dispatched_count <= workload->dispatched_capacity);
}

void workload_clear(struct workload *workload) {
    workload->dispatched_count = 0;
}

static void remove_at(struct workload *workload, uint32_t i) {
    assert(i < workload->dispatched_count);
    workload->dispatched_count--;
    memmove(workload->dispatched + i, workload->dispatched + i + 1,
            (workload->dispatched_count - i) * sizeof *workload->dispatched);
}

void workload_forget_counted(struct workload *workload, const struct plan *plan) {
    for (uint32_t i = workload->dispatched_count; i-- > 0;)
        if (plan_is_counted(plan, workload->dispatched[i].range))
            remove_at(workload, i);
}

void workload_forget(struct workload *workload, const struct chunk_ranges *ranges) {
    for (uint32_t i = workload->dispatched_count; i-- > 0;)
        if (chunk_ranges_cover(ranges, workload->dispatched[i].range))
            remove_at(workload, i);
}

/* ---- who is slow ---- */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A replica is behind if at least half of the others are faster by SLOW_FACTOR. It is not among
 * those itself: so one bound does for all. */
static void find_rates(struct dispatch *d) {
    uint32_t count = 0;
    double *known = memory_new(d->roster->replicas, sizeof *known);
    d->rates = (struct rates){.known = true};
    for (uint32_t i = d->roster->shards, end = roster_links(d->roster); i < end; i++) {
        double rate = workload_of(d, i)->chunks_per_ns;
        d->rates.of_all += d->roster->members[i].ready ? rate : 0;
        if (rate > 0)
            known[count++] = rate;
    }
    qsort(known, count, sizeof *known, compare_doubles);
    d->rates.count = count;
    d->rates.upper_half = count > 1 ? known[count - count / 2] : 0;
    assert(d->rates.of_all >= 0);
    free(known);
}

const struct rates *rates_of(struct dispatch *d) {
    if (!d->rates.known || d->rates.changed > d->rates.count / RATES_PART)
        find_rates(d);
    return &d->rates;
}

void workload_note_rate(struct dispatch *d, uint32_t link, double chunks_per_ns) {
    assert(chunks_per_ns >= 0 && isfinite(chunks_per_ns));
    struct workload *workload = workload_of(d, link);
    workload->before = workload->chunks_per_ns;
    workload->chunks_per_ns = chunks_per_ns;
    d->rates.changed++;
    bool behind = rates_of(d)->upper_half > SLOW_FACTOR * chunks_per_ns;
    workload->slow_flushes = behind ? workload->slow_flushes + 1 : 0;
}

void workload_forget_rate(struct workload *workload) {
    workload->chunks_per_ns = workload->before = 0;
    workload->passed_over = 0;
    workload->delivery_ns = 0;
    workload->slow_flushes = 0;
}

static bool was_slow(const struct workload *workload) {
    return workload->slow_flushes >= SLOW_FLUSHES;
}

/* ---- delivery ---- */

/* With many replicas, most of what the coordinator waits for at the end of an evaluation is
 * computed already and on its way to the shards. A copy of that would only add to the traffic.
 *
 * A portion is handed out when its replica starts on the one before: so from then on the replica
 * computes both. */
void workload_note_delivery(struct workload *workload, const struct chunk_ranges *ranges,
                            int64_t now_ns) {
    const struct dispatched *last = NULL;
    uint32_t chunks = 0, before = 0;
    for (uint32_t i = 0; i < workload->dispatched_count; i++) {
        const struct dispatched *portion = &workload->dispatched[i];
        if (!chunk_ranges_cover(ranges, portion->range) || portion->backed_up)
            continue;
        before = chunks;
        chunks = portion->range.count;
        last = portion;
    }
    if (!last || !(workload->chunks_per_ns > 0))
        return;
    assert(now_ns >= last->at_ns);
    double computed_ns = (chunks + before) / workload->chunks_per_ns;
    workload->delivery_ns = fmax((double)(now_ns - last->at_ns) - computed_ns, 0);
    assert(isfinite(workload->delivery_ns));
}

/* Flushes that all come at the end wait for one another at the shards: the last of them about twice
 * as long as the median. One that took far longer than the others says nothing about those. */
void backup_expect_delivery(struct dispatch *d) {
    uint32_t count = 0;
    double *known = memory_new(d->roster->replicas, sizeof *known);
    assert(!d->evaluation.running || d->plan.counted_chunks == 0);
    for (uint32_t i = 0; i < d->roster->replicas; i++)
        if (d->workloads[i].delivery_ns > 0)
            known[count++] = d->workloads[i].delivery_ns;
    qsort(known, count, sizeof *known, compare_doubles);
    d->delivery_ns = count ? 2 * known[(count - 1) / 2] : 0;
    assert(d->delivery_ns >= 0);
    free(known);
}

static bool on_one_host(const struct dispatch *d, uint32_t a, uint32_t b) {
    assert(a < roster_links(d->roster) && b < roster_links(d->roster));
    return strcmp(d->roster->members[a].host, d->roster->members[b].host) == 0;
}

/* ---- backup copies ---- */

/* Replicas of one host share its processors and its memory: one that is late there is usually held
 * up by the others, and a copy would hold it up more. So there only what a replica holds that is
 * proven slow is copied. */
static bool may_copy(const struct dispatch *d, uint32_t owner, uint32_t copier,
                     const struct dispatched *portion, int64_t now_ns) {
    assert(owner != copier && portion->range.count > 0);
    const struct workload *of_owner = workload_of(d, owner);
    if (!on_one_host(d, owner, copier) || was_slow(of_owner))
        return true;
    double rate = of_owner->chunks_per_ns; /* of the copier if it is not known */
    double elapsed = (double)(now_ns - portion->at_ns) - d->delivery_ns;
    rate = rate > 0 ? rate : workload_of(d, copier)->chunks_per_ns;
    return elapsed * rate >= SILENT_FACTOR * portion->range.count;
}

bool backup_is_expected(const struct dispatch *d, uint32_t link) {
    if (!d->settings.backup_copies || was_slow(workload_of(d, link)))
        return d->settings.backup_copies;
    for (uint32_t i = d->roster->shards, end = roster_links(d->roster); i < end; i++)
        if (d->roster->members[i].ready && !on_one_host(d, i, link))
            return true;
    return false;
}

/* How long it will still be until the owner's flush is accepted. If it is late already, it is
 * expected to need as long again as it has taken. */
static double remaining_ns(const struct dispatch *d, const struct workload *owner,
                           const struct dispatched *portion, int64_t now_ns) {
    assert(now_ns >= portion->at_ns && portion->range.count > 0);
    double elapsed = (double)(now_ns - portion->at_ns);
    double total = owner->chunks_per_ns > 0 ? portion->range.count / owner->chunks_per_ns : 0;
    total += d->delivery_ns;
    return elapsed < total ? total - elapsed : elapsed;
}

bool backup_is_due(struct dispatch *d, int64_t now_ns) {
    int64_t replicas = d->roster->present;
    int64_t pause_ns = replicas < LOOK_ALWAYS ? 0 : replicas * replicas * LOOK_NS_A_PAIR;
    assert(replicas <= REPLICAS_MAX);
    if (!d->settings.backup_copies || now_ns - d->looked_ns < pause_ns)
        return false;
    d->looked_ns = now_ns;
    return true;
}

/* Trials first, then what will take longest, and in the order of links what takes as long. */
static int compare_late(const void *a, const void *b) {
    const struct late *x = a, *y = b;
    if (x->trial != y->trial)
        return x->trial ? -1 : 1;
    if (!x->trial && x->remaining_ns != y->remaining_ns)
        return x->remaining_ns > y->remaining_ns ? -1 : 1;
    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static void find_late(const struct dispatch *d, int64_t now_ns, struct backup_search *search) {
    uint32_t capacity = 0;
    assert(!search->done && !search->late);
    search->done = true;
    for (uint32_t i = d->roster->shards, end = roster_links(d->roster); i < end; i++) {
        const struct workload *owner = workload_of(d, i);
        for (uint32_t j = 0; j < owner->dispatched_count; j++) {
            const struct dispatched *portion = &owner->dispatched[j];
            double remaining = remaining_ns(d, owner, portion, now_ns);
            if (portion->backed_up || (!portion->trial && remaining <= BACKUP_REMAINING_NS))
                continue;
            MEMORY_ROOM(search->late, search->count, capacity);
            search->late[search->count++] = (struct late){i, j, portion->trial, remaining};
        }
    }
    if (search->count)
        qsort(search->late, search->count, sizeof *search->late, compare_late);
}

void backup_search_release(struct backup_search *search) {
    free(search->late);
    *search = (struct backup_search){0};
}

struct dispatched *backup_find(const struct dispatch *d, struct backup_search *search,
                               uint32_t link, int64_t now_ns) {
    const struct workload *copier = workload_of(d, link);
    bool sooner = false; /* a copy of some portion would be */
    if (copier->dispatched_count || copier->chunks_per_ns <= search->too_slow)
        return NULL;
    if (!search->done)
        find_late(d, now_ns, search);
    for (uint32_t i = search->first; i < search->count; i++) {
        const struct late *late = &search->late[i];
        struct dispatched *portion = &workload_of(d, late->link)->dispatched[late->place];
        double fresh = portion->range.count / copier->chunks_per_ns + d->delivery_ns;
        assert(late->link != link);
        search->first += portion->backed_up && i == search->first;
        if (portion->backed_up)
            continue;
        if (late->trial)
            return portion;
        if (late->remaining_ns <= BACKUP_GAIN * fresh)
            continue;
        sooner = true;
        if (may_copy(d, late->link, link, portion, now_ns))
            return portion;
    }
    if (!sooner)
        search->too_slow = copier->chunks_per_ns;
    return NULL;
}
