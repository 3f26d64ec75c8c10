/* Names from data files (labels, columns) as JSON strings, which must be UTF-8. */
#ifndef DML_MODEL_TEXT_H
#define DML_MODEL_TEXT_H

#include <jansson.h>

/* The text itself if it is UTF-8; else each of its bytes taken as a character of Latin-1. Names are
 * compared in this form. */
json_t *text_to_json(const char *text);

#endif
