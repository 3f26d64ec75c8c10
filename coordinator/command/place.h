/* Which state folder a command is about. */
#ifndef DML_COORDINATOR_COMMAND_PLACE_H
#define DML_COORDINATOR_COMMAND_PLACE_H

#include "coordinator/job/options.h"

/* The folders meant, NULL-terminated: each operand as a state folder or as a job file, whose state
 * folder is taken; without operands --state; else every *.state folder here. Release with
 * places_free(). ERROR_USAGE if there is none. */
int places_of(const struct options *options, char ***states);
void places_free(char **states);

/* The one folder meant; free it. ERROR_USAGE if there are several. */
int place_of(const struct options *options, char **state);

#endif
