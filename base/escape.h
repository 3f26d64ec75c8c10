/* Text from outside, escaped for messages and tables: it must not move the cursor, clear the
 * screen, or look like a separate line of a log. */
#ifndef DML_BASE_ESCAPE_H
#define DML_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* Copies `from`, with control characters as \n, \t, \x1b and the like, into `to` of `size` > 0
 * bytes. What does not fit is cut off, but never within an escape. Returns the length. Escaping
 * text twice changes nothing. error_set() and log_line() escape everything they are given. */
size_t escape_controls(char *to, size_t size, const char *from);

/* A copy of the text, escaped. Release with free(). */
char *escape_copy(const char *text);

/* Writes the text to a stream, escaped. */
void escape_put(const char *text, FILE *out);

#endif
