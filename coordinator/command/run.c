/* `run`: trains the model of a job file and makes it live. */
#include "base/clock.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/run/progress.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/shortfall.h"
#include "coordinator/run/showing.h"
#include "coordinator/run/training.h"
#include "coordinator/run/workers.h"
#include "numeric/setup.h"

/* A killed command may have left a publication unsettled. That is settled first, because a run may
 * take long. */
static int train(struct training *training, struct dataset *data) {
    struct publisher publisher = {.store = training->store,
                                  .loop = &training->loop,
                                  .state = training->job->state,
                                  .job = training->job->name,
                                  .on_publish = training->job->on_publish};
    int code = publish_settle_earlier(&publisher);
    if (!code)
        code = workers_prepare(training);
    if (!code)
        code = training_read(training, data);
    if (!code)
        code = training_run(training, data, data->set);
    if (!code)
        code = training_conclude(training);
    if (code)
        return code;
    code = publish_decide(&publisher, DECISION_PUBLISHED, training->recorder.run,
                          "`run` publishes without a gate");
    if (!code)
        code = publish_settle(&publisher);
    result_show(training->result, training->options->json, training->options->cron);
    shortfall_log(training->result);
    showing_last(training);
    return code ? code : shortfall_strict(training->result, training->options->strict);
}

int command_run(const struct options *options) {
    if (options->dry_run)
        return command_check(options);
    struct training training = {.options = options,
                                .command = "run",
                                .start_from = options->start,
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
