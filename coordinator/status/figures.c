#include "coordinator/status/figures.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "config.h"
#include "coordinator/job/family.h"
#include "coordinator/job/job.h"
#include "coordinator/job/key.h"
#include "optimizer/row.h"
#include "coordinator/status/eta.h"
#include "coordinator/status/sweep_table.h"
#include "model/model.h"

/* ---- lists and objects within others ---- */

json_t *text_or_null(const char *text) {
    return text && *text ? text_to_json(text) : json_null();
}

json_t *chunks_json(const struct coordinator *c) {
    uint32_t count = coordinator_view(c).evaluation.chunks;
    struct chunk_view *chunks = memory_new(count, sizeof *chunks);
    json_t *list = json_array();
    coordinator_chunks(c, chunks);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (i + 1 < count && chunks[i + 1].state == chunks[i].state &&
            chunks[i + 1].replica == chunks[i].replica)
            continue;
        json_array_append_new(list, json_pack("[i, i, i]", (int)(i + 1 - first),
                                              (int)chunks[i].state, chunks[i].replica));
        first = i + 1;
    }
    free(chunks);
    return list;
}

static json_t *processes_json(const struct figure_source *source) {
    json_t *all = json_array();
    for (uint32_t i = 0; source->coordinator && i < coordinator_links(source->coordinator); i++) {
        struct worker_view worker = coordinator_worker(source->coordinator, i);
        if (worker.vacant)
            continue;
        struct figure_source of_worker = {.live = source->live, .worker = &worker, .number = i};
        json_array_append_new(all, figures_json(IN_WORKER, &of_worker));
    }
    return all;
}

static const char *worker_host(const struct figure_source *source) {
    const struct hosts *hosts = source->live->hosts;
    return hosts ? hosts_of(hosts, source->number)->name : source->worker->host;
}

static const char *worker_state(const struct worker_view *worker) {
    return worker->leaving    ? "leaving"
           : worker->ready    ? "running"
           : worker->welcomed ? "setting up"
                              : "connecting";
}

/* What the workers compute on that are there, and how many of them do. */
static json_t *devices_json(const struct coordinator *c) {
    json_t *devices = json_array();
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        struct worker_view worker = coordinator_worker(c, i);
        const char *member = worker.role == ROLE_SHARD ? "shards" : "replicas";
        json_t *device = NULL;
        if (!*worker.device)
            continue;
        for (size_t k = json_array_size(devices); k && !device; k--)
            if (!strcmp(member_text(json_array_get(devices, k - 1), "device"), worker.device))
                device = json_array_get(devices, k - 1);
        if (!device) {
            device = json_pack("{s:o, s:i, s:i}", "device", text_to_json(worker.device), "shards",
                               0, "replicas", 0);
            json_array_append_new(devices, device);
        }
        json_object_set_new(device, member, json_integer(member_count(device, member) + 1));
    }
    return devices;
}

json_t *hosts_json(const struct hosts *hosts) {
    json_t *list = json_array();
    for (uint32_t i = 0; hosts && i < hosts->count; i++) {
        struct store_host row = host_row(hosts, i);
        json_array_append_new(list, figures_json(IN_HOST, &(struct figure_source){.host = &row}));
    }
    return list;
}

static json_t *names_not_default(const struct job *job) {
    json_t *settings = job_settings(job), *names = key_names_not_default(settings);
    json_decref(settings);
    return names;
}

json_t *tensors_json(const struct figure_source *source) {
    json_t *tensors = json_array();
    struct figure_source of_tensor = *source;
    bool measured = source->settings->optimizer.tensors > 0;
    for (uint32_t i = 0; measured && i < source->settings->layout.count; i++) {
        of_tensor.number = i;
        json_array_append_new(tensors, figures_json(IN_TENSOR, &of_tensor));
    }
    return tensors;
}

static double norm_of(const struct figure_source *source, const double *norms) {
    return source->number < source->point.norms.count ? norms[source->number] : NAN;
}

static void add_texts(json_t *object, const char *name, char *const *texts) {
    json_t *list = json_array();
    for (; *texts; texts++)
        json_array_append_new(list, text_to_json(*texts));
    if (json_array_size(list))
        json_object_set(object, name, list);
    json_decref(list);
}

json_t *row_offsets_json(const struct set_info *data) {
    return data->has_offsets ? json_pack("{s:f, s:f, s:f}", "least", data->offsets.least, "mean",
                                         data->offsets.mean, "most", data->offsets.most)
                             : json_null();
}

json_t *weights_json(const struct set_info *data, const struct job *job) {
    if (!data->weighted)
        return json_null();
    json_t *object = json_pack("{s:f}", "sum", data->weight_total);
    if (job->source.property.column[ROW_WEIGHT])
        json_object_set_new(object, "column",
                            text_to_json(job->source.property.column[ROW_WEIGHT]));
    add_texts(object, "files", job->weights);
    add_texts(object, "classes", job->class_weight);
    return object;
}

/* What the status says of the sweep that a live run is of. */
static json_t *sweep_json_of(const struct figure_source *source, bool chosen) {
    const struct live *live = source->live;
    json_t *sweep = live->sweep ? live->sweep(live->sweep_context) : NULL;
    json_t *json = chosen ? sweep_chosen(sweep) : sweep_of_run(sweep, live->member);
    json_decref(sweep);
    return json;
}

/* How often each safeguard fired, without those that did not. */
static json_t *safeguards_json(const struct coordinator_view *view) {
    json_t *all = json_object();
    for (unsigned i = 0; i < SAFEGUARDS; i++)
        if (view->safeguards[i])
            json_object_set_new(all, safeguard_text(i),
                                json_integer((json_int_t)view->safeguards[i]));
    return all;
}

/* `passes` is what the evaluations of the curvature cost, in passes for a gradient, by the
 * optimizer's measure; `rows` is how many the last one drew. */
static json_t *preconditioner_json(const struct coordinator_settings *settings,
                                   const struct preconditioner *p) {
    enum precondition form = settings->optimizer.preconditioner.form;
    bool block = form == PRECONDITION_FULL || form == PRECONDITION_LEADING;
    bool kronecker = settings->factors != NULL;
    const char *kind = block                         ? "block"
                       : settings->diagonal          ? "diagonal"
                       : kronecker                   ? "kronecker"
                       : form == PRECONDITION_LISTED ? "working set"
                                                     : "none";
    return json_pack("{s:s, s:I, s:b, s:I, s:I, s:f, s:f}", "kind", kind, "block_columns",
                     (json_int_t)settings->optimizer.preconditioner.block_columns, "in_force",
                     p->in_force || settings->diagonal || kronecker, "refreshes",
                     (json_int_t)p->refreshes, "evaluations", (json_int_t)p->evaluations, "passes",
                     p->cost_total, "rows", p->found.rows);
}

/* ---- what figures of the table are read with ---- */

/* With l1 there is a count of weights at a point, once there is a point. */
static bool is_sparse(const struct coordinator_view *view) {
    return view->l1 > 0 && view->started;
}

/* Early stopping evaluates each point on the holdout. */
static bool stops_early(const struct figure_source *source) {
    return source->settings && source->settings->optimizer.patience && source->view.started;
}

/* Downpour has a loss on the holdout after an epoch. */
static bool is_measured(const struct coordinator_view *view) {
    return view->downpour.measures && view->downpour.epoch;
}

static double seconds_since(int64_t started_ns) {
    return (double)(clock_monotonic_ns() - started_ns) / 1e9;
}

/* The seconds between two times of day; 0 if the clock was set back between them. */
static double seconds_between(int64_t from_ms, int64_t to_ms) {
    return to_ms > from_ms ? (double)(to_ms - from_ms) / 1e3 : 0;
}

/* From beginning to end; if the clock was set back between, what the last command took. */
static double record_seconds(const struct figure_source *source) {
    double took = seconds_between(source->record->started_ms, source->last_ms);
    return took > 0 ? took
                    : fmax(0, member_number(json_object_get(source->result, "seconds"), "total"));
}

static json_t *of_result(const struct figure_source *source, const char *key) {
    json_t *value = json_object_get(source->result, key);
    return value ? json_incref(value) : json_null();
}

static json_t *early_stopping_json(const struct figure_source *source) {
    const struct optimizer_point *best = &source->point;
    if (!source->settings->optimizer.patience)
        return NULL;
    return json_pack("{s:I, s:o, s:o}", "best_step", (json_int_t)best->step, "holdout_loss",
                     number_json(best->holdout.loss), "holdout_accuracy",
                     number_json(best->holdout.accuracy));
}

/* As the result says, or the reason if there is no result. Null until the run has ended. */
static json_t *record_converged(const struct figure_source *source) {
    json_t *converged = json_object_get(source->result, "converged");
    const char *reason = source->record->reason;
    if (!reason)
        return json_null();
    return converged ? json_incref(converged)
                     : json_boolean(reason_says_converged(reason_of(reason)));
}

static double record_best(const struct figure_source *source, const char *key) {
    return member_number(json_object_get(source->result, "early_stopping"), key);
}

/* ---- the table ---- */

/* A function that reads it for each entry, and then the entries. */
#define FIGURE(of, key, type, unit, places, label, value, metric)                                  \
    static double read_##of##_##key(const struct figure_source *s) {                               \
        const struct coordinator_view *v = &s->view;                                               \
        (void)v;                                                                                   \
        return (double)(value);                                                                    \
    }
#define MEMBER(of, key, places, label, value)                                                      \
    static json_t *read_##of##_##key(const struct figure_source *s) {                              \
        const struct coordinator_view *v = &s->view;                                               \
        (void)v, (void)s;                                                                          \
        return value;                                                                              \
    }
#include "coordinator/status/figures.def"

#define NONE                                                                                       \
    { 0 }
#define GAUGE(name, help)                                                                          \
    { name, help, METRIC_GAUGE, false }
#define GAUGE_OR_NAN(name, help)                                                                   \
    { name, help, METRIC_GAUGE_OR_NAN, false }
#define COUNTER(name, help)                                                                        \
    { name, help, METRIC_COUNTER, false }
#define REPLICA_GAUGE(name, help)                                                                  \
    { name, help, METRIC_GAUGE, true }
#define REPLICA_COUNTER(name, help)                                                                \
    { name, help, METRIC_COUNTER, true }
#define FIGURE(of, key, type, unit, places, label, value, metric)                                  \
    {#of, #key, FIGURE_##type, unit, label, places, read_##of##_##key, NULL, metric},
#define MEMBER(of, key, places, label, value)                                                      \
    {#of, #key, FIGURE_JSON, "", label, places, NULL, read_##of##_##key, NONE},
const struct figure figure_table[] = {
#include "coordinator/status/figures.def"
};
const size_t figure_count = sizeof figure_table / sizeof figure_table[0];

struct figure_source figures_of_live(const struct live *live) {
    struct figure_source source = {.live = live,
                                   .job = live->job,
                                   .run = live->run,
                                   .started_ms = live->started_ms,
                                   .objective = live->job->objective,
                                   .network = job_shape(live->job).network,
                                   .coordinator = live->coordinator,
                                   .result = live->result};
    if (!live->coordinator) {
        source.view.l1 = live->job->l1.value;
        source.view.l2 = live->job->l2.value;
        return source;
    }
    source.settings = coordinator_settings(live->coordinator);
    source.objective = source.settings->shape.kind;
    source.network = source.settings->shape.network;
    source.view = coordinator_view(live->coordinator);
    source.point = (struct optimizer_point){.loss = source.view.loss,
                                            .gradient_max = source.view.gradient_max,
                                            .nonzero = source.view.nonzero,
                                            .gap_bound = source.view.gap_bound,
                                            .gap_estimate = source.view.gap_estimate,
                                            .norms = source.view.norms};
    return source;
}

json_t *figures_json(enum figure_place place, const struct figure_source *source) {
    json_t *object = json_object();
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        assert(!figure->number == (figure->type == FIGURE_JSON));
        if (!(figure->places & (unsigned)place))
            continue;
        const double number = figure->number ? figure->number(source) : NAN;
        json_t *value = figure->type == FIGURE_JSON                      ? figure->json(source)
                        : figure->type == FIGURE_NUMBER || isnan(number) ? number_json(number)
                        : figure->type == FIGURE_FLAG                    ? json_boolean(number != 0)
                                                      : json_integer((json_int_t)number);
        if (value)
            json_object_set_new(object, figure->key, value);
    }
    return object;
}

void figures_add_result(json_t *object, enum figure_place place, const json_t *result) {
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        json_t *value = json_object_get(result, figure->key);
        if (figure->places & (unsigned)place)
            json_object_set_new(object, figure->key, value ? json_incref(value) : json_null());
    }
}
