/* Finds the state folders that a command line means. */
#ifndef DML_COORDINATOR_COMMAND_PLACE_H
#define DML_COORDINATOR_COMMAND_PLACE_H

#include "coordinator/job/options.h"

/* The folders, NULL-terminated. Each operand is a state folder, or a job file whose state folder is
 * taken. Without operands it is the folder of --state, else every *.state folder in the current
 * folder. Release with places_free(). ERROR_USAGE if there is none. */
int places_of(const struct options *options, char ***states);
void places_free(char **states);

/* The same for a command that takes one folder; free it. ERROR_USAGE if there are several. */
int place_of(const struct options *options, char **state);

#endif
