/* Folders of the state folder that are of one run, and are named after it: STATE/models/RUN and
 * STATE/shards/RUN. */
#ifndef DML_COORDINATOR_STATUS_RUN_FOLDER_H
#define DML_COORDINATOR_STATUS_RUN_FOLDER_H

#include <stdint.h>

/* STATE/models/RUN, whether there is a model or not; free it. */
char *run_model_folder(const char *state, int64_t run);

/* The run that a folder in STATE/models or STATE/shards is of, by its name; 0: of none. */
int64_t run_of_folder(const char *name);

#endif
