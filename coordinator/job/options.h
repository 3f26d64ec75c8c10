/* The command line: one table of options, one of commands. Usage texts and error messages come from
 * the tables. */
#ifndef DML_COORDINATOR_JOB_OPTIONS_H
#define DML_COORDINATOR_JOB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct options;

/* Options that only some commands take; the others go with every command. */
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
};

struct command {
    const char *name;
    int (*run)(const struct options *options); /* 0 or a negative error code */
    const char *operands;                      /* as in a usage line: "JOBFILE" */
    int operands_least, operands_most;
    unsigned takes; /* of enum command_option */
    bool keys;      /* its help lists the keys of the job file */
    const char *help;
};

struct option_row {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: none. "liblinear|tsv|json": one of these */
    unsigned taken;       /* the bit of the commands that take it; 0: all */
    size_t offset;        /* of the bool or, with an argument, of the text in struct options */
    const char *help;
};

extern const struct option_row option_rows[];
extern const int option_rows_count;

/* What was asked for. Strings belong to argv. */
struct options {
    const struct command *commands; /* all that there are, as given to options_parse() */
    const struct command *command;  /* NULL only if `help`, `version` or the like was asked for */
    const char **operands;
    int operands_count;
    const char **settings; /* of --set */
    uint32_t settings_count;
    const char *state; /* or NULL, as are */
    const char *format, *output;
    const char *start; /* a model */
    const char *to;    /* the number of a run */
    bool strict;
    bool json, quiet, verbose, help, version;
    bool list_failpoints;
    bool dry_run, fresh, cron, watch;
};

/* `commands` ends with a NULL name. ERROR_USAGE. Release with options_release() either way. */
int options_parse(int argc, char **argv, const struct command *commands, struct options *options);
void options_release(struct options *options);

/* The usage of the program: its commands, and the options of all. */
void options_print_usage(const struct command *commands, FILE *out);

/* The usage of one command; `about` is what it does in whole lines, or "". */
void options_print_command(const struct command *command, const char *about, FILE *out);

#endif
