/* `jobs --diff A B`: two runs beside each other. */
#ifndef DML_COORDINATOR_COMMAND_DIFF_H
#define DML_COORDINATOR_COMMAND_DIFF_H

#include <jansson.h>

#include "coordinator/job/options.h"

/* The command: two of the operands name runs, a third one the state folder of those that are
 * numbers or tags. ERROR_USAGE, ERROR_UNAVAILABLE if there is no such run, and errors of reading.
 */
int command_diff(const struct options *options);

/* Prints the comparison as tables for people, on standard output. It has these members:
 *
 *   runs          both, as in report_runs(), with `folder`
 *   settings      [{key, values: [a, b], set: [bool, bool]}]: those that differ, first those that
 *                 one of the runs has set; a value is null where the run has no such key
 *   data          {same, rows: [a, b], files: [{path, a, b}]}: files that differ, each null or
 *                 {rows, bytes, fingerprint}; `count` is how many files each run has
 *   training      {figure: [a, b]}
 *   holdout, test {figure: [a, b]}, or null if neither run has any
 *   same_holdout  whether both have figures of the same held-out rows; null if one has none
 *   coefficients  as compare_weights(), or {why}
 */
void diff_print(const json_t *diff);

#endif
