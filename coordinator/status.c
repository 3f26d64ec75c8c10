#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "coordinator/ask.h"
#include "coordinator/command.h"
#include "coordinator/control_client.h"
#include "coordinator/place.h"
#include "coordinator/report.h"

static int print_once(const struct options *options, const char *state, bool *ended) {
    json_t *status;
    int code = ask_status(state, &status);
    if (code)
        return code;
    if (options->watch && !options->json && isatty(STDOUT_FILENO))
        fputs("\033[H\033[J", stdout);
    if (options->json)
        report_print_json(status);
    else
        report_print_status(status);
    fflush(stdout);
    const char *now = json_string_value(json_object_get(status, "state"));
    *ended = now && (strcmp(now, "ended") == 0 || strcmp(now, "interrupted") == 0);
    json_decref(status);
    return 0;
}

int command_status(const struct options *options) {
    char *state;
    bool ended = false;
    int code = place_of(options, &state);
    if (code)
        return code;
    code = print_once(options, state, &ended);
    while (!code && options->watch && !ended) {
        sleep(1);
        code = print_once(options, state, &ended);
    }
    free(state);
    return code;
}

int command_cancel(const struct options *options) {
    char *state, *answer = NULL;
    int code = place_of(options, &state);
    if (code)
        return code;
    code = control_ask(state, "cancel\n", &answer);
    if (!code && strncmp(answer, "ok", 2) != 0)
        code = error_set(ERROR_UNAVAILABLE, "%s: the coordinator did not take it: %s", state,
                         *answer ? answer : "it is about to end");
    if (!code && !options->quiet)
        printf("%s: the run stops at the next point where it can be resumed\n", state);
    free(answer);
    free(state);
    return code;
}
