#define _GNU_SOURCE
#include "coordinator/publish/publish.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/status/run_folder.h"
#include "model/model.h"

char *publish_live_folder(const char *state) {
    int64_t live = history_current(state);
    return live ? run_model_folder(state, live) : NULL;
}

/* The decision comes first, before the link. After a crash in between, the decision is not settled,
 * and the next command changes the link. The other way round, a crash would leave a live model for
 * which there is no decision in the record and on_publish was never run. */
int publish_decide(const struct publisher *publisher, enum decision decision, int64_t run,
                   const char *why) {
    assert(run > 0);
    int code =
        store_publish(publisher->store,
                      &(struct store_publication){.kind = decision_text(decision),
                                                  .run = run,
                                                  .previous_run = history_current(publisher->state),
                                                  .text = why});
    if (!code)
        failpoint(FAILPOINT_publish_decided);
    return code;
}

/* ---- on_publish ---- */

/* Takes ownership of `path`; free the answer. */
static char *absolute(char *path) {
    char *found = realpath(path, NULL);
    if (!found)
        return path;
    free(path);
    return found;
}

/* The variables that the command gets in addition to the environment of this process. */
enum { VARIABLES = 7 };
static const char *const variable_names[VARIABLES] = {
    "DML_JOB", "DML_RUN", "DML_KIND", "DML_MODEL_SHA256", "DML_STATE", "DML_MODEL", "DML_PREVIOUS"};

struct environment {
    char *own[VARIABLES];
    char **all; /* `own` and the variables of this process, NULL-terminated */
};

/* Takes ownership of `value`. */
static void set_variable(struct environment *environment, unsigned i, char *value) {
    assert(i < VARIABLES && !environment->own[i]);
    environment->own[i] = memory_format("%s=%s", variable_names[i], value);
    free(value);
}

static bool is_own(const char *variable) {
    size_t length = strcspn(variable, "=");
    for (unsigned i = 0; i < VARIABLES; i++)
        if (strlen(variable_names[i]) == length && !strncmp(variable, variable_names[i], length))
            return true;
    return false;
}

static void environment_init(struct environment *environment, const struct publisher *publisher,
                             const struct history_item *item, const char *sha256) {
    size_t count = names_count(environ), kept = 0;
    set_variable(environment, 0, memory_copy_string(publisher->job));
    set_variable(environment, 1, memory_format("%lld", (long long)item->run));
    set_variable(environment, 2, memory_copy_string(decision_text(item->decision)));
    set_variable(environment, 3, memory_copy_string(sha256));
    set_variable(environment, 4, absolute(memory_copy_string(publisher->state)));
    set_variable(environment, 5, absolute(run_model_folder(publisher->state, item->run)));
    set_variable(environment, 6,
                 item->previous_run
                     ? absolute(run_model_folder(publisher->state, item->previous_run))
                     : memory_copy_string(""));
    environment->all = memory_new(VARIABLES + count + 1, sizeof(char *));
    for (; kept < VARIABLES; kept++)
        environment->all[kept] = environment->own[kept];
    for (size_t i = 0; i < count; i++)
        if (!is_own(environ[i]))
            environment->all[kept++] = environ[i];
    assert(kept >= VARIABLES && kept <= VARIABLES + count);
    environment->all[kept] = NULL;
}

/* The command's standard output is our standard error: only the result is printed on our standard
 * output. In a session of its own it can be ended with all that it has started, and a question at
 * the terminal fails instead of waiting for ever. */
static int spawn(const char *command, char *const *environment, pid_t *child) {
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)command, NULL};
    const struct loop_child how = {.output = STDERR_FILENO, .errors = -1, .session = true};
    errno = loop_spawn("/bin/sh", arguments, environment, &how, child);
    return errno ? error_set_errno(ERROR_UNAVAILABLE, "cannot start on_publish") : 0;
}

/* Runs on_publish, if there is one. It runs after the link has changed, so that the command finds
 * the new model live; and before "settled", so that it is run again if we are killed while it runs.
 */
static int announce(const struct publisher *publisher, const struct history_item *item) {
    struct environment environment = {0};
    char *sha256;
    int status = 0;
    pid_t child;
    assert(decision_makes_live(item->decision));
    if (!publisher->on_publish)
        return 0;
    int code = store_model_of(publisher->store, item->run, NULL, &sha256);
    if (!code) {
        environment_init(&environment, publisher, item, sha256);
        code = spawn(publisher->on_publish, environment.all, &child);
    }
    if (!code)
        code = loop_wait(publisher->loop, STAGE_ANNOUNCING, child, &status);
    for (unsigned i = 0; i < VARIABLES; i++)
        free(environment.own[i]);
    free(environment.all);
    /* "" if the database that had the run is lost: there is no run to note the end with. */
    bool recorded = *sha256;
    free(sha256);
    if (code)
        return code;
    /* How a command ended: "status 3", "signal 9". */
    char *end = WIFSIGNALED(status) ? memory_format("signal %d", WTERMSIG(status))
                                    : memory_format("status %d", WEXITSTATUS(status));
    char *text = memory_format("on_publish ended with %s", end);
    if (recorded)
        code = store_event(publisher->store, item->run, "publish", text, NULL);
    log_info("%s", text);
    if (!code && status)
        code = error_set(ERROR_UNAVAILABLE,
                         "on_publish ended with %s: `%s`; the model of run %lld is live all the "
                         "same",
                         end, publisher->on_publish, (long long)item->run);
    free(text);
    free(end);
    failpoint(FAILPOINT_publish_announced);
    return code;
}

/* ---- settling ---- */

/* If the link is already as it should be, an earlier command may have been killed before it synced
 * the folder. It is synced in any case before on_publish tells others of the new model. */
static int switch_to(const struct publisher *publisher, int64_t run) {
    char name[24];
    char *models = path_join(publisher->state, "models");
    assert(run > 0);
    snprintf(name, sizeof name, "%lld", (long long)run);
    int code = history_current(publisher->state) == run ? folder_sync(models)
                                                        : model_set_current(models, name);
    free(models);
    return code;
}

/* "Settled" is committed last, also when on_publish has failed: to run a failing command again in
 * every night would not help, and the error is reported. Versions are pruned after that, never
 * before: until then `current` may still point to the version before. */
static int settle_decision(const struct publisher *publisher, const struct history_item *item) {
    int announced = 0, code = 0;
    assert(item->publication && item->run > 0);
    loop_poll(
        publisher->loop); /* a signal that has come ends the command here, before the change */
    if (decision_makes_live(item->decision)) {
        code = switch_to(publisher, item->run);
        if (!code)
            announced = announce(publisher, item);
    }
    if (!code)
        code = store_publication_settled(publisher->store, item->publication);
    if (!code)
        failpoint(FAILPOINT_publish_settled);
    return code ? code : announced;
}

/* `settled` is left as it is if nothing is pending. */
static int settle_pending(const struct publisher *publisher, struct history_item *settled) {
    struct history history;
    int code = history_read(publisher->store, &history);
    const struct history_item *pending = code ? NULL : history_pending(&history);
    if (pending) {
        *settled = *pending;
        settled->text = NULL; /* that goes with the history */
        code = settle_decision(publisher, pending);
    }
    history_release(&history);
    return code;
}

int publish_settle(const struct publisher *publisher) {
    struct history_item settled;
    return settle_pending(publisher, &settled);
}

int publish_settle_earlier(const struct publisher *publisher, struct history_item *settled) {
    struct history_item item = {0};
    int code = settle_pending(publisher, &item);
    if (code == ERROR_UNAVAILABLE) {
        log_error("%s", error_text());
        error_clear();
        code = 0;
    }
    if (!code && item.publication && decision_makes_live(item.decision))
        log_info("the model of run %lld is live: an earlier command had decided it, and was cut "
                 "off",
                 (long long)item.run);
    if (settled)
        *settled = item;
    return code;
}
