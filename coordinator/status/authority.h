/* Which server a request is for (RFC 9110, 7.2), and whether that is this one. A page of the web
 * may point a name of its own at this machine's address (DNS rebinding), and a browser then lets it
 * read what is answered; but the request still carries that name. So only names and addresses that
 * are known to be ours are answered. No sockets here. */
#ifndef DML_COORDINATOR_STATUS_AUTHORITY_H
#define DML_COORDINATOR_STATUS_AUTHORITY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#define AUTHORITY_MAX 256

/* Reads HOST or HOST:PORT, `length` bytes: `host` gets the name in lower case without a last dot,
 * or the address without brackets. The port is not told: who comes through a tunnel names another.
 * False if it is malformed. */
bool authority_read(const char *text, size_t length, char host[AUTHORITY_MAX]);

/* What a server goes by. */
struct authority_own {
    char said[AUTHORITY_MAX];    /* in the job file, name or address */
    char machine[AUTHORITY_MAX]; /* the name of the machine; "" on loopback */
    struct in6_addr bound;       /* what it listens on; IPv4 as ::ffff:A.B.C.D */
};

/* `said` is the ADDRESS:PORT of the job file, `bound` the address listened on as a number,
 * `machine` the name of the machine. */
void authority_own_init(struct authority_own *own, const char *said, const char *bound,
                        const char *machine);

/* Whether `host`, as authority_read() gives it, is one of these: localhost and every loopback
 * address; the address listened on, and what the job file says; off loopback, the machine's name;
 * and any address as a number if it listens on all of them. */
bool authority_is_own(const struct authority_own *own, const char *host);

#endif
