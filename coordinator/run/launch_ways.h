/* The two ways in which the launcher (launch.h) starts a process: on this machine, with a socket in
 * a private folder; or by a command that runs it on a host. For the launcher alone. */
#ifndef DML_COORDINATOR_RUN_LAUNCH_WAYS_H
#define DML_COORDINATOR_RUN_LAUNCH_WAYS_H

#include <stdbool.h>

#include "coordinator/run/launch.h"

/* "dml-shard" or "dml-replica". */
const char *launch_program(enum role role);

/* That program's path: beside this one if it is there, else the name, which the PATH knows. Free
 * it. */
char *launch_program_here(enum role role);

struct loop_child; /* loop.h */

/* Starts `arguments`, which the PATH is searched for. Returns 0 or a value of errno. */
int launch_spawn(const struct launch *launch, char **arguments, const struct loop_child *how,
                 pid_t *pid);

/* ---- here ---- */

/* Gives the worker an address that no process had. Makes the folder of sockets when it is needed.
 * ERROR_CREATE. */
int launch_local_place(struct launch *launch, struct launched *worker);

/* Starts it at its address; its output goes to the descriptor. Errors as of launch_start(). */
int launch_local_start(const struct launch *launch, struct launched *worker, int output);

/* Removes the sockets that earlier coordinators left, except those of workers that may still live.
 */
void launch_local_sweep(const struct launch *launch);

/* Removes the sockets of all workers, and their folder. */
void launch_local_clear(const struct launch *launch);

/* ---- on a host ---- */

/* Starts the command for the worker on worker->host. */
int launch_remote_start(const struct launch *launch, struct launched *worker, int output);

/* Whether the worker has said that it listens, and where: sets its address then. Else drops what it
 * has seen, so that there is room for more. */
bool launch_remote_listens(struct launched *worker);

/* Its host greets with so much text that the worker's line is not awaited any more. */
bool launch_remote_is_endless(const struct launched *worker);

/* Why the command ended, or does not go on: how it ended, and the last line that it wrote to the
 * log. Free it. */
char *launch_remote_why(const struct launch *launch, const struct launched *worker);

/* The host has no program at the path of this one's: whether it is worth looking for it on the
 * PATH there. Only once. */
bool launch_remote_other_path(struct launched *worker);

#endif
