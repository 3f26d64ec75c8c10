#include "coordinator/coordinator.h"

#include <assert.h>
#include <stdlib.h>

#include "base/device_choice.h"
#include "base/error.h"
#include "base/memory.h"
#include "coordinator/machine.h"

/* Ticks come ten times a second. After a longer pause it was this process that slept, and the
 * workers' messages may still wait in its sockets. */
#define PAUSE_NS INT64_C(3000000000)

/* ---- life ---- */

/* Norms are measured where there are layers to compare. A linear model, of two tensors at most, has
 * no use for them, and need not pay for them. */
static uint32_t tensors_to_measure(const struct layout *layout) {
    return layout->count > 2 ? layout->count : 0;
}

struct coordinator *coordinator_new(const struct coordinator_settings *settings) {
    struct coordinator *c = memory_new(1, sizeof *c);
    c->settings = *settings;
    c->settings.saved = NULL;
    c->parameters = layout_parameters(&settings->layout);
    assert(c->parameters); /* one that is forgotten would be an empty layout */
    c->settings.optimizer.tensors = tensors_to_measure(&settings->layout);
    c->settings.optimizer.weight = settings->data->weight_sum;
    membership_init(c);
    c->steering = steering_new(&c->settings);
    if (!settings->saved || !recovery_take_saved(c, settings->saved))
        return c;
    coordinator_free(c);
    return NULL;
}

void coordinator_free(struct coordinator *c) {
    if (!c)
        return;
    recovery_release(c);
    steering_free(c->steering);
    membership_release(c);
    free(c);
}

void coordinator_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->ticked_ns = now_ns;
    recovery_begin(c, out);
}

int coordinator_tick(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (now_ns - c->ticked_ns > PAUSE_NS)
        membership_forgive_silence(c, now_ns);
    c->ticked_ns = now_ns;
    membership_ping(c, now_ns, out);
    int code = membership_lose_silent(c, now_ns, out);
    if (!code && c->phase == PHASE_RUNNING)
        steering_tick(c, now_ns, out);
    return code;
}

/* ---- what ends a run ---- */

static int on_refused(struct coordinator *c, uint32_t link, const struct message *message,
                      int64_t now_ns, struct output *out) {
    const struct member *worker = &c->membership.members[link];
    if (c->settings.on_hosts)
        return coordinator_lost(c, link, message->refused.reason, now_ns, out);
    if (message->refused.busy) {
        membership_put_off(c, link, message->refused.reason, out);
        return 0;
    }
    return error_set(ERROR_UNAVAILABLE, "%s %u refused to work: %s", role_name(worker->role),
                     worker->index, message->refused.reason);
}

/* As often as that at the same point a plug-in may fail. Once, it may be the machine's fault. */
#define PLUGIN_FAILURES_MAX 3

static int plugin_failed(struct coordinator *c, uint32_t link, const char *why, int64_t now_ns,
                         struct output *out) {
    struct membership *membership = &c->membership;
    uint64_t program = steering_next_program(c);
    if (membership->failed_program != program)
        membership->plugin_failures = 0;
    membership->failed_program = program;
    if (++membership->plugin_failures < PLUGIN_FAILURES_MAX)
        return coordinator_lost(c, link, why, now_ns, out);
    return error_set(ERROR_PLUGIN,
                     "%s; this was failure %u at the same point. What is durable is kept: with the "
                     "same library, run the same command again to go on",
                     why, membership->plugin_failures);
}

/* So often at the same point: the first time it may be that others had the memory. */
#define STARVED_MAX 2

int coordinator_starved(struct coordinator *c, uint32_t link, const char *why, bool refused,
                        int64_t now_ns, struct output *out) {
    struct membership *membership = &c->membership;
    const struct member *worker = &membership->members[link];
    uint64_t program = steering_next_program(c);
    if (membership->starved_program != program)
        membership->starved = 0;
    membership->starved_program = program;
    membership->starved++;
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
    struct member *worker = &c->membership.members[link];
    struct device_choice choice;
    bool chosen = device_choice_read(c->settings.device, &choice) && choice.kind == CHOICE_AUTO;
    if (chosen && !worker->device_failed)
        output_event(out, "device lost",
                     "the device of %s %u failed (%s): it computes on the CPU from now on",
                     role_name(worker->role), worker->index, why);
    worker->device_failed = chosen;
    return coordinator_lost(c, link, why, now_ns, out);
}

/* The folder of the shard belongs to a later coordinator, which need not live any more: whatever is
 * started there says so again. */
static int folder_is_fenced(struct coordinator *c, const char *why) {
    c->fenced = true;
    return error_set(ERROR_AGAIN, "%s", why);
}

/* If something was not available, the worker is restarted and tries again. Any other failure ends
 * the run, since the worker would fail in the same way again; but on another host it may not. */
static int on_failed(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    const struct member *worker = &c->membership.members[link];
    int code = -(int)message->failed.status;
    if (message->failed.device)
        return device_failed(c, link, message->failed.reason, now_ns, out);
    if (code == ERROR_PLUGIN)
        return plugin_failed(c, link, message->failed.reason, now_ns, out);
    if (code == ERROR_AGAIN)
        return folder_is_fenced(c, message->failed.reason);
    if (code == ERROR_UNAVAILABLE || c->settings.on_hosts)
        return coordinator_lost(c, link, message->failed.reason, now_ns, out);
    return error_set(code, "%s %u (pid %u): %s", role_name(worker->role), worker->index,
                     worker->pid, message->failed.reason);
}

void coordinator_stop(struct coordinator *c, enum reason reason, int64_t now_ns,
                      struct output *out) {
    if (c->phase > PHASE_RUNNING || steering_is_finishing(c))
        return;
    bool stopped = c->phase == PHASE_RUNNING && steering_stop(c, reason, now_ns, out);
    if (!stopped && reason == REASON_CANCELLED)
        coordinator_abandon(c); /* there is no newer step than the durable one */
}

void coordinator_abandon(struct coordinator *c) {
    steering_cancel(c);
    c->phase = PHASE_STOPPED;
}

void coordinator_dismiss(struct coordinator *c, const char *why, bool again, struct output *out) {
    struct message message = {.type = MESSAGE_BYE, .bye = {.reason = why, .again = again}};
    send_to_shards(c, message, out);
    send_to_replicas(c, message, out);
    c->phase = PHASE_DISMISSED;
}

/* ---- dispatch ---- */

static int on_pong(struct coordinator *c, uint32_t link, const struct message *message,
                   int64_t now_ns, struct output *out) {
    (void)c, (void)link, (void)message, (void)now_ns,
        (void)out; /* coordinator_step() has noted it */
    return 0;
}

static handler *handler_of_any(enum message_type type) {
    switch (type) {
    case MESSAGE_PONG:
        return on_pong;
    case MESSAGE_WELCOME:
        return on_welcome;
    case MESSAGE_READY:
        return on_ready;
    case MESSAGE_REFUSED:
        return on_refused;
    case MESSAGE_FAILED:
        return on_failed;
    default:
        return NULL;
    }
}

static handler *handler_of_shard(enum message_type type) {
    switch (type) {
    case MESSAGE_RESULT:
        return on_result;
    case MESSAGE_FOLDED:
        return on_folded;
    case MESSAGE_SLICE:
        return on_slice;
    case MESSAGE_CHECKPOINTED:
        return on_checkpointed;
    case MESSAGE_RESTORED:
        return on_restored;
    case MESSAGE_HOLDING:
        return on_holding;
    default:
        return handler_of_any(type);
    }
}

static handler *handler_of_replica(enum message_type type) {
    switch (type) {
    case MESSAGE_WANT:
        return on_want;
    case MESSAGE_FLUSHED:
        return on_flushed;
    default:
        return handler_of_any(type);
    }
}

/* A worker that answers in a later epoch obeys another coordinator, which has taken this run over.
 * This one must not write or send anything more: both would record the same run. */
static int fenced(struct coordinator *c, uint64_t epoch) {
    c->phase = PHASE_FAILED;
    c->fenced = true;
    return error_set(ERROR_AGAIN,
                     "another coordinator, of epoch %llu, took this run over from this one, of "
                     "epoch %llu: nothing to do here",
                     (unsigned long long)epoch, (unsigned long long)c->settings.epoch);
}

int coordinator_step(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    struct member *worker = &c->membership.members[link];
    handler *handle = worker->role == ROLE_SHARD ? handler_of_shard(message->type)
                                                 : handler_of_replica(message->type);
    if (message->epoch > c->settings.epoch && c->phase < PHASE_STOPPED)
        return fenced(c, message->epoch);
    if (!handle || message->epoch != c->settings.epoch || !worker->connected ||
        c->phase >= PHASE_STOPPED) {
        c->stale++;
        return 0;
    }
    worker->heard_ns = now_ns;
    int code = handle(c, link, message, now_ns, out);
    if (code)
        c->phase = PHASE_FAILED;
    return code;
}
