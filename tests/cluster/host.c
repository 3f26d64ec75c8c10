#include "tests/cluster/host.h"

#include "tests/cluster/network.h"

void worker_host_init(struct worker_host *host) {
    *host = (struct worker_host){0};
    outbox_init(&host->out);
}

void worker_host_release(struct worker_host *host) {
    outbox_release(&host->out);
}

static void say(struct process *process, uint32_t link, const struct message *message) {
    struct outbox outbox;
    outbox_init(&outbox);
    outbox_add(&outbox, link, message);
    if (process_acts(process))
        network_send(process, link, &outbox, &outbox.envelopes[0]);
    outbox_release(&outbox);
}

/* A coordinator that was fenced out is told so at once. None that was fenced out may be obeyed
 * again: that is checked here, even if the rest of the run would not show it. */
static void find_coordinator(struct process *process, struct worker_host *host, uint32_t link,
                             uint64_t term) {
    if (term < host->term)
        world_fail(process->world, "%s obeys the coordinator of term %llu after that of term %llu",
                   process->name, (unsigned long long)term, (unsigned long long)host->term);
    if (host->coordinator && host->coordinator != link && term > host->term)
        say(process, host->coordinator,
            &(struct message){.type = MESSAGE_REFUSED,
                              .term = term,
                              .refused = {.reason = "a later coordinator of the run took over"}});
    host->term = term;
    host->coordinator = link;
    host->waits++;
    process->greeted = true;
}

bool worker_host_takes(struct process *process, struct worker_host *host, uint32_t link,
                       const struct message *message) {
    if (message->type != MESSAGE_PING)
        return false;
    if (link == host->coordinator)
        say(process, link,
            &(struct message){
                .type = MESSAGE_PONG, .term = message->term, .pong = {message->ping.number}});
    return true;
}

void worker_host_drain(struct process *process, struct worker_host *host) {
    for (size_t i = 0; i < host->out.count; i++) {
        const struct envelope *envelope = &host->out.envelopes[i];
        if (!process_acts(process))
            break;
        if (envelope->type == MESSAGE_WELCOME)
            find_coordinator(process, host, envelope->to, envelope->term);
        network_send(process, envelope->to, &host->out, envelope);
    }
    outbox_clear(&host->out);
}

void worker_host_message(struct process *process, struct worker_host *host, uint32_t link,
                         const struct message *message) {
    if (message->type == MESSAGE_HELLO)
        host->reconnect_seconds = message->hello.reconnect_seconds;
    if (message->type == MESSAGE_BYE && link == host->coordinator)
        sim_process_end(process, true);
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
        sim_process_end(process, true);
}
