#include "wire/lookup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/process.h"

void lookup_drop(struct lookup *lookup) {
    int before = lookup ? atomic_fetch_sub(&lookup->holders, 1) : 0;
    assert(before >= (lookup != NULL));
    if (before != 1)
        return;
    if (lookup->found)
        freeaddrinfo(lookup->found);
    close(lookup->ready);
    free(lookup);
}

static void *look_up(void *context) {
    const uint64_t once = 1;
    struct lookup *lookup = context;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    failpoint(FAILPOINT_name_lookup);
    lookup->failed = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->found);
    if (lookup->failed)
        lookup->found = NULL;
    /* Before the wake-up: the loop, once it has read `settled`, sees both fields. */
    atomic_store(&lookup->settled, true);
    if (write(lookup->ready, &once, sizeof once) < 0)
        abort(); /* the first write to an eventfd cannot fail */
    lookup_drop(lookup);
    return NULL;
}

int lookup_new(const char *host, const char *port, struct lookup **lookup) {
    pthread_t thread;
    assert(!*lookup && strlen(host) < ENDPOINT_HOST_BYTES && strlen(port) < ENDPOINT_PORT_BYTES);
    int ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (ready < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "cannot look up %s", host);
    struct lookup *l = memory_new(1, sizeof *l);
    l->ready = ready;
    atomic_init(&l->holders, 2);
    strcpy(l->host, host);
    strcpy(l->port, port);
    int code = thread_start(&thread, look_up, l);
    if (code) {
        atomic_store(&l->holders, 1); /* there is no thread to hold the other */
        lookup_drop(l);
        return code;
    }
    pthread_detach(thread);
    *lookup = l;
    return 0;
}
