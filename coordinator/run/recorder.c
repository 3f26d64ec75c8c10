#include "coordinator/run/recorder.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/eta.h"
#include "coordinator/status/live.h"

#define EVENTS_STORED 8 /* in the same words, each in a row of its own */

/* Logs the line in recorder->step_unlogged, unless the last one is too new: there may be a thousand
 * steps a second, all night long. */
static void log_line_if_due(struct recorder *recorder) {
    int64_t now_ns = clock_monotonic_ns();
    if (!recorder->first_step_ns)
        recorder->first_step_ns = now_ns;
    int64_t pause_ns = eta_log_pause_ns(now_ns - recorder->first_step_ns);
    if (recorder->step_logged_ns && log_level_now < LOG_DEBUG &&
        now_ns - recorder->step_logged_ns < pause_ns)
        return;
    log_info("%s", recorder->step_unlogged);
    recorder->step_logged_ns = now_ns;
    *recorder->step_unlogged = '\0';
}

/* The figures on the holdout as the end of a line; "" if there are none. */
static const char *holdout_text(char text[96], double loss, double accuracy) {
    int length = 0;
    *text = '\0';
    if (!isnan(loss))
        length = snprintf(text, 96, " holdout %.12g", loss);
    assert(length >= 0 && length < 96);
    if (!isnan(accuracy))
        snprintf(text + length, 96 - (size_t)length, " accuracy %.6g", accuracy);
    return text;
}

void recorder_finish(struct recorder *recorder) {
    if (*recorder->step_unlogged)
        log_info("%s", recorder->step_unlogged);
    *recorder->step_unlogged = '\0';
}

/* The last epoch is told before the first step: it says where L-BFGS begins. */
static int take_step(struct recorder *recorder, const struct record *record) {
    struct store_step step = record->step;
    char holdout[96];
    step.note = record->note;
    step.wall_ms = clock_wall_ms();
    if (step.step == 0)
        recorder_finish(recorder);
    snprintf(recorder->step_unlogged, sizeof recorder->step_unlogged,
             "step %llu: loss %.12g%s gradient %.3e step length %.3g trials %u history %u%s%s",
             (unsigned long long)step.step, step.loss,
             holdout_text(holdout, step.holdout_loss, step.holdout_accuracy), step.gradient_max,
             step.step_length, step.trials, step.history, *step.note ? ": " : "", step.note);
    log_line_if_due(recorder);
    return store_step(recorder->store, recorder->run, &step);
}

static int take_epoch(struct recorder *recorder, const struct record *record) {
    struct store_epoch epoch = record->epoch;
    char holdout[96], speed[48] = "";
    epoch.wall_ms = clock_wall_ms();
    if (epoch.seconds > 0)
        snprintf(speed, sizeof speed, ", %.4g a second", (double)epoch.minibatches / epoch.seconds);
    snprintf(recorder->step_unlogged, sizeof recorder->step_unlogged,
             "epoch %llu: loss %.12g%s, %llu minibatches%s", (unsigned long long)epoch.epoch,
             epoch.loss, holdout_text(holdout, epoch.holdout_loss, epoch.holdout_accuracy),
             (unsigned long long)epoch.minibatches, speed);
    log_line_if_due(recorder);
    return store_downpour_epoch(recorder->store, recorder->run, &epoch);
}

static int take_evaluation(struct recorder *recorder, const struct record *record) {
    const struct store_evaluation *e = &record->evaluation;
    log_debug("evaluation %llu: step length %.6g loss %.12g slope %.3e, %s, %.3f ms",
              (unsigned long long)e->evaluation, e->step_length, e->loss, e->slope, e->outcome,
              e->seconds * 1e3);
    return store_evaluation(recorder->store, recorder->run, e);
}

static int take_portion(struct recorder *recorder, const struct record *record) {
    const struct flush_id *flush = &record->portion.flush;
    return store_portion(recorder->store, recorder->run, flush->attempt, record->portion.evaluation,
                         flush->incarnation, flush->sequence, record->portion.range.first,
                         record->portion.range.count);
}

static int take_worker(struct recorder *recorder, const struct coordinator *c,
                       const struct record *record) {
    assert(record->worker.link < coordinator_links(c));
    struct worker_view worker = coordinator_worker(c, record->worker.link);
    const char *address = recorder->addresses[record->worker.link];
    const char *host =
        recorder->hosts ? hosts_of(recorder->hosts, record->worker.link)->name : worker.host;
    log_debug("%s %u is %s, pid %u on %s", role_name(worker.role), worker.index,
              record->worker.state, worker.pid, host);
    return store_process(recorder->store, recorder->run,
                         &(struct store_process_row){.role = role_name(worker.role),
                                                     .index = worker.index,
                                                     .incarnation = worker.incarnation,
                                                     .pid = (int)worker.pid,
                                                     .host = host,
                                                     .address = address ? address : "",
                                                     .device = worker.device,
                                                     .state = record->worker.state});
}

/* What was lost or could not be written needs somebody to look at it, though the run goes on. */
static void log_event(const char *kind, const char *text) {
    if (!strcmp(kind, "lost") || !strcmp(kind, "device lost") || !strcmp(kind, "checkpoint"))
        log_warning("%s", text);
    else
        log_info("%s", text);
}

/* Something may happen again and again, all night long. From a certain number on its repetitions
 * are counted in the last row, and logged when they have doubled. */
static int take_event(struct recorder *recorder, const struct record *record) {
    const char *kind = record->event.kind, *text = record->event.text;
    struct recorder_event *event = NULL;
    for (uint32_t i = 0; i < RECORDER_EVENTS && !event; i++)
        if (recorder->events[i].times && !strcmp(recorder->events[i].text, text))
            event = &recorder->events[i];
    if (!event) {
        event = &recorder->events[recorder->events_next++ % RECORDER_EVENTS];
        *event = (struct recorder_event){0};
        snprintf(event->text, sizeof event->text, "%s", text);
    }
    if (++event->times <= EVENTS_STORED) {
        log_event(kind, text);
        return store_event(recorder->store, recorder->run, kind, text, &event->row);
    }
    char *counted = memory_format("%s (%llu times)", text, (unsigned long long)event->times);
    if ((event->times & (event->times - 1)) == 0)
        log_event(kind, counted);
    int code = store_event_again(recorder->store, event->row, counted);
    free(counted);
    return code;
}

static int take_durable_step(struct recorder *recorder, const struct output *output,
                             const struct record *record) {
    assert(record->durable.shards > 0);
    assert(record->durable.offset + record->durable.length <= output->blobs.length);
    int code =
        store_durable_step(recorder->store, recorder->run, record->durable.attempt,
                           record->durable.step, output->blobs.data + record->durable.offset,
                           record->durable.length, record->durable.digests, record->durable.shards);
    if (code)
        return code;
    log_debug("step %llu is durable", (unsigned long long)record->durable.step);
    recorder->durable_ms = clock_wall_ms();
    return 0;
}

/* Visits a failpoint after what succeeded. */
static int passing(unsigned place, int code) {
    if (!code)
        failpoint(place);
    return code;
}

static int write_slice(struct recorder *recorder, uint64_t first, uint64_t count,
                       const double *values) {
    assert(recorder->writer && recorder->readback);
    readback_slice(recorder->readback, first, count, values);
    return model_writer_slice(recorder->writer, first, count, values);
}

/* Undoes the scaling of the columns and the unit of the outputs, if the run has any. */
static int write_from_scaled(struct recorder *recorder, const struct coordinator_settings *settings,
                             uint64_t first, uint64_t count, const double *values) {
    double unit = objective_output_unit(&settings->shape);
    if (!recorder->walk.columns && unit == 1)
        return write_slice(recorder, first, count, values);
    double *left = memory_new(count, sizeof *left);
    if (recorder->walk.columns)
        scaling_walk_from_scaled(&recorder->walk, first, count, values, left);
    else if (count)
        memcpy(left, values, count * sizeof *left);
    objective_scale_outputs(&settings->layout, unit, first, count, left);
    int code = write_slice(recorder, first, count, left);
    free(left);
    return code;
}

static int take_slice(struct recorder *recorder, const struct coordinator_settings *settings,
                      uint64_t first, uint64_t count, const double *values) {
    if (!recorder->kronecker)
        return write_from_scaled(recorder, settings, first, count, values);
    uint64_t parameters = layout_parameters(&settings->layout);
    assert(first + count <= parameters);
    const double *all =
        kronecker_scaling_take(recorder->kronecker, parameters, first, count, values);
    return all ? write_from_scaled(recorder, settings, 0, parameters, all) : 0;
}

void recorder_drop_errors(struct recorder *recorder) {
    free(recorder->variance);
    free(recorder->sampling);
    free(recorder->robust);
    free(recorder->estimate);
    recorder->variance = recorder->sampling = recorder->robust = recorder->estimate = NULL;
}

/* They are by weights and biases of the run's columns, whatever its scaling. */
static void take_errors(double **errors, const struct coordinator_settings *settings,
                        const struct record *record) {
    assert(record->slice.first + record->slice.count <= layout_parameters(&settings->layout));
    if (!*errors)
        *errors = memory_new(layout_parameters(&settings->layout), sizeof **errors);
    memcpy(*errors + record->slice.first, record->slice.values,
           record->slice.count * sizeof **errors);
}

struct active_bounds_settings recorder_bounds(const struct coordinator_settings *settings) {
    return (struct active_bounds_settings){.layout = &settings->layout,
                                           .limits = settings->limits,
                                           .scaling = settings->scaling,
                                           .l1 = settings->optimizer.l1};
}

static int take_vector(struct recorder *recorder, const struct coordinator_settings *settings,
                       const struct record *record) {
    uint64_t first = record->slice.first, count = record->slice.count;
    const double *values = record->slice.values;
    const struct active_bounds_settings bounds = recorder_bounds(settings);
    switch (record->slice.of) {
    case SLICE_MODEL:
        if (bounds.limits)
            active_bounds_take_point(&recorder->active, &bounds, first, count, values);
        return take_slice(recorder, settings, first, count, values);
    case SLICE_VARIANCE:
        take_errors(&recorder->variance, settings, record);
        break;
    case SLICE_SAMPLING:
        take_errors(&recorder->sampling, settings, record);
        break;
    case SLICE_ROBUST:
        take_errors(&recorder->robust, settings, record);
        break;
    case SLICE_GRADIENT:
        active_bounds_take_gradient(&recorder->active, &bounds, first, count, values);
        break;
    case SLICE_ESTIMATE:
        take_errors(&recorder->estimate, settings, record);
        break;
    case SLICE_PAIR:
        assert(recorder->curvature);
        curvature_writer_slice(recorder->curvature, record->slice.pair_vector, first, count,
                               values);
        break;
    case SLICE_VECTORS:
        break;
    }
    return 0;
}

int recorder_hosts(struct recorder *recorder) {
    int code = 0;
    uint32_t number;
    while (!code && recorder->store && recorder->hosts &&
           (number = hosts_changed(recorder->hosts)) != HOSTS_NONE) {
        struct hosts_entry *host = &recorder->hosts->items[number];
        struct store_host row = host_row(recorder->hosts, number);
        char text[512];
        code = store_host(recorder->store, recorder->run, &row);
        if (code || host->told == host->aside)
            continue;
        host->told = host->aside;
        if (host->aside) {
            snprintf(text, sizeof text, "host %s is set aside: %s", host->name, host->why);
            log_warning("%s", text);
        } else {
            snprintf(text, sizeof text, "host %s is used again", host->name);
            log_info("%s", text);
        }
        code = store_event(recorder->store, recorder->run, "host", text, NULL);
    }
    return code;
}

int recorder_take(struct recorder *recorder, const struct coordinator *c,
                  const struct output *output, const struct record *record) {
    /* A step that is not recorded is not durable: the shards must not remove older checkpoints for
     * it, which the next coordinator needs. */
    if (!recorder->store)
        return record->kind == RECORD_DURABLE_STEP ? state_lock_lost() : 0;
    assert(recorder->run > 0);
    switch (record->kind) {
    case RECORD_ATTEMPT:
        return passing(FAILPOINT_state_attempt,
                       store_attempt(recorder->store, recorder->run, record->attempt));
    case RECORD_JOURNAL:
        assert(record->journal.offset + record->journal.length <= output->blobs.length);
        return store_journal(recorder->store, recorder->run,
                             output->blobs.data + record->journal.offset, record->journal.length,
                             record->journal.begins);
    case RECORD_DURABLE_STEP:
        return passing(FAILPOINT_state_step_commit, take_durable_step(recorder, output, record));
    case RECORD_ROLL_BACK:
        return passing(FAILPOINT_state_rollback,
                       store_roll_back(recorder->store, recorder->run, record->roll_back.epochs,
                                       record->roll_back.step, record->roll_back.checkpoint));
    case RECORD_BUSY:
    case RECORD_LEFT:
        return 0;
    case RECORD_START:
        return record->start.met || !recorder->hosts
                   ? store_run_restarts(recorder->store, recorder->run,
                                        role_name(coordinator_worker(c, record->start.link).role))
                   : 0;
    case RECORD_STEP:
        return take_step(recorder, record);
    case RECORD_EPOCH:
        return take_epoch(recorder, record);
    case RECORD_EVALUATION:
        return take_evaluation(recorder, record);
    case RECORD_PORTION:
        return passing(FAILPOINT_state_accept, take_portion(recorder, record));
    case RECORD_WORKER:
        return take_worker(recorder, c, record);
    case RECORD_EVENT:
        return take_event(recorder, record);
    case RECORD_SLICE:
        return take_vector(recorder, coordinator_settings(c), record);
    }
    return 0;
}
