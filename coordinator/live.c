#include "coordinator/live.h"

#include <math.h>
#include <unistd.h>

static const char *phase_text(enum coordinator_phase phase) {
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

static json_t *worker_json(const struct worker *worker) {
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:I, s:f}", "role", role_name(worker->role),
                     "index", (int)worker->index, "pid", (int)worker->pid, "host", worker->host,
                     "state",
                     worker->ready      ? "running"
                     : worker->welcomed ? "setting up"
                                        : "connecting",
                     "portions", (json_int_t)worker->portions, "rate", worker->chunks_per_ns * 1e9);
}

static json_t *processes_json(const struct coordinator *c) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        json_array_append_new(all, worker_json(&c->workers[i]));
    return all;
}

json_t *live_json(const struct coordinator *c, const char *job, int64_t run, int64_t started_ms,
                  double seconds) {
    const struct optimizer *o = &c->optimizer;
    json_t *loss = o->started && isfinite(o->loss) ? json_real(o->loss) : json_null();
    json_t *gradient = o->started ? json_real(o->gradient_max) : json_null();
    bool judged = o->settings.patience && o->started && isfinite(o->holdout_loss);
    json_t *holdout = judged ? json_real(o->holdout_loss) : json_null();
    return json_pack(
        "{s:s, s:I, s:i, s:s, s:I, s:o, s:o, s:o, s:{s:i, s:i, s:i}, s:I, s:I, s:f, s:o}", "job",
        job, "run", (json_int_t)run, "pid", (int)getpid(), "state", phase_text(c->phase), "step",
        (json_int_t)o->step, "loss", loss, "gradient_max", gradient, "holdout_loss", holdout,
        "evaluation", "number", (int)c->evaluation.number, "chunks", (int)c->plan.chunks, "counted",
        (int)c->plan.counted_chunks, "evaluations", (json_int_t)c->evaluations, "started_ms",
        (json_int_t)started_ms, "seconds", seconds, "processes", processes_json(c));
}
