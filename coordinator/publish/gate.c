#include "coordinator/publish/gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/gate.h"
#include "coordinator/run/loop.h"

static int score(const struct holdout *holdout, const char *folder, struct score_figures *figures) {
    struct model *model = NULL;
    int code = model_open(folder, &model);
    if (!code)
        code = holdout_score(holdout, model, figures);
    model_close(model);
    return code;
}

/* A live model with another objective is not scored: losses of different objectives cannot be
 * compared. Those of one objective can, with the same parameters: the new model's. */
static int score_alike(const struct holdout *holdout, struct model *live, const struct model *new,
                       struct score_figures *figures) {
    if (strcmp(live->layout.objective, new->layout.objective))
        return error_set(ERROR_DATA, "its objective is %s, not %s", live->layout.objective,
                         new->layout.objective);
    live->layout.loss = new->layout.loss;
    return holdout_score(holdout, live, figures);
}

static int open_and_score(const struct trial *trial, struct score_figures *figures) {
    struct model *live = NULL, *new = NULL;
    int code = model_open(trial->live, &live);
    if (!code)
        code = model_open(trial->new, &new);
    if (!code)
        code = score_alike(trial->holdout, live, new, figures);
    model_close(live);
    model_close(new);
    return code;
}

static void score_live(const struct trial *trial, struct judgement *judgement,
                       struct score_figures *figures) {
    if (open_and_score(trial, figures)) {
        log_error("the live model %s cannot be compared with: %s", trial->live, error_text());
        error_clear();
        *figures = score_no_figures(); /* no condition holds for them */
    } else {
        judgement->live = score_figures_json(figures);
    }
}

static void append(char **why, char *more) {
    char *all = *why ? memory_format("%s; %s", *why, more) : memory_copy_string(more);
    free(*why);
    free(more);
    *why = all;
}

/* All conditions must hold. If some do not, `why` names only those. */
static void apply_gate(const struct job *job, const struct score_figures *new,
                       const struct score_figures *live, struct judgement *judgement) {
    char *good = NULL, *bad = NULL;
    for (char **text = job->gate; *text; text++) {
        struct gate_outcome outcome = gate_judge(*text, new, live);
        json_array_append_new(judgement->gate, gate_outcome_json(&outcome));
        append(outcome.holds ? &good : &bad, gate_explain(&outcome));
    }
    judgement->holds = !bad;
    judgement->why = bad ? bad : good ? good : memory_copy_string("there is no gate");
    if (bad)
        free(good);
}

/* The figures of the new model. After a crash they are not known and computed again, into
 * `figures`. */
static int score_new(const struct trial *trial, struct score_figures *figures,
                     const struct score_figures **known) {
    *known = trial->figures ? trial->figures : figures;
    return trial->figures ? 0 : score(trial->holdout, trial->new, figures);
}

int judge(const struct trial *trial, struct judgement *judgement) {
    struct score_figures computed = score_no_figures(), of_live = score_no_figures();
    const struct score_figures *of_new = &computed;
    *judgement = (struct judgement){.gate = json_array()};
    int code = trial->holdout ? score_new(trial, &computed, &of_new) : 0;
    if (code)
        return code;
    if (trial->holdout)
        judgement->new = score_figures_json(of_new);
    if (trial->holdout && trial->live)
        score_live(trial, judgement, &of_live);
    apply_gate(trial->job, of_new, trial->live ? &of_live : NULL, judgement);
    score_figures_release(&computed);
    score_figures_release(&of_live);
    return 0;
}

void judgement_release(struct judgement *judgement) {
    free(judgement->why);
    json_decref(judgement->gate);
    json_decref(judgement->new);
    json_decref(judgement->live);
    *judgement = (struct judgement){0};
}

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

static void add_figures(json_t *result, const struct judgement *judgement) {
    if (judgement->new)
        json_object_set(result, "holdout", judgement->new);
    if (judgement->live)
        json_object_set(result, "holdout_live", judgement->live);
    json_object_set(result, "gate", judgement->gate);
    json_object_set_new(result, "published", json_boolean(judgement->holds));
}

/* `announced` is the result of on_publish. A failure of it does not undo the publication, and the
 * command goes on with its other work. */
static void note_published(struct outcome *outcome, int64_t run, const char *why, int announced) {
    if (announced) {
        outcome_set(outcome, announced, memory_copy_string(error_text()));
        error_clear();
    } else {
        outcome_set(outcome, 0, memory_format("published run %lld: %s", (long long)run, why));
        log_info("%s", outcome->text);
    }
}

static void note_refused(struct outcome *outcome, const char *state, int64_t run, const char *why) {
    outcome_set(outcome, ERROR_DATA,
                memory_format("run %lld is refused: %s; the live model stays, and %s/models/%lld "
                              "can be looked at",
                              (long long)run, why, state, (long long)run));
}

static int settle(const struct publisher *publisher, int64_t run, const struct judgement *judgement,
                  struct outcome *outcome) {
    enum decision decision = judgement->holds ? DECISION_PUBLISHED : DECISION_REFUSED;
    int code = publish_decide(publisher, decision, run, judgement->why);
    if (!code)
        code = publish_settle(publisher);
    if (code && code != ERROR_UNAVAILABLE)
        return code;
    if (judgement->holds)
        note_published(outcome, run, judgement->why, code);
    else
        note_refused(outcome, publisher->state, run, judgement->why);
    return 0;
}

struct judging {
    struct trial trial;
    struct judgement judgement;
};

static int work_on_judgement(void *context) {
    struct judging *judging = context;
    return judge(&judging->trial, &judging->judgement);
}

int outcome_decide(const struct publisher *publisher, const struct job *job,
                   const struct holdout *holdout, const struct score_figures *figures, int64_t run,
                   struct outcome *outcome) {
    char *new_folder = publish_folder(publisher->state, run);
    char *live_folder = publish_live_folder(publisher->state);
    struct judging judging = {.trial = {.job = job,
                                        .holdout = holdout,
                                        .new = new_folder,
                                        .live = live_folder,
                                        .figures = figures}};
    int code = loop_beside(publisher->loop, STAGE_JUDGING, work_on_judgement, &judging);
    progress_close();
    if (!code) {
        add_figures(outcome->result, &judging.judgement);
        code = settle(publisher, run, &judging.judgement, outcome);
    }
    judgement_release(&judging.judgement);
    free(new_folder);
    free(live_folder);
    return code;
}
