/* Listening, and addresses in the form of system calls. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "wire/peer.h"
#include "wire/address.h"

#define TLS_MARK "tls:" /* may be left out: a worker's TCP is TLS in any case */

enum { BACKLOG = 512 };

static_assert(ENDPOINT_HOST_BYTES > 253, "names of DNS have up to 253 bytes");
static_assert(sizeof(struct sockaddr_un) <= sizeof(struct sockaddr_storage),
              "an endpoint has room for the address of a Unix socket");

bool address_is_unix(const char *address) {
    return endpoint_unix_path(address) != NULL;
}

const char *endpoint_unix_path(const char *address) {
    return !strncmp(address, "unix:", 5) ? address + 5 : NULL;
}

int endpoint_of_unix(const char *address, struct endpoint *endpoint) {
    *endpoint = (struct endpoint){0};
    struct sockaddr_un *un = (struct sockaddr_un *)&endpoint->address;
    const char *path = endpoint_unix_path(address);
    assert(path);
    size_t length = strlen(path);
    if (!length || length >= sizeof un->sun_path)
        return error_set(ERROR_USAGE, "%s: the path of a Unix socket has 1 to %zu bytes", address,
                         sizeof un->sun_path - 1);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, length + 1);
    endpoint->length = sizeof *un;
    if (*path == '@') { /* unix(7): a name behind a zero byte, and as long as the address says */
        un->sun_path[0] = '\0';
        endpoint->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    }
    return 0;
}

int endpoint_split(const char *address, char host[ENDPOINT_HOST_BYTES],
                   char port[ENDPOINT_PORT_BYTES]) {
    assert(!address_is_unix(address));
    size_t mark = strlen(TLS_MARK);
    const char *start = strncmp(address, TLS_MARK, mark) ? address : address + mark;
    const char *colon = strrchr(start, ':');
    size_t length = colon ? (size_t)(colon - start) : 0;
    if (length > 2 && start[0] == '[' && start[length - 1] == ']') {
        start++;
        length -= 2;
    }
    if (*address && address[strspn(address, "0123456789")] == '\0')
        return error_set(ERROR_USAGE, "%s: an address is HOST:PORT, for example 127.0.0.1:%s",
                         address, address);
    if (!length || !colon[1] || length >= ENDPOINT_HOST_BYTES ||
        strlen(colon + 1) >= ENDPOINT_PORT_BYTES)
        return error_set(ERROR_USAGE, "%s: an address is unix:PATH, HOST:PORT or tls:HOST:PORT",
                         address);
    bool number = strspn(colon + 1, "0123456789") == strlen(colon + 1);
    if (number &&
        atol(colon + 1) > UINT16_MAX) /* getaddrinfo() would take the rest of a division */
        return error_set(ERROR_USAGE, "%s: a port is a number up to %u", address, UINT16_MAX);
    memcpy(host, start, length);
    host[length] = '\0';
    strcpy(port, colon + 1);
    return 0;
}

struct endpoint endpoint_of_info(const struct addrinfo *info) {
    struct endpoint endpoint = {.length = info->ai_addrlen};
    assert(info->ai_addrlen <= sizeof endpoint.address);
    memcpy(&endpoint.address, info->ai_addr, info->ai_addrlen);
    return endpoint;
}

int endpoint_socket(const struct endpoint *endpoint) {
    return socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

bool address_is_name(const char *address) {
    return !strncmp(address, ADDRESS_NAME_MARK, strlen(ADDRESS_NAME_MARK));
}

/* ---- listening ---- */

/* A word, since the shells that a command passes through would expand a wildcard like `*`. */
static bool is_any(const char *host) {
    return !strcmp(host, "any");
}

/* A program listens before its loop begins, so getaddrinfo() may block here. "any" is an address of
 * IPv6, which serves both families, unless `family` says another. `host` is as given, "" for a Unix
 * socket. */
static int find_endpoint(const char *address, int family, struct endpoint *endpoint,
                         char host[ENDPOINT_HOST_BYTES]) {
    char port[ENDPOINT_PORT_BYTES];
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    *host = '\0';
    if (endpoint_unix_path(address))
        return endpoint_of_unix(address, endpoint);
    int code = endpoint_split(address, host, port);
    if (code)
        return code;
    if (is_any(host))
        hints.ai_family = family;
    int failed = getaddrinfo(is_any(host) ? NULL : host, port, &hints, &found);
    if (failed)
        return error_set(ERROR_UNAVAILABLE, "%s: %s", address, gai_strerror(failed));
    *endpoint = endpoint_of_info(found);
    freeaddrinfo(found);
    return 0;
}

/* Removes the file of a Unix socket if no process listens on it any more: only connect() can tell.
 * Two processes that do this for the same address at the same time may both succeed, and the second
 * takes the place of the first; addresses given to workers are unique, so nobody does. */
static int remove_stale(const char *address, const struct endpoint *endpoint) {
    const char *path = endpoint_unix_path(address);
    struct stat status;
    if (lstat(path, &status))
        return errno == ENOENT ? 0 : error_set_errno(ERROR_UNAVAILABLE, "%s", address);
    if (!S_ISSOCK(status.st_mode))
        return error_set(ERROR_UNAVAILABLE, "%s: there is a file that is not a socket", address);
    int probe = endpoint_socket(endpoint);
    if (probe < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "%s", address);
    bool stale = connect(probe, (const struct sockaddr *)&endpoint->address, endpoint->length) &&
                 errno == ECONNREFUSED;
    close(probe);
    if (!stale)
        return error_set(ERROR_UNAVAILABLE, "%s: address in use by another process", address);
    return unlink(path) ? error_set_errno(ERROR_UNAVAILABLE, "%s: cannot replace", address) : 0;
}

static int bind_and_listen(int descriptor, const struct endpoint *endpoint) {
    const int on = 1, off = 0;
    if (endpoint->address.ss_family == AF_INET6)
        (void)setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (endpoint->address.ss_family != AF_UNIX)
        (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    else if (fchmod(descriptor, 0600)) /* before bind(), so that the file never has another mode */
        return -1;
    if (bind(descriptor, (const struct sockaddr *)&endpoint->address, endpoint->length))
        return -1;
    return listen(descriptor, BACKLOG);
}

/* The address as others use it: with the port that the system chose, and with this host's name
 * instead of "any address". */
static char *bound_address(const char *address, int descriptor, const char *given) {
    if (endpoint_unix_path(address))
        return memory_copy_string(address);
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound;
    char port[ENDPOINT_PORT_BYTES] = "", host[ENDPOINT_HOST_BYTES] = "";
    if (getsockname(descriptor, (struct sockaddr *)&bound, &length) == 0)
        (void)getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof port,
                          NI_NUMERICSERV);
    bool any = is_any(given) || !strcmp(given, "0.0.0.0") || !strcmp(given, "::");
    if (!any || gethostname(host, sizeof host - 1))
        snprintf(host, sizeof host, "%s", given);
    return memory_format(strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* The descriptor, or −1 with errno. */
static int listen_at(const struct endpoint *endpoint) {
    assert(endpoint->length);
    int descriptor = endpoint_socket(endpoint);
    if (descriptor < 0 || !bind_and_listen(descriptor, endpoint))
        return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

/* The descriptor, or −1 with errno. A system without IPv6 has no such address. */
static int listen_any(const char *address, const struct endpoint *endpoint) {
    struct endpoint of_ipv4;
    char host[ENDPOINT_HOST_BYTES];
    int descriptor = listen_at(endpoint);
    if (descriptor >= 0 || (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL))
        return descriptor;
    if (find_endpoint(address, AF_INET, &of_ipv4, host))
        error_clear();
    else
        descriptor = listen_at(&of_ipv4);
    return descriptor;
}

int address_listen(const char *address, int *descriptor, char **bound) {
    struct endpoint endpoint;
    char host[ENDPOINT_HOST_BYTES];
    int code = find_endpoint(address, AF_INET6, &endpoint, host);
    if (code)
        return code;
    if (endpoint.address.ss_family == AF_UNIX && *endpoint_unix_path(address) != '@') {
        char *folder = path_folder(endpoint_unix_path(address));
        code = folder_make(folder, 0700); /* private if it is made here */
        free(folder);
        if (!code)
            code = remove_stale(address, &endpoint);
        if (code)
            return code;
    }
    *descriptor = is_any(host) ? listen_any(address, &endpoint) : listen_at(&endpoint);
    if (*descriptor < 0)
        return errno == EADDRINUSE
                   ? error_set(ERROR_UNAVAILABLE, "%s: address in use by another process", address)
                   : error_set_errno(ERROR_UNAVAILABLE, "%s: cannot listen", address);
    *bound = bound_address(address, *descriptor, host);
    assert(address_is_unix(*bound) == (endpoint.address.ss_family == AF_UNIX));
    return 0;
}

/* Whether the other end of a Unix socket is a process of this user, or of root. Who it is says its
 * user alone: a process of another container may have no id here. */
static bool is_trusted(int descriptor) {
    struct sockaddr_storage bound;
    struct ucred other;
    socklen_t length = sizeof bound, other_length = sizeof other;
    if (!getsockname(descriptor, (struct sockaddr *)&bound, &length) && bound.ss_family != AF_UNIX)
        return true; /* TCP: there the handshake of TLS decides */
    return !getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &other, &other_length) &&
           (other.uid == geteuid() || other.uid == 0);
}

int address_accept(int listener) {
    int descriptor;
    assert(listener >= 0);
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (is_trusted(descriptor))
            break;
        close(descriptor);
    }
    return descriptor;
}

bool address_is_of_this_user(int descriptor) {
    struct ucred other;
    socklen_t length = sizeof other;
    return !getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &other, &length) &&
           other.uid == geteuid();
}

/* ---- hosts ---- */

bool address_same_host(const char *a, const char *b) {
    char host[2][ENDPOINT_HOST_BYTES], port[ENDPOINT_PORT_BYTES];
    if (address_is_unix(a) || address_is_unix(b))
        return false;
    bool split = !endpoint_split(a, host[0], port) && !endpoint_split(b, host[1], port);
    error_clear();
    return split && !strcmp(host[0], host[1]);
}

void local_secret_draw(char secret[LOCAL_SECRET_DIGITS + 1]) {
    uint64_t drawn[2];
    static_assert(2 * sizeof drawn == LOCAL_SECRET_DIGITS, "two digits a byte");
    *secret = '\0';
    if (getrandom(drawn, sizeof drawn, 0) == sizeof drawn)
        snprintf(secret, LOCAL_SECRET_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, drawn[0], drawn[1]);
}

bool local_secret_is_valid(const char *secret) {
    return strlen(secret) == LOCAL_SECRET_DIGITS &&
           strspn(secret, "0123456789abcdef") == LOCAL_SECRET_DIGITS;
}

char *local_address(const char *secret) {
    assert(local_secret_is_valid(secret));
    return memory_format("unix:@dml-%.*s", LOCAL_SECRET_DIGITS / 2, secret);
}

bool address_is_loopback(int listener) {
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound;
    if (getsockname(listener, (struct sockaddr *)&bound, &length))
        return false;
    if (bound.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&bound)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return bound.ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&bound)->sin6_addr);
}
