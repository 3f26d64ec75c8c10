/* The head of an HTTP/1.1 request (RFC 9112), read strictly: GET and HEAD without a body, and
 * nothing that two readers could take for two things. No sockets here. */
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
    char host[AUTHORITY_MAX];        /* whom it is for: see authority_read(); "" if not said */
    char target[REQUEST_TARGET_MAX]; /* path, a NUL, query: what the two below point to */
    const char *path, *query;        /* as sent, not decoded; the query "" if there is none */
};

/* Where the head ends, its empty line included; 0 if it has not ended yet. */
size_t request_end(const char *text, size_t length);

/* Reads a head that has ended. Answers 200, or the status to refuse it with; *why then says what is
 * wrong with it, in a few words, a constant. */
int request_read(const char *text, size_t length, struct request *request, const char **why);

/* The whole number that the query gives for `name`, or `missing`. False if it is not one. */
bool request_number(const struct request *request, const char *name, int64_t missing,
                    int64_t *number);

/* Whether the query gives values for those names alone; `names` ends with NULL. */
bool request_has_only(const struct request *request, const char *const *names);

#endif
