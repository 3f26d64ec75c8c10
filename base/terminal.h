/* Terminals: what may be written to one, and how. */
#ifndef DML_BASE_TERMINAL_H
#define DML_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Erases the line that the cursor is on. */
#define TERMINAL_ERASE "\r\033[K"

enum style { STYLE_PLAIN, STYLE_HEADING, STYLE_GOOD, STYLE_DOUBTFUL, STYLE_BAD };

/* Whether the descriptor is a terminal on which a line can be erased: TERM is neither unset nor
 * `dumb`. */
bool terminal_erases(int descriptor);

/* Whether it may also be coloured: NO_COLOR is not set, or empty. */
bool terminal_colors(int descriptor);

/* Its size now; 24 rows of 80 columns where that is not known. */
void terminal_size(int descriptor, int *rows, int *columns);

/* Writes the text, in its style if `colors`. Control characters in it are escaped, here and below:
 * names from outside must not move the cursor. */
void terminal_put(FILE *out, bool colors, enum style style, const char *text);

/* The same, cut to `columns`; the last column of a cut text is "…". A UTF-8 character counts as
 * one. Returns how many columns it took. */
int terminal_put_cut(FILE *out, bool colors, enum style style, const char *text, int columns);

/* The same, filled up with blanks to `columns`. */
void terminal_put_cell(FILE *out, bool colors, enum style style, const char *text, int columns);

#endif
