/* The whole machine: its life, the passing of time, what ends a run, and which handler a message
 * goes to. */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/driver.h"
#include "coordinator/machine/machine.h"
#include "device/find.h"

/* Ticks come ten times a second. After a longer pause it was this process that slept, and the
 * workers' messages may still wait in its sockets. */
#define PAUSE_NS INT64_C(3000000000)

/* Evaluations shorter than this are cheaper to redo than to journal. Of a longer one, a later
 * coordinator can go on in the middle. */
#define JOURNAL_FROM_NS INT64_C(100000000)
/* After one this short the journal, which costs a commit a program, is left again. */
#define JOURNAL_UNTIL_NS INT64_C(10000000)
static_assert(JOURNAL_UNTIL_NS < JOURNAL_FROM_NS, "the journal is not left at once");

/* ---- life ---- */

static struct dispatch_settings dispatch_settings_of(const struct coordinator *c) {
    const struct set_info *data = c->settings.data;
    uint32_t chunks = driver_chunks(c);
    return (struct dispatch_settings){
        .chunks = chunks,
        .strip = data->strip_columns ? data->chunks : chunks,
        .parameters = layout_strip_most(&c->settings.layout, data->strip_columns),
        .portion_chunks = c->settings.portion_chunks,
        .backup_copies = c->settings.backup_copies,
        .replicas_most = c->settings.replicas_most};
}

struct coordinator *coordinator_new(const struct coordinator_settings *settings) {
    struct coordinator *c = memory_new(1, sizeof *c);
    c->settings = *settings;
    c->settings.saved = NULL;
    c->parameters = layout_parameters(&settings->layout);
    assert(c->parameters); /* one that is forgotten would be an empty layout */
    /* Norms are measured where there are layers to compare. A linear model, of two tensors at
     * most, has no use for them, and need not pay for them. */
    c->settings.optimizer.tensors = settings->layout.count > 2 ? settings->layout.count : 0;
    membership_init(c);
    c->driver = driver_new(&c->settings);
    const struct dispatch_settings dispatch = dispatch_settings_of(c);
    dispatch_init(&c->dispatch, &c->roster, &dispatch);
    if (!settings->saved || !recovery_take_saved(c, settings->saved))
        return c;
    coordinator_free(c);
    return NULL;
}

void coordinator_free(struct coordinator *c) {
    if (!c)
        return;
    recovery_release(c);
    dispatch_release(&c->dispatch);
    driver_free(c->driver);
    membership_release(c);
    free(c);
}

void coordinator_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    assert(c->phase <= PHASE_SETTING_UP && !c->dispatch.evaluation.running);
    c->ticked_ns = now_ns;
    recovery_begin(c, out);
}

int coordinator_tick(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (now_ns - c->ticked_ns > PAUSE_NS)
        membership_forgive_silence(c, now_ns);
    c->ticked_ns = now_ns;
    membership_ping(c, now_ns, out);
    int code = membership_lose_silent(c, now_ns, out);
    if (!code)
        membership_release_leaving(c, now_ns, out);
    if (code || c->phase != PHASE_RUNNING)
        return code;
    assert(c->roster.attempt > 0);
    const struct current_evaluation *evaluation = &c->dispatch.evaluation;
    if (evaluation->running && !evaluation->request.minibatch &&
        now_ns - evaluation->started_ns >= JOURNAL_FROM_NS)
        recovery_journal_from_now(c, out);
    dispatch_wake_idle(&c->dispatch, now_ns, out);
    dispatch_send_folds(&c->dispatch, out);
    return 0;
}

void coordinator_end_turn(struct coordinator *c, struct output *out) {
    dispatch_send_due_folds(&c->dispatch, out);
}

/* ---- what ends a run ---- */

static int on_refused(struct coordinator *c, uint32_t link, const struct message *message,
                      int64_t now_ns, struct output *out) {
    const struct member *worker = &c->roster.members[link];
    assert(link < coordinator_links(c) && worker->connected);
    if (c->settings.on_hosts || (worker->elastic && !message->refused.busy))
        return coordinator_lost(c, link, message->refused.reason, now_ns, out);
    if (message->refused.busy) {
        membership_put_off(c, link, message->refused.reason, out);
        return 0;
    }
    return error_set(ERROR_UNAVAILABLE, "%s %u refused to work: %s", role_name(worker->role),
                     worker->index, message->refused.reason);
}

/* Failures of a plug-in at the same point that end the run. Fewer may be the machine's fault. */
#define PLUGIN_FAILURES_MAX 3
static_assert(PLUGIN_FAILURES_MAX > 1, "a single failure never ends the run");

static int plugin_failed(struct coordinator *c, uint32_t link, const char *why, int64_t now_ns,
                         struct output *out) {
    struct membership *membership = &c->membership;
    uint64_t program = driver_next_program(c);
    if (membership->failed_program != program)
        membership->plugin_failures = 0;
    membership->failed_program = program;
    assert(membership->plugin_failures < PLUGIN_FAILURES_MAX);
    if (++membership->plugin_failures < PLUGIN_FAILURES_MAX)
        return coordinator_lost(c, link, why, now_ns, out);
    return error_set(ERROR_PLUGIN,
                     "%s; this was failure %u at the same point. What is durable is kept: with the "
                     "same library, run the same command again to go on",
                     why, membership->plugin_failures);
}

/* How often want of memory at the same point ends the run. Once, others may have had the memory. */
#define STARVED_MAX 2
static_assert(STARVED_MAX > 1, "the first time never ends the run");

int coordinator_starved(struct coordinator *c, uint32_t link, const char *why, bool refused,
                        int64_t now_ns, struct output *out) {
    assert(link < coordinator_links(c));
    struct membership *membership = &c->membership;
    const struct member *worker = &c->roster.members[link];
    uint64_t program = driver_next_program(c);
    if (membership->starved_program != program)
        membership->starved = 0;
    membership->starved_program = program;
    membership->starved++;
    assert(membership->starved > 0);
    bool ours = !c->settings.on_hosts && !c->settings.by_hand[worker->role == ROLE_REPLICA];
    if (!ours || c->phase >= PHASE_READ || (!refused && membership->starved < STARVED_MAX))
        return coordinator_lost(c, link, why, now_ns, out);
    c->phase = PHASE_FAILED;
    return error_set(ERROR_UNAVAILABLE,
                     "%s %u %s; allow more, or need less: fewer replicas and threads, a shorter "
                     "history, fewer columns or smaller layers. What is durable is kept: run the "
                     "same command again to go on",
                     role_name(worker->role), worker->index, why);
}

/* The worker is replaced as any that is lost. If the job leaves the choice to its workers, the
 * replacement computes on the CPU as long as this coordinator lives: a device that failed once may
 * fail again. */
static int device_failed(struct coordinator *c, uint32_t link, const char *why, int64_t now_ns,
                         struct output *out) {
    struct member *worker = &c->roster.members[link];
    struct device_choice choice;
    bool chosen = device_choice_read(c->settings.device, &choice) && choice.kind == CHOICE_AUTO;
    assert(link < coordinator_links(c));
    if (chosen && !worker->device_failed)
        output_event(out, "device lost",
                     "the device of %s %u failed (%s): it computes on the CPU from now on",
                     role_name(worker->role), worker->index, why);
    worker->device_failed = chosen;
    return coordinator_lost(c, link, why, now_ns, out);
}

/* If something was not available, the worker is restarted and tries again. Any other failure ends
 * the run, since the worker would fail in the same way again; but on another host it may not, and
 * the run goes on without an elastic replica while others work. */
static int on_failed(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    const struct member *worker = &c->roster.members[link];
    int code = -(int)message->failed.status;
    assert(link < coordinator_links(c) && worker->connected);
    if (message->failed.device)
        return device_failed(c, link, message->failed.reason, now_ns, out);
    if (code == ERROR_PLUGIN)
        return plugin_failed(c, link, message->failed.reason, now_ns, out);
    /* The folder of the shard belongs to a later coordinator, which need not live any more:
     * whatever is started there says so again. */
    if (code == ERROR_AGAIN) {
        c->fenced = true;
        return error_set(code, "%s", message->failed.reason);
    }
    bool spared = worker->elastic && membership_is_dispensable(c, worker);
    if (code == ERROR_UNAVAILABLE || c->settings.on_hosts || spared)
        return coordinator_lost(c, link, message->failed.reason, now_ns, out);
    return error_set(code, "%s %u (pid %u): %s", role_name(worker->role), worker->index,
                     worker->pid, message->failed.reason);
}

void coordinator_stop(struct coordinator *c, enum reason reason, int64_t now_ns,
                      struct output *out) {
    assert(reason != REASON_NONE && reason < REASONS);
    if (c->phase > PHASE_RUNNING || c->driver->finishing)
        return;
    bool stopped = c->phase == PHASE_RUNNING && driver_stop(c, reason, now_ns, out);
    if (!stopped && reason == REASON_CANCELLED)
        coordinator_abandon(c); /* there is no newer step than the durable one */
}

void coordinator_abandon(struct coordinator *c) {
    optimizer_cancel(&c->driver->optimizer);
    c->phase = PHASE_STOPPED;
    assert(optimizer_reason(&c->driver->optimizer) == REASON_CANCELLED);
}

void coordinator_dismiss(struct coordinator *c, const char *why, bool again, struct output *out) {
    struct message message = {.type = MESSAGE_BYE, .bye = {.reason = why, .again = again}};
    roster_send_shards(&c->roster, message, out);
    roster_send_replicas(&c->roster, message, out);
    assert(why);
    c->phase = PHASE_DISMISSED;
}

/* ---- messages to their handlers ---- */

/* coordinator_step() has noted that the worker lives. */
static int on_pong(struct coordinator *c, uint32_t link, const struct message *message,
                   int64_t now_ns, struct output *out) {
    (void)c, (void)link, (void)message, (void)now_ns, (void)out;
    return 0;
}

/* The next program may go out before every shard has confirmed every fold. A shard gets FOLD before
 * it, on the same connection, and its CHECK finds out if one is missing. So nothing waits for
 * FOLDED, which is a third of what a short evaluation takes. But a program that is journalled must
 * wait: if this process died before it sent FOLD, the next one would send the program alone. */
static void end_evaluation_if_complete(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (!dispatch_is_counted(&c->dispatch))
        return;
    assert(c->dispatch.evaluation.running);
    if (c->dispatch.decisions.unfolded) {
        if (now_ns - c->dispatch.evaluation.started_ns < JOURNAL_UNTIL_NS)
            recovery_journal_no_more(c);
        if (c->recovery.journalling && !mutant(ROUND_BEFORE_FOLDS))
            return;
    }
    assert(c->phase == PHASE_RUNNING);
    dispatch_end(&c->dispatch);
    membership_release_leaving(c, now_ns, out);
    driver_evaluated(c, now_ns, out);
}

static int on_want(struct coordinator *c, uint32_t link, const struct message *message,
                   int64_t now_ns, struct output *out) {
    assert(link >= c->settings.shards);
    dispatch_wanted(&c->dispatch, link, &message->want, now_ns, out);
    return 0;
}

static int on_flushed(struct coordinator *c, uint32_t link, const struct message *message,
                      int64_t now_ns, struct output *out) {
    assert(link >= c->settings.shards);
    if (c->phase == PHASE_REJOINING) {
        c->stale++; /* nothing is decided before the journal is in force: it reports again */
        return 0;
    }
    if (dispatch_flushed(&c->dispatch, link, &message->flushed, now_ns, out))
        end_evaluation_if_complete(c, now_ns, out);
    return 0;
}

static int on_folded(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    assert(link < c->settings.shards);
    if (dispatch_folded(&c->dispatch, link, &message->folded, out))
        end_evaluation_if_complete(c, now_ns, out);
    return 0;
}

/* What comes from whom, and who handles it. */
static const struct {
    enum message_type type;
    bool of_shard, of_replica;
    handler *handle;
} handlers[] = {
    {MESSAGE_PONG, true, true, on_pong},
    {MESSAGE_WELCOME, true, true, on_welcome},
    {MESSAGE_READY, true, true, on_ready},
    {MESSAGE_REFUSED, true, true, on_refused},
    {MESSAGE_FAILED, true, true, on_failed},
    {MESSAGE_WANT, false, true, on_want},
    {MESSAGE_FLUSHED, false, true, on_flushed},
    {MESSAGE_FOLDED, true, false, on_folded},
    {MESSAGE_RESULT, true, false, on_result},
    {MESSAGE_SLICE, true, false, on_slice},
    {MESSAGE_CHECKPOINTED, true, false, on_checkpointed},
    {MESSAGE_RESTORED, true, false, on_restored},
    {MESSAGE_HOLDING, true, false, on_holding},
};

/* A worker that answers in a later term obeys another coordinator, which has taken this run over.
 * This one must not write or send anything more: both would record the same run. */
static int fenced(struct coordinator *c, uint64_t term) {
    assert(term > c->settings.term);
    c->phase = PHASE_FAILED;
    c->fenced = true;
    return error_set(ERROR_AGAIN,
                     "another coordinator, of epoch %llu, took this run over from this one, of "
                     "epoch %llu: nothing to do here",
                     (unsigned long long)term, (unsigned long long)c->settings.term);
}

int coordinator_step(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    assert(link < coordinator_links(c));
    struct member *worker = &c->roster.members[link];
    handler *handle = NULL; /* of messages of this type from this role */
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++)
        if (handlers[i].type == message->type &&
            (worker->role == ROLE_SHARD ? handlers[i].of_shard : handlers[i].of_replica))
            handle = handlers[i].handle;
    assert((worker->role == ROLE_SHARD) == (link < c->settings.shards));
    if (message->term > c->settings.term && c->phase < PHASE_STOPPED)
        return fenced(c, message->term);
    if (!handle || message->term != c->settings.term || !worker->connected ||
        c->phase >= PHASE_STOPPED) {
        c->stale++;
        return 0;
    }
    worker->heard_ns = now_ns;
    int code = handle(c, link, message, now_ns, out);
    if (code)
        c->phase = PHASE_FAILED;
    assert(code <= 0);
    return code;
}
