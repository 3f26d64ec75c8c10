/* Which server a request is for (RFC 9110, 7.2), and whether this is that server. A web page can
 * let a name of its own point to this machine's address (DNS rebinding). A browser then lets the
 * page read our answers, but the request's Host still has the page's name. So we answer only if
 * Host is a name or address that we know to be ours. No sockets here. */
#ifndef DML_COORDINATOR_STATUS_AUTHORITY_H
#define DML_COORDINATOR_STATUS_AUTHORITY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#define AUTHORITY_MAX 256

/* Reads HOST or HOST:PORT, `length` bytes. `host` gets the name in lower case without a dot at its
 * end, or the address without brackets. The port is ignored: through a tunnel it is another one.
 * False if the text is malformed. */
bool authority_read(const char *text, size_t length, char host[AUTHORITY_MAX]);

/* The names and addresses of a server. */
struct authority_own {
    char said[AUTHORITY_MAX];    /* the name or address in the job file */
    char machine[AUTHORITY_MAX]; /* the name of the machine; "" on loopback */
    struct in6_addr bound;       /* the address it listens on; IPv4 as ::ffff:A.B.C.D */
};

/* `said` is the ADDRESS:PORT of the job file, `bound` the numeric address that the server listens
 * on, `machine` the name of the machine. */
void authority_own_init(struct authority_own *own, const char *said, const char *bound,
                        const char *machine);

/* Whether `host`, from authority_read(), is one of these: localhost or any loopback address; the
 * address that the server listens on; the name or address in the job file; the machine's name, if
 * the server does not listen on loopback; any numeric address, if it listens on all addresses. */
bool authority_is_own(const struct authority_own *own, const char *host);

#endif
