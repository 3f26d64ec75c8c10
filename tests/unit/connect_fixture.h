/* Connecting and waiting for it, for tests that have no loop of their own. */
#ifndef DML_TESTS_UNIT_CONNECT_FIXTURE_H
#define DML_TESTS_UNIT_CONNECT_FIXTURE_H

#include <event2/event.h>
#include <stdbool.h>

#include "wire/connecting.h"

struct connected {
    bool answered;
    int code, descriptor;
};

static void note_connected(void *context, int code, int descriptor) {
    *(struct connected *)context = (struct connected){true, code, descriptor};
}

/* The code, with its text in error_text(). */
static int connect_now(const char *address, int timeout_ms, int *descriptor) {
    struct connected connected = {0};
    struct event_base *base = event_base_new();
    connecting_new(base, address, timeout_ms, note_connected, &connected);
    while (!connected.answered)
        event_base_loop(base, EVLOOP_ONCE);
    event_base_free(base);
    *descriptor = connected.descriptor;
    return connected.code;
}

#endif
