/* The text of `COMMAND --help` above its options. */
#include <string.h>

#include "coordinator/command/command.h"

/* clang-format off */
static const struct {
    const char *command, *text;
} about[] = {
    {"run",
     "Reads the job file, packs the data, trains, and writes the model into STATE/models.\n"
     "The model is live as soon as it is written. An unfinished run goes on when the same\n"
     "command is given again. The result is printed as a table, or with --json as an object.\n"
     "Exit status: 0, 1 (--strict: not converged), 65 (bad data), 75 (stopped, or another\n"
     "coordinator is running), 78 (bad job file).\n"
     "\n"
     "  dml-coordinator run adult.conf --set l2=1e-4\n"},
    {"retrain",
     "Run it every night. It finishes an unfinished run. Then, if the data has changed, it\n"
     "trains from the live model, and makes the new model live if `gate` holds on `holdout`.\n"
     "Without new data it does nothing. See dml-retrain(7).\n"
     "Exit status: 0, 1 (--strict: not converged), 65 (refused by the gate, or bad data),\n"
     "69 (on_publish failed), 75 (stopped, or another coordinator is running).\n"
     "\n"
     "  15 2 * * *  dml-coordinator retrain --cron /srv/model/nightly.conf\n"},
    {"rollback",
     "Makes the version before the live one, or that of --to, live at once, and runs\n"
     "on_publish. It never goes back to a version that was rolled back before.\n"
     "\n"
     "  dml-coordinator rollback nightly.state --to 8\n"},
    {"check",
     "Starts nothing. It prints a job file with every key that is set. All keys that a job\n"
     "file may set are listed below.\n"
     "Exit status: 0, 65 (a data file is missing), 78 (bad job file).\n"},
    {"status",
     "Shows step, loss, gradient, progress of the evaluation, and every process. Asks the\n"
     "coordinator of a live run; if there is none, reads the state folder. Without an operand\n"
     "it takes the *.state folder in the current folder.\n"},
    {"jobs",
     "Shows when each run began, how long it took, why it ended, its figures and its model.\n"
     "A * marks the run whose model is live, a ! a run whose model the gate refused. Lines\n"
     "below a run tell what it changed against the one before. Without an operand it takes\n"
     "all *.state folders in the current folder.\n"
     "\n"
     "  dml-coordinator jobs adult.state --sort auc\n"},
    {"prune",
     "Removes models beyond `keep_models`, and packs, sets, checkpoints and half-written files\n"
     "that neither the newest run of a job, nor an unfinished run, nor the live model, nor a\n"
     "rollback needs. Says what and how much; the record of runs stays. Without an operand it\n"
     "takes all *.state folders in the current folder.\n"
     "\n"
     "  dml-coordinator prune --dry-run adult.state\n"},
    {"pack",
     "Does what `run` does first: reads the text and writes it in binary below STATE/packs,\n"
     "for all later runs. A pack is used until its source changes.\n"},
    {"inspect",
     "Shows rows, features, values, labels and columns of a *.pack or *.set file of\n"
     "STATE/packs.\n"},
    {"cancel",
     "The run makes its last step durable and ends, with all processes that it started. It\n"
     "writes no model. `run` goes on from that step.\n"},
    {"predict",
     "Prints the probability of the positive class, the probability of each class, the\n"
     "value, or the margin, as the objective has it. MODEL is a folder below STATE/models, a\n"
     "model.safetensors, or STATE itself for its live model. DATA has the format of the\n"
     "training data; labels may be missing. DATA may be a pipe, and - for standard input.\n"
     "Without -o, predictions go to standard output; with it to a file, when all are there.\n"
     "\n"
     "  dml-coordinator predict adult.state new.csv --labels -o labels.txt\n"
     "  zcat new.csv.gz | dml-coordinator predict adult.state -\n"},
    {"evaluate",
     "Prints the loss, and every figure that the objective has: of classes also a line a\n"
     "class, and the confusion matrix. MODEL is a folder below STATE/models, a\n"
     "model.safetensors, or STATE itself for its live model. DATA has the format of the\n"
     "training data, and may be - for standard input. A label that was not in the training\n"
     "data counts as wrong and is reported.\n"},
    {"export",
     "Writes a model file of LIBLINEAR, a table with a line for each weight (tsv), or one\n"
     "object (json); with --top, a list of the heaviest weights for people. Linear models\n"
     "only: no weight of a network says by itself what a feature adds.\n"
     "\n"
     "  dml-coordinator export adult.state --top 20\n"},
    {"serve",
     "Shows browsers the page of the status server for state folders in which no run needs to\n"
     "be alive: curves, figures, confusion matrices, earlier runs. It holds no lock: runs may\n"
     "begin meanwhile, and are shown. Ctrl-C ends it. Without an operand it takes all *.state\n"
     "folders in the current folder.\n"
     "\n"
     "  dml-coordinator serve --http 127.0.0.1:8080 /srv/models/*.state\n"},
    {"report",
     "Writes the page that `serve` shows of a state folder into one HTML file, which needs no\n"
     "server and loads nothing: to mail it, or to keep it with a model.\n"
     "\n"
     "  dml-coordinator report adult.state -o adult.html\n"},
    {"complete",
     "Prints the possible completions of the last WORD of a command line: whole words, or\n"
     "@jobs, @folders, @files for paths of that kind. The completion of bash calls it.\n"},
};
/* clang-format on */

const char *command_about(const char *command) {
    for (size_t i = 0; i < sizeof about / sizeof about[0]; i++)
        if (strcmp(about[i].command, command) == 0)
            return about[i].text;
    return "";
}
