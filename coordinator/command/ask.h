/* The state folders that a command line means, and questions about one of them: its live
 * coordinator is asked, or its store is read if there is none. */
#ifndef DML_COORDINATOR_COMMAND_ASK_H
#define DML_COORDINATOR_COMMAND_ASK_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/job/options.h"
#include "store/store.h"

/* The folders, NULL-terminated. Each operand is a state folder, or a job file whose state folder is
 * taken. Without operands it is the folder of --state, else every *.state folder in the current
 * folder. Free with names_free(). ERROR_USAGE if there is none. */
int places_of(const struct options *options, char ***states);

/* Finds the state folder of a command that takes exactly one; free it. ERROR_USAGE if there are
 * several. */
int place_of(const struct options *options, char **state);

/* How long the coordinator may take for its answer. */
#define CONTROL_ANSWER_MS 2000

/* Sends one line over STATE/control.sock, and reads the answer until the connection ends; free it.
 * ERROR_UNAVAILABLE if nobody listens, ERROR_AGAIN, with the pid, if the coordinator does not
 * answer. */
int control_ask(const char *state, const char *question, char **answer);

/* The answers are those of report_status() and report_runs(). */
enum question { QUESTION_STATUS, QUESTION_RUNS };

/* Asks the live coordinator, or the store if there is none. ERROR_AGAIN if a coordinator holds the
 * folder and does not answer. */
int ask(const char *state, enum question question, json_t **answer);

/* What a folder answered, or why it did not. */
struct asked {
    json_t *answer; /* owned; NULL: there is none */
    int code;
    char *why; /* the text of the error; owned; NULL without one */
};

/* Calls ask_one(context, i) for each i below `count`, from several threads, so that coordinators
 * that are stopped take the time of one. It may leave an error of its thread, which nobody sees. */
void ask_each(uint32_t count, void (*ask_one)(void *context, uint32_t i), void *context);

/* As ask() of several folders, in their order: live coordinators by ask_each(). Release with
 * asked_free(). */
struct asked *ask_folders(char *const *states, enum question question);
void asked_free(struct asked *asked, char *const *states);

/* Asks a live coordinator as ask() does, and never reads the state folder in its place:
 * ERROR_UNAVAILABLE if there is none. */
int ask_live(const char *state, enum question question, json_t **answer);

/* Puts the folder before the text of the error, and returns its code. */
int ask_name_folder(int code, const char *state);

/* The record of a state folder, for commands that only read it. Who may write to the folder takes
 * its lock in the meantime; who may only read it works on a copy. */
struct record_reader {
    const char *state; /* the caller's */
    struct store *store;
    int lock;        /* −1: it is not held */
    bool copy;       /* the folder may only be read: the store is a copy */
    bool maybe_live; /* a coordinator may be at work there that this process cannot ask */
};

/* As state_lock() and store_open_to_read(), or store_read(). Close it in any case. */
int record_reader_open(const char *state, struct record_reader *reader);
void record_reader_close(struct record_reader *reader);

/* What report_status() or report_runs() answered. If a coordinator may be at work, it is not known
 * that one was lost: the state of an unfinished run, and what an unfinished command came to, become
 * "unknown", and a warning says why. */
void record_reader_mark(const struct record_reader *reader, json_t *answer);

#endif
