/* Numbers as text, read as strtod() reads them in the C locale: correctly rounded. */
#ifndef DML_DATA_NUMBER_H
#define DML_DATA_NUMBER_H

#include <stdbool.h>

/* Reads a decimal number at `at`. The text must end with a byte that no number contains (a line
 * end, or the final 0). Returns the end of the number; NULL if there is no number or it is beyond
 * the range of a double. NaN and infinity are not numbers here. */
const char *number_parse(const char *at, double *value);

/* Reads a text that is a number as a whole; false if it is not. */
bool number_of_text(const char *text, double *value);

#define NUMBER_TEXT 32

/* The shortest text that reads back as `value`: "1", "-0.5". */
void number_format(double value, char text[NUMBER_TEXT]);

#endif
