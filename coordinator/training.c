/* The stages of a run, from the lock on the state folder to the last slice of the model. */
#include "coordinator/training.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/dataset.h"
#include "coordinator/live.h"
#include "coordinator/lock.h"
#include "coordinator/progress.h"
#include "coordinator/report.h"
#include "numeric/setup.h"

#define DISMISS_GRACE_MS 3000

/* ---- acquiring ---- */

static int open_state(struct training *run) {
    int code = folder_make(run->job->state, 0700);
    if (!code)
        code = state_lock(run->job->state, &run->lock);
    if (!code)
        code = store_open(run->job->state, &run->store);
    return code;
}

static int open_data(struct training *run) {
    progress_stage("reading the data");
    int code = dataset_open(run->job, &run->set, &run->seconds.pack);
    if (code)
        return code;
    const struct set_info *info = set_info(run->set);
    run->shape = (struct objective_shape){
        .kind = run->job->objective,
        .features = info->features,
        .outputs = run->job->objective == OBJECTIVE_SOFTMAX ? info->classes : 1,
        .intercept = run->job->intercept,
    };
    log_info("data: %llu examples, %u features, %llu values in %u chunks",
             (unsigned long long)info->rows, info->features, (unsigned long long)info->values,
             info->chunks);
    return sizing_of(run->job, info, objective_parameters(&run->shape), &run->sizing);
}

static int new_uuid(char uuid[37]) {
    char *text;
    size_t length;
    int code = file_read("/proc/sys/kernel/random/uuid", 64, &text, &length);
    if (code)
        return code;
    snprintf(uuid, 37, "%.36s", text);
    free(text);
    return 0;
}

static int begin_run(struct training *run) {
    char *identity = job_identity(run->job);
    json_t *settings = job_settings(run->job);
    char *settings_text = json_dumps(settings, JSON_COMPACT);
    struct store_run record = {
        .uuid = run->uuid,
        .job = run->job->name,
        .identity = identity,
        .settings = settings_text,
        .data = set_info(run->set)->fingerprint,
        .build = numeric_description(),
        .started_ms = run->started_ms,
    };
    int code = new_uuid(run->uuid);
    if (!code)
        code = store_run_begin(run->store, &record);
    run->recorder = (struct recorder){.store = run->store, .run = record.run};
    free(settings_text);
    json_decref(settings);
    free(identity);
    return code;
}

/* Starts the workers that have no address of their own, and lists where each is. */
static int start_workers(struct training *run) {
    uint32_t shards = run->sizing.shards, replicas = run->sizing.replicas;
    uint32_t shards_here = run->job->shard_addresses[0] ? 0 : shards;
    uint32_t replicas_here = run->job->replica_addresses[0] ? 0 : replicas;
    const char *verbosity = run->options->quiet     ? "--quiet"
                            : run->options->verbose ? "--verbose"
                                                    : NULL;
    progress_stage("starting shards and replicas");
    int code = launch_start(&run->launch, shards_here, replicas_here, verbosity);
    if (code)
        return code;
    run->addresses = memory_new(shards + replicas, sizeof *run->addresses);
    for (uint32_t i = 0; i < shards; i++)
        run->addresses[i] =
            shards_here ? run->launch.workers[i].address : run->job->shard_addresses[i];
    for (uint32_t i = 0; i < replicas; i++)
        run->addresses[shards + i] = replicas_here ? run->launch.workers[shards_here + i].address
                                                   : run->job->replica_addresses[i];
    return 0;
}

static int make_coordinator(struct training *run) {
    const struct job *job = run->job;
    struct coordinator_settings settings = {
        .optimizer = {.memory = run->sizing.history,
                      .l2 = job->l2,
                      .gradient_tolerance = job->gradient_tolerance,
                      .loss_tolerance = job->loss_tolerance,
                      .steps_max = job->max_steps},
        .shape = run->shape,
        .history_type = job->history_type,
        .data = set_info(run->set),
        .set_path = set_path(run->set),
        .run = run->uuid,
        .shards = run->sizing.shards,
        .replicas = run->sizing.replicas,
        .threads = run->sizing.threads,
        .portion_chunks = job->portion_chunks,
        .flush_ms = job->flush_ms,
        .reconnect_seconds = job->reconnect_seconds,
        .shard_addresses = run->addresses,
    };
    int code = store_epoch_next(run->store, &settings.epoch);
    if (!code)
        run->coordinator = coordinator_new(&settings);
    return code;
}

/* The model is written beside its final place from the first slice on. */
static int prepare_model(struct training *run) {
    const struct set_info *info = set_info(run->set);
    run->layout = (struct model_layout){
        .objective = objective_name(run->shape.kind),
        .outputs = run->shape.outputs,
        .intercept = run->shape.intercept,
        .features = info->features,
        .feature_id = info->feature_id,
        .original_order = info->original_order,
        .feature_names = info->feature_names,
        .classes = info->classes,
        .class_names = info->class_names,
    };
    run->model_folder =
        memory_format("%s/models/%lld", run->job->state, (long long)run->recorder.run);
    return model_writer_new(run->model_folder, &run->layout, &run->recorder.writer);
}

/* ---- callbacks of the loop ---- */

static int on_record(void *context, const struct coordinator *coordinator,
                     const struct record *record) {
    struct training *run = context;
    if (record->kind == RECORD_SLICE && !run->recorder.writer) {
        int code = prepare_model(run);
        if (code)
            return code;
    }
    return recorder_take(&run->recorder, coordinator, record);
}

static int on_tick(void *context, const struct coordinator *coordinator) {
    struct training *run = context;
    progress_run(coordinator, training_seconds(run));
    return store_flush(run->store);
}

static json_t *on_status(void *context) {
    struct training *run = context;
    return live_json(run->coordinator, run->job->name, run->recorder.run, run->started_ms,
                     training_seconds(run));
}

static json_t *on_runs(void *context) {
    struct training *run = context;
    json_t *runs = NULL;
    if (report_runs(run->store, &runs)) {
        runs = json_pack("{s:s}", "error", error_text());
        error_clear(); /* a question that could not be answered does not end the run */
    }
    return runs;
}

static void on_cancel(void *context) {
    struct training *run = context;
    log_info("cancelled over the control socket: stopping");
    cluster_cancel(run->cluster);
}

/* ---- training ---- */

static int open_loop(struct training *run) {
    struct control_callbacks control = {
        .status = on_status, .runs = on_runs, .cancel = on_cancel, .context = run};
    struct cluster_options options = {
        .addresses = run->addresses,
        .launch = run->launch.count ? &run->launch : NULL,
        .seconds_max = run->job->max_seconds,
        .record = on_record,
        .tick = on_tick,
        .context = run,
    };
    run->base = event_base_new();
    if (!run->base)
        return error_set(ERROR_UNAVAILABLE, "libevent offers no way to wait for sockets");
    int code = cluster_new(run->base, run->coordinator, &options, &run->cluster);
    if (!code)
        code = control_new(run->base, run->job->state, &control, &run->control);
    return code;
}

static int train(struct training *run) {
    double start = training_seconds(run);
    int code = open_loop(run);
    if (!code)
        code = cluster_run(run->cluster);
    run->seconds.train = training_seconds(run) - start;
    progress_close();
    return code;
}

int training_run(struct training *run) {
    int code = open_state(run);
    if (!code)
        code = open_data(run);
    if (!code)
        code = begin_run(run);
    if (!code)
        code = start_workers(run);
    if (!code)
        code = make_coordinator(run);
    if (!code)
        code = train(run);
    return code;
}

void training_release(struct training *run, int code) {
    progress_close();
    json_decref(run->result);
    model_writer_discard(run->recorder.writer);
    free(run->model_folder);
    control_free(run->control);
    if (run->cluster)
        cluster_dismiss(run->cluster, code ? "the run ended early" : "the run has ended");
    cluster_free(run->cluster);
    if (run->base)
        event_base_free(run->base);
    coordinator_free(run->coordinator);
    launch_release(&run->launch, DISMISS_GRACE_MS);
    free(run->addresses);
    set_close(run->set);
    if (run->store)
        store_close(run->store);
    if (run->lock >= 0)
        close(run->lock);
    job_free(run->job);
}
