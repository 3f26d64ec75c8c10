#include "coordinator/run/name_watch.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/address.h"
#include "wire/lookup.h"

#define PAUSE_MS 2000 /* from an answer to the next question */

struct watched {
    struct name_watch *watch;
    const char *name; /* dns:NAME:PORT */
    char host[ENDPOINT_HOST_BYTES], port[ENDPOINT_PORT_BYTES];
    struct lookup *lookup; /* the question, or NULL */
    struct event *settled; /* … has its answer; or NULL */
    struct event *asker;   /* asks the next one */
    char *why;             /* the last question was not answered; or NULL; owned */
    char **items;          /* the last answer; owned */
    uint32_t count;
};

struct name_watch {
    struct event_base *base;
    name_watch_answered *answered;
    void *context;
    struct watched *names;
    uint32_t count;
    const char **items; /* of all names, without repetitions */
    uint32_t item_count;
};

static void forget_items(struct watched *name) {
    for (uint32_t i = 0; i < name->count; i++)
        free(name->items[i]);
    free(name->items);
    name->items = NULL;
    name->count = 0;
}

static bool has(const struct name_watch *watch, const char *item) {
    for (uint32_t i = 0; i < watch->item_count; i++)
        if (!strcmp(watch->items[i], item))
            return true;
    return false;
}

static void list_items(struct name_watch *watch) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < watch->count; i++)
        most += watch->names[i].count;
    free(watch->items);
    watch->items = memory_new(most, sizeof *watch->items);
    watch->item_count = 0;
    for (uint32_t i = 0; i < watch->count; i++)
        for (uint32_t j = 0; j < watch->names[i].count; j++)
            if (!has(watch, watch->names[i].items[j]))
                watch->items[watch->item_count++] = watch->names[i].items[j];
}

/* Takes the addresses of an answer. NULL for one in a form that nobody can connect to. */
static char *item_of(const struct watched *name, const struct addrinfo *info) {
    char host[ENDPOINT_HOST_BYTES];
    if (getnameinfo(info->ai_addr, info->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST))
        return NULL;
    bool colons = strchr(host, ':');
    return memory_format("%s%s%s:%s", colons ? "[" : "", host, colons ? "]" : "", name->port);
}

static void take_answer(struct watched *name, const struct addrinfo *found) {
    uint32_t capacity = 0;
    forget_items(name);
    for (; found && name->count < REPLICAS_MAX; found = found->ai_next) {
        char *item = item_of(name, found);
        if (!item)
            continue;
        MEMORY_ROOM(name->items, name->count, capacity);
        name->items[name->count++] = item;
    }
    free(name->why);
    name->why = NULL;
    list_items(name->watch);
}

/* A failure is logged when it begins, and its end. */
static void take_failure(struct watched *name, const char *why) {
    bool known = name->why && !strcmp(name->why, why);
    if (!known)
        log_warning("%s is not resolved: %s%s", name->name, why,
                    name->count ? "; its replicas stay as they are" : "");
    free(name->why);
    name->why = memory_copy_string(why);
}

static void ask_later(struct watched *name) {
    const struct timeval pause = {.tv_sec = PAUSE_MS / 1000, .tv_usec = PAUSE_MS % 1000 * 1000};
    event_add(name->asker, &pause);
}

static void end_question(struct watched *name) {
    if (name->settled)
        event_free(name->settled);
    lookup_drop(name->lookup);
    name->settled = NULL;
    name->lookup = NULL;
}

static void on_settled(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct watched *name = context;
    struct name_watch *watch = name->watch;
    bool settled = atomic_load(&name->lookup->settled);
    bool answers = settled && !name->lookup->failed && name->lookup->found;
    assert(settled);
    if (answers)
        take_answer(name, name->lookup->found);
    else
        take_failure(name, gai_strerror(name->lookup->failed ? name->lookup->failed : EAI_NONAME));
    end_question(name);
    ask_later(name);
    if (answers)
        watch->answered(watch->context);
}

static void ask(struct watched *name) {
    assert(!name->lookup && !name->settled);
    if (lookup_new(name->host, name->port, &name->lookup)) {
        take_failure(name, error_text());
        error_clear();
        ask_later(name);
        return;
    }
    name->settled = event_new(name->watch->base, name->lookup->ready, EV_READ, on_settled, name);
    event_add(name->settled, NULL);
}

static void on_asker(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    ask(context);
}

const char *name_watch_item(const struct name_watch *watch, uint32_t i) {
    return i < watch->item_count ? watch->items[i] : NULL;
}

char *name_watch_text(const struct name_watch *watch) {
    const struct watched *name = &watch->names[0];
    return memory_format("%s (%s)", name->name, name->why ? name->why : "it does not answer");
}

struct name_watch *name_watch_new(struct event_base *base, char *const *addresses,
                                  name_watch_answered *answered, void *context) {
    struct name_watch *watch = memory_new(1, sizeof *watch);
    *watch = (struct name_watch){.base = base, .answered = answered, .context = context};
    for (uint32_t i = 0; addresses[i]; i++)
        watch->count += address_is_name(addresses[i]);
    assert(watch->count > 0);
    watch->names = memory_new(watch->count, sizeof *watch->names);
    for (uint32_t i = 0, n = 0; addresses[i]; i++) {
        if (!address_is_name(addresses[i]))
            continue;
        struct watched *name = &watch->names[n++];
        *name = (struct watched){.watch = watch, .name = addresses[i]};
        if (endpoint_split(addresses[i] + strlen(ADDRESS_NAME_MARK), name->host, name->port))
            abort(); /* the job was checked */
        name->asker = evtimer_new(base, on_asker, name);
        ask(name);
    }
    return watch;
}

void name_watch_free(struct name_watch *watch) {
    for (uint32_t i = 0; watch && i < watch->count; i++) {
        struct watched *name = &watch->names[i];
        end_question(name);
        event_free(name->asker);
        forget_items(name);
        free(name->why);
    }
    if (watch) {
        free(watch->names);
        free(watch->items);
    }
    free(watch);
}
