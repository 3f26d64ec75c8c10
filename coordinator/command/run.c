/* `run`: trains the model of a job file and makes it live. */
#include "base/clock.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/run/progress.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/sets.h"
#include "coordinator/run/shortfall.h"
#include "coordinator/run/showing.h"
#include "coordinator/run/training.h"
#include "coordinator/run/workers.h"
#include "coordinator/sweep/sweep.h"
#include "numeric/setup.h"

/* What is made live, and why. */
struct chosen {
    int64_t run;
    const char *why;
    json_t *result;
};

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
    int code = publish_decide(publisher, DECISION_PUBLISHED, chosen->run, chosen->why);
    if (!code)
        code = publish_settle(publisher);
    result_show(chosen->result, options->json, options->cron);
    shortfall_log(chosen->result);
    showing_last(training);
    return code ? code : shortfall_strict(chosen->result, options->strict);
}

/* A killed command may have left a publication unsettled. That is settled first, because a run may
 * take long. */
static int train(struct training *training, struct dataset *data) {
    struct chosen chosen = {0};
    struct publisher publisher = {.store = training->store,
                                  .loop = &training->loop,
                                  .state = training->job->state,
                                  .job = training->job->name,
                                  .on_publish = training->job->on_publish};
    int code = publish_settle_earlier(&publisher);
    if (!code)
        code = workers_prepare(training);
    if (!code)
        code = training_read(training, training->options->start, data);
    if (!code)
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
