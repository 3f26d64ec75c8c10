/* The end of a run: its model is scored on the holdout, put in its place and scored on the test
 * data; then the result is stored. The run's end is committed last: after a crash before that, the
 * run goes on from its last durable step and writes the same model again. Checkpoints are removed
 * after that, since they are what it would go on from. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/resources.h"
#include "base/text.h"
#include "coordinator/run/convergence.h"
#include "coordinator/run/level_split.h"
#include "coordinator/run/refine.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/run/summary.h"
#include "coordinator/run/summary_parts.h"
#include "coordinator/run/training.h"
#include "coordinator/status/live.h"
#include "model/score.h"
#include "numeric/setup.h"

/* ---- the gap ---- */

/* Whatever ended the run, if the gap is known; but the best point on a holdout is not meant to be
 * the optimum. */
static bool has_converged(const struct training *run, const struct coordinator_view *view) {
    if (run->fit.late)
        return false;
    if (!run->gap.known || view->reason == REASON_EARLY_STOPPING)
        return reason_says_converged(view->reason);
    return gap_is_small(&run->gap) &&
           !convergence_is_separable(run->session->job, set_info(run->set), view);
}

/* The sizes of columns may stand in the way. Their squares tell them, too, and are known as a rule:
 * two reads of a wide set took a tenth of the time of a run. In tiles columns cannot be scaled, and
 * their moments would take more memory than all else here. */
static int find_sizes(struct training *run) {
    const struct set_info *data = set_info(run->set);
    if (data->strip_columns || run->moments.kind != MOMENTS_NONE)
        return 0;
    const bool unasked = run->estimates.mean_square > 0; /* squares, until now */
    int code = unasked && !run->squares ? training_find_squares(run) : 0;
    if (code)
        return code;
    if (!run->squares)
        return training_find_moments(run);
    moments_of_squares(data, run->squares, &run->moments);
    return 0;
}

/* Steps of conjugate gradients that show what runs away, whose curvature is far less than all else.
 */
#define RUNAWAY_STEPS 50

/* Takes the gap; of a run that has not converged, finds what may stand in the way. */
static int work_on_gap(void *context) {
    struct training *run = context;
    struct coordinator_view view = coordinator_view(run->coordinator);
    run->gap = gap_of(&run->estimates, &view);
    int code = training_refine(run);
    if (code || has_converged(run, &view))
        return code;
    code = find_sizes(run);
    if (code || !convergence_may_run_away(run->session->job, set_info(run->set), view.reason))
        return code;
    const uint64_t count = model_parameters(&run->layout);
    bool *aliased = memory_new(count, sizeof *aliased);
    assert(!run->runs_away);
    run->runs_away = memory_new(count, sizeof *run->runs_away);
    code = summary_runaways(run, NULL, aliased, RUNAWAY_STEPS, run->runs_away);
    free(aliased);
    return code;
}

/* ---- the result ---- */

static void add_not_converged(struct training *run) {
    const struct not_converged end = {.coordinator = run->coordinator,
                                      .job = run->session->job,
                                      .command = run->session->command,
                                      .data = set_info(run->set),
                                      .moments = &run->moments,
                                      .scaling = &run->scaling,
                                      .preconditioned = run->preconditioner.form,
                                      .gap = &run->gap,
                                      .loss = run->answer.loss,
                                      .nearly = run->fit.near ? &run->fit : NULL,
                                      .runs_away = run->runs_away};
    json_object_set_new(run->result, "shortfall", not_converged_json(&end));
}

/* Where rows are fitted more closely than a corner is smoothed, most of them lie within it, and the
 * model is that of another loss. Labels alone cannot tell beforehand how close a fit will be.
 * Labels of one number are fitted exactly with any corner. */
static void warn_of_smoothing(const struct training *run) {
    const struct objective *objective = objective_of(run->session->job->objective);
    double smoothed = objective->smoothed ? objective->smoothed(&run->shape.loss) : 0;
    if (run->answer.loss < smoothed && !labels_are_one_number(set_info(run->set)->targets))
        log_warning("most residuals are smaller than %s.epsilon (%.3g), and are fitted as by "
                    "squares: the mean loss is %.3g; a smaller %s.epsilon comes nearer",
                    objective->name, smoothed, run->answer.loss, objective->name);
}

/* Makes the result of what is known now. The time before the run was resumed counts as training. */
static int make_result(struct training *run) {
    struct session *session = run->session;
    struct store_run record;
    assert(!run->result && run->recorder.run > 0);
    bool found;
    int code = store_run_find(session->store, run->recorder.run, &record, &found);
    if (code)
        return code;
    struct result_restarts restarts = {.coordinator = record.restarts,
                                       .shard = record.restarts_shard,
                                       .replica = record.restarts_replica};
    store_run_release(&record);
    run->seconds.train += run->seconds_before;
    run->seconds.total = training_seconds(run);
    run->result = result_json(run->coordinator, session->job, run->recorder.run, &run->answer,
                              &run->seconds, &restarts);
    json_object_set_new(run->result, "hosts", hosts_json(run->recorder.hosts));
    json_object_set_new(run->result, "weights", weights_json(set_info(run->set), session->job));
    json_object_set_new(run->result, "offsets", row_offsets_json(set_info(run->set)));
    if (job_has_bounds(session->job)) {
        const struct active_bounds_settings bounds =
            recorder_bounds(coordinator_settings(run->coordinator));
        json_object_set_new(run->result, "active_bounds",
                            active_bounds_json(&run->recorder.active, &bounds, set_info(run->set)));
    }
    struct coordinator_view view = coordinator_view(run->coordinator);
    bool converged = has_converged(run, &view);
    json_object_set_new(run->result, "converged", json_boolean(converged));
    if (reason_has_model(view.reason) && !converged)
        add_not_converged(run);
    if (reason_has_model(view.reason))
        warn_of_smoothing(run);
    refine_report(run);
    if (*run->start_model)
        result_add_start(run->result, run->start_model, run->start_run);
    if (run->continues)
        json_object_set_new(run->result, "continues", json_integer((json_int_t)run->continues));
    return 0;
}

static int work_on_holdout(void *context) {
    struct training *run = context;
    struct model model;
    int code = training_find_response(run);
    if (!code && run->data->holdout)
        code = model_writer_view(run->recorder.writer, &model);
    if (code || !run->data->holdout)
        return code;
    return holdout_score(run->data->holdout, &model, &run->figures);
}

/* This comes before the model is written, because its details contain the figures. */
static int score_holdout(struct training *run) {
    int code = loop_beside(&run->session->loop, STAGE_SCORING, work_on_holdout, run);
    if (!code && run->response)
        response_summarise(run->response, run->result);
    if (!code && run->data->holdout)
        json_object_set_new(run->result, "holdout",
                            holdout_json(run->data->holdout, &run->figures));
    return code;
}

/* For writing a model beside the loop. */
struct writing {
    struct training *run;
    json_t *details;
    char sha256[SHA256_TEXT];
};

/* A model that is not what was trained is kept for whoever looks into it, but not in its place. */
static int set_aside(struct training *run, int code) {
    const char *from = model_writer_folder(run->recorder.writer);
    char *folder = memory_format("%s.failed", run->model_folder);
    bool named = !strncmp(error_text(), from, strlen(from));
    char *why =
        memory_format("%s%s", named ? folder : "", error_text() + (named ? strlen(from) : 0));
    error_clear();
    int kept = model_writer_set_aside(run->recorder.writer, folder);
    run->recorder.writer = NULL;
    if (!kept)
        error_set(
            code == ERROR_DATA ? ERROR_INTERNAL : code,
            "the model of run %lld is not used, as it was read back wrongly: %s; it is kept in "
            "%s, and the live model stays. The same command tries again, --fresh begins "
            "anew",
            (long long)run->recorder.run, why, folder);
    free(folder);
    free(why);
    return kept ? kept : code == ERROR_DATA ? ERROR_INTERNAL : code;
}

/* Gives the model the means of its features, for explanations. Sets in tiles have too many columns.
 */
static int write_means(struct training *run) {
    double *means = NULL;
    if (!run->layout.keeps_means)
        return 0;
    int64_t start_ns = clock_monotonic_ns();
    int code = moments_means(run->set, cpus_usable(), &run->moments, &means);
    if (!code)
        model_writer_means(run->recorder.writer, means);
    memory_unmap(means, run->layout.features * sizeof *means);
    log_debug("the means of the columns took %.1f ms",
              (double)(clock_monotonic_ns() - start_ns) / 1e6);
    return code;
}

static int work_on_model(void *context) {
    struct writing *writing = context;
    struct recorder *recorder = &writing->run->recorder;
    int code = write_means(writing->run);
    if (!code)
        code = model_writer_hash(recorder->writer, writing->sha256);
    if (code)
        return code;
    if (recorder->curvature)
        code = curvature_writer_publish(recorder->curvature, writing->sha256);
    recorder->curvature = NULL;
    if (!code)
        code = model_writer_finish(recorder->writer, writing->details);
    if (!code && writing->run->session->job->summary)
        code = training_summarise(writing->run);
    if (code)
        return code;
    int64_t start_ns = clock_monotonic_ns();
    code =
        readback_check(recorder->readback, model_writer_folder(recorder->writer), writing->sha256);
    log_debug("the model was read back in %.1f ms",
              (double)(clock_monotonic_ns() - start_ns) / 1e6);
    if (code)
        return set_aside(writing->run, code);
    code = model_writer_publish(recorder->writer, NULL);
    recorder->writer = NULL;
    return code;
}

static int write_model(struct training *run) {
    struct session *session = run->session;
    struct source_options alike =
        source_options_alike(&session->job->source, &run->data->sources.shape);
    struct writing writing = {
        .run = run,
        .details =
            json_pack("{s:O, s:o, s:o, s:s, s:s, s:O*}", "result", run->result, "settings",
                      job_settings(session->job), "source", score_options_json(&alike),
                      "data_fingerprint", set_info(run->set)->fingerprint, "build",
                      numeric_description(), "start", json_object_get(run->result, "start"))};
    int code = loop_beside(&session->loop, STAGE_WRITING, work_on_model, &writing);
    json_decref(writing.details);
    if (code)
        return code;
    const json_t *holdout = json_object_get(run->result, "holdout");
    code = store_model(session->store, run->recorder.run, run->model_folder, writing.sha256);
    if (!code && holdout) {
        char *text = json_dumps(holdout, JSON_COMPACT);
        code = store_model_figures(session->store, run->recorder.run, text);
        free(text);
    }
    result_add_model(run->result, run->model_folder, writing.sha256);
    return code;
}

/* For scoring the test data, with the model read from its folder, as others will read it. */
struct testing {
    const struct training *run;
    struct score_figures figures;
};

static int work_on_test(void *context) {
    struct testing *testing = context;
    const struct training *run = testing->run;
    struct model *model = NULL;
    int code = model_open(run->model_folder, &model);
    if (!code)
        code = holdout_score(run->data->test, model, &testing->figures);
    model_close(model);
    return code;
}

static int score_test(struct training *run) {
    struct testing testing = {.run = run};
    if (!run->data->test)
        return 0;
    int code = loop_beside(&run->session->loop, STAGE_SCORING, work_on_test, &testing);
    if (!code)
        json_object_set_new(run->result, "test", score_figures_json(&testing.figures));
    score_figures_release(&testing.figures);
    return code;
}

static int end_run(struct training *run, enum reason reason) {
    struct coordinator_view view = coordinator_view(run->coordinator);
    char *text = json_dumps(run->result, JSON_COMPACT);
    int code = store_run_progress(run->session->store, run->recorder.run, run->seconds.total);
    if (!code)
        code = store_run_end(run->session->store, run->recorder.run, reason_text(reason), text,
                             view.step, view.evaluations, view.started ? run->answer.loss : NAN,
                             view.started ? run->answer.gradient_max : NAN);
    free(text);
    return code;
}

static int work_on_checkpoints(void *context) {
    struct training *run = context;
    folder_remove(run->shards_folder);
    return 0;
}

/* They may be large. So they are removed while the model is published and the workers end. */
static int remove_checkpoints(struct training *run) {
    return loop_begin(work_on_checkpoints, run, &run->removal);
}

static int stopped(const struct coordinator_view *view) {
    if (!view->durable)
        return error_set(ERROR_AGAIN, "stopped before a step was kept: the same command begins the "
                                      "run again; no model was written");
    if (view->downpour.running)
        return error_set(ERROR_AGAIN,
                         "stopped after %llu minibatches, which are kept: the same command goes "
                         "on; no model was written",
                         (unsigned long long)view->downpour.done);
    return error_set(ERROR_AGAIN,
                     "stopped after step %llu, which is kept: the same command goes on; no model "
                     "was written",
                     (unsigned long long)view->step);
}

/* Ends a run that was cancelled, or whose loss is not finite where it starts, or where Downpour
 * led. It has no model, and the exit status says so. */
static int end_without_model(struct training *run) {
    struct coordinator_view view = coordinator_view(run->coordinator);
    enum reason reason = view.reason;
    int code = make_result(run);
    if (!code)
        code = end_run(run, reason);
    if (!code && !reason_can_resume(reason))
        code = remove_checkpoints(run);
    if (code)
        return code;
    result_show(run->result, run->session->options->json, run->session->options->cron);
    if (reason != REASON_NOT_FINITE)
        return stopped(&view);
    return view.downpour.done
               ? convergence_diverged(&view.downpour)
               : convergence_not_finite(set_info(run->set), run->session->job, *run->start_model);
}

static int work_on_levels(void *context) {
    return training_split_levels(context);
}

static int end_done(struct training *run) {
    enum reason reason = coordinator_view(run->coordinator).reason;
    int code = loop_beside(&run->session->loop, STAGE_SCORING, work_on_gap, run);
    if (!code)
        code = make_result(run);
    if (!code)
        code = loop_beside(&run->session->loop, STAGE_WRITING, work_on_levels, run);
    if (!code)
        code = score_holdout(run);
    if (!code)
        code = write_model(run);
    if (!code)
        code = score_test(run);
    if (code)
        return code;
    run->seconds.total = training_seconds(run);
    json_object_set_new(json_object_get(run->result, "seconds"), "total",
                        json_real(run->seconds.total));
    code = end_run(run, reason);
    if (code)
        return code;
    failpoint(FAILPOINT_run_ended);
    if (!reason_can_resume(reason) || (run->member.sweep && run->retrains))
        code = remove_checkpoints(run); /* no night goes on with a member that has a model */
    return code;
}

int training_conclude(struct training *run) {
    if (!run->session->store)
        return state_lock_lost();
    run->answer = coordinator_view(run->coordinator).answer;
    return run->cancelled ? end_without_model(run) : end_done(run);
}
