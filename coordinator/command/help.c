/* What helps to write a command line: the text of `COMMAND --help` above its options, and
 * `complete`.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/command/command.h"
#include "coordinator/job/key.h"
#include "model/score.h"

/* clang-format off */
static const struct {
    const char *command, *text;
} about[] = {
    {"run",
     "Reads the job file, packs the data, trains, and writes the model into STATE/models.\n"
     "The first model of a state folder is live as soon as it is written. Over a live model the\n"
     "`gate` of the job decides; without a gate the new model is kept, and the result says how\n"
     "to make it live. The same command resumes an unfinished run. The\n"
     "result is printed as a table, or with --json as an object.\n"
     "Exit status: 0, 1 (--strict: not converged), 65 (bad data, or refused by the gate), 75\n"
     "(stopped, or another coordinator is running), 78 (bad job file).\n"
     "\n"
     "  dml-coordinator run adult.conf --set l2=1e-4\n"},
    {"retrain",
     "Run it every night. It finishes an unfinished run. Then, if the data has changed, it\n"
     "trains from the live model, and makes the new model live if `gate` holds on `holdout`.\n"
     "Without new data it only reports an earlier refusal by the gate. See dml-retrain(7).\n"
     "Exit status: 0, 1 (--strict: not converged), 65 (refused by the gate, or bad data),\n"
     "69 (on_publish failed), 75 (stopped, or another coordinator is running).\n"
     "\n"
     "  15 2 * * *  dml-coordinator retrain --cron /srv/model/nightly.conf\n"},
    {"publish",
     "Makes the model of a run live, which is named by its number or its tag as `jobs` shows\n"
     "them, and runs on_publish. A model that the gate refused needs --force. With --no-publish\n"
     "it only gives the run a tag or a note. With --set threshold=RULE (and cost.*) the model\n"
     "goes live with another threshold, without training, as that of a run of its own.\n"
     "Exit status: 0, 65 (the gate refused it), 69 (no such model, or on_publish failed), 75\n"
     "(another command works in the folder).\n"
     "\n"
     "  dml-coordinator publish 8 nightly.state --tag spring\n"
     "  dml-coordinator publish 8 nightly.state --set 'threshold=recall >= 0.9'\n"},
    {"rollback",
     "Makes the version before the live one, or that of --to, live at once, and runs\n"
     "on_publish. It never goes back to a version that was rolled back before.\n"
     "\n"
     "  dml-coordinator rollback nightly.state --to 8\n"},
    {"check",
     "Starts nothing. It prints the settings in effect as a job file. All keys of a job\n"
     "file are listed below.\n"
     "Exit status: 0, 65 (a data file is missing), 78 (bad job file).\n"},
    {"status",
     "Shows step, loss, gradient, progress of the evaluation, and every process. Asks the\n"
     "coordinator of a live run; if there is none, reads the state folder. Without an operand\n"
     "it takes the *.state folder in the current directory.\n"},
    {"jobs",
     "Shows when each run began, how long it took, why it ended, its figures and its model.\n"
     "A * marks the run whose model is live, a ! a run whose model the gate refused. Lines\n"
     "below a run show what it changed against the run before. Without an operand it takes\n"
     "all *.state folders in the current directory. With --diff the first two operands are\n"
     "runs, which are compared: numbers, tags, state folders (for their live run) or models.\n"
     "\n"
     "  dml-coordinator jobs adult.state --sort auc\n"
     "  dml-coordinator jobs --diff 1 2 adult.state\n"},
    {"metrics",
     "Prints which models are live, since when, their figures, and what the gate refused, in\n"
     "the text format of Prometheus. With -o it writes a file, by a rename, for the textfile\n"
     "collector of node_exporter: after `retrain` in cron.\n"
     "\n"
     "  dml-coordinator metrics nightly.state -o /var/lib/node_exporter/nightly.prom\n"},
    {"prune",
     "Removes models beyond `keep_models`, and packs, sets, checkpoints and half-written files\n"
     "that neither the newest run of a job, nor an unfinished run, nor the live model, nor a\n"
     "rollback needs. Prints what and how much; the record of runs stays. Without an operand it\n"
     "takes all *.state folders in the current directory.\n"
     "\n"
     "  dml-coordinator prune --dry-run adult.state\n"},
    {"pack",
     "Does what `run` does first: reads the text and writes it in binary below STATE/packs,\n"
     "for all later runs. A pack is used until its source changes.\n"},
    {"init",
     "Reads a file of data and writes NAME.conf: the label, an objective, how columns are\n"
     "read, and in comments what they contain. -o names another file, or - standard output.\n"
     "\n"
     "  dml-coordinator init clients.csv --set csv.label=churned\n"
     "  dml-coordinator run clients.conf\n"},
    {"inspect",
     "Shows rows, features, values, labels and columns of a *.pack or *.set file of\n"
     "STATE/packs.\n"},
    {"cancel",
     "The run makes its last step durable and ends, with all processes that it started. It\n"
     "writes no model. `run` resumes from that step.\n"},
    {"predict",
     "Prints the probability of the positive class, the probability of each class, the\n"
     "value, or the margin, as the objective defines. MODEL is a folder below STATE/models, a\n"
     "model.safetensors, or STATE itself for its live model. DATA has the format of the\n"
     "training data; labels may be missing. DATA may be a pipe, and - for standard input.\n"
     "Without -o, predictions go to standard output; with it to a file, when they are complete.\n"
     "\n"
     "  dml-coordinator predict adult.state new.csv --labels -o labels.txt\n"
     "  zcat new.csv.gz | dml-coordinator predict adult.state -\n"},
    {"evaluate",
     "Prints the loss, and every figure that the objective has: for classes also a line for\n"
     "each class, and the confusion matrix; with --curves also tables of thresholds, of gains\n"
     "and lifts, and of the reliability of the probabilities. MODEL is a folder below\n"
     "STATE/models, a model.safetensors, or STATE itself for its live model. DATA has the\n"
     "format of the training data, and may be - for standard input. A label that was not in\n"
     "the training data counts as wrong and is reported.\n"},
    {"summary",
     "Prints the estimates of a linear model with standard errors, tests and intervals, odds or\n"
     "rate ratios, deviance, likelihood and dispersion. The job file must have set\n"
     "`summary = model` or `robust`.\n"
     "\n"
     "  dml-coordinator summary adult.state --robust --only 'age*'\n"},
    {"export",
     "Writes a model file of LIBLINEAR, a table with a line for each weight (tsv), or one\n"
     "object (json); with --top, a list of the largest weights for people; with --importance,\n"
     "what each column of the data contributes to the score. For a network there is only\n"
     "--onnx.\n"
     "\n"
     "  dml-coordinator export adult.state --importance\n"
     "  dml-coordinator export adult.state --top 20\n"},
    {"serve",
     "Shows in a browser the page of the status server for state folders, also if no run is\n"
     "alive in them: curves, figures, confusion matrices, earlier runs. It holds no lock: runs\n"
     "may begin meanwhile, and are shown. Ctrl-C ends it. Without an operand it takes all *.state\n"
     "folders in the current directory.\n"
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

/* ---- `complete` ----
 *
 * Prints the possible completions of the last of some words, for shells. They come from
 * the same tables with which the command line is read.
 *
 * Each line is a whole word, or a kind of path that the shell looks up: @jobs (job files and
 * folders), @folders, @files. */

/* The meaning of the words before the last one. */
struct line {
    const struct command *commands;
    const struct command *command;    /* NULL: none yet */
    const struct option_row *pending; /* the last word is this option's argument; or NULL */
    int operands;
    bool options_end; /* after `--` */
};

/* Prints prefix, word and suffix as one word, if it begins with the last word. */
static void offer(const char *last, const char *prefix, const char *word, const char *suffix) {
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s%s", prefix, word, suffix);
    if (strncmp(whole, last, strlen(last)) == 0)
        puts(whole);
}

/* Offers the parts of "liblinear|tsv|json" or "[HC0|HC1]". */
static void offer_parts(const char *last, const char *prefix, const char *parts) {
    while (*(parts += strspn(parts, "[|]"))) {
        char part[64];
        size_t length = strcspn(parts, "|]");
        snprintf(part, sizeof part, "%.*s", (int)length, parts);
        offer(last, prefix, part, "");
        parts += length;
    }
}

/* Offers the values of a key, if they can be listed. */
static void offer_values(const char *last, const char *prefix, const struct key *key) {
    if (key->word)
        offer(last, prefix, key->word, "");
    if (key->type == KEY_FLAG)
        offer_parts(last, prefix, "true|false");
    for (const char *const *choice = key->choices; choice && *choice; choice++)
        offer(last, prefix, *choice, "");
    for (size_t i = 0; key->offers_figures && i < score_figure_count; i++)
        if (key->fits(score_figure_table[i].name))
            offer(last, prefix, score_figure_table[i].name, "");
}

/* Offers KEY= or the values of a key. `prefix` is the part of the last word before the key. */
static void offer_keys(const char *last, const char *prefix) {
    for (size_t i = 0; i < keys_count; i++) {
        char start[256];
        int length = snprintf(start, sizeof start, "%s%s=", prefix, keys[i].name);
        if (strncmp(start, last, (size_t)length) == 0)
            offer_values(last, start, &keys[i]);
        else
            offer(last, prefix, keys[i].name, "=");
    }
}

static void offer_argument(const struct option_row *option, const char *last, const char *prefix) {
    assert(option->argument);
    if (strcmp(option->argument, "KEY=VALUE") == 0)
        offer_keys(last, prefix);
    else if (strcmp(option->argument, "DIR") == 0)
        puts("@folders");
    else if (strcmp(option->argument, "FIGURE") == 0)
        for (size_t i = 0; i < score_figure_count; i++)
            offer(last, prefix, score_figure_table[i].name, "");
    else if (strchr(option->argument, '|'))
        offer_parts(last, prefix, option->argument);
    else
        puts("@files");
}

static void offer_options(const struct line *line, const char *last) {
    for (int i = 0; i < option_rows_count; i++) {
        const struct option_row *option = &option_rows[i];
        char start[64];
        int length = snprintf(start, sizeof start, "--%s=", option->name);
        if (option->taken && !(line->command && option->taken & line->command->takes))
            continue;
        if (option->argument && strncmp(start, last, (size_t)length) == 0)
            offer_argument(option, last, start);
        else
            offer(last, "--", option->name, "");
    }
}

static void offer_operands(const struct line *line) {
    const struct command *command = line->command;
    if (line->operands >= command->operands_most)
        return;
    if (strstr(command->operands, "JOBFILE"))
        puts("@jobs");
    else
        puts(strstr(command->operands, "STATE") ? "@folders" : "@files");
}

static const struct option_row *find_option(const char *word) {
    for (int i = 0; i < option_rows_count; i++) {
        const struct option_row *option = &option_rows[i];
        if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0)
            return option;
        if (word[0] == '-' && option->letter && word[1] == option->letter && !word[2])
            return option;
    }
    return NULL;
}

static void take_word(struct line *line, const char *word) {
    if (line->pending) {
        line->pending = NULL;
    } else if (!line->options_end && strcmp(word, "--") == 0) {
        line->options_end = true;
    } else if (!line->options_end && word[0] == '-') {
        const struct option_row *option = find_option(word);
        line->pending = option && option->argument ? option : NULL;
    } else if (line->command) {
        line->operands++;
    } else {
        for (const struct command *command = line->commands; command->name; command++)
            if (strcmp(command->name, word) == 0)
                line->command = command;
    }
}

int command_complete(const struct options *options) {
    struct line line = {.commands = options->commands};
    int before = options->operands_count - 1;
    if (before < 0)
        return 0;
    for (int i = 0; i < before; i++)
        take_word(&line, options->operands[i]);
    const char *last = options->operands[before];
    if (line.pending)
        offer_argument(line.pending, last, "");
    else if (!line.options_end && last[0] == '-')
        offer_options(&line, last);
    else if (line.command)
        offer_operands(&line);
    else
        for (const struct command *command = line.commands; command->name; command++)
            if (command->help)
                offer(last, "", command->name, "");
    return 0;
}
