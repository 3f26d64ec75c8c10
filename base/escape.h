/* Text from outside in messages: what it holds must not move the cursor, clear the screen, or look
 * like a line of its own in a log. */
#ifndef DML_BASE_ESCAPE_H
#define DML_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* Copies `from`, with control characters as \n, \t, \x1b and the like, into `to` of `size` > 0
 * bytes; what does not fit is cut off, an escape never in two. Returns the length. Text that was
 * escaped stays as it is. error_set() and log_line() do it to all that they are given. */
size_t escape_controls(char *to, size_t size, const char *from);

/* A copy of the text, escaped. Release with free(). */
char *escape_copy(const char *text);

/* Writes the text to a stream, escaped. */
void escape_put(const char *text, FILE *out);

#endif
