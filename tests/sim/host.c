#include "tests/sim/host.h"

#include "tests/sim/network.h"

void worker_host_init(struct worker_host *host) {
    *host = (struct worker_host){0};
    outbox_init(&host->out);
}

void worker_host_release(struct worker_host *host) {
    outbox_release(&host->out);
}

void worker_host_drain(struct process *process, struct worker_host *host) {
    for (size_t i = 0; i < host->out.count; i++) {
        const struct envelope *envelope = &host->out.envelopes[i];
        if (!process_acts(process))
            break;
        if (envelope->type == MESSAGE_WELCOME) {
            host->coordinator = envelope->to;
            host->waits++;
        }
        network_send(process, envelope->to, &host->out, envelope);
    }
    outbox_clear(&host->out);
}

void worker_host_message(struct process *process, struct worker_host *host, uint32_t link,
                         const struct message *message) {
    if (message->type == MESSAGE_HELLO)
        host->reconnect_seconds = message->hello.reconnect_seconds;
    if (message->type == MESSAGE_BYE && link == host->coordinator)
        process_end(process, true);
}

void worker_host_gone(struct process *process, struct worker_host *host, uint32_t link) {
    if (link != host->coordinator)
        return;
    host->coordinator = 0;
    host->waits++;
    world_alarm(process, process->world->now_ns + host->reconnect_seconds * NS_PER_S,
                HOST_ALARMS + host->waits);
}

void worker_host_alarm(struct process *process, struct worker_host *host, uint64_t which) {
    if (which == HOST_ALARMS + host->waits && !host->coordinator)
        process_end(process, true);
}
