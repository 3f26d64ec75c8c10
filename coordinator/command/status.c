/* `status` and `cancel`. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"

static void print(const struct options *options, const json_t *status) {
    if (options->json)
        report_print_json(status);
    else
        report_print_status(status, stdout, terminal_colors(STDOUT_FILENO));
}

/* ---- again every second ---- */

/* Replaces what was drawn before, in one write, so that the screen is never empty in between. Text
 * that is too wide or too high is cut: a line that wraps or scrolls would not be replaced. */
static void draw_screen(const char *text) {
    int rows, columns, lines = 0;
    terminal_size(STDOUT_FILENO, &rows, &columns);
    assert(rows > 0 && columns > 0);
    fputs("\033[?7l\033[H", stdout);
    while (*text && ++lines < rows - 1) {
        size_t length = strcspn(text, "\n");
        printf("%.*s\033[K\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
    fputs(*text ? "…\033[K\n\033[J\033[?7h" : "\033[J\033[?7h", stdout);
}

/* Replaces the status on the screen. */
static void draw_status(const json_t *status) {
    char *text = NULL;
    size_t length;
    FILE *memory = open_memstream(&text, &length);
    if (!memory)
        return;
    report_print_status(status, memory, terminal_colors(STDOUT_FILENO));
    fclose(memory);
    draw_screen(text);
    free(text);
}

/* A coordinator holds the folder but does not answer: it is starting, about to end, or stopped. */
static void print_silence(const struct options *options, bool redraws) {
    if (options->json) {
        json_t *answer = json_pack("{s:o}", "error", text_to_json(error_text()));
        report_print_json(answer);
        json_decref(answer);
    } else if (redraws) {
        draw_screen(error_text());
    } else {
        puts(error_text());
    }
    error_clear();
}

/* Shows the status once. Sets *ended if the run has ended. A coordinator that does not answer is no
 * error. */
static int look(const struct options *options, const char *state, bool redraws, bool *ended) {
    json_t *status = NULL;
    int code = ask(state, QUESTION_STATUS, &status);
    if (code == ERROR_AGAIN) {
        print_silence(options, redraws);
        return 0;
    }
    if (code)
        return code;
    const char *of_run = member_text(status, "state");
    *ended = strcmp(of_run, "ended") == 0 || strcmp(of_run, "interrupted") == 0;
    if (redraws)
        draw_status(status);
    else
        print(options, status);
    json_decref(status);
    return 0;
}

static int watch(const struct options *options, const char *state) {
    bool redraws = !options->json && terminal_erases(STDOUT_FILENO);
    static char buffer[1 << 16]; /* a whole screen in one write */
    bool ended = false;
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (redraws)
        fputs("\033[H\033[J", stdout);
    for (;;) {
        int code = look(options, state, redraws, &ended);
        if (code || ended)
            return code;
        if (!redraws && !options->json)
            putchar('\n');
        if (fflush(stdout))
            return error_set_errno(ERROR_IO, "cannot write standard output");
        sleep(1);
    }
}

int command_status(const struct options *options) {
    char *state;
    int code = place_of(options, &state);
    if (code)
        return code;
    if (options->watch) {
        code = watch(options, state);
    } else {
        json_t *status = NULL;
        code = ask(state, QUESTION_STATUS, &status);
        if (!code)
            print(options, status);
        json_decref(status);
    }
    free(state);
    return code;
}

int command_cancel(const struct options *options) {
    char *state, *answer = NULL;
    int code = place_of(options, &state);
    if (code)
        return code;
    code = control_ask(state, "cancel\n", &answer);
    if (!code && strncmp(answer, "ok", 2) != 0)
        code = error_set(ERROR_UNAVAILABLE, "%s: the coordinator did not accept `cancel`: %s",
                         state, *answer ? answer : "it is about to end");
    if (!code && options->json) {
        json_t *stopping = json_pack("{s:o, s:b}", "folder", text_to_json(state), "stopping", true);
        report_print_json(stopping);
        json_decref(stopping);
    } else if (!code) {
        escape_put(state, stdout);
        puts(": the run stops at the next point from which it can be resumed");
    }
    free(answer);
    free(state);
    return code;
}
