/* Evaluations: portions out, flushes in, one verdict each, and the end when every chunk is counted
 * and every shard has confirmed every fold. */
#include <math.h>

#include "base/mutant.h"
#include "coordinator/steering_parts.h"

/* A portion should be worth its messages, and short enough that the replicas end together. A flush
 * costs a pass over the gradient, so wide models have longer portions. */
#define PORTION_NS_MIN 2e6
#define PORTION_NS_PER_PARAMETER 13.0
#define PORTION_NS_MAX 1e9
#define PORTIONS_LEFT 4 /* a portion is at most this fraction of the time left */

/* Below this a portion is not worth a flush of its own, in the tail either. */
#define SOLO_NS_MIN 20e6

/* Evaluations shorter than this are cheaper to redo than to journal. */
#define JOURNAL_FROM_NS INT64_C(100000000)

static double rate_of_all(const struct coordinator *c) {
    double rate = 0;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        if (c->membership.members[i].ready)
            rate += workload_of(c, i)->chunks_per_ns;
    return rate;
}

static double portion_ns_min(const struct coordinator *c) {
    return fmax(PORTION_NS_MIN, PORTION_NS_PER_PARAMETER * (double)c->parameters);
}

/* Chunks that the replica should be given next. */
static uint32_t portion_chunks(const struct coordinator *c, const struct workload *workload) {
    if (c->settings.portion_chunks)
        return c->settings.portion_chunks;
    if (!(workload->chunks_per_ns > 0)) {
        uint32_t chunks = c->steering->plan.chunks / (8 * c->settings.replicas);
        return chunks ? chunks : 1;
    }
    double left_ns = c->steering->plan.waiting / rate_of_all(c);
    double portion_ns = fmin(fmax(left_ns / PORTIONS_LEFT, portion_ns_min(c)), PORTION_NS_MAX);
    double chunks = fmin(portion_ns * workload->chunks_per_ns, c->steering->plan.chunks);
    return chunks < 1 ? 1 : (uint32_t)chunks;
}

/* In the tail every portion is a flush of its own, so that a lost race throws away no other work.
 */
static bool is_tail(const struct coordinator *c, const struct workload *workload, struct run run) {
    double portion_ns = run.count / workload->chunks_per_ns; /* infinite while nothing is known */
    return portion_ns >= SOLO_NS_MIN && isfinite(portion_ns) &&
           c->steering->plan.waiting <= run.count * c->settings.replicas;
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
    handing_note(workload, run, now_ns);
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
    if (!plan_take(&c->steering->plan, home, portion_chunks(c, workload), &run))
        return false;
    uint8_t flags = is_tail(c, workload, run) ? PORTION_SOLO : 0;
    flags |= c->steering->plan.waiting == 0 ? PORTION_LAST : 0;
    send_portion(c, link, run, flags, now_ns, out);
    return true;
}

static bool give_backup(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct run run;
    if (!c->settings.backup_copies || !handing_backup(c, link, now_ns, &run))
        return false;
    c->steering->backup_copies++;
    send_portion(c, link, run, PORTION_SOLO | PORTION_LAST, now_ns, out);
    return true;
}

/* Gives the replica its next portion, or a rest. */
static void give(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    if (!give_portion(c, link, now_ns, out))
        send_rest(c, link, out);
}

/* Who rests, or has nothing left of what it was handed: after its last portion a replica does not
 * ask for more. */
static bool is_free(const struct coordinator *c, uint32_t link) {
    const struct workload *workload = workload_of(c, link);
    return c->membership.members[link].ready && (workload->idle || workload->handed_count == 0);
}

/* Those who are free are given what came back, or a copy of what takes others long. */
static void wake_idle(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (!c->steering->evaluation.running)
        return;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        if (is_free(c, i) && !give_portion(c, i, now_ns, out))
            give_backup(c, i, now_ns, out);
}

static void announce(struct coordinator *c, uint32_t link, struct output *out) {
    struct message message = {.type = MESSAGE_EVALUATE};
    message.evaluate = (struct message_evaluate){
        .attempt = c->recovery.attempt,
        .evaluation = c->steering->evaluation.number,
        .derivative_exponent = c->steering->evaluation.derivative_exponent,
        .parts = evaluation_list(&c->steering->evaluation.parts),
    };
    send_to(c, link, message, out);
}

void steering_join(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    if (!c->steering->evaluation.running)
        return;
    announce(c, link, out);
    give(c, link, now_ns, out);
}

/* An evaluation starts from nothing counted. */
static void clear_evaluation(struct coordinator *c, int64_t now_ns) {
    struct evaluating *evaluation = &c->steering->evaluation;
    evaluation->running = true;
    evaluation->exceeded = false;
    evaluation->derivative_max = 0;
    evaluation->started_ns = now_ns;
    totals_init(&evaluation->totals, evaluation_totals(&evaluation->parts));
    plan_begin(&c->steering->plan, &evaluation->parts);
    verdicts_begin(&c->steering->verdicts);
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        handing_clear(workload_of(c, i));
}

void evaluating_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    clear_evaluation(c, now_ns);
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        if (c->membership.members[i].ready)
            steering_join(c, i, now_ns, out);
}

/* A long evaluation is worth a journal: then a later coordinator goes on in the middle of it. */
void steering_tick(struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct evaluating *evaluation = &c->steering->evaluation;
    if (evaluation->running && now_ns - evaluation->started_ns >= JOURNAL_FROM_NS)
        durability_journal_from_now(c, out);
    wake_idle(c, now_ns, out);
}

void evaluating_abandon(struct coordinator *c) {
    c->steering->evaluation.running = false;
}

void steering_lose(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(c, link);
    uint32_t waiting = c->steering->plan.waiting;
    workload->idle = false;
    workload->chunks_per_ns = 0;
    if (c->steering->evaluation.running && !mutant(CHUNKS_LOST)) {
        for (uint32_t i = 0; i < workload->handed_count; i++) {
            struct run_list one = {.items = &workload->handed[i].run, .length = 1};
            plan_return(&c->steering->plan, &one);
        }
    }
    if (c->steering->plan.waiting > waiting)
        output_event(out, "returned", "%u chunks that replica %u had in hand go to others",
                     c->steering->plan.waiting - waiting, c->membership.members[link].index);
    handing_clear(workload);
    wake_idle(c, now_ns, out);
}

static bool is_current(const struct coordinator *c, uint32_t attempt, uint32_t evaluation) {
    return c->steering->evaluation.running && attempt == c->recovery.attempt &&
           evaluation == c->steering->evaluation.number;
}

int on_want(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
            struct output *out) {
    if (is_current(c, message->want.attempt, message->want.evaluation))
        give(c, link, now_ns, out);
    else
        c->stale++;
    return 0;
}

/* ---- flushes ---- */

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

/* Whether every shard that keeps the flush is the living one. */
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

/* The totals of a flush, as many as the evaluation's parts have; false if they are not that. */
static bool totals_of(const struct coordinator *c, const struct blob *encoded,
                      struct totals *totals) {
    return totals_decode(totals, c->steering->evaluation.totals.count, encoded->data,
                         encoded->length);
}

/* Counts an accepted flush, whose totals these are: its chunks, its largest derivative. */
static void count_flush(struct coordinator *c, const struct verdict_entry *entry,
                        const struct totals *totals) {
    totals_merge(&c->steering->evaluation.totals, totals);
    plan_count(&c->steering->plan, &entry->portions, entry->replica);
    c->steering->evaluation.derivative_max =
        fmax(c->steering->evaluation.derivative_max, entry->derivative_max);
    c->steering->evaluation.exceeded |= entry->exceeded != 0;
    verdicts_add(&c->steering->verdicts, &entry->flush, entry->replica, true, c->settings.shards);
}

static void record_portions(const struct coordinator *c, const struct message_flushed *flushed,
                            struct output *out) {
    for (uint32_t i = 0; i < flushed->portions.length; i++) {
        struct record *record = output_add(out, RECORD_PORTION);
        record->portion.evaluation = c->steering->evaluations;
        record->portion.flush = flushed->flush;
        record->portion.run = flushed->portions.items[i];
    }
}

static void journal_verdict(struct coordinator *c, const struct verdict_entry *entry,
                            struct output *out) {
    struct bytes encoded;
    bytes_init(&encoded);
    verdict_encode(entry, &encoded);
    durability_journal_verdict(c, &encoded, out);
    bytes_release(&encoded);
}

static void accept_flush(struct coordinator *c, uint32_t link,
                         const struct message_flushed *flushed, const struct totals *totals,
                         struct output *out) {
    struct workload *workload = workload_of(c, link);
    uint32_t chunks = chunks_of(&flushed->portions);
    struct verdict_entry entry = {.flush = flushed->flush,
                                  .replica = c->membership.members[link].index,
                                  .exceeded = flushed->exceeded,
                                  .derivative_max = flushed->derivative_max,
                                  .portions = flushed->portions,
                                  .totals = flushed->totals};
    count_flush(c, &entry, totals);
    workload->chunks += chunks;
    if (flushed->busy_ns)
        workload->chunks_per_ns = (double)chunks / (double)flushed->busy_ns;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        handing_forget_counted(workload_of(c, i), &c->steering->plan);
    journal_verdict(c, &entry, out);
    record_portions(c, flushed, out);
    send_flush(c, MESSAGE_FOLD, &flushed->flush, out);
}

static void drop_flush(struct coordinator *c, uint32_t link, const struct message_flushed *flushed,
                       int64_t now_ns, struct output *out) {
    uint32_t replica = c->membership.members[link].index;
    verdicts_add(&c->steering->verdicts, &flushed->flush, replica, false, 0);
    send_flush(c, MESSAGE_DROP, &flushed->flush, out);
    send_verdict(c, link, &flushed->flush, false, out);
    handing_forget(workload_of(c, link), &flushed->portions);
    plan_return(&c->steering->plan, &flushed->portions);
    wake_idle(c, now_ns, out);
}

int on_flushed(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    const struct message_flushed *flushed = &message->flushed;
    struct totals totals;
    if (c->phase == PHASE_REJOINING) {
        c->stale++; /* what was accepted is not known yet: it is asked again */
        return 0;
    }
    if (!is_current(c, flushed->flush.attempt, flushed->flush.evaluation) ||
        flushed->flush.incarnation != c->membership.members[link].incarnation) {
        c->stale++;
        send_flush(c, MESSAGE_DROP, &flushed->flush, out);
        send_verdict(c, link, &flushed->flush, false, out);
        return 0;
    }
    const struct verdict *known = verdicts_find(&c->steering->verdicts, &flushed->flush);
    if (known && mutant(REPEATED_FLUSH_DROPPED)) {
        drop_flush(c, link, flushed, now_ns, out);
    } else if (known) {
        c->stale++;
        if (!known->accepted || known->unconfirmed == 0)
            send_verdict(c, link, &known->id, known->accepted, out);
    } else if (shards_are_living(c, &flushed->incarnations) &&
               plan_may_count(&c->steering->plan, &flushed->portions) &&
               totals_of(c, &flushed->totals, &totals)) {
        accept_flush(c, link, flushed, &totals, out);
        if (c->steering->plan.waiting == 0)
            wake_idle(c, now_ns, out);
    } else {
        drop_flush(c, link, flushed, now_ns, out);
    }
    return 0;
}

static void end_if_complete(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (!plan_complete(&c->steering->plan) ||
        (c->steering->verdicts.unfolded && !mutant(ROUND_BEFORE_FOLDS)))
        return;
    c->steering->evaluation.running = false;
    steering_evaluated(c, now_ns, out);
}

/* After a restart: what the journal counts is counted; the shards fold what they have not yet. */
void evaluating_rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct cursor log = cursor_over(c->recovery.rejoined.data, c->recovery.rejoined.length);
    struct verdict_entry entry;
    struct bytes encoded;
    struct totals totals;
    clear_evaluation(c, now_ns);
    while (verdict_next(&log, &encoded, &entry) && totals_of(c, &entry.totals, &totals)) {
        count_flush(c, &entry, &totals);
        durability_journal_verdict(c, &encoded, out);
        send_flush(c, MESSAGE_FOLD, &entry.flush, out);
    }
}

int on_folded(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out) {
    const struct flush_id *id = &message->folded.flush;
    struct verdict *verdict = NULL;
    if (is_current(c, id->attempt, id->evaluation))
        verdict = verdicts_find(&c->steering->verdicts, id);
    if (!verdict) {
        c->stale++;
        return 0;
    }
    if (!verdicts_confirm(&c->steering->verdicts, verdict, link))
        return 0;
    send_verdict(c, c->settings.shards + verdict->replica, id, true, out);
    end_if_complete(c, now_ns, out);
    return 0;
}
