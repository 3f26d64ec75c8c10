#include "coordinator/status/live.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "config.h"
#include "coordinator/job/job.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/report.h"
#include "coordinator/status/result.h"

const char *stage_text(enum stage stage) {
    static const char *const texts[STAGE_COUNT] = {
#define X(name, text) [name] = text,
        STAGES(X)
#undef X
    };
    return texts[stage];
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

struct store_host host_row(const struct hosts *hosts, uint32_t number) {
    const struct hosts_entry *host = &hosts->items[number];
    return (struct store_host){.position = number,
                               .host = host->name,
                               .threads = host->threads,
                               .workers = host->up,
                               .state = hosts_state_text(hosts_state(host)),
                               .why = host->why,
                               .failures = host->failed};
}

json_t *host_json(const struct store_host *host) {
    return json_pack("{s:o, s:s, s:o, s:I, s:I, s:o}", "name", text_to_json(host->host), "state",
                     host->state, "why", *host->why ? text_to_json(host->why) : json_null(),
                     "workers", (json_int_t)host->workers, "failures", (json_int_t)host->failures,
                     "threads", host->threads ? json_integer(host->threads) : json_null());
}

json_t *hosts_json(const struct hosts *hosts) {
    json_t *list = json_array();
    for (uint32_t i = 0; hosts && i < hosts->count; i++) {
        struct store_host row = host_row(hosts, i);
        json_array_append_new(list, host_json(&row));
    }
    return list;
}

const char *live_phase(enum coordinator_phase phase) {
    switch (phase) {
    case PHASE_REJOINING:
        return "looking for workers";
    case PHASE_SETTING_UP:
        return "setting up";
    case PHASE_RUNNING:
        return "running";
    case PHASE_SEALING:
        return "making the last step durable";
    case PHASE_READING:
    case PHASE_READ:
        return "reading the model";
    case PHASE_STOPPED:
    case PHASE_DISMISSED:
        return "ending";
    case PHASE_FAILED:
        return "failed";
    }
    return "unknown";
}

const char *live_state(const struct live *live) {
    const char *text = stage_text(live->stage);
    return text ? text : live->coordinator ? live_phase(coordinator_phase(live->coordinator)) : "";
}

static json_t *worker_json(const struct worker_view *worker, const char *host) {
    return json_pack("{s:s, s:i, s:i, s:o, s:s, s:I, s:I, s:f, s:i, s:i, s:o}", "role",
                     role_name(worker->role), "index", (int)worker->index, "pid", (int)worker->pid,
                     "host", text_to_json(host), "state",
                     worker->ready      ? "running"
                     : worker->welcomed ? "setting up"
                                        : "connecting",
                     "portions", (json_int_t)worker->portions, "chunks", (json_int_t)worker->chunks,
                     "rate", worker->chunks_per_ns * 1e9, "restarts", (int)worker->restarts,
                     "threads", (int)worker->threads, "device",
                     *worker->device ? text_to_json(worker->device) : json_null());
}

static json_t *processes_json(const struct coordinator *c, const struct hosts *hosts) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        struct worker_view worker = coordinator_worker(c, i);
        const char *host = hosts ? hosts_of(hosts, i)->name : worker.host;
        json_array_append_new(all, worker_json(&worker, host));
    }
    return all;
}

static json_t *evaluation_json(const struct coordinator *c, const struct coordinator_view *view) {
    double since = (double)(clock_monotonic_ns() - view->evaluation.started_ns) / 1e9;
    return json_pack("{s:i, s:i, s:i, s:o, s:o}", "number", (int)view->evaluation.number, "chunks",
                     (int)view->evaluation.chunks, "counted", (int)view->evaluation.counted, "map",
                     chunks_json(c), "started_seconds_ago",
                     number_json(view->evaluation.running ? since : NAN));
}

/* How far the run is. */
static json_t *progress_json(const struct live *live, const struct coordinator_view *view) {
    const struct coordinator *c = live->coordinator;
    bool judged = coordinator_settings(c)->optimizer.patience && view->started;
    return json_pack(
        "{s:o, s:I, s:i, s:s, s:n, s:n, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:i, s:I, s:I, s:f, "
        "s:o, s:I, s:o, s:o}",
        "job", text_to_json(live->job->name), "run", (json_int_t)live->run, "pid", (int)getpid(),
        "state", live_state(live), "reason", "converged", "step", (json_int_t)view->step, "loss",
        number_json(view->started ? view->loss : NAN), "gradient_max",
        number_json(view->started ? view->gradient_max : NAN), "holdout_loss",
        number_json(judged ? view->holdout.loss : NAN), "holdout_accuracy",
        number_json(judged ? view->holdout.accuracy : NAN), "evaluation", evaluation_json(c, view),
        "evaluations", (json_int_t)view->evaluations, "attempt", (int)view->attempt, "started_ms",
        (json_int_t)live->started_ms, "time_ms", (json_int_t)clock_wall_ms(), "seconds",
        live->seconds, "seconds_left", number_json(live->seconds_left), "backup_copies",
        (json_int_t)view->backup_copies, "safeguards", result_safeguards_json(view),
        "preconditioner", result_preconditioner_json(c, view));
}

/* What the run is. */
static json_t *problem_json(const struct live *live, const struct coordinator_view *view) {
    const struct coordinator_settings *settings = coordinator_settings(live->coordinator);
    return json_pack("{s:s, s:o, s:I, s:o, s:I, s:I, s:i, s:f, s:f, s:o, s:s?, s:s}", "objective",
                     objective_name(settings->shape.kind), "network",
                     result_network_json(&settings->shape.network), "examples",
                     (json_int_t)settings->data->rows, "weights",
                     result_weights_json(settings->data, live->job), "features",
                     (json_int_t)settings->data->features, "parameters",
                     (json_int_t)view->parameters, "history", (int)settings->optimizer.memory,
                     "gradient_tolerance", settings->optimizer.gradient_tolerance, "loss_tolerance",
                     settings->optimizer.loss_tolerance, "settings", job_settings(live->job),
                     "http", live->http, "version", PACKAGE_VERSION);
}

int live_runs(const struct live *live, struct store *store, json_t **runs) {
    size_t i;
    json_t *run;
    int code = report_runs(store, runs);
    if (code)
        return code;
    json_array_foreach(json_object_get(*runs, "runs"), i, run) {
        if (!live->coordinator || json_integer_value(json_object_get(run, "run")) != live->run)
            continue;
        json_object_set_new(run, "state", json_string("running"));
        json_object_set_new(run, "seconds", json_real(live->seconds));
    }
    return 0;
}

/* The status without a coordinator. */
static json_t *bare_json(const struct live *live) {
    const struct network network = job_network(live->job);
    return json_pack(
        "{s:o, s:I, s:i, s:s, s:n, s:i, s:n, s:n, s:n, s:n, s:{s:i, s:n, s:n, s:n, s:n}, s:I, s:I, "
        "s:f, s:n, s:s, s:o, s:o, s:s?, s:s, s:f, s:f, s:n, s:n, s:[], s:n, s:n}",
        "job", text_to_json(live->job->name), "run", (json_int_t)live->run, "pid", (int)getpid(),
        "state", live_state(live), "reason", "step", 0, "loss", "gradient_max", "holdout_loss",
        "holdout_accuracy", "evaluation", "number", 0, "chunks", "counted", "map",
        "started_seconds_ago", "started_ms", (json_int_t)live->started_ms, "time_ms",
        (json_int_t)clock_wall_ms(), "seconds", live->seconds, "seconds_left", "objective",
        objective_name(live->job->objective), "network", result_network_json(&network), "settings",
        job_settings(live->job), "http", live->http, "version", PACKAGE_VERSION, "l1",
        live->job->l1.value, "l2", live->job->l2.value, "nonzero", "gap_bound", "processes",
        "waiting", "downpour");
}

static json_t *full_json(const struct live *live) {
    struct coordinator_view view = coordinator_view(live->coordinator);
    struct optimizer_point here = {.nonzero = view.nonzero, .gap_bound = view.gap_bound};
    json_t *status = progress_json(live, &view);
    json_object_update_new(status, result_penalty_json(&view, &here));
    json_object_update_new(status, problem_json(live, &view));
    json_object_set_new(status, "downpour", epochs_status_json(&view.downpour, live->speed));
    json_object_set_new(status, "tensors", result_tensors_json(live->coordinator, &view.norms));
    json_object_set_new(status, "processes", processes_json(live->coordinator, live->hosts));
    json_object_set_new(status, "waiting",
                        live->waiting ? text_to_json(live->waiting) : json_null());
    return status;
}

json_t *live_json(const struct live *live) {
    json_t *status = live->coordinator ? full_json(live) : bare_json(live);
    json_object_set_new(status, "hosts", hosts_json(live->hosts));
    report_add_end(status, live->result);
    return status;
}
