/* What outlives the coordinator and how a run goes on from it: roll-backs to a durable step, taking
 * up a run after a restart, the journal of programs and decisions, and checkpoints. */
#include <assert.h>
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
    bytes_release(&recovery->pending.state);
    bytes_release(&recovery->durable[1].state);
    bytes_release(&recovery->durable[0].state);
}

/* ---- going back ---- */

/* Takes optimizer, driver and dispatch back to durable[0], or to the start. The stored state also
 * holds the attempt and the incarnations of its time. Those must not come back: a message that was
 * sent before the roll-back would count again. */
static void load_durable_state(struct coordinator *c) {
    assert(coordinator_links(c) <= SHARDS_MAX + REPLICAS_MAX);
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
    assert(!c->recovery.restoring || c->driver->want <= OPTIMIZER_FINISH);
}

/* The attempt is recorded before any message names it. If it were not, a coordinator that dies here
 * could be followed by one that uses the same attempt: then programs and evaluations of both would
 * have the same numbers. */
void recovery_roll_back(struct coordinator *c, const char *why, struct output *out) {
    load_durable_state(c);
    driver_forget(c);
    dispatch_forget(&c->dispatch);
    c->recovery.pending.running = false;
    if (!mutant(ATTEMPT_KEPT))
        c->roster.attempt++;
    assert(c->roster.attempt > 0 && c->recovery.durable_count <= 2);
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
    assert(c->phase == PHASE_SETTING_UP && !c->driver->round.running);
}

/* ---- taking up a run ---- */

void recovery_begin(struct coordinator *c, struct output *out) {
    assert(!c->dispatch.evaluation.running);
    if (c->roster.attempt == 0) {
        c->roster.attempt = 1;
        output_add(out, RECORD_ATTEMPT)->attempt = 1;
        c->phase = PHASE_SETTING_UP;
    } else if (c->phase != PHASE_REJOINING) {
        recovery_roll_back(c, "the run is taken up again", out);
    }
}

static void rejoin_shards(struct coordinator *c, int64_t now_ns, struct output *out) {
    assert(c->phase == PHASE_REJOINING && c->roster.attempt > 0);
    output_event(out, "recovery", "the shards are where the journal says: going on, attempt %u",
                 c->roster.attempt);
    c->phase = PHASE_RUNNING;
    /* Only the former coordinator knew when the last checkpoint began. One is due at once, so that
     * coordinators that die one after another do not put it off for ever. */
    c->recovery.checkpoint_began_ns = now_ns - c->settings.checkpoint_ns;
    c->recovery.journalling = true; /* the next coordinator can go on from this one, too */
    driver_rejoin(c, now_ns, out);
    bytes_clear(&c->recovery.rejoined);
    setup_replicas(c, out);
    assert(c->phase == PHASE_RUNNING && !c->recovery.rejoined.length);
}

int on_holding(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    assert(link < c->settings.shards);
    if (c->phase != PHASE_REJOINING)
        return 0; /* a roll-back is under way: the shard is set up anew */
    const struct message_holding *holding = &message->holding;
    bool fits = holding->attempt == c->roster.attempt && driver_fits(c, holding);
    if (!c->roster.members[link].welcomed || !(fits || mutant(REJOIN_UNCHECKED))) {
        recovery_roll_back(c, "the shards are not where the journal says", out);
        return 0;
    }
    note_device(c, link, holding->device, out);
    c->roster.members[link].ready = true;
    for (uint32_t i = 0; i < c->settings.shards; i++)
        if (!c->roster.members[i].ready)
            return 0;
    rejoin_shards(c, now_ns, out);
    return 0;
}

/* ---- taking over what was stored ---- */

/* A journal is of use if its first entry is a state of the attempt in force. One of an older
 * attempt was written before a roll-back: the shards have left that state. */
static void take_journal(struct coordinator *c, const struct store_saved *saved) {
    const struct store_blob *journal = saved->journal;
    uint64_t issued = c->membership.incarnations;
    if (saved->journal_count == 0 || !state_decode(c, journal[0].data, journal[0].length))
        return;
    /* Replicas that the former coordinator did not have keep the incarnations that they were given
     * here: those must not be issued again. */
    if (c->membership.incarnations < issued)
        c->membership.incarnations = issued;
    bool fits = c->roster.attempt == saved->attempt && driver_has_program(c);
    c->roster.attempt = saved->attempt;
    if (!fits)
        return;
    for (uint32_t i = 1; i < saved->journal_count; i++) {
        bytes_put_u32(&c->recovery.rejoined, (uint32_t)journal[i].length);
        bytes_append(&c->recovery.rejoined, journal[i].data, journal[i].length);
    }
    assert(c->driver->program.length > 0);
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
    assert(c->recovery.durable_count == 0 && saved->step_count <= 2);
    for (uint32_t i = 0; i < saved->step_count; i++) {
        struct durable_step *durable = &c->recovery.durable[i];
        const struct store_blob *state = &saved->steps[i].state;
        if (!state_fits(c, state->data, state->length))
            return;
        assert(!durable->state.length);
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
    assert(c->membership.incarnations >= coordinator_links(c));
    return 0;
}

/* ---- the journal ---- */

static void journal_state(struct coordinator *c, struct output *out) {
    struct bytes state;
    assert(c->recovery.journalling && !c->dispatch.journalled);
    bytes_init(&state);
    state_encode(c, &state);
    output_journal(out, &state, true);
    bytes_release(&state);
    c->dispatch.journalled = true;
}

void recovery_journal_program(struct coordinator *c, bool whole, struct output *out) {
    assert(c->driver->program.length > 0);
    c->dispatch.journalled = false;
    bytes_clear(&c->dispatch.log);
    if (c->recovery.journalling && whole)
        journal_state(c, out);
}

/* The evaluation has counted flushes already. Their decisions follow the state in the same commit:
 * without them shards would have folded what the journal does not know, and the next coordinator
 * would have to go back. */
void recovery_journal_from_now(struct coordinator *c, struct output *out) {
    if (c->dispatch.journalled)
        return;
    c->recovery.journalling = true;
    assert(c->dispatch.evaluation.running);
    journal_state(c, out);
    struct cursor log = cursor_over(c->dispatch.log.data, c->dispatch.log.length);
    while (cursor_left(&log)) {
        uint32_t length = cursor_u32(&log);
        struct bytes entry = {.data = (void *)cursor_take(&log, length), .length = length};
        output_journal(out, &entry, false);
    }
}

void recovery_journal_no_more(struct coordinator *c) {
    assert(c->dispatch.evaluation.running);
    c->recovery.journalling = false;
}

/* ---- durable steps ---- */

/* The number that a checkpoint of the present state has. */
static uint64_t checkpoint_number(const struct coordinator *c) {
    return optimizer_progress(&c->driver->optimizer).checkpoint;
}

/* Whether the present state could be made durable, and is not yet. */
static bool needs_checkpoint(const struct coordinator *c) {
    assert(c->recovery.durable_count <= 2);
    bool durable =
        c->recovery.durable_count > 0 && c->recovery.durable[0].step == checkpoint_number(c);
    return *c->settings.shards_folder && !durable;
}

/* The program that puts the step into x and g was sent before. So CHECKPOINT, which follows on the
 * same connections, finds the vectors of the step that the state is of. */
static void checkpoint(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct pending_checkpoint *pending = &c->recovery.pending;
    struct optimizer_checkpoint holds = optimizer_checkpoint(&c->driver->optimizer);
    assert(!pending->running); /* one at a time */
    assert(*c->settings.shards_folder && holds.pairs <= c->settings.optimizer.memory + 2);
    pending->running = true;
    pending->step = checkpoint_number(c);
    pending->missing = c->settings.shards;
    pending->failure = 0;
    memset(pending->done, 0, sizeof pending->done);
    bytes_clear(&pending->state);
    state_encode(c, &pending->state);
    c->recovery.checkpoint_began_ns = now_ns;
    struct message message = {.type = MESSAGE_CHECKPOINT};
    message.checkpoint = (struct message_checkpoint){
        .attempt = c->roster.attempt,
        .step = pending->step,
        .best = holds.best,
        .sums = holds.sums,
        .factor = holds.factor,
        .slots = {.items = holds.slots, .length = holds.pairs},
        .serials = {.items = holds.serials, .length = holds.pairs},
        .window = {.items = holds.window_slots, .length = holds.window},
        .window_serials = {.items = holds.window_serials, .length = holds.window},
        .margins = holds.margins};
    roster_send_shards(&c->roster, message, out);
}

void recovery_checkpoint_if_due(struct coordinator *c, int64_t now_ns, struct output *out) {
    bool due = c->phase == PHASE_RUNNING && needs_checkpoint(c) &&
               now_ns - c->recovery.checkpoint_began_ns >= c->settings.checkpoint_ns;
    if (due && !c->recovery.pending.running)
        checkpoint(c, now_ns, out);
}

/* A run that can go on later goes on from its last step, which must be durable then. */
void recovery_final_checkpoint(struct coordinator *c, int64_t now_ns, struct output *out) {
    enum reason reason = optimizer_reason(&c->driver->optimizer);
    assert(reason != REASON_NONE && !c->dispatch.evaluation.running);
    c->phase = PHASE_FINAL_CHECKPOINT;
    if (c->recovery.pending.running)
        return; /* one at a time: this is called again when it is through */
    if (reason_can_resume(reason) && needs_checkpoint(c))
        checkpoint(c, now_ns, out);
    else if (reason_has_model(reason))
        driver_read(c, out);
    else
        c->phase = PHASE_STOPPED;
}

/* The record comes before RETAIN, which lets shards delete older checkpoints: until the commit is
 * on disk, the older ones are what the run would go back to. */
static void commit_step(struct coordinator *c, struct output *out) {
    struct durable_step oldest = c->recovery.durable[1];
    c->recovery.durable[1] = c->recovery.durable[0];
    c->recovery.durable[0] = oldest;
    assert(!c->recovery.pending.running && !c->recovery.pending.failure);
    struct durable_step *newest = &c->recovery.durable[0];
    newest->step = c->recovery.pending.step;
    memcpy(newest->digests, c->recovery.pending.digests, sizeof newest->digests);
    bytes_clear(&newest->state);
    bytes_append(&newest->state, c->recovery.pending.state.data, c->recovery.pending.state.length);
    c->recovery.durable_count += c->recovery.durable_count < 2;
    assert(c->recovery.durable_count == 1 || newest->step >= c->recovery.durable[1].step);

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
    assert(checkpointed->status && link < c->settings.shards);
    struct pending_checkpoint *pending = &c->recovery.pending;
    if (pending->failure)
        return;
    pending->failure = -(int)checkpointed->status;
    snprintf(pending->why, sizeof pending->why,
             "shard %u could not write the checkpoint of step %llu: %s", link,
             (unsigned long long)checkpointed->step, checkpointed->reason);
    output_event(out, "checkpoint", "%s", pending->why);
}

/* The run goes on without the checkpoint: a later one may succeed. But a run that ends with it has
 * promised to go on from there, so then it is an error. */
static int checkpoint_failed(struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct pending_checkpoint *pending = &c->recovery.pending;
    assert(pending->failure && !pending->running);
    if (c->phase != PHASE_FINAL_CHECKPOINT)
        return 0;
    if (pending->step != checkpoint_number(c)) {
        recovery_final_checkpoint(c, now_ns, out);
        return 0;
    }
    return error_set(pending->failure, "%s", pending->why);
}

/* A checkpoint that failed is over when all shards have answered, too: the next one may have the
 * same number, as that of where Downpour hands over and that of the first step after it, and an
 * answer that is late would be taken for one to that. */
int on_checkpointed(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out) {
    const struct message_checkpointed *checkpointed = &message->checkpointed;
    struct pending_checkpoint *pending = &c->recovery.pending;
    assert(link < c->settings.shards);
    if (!pending->running || checkpointed->attempt != c->roster.attempt ||
        checkpointed->step != pending->step || pending->done[link]) {
        c->stale++;
        return 0;
    }
    assert(pending->missing > 0 && pending->missing <= c->settings.shards);
    if (checkpointed->status)
        note_failure(c, link, checkpointed, out);
    pending->done[link] = true;
    pending->digests[link] = checkpointed->digest;
    if (--pending->missing && !mutant(COMMIT_BEFORE_ALL_WRITTEN))
        return 0;
    pending->running = false;
    if (pending->failure)
        return checkpoint_failed(c, now_ns, out);
    commit_step(c, out);
    if (c->phase == PHASE_FINAL_CHECKPOINT)
        recovery_final_checkpoint(c, now_ns, out);
    return 0;
}
