/* Errors of the columns that a job names, of a model of any size. */
#include <assert.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/run/summary.h"
#include "coordinator/run/summary_parts.h"
#include "model/single_errors.h"
#include "model/summary_restate.h"
#include "model/summary_table.h"

/* Parameters that may be named: each takes some tens of passes over the rows. */
#define SUMMARY_COLUMNS_MAX 1000

/* ---- which parameters ---- */

/* One that is named, or shown beside it. Its number is that in the file of the model. */
struct chosen {
    uint64_t element, number;
};

struct choice {
    struct chosen *list; /* owned */
    size_t count, room;
};

static void choose(struct choice *choice, uint64_t element) {
    MEMORY_ROOM(choice->list, choice->count, choice->room);
    choice->list[choice->count++] = (struct chosen){.element = element};
}

/* The place of an element in the order of model/summary.h, over the run's columns. */
static uint64_t place_in_table(const struct model_layout *layout, uint64_t element) {
    uint64_t weights = model_rows(layout);
    assert(element < model_parameters(layout));
    return element < weights * layout->features
               ? element % weights * layout->features + element / weights
               : element;
}

/* The elements that one of the patterns fits, and for each pattern how many. */
static struct choice choose_named(const struct training *run, uint64_t *fitting) {
    uint64_t count = layout_parameters(&run->parameters);
    struct choice choice = {0};
    for (uint64_t element = 0; element < count; element++) {
        char *name = summary_name(&run->layout, place_in_table(&run->layout, element));
        bool any = false;
        for (size_t i = 0; run->session->job->summary_columns[i]; i++) {
            bool found = fnmatch(run->session->job->summary_columns[i], name, 0) == 0;
            fitting[i] += found;
            any |= found;
        }
        free(name);
        if (any && choice.count <= SUMMARY_COLUMNS_MAX)
            choose(&choice, element);
    }
    return choice;
}

int training_check_columns(const struct training *run) {
    char *const *pattern = run->session->job->summary_columns;
    const size_t patterns = names_count(pattern);
    int code = 0;
    if (!patterns)
        return 0;
    uint64_t *fitting = memory_new(patterns, sizeof *fitting);
    struct choice choice = choose_named(run, fitting);
    for (size_t i = 0; i < patterns && !code; i++)
        if (!fitting[i])
            code = error_set(ERROR_CONFIG,
                             "%s: key `summary_columns`: \"%s\" fits no column; names are as "
                             "`export` prints them",
                             run->session->job->file, pattern[i]);
    if (!code && choice.count > SUMMARY_COLUMNS_MAX)
        code = error_set(ERROR_CONFIG,
                         "%s: key `summary_columns`: more than %d estimates are named, each of "
                         "which takes passes over the data; name fewer",
                         run->session->job->file, SUMMARY_COLUMNS_MAX);
    free(choice.list);
    free(fitting);
    return code;
}

/* ---- parameters that follow from others ---- */

/* Without a penalty the last text of each column, and of a softmax what nothing draws to 0 of the
 * first class. */
static int find_aliased(struct training *run, const double *ridge, bool *aliased) {
    const struct model_layout *layout = &run->layout;
    const struct distribution *distribution = objective_find(layout->objective)->distribution;
    uint64_t weights = model_rows(layout), biases = layout->features * weights;
    if (distribution->identified_but_for_a_class)
        for (uint64_t i = 0; i < model_parameters(layout); i++)
            aliased[i] = (i < biases ? i % weights : i - biases) == 0 && !(ridge && ridge[i] > 0);
    if (ridge || !layout->table || !layout->intercept)
        return 0;
    bool *reference = memory_new(layout->features, sizeof *reference);
    int code = training_find_moments(run);
    if (!code)
        summary_references(layout, run->moments.nonzero, run->moments.rows, reference);
    for (uint64_t i = 0; i < biases && !code; i++)
        aliased[i] |= reference[i / weights];
    free(reference);
    return code;
}

/* What levels are differences from is shown beside them. */
static void choose_references(const struct training *run, const bool *aliased,
                              struct choice *choice) {
    const struct model_layout *layout = &run->layout;
    uint64_t weights = model_rows(layout), biases = layout->features * weights;
    size_t named = choice->count;
    if (!layout->table)
        return;
    bool *shown = memory_new(layout->table->columns, sizeof *shown);
    bool *known = memory_new(biases, sizeof *known);
    for (size_t i = 0; i < named; i++) {
        uint64_t element = choice->list[i].element;
        uint32_t column =
            element < biases ? summary_column_of(layout, element / weights) : COLUMN_NOWHERE;
        if (column != COLUMN_NOWHERE)
            shown[column] = true;
        if (element < biases)
            known[element] = true;
    }
    for (uint64_t i = 0; i < biases; i++) {
        uint32_t column =
            aliased[i] && !known[i] ? summary_column_of(layout, i / weights) : COLUMN_NOWHERE;
        if (column != COLUMN_NOWHERE && shown[column])
            choose(choice, i);
    }
    free(shown);
    free(known);
}

/* ---- their errors ---- */

static int by_number(const void *a, const void *b) {
    const struct chosen *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Estimates without the levels that are known to follow from others. */
static void restate_estimates(const struct model_layout *layout, const bool *aliased,
                              const double *parameters, double *restated) {
    uint64_t count = model_parameters(layout);
    double *placed = memory_new(count, sizeof *placed);
    bool *placed_aliased = memory_new(count, sizeof *placed_aliased);
    for (uint64_t i = 0; i < count; i++) {
        placed[place_in_table(layout, i)] = parameters[i];
        placed_aliased[place_in_table(layout, i)] = aliased[i];
    }
    summary_restate(layout, placed_aliased, placed);
    for (uint64_t i = 0; i < count; i++)
        restated[i] = placed[place_in_table(layout, i)];
    free(placed);
    free(placed_aliased);
}

/* `aliased` gains what else follows from others, without which estimates are restated. */
static int find_errors(const struct training *run, const struct choice *choice, const double *ridge,
                       bool *aliased, double *restated, struct single_error *errors,
                       bool *runs_away, struct single_totals *totals) {
    double *parameters;
    int code = summary_parameters(run, &parameters);
    if (code)
        return code;
    uint64_t *element = memory_new(choice->count, sizeof *element);
    for (size_t i = 0; i < choice->count; i++)
        element[i] = choice->list[i].element;
    restate_estimates(&run->layout, aliased, parameters, restated);
    const struct single_point point = {parameters,     ridge,         aliased, restated,
                                       run->collinear, cpus_usable(), 0};
    code = single_errors_find(run->set, &run->layout, &point, element, choice->count, errors,
                              runs_away, totals);
    free(parameters);
    free(element);
    return code;
}

/* Lists of numbers as struct summary_covariance has them. */
struct lists {
    uint64_t *elements;
    double *variance, *sampling, *robust, *clustered;
    bool *aliased, *runs_away;
};

static struct lists lists_of(const struct training *run, const struct choice *choice,
                             const bool *aliased, const bool *runs_away,
                             const struct single_error *errors) {
    size_t n = choice->count;
    struct lists lists = {.elements = memory_new(n, sizeof *lists.elements),
                          .variance = memory_new(n, sizeof(double)),
                          .sampling = memory_new(n, sizeof(double)),
                          .robust = memory_new(n, sizeof(double)),
                          .clustered = memory_new(n, sizeof(double)),
                          .aliased = summary_in_order(run, aliased),
                          .runs_away = summary_in_order(run, runs_away)};
    for (size_t i = 0; i < n; i++) {
        lists.elements[i] = choice->list[i].number;
        lists.variance[i] = errors[i].variance;
        lists.sampling[i] = errors[i].sampling;
        lists.robust[i] = errors[i].robust;
        lists.clustered[i] = errors[i].clustered;
    }
    return lists;
}

static void lists_release(struct lists *lists) {
    free(lists->elements);
    free(lists->variance);
    free(lists->sampling);
    free(lists->robust);
    free(lists->clustered);
    free(lists->aliased);
    free(lists->runs_away);
}

static int write_errors(struct training *run, const struct choice *choice, const bool *aliased,
                        const double *restated, const bool *runs_away,
                        const struct single_error *errors, const struct single_totals *totals) {
    const struct job *job = run->session->job;
    struct lists lists = lists_of(run, choice, aliased, runs_away, errors);
    const double *shown = totals->dependent ? restated : NULL;
    double *estimate = summary_estimates_in_order(run, shown);
    const struct summary_covariance covariance = {
        .parameters = model_writer_parameters(run->recorder.writer),
        .variance = lists.variance,
        .sampling = job->l2.value > 0 ? lists.sampling : NULL,
        .robust = job->summary == JOB_SUMMARY_ROBUST ? lists.robust : NULL,
        .clustered = job->source.property.column[ROW_CLUSTER] ? lists.clustered : NULL,
        .cluster = job->source.property.column[ROW_CLUSTER],
        .clusters = totals->clusters,
        .single_rows = totals->single_rows,
        .aliased = lists.aliased,
        .runs_away = lists.runs_away,
        .elements = lists.elements,
        .element_count = choice->count,
        .estimate = estimate,
        .uncounted = totals->more,
        .distance = totals->distance,
        .trace = NAN,
        .expected = objective_of(run->shape.kind)->expected != NULL};
    int code = summary_write(run, &covariance, shown, NULL);
    lists_release(&lists);
    free(estimate);
    return code;
}

int summarise_columns(struct training *run) {
    struct single_totals totals;
    bool *aliased = memory_new(layout_parameters(&run->parameters), sizeof *aliased);
    bool *runs_away = memory_new(layout_parameters(&run->parameters), sizeof *runs_away);
    double *restated = memory_new(layout_parameters(&run->parameters), sizeof *restated);
    const size_t patterns = names_count(run->session->job->summary_columns);
    uint64_t *fitting = memory_new(patterns, sizeof *fitting);
    struct choice choice = choose_named(run, fitting);
    double *ridge = summary_ridge(run);
    int code = find_aliased(run, ridge, aliased);
    if (!code)
        choose_references(run, aliased, &choice);
    for (size_t i = 0; i < choice.count; i++)
        choice.list[i].number = model_writer_number(run->recorder.writer, choice.list[i].element);
    if (choice.count)
        qsort(choice.list, choice.count, sizeof *choice.list, by_number);
    struct single_error *errors = memory_new(choice.count, sizeof *errors);
    if (!code)
        code = find_errors(run, &choice, ridge, aliased, restated, errors, runs_away, &totals);
    if (!code)
        code = write_errors(run, &choice, aliased, restated, runs_away, errors, &totals);
    free(errors);
    free(choice.list);
    free(fitting);
    free(ridge);
    free(aliased);
    free(restated);
    free(runs_away);
    return code;
}
