/* The table of `summary` as text. */
#ifndef DML_COORDINATOR_COMMAND_SUMMARY_PRINT_H
#define DML_COORDINATOR_COMMAND_SUMMARY_PRINT_H

#include <stdio.h>

#include "model/summary_table.h"

/* Prints what summary_table() gives, in at most 80 columns; where the terminal has 120, ratios
 * stand beside the estimates and not below. `colors` is from terminal_colors(). */
void summary_print(const json_t *table, FILE *out, bool colors);

#endif
