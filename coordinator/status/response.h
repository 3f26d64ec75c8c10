/* What the status server answers, and the head of it as HTTP/1.1 has it. No sockets here. */
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
    void *owned; /* for free(): the body, or NULL if that stays as it is */
};

#define RESPONSE_HEAD_MAX 1024

/* Writes status line and fields, their empty line included, and answers their length. */
size_t response_head(const struct http_answer *answer, bool keep_alive, time_t now,
                     char head[RESPONSE_HEAD_MAX]);

#endif
