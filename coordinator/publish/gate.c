#include "coordinator/publish/gate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/gate.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/progress.h"
#include "coordinator/status/run_folder.h"
#include "data/text/number.h"

/* ---- both models on the holdout ---- */

struct gate_trial {
    const struct job *job;
    const struct holdout *holdout;       /* or NULL */
    char *new_folder, *live_folder;      /* of the models; the second is NULL if none is live */
    const struct score_figures *figures; /* of the new one; NULL: not known */
    /* What it came to: */
    bool holds;               /* all conditions of the gate hold, or there is no gate */
    char *why;                /* the conditions that do not hold; if all hold, all of them */
    json_t *conditions;       /* [{condition, new, live, holds}] */
    json_t *of_new, *of_live; /* figures; NULL: there are none */
    double common; /* where a share draws the holdout: the share whose rows neither model was
                      trained on; 0: the live model was trained on all */
};

/* On rows that a model was trained on its figures are too good: both models are compared on those
 * that are in both holdouts. The rows of a smaller share are among those of a larger one. */
static void find_common_rows(struct gate_trial *trial) {
    struct model *live = NULL;
    const double share = trial->holdout ? holdout_share(trial->holdout) : 0;
    double of_live = 0; /* share; 0 also where the holdout was files, or none */
    trial->common = share;
    if (!trial->live_folder || share == 0)
        return;
    if (!model_open(trial->live_folder, &live)) {
        const json_t *settings = json_object_get(live->details, "settings");
        const char *text =
            json_string_value(json_array_get(json_object_get(settings, "holdout"), 0));
        if (!text || !number_of_text(text, &of_live))
            of_live = 0;
        trial->common = fmin(of_live, share);
    }
    error_clear(); /* whoever scores it tells */
    model_close(live);
    if (trial->common == 0)
        log_warning("the live model %s was trained on rows of this holdout, as its own run held "
                    "out others: they are not compared; conditions on `live` do not hold",
                    trial->live_folder);
    else if (trial->common < share)
        log_warning("the live model %s held out %g of the rows, less than this run: both are "
                    "compared on rows that neither was trained on",
                    trial->live_folder, trial->common);
}

static bool is_reduced(const struct gate_trial *trial) {
    return trial->holdout && trial->common > 0 && trial->common < holdout_share(trial->holdout);
}

/* On the holdout, or on the rows of it that neither model was trained on. */
static int score_model(const struct gate_trial *trial, bool within, const struct model *model,
                       struct score_figures *figures) {
    return within && is_reduced(trial)
               ? holdout_score_within(trial->holdout, trial->common, model, figures)
               : holdout_score(trial->holdout, model, figures);
}

static int score_new(const struct gate_trial *trial, bool within, struct score_figures *figures) {
    struct model *model = NULL;
    int code = model_open(trial->new_folder, &model);
    if (!code)
        code = score_model(trial, within, model, figures);
    model_close(model);
    return code;
}

/* A live model with another objective is not scored: losses of different objectives cannot be
 * compared. Those of one objective can, with the same parameters: the new model's. */
static int score_live(const struct gate_trial *trial, struct score_figures *figures) {
    struct model *live = NULL, *new = NULL;
    int code = model_open(trial->live_folder, &live);
    if (!code)
        code = model_open(trial->new_folder, &new);
    if (!code && strcmp(live->layout.objective, new->layout.objective))
        code = error_set(ERROR_DATA, "its objective is %s, not %s", live->layout.objective,
                         new->layout.objective);
    if (!code) {
        live->layout.loss = new->layout.loss;
        code = score_model(trial, true, live, figures);
    }
    model_close(live);
    model_close(new);
    return code;
}

/* All conditions must hold. If some do not, `why` names only those. `common` are figures of the new
 * model on the rows of those of the live one. */
static void apply_conditions(struct gate_trial *trial, const struct score_figures *new,
                             const struct score_figures *common, const struct score_figures *live) {
    char *why[2] = {NULL, NULL}; /* of those that do not hold, and of those that do */
    assert(!trial->why && json_array_size(trial->conditions) == 0);
    trial->holds = true;
    for (char **text = trial->job->gate; *text; text++) {
        struct gate_condition condition;
        const bool relative = gate_parse(*text, &condition) && condition.relative;
        struct gate_outcome outcome = gate_check(*text, relative ? common : new, live);
        char **all = &why[outcome.holds], *before = *all, *more = gate_explain(&outcome);
        *all = before ? memory_format("%s; %s", before, more) : memory_copy_string(more);
        json_array_append_new(trial->conditions, gate_outcome_json(&outcome));
        trial->holds &= outcome.holds;
        free(before);
        free(more);
    }
    assert(trial->holds == !why[0]);
    assert(trial->holds || *trial->job->gate); /* without conditions nothing is refused */
    trial->why = why[trial->holds];
    if (!trial->why)
        trial->why = memory_copy_string("there is no gate");
    free(why[!trial->holds]);
}

/* Runs beside the loop: to score a model takes long. */
static int work_on_trial(void *context) {
    struct gate_trial *trial = context;
    struct score_figures computed = score_no_figures(), of_live = score_no_figures();
    struct score_figures within = score_no_figures();
    assert(trial->new_folder && !trial->of_new && !trial->of_live);
    bool known = trial->holdout && trial->figures;
    const struct score_figures *of_new = known ? trial->figures : &computed;
    int code = trial->holdout && !known ? score_new(trial, false, &computed) : 0;
    if (code)
        return code;
    find_common_rows(trial);
    const bool apart = trial->holdout && trial->live_folder && holdout_share(trial->holdout) > 0 &&
                       trial->common == 0;
    if (is_reduced(trial))
        code = score_new(trial, true, &within);
    if (code) {
        score_figures_release(&computed);
        return code;
    }
    if (trial->holdout)
        trial->of_new = holdout_json(trial->holdout, of_new);
    if (trial->holdout && trial->live_folder && !apart && !score_live(trial, &of_live)) {
        trial->of_live = is_reduced(trial) ? score_figures_json(&of_live)
                                           : holdout_json(trial->holdout, &of_live);
    } else if (trial->holdout && trial->live_folder && !apart) {
        log_error("the live model %s cannot be compared with: %s", trial->live_folder,
                  error_text());
        error_clear();
        of_live = score_no_figures(); /* no condition holds for them */
    }
    apply_conditions(trial, of_new, is_reduced(trial) ? &within : of_new,
                     trial->live_folder ? &of_live : NULL);
    if (apart && !trial->holds) {
        char *before = trial->why;
        trial->why =
            memory_format("%s; the live model was trained on rows of this holdout, as its "
                          "run held out others, so no row is left to compare on: `publish` "
                          "makes the new one live",
                          before);
        free(before);
    }
    score_figures_release(&within);
    score_figures_release(&computed);
    score_figures_release(&of_live);
    return 0;
}

/* ---- what becomes of it ---- */

void outcome_set(struct outcome *outcome, int code, char *text) {
    free(outcome->text);
    outcome->text = text;
    outcome->code = code;
}

void outcome_release(struct outcome *outcome) {
    json_decref(outcome->result);
    free(outcome->text);
    *outcome = (struct outcome){0};
}

static void report_refused(const struct publisher *publisher, int64_t run, const char *why,
                           struct outcome *outcome) {
    outcome_set(outcome, ERROR_DATA,
                memory_format("run %lld is refused: %s; it does not go live, and "
                              "%s/models/%lld can be looked at",
                              (long long)run, why, publisher->state, (long long)run));
}

static void report_kept(const struct publisher *publisher, int64_t run, const char *why,
                        struct outcome *outcome) {
    char *state = shell_word(publisher->state);
    char *how = memory_format("dml-coordinator publish %lld %s", (long long)run, state);
    outcome_set(
        outcome, 0,
        memory_format("run %lld is not live: %s; `%s` makes it live", (long long)run, why, how));
    json_object_set_new(outcome->result, "to_publish", text_to_json(how));
    free(how);
    free(state);
}

/* What the result says of the decision. */
static void note_decision(struct outcome *outcome, enum decision decision, const char *why) {
    json_object_set_new(outcome->result, "published", json_boolean(decision_makes_live(decision)));
    json_object_set_new(outcome->result, "decision", json_string(decision_text(decision)));
    json_object_set_new(outcome->result, "decision_why", text_to_json(why));
}

/* That on_publish failed does not undo the publication, and the command goes on with its other
 * work. */
int gate_settle(const struct publisher *publisher, enum decision decision, int64_t run,
                const char *why, struct outcome *outcome) {
    assert(run > 0);
    int code = publish_decide(publisher, decision, run, why);
    if (!code)
        code = publish_settle(publisher);
    if (code && code != ERROR_UNAVAILABLE)
        return code;
    note_decision(outcome, decision, why);
    if (decision == DECISION_REFUSED) {
        report_refused(publisher, run, why, outcome);
    } else if (decision == DECISION_KEPT) {
        report_kept(publisher, run, why, outcome);
    } else if (code) {
        outcome_set(outcome, code, memory_copy_string(error_text()));
        error_clear();
    } else {
        outcome_set(outcome, 0, memory_format("published run %lld: %s", (long long)run, why));
        log_info("%s", outcome->text);
    }
    return 0;
}

void gate_recall(const struct publisher *publisher, enum decision decision, int64_t run,
                 struct outcome *outcome) {
    const char *why = "an earlier command had decided it";
    note_decision(outcome, decision, why);
    if (decision == DECISION_REFUSED)
        report_refused(publisher, run, why, outcome);
    else if (decision == DECISION_KEPT)
        report_kept(publisher, run, why, outcome);
}

int gate_decide(const struct publisher *publisher, const struct job *job,
                const struct holdout *holdout, const struct score_figures *figures, int64_t run,
                struct outcome *outcome) {
    struct gate_trial trial = {.job = job,
                               .holdout = holdout,
                               .new_folder = run_model_folder(publisher->state, run),
                               .live_folder = publish_live_folder(publisher->state),
                               .figures = figures,
                               .conditions = json_array()};
    int code = loop_beside(publisher->loop, STAGE_GATE, work_on_trial, &trial);
    progress_close();
    if (!code) {
        if (trial.of_new)
            json_object_set(outcome->result, "holdout", trial.of_new);
        if (trial.of_live)
            json_object_set(outcome->result, "holdout_live", trial.of_live);
        json_object_set(outcome->result, "gate", trial.conditions);
        code = gate_settle(publisher, trial.holds ? DECISION_PUBLISHED : DECISION_REFUSED, run,
                           trial.why, outcome);
    }
    json_decref(trial.conditions);
    json_decref(trial.of_new);
    json_decref(trial.of_live);
    free(trial.why);
    free(trial.new_folder);
    free(trial.live_folder);
    return code;
}
