#include "coordinator/status/past_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "coordinator/status/invocations.h"
#include "coordinator/status/metrics_write.h"
#include "coordinator/status/report.h"

static double seconds_of(const json_t *object, const char *member) {
    return member_number(object, member) / 1e3;
}

/* The newest run that is no fold. */
static const json_t *newest_run(const json_t *runs) {
    const json_t *list = json_object_get(runs, "runs");
    for (size_t i = json_array_size(list); i; i--) {
        const json_t *run = json_array_get(list, i - 1);
        if (!member_count(json_object_get(run, "sweep"), "fold"))
            return run;
    }
    return NULL;
}

/* ---- what is read of a folder ---- */

static double read_up(const json_t *runs) {
    return runs != NULL;
}

static double read_live_run(const json_t *runs) {
    const json_t *live = report_live_model(runs);
    return live ? (double)member_count(live, "run") : runs ? 0 : NAN;
}

static double read_trained(const json_t *runs) {
    return seconds_of(report_live_model(runs), "ended_ms");
}

static double read_published(const json_t *runs) {
    return seconds_of(json_object_get(runs, "decisions"), "live_since_ms");
}

static double read_refusals(const json_t *runs) {
    return member_number(json_object_get(runs, "decisions"), "refusals");
}

static double read_refused_since(const json_t *runs) {
    return seconds_of(json_object_get(runs, "decisions"), "refusals_since_ms");
}

static double read_refused(const json_t *runs) {
    return member_number(json_object_get(runs, "decisions"), "refused");
}

static double read_last_run(const json_t *runs) {
    return seconds_of(newest_run(runs), "started_ms");
}

static double read_last_success(const json_t *runs) {
    double latest = NAN;
    size_t i;
    json_t *run;
    json_array_foreach(json_object_get(runs, "runs"), i, run) {
        double ended = seconds_of(run, "ended_ms");
        if (json_is_string(json_object_get(run, "model")) && !(ended <= latest))
            latest = isnan(ended) ? latest : ended;
    }
    return latest;
}

static double read_last_invocation(const json_t *runs) {
    return seconds_of(invocations_last(json_object_get(runs, "invocations")), "began_ms");
}

/* That of the last one that has ended: one that is at work, or was lost, has none. */
static double read_last_status(const json_t *runs) {
    const json_t *list = json_object_get(runs, "invocations");
    double status = NAN;
    for (size_t i = json_array_size(list); i && isnan(status); i--)
        status = member_number(json_array_get(list, i - 1), "status");
    return status;
}

static double read_failures(const json_t *runs) {
    return member_number(runs, "failures");
}

static const struct past_metric {
    const char *name, *help;
    enum metric_type type;
    double (*read)(const json_t *runs); /* NaN: there is no sample */
} metrics[] = {
    {"dml_state_readable", "Whether the state folder could be read.", METRIC_GAUGE, read_up},
    {"dml_live_model_run", "The run whose model is live; 0: none is.", METRIC_GAUGE, read_live_run},
    {"dml_live_model_trained_timestamp_seconds", "When that run ended, since 1970.", METRIC_GAUGE,
     read_trained},
    {"dml_live_model_published_timestamp_seconds", "When its model went live, since 1970.",
     METRIC_GAUGE, read_published},
    {"dml_gate_refusals", "Refusals of the gate since a model went live last.", METRIC_GAUGE,
     read_refusals},
    {"dml_gate_refusing_since_timestamp_seconds", "When the first of these was, since 1970.",
     METRIC_GAUGE, read_refused_since},
    {"dml_gate_refusals_total", "All refusals of the gate that are recorded.", METRIC_COUNTER,
     read_refused},
    {"dml_last_run_timestamp_seconds", "When the newest run began, since 1970.", METRIC_GAUGE,
     read_last_run},
    {"dml_last_success_timestamp_seconds", "When a run last ended with a model, since 1970.",
     METRIC_GAUGE, read_last_success},
    {"dml_last_invocation_timestamp_seconds", "When `run` or `retrain` last began, since 1970.",
     METRIC_GAUGE, read_last_invocation},
    {"dml_last_invocation_status", "Exit status of the last of these that has ended.", METRIC_GAUGE,
     read_last_status},
    {"dml_consecutive_failures", "How many of these failed or were killed, one after the other.",
     METRIC_GAUGE, read_failures},
};

/* ---- the text ---- */

/* A sample a figure of the live model on the holdout and on the test data. */
static void write_figures(FILE *out, const struct past_folder *folders, size_t count) {
    static const char *const over[] = {"holdout", "test"};
    const char *name = "dml_live_model_figure";
    bool described = false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof over / sizeof over[0]; k++) {
            json_t *figures = json_object_get(report_live_model(folders[i].runs), over[k]), *value;
            const char *figure;
            json_object_foreach(figures, figure, value) {
                if (!json_is_number(value))
                    continue;
                if (!described)
                    metrics_describe(out, name, METRIC_GAUGE,
                                     "A figure of the live model, by its name in `jobs --json`.");
                described = true;
                fprintf(out, "%s{state=", name);
                metrics_write_quoted(out, folders[i].path);
                fprintf(out, ",over=\"%s\",figure=\"%s\"}", over[k], figure);
                metrics_write_value(out, json_number_value(value));
            }
        }
}

char *past_metrics_text(const struct past_folder *folders, size_t count, size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out)
        abort(); /* it fails only without memory */
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const struct past_metric *metric = &metrics[i];
        bool described = false; /* before its first sample: one without samples is left out */
        for (size_t k = 0; k < count; k++) {
            double value = metric->read(folders[k].runs);
            if (isnan(value))
                continue;
            if (!described)
                metrics_describe(out, metric->name, metric->type, metric->help);
            described = true;
            metrics_write_labelled(out, metric->name, "state", folders[k].path, value);
        }
    }
    write_figures(out, folders, count);
    fclose(out);
    return text;
}
