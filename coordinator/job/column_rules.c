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

/* The name of a column may have = in it, a value has not: the last one parts them. Answers the
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

bool penalty_rule_fits(const char *text) {
    size_t length;
    double factor;
    return read_factor(split_rule(text, &length), &factor);
}

/* ---- columns ---- */

/* Of each column of the set, which one of the table it was made of. */
static uint32_t *owners_of(const struct set_info *data) {
    uint32_t *owners = memory_new(data->features, sizeof *owners);
    for (uint32_t j = 0; data->table && j < data->features; j++)
        owners[j] = table_column_of(data->table, data->feature_id[j],
                                    data->feature_names ? data->feature_names[j] : "");
    return owners;
}

/* What a rule is about: a column of the table, or ids first … last. */
struct reach {
    uint32_t column;
    uint64_t first, last;
};

static bool reaches(const struct reach *reach, const struct set_info *data, const uint32_t *owners,
                    uint32_t j) {
    if (data->table)
        return owners[j] == reach->column;
    return data->feature_id[j] >= reach->first && data->feature_id[j] <= reach->last;
}

static int no_column(const struct set_info *data, const char *name) {
    struct nearest nearest = {.text = name};
    for (uint32_t i = 0; i < data->table->columns; i++)
        if (data->table->column[i].name)
            nearest_offer(&nearest, data->table->column[i].name);
    return error_set(ERROR_CONFIG,
                     "there is no column \"%s\" in the data%s; allowed: a name of its header "
                     "line, or a number from 1",
                     name, nearest_question(&nearest, ""));
}

static int find_column(const struct set_info *data, const char *name, struct reach *reach) {
    const struct table *table = data->table;
    char text[COLUMN_TEXT], *end;
    uint32_t at = 0;
    while (at < table->columns &&
           !(table->column[at].name && strcmp(table->column[at].name, name) == 0))
        at++;
    unsigned long number = strtoul(name, &end, 10);
    if (at == table->columns && !*end && number && number <= table->columns)
        at = (uint32_t)number - 1;
    if (at == table->columns)
        return no_column(data, name);
    if (!table_uses(&table->column[at]))
        return error_set(ERROR_CONFIG, "%s is no column that is trained on",
                         table_describe(table, at, text));
    reach->column = at;
    return 0;
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
    return error_set(ERROR_CONFIG,
                     "\"%s\" is no feature; allowed: its id in the data, or a range of ids as "
                     "10-20",
                     name);
}

static int find_reach(const struct set_info *data, const char *name, struct reach *reach) {
    return data->table ? find_column(data, name, reach) : find_ids(name, reach);
}

/* ---- all rules of a key ---- */

/* What the rules of one key are read into. */
struct reading {
    const struct set_info *data;
    const uint32_t *owners;
    uint32_t *taken; /* by which rule, from 1 */
    double *factor;
};

static int read_rule(const struct reading *reading, const char *text, uint32_t number) {
    size_t length = 0, found = 0;
    struct reach reach = {0};
    double factor = 1;
    bool fits = read_factor(split_rule(text, &length), &factor);
    assert(fits); /* as when the job was read */
    if (!fits)
        return ERROR_INTERNAL;
    char *name = memory_format("%.*s", (int)length, text);
    int code = find_reach(reading->data, name, &reach);
    for (uint32_t j = 0; !code && j < reading->data->features; j++) {
        if (!reaches(&reach, reading->data, reading->owners, j))
            continue;
        if (reading->taken[j])
            code = error_set(ERROR_CONFIG, "\"%s\" is given twice; allowed: once", name);
        reading->taken[j] = number;
        reading->factor[j] = factor;
        found++;
    }
    if (!code && !found)
        code = error_set(ERROR_CONFIG, "no row has a value of \"%s\"; take the rule away", name);
    free(name);
    return code;
}

static int read_rules(const struct job *job, const char *key, char *const *rules,
                      struct reading *reading) {
    int code = 0;
    reading->taken = memory_new(reading->data->features, sizeof *reading->taken);
    for (uint32_t i = 0; !code && rules[i]; i++)
        code = read_rule(reading, rules[i], i + 1);
    free(reading->taken);
    return code ? job_refuse_key(job, key, code) : 0;
}

bool job_has_column_rules(const struct job *job) {
    return job->penalty && job->penalty[0];
}

int column_rules_find(const struct job *job, const struct set_info *data,
                      struct column_rules *rules) {
    *rules = (struct column_rules){0};
    if (!job_has_column_rules(job))
        return 0;
    uint32_t *owners = owners_of(data);
    struct reading reading = {.data = data, .owners = owners};
    reading.factor = rules->factor = memory_new(data->features, sizeof *rules->factor);
    for (uint32_t j = 0; j < data->features; j++)
        rules->factor[j] = 1;
    int code = read_rules(job, "penalty", job->penalty, &reading);
    free(owners);
    return code;
}

void column_rules_release(struct column_rules *rules) {
    free(rules->factor);
    *rules = (struct column_rules){0};
}

/* ---- beside other keys ---- */

int column_rules_check(const struct job *job) {
    if (!job->penalty[0])
        return 0;
    if (job_family(job)->family != &family_linear)
        return error_set(ERROR_CONFIG,
                         "%s: key `penalty`: is for linear models, whose columns have weights of "
                         "their own; remove it",
                         job->file);
    if (job->l1.count > 1 || job->l1.value > 0)
        return error_set(ERROR_CONFIG,
                         "%s: key `penalty`: does not go together with l1; allowed: l1 = 0",
                         job->file);
    if (!job->l2.automatic && job->l2.value == 0 && job->l1.value == 0)
        log_warning("%s: key `penalty`: has no effect without l2", job->file);
    return 0;
}
