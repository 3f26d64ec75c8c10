#include "config.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "coordinator/command/command.h"
#include "coordinator/run/loop.h"
#include "wire/peer.h"

/* clang-format off */
static const struct command commands[] = {
    {"init", command_init, "TABLE", 1, 1, OPTION_SET | OPTION_OUTPUT, false,
     "writes a job file for a table, with comments that describe it"},
    {"run", command_run, "JOBFILE", 1, 1,
     OPTION_OF_JOB | OPTION_DRY_RUN | OPTION_FRESH | OPTION_START | OPTION_STRICT | OPTION_WAIT |
         OPTION_PUBLISH | OPTION_NO_PUBLISH | OPTION_LABEL,
     false,
     "trains a model"},
    {"retrain", command_retrain, "JOBFILE", 1, 1,
     OPTION_OF_JOB | OPTION_CRON | OPTION_FRESH | OPTION_STRICT | OPTION_WAIT | OPTION_LABEL, false,
     "for cron: trains on new data and publishes what the gate accepts"},
    {"publish", command_publish, "RUN [JOBFILE or STATE]", 1, 2,
     OPTION_OF_JOB | OPTION_NO_PUBLISH | OPTION_FORCE | OPTION_LABEL, false,
     "makes the model of a run live"},
    {"rollback", command_rollback, "[JOBFILE or STATE]", 0, 1, OPTION_OF_JOB | OPTION_TO, false,
     "makes the previous version live again"},
    {"check", command_check, "JOBFILE", 1, 1, OPTION_OF_JOB | OPTION_GRADIENT, true,
     "checks a job file and its data's paths, prints the settings"},
    {"status", command_status, "[JOBFILE or STATE]", 0, 1, OPTION_OF_JOB | OPTION_WATCH, false,
     "the live or last state of a job"},
    {"jobs", command_jobs, "[JOBFILE or STATE...]", 0, INT_MAX,
     OPTION_OF_JOB | OPTION_SORT | OPTION_FOLDS | OPTION_DIFF, false,
     "the runs so far"},
    {"metrics", command_metrics, "[JOBFILE or STATE...]", 0, INT_MAX,
     OPTION_OF_JOB | OPTION_OUTPUT, false,
     "the live models and refusals for Prometheus"},
    {"prune", command_prune, "[JOBFILE or STATE...]", 0, INT_MAX,
     OPTION_OF_JOB | OPTION_DRY_RUN, false,
     "removes from state folders what is no longer needed"},
    {"pack", command_pack, "JOBFILE", 1, 1, OPTION_OF_JOB, false,
     "packs the data and trains nothing"},
    {"inspect", command_inspect, "PACK", 1, 1, 0, false,
     "shows the contents of a pack or a set"},
    {"cancel", command_cancel, "[JOBFILE or STATE]", 0, 1, OPTION_OF_JOB, false,
     "stops a live run where it can be resumed"},
    {"predict", command_predict, "MODEL DATA...", 2, INT_MAX,
     OPTION_SET | OPTION_SHOWN | OPTION_OUTPUT, false,
     "prints a prediction for each example"},
    {"evaluate", command_evaluate, "MODEL DATA...", 2, INT_MAX, OPTION_SET | OPTION_CURVES, false,
     "loss and accuracy of a model on labelled data"},
    {"summary", command_summary, "MODEL", 1, 1, OPTION_ERRORS, false,
     "estimates with errors and tests, and how well the model fits"},
    {"export", command_export, "MODEL", 1, 1, OPTION_FORMAT | OPTION_OUTPUT | OPTION_TOP, false,
     "a model in the format of another program"},
    {"serve", command_serve, "[JOBFILE or STATE...]", 0, INT_MAX,
     OPTION_OF_JOB | OPTION_HTTP, false,
     "shows the page of runs that have ended, for browsers"},
    {"report", command_report, "[JOBFILE or STATE]", 0, 1, OPTION_OF_JOB | OPTION_OUTPUT, false,
     "writes that page as one HTML file"},
    {"explain-row", command_explain_row, "MODEL", 1, 1, 0, false, NULL},
    {"complete", command_complete, "-- WORD...", 0, INT_MAX, 0, false,
     "possible last words, for shell completion"},
    {0},
};
/* clang-format on */

static enum log_level level(const struct options *options) {
    if (options->verbose)
        return LOG_DEBUG;
    if (options->cron)
        return LOG_ERROR;
    return options->quiet ? LOG_WARNING : LOG_INFO;
}

static void print_help(const struct options *options) {
    const struct command *command = options->command;
    if (command)
        options_print_command(command, command_about(command->name), stdout);
    else
        options_print_usage(commands, stdout);
}

/* Every command can be given these, so that a script gives all of its commands the same. */
static void warn_of_no_effect(const struct options *options) {
    const struct command *command = options->command;
    if (options->state && !(command->takes & OPTION_STATE))
        log_warning("`--state %s` has no effect: `%s` finds no state folder by it", options->state,
                    command->name);
    if (options->settings_count && !(command->takes & OPTION_SET))
        log_warning("`--set %s` has no effect: `%s` reads no job file", options->settings[0],
                    command->name);
}

/* Whether what was done is not lost when the command is ended, as the same one goes on from it. */
static bool goes_on(const struct options *options) {
    const struct command *command = options->command;
    return command && (command->run == command_run || command->run == command_retrain ||
                       command->run == command_publish || command->run == command_rollback);
}

/* DML_PARENT is the process that started this one and must not be outlived, as an interpreter of
 * Python that calls this program: when its thread ends, this process stops as by SIGTERM. Commands
 * that this one starts are not meant. */
static void end_with_parent(void) {
    const char *parent = getenv("DML_PARENT");
    if (!parent)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != (pid_t)atol(parent)) /* it has ended already */
        raise(SIGTERM);
    unsetenv("DML_PARENT");
}

int main(int argc, char **argv) {
    struct options options;
    loop_signals_early(true);
    int begun = process_begin();
    file_name_bus_errors();
    int code = options_parse(argc, argv, commands, &options);
    if (begun)
        code = begun;
    loop_signals_early(!code && goes_on(&options));
    end_with_parent();
    if (!code)
        code = failpoint_setup("coordinator", message_failpoints, MESSAGE_FAILPOINTS);
    log_open("coordinator", level(&options));
    if (!code && options.version)
        puts(PACKAGE_STRING);
    else if (!code && options.list_failpoints)
        failpoint_list(stdout);
    else if (!code && options.help)
        print_help(&options);
    else if (!code) {
        warn_of_no_effect(&options);
        code = options.command->run(&options);
    }
    code = process_end(code);
    if (code && error_text()[0])
        fprintf(stderr, "dml-coordinator: %s\n", error_text());
    options_release(&options);
    return -code;
}
