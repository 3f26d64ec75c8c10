/* What the values of a sweep are worth, which of them is chosen, and the table that says so. */
#ifndef DML_COORDINATOR_STATUS_SWEEP_TABLE_H
#define DML_COORDINATOR_STATUS_SWEEP_TABLE_H

#include "coordinator/status/sweep_plan.h"

/* A figure of a value over the folds. */
struct sweep_score {
    double mean;      /* each fold counts the same; NaN: a fold does not have the figure */
    double deviation; /* the standard deviation, from a sum over count − 1; 0 for one number */
    double error;     /* the standard error of the mean, deviation / √count; NaN for one number */
};
struct sweep_score sweep_score(const double *figures, uint32_t count);

struct sweep_choice {
    uint32_t value; /* that is chosen */
    uint32_t best;  /* that has the best mean; of equal ones the strongest */
};

/* The best of the values, or with `one_se` the strongest that is at most the standard error of the
 * best away from it (Breiman, Friedman, Olshen, Stone, Classification and Regression Trees, 3.4.3).
 * False, and nothing is chosen, if no mean is finite. */
bool sweep_choose(const struct sweep_rule *rule, uint32_t values, const struct sweep_score *scores,
                  struct sweep_choice *choice);

/* The choice among members that are all done. Where no value has the rule's figure, it is made by
 * the loss, and where none has that either, the first is chosen: *by is the figure that decided. */
struct sweep_choice sweep_decide(const struct sweep_shape *shape, const struct sweep_runs *runs,
                                 const struct score_figure **by);

/* {number, runs, done, folds, evaluations, choose, choose_by, path, chosen}: `path` has a row for
 * each value whose full fit is done, `chosen` is null until all members are. A new reference. */
json_t *sweep_json(int64_t sweep, const struct sweep_shape *shape, const struct sweep_runs *runs);

/* What a status says of the sweep that a run is of, from sweep_json(): that without `chosen`, with
 * the run's number in it as `member`; and `chosen`. Null if there is none. New references. */
json_t *sweep_of_run(const json_t *sweep, uint32_t member);
json_t *sweep_chosen(const json_t *sweep);

/* The result of the whole sweep, all of whose members are done: that of the winner, with "sweep",
 * "path" and "chosen" added. A new reference. */
json_t *sweep_result(int64_t sweep, const struct sweep_shape *shape, const struct sweep_runs *runs);

/* sweep_json() of a sweep as the store has it. A new reference. */
int sweep_read_json(struct store *store, const struct store_sweep *sweep, json_t **json);

#endif
