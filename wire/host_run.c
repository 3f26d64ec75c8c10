/* Which run a worker serves: coordinators come and are lost, and runs end. */
#include <assert.h>
#include <event2/event.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/clock.h"
#include "wire/address.h"
#include "wire/host_parts.h"
#include "wire/peer.h"

enum { PARENT_CHECK_MS = 1000 };

void host_await_coordinator(struct host *host, uint32_t otherwise_seconds) {
    const struct host_options *options = &host->options;
    int64_t seconds = options->parent_pid ? 0 : otherwise_seconds;
    if (options->hello_seconds)
        seconds = options->hello_seconds;
    if (seconds)
        host_start_timer(host, ON_LOST, seconds * NS_PER_S);
    if (options->parent_pid)
        event_add(host->events[ON_PARENT], &(struct timeval){.tv_sec = PARENT_CHECK_MS / 1000});
}

void host_coordinator_found(struct host *host, const struct link *link, uint64_t term) {
    assert(link->run); /* WELCOME answers a HELLO */
    const struct link *former = links_find(&host->links, host->coordinator);
    if (former && term > host->term) {
        /* Tells a coordinator at once that a later one has taken over. The term of the later one
         * is in the message, by which the former sees that it is fenced out. */
        log_warning("a later coordinator takes over");
        struct message refused = {
            .type = MESSAGE_REFUSED,
            .term = term,
            .refused = {.reason = "a later coordinator of the run took over"}};
        peer_send(former->peer, &refused);
    }
    host->term = term;
    host->coordinator = link->number;
    host->beat_ns = clock_monotonic_ns();
    host->reconnect_seconds = link->reconnect_seconds;
    tenancy_begin(&host->tenancy, link->run);
    event_del(host->events[ON_LOST]);
    event_del(host->events[ON_PARENT]);
}

void host_coordinator_lost(struct host *host, uint32_t reconnect_seconds, const char *reason) {
    assert(host->coordinator);
    host->coordinator = 0;
    if (host->options.once) {
        log_warning("the coordinator is gone (%s)", reason);
        host_end(host, error_set(ERROR_AGAIN, "the coordinator is gone (%s)", reason));
        return;
    }
    log_warning("the coordinator is gone (%s); waiting %u s for the next", reason,
                reconnect_seconds);
    assert(host->tenancy.run);
    host->tenancy.until_ns = clock_monotonic_ns() + reconnect_seconds * NS_PER_S;
    host_start_timer(host, ON_LOST, reconnect_seconds * NS_PER_S);
}

/* This may be within a call of the role, so the role forgets the run in a later turn of the loop.
 */
void host_leave_run(struct host *host, bool stays, int code) {
    if (!stays) {
        host_end(host, code);
        return;
    }
    assert(host->role.forget);
    host->leaving = true;
    event_active(host->events[ON_REST], EV_TIMEOUT, 0);
}

/* Strangers stay: one of them may be the next coordinator. */
void host_rest(struct host *host) {
    host->leaving = false;
    event_del(host->events[ON_REST]);
    for (size_t i = host->links.count; i-- > 0;)
        if (!host->links.items[i]->stranger)
            host_close(host, host->links.items[i]->number);
    for (size_t i = 0; i < SHARDS_MAX; i++) {
        dial_free(host->attempts[i].dial);
        host->attempts[i].dial = NULL;
    }
    host_alarm(host, -1);
    event_del(host->events[ON_LOST]);
    outbox_clear(&host->outbox);
    host->coordinator = 0;
    host->term = 0;
    tenancy_end(&host->tenancy);
    assert(!host->links.count || links_first_stranger(&host->links));
    host->role.forget(host->role.state);
    malloc_trim(0); /* gives back to the system what a large run had */
    error_clear();
    if (host->options.stay)
        log_info("the run is over: free for the next");
    else
        host_await_coordinator(host, host->reconnect_seconds);
}

bool host_refuses(struct host *host, const struct link *link, const struct message *hello,
                  int64_t now_ns) {
    char *reason = tenancy_objection(&host->tenancy, hello->hello.run, now_ns);
    if (!reason)
        return false;
    peer_send(link->peer, &(struct message){.type = MESSAGE_REFUSED,
                                            .term = hello->term,
                                            .refused = {.reason = reason, .busy = true}});
    free(reason);
    return true;
}

struct link *links_add(struct links *links) {
    struct link *link = memory_new(1, sizeof *link);
    link->number = ++links->last_number;
    assert(link->number);
    MEMORY_ROOM(links->items, links->count, links->capacity);
    links->items[links->count++] = link;
    return link;
}

/* The place of the link, or the place where it would be. */
static size_t place_of(const struct links *links, uint32_t number) {
    size_t low = 0, high = links->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (links->items[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct link *links_find(const struct links *links, uint32_t number) {
    size_t place = place_of(links, number);
    assert(place <= links->count);
    bool found = place < links->count && links->items[place]->number == number;
    return found ? links->items[place] : NULL;
}

struct link *links_first_stranger(const struct links *links) {
    for (size_t i = 0; i < links->count; i++)
        if (links->items[i]->stranger)
            return links->items[i];
    return NULL;
}

void links_forget(struct links *links, struct link *link) {
    size_t place = place_of(links, link->number);
    assert(place < links->count && links->items[place] == link);
    links->count--;
    memmove(links->items + place, links->items + place + 1,
            (links->count - place) * sizeof *links->items);
    free(link->run);
    free(link);
}

void links_release(struct links *links) {
    assert(!links->count);
    free(links->items);
    *links = (struct links){0};
}

void tenancy_begin(struct tenancy *tenancy, const char *run) {
    assert(run && (!tenancy->run || !strcmp(tenancy->run, run)));
    tenancy->until_ns = 0;
    if (!tenancy->run)
        tenancy->run = memory_copy_string(run);
}

void tenancy_end(struct tenancy *tenancy) {
    free(tenancy->run);
    *tenancy = (struct tenancy){0};
}

/* The UUID of a run's name alone, without what follows it to tell copies of a state folder
 * apart. */
#define RUN "%.36s"

char *tenancy_objection(const struct tenancy *tenancy, const char *run, int64_t now_ns) {
    if (!tenancy->run || !strcmp(tenancy->run, run))
        return NULL;
    if (!tenancy->until_ns)
        return memory_format("it is busy with another run, " RUN ", until that ends", tenancy->run);
    int64_t left_ns = tenancy->until_ns - now_ns;
    return memory_format("it is busy with another run, " RUN ", whose coordinator is lost, and "
                         "waits for that for %.0f s more",
                         tenancy->run, left_ns > 0 ? (double)left_ns / (double)NS_PER_S : 0.0);
}
