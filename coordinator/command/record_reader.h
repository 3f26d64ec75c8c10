/* The record of a state folder, for commands that only read it. Who may write to the folder takes
 * its lock in the meantime; who may only read it works on a copy. */
#ifndef DML_COORDINATOR_COMMAND_RECORD_READER_H
#define DML_COORDINATOR_COMMAND_RECORD_READER_H

#include <jansson.h>
#include <stdbool.h>

#include "store/store.h"

struct record_reader {
    const char *state; /* the caller's */
    struct store *store;
    int lock;        /* −1: it is not held */
    bool copy;       /* the folder may only be read: the store is a copy */
    bool maybe_live; /* a coordinator may be at work there that this process cannot ask */
};

/* As state_lock() and store_open_existing(), or store_read(). Close it in any case. */
int record_reader_open(const char *state, struct record_reader *reader);
void record_reader_close(struct record_reader *reader);

/* `run` is that of report_status(), or the newest of report_runs(). If a coordinator may be at
 * work, it is not known that one was lost: an unfinished run's state becomes "unknown", and a
 * warning says why.
 */
void record_reader_mark(const struct record_reader *reader, json_t *run);

#endif
