/* `run`: from a job file to a model. */
#include "base/clock.h"
#include "coordinator/command.h"
#include "coordinator/progress.h"
#include "coordinator/training.h"
#include "numeric/setup.h"

int command_run(const struct options *options) {
    if (options->dry_run)
        return command_check(options);
    struct training training = {.options = options,
                                .command = "run",
                                .start_from = options->start,
                                .lock = -1,
                                .started_ns = clock_monotonic_ns(),
                                .started_ms = clock_wall_ms()};
    numeric_setup();
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &training.job);
    if (code)
        return code;
    progress_open(!options->quiet);
    code = training_run(&training);
    if (!code)
        code = training_conclude(&training);
    training_release(&training, code);
    return code;
}
