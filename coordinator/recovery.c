/* Going back to a durable step, and taking up a run after a restart. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mutant.h"
#include "coordinator/machine.h"
#include "coordinator/state.h"

void recovery_release(struct coordinator *c) {
    struct recovery *recovery = &c->recovery;
    bytes_release(&recovery->rejoined);
    bytes_release(&recovery->verdict_log);
    bytes_release(&recovery->sealing.state);
    bytes_release(&recovery->durable[1].state);
    bytes_release(&recovery->durable[0].state);
}

/* ---- going back ---- */

/* Steering as of durable[0], or as at the start. The stored state also holds the attempt and the
 * incarnations of its time. Those must not come back: a message that was sent before the roll-back
 * would count again. */
static void load_durable_state(struct coordinator *c) {
    uint32_t attempt = c->recovery.attempt;
    uint64_t incarnations = c->membership.incarnations;
    uint64_t living[SHARDS_MAX + REPLICAS_MAX];
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        living[i] = c->membership.members[i].incarnation;
    const struct bytes *state = &c->recovery.durable[0].state;
    c->recovery.restoring = c->recovery.durable_count > 0;
    if (!c->recovery.restoring)
        steering_reset(c);
    else if (!state_decode(c, state->data, state->length))
        abort(); /* it was encoded here, or has passed recovery_take_saved() */
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        c->membership.members[i].incarnation = living[i];
    c->membership.incarnations = incarnations;
    c->recovery.attempt = attempt;
}

static void forget_running(struct coordinator *c) {
    steering_forget(c);
    c->recovery.sealing.running = false;
    c->recovery.journalled = false;
    bytes_clear(&c->recovery.verdict_log);
}

/* The attempt is recorded before any message names it. If it were not, a coordinator that dies here
 * could be followed by one that uses the same attempt: then programs and evaluations of both would
 * have the same numbers. */
void recovery_roll_back(struct coordinator *c, const char *why, struct output *out) {
    load_durable_state(c);
    forget_running(c);
    if (!mutant(ATTEMPT_KEPT))
        c->recovery.attempt++;
    output_add(out, RECORD_ATTEMPT)->attempt = c->recovery.attempt;
    struct record *record = output_add(out, RECORD_ROLL_BACK);
    struct steering_progress progress = steering_progress(c);
    record->roll_back.to_start = !c->recovery.restoring;
    record->roll_back.checkpoint = c->recovery.restoring ? c->recovery.durable[0].step : 0;
    record->roll_back.step = progress.step;
    record->roll_back.epochs = progress.epochs;
    if (c->recovery.restoring)
        output_event(out, "recovery", "back to step %llu, attempt %u: %s",
                     (unsigned long long)c->recovery.durable[0].step, c->recovery.attempt, why);
    else
        output_event(out, "recovery", "back to the start, attempt %u: %s", c->recovery.attempt,
                     why);
    setup_begin(c, out);
}

/* ---- taking up a run ---- */

void recovery_begin(struct coordinator *c, struct output *out) {
    if (c->recovery.attempt == 0) {
        c->recovery.attempt = 1;
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
    return holding->attempt == c->recovery.attempt && steering_fits(c, holding);
}

static void rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    output_event(out, "recovery", "the shards are where the journal says: going on, attempt %u",
                 c->recovery.attempt);
    c->phase = PHASE_RUNNING;
    /* Only the former coordinator knew when the last checkpoint began. One is due at once, so that
     * coordinators that die one after another do not put it off for ever. */
    c->recovery.sealed_ns = now_ns - c->settings.checkpoint_ns;
    c->recovery.journalling = true; /* the next coordinator can go on from this one, too */
    steering_rejoin(c, now_ns, out);
    bytes_clear(&c->recovery.rejoined);
    setup_replicas(c, out);
}

int on_holding(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    if (c->phase != PHASE_REJOINING)
        return 0; /* a roll-back is under way: the shard is set up anew */
    if (!c->membership.members[link].welcomed || !fits(c, &message->holding)) {
        recovery_roll_back(c, "the shards are not where the journal says", out);
        return 0;
    }
    note_device(c, link, message->holding.device, out);
    c->membership.members[link].ready = true;
    for (uint32_t i = 0; i < c->settings.shards; i++)
        if (!c->membership.members[i].ready)
            return 0;
    rejoin(c, now_ns, out);
    return 0;
}
