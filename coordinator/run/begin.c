/* The beginning of a run: a new one or one that goes on, and its starting point. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/run/training.h"
#include "coordinator/status/run_folder.h"
#include "coordinator/status/sweep_plan.h"
#include "numeric/setup.h"
#include "objective/family.h"

static void name_shards_folder(struct training *run, int64_t number) {
    assert(!run->shards_folder);
    run->shards_folder =
        memory_format("%s/shards/%lld", run->session->job->state, (long long)number);
}

/* ---- the starting point ---- */

/* For reading a model beside the loop. */
struct opening {
    const char *folder;
    struct model *model;
};

static int work_on_opening(void *context) {
    struct opening *opening = context;
    return model_open(opening->folder, &opening->model);
}

int training_open_model(struct training *run, const char *folder, struct model **model) {
    struct opening opening = {.folder = folder};
    int code =
        folder ? loop_beside(&run->session->loop, STAGE_STARTING, work_on_opening, &opening) : 0;
    *model = opening.model;
    return code;
}

/* For writing a starting point beside the loop. */
struct starting {
    const struct training *run;
    const struct model *model;
};

static int work_on_start(void *context) {
    const struct starting *starting = context;
    const struct training *run = starting->run;
    bool evaluated_only =
        run->member.sweep && !run->member.is_start; /* by rows that it shall not know */
    struct scaling_walk walk = {0};
    const struct start_options options = {
        .keeps = run->session->job->vanished == VANISHED_KEEP && !evaluated_only &&
                 !family_of(&run->shape)->own_tensors,
        .pairs_most = run->preconditioner.form ? 0 : run->sizing.history,
        .form = scaling_form(&run->scaling, set_info(run->set), run->shape.network.unit),
        .unit = objective_output_unit(&run->shape),
        .walk = run->scaling.columns ? &walk : NULL,
    };
    if (run->scaling.columns)
        scaling_walk_begin(&walk, &run->parameters, scaling_of_data(&run->scaling));
    int code = start_write(run->shards_folder, run->uuid, starting->model, &run->layout, &options);
    scaling_walk_end(&walk);
    return code;
}

/* Opens the model to start from. NULL if there is none, or if the live one does not fit any more;
 * in that case the log says why. A model that cannot be read is an error, and so is one that
 * --start names and that does not fit: whoever names a model means it, and would pay for a start
 * from zero with a long run. */
static int open_model(struct training *run, struct model **model) {
    int code = training_open_model(run, run->start_from, model);
    if (code || !*model || !model_fits(*model, &run->layout))
        return code;
    const char *named = run->session->options->start;
    char *why = memory_copy_string(error_text());
    error_clear();
    if (named && strcmp(named, run->start_from) == 0)
        code = error_set(ERROR_DATA,
                         "%s is nothing to start from: %s; without --start the run starts from "
                         "zero",
                         named, why);
    else
        log_warning("%s is nothing to start from: %s; this run starts from zero", run->start_from,
                    why);
    free(why);
    model_close(*model);
    *model = NULL;
    return code;
}

static int open_start(struct training *run) {
    if (!*run->start_model)
        return 0;
    int code = start_open(run->shards_folder, run->uuid, run->start_model, &run->layout,
                          scaling_form(&run->scaling, set_info(run->set), run->shape.network.unit),
                          &run->start);
    if (!code && run->start.kept.features)
        run->layout.kept = &run->start.kept;
    return code;
}

/* ---- a new run ---- */

/* The order matters: the starting point must be on the disk before the run is recorded, because the
 * record promises it. The number of the run is known before it is recorded: only the holder of the
 * lock begins runs. If this process dies in between there is no run, and the next run, which gets
 * the same number, clears the folder. */
static int prepare_folder(struct training *run, const struct model *model, int64_t *number) {
    int code = state_run_next(run->session->job->state, run->session->store, number);
    if (code)
        return code;
    name_shards_folder(run, *number);
    folder_remove(
        run->shards_folder); /* left by a run that did not begin, or that a lost database had */
    if (!model)
        return 0;
    struct starting starting = {.run = run, .model = model};
    return loop_beside(&run->session->loop, STAGE_STARTING, work_on_start, &starting);
}

/* Records the files that the run is trained on, without those of the holdout. */
static int record_sources(struct training *run) {
    int code = 0;
    for (uint32_t i = 0; !code && i < run->data->sources.count; i++) {
        const struct dataset_source *source = &run->data->sources.items[i];
        if (source->use == USE_TRAINING)
            code = store_source(run->session->store, run->recorder.run,
                                &(struct store_source){.position = i,
                                                       .path = source->path,
                                                       .fingerprint = source->fingerprint,
                                                       .bytes = source->bytes,
                                                       .rows = source->rows});
    }
    return code;
}

static int begin_new(struct training *run, struct store_run *record, const struct model *model) {
    struct session *session = run->session;
    char *uuid;
    size_t length;
    assert(!run->start_model && !run->resumed);
    int code = file_read("/proc/sys/kernel/random/uuid", 64, &uuid, &length);
    if (!code) {
        snprintf(run->uuid, sizeof run->uuid, "%.36s", uuid);
        free(uuid);
    }
    if (!code)
        code = prepare_folder(run, model, &record->run);
    run->start_model = memory_copy_string(model ? model->sha256 : "");
    if (!code && model)
        code = store_model_run(session->store, model->sha256, &run->start_run);
    record->uuid = run->uuid;
    record->data = set_info(run->set)->fingerprint;
    record->build = numeric_description();
    record->started_ms = run->started_ms;
    record->command = session->command;
    run->retrains = strcmp(session->command, "retrain") == 0;
    record->start_model = run->start_model;
    record->start_run = run->start_run;
    record->sweep = run->member.sweep;
    record->member = run->member.number;
    if (!code)
        code = store_run_begin(session->store, record);
    run->recorder.run = record->run;
    if (!code)
        code = record_sources(run);
    if (!code && model)
        log_info("run %lld starts from the parameters of %s", (long long)record->run,
                 run->start_from);
    return code ? code : open_start(run);
}

/* Logs why an unfinished run is not taken up. */
static void explain_new_run(const struct training *run) {
    struct store_run last;
    bool found = false;
    if (run->member.sweep)
        return;
    int code = store_run_last(run->session->store, &last, &found);
    error_clear();
    const bool unfinished = !code && found && !last.reason;
    json_t *settings = unfinished ? json_loads(last.settings, 0, NULL) : NULL;
    const char *key = settings ? job_first_difference(run->session->job, settings) : NULL;
    if (unfinished && last.sweep)
        log_info("run %lld is unfinished, but belongs to sweep %lld: a new run starts",
                 (long long)last.run, (long long)last.sweep);
    else if (key)
        log_info("run %lld is unfinished, but has another `%s`: a new run starts",
                 (long long)last.run, key);
    else if (unfinished && strcmp(last.data, set_info(run->set)->fingerprint))
        log_info("run %lld is unfinished, but has other data: a new run starts",
                 (long long)last.run);
    else if (unfinished && !run->session->options->fresh)
        log_info("run %lld is unfinished, but started from %s: a new run starts",
                 (long long)last.run, *last.start_model ? "another model" : "zero");
    json_decref(settings);
    store_run_release(&last);
}

/* ---- a run that goes on ---- */

/* A run that has a model keeps it, as it may be live, or in somebody's hands: what goes on from its
 * limit is another run, which takes over its checkpoints. */
static int begin_from_end_of(struct training *run, const struct store_run *found,
                             const char *settings) {
    struct store_run record = {.settings = settings,
                               .build = numeric_description(),
                               .started_ms = run->started_ms,
                               .command = run->session->command};
    int code = state_run_next(run->session->job->state, run->session->store, &record.run);
    if (!code)
        code = store_run_continue(run->session->store, found, &run->saved, &record);
    if (code)
        return code;
    run->recorder.run = record.run;
    run->retrains = strcmp(run->session->command, "retrain") == 0;
    run->continues = found->run;
    return 0;
}

/* The number of shards is that of the durable step, even if this machine would choose another one:
 * each shard loads the checkpoint of its own range. */
static int take_up(struct training *run, const struct store_run *found, const char *settings) {
    assert(!run->start_model && !run->saved.step_count);
    snprintf(run->uuid, sizeof run->uuid, "%s", found->uuid);
    run->recorder.run = found->run;
    run->continues = found->continues;
    run->seconds_before = found->seconds;
    run->resumed = true;
    run->interrupted = !found->reason;
    run->retrains = strcmp(found->command, "retrain") == 0;
    run->start_model = memory_copy_string(found->start_model);
    run->start_run = found->start_run;
    name_shards_folder(run, found->origin);
    int code = open_start(run);
    /* What was saved is read before the record says that the run goes on, so that the program that
     * began the run finds all as it left it. */
    if (!code)
        code = store_saved_read(run->session->store, found->run, &run->saved);
    if (!code)
        code = coordinator_check_saved(&run->saved, found->run);
    if (code)
        return code;
    if (reason_has_model(reason_of(found->reason))) {
        code = begin_from_end_of(run, found, settings);
    } else {
        run->started_ms = found->started_ms;
        code = store_run_resume(run->session->store, found->run, settings);
    }
    if (code)
        return code;
    if (!run->saved.step_count) {
        log_info("run %lld goes on; no step is durable yet", (long long)found->run);
        return 0;
    }
    const unsigned long long step = run->saved.steps[0].step;
    run->sizing.shards = run->saved.steps[0].shards;
    if (run->recorder.run == found->run)
        log_info("run %lld goes on; step %llu is durable", (long long)found->run, step);
    else
        log_info("run %lld goes on from the end of run %lld; step %llu is durable",
                 (long long)run->recorder.run, (long long)found->run, step);
    return 0;
}

/* ---- a new one or one that goes on ---- */

/* The run to go on with, if one can go on and is what the command asks for; zeroed if there is
 * none. Release it. */
static int find_unfinished(struct training *run, const char *identity, const struct model *model,
                           struct store_run *unfinished) {
    bool found;
    *unfinished = (struct store_run){0};
    if (run->member.sweep)
        return store_run_of_member(run->session->store, run->member.sweep, run->member.number,
                                   reason_text_can_resume, unfinished, &found);
    if (run->session->options->fresh)
        return 0;
    int code = store_run_unfinished(run->session->store, identity, set_info(run->set)->fingerprint,
                                    reason_text_can_resume, unfinished, &found);
    if (code || !found)
        return code;
    bool is_meant = !model || !strcmp(unfinished->start_model, model->sha256);
    if (is_meant && reason_has_model(reason_of(unfinished->reason)) &&
        !limit_has_checkpoints(run->session->job->state, unfinished->origin)) {
        log_info("run %lld has ended at a limit, and its checkpoints were removed: a new run "
                 "starts",
                 (long long)unfinished->run);
        is_meant = false;
    }
    if (!is_meant)
        store_run_release(unfinished);
    return 0;
}

int training_begin(struct training *run) {
    struct session *session = run->session;
    const struct options *options = session->options;
    assert(run->set && session->store && !run->resumed && !run->recorder.run);
    char *identity =
        run->member.sweep ? memory_copy_string(run->member.identity) : job_identity(session->job);
    json_t *settings = job_settings(session->job);
    char *text = json_dumps(settings, JSON_COMPACT);
    struct store_run unfinished = {0};
    struct model *model = NULL;
    run->recorder.store = session->store;
    int code = open_model(run, &model);
    if (!code)
        code = find_unfinished(run, identity, model, &unfinished);
    if (!code && unfinished.run) {
        code = take_up(run, &unfinished, text);
    } else if (!code) {
        struct store_run record = {
            .job = session->job->name, .identity = identity, .settings = text};
        explain_new_run(run);
        code = begin_new(run, &record, model);
    }
    session->invocation.run = run->recorder.run;
    /* A sweep has one label, for the model that it comes to. */
    if (!code && !run->member.sweep && (options->tag || options->note))
        code = store_run_label(session->store, run->recorder.run, options->tag, options->note);
    store_run_release(&unfinished);
    model_close(model);
    free(text);
    json_decref(settings);
    free(identity);
    return code;
}
