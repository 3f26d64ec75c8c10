#include "coordinator/command/record_reader.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "coordinator/run/lock.h"
#include "coordinator/status/figures.h"

int record_reader_open(const char *state, struct record_reader *reader) {
    *reader = (struct record_reader){.state = state, .lock = -1};
    if (state_may_write(state)) {
        int code = state_lock(state, &reader->lock);
        return code ? code : store_open_existing(state, &reader->store);
    }
    reader->copy = true;
    reader->maybe_live = state_maybe_locked(state);
    return store_read(state, &reader->store);
}

void record_reader_close(struct record_reader *reader) {
    store_close(reader->store);
    state_unlock(reader->lock);
    *reader = (struct record_reader){.lock = -1};
}

/* The name of a folder's owner, or the number of one without a name. */
static void name_owner(const char *folder, char *text, size_t size) {
    struct stat status = {0};
    (void)stat(folder, &status);
    const struct passwd *owner = getpwuid(status.st_uid);
    if (owner)
        snprintf(text, size, "%s", owner->pw_name);
    else
        snprintf(text, size, "user %u", (unsigned)status.st_uid);
}

void record_reader_mark(const struct record_reader *reader, json_t *run) {
    static bool warned;
    char owner[64];
    if (!reader->maybe_live || strcmp(member_text(run, "state"), "interrupted") != 0)
        return;
    json_object_set_new(run, "state", json_string("unknown"));
    if (warned)
        return;
    warned = true; /* `serve` and `status --watch` look again and again */
    name_owner(reader->state, owner, sizeof owner);
    log_warning(
        "%s: run %lld has not ended, and whether its coordinator still works cannot be told "
        "without write access: this is what is recorded; for live figures ask as %s",
        reader->state, member_count(run, "run"), owner);
}
