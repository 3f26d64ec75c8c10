/* What is done before a training: `check` says what a job file comes to, `pack` reads its data, and
 * `inspect` shows what was read. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/family.h"
#include "coordinator/job/job.h"
#include "coordinator/job/tiling.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/preview.h"
#include "coordinator/run/sets.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/report.h"
#include "coordinator/sweep/sweep.h"

static void print_count(const char *before, char *const *paths, const char *kind) {
    const uint32_t count = names_count(paths);
    printf("%s%u %s file%s", before, count, kind, count == 1 ? "" : "s");
}

static void print_runs(const struct job *job) {
    struct sweep_shape shape = sweep_shape_of(job);
    if (!job_has_sweep(job))
        return;
    const char *key = job->l1.count > 1 ? "l1" : "l2";
    assert(shape.inner > 0 && shape.values % shape.inner == 0);
    uint32_t count = shape.values / (job->l1.count > 1 ? shape.inner : 1);
    printf("# %u runs: %u value%s of %s", sweep_members(&shape), count, count == 1 ? "" : "s", key);
    if (count < shape.values)
        printf(", each with %u of l2", shape.inner);
    if (shape.folds)
        printf(", each on all rows and without each of %u folds", shape.folds);
    putchar('\n');
}

/* What is trained, and on minibatches how. */
static void print_model(const struct job *job) {
    const struct job_downpour *downpour = &job->downpour;
    char *words = job_family(job)->words ? job_family(job)->words(job) : NULL;
    if (words)
        printf("# %s\n", words);
    free(words);
    if (job_has_minibatches(job))
        printf("# %u epoch%s of minibatches of %s%llu rows%s with Adagrad, then %s\n",
               downpour->epochs, downpour->epochs == 1 ? "" : "s",
               job_steps_least(job) ? "at most " : "",
               (unsigned long long)job_batch_most(job) * downpour->schedule.value[0],
               downpour->schedule.count > 1 ? " at first" : "",
               job->optimizer == JOB_DOWNPOUR ? "nothing" : "L-BFGS");
}

static void print_columns(const struct table *table) {
    char name[COLUMN_TEXT];
    if (!table)
        return;
    uint32_t columns = table->columns;
    for (uint32_t i = 0; i < table->columns; i++)
        columns -= table->column[i].is_part;
    printf("# %u columns", columns);
    for (uint32_t i = 0; i < table->columns; i++) {
        if (table->column[i].kind != COLUMN_LABEL && !table_is_own(&table->column[i]))
            continue;
        printf(", the %s is ", table_kind_name(table->column[i].kind));
        escape_put(table_describe(table, i, name), stdout);
    }
    putchar('\n');
}

/* A set stores the column of a value, and the value itself unless all values are 1. */
static double cross_bytes(const struct crosses_outlook *crosses) {
    return crosses->crosses * (crosses->value == 1 ? 4.0 : 8.0);
}

/* What is said of data that is packed. */
struct outlook {
    struct memory_need need;
    uint32_t strips, strip_columns;
    const char *whole; /* why it is not in tiles, though it is wide; or NULL */
};

/* Completes the job by the data as it was packed last, and returns what a run on it needs: nothing
 * if nothing was packed yet. */
static struct outlook look_at_newest(struct job *job) {
    struct set *set = sets_newest(job->state);
    struct outlook outlook = {.strips = 0};
    if (!set)
        return outlook;
    struct set_info info = *set_info(set);
    info.strip_columns = tiling_columns(job, &info); /* the set may be of other settings */
    struct objective_shape shape;
    bool shaped = !shape_of_data(job, &info, &shape);
    double second = shaped ? objective_typical_second(&shape, info.targets) : 1;
    job_complete_l2(job, info.weight_total, second);
    if (!shaped || need_of_data(job, &info, &outlook.need))
        error_clear(); /* a run says so */
    outlook.strips = set_strips(&info);
    outlook.strip_columns = info.strip_columns;
    outlook.whole = tiling_refused(job, &info);
    set_close(set);
    return outlook;
}

static void print_check_json(const struct job *job, const struct outlook *outlook,
                             const struct crosses_outlook *crosses, json_t *gradient) {
    json_t *settings = job_settings(job);
    if (crosses->crosses)
        json_object_update_new(settings,
                               json_pack("{s:I, s:f}", "crosses", (json_int_t)crosses->crosses,
                                         "crosses_row_bytes", cross_bytes(crosses)));
    need_add(&outlook->need, settings);
    if (outlook->strips)
        json_object_set_new(settings, "strips", json_integer(outlook->strips));
    if (job->l2.automatic && !isnan(job->l2.value))
        json_object_set_new(settings, "l2_auto", json_real(job->l2.value));
    if (gradient)
        json_object_set(settings, "gradient", gradient);
    report_print_json(settings);
    json_decref(settings);
}

static void print_check(const struct job *job, const struct dataset_paths *paths,
                        const struct table *table, const struct crosses_outlook *crosses,
                        const struct outlook *outlook, const json_t *gradient) {
    job_print(job);
    print_count("# ", paths->data, "data");
    print_count(", ", paths->test, "test");
    if (paths->holdout[0])
        print_count(", ", paths->holdout, "holdout");
    putchar('\n');
    print_columns(table);
    if (crosses->crosses)
        printf("# crosses: %u; a row has up to so many values beside %u others, so a pass takes up "
               "to %.3g times as long, and the set %.3g MB more for 1000 rows\n",
               crosses->crosses, crosses->row_values,
               1 + (double)crosses->crosses / crosses->row_values, cross_bytes(crosses) / 1000);
    print_runs(job);
    if (job->l2.automatic && isnan(job->l2.value))
        puts("# l2: auto: 1/Σ weights");
    else if (job->l2.automatic) /* of the data as it was packed last */
        printf("# l2: auto: 1/Σ weights = %.6g\n", job->l2.value);
    print_model(job);
    devices_print(job, stdout);
    if (outlook->strips)
        printf("# tiles: %u strips of %u columns; a replica holds one at a time\n", outlook->strips,
               outlook->strip_columns);
    else if (outlook->whole)
        printf("# no tiles, so that a replica holds all parameters: %s\n", outlook->whole);
    need_print(&outlook->need, "# memory: ");
    const json_t *worst = json_object_get(gradient, "worst");
    if (gradient)
        printf("# gradient: %lld of %lld elements agree with differences of the loss of %lld rows; "
               "the worst is %s[%lld, %lld]: %.10g, where they give %.10g\n",
               member_count(gradient, "checked"), member_count(gradient, "parameters"),
               member_count(gradient, "rows"), member_text(worst, "tensor"),
               member_count(worst, "row"), member_count(worst, "column"),
               member_number(worst, "gradient"), member_number(worst, "difference"));
}

int command_check(const struct options *options) {
    struct job *job;
    struct dataset_paths paths;
    json_t *gradient = NULL;
    struct table *table = NULL;
    struct crosses_outlook crosses = {0};
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &job);
    if (code)
        return code;
    code = dataset_find(job, NULL, &paths);
    if (!code)
        code = dataset_check_columns(job, &paths, &table);
    if (!code && table)
        code = dataset_check_crosses(job, table, &crosses);
    if (!code && table)
        code = column_rules_check_columns(job, table);
    if (!code)
        code = devices_check(job);
    if (!code && options->gradient)
        code = gradient_check(job, &gradient);
    struct outlook outlook = {.strips = 0};
    if (!code)
        outlook = look_at_newest(job);
    if (!code && options->json)
        print_check_json(job, &outlook, &crosses, gradient);
    else if (!code)
        print_check(job, &paths, table, &crosses, &outlook, gradient);
    json_decref(gradient);
    table_free(table);
    dataset_paths_release(&paths);
    job_free(job);
    return code;
}

static void print_set(const struct set *set, double seconds, const struct memory_need *need) {
    const struct set_info *info = set_info(set);
    fputs("set          ", stdout);
    escape_put(set_path(set), stdout);
    putchar('\n');
    printf("fingerprint  %s\n", info->fingerprint);
    printf("examples     %" PRIu64 "\n", info->rows);
    printf("features     %" PRIu64 "\n", info->features);
    printf("values       %" PRIu64 " (%s, %s)\n", info->values, info->dense ? "dense" : "sparse",
           value_type_name(info->type));
    printf("chunks       %u\n", info->chunks);
    if (info->strip_columns)
        printf("strips       %u of %u columns\n", set_strips(info), info->strip_columns);
    if (info->classes)
        printf("classes      %u\n", info->classes);
    if (info->weighted)
        printf("weights      %.12g in all\n", info->weight_total);
    if (info->has_offsets)
        printf("offsets      from %.6g to %.6g\n", info->offsets.least, info->offsets.most);
    if (info->rows_held_out)
        printf("held out     %" PRIu64 " examples\n", info->rows_held_out);
    printf("rejected     %" PRIu64 " lines\n", info->rejected);
    need_print(need, "memory       ");
    printf("seconds      %.3f\n", seconds);
}

static void print_set_json(const struct set *set, double seconds, const struct memory_need *need) {
    const struct set_info *info = set_info(set);
    json_t *answer = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:b, s:s, s:I, s:I, s:I, s:f}", "set",
        text_to_json(set_path(set)), "fingerprint", info->fingerprint, "examples",
        (json_int_t)info->rows, "features", (json_int_t)info->features, "values",
        (json_int_t)info->values, "dense", (int)info->dense, "value_type",
        value_type_name(info->type), "chunks", (json_int_t)info->chunks, "classes",
        (json_int_t)info->classes, "rejected", (json_int_t)info->rejected, "seconds", seconds);
    if (info->weighted)
        json_object_set_new(answer, "weight_sum", json_real(info->weight_total));
    if (info->rows_held_out)
        json_object_set_new(answer, "rows_held_out", json_integer((json_int_t)info->rows_held_out));
    need_add(need, answer);
    report_print_json(answer);
    json_decref(answer);
}

int command_pack(const struct options *options) {
    struct job *job;
    struct dataset data = {0};
    struct memory_need need;
    int lock = -1;
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &job);
    if (code)
        return code;
    code = dataset_make_state(job);
    if (!code)
        code = state_lock(job->state, STATE_WORKS, &lock);
    if (!code)
        code = dataset_open(job, NULL, &data);
    if (!code && need_of_data(job, set_info(data.set), &need))
        error_clear(); /* a run says so */
    if (!code && options->json)
        print_set_json(data.set, data.seconds, &need);
    else if (!code)
        print_set(data.set, data.seconds, &need);
    dataset_release(&data);
    state_unlock(lock);
    job_free(job);
    return code;
}

int command_inspect(const struct options *options) {
    return inspect_print(options->operands[0], options->json);
}
