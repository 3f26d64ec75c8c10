/* Asks about a state folder: the live coordinator, or the store if there is no coordinator. */
#ifndef DML_COORDINATOR_COMMAND_ASK_H
#define DML_COORDINATOR_COMMAND_ASK_H

#include <jansson.h>

/* The answers are those of report_status() and report_runs(). ERROR_AGAIN if a coordinator holds
 * the folder and does not answer. */
int ask_status(const char *state, json_t **status);
int ask_runs(const char *state, json_t **runs);

/* The same, but only of a live coordinator: ERROR_UNAVAILABLE if there is none. */
int ask_live_status(const char *state, json_t **status);
int ask_live_runs(const char *state, json_t **runs);

#endif
