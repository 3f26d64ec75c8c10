/* Connecting and waiting for it, for tests that have no loop of their own. */
#ifndef DML_TESTS_UNIT_CONNECT_FIXTURE_H
#define DML_TESTS_UNIT_CONNECT_FIXTURE_H

#include <event2/event.h>
#include <stdbool.h>

#include "wire/channel.h"
#include "wire/address.h"

struct connected {
    bool answered;
    int code;
    struct channel *channel;
};

static void note_connected(void *context, int code, struct channel *channel) {
    *(struct connected *)context = (struct connected){true, code, channel};
}

/* The code, with its text in error_text(). */
static int connect_with(const char *address, const struct tls *tls, int timeout_ms,
                        struct channel **channel) {
    struct connected connected = {0};
    struct event_base *base = event_base_new();
    dial_new(base, address, tls, timeout_ms, note_connected, &connected);
    while (!connected.answered)
        event_base_loop(base, EVLOOP_ONCE);
    event_base_free(base);
    *channel = connected.channel;
    return connected.code;
}

/* With a key that nobody else has: whoever listens on TCP is reached, but not spoken to. */
__attribute__((unused)) static int connect_now(const char *address, int timeout_ms,
                                               struct channel **channel) {
    static struct tls *tls;
    const struct key key = {.name = "0123456789abcdef"};
    int code = tls ? 0 : tls_new(&key, &tls);
    return code ? code : connect_with(address, tls, timeout_ms, channel);
}

#endif
