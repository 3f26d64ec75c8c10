/* How commands print what they found: tables and JSON on standard output, a file that is whole as
 * soon as it is there, and lines of the system's log. */
#ifndef DML_COORDINATOR_COMMAND_PRINT_H
#define DML_COORDINATOR_COMMAND_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "coordinator/job/sizing.h"

/* Writes to `stream`; 0 or an error. What goes wrong with the stream is noticed after it. */
typedef int output_write(void *context, FILE *stream);

/* `path` is NULL or "-" for standard output. A failure leaves what was there before. ERROR_CREATE
 * if the path is a device or a pipe, which the rename at the end would replace by a file, or cannot
 * be created; ERROR_PERMISSION, ERROR_IO; and errors of `write`. */
int output_file_write(const char *path, output_write *write, void *context);

/* Prints what report_status() and report_runs() give, in at most 80 columns on a terminal, or as
 * many as it has; elsewhere names and notes are whole. `colors` is from terminal_colors(). */
void report_print_status(const json_t *status, FILE *out, bool colors);

/* On standard output. A sweep that has ended is one run, the chosen one, and its table; with
 * `folds` each of its runs is listed. */
void report_print_runs(const json_t *runs, bool folds, bool colors);

/* Prints one line of JSON on standard output. */
void report_print_json(const json_t *value);

/* Prints what score_figures_json() made: a line a figure, then a line a class, then the confusion
 * matrix. Of many classes there is no matrix, and of very many no lines. */
void figures_print(json_t *figures, FILE *out);

/* Prints the member `curves` of these as tables; nothing if it is NULL. */
void curves_print(const json_t *curves, FILE *out);

/* What memory a run will need: a line that begins with `before`; nothing if it is not known. */
void need_print(const struct memory_need *need, const char *before);

/* Adds the member `memory_bytes` to an object; nothing if it is not known. */
void need_add(const struct memory_need *need, json_t *object);

/* "dml[PID]: JOB: TEXT" in the system's log (syslog, the journal), as an error if `wrong`: what a
 * command of cron came to. Nobody reads its standard error. */
void notice_send(const char *job, bool wrong, const char *text);

#endif
