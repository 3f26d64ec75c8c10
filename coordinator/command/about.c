/* What `COMMAND --help` says of each command beside its options. */
#include <string.h>

#include "coordinator/command/command.h"

/* clang-format off */
static const struct {
    const char *command, *text;
} about[] = {
    {"run",
     "Reads the job file, packs the data, trains, and writes the model into STATE/models,\n"
     "where it is live as soon as it is whole. A run that did not come to its end goes on\n"
     "when the same command is given again. The result is printed as a table, or with --json\n"
     "as an object.\n"
     "Ends with 0, 1 (--strict: not converged), 65 (bad data), 75 (stopped, or another is\n"
     "at work), 78 (bad job file).\n"
     "\n"
     "  dml-coordinator run adult.conf --set l2=1e-4\n"},
    {"retrain",
     "For every night: finishes what is unfinished, and if the data has changed since,\n"
     "trains from the live model and makes the new one live if `gate` holds on `holdout`.\n"
     "Without new data nothing is done. See dml-retrain(7).\n"
     "Ends with 0, 65 (refused by the gate, or bad data), 69 (on_publish failed), 75\n"
     "(stopped, or another is at work).\n"
     "\n"
     "  15 2 * * *  dml-coordinator retrain --cron /srv/model/nightly.conf\n"},
    {"rollback",
     "The version before the live one, or that of --to, is live at once, and on_publish is\n"
     "run. A version that was rolled back from is not gone back to.\n"
     "\n"
     "  dml-coordinator rollback nightly.state --to 8\n"},
    {"check",
     "Starts nothing. What it prints is a job file with every key that is set; those that a\n"
     "job file may set are listed below.\n"
     "Ends with 0, or 78 with the place of what is wrong.\n"},
    {"status",
     "Asks the coordinator of a live run, else the state folder: step, loss, gradient,\n"
     "progress of the evaluation, and every process. Without an operand it is about the\n"
     "*.state folder here.\n"},
    {"jobs",
     "When, how long, why they ended, figures and models. A * stands behind the run whose\n"
     "model is live, a ! behind one that the gate refused. Without an operand it is about\n"
     "all *.state folders here.\n"},
    {"pack",
     "What `run` does first: reads the text and writes it in binary below STATE/packs, for\n"
     "this and all later runs. A pack is used until its source changes.\n"},
    {"inspect",
     "Rows, features, values, labels and columns of a *.pack or *.set file in STATE/packs.\n"},
    {"cancel",
     "The run ends at its next durable step, with all processes that it started, and writes\n"
     "no model; `run` goes on from there.\n"},
    {"predict",
     "The probability of the positive class, the probability of each class, or the value.\n"
     "MODEL is a folder below STATE/models, a model.safetensors, or STATE itself for its\n"
     "latest model. DATA is written as the training data was; labels may be missing.\n"
     "\n"
     "  dml-coordinator predict adult.state new.csv > predictions.txt\n"},
    {"evaluate",
     "Loss, and accuracy, AUC or RMSE as the objective has them. MODEL is a folder below\n"
     "STATE/models, a model.safetensors, or STATE itself for its latest model. DATA is\n"
     "written as the training data was. A label that training never saw counts as wrong and\n"
     "is reported.\n"},
    {"export",
     "For LIBLINEAR's predict, as a table with a line a weight (tsv), or as one object\n"
     "(json).\n"
     "\n"
     "  dml-coordinator export adult.state --format tsv | sort -k2 -g | tail\n"},
    {"complete",
     "Prints what may stand in place of the last WORD of a command line: whole words, or\n"
     "@jobs, @folders, @files for paths of that kind. The completion of bash asks this.\n"},
};
/* clang-format on */

const char *command_about(const char *command) {
    for (size_t i = 0; i < sizeof about / sizeof about[0]; i++)
        if (strcmp(about[i].command, command) == 0)
            return about[i].text;
    return "";
}
