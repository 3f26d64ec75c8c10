/* Failpoints: named places where a process can be made to die, stop, wait or fail.
 *
 *     DML_FAILPOINT=[ROLE[INDEX].]NAME[@NAME]:N:kill|stop|eio|enospc|delay[:MS]|hit[,…]
 *
 * acts at the Nth visit of a place in a process (NAME@OTHER: not counting those before the first of
 * OTHER): it sends itself SIGKILL or SIGSTOP, makes the next
 * write fail with EIO or ENOSPC, or waits (100 ms). `hit` is for failpoints of kind SWITCH.
 * Workers inherit the variable. A worker that replaces a lost one inherits it only with
 * DML_FAILPOINT_ONCE: else it would die of the same rule.
 * With ROLE (shard0.NAME, or shard.NAME for any shard) other processes ignore the rule.
 *
 *     DML_FAILPOINT_LOG=FILE
 *
 * appends "ROLEINDEX.NAME" for the first visit of each place in a process.
 *
 *     DML_FAILPOINT_ONCE=FILE
 *
 * lets the Ith rule (from 0) act in one process only: the first that reaches it, which makes the
 * file FILE.I. A process that replaces a killed one is then not killed too.
 *
 * Failpoints are always compiled in. While neither of the first two variables is set, a failpoint
 * costs one branch. Any thread may visit one. */
#ifndef DML_BASE_FAILPOINT_H
#define DML_BASE_FAILPOINT_H

#include <stdbool.h>
#include <stdio.h>

enum failpoint_kind {
    FAILPOINT_PLACE,  /* visited with failpoint() */
    FAILPOINT_WRITE,  /* visited with failpoint_write() */
    FAILPOINT_SWITCH, /* visited with failpoint_hit() */
};

struct failpoint_row {
    const char *name;
    enum failpoint_kind kind;
    const char *text;
};

enum {
#define FAILPOINT(name, kind, text) FAILPOINT_##name,
#include "base/failpoint.def"
    FAILPOINTS, /* further rows have numbers from here on */
    FAILPOINTS_MAX = 256,
};

extern bool failpoint_armed;

/* Adds `count` rows to the table and reads the environment. Call it once, before threads start.
 * `role` is the process's role ("shard"). ERROR_USAGE if the environment names an unknown failpoint
 * or is malformed. */
int failpoint_setup(const char *role, const struct failpoint_row *rows, unsigned count);

/* Sets the index of this process within its role, as soon as it is known. */
void failpoint_identify(unsigned index);

/* The table, a line each: name, kind, text. */
void failpoint_list(FILE *out);

int failpoint_visit(unsigned number);

static inline void failpoint(unsigned number) {
    if (__builtin_expect(failpoint_armed, 0))
        (void)failpoint_visit(number);
}

/* 0, or the errno (already set) with which the following write must fail. */
static inline int failpoint_write(unsigned number) {
    return __builtin_expect(failpoint_armed, 0) ? failpoint_visit(number) : 0;
}

/* Whether this visit is the one that was asked for. */
static inline bool failpoint_hit(unsigned number) {
    return __builtin_expect(failpoint_armed, 0) && failpoint_visit(number);
}

#endif
