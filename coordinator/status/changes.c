#include "coordinator/status/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Where results are kept says nothing about them. */
static bool is_told(const char *key) {
    return strcmp(key, "name") != 0 && strcmp(key, "state") != 0;
}

static json_t *compare(const char *before, const char *now) {
    json_t *old = json_loads(before, 0, NULL), *new = json_loads(now, 0, NULL);
    json_t *changed = json_object(), *value;
    const char *key;
    json_object_foreach(new, key, value) {
        json_t *from = json_object_get(old, key);
        if (from && is_told(key) && !json_equal(from, value))
            json_object_set_new(changed, key, json_pack("{s:O, s:O}", "from", from, "to", value));
    }
    json_decref(old);
    json_decref(new);
    return changed;
}

json_t *changes_note(struct changes *changes, const struct store_run *run) {
    bool comparable = changes->job && strcmp(changes->job, run->job) == 0;
    json_t *changed = comparable ? compare(changes->settings, run->settings) : json_null();
    if (comparable && strcmp(changes->data, run->data) && !json_object_get(changed, "data"))
        json_object_set_new(changed, "data",
                            json_pack("{s:s, s:s}", "from", changes->data, "to", run->data));
    changes_release(changes);
    *changes = (struct changes){.job = memory_copy_string(run->job),
                                .settings = memory_copy_string(run->settings),
                                .data = memory_copy_string(run->data)};
    return changed;
}

void changes_release(struct changes *changes) {
    free(changes->job);
    free(changes->settings);
    free(changes->data);
    *changes = (struct changes){0};
}
