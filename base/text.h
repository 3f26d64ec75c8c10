/* Text from outside. Job files and --set must be UTF-8, else they are refused. Names of files and
 * folders, labels and columns may be any bytes: they are kept unchanged, and text_to_json() turns
 * them into JSON. */
#ifndef DML_BASE_TEXT_H
#define DML_BASE_TEXT_H

#include <jansson.h>
#include <stdbool.h>

bool text_is_utf8(const char *text);

/* A JSON string: the text itself if it is UTF-8, else each of its bytes taken as a character of
 * Latin-1. For every string in JSON that comes from outside: json_string() and the "s" of
 * json_pack() answer NULL for what is no UTF-8. Labels and columns are compared in this form. */
json_t *text_to_json(const char *text);

/* The number, or null if it is not finite. A new reference. */
json_t *number_json(double number);

#endif
