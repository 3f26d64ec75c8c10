/* `complete`: prints the possible completions of the last of some words, for shells. They come from
 * the same tables with which the command line is read.
 *
 * Each line is a whole word, or a kind of path that the shell looks up: @jobs (job files and
 * folders), @folders, @files. */
#include <stdio.h>
#include <string.h>

#include "coordinator/command/command.h"
#include "coordinator/job/key.h"
#include "model/score.h"

/* The meaning of the words before the last one. */
struct line {
    const struct command *commands;
    const struct command *command;    /* NULL: none yet */
    const struct option_row *pending; /* the last word is this option's argument; or NULL */
    int operands;
    bool options_end; /* behind `--` */
};

/* Prints prefix, word and suffix as one word, if it begins with the last word. */
static void offer(const char *last, const char *prefix, const char *word, const char *suffix) {
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s%s", prefix, word, suffix);
    if (strncmp(whole, last, strlen(last)) == 0)
        puts(whole);
}

/* Offers the parts of "liblinear|tsv|json". */
static void offer_parts(const char *last, const char *prefix, const char *parts) {
    while (*parts) {
        char part[64];
        size_t length = strcspn(parts, "|");
        snprintf(part, sizeof part, "%.*s", (int)length, parts);
        offer(last, prefix, part, "");
        parts += length + (parts[length] == '|');
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

static void offer_figures(const char *last, const char *prefix) {
    for (size_t i = 0; i < score_figure_count; i++)
        offer(last, prefix, score_figure_table[i].name, "");
}

static void offer_argument(const struct option_row *option, const char *last, const char *prefix) {
    if (strcmp(option->argument, "KEY=VALUE") == 0)
        offer_keys(last, prefix);
    else if (strcmp(option->argument, "DIR") == 0)
        puts("@folders");
    else if (strcmp(option->argument, "FIGURE") == 0)
        offer_figures(last, prefix);
    else if (strchr(option->argument, '|'))
        offer_parts(last, prefix, option->argument);
    else
        puts("@files");
}

static bool is_taken(const struct option_row *option, const struct command *command) {
    return !option->taken || (command && option->taken & command->takes);
}

static void offer_options(const struct line *line, const char *last) {
    for (int i = 0; i < option_rows_count; i++) {
        const struct option_row *option = &option_rows[i];
        char start[64];
        int length = snprintf(start, sizeof start, "--%s=", option->name);
        if (!is_taken(option, line->command))
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
            offer(last, "", command->name, "");
    return 0;
}
