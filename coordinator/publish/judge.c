#include "coordinator/publish/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/gate.h"

static int score_opened(const struct holdout *holdout, const struct model *model,
                        const char *objective, struct score_figures *figures) {
    if (objective && strcmp(model->layout.objective, objective))
        return error_set(ERROR_DATA, "its objective is %s, not %s", model->layout.objective,
                         objective);
    return holdout_score(holdout, model, figures);
}

/* `objective` is the one that the model must have; NULL: any. */
static int score(const struct holdout *holdout, const char *folder, const char *objective,
                 struct score_figures *figures) {
    struct model *model = NULL;
    int code = model_open(folder, &model);
    if (!code)
        code = score_opened(holdout, model, objective, figures);
    model_close(model);
    return code;
}

/* A live model with another objective is not scored: losses of different objectives cannot be
 * compared. */
static void score_live(const struct trial *trial, struct judgement *judgement,
                       struct score_figures *figures) {
    const char *objective = objective_name(trial->job->objective);
    if (score(trial->holdout, trial->live, objective, figures)) {
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
    return trial->figures ? 0 : score(trial->holdout, trial->new, NULL, figures);
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
