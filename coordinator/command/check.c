#include <stdlib.h>

#include "base/error.h"
#include "coordinator/command/command.h"
#include "coordinator/command/need_print.h"
#include "coordinator/run/dataset_columns.h"
#include "coordinator/run/devices.h"
#include "coordinator/run/gradient.h"
#include "coordinator/run/sets.h"
#include "coordinator/run/shape.h"
#include "coordinator/job/job.h"
#include "coordinator/job/network.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/report.h"
#include "coordinator/sweep/sweep.h"

static void print_count(const char *before, char *const *paths, const char *kind) {
    unsigned count = 0;
    while (paths[count])
        count++;
    printf("%s%u %s file%s", before, count, kind, count == 1 ? "" : "s");
}

static void print_runs(struct job *job) {
    struct sweep_shape shape = sweep_shape_of(job);
    if (!job_has_sweep(job))
        return;
    printf("# %u runs: %u value%s of %s", sweep_members(&shape), shape.values,
           shape.values == 1 ? "" : "s", job_sweep_key(job));
    if (shape.folds)
        printf(", each on all rows and without each of %u folds", shape.folds);
    putchar('\n');
}

/* How many features and outputs there are is in the data, which is not read here. */
static void print_network(const struct job *job) {
    const struct network network = job_network(job);
    if (!network.layers)
        return;
    char *layers = job_layers_text(&network);
    printf("# a network: features - %s - outputs, with %s between them, %s\n", layers,
           activation_name(network.activation), objective_name(job->objective));
    free(layers);
}

static void print_minibatches(const struct job *job) {
    const struct job_downpour *downpour = &job->downpour;
    if (job_pours(job))
        printf("# %u epoch%s of minibatches of %llu rows%s with Adagrad, then %s\n",
               downpour->epochs, downpour->epochs == 1 ? "" : "s",
               (unsigned long long)downpour->batch * downpour->schedule.value[0],
               downpour->schedule.count > 1 ? " at first" : "",
               job->optimizer == JOB_DOWNPOUR ? "nothing" : "L-BFGS");
}

static void print_counts(const struct dataset_paths *paths) {
    print_count("# ", paths->data, "data");
    print_count(", ", paths->test, "test");
    if (paths->holdout[0])
        print_count(", ", paths->holdout, "holdout");
    putchar('\n');
}

static void print_columns(const struct table *table) {
    char name[COLUMN_TEXT];
    if (!table)
        return;
    printf("# %u columns", table->columns);
    for (uint32_t i = 0; i < table->columns; i++)
        if (table->column[i].kind == COLUMN_LABEL || table->column[i].kind == COLUMN_WEIGHT)
            printf(", the %s is %s", table->column[i].kind == COLUMN_LABEL ? "label" : "weight",
                   table_describe(table, i, name));
    putchar('\n');
}

static void print_gradient(const json_t *found) {
    const json_t *worst = json_object_get(found, "worst");
    if (found)
        printf("# gradient: %lld of %lld elements agree with differences of the loss of %lld rows; "
               "the worst is %s[%lld, %lld]: %.10g, where they give %.10g\n",
               member_count(found, "checked"), member_count(found, "parameters"),
               member_count(found, "rows"), member_text(worst, "tensor"),
               member_count(worst, "row"), member_count(worst, "column"),
               member_number(worst, "gradient"), member_number(worst, "difference"));
}

/* By the data as it was packed last: it is not read here. */
static void find_need(const struct job *job, struct memory_need *need) {
    struct set *set = sets_newest(job->state);
    *need = (struct memory_need){0};
    if (set && need_of_data(job, set_info(set), need))
        error_clear(); /* a run says so */
    set_close(set);
}

int command_check(const struct options *options) {
    struct job *job;
    struct dataset_paths paths;
    struct memory_need need;
    json_t *gradient = NULL;
    struct table *table = NULL;
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &job);
    if (code)
        return code;
    code = dataset_find(job, &paths);
    if (!code)
        code = dataset_check_columns(job, &paths, &table);
    if (!code)
        code = devices_check(job);
    if (!code && options->gradient)
        code = gradient_check(job, &gradient);
    if (!code)
        find_need(job, &need);
    if (!code && options->json) {
        json_t *settings = job_settings(job);
        need_add(&need, settings);
        if (gradient)
            json_object_set(settings, "gradient", gradient);
        report_print_json(settings);
        json_decref(settings);
    } else if (!code) {
        job_print(job);
        print_counts(&paths);
        print_columns(table);
        print_runs(job);
        print_network(job);
        print_minibatches(job);
        devices_print(job, stdout);
        need_print(&need, "# memory: ");
        print_gradient(gradient);
    }
    json_decref(gradient);
    table_free(table);
    dataset_paths_release(&paths);
    job_free(job);
    return code;
}
