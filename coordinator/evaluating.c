/* Evaluations: portions out, flushes in, one verdict each, and the end when every chunk is counted
 * and every shard has confirmed every fold. */
#include <math.h>

#include "coordinator/parts.h"

/* A portion should be worth its messages, and short enough that the replicas end together. */
#define PORTION_NS_MIN 2e6
#define PORTION_NS_MAX 1e9
#define PORTIONS_LEFT 4 /* a portion is at most this fraction of the time left */

static struct worker *replica_of(struct coordinator *c, uint32_t link) {
    return &c->workers[link];
}

/* Chunks that the replica should be given next. */
static uint32_t portion_chunks(const struct coordinator *c, const struct worker *replica) {
    if (c->settings.portion_chunks)
        return c->settings.portion_chunks;
    double rate_of_all = 0;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        rate_of_all += c->workers[i].chunks_per_ns;
    if (!(replica->chunks_per_ns > 0)) {
        uint32_t chunks = c->plan.chunks / (8 * c->settings.replicas);
        return chunks ? chunks : 1;
    }
    double left_ns = c->plan.waiting / rate_of_all;
    double portion_ns = fmin(fmax(left_ns / PORTIONS_LEFT, PORTION_NS_MIN), PORTION_NS_MAX);
    double chunks = fmin(portion_ns * replica->chunks_per_ns, c->plan.chunks);
    return chunks < 1 ? 1 : (uint32_t)chunks;
}

/* Gives the replica its next portion, or a rest. */
static void give(struct coordinator *c, uint32_t link, struct output *out) {
    struct worker *replica = replica_of(c, link);
    struct run run;
    bool given = plan_take(&c->plan, replica->index, portion_chunks(c, replica), &run);
    replica->idle = !given;
    if (!given) {
        struct message message = {.type = MESSAGE_REST};
        message.rest =
            (struct message_rest){.attempt = c->attempt, .evaluation = c->evaluation.number};
        send_to(c, link, message, out);
        return;
    }
    struct message message = {.type = MESSAGE_PORTION};
    message.portion = (struct message_portion){
        .attempt = c->attempt,
        .evaluation = c->evaluation.number,
        .first = run.first,
        .count = run.count,
        .flags = c->plan.waiting == 0 ? PORTION_LAST : 0,
    };
    replica->portions++;
    send_to(c, link, message, out);
}

/* Chunks came back: those who rest are given them. */
static void wake_idle(struct coordinator *c, struct output *out) {
    for (uint32_t i = c->settings.shards; i < coordinator_links(c) && c->plan.waiting; i++)
        if (c->workers[i].idle)
            give(c, i, out);
}

void evaluating_begin(struct coordinator *c, int derivative_exponent, int64_t now_ns,
                      struct output *out) {
    uint32_t number = c->evaluation.number + 1;
    c->evaluation = (struct evaluation){.number = number,
                                        .running = true,
                                        .derivative_exponent = derivative_exponent,
                                        .started_ns = now_ns};
    exact_init(&c->evaluation.loss);
    c->evaluations++;
    plan_begin(&c->plan);
    verdicts_begin(&c->verdicts);
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++) {
        struct message message = {.type = MESSAGE_EVALUATE};
        message.evaluate = (struct message_evaluate){
            .attempt = c->attempt,
            .evaluation = number,
            .derivative_exponent = derivative_exponent,
        };
        send_to(c, i, message, out);
        give(c, i, out);
    }
}

void evaluating_abandon(struct coordinator *c) {
    c->evaluation.running = false;
}

static bool is_current(const struct coordinator *c, uint32_t attempt, uint32_t evaluation) {
    return c->evaluation.running && attempt == c->attempt && evaluation == c->evaluation.number;
}

int on_want(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
            struct output *out) {
    (void)now_ns;
    if (is_current(c, message->want.attempt, message->want.evaluation))
        give(c, link, out);
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
    for (uint32_t i = 0; i < incarnations->length; i++)
        if (incarnations->items[i] != c->workers[i].incarnation)
            return false;
    return true;
}

static uint32_t chunks_of(const struct run_list *runs) {
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < runs->length; i++)
        chunks += runs->items[i].count;
    return chunks;
}

static bool add_loss(struct coordinator *c, const struct blob *loss) {
    struct exact part;
    struct cursor cursor = cursor_over(loss->data, loss->length);
    if (!exact_decode(&part, &cursor))
        return false;
    exact_merge(&c->evaluation.loss, &part);
    return true;
}

static void accept_flush(struct coordinator *c, uint32_t link,
                         const struct message_flushed *flushed, struct output *out) {
    struct worker *replica = replica_of(c, link);
    uint32_t chunks = chunks_of(&flushed->portions);
    plan_count(&c->plan, &flushed->portions);
    replica->chunks += chunks;
    if (flushed->busy_ns)
        replica->chunks_per_ns = (double)chunks / (double)flushed->busy_ns;
    c->evaluation.derivative_max = fmax(c->evaluation.derivative_max, flushed->derivative_max);
    c->evaluation.exceeded |= flushed->exceeded != 0;
    verdicts_add(&c->verdicts, &flushed->flush, replica->index, true, c->settings.shards);
    send_flush(c, MESSAGE_FOLD, &flushed->flush, out);
    for (uint32_t i = 0; i < flushed->portions.length; i++) {
        struct record *record = output_add(out, RECORD_PORTION);
        record->portion.flush = flushed->flush;
        record->portion.run = flushed->portions.items[i];
    }
}

static void drop_flush(struct coordinator *c, uint32_t link, const struct message_flushed *flushed,
                       struct output *out) {
    verdicts_add(&c->verdicts, &flushed->flush, replica_of(c, link)->index, false, 0);
    send_flush(c, MESSAGE_DROP, &flushed->flush, out);
    send_verdict(c, link, &flushed->flush, false, out);
    plan_return(&c->plan, &flushed->portions);
    wake_idle(c, out);
}

int on_flushed(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    (void)now_ns;
    const struct message_flushed *flushed = &message->flushed;
    if (!is_current(c, flushed->flush.attempt, flushed->flush.evaluation) ||
        flushed->flush.incarnation != c->workers[link].incarnation) {
        c->stale++;
        send_verdict(c, link, &flushed->flush, false, out);
        return 0;
    }
    const struct flush *known = verdicts_find(&c->verdicts, &flushed->flush);
    if (known) {
        c->stale++;
        if (!known->accepted || known->unconfirmed == 0)
            send_verdict(c, link, &known->id, known->accepted, out);
    } else if (shards_are_living(c, &flushed->incarnations) &&
               plan_may_count(&c->plan, &flushed->portions) && add_loss(c, &flushed->loss)) {
        accept_flush(c, link, flushed, out);
    } else {
        drop_flush(c, link, flushed, out);
    }
    return 0;
}

int on_folded(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out) {
    const struct flush_id *id = &message->folded.flush;
    struct flush *flush = NULL;
    if (is_current(c, id->attempt, id->evaluation))
        flush = verdicts_find(&c->verdicts, id);
    if (!flush) {
        c->stale++;
        return 0;
    }
    if (!verdicts_confirm(&c->verdicts, flush, link))
        return 0;
    send_verdict(c, c->settings.shards + flush->replica, id, true, out);
    if (plan_complete(&c->plan) && c->verdicts.unfolded == 0) {
        c->evaluation.running = false;
        steering_evaluated(c, now_ns, out);
    }
    return 0;
}
