/* Addresses: where a program listens, and where it dials. */
#ifndef DML_WIRE_ADDRESS_H
#define DML_WIRE_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/limits.h"

/* ---- addresses: "unix:PATH", "unix:@NAME", "HOST:PORT" or "tls:HOST:PORT" ----
 *
 * Between workers and their coordinator a Unix socket carries plain text, and TCP carries TLS in
 * any case: "tls:" may be left out. */

/* Listens. The host "any" stands for all addresses of this machine. The file of a Unix socket gets
 * mode 0600. If there is such a file already, it is replaced unless a process answers there. For
 * port 0 the system chooses a port. *bound is the address as others use it; free it.
 * ERROR_UNAVAILABLE or ERROR_USAGE. */
int address_listen(const char *address, int *descriptor, char **bound);

/* The next connection, non-blocking; −1 and errno. Only processes of the same user, and those of
 * root, may speak to a worker over a Unix socket: others are closed. */
int address_accept(int listener);

/* Whether it is the address of a Unix socket, which only its owner (and root) can reach. */
bool address_is_unix(const char *address);

/* Whether it is "dns:NAME:PORT": all addresses of a name, whose number may change. Nobody listens
 * there or connects to it: coordinator/run/name_watch.h resolves it. */
#define ADDRESS_NAME_MARK "dns:"
bool address_is_name(const char *address);

/* Whether only this machine can reach a listening TCP socket. */
bool address_is_loopback(int listener);

/* Whether both are TCP, and name the same host. */
bool address_same_host(const char *a, const char *b);

/* ---- the socket for others of the host ----
 *
 * A worker that listens on TCP has a Unix socket besides, of which there is no file ("unix:@NAME"):
 * others on its host need no TLS, and share memory with it. Its secret goes with the worker's
 * address, to whom the coordinator names it. The first half is the socket's name, which everybody
 * on the host can list; the whole has to be told to whoever listens there. */

/* Draws a secret; "" if the system has no random numbers. */
void local_secret_draw(char secret[LOCAL_SECRET_DIGITS + 1]);
bool local_secret_is_valid(const char *secret);
char *local_address(const char *secret); /* free it */

/* Whether the other end of a Unix socket is a process of the same user. */
bool address_is_of_this_user(int descriptor);

/* ---- an address in the form that system calls take: for address.c and dial.c ---- */

#define ENDPOINT_HOST_BYTES 256
#define ENDPOINT_PORT_BYTES 32

struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/* The path of a Unix socket, or '@' and a name without a file; NULL for another address. */
const char *endpoint_unix_path(const char *address);

/* Makes the endpoint of a Unix socket's address. ERROR_USAGE for a path that is empty or too
 * long. */
int endpoint_of_unix(const char *address, struct endpoint *endpoint);

/* Takes any other address apart: HOST:PORT or tls:HOST:PORT, [HOST]:PORT for a host with colons.
 * ERROR_USAGE. */
int endpoint_split(const char *address, char host[ENDPOINT_HOST_BYTES],
                   char port[ENDPOINT_PORT_BYTES]);

/* The endpoint of a result of getaddrinfo(), which it copies. */
struct endpoint endpoint_of_info(const struct addrinfo *info);

/* A non-blocking stream socket of the endpoint's family, or −1 with errno. */
int endpoint_socket(const struct endpoint *endpoint);

/* ---- dialling ----
 *
 * Connects without blocking the event loop. A name is resolved in a thread, the handshake of TLS is
 * made where the address needs it, and an attempt that nobody answers ends at its deadline. */

struct event_base;
struct channel;
struct dial; /* opaque */
struct tls;

/* The result of an attempt. Code 0: the channel stands, and belongs to the callee. Otherwise
 * ERROR_UNAVAILABLE, ERROR_USAGE, or ERROR_PERMISSION if there is no key or another one at either
 * end; error_text() says why, and the callee clears it. The struct dial is already freed. */
typedef void dial_done(void *context, int code, struct channel *channel);

/* Connects to an address. `tls` is the key, or NULL; it must outlive the channel.
 * `done` is called from the loop, once and never from within this call, at the latest after
 * `timeout_ms`. */
struct dial *dial_new(struct event_base *base, const char *address, const struct tls *tls,
                      int timeout_ms, dial_done *done, void *context);

/* Gives the attempt up: `done` is not called. Harmless on NULL. */
void dial_free(struct dial *dial);

#endif
