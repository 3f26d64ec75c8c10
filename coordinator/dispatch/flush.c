/* Flushes: one decision for each, FOLD or DROP to the shards, and VERDICT to the replica when all
 * shards have folded. doc/PROTOCOL.md shows why this counts each chunk once. */
#include <assert.h>

#include "base/mutant.h"
#include "coordinator/dispatch/dispatch.h"

static void send_flush(const struct dispatch *d, enum message_type type, const struct flush_id *id,
                       struct output *out) {
    struct message message = {.type = type};
    if (type == MESSAGE_FOLD)
        message.fold.flush = *id;
    else
        message.drop.flush = *id;
    roster_send_shards(d->roster, message, out);
}

static void send_verdict(const struct dispatch *d, uint32_t link, const struct flush_id *id,
                         bool accepted, struct output *out) {
    struct message message = {.type = MESSAGE_VERDICT};
    message.verdict = (struct message_verdict){.flush = *id, .accepted = accepted};
    roster_send(d->roster, link, message, out);
}

/* Whether the processes that staged the flush are the shards that live now. A shard that was lost
 * since took its slice with it, and its successor could not fold it. */
static bool shards_are_living(const struct dispatch *d, const struct u64_list *incarnations) {
    if (incarnations->length != d->roster->shards)
        return false;
    if (mutant(ACCEPT_BEFORE_ALL_STAGED))
        return true;
    for (uint32_t i = 0; i < incarnations->length; i++)
        if (incarnations->items[i] != d->roster->members[i].incarnation)
            return false;
    return true;
}

static uint32_t chunks_of(const struct run_list *runs) {
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < runs->length; i++)
        chunks += runs->items[i].count;
    return chunks;
}

/* Decodes the totals of a flush; false if they are not as many as the evaluation has. */
static bool totals_of(const struct dispatch *d, const struct blob *encoded, struct totals *totals) {
    return totals_decode(totals, d->evaluation.totals.count, encoded->data, encoded->length);
}

/* Whether they are of the bounds of the evaluation; there are none if no bound applied. */
static bool maxima_suit(const struct dispatch *d, const struct maxima *maxima) {
    return maxima->count == 0 || maxima->count == d->evaluation.request.bounds.count;
}

/* Counts an accepted flush: its totals, its chunks, its maxima. */
static void count_flush(struct dispatch *d, const struct commit_entry *entry,
                        const struct totals *totals) {
    totals_merge(&d->evaluation.totals, totals);
    plan_count(&d->plan, &entry->portions, entry->replica);
    maxima_merge(&d->evaluation.maxima, &entry->maxima);
    d->evaluation.exceeded |= entry->exceeded != 0;
    decisions_add(&d->decisions, &entry->flush, entry->replica, true, d->roster->shards);
}

/* The log is kept also while nothing is journalled: the evaluation may turn out to be long. */
static void log_commit(struct dispatch *d, const struct bytes *entry, struct output *out) {
    bytes_put_u32(&d->log, (uint32_t)entry->length);
    bytes_append(&d->log, entry->data, entry->length);
    if (d->journalled)
        output_journal(out, entry, false);
}

/* For people: a run does not go on from these records. */
static void record_portions(const struct dispatch *d, const struct message_flushed *flushed,
                            struct output *out) {
    for (uint32_t i = 0; i < flushed->portions.length; i++) {
        struct record *record = output_add(out, RECORD_PORTION);
        record->portion.evaluation = d->evaluations;
        record->portion.flush = flushed->flush;
        record->portion.run = flushed->portions.items[i];
    }
}

/* The chunks are counted in the same step in which they were found uncounted: no other flush can
 * count them. FOLD goes out after the verdict was recorded, as every message goes out after the
 * records: if this process dies, the next one finds in the journal every flush that was folded. */
static void accept_flush(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                         const struct totals *totals, int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(d, link);
    uint32_t chunks = chunks_of(&flushed->portions);
    struct bytes encoded;
    struct commit_entry entry = {.flush = flushed->flush,
                                 .replica = d->roster->members[link].index,
                                 .exceeded = flushed->exceeded,
                                 .maxima = flushed->maxima,
                                 .portions = flushed->portions,
                                 .totals = flushed->totals};
    count_flush(d, &entry, totals);
    workload->chunks += chunks;
    if (flushed->busy_ns)
        workload_note_rate(d, link, (double)chunks / (double)flushed->busy_ns);
    workload_note_delivery(workload, &flushed->portions, now_ns);
    workload_forget_counted(workload, &d->plan);
    for (uint32_t i = d->roster->shards; d->evaluation.shared && i < roster_links(d->roster); i++)
        workload_forget_counted(workload_of(d, i), &d->plan);
    bytes_init(&encoded);
    commit_encode(&entry, &encoded);
    log_commit(d, &encoded, out);
    bytes_release(&encoded);
    if (!d->evaluation.request.minibatch)
        record_portions(d, flushed, out);
    send_flush(d, MESSAGE_FOLD, &flushed->flush, out);
}

/* The verdict is kept, so that a repeated FLUSHED gets the same one. The chunks go back only if
 * they are not counted: a backup copy that lost the race brings nothing back. */
static void drop_flush(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                       int64_t now_ns, struct output *out) {
    uint32_t replica = d->roster->members[link].index;
    decisions_add(&d->decisions, &flushed->flush, replica, false, 0);
    send_flush(d, MESSAGE_DROP, &flushed->flush, out);
    send_verdict(d, link, &flushed->flush, false, out);
    workload_forget(workload_of(d, link), &flushed->portions);
    plan_return(&d->plan, &flushed->portions);
    dispatch_wake_idle(d, now_ns, out);
}

/* The decision on a flush that has none yet: whether it counts. */
static bool decide_flush(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                         int64_t now_ns, struct output *out) {
    struct totals totals;
    if (!shards_are_living(d, &flushed->incarnations) ||
        !plan_may_count(&d->plan, &flushed->portions) || !maxima_suit(d, &flushed->maxima) ||
        !totals_of(d, &flushed->totals, &totals)) {
        drop_flush(d, link, flushed, now_ns, out);
        return false;
    }
    accept_flush(d, link, flushed, &totals, now_ns, out);
    if (d->plan.waiting == 0)
        dispatch_wake_idle(d, now_ns, out);
    return true;
}

/* A flush that was reported before gets the verdict that it had. VERDICT lets the replica use the
 * memory of the flush again, which shards may still read until they have folded it. So after an
 * acceptance it waits for the last FOLDED. */
static void repeat_decision(struct dispatch *d, uint32_t link, const struct decision *known,
                            struct output *out) {
    d->stale++;
    if (!known->accepted || known->unconfirmed == 0)
        send_verdict(d, link, &known->id, known->accepted, out);
}

/* Whether this is the evaluation that runs, or ran last. */
static bool is_last(const struct dispatch *d, uint32_t attempt, uint32_t evaluation) {
    return attempt == d->roster->attempt && evaluation == d->evaluation.number;
}

static bool is_current(const struct dispatch *d, uint32_t attempt, uint32_t evaluation) {
    return d->evaluation.running && is_last(d, attempt, evaluation);
}

void dispatch_wanted(struct dispatch *d, uint32_t link, const struct message_want *want,
                     int64_t now_ns, struct output *out) {
    if (is_current(d, want->attempt, want->evaluation))
        portions_send_next(d, link, now_ns, out);
    else
        d->stale++;
}

/* Also when its evaluation is complete, but some shard has not confirmed a fold; NULL: none. */
static struct decision *find_decision(const struct dispatch *d, const struct flush_id *id) {
    return is_last(d, id->attempt, id->evaluation) ? decisions_find(&d->decisions, id) : NULL;
}

bool dispatch_flushed(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                      int64_t now_ns, struct output *out) {
    const struct flush_id *id = &flushed->flush;
    const struct decision *known = find_decision(d, id);
    if (!known && (!is_current(d, id->attempt, id->evaluation) ||
                   id->incarnation != d->roster->members[link].incarnation)) {
        d->stale++;
        send_flush(d, MESSAGE_DROP, id, out);
        send_verdict(d, link, id, false, out);
        return false;
    }
    if (!known)
        return decide_flush(d, link, flushed, now_ns, out);
    if (mutant(REPEATED_FLUSH_DROPPED))
        drop_flush(d, link, flushed, now_ns, out);
    else
        repeat_decision(d, link, known, out);
    return false;
}

/* Every FOLD is sent again, as the former coordinator may have died before it sent one. A shard
 * that has folded the flush only confirms it again. */
void flush_replay(struct dispatch *d, const struct bytes *log, struct output *out) {
    struct cursor entries = cursor_over(log->data, log->length);
    struct commit_entry entry;
    struct bytes encoded;
    struct totals totals;
    while (commit_next(&entries, &encoded, &entry) && totals_of(d, &entry.totals, &totals)) {
        count_flush(d, &entry, &totals);
        log_commit(d, &encoded, out);
        send_flush(d, MESSAGE_FOLD, &entry.flush, out);
    }
}

/* The next evaluation did not wait for it. Nor does the replica wait for VERDICT: it uses the
 * memory again when it gets the next point from all shards, which have folded then. */
static bool is_late(const struct dispatch *d, const struct flush_id *id) {
    return id->attempt == d->roster->attempt && id->evaluation < d->evaluation.number;
}

bool dispatch_folded(struct dispatch *d, uint32_t link, const struct message_folded *folded,
                     struct output *out) {
    const struct flush_id *id = &folded->flush;
    struct decision *decision = find_decision(d, id);
    assert(link < d->roster->shards);
    if (!decision)
        d->stale += !is_late(d, id);
    if (!decision || !decisions_confirm(&d->decisions, decision, link))
        return false;
    send_verdict(d, d->roster->shards + decision->replica, id, true, out);
    return true;
}
