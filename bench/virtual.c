#include "bench/virtual.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define LOCAL_NS 20e3      /* between processes of one host */
#define HEADER_BYTES 120.0 /* of a frame, and of packets */
#define BULKY_BYTES 4096.0 /* smaller messages do not wait behind others: packets take turns */

enum kind { LEAVES, ARRIVES, ALARM, SERVES };

/* A message that is under way or waits, or an alarm. */
struct virtual_item {
    struct virtual_item *next;
    uint32_t from, to;
    uint64_t alarm;
    enum message_type type; /* 0: an alarm */
    uint64_t term;
    double bytes;
    size_t length;
    struct bulk bulk;
    _Alignas(64) uint8_t data[]; /* the body and the bulk */
};

struct virtual_event {
    double at_ns;
    uint64_t order;
    enum kind kind;
    struct virtual_process *process;
    struct virtual_item *item;
};

struct virtual_network network;

void virtual_init(uint32_t processes, uint32_t hosts) {
    network.processes = memory_new(processes, sizeof *network.processes);
    network.hosts = memory_new(hosts, sizeof *network.hosts);
    for (uint32_t i = 0; i < processes; i++) {
        struct virtual_process *process = &network.processes[i];
        process->number = i;
        process->last = &process->first;
        outbox_init(&process->out);
    }
}

/* ---- events, in a heap ---- */

static bool earlier(const struct virtual_event *a, const struct virtual_event *b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void post(double at_ns, enum kind kind, struct virtual_process *process,
                 struct virtual_item *item) {
    MEMORY_ROOM(network.events, network.event_count, network.event_capacity);
    struct virtual_event event = {fmax(at_ns, network.now_ns), network.events_made++, kind, process,
                                  item};
    uint32_t place = network.event_count++;
    while (place && earlier(&event, &network.events[(place - 1) / 2])) {
        network.events[place] = network.events[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    network.events[place] = event;
}

static struct virtual_event take(void) {
    struct virtual_event *events = network.events;
    struct virtual_event first = events[0], last = events[--network.event_count];
    uint32_t place = 0;
    for (uint32_t child; (child = 2 * place + 1) < network.event_count; place = child) {
        if (child + 1 < network.event_count && earlier(&events[child + 1], &events[child]))
            child++;
        if (!earlier(&events[child], &last))
            break;
        events[place] = events[child];
    }
    events[place] = last;
    return first;
}

/* ---- messages ---- */

static struct virtual_item *pack(const struct virtual_process *from,
                                 const struct envelope *envelope) {
    size_t body = (envelope->body_length + 63) / 64 * 64, bulk = envelope->bulk.length;
    size_t size = (sizeof(struct virtual_item) + body + bulk + 63) / 64 * 64;
    struct virtual_item *item = aligned_alloc(64, size);
    *item = (struct virtual_item){.from = from->number,
                                  .to = envelope->to,
                                  .type = envelope->type,
                                  .term = envelope->term,
                                  .length = envelope->body_length};
    item->bytes = HEADER_BYTES + (double)envelope->body_length + network.bulk_bytes(envelope);
    memcpy(item->data, outbox_body(&from->out, envelope), envelope->body_length);
    if (bulk)
        memcpy(item->data + body, envelope->bulk.data, bulk);
    item->bulk = (struct bulk){.data = item->data + body, .length = bulk};
    return item;
}

static bool is_bulky(const struct virtual_item *item) {
    return item->bytes > BULKY_BYTES;
}

/* When the last byte has left the host. */
static double leave(struct virtual_host *host, const struct virtual_item *item, double at_ns) {
    double takes_ns = item->bytes / network.bytes_a_ns;
    if (!is_bulky(item))
        return at_ns + takes_ns;
    host->sending_ns = fmax(host->sending_ns, at_ns) + takes_ns;
    return host->sending_ns;
}

void virtual_send(struct virtual_process *process) {
    for (size_t i = 0; i < process->out.count; i++) {
        struct virtual_item *item = pack(process, &process->out.envelopes[i]);
        struct virtual_process *to = &network.processes[item->to];
        double at_ns = fmax(network.now_ns, process->occupied_ns);
        network.messages++;
        if (to->host == process->host) {
            post(at_ns + LOCAL_NS, ARRIVES, to, item);
            continue;
        }
        double left_ns = leave(&network.hosts[process->host], item, at_ns);
        post(left_ns - item->bytes / network.bytes_a_ns + network.latency_ns, LEAVES, to, item);
    }
    outbox_clear(&process->out);
}

/* The first byte is there: the rest follows as fast as the host takes it. */
static void receive(struct virtual_process *to, struct virtual_item *item) {
    struct virtual_host *host = &network.hosts[to->host];
    double takes_ns = item->bytes / network.bytes_a_ns, there_ns = network.now_ns + takes_ns;
    host->received += item->bytes;
    if (is_bulky(item))
        there_ns = host->receiving_ns = fmax(host->receiving_ns, network.now_ns) + takes_ns;
    post(there_ns, ARRIVES, to, item);
}

static struct message message_of(const struct virtual_item *item) {
    struct message message = {0};
    const char *why;
    if (message_decode(item->type, item->data, item->length, &message, &why)) {
        fprintf(stderr, "efficiency: %s cannot be read: %s\n", message_name(item->type), why);
        exit(70);
    }
    message.term = item->term;
    message.bulk = item->bulk;
    return message;
}

/* ---- processes ---- */

void virtual_alarm(struct virtual_process *process, double at_ns, uint64_t what) {
    struct virtual_item *item = aligned_alloc(64, (sizeof *item + 63) / 64 * 64);
    *item = (struct virtual_item){.alarm = what};
    post(at_ns, ALARM, process, item);
}

void virtual_spend(struct virtual_process *process, double ns) {
    process->occupied_ns = fmax(process->occupied_ns, network.now_ns) + ns;
    process->worked_ns += ns;
}

/* The first thing that waits is begun, and done when its time has passed. */
static void serve_next(struct virtual_process *process) {
    const struct virtual_item *item = process->first;
    process->serving = item != NULL;
    if (!item)
        return;
    if (item->type) {
        struct message message = message_of(item);
        virtual_spend(process, process->role->cost(process, &message));
    }
    post(process->occupied_ns, SERVES, process, NULL);
}

/* PING and PONG go between others: the loop gives each connection its turn. */
static void join_queue(struct virtual_process *process, struct virtual_item *item) {
    if (item->type == MESSAGE_PING || item->type == MESSAGE_PONG) {
        struct message message = message_of(item);
        process->role->message(process, item->from, &message);
        free(item);
        return;
    }
    item->next = NULL;
    *process->last = item;
    process->last = &item->next;
    if (!process->serving)
        serve_next(process);
}

static void serve(struct virtual_process *process) {
    struct virtual_item *item = process->first;
    process->first = item->next;
    if (!process->first)
        process->last = &process->first;
    if (item->type) {
        struct message message = message_of(item);
        process->role->message(process, item->from, &message);
    } else {
        process->role->alarm(process, item->alarm);
    }
    free(item);
    serve_next(process);
}

void virtual_run(void) {
    while (network.event_count && !network.over) {
        struct virtual_event event = take();
        network.now_ns = event.at_ns;
        if (event.kind == LEAVES)
            receive(event.process, event.item);
        else if (event.kind == SERVES)
            serve(event.process);
        else
            join_queue(event.process, event.item);
    }
}
