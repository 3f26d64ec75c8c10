/* `run`: trains the model of a job file. The first model of a state goes live; over a live one the
 * gate decides, or who typed the command. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/resources.h"
#include "coordinator/command/command.h"
#include "coordinator/command/last_run.h"
#include "coordinator/publish/gate.h"
#include "coordinator/run/convergence.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/sets.h"
#include "coordinator/run/training.h"
#include "coordinator/status/run_folder.h"
#include "coordinator/sweep/sweep.h"
#include "numeric/setup.h"

/* The model that was trained. */
struct chosen {
    int64_t run;
    bool decided; /* what becomes of it, by `decision` */
    enum decision decision;
    const struct score_figures *figures; /* on the holdout; NULL: not known */
};

static void choose_last(const struct last_run *last, struct chosen *chosen,
                        struct outcome *outcome) {
    *chosen = (struct chosen){.run = last->run,
                              .decided = last->decided,
                              .decision = last->refused ? DECISION_REFUSED
                                          : last->kept  ? DECISION_KEPT
                                                        : DECISION_PUBLISHED};
    outcome->result = json_loads(last->result ? last->result : "{}", 0, NULL);
}

/* A command that was cut off after its training is not to train again when it is repeated, nor is
 * one whose run ended at a limit that is what it was: the model is there. `settled` is the decision
 * that was completed just now. */
static void choose_among(const struct training *training, const struct last_run *last,
                         const struct history_item *settled, struct chosen *chosen,
                         struct outcome *outcome) {
    const struct job *job = training->session->job;
    bool decided = settled->publication && settled->run == last->run;
    assert(last->run > 0 && last->concluded);
    char *folder = run_model_folder(job->state, last->run);
    const bool has_folder = access(folder, F_OK) == 0;
    free(folder);
    if (has_folder && last_run_is_at_limit(last, job)) {
        log_info("run %lld has ended at its %s, which was not raised: %s; --fresh trains anew",
                 (long long)last->run, reason_text(last->reason),
                 last->decided ? "nothing is left to do"
                               : "now it is decided whether its model goes live");
        choose_last(last, chosen, outcome);
    } else if (last->over && (!last->decided || decided)) {
        log_info(
            "run %lld had ended when an earlier command was interrupted: %s; --fresh trains anew",
            (long long)last->run,
            decided ? "nothing is left to do" : "now it is decided whether its model goes live");
        choose_last(last, chosen, outcome);
    }
}

static int choose_ended(struct training *training, const struct dataset *data,
                        const struct history_item *settled, struct chosen *chosen,
                        struct outcome *outcome) {
    struct last_run last = {0};
    struct job *job = training->session->job;
    if (training->session->options->fresh)
        return 0;
    assert(!chosen->run && data->set);
    struct sweep_shape shape = sweep_shape_of(job);
    char *identity = job_identity(job);
    int code = last_run_read(training->session->store, job->state, identity,
                             job_has_sweep(job) ? &shape : NULL, &last);
    char *evaluated_on = sweep_evaluated_on(data);
    bool ended = !code && last.run && last.concluded &&
                 !strcmp(last.data, set_info(data->set)->fingerprint) &&
                 (!last.evaluated_on || !strcmp(last.evaluated_on, evaluated_on));
    /* It must have started from the model that the command names, if it names one. */
    struct model *model = NULL;
    if (ended)
        code = training_open_model(training, training->session->options->start, &model);
    if (ended && !code && (!model || !strcmp(last.start_model, model->sha256)))
        choose_among(training, &last, settled, chosen, outcome);
    model_close(model);
    free(evaluated_on);
    last_run_release(&last);
    free(identity);
    return code;
}

static int train_one(struct training *training, const struct dataset *data, struct chosen *chosen,
                     struct outcome *outcome) {
    training->start_from = training->session->options->start;
    int code = training_run(training, data, data->set);
    if (!code)
        code = training_conclude(training);
    assert(code || (training->recorder.run > 0 && training->result));
    *chosen = (struct chosen){.run = training->recorder.run,
                              .figures = data->holdout ? &training->figures : NULL};
    outcome->result = json_incref(training->result);
    return code;
}

static int train_many(struct training *training, const struct dataset *data, struct chosen *chosen,
                      struct outcome *outcome) {
    const struct options *options = training->session->options;
    struct sweep_outcome swept;
    int code = sweep_train(training, data, options->start, options->fresh, &swept);
    assert(code || (swept.winner > 0 && swept.result));
    *chosen = (struct chosen){.run = swept.winner};
    outcome->result = swept.result;
    return code;
}

/* ---- what becomes of the model ---- */

static int decide_chosen(struct training *training, const struct publisher *publisher,
                         const struct dataset *data, const struct chosen *chosen,
                         struct outcome *outcome) {
    const struct options *options = training->session->options;
    const struct job *job = training->session->job;
    int64_t live = history_current(job->state), run = chosen->run;
    training->session->invocation.run = run;
    assert(run > 0);
    if (live == run || (chosen->decided && !options->publish)) { /* a sweep may choose it again */
        gate_recall(publisher, live == run ? DECISION_PUBLISHED : chosen->decision, run, outcome);
        return 0;
    }
    if (options->publish)
        return gate_settle(publisher, DECISION_PUBLISHED, run, "--publish", outcome);
    if (options->no_publish)
        return gate_settle(publisher, DECISION_KEPT, run, "--no-publish", outcome);
    if (job->publish == JOB_PUBLISH_ALWAYS)
        return gate_settle(publisher, DECISION_PUBLISHED, run, "publish = always", outcome);
    if (job->publish == JOB_PUBLISH_NEVER)
        return gate_settle(publisher, DECISION_KEPT, run, "publish = never", outcome);
    if (!live && !not_converged_at_all(outcome->result))
        return gate_settle(publisher, DECISION_PUBLISHED, run, "no other model was live", outcome);
    if (live && job->gate[0]) {
        progress_open(!options->quiet);
        return gate_decide(publisher, job, data->holdout, chosen->figures, run, outcome);
    }
    char *why = live ? memory_format("run %lld is live, and there is no gate to compare them",
                                     (long long)live)
                     : memory_copy_string(GATE_NO_STEP);
    int code = gate_settle(publisher, DECISION_KEPT, run, why, outcome);
    free(why);
    if (!code)
        log_warning("%s, as `run --publish` would have", outcome->text);
    return code;
}

static int conclude(struct training *training, struct outcome *outcome) {
    struct session *session = training->session;
    const struct options *options = session->options;
    char *live = publish_live_folder(session->job->state);
    json_object_set_new(outcome->result, "live", live ? text_to_json(live) : json_null());
    free(live);
    if (options->json)
        invocation_add(&session->invocation, session->store, outcome->code, outcome->result);
    result_show(outcome->result, options->json, options->cron);
    not_converged_log(outcome->result);
    status_last(session);
    if (outcome->code)
        return error_set(outcome->code, "%s", outcome->text);
    return not_converged_strict(outcome->result, options->strict);
}

/* ---- the command ---- */

/* A killed command may have left a publication unsettled. That is settled first, because a run may
 * take long. */
static int train(struct training *training, struct dataset *data, struct outcome *outcome) {
    struct session *session = training->session;
    struct chosen chosen = {0};
    struct history_item settled = {0};
    const struct options *options = session->options;
    struct publisher publisher = {.store = session->store,
                                  .loop = &session->loop,
                                  .state = session->job->state,
                                  .job = session->job->name,
                                  .on_publish = session->job->on_publish};
    int code = publish_settle_earlier(&publisher, &settled);
    if (!code)
        code = workers_prepare(training);
    /* Columns have the numbers of the model that the run starts from, else of the one that the gate
     * compares it with. Whether the gate is asked this time changes no data. */
    const bool compared = !options->start && session->job->gate[0];
    char *live = compared ? publish_live_folder(session->job->state) : NULL;
    if (!code)
        code = session_read(session, options->start ? options->start : live, data);
    free(live);
    if (!code)
        code = choose_ended(training, data, &settled, &chosen, outcome);
    if (!code && !chosen.run)
        code = (job_has_sweep(session->job) ? train_many : train_one)(training, data, &chosen,
                                                                      outcome);
    if (!code)
        code = store_run_label(session->store, chosen.run, options->tag, options->note);
    if (!code)
        code = decide_chosen(training, &publisher, data, &chosen, outcome);
    if (!code)
        code = conclude(training, outcome);
    if (!code)
        code = sets_keep(&session->loop, session->job->state, set_info(data->set)->fingerprint,
                         session->job->keep_sets);
    return code;
}

int command_run(const struct options *options) {
    if (options->dry_run)
        return command_check(options);
    struct session session = {.options = options, .command = "run", .lock = -1};
    struct training training = {
        .session = &session, .started_ns = clock_monotonic_ns(), .started_ms = clock_wall_ms()};
    session.training = &training;
    struct dataset data = {0};
    struct outcome outcome = {0};
    numeric_setup();
    int code = memory_suffices();
    if (!code)
        code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &session.job);
    if (code)
        return code;
    progress_open(!options->quiet);
    code = session_open(&session);
    if (!code)
        code = train(&training, &data, &outcome);
    invocation_end(&session.invocation, session.store, code, outcome.result,
                   code ? error_text() : outcome.text);
    outcome_release(&outcome);
    training_release(&training, code);
    dataset_release(&data);
    session_close(&session);
    return code;
}
