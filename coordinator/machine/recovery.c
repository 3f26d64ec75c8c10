/* What outlives the coordinator and how a run goes on from it: roll-backs to a durable step, taking
 * up a run after a restart, the journal of programs and verdicts, and checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mutant.h"
#include "coordinator/machine/machine.h"
#include "coordinator/driver.h"

void recovery_release(struct coordinator *c) {
    struct recovery *recovery = &c->recovery;
    bytes_release(&recovery->rejoined);
    bytes_release(&recovery->sealing.state);
    bytes_release(&recovery->durable[1].state);
    bytes_release(&recovery->durable[0].state);
}

/* ---- going back ---- */

/* Steering as of durable[0], or as at the start. The stored state also holds the attempt and the
 * incarnations of its time. Those must not come back: a message that was sent before the roll-back
 * would count again. */
static void load_durable_state(struct coordinator *c) {
    uint32_t attempt = c->roster.attempt;
    uint64_t incarnations = c->membership.incarnations;
    uint64_t living[SHARDS_MAX + REPLICAS_MAX];
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        living[i] = c->roster.members[i].incarnation;
    const struct bytes *state = &c->recovery.durable[0].state;
    c->recovery.restoring = c->recovery.durable_count > 0;
    if (!c->recovery.restoring)
        driver_reset(c);
    else if (!state_decode(c, state->data, state->length))
        abort(); /* it was encoded here, or has passed recovery_take_saved() */
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        c->roster.members[i].incarnation = living[i];
    c->membership.incarnations = incarnations;
    c->roster.attempt = attempt;
}

static void forget_running(struct coordinator *c) {
    driver_forget(c);
    dispatch_forget(&c->dispatch);
    c->recovery.sealing.running = false;
}

/* The attempt is recorded before any message names it. If it were not, a coordinator that dies here
 * could be followed by one that uses the same attempt: then programs and evaluations of both would
 * have the same numbers. */
void recovery_roll_back(struct coordinator *c, const char *why, struct output *out) {
    load_durable_state(c);
    forget_running(c);
    if (!mutant(ATTEMPT_KEPT))
        c->roster.attempt++;
    output_add(out, RECORD_ATTEMPT)->attempt = c->roster.attempt;
    struct record *record = output_add(out, RECORD_ROLL_BACK);
    struct optimizer_progress progress = optimizer_progress(&c->driver->optimizer);
    record->roll_back.to_start = !c->recovery.restoring;
    record->roll_back.checkpoint = c->recovery.restoring ? c->recovery.durable[0].step : 0;
    record->roll_back.step = progress.step;
    record->roll_back.epochs = progress.epochs;
    if (c->recovery.restoring)
        output_event(out, "recovery", "back to step %llu, attempt %u: %s",
                     (unsigned long long)c->recovery.durable[0].step, c->roster.attempt, why);
    else
        output_event(out, "recovery", "back to the start, attempt %u: %s", c->roster.attempt, why);
    setup_begin(c, out);
}

/* ---- taking up a run ---- */

void recovery_begin(struct coordinator *c, struct output *out) {
    if (c->roster.attempt == 0) {
        c->roster.attempt = 1;
        output_add(out, RECORD_ATTEMPT)->attempt = 1;
        c->phase = PHASE_SETTING_UP;
    } else if (c->phase != PHASE_REJOINING) {
        recovery_roll_back(c, "the run is taken up again", out);
    }
}

/* Whether the shard is where the journal says. */
static bool fits(const struct coordinator *c, const struct message_holding *holding) {
    if (mutant(REJOIN_UNCHECKED))
        return true;
    return holding->attempt == c->roster.attempt && driver_fits(c, holding);
}

static void rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    output_event(out, "recovery", "the shards are where the journal says: going on, attempt %u",
                 c->roster.attempt);
    c->phase = PHASE_RUNNING;
    /* Only the former coordinator knew when the last checkpoint began. One is due at once, so that
     * coordinators that die one after another do not put it off for ever. */
    c->recovery.sealed_ns = now_ns - c->settings.checkpoint_ns;
    c->recovery.journalling = true; /* the next coordinator can go on from this one, too */
    driver_rejoin(c, now_ns, out);
    bytes_clear(&c->recovery.rejoined);
    setup_replicas(c, out);
}

int on_holding(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    if (c->phase != PHASE_REJOINING)
        return 0; /* a roll-back is under way: the shard is set up anew */
    if (!c->roster.members[link].welcomed || !fits(c, &message->holding)) {
        recovery_roll_back(c, "the shards are not where the journal says", out);
        return 0;
    }
    note_device(c, link, message->holding.device, out);
    c->roster.members[link].ready = true;
    for (uint32_t i = 0; i < c->settings.shards; i++)
        if (!c->roster.members[i].ready)
            return 0;
    rejoin(c, now_ns, out);
    return 0;
}

/* ---- taking over what was stored ---- */

static void append_entry(struct bytes *log, const void *data, size_t length) {
    bytes_put_u32(log, (uint32_t)length);
    bytes_append(log, data, length);
}

/* A journal is of use if its first entry is a state of the attempt in force. One of an older
 * attempt was written before a roll-back: the shards have left that state. */
static void take_journal(struct coordinator *c, const struct store_saved *saved) {
    const struct store_blob *journal = saved->journal;
    if (saved->journal_count == 0 || !state_decode(c, journal[0].data, journal[0].length))
        return;
    bool fits = c->roster.attempt == saved->attempt && driver_has_program(c);
    c->roster.attempt = saved->attempt;
    if (!fits)
        return;
    for (uint32_t i = 1; i < saved->journal_count; i++)
        append_entry(&c->recovery.rejoined, journal[i].data, journal[i].length);
    c->phase = PHASE_REJOINING;
}

int coordinator_check_saved(const struct store_saved *saved, int64_t run) {
    const struct store_blob *state = &saved->steps[0].state, *journal = saved->journal;
    int code = saved->step_count ? state_check_version(state->data, state->length, run) : 0;
    if (!code && saved->journal_count)
        code = state_check_version(journal->data, journal->length, run);
    return code;
}

/* Only steps that the run can go back to count: all later code relies on it. */
static void take_steps(struct coordinator *c, const struct store_saved *saved) {
    for (uint32_t i = 0; i < saved->step_count; i++) {
        struct durable_step *durable = &c->recovery.durable[i];
        const struct store_blob *state = &saved->steps[i].state;
        if (!state_fits(c, state->data, state->length))
            return;
        durable->step = saved->steps[i].step;
        bytes_append(&durable->state, state->data, state->length);
        memcpy(durable->digests, saved->steps[i].digests,
               c->settings.shards * sizeof durable->digests[0]);
        c->recovery.durable_count++;
    }
}

int recovery_take_saved(struct coordinator *c, const struct store_saved *saved) {
    c->roster.attempt = saved->attempt;
    c->phase = PHASE_SETTING_UP;
    take_steps(c, saved);
    if (saved->step_count && !c->recovery.durable_count)
        return error_set(ERROR_DATA,
                         "what was recorded of step %llu does not fit this run: begin another one "
                         "with --fresh",
                         (unsigned long long)saved->steps[0].step);
    take_journal(c, saved);
    return 0;
}

/* ---- the journal ---- */

static void journal_state(struct coordinator *c, struct output *out) {
    struct bytes state;
    bytes_init(&state);
    state_encode(c, &state);
    output_journal(out, &state, true);
    bytes_release(&state);
    c->dispatch.journalled = true;
}

void durability_journal_program(struct coordinator *c, bool whole, struct output *out) {
    c->dispatch.journalled = false;
    bytes_clear(&c->dispatch.log);
    if (c->recovery.journalling && whole)
        journal_state(c, out);
}

/* The evaluation has counted flushes already. Their verdicts follow the state in the same commit:
 * without them shards would have folded what the journal does not know, and the next coordinator
 * would have to go back. */
void durability_journal_from_now(struct coordinator *c, struct output *out) {
    if (c->dispatch.journalled)
        return;
    c->recovery.journalling = true;
    journal_state(c, out);
    struct cursor log = cursor_over(c->dispatch.log.data, c->dispatch.log.length);
    while (cursor_left(&log)) {
        uint32_t length = cursor_u32(&log);
        struct bytes entry = {.data = (void *)cursor_take(&log, length), .length = length};
        output_journal(out, &entry, false);
    }
}

void durability_journal_no_more(struct coordinator *c) {
    c->recovery.journalling = false;
}

/* ---- durable steps ---- */

/* That a checkpoint of the state as it is has. */
static uint64_t checkpoint_number(const struct coordinator *c) {
    return optimizer_progress(&c->driver->optimizer).checkpoint;
}

static bool has_folder(const struct coordinator *c) {
    return *c->settings.shards_folder != '\0';
}

/* The program that puts the step into x and g was sent before. So CHECKPOINT, which follows on the
 * same connections, finds the vectors of the step that the state is of. */
static void checkpoint(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct sealing *sealing = &c->recovery.sealing;
    struct optimizer_checkpoint holds = optimizer_checkpoint(&c->driver->optimizer);
    sealing->running = true;
    sealing->step = checkpoint_number(c);
    sealing->missing = c->settings.shards;
    sealing->failure = 0;
    memset(sealing->done, 0, sizeof sealing->done);
    bytes_clear(&sealing->state);
    state_encode(c, &sealing->state);
    c->recovery.sealed_ns = now_ns;
    struct message message = {.type = MESSAGE_CHECKPOINT};
    message.checkpoint =
        (struct message_checkpoint){.attempt = c->roster.attempt,
                                    .step = sealing->step,
                                    .best = holds.best,
                                    .sums = holds.sums,
                                    .factor = holds.factor,
                                    .slots = {.items = holds.slots, .length = holds.pairs},
                                    .serials = {.items = holds.serials, .length = holds.pairs}};
    roster_send_shards(&c->roster, message, out);
}

void durability_checkpoint_if_due(struct coordinator *c, int64_t now_ns, struct output *out) {
    bool sealed =
        c->recovery.durable_count > 0 && c->recovery.durable[0].step == checkpoint_number(c);
    bool due = has_folder(c) && c->phase == PHASE_RUNNING && !sealed &&
               now_ns - c->recovery.sealed_ns >= c->settings.checkpoint_ns;
    if (due && !c->recovery.sealing.running)
        checkpoint(c, now_ns, out);
}

static void end_sealed(struct coordinator *c, struct output *out) {
    if (reason_has_model(optimizer_reason(&c->driver->optimizer)))
        driver_read(c, out);
    else
        c->phase = PHASE_STOPPED;
}

/* A run that can go on later goes on from its last step, which must be durable then. */
static bool needs_sealing(const struct coordinator *c) {
    bool sealed =
        c->recovery.durable_count > 0 && c->recovery.durable[0].step == checkpoint_number(c);
    return has_folder(c) && reason_can_resume(optimizer_reason(&c->driver->optimizer)) && !sealed;
}

void durability_seal(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->phase = PHASE_SEALING;
    if (c->recovery.sealing.running)
        return; /* one at a time: this is called again when it is through */
    if (needs_sealing(c))
        checkpoint(c, now_ns, out);
    else
        end_sealed(c, out);
}

/* The record comes before RETAIN, which lets shards delete older checkpoints: until the commit is
 * on disk, the older ones are what the run would go back to. */
static void commit_step(struct coordinator *c, struct output *out) {
    struct durable_step oldest = c->recovery.durable[1];
    c->recovery.durable[1] = c->recovery.durable[0];
    c->recovery.durable[0] = oldest;
    struct durable_step *newest = &c->recovery.durable[0];
    newest->step = c->recovery.sealing.step;
    memcpy(newest->digests, c->recovery.sealing.digests, sizeof newest->digests);
    bytes_clear(&newest->state);
    bytes_append(&newest->state, c->recovery.sealing.state.data, c->recovery.sealing.state.length);
    c->recovery.durable_count += c->recovery.durable_count < 2;

    struct record *record = output_add(out, RECORD_DURABLE_STEP);
    record->durable.step = newest->step;
    record->durable.attempt = c->roster.attempt;
    record->durable.offset = out->blobs.length;
    record->durable.length = newest->state.length;
    record->durable.digests = newest->digests;
    record->durable.shards = c->settings.shards;
    bytes_append(&out->blobs, newest->state.data, newest->state.length);
    c->dispatch.journalled = false; /* the store drops the journal with the same commit */

    struct message message = {.type = MESSAGE_RETAIN};
    message.retain.newer = newest->step;
    message.retain.older =
        c->recovery.durable_count > 1 ? c->recovery.durable[1].step : newest->step;
    roster_send_shards(&c->roster, message, out);
}

/* The first failure counts. */
static void note_failure(struct coordinator *c, uint32_t link,
                         const struct message_checkpointed *checkpointed, struct output *out) {
    struct sealing *sealing = &c->recovery.sealing;
    if (sealing->failure)
        return;
    sealing->failure = -(int)checkpointed->status;
    snprintf(sealing->why, sizeof sealing->why,
             "shard %u could not write the checkpoint of step %llu: %s", link,
             (unsigned long long)checkpointed->step, checkpointed->reason);
    output_event(out, "checkpoint", "%s", sealing->why);
}

/* The run goes on without the checkpoint: a later one may succeed. But a run that ends with it has
 * promised to go on from there, so then it is an error. */
static int checkpoint_failed(struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct sealing *sealing = &c->recovery.sealing;
    if (c->phase != PHASE_SEALING)
        return 0;
    if (sealing->step != checkpoint_number(c)) {
        durability_seal(c, now_ns, out);
        return 0;
    }
    return error_set(sealing->failure, "%s", sealing->why);
}

/* A checkpoint that failed is over when all shards have answered, too: the next one may have the
 * same number, as that of where Downpour hands over and that of the first step after it, and an
 * answer that is late would be taken for one to that. */
int on_checkpointed(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out) {
    const struct message_checkpointed *checkpointed = &message->checkpointed;
    struct sealing *sealing = &c->recovery.sealing;
    if (!sealing->running || checkpointed->attempt != c->roster.attempt ||
        checkpointed->step != sealing->step || sealing->done[link]) {
        c->stale++;
        return 0;
    }
    if (checkpointed->status)
        note_failure(c, link, checkpointed, out);
    sealing->done[link] = true;
    sealing->digests[link] = checkpointed->digest;
    if (--sealing->missing && !mutant(COMMIT_BEFORE_ALL_WRITTEN))
        return 0;
    sealing->running = false;
    if (sealing->failure)
        return checkpoint_failed(c, now_ns, out);
    commit_step(c, out);
    if (c->phase == PHASE_SEALING)
        durability_seal(c, now_ns, out);
    return 0;
}
