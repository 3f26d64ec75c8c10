/* Failpoints: named places where a process can be made to die, stop, wait or fail.
 *
 *     DML_FAILPOINT=[ROLE[INDEX].]NAME:N:kill|stop|eio|enospc|delay[:MS]|hit[,…]
 *
 * makes the Nth visit of a place in a process do that: SIGKILL or SIGSTOP to itself, let the write
 * that follows fail with EIO or ENOSPC, or wait (100 ms). `hit` is for the few that the code asks.
 * Workers inherit it, but not those that are started anew in place of one that was lost.
 * With ROLE (shard0.NAME, or shard.NAME for any) other processes take no notice.
 *
 *     DML_FAILPOINT_LOG=FILE
 *
 * appends "ROLEINDEX.NAME" for the first visit of each place in a process.
 *
 *     DML_FAILPOINT_ONCE=FILE
 *
 * lets the Ith rule (from 0) act in one process only, the first that comes to it: it makes FILE.I.
 * Who is started in the place of a process that was killed is then spared.
 *
 * They are always compiled in; while neither variable is set one costs a branch. Visits may come
 * from any thread. */
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

/* Adds `count` rows to the table and reads the environment; once, before there are threads. `role`
 * is the process's ("shard"). ERROR_USAGE for what the environment asks and the table lacks. */
int failpoint_setup(const char *role, const struct failpoint_row *rows, unsigned count);

/* Which of its role the process is, as soon as that is known. */
void failpoint_identify(unsigned index);

/* The table, a line each: name, kind, text. */
void failpoint_list(FILE *out);

int failpoint_visit(unsigned number);

static inline void failpoint(unsigned number) {
    if (__builtin_expect(failpoint_armed, 0))
        (void)failpoint_visit(number);
}

/* 0, or the errno, set already, with which the write that follows is to fail. */
static inline int failpoint_write(unsigned number) {
    return __builtin_expect(failpoint_armed, 0) ? failpoint_visit(number) : 0;
}

/* Whether this visit is the one that was asked for. */
static inline bool failpoint_hit(unsigned number) {
    return __builtin_expect(failpoint_armed, 0) && failpoint_visit(number);
}

#endif
