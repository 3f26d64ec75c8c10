#include "coordinator/status/result.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/model.h"

json_t *result_json(const struct coordinator *c, const struct job *job, int64_t run,
                    const struct optimizer_point *answer, const struct result_seconds *seconds,
                    const struct result_restarts *restarts) {
    const struct coordinator_settings *settings = coordinator_settings(c);
    struct figure_source source = {.job = job,
                                   .run = run,
                                   .objective = settings->shape.kind,
                                   .network = settings->shape.network,
                                   .coordinator = c,
                                   .settings = settings,
                                   .view = coordinator_view(c),
                                   .seconds = seconds,
                                   .restarts = restarts};
    source.point = *answer;
    return figures_json(IN_RESULT, &source);
}

void result_add_start(json_t *result, const char *sha256, int64_t run) {
    json_t *start = json_pack("{s:s}", "model_sha256", sha256);
    if (run)
        json_object_set_new(start, "run", json_integer((json_int_t)run));
    json_object_set_new(result, "start", start);
}

void result_add_model(json_t *result, const char *folder, const char *sha256) {
    json_object_set_new(result, "model", text_to_json(folder));
    json_object_set_new(result, "model_sha256", json_string(sha256));
}

/* ", loss 0.3": nothing if there is no such figure. */
static void put_figure(const json_t *object, const char *member, const char *words, FILE *out) {
    const json_t *value = json_object_get(object, member);
    if (json_is_number(value))
        fprintf(out, ", %s %.6g", words, json_number_value(value));
}

char *epochs_line(const json_t *downpour) {
    char *text = NULL;
    size_t length;
    long long through = member_count(downpour, "epoch");
    FILE *out = open_memstream(&text, &length);
    if (!out)
        abort(); /* it fails only without memory */
    if (json_is_true(json_object_get(downpour, "running"))) {
        fprintf(out, "epoch %lld of %lld: %lld of %lld minibatches", through + 1,
                member_count(downpour, "epochs"), member_count(downpour, "minibatch"),
                member_count(downpour, "minibatches"));
        double speed = member_number(downpour, "minibatches_per_second");
        if (!isnan(speed))
            fprintf(out, ", %.4g a second", speed);
    } else
        fprintf(out, "%lld epoch%s, %lld minibatches", through, through == 1 ? "" : "s",
                member_count(downpour, "done"));
    put_figure(downpour, "loss", "loss", out);
    put_figure(downpour, "holdout_loss", "holdout", out);
    put_figure(downpour, "holdout_accuracy", "accuracy", out);
    if (json_is_true(json_object_get(downpour, "stopped_early")))
        fputs(", stopped early", out);
    fclose(out);
    return text;
}

/* ---- the table for people ---- */

/* Prints a line with a text that may come from outside, such as a path. */
static void print_text(const char *heading, const char *text) {
    printf("%-12s ", heading);
    escape_put(text, stdout);
    putchar('\n');
}

const char *figures_in_line(const json_t *figures, unsigned *at) {
    static const char *const names[] = {
        "loss",     "accuracy", "auc",  "f1", "precision", "recall",  "average_precision",
        "macro_f1", "micro_f1", "rmse", "r2", "deviance",  "coverage"};
    bool two_classes = json_object_get(figures, "f1");
    while (*at < sizeof names / sizeof names[0]) {
        const char *name = names[(*at)++];
        if (json_is_number(json_object_get(figures, name)) &&
            !(two_classes && !strcmp(name, "macro_f1")))
            return name;
    }
    return NULL;
}

#define LINE_COLUMNS 80
#define HEADING_COLUMNS 13

/* Puts words after a comma, in the next line if they do not fit in this one. Returns the column
 * after them. */
static int put_words(const char *words, int column) {
    int length = (int)strlen(words);
    assert(*words);
    bool fits = column + length + 3 <= LINE_COLUMNS; /* with the commas around them */
    if (fits)
        printf(", %s", words);
    else
        printf(",\n%*s%s", HEADING_COLUMNS, "", words);
    return (fits ? column + 2 : HEADING_COLUMNS) + length;
}

/* Figures on the test data or the holdout, if there are any. */
static void print_figures(const json_t *result, const char *over) {
    const json_t *all = json_object_get(result, over);
    const char *name;
    char words[64];
    if (!all)
        return;
    int column = printf("%-12s %lld examples", over, member_count(all, "examples"));
    for (unsigned at = 0; (name = figures_in_line(all, &at));) {
        snprintf(words, sizeof words, "%s %.6g", name, member_number(all, name));
        column = put_words(words, column);
    }
    if (member_count(all, "unseen_labels")) {
        snprintf(words, sizeof words, "%lld with labels that training never saw",
                 member_count(all, "unseen_labels"));
        put_words(words, column);
    }
    putchar('\n');
}

static void print_network(const json_t *result) {
    const json_t *network = json_object_get(result, "network");
    const json_t *layers = json_object_get(network, "layers");
    if (!json_is_array(layers))
        return;
    printf("%-12s ", "network");
    for (size_t i = 0; i < json_array_size(layers); i++)
        printf("%s%lld", i ? " - " : "", json_integer_value(json_array_get(layers, i)));
    printf(" units, %s, %lld parameters\n",
           json_string_value(json_object_get(network, "activation")),
           member_count(result, "parameters"));
}

/* What is made of the margins, if it is not what the objective makes of them. */
static void print_response(const json_t *result) {
    const json_t *threshold = json_object_get(result, "threshold");
    const json_t *all = json_object_get(threshold, "probabilities");
    const json_t *calibration = json_object_get(result, "calibration");
    if (json_array_size(all) == 1)
        printf("%-12s %.6g, as threshold = %s\n", "threshold",
               json_number_value(json_array_get(all, 0)), member_text(threshold, "rule"));
    else if (json_is_array(all))
        printf("%-12s of each class, as threshold = %s\n", "thresholds",
               member_text(threshold, "rule"));
    if (json_is_object(calibration))
        printf("%-12s %s, on the holdout\n", "calibrated", member_text(calibration, "method"));
    if (json_is_array(json_object_get(result, "prior_correction")))
        printf("%-12s probabilities, for the weights of classes\n", "corrected");
}

static void print_count(const char *before, const json_t *device, const char *member,
                        const char *one) {
    long long count = member_count(device, member);
    if (count)
        printf("%s%lld %s%s", before, count, one, count == 1 ? "" : "s");
}

/* If not all workers computed on the CPU. */
static void print_devices(const json_t *result) {
    const json_t *devices = json_object_get(result, "devices");
    size_t i;
    json_t *device;
    if (!json_array_size(devices) ||
        (json_array_size(devices) == 1 &&
         !strcmp(member_text(json_array_get(devices, 0), "device"), "cpu")))
        return;
    printf("%-12s ", "devices");
    json_array_foreach(devices, i, device) {
        fputs(i ? ", " : "", stdout);
        escape_put(member_text(device, "device"), stdout);
        print_count(" (", device, "shards", "shard");
        print_count(member_count(device, "shards") ? ", " : " (", device, "replicas", "replica");
        putchar(')');
    }
    putchar('\n');
}

/* With l1: how many weights are left, and how good the point is. */
static void print_sparsity(const json_t *result) {
    if (!json_is_integer(json_object_get(result, "nonzero")))
        return;
    printf("%-12s %lld weights with l1 = %g", "nonzero", member_count(result, "nonzero"),
           member_number(result, "l1"));
    if (json_is_number(json_object_get(result, "gap_bound")))
        printf("; the loss is at most %.2g above the minimum", member_number(result, "gap_bound"));
    putchar('\n');
}

/* How many weights are at a bound, and which would gain most from another one. */
static void print_bounds(const json_t *result) {
    const json_t *active = json_object_get(result, "active_bounds");
    const json_t *first = json_array_get(json_object_get(active, "weights"), 0);
    if (!active)
        return;
    printf("%-12s %lld weights at a bound", "bounds", member_count(active, "count"));
    if (json_is_number(json_object_get(first, "multiplier"))) {
        fputs(", most against it ", stdout);
        escape_put(member_text(first, "feature"), stdout);
    }
    putchar('\n');
}

/* Which step the model is of, or which epoch, if there was no step; nothing of a run that was
 * cancelled before all rows were evaluated once. */
static void print_best(const json_t *result) {
    const json_t *best = json_object_get(result, "early_stopping");
    long long epoch = member_count(json_object_get(result, "downpour"), "best_epoch");
    if (!json_is_number(json_object_get(best, "holdout_loss")))
        return;
    bool step = member_count(best, "best_step") || !epoch;
    printf("%-12s %s %lld, holdout loss %.12g", "best", step ? "step" : "epoch",
           step ? member_count(best, "best_step") : epoch, member_number(best, "holdout_loss"));
    if (json_is_number(json_object_get(best, "holdout_accuracy")))
        printf(", accuracy %.6g", member_number(best, "holdout_accuracy"));
    putchar('\n');
}

/* What the start from the live model cost, and whether the new model was published. */
static void print_retraining(const json_t *result) {
    const json_t *warm = json_object_get(result, "warm_start");
    const json_t *published = json_object_get(result, "published");
    size_t i;
    json_t *condition;
    if (json_is_integer(json_object_get(warm, "cold_evaluations")))
        printf("%-12s %lld evaluations; a start from zero took %lld\n", "warm start",
               member_count(warm, "evaluations"), member_count(warm, "cold_evaluations"));
    json_array_foreach(json_object_get(result, "gate"), i, condition)
        printf("%-12s %s: %s\n", "gate", member_text(condition, "condition"),
               json_is_true(json_object_get(condition, "holds")) ? "holds" : "does not hold");
    if (published)
        printf("%-12s %s\n", "published", json_is_true(published) ? "yes" : "no");
    if (json_is_string(json_object_get(result, "to_publish")))
        print_text("to publish", member_text(result, "to_publish"));
    if (json_is_string(json_object_get(result, "live")))
        print_text("live", member_text(result, "live"));
}

/* What was done more than once, if anything was. */
static void print_redone(const json_t *result) {
    const json_t *restarts = json_object_get(result, "restarts");
    long long resumed = member_count(restarts, "coordinator");
    long long shards = member_count(restarts, "shard"),
              replicas = member_count(restarts, "replica");
    if (resumed + shards + replicas)
        printf("%-12s run %lld, shards %lld, replicas %lld\n", "restarts", resumed, shards,
               replicas);
    if (member_count(result, "backup_copies"))
        printf("%-12s %lld copies of portions\n", "backups", member_count(result, "backup_copies"));
}

static void print_cell(const json_t *row, const char *member, int width, const char *format,
                       FILE *out) __attribute__((format(printf, 4, 0)));

static void print_cell(const json_t *row, const char *member, int width, const char *format,
                       FILE *out) {
    const json_t *value = json_object_get(row, member);
    char text[32] = "-";
    if (json_is_number(value))
        snprintf(text, sizeof text, format, json_number_value(value));
    fprintf(out, " %*s", width, text);
}

/* What the columns of a path show, so narrow that a line has 80. */
struct path_columns {
    bool penalties; /* l1 and how many weights it leaves */
    bool folds;     /* means over folds, with their standard errors */
    const char *by; /* the figure that decides */
    int width;      /* of its column */
};

static void print_path_row(const json_t *row, const struct path_columns *columns, FILE *out) {
    const json_t *score = json_object_get(row, "score");
    fprintf(out, "%9.4g", member_number(row, "l2"));
    if (columns->penalties) {
        print_cell(row, "l1", 9, "%.4g", out);
        print_cell(row, "nonzero", 8, "%.0f", out);
    }
    print_cell(row, "loss", 9, "%.6g", out);
    print_cell(score, "mean", columns->width, "%.6g", out);
    if (columns->folds)
        print_cell(score, "standard_error", 9, "%.2g", out);
    bool live = !strcmp(member_text(row, "publication"), "live"); /* marked as `jobs` marks it */
    fprintf(out, " %5lld%c%5lld", member_count(row, "run"), live ? '*' : ' ',
            member_count(row, "evaluations"));
    /* What is special about the value. */
    bool chosen = json_is_true(json_object_get(row, "chosen"));
    bool failed = json_is_false(json_object_get(row, "converged"));
    if (chosen || failed)
        fprintf(out, "  %s%s%s", chosen ? "chosen" : "", chosen && failed ? ", " : "",
                failed ? member_text(row, "reason") : "");
    putc('\n', out);
}

void path_show(const json_t *path, const char *by, FILE *out) {
    const json_t *first = json_array_get(path, 0);
    int width = (int)strlen(by);
    struct path_columns columns = {
        .folds = json_object_get(first, "folds"), .by = by, .width = width > 9 ? width : 9};
    size_t i;
    json_t *row;
    if (!first)
        return;
    json_array_foreach(path, i, row) columns.penalties |= member_number(row, "l1") > 0;
    const char *heading = strcmp(by, "loss") ? by : columns.folds ? "fold mean" : "holdout";
    fprintf(out, "\n%9s", "l2");
    if (columns.penalties)
        fprintf(out, " %9s %8s", "l1", "nonzero");
    fprintf(out, " %9s %*s", "loss", columns.width, heading);
    if (columns.folds)
        fprintf(out, " %9s", "std error");
    fprintf(out, " %5s %5s\n", "run", "evals");
    json_array_foreach(path, i, row) print_path_row(row, &columns, out);
}

void chosen_show(const json_t *chosen, const char *before, FILE *out) {
    if (!json_is_object(chosen))
        return;
    fprintf(out, "%srun %lld, ", before, member_count(chosen, "run"));
    if (member_number(chosen, "l1") > 0)
        fprintf(out, "l1 = %g, ", member_number(chosen, "l1"));
    fprintf(out, "l2 = %g, %s %.6g", member_number(chosen, "l2"), member_text(chosen, "choose_by"),
            member_number(chosen, "mean"));
    if (json_is_number(json_object_get(chosen, "standard_error")))
        fprintf(out, " with a standard error of %.2g", member_number(chosen, "standard_error"));
    if (member_count(chosen, "best_run") != member_count(chosen, "run"))
        fprintf(out, "; the best is run %lld", member_count(chosen, "best_run"));
    putc('\n', out);
}

/* How the run ended, and how far it came. */
static void print_end(const json_t *result) {
    const json_t *downpour = json_object_get(result, "downpour");
    printf("%-12s ", "job");
    escape_put(member_text(result, "job"), stdout);
    printf(", run %lld", member_count(result, "run"));
    if (member_count(result, "continues"))
        printf(", which goes on from the end of run %lld", member_count(result, "continues"));
    putchar('\n');
    printf("%-12s %s%s\n", "ended", member_text(result, "reason"),
           json_is_false(json_object_get(result, "converged")) ? ": not converged" : "");
    if (json_is_number(json_object_get(result, "loss"))) { /* else there is no point */
        printf("%-12s %.12g", "loss", member_number(result, "loss"));
        if (json_is_number(json_object_get(result, "gap_estimate")))
            printf(" (by estimate %.2g above its minimum)", member_number(result, "gap_estimate"));
        putchar('\n');
        printf("%-12s %.3g (largest component)\n", "gradient",
               member_number(result, "gradient_max"));
    }
    printf("%-12s %lld, %lld evaluations\n", "steps", member_count(result, "steps"),
           member_count(result, "evaluations"));
    if (json_is_object(downpour)) {
        char *line = epochs_line(downpour);
        printf("%-12s %s\n", "downpour", line);
        free(line);
    }
}

static void print_table(const json_t *result) {
    const json_t *seconds = json_object_get(result, "seconds");
    const json_t *weights = json_object_get(result, "weights");
    print_end(result);
    print_sparsity(result);
    print_bounds(result);
    print_best(result);
    printf("%-12s %lld examples, %lld features, %lld values\n", "data",
           member_count(result, "examples"), member_count(result, "features"),
           member_count(result, "values"));
    print_network(result);
    if (json_is_object(weights))
        printf("%-12s %.12g in all\n", "weights", member_number(weights, "sum"));
    const json_t *offsets = json_object_get(result, "offsets");
    if (json_is_object(offsets))
        printf("%-12s from %.6g to %.6g\n", "offsets", member_number(offsets, "least"),
               member_number(offsets, "most"));
    print_response(result);
    print_figures(result, "holdout");
    print_figures(result, "holdout_live");
    print_figures(result, "test");
    print_devices(result);
    print_redone(result);
    printf("%-12s %.2f s in all, packing %.2f s, training %.2f s\n", "time",
           member_number(seconds, "total"), member_number(seconds, "pack"),
           member_number(seconds, "train"));
    if (json_object_get(result, "model")) {
        print_text("model", member_text(result, "model"));
        printf("%-12s %s\n", "sha256", member_text(result, "model_sha256"));
    }
    print_retraining(result);
    const json_t *chosen = json_object_get(result, "chosen");
    chosen_show(chosen, "chosen       ", stdout);
    path_show(json_object_get(result, "path"), chosen ? member_text(chosen, "choose_by") : "loss",
              stdout);
}

void result_show(const json_t *result, bool json, bool cron) {
    if (json) {
        json_dumpf(result, stdout, JSON_COMPACT);
        putchar('\n');
    } else if (!cron) {
        print_table(result);
    }
    fflush(stdout);
}
