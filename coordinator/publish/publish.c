#include "coordinator/publish/publish.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
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
#include "coordinator/run/interruption.h"
#include "model/model.h"

int64_t publish_live(const char *state) {
    char target[32] = "", *end;
    char *link = memory_format("%s/models/current", state);
    ssize_t length = readlink(link, target, sizeof target - 1);
    bool leads = length > 0 && access(link, F_OK) == 0;
    free(link);
    if (!leads)
        return 0;
    long long run = strtoll(target, &end, 10);
    return *end || run < 1 ? 0 : run;
}

char *publish_folder(const char *state, int64_t run) {
    return memory_format("%s/models/%lld", state, (long long)run);
}

char *publish_live_folder(const char *state) {
    int64_t live = publish_live(state);
    return live ? publish_folder(state, live) : NULL;
}

int publish_decide(const struct publisher *publisher, enum decision decision, int64_t run,
                   const char *why) {
    int code =
        store_publish(publisher->store,
                      &(struct store_publication){.kind = decision_text(decision),
                                                  .run = run,
                                                  .previous_run = publish_live(publisher->state),
                                                  .text = why});
    if (!code)
        failpoint(FAILPOINT_publish_decided);
    return code;
}

/* ---- on_publish ---- */

static char *absolute(const char *path) {
    char *found = realpath(path, NULL);
    return found ? found : memory_copy_string(path);
}

static void export_folder(const char *name, const char *path) {
    char *full = absolute(path);
    setenv(name, full, 1);
    free(full);
}

/* In the child. What the command prints goes to standard error: standard output is the result's. */
static _Noreturn void become(const struct publisher *publisher, const struct history_item *item,
                             const char *sha256) {
    char run[24];
    char *model = publish_folder(publisher->state, item->run);
    char *previous = publish_folder(publisher->state, item->previous_run);
    snprintf(run, sizeof run, "%lld", (long long)item->run);
    setenv("DML_JOB", publisher->job, 1);
    setenv("DML_RUN", run, 1);
    setenv("DML_KIND", decision_text(item->decision), 1);
    setenv("DML_MODEL_SHA256", sha256, 1);
    export_folder("DML_STATE", publisher->state);
    export_folder("DML_MODEL", model);
    if (item->previous_run)
        export_folder("DML_PREVIOUS", previous);
    else
        setenv("DML_PREVIOUS", "", 1);
    signal(SIGPIPE, SIG_DFL);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", publisher->on_publish, (char *)NULL);
    _exit(127);
}

static int wait_for(pid_t child, int *status) {
    pid_t ended;
    interruption_pass_to(child);
    do
        ended = waitpid(child, status, 0);
    while (ended < 0 && errno == EINTR);
    interruption_pass_to(0);
    return ended < 0 ? error_set_errno(ERROR_UNAVAILABLE, "cannot wait for on_publish") : 0;
}

/* How a command ended: "status 3", "signal 9". */
static char *ending(int status) {
    return WIFSIGNALED(status) ? memory_format("signal %d", WTERMSIG(status))
                               : memory_format("status %d", WEXITSTATUS(status));
}

static int announce(const struct publisher *publisher, const struct history_item *item) {
    const char *folder, *sha256;
    int status = 0;
    if (!publisher->on_publish)
        return 0;
    int code = store_model_of(publisher->store, item->run, &folder, &sha256);
    if (code)
        return code;
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "cannot start on_publish");
    if (child == 0)
        become(publisher, item, sha256);
    code = wait_for(child, &status);
    if (code)
        return code;
    char *end = ending(status);
    char *text = memory_format("on_publish ended with %s", end);
    if (*sha256) /* else the run was recorded in a database that is lost */
        code = store_event(publisher->store, item->run, "publish", text);
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

static int switch_to(const struct publisher *publisher, int64_t run) {
    char name[24];
    char *models = path_join(publisher->state, "models");
    snprintf(name, sizeof name, "%lld", (long long)run);
    int code = publish_live(publisher->state) == run ? folder_sync(models)
                                                     : model_set_current(models, name);
    free(models);
    return code;
}

static int settle(const struct publisher *publisher, const struct history_item *item) {
    int announced = 0, code = 0;
    if (item->decision != DECISION_REFUSED) {
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

int publish_settle(const struct publisher *publisher) {
    struct history history;
    int code = history_read(publisher->store, &history);
    if (!code && history.count && !history.items[history.count - 1].settled)
        code = settle(publisher, &history.items[history.count - 1]);
    history_release(&history);
    return code;
}

int publish_settle_earlier(const struct publisher *publisher) {
    int code = publish_settle(publisher);
    if (code != ERROR_UNAVAILABLE)
        return code;
    log_error("%s", error_text());
    error_clear();
    return 0;
}
