/* What is known of a state folder: from the live coordinator, else from the store. */
#ifndef DML_COORDINATOR_COMMAND_ASK_H
#define DML_COORDINATOR_COMMAND_ASK_H

#include <jansson.h>

/* As report_status() and report_runs(). ERROR_AGAIN if a coordinator holds the folder and does not
 * answer. */
int ask_status(const char *state, json_t **status);
int ask_runs(const char *state, json_t **runs);

#endif
