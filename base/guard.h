/* Whether this process is still the one that may write.
 *
 * A lock can be lost without a word: a lock on a network file system is a lease, which a host that
 * was cut off or a process that was stopped does not renew. Then another process takes the lock and
 * the work over, and this one goes on as if nothing had happened. So whoever takes the lock writes
 * its own identity into the lock file, and everything that changes the state folder looks there
 * first: before a commit, before a file gets its final name, before anything is removed.
 *
 * What is left is the moment between the look and the change. A process that is stopped for so long
 * just there can do one change too many; only the file system could prevent that (an NFSv4 client
 * does: it fails I/O on a file whose lock was lost). */
#ifndef DML_BASE_GUARD_H
#define DML_BASE_GUARD_H

#include <stdbool.h>

#define GUARD_TEXT 320

/* From now on this process may write while the file at `path` has exactly this text, shorter than
 * GUARD_TEXT. Before other threads ask. */
void guard_set(const char *path, const char *text);
/* It may write without being asked. */
void guard_clear(void);

/* 0, or ERROR_AGAIN: another process took over. ERROR_IO if the file cannot be read. From any
 * thread. */
int guard_check(void);

/* The same for what cannot fail, without an error. */
bool guard_holds(void);

#endif
