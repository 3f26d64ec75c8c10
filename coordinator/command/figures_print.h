/* Figures for people. */
#ifndef DML_COORDINATOR_COMMAND_FIGURES_PRINT_H
#define DML_COORDINATOR_COMMAND_FIGURES_PRINT_H

#include <jansson.h>
#include <stdio.h>

/* Prints what score_figures_json() made: a line a figure, then a line a class, then the confusion
 * matrix. Of many classes there is no matrix, and of very many no lines. */
void figures_print(json_t *figures, FILE *out);

#endif
