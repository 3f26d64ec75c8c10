/* `run`: trains the model of a job file and makes it live. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/command/command.h"
#include "coordinator/command/last_run.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/convergence.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/sets.h"
#include "coordinator/run/training.h"
#include "coordinator/sweep/sweep.h"
#include "numeric/setup.h"

/* What is made live, and why. */
struct chosen {
    int64_t run;
    const char *why;
    json_t *result;
    bool decided; /* that it goes live */
};

static bool is_of_data(const struct last_run *last, const struct dataset *data) {
    char *judged = sweep_judged_by(data);
    bool same = !strcmp(last->data, set_info(data->set)->fingerprint) &&
                (!last->judged || !strcmp(last->judged, judged));
    free(judged);
    return same;
}

/* A command that was cut off after its training is not to train again when it is repeated: it has
 * chosen its model. `settled` is the decision that was completed just now. */
static int choose_ended(const struct training *training, const struct dataset *data,
                        const struct history_item *settled, struct chosen *chosen) {
    struct last_run last = {0};
    struct job *job = training->job;
    if (training->options->fresh || training->options->start)
        return 0;
    struct sweep_shape shape = sweep_shape_of(job);
    char *identity = job_identity(job);
    int code = last_run_read(training->store, job->state, identity,
                             job_has_sweep(job) ? &shape : NULL, &last);
    bool decided = settled->publication && settled->run == last.run;
    if (!code && last.run && last.concluded && last.over && (!last.decided || decided) &&
        is_of_data(&last, data)) {
        log_info("run %lld had ended when an earlier command was cut off: %s; --fresh trains anew",
                 (long long)last.run, decided ? "nothing is left to do" : "its model goes live");
        *chosen = (struct chosen){.run = last.run,
                                  .why = "`run` publishes without a gate",
                                  .result = json_loads(last.result ? last.result : "{}", 0, NULL),
                                  .decided = decided};
    }
    last_run_release(&last);
    free(identity);
    return code;
}

static int train_one(struct training *training, const struct dataset *data, struct chosen *chosen) {
    training->start_from = training->options->start;
    int code = training_run(training, data, data->set);
    if (!code)
        code = training_conclude(training);
    *chosen = (struct chosen){.run = training->recorder.run,
                              .why = "`run` publishes without a gate",
                              .result = json_incref(training->result)};
    return code;
}

static int train_many(struct training *training, const struct dataset *data,
                      struct chosen *chosen) {
    const struct options *options = training->options;
    struct sweep_outcome outcome;
    int code = sweep_train(training, data, options->start, options->fresh, &outcome);
    *chosen = (struct chosen){.run = outcome.winner,
                              .why = "the best of its sweep; `run` publishes without a gate",
                              .result = outcome.result};
    return code;
}

static int publish(struct training *training, const struct publisher *publisher,
                   const struct chosen *chosen) {
    const struct options *options = training->options;
    assert(chosen->run > 0);
    int code = chosen->decided
                   ? 0
                   : publish_decide(publisher, DECISION_PUBLISHED, chosen->run, chosen->why);
    if (!code && !chosen->decided)
        code = publish_settle(publisher);
    result_show(chosen->result, options->json, options->cron);
    not_converged_log(chosen->result);
    status_last(training);
    return code ? code : not_converged_strict(chosen->result, options->strict);
}

/* A killed command may have left a publication unsettled. That is settled first, because a run may
 * take long. */
static int train(struct training *training, struct dataset *data) {
    struct chosen chosen = {0};
    struct history_item settled = {0};
    struct publisher publisher = {.store = training->store,
                                  .loop = &training->loop,
                                  .state = training->job->state,
                                  .job = training->job->name,
                                  .on_publish = training->job->on_publish};
    int code = publish_settle_earlier(&publisher, &settled);
    if (!code)
        code = workers_prepare(training);
    if (!code)
        code = training_read(training, training->options->start, data);
    if (!code)
        code = choose_ended(training, data, &settled, &chosen);
    if (!code && !chosen.run)
        code = (job_has_sweep(training->job) ? train_many : train_one)(training, data, &chosen);
    if (!code)
        code = publish(training, &publisher, &chosen);
    if (!code)
        code = sets_keep(&training->loop, training->job->state, set_info(data->set)->fingerprint,
                         training->job->keep_sets);
    json_decref(chosen.result);
    return code;
}

int command_run(const struct options *options) {
    if (options->dry_run)
        return command_check(options);
    struct training training = {.options = options,
                                .command = "run",
                                .lock = -1,
                                .started_ns = clock_monotonic_ns(),
                                .started_ms = clock_wall_ms()};
    struct dataset data = {0};
    numeric_setup();
    int code = memory_suffices();
    if (!code)
        code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &training.job);
    if (code)
        return code;
    progress_open(!options->quiet);
    code = training_open(&training);
    if (!code)
        code = train(&training, &data);
    training_release(&training, code);
    dataset_release(&data);
    training_close(&training);
    return code;
}
