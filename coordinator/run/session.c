/* A command that trains, from the lock on the state folder to the release of it. */
#include "coordinator/run/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/run/host_lookup.h"
#include "coordinator/run/preview.h"
#include "coordinator/machine/coordinator.h"
#include "coordinator/run/state_folder.h"
#include "data/source/dictionary.h"

/* A program that cannot end the newest run of a job leaves the record to the program that can,
 * which would refuse one that was brought up to date. A run whose record is damaged is nobody's to
 * end. */
static int leave_to_other(void *context, const struct store_run *run) {
    struct store_saved saved;
    bool has_model = reason_has_model(reason_of(run->reason));
    if (run->reason && (has_model || !reason_text_can_resume(run->reason)))
        return 0;
    if (store_saved_read(context, run->run, &saved)) {
        error_clear();
        return 0;
    }
    int code = coordinator_check_saved(&saved, run->run);
    store_saved_release(&saved);
    if (!code)
        return 0;
    char *why = memory_copy_string(error_text()), *folder = store_folder(context);
    error_clear();
    code = error_set(code, "%s; until then %s stays as it is, so nothing was changed", why, folder);
    free(folder);
    free(why);
    return code;
}

int session_may_upgrade(struct store *preview) {
    return store_runs_newest(preview, leave_to_other, preview);
}

static void leave(void *context, const char *why) {
    struct session *session = context;
    status_end(session);
    invocation_end(&session->invocation, session->store, ERROR_AGAIN, NULL, why);
    if (session->launch.base && guard_holds())
        launch_leave(&session->launch);
}

int session_open(struct session *session) {
    assert(session->job && session->options && session->command && !session->store);
    int code = dataset_make_state(session->job);
    if (!code) /* it may wait, which a signal ends at once as long as there is no loop */
        code = state_lock(session->job->state, STATE_WORKS, &session->lock);
    if (!code)
        code = loop_open(&session->loop);
    session->loop.context = session;
    session->loop.leave = leave;
    if (!code)
        code = store_open(session->job->state, session->options->fresh ? NULL : session_may_upgrade,
                          &session->store);
    if (!code)
        code = invocation_begin(&session->invocation, session->store, session->command);
    if (!code)
        code = status_begin(session);
    if (!code)
        code = devices_check(session->job);
    if (!code)
        code = hosts_look_up(session->job, &session->loop,
                             &session->hosts); /* before hours of packing */
    return code;
}

struct dataset_read {
    const struct job *job;
    const char *model;
    struct dataset *data;
};

/* For each column of `now` the one of `before` in its place, if that is called so too or either
 * table has no names; else the first that is called so; COLUMN_NOWHERE: there is none. Free them.
 * A table may have a million columns. */
static uint32_t *counterparts(const struct table *before, const struct table *now) {
    const bool named = table_is_named(before) && table_is_named(now);
    uint32_t *then = memory_new(now->columns, sizeof *then);
    uint32_t *first = memory_new(before->columns, sizeof *first); /* of each name */
    struct text_dictionary names;
    text_dictionary_init(&names);
    for (uint32_t i = 0; named && i < before->columns; i++) {
        uint32_t known = names.count, name = text_dictionary_add(&names, before->column[i].name);
        if (name == known)
            first[name] = i;
    }
    for (uint32_t i = 0; i < now->columns; i++) {
        uint32_t name = named ? text_dictionary_find(&names, now->column[i].name) : DICTIONARY_NONE;
        then[i] = name != DICTIONARY_NONE ? first[name] : COLUMN_NOWHERE;
        if (i < before->columns && (!named || !strcmp(before->column[i].name, now->column[i].name)))
            then[i] = i;
    }
    text_dictionary_release(&names);
    free(first);
    return then;
}

/* Warns of columns that were numbers in the model before and are texts now, or the reverse: one
 * stray text in an export does that, and the model is another one then. Cron hears it, too, as no
 * error may follow. */
static void warn_of_kinds(const struct table *before, const struct table *now) {
    char name[COLUMN_TEXT];
    if (!before || !now)
        return;
    uint32_t *places = counterparts(before, now);
    for (uint32_t i = 0; i < now->columns; i++) {
        const struct table_column *column = &now->column[i];
        if (places[i] == COLUMN_NOWHERE || column->is_part || !table_uses(column))
            continue;
        assert(places[i] < before->columns);
        const struct table_column *then = &before->column[places[i]];
        const bool numbers = column->kind == COLUMN_NUMBER;
        if (!table_uses(then) || numbers == (then->kind == COLUMN_NUMBER))
            continue;
        log_line(LOG_WARNING,
                 "%s holds %s now, and %s in the data of the model before: if that is a fault of "
                 "the data, list it in %s, and such data is %s",
                 table_describe(now, i, name), numbers ? "numbers" : "texts",
                 numbers ? "texts" : "numbers", numbers ? "csv.categories" : "csv.numbers",
                 numbers ? "read as before" : "an error");
    }
    free(places);
}

/* A model that cannot be opened is told of when it is needed. */
static int work_on_data(void *context) {
    struct dataset_read *reading = context;
    struct model *model = NULL;
    if (reading->model && model_open(reading->model, &model))
        error_clear();
    int code = dataset_open(reading->job, model ? model->layout.table : NULL, reading->data);
    if (!code && model)
        warn_of_kinds(model->layout.table, set_info(reading->data->set)->table);
    model_close(model);
    return code;
}

int session_read(struct session *session, const char *model, struct dataset *data) {
    assert(session->loop.base && session->store);
    struct dataset_read reading = {.job = session->job, .model = model, .data = data};
    return loop_beside(&session->loop, STAGE_PACKING, work_on_data, &reading);
}

void session_close(struct session *session) {
    hosts_release(&session->hosts);
    status_end(session);
    loop_close(&session->loop);
    if (session->store)
        store_close(session->store);
    state_unlock(session->lock);
    job_free(session->job);
}
