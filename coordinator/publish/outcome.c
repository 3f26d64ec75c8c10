#include "coordinator/publish/outcome.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/publish/judge.h"
#include "coordinator/run/progress.h"

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
