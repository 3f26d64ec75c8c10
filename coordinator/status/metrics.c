#include "coordinator/status/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "config.h"

/* ---- the format ---- */

enum metric_type { GAUGE, COUNTER };

static void describe(FILE *out, const char *name, enum metric_type type, const char *help) {
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
            type == COUNTER ? "counter" : "gauge");
}

static void write_value(FILE *out, double value) {
    if (isnan(value))
        fputs(" NaN\n", out);
    else if (isinf(value))
        fputs(value > 0 ? " +Inf\n" : " -Inf\n", out);
    else
        fprintf(out, " %.17g\n", value);
}

/* A metric of one sample, without labels. */
static void write_one(FILE *out, const char *name, enum metric_type type, const char *help,
                      double value) {
    describe(out, name, type, help);
    fputs(name, out);
    write_value(out, value);
}

/* The value of a label, quoted. */
static void write_quoted(FILE *out, const char *text) {
    json_t *utf8 = text_to_json(text);
    putc('"', out);
    for (text = json_string_value(utf8); *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            putc(*text, out);
    }
    putc('"', out);
    json_decref(utf8);
}

static void write_labelled(FILE *out, const char *name, const char *label, const char *text,
                           double value) {
    fprintf(out, "%s{%s=", name, label);
    write_quoted(out, text);
    putc('}', out);
    write_value(out, value);
}

/* ---- the run ---- */

static void write_run(FILE *out, const struct live *live) {
    const char *now = live_state(live);
    describe(out, "dml_build_info", GAUGE, "The program's version; always 1.");
    write_labelled(out, "dml_build_info", "version", PACKAGE_VERSION, 1);
    describe(out, "dml_run_info", GAUGE, "The job and its objective; always 1.");
    fputs("dml_run_info{job=", out);
    write_quoted(out, live->job->name);
    fputs(",objective=", out);
    write_quoted(out, objective_name(live->job->objective));
    fputs("} 1\n", out);
    write_one(out, "dml_run_number", GAUGE, "Number of the run in its state folder.",
              (double)live->run);
    write_one(out, "dml_run_start_time_seconds", GAUGE, "When the run began, since 1970.",
              (double)live->started_ms / 1e3);
    write_one(out, "dml_run_duration_seconds", GAUGE,
              "Time spent on the run, its earlier coordinators included.", live->seconds);
    write_one(out, "dml_run_remaining_seconds", GAUGE,
              "Estimate of the time left, from the pace so far; NaN if not known.",
              live->seconds_left);
    describe(out, "dml_run_state", GAUGE, "1 for the state that the run is in, 0 for the others.");
    for (enum stage stage = STAGE_TRAINING + 1; stage < STAGE_COUNT; stage++)
        write_labelled(out, "dml_run_state", "state", stage_text(stage),
                       !strcmp(stage_text(stage), now));
    for (enum coordinator_phase phase = PHASE_REJOINING; phase <= PHASE_FAILED; phase++)
        if (phase != PHASE_DISMISSED && phase != PHASE_STOPPED && phase != PHASE_READ)
            write_labelled(out, "dml_run_state", "state", live_phase(phase),
                           !strcmp(live_phase(phase), now));
}

static void write_optimizer(FILE *out, const struct coordinator_view *view, bool judged,
                            const struct tally *tally) {
    write_one(out, "dml_step", GAUGE,
              "Accepted steps; falls when the run goes back to a "
              "checkpoint.",
              (double)view->step);
    if (view->started) {
        write_one(out, "dml_loss", GAUGE, "The objective at the last accepted point.", view->loss);
        write_one(out, "dml_gradient_max", GAUGE,
                  "Largest component of the gradient there, in absolute value.",
                  view->gradient_max);
        if (view->l1 > 0)
            write_one(out, "dml_nonzero", GAUGE, "Weights that are not zero there, with l1.",
                      (double)view->nonzero);
        if (judged)
            write_one(out, "dml_holdout_loss", GAUGE, "Mean loss on the holdout there.",
                      view->holdout.loss);
        if (judged && !isnan(view->holdout.accuracy))
            write_one(out, "dml_holdout_accuracy", GAUGE,
                      "Share of the holdout that is predicted correctly there.",
                      view->holdout.accuracy);
    }
    write_one(out, "dml_gradient_tolerance", GAUGE,
              "The run ends when dml_gradient_max is not larger.", view->gradient_tolerance);
    describe(out, "dml_safeguards_total", COUNTER, "How often a safeguard of the optimizer fired.");
    for (unsigned i = 0; i < SAFEGUARDS; i++)
        write_labelled(out, "dml_safeguards_total", "safeguard", safeguard_text(i),
                       (double)tally->safeguards[i]);
}

static void write_downpour(FILE *out, const struct downpour_view *view, const struct tally *tally) {
    if (!view->epochs)
        return;
    write_one(out, "dml_downpour_epochs", GAUGE, "Epochs that there are to be at most.",
              (double)view->epochs);
    write_one(out, "dml_downpour_epoch", GAUGE,
              "Epochs that are through; falls when the run goes back to a checkpoint.",
              (double)view->epoch);
    write_one(out, "dml_downpour_minibatches_total", COUNTER, "Minibatches trained on.",
              (double)tally->minibatches);
    write_one(out, "dml_downpour_running", GAUGE, "1 until the last epoch is through.",
              view->running);
    write_one(out, "dml_downpour_rate", GAUGE, "Learning rate of the epoch under way.", view->rate);
    if (view->done)
        write_one(out, "dml_downpour_loss", GAUGE,
                  "Mean loss over the minibatches of the epoch under way.", view->loss);
    if (view->measures && view->epoch)
        write_one(out, "dml_downpour_holdout_loss", GAUGE,
                  "Mean loss on the holdout after the last epoch.", view->holdout.loss);
    if (view->measures && view->epoch && !isnan(view->holdout.accuracy))
        write_one(out, "dml_downpour_holdout_accuracy", GAUGE,
                  "Share of the holdout that is predicted correctly there.",
                  view->holdout.accuracy);
}

static void write_norms(FILE *out, const char *name, const char *help, const struct layout *layout,
                        uint64_t count, const double *norms) {
    if (count)
        describe(out, name, GAUGE, help);
    for (uint64_t i = 0; i < count; i++)
        write_labelled(out, name, "tensor", layout->tensor[i].name, norms[i]);
}

static void write_tensors(FILE *out, const struct layout *layout,
                          const struct tensor_norms *norms) {
    write_norms(out, "dml_tensor_norm", "Euclidean norm of a tensor at the last accepted point.",
                layout, norms->count, norms->point);
    write_norms(out, "dml_tensor_gradient_norm",
                "Euclidean norm of the gradient by a tensor there.", layout, norms->count,
                norms->gradient);
}

static void write_evaluation(FILE *out, const struct coordinator_view *view,
                             const struct tally *tally) {
    write_one(out, "dml_evaluations_total", COUNTER, "Evaluations of loss and gradient.",
              (double)tally->evaluations);
    write_one(out, "dml_evaluation_chunks", GAUGE,
              "Chunks that the running evaluation or minibatch asks for.", view->evaluation.chunks);
    write_one(out, "dml_evaluation_chunks_counted", GAUGE, "Chunks of these that are counted.",
              view->evaluation.counted);
    write_one(out, "dml_backup_copies_total", COUNTER,
              "Portions that were also given to a second replica.", (double)view->backup_copies);
    write_one(out, "dml_stale_messages_total", COUNTER,
              "Messages ignored: of other attempts or evaluations, or repeated.",
              (double)view->stale);
}

static void write_checkpoint(FILE *out, const struct coordinator_view *view, int64_t durable_ms) {
    if (view->durable)
        write_one(out, "dml_checkpoint_step", GAUGE, "The step that the run would go back to.",
                  (double)view->durable_step);
    if (durable_ms)
        write_one(out, "dml_checkpoint_timestamp_seconds", GAUGE,
                  "When a step was last made durable, since 1970.", (double)durable_ms / 1e3);
}

/* ---- the processes ---- */

struct process_metric {
    const char *name;
    enum metric_type type;
    bool replicas_only;
    const char *help;
    double (*value)(const struct worker_view *worker);
};

static double value_up(const struct worker_view *worker) {
    return worker->ready;
}
static double value_restarts(const struct worker_view *worker) {
    return worker->restarts;
}
static double value_portions(const struct worker_view *worker) {
    return (double)worker->portions;
}
static double value_chunks(const struct worker_view *worker) {
    return (double)worker->chunks;
}
static double value_rate(const struct worker_view *worker) {
    return worker->chunks_per_ns * 1e9;
}

static const struct process_metric process_metrics[] = {
    {"dml_process_up", GAUGE, false, "Whether the process is set up and takes part.", value_up},
    {"dml_process_restarts_total", COUNTER, false, "How often it was lost and came back.",
     value_restarts},
    {"dml_process_portions_total", COUNTER, true, "Portions handed out to it.", value_portions},
    {"dml_process_chunks_total", COUNTER, true, "Chunks counted from it.", value_chunks},
    {"dml_process_chunks_per_second", GAUGE, true, "Its rate in its last flush.", value_rate},
};

static void write_device(FILE *out, const struct worker_view *worker) {
    if (!*worker->device)
        return;
    fprintf(out,
            "dml_process_device{role=\"%s\",index=\"%" PRIu32 "\",device=", role_name(worker->role),
            worker->index);
    write_quoted(out, worker->device);
    fputs("} 1\n", out);
}

static void write_devices(FILE *out, const struct coordinator *c) {
    describe(out, "dml_process_device", GAUGE, "What the process computes on; always 1.");
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        struct worker_view worker = coordinator_worker(c, i);
        write_device(out, &worker);
    }
}

static void write_processes(FILE *out, const struct coordinator *c) {
    write_devices(out, c);
    for (size_t i = 0; i < sizeof process_metrics / sizeof process_metrics[0]; i++) {
        const struct process_metric *metric = &process_metrics[i];
        describe(out, metric->name, metric->type, metric->help);
        uint32_t first = metric->replicas_only ? coordinator_settings(c)->shards : 0;
        for (uint32_t j = first; j < coordinator_links(c); j++) {
            struct worker_view worker = coordinator_worker(c, j);
            fprintf(out, "%s{role=\"%s\",index=\"%" PRIu32 "\"}", metric->name,
                    role_name(worker.role), worker.index);
            write_value(out, metric->value(&worker));
        }
    }
}

/* ---- the hosts ---- */

/* By state: a sample a host would be too many. */
static void write_hosts(FILE *out, const struct hosts *hosts) {
    uint32_t counts[HOSTS_SET_ASIDE + 1] = {0};
    uint64_t failures = 0;
    for (uint32_t i = 0; i < hosts->count; i++) {
        counts[hosts_state(&hosts->items[i])]++;
        failures += hosts->items[i].failed;
    }
    describe(out, "dml_hosts", GAUGE, "Hosts that workers are started on, by their state.");
    for (enum hosts_state state = HOSTS_STARTING; state <= HOSTS_SET_ASIDE; state++)
        write_labelled(out, "dml_hosts", "state", hosts_state_text(state), counts[state]);
    write_one(out, "dml_host_failures_total", COUNTER, "Workers that failed on a host.",
              (double)failures);
}

/* ---- the status server, and the coordinator's own process ---- */

static void write_http(FILE *out, const struct http_counts *counts) {
    write_one(out, "dml_http_requests_total", COUNTER, "Requests answered, whatever the answer.",
              (double)counts->requests);
    write_one(out, "dml_http_connections", GAUGE, "Connections that are open.",
              counts->connections);
    describe(out, "dml_http_refused_total", COUNTER, "Requests and connections turned away.");
    for (enum http_refusal i = 0; i < HTTP_REFUSALS; i++)
        write_labelled(out, "dml_http_refused_total", "reason", http_refusal_text(i),
                       (double)counts->refused.counts[i]);
}

/* When this process started, in clock ticks after the boot; 0 if that is not known. */
static double started_ticks(void) {
    char line[1024] = "";
    unsigned long long ticks = 0;
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file)
        return 0;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    const char *at = strrchr(line, ')'); /* the name may hold anything; field 3 follows it */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        ticks = strtoull(at, NULL, 10);
    return (double)ticks;
}

static double start_time(void) {
    struct timespec since_boot;
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    double uptime = (double)since_boot.tv_sec + (double)since_boot.tv_nsec / 1e9;
    return (double)clock_wall_ms() / 1e3 - uptime + started_ticks() / (double)sysconf(_SC_CLK_TCK);
}

static double resident_bytes(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%*u %llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void write_process(FILE *out) {
    write_one(out, "process_start_time_seconds", GAUGE,
              "When the coordinator's process began, since 1970.", start_time());
    write_one(out, "process_cpu_seconds_total", COUNTER, "Time it spent on processors.",
              cpu_seconds());
    write_one(out, "process_resident_memory_bytes", GAUGE, "Its resident memory.",
              resident_bytes());
}

char *metrics_text(const struct metrics *metrics, size_t *length) {
    const struct coordinator *c = metrics->live->coordinator;
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out)
        abort(); /* it fails only without memory */
    write_run(out, metrics->live);
    if (c) {
        struct coordinator_view view = coordinator_view(c);
        write_optimizer(out, &view, coordinator_settings(c)->optimizer.patience > 0,
                        metrics->tally);
        write_downpour(out, &view.downpour, metrics->tally);
        write_tensors(out, &coordinator_settings(c)->layout, &view.norms);
        write_evaluation(out, &view, metrics->tally);
        write_checkpoint(out, &view, metrics->durable_ms);
        write_processes(out, c);
    }
    if (metrics->live->hosts)
        write_hosts(out, metrics->live->hosts);
    write_http(out, metrics->http);
    write_process(out);
    fclose(out);
    return text;
}

static void add(uint64_t *total, uint64_t before, uint64_t now) {
    *total += now > before ? now - before : 0;
}

void tally_note(struct tally *tally, const struct coordinator_view *view) {
    if (tally->last.known) {
        add(&tally->evaluations, tally->last.evaluations, view->evaluations);
        add(&tally->minibatches, tally->last.minibatches, view->downpour.done);
        for (unsigned i = 0; i < SAFEGUARDS; i++)
            add(&tally->safeguards[i], tally->last.safeguards[i], view->safeguards[i]);
    }
    tally->last.known = true;
    tally->last.evaluations = view->evaluations;
    tally->last.minibatches = view->downpour.done;
    memcpy(tally->last.safeguards, view->safeguards, sizeof tally->last.safeguards);
}
