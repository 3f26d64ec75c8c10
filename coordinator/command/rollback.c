/* `rollback`: makes an earlier version live again. */
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
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/job/job.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/state_folder.h"
#include "model/model.h"

struct rollback {
    const struct options *options;
    struct loop loop;
    char *state;
    int lock;
    struct store *store;
    char *job, *on_publish;
    int64_t from, to;
    bool completed; /* what an earlier rollback began was completed */
};

/* Job name and on_publish of the newest run. */
static int take_settings(struct rollback *r) {
    struct store_run last;
    bool found;
    int code = store_run_last(r->store, &last, &found);
    if (!code && !found)
        code = error_set(ERROR_UNAVAILABLE, "%s: nothing was run there yet", r->state);
    if (code)
        return code;
    r->job = memory_copy_string(last.job);
    json_t *settings = json_loads(last.settings, 0, NULL);
    const char *command = json_string_value(json_object_get(settings, "on_publish"));
    r->on_publish = command ? memory_copy_string(command) : NULL;
    json_decref(settings);
    return 0;
}

/* Job name and on_publish of a job file. */
static int take_job(struct rollback *r, const char *file) {
    const struct options *options = r->options;
    struct job *job;
    int code = job_read(file, options->settings, options->settings_count, options->state, &job);
    if (code)
        return code;
    r->job = memory_copy_string(job->name);
    r->on_publish = job->on_publish ? memory_copy_string(job->on_publish) : NULL;
    job_free(job);
    return 0;
}

static struct publisher publisher_of(struct rollback *r) {
    return (struct publisher){.loop = &r->loop,
                              .store = r->store,
                              .state = r->state,
                              .job = r->job,
                              .on_publish = r->on_publish};
}

/* ---- which version ---- */

static int parse_run(const char *text, int64_t *run) {
    char *end;
    errno = 0;
    *run = strtoll(text, &end, 10);
    if (errno || end == text || *end || *run < 1)
        return error_set(ERROR_USAGE, "--to %s: allowed: the number of a run, as `jobs` lists them",
                         text);
    return 0;
}

static int find_before(struct rollback *r) {
    struct history history;
    int code = history_read(r->store, &history);
    if (!code)
        r->to = history_before(&history, r->from);
    if (!code && !r->to)
        code = r->from ? error_set(ERROR_UNAVAILABLE,
                                   "%s: no other version was live before that of run %lld, which "
                                   "stays live; --to RUN makes another one live",
                                   r->state, (long long)r->from)
                       : error_set(ERROR_UNAVAILABLE, "%s: no model is live there", r->state);
    history_release(&history);
    return code;
}

static int choose(struct rollback *r) {
    r->from = history_current(r->state);
    int code = r->to ? 0 : find_before(r);
    if (code)
        return code;
    char *file = memory_format("%s/models/%lld/model.json", r->state, (long long)r->to);
    if (access(file, R_OK))
        code = error_set(ERROR_UNAVAILABLE,
                         "%s: there is no model of run %lld, or no longer; `keep_models` says how "
                         "many are kept; those in %s/models can be named with --to",
                         r->state, (long long)r->to, r->state);
    free(file);
    return code;
}

/* ---- the command ---- */

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

/* What goes live is what was trained, and can be read. */
static int read_back(struct rollback *r) {
    const char *recorded, *hash;
    int code = store_model_of(r->store, r->to, &recorded, &hash);
    if (code)
        return code;
    char *folder = publish_folder(r->state, r->to), *sha256 = memory_copy_string(hash);
    struct model_check reading = {.folder = folder, .sha256 = sha256};
    code = loop_beside(&r->loop, STAGE_CHECKING, work_on_model, &reading);
    free(sha256);
    free(folder);
    return code;
}

static int go_back(struct rollback *r) {
    assert(r->to > 0 && !r->completed);
    int code = read_back(r);
    if (code)
        return code;
    char *why = memory_format("rolled back from run %lld", (long long)r->from);
    struct publisher publisher = publisher_of(r);
    code = publish_decide(&publisher, DECISION_ROLLED_BACK, r->to, why);
    free(why);
    return code ? code : publish_settle(&publisher);
}

static int show(const struct rollback *r) {
    const char *folder, *sha256;
    int code = store_model_of(r->store, r->to, &folder, &sha256);
    if (code)
        return code;
    if (r->options->json) {
        char *live = publish_folder(r->state, r->to);
        json_t *answer = json_pack("{s:o, s:I, s:I, s:o, s:s}", "job", text_to_json(r->job), "run",
                                   (json_int_t)r->to, "previous_run", (json_int_t)r->from, "live",
                                   text_to_json(live), "model_sha256", sha256);
        report_print_json(answer);
        json_decref(answer);
        free(live);
    } else if (r->completed) {
        printf("the model of run %lld is live again, in place of run %lld: the rollback that was "
               "cut off is complete\n",
               (long long)r->to, (long long)r->from);
    } else if (r->from == r->to) {
        printf("the model of run %lld was live already%s\n", (long long)r->to,
               r->on_publish ? "; on_publish was run again" : "");
    } else {
        printf("the model of run %lld is live again, in place of run %lld\n", (long long)r->to,
               (long long)r->from);
    }
    return 0;
}

/* A rollback that was cut off is completed when it is repeated, and does not go back once more. If
 * on_publish fails then, so does this command, as that one would have. */
static int complete_earlier(struct rollback *r) {
    struct publisher publisher = publisher_of(r);
    struct history history;
    int code = history_read(r->store, &history);
    const struct history_item *pending = code ? NULL : history_pending(&history);
    r->completed =
        pending && pending->decision == DECISION_ROLLED_BACK && (!r->to || r->to == pending->run);
    if (r->completed) {
        r->from = pending->previous_run;
        r->to = pending->run;
        code = publish_settle(&publisher);
    } else if (!code) {
        code = publish_settle_earlier(&publisher, NULL);
    }
    history_release(&history);
    return code;
}

static int begin(struct rollback *r) {
    const struct options *options = r->options;
    struct stat status;
    bool has_job_file = options->operands_count && stat(options->operands[0], &status) == 0 &&
                        S_ISREG(status.st_mode);
    int code = options->to ? parse_run(options->to, &r->to) : 0;
    if (!code)
        code = loop_open(&r->loop);
    if (!code)
        code = state_lock(r->state, &r->lock);
    if (!code)
        code = store_open_existing(r->state, &r->store);
    if (!code)
        code = has_job_file ? take_job(r, options->operands[0]) : take_settings(r);
    return code;
}

static int work(struct rollback *r) {
    int code = begin(r);
    int announced = code ? 0 : complete_earlier(r);
    if (!code && !announced && !r->completed) {
        code = choose(r);
        announced = code ? 0 : go_back(r);
    }
    if (code)
        return code;
    if (announced && announced != ERROR_UNAVAILABLE)
        return announced;
    code = show(r);
    return announced ? announced : code;
}

int command_rollback(const struct options *options) {
    struct rollback r = {.options = options, .lock = -1};
    int code = place_of(options, &r.state);
    if (code)
        return code;
    code = work(&r);
    loop_close(&r.loop);
    store_close(r.store);
    state_unlock(r.lock);
    free(r.job);
    free(r.on_publish);
    free(r.state);
    return code;
}
