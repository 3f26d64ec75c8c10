/* Asking the live coordinator over STATE/control.sock: one line goes there, what comes back until
 * the end is the answer. */
#ifndef DML_COORDINATOR_COMMAND_CONTROL_CLIENT_H
#define DML_COORDINATOR_COMMAND_CONTROL_CLIENT_H

/* How long a coordinator may take to answer. */
#define CONTROL_ANSWER_MS 2000

/* Sends `question` and waits for the whole answer; free it. ERROR_UNAVAILABLE if nobody listens,
 * ERROR_AGAIN if the coordinator is mute, with its pid. */
int control_ask(const char *state, const char *question, char **answer);

#endif
