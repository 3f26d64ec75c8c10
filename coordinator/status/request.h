/* Reads the head of an HTTP/1.1 request (RFC 9112) strictly: only GET and HEAD without a body, and
 * nothing that two programs could read in different ways. No sockets here. */
#ifndef DML_COORDINATOR_STATUS_REQUEST_H
#define DML_COORDINATOR_STATUS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/status/authority.h"

#define REQUEST_BYTES_MAX 8192 /* request line and fields together */
#define REQUEST_TARGET_MAX 512

struct request {
    bool head;                       /* HEAD: the answer's body is left out */
    bool keep_alive;                 /* the connection serves another request */
    char host[AUTHORITY_MAX];        /* from authority_read(); "" if the request names no host */
    char target[REQUEST_TARGET_MAX]; /* path, a NUL, query; the two pointers below point into it */
    const char *path, *query;        /* as sent, not decoded; the query is "" if there is none */
};

/* The length of the head, its empty line included; 0 if the head is not complete yet. */
size_t request_end(const char *text, size_t length);

/* Reads a complete head. Answers 200, or the status of a refusal; then *why says in a few words
 * what is wrong, a constant. */
int request_read(const char *text, size_t length, struct request *request, const char **why);

/* The whole number that the query has for `name`; `missing` if it has none. False if the value is
 * not a whole number. */
bool request_number(const struct request *request, const char *name, int64_t missing,
                    int64_t *number);

/* Whether the query has values only for these names; `names` ends with NULL. */
bool request_has_only(const struct request *request, const char *const *names);

#endif
