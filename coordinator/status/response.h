/* An answer of the status server, and its head in HTTP/1.1. No sockets here. */
#ifndef DML_COORDINATOR_STATUS_RESPONSE_H
#define DML_COORDINATOR_STATUS_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

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
