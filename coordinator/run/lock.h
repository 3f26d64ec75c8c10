/* At most one coordinator works in a state folder: it holds an flock on STATE/lock. The file
 * contains its pid, for messages. */
#ifndef DML_COORDINATOR_RUN_LOCK_H
#define DML_COORDINATOR_RUN_LOCK_H

/* Takes the lock. Closing the descriptor releases it, and so does the end of the process. Other
 * commands may hold the lock for a moment, so this tries for a third of a second.
 * ERROR_AGAIN: "already running, pid N". */
int state_lock(const char *state, int *descriptor);

/* The error of a process that works on without the lock: ERROR_AGAIN. It may write no model and can
 * record nothing. */
int state_lock_lost(void);

/* The pid in STATE/lock, 0 if there is none. It may be that of a process that has ended: only the
 * flock tells whether somebody holds the lock. */
int state_lock_pid(const char *state);

#endif
