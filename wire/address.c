/* The addresses of wire/peer.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "wire/peer.h"

enum { BACKLOG = 512, RETRY_NS = 10000000 };

struct place {
    struct sockaddr_storage address;
    socklen_t length;
    char host[256]; /* as given; "" for a Unix socket */
};

static const char *unix_path(const char *address) {
    return !strncmp(address, "unix:", 5) ? address + 5 : NULL;
}

static int read_unix(const char *address, const char *path, struct place *place) {
    struct sockaddr_un *un = (struct sockaddr_un *)&place->address;
    size_t length = strlen(path);
    if (!length || length >= sizeof un->sun_path)
        return error_set(ERROR_USAGE, "%s: the path of a Unix socket has 1 to %zu bytes", address,
                         sizeof un->sun_path - 1);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, length + 1);
    place->length = sizeof *un;
    return 0;
}

/* HOST:PORT, or [HOST]:PORT for a host with colons. */
static int read_inet(const char *address, struct place *place) {
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;
    const char *host = address;
    if (length > 2 && address[0] == '[' && address[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (!length || !colon[1] || length >= sizeof place->host)
        return error_set(ERROR_USAGE, "%s: an address is unix:PATH or HOST:PORT", address);
    memcpy(place->host, host, length);
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
    int failed = getaddrinfo(place->host, colon + 1, &hints, &found);
    if (failed)
        return error_set(ERROR_UNAVAILABLE, "%s: %s", address, gai_strerror(failed));
    memcpy(&place->address, found->ai_addr, found->ai_addrlen);
    place->length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int read_place(const char *address, struct place *place) {
    *place = (struct place){0};
    const char *path = unix_path(address);
    return path ? read_unix(address, path, place) : read_inet(address, place);
}

static int open_socket(const struct place *place) {
    return socket(place->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* 0, or an errno. A full backlog of a Unix socket is waited for, as TCP does by itself. */
static int connect_within(int descriptor, const struct place *place, int timeout_ms) {
    int64_t end = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    while (connect(descriptor, (const struct sockaddr *)&place->address, place->length)) {
        if (errno == EINPROGRESS)
            break;
        if (errno != EAGAIN && errno != EINTR)
            return errno;
        if (clock_monotonic_ns() >= end)
            return ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
    }
    struct pollfd ready = {.fd = descriptor, .events = POLLOUT};
    int64_t left_ms = (end - clock_monotonic_ns()) / NS_PER_MS;
    if (poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0) <= 0)
        return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) ? errno : error;
}

int address_connect(const char *address, int timeout_ms, int *descriptor) {
    struct place place;
    int code = read_place(address, &place);
    if (code)
        return code;
    *descriptor = open_socket(&place);
    int error = *descriptor < 0 ? errno : connect_within(*descriptor, &place, timeout_ms);
    if (!error)
        return 0;
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
    return error_set(ERROR_UNAVAILABLE, "%s: cannot connect: %s", address, strerror(error));
}

/* ---- listening ---- */

static bool on_loopback(const struct place *place) {
    if (place->address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&place->address;
        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (place->address.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&place->address)->sin6_addr);
    return true;
}

/* Removes the file of a Unix socket that nobody listens on any more. */
static int remove_stale(const char *address, const struct place *place) {
    const char *path = unix_path(address);
    struct stat status;
    if (lstat(path, &status))
        return errno == ENOENT ? 0 : error_set_errno(ERROR_UNAVAILABLE, "%s", address);
    if (!S_ISSOCK(status.st_mode))
        return error_set(ERROR_UNAVAILABLE, "%s: there is a file that is not a socket", address);
    int probe = open_socket(place);
    if (probe < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "%s", address);
    bool stale = connect(probe, (const struct sockaddr *)&place->address, place->length) &&
                 errno == ECONNREFUSED;
    close(probe);
    if (!stale)
        return error_set(ERROR_UNAVAILABLE, "%s: address in use by another process", address);
    return unlink(path) ? error_set_errno(ERROR_UNAVAILABLE, "%s: cannot replace", address) : 0;
}

/* The folder of a Unix socket is made private if it is made here. */
static int prepare_unix(const char *address, const struct place *place) {
    char *folder = path_folder(unix_path(address));
    int code = folder_make(folder, 0700);
    free(folder);
    return code ? code : remove_stale(address, place);
}

static int bind_and_listen(int descriptor, const struct place *place) {
    const int on = 1;
    if (place->address.ss_family != AF_UNIX)
        (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    else if (fchmod(descriptor, 0600)) /* before bind: the file then begins with this mode */
        return -1;
    if (bind(descriptor, (const struct sockaddr *)&place->address, place->length))
        return -1;
    return listen(descriptor, BACKLOG);
}

/* The address as others use it: with the port that the system picked, and a name for "any". */
static char *bound_address(const char *address, int descriptor, const struct place *place) {
    if (unix_path(address))
        return memory_copy_string(address);
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound;
    char port[32] = "", host[256] = "";
    if (getsockname(descriptor, (struct sockaddr *)&bound, &length) == 0)
        (void)getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof port,
                          NI_NUMERICSERV);
    bool any = !strcmp(place->host, "0.0.0.0") || !strcmp(place->host, "::");
    if (!any || gethostname(host, sizeof host - 1))
        memcpy(host, place->host, sizeof host);
    return strchr(host, ':') ? memory_format("[%s]:%s", host, port)
                             : memory_format("%s:%s", host, port);
}

int address_listen(const char *address, bool anywhere, int *descriptor, char **bound) {
    struct place place;
    int code = read_place(address, &place);
    if (code)
        return code;
    if (!anywhere && !on_loopback(&place))
        return error_set(ERROR_PERMISSION,
                         "%s: only loopback is listened on, unless --anywhere allows others",
                         address);
    if (place.address.ss_family == AF_UNIX && (code = prepare_unix(address, &place)))
        return code;
    *descriptor = open_socket(&place);
    if (*descriptor >= 0 && !bind_and_listen(*descriptor, &place)) {
        *bound = bound_address(address, *descriptor, &place);
        return 0;
    }
    code = errno == EADDRINUSE
               ? error_set(ERROR_UNAVAILABLE, "%s: address in use by another process", address)
               : error_set_errno(ERROR_UNAVAILABLE, "%s: cannot listen", address);
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
    return code;
}
