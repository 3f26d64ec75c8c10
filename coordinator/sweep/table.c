#include "coordinator/sweep/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "coordinator/status/figures.h"

/* Members that a row has from the result of the full fit. */
static const char *const from_result[] = {"run",    "loss",        "steps",   "evaluations",
                                          "reason", "converged",   "nonzero", "holdout",
                                          "test",   "model_sha256"};

static void copy_member(json_t *row, const json_t *from, const char *name) {
    json_t *value = json_object_get(from, name);
    if (value)
        json_object_set(row, name, value);
}

static json_t *spread_json(const double *numbers, uint32_t count) {
    struct sweep_spread spread = sweep_spread(numbers, count);
    return json_pack("{s:o, s:o}", "mean", number_json(spread.mean), "deviation",
                     number_json(spread.deviation));
}

/* A figure over all folds, if each fold has it. */
static void add_figure(json_t *figures, const struct sweep_shape *shape,
                       const struct sweep_runs *runs, uint32_t value, const char *name) {
    double *numbers = memory_new(shape->folds, sizeof *numbers);
    bool all = true;
    for (uint32_t i = 0; i < shape->folds; i++) {
        const json_t *result = runs->results[sweep_member_at(shape, value, i + 1)];
        const json_t *number = json_object_get(json_object_get(result, "holdout"), name);
        numbers[i] = json_number_value(number);
        all &= json_is_real(number);
    }
    if (all)
        json_object_set_new(figures, name, spread_json(numbers, shape->folds));
    free(numbers);
}

/* What the folds say of a value: its loss, and each other figure that is no count. */
static json_t *folds_json(const struct sweep_shape *shape, const struct sweep_runs *runs,
                          uint32_t value) {
    double *losses = memory_new(shape->folds, sizeof *losses);
    sweep_fold_losses(shape, runs->members, value, losses);
    json_t *folds = spread_json(losses, shape->folds);
    json_t *list = json_array(), *figures = json_object();
    for (uint32_t i = 0; i < shape->folds; i++)
        json_array_append_new(list, number_json(losses[i]));
    const char *name;
    json_t *unused;
    json_t *first = json_object_get(runs->results[sweep_member_at(shape, value, 1)], "holdout");
    json_object_foreach(first, name, unused) if (strcmp(name, "loss") != 0)
        add_figure(figures, shape, runs, value, name);
    json_object_set_new(folds, "losses", list);
    json_object_set_new(folds, "figures", figures);
    free(losses);
    return folds;
}

static json_t *row_json(const struct sweep_shape *shape, const struct sweep_runs *runs,
                        uint32_t value, bool chosen) {
    json_t *row = json_object();
    copy_member(row, runs->settings[value], "l2");
    copy_member(row, runs->settings[value], "l1");
    for (size_t i = 0; i < sizeof from_result / sizeof from_result[0]; i++)
        copy_member(row, runs->results[value], from_result[i]);
    const json_t *loss = json_object_get(json_object_get(row, "holdout"), "loss");
    if (loss)
        json_object_set(row, "holdout_loss", (json_t *)(uintptr_t)loss);
    if (shape->folds)
        json_object_set_new(row, "folds", folds_json(shape, runs, value));
    json_object_set_new(row, "chosen", json_boolean(chosen));
    return row;
}

static json_int_t evaluations_of(const struct sweep_runs *runs) {
    json_int_t sum = 0;
    for (uint32_t i = 0; i < runs->count; i++)
        sum += member_count(runs->results[i], "evaluations");
    return sum;
}

json_t *sweep_result(int64_t sweep, const struct sweep_shape *shape,
                     const struct sweep_runs *runs) {
    uint32_t winner = sweep_winner(shape, runs->members);
    json_t *path = json_array();
    for (uint32_t value = 0; value < shape->values; value++)
        json_array_append_new(path, row_json(shape, runs, value, value == winner));
    json_t *result = json_deep_copy(runs->results[winner]);
    json_object_set_new(result, "sweep",
                        json_pack("{s:I, s:i, s:i, s:I}", "number", (json_int_t)sweep, "runs",
                                  (int)runs->count, "folds", (int)shape->folds, "evaluations",
                                  evaluations_of(runs)));
    json_object_set_new(result, "path", path);
    return result;
}
