/* The state folder: its lock, and the removal of files in it that nobody needs.
 *
 * At most one coordinator works in a state folder: it holds an flock on STATE/lock. The file says
 * who that is: "PID HOST NUMBER", for messages and for base/file.h. Commands that only read the
 * database hold it, too, while they do, and add "reads". */
#ifndef DML_COORDINATOR_RUN_STATE_FOLDER_H
#define DML_COORDINATOR_RUN_STATE_FOLDER_H

#include <stdbool.h>

#include "store/store.h"

enum state_use { STATE_WORKS, STATE_READS };

/* Takes the lock; from then on the guard is set (base/file.h). The end of the process releases it,
 * too. Other commands may hold the lock for a moment, so this tries for a third of a second; for
 * half a minute while the holder only reads, which a large database takes time for. One lock a
 * process. ERROR_AGAIN: "already running, pid N". */
int state_lock(const char *state, enum state_use use, int *descriptor);

/* Locks a state folder in which something must have been run before: no lock is put into any other
 * folder. ERROR_UNAVAILABLE. */
int state_lock_existing(const char *state, enum state_use use, int *descriptor);

/* Who has read under the lock works from now on: others wait no longer for its end. */
int state_lock_works(const char *state, int descriptor);

void state_unlock(int descriptor); /* harmless on −1 */

/* Whether this process may take the lock, and write what the folder has. */
bool state_may_write(const char *state);

/* Whether somebody may hold the lock, for a process that may not take it. A lock that it cannot
 * even look at counts as held while there is a control socket, which a coordinator removes at its
 * end but leaves when it is killed. */
bool state_maybe_locked(const char *state);

/* The error of a process that works on without the lock: ERROR_AGAIN. It may write no model and can
 * record nothing. */
int state_lock_lost(void);

/* Who is in STATE/lock: "pid 77", or "pid 77 on host b" if that is not this host. It may be a
 * process that has ended: only the flock tells whether somebody holds the lock. */
struct state_holder {
    int pid; /* 0: nobody */
    bool elsewhere, reads;
    char text[300];
};
struct state_holder state_lock_holder(const char *state);

/* The number that the next run gets. It is larger than that of every model in STATE/models, too: if
 * the database was lost, a run with the number of an existing model would replace that model. */
int state_run_next(const char *state, struct store *store, int64_t *number);

/* Removing files of the state folder that are no longer needed. */

/* Removes files and folders named NAME.tmp.NUMBER from STATE/packs and STATE/models, and those of
 * the key from STATE: what a process that was killed left half-written. The caller holds the lock
 * of the state, so nobody is writing them. What cannot be removed stays, here and below, and so
 * does everything if this process may not write any more (base/file.h). An error if one of the
 * folders cannot be listed. */
int stale_files_remove(const char *state);

/* Removes a folder and all in it, if it is there. What cannot be removed stays. */
void folder_remove(const char *folder);

/* Removes a file, or a folder that others may be opening: it is renamed first, so that they find
 * all of it or nothing. Returns whether it is gone; if not, a warning says so, and errno says why
 * (0: the folder is another coordinator's by now). */
bool folder_retire(const char *folder);

#endif
