#include "coordinator/status/metrics.h"

#include <assert.h>
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
#include "coordinator/status/eta.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/metrics_write.h"

/* ---- the format ---- */

void metrics_describe(FILE *out, const char *name, enum metric_type type, const char *help) {
    assert(type != METRIC_NONE && *name);
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
            type == METRIC_COUNTER ? "counter" : "gauge");
}

void metrics_write_value(FILE *out, double value) {
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
    metrics_describe(out, name, type, help);
    fputs(name, out);
    metrics_write_value(out, value);
}

/* The value of a label, quoted. */
void metrics_write_quoted(FILE *out, const char *text) {
    json_t *utf8 = text_to_json(text);
    assert(json_is_string(utf8));
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

void metrics_write_labelled(FILE *out, const char *name, const char *label, const char *text,
                            double value) {
    fprintf(out, "%s{%s=", name, label);
    metrics_write_quoted(out, text);
    putc('}', out);
    metrics_write_value(out, value);
}

/* ---- the figures of the run ---- */

static bool is_of(const struct figure *figure, const char *of) {
    return figure->metric.type != METRIC_NONE && !strcmp(figure->of, of);
}

/* Those without labels. What is not known is left out, unless it is to be NaN. */
static void write_figures(FILE *out, const char *of, const struct figure_source *source) {
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        if (!is_of(figure, of))
            continue;
        double value = figure->number(source);
        if (!isnan(value) || figure->metric.type == METRIC_GAUGE_OR_NAN)
            write_one(out, figure->metric.name, figure->metric.type, figure->metric.help, value);
    }
}
/* A sample a tensor, once there is a point. */
static void write_tensors(FILE *out, struct figure_source source) {
    const uint64_t count = source.point.norms.count;
    for (size_t i = 0; i < figure_count && count; i++) {
        const struct figure *figure = &figure_table[i];
        if (!is_of(figure, "tensor"))
            continue;
        metrics_describe(out, figure->metric.name, figure->metric.type, figure->metric.help);
        for (source.number = 0; source.number < count; source.number++)
            metrics_write_labelled(out, figure->metric.name, "tensor",
                                   source.settings->layout.tensor[source.number].name,
                                   figure->number(&source));
    }
}

/* A sample a process. */
static void write_processes(FILE *out, const struct coordinator *c) {
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        if (!is_of(figure, "worker"))
            continue;
        metrics_describe(out, figure->metric.name, figure->metric.type, figure->metric.help);
        uint32_t first = figure->metric.replicas_only ? coordinator_settings(c)->shards : 0;
        for (uint32_t j = first; j < coordinator_links(c); j++) {
            struct worker_view worker = coordinator_worker(c, j);
            if (worker.vacant)
                continue;
            fprintf(out, "%s{role=\"%s\",index=\"%" PRIu32 "\"}", figure->metric.name,
                    role_name(worker.role), worker.index);
            metrics_write_value(out, figure->number(&(struct figure_source){.worker = &worker}));
        }
    }
}

/* ---- what has a text as a label ---- */

static void write_run(FILE *out, const struct live *live) {
    const char *now = live_state(live);
    metrics_describe(out, "dml_build_info", METRIC_GAUGE, "The program's version; always 1.");
    metrics_write_labelled(out, "dml_build_info", "version", PACKAGE_VERSION, 1);
    metrics_describe(out, "dml_run_info", METRIC_GAUGE, "The job and its objective; always 1.");
    fputs("dml_run_info{job=", out);
    metrics_write_quoted(out, live->job->name);
    fputs(",objective=", out);
    metrics_write_quoted(out, objective_name(live->job->objective));
    fputs("} 1\n", out);
    metrics_describe(out, "dml_run_state", METRIC_GAUGE,
                     "1 for the state that the run is in, 0 for the others.");
    for (enum stage stage = STAGE_TRAINING + 1; stage < STAGE_COUNT; stage++)
        metrics_write_labelled(out, "dml_run_state", "state", stage_text(stage),
                               !strcmp(stage_text(stage), now));
    for (enum coordinator_phase phase = PHASE_REJOINING; phase <= PHASE_FAILED; phase++)
        if (phase != PHASE_DISMISSED && phase != PHASE_STOPPED && phase != PHASE_READ)
            metrics_write_labelled(out, "dml_run_state", "state", live_phase(phase),
                                   !strcmp(live_phase(phase), now));
}

/* Before the first worker is ready there is no sample, and so no group. */
static void write_devices(FILE *out, const struct coordinator *c) {
    bool described = false;
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        struct worker_view worker = coordinator_worker(c, i);
        if (!*worker.device)
            continue;
        if (!described)
            metrics_describe(out, "dml_process_device", METRIC_GAUGE,
                             "What the process computes on; always 1.");
        described = true;
        fprintf(out, "dml_process_device{role=\"%s\",index=\"%" PRIu32 "\",device=",
                role_name(worker.role), worker.index);
        metrics_write_quoted(out, worker.device);
        fputs("} 1\n", out);
    }
}

/* Hosts by state: a sample a host would be too many. */
static void write_hosts(FILE *out, const struct hosts *hosts) {
    uint32_t counts[HOSTS_SET_ASIDE + 1] = {0};
    uint64_t failures = 0;
    for (uint32_t i = 0; i < hosts->count; i++) {
        counts[hosts_state(&hosts->items[i])]++;
        failures += hosts->items[i].failed;
    }
    metrics_describe(out, "dml_hosts", METRIC_GAUGE,
                     "Hosts that workers are started on, by their state.");
    for (enum hosts_state state = HOSTS_STARTING; state <= HOSTS_SET_ASIDE; state++)
        metrics_write_labelled(out, "dml_hosts", "state", hosts_state_text(state), counts[state]);
    write_one(out, "dml_host_failures_total", METRIC_COUNTER, "Workers that failed on a host.",
              (double)failures);
}

/* ---- the status server, and the coordinator's own process ---- */

static void write_http(FILE *out, const struct http_counts *counts) {
    write_one(out, "dml_http_requests_total", METRIC_COUNTER,
              "Requests answered, whatever the answer.", (double)counts->requests);
    write_one(out, "dml_http_connections", METRIC_GAUGE, "Connections that are open.",
              counts->connections);
    metrics_describe(out, "dml_http_refused_total", METRIC_COUNTER,
                     "Requests and connections turned away.");
    for (enum http_drop i = 0; i < HTTP_DROP_COUNT; i++)
        metrics_write_labelled(out, "dml_http_refused_total", "reason", http_drop_text(i),
                               (double)counts->dropped.counts[i]);
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

static void write_process(FILE *out) {
    struct timespec since_boot;
    struct rusage usage;
    unsigned long long pages = 0; /* that are resident */
    FILE *memory = fopen("/proc/self/statm", "re");
    if (memory && fscanf(memory, "%*u %llu", &pages) != 1)
        pages = 0;
    if (memory)
        fclose(memory);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    getrusage(RUSAGE_SELF, &usage);
    double uptime = (double)since_boot.tv_sec + (double)since_boot.tv_nsec / 1e9;
    double booted = (double)clock_wall_ms() / 1e3 - uptime;
    double cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    write_one(out, "process_start_time_seconds", METRIC_GAUGE,
              "When the coordinator's process began, since 1970.",
              booted + started_ticks() / (double)sysconf(_SC_CLK_TCK));
    write_one(out, "process_cpu_seconds_total", METRIC_COUNTER, "Time it spent on processors.",
              cpu_seconds);
    write_one(out, "process_resident_memory_bytes", METRIC_GAUGE, "Its resident memory.",
              (double)pages * (double)sysconf(_SC_PAGESIZE));
}

char *metrics_text(const struct live *live, const struct http_counts *http, size_t *length) {
    struct figure_source source = figures_of_live(live);
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out)
        abort(); /* it fails only without memory */
    write_run(out, live);
    write_figures(out, "run", &source);
    if (live->coordinator) {
        write_figures(out, "training", &source);
        write_figures(out, "evaluation", &source);
        if (source.view.downpour.epochs)
            write_figures(out, "downpour", &source);
        metrics_describe(out, "dml_safeguards_total", METRIC_COUNTER,
                         "How often a safeguard of the optimizer fired.");
        for (unsigned i = 0; i < SAFEGUARDS; i++)
            metrics_write_labelled(out, "dml_safeguards_total", "safeguard", safeguard_text(i),
                                   (double)live->counters->safeguards[i]);
        write_tensors(out, source);
        write_devices(out, live->coordinator);
        write_processes(out, live->coordinator);
    }
    if (live->hosts)
        write_hosts(out, live->hosts);
    write_http(out, http);
    write_process(out);
    fclose(out);
    return text;
}
