#include "coordinator/status/invocations.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/status/figures.h"

static int take_invocation(void *context, const struct store_invocation *invocation) {
    const bool open = !*invocation->outcome;
    json_t *ended = invocation->ended_ms ? json_integer(invocation->ended_ms) : json_null();
    json_t *status = invocation->status < 0 ? json_null() : json_integer(invocation->status);
    json_t *run = invocation->run ? json_integer(invocation->run) : json_null();
    return json_array_append_new(
        context,
        json_pack("{s:I, s:s, s:I, s:I, s:o, s:I, s:s, s:o, s:o, s:o}", "invocation",
                  (json_int_t)invocation->invocation, "command", invocation->command, "first_ms",
                  (json_int_t)invocation->first_ms, "began_ms", (json_int_t)invocation->began_ms,
                  "ended_ms", ended, "times", (json_int_t)invocation->times, "outcome",
                  open ? "lost" : invocation->outcome, "status", status, "reason",
                  text_or_null(open ? INVOCATION_LOST : invocation->reason), "run", run));
}

int invocations_read(struct store *store, json_t **list) {
    *list = json_array();
    return store_invocations(store, take_invocation, *list);
}

json_t *invocations_last(const json_t *list) {
    size_t count = json_array_size(list);
    return count ? json_array_get(list, count - 1) : NULL;
}

static bool came_to(const json_t *invocation, const char *outcome) {
    return strcmp(member_text(invocation, "outcome"), outcome) == 0;
}

void invocation_is_at_work(json_t *invocation, const char *outcome) {
    if (!came_to(invocation, "lost"))
        return;
    json_object_set_new(invocation, "outcome", json_string(outcome));
    json_object_set_new(invocation, "reason", json_null());
}

bool invocation_is_news(const json_t *invocation) {
    if (came_to(invocation, "published") || came_to(invocation, "kept"))
        return member_count(invocation, "status") != 0;
    if (came_to(invocation, "stopped") && member_count(invocation, "run"))
        return false;
    return invocation && !came_to(invocation, "refused");
}

bool invocation_has_failed(const json_t *invocation) {
    return came_to(invocation, "failed") || came_to(invocation, "lost");
}

long long invocations_failures(const json_t *list) {
    long long failures = 0;
    for (size_t i = json_array_size(list); i; i--) {
        const json_t *invocation = json_array_get(list, i - 1);
        if (invocation_has_failed(invocation))
            failures += member_count(invocation, "times");
        else if (json_is_integer(json_object_get(invocation, "status")) &&
                 !came_to(invocation, "stopped"))
            break;
    }
    return failures;
}

char *invocation_words(const json_t *invocation) {
    long long status = member_count(invocation, "status"),
              times = member_count(invocation, "times");
    const json_t *reason = json_object_get(invocation, "reason");
    char first[CLOCK_MINUTE], exited[32] = "", repeated[64] = "";
    clock_minute(member_count(invocation, "first_ms"), first);
    if (status)
        snprintf(exited, sizeof exited, " (%lld)", status);
    if (times > 1)
        snprintf(repeated, sizeof repeated, ", %lld times since %s", times, first);
    return memory_format("%s: %s%s%s%s%s", member_text(invocation, "command"),
                         member_text(invocation, "outcome"), exited, repeated,
                         json_is_string(reason) ? ": " : "",
                         json_is_string(reason) ? json_string_value(reason) : "");
}
