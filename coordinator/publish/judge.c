#include "coordinator/publish/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/gate.h"

#define OBJECTIVE_TEXT 32

static int score(const struct holdout *holdout, const char *folder, struct score_figures *figures,
                 char objective[OBJECTIVE_TEXT]) {
    struct model *model = NULL;
    int code = model_open(folder, &model);
    if (!code)
        code = holdout_score(holdout, model, figures);
    if (!code)
        snprintf(objective, OBJECTIVE_TEXT, "%s", model->layout.objective);
    model_close(model);
    return code;
}

/* Figures that no condition can be fulfilled with. */
static const struct score_figures nothing = {.loss = NAN, .accuracy = NAN, .auc = NAN, .rmse = NAN};

/* Losses of different objectives are no measure of one another. */
static void score_live(const struct holdout *holdout, const char *folder, const char *objective,
                       struct judgement *judgement, struct score_figures *figures) {
    char of_live[OBJECTIVE_TEXT];
    if (score(holdout, folder, figures, of_live)) {
        log_error("the live model cannot be compared with: %s", error_text());
        error_clear();
        *figures = nothing;
    } else if (strcmp(of_live, objective)) {
        log_error("the live model %s has another objective and cannot be compared with", folder);
        *figures = nothing;
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

/* All conditions must hold; if one does not, only those that do not are told. */
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

int judge(const struct job *job, const struct holdout *holdout, const char *new, const char *live,
          struct judgement *judgement) {
    struct score_figures of_new = nothing, of_live = nothing;
    char objective[OBJECTIVE_TEXT] = "";
    *judgement = (struct judgement){.gate = json_array()};
    int code = holdout ? score(holdout, new, &of_new, objective) : 0;
    if (code)
        return code;
    if (holdout)
        judgement->new = score_figures_json(&of_new);
    if (holdout && live)
        score_live(holdout, live, objective, judgement, &of_live);
    apply_gate(job, &of_new, live ? &of_live : NULL, judgement);
    return 0;
}

void judgement_release(struct judgement *judgement) {
    free(judgement->why);
    json_decref(judgement->gate);
    json_decref(judgement->new);
    json_decref(judgement->live);
    *judgement = (struct judgement){0};
}
