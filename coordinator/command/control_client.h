/* Asks the live coordinator over STATE/control.sock: sends one line, and reads the answer until the
 * connection ends. */
#ifndef DML_COORDINATOR_COMMAND_CONTROL_CLIENT_H
#define DML_COORDINATOR_COMMAND_CONTROL_CLIENT_H

/* How long the coordinator may take for its answer. */
#define CONTROL_ANSWER_MS 2000

/* Sends `question` and waits for the whole answer; free it. ERROR_UNAVAILABLE if nobody listens,
 * ERROR_AGAIN, with the pid, if the coordinator does not answer. */
int control_ask(const char *state, const char *question, char **answer);

#endif
