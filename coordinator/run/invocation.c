#include "coordinator/run/invocation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/status/invocations.h"

int invocation_begin(struct invocation *invocation, struct store *store, const char *command) {
    char when[CLOCK_MINUTE];
    int64_t lost_ms = 0;
    int code = store_invocation_begin(store, command, &invocation->number, &lost_ms);
    if (code)
        invocation->number = 0;
    if (code || !lost_ms)
        return code;
    clock_minute(lost_ms, when);
    log_warning("the command before this one, begun %s, came to nothing: " INVOCATION_LOST, when);
    return 0;
}

/* A member that is a text; "" without one. */
static const char *text_in(const json_t *result, const char *member) {
    const char *text = json_string_value(json_object_get(result, member));
    return text ? text : "";
}

const char *invocation_outcome(int code, const json_t *result) {
    const char *decision = text_in(result, "decision");
    if (*decision)
        return decision;
    if (strcmp(text_in(result, "reason"), NO_NEW_DATA) == 0)
        return "nothing new";
    return code == ERROR_AGAIN ? "stopped" : "failed";
}

void invocation_add(const struct invocation *invocation, struct store *store, int code,
                    json_t *result) {
    json_t *list;
    json_object_set_new(result, "outcome", json_string(invocation_outcome(code, result)));
    json_object_set_new(result, "invocation", json_integer(invocation->number));
    if (invocations_read(store, &list)) {
        error_clear();
    } else {
        invocation_is_at_work(invocations_last(list), "running"); /* this one */
        json_object_set_new(result, "failures_before", json_integer(invocations_failures(list)));
    }
    json_decref(list);
}

void invocation_end(struct invocation *invocation, struct store *store, int code,
                    const json_t *result, const char *why) {
    if (!invocation->number || !store)
        return;
    assert(code <= 0);                              /* its negation is an exit status */
    char *error = memory_copy_string(error_text()); /* which `why` may be */
    char *reason = memory_copy_string(why ? why : text_in(result, "decision_why"));
    error_clear();
    int failed = store_invocation_end(
        store, &(struct store_invocation){.invocation = invocation->number,
                                          .outcome = invocation_outcome(code, result),
                                          .status = -code,
                                          .reason = reason,
                                          .run = invocation->run});
    if (failed && failed != ERROR_AGAIN) /* then another process has the folder and its record */
        log_warning("what came of this command is not recorded: %s", error_text());
    error_clear();
    if (*error)
        error_set(code, "%s", error);
    free(reason);
    free(error);
    invocation->number = 0;
}
