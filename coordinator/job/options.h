/* The command line: one table of options, one of commands. Usage texts and error messages are made
 * from these tables. */
#ifndef DML_COORDINATOR_JOB_OPTIONS_H
#define DML_COORDINATOR_JOB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct options;

/* Options that only some commands take. Every command takes the others. */
enum command_option {
    OPTION_DRY_RUN = 1 << 0,
    OPTION_FRESH = 1 << 1,
    OPTION_CRON = 1 << 2,
    OPTION_WATCH = 1 << 3,
    OPTION_FORMAT = 1 << 4,
    OPTION_OUTPUT = 1 << 5,
    OPTION_START = 1 << 6,
    OPTION_TO = 1 << 7,
    OPTION_STRICT = 1 << 8,
    OPTION_SHOWN = 1 << 9,
    OPTION_SORT = 1 << 10,
    OPTION_HTTP = 1 << 11,
    OPTION_TOP = 1 << 12,
    OPTION_WAIT = 1 << 13,
    OPTION_GRADIENT = 1 << 14,
    OPTION_ERRORS = 1 << 15,
    OPTION_CURVES = 1 << 16,
    OPTION_PUBLISH = 1 << 17,
    OPTION_NO_PUBLISH = 1 << 18,
    OPTION_FORCE = 1 << 19,
    OPTION_LABEL = 1 << 20,
    OPTION_FOLDS = 1 << 21,
    OPTION_SET = 1 << 22,
    OPTION_STATE = 1 << 23,
    OPTION_DIFF = 1 << 24,
    OPTION_OF_JOB = OPTION_SET | OPTION_STATE, /* of those that find a state folder by a job */
};

struct command {
    const char *name;
    int (*run)(const struct options *options); /* 0 or a negative error code */
    const char *operands;                      /* as in a usage line: "JOBFILE" */
    int operands_least, operands_most;
    unsigned takes;   /* of enum command_option */
    bool keys;        /* its help lists the keys of the job file */
    const char *help; /* NULL: for this program itself, and told to nobody */
};

struct option_row {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: none. "liblinear|tsv|json": one of these. "[HC0|HC1]": the same
                             after "=", or none, which is "" */
    unsigned taken;       /* its bit in `takes` of a command; 0: every command takes it */
    size_t offset;        /* of the bool or, with an argument, of the text in struct options */
    const char *help;
};

/* Whether the option may stand without its argument. */
static inline bool option_is_alone(const struct option_row *row) {
    return row->argument && row->argument[0] == '[';
}

extern const struct option_row option_rows[];
extern const int option_rows_count;

/* The command line after parsing. Strings belong to argv. */
struct options {
    const struct command *commands; /* all commands, as given to options_parse() */
    const struct command *command;  /* NULL only with --help, --version or --list-failpoints */
    const char **operands;
    int operands_count;
    const char **settings; /* of --set */
    uint32_t settings_count;
    const char *state; /* this one and those below are NULL if they were not given */
    const char *format, *output;
    const char *start;   /* a model */
    const char *sort;    /* a figure */
    const char *top;     /* how many */
    const char *to;      /* the number of a run */
    const char *http;    /* ADDRESS:PORT */
    const char *robust;  /* HC0, HC1 or "" */
    const char *cluster; /* a column */
    const char *level;   /* of intervals */
    const char *only;    /* a pattern of names */
    const char *columns; /* a list of names */
    const char *explain; /* how many columns, or "" */
    const char *tag;     /* of a run: no number, without spaces */
    const char *note;    /* on a run */
    const char *wait;    /* seconds, as text */
    double wait_seconds; /* and as a number; the default if it was not given */
    bool strict;
    bool json, quiet, verbose, help, version;
    bool list_failpoints;
    bool dry_run, fresh, cron, watch;
    bool labels, probabilities, margins, header;
    bool gradient;
    bool publish, no_publish; /* not both */
    bool force;
    bool folds; /* each run of a sweep is listed */
    bool diff;  /* the first two operands are runs */
    bool curves, onnx, importance, bayesian;
};

/* `commands` ends with a NULL name. ERROR_USAGE. Release with options_release() either way. */
int options_parse(int argc, char **argv, const struct command *commands, struct options *options);
void options_release(struct options *options);

/* Prints the usage of the program: its commands, and the options that all commands take. */
void options_print_usage(const struct command *commands, FILE *out);

/* Prints the usage of one command. `about` says what it does, in whole lines; it may be "". */
void options_print_command(const struct command *command, const char *about, FILE *out);

#endif
