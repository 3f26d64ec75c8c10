/* What memory a run will need, for people and as JSON. */
#ifndef DML_COORDINATOR_COMMAND_NEED_PRINT_H
#define DML_COORDINATOR_COMMAND_NEED_PRINT_H

#include <jansson.h>

#include "coordinator/job/need.h"

/* A line that begins with `before`; nothing if it is not known. */
void need_print(const struct memory_need *need, const char *before);

/* Adds the member `memory_bytes` to an object; nothing if it is not known. */
void need_add(const struct memory_need *need, json_t *object);

#endif
