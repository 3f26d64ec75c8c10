/* Numbers as text, read as strtod() reads them in the C locale: correctly rounded. */
#ifndef DML_DATA_NUMBER_H
#define DML_DATA_NUMBER_H

#include <stdbool.h>

/* Reads a decimal number at `at`, which ends no later than a byte that can be in no number (a line
 * end, or the 0 behind a text). Returns where it ends, or NULL if there is none or it is beyond
 * the range of a double. NaN and infinity are not numbers here. */
const char *number_parse(const char *at, double *value);

/* The number that a whole text is; false if it is not one. */
bool number_of_text(const char *text, double *value);

#define NUMBER_TEXT 32

/* The shortest text that reads back as `value`: "1", "-0.5". */
void number_format(double value, char text[NUMBER_TEXT]);

#endif
