/* What is lost, going back to a durable step, and taking up a run after a restart. */
#include <string.h>

#include "base/error.h"
#include "base/mutant.h"
#include "coordinator/parts.h"
#include "coordinator/state.h"
#include "wire/program.h"

/* An incarnation says in which epoch it was issued. */
#define EPOCH_SHIFT 32

uint64_t recovery_incarnation(struct coordinator *c) {
    return c->settings.epoch << EPOCH_SHIFT | ++c->incarnations;
}

/* ---- going back ---- */

/* The optimizer as of durable[0], or as at the start. The state that was stored has the attempt and
 * the incarnations of its time: those of now stay. */
static void load_durable_state(struct coordinator *c) {
    uint32_t attempt = c->attempt;
    uint64_t incarnations = c->incarnations;
    uint64_t living[SHARDS_MAX + REPLICAS_MAX];
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        living[i] = c->workers[i].incarnation;
    const struct bytes *state = &c->durable[0].state;
    c->restoring = c->durable_count > 0 && state_decode(c, state->data, state->length);
    if (!c->restoring) {
        optimizer_init(&c->optimizer, &c->settings.optimizer);
        c->derivative_max_at_x = 0;
    }
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        c->workers[i].incarnation = living[i];
    c->incarnations = incarnations;
    c->attempt = attempt;
}

static void forget_running(struct coordinator *c) {
    evaluating_abandon(c);
    verdicts_begin(&c->verdicts);
    c->round.running = false;
    c->round.number = 0;
    c->evaluation.number = 0;
    c->sealing.running = false;
    c->finishing = c->loading = false;
    c->journalled = false;
    bytes_clear(&c->program);
    bytes_clear(&c->verdict_log);
}

void recovery_roll_back(struct coordinator *c, const char *why, struct output *out) {
    load_durable_state(c);
    forget_running(c);
    if (!mutant(ATTEMPT_KEPT))
        c->attempt++;
    output_add(out, RECORD_ATTEMPT)->attempt = c->attempt;
    struct record *record = output_add(out, RECORD_ROLL_BACK);
    record->roll_back.to_start = !c->restoring;
    record->roll_back.step = c->restoring ? c->durable[0].step : 0;
    if (c->restoring)
        output_event(out, "recovery", "back to step %llu, attempt %u: %s",
                     (unsigned long long)c->durable[0].step, c->attempt, why);
    else
        output_event(out, "recovery", "back to the start, attempt %u: %s", c->attempt, why);
    setup_begin(c, out);
}

/* ---- losing a worker ---- */

static void forget_worker(struct coordinator *c, uint32_t link) {
    struct worker *worker = &c->workers[link];
    worker->connected = worker->welcomed = worker->introduced = false;
    worker->ready = worker->idle = false;
    worker->chunks_per_ns = 0;
    if (!mutant(INCARNATION_KEPT))
        worker->incarnation = recovery_incarnation(c);
}

static void lose_shard(struct coordinator *c, const char *why, struct output *out) {
    if (c->phase == PHASE_SEALING && c->optimizer.reason == REASON_CANCELLED)
        c->phase = PHASE_STOPPED; /* what was durable before is what there is */
    else if (c->phase == PHASE_SETTING_UP)
        setup_forget_replicas(c); /* they are told of the next one */
    else if (!mutant(DEAD_SHARD_BELIEVED))
        recovery_roll_back(c, why, out);
}

int coordinator_lost(struct coordinator *c, uint32_t link, const char *why, int64_t now_ns,
                     struct output *out) {
    struct worker *worker = &c->workers[link];
    if (c->phase >= PHASE_READ)
        return 0;
    forget_worker(c, link);
    output_worker(out, link, "lost");
    output_event(out, "lost", "%s %u was lost: %s", role_name(worker->role), worker->index, why);
    if (worker->restarts++ == c->settings.restarts_max) {
        c->phase = PHASE_FAILED;
        return error_set(ERROR_UNAVAILABLE,
                         "%s %u was lost %u times, the last time because %s; what is durable is "
                         "kept: run the same command again to go on",
                         role_name(worker->role), worker->index, worker->restarts, why);
    }
    output_add(out, RECORD_START)->start = link;
    if (worker->role == ROLE_SHARD) {
        lose_shard(c, why, out);
    } else {
        evaluating_lose(c, link, now_ns, out);
        setup_start_if_complete(c, now_ns, out);
    }
    return 0;
}

/* ---- taking up a run ---- */

bool recovery_is_who_it_was(const struct worker *worker, const struct message_welcome *welcome) {
    return welcome->since == worker->incarnation >> EPOCH_SHIFT;
}

void recovery_replace(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct worker *worker = &c->workers[link];
    output_event(out, "recovery", "%s %u is not the one that was there before",
                 role_name(worker->role), worker->index);
    worker->incarnation = recovery_incarnation(c);
    if (worker->role == ROLE_SHARD && c->phase == PHASE_REJOINING)
        recovery_roll_back(c, "a shard was lost with the last coordinator", out);
    coordinator_opened(c, link, now_ns, out);
}

void recovery_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->ticked_ns = now_ns;
    if (c->attempt == 0) {
        c->attempt = 1;
        output_add(out, RECORD_ATTEMPT)->attempt = 1;
        c->phase = PHASE_SETTING_UP;
    } else if (c->phase != PHASE_REJOINING) {
        recovery_roll_back(c, "the run is taken up again", out);
    }
}

static bool lists(const struct blob *ids, const struct flush_id *id) {
    struct cursor cursor = cursor_over(ids->data, ids->length);
    while (cursor_left(&cursor)) {
        struct flush_id one = flush_id_decode(&cursor);
        if (flush_id_equal(&one, id))
            return true;
    }
    return false;
}

/* The next journalled verdict; false at the end. */
static bool next_verdict(struct cursor *log, struct verdict_entry *entry) {
    if (cursor_left(log) == 0)
        return false;
    uint32_t length = cursor_u32(log);
    const void *data = cursor_take(log, length);
    return data && verdict_decode(data, length, entry);
}

/* folded ⊆ journalled ⊆ folded ∪ staged */
static bool folds_fit(const struct coordinator *c, const struct message_holding *holding) {
    struct cursor log = cursor_over(c->rejoined.data, c->rejoined.length);
    struct verdict_entry entry;
    uint32_t journalled_folds = 0;
    while (next_verdict(&log, &entry)) {
        bool folded = lists(&holding->folded, &entry.flush);
        if (!folded && !lists(&holding->staged, &entry.flush))
            return false;
        journalled_folds += folded;
    }
    return journalled_folds == holding->folded.length / FLUSH_ID_BYTES ||
           mutant(JOURNAL_NOT_COMPARED);
}

/* Whether the shard can go on from the journalled program: it has run it, or the one before. */
static bool fits(const struct coordinator *c, const struct message_holding *holding) {
    if (mutant(REJOIN_UNCHECKED))
        return true;
    if (holding->attempt != c->attempt)
        return false;
    if (holding->number + 1 == c->round.number)
        return c->rejoined.length == 0;
    bool evaluating = c->want == OPTIMIZER_EVALUATE;
    return holding->number == c->round.number &&
           holding->hash == program_hash(c->program.data, c->program.length) &&
           (!evaluating || (holding->evaluation == c->evaluation.number && folds_fit(c, holding)));
}

static void rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    output_event(out, "recovery", "the shards are where the journal says: going on, attempt %u",
                 c->attempt);
    c->phase = PHASE_RUNNING;
    /* When the last checkpoint began, only the former coordinator knew: one is due at once. */
    c->sealed_ns = now_ns - c->settings.checkpoint_ns;
    steering_rejoin(c, now_ns, out);
    bytes_clear(&c->rejoined);
    setup_replicas(c, out);
}

int on_holding(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    if (c->phase != PHASE_REJOINING)
        return 0; /* it is set up anew whatever it holds */
    if (!c->workers[link].welcomed || !fits(c, &message->holding)) {
        recovery_roll_back(c, "the shards are not where the journal says", out);
        return 0;
    }
    c->workers[link].ready = true;
    for (uint32_t i = 0; i < c->settings.shards; i++)
        if (!c->workers[i].ready)
            return 0;
    rejoin(c, now_ns, out);
    return 0;
}
