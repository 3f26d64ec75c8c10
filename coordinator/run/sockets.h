/* The private folder in which workers of this machine have their sockets. It lies where paths are
 * short, not in the state folder, and has a name that the next coordinator of the same state
 * recognises: a coordinator that is killed leaves it. */
#ifndef DML_COORDINATOR_RUN_SOCKETS_H
#define DML_COORDINATOR_RUN_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a folder for the coordinator that works in `state`, below XDG_RUNTIME_DIR, TMPDIR or /tmp;
 * 0700. Free it. ERROR_CREATE. */
int sockets_make(const char *state, char **folder);

/* Removes the folders that earlier coordinators of this state made there, with all sockets but
 * those at the `count` addresses (NULL among them count for nothing): workers may still listen
 * there. The caller holds the state's lock. What cannot be removed stays. */
void sockets_sweep(const char *state, const char *const *addresses, size_t count);

/* Whether a worker listens at `address` that a coordinator of this state started. A copy of a state
 * folder names workers of the original: it is not their state. */
bool sockets_are_of(const char *state, const char *address);

#endif
