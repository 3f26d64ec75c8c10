#include "coordinator/command/ask.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/command/control_client.h"
#include "coordinator/command/record_reader.h"
#include "coordinator/run/lock.h"
#include "coordinator/status/report.h"

/* Questions of the control socket. */
#define STATUS "status\n"
#define RUNS "runs\n"

typedef int store_question(struct store *store, json_t **answer);

static int ask_live(const char *state, const char *question, json_t **answer) {
    char *text = NULL;
    int code = control_ask(state, question, &text);
    if (code)
        return code;
    *answer = json_loads(text, 0, NULL);
    free(text);
    if (!*answer)
        return error_set(ERROR_AGAIN, "%s: the answer of the coordinator, %s, broke off; ask again",
                         state, state_lock_holder(state).text);
    return 0;
}

/* Puts the folder before an error's text. */
static int name_folder(int code, const char *state) {
    char *text = memory_copy_string(error_text());
    error_clear();
    error_set(code, "%s: %s", state, text);
    free(text);
    return code;
}

/* Why the lock is held although no coordinator answers. */
static int say_silent(const char *state) {
    struct state_holder holder = state_lock_holder(state);
    error_clear();
    return error_set(ERROR_AGAIN,
                     holder.elsewhere
                         ? "%s: the coordinator is %s; ask there"
                         : "%s: the coordinator, %s, is starting or about to end; ask again",
                     state, holder.text);
}

static int ask_store(const char *state, store_question *question, json_t **answer) {
    struct record_reader reader;
    int code = record_reader_open(state, &reader);
    if (code == ERROR_AGAIN && !reader.copy && reader.lock < 0)
        code = say_silent(state);
    if (!code && (code = question(reader.store, answer)) == ERROR_UNAVAILABLE)
        code = name_folder(code, state); /* there is no run yet */
    if (!code) {
        const json_t *runs = json_object_get(*answer, "runs");
        size_t count = json_array_size(runs);
        record_reader_mark(&reader, count ? json_array_get(runs, count - 1) : *answer);
    }
    record_reader_close(&reader);
    return code;
}

/* From the live coordinator, or from the store if there is none. */
static int ask(const char *state, const char *live, store_question *question, json_t **answer) {
    int code = ask_live(state, live, answer);
    if (code != ERROR_UNAVAILABLE && code != ERROR_PERMISSION)
        return code;
    error_clear();
    return ask_store(state, question, answer);
}

int ask_status(const char *state, json_t **status) {
    return ask(state, STATUS, report_status, status);
}

int ask_runs(const char *state, json_t **runs) {
    return ask(state, RUNS, report_runs, runs);
}

int ask_live_status(const char *state, json_t **status) {
    return ask_live(state, STATUS, status);
}

int ask_live_runs(const char *state, json_t **runs) {
    return ask_live(state, RUNS, runs);
}
