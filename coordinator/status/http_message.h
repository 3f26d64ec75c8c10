/* What an HTTP/1.1 server reads and writes as text: Host, the request, and the head of the answer.
 * No sockets here. */
#ifndef DML_COORDINATOR_STATUS_HTTP_MESSAGE_H
#define DML_COORDINATOR_STATUS_HTTP_MESSAGE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ---- Host: which server a request is for (RFC 9110, 7.2), and whether this is that server ----
 *
 * A web page can let a name of its own point to this machine's address (DNS rebinding). A browser
 * then lets the page read our answers, but the request's Host still has the page's name. So we
 * answer only if Host is a name or address that we know to be ours. */

#define HOST_CHECK_BYTES 256

/* Reads HOST or HOST:PORT, `length` bytes. `host` gets the name in lower case without a dot at its
 * end, or the address without brackets. The port is ignored: through a tunnel it is another one.
 * False if the text is malformed. */
bool host_check_parse(const char *text, size_t length, char host[HOST_CHECK_BYTES]);

/* The names and addresses of a server. */
struct host_check {
    char configured[HOST_CHECK_BYTES]; /* the name or address in the job file */
    char machine[HOST_CHECK_BYTES];    /* the name of the machine; "" on loopback */
    struct in6_addr bound;             /* the address it listens on; IPv4 as ::ffff:A.B.C.D */
};

/* `said` is the ADDRESS:PORT of the job file, `bound` the numeric address that the server listens
 * on, `machine` the name of the machine. */
void host_check_init(struct host_check *check, const char *said, const char *bound,
                     const char *machine);

/* Whether `host`, from host_check_parse(), is one of these: localhost or any loopback address; the
 * address that the server listens on; the name or address in the job file; the machine's name, if
 * the server does not listen on loopback; any numeric address, if it listens on all addresses. */
bool host_check_accepts(const struct host_check *check, const char *host);

/* ---- the request (RFC 9112), read strictly: GET and HEAD without a body, POST to one path, and
 * nothing that two programs could read in different ways ----
 *
 * A body must say its length and be of REQUEST_BODY_TYPE. A page of another site can make a browser
 * send text/plain or a form anywhere without a question; before it sends this type, the browser
 * asks by OPTIONS, which is refused. */

#define REQUEST_BYTES_MAX 8192 /* request line and fields together */
#define REQUEST_BODY_MAX 65536
#define REQUEST_TARGET_MAX 512
#define REQUEST_POSTED "/api/v1/explain" /* the end of the path that takes POST, and only that */
#define REQUEST_BODY_TYPE "application/octet-stream"

struct request {
    bool head;                       /* HEAD: the answer's body is left out */
    bool posts;                      /* POST, with a body */
    bool keep_alive;                 /* the connection serves another request */
    char host[HOST_CHECK_BYTES];     /* from host_check_parse(); "" if the request names no host */
    char target[REQUEST_TARGET_MAX]; /* path, a NUL, query; the two pointers below point into it */
    const char *path, *query;        /* as sent, not decoded; the query is "" if there is none */
    size_t body_length;              /* bytes that follow the head */
    const char *body;                /* they, once all have come; else NULL */
};

/* The length of the head, its empty line included; 0 if the head is not complete yet. */
size_t request_end(const char *text, size_t length);

/* Reads a complete head. Returns 200, or the status of a refusal; then *why says in a few words
 * what is wrong, a constant. */
int request_read(const char *text, size_t length, struct request *request, const char **why);

/* The field Allow for what the path of a request takes, of which request_read() has refused the
 * method. */
const char *request_allow(const struct request *request);

/* The whole number that the query has for `name`; `missing` if it has none. False if the value is
 * not a whole number. */
bool request_number(const struct request *request, const char *name, int64_t missing,
                    int64_t *number);

/* Whether the query has values only for these names; `names` ends with NULL. */
bool request_has_only(const struct request *request, const char *const *names);

/* ---- the answer ---- */

struct http_answer {
    int status;
    const char *type;   /* of the body */
    const char *fields; /* further fields, each with CR LF, or NULL */
    const void *body;
    size_t length;
    void *owned; /* the body if it is to be freed, else NULL */
};

#define RESPONSE_HEAD_MAX 1024

/* Writes the status line, the fields and the empty line. Returns their length. */
size_t response_head(const struct http_answer *answer, bool keep_alive, time_t now,
                     char head[RESPONSE_HEAD_MAX]);

#endif
