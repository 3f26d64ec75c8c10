/* `retrain`, for cron: finishes an unfinished run, trains if there is new data, and publishes the
 * model if the gate holds. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/resources.h"
#include "base/text.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/command/last_run.h"
#include "coordinator/command/print.h"
#include "coordinator/publish/gate.h"
#include "coordinator/publish/prune.h"
#include "coordinator/run/convergence.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/sets.h"
#include "coordinator/run/training.h"
#include "coordinator/sweep/sweep.h"
#include "numeric/setup.h"

struct retrain {
    struct session session;
    struct training training;
    struct publisher publisher;
    char *identity;     /* job_identity() */
    struct dataset now; /* the data as it is now */
    struct last_run last;
    struct dataset earlier; /* what the last run began with, if it can go on and that is not `now`;
                               only its set, unless it is a sweep */
    struct score_figures figures; /* of the last run's model on the holdout, if `scored` */
    bool scored;
    struct outcome outcome; /* of the last task */
    bool idle;              /* there was nothing to do */
};

/* ---- training ---- */

/* Adds to the result how many evaluations the start from the live model saved. Epochs of
 * minibatches alone are as many from any start. */
static int add_warm_start(const struct retrain *r) {
    const struct training *training = &r->training;
    double evaluations = (double)coordinator_view(training->coordinator).evaluations;
    int64_t cold;
    if (!*training->start_model || r->session.job->optimizer == JOB_DOWNPOUR)
        return 0;
    assert(training->result && training->recorder.run > 0);
    int code = past_cold_evaluations(r->session.store, r->identity, &cold);
    json_t *warm = json_pack("{s:I}", "evaluations", (json_int_t)evaluations);
    if (cold) {
        json_object_set_new(warm, "cold_evaluations", json_integer(cold));
        json_object_set_new(warm, "ratio", json_real(evaluations / (double)cold));
        log_info("%.0f evaluations; the last start from zero took %lld", evaluations,
                 (long long)cold);
    } else {
        log_info("%.0f evaluation%s from the live model", evaluations, evaluations == 1 ? "" : "s");
    }
    json_object_set_new(training->result, "warm_start", warm);
    return code;
}

static int train(struct retrain *r, struct set *set, const char *start_from, bool fresh) {
    struct training *training = &r->training;
    struct options options = *r->session.options;
    const struct options *given = r->session.options;
    options.fresh = fresh;
    r->session.options = &options;
    assert(set && !training->set && !training->coordinator);
    training->start_from = start_from;
    training->started_ns = clock_monotonic_ns();
    training->started_ms = clock_wall_ms();
    int code = training_run(training, &r->now, set);
    if (!code)
        code = training_conclude(training);
    if (!code)
        code = add_warm_start(r);
    if (!code) {
        json_decref(r->outcome.result);
        r->outcome.result = json_incref(training->result);
        score_figures_release(&r->figures);
        r->figures = training->figures;
        training->figures.classes = NULL;
        r->scored = r->now.holdout != NULL;
    }
    if (!code)
        status_last(&r->session);
    training_release(training, code);
    r->session.options = given;
    return code;
}

static int train_many(struct retrain *r, const struct dataset *data, const char *start_from,
                      bool fresh) {
    struct sweep_outcome outcome;
    int code = sweep_train(&r->training, data, start_from, fresh, &outcome);
    assert(code || (outcome.winner > 0 && outcome.result));
    json_decref(r->outcome.result);
    r->outcome.result = outcome.result;
    return code;
}

/* ---- one task after another ---- */

static const char *fingerprint(const struct retrain *r) {
    return set_info(r->now.set)->fingerprint;
}

/* The data of an unfinished sweep, from its packs: not only the rows trained on must be
 * the same, but also the holdout. */
static void find_data_of_sweep(struct retrain *r) {
    char *evaluated_on = sweep_evaluated_on(&r->now);
    assert(r->last.sweep > 0 && r->last.evaluated_on && !r->earlier.set);
    r->last.has_data =
        !strcmp(r->last.data, fingerprint(r)) && !strcmp(r->last.evaluated_on, evaluated_on);
    free(evaluated_on);
    if (r->last.has_data)
        return;
    if (sweep_recall(&r->session, r->last.sources, r->last.data, &r->earlier)) {
        log_warning("sweep %lld cannot be finished: %s", (long long)r->last.sweep, error_text());
        error_clear();
    }
    r->last.has_data = r->earlier.set != NULL;
}

static void find_data(struct retrain *r) {
    assert(!r->last.sweep && r->last.run > 0 && !r->earlier.set);
    r->last.has_data = strcmp(r->last.data, fingerprint(r)) == 0;
    if (!r->last.has_data)
        r->earlier.set = sets_find(r->session.job->state, r->last.data);
    r->last.has_data |= r->earlier.set != NULL;
}

/* Reads what was done last, and finds the data of an unfinished run or sweep. */
static int look_back(struct retrain *r) {
    struct job *job = r->session.job;
    struct sweep_shape shape = sweep_shape_of(job);
    int code = last_run_read(r->session.store, job->state, r->identity,
                             job_has_sweep(job) ? &shape : NULL, &r->last);
    dataset_release(&r->earlier);
    if (!code && last_run_is_open(&r->last))
        (r->last.sweep ? find_data_of_sweep : find_data)(r);
    return code;
}

/* ---- refusals that last ----
 *
 * A gate that refuses night after night is told each night, also in nights without new data: the
 * model that is live grows old meanwhile. */

/* Adds to the outcome for how long the gate has been refusing, if it has refused the last run. */
static int report_refusals(struct retrain *r) {
    struct history history;
    int code = history_read(r->session.store, &history);
    struct history_refusals refusals = {0};
    if (!code)
        refusals = history_refusals(&history);
    const struct history_item *last = refusals.last;
    assert(!last == !refusals.count);
    if (last && last->run == r->last.run && last == &history.items[history.count - 1]) {
        json_object_set_new(r->outcome.result, "refusals",
                            json_pack("{s:I, s:I}", "count", (json_int_t)refusals.count, "since_ms",
                                      (json_int_t)refusals.since_ms));
        char when[CLOCK_MINUTE];
        clock_minute(refusals.since_ms, when);
        const int64_t live = history_current(r->session.job->state);
        char *of_live =
            live ? memory_format("the model of run %lld has been live since then", (long long)live)
                 : memory_copy_string("no model is live");
        char *text =
            memory_format("%s%s%s; the gate has refused %zu %s since %s, and %s", r->outcome.text,
                          r->idle ? ": " : "", r->idle ? last->text : "", refusals.count,
                          refusals.count == 1 ? "time" : "times", when, of_live);
        outcome_set(&r->outcome, r->idle ? ERROR_DATA : r->outcome.code, text);
        free(of_live);
    }
    history_release(&history);
    return code;
}

/* ---- one task ---- */

static int decide_last_run(struct retrain *r) {
    const struct options *options = r->session.options;
    const struct job *job = r->session.job;
    int64_t run = r->last.run;
    assert(run > 0 && !r->idle);
    r->session.invocation.run = run;
    int code = store_run_label(r->session.store, run, options->tag, options->note);
    if (code)
        return code;
    if (job->publish == JOB_PUBLISH_NEVER)
        return gate_settle(&r->publisher, DECISION_KEPT, run, "publish = never", &r->outcome);
    if (not_converged_at_all(r->outcome.result) && !history_current(job->state)) {
        code = gate_settle(&r->publisher, DECISION_KEPT, run, GATE_NO_STEP, &r->outcome);
        if (!code)
            log_warning("%s", r->outcome.text);
        return code;
    }
    code = gate_decide(&r->publisher, job, r->now.holdout, r->scored ? &r->figures : NULL, run,
                       &r->outcome);
    return code || !r->outcome.code ? code : report_refusals(r);
}

static int do_task(struct retrain *r, enum task task) {
    const bool progress = !r->session.options->quiet;
    int code = 0;
    assert(task != TASK_NONE && (task != TASK_DECIDE || r->last.run));
    if (r->outcome.code) /* of the task before this one */
        log_error("%s", r->outcome.text);
    r->outcome.code = 0;
    r->scored = false;
    progress_open(progress);
    if (task == TASK_DECIDE) {
        log_info("run %lld has ended; now it is decided whether its model goes live",
                 (long long)r->last.run);
        json_decref(r->outcome.result);
        r->outcome.result = json_loads(r->last.result, 0, NULL);
    } else if (task == TASK_GO_ON) {
        /* On the data that the run began with: the files may have changed since. */
        const struct dataset *data = r->earlier.set ? &r->earlier : &r->now;
        const char *what = r->last.sweep ? "sweep" : "run";
        log_info("%s %lld is unfinished; finishing it first", what,
                 (long long)(r->last.sweep ? r->last.sweep : r->last.run));
        code = r->last.sweep ? train_many(r, data, NULL, false) : train(r, data->set, NULL, false);
    } else {
        struct job *job = r->session.job;
        char *start = job->warm_start ? publish_live_folder(job->state) : NULL;
        code = job_has_sweep(job) ? train_many(r, &r->now, start, true)
                                  : train(r, r->now.set, start, true);
        free(start);
    }
    if (!code && task != TASK_DECIDE)
        code = look_back(r);
    progress_open(progress); /* the training has closed it */
    return code ? code : decide_last_run(r);
}

/* A label is of the run that a command makes. Who says the same every night is not told so. */
static void report_label(const struct retrain *r) {
    const struct options *options = r->session.options;
    assert(r->idle && r->last.run > 0);
    const char *option = options->tag ? "tag" : "note";
    if (options->cron || (!options->tag && !options->note))
        return;
    char *word = shell_word(options->operands[0]);
    log_warning("`--%s` has no effect: no run was made; `publish %lld %s --no-publish --%s %s` "
                "labels run %lld",
                option, (long long)r->last.run, word, option, options->tag ? "NAME" : "TEXT",
                (long long)r->last.run);
    free(word);
}

static int do_all(struct retrain *r) {
    const char *state = r->session.job->state;
    int code = look_back(r);
    if (code)
        return code;
    enum task task = r->session.options->fresh ? TASK_TRAIN : task_next(&r->last, fingerprint(r));
    code = sets_prune(&r->session.loop, state, fingerprint(r), r->last.data);
    if (task == TASK_NONE) {
        r->idle = true;
        report_label(r);
        outcome_set(&r->outcome, 0,
                    memory_format("no new data since run %lld%s", (long long)r->last.run,
                                  r->last.refused ? ", which was refused"
                                  : r->last.kept  ? ", which is kept and not live"
                                                  : ""));
        r->outcome.result =
            json_pack("{s:o, s:I, s:s, s:b}", "job", text_to_json(r->session.job->name), "run",
                      (json_int_t)r->last.run, "reason", NO_NEW_DATA, "published", false);
        code = code ? code : report_refusals(r);
    }
    while (!code && task != TASK_NONE) {
        code = do_task(r, task);
        if (!code)
            code = look_back(r);
        if (!code)
            task = task_next(&r->last, fingerprint(r));
    }
    return code;
}

/* ---- the command ---- */

static int prune(struct retrain *r) {
    const struct job *job = r->session.job;
    struct store *store = r->session.store;
    struct loop *loop = &r->session.loop;
    int code = versions_prune(loop, store, job->state, job->keep_models);
    if (!code)
        code = versions_prune_checkpoints(loop, store, job->state, r->last.run);
    if (!code)
        code = sets_prune(loop, job->state, fingerprint(r), NULL);
    return code ? code : packs_prune(loop, job->state, &r->now.sources);
}

static int retrain_and_prune(struct retrain *r) {
    const struct job *job = r->session.job;
    int code = session_open(&r->session);
    r->publisher = (struct publisher){.loop = &r->session.loop,
                                      .store = r->session.store,
                                      .state = job->state,
                                      .job = job->name,
                                      .on_publish = job->on_publish};
    if (!code)
        code = publish_settle_earlier(&r->publisher, NULL);
    char *live = code ? NULL : publish_live_folder(job->state);
    if (!code)
        code = session_read(&r->session, live, &r->now);
    if (!code)
        code = do_all(r);
    free(live);
    return code ? code : prune(r);
}

static void show(struct retrain *r) {
    const struct options *options = r->session.options;
    json_t *result = r->outcome.result;
    assert(result);
    char *live = publish_live_folder(r->session.job->state);
    json_object_set_new(result, "live", live ? text_to_json(live) : json_null());
    if (options->json)
        invocation_add(&r->session.invocation, r->session.store, r->outcome.code, result);
    if (options->json || !r->idle) {
        result_show(result, options->json, options->cron);
    } else if (!options->cron && !r->outcome.code) {
        escape_put(r->session.job->name, stdout);
        fputs(": ", stdout);
        escape_put(r->outcome.text, stdout);
        putchar('\n');
    }
    not_converged_log(result);
    free(live);
}

/* What the command comes to, once what went wrong on the way was told. */
static int conclude(struct retrain *r, int code) {
    const json_t *done = code ? NULL : r->outcome.result;
    if (!code && r->outcome.result)
        show(r);
    if (!code && r->outcome.code)
        code = error_set(r->outcome.code, "%s", r->outcome.text);
    if (!code)
        code = not_converged_strict(r->outcome.result, r->session.options->strict);
    if (r->session.options->cron)
        notice_send(r->session.job->name, code != 0, code ? error_text() : r->outcome.text);
    invocation_end(&r->session.invocation, r->session.store, code, done,
                   code ? error_text() : r->outcome.text);
    return code;
}

int command_retrain(const struct options *options) {
    struct options quiet = *options;
    struct retrain r = {
        .session = {.options = &quiet, .command = "retrain", .lock = -1, .training = &r.training},
        .training = {.session = &r.session,
                     .started_ns = clock_monotonic_ns(),
                     .started_ms = clock_wall_ms()}};
    quiet.quiet |= options->cron; /* the workers too */
    numeric_setup();
    int code = memory_suffices();
    if (!code)
        code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &r.session.job);
    if (code)
        return code;
    r.identity = job_identity(r.session.job);
    progress_open(!quiet.quiet);
    code = retrain_and_prune(&r);
    progress_close();
    code = conclude(&r, code);
    score_figures_release(&r.figures);
    last_run_release(&r.last);
    outcome_release(&r.outcome);
    dataset_release(&r.earlier);
    dataset_release(&r.now);
    session_close(&r.session);
    free(r.identity);
    return code;
}
