#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/report.h"

void report_print_json(const json_t *value) {
    json_dumpf(value, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
}

static const char *text_of(const json_t *object, const char *member) {
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "-";
}

static long long count_of(const json_t *object, const char *member) {
    return json_integer_value(json_object_get(object, member));
}

static void write_number(const json_t *object, const char *member, const char *format, char *text,
                         size_t size) __attribute__((format(printf, 3, 0)));

static void write_number(const json_t *object, const char *member, const char *format, char *text,
                         size_t size) {
    const json_t *value = json_object_get(object, member);
    if (json_is_number(value))
        snprintf(text, size, format, json_number_value(value));
    else
        snprintf(text, size, "-");
}

/* At most 6 characters up to ten thousand days. */
static void write_duration(double seconds, char *text, size_t size) {
    if (seconds < 100)
        snprintf(text, size, "%.1fs", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "%dm%02ds", (int)seconds / 60, (int)seconds % 60);
    else if (seconds < 360000)
        snprintf(text, size, "%dh%02dm", (int)(seconds / 3600), (int)(seconds / 60) % 60);
    else
        snprintf(text, size, "%.0fd", seconds / 86400);
}

static void write_time(long long wall_ms, char *text, size_t size) {
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm local;
    localtime_r(&seconds, &local);
    strftime(text, size, "%Y-%m-%d %H:%M", &local);
}

static void print_evaluation(const json_t *evaluation) {
    printf("evaluation %lld", count_of(evaluation, "number"));
    if (json_is_integer(json_object_get(evaluation, "chunks")))
        printf(": %lld of %lld chunks counted", count_of(evaluation, "counted"),
               count_of(evaluation, "chunks"));
    putchar('\n');
}

static void print_processes(const json_t *processes) {
    size_t i;
    json_t *process;
    if (json_array_size(processes))
        printf("%-13s %9s %-16s %-12s %9s %10s\n", "process", "pid", "host", "state", "portions",
               "chunks/s");
    json_array_foreach(processes, i, process) {
        char name[32], rate[16];
        snprintf(name, sizeof name, "%s %lld", text_of(process, "role"),
                 count_of(process, "index"));
        write_number(process, "rate", "%.1f", rate, sizeof rate);
        printf("%-13s %9lld %-16.16s %-12.12s %9lld %10s\n", name, count_of(process, "pid"),
               text_of(process, "host"), text_of(process, "state"), count_of(process, "portions"),
               rate);
    }
}

void report_print_status(const json_t *status) {
    char started[32], duration[16], loss[32], gradient[32];
    write_time(count_of(status, "started_ms"), started, sizeof started);
    write_duration(json_number_value(json_object_get(status, "seconds")), duration,
                   sizeof duration);
    write_number(status, "loss", "%.10g", loss, sizeof loss);
    write_number(status, "gradient_max", "%.3g", gradient, sizeof gradient);
    printf("%s run %lld: %s", text_of(status, "job"), count_of(status, "run"),
           text_of(status, "state"));
    if (json_is_string(json_object_get(status, "reason")))
        printf(", %s", text_of(status, "reason"));
    printf("; started %s, %s\n", started, duration);
    printf("step %lld: loss %s, gradient %s\n", count_of(status, "step"), loss, gradient);
    print_evaluation(json_object_get(status, "evaluation"));
    print_processes(json_object_get(status, "processes"));
}

static void print_run(const json_t *run) {
    char started[32], duration[16], loss[32];
    const char *reason = text_of(run, "reason"), *hash = text_of(run, "model_sha256");
    write_time(count_of(run, "started_ms"), started, sizeof started);
    write_duration(json_number_value(json_object_get(run, "seconds")), duration, sizeof duration);
    write_number(run, "loss", "%.5g", loss, sizeof loss);
    if (strcmp(reason, "-") == 0)
        reason = text_of(run, "state");
    printf("%4lld %-16s %6s %6lld %6lld %10s %-18s %.7s\n", count_of(run, "run"), started, duration,
           count_of(run, "steps"), count_of(run, "evaluations"), loss, reason, hash);
}

void report_print_runs(const json_t *runs) {
    size_t i;
    json_t *run;
    printf("%4s %-16s %6s %6s %6s %10s %-18s %s\n", "run", "started", "time", "steps", "evals",
           "loss", "ended", "model");
    json_array_foreach(json_object_get(runs, "runs"), i, run) print_run(run);
}
