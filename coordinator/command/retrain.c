/* `retrain`, for cron: finishes what is unfinished, trains on what is new, and publishes what the
 * gate lets through. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/run/dataset.h"
#include "coordinator/publish/judge.h"
#include "coordinator/publish/notice.h"
#include "coordinator/run/interruption.h"
#include "coordinator/run/progress.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/training.h"
#include "coordinator/run/sets.h"
#include "coordinator/publish/versions.h"
#include "numeric/setup.h"

/* The newest run of this job. Texts are owned. */
struct last_run {
    int64_t run; /* 0: there is none */
    char *data, *result;
    bool concluded; /* it has a model */
};

struct retrain {
    struct training training;
    struct publisher publisher;
    char *identity;
    struct set *set; /* of the data as it is now; NULL while a training has it */
    char *data;      /* its fingerprint */
    struct holdout *holdout;
    struct dataset_sources sources;
    double pack_seconds;
    struct last_run last;
    bool idle;      /* there was nothing to do */
    json_t *result; /* of what was done last */
    char *outcome;  /* the same in a line */
    int code;       /* ERROR_DATA if the last model was refused, else what on_publish came to */
};

/* ---- what was done before ---- */

static void forget_last(struct last_run *last) {
    free(last->data);
    free(last->result);
    *last = (struct last_run){0};
}

static int take_run(void *context, const struct store_run *run) {
    struct retrain *r = context;
    if (strcmp(run->identity, r->identity))
        return 0;
    forget_last(&r->last);
    r->last = (struct last_run){.run = run->run,
                                .data = memory_copy_string(run->data),
                                .result = run->result ? memory_copy_string(run->result) : NULL,
                                .concluded = run->reason && strcmp(run->reason, "cancelled")};
    return 0;
}

struct cold_start {
    const struct retrain *retrain;
    int64_t evaluations; /* 0: there was none */
};

static int take_cold_start(void *context, const struct store_run *run) {
    struct cold_start *cold = context;
    if (run->reason && strcmp(run->reason, "cancelled") && !*run->start_model &&
        strcmp(run->identity, cold->retrain->identity) == 0)
        cold->evaluations = (int64_t)run->evaluations;
    return 0;
}

/* ---- publishing ---- */

static void finish_with(struct retrain *r, int code, char *outcome) {
    free(r->outcome);
    r->outcome = outcome;
    r->code = code;
}

static void add_figures(json_t *result, const struct judgement *judgement) {
    if (judgement->new)
        json_object_set(result, "holdout", judgement->new);
    if (judgement->live)
        json_object_set(result, "holdout_live", judgement->live);
    json_object_set(result, "gate", judgement->gate);
    json_object_set(result, "published", json_boolean(judgement->holds));
}

/* What on_publish came to does not undo the publication, nor what else is to be done. */
static void note_published(struct retrain *r, const char *why, int announced) {
    if (announced) {
        finish_with(r, announced, memory_copy_string(error_text()));
        error_clear();
    } else {
        finish_with(r, 0, memory_format("published run %lld: %s", (long long)r->last.run, why));
        log_info("%s", r->outcome);
    }
}

static void note_refused(struct retrain *r, const char *why) {
    finish_with(r, ERROR_DATA,
                memory_format("run %lld is refused: %s; the live model stays, and %s/models/%lld "
                              "can be looked at",
                              (long long)r->last.run, why, r->publisher.state,
                              (long long)r->last.run));
}

static int publish(struct retrain *r, const struct judgement *judgement) {
    enum decision decision = judgement->holds ? DECISION_PUBLISHED : DECISION_REFUSED;
    int code = publish_decide(&r->publisher, decision, r->last.run, judgement->why);
    if (!code)
        code = publish_settle(&r->publisher);
    if (code && code != ERROR_UNAVAILABLE)
        return code;
    if (judgement->holds)
        note_published(r, judgement->why, code);
    else
        note_refused(r, judgement->why);
    return 0;
}

/* Whether the model of the last run goes live. */
static int decide(struct retrain *r) {
    const char *state = r->training.job->state;
    int64_t live = publish_live(state);
    char *new_folder = publish_folder(state, r->last.run);
    char *live_folder = live ? publish_folder(state, live) : NULL;
    struct judgement judgement;
    progress_stage("judging the model");
    int code = judge(r->training.job, r->holdout, new_folder, live_folder, &judgement);
    progress_close();
    if (!code)
        add_figures(r->result, &judgement);
    if (!code)
        code = publish(r, &judgement);
    judgement_release(&judgement);
    free(new_folder);
    free(live_folder);
    return code;
}

/* ---- training ---- */

static int add_warm_start(struct retrain *r, const struct training *training) {
    struct cold_start cold = {.retrain = r};
    double evaluations = (double)training->coordinator->evaluations;
    if (!*training->start_model)
        return 0;
    int code = store_runs(training->store, take_cold_start, &cold);
    json_t *warm = json_pack("{s:I}", "evaluations", (json_int_t)evaluations);
    if (cold.evaluations) {
        json_object_set_new(warm, "cold_evaluations", json_integer(cold.evaluations));
        json_object_set_new(warm, "ratio", json_real(evaluations / (double)cold.evaluations));
        log_info("%.0f evaluations; a cold start took %lld", evaluations,
                 (long long)cold.evaluations);
    } else {
        log_info("%.0f evaluations from the live model", evaluations);
    }
    json_object_set_new(training->result, "warm_start", warm);
    return code;
}

/* Holdout and sources stay ours, also while the training uses them. */
static int train(struct retrain *r, struct set *set, const char *start_from, bool fresh) {
    struct training *training = &r->training;
    struct options options = *training->options;
    const struct options *given = training->options;
    options.fresh = fresh;
    training->options = &options;
    training->start_from = start_from;
    training->started_ns = clock_monotonic_ns();
    training->started_ms = clock_wall_ms();
    training->seconds.pack = r->pack_seconds;
    training->set = set;
    training->holdout = r->holdout;
    training->sources = r->sources;
    int code = training_run(training);
    if (!code)
        code = training_conclude(training);
    if (!code)
        code = add_warm_start(r, training);
    if (!code) {
        json_decref(r->result);
        r->result = json_incref(training->result);
    }
    training->holdout = NULL;
    training->sources = (struct dataset_sources){0};
    training_release(training, code);
    training->options = given;
    return code;
}

static struct set *take_set(struct retrain *r) {
    struct set *set = r->set;
    r->set = NULL;
    return set;
}

/* A set that a training had is opened again for the next. */
static int open_set(struct retrain *r, const char *fingerprint, struct set **set) {
    *set = sets_find(r->training.job->state, fingerprint);
    return *set ? 0
                : error_set(ERROR_IO, "%s/packs: the set of merged packs has gone; start again",
                            r->training.job->state);
}

static int train_anew(struct retrain *r) {
    int64_t live = publish_live(r->training.job->state);
    char *start =
        live && r->training.job->warm_start ? publish_folder(r->training.job->state, live) : NULL;
    int code = r->set ? 0 : open_set(r, r->data, &r->set);
    if (!code)
        code = train(r, take_set(r), start, true);
    free(start);
    return code;
}

/* The last run, on its own data, which may not be what it is now. */
static int train_on(struct retrain *r) {
    struct set *set = NULL;
    int code = 0;
    if (r->set && strcmp(r->last.data, r->data) == 0)
        set = take_set(r);
    else
        code = open_set(r, r->last.data, &set);
    if (!code)
        log_info("run %lld is unfinished: it comes first", (long long)r->last.run);
    return code ? code : train(r, set, NULL, false);
}

/* ---- what is to be done ---- */

enum task { TASK_NONE, TASK_DECIDE, TASK_GO_ON, TASK_TRAIN };

static bool is_there(const struct retrain *r, const char *fingerprint) {
    struct set *set = sets_find(r->training.job->state, fingerprint);
    set_close(set);
    return set != NULL;
}

static int next_task(struct retrain *r, enum task *task) {
    struct history history;
    forget_last(&r->last);
    int code = store_runs(r->training.store, take_run, r);
    if (!code)
        code = history_read(r->training.store, &history);
    if (code)
        return code;
    const struct last_run *last = &r->last;
    bool decided =
        history_of(&history, last->run) || publish_live(r->training.job->state) == last->run;
    if (!last->run)
        *task = TASK_TRAIN;
    else if (!last->concluded)
        *task = is_there(r, last->data) ? TASK_GO_ON : TASK_TRAIN;
    else if (!decided)
        *task = TASK_DECIDE;
    else
        *task = strcmp(last->data, r->data) ? TASK_TRAIN : TASK_NONE;
    history_release(&history);
    return 0;
}

static int do_task(struct retrain *r, enum task task) {
    if (r->code) /* of the task before, which another follows */
        log_error("%s", r->outcome);
    r->code = 0;
    int code = task == TASK_GO_ON ? train_on(r) : task == TASK_TRAIN ? train_anew(r) : 0;
    if (!code && task == TASK_DECIDE) {
        log_info("run %lld has ended, and it is still open whether it goes live",
                 (long long)r->last.run);
        json_decref(r->result);
        r->result = json_loads(r->last.result, 0, NULL);
    }
    if (!code && task != TASK_DECIDE) {
        forget_last(&r->last);
        code = store_runs(r->training.store, take_run, r);
    }
    return code ? code : decide(r);
}

static int report_no_new_data(struct retrain *r) {
    struct history history;
    int code = history_read(r->training.store, &history);
    if (code)
        return code;
    const struct history_item *item = history_of(&history, r->last.run);
    bool refused = item && item->decision == DECISION_REFUSED;
    r->idle = true;
    finish_with(r, 0,
                memory_format("no new data since run %lld%s", (long long)r->last.run,
                              refused ? ", which was refused" : ""));
    r->result = json_pack("{s:s, s:I, s:s, s:b}", "job", r->training.job->name, "run",
                          (json_int_t)r->last.run, "reason", "no new data", "published", false);
    history_release(&history);
    return 0;
}

static int do_all(struct retrain *r) {
    enum task task = TASK_NONE;
    int code = next_task(r, &task);
    if (r->training.options->fresh)
        task = TASK_TRAIN;
    if (!code)
        sets_prune(r->training.job->state, r->data, r->last.data);
    if (!code && task == TASK_NONE)
        return report_no_new_data(r);
    while (!code && task != TASK_NONE) {
        code = do_task(r, task);
        if (!code)
            code = next_task(r, &task);
    }
    return code;
}

/* ---- the command ---- */

static int open_data(struct retrain *r) {
    progress_stage("looking for new data");
    int code = dataset_open(r->training.job, &r->set, &r->holdout, &r->sources, &r->pack_seconds);
    if (!code)
        r->data = memory_copy_string(set_info(r->set)->fingerprint);
    return code;
}

static int prune(struct retrain *r) {
    const struct job *job = r->training.job;
    struct store *store = r->training.store;
    int code = versions_prune(store, job->state, job->keep_models);
    if (!code)
        code = versions_prune_checkpoints(store, job->state, r->last.run);
    sets_prune(job->state, r->data, NULL);
    packs_prune(job->state, &r->sources);
    return code;
}

static int work(struct retrain *r) {
    const struct job *job = r->training.job;
    int code = training_open(&r->training);
    r->publisher = (struct publisher){.store = r->training.store,
                                      .state = job->state,
                                      .job = job->name,
                                      .on_publish = job->on_publish};
    if (!code)
        code = publish_settle_earlier(&r->publisher);
    if (!code)
        code = open_data(r);
    if (!code)
        code = do_all(r);
    return code ? code : prune(r);
}

static void show(struct retrain *r) {
    const struct options *options = r->training.options;
    int64_t live = publish_live(r->training.job->state);
    char *folder = live ? publish_folder(r->training.job->state, live) : NULL;
    json_object_set_new(r->result, "live", folder ? json_string(folder) : json_null());
    if (options->json || !r->idle)
        result_show(r->result, options->json, options->quiet);
    else if (!options->quiet)
        printf("%s: %s\n", r->training.job->name, r->outcome);
    free(folder);
}

/* What the command comes to, once what went wrong on the way was told. */
static int conclude(struct retrain *r, int code) {
    if (!code && r->result)
        show(r);
    if (!code && r->code)
        code = error_set(r->code, "%s", r->outcome);
    if (r->training.options->cron)
        notice_send(r->training.job->name, code != 0, code ? error_text() : r->outcome);
    return code;
}

static void release(struct retrain *r) {
    forget_last(&r->last);
    set_close(r->set);
    dataset_sources_release(&r->sources);
    holdout_free(r->holdout);
    json_decref(r->result);
    training_close(&r->training);
    free(r->outcome);
    free(r->data);
    free(r->identity);
}

int command_retrain(const struct options *options) {
    struct options quiet = *options;
    struct retrain r = {.training = {.options = &quiet, .command = "retrain", .lock = -1}};
    quiet.quiet |= options->cron; /* the workers too */
    numeric_setup();
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &r.training.job);
    if (code)
        return code;
    r.identity = job_identity(r.training.job);
    interruption_open();
    progress_open(!quiet.quiet);
    code = work(&r);
    progress_close();
    code = conclude(&r, code);
    release(&r);
    return code;
}
