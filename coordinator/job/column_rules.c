#include "coordinator/job/column_rules.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/family.h"
#include "coordinator/job/key.h"

#define FACTOR_MAX 1e6

/* ---- a rule ---- */

/* The name of a column may have = in it, a value has not: the last one parts them. Returns the
 * value, or NULL; `length` is that of the name. */
static const char *split_rule(const char *text, size_t *length) {
    const char *equals = strrchr(text, '=');
    if (!equals)
        return NULL;
    *length = (size_t)(equals - text);
    while (*length && strchr(" \t", text[*length - 1]))
        --*length;
    return *length ? equals + 1 + strspn(equals + 1, " \t") : NULL;
}

static bool read_factor(const char *value, double *factor) {
    return value && key_number(value, factor) && *factor >= 0 && *factor <= FACTOR_MAX;
}

/* A number up to `end`, with blanks around it. */
static bool read_bound(const char *text, const char *end, double *number) {
    text += strspn(text, " \t");
    while (end > text && strchr(" \t", end[-1]))
        end--;
    char *own = memory_format("%.*s", (int)(end - text), text);
    bool is = *own && key_number(own, number);
    free(own);
    if (is)
        *number += 0.0; /* −0 becomes 0 */
    return is;
}

static bool read_bounds(const char *value, double *low, double *high) {
    size_t length = value ? strlen(value) : 0;
    const char *comma = length > 2 ? strchr(value, ',') : NULL;
    if (!comma || *value != '[' || value[length - 1] != ']')
        return false;
    return read_bound(value + 1, comma, low) && read_bound(comma + 1, value + length - 1, high) &&
           *low <= *high && *low<INFINITY && * high> - INFINITY;
}

bool penalty_rule_fits(const char *text) {
    size_t length;
    double factor;
    return read_factor(split_rule(text, &length), &factor);
}

bool bounds_rule_fits(const char *text) {
    size_t length;
    double low, high;
    return read_bounds(split_rule(text, &length), &low, &high);
}

/* ---- columns ---- */

/* What a rule is about: a column of the table, or ids first … last. */
struct reach {
    uint32_t column;
    uint64_t first, last;
};

static int find_column(const struct table *table, const char *name, struct reach *reach) {
    char text[COLUMN_TEXT];
    int code = table_column_of_rule(table, name, &reach->column);
    if (code)
        return code;
    if (!table_uses(&table->column[reach->column]))
        return error_set(ERROR_CONFIG, "%s is not a column that is trained on",
                         table_describe(table, reach->column, text));
    return 0;
}

/* Bounds of a monotone column are those of its steps. */
static int check_free(const struct table *table, const struct reach *reach, const char *name) {
    if (!table || table->column[reach->column].monotone == MONOTONE_NONE)
        return 0;
    return error_set(
        ERROR_CONFIG,
        "\"%s\" is listed in `monotone`, which bounds its weights; remove it from one of the two",
        name);
}

static int find_ids(const char *name, struct reach *reach) {
    char *end = NULL;
    bool digits = *name >= '0' && *name <= '9';
    reach->first = digits ? strtoull(name, &end, 10) : 0;
    reach->last = reach->first;
    if (digits && *end == '-' && end[1] >= '0' && end[1] <= '9')
        reach->last = strtoull(end + 1, &end, 10);
    if (digits && !*end && reach->first <= reach->last)
        return 0;
    return error_set(
        ERROR_CONFIG,
        "\"%s\" is not a feature; allowed: its id in the data, or a range of ids such as 10-20",
        name);
}

static int given_twice(const char *name) {
    return error_set(ERROR_CONFIG, "\"%s\" is given twice; allowed: once", name);
}

/* ---- all rules of a key ---- */

/* What the rules of one key are read into. */
struct reading {
    const struct set_info *data;
    const uint32_t *owners;
    bool *taken;
    struct column_rules *rules;
    bool bounds; /* of `bounds`, else of `penalty` */
};

/* A rule was checked when the job was read, so its value fits. */
static int read_rule(const struct reading *reading, const char *text) {
    const struct set_info *data = reading->data;
    struct column_rules *rules = reading->rules;
    size_t length = 0, found = 0;
    struct reach reach = {0};
    double factor = 1, low = 0, high = 0;
    const char *value = split_rule(text, &length);
    bool fits = reading->bounds ? read_bounds(value, &low, &high) : read_factor(value, &factor);
    assert(fits);
    char *name = memory_format("%.*s", (int)length, text);
    int code = data->table ? find_column(data->table, name, &reach) : find_ids(name, &reach);
    if (!code && reading->bounds)
        code = check_free(data->table, &reach, name);
    for (uint64_t j = 0; !code && j < data->features; j++) {
        const uint64_t id = data->feature_id[j];
        if (data->table ? reading->owners[j] != reach.column : id < reach.first || id > reach.last)
            continue;
        if (reading->taken[j])
            code = given_twice(name);
        reading->taken[j] = true;
        if (reading->bounds) {
            rules->low[j] = low;
            rules->high[j] = high;
        } else {
            rules->factor[j] = factor;
        }
        found++;
    }
    if (!code && !found)
        code = error_set(ERROR_CONFIG, "no row has a value of \"%s\"; remove the rule", name);
    free(name);
    return code;
}

static int read_rules(const struct job *job, const char *key, char *const *rules,
                      struct reading *reading) {
    int code = 0;
    reading->taken = memory_new(reading->data->features, sizeof *reading->taken);
    for (char *const *rule = rules; !code && *rule; rule++)
        code = read_rule(reading, *rule);
    free(reading->taken);
    return code ? job_refuse_key(job, key, code) : 0;
}

bool job_has_penalties(const struct job *job) {
    return job->penalty && job->penalty[0];
}

bool job_has_monotone(const struct job *job) {
    return job->monotone && job->monotone[0];
}

bool job_has_bounds(const struct job *job) {
    return (job->bounds && job->bounds[0]) || job_has_monotone(job);
}

bool job_has_orthants(const struct job *job) {
    return job->l1.value > 0 || job_has_bounds(job);
}

static double *all_of(const struct set_info *data, double value) {
    double *all = memory_new(data->features, sizeof *all);
    for (uint64_t j = 0; j < data->features; j++)
        all[j] = value;
    return all;
}

/* Bounds the weights of monotone columns: of their steps, and of the number itself. A missing cell
 * is no number. */
static void bound_steps(const struct set_info *data, const uint32_t *owners,
                        struct column_rules *rules) {
    const struct table *table = data->table;
    for (uint64_t j = 0; table && j < data->features; j++) {
        uint32_t c = owners[j];
        if (c >= table->columns || table->column[c].monotone == MONOTONE_NONE ||
            data->feature_id[j] == table_feature(c, ROLE_MISSING, NULL, 0))
            continue;
        rules->low[j] = table->column[c].monotone == MONOTONE_RISING ? 0 : -INFINITY;
        rules->high[j] = table->column[c].monotone == MONOTONE_RISING ? INFINITY : 0;
    }
}

int column_rules_find(const struct job *job, const struct set_info *data,
                      struct column_rules *rules) {
    *rules = (struct column_rules){0};
    if (!job_has_penalties(job) && !job_has_bounds(job))
        return 0;
    /* For each column of the set, the column of the table from which it was made. */
    uint32_t *owners = memory_new(data->features, sizeof *owners);
    for (uint64_t j = 0; data->table && j < data->features; j++)
        owners[j] = table_column_of(data->table, data->feature_id[j],
                                    data->feature_names ? data->feature_names[j] : "");
    struct reading reading = {.data = data, .owners = owners, .rules = rules};
    int code = 0;
    if (job_has_penalties(job)) {
        rules->factor = all_of(data, 1);
        code = read_rules(job, "penalty", job->penalty, &reading);
    }
    if (!code && job_has_bounds(job)) {
        reading.bounds = true;
        rules->low = all_of(data, -INFINITY);
        rules->high = all_of(data, INFINITY);
        code = read_rules(job, "bounds", job->bounds, &reading);
        if (!code)
            bound_steps(data, owners, rules);
    }
    free(owners);
    return code;
}

void column_rules_release(struct column_rules *rules) {
    free(rules->factor);
    free(rules->low);
    free(rules->high);
    *rules = (struct column_rules){0};
}

/* ---- before the data is packed ---- */

static int check_rules(const struct job *job, const char *key, char *const *rules,
                       const struct table *table) {
    bool *taken = memory_new(table->columns, sizeof *taken);
    int code = 0;
    for (char *const *rule = rules; !code && rule && *rule; rule++) {
        size_t length = 0;
        struct reach reach = {0};
        const bool fits = split_rule(*rule, &length) != NULL;
        assert(fits); /* it was checked when the job was read */
        char *name = memory_format("%.*s", (int)length, *rule);
        code = find_column(table, name, &reach);
        if (!code && rules == job->bounds)
            code = check_free(table, &reach, name);
        if (!code && taken[reach.column])
            code = given_twice(name);
        if (!code)
            taken[reach.column] = true;
        free(name);
    }
    free(taken);
    return code ? job_refuse_key(job, key, code) : 0;
}

int column_rules_check_columns(const struct job *job, const struct table *table) {
    int code = check_rules(job, "penalty", job->penalty, table);
    if (code)
        return code;
    struct table *steps = table_copy(table); /* packs know nothing of monotone columns */
    code = table_find_monotone(steps, (const char *const *)job->monotone, job->bins > 0);
    code = code ? job_refuse_key(job, "monotone", code)
                : check_rules(job, "bounds", job->bounds, steps);
    table_free(steps);
    return code;
}

/* ---- beside other keys ---- */

static int refuse_rules(const struct job *job, const char *key, const char *why) {
    return error_set(ERROR_CONFIG, "%s: key `%s`: %s", job->file, key, why);
}

int column_rules_check(const struct job *job) {
    bool linear = job_family(job)->family == &family_linear;
    const char *needs = "is for linear models, whose columns have weights of their own; remove it";
    if (job_has_penalties(job) && !linear)
        return refuse_rules(job, "penalty", needs);
    const char *key = job_has_monotone(job) ? "monotone" : "bounds";
    if (job_has_bounds(job) && !linear)
        return refuse_rules(job, key, needs);
    if (job_has_monotone(job) && !job->bins)
        return refuse_rules(job, key,
                            "is for numbers in bins; set csv.bins, for example csv.bins = 16");
    if (job_has_bounds(job) && job_has_minibatches(job))
        return refuse_rules(job, key,
                            "cannot be combined with training on minibatches, whose steps ignore "
                            "bounds; remove one of them");
    if (job_has_penalties(job) && !job->l2.automatic && job->l2.value == 0 && job->l1.value == 0)
        log_warning("%s: key `penalty`: has no effect without l2 and l1", job->file);
    return 0;
}
