/* Many replicas in one process, for bench/scale.py: each is the real state machine (replica/)
 * behind a Unix socket of its own, and all share one event loop. What they do not do is arithmetic:
 * of each chunk the first row is computed, as it must be for the optimizer to have an objective,
 * and the answer comes after the time that the chunk is said to take.
 *
 *     scale_replicas FOLDER FIRST COUNT CHUNK_NS SPREAD
 *
 * listens at FOLDER/r-FIRST … and prints "ready", and a line of JSON at the end: what was exchanged
 * with the coordinator. SPREAD: how much slower the slowest replica is than the fastest, 0.1 for
 * 10 %. It ends when all its replicas were told to. */
#include <event2/event.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/set/set.h"
#include "numeric/setup.h"
#include "replica/compute.h"
#include "replica/replica.h"
#include "wire/channel.h"
#include "wire/address.h"
#include "wire/peer.h"

#define CONNECT_MS 5000

struct speaker;

struct wire {
    struct speaker *speaker;
    uint32_t number; /* of the link, from 1 */
    struct peer *peer;
};

struct attempt {
    struct speaker *speaker;
    uint32_t shard;
    struct dial *dial;
};

struct speaker {
    char host[32];
    double slowness;
    struct replica *machine;
    struct outbox out;
    int listener;
    struct event *acceptor, *deadline, *worked;
    struct wire **wires;
    uint32_t wire_count, wire_capacity;
    struct attempt *attempts; /* by shard */
    uint32_t attempt_count;
    uint32_t coordinator; /* link, 0: none */
    bool working, over;
    struct action action; /* the computation in hand */
    int64_t *sums;
    int64_t pinged_ns;
};

/* What all speakers of the process share. */
static struct {
    struct event_base *base;
    double chunk_ns;
    uint64_t proof;
    struct set *set;
    struct objective_shape shape;
    struct objective_scratch *scratch;
    uint32_t living;
    uint64_t received, sent; /* messages from and to coordinators */
    uint64_t flushes, portions;
    double ping_gap_s; /* the longest */
} all;

static void fail(const char *what) {
    fprintf(stderr, "scale_replicas: %s: %s\n", what, error_text());
    exit(70);
}

static void finish_step(struct speaker *speaker);

/* ---- connections ---- */

static struct wire *wire_of(const struct speaker *speaker, uint32_t link) {
    return link && link <= speaker->wire_count ? speaker->wires[link - 1] : NULL;
}

static void end_speaker(struct speaker *speaker) {
    if (speaker->over)
        return;
    speaker->over = true;
    if (--all.living == 0)
        event_base_loopexit(all.base, NULL);
}

static void note_ping(struct speaker *speaker) {
    int64_t now_ns = clock_monotonic_ns();
    double gap_s = speaker->pinged_ns ? (double)(now_ns - speaker->pinged_ns) / 1e9 : 0;
    all.ping_gap_s = fmax(all.ping_gap_s, gap_s);
    speaker->pinged_ns = now_ns;
}

static void answer_ping(struct peer *peer, const struct message *ping) {
    all.sent++;
    peer_send(peer, &(struct message){
                        .type = MESSAGE_PONG, .term = ping->term, .pong = {ping->ping.number}});
}

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct wire *wire = context;
    struct speaker *speaker = wire->speaker;
    if (message->type == MESSAGE_HELLO)
        speaker->coordinator = wire->number;
    all.received += wire->number == speaker->coordinator;
    all.portions += message->type == MESSAGE_PORTION;
    if (message->type == MESSAGE_PING) {
        note_ping(speaker);
        answer_ping(peer, message);
        return;
    }
    replica_step(speaker->machine, wire->number, message, clock_monotonic_ns(), &speaker->out);
    finish_step(speaker);
    if (message->type == MESSAGE_BYE)
        end_speaker(speaker);
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct wire *wire = context;
    struct speaker *speaker = wire->speaker;
    uint32_t number = wire->number;
    (void)peer, (void)reason;
    free(wire);
    speaker->wires[number - 1] = NULL;
    replica_gone(speaker->machine, number, &speaker->out);
    finish_step(speaker);
    if (number == speaker->coordinator)
        end_speaker(speaker);
}

static struct wire *add_wire(struct speaker *speaker, struct channel *channel) {
    static const struct peer_callbacks callbacks = {on_message, on_closed};
    struct wire *wire = memory_new(1, sizeof *wire);
    MEMORY_ROOM(speaker->wires, speaker->wire_count, speaker->wire_capacity);
    speaker->wires[speaker->wire_count++] = wire;
    *wire = (struct wire){.speaker = speaker, .number = speaker->wire_count};
    wire->peer = peer_new(all.base, channel, &callbacks, wire);
    return wire;
}

static void close_wire(struct speaker *speaker, uint32_t link) {
    struct wire *wire = wire_of(speaker, link);
    if (!wire)
        return;
    peer_free(wire->peer);
    free(wire);
    speaker->wires[link - 1] = NULL;
}

static void on_connected(void *context, int code, struct channel *channel) {
    struct attempt *attempt = context;
    struct speaker *speaker = attempt->speaker;
    attempt->dial = NULL;
    uint32_t link = code ? 0 : add_wire(speaker, channel)->number;
    replica_connected(speaker->machine, attempt->shard, link, code, error_text(), &speaker->out);
    error_clear();
    finish_step(speaker);
}

static void connect_shard(struct speaker *speaker, const struct action *action) {
    struct attempt *attempt = &speaker->attempts[action->shard];
    dial_free(attempt->dial);
    *attempt = (struct attempt){.speaker = speaker, .shard = action->shard};
    attempt->dial = dial_new(all.base, action->address, NULL, CONNECT_MS, on_connected, attempt);
}

static void on_accept(evutil_socket_t listener, short what, void *context) {
    int descriptor;
    (void)what;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        add_wire(context, channel_new(descriptor));
}

/* ---- what stands for arithmetic ---- */

/* One for the process, as the page cache would share it. */
static void open_set(struct speaker *speaker, const struct replica_setup *setup) {
    if (!all.set) {
        if (set_open(setup->set, &all.set))
            fail("the set");
        all.shape = (struct objective_shape){
            .kind = (enum objective_kind)objective_from_name(setup->objective),
            .features = set_info(all.set)->features,
            .outputs = (uint32_t)setup->layout.tensor[0].columns,
            .intercept = setup->layout.count > 1,
            .loss = setup->loss};
        all.scratch = objective_scratch_new(&all.shape);
    }
    free(speaker->sums);
    speaker->sums = memory_new(objective_parameters(&all.shape), sizeof *speaker->sums);
    replica_opened(speaker->machine, 0, "", clock_monotonic_ns(), &speaker->out);
}

static void compute_chunk(const struct speaker *speaker, uint32_t number,
                          struct computed *computed) {
    const struct set_info *info = set_info(all.set);
    const struct computation *computation = &speaker->action.computation;
    const struct objective_scale scale = {.exponent = info->uniform ? NULL : info->exponent,
                                          .uniform = info->uniform_exponent,
                                          .bounds = computation->bounds};
    const struct kernel_place place = {.shape = &all.shape,
                                       .scale = &scale,
                                       .parameters = computation->parameters,
                                       .sums = computation->sums ? speaker->sums : NULL,
                                       .scratch = all.scratch};
    struct rows rows;
    if (set_chunk(all.set, number, &rows))
        fail("a chunk");
    rows.values = rows.dense ? rows.features : rows.start[1] - rows.start[0];
    rows.count = 1;
    if (kernel_run(&place, &computation->parts, number, &rows, computed))
        fail("a kernel");
}

static void on_worked(evutil_socket_t descriptor, short what, void *context) {
    struct speaker *speaker = context;
    const struct computation *computation = &speaker->action.computation;
    struct computed computed;
    (void)descriptor, (void)what;
    computed_init(&computed, &computation->parts);
    computed.stopped = !speaker->working;
    for (uint32_t i = 0; i < computation->count && speaker->working; i++)
        compute_chunk(speaker, computation->first + i, &computed);
    speaker->working = false;
    replica_computed(speaker->machine, &computed, clock_monotonic_ns(), &speaker->out);
    finish_step(speaker);
}

static struct timeval timeval_of(double ns) {
    return (struct timeval){.tv_sec = (time_t)(ns / 1e9),
                            .tv_usec = (suseconds_t)fmod(ns / 1e3, 1e6)};
}

static void compute(struct speaker *speaker, const struct action *action) {
    speaker->action = *action;
    speaker->working = true;
    if (action->computation.clear)
        memset(speaker->sums, 0, objective_parameters(&all.shape) * sizeof *speaker->sums);
    struct timeval takes = timeval_of(action->computation.count * all.chunk_ns * speaker->slowness);
    event_add(speaker->worked, &takes);
}

static void stop(struct speaker *speaker) {
    if (speaker->working)
        event_add(speaker->worked, &(struct timeval){0});
    speaker->working = false;
}

static void gather(struct speaker *speaker, const struct action *action) {
    memcpy(action->into, speaker->sums + action->first, action->sums * sizeof *speaker->sums);
    memset(speaker->sums + action->first, 0, action->sums * sizeof *speaker->sums);
    all.flushes++;
    replica_gathered(speaker->machine, NULL, clock_monotonic_ns(), &speaker->out);
}

/* ---- steps ---- */

static void carry_out(struct speaker *speaker, const struct action *action) {
    switch (action->kind) {
    case ACTION_OPEN_SET:
        open_set(speaker, &action->setup);
        break;
    case ACTION_CONNECT:
        connect_shard(speaker, action);
        break;
    case ACTION_CLOSE:
        close_wire(speaker, action->link);
        break;
    case ACTION_COMPUTE:
        compute(speaker, action);
        break;
    case ACTION_STOP:
        stop(speaker);
        break;
    case ACTION_GATHER:
        gather(speaker, action);
        break;
    case ACTION_COPY_SET: /* all see the set */
    case ACTION_KEEP:
    case ACTION_LOOK:
        break;
    }
}

static void carry_out_all(struct speaker *speaker) {
    struct action action;
    while (replica_next_action(speaker->machine, &action))
        carry_out(speaker, &action);
}

static void send_all(struct speaker *speaker) {
    for (size_t i = 0; i < speaker->out.count; i++) {
        const struct envelope *envelope = &speaker->out.envelopes[i];
        struct wire *wire = wire_of(speaker, envelope->to);
        all.sent += envelope->to == speaker->coordinator;
        if (wire)
            peer_send_envelope(wire->peer, &speaker->out, envelope);
    }
    outbox_clear(&speaker->out);
}

static void finish_step(struct speaker *speaker) {
    carry_out_all(speaker);
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns >= replica_deadline_ns(speaker->machine))
        replica_timer(speaker->machine, now_ns, &speaker->out);
    carry_out_all(speaker);
    send_all(speaker);
    int64_t deadline_ns = replica_deadline_ns(speaker->machine);
    struct timeval wait = timeval_of(fmax((double)(deadline_ns - now_ns), 0));
    if (deadline_ns == INT64_MAX)
        event_del(speaker->deadline);
    else
        event_add(speaker->deadline, &wait);
}

static void on_deadline(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    finish_step(context);
}

/* ---- life ---- */

static int listen_at(const char *folder, uint32_t index) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/r-%" PRIu32, folder, index);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof address) ||
        listen(descriptor, 16)) {
        perror(address.sun_path);
        exit(73);
    }
    return descriptor;
}

static void start_speaker(struct speaker *speaker, const char *folder, uint32_t index,
                          double spread) {
    snprintf(speaker->host, sizeof speaker->host, "host-%" PRIu32, index);
    speaker->slowness = 1 + spread * ((double)(index * 7919 % 101) / 100 - 0.5);
    speaker->machine = replica_new(&(struct replica_identity){.pid = (uint32_t)getpid(),
                                                              .threads = 1,
                                                              .proof = all.proof,
                                                              .host = speaker->host,
                                                              .description = "bench"});
    outbox_init(&speaker->out);
    speaker->attempts = memory_new(SHARDS_MAX, sizeof *speaker->attempts);
    speaker->listener = listen_at(folder, index);
    speaker->acceptor =
        event_new(all.base, speaker->listener, EV_READ | EV_PERSIST, on_accept, speaker);
    speaker->deadline = evtimer_new(all.base, on_deadline, speaker);
    speaker->worked = evtimer_new(all.base, on_worked, speaker);
    event_add(speaker->acceptor, NULL);
    all.living++;
}

static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Portions may take less than the millisecond to which the usual timers are rounded up. */
static struct event_base *precise_base(void) {
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fputs("Usage: scale_replicas FOLDER FIRST COUNT CHUNK_NS SPREAD\n", stderr);
        return 64;
    }
    uint32_t first = (uint32_t)strtoul(argv[2], NULL, 10);
    uint32_t count = (uint32_t)strtoul(argv[3], NULL, 10);
    raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN);
    numeric_setup();
    all.base = precise_base();
    all.chunk_ns = strtod(argv[4], NULL);
    all.proof = objective_proof();
    struct speaker *speakers = memory_new(count, sizeof *speakers);
    for (uint32_t i = 0; i < count; i++)
        start_speaker(&speakers[i], argv[1], first + i, strtod(argv[5], NULL));
    puts("ready");
    fflush(stdout);
    event_base_dispatch(all.base);
    printf("{\"received\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"portions\": %" PRIu64
           ", \"flushes\": %" PRIu64 ", \"ping_gap_s\": %.3f}\n",
           all.received, all.sent, all.portions, all.flushes, all.ping_gap_s);
    return 0;
}
