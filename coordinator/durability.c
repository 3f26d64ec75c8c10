/* What outlives the coordinator: the journal of programs and verdicts, and durable steps. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mutant.h"
#include "coordinator/parts.h"
#include "coordinator/state.h"

/* Evaluations shorter than this are cheaper to redo than to journal. */
#define JOURNAL_FROM_NS INT64_C(100000000)

/* ---- taking over what was stored ---- */

static void append_entry(struct bytes *log, const void *data, size_t length) {
    bytes_put_u32(log, (uint32_t)length);
    bytes_append(log, data, length);
}

/* The journal is of use if its first entry is a state of the attempt that is in force. */
static void take_journal(struct coordinator *c, const struct coordinator_saved *saved) {
    const struct blob *journal = saved->journal;
    if (saved->journal_count == 0 || !state_decode(c, journal[0].data, journal[0].length))
        return;
    bool fits = c->attempt == saved->attempt && c->program.length > 0;
    c->attempt = saved->attempt;
    if (!fits)
        return;
    for (uint32_t i = 1; i < saved->journal_count; i++)
        append_entry(&c->rejoined, journal[i].data, journal[i].length);
    c->phase = PHASE_REJOINING;
}

void durability_take_saved(struct coordinator *c, const struct coordinator_saved *saved) {
    c->attempt = saved->attempt;
    c->phase = PHASE_SETTING_UP;
    c->durable_count = saved->step_count;
    for (uint32_t i = 0; i < saved->step_count; i++) {
        struct durable_step *durable = &c->durable[i];
        durable->step = saved->steps[i].step;
        bytes_append(&durable->state, saved->steps[i].state.data, saved->steps[i].state.length);
        memcpy(durable->digests, saved->steps[i].digests,
               c->settings.shards * sizeof durable->digests[0]);
    }
    take_journal(c, saved);
}

/* ---- the journal ---- */

static void add_journal(const struct bytes *entry, bool begins, struct output *out) {
    struct record *record = output_add(out, RECORD_JOURNAL);
    record->journal.offset = out->blobs.length;
    record->journal.length = entry->length;
    record->journal.begins = begins;
    bytes_append(&out->blobs, entry->data, entry->length);
}

static void journal_state(struct coordinator *c, struct output *out) {
    struct bytes state;
    bytes_init(&state);
    state_encode(c, &state);
    add_journal(&state, true, out);
    bytes_release(&state);
    c->journalled = true;
}

/* What loads pairs or reads them is not journalled: it needs what was sent beside the program. */
void durability_journal_program(struct coordinator *c, struct output *out) {
    c->journalled = false;
    bytes_clear(&c->verdict_log);
    if (c->journalling && !c->loading && c->phase == PHASE_RUNNING)
        journal_state(c, out);
}

void durability_journal_entry(struct coordinator *c, const struct bytes *verdict,
                              struct output *out) {
    append_entry(&c->verdict_log, verdict->data, verdict->length);
    if (c->journalled)
        add_journal(verdict, false, out);
}

void durability_journal_verdict(struct coordinator *c, const struct message_flushed *flushed,
                                uint32_t replica, struct output *out) {
    struct verdict_entry entry = {.flush = flushed->flush,
                                  .replica = replica,
                                  .exceeded = flushed->exceeded,
                                  .derivative_max = flushed->derivative_max,
                                  .portions = flushed->portions,
                                  .loss = flushed->loss,
                                  .holdout_loss = flushed->holdout_loss};
    struct bytes encoded;
    bytes_init(&encoded);
    verdict_encode(&entry, &encoded);
    durability_journal_entry(c, &encoded, out);
    bytes_release(&encoded);
}

/* An evaluation has turned out long: from here on it is worth keeping. */
void durability_journal_if_long(struct coordinator *c, int64_t now_ns, struct output *out) {
    bool is_long = c->evaluation.running && now_ns - c->evaluation.started_ns >= JOURNAL_FROM_NS;
    if (!is_long || c->journalled)
        return;
    c->journalling = true;
    journal_state(c, out);
    struct cursor log = cursor_over(c->verdict_log.data, c->verdict_log.length);
    while (cursor_left(&log)) {
        uint32_t length = cursor_u32(&log);
        struct bytes entry = {.data = (void *)cursor_take(&log, length), .length = length};
        add_journal(&entry, false, out);
    }
}

/* ---- durable steps ---- */

static bool has_folder(const struct coordinator *c) {
    return *c->settings.shards_folder != '\0';
}

static void checkpoint(struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct lbfgs *history = &c->optimizer.history;
    struct sealing *sealing = &c->sealing;
    uint64_t slots[HISTORY_MAX], serials[HISTORY_MAX];
    for (uint32_t i = 0; i < history->pairs; i++) {
        slots[i] = history->slot[i];
        serials[i] = history->serial[history->slot[i]];
    }
    sealing->running = true;
    sealing->step = c->optimizer.step;
    sealing->missing = c->settings.shards;
    memset(sealing->done, 0, sizeof sealing->done);
    bytes_clear(&sealing->state);
    state_encode(c, &sealing->state);
    c->sealed_ns = now_ns;
    struct message message = {.type = MESSAGE_CHECKPOINT};
    message.checkpoint =
        (struct message_checkpoint){.attempt = c->attempt,
                                    .step = sealing->step,
                                    .best = optimizer_keeps_best(&c->optimizer),
                                    .slots = {.items = slots, .length = history->pairs},
                                    .serials = {.items = serials, .length = history->pairs}};
    send_to_shards(c, message, out);
}

void durability_checkpoint_if_due(struct coordinator *c, int64_t now_ns, struct output *out) {
    bool due = has_folder(c) && c->phase == PHASE_RUNNING && !c->finishing &&
               now_ns - c->sealed_ns >= c->settings.checkpoint_ns;
    if (due && !c->sealing.running)
        checkpoint(c, now_ns, out);
}

static void end_sealed(struct coordinator *c, struct output *out) {
    if (c->optimizer.reason == REASON_CANCELLED)
        c->phase = PHASE_STOPPED;
    else
        reading_begin(c, out);
}

/* Only ends that a run can go on from need their last step kept. */
static bool needs_sealing(const struct coordinator *c) {
    enum reason reason = c->optimizer.reason;
    bool resumable =
        reason == REASON_STEP_LIMIT || reason == REASON_TIME_LIMIT || reason == REASON_CANCELLED;
    bool sealed = c->durable_count > 0 && c->durable[0].step == c->optimizer.step;
    return has_folder(c) && resumable && !sealed;
}

void durability_seal(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->phase = PHASE_SEALING;
    if (c->sealing.running)
        return; /* one at a time: this is called again when it is through */
    if (needs_sealing(c))
        checkpoint(c, now_ns, out);
    else
        end_sealed(c, out);
}

static void commit_step(struct coordinator *c, struct output *out) {
    struct durable_step oldest = c->durable[1];
    c->durable[1] = c->durable[0];
    c->durable[0] = oldest;
    struct durable_step *newest = &c->durable[0];
    newest->step = c->sealing.step;
    memcpy(newest->digests, c->sealing.digests, sizeof newest->digests);
    bytes_clear(&newest->state);
    bytes_append(&newest->state, c->sealing.state.data, c->sealing.state.length);
    c->durable_count += c->durable_count < 2;

    struct record *record = output_add(out, RECORD_DURABLE_STEP);
    record->durable.step = newest->step;
    record->durable.attempt = c->attempt;
    record->durable.offset = out->blobs.length;
    record->durable.length = newest->state.length;
    record->durable.digests = newest->digests;
    bytes_append(&out->blobs, newest->state.data, newest->state.length);
    c->journalled = false; /* the journal before a durable step is void */

    struct message message = {.type = MESSAGE_RETAIN};
    message.retain.newer = newest->step;
    message.retain.older = c->durable_count > 1 ? c->durable[1].step : newest->step;
    send_to_shards(c, message, out);
}

/* A checkpoint that could not be written costs nothing but itself, unless the run ends with it. */
static int checkpoint_failed(struct coordinator *c, uint32_t link,
                             const struct message_checkpointed *checkpointed, int64_t now_ns,
                             struct output *out) {
    c->sealing.running = false;
    output_event(out, "checkpoint", "shard %u could not write the checkpoint of step %llu: %s",
                 link, (unsigned long long)checkpointed->step, checkpointed->reason);
    if (c->phase != PHASE_SEALING)
        return 0;
    if (c->sealing.step != c->optimizer.step) {
        durability_seal(c, now_ns, out);
        return 0;
    }
    return error_set(-(int)checkpointed->status,
                     "shard %u could not write the checkpoint of step %llu: %s", link,
                     (unsigned long long)checkpointed->step, checkpointed->reason);
}

int on_checkpointed(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out) {
    const struct message_checkpointed *checkpointed = &message->checkpointed;
    struct sealing *sealing = &c->sealing;
    if (!sealing->running || checkpointed->attempt != c->attempt ||
        checkpointed->step != sealing->step || sealing->done[link]) {
        c->stale++;
        return 0;
    }
    if (checkpointed->status)
        return checkpoint_failed(c, link, checkpointed, now_ns, out);
    sealing->done[link] = true;
    sealing->digests[link] = checkpointed->digest;
    if (--sealing->missing && !mutant(COMMIT_BEFORE_ALL_WRITTEN))
        return 0;
    sealing->running = false;
    commit_step(c, out);
    if (c->phase == PHASE_SEALING)
        durability_seal(c, now_ns, out);
    return 0;
}
