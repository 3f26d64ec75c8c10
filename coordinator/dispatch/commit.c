/* Flushes and the commit decisions on them: one for each, FOLD or DROP to the shards, and VERDICT
 * to the replica: at once if it is dropped, else when all shards have folded it. doc/PROTOCOL.md
 * shows why this counts each chunk once. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/dispatch/dispatch.h"

/* ---- the decisions of one evaluation ---- */

/* The decision on one flush. It does not change: a flush that is reported again gets the same. */
struct decision {
    struct flush_id id;
    bool accepted;
    uint32_t replica; /* index of the one that sent it; a run that was taken up may have fewer */
    uint32_t unconfirmed;                /* shards whose FOLDED is still to come */
    uint64_t confirmed[SHARDS_MAX / 64]; /* bit set of shards */
};
static_assert(SHARDS_MAX % 64 == 0, "a bit for every shard");

void decisions_release(struct decisions *decisions) {
    free(decisions->items);
    flush_index_release(&decisions->index);
    *decisions = (struct decisions){0};
}

void decisions_clear(struct decisions *decisions) {
    flush_index_clear(&decisions->index);
    decisions->count = decisions->unfolded = 0;
    decisions->folds = decisions->fold_hash = 0;
}

static void decisions_add(struct decisions *decisions, const struct flush_id *id, uint32_t replica,
                          bool accepted, uint32_t shards) {
    assert(accepted == (shards > 0) && shards <= SHARDS_MAX);
    MEMORY_ROOM(decisions->items, decisions->count, decisions->capacity);
    flush_index_add(&decisions->index, id, decisions->count);
    struct decision *decision = &decisions->items[decisions->count++];
    *decision = (struct decision){.id = *id, .replica = replica, .accepted = accepted};
    if (accepted) {
        decision->unconfirmed = shards;
        decisions->unfolded++;
        decisions->folds++;
        decisions->fold_hash += flush_id_hash(id);
    }
    assert(decisions->unfolded <= decisions->folds && decisions->folds <= decisions->count);
}

/* Shard `shard` has folded it. True if that was the last shard to confirm. */
static bool decisions_confirm(struct decisions *decisions, struct decision *decision,
                              uint32_t shard) {
    assert(shard < SHARDS_MAX);
    uint64_t bit = UINT64_C(1) << (shard % 64);
    if (!decision->accepted || decision->confirmed[shard / 64] & bit)
        return false;
    assert(decision->unconfirmed > 0 && decisions->unfolded > 0);
    decision->confirmed[shard / 64] |= bit;
    if (--decision->unconfirmed)
        return false;
    decisions->unfolded--;
    assert(decisions->unfolded < decisions->folds);
    return true;
}

/* ---- accepted flushes in the journal ---- */

/* An accepted flush, and what it added. Decoded lists point into the encoded entry. */
struct commit_entry {
    struct flush_id flush;
    uint32_t replica;
    uint8_t exceeded;
    struct maxima maxima;
    struct chunk_ranges portions;
    struct blob totals; /* of the evaluation that the flush is of */
};

/* Entries lie one after the other in a log, and their chunk ranges are read in place. */
#define ENTRY_ALIGNMENT 4
static_assert(_Alignof(struct chunk_range) <= ENTRY_ALIGNMENT, "ranges are read in place");

static void commit_encode(const struct commit_entry *entry, struct bytes *out) {
    size_t start = out->length;
    assert(entry->portions.items || !entry->portions.length);
    bytes_put_u32(out, entry->portions.length);
    bytes_put_u32(out, entry->totals.length);
    bytes_append(out, entry->portions.items, entry->portions.length * sizeof(struct chunk_range));
    flush_id_encode(&entry->flush, out);
    bytes_put_u32(out, entry->replica);
    maxima_encode(&entry->maxima, out);
    bytes_put_u8(out, entry->exceeded);
    bytes_append(out, entry->totals.data, entry->totals.length);
    while ((out->length - start) % ENTRY_ALIGNMENT)
        bytes_put_u8(out, 0);
    assert(out->length - start >= ENTRY_ALIGNMENT);
}

static bool commit_decode(const void *data, size_t length, struct commit_entry *entry) {
    struct cursor cursor = cursor_over(data, length);
    entry->portions.length = cursor_u32(&cursor);
    entry->totals.length = cursor_u32(&cursor);
    entry->portions.items =
        cursor_take(&cursor, entry->portions.length * sizeof(struct chunk_range));
    entry->flush = flush_id_decode(&cursor);
    entry->replica = cursor_u32(&cursor);
    entry->maxima = maxima_decode(&cursor);
    entry->exceeded = cursor_u8(&cursor);
    entry->totals.data = cursor_take(&cursor, entry->totals.length);
    return !cursor.failed && cursor_left(&cursor) < ENTRY_ALIGNMENT &&
           entry->replica < REPLICAS_MAX;
}

/* Reads the next entry of a log, where each follows its length (u32). `encoded` becomes its bytes,
 * which the log owns. False at the end of the log, or if the entry is damaged. */
static bool commit_next(struct cursor *log, struct bytes *encoded, struct commit_entry *entry) {
    if (cursor_left(log) == 0)
        return false;
    uint32_t length = cursor_u32(log);
    const void *data = cursor_take(log, length);
    *encoded = (struct bytes){.data = (void *)data, .length = length};
    return data && commit_decode(data, length, entry);
}

/* ---- messages about a flush ---- */

/* BEGIN of the next evaluation drops what is staged of this one. So once all is counted, nobody
 * needs to be told. */
static void send_drops(struct dispatch *d, struct output *out) {
    struct message message = {.type = MESSAGE_DROP};
    message.drop.flushes =
        (struct blob){.data = d->drops.data, .length = (uint32_t)d->drops.length};
    bool runs = d->evaluation.running || mutant(GIVEN_UP_DROPPED);
    if (d->drops.length && runs && !plan_complete(&d->plan))
        roster_send_shards(d->roster, message, out);
    bytes_clear(&d->drops);
}

void dispatch_send_folds(struct dispatch *d, struct output *out) {
    struct message message = {.type = MESSAGE_FOLD};
    message.fold.flushes =
        (struct blob){.data = d->folds.data, .length = (uint32_t)d->folds.length};
    if (d->folds.length)
        roster_send_shards(d->roster, message, out);
    bytes_clear(&d->folds);
    send_drops(d, out);
}

/* Each FOLD is a message to every shard, and is answered by each: with a thousand replicas these
 * would keep the coordinator busier than all else. So of many replicas flushes gather until there
 * is one for every so many, or the evaluation waits for nothing else. A replica has room for more
 * flushes meanwhile, and coordinator_tick() lets none wait for long. */
#ifdef MUTANTS
#define REPLICAS_A_FOLD 2 /* the simulator has few replicas */
#else
#define REPLICAS_A_FOLD 32
#endif

void dispatch_send_due_folds(struct dispatch *d, struct output *out) {
    size_t gathered = (d->folds.length + d->drops.length) / FLUSH_ID_BYTES;
    bool early = d->evaluation.running && !plan_complete(&d->plan) &&
                 gathered < d->roster->present / REPLICAS_A_FOLD;
    if (!early)
        dispatch_send_folds(d, out);
}

/* Goes out with others: a thousand flushes may come at once, and each is for every shard. */
static void gather_fold(struct dispatch *d, const struct flush_id *id, struct output *out) {
    flush_id_encode(id, &d->folds);
    if (d->folds.length == FOLD_FLUSHES_MAX * FLUSH_ID_BYTES)
        dispatch_send_folds(d, out);
    assert(d->folds.length < FOLD_FLUSHES_MAX * FLUSH_ID_BYTES);
}

/* Whether this is the evaluation that runs, or ran last. */
static bool is_last(const struct dispatch *d, uint32_t attempt, uint32_t evaluation) {
    return attempt == d->roster->attempt && evaluation == d->evaluation.number;
}

/* Goes out as folds do. What is of another evaluation no shard keeps. */
static void gather_drop(struct dispatch *d, const struct flush_id *id, struct output *out) {
    if (!is_last(d, id->attempt, id->evaluation))
        return;
    flush_id_encode(id, &d->drops);
    if (d->drops.length == FOLD_FLUSHES_MAX * FLUSH_ID_BYTES)
        send_drops(d, out);
}

static void send_verdict(const struct dispatch *d, uint32_t link, const struct flush_id *id,
                         bool accepted, struct output *out) {
    assert(link >= d->roster->shards);
    struct message message = {.type = MESSAGE_VERDICT};
    message.verdict = (struct message_verdict){.flush = *id, .accepted = accepted};
    roster_send(d->roster, link, message, out);
}

/* ---- the decision ---- */

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

/* Decodes the totals of a flush; false if they are not as many as the evaluation has. */
static bool totals_of(const struct dispatch *d, const struct blob *encoded, struct totals *totals) {
    assert(d->evaluation.totals.count > 0);
    return totals_decode(totals, d->evaluation.totals.count, encoded->data, encoded->length);
}

/* Counts an accepted flush: its totals, its chunks, its maxima. */
static void count_flush(struct dispatch *d, const struct commit_entry *entry,
                        const struct totals *totals) {
    assert(d->evaluation.running && entry->replica < REPLICAS_MAX);
    assert(totals->count == d->evaluation.totals.count);
    totals_merge(&d->evaluation.totals, totals);
    plan_count(&d->plan, &entry->portions, entry->replica);
    maxima_merge(&d->evaluation.maxima, &entry->maxima);
    d->evaluation.exceeded |= entry->exceeded != 0;
    decisions_add(&d->decisions, &entry->flush, entry->replica, true, d->roster->shards);
}

/* The log is kept even while nothing is journalled: if the evaluation turns out to be long, the
 * journal begins with all of it. */
static void log_commit(struct dispatch *d, const struct bytes *entry, struct output *out) {
    assert(d->evaluation.running && entry->length > 0);
    bytes_put_u32(&d->log, (uint32_t)entry->length);
    bytes_append(&d->log, entry->data, entry->length);
    if (d->journalled)
        output_journal(out, entry, false);
}

/* The chunks are counted in the same step in which they were found uncounted: no other flush can
 * count them. FOLD goes out after the decision was recorded, as every message goes out after the
 * records: if this process dies, the next one finds in the journal every flush that was folded. */
static void accept_flush(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                         const struct totals *totals, int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(d, link);
    uint32_t counted = d->plan.counted_chunks;
    struct bytes encoded;
    struct commit_entry entry = {.flush = flushed->flush,
                                 .replica = d->roster->members[link].index,
                                 .exceeded = flushed->exceeded,
                                 .maxima = flushed->maxima,
                                 .portions = flushed->portions,
                                 .totals = flushed->totals};
    count_flush(d, &entry, totals);
    uint32_t chunks = d->plan.counted_chunks - counted;
    assert(d->plan.counted_chunks >= counted && d->decisions.unfolded > 0);
    workload->chunks += chunks;
    if (flushed->busy_ns)
        workload_note_rate(d, link, (double)chunks / (double)flushed->busy_ns);
    workload_note_delivery(workload, &flushed->portions, now_ns);
    workload_forget_counted(workload, &d->plan);
    bytes_init(&encoded);
    commit_encode(&entry, &encoded);
    log_commit(d, &encoded, out);
    bytes_release(&encoded);
    if (!d->evaluation.request.minibatch) {
        /* For people: a run does not go on from these records. */
        for (uint32_t i = 0; i < flushed->portions.length; i++) {
            struct record *record = output_add(out, RECORD_PORTION);
            record->portion.evaluation = d->evaluations;
            record->portion.flush = flushed->flush;
            record->portion.range = flushed->portions.items[i];
        }
    }
    gather_fold(d, &flushed->flush, out);
}

/* The decision is kept, so that a repeated FLUSHED gets the same one. The chunks go back only if
 * they are not counted: a backup copy that lost the race brings nothing back. */
static void drop_flush(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                       int64_t now_ns, struct output *out) {
    uint32_t replica = d->roster->members[link].index;
    assert(link >= d->roster->shards && replica < d->roster->replicas);
    decisions_add(&d->decisions, &flushed->flush, replica, false, 0);
    gather_drop(d, &flushed->flush, out);
    send_verdict(d, link, &flushed->flush, false, out);
    workload_forget(workload_of(d, link), &flushed->portions);
    plan_return(&d->plan, &flushed->portions);
    dispatch_wake_idle(d, now_ns, out);
}

/* The decision on a flush that has none yet: whether it counts. Only a flush of the evaluation that
 * runs can. */
static bool decide_flush(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                         int64_t now_ns, struct output *out) {
    struct totals totals;
    const struct maxima *maxima = &flushed->maxima; /* none if no bound applied */
    bool maxima_fit = !maxima->count || maxima->count == d->evaluation.request.bounds.count;
    assert(d->evaluation.running);
    if (!shards_are_living(d, &flushed->incarnations) ||
        !plan_may_count(&d->plan, &flushed->portions) || !maxima_fit ||
        !totals_of(d, &flushed->totals, &totals)) {
        drop_flush(d, link, flushed, now_ns, out);
        return false;
    }
    accept_flush(d, link, flushed, &totals, now_ns, out);
    if (d->plan.waiting == 0)
        dispatch_wake_idle(d, now_ns, out);
    return true;
}

/* ---- what replicas and shards say ---- */

void dispatch_wanted(struct dispatch *d, uint32_t link, const struct message_want *want,
                     int64_t now_ns, struct output *out) {
    assert(link >= d->roster->shards && link < roster_links(d->roster));
    if (d->evaluation.running && is_last(d, want->attempt, want->evaluation))
        portions_send_next(d, link, now_ns, out);
    else
        d->stale++;
}

/* The decision on a flush of the evaluation that runs, or ran last: shards may confirm its folds
 * when it is over. NULL if there is none. Valid until the next decisions_add(). */
static struct decision *find_decision(const struct dispatch *d, const struct flush_id *id) {
    uint32_t number;
    if (!is_last(d, id->attempt, id->evaluation) ||
        !flush_index_find(&d->decisions.index, id, &number))
        return NULL;
    assert(number < d->decisions.count);
    return &d->decisions.items[number];
}

/* No flush of an evaluation that was given up is decided on. That it counts no more here is no
 * reason to drop it that holds for the next coordinator, which may find the evaluation in the
 * journal and go on with it. The replica reports there what it has no decision on, and shards must
 * not have forgotten it. */
static bool is_given_up(const struct dispatch *d, const struct flush_id *id) {
    bool given_up = d->evaluation.given_up && is_last(d, id->attempt, id->evaluation);
    assert(!given_up || !d->evaluation.running);
    return given_up && !mutant(GIVEN_UP_DROPPED);
}

bool dispatch_flushed(struct dispatch *d, uint32_t link, const struct message_flushed *flushed,
                      int64_t now_ns, struct output *out) {
    const struct flush_id *id = &flushed->flush;
    const struct decision *known = find_decision(d, id);
    bool current = d->evaluation.running && is_last(d, id->attempt, id->evaluation) &&
                   id->incarnation == d->roster->members[link].incarnation;
    assert(link >= d->roster->shards && link < roster_links(d->roster));
    if (!known && is_given_up(d, id)) {
        d->stale++;
        return false;
    }
    if (!known && !current) {
        d->stale++;
        gather_drop(d, id, out);
        send_verdict(d, link, id, false, out);
        return false;
    }
    if (!known)
        return decide_flush(d, link, flushed, now_ns, out);
    if (mutant(REPEATED_FLUSH_DROPPED)) {
        drop_flush(d, link, flushed, now_ns, out);
        return false;
    }
    /* VERDICT lets the replica use the memory of the flush again, which shards may still read until
     * they have folded it. So after an acceptance it waits for the last FOLDED. */
    d->stale++;
    if (!known->accepted || known->unconfirmed == 0)
        send_verdict(d, link, &known->id, known->accepted, out);
    return false;
}

/* Whether that was the last shard to fold this one. */
static bool confirm(struct dispatch *d, uint32_t link, const struct flush_id *id,
                    struct output *out) {
    struct decision *decision = find_decision(d, id);
    assert(link < d->roster->shards);
    /* A fold of an earlier evaluation is not stale: the next one began without waiting for it. Its
     * replica needs no VERDICT. It uses the memory again when all shards have sent the next point,
     * and by then they have folded. */
    if (!decision)
        d->stale += id->attempt != d->roster->attempt || id->evaluation >= d->evaluation.number;
    if (!decision || !decisions_confirm(&d->decisions, decision, link))
        return false;
    assert(decision->accepted && decision->unconfirmed == 0);
    if (decision->replica < d->roster->replicas)
        send_verdict(d, d->roster->shards + decision->replica, id, true, out);
    return true;
}

bool dispatch_folded(struct dispatch *d, uint32_t link, const struct message_folded *folded,
                     struct output *out) {
    struct cursor ids = cursor_over(folded->flushes.data, folded->flushes.length);
    bool any = false;
    while (cursor_left(&ids)) {
        const struct flush_id id = flush_id_decode(&ids);
        any |= confirm(d, link, &id, out);
    }
    return any;
}

/* ---- going on from a journal ---- */

/* Every FOLD is sent again, as the former coordinator may have died before it sent one. A shard
 * that has folded the flush only confirms it again. */
void commit_replay(struct dispatch *d, const struct bytes *log, struct output *out) {
    struct cursor entries = cursor_over(log->data, log->length);
    struct commit_entry entry;
    struct bytes encoded;
    struct totals totals;
    assert(d->evaluation.running && d->plan.counted_chunks == 0);
    while (commit_next(&entries, &encoded, &entry) && totals_of(d, &entry.totals, &totals)) {
        count_flush(d, &entry, &totals);
        log_commit(d, &encoded, out);
        if (!mutant(FOLDS_NOT_REPEATED))
            gather_fold(d, &entry.flush, out);
    }
}

/* To be released. A shard says each once; what comes twice counts as once. */
static struct flush_index index_of_flushes(const struct blob *ids) {
    struct flush_index index = {0};
    struct cursor cursor = cursor_over(ids->data, ids->length);
    while (cursor_left(&cursor)) {
        const struct flush_id id = flush_id_decode(&cursor);
        if (!flush_index_find(&index, &id, NULL))
            flush_index_add(&index, &id, index.count);
    }
    return index;
}

/* folded ⊆ journalled ⊆ folded ∪ staged. If a shard had folded a flush that is not in the journal,
 * its chunks would be counted again. If it had lost a journalled flush, FOLD would find no slice
 * there. */
bool dispatch_fits(const struct bytes *log, const struct message_holding *holding) {
    struct cursor entries = cursor_over(log->data, log->length);
    struct bytes encoded;
    struct commit_entry entry;
    struct flush_index folded = index_of_flushes(&holding->folded),
                       staged = index_of_flushes(&holding->staged);
    uint32_t journalled_folds = 0;
    bool all_there = true;
    while (all_there && commit_next(&entries, &encoded, &entry)) {
        bool is_folded = flush_index_find(&folded, &entry.flush, NULL);
        all_there = is_folded || flush_index_find(&staged, &entry.flush, NULL);
        journalled_folds += is_folded;
    }
    bool no_others = journalled_folds == holding->folded.length / FLUSH_ID_BYTES;
    flush_index_release(&folded);
    flush_index_release(&staged);
    return all_there && (no_others || mutant(JOURNAL_NOT_COMPARED));
}
