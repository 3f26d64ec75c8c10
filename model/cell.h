/* Cells of CSV. Inside model/ only. */
#ifndef DML_MODEL_CELL_H
#define DML_MODEL_CELL_H

#include <stdio.h>

/* Writes a text between quotes, of which those within it are doubled. */
void output_write_quoted(const char *text, FILE *file);

/* Writes a cell; quotes go around what other programs would read otherwise. */
void output_write_cell(const char *text, FILE *file);

#endif
