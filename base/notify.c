#define _GNU_SOURCE
#include "base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A manager that is busy, as at the start of the machine, is waited for: a READY that is lost would
 * make it end a program that serves. */
static const struct timeval timeout = {.tv_sec = 1};

static void send_state(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (*path == '@') /* an abstract name: it begins with a 0 */
        address.sun_path[0] = '\0';
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int channel = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (channel < 0)
        return;
    setsockopt(channel, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    ssize_t sent = sendto(channel, state, strlen(state), MSG_NOSIGNAL,
                          (const struct sockaddr *)&address, length);
    (void)sent;
    close(channel);
}

void notify_ready(void) {
    send_state("READY=1");
}

void notify_alive(void) {
    send_state("WATCHDOG=1");
}

void notify_stopping(void) {
    send_state("STOPPING=1");
}

static uint64_t number_in_environment(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

uint64_t notify_interval_ms(void) {
    uint64_t watched = number_in_environment("WATCHDOG_PID"),
             limit_us = number_in_environment("WATCHDOG_USEC");
    if (!limit_us || (watched && watched != (uint64_t)getpid()))
        return 0;
    uint64_t interval_ms = limit_us / 2000;
    return interval_ms ? interval_ms : 1;
}
