/* The stages of a run, from its data to the last slice of the model. */
#include "coordinator/run/training.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/resources.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/host_lookup.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/preview.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/sets.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/run_folder.h"
#include "data/source/dictionary.h"
#include "numeric/setup.h"
#include "wire/channel.h"

#define DISMISS_GRACE_MS 3000

/* How often one coordinator starts one worker anew. If that is not enough, something is wrong with
 * the worker that a restart does not mend. */
#define RESTARTS_MAX 10

/* ---- before workers start ---- */

/* A first signal, or `cancel`, ends a training at a point from which it can be resumed. */
static void stop(void *context) {
    const struct session *session = context;
    cluster_cancel(session->training->cluster);
}

/* Finds the scaling to train in. Rows that cannot be scored must be found now, too, not after hours
 * of training. */
static int work_on_scaling(void *context) {
    struct training *run = context;
    const struct set_info *info = set_info(run->set);
    int code = training_measure_columns(run);
    /* Centred columns share nothing with the biases, and have their scale. */
    bool centred = run->scaling.columns && !run->scaling.plain;
    run->bias_scale = centred ? 1 : sizing_bias_scale(info);
    if (code)
        return code;
    /* Without its pack, a run that goes on has no rows to compare its model with. */
    const struct job *job = run->session->job;
    const struct sample_options options = {
        .folds = job->folds, .fold_seed = job->seed, .shuffle_seed = job->downpour.seed};
    char *packs = path_join(job->state, "packs");
    if (sample_take(run->set, packs, &options, &run->sample)) {
        log_debug("the model will not be compared with rows: %s", error_text());
        error_clear();
        sample_release(&run->sample);
    }
    free(packs);
    code = holdout_check(run->data->holdout, info, &run->layout, "holdout");
    return code ? code : holdout_check(run->data->test, info, &run->layout, "test");
}

/* Workers of other hosts have other working folders. */
static void find_places(struct training *run) {
    if (!run->session->tls)
        return;
    run->state = path_absolute(run->session->job->state);
    char *folder = path_absolute(run->shards_folder);
    free(run->shards_folder);
    run->shards_folder = folder;
    run->set_path = path_absolute(set_path(run->set));
}

/* The largest file of curvature that is kept with a model. `retrain` starts from it the next night.
 * After `run`, perhaps nothing ever does: there it is kept only if it costs next to nothing. */
#define CURVATURE_BYTES_MAX (UINT64_C(256) << 20)
#define CURVATURE_BYTES_SMALL (UINT64_C(1) << 20)

/* Few of the pairs help little. So `retrain` keeps the newest that fit, but `run` all or none. In a
 * sweep those runs keep them whose models others start from. */
static uint32_t pairs_to_keep(const struct training *run) {
    uint64_t bytes = 2 * sizeof(float) * layout_parameters(&run->parameters);
    uint32_t history = run->sizing.history;
    bool small = history * bytes <= CURVATURE_BYTES_SMALL;
    bool needed = run->member.sweep ? run->member.is_start
                                    : run->session->job->warm_start && (run->retrains || small);
    if (!needed)
        return 0;
    uint64_t most = CURVATURE_BYTES_MAX / bytes;
    return most < history ? (uint32_t)most : history;
}

/* The factors are those of the start that the seed gives, whatever the run starts from. */
static int work_on_kronecker(void *context) {
    struct training *run = context;
    return kronecker_scaling_find(&run->kronecker, &run->shape, run->set, run->scaling.columns,
                                  run->start.parameters);
}

/* NULL: where the layout says that tensors start. */
static const double *start_of(const struct training *run) {
    return run->kronecker.factors ? run->kronecker.start : run->start.parameters;
}

/* Losses are in this unit of the labels. */
static struct optimizer_settings optimizer_of(const struct training *run, double unit) {
    const struct job *job = run->session->job;
    assert(unit > 0 && run->sizing.history <= HISTORY_MAX);
    return (struct optimizer_settings){
        .memory = run->sizing.history,
        .l1 = job->l1.value,
        .l2 = run->kronecker.factors ? 0 : unit * job->l2.value,
        .summary = !job_inverts(job)                    ? SUMMARY_NONE
                   : job->summary == JOB_SUMMARY_ROBUST ? SUMMARY_ROBUST
                                                        : SUMMARY_MODEL,
        .limited = run->scaling.limits != NULL,
        .bounds_gap = job->l1.value > 0 && !job->intercept && !run->scaling.limits,
        .bias_scale = run->bias_scale,
        .loss_unit = unit,
        .gradient_tolerance = unit * job->gradient_tolerance,
        .loss_tolerance = job->loss_tolerance,
        .steps_max = job->max_steps,
        .patience = job->early_stopping,
        .preconditioner = run->preconditioner,
        .directions = run->sizing.directions,
        .outputs = run->shape.outputs,
        .weighted = set_info(run->set)->weighted,
        .offsets = set_info(run->set)->has_offsets,
        .from_zero =
            !start_of(run) && !run->scaling.limits && layout_starts_at_zero(&run->parameters),
        .single = run->shape.network.precision == PRECISION_FLOAT,
        .gap = run->estimates,
    };
}

/* What the coordinator must know of its workers. */
static void add_workers(const struct training *run, struct coordinator_settings *settings) {
    struct session *session = run->session;
    const struct job *job = session->job;
    assert(run->sizing.shards > 0 && run->sizing.replicas > 0);
    settings->shards = run->sizing.shards;
    settings->replicas = workers_replicas(run);
    settings->replicas_most = run->places.any ? REPLICAS_MAX : 0;
    settings->replicas_fixed = run->places.fixed;
    settings->threads = run->sizing.threads;
    settings->portion_chunks = job->portion_chunks;
    settings->backup_copies = job->backup_copies;
    settings->flush_ms = session->hosts.count
                             ? sizing_flush_ms(job, (uint64_t)run->sizing.held, &run->sizing)
                             : job->flush_ms;
    settings->device = job->device;
    settings->scratch = job->scratch;
    settings->reconnect_seconds = job->reconnect_seconds;
    settings->shard_addresses = run->addresses;
    settings->replica_addresses = run->addresses + run->sizing.shards;
    settings->state = run->state;
    settings->holder = guard_text();
    settings->shards_folder = run->shards_folder;
    settings->checkpoint_ns = (int64_t)(job->checkpoint_seconds * 1e9);
    settings->restarts_max = RESTARTS_MAX;
    settings->by_hand[0] = job->shard_addresses[0] != NULL;
    settings->by_hand[1] = job->replica_addresses[0] != NULL;
    settings->on_hosts = session->hosts.count;
    settings->replica_threads = session->hosts.threads;
}

static int make_coordinator(struct training *run) {
    const struct job *job = run->session->job;
    double unit = objective_loss_unit(&run->shape);
    double l2 = unit * job->l2.value;
    assert(l2 >= 0 && !run->coordinator);
    find_places(run);
    /* What workers know the run by. The inode tells a copy of the state folder from its original: a
     * worker that serves the one refuses the other. It stays when the folder is moved; the device
     * is left out, since another host may see the same folder on another one. */
    struct stat status = {0};
    (void)stat(job->state, &status);
    snprintf(run->name, sizeof run->name, "%s~%llx", run->uuid, (unsigned long long)status.st_ino);
    /* Curvature pairs of another scaling are of no use, and only L-BFGS begins with any. */
    const bool loads_pairs = !run->kronecker.factors && job->optimizer == JOB_LBFGS;
    struct coordinator_settings settings = {
        .downpour = training_downpour(run),
        .optimizer = optimizer_of(run, unit),
        .shape = run->shape,
        .layout = run->parameters,
        .scaling = run->scaling.columns,
        .limits = run->scaling.limits,
        .diagonal = run->scaling.diagonal,
        .factors = run->kronecker.factors,
        .factor_count = run->kronecker.count,
        .l2_shown = job->l2.value,
        .l2_of_replicas = run->kronecker.factors ? l2 : 0,
        .history_type = run->sizing.history_type,
        .data = set_info(run->set),
        .exponents = run->exponents,
        .extra_bits = run->extra_bits,
        .set_path = run->set_path ? run->set_path : set_path(run->set),
        .run = run->name,
        .start = start_of(run),
        .start_pairs = run->start.vectors,
        .start_pair_count = loads_pairs ? run->start.pairs : 0,
        .pairs_kept = run->pairs_kept,
        .squares = run->squares,
        .saved = run->resumed ? &run->saved : NULL,
    };
    add_workers(run, &settings);
    int code = store_term_next(run->session->store, &settings.term);
    if (!code && !(run->coordinator = coordinator_new(&settings)))
        code = ERROR_DATA;
    return code;
}

/* The first slice has come. The model is written beside its final place until it is complete. */
static int prepare_model(struct training *run) {
    curvature_writer_discard(run->recorder.curvature);
    run->recorder.curvature = NULL;
    model_writer_discard(run->recorder.writer); /* of a reading that a lost shard broke off */
    run->recorder.writer = NULL;
    recorder_drop_errors(&run->recorder);
    free(run->model_folder);
    run->model_folder = run_model_folder(run->session->job->state, run->recorder.run);
    run->recorder.kronecker = run->kronecker.factors ? &run->kronecker : NULL;
    if (run->scaling.columns)
        scaling_walk_begin(&run->recorder.walk, &run->parameters, scaling_of_data(&run->scaling));
    readback_free(run->recorder.readback);
    run->recorder.readback = readback_new(&run->layout, &run->sample);
    return model_writer_new(run->model_folder, &run->layout, &run->recorder.writer);
}

/* ---- callbacks of the loop ---- */

static int on_record(void *context, const struct coordinator *coordinator,
                     const struct output *output, const struct record *record) {
    struct training *run = context;
    assert(coordinator == run->coordinator);
    if (record->kind == RECORD_SLICE && record->slice.first == 0) {
        int code = 0;
        if (record->slice.of == SLICE_MODEL)
            code = prepare_model(run);
        else if (record->slice.of == SLICE_PAIR && record->slice.pair_vector == 1)
            code = curvature_writer_new(
                model_writer_folder(run->recorder.writer), &run->layout,
                coordinator_pairs_kept(coordinator), run->bias_scale,
                scaling_form(&run->scaling, set_info(run->set), run->shape.network.unit),
                &run->recorder.curvature);
        if (code)
            return code;
    }
    return recorder_take(&run->recorder, coordinator, output, record);
}

static int on_commit(void *context) {
    struct training *run = context;
    int code = run->session->store ? store_flush(run->session->store) : 0;
    if (!code)
        failpoint(FAILPOINT_state_journal);
    return code;
}

static int on_tick(void *context, const struct coordinator *coordinator) {
    struct training *run = context;
    struct session *session = run->session;
    if (failpoint_hit(FAILPOINT_lock_released) && session->store) {
        /* For the test of fencing: as if the locks had been lost, while this process goes on. */
        store_close(session->store);
        close(session->lock);
        session->store = run->recorder.store = NULL;
        session->lock = -1;
    }
    if (!session->store)
        return 0;
    double seconds = training_seconds(run);
    struct coordinator_view view = coordinator_view(coordinator);
    eta_note(&run->eta, &view, seconds);
    counters_note(&run->counters, &view);
    progress_run(&view, eta_rate(&run->eta, &view, seconds),
                 eta_seconds_left(&run->eta, &view, seconds, session->job->max_seconds));
    int code = recorder_hosts(&run->recorder);
    if (!code)
        code = store_run_progress(session->store, run->recorder.run, seconds);
    return code ? code : store_flush(session->store);
}

/* ---- training ---- */

static void make_cluster(struct training *run) {
    struct session *session = run->session;
    struct cluster_options options = {
        .addresses = run->addresses,
        .launched = run->launched,
        .launch = &session->launch,
        .set = run->set,
        .tls = session->tls,
        .wait_seconds = session->options->wait_seconds,
        .names = run->places.any ? session->job->replica_addresses : NULL,
        .hosts = session->hosts.count ? &session->hosts : NULL,
        .seconds_max = session->job->max_seconds - run->seconds_before,
        .need = run->need,
        .record = on_record,
        .commit = on_commit,
        .tick = on_tick,
        .context = run,
    };
    struct coordinator_view view = coordinator_view(run->coordinator);
    assert(!run->cluster);
    counters_note(&run->counters, &view);
    run->cluster = cluster_new(session->loop.base, run->coordinator, &options);
}

static bool another_follows(const struct training *run) {
    return run->member.sweep && !run->member.is_last;
}

static void dismiss(struct training *run, bool early) {
    cluster_dismiss(run->cluster, early ? "the run ended early" : "the run has ended",
                    !early && another_follows(run));
}

static int train(struct training *run) {
    struct session *session = run->session;
    int64_t start_ns = clock_monotonic_ns();
    make_cluster(run);
    session->loop.stage = STAGE_TRAINING;
    session->loop.stop = stop;
    int code = cluster_run(run->cluster);
    session->loop.stop = NULL;
    session->loop.stage = STAGE_ENDING;
    if (session->launch.up_ns > start_ns)
        start_ns = session->launch.up_ns;
    run->seconds.train = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    recorder_finish(&run->recorder);
    int recorded = recorder_hosts(&run->recorder);
    code = code ? code : recorded;
    progress_close();
    run->cancelled = coordinator_phase(run->coordinator) != PHASE_READ;
    if (!code)
        dismiss(run, run->cancelled);
    return code;
}

int training_run(struct training *run, const struct dataset *data, struct set *set) {
    struct session *session = run->session;
    assert(!run->set && !run->coordinator && !session->loop.stop);
    session->loop.stage = STAGE_STARTING;
    run->data = data;
    run->set = set;
    run->seconds.pack = data->seconds;
    int code = training_shape(run);
    if (!code)
        code = workers_prepare_all(run);
    if (!code)
        code = loop_beside(&session->loop, STAGE_CHECKING, work_on_scaling, run);
    if (!code)
        sizing_directions(session->job, set_info(run->set), &run->shape, run->preconditioner.form,
                          &run->sizing);
    if (!code)
        code = training_begin(run);
    if (!code && run->shape.network.kronecker)
        code = loop_beside(&session->loop, STAGE_CHECKING, work_on_kronecker, run);
    if (!code) {
        /* Pairs that a run starts with come on top of those that it would keep: what it learns
         * itself does not push them out at once. With a preconditioner there are none, and none are
         * kept: the first refresh would drop them, and those of a network are scaled by the factors
         * of one night. */
        if (*run->start_model)
            preconditioner_starts_near(&run->preconditioner);
        bool preconditioned = run->preconditioner.form || run->kronecker.factors;
        run->pairs_kept = preconditioned ? 0 : pairs_to_keep(run);
        if (!session->job->history)
            run->sizing.history += run->start.pairs;
        if (run->sizing.history > HISTORY_MAX)
            run->sizing.history = HISTORY_MAX;
        code = workers_start(run);
    }
    if (!code)
        code = make_coordinator(run);
    if (!code)
        code = train(run);
    return code;
}

/* Ends the workers, or leaves them to the next member with all that is known of them. */
static void leave_workers(struct training *run, int code) {
    struct session *session = run->session;
    bool fenced = run->coordinator && coordinator_is_fenced(run->coordinator);
    bool ours = !fenced && guard_holds();
    bool told = run->cluster && !another_follows(run); /* else nobody told them to exit */
    session->rests = ours && !code && run->cluster && another_follows(run);
    if (!ours)
        launch_abandon(&session->launch);
    else if (run->cluster)
        dismiss(run, code != 0);
    cluster_free(run->cluster);
    run->cluster = NULL; /* the status is asked for while workers and files go */
    if (session->rests)
        launch_rest(&session->launch);
    else
        workers_release(session, told ? DISMISS_GRACE_MS : 0);
}

/* Waits until the checkpoints are removed. The error that the caller is about to report stays. */
static void finish_removal(struct training *run, int code) {
    if (!run->removal)
        return;
    char *error = code ? memory_copy_string(error_text()) : NULL;
    loop_finish(&run->session->loop, run->removal);
    if (error)
        error_set(code, "%s", error);
    free(error);
}

void training_release(struct training *run, int code) {
    progress_close();
    if (run->set && (code == ERROR_DATA || code == ERROR_IO))
        sets_drop_damaged(run->set, code);
    curvature_writer_discard(run->recorder.curvature);
    model_writer_discard(run->recorder.writer);
    recorder_drop_errors(&run->recorder);
    readback_free(run->recorder.readback);
    sample_release(&run->sample);
    free(run->model_folder);
    free(run->runs_away);
    collinear_free(run->collinear);
    free(run->fit.parameters);
    free(run->ridge);
    leave_workers(run, code);
    finish_removal(run, code);
    coordinator_free(run->coordinator);
    json_decref(run->result);
    score_figures_release(&run->figures);
    response_free(run->response);
    free(run->launched);
    free(run->addresses);
    for (uint32_t i = 0; i < run->places.count; i++)
        free(run->places.address[i]);
    free(run->places.address);
    start_close(&run->start);
    kronecker_scaling_release(&run->kronecker);
    scaling_release(&run->scaling);
    column_rules_release(&run->rules);
    memory_unmap(run->squares, run->squares_bytes);
    moments_release(&run->moments);
    free(run->exponents);
    free(run->extra_bits);
    training_release_plugin(run);
    scaling_walk_end(&run->recorder.walk);
    active_bounds_release(&run->recorder.active);
    free(run->start_model);
    free(run->shards_folder);
    free(run->set_path);
    free(run->state);
    store_saved_release(&run->saved);
    *run = (struct training){
        .session = run->session, .started_ns = run->started_ns, .started_ms = run->started_ms};
}
