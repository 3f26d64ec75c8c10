#define _GNU_SOURCE
#include "coordinator/command/control_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "coordinator/run/lock.h"

#define ANSWER_BYTES_MAX (64u << 20)

/* Connects through the folder's descriptor, because an address has no room for a long path. */
static int connect_within(const char *state, int socket_descriptor) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control.sock", folder);
    int result = connect(socket_descriptor, (struct sockaddr *)&address, sizeof address);
    int number = errno;
    close(folder);
    errno = number;
    return result;
}

static int mute(const char *state) {
    return error_set(ERROR_AGAIN,
                     "%s: the coordinator, %s, has not answered for %d s; the process may be "
                     "stopped",
                     state, state_lock_holder(state).text, CONTROL_ANSWER_MS / 1000);
}

/* A socket reaches the processes of its host only, even if others see its file. */
static int absent(const char *state) {
    struct state_holder holder = state_lock_holder(state);
    if (!holder.elsewhere)
        return error_set(ERROR_UNAVAILABLE, "%s: no coordinator runs there", state);
    return error_set(ERROR_UNAVAILABLE,
                     "%s: no coordinator runs there on this host; the last one was %s: ask on that "
                     "host",
                     state, holder.text);
}

static int wait_for(int descriptor, short events, int64_t deadline_ns) {
    int64_t left_ms = (deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
    struct pollfd entry = {.fd = descriptor, .events = events};
    return left_ms > 0 && poll(&entry, 1, (int)left_ms) > 0;
}

static int receive(const char *state, int descriptor, int64_t deadline_ns, struct bytes *answer) {
    for (;;) {
        char part[4096];
        if (!wait_for(descriptor, POLLIN, deadline_ns) || answer->length > ANSWER_BYTES_MAX)
            return mute(state);
        ssize_t got = recv(descriptor, part, sizeof part, MSG_DONTWAIT);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return error_set_errno(ERROR_UNAVAILABLE, "%s: the connection to the coordinator broke",
                                   state);
        if (got > 0)
            bytes_append(answer, part, (size_t)got);
    }
}

static int converse(const char *state, int descriptor, const char *question, struct bytes *answer) {
    int64_t deadline_ns = clock_monotonic_ns() + CONTROL_ANSWER_MS * NS_PER_MS;
    if (connect_within(state, descriptor)) {
        if (errno == EAGAIN) /* its queue of connections is full */
            return mute(state);
        if (errno == EACCES || errno == EPERM)
            return error_set_errno(ERROR_PERMISSION,
                                   "only its owner may ask the coordinator of %s: %s/control.sock",
                                   state, state);
        return absent(state);
    }
    if (send(descriptor, question, strlen(question), MSG_NOSIGNAL) != (ssize_t)strlen(question))
        return mute(state);
    return receive(state, descriptor, deadline_ns, answer);
}

int control_ask(const char *state, const char *question, char **answer) {
    struct bytes bytes;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "cannot open a socket");
    bytes_init(&bytes);
    int code = converse(state, descriptor, question, &bytes);
    close(descriptor);
    if (!code) {
        bytes_put_u8(&bytes, 0);
        *answer = memory_copy_string((const char *)bytes.data);
    }
    bytes_release(&bytes);
    return code;
}
