/* The table of a path of values, for people. */
#ifndef DML_COORDINATOR_STATUS_PATH_TABLE_H
#define DML_COORDINATOR_STATUS_PATH_TABLE_H

#include <jansson.h>

/* Prints a line for each value of "path" in a result; nothing if there is none. */
void path_table_print(const json_t *result);

#endif
