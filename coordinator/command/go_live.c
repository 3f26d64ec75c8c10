#include "coordinator/command/go_live.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/print.h"
#include "coordinator/job/job.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/run/session.h"
#include "coordinator/status/run_folder.h"
#include "model/model.h"

/* ---- the folder ---- */

/* Job name and on_publish of the newest run. */
static int take_settings(struct go_live *live) {
    struct store_run last;
    bool found;
    int code = store_run_last(live->store, &last, &found);
    if (!code && !found)
        code = error_set(ERROR_UNAVAILABLE, "%s: nothing was run there yet", live->state);
    if (code)
        return code;
    live->job = memory_copy_string(last.job);
    json_t *settings = json_loads(last.settings, 0, NULL);
    const char *command = json_string_value(json_object_get(settings, "on_publish"));
    live->on_publish = command ? memory_copy_string(command) : NULL;
    json_decref(settings);
    store_run_release(&last);
    return 0;
}

/* Job name and on_publish of a job file. */
static int take_job(struct go_live *live, const char *file) {
    const struct options *options = live->options;
    struct job *job;
    int code = job_read(file, options->settings, options->settings_count, options->state, &job);
    if (code)
        return code;
    live->job = memory_copy_string(job->name);
    live->on_publish = job->on_publish ? memory_copy_string(job->on_publish) : NULL;
    job_free(job);
    return 0;
}

int go_live_open(const struct options *options, int first, struct go_live *live) {
    struct options place = *options;
    struct stat status;
    *live = (struct go_live){.options = options, .lock = -1};
    assert(first <= options->operands_count);
    place.operands += first;
    place.operands_count -= first;
    int code = place_of(&place, &live->state);
    bool has_job_file = !code && place.operands_count && stat(place.operands[0], &status) == 0 &&
                        S_ISREG(status.st_mode);
    if (!code)
        code = state_lock_existing(live->state, STATE_WORKS, &live->lock);
    if (!code)
        code = loop_open(&live->loop);
    if (!code)
        code = store_open_existing(live->state, session_may_upgrade, &live->store);
    if (!code)
        code = has_job_file ? take_job(live, place.operands[0]) : take_settings(live);
    return code;
}

void go_live_close(struct go_live *live) {
    loop_close(&live->loop);
    store_close(live->store);
    state_unlock(live->lock);
    free(live->job);
    free(live->on_publish);
    free(live->state);
    *live = (struct go_live){.lock = -1};
}

static struct publisher publisher_of(struct go_live *live) {
    return (struct publisher){.loop = &live->loop,
                              .store = live->store,
                              .state = live->state,
                              .job = live->job,
                              .on_publish = live->on_publish};
}

/* ---- which run ---- */

int go_live_find(struct go_live *live, const char *text, const char *what, int64_t *run) {
    char *end;
    errno = 0;
    *run = strtoll(text, &end, 10);
    if (!errno && end != text && !*end && *run > 0)
        return 0;
    int code = store_run_tagged(live->store, text, run);
    if (!code && !*run)
        code = error_set(*text == '-' || !*text || !*end ? ERROR_USAGE : ERROR_UNAVAILABLE,
                         "%s: allowed: the number or the tag of a run, as `jobs` lists them", what);
    assert(code || *run > 0);
    return code;
}

int go_live_check(const struct go_live *live) {
    assert(live->to > 0);
    char *file = memory_format("%s/models/%lld/model.json", live->state, (long long)live->to);
    int code = 0;
    if (access(file, R_OK))
        code = error_set(ERROR_UNAVAILABLE,
                         "%s: there is no model of run %lld, or no longer; `keep_models` says how "
                         "many are kept; those in %s/models can be named",
                         live->state, (long long)live->to, live->state);
    free(file);
    return code;
}

/* ---- the change ---- */

/* For reading the model beside the loop. */
struct model_check {
    const char *folder, *sha256; /* as the store has it; "" if its record of the run was lost */
};

static int work_on_model(void *context) {
    const struct model_check *reading = context;
    struct model *model = NULL;
    int code = model_open(reading->folder, &model);
    if (!code && *reading->sha256 && strcmp(model->sha256, reading->sha256))
        code = error_set(ERROR_DATA, "%s has the hash %s, and %s when it was trained",
                         reading->folder, model->sha256, reading->sha256);
    model_close(model);
    return code;
}

int go_live_now(struct go_live *live, enum decision decision, const char *why) {
    assert(live->to > 0 && !live->completed && decision_makes_live(decision));
    /* What goes live is what was trained, and can be read. */
    char *folder = run_model_folder(live->state, live->to), *sha256;
    int code = store_model_of(live->store, live->to, NULL, &sha256);
    struct model_check reading = {.folder = folder, .sha256 = sha256};
    if (!code)
        code = loop_beside(&live->loop, STAGE_CHECKING, work_on_model, &reading);
    free(sha256);
    free(folder);
    if (code)
        return code;
    struct publisher publisher = publisher_of(live);
    code = publish_decide(&publisher, decision, live->to, why);
    return code ? code : publish_settle(&publisher);
}

int go_live_keep(struct go_live *live, int64_t run, const char *why) {
    struct publisher publisher = publisher_of(live);
    int code = publish_decide(&publisher, DECISION_KEPT, run, why);
    return code ? code : publish_settle(&publisher);
}

int go_live_settle_earlier(struct go_live *live, enum decision decision) {
    struct publisher publisher = publisher_of(live);
    struct history history;
    int code = history_read(live->store, &history);
    const struct history_item *pending = code ? NULL : history_pending(&history);
    live->completed =
        pending && pending->decision == decision && (!live->to || live->to == pending->run);
    if (live->completed) {
        live->from = pending->previous_run;
        live->to = pending->run;
        assert(live->to > 0);
        code = publish_settle(&publisher);
    } else if (!code) {
        code = publish_settle_earlier(&publisher, NULL);
    }
    history_release(&history);
    return code;
}

/* ---- the answer ---- */

/* `folder` is that of the live model, or NULL. */
static int print_json(const struct go_live *live, const char *folder) {
    char *sha256;
    int code = store_model_of(live->store, live->to, NULL, &sha256);
    json_t *answer = json_pack("{s:o, s:I, s:I, s:o, s:s}", "job", text_to_json(live->job), "run",
                               (json_int_t)live->to, "previous_run", (json_int_t)live->from, "live",
                               folder ? text_to_json(folder) : json_null(), "model_sha256", sha256);
    const json_t *threshold = json_object_get(live->derived, "threshold");
    if (live->derived)
        json_object_set(answer, "derived", json_object_get(live->derived, "derived"));
    if (live->derived)
        json_object_set_new(answer, "threshold",
                            threshold ? json_copy((json_t *)(uintptr_t)threshold) : json_null());
    if (!code)
        report_print_json(answer);
    json_decref(answer);
    free(sha256);
    return code;
}

int go_live_show(const struct go_live *live, const char *again, const char *what) {
    if (live->options->json) {
        char *folder = run_model_folder(live->state, live->to);
        int code = print_json(live, folder);
        free(folder);
        return code;
    }
    assert(live->to > 0);
    printf("the model of run %lld ", (long long)live->to);
    if (!live->completed && live->from == live->to)
        printf("was live already%s", live->on_publish ? "; on_publish was run again" : "");
    else if (live->from)
        printf("is live%s, in place of run %lld", again, (long long)live->from);
    else
        printf("is live%s", again);
    if (live->completed)
        printf(": the interrupted %s is complete", what);
    putchar('\n');
    return 0;
}

int go_live_show_kept(struct go_live *live) {
    live->from = history_current(live->state);
    char *folder = publish_live_folder(live->state);
    int code = print_json(live, folder);
    free(folder);
    return code;
}
