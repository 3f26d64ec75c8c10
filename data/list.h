/* Labels of rows that have several: a text with a separator between its parts. */
#ifndef DML_DATA_LIST_H
#define DML_DATA_LIST_H

#include <stdbool.h>

#include "base/bytes.h"

/* Puts the next part of the list *at, without the blanks around it and with a 0 behind it, into
 * `part`; *at moves on. Empty parts do not count. False after the last part. */
bool list_next(const char **at, char separator, struct bytes *part);

#endif
