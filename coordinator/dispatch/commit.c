/* Flushes: one verdict for each, FOLD or DROP to the shards, and VERDICT to the replica when all
 * shards have folded. doc/PROTOCOL.md shows why this counts each chunk once. */
#include "coordinator/dispatch/commit.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/steering_parts.h"

/* ---- the decisions of one evaluation ---- */

void verdicts_init(struct verdicts *verdicts) {
    *verdicts = (struct verdicts){0};
}

void verdicts_release(struct verdicts *verdicts) {
    free(verdicts->items);
    flush_index_release(&verdicts->index);
    verdicts_init(verdicts);
}

void verdicts_begin(struct verdicts *verdicts) {
    flush_index_clear(&verdicts->index);
    verdicts->count = 0;
    verdicts->unfolded = 0;
    verdicts->folds = 0;
    verdicts->fold_hash = 0;
}

struct verdict *verdicts_find(const struct verdicts *verdicts, const struct flush_id *id) {
    uint32_t number;
    return flush_index_find(&verdicts->index, id, &number) ? &verdicts->items[number] : NULL;
}

struct verdict *verdicts_add(struct verdicts *verdicts, const struct flush_id *id, uint32_t replica,
                             bool accepted, uint32_t shards) {
    MEMORY_ROOM(verdicts->items, verdicts->count, verdicts->capacity);
    flush_index_add(&verdicts->index, id, verdicts->count);
    struct verdict *verdict = &verdicts->items[verdicts->count++];
    *verdict = (struct verdict){.id = *id, .replica = replica, .accepted = accepted};
    if (accepted) {
        verdict->unconfirmed = shards;
        verdicts->unfolded++;
        verdicts->folds++;
        verdicts->fold_hash += flush_id_hash(id);
    }
    return verdict;
}

bool verdicts_confirm(struct verdicts *verdicts, struct verdict *verdict, uint32_t shard) {
    uint64_t bit = UINT64_C(1) << (shard % 64);
    if (!verdict->accepted || verdict->confirmed[shard / 64] & bit)
        return false;
    verdict->confirmed[shard / 64] |= bit;
    if (--verdict->unconfirmed)
        return false;
    verdicts->unfolded--;
    return true;
}

/* ---- in the journal ---- */

/* Entries lie one behind the other in a log, and their runs are read in place. */
#define ENTRY_ALIGNMENT 4

void verdict_encode(const struct verdict_entry *entry, struct bytes *out) {
    size_t start = out->length;
    bytes_put_u32(out, entry->portions.length);
    bytes_put_u32(out, entry->totals.length);
    bytes_append(out, entry->portions.items, entry->portions.length * sizeof(struct run));
    flush_id_encode(&entry->flush, out);
    bytes_put_u32(out, entry->replica);
    maxima_encode(&entry->maxima, out);
    bytes_put_u8(out, entry->exceeded);
    bytes_append(out, entry->totals.data, entry->totals.length);
    while ((out->length - start) % ENTRY_ALIGNMENT)
        bytes_put_u8(out, 0);
}

bool verdict_decode(const void *data, size_t length, struct verdict_entry *entry) {
    struct cursor cursor = cursor_over(data, length);
    entry->portions.length = cursor_u32(&cursor);
    entry->totals.length = cursor_u32(&cursor);
    entry->portions.items = cursor_take(&cursor, entry->portions.length * sizeof(struct run));
    entry->flush = flush_id_decode(&cursor);
    entry->replica = cursor_u32(&cursor);
    entry->maxima = maxima_decode(&cursor);
    entry->exceeded = cursor_u8(&cursor);
    entry->totals.data = cursor_take(&cursor, entry->totals.length);
    return !cursor.failed && cursor_left(&cursor) < ENTRY_ALIGNMENT;
}

bool verdict_next(struct cursor *log, struct bytes *encoded, struct verdict_entry *entry) {
    if (cursor_left(log) == 0)
        return false;
    uint32_t length = cursor_u32(log);
    const void *data = cursor_take(log, length);
    *encoded = (struct bytes){.data = (void *)data, .length = length};
    return data && verdict_decode(data, length, entry);
}

/* ---- one decision for each flush ---- */

static void send_flush(const struct coordinator *c, enum message_type type,
                       const struct flush_id *id, struct output *out) {
    struct message message = {.type = type};
    if (type == MESSAGE_FOLD)
        message.fold.flush = *id;
    else
        message.drop.flush = *id;
    send_to_shards(c, message, out);
}

static void send_verdict(const struct coordinator *c, uint32_t link, const struct flush_id *id,
                         bool accepted, struct output *out) {
    struct message message = {.type = MESSAGE_VERDICT};
    message.verdict = (struct message_verdict){.flush = *id, .accepted = accepted};
    send_to(c, link, message, out);
}

/* Whether the processes that staged the flush are the shards that live now. A shard that was lost
 * since took its slice with it, and its successor could not fold it. */
static bool shards_are_living(const struct coordinator *c, const struct u64_list *incarnations) {
    if (incarnations->length != c->settings.shards)
        return false;
    if (mutant(ACCEPT_BEFORE_ALL_STAGED))
        return true;
    for (uint32_t i = 0; i < incarnations->length; i++)
        if (incarnations->items[i] != c->membership.members[i].incarnation)
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
static bool totals_of(const struct coordinator *c, const struct blob *encoded,
                      struct totals *totals) {
    return totals_decode(totals, c->steering->evaluation.totals.count, encoded->data,
                         encoded->length);
}

/* Whether they are of the bounds of the evaluation; there are none if no bound applied. */
static bool maxima_suit(const struct coordinator *c, const struct maxima *maxima) {
    return maxima->count == 0 || maxima->count == c->steering->evaluation.bounds.count;
}

/* Counts an accepted flush: its totals, its chunks, its maxima. */
static void count_flush(struct coordinator *c, const struct verdict_entry *entry,
                        const struct totals *totals) {
    totals_merge(&c->steering->evaluation.totals, totals);
    plan_count(&c->steering->plan, &entry->portions, entry->replica);
    maxima_merge(&c->steering->evaluation.maxima, &entry->maxima);
    c->steering->evaluation.exceeded |= entry->exceeded != 0;
    verdicts_add(&c->steering->verdicts, &entry->flush, entry->replica, true, c->settings.shards);
}

static void journal_verdict(struct coordinator *c, const struct verdict_entry *entry,
                            struct output *out) {
    struct bytes encoded;
    bytes_init(&encoded);
    verdict_encode(entry, &encoded);
    durability_journal_verdict(c, &encoded, out);
    bytes_release(&encoded);
}

/* The chunks are counted in the same step in which they were found uncounted: no other flush can
 * count them. FOLD goes out after the verdict was recorded, as every message goes out after the
 * records: if this process dies, the next one finds in the journal every flush that was folded. */
static void accept_flush(struct coordinator *c, uint32_t link,
                         const struct message_flushed *flushed, const struct totals *totals,
                         int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(c, link);
    uint32_t chunks = chunks_of(&flushed->portions);
    struct verdict_entry entry = {.flush = flushed->flush,
                                  .replica = c->membership.members[link].index,
                                  .exceeded = flushed->exceeded,
                                  .maxima = flushed->maxima,
                                  .portions = flushed->portions,
                                  .totals = flushed->totals};
    count_flush(c, &entry, totals);
    workload->chunks += chunks;
    if (flushed->busy_ns)
        copying_note_rate(c, link, (double)chunks / (double)flushed->busy_ns);
    copying_note_delivery(workload, &flushed->portions, now_ns);
    handing_forget_counted(workload, &c->steering->plan);
    for (uint32_t i = c->settings.shards;
         c->steering->evaluation.shared && i < coordinator_links(c); i++)
        handing_forget_counted(workload_of(c, i), &c->steering->plan);
    journal_verdict(c, &entry, out);
    recording_portions(c, flushed, out);
    send_flush(c, MESSAGE_FOLD, &flushed->flush, out);
}

/* The verdict is kept, so that a repeated FLUSHED gets the same one. The chunks go back only if
 * they are not counted: a backup copy that lost the race brings nothing back. */
static void drop_flush(struct coordinator *c, uint32_t link, const struct message_flushed *flushed,
                       int64_t now_ns, struct output *out) {
    uint32_t replica = c->membership.members[link].index;
    verdicts_add(&c->steering->verdicts, &flushed->flush, replica, false, 0);
    send_flush(c, MESSAGE_DROP, &flushed->flush, out);
    send_verdict(c, link, &flushed->flush, false, out);
    handing_forget(workload_of(c, link), &flushed->portions);
    plan_return(&c->steering->plan, &flushed->portions);
    handing_wake_idle(c, now_ns, out);
}

/* The verdict on a flush that has none yet. */
static void judge(struct coordinator *c, uint32_t link, const struct message_flushed *flushed,
                  int64_t now_ns, struct output *out) {
    struct totals totals;
    if (!shards_are_living(c, &flushed->incarnations) ||
        !plan_may_count(&c->steering->plan, &flushed->portions) ||
        !maxima_suit(c, &flushed->maxima) || !totals_of(c, &flushed->totals, &totals)) {
        drop_flush(c, link, flushed, now_ns, out);
        return;
    }
    accept_flush(c, link, flushed, &totals, now_ns, out);
    if (c->steering->plan.waiting == 0)
        handing_wake_idle(c, now_ns, out);
    evaluating_end_if_complete(c, now_ns, out);
}

/* A flush that was reported before gets the verdict that it had. VERDICT lets the replica use the
 * memory of the flush again, which shards may still read until they have folded it. So after an
 * acceptance it waits for the last FOLDED. */
static void repeat_verdict(struct coordinator *c, uint32_t link, const struct verdict *known,
                           struct output *out) {
    c->stale++;
    if (!known->accepted || known->unconfirmed == 0)
        send_verdict(c, link, &known->id, known->accepted, out);
}

/* Also when its evaluation is complete, but some shard has not confirmed a fold; NULL: none. */
static struct verdict *find_verdict(const struct coordinator *c, const struct flush_id *id) {
    return evaluating_is_last(c, id->attempt, id->evaluation)
               ? verdicts_find(&c->steering->verdicts, id)
               : NULL;
}

int on_flushed(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    const struct message_flushed *flushed = &message->flushed;
    if (c->phase == PHASE_REJOINING) {
        c->stale++; /* no verdicts until the journal's are in force: the replica reports again */
        return 0;
    }
    const struct flush_id *id = &flushed->flush;
    const struct verdict *known = find_verdict(c, id);
    if (!known && (!evaluating_is_current(c, id->attempt, id->evaluation) ||
                   id->incarnation != c->membership.members[link].incarnation)) {
        c->stale++;
        send_flush(c, MESSAGE_DROP, id, out);
        send_verdict(c, link, id, false, out);
        return 0;
    }
    if (!known)
        judge(c, link, flushed, now_ns, out);
    else if (mutant(REPEATED_FLUSH_DROPPED))
        drop_flush(c, link, flushed, now_ns, out);
    else
        repeat_verdict(c, link, known, out);
    return 0;
}

/* Every FOLD is sent again, as the former coordinator may have died before it sent one. A shard
 * that has folded the flush only confirms it again. */
void flushes_rejoin(struct coordinator *c, struct output *out) {
    struct cursor log = cursor_over(c->recovery.rejoined.data, c->recovery.rejoined.length);
    struct verdict_entry entry;
    struct bytes encoded;
    struct totals totals;
    while (verdict_next(&log, &encoded, &entry) && totals_of(c, &entry.totals, &totals)) {
        count_flush(c, &entry, &totals);
        durability_journal_verdict(c, &encoded, out);
        send_flush(c, MESSAGE_FOLD, &entry.flush, out);
    }
}

/* The next evaluation did not wait for it. Nor does the replica wait for VERDICT: it uses the
 * memory again when it gets the next point from all shards, which have folded then. */
static bool is_late(const struct coordinator *c, const struct flush_id *id) {
    return id->attempt == c->recovery.attempt && id->evaluation < c->steering->evaluation.number;
}

int on_folded(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out) {
    const struct flush_id *id = &message->folded.flush;
    struct verdict *verdict = find_verdict(c, id);
    if (!verdict) {
        c->stale += !is_late(c, id);
        return 0;
    }
    if (!verdicts_confirm(&c->steering->verdicts, verdict, link))
        return 0;
    send_verdict(c, c->settings.shards + verdict->replica, id, true, out);
    evaluating_end_if_complete(c, now_ns, out);
    return 0;
}
