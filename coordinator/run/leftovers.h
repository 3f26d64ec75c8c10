/* Removing files of the state folder that are no longer needed. */
#ifndef DML_COORDINATOR_RUN_LEFTOVERS_H
#define DML_COORDINATOR_RUN_LEFTOVERS_H

/* Removes files and folders named NAME.tmp.NUMBER from STATE/packs and STATE/models, and those of
 * the key from STATE: what a process that was killed left half-written. The caller holds the lock
 * of the state, so nobody is writing them. What cannot be removed stays, here and below, and so
 * does everything if this process may not write any more (base/guard.h). */
void leftovers_remove(const char *state);

/* Removes a folder and all in it, if it is there. What cannot be removed stays. */
void folder_remove(const char *folder);

/* The same for a folder that others may be opening: it is renamed first, so that they find all of
 * it or nothing. */
void folder_retire(const char *folder);

#endif
