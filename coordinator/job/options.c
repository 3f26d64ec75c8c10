#include "coordinator/job/options.h"

#include <assert.h>
#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/key.h"

#define PROGRAM "dml-coordinator"

#define WAIT_SECONDS 60.0
#define WAIT_SECONDS_MAX 1e6

const struct option_row option_rows[] = {
    {"set", 0, "KEY=VALUE", OPTION_SET, 0, "sets a key of the job file; may be repeated"},
    {"state", 0, "DIR", OPTION_STATE, offsetof(struct options, state),
     "the state folder, in place of the job file's"},
    {"json", 0, NULL, 0, offsetof(struct options, json), "answers as JSON"},
    {"quiet", 'q', NULL, 0, offsetof(struct options, quiet),
     "logs only warnings and errors; prints the result"},
    {"verbose", 'v', NULL, 0, offsetof(struct options, verbose), "logs every step and more"},
    {"help", 'h', NULL, 0, offsetof(struct options, help), "prints this text"},
    {"version", 'V', NULL, 0, offsetof(struct options, version), "prints the version"},
    {"list-failpoints", 0, NULL, 0, offsetof(struct options, list_failpoints),
     "lists the failpoints, for tests: see DML_FAILPOINT"},
    {"dry-run", 'n', NULL, OPTION_DRY_RUN, offsetof(struct options, dry_run),
     "only checks the job file and the data's paths, or lists what would be removed"},
    {"gradient", 0, NULL, OPTION_GRADIENT, offsetof(struct options, gradient),
     "compares the gradient of a plug-in with differences of its loss, on rows of the data"},
    {"fresh", 0, NULL, OPTION_FRESH, offsetof(struct options, fresh),
     "starts a new run, even if a run could be resumed"},
    {"start", 0, "MODEL", OPTION_START, offsetof(struct options, start),
     "a new run starts from this model's parameters"},
    {"cron", 0, NULL, OPTION_CRON, offsetof(struct options, cron),
     "silent unless something is wrong"},
    {"strict", 0, NULL, OPTION_STRICT, offsetof(struct options, strict),
     "exit status 1 if the run has not converged"},
    {"wait", 0, "SECONDS", OPTION_WAIT, offsetof(struct options, wait),
     "how long to wait for workers that are started by hand; by default 60"},
    {"to", 0, "RUN", OPTION_TO, offsetof(struct options, to), "the run whose model becomes live"},
    {"publish", 0, NULL, OPTION_PUBLISH, offsetof(struct options, publish),
     "the model goes live, whatever the gate says"},
    {"no-publish", 0, NULL, OPTION_NO_PUBLISH, offsetof(struct options, no_publish),
     "the live model stays live"},
    {"force", 0, NULL, OPTION_FORCE, offsetof(struct options, force),
     "publishes even a model that the gate refused"},
    {"tag", 0, "NAME", OPTION_LABEL, offsetof(struct options, tag),
     "a name for the run, by which publish and rollback find it"},
    {"note", 0, "TEXT", OPTION_LABEL, offsetof(struct options, note),
     "a note to store with the run"},
    {"watch", 0, NULL, OPTION_WATCH, offsetof(struct options, watch),
     "prints the status again every second"},
    {"folds", 0, NULL, OPTION_FOLDS, offsetof(struct options, folds),
     "lists every run of a sweep, also those of folds"},
    {"diff", 0, NULL, OPTION_DIFF, offsetof(struct options, diff),
     "compares two runs: their settings, data, figures and coefficients"},
    {"sort", 0, "FIGURE", OPTION_SORT, offsetof(struct options, sort),
     "the best run first, by this figure on the holdout, or else on the test data"},
    {"labels", 0, NULL, OPTION_SHOWN, offsetof(struct options, labels), "the predicted labels"},
    {"probabilities", 0, NULL, OPTION_SHOWN, offsetof(struct options, probabilities),
     "the probability of every class, also for two classes"},
    {"margins", 0, NULL, OPTION_SHOWN, offsetof(struct options, margins),
     "the margins, which are the sums that the model computes"},
    {"columns", 0, "LIST", OPTION_SHOWN, offsetof(struct options, columns),
     "CSV with these columns, of the data and of predictions: 'id,label,probability'"},
    {"explain", 0, "[N]", OPTION_SHOWN, offsetof(struct options, explain),
     "what each column contributes to the margins, or the N columns of the largest contributions"},
    {"header", 0, NULL, OPTION_SHOWN, offsetof(struct options, header),
     "a first line with the names of the columns"},
    {"curves", 0, NULL, OPTION_CURVES, offsetof(struct options, curves),
     "for two classes: tables of thresholds, gains and reliability"},
    {"onnx", 0, NULL, OPTION_FORMAT, offsetof(struct options, onnx), "the same as --format onnx"},
    {"format", 0, "liblinear|tsv|json|onnx", OPTION_FORMAT, offsetof(struct options, format),
     "the format to write"},
    {"http", 0, "ADDRESS:PORT", OPTION_HTTP, offsetof(struct options, http),
     "the address to listen on; by default loopback and a free port"},
    {"top", 0, "N", OPTION_TOP, offsetof(struct options, top),
     "the N largest weights of each class by name, for people"},
    {"importance", 0, NULL, OPTION_TOP, offsetof(struct options, importance),
     "what each column contributes to the score, over the training rows"},
    {"bayesian", 0, NULL, OPTION_ERRORS, offsetof(struct options, bayesian),
     "errors that take l2 for a normal prior"},
    {"robust", 0, "[HC0|HC1]", OPTION_ERRORS, offsetof(struct options, robust),
     "robust errors; by default HC0"},
    {"cluster", 0, "COLUMN", OPTION_ERRORS, offsetof(struct options, cluster),
     "errors for clusters of rows, if the run computed them for this column"},
    {"level", 0, "LEVEL", OPTION_ERRORS, offsetof(struct options, level),
     "the level of the intervals; by default 0.95"},
    {"only", 0, "PATTERN", OPTION_ERRORS, offsetof(struct options, only),
     "only parameters whose name matches this pattern, such as 'age*'"},
    {"output", 'o', "FILE", OPTION_OUTPUT, offsetof(struct options, output),
     "writes to this file, not to standard output"},
};

#define ROWS (int)(sizeof option_rows / sizeof option_rows[0])
const int option_rows_count = ROWS;

#define LONG_BASE 1000 /* getopt_long() answers this much plus the row's number */

static void build_getopt(struct option *longs, char *shorts) {
    *shorts++ = ':';
    for (int i = 0; i < ROWS; i++) {
        longs[i] =
            (struct option){.name = option_rows[i].name,
                            .has_arg = !option_rows[i].argument           ? no_argument
                                       : option_is_alone(&option_rows[i]) ? optional_argument
                                                                          : required_argument,
                            .val = LONG_BASE + i};
        if (option_rows[i].letter)
            *shorts++ = option_rows[i].letter;
        if (option_rows[i].letter && option_rows[i].argument)
            *shorts++ = ':';
    }
    longs[ROWS] = (struct option){0};
    *shorts = '\0';
}

static int row_of(int answer) {
    int row = 0;
    while (answer < LONG_BASE && row < ROWS && option_rows[row].letter != answer)
        row++;
    row = answer < LONG_BASE ? row : answer - LONG_BASE;
    assert(row < ROWS); /* getopt answers only what the table has */
    return row;
}

/* Names what getopt_long() refused: a letter, or the word before the next one to read. */
static int refuse_option(int answer, char **argv) {
    char letter[3] = {'-', (char)optopt, '\0'};
    bool by_letter = optopt > 0 && optopt < LONG_BASE;
    const char *name = by_letter ? letter : argv[optind - 1];
    if (answer == ':')
        return error_set(ERROR_USAGE, "option `%s` needs an argument, %s", name,
                         option_rows[row_of(optopt)].argument);
    if (optopt >= LONG_BASE)
        return error_set(ERROR_USAGE, "option `--%s` takes no argument",
                         option_rows[row_of(optopt)].name);
    /* A long one may have its value after "=". */
    char *plain = memory_format("%.*s", (int)strcspn(name, "="), name);
    const bool is_long = strncmp(plain, "--", 2) == 0;
    struct nearest nearest = {.text = plain + (is_long ? 2 : 0)};
    for (int i = 0; i < ROWS && is_long; i++)
        nearest_offer(&nearest, option_rows[i].name);
    int code =
        error_set(ERROR_USAGE, "there is no option `%s`; `" PROGRAM " COMMAND --help` lists them%s",
                  plain, nearest_suggestion(&nearest, "--"));
    free(plain);
    return code;
}

static int parse_options(int argc, char **argv, struct options *options, unsigned *used) {
    struct option longs[ROWS + 1];
    char shorts[2 * ROWS + 2];
    int answer;
    build_getopt(longs, shorts);
    optind = 0; /* getopt starts afresh */
    opterr = 0;
    while ((answer = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (answer == '?' || answer == ':')
            return refuse_option(answer, argv);
        const struct option_row *row = &option_rows[row_of(answer)];
        *used |= row->taken;
        /* Nothing in place of a file, folder or address, as of a variable that a script did not
         * set. */
        if (optarg && !*optarg && !option_is_alone(row) && row->taken != OPTION_LABEL)
            return error_set(ERROR_USAGE,
                             "option `--%s` needs an argument, %s, and has an empty one", row->name,
                             row->argument);
        if (!row->argument)
            *(bool *)((char *)options + row->offset) = true;
        else if (strcmp(row->name, "set") == 0)
            options->settings[options->settings_count++] = optarg;
        else
            *(const char **)((char *)options + row->offset) = optarg ? optarg : "";
    }
    return 0;
}

/* Which command is meant: one that is spelt alike, or what other programs call so. */
static const char *command_suggestion(const char *name, const struct command *commands) {
    static const struct other_word others[] = {
        {"train", "run"},      {"fit", "run"},     {"score", "predict"},     {"test", "evaluate"},
        {"list", "jobs"},      {"stop", "cancel"}, {"kill", "cancel"},       {"clean", "prune"},
        {"deploy", "publish"}, {"help", "--help"}, {"version", "--version"},
    };
    struct nearest nearest = {.text = name};
    for (const struct command *command = commands; command->name; command++)
        if (command->help)
            nearest_offer(&nearest, command->name);
    nearest_offer_others(&nearest, others, sizeof others / sizeof *others);
    if (name_ends(name, ".conf"))
        return nearest_suggestion(&(struct nearest){.word = "run JOBFILE"}, "");
    return nearest_suggestion(&nearest, "");
}

/* Checks that the command takes the options and operands that it was given. */
static int check_command(const struct options *options, unsigned used) {
    const struct command *command = options->command;
    for (int i = 0; i < ROWS; i++)
        if (option_rows[i].taken & used & ~(command->takes | OPTION_OF_JOB))
            return error_set(ERROR_USAGE, "`%s` takes no option `--%s`", command->name,
                             option_rows[i].name);
    if (options->quiet && options->verbose)
        return error_set(ERROR_USAGE, "`--quiet` and `--verbose` exclude each other");
    if (options->publish && options->no_publish)
        return error_set(ERROR_USAGE, "`--publish` and `--no-publish` exclude each other");
    if (options->operands_count < command->operands_least)
        return error_set(ERROR_USAGE, "`%s` needs %s; usage: " PROGRAM " %s %s", command->name,
                         command->operands, command->name, command->operands);
    if (options->operands_count > command->operands_most)
        return error_set(ERROR_USAGE, "`%s` does not take `%s`; usage: " PROGRAM " %s %s",
                         command->name, options->operands[command->operands_most], command->name,
                         command->operands);
    return 0;
}

#define TAG_LENGTH_MAX 64
#define NOTE_LENGTH_MAX 1000

/* A tag stands where a run's number may stand. */
static int check_label(const struct options *options) {
    const char *tag = options->tag;
    size_t digits = tag ? strspn(tag, "0123456789") : 0;
    bool spaced = false;
    for (const char *at = tag; at && *at; at++)
        spaced |= isspace((unsigned char)*at) || iscntrl((unsigned char)*at);
    if (tag && (!*tag || !tag[digits] || *tag == '-' || spaced || strlen(tag) > TAG_LENGTH_MAX))
        return error_set(ERROR_USAGE,
                         "`--tag %s`: allowed is a name of 1 to %d bytes without spaces that is "
                         "not a number and does not begin with -",
                         tag, TAG_LENGTH_MAX);
    if (options->note && strlen(options->note) > NOTE_LENGTH_MAX)
        return error_set(ERROR_USAGE, "`--note`: allowed are at most %d bytes", NOTE_LENGTH_MAX);
    return 0;
}

static int read_wait(struct options *options) {
    char *end;
    options->wait_seconds = WAIT_SECONDS;
    if (!options->wait)
        return 0;
    options->wait_seconds = strtod(options->wait, &end);
    if (isdigit((unsigned char)*options->wait) && !*end &&
        options->wait_seconds <= WAIT_SECONDS_MAX)
        return 0;
    return error_set(ERROR_USAGE, "`--wait %s`: allowed is a number of seconds from 0 to %.0f",
                     options->wait, WAIT_SECONDS_MAX);
}

int options_parse(int argc, char **argv, const struct command *commands, struct options *options) {
    unsigned used = 0;
    *options = (struct options){.commands = commands,
                                .settings = memory_new((size_t)argc, sizeof(char *)),
                                .operands = memory_new((size_t)argc, sizeof(char *))};
    int code = parse_options(argc, argv, options, &used);
    if (code)
        return code;
    if (optind < argc) {
        const char *name = argv[optind];
        for (const struct command *command = commands; command->name; command++)
            if (strcmp(command->name, name) == 0)
                options->command = command;
        if (!options->command)
            code = error_set(ERROR_USAGE,
                             "there is no command `%s`; `" PROGRAM " --help` lists them%s", name,
                             command_suggestion(name, commands));
        for (int i = optind + 1; i < argc; i++)
            options->operands[options->operands_count++] = argv[i];
    }
    if (code || options->help || options->version || options->list_failpoints)
        return code;
    if (!options->command)
        return error_set(ERROR_USAGE, "a command is missing; `" PROGRAM " --help` lists them");
    code = check_command(options, used);
    if (!code)
        code = check_label(options);
    return code ? code : read_wait(options);
}

void options_release(struct options *options) {
    free(options->settings);
    free(options->operands);
    *options = (struct options){0};
}

static void print_rows(unsigned taken_by, FILE *out) {
    for (int i = 0; i < ROWS; i++)
        if (taken_by ? option_rows[i].taken & taken_by : !option_rows[i].taken) {
            const struct option_row *row = &option_rows[i];
            char left[64];
            const char *between = !row->argument ? "" : option_is_alone(row) ? "=" : " ";
            snprintf(left, sizeof left, "%s%c%s--%s%s%s", row->letter ? "-" : "  ",
                     row->letter ? row->letter : ' ', row->letter ? ", " : " ", row->name, between,
                     row->argument ? row->argument : "");
            if (strlen(left) > 24)
                fprintf(out, "  %s\n  %-24s %s\n", left, "", row->help);
            else
                fprintf(out, "  %-24s %s\n", left, row->help);
        }
}

void options_print_command(const struct command *command, const char *about, FILE *out) {
    bool reads_job = strncmp(command->operands, "JOBFILE", strlen("JOBFILE")) == 0;
    fprintf(out, "usage: " PROGRAM " %s [OPTION...] %s\n\n%s\n", command->name, command->operands,
            command->help ? command->help : "for the status server");
    fprintf(out, "%s%s", *about ? "\n" : "", about);
    if (command->takes) {
        fprintf(out, "\nOptions of `%s`:\n\n", command->name);
        print_rows(command->takes, out);
    }
    fputs("\nOptions of every command:\n\n", out);
    print_rows(0, out);
    if (command->keys) {
        fputs("\nKeys of the job file:\n\n", out);
        key_print_help(out);
    } else if (reads_job) {
        fputs("\n`" PROGRAM " check --help` lists the keys of the job file.\n", out);
    }
}

void options_print_usage(const struct command *commands, FILE *out) {
    int width = 0;
    fputs("usage: " PROGRAM " COMMAND [OPTION...] [OPERAND...]\n\n", out);
    for (const struct command *each = commands; each->name; each++) {
        if (!each->help)
            continue;
        int length = (int)(strlen(each->name) + strlen(each->operands)) + 1;
        width = length > width ? length : width;
    }
    for (const struct command *each = commands; each->name; each++) {
        char left[64];
        if (!each->help)
            continue;
        snprintf(left, sizeof left, "%s %s", each->name, each->operands);
        fprintf(out, "  %-*s  %s\n", width, left, each->help);
    }
    fputs("\nOptions of every command:\n\n", out);
    print_rows(0, out);
    fputs("\n`" PROGRAM " COMMAND --help` describes a command.\n", out);
}
