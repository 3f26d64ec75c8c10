#include "coordinator/status/sweep_table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* ---- scores, and the choice by them ---- */

struct sweep_score sweep_score(const double *figures, uint32_t count) {
    double sum = 0, squares = 0;
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++)
        sum += figures[i];
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (figures[i] - mean) * (figures[i] - mean);
    double deviation = count > 1 ? sqrt(squares / (count - 1)) : 0;
    return (struct sweep_score){mean, deviation, count > 1 ? deviation / sqrt(count) : NAN};
}

/* The score as a number that is better if it is lower. */
static double cost_of(const struct sweep_rule *rule, const struct sweep_score *score) {
    assert(rule->by->better != SCORE_NEITHER);
    return rule->by->better == SCORE_HIGHER ? -score->mean : score->mean;
}

bool sweep_choose(const struct sweep_rule *rule, uint32_t values, const struct sweep_score *scores,
                  struct sweep_choice *choice) {
    double least = INFINITY;
    *choice = (struct sweep_choice){0};
    assert(values > 0);
    for (uint32_t value = 0; value < values; value++) {
        double cost = cost_of(rule, &scores[value]);
        if (isfinite(cost) && cost < least) {
            least = cost;
            choice->best = value;
        }
    }
    if (!isfinite(least))
        return false;
    choice->value = choice->best;
    double most = least + scores[choice->best].error; /* NaN: no other is near enough */
    for (uint32_t value = choice->best; rule->one_se && value; value--)
        if (cost_of(rule, &scores[value - 1]) <= most)
            choice->value = value - 1;
    return true;
}

/* ---- figures of the members ---- */

/* A figure of a value on each fold, or on the holdout if there are none: [max(folds, 1)]. NaN: not
 * known. */
static void read_figures(const struct sweep_shape *shape, const struct sweep_runs *runs,
                         uint32_t value, const char *name, double *figures) {
    uint32_t first = shape->folds ? 1 : 0;
    for (uint32_t fold = first; fold <= shape->folds; fold++) {
        const json_t *result = runs->results[sweep_member_at(shape, value, fold)];
        figures[fold - first] = member_number(json_object_get(result, "holdout"), name);
    }
}

static uint32_t figures_each(const struct sweep_shape *shape) {
    return shape->folds ? shape->folds : 1;
}

static bool choose_by(const struct sweep_shape *shape, const struct sweep_runs *runs,
                      const struct score_figure *by, struct sweep_choice *choice) {
    struct sweep_rule rule = {.by = by, .one_se = shape->rule.one_se};
    uint32_t count = figures_each(shape);
    double *figures = memory_new(count, sizeof *figures);
    struct sweep_score *scores = memory_new(shape->values, sizeof *scores);
    for (uint32_t value = 0; value < shape->values; value++) {
        read_figures(shape, runs, value, by->name, figures);
        scores[value] = sweep_score(figures, count);
    }
    bool chosen = sweep_choose(&rule, shape->values, scores, choice);
    free(scores);
    free(figures);
    return chosen;
}

struct sweep_choice sweep_decide(const struct sweep_shape *shape, const struct sweep_runs *runs,
                                 const struct score_figure **by) {
    struct sweep_choice choice;
    *by = shape->rule.by;
    if (!choose_by(shape, runs, *by, &choice)) {
        *by = score_figure_find("loss");
        choose_by(shape, runs, *by, &choice);
    }
    return choice;
}

/* ---- the table ---- */

/* What a row of the table has from the result of its full fit. */
static const char *const from_result[] = {"l2",      "l1",          "run",    "loss",
                                          "steps",   "evaluations", "reason", "converged",
                                          "nonzero", "holdout",     "test",   "model_sha256"};

static void copy_member(json_t *to, const json_t *from, const char *name) {
    json_t *value = json_object_get(from, name);
    if (json_object_get(value, "curves")) { /* they would be most of the table */
        json_t *rest = json_copy(value);
        json_object_del(rest, "curves");
        json_object_set_new(to, name, rest);
    } else if (value) {
        json_object_set(to, name, value);
    }
}

static json_t *spread_json(const double *figures, uint32_t count) {
    struct sweep_score score = sweep_score(figures, count);
    return json_pack("{s:o, s:o, s:o}", "mean", number_json(score.mean), "deviation",
                     number_json(score.deviation), "standard_error", number_json(score.error));
}

static json_t *number_list_json(const double *numbers, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, number_json(numbers[i]));
    return list;
}

/* What the folds say of a value: its loss, and each other figure that is no count and that all of
 * them have. */
static json_t *folds_json(const struct sweep_shape *shape, const struct sweep_runs *runs,
                          uint32_t value) {
    double *numbers = memory_new(shape->folds, sizeof *numbers);
    read_figures(shape, runs, value, "loss", numbers);
    json_t *folds = spread_json(numbers, shape->folds), *figures = json_object(), *number;
    json_object_set_new(folds, "losses", number_list_json(numbers, shape->folds));
    const json_t *first = runs->results[sweep_member_at(shape, value, 1)];
    const char *name;
    json_object_foreach(json_object_get(first, "holdout"), name, number) {
        read_figures(shape, runs, value, name, numbers);
        if (json_is_real(number) && strcmp(name, "loss") &&
            isfinite(sweep_score(numbers, shape->folds).mean))
            json_object_set_new(figures, name, spread_json(numbers, shape->folds));
    }
    json_object_set_new(folds, "figures", figures);
    free(numbers);
    return folds;
}

static json_t *row_json(const struct sweep_shape *shape, const struct sweep_runs *runs,
                        uint32_t value, const char *by) {
    json_t *row = json_object();
    for (size_t i = 0; i < sizeof from_result / sizeof from_result[0]; i++)
        copy_member(row, runs->results[value], from_result[i]);
    json_t *loss = json_object_get(json_object_get(row, "holdout"), "loss");
    if (loss)
        json_object_set(row, "holdout_loss", loss);
    if (shape->folds)
        json_object_set_new(row, "folds", folds_json(shape, runs, value));
    /* The figure that decides. */
    const uint32_t count = figures_each(shape);
    double *figures = memory_new(count, sizeof *figures);
    read_figures(shape, runs, value, by, figures);
    const struct sweep_score score = sweep_score(figures, count);
    json_object_set_new(row, "score",
                        json_pack("{s:o, s:o, s:o}", "mean", number_json(score.mean),
                                  "standard_error", number_json(score.error), "folds",
                                  number_list_json(figures, shape->folds)));
    free(figures);
    json_object_set_new(row, "chosen", json_false());
    return row;
}

/* Marks the row that is chosen. Returns what the result and the status say of it. */
static json_t *chosen_json(const struct sweep_rule *rule, const char *by,
                           struct sweep_choice choice, json_t *path) {
    json_t *row = json_array_get(path, choice.value), *chosen = json_object();
    static const char *const members[] = {"run", "l1", "l2", "nonzero"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        copy_member(chosen, row, members[i]);
    json_object_set_new(chosen, "choose", json_string(sweep_choose_text(rule->one_se)));
    json_object_set_new(chosen, "choose_by", json_string(by));
    copy_member(chosen, json_object_get(row, "score"), "mean");
    copy_member(chosen, json_object_get(row, "score"), "standard_error");
    json_object_set(chosen, "best_run", json_object_get(json_array_get(path, choice.best), "run"));
    json_object_set_new(row, "chosen", json_true());
    return chosen;
}

json_t *sweep_json(int64_t sweep, const struct sweep_shape *shape, const struct sweep_runs *runs) {
    const struct score_figure *by = shape->rule.by;
    struct sweep_choice choice = {0};
    json_t *path = json_array();
    json_int_t evaluations = 0;
    uint32_t done = 0, ran = 0; /* `ran` counts those, too, whose model was removed later */
    assert(runs->count == sweep_members(shape));
    for (uint32_t i = 0; i < runs->count; i++) {
        done += runs->members[i].state == MEMBER_DONE;
        ran += runs->members[i].state == MEMBER_DONE || runs->removed[i];
        evaluations += member_count(runs->results[i], "evaluations");
    }
    bool ended = done == runs->count;
    if (ended)
        choice = sweep_decide(shape, runs, &by);
    for (uint32_t value = 0; value < shape->values; value++)
        if (ended || runs->members[value].state == MEMBER_DONE)
            json_array_append_new(path, row_json(shape, runs, value, by->name));
    json_t *chosen = ended ? chosen_json(&shape->rule, by->name, choice, path) : json_null();
    return json_pack("{s:I, s:i, s:i, s:i, s:I, s:s, s:s, s:o, s:o}", "number", (json_int_t)sweep,
                     "runs", (int)runs->count, "done", (int)ran, "folds", (int)shape->folds,
                     "evaluations", evaluations, "choose", sweep_choose_text(shape->rule.one_se),
                     "choose_by", shape->rule.by->name, "path", path, "chosen", chosen);
}

json_t *sweep_result(int64_t sweep, const struct sweep_shape *shape,
                     const struct sweep_runs *runs) {
    json_t *table = sweep_json(sweep, shape, runs);
    static const char *const apart[] = {"path", "chosen"};
    const struct score_figure *by;
    uint32_t winner = sweep_decide(shape, runs, &by).value;
    json_t *result = json_deep_copy(runs->results[winner]);
    assert(runs->members[winner].state == MEMBER_DONE);
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        copy_member(result, table, apart[i]);
        json_object_del(table, apart[i]);
    }
    json_object_set_new(result, "sweep", table);
    return result;
}

json_t *sweep_of_run(const json_t *sweep, uint32_t member) {
    if (!json_is_object(sweep))
        return json_null();
    json_t *of_run = json_copy((json_t *)(uintptr_t)sweep);
    json_object_set_new(of_run, "member", json_integer(member));
    json_object_del(of_run, "chosen");
    return of_run;
}

json_t *sweep_chosen(const json_t *sweep) {
    json_t *chosen = json_object_get(sweep, "chosen");
    return chosen ? json_incref(chosen) : json_null();
}

/* ---- as the store has it ---- */

int sweep_read_json(struct store *store, const struct store_sweep *sweep, json_t **json) {
    struct sweep_runs runs = {0};
    if (sweep->result) { /* it has ended */
        json_t *result = json_loads(sweep->result, 0, NULL);
        *json = json_object();
        json_object_update(*json, json_object_get(result, "sweep"));
        copy_member(*json, result, "path");
        json_object_set_new(*json, "chosen", sweep_chosen(result));
        json_decref(result);
        return 0;
    }
    json_t *settings = json_loads(sweep->settings, 0, NULL);
    struct sweep_shape shape = sweep_shape_stored(settings);
    json_decref(settings);
    int code = sweep_runs_read(store, sweep->sweep, &shape, NULL, &runs);
    *json = code ? NULL : sweep_json(sweep->sweep, &shape, &runs);
    sweep_runs_release(&runs);
    return code;
}
