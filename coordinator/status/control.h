/* The control socket, STATE/control.sock (mode 0600). A client sends one line and gets one answer;
 * then the connection is closed.
 *
 *     status\n  →  a JSON object and a newline
 *     runs\n    →  a JSON object and a newline: what `jobs` shows (coordinator/status/report.h)
 *     cancel\n  →  ok\n, and the run ends at a point from which it can go on
 *
 * So many clients are heard at once that the run keeps its descriptors; the others wait. */
#ifndef DML_COORDINATOR_STATUS_CONTROL_H
#define DML_COORDINATOR_STATUS_CONTROL_H

#include <jansson.h>

struct event_base;
struct control; /* opaque */

struct control_callbacks {
    json_t *(*status)(void *context); /* a new reference */
    json_t *(*runs)(void *context);   /* a new reference */
    void (*cancel)(void *context);
    void *context;
};

/* *control is NULL, after a warning, on a network file system that holds no sockets. */
int control_new(struct event_base *base, const char *state_folder,
                const struct control_callbacks *callbacks, struct control **control);
void control_free(struct control *control); /* removes the socket; harmless on NULL */

#endif
