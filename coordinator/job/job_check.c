/* What concerns several keys of a job: what contradicts each other is an error, what has no effect
 * a warning. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/family.h"
#include "coordinator/job/gate.h"
#include "coordinator/job/host_list.h"
#include "coordinator/job/key.h"
#include "coordinator/job/tiling.h"
#include "data/set/set.h"
#include "wire/address.h"

/* A key for another objective or optimizer than the job's has no effect: perhaps the one that it is
 * for was forgotten. */
static int check_applies(const struct job *job) {
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        if (key_applies(key, job) || key_is_default(key, job))
            continue;
        if (key->downpour)
            return error_set(ERROR_CONFIG,
                             "%s: key `%s`: is for training on minibatches; write start = "
                             "downpour or optimizer = downpour, or remove it",
                             job->file, key->name);
        const struct job_family *family = job_family(job);
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: is for another objective; write %s = %.*s, or remove it; "
                         "the %s is %s",
                         job->file, key->name, family->loss_key, (int)key_section(key), key->name,
                         family->loss, objective_name(job->objective));
    }
    return 0;
}

static int refuse_objective(const struct job *job, const char *key, const char *needs) {
    const struct job_family *family = job_family(job);
    return error_set(ERROR_CONFIG, "%s: key `%s`: needs %s %s with %s, such as %s; the %s is %s",
                     job->file, key, strchr("aeiou", *family->loss) ? "an" : "a", family->loss,
                     needs, family->loss_example, family->loss_short,
                     objective_name(job->objective));
}

/* Classes in order have thresholds between them, which are intercepts. */
static int check_ordered(const struct job *job) {
    if (!job->intercept && objective_of(job->objective)->shares_weights)
        return error_set(ERROR_CONFIG,
                         "%s: key `intercept`: objective = %s has an intercept between each two "
                         "classes; allowed: true",
                         job->file, objective_name(job->objective));
    if (job_has_minibatches(job) && objective_of(job->objective)->parts_outputs)
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: a step of a minibatch may bring the thresholds of "
                         "objective = %s out of order, where its loss is infinite; take %s",
                         job->file, job->optimizer == JOB_DOWNPOUR ? "optimizer" : "start",
                         objective_name(job->objective),
                         job->optimizer == JOB_DOWNPOUR ? "optimizer = lbfgs" : "start = zero");
    double x, y;
    for (char **label = job->order; *label; label++)
        for (char **before = job->order; before < label; before++)
            if (!strcmp(*label, *before) ||
                (key_number(*label, &x) && key_number(*before, &y) && x == y))
                return error_set(ERROR_CONFIG, "%s: key `ordinal.order`: lists the label %s twice",
                                 job->file, *label);
    return 0;
}

/* A share is the only entry of a list, and early stopping needs a holdout. */
static int check_holdout(const struct job *job) {
    double share;
    for (char **entry = job->holdout; *entry; entry++)
        if (key_number(*entry, &share) && job->holdout[1])
            return error_set(ERROR_CONFIG,
                             "%s: key `holdout`: the share %s is combined with other entries; "
                             "allowed: either one share, or files",
                             job->file, *entry);
    if (job->early_stopping && !job->holdout[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `early_stopping`: needs rows that are held out; also set "
                         "`holdout`, for example holdout = 0.1, or set early_stopping = off",
                         job->file);
    return 0;
}

/* Weights of rows come from a column or from files, not from both. Weights of classes need an
 * objective that has classes. */
static int check_weights(const struct job *job) {
    char **classes = job->class_weight;
    enum label_kind labels = objective_of(job->objective)->labels;
    if (*classes && (labels == LABEL_TARGET || labels == LABEL_LISTS))
        return refuse_objective(job, "class_weight", "one class for each row");
    for (char **entry = classes; *entry && classes[1]; entry++)
        if (!strcmp(*entry, CLASS_WEIGHT_BALANCED))
            return error_set(ERROR_CONFIG,
                             "%s: key `class_weight`: %s is combined with other entries; allowed: "
                             "either %s, or weights",
                             job->file, *entry, *entry);
    return 0;
}

/* Shards have state, and each is known by its address. */
static int check_names(const struct job *job) {
    for (char **address = job->shard_addresses; *address; address++)
        if (address_is_name(*address))
            return error_set(ERROR_CONFIG,
                             "%s: key `shard_addresses`: %s: shards keep state, so each needs an "
                             "address of its own; dns: is for replica_addresses",
                             job->file, *address);
    return 0;
}

/* What rows have of their own: of the job's keys, those of a column and of files. */
struct own_keys {
    const char *column_key, *files_key;
    const char *column;
    char *const *data, *const *test, *const *holdout;
};

static struct own_keys own_keys_of(const struct job *job, enum row_property property) {
    assert(property < ROW_NUMBERS);
    const struct own_keys all[ROW_NUMBERS] = {
        [ROW_WEIGHT] = {"csv.weight", "weights", job->source.property.column[ROW_WEIGHT],
                        job->weights, job->test_weights, job->holdout_weights},
        [ROW_OFFSET] = {"offset", "offsets", job->source.property.column[ROW_OFFSET], job->offsets,
                        job->test_offsets, job->holdout_offsets},
        [ROW_EXPOSURE] = {"exposure", "exposures", job->source.property.column[ROW_EXPOSURE],
                          job->exposures, job->test_exposures, job->holdout_exposures}};
    return all[property];
}

bool job_has(const struct job *job, enum row_property property) {
    struct own_keys own = own_keys_of(job, property);
    return own.column || *own.data;
}

int job_check_columns(const struct job *job) {
    for (enum row_property i = 0; i < ROW_NUMBERS; i++) {
        struct own_keys own = own_keys_of(job, i);
        if (own.column)
            return error_set(ERROR_CONFIG,
                             "%s: key `%s`: the data is not a table, and has no such columns; for "
                             "%s in a file of their own use `%s`",
                             job->file, own.column_key, own.files_key, own.files_key);
    }
    if (job->source.property.column[ROW_CLUSTER])
        return error_set(ERROR_CONFIG,
                         "%s: key `summary_cluster`: the data is not a table, and has no such "
                         "columns; remove it, or give the data as a table",
                         job->file);
    return 0;
}

/* A number comes from a column or from files, not from both. */
static int check_own(const struct job *job) {
    for (enum row_property i = 0; i < ROW_NUMBERS; i++) {
        struct own_keys own = own_keys_of(job, i);
        if (own.column && (*own.data || *own.test || *own.holdout))
            return error_set(ERROR_CONFIG,
                             "%s: key `%s`: is combined with files of %s; allowed: one of the two",
                             job->file, own.column_key, own.files_key);
    }
    return 0;
}

/* An offset is added to all margins of a row. Where classes have a margin each, only the
 * differences of these count, or none has anything to do with the others. */
static int check_offsets(const struct job *job) {
    const struct objective *objective = objective_of(job->objective);
    const char *key = job_has(job, ROW_OFFSET)     ? "offset"
                      : job_has(job, ROW_EXPOSURE) ? "exposure"
                                                   : NULL;
    if (!key)
        return 0;
    if (job_family(job)->family->own_tensors)
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: a plug-in computes the losses of rows itself, without "
                         "offsets; make them a feature",
                         job->file, key);
    if (objective->output_a_class)
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: %s = %s has a margin for each class, and %s; allowed with "
                         "one margin a row, such as logistic or poisson",
                         job->file, key, job_family(job)->loss_key, objective_name(job->objective),
                         job->objective == OBJECTIVE_SOFTMAX
                             ? "one offset for all of them has no effect"
                             : "an offset is of one margin");
    return 0;
}

/* Files of weights or labels for test data or a holdout need that data. */
static int check_beside(const struct job *job) {
    const struct {
        const char *what;
        char *const *test, *const *holdout;
    } beside[] = {{"weights", job->test_weights, job->holdout_weights},
                  {"offsets", job->test_offsets, job->holdout_offsets},
                  {"exposures", job->test_exposures, job->holdout_exposures},
                  {"labels", job->test_labels, job->holdout_labels}};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        const char *what = beside[i].what;
        if (beside[i].test[0] && !job->test[0])
            return error_set(ERROR_CONFIG, "%s: key `test_%s`: there is no `test`", job->file,
                             what);
        if (beside[i].holdout[0] && !job_holdout_paths(job)[0])
            return error_set(ERROR_CONFIG,
                             "%s: key `holdout_%s`: the holdout is not a list of files; rows that "
                             "are held out by a share have their %s from `%s`",
                             job->file, what, what, what);
    }
    return 0;
}

static int refuse_without_holdout(const struct job *job, const char *key, const char *off) {
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: is found on rows that are held out; also set `holdout`, for "
                     "example holdout = 0.1, or set %s = %s",
                     job->file, key, key, off);
}

/* Thresholds and calibrations are of probabilities, an output each; most are found on a holdout. */
static int check_response(const struct job *job) {
    static const char needs[] = "two classes, or lists of classes, and probabilities";
    struct response_wanted wanted = job_response(job);
    bool suits = response_has_thresholds(objective_of(job->objective));
    bool calibrates = wanted.calibration != CALIBRATION_NONE;
    bool cools = wanted.calibration == CALIBRATION_TEMPERATURE;
    if (wanted.threshold.kind != THRESHOLD_AUTO && !suits)
        return refuse_objective(job, "threshold", needs);
    if (cools && !response_has_temperature(objective_of(job->objective)))
        return error_set(ERROR_CONFIG,
                         "%s: key `calibrate`: temperature is for %s = softmax; take %s; the %s is "
                         "%s",
                         job->file, job_family(job)->loss_key, suits ? "platt or isotonic" : "none",
                         job_family(job)->loss_short, objective_name(job->objective));
    if (calibrates && !cools && !suits)
        return refuse_objective(job, "calibrate",
                                "two classes, or lists of classes, and probabilities (for softmax "
                                "there is temperature)");
    if (threshold_is_found(&wanted.threshold) && !job->holdout[0])
        return refuse_without_holdout(job, "threshold", "auto");
    if (calibrates && !job->holdout[0])
        return refuse_without_holdout(job, "calibrate", "none");
    if (wanted.threshold.kind == THRESHOLD_COST && job->false_positive == 0 &&
        job->false_negative == 0)
        return error_set(ERROR_CONFIG,
                         "%s: key `threshold`: both costs are 0; set `cost.false_positive` or "
                         "`cost.false_negative` above 0",
                         job->file);
    return 0;
}

/* Rows are needed to choose among the models of several values, and a list of values that would
 * take for ever is refused before it begins. */
static int check_path(const struct job *job) {
    const uint32_t values = job_grid_size(job);
    assert(values > 0);
    if (values > 1 && !job->folds && !job->holdout[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: a list of values needs rows to choose among their models; "
                         "also set `holdout`, for example holdout = 0.1, or `folds`, for example "
                         "folds = 5",
                         job->file, job->l1.count > 1 ? "l1" : "l2");
    if (values > GRID_MAX)
        return error_set(ERROR_CONFIG,
                         "%s: key `l1`: %u values with %u of `l2` are %u models; allowed: at most "
                         "%u",
                         job->file, job->l1.count, job->l2.count, values, GRID_MAX);
    return 0;
}

/* The figure that a model of the objective is said not to have; `directed` as of
 * score_figure_names(). */
static int refuse_figure(const struct job *job, const char *key, const char *text, bool directed) {
    char *allowed = score_figure_names(objective_of(job->objective), directed);
    error_set(ERROR_CONFIG,
              "%s: key `%s`: \"%s\": the objective does not have this figure; figures of %s: %s",
              job->file, key, text, objective_name(job->objective), allowed);
    free(allowed);
    return ERROR_CONFIG;
}

/* A standard error is one over folds. */
static int check_choice(const struct job *job) {
    if (job->choose == JOB_CHOOSE_ONE_SE && !job->folds)
        return error_set(ERROR_CONFIG,
                         "%s: key `choose`: one_se needs folds, over which a figure has a standard "
                         "error; also set `folds`, for example folds = 5, or set choose = best",
                         job->file);
    if (!score_figure_suits(score_figure_find(job->choose_by), objective_of(job->objective)))
        return refuse_figure(job, "choose_by", job->choose_by, true);
    return 0;
}

/* A gate needs a holdout, and its figures must be figures of the objective. */
static int check_gate(const struct job *job) {
    struct gate_condition condition;
    if (job->gate[0] && !job->holdout[0])
        return error_set(
            ERROR_CONFIG,
            "%s: key `gate`: needs rows on which models are evaluated; also set `holdout`, to a "
            "share of the rows, for example 0.1, or to files of their own",
            job->file);
    for (char **text = job->gate; *text; text++)
        if (gate_parse(*text, &condition) && !gate_suits(&condition, job->objective))
            return refuse_figure(job, "gate", *text, false);
    return 0;
}

static int check_family(const struct job *job) {
    return job_family(job)->check(job);
}

/* Values for epochs after the last would never be used. */
static int check_length(const struct job *job, const char *key, uint32_t count) {
    uint32_t epochs = job->downpour.epochs;
    if (count <= epochs)
        return 0;
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: has %u values for %u epoch%s; allowed: at most as many as "
                     "`downpour.epochs`, so set that to %u or remove values",
                     job->file, key, count, epochs, epochs == 1 ? "" : "s", count);
}

static int check_downpour(const struct job *job) {
    if (!job_has_minibatches(job))
        return 0;
    if (job->precondition == PRECONDITION_BLOCK || job->precondition == PRECONDITION_KRONECKER)
        return error_set(
            ERROR_CONFIG,
            "%s: key `precondition`: `block` and `kronecker` cannot be combined with training on "
            "minibatches, whose own scales precondition L-BFGS; allowed here: auto, none, diagonal",
            job->file);
    int code = check_length(job, "downpour.schedule", job->downpour.schedule.count);
    return code ? code : check_length(job, "downpour.rate", job->downpour.rate.count);
}

/* Why the estimates of the job have no standard errors (a constant), or NULL. */
static const char *no_errors(const struct job *job) {
    if (job_family(job)->family != &family_linear)
        return "a network or a plug-in has no standard errors";
    if (job->objective == OBJECTIVE_ORDINAL)
        return "this loss is a sum of logistic losses and not a likelihood, so its estimates have "
               "no standard errors; take objective = proportional_odds, which is also for ordered "
               "labels";
    if (!objective_of(job->objective)->distribution)
        return "this loss is not a likelihood, so its estimates have no standard errors; allowed "
               "here: squared, logistic, softmax, one_vs_rest, proportional_odds, multilabel, "
               "poisson, gamma, tweedie";
    if (job->l1.count > 1 || job->l1.value > 0)
        return "with l1 the estimates have no standard errors, because weights that it sets to "
               "zero are not normally distributed; take l1 = 0, or l2";
    if (job_has_bounds(job))
        return "with bounds the estimates have no standard errors, because weights at a bound are "
               "not normally distributed; remove bounds and monotone";
    if (job_has_minibatches(job))
        return "minibatches do not reach an optimum; take optimizer = lbfgs and start = zero";
    if (job->early_stopping)
        return "early_stopping takes a point that is not an optimum; set early_stopping = off";
    if (!job_inverts(job))
        return NULL;
    if (job->directions && job->directions != DIRECTIONS_AUTO)
        return "standard errors are for steps along one direction; take directions = auto or 0";
    if (job->precondition != PRECONDITION_AUTO && job->precondition != PRECONDITION_BLOCK)
        return "standard errors come from a matrix of all parameters, which also preconditions; "
               "take precondition = auto or block";
    return NULL;
}

static int check_summary(const struct job *job) {
    if (job->source.property.column[ROW_CLUSTER] && !job->summary)
        return error_set(ERROR_CONFIG,
                         "%s: key `summary_cluster`: without `summary` there are no errors; set "
                         "summary = model or robust, or remove the key",
                         job->file);
    if (job->summary_columns[0] && !job->summary)
        return error_set(ERROR_CONFIG,
                         "%s: key `summary_columns`: without `summary` there are no errors; set "
                         "summary = model or robust, or remove the key",
                         job->file);
    const char *why = job->summary ? no_errors(job) : NULL;
    return why ? error_set(ERROR_CONFIG, "%s: key `summary`: %s; or set summary = none", job->file,
                           why)
               : 0;
}

static int check_data(const struct job *job) {
    if (!job->data[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `data`: missing; allowed: a path or glob, or a list of them",
                         job->file);
    if (job->positive && objective_of(job->objective)->labels != LABEL_BINARY)
        return refuse_objective(job, "csv.positive", "two classes");
    return 0;
}

/* Steps of a block's inverse leave any orthant, and bounds. Whether columns fit into it is seen
 * when there is data. */
static int check_block(const struct job *job) {
    const char *other = job->l1.value > 0 ? "l1" : *job->bounds ? "bounds" : "monotone";
    if (job->precondition != PRECONDITION_BLOCK || !job_has_orthants(job))
        return 0;
    return error_set(ERROR_CONFIG,
                     "%s: key `precondition`: `block` and %s cannot be combined; take `auto` or "
                     "`none`, or no %s",
                     job->file, other, other);
}

/* If a job has several errors, the first in this order is reported. */
static int (*const checks[])(const struct job *job) = {
    check_data,    check_applies,      check_family,   check_downpour,  check_summary,
    check_ordered, check_weights,      check_own,      check_offsets,   check_beside,
    check_holdout, check_path,         check_choice,   host_list_check, check_names,
    check_gate,    column_rules_check, check_response, check_block,
};

int job_check(const struct job *job) {
    int code = 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && !code; i++)
        code = checks[i](job);
    return code;
}

/* ---- keys without an effect ---- */

/* Job files may be shared, so that is no error, unless a key with another value than its default
 * is for another objective (check_applies). */

static void warn_of_sections(const struct job *job) {
    const char *warned = "";
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        size_t length = key_section(key);
        if (!job->given[i] || key_applies(key, job) ||
            (length && !strncmp(warned, key->name, length + 1)))
            continue;
        warned = key->name;
        if (key->downpour)
            log_warning("%s: the section %.*s { } has no effect without start = downpour or "
                        "optimizer = downpour",
                        job->file, (int)length, warned);
        else
            log_warning("%s: the section %.*s { } has no effect without objective = %.*s",
                        job->file, (int)length, warned, (int)length, warned);
    }
}

/* `only` names what the key needs. */
static void warn_unless(const struct job *job, const char *name, bool has_effect,
                        const char *only) {
    if (!has_effect && !key_is_default(key_find(name), job))
        log_warning("%s: key `%s`: has no effect %s", job->file, name, only);
}

void job_warn_of_unused(const struct job *job) {
    const char *whole = tiling_cannot(job);
    warn_of_sections(job);
    if (whole && job->strip_columns && job->strip_columns != STRIP_COLUMNS_AUTO)
        log_warning("%s: key `strip_columns`: has no effect: %s", job->file, whole);
    bool costs = job_response(job).threshold.kind == THRESHOLD_COST;
    warn_unless(job, "seed", job->folds, "without `folds`");
    warn_unless(job, "choose", job_grid_size(job) > 1, "without a list of values");
    warn_unless(job, "choose_by", job_has_sweep(job), "without a list of values or `folds`");
    warn_unless(job, "cost.false_positive", costs, "without threshold = cost");
    warn_unless(job, "cost.false_negative", costs, "without threshold = cost");
    warn_unless(job, "prior_correction", job->class_weight[0], "without `class_weight`");
    warn_unless(job, "launch", job->hosts[0], "without `hosts`");
    warn_unless(job, "vanished", job->warm_start, "with warm_start = false");
    if (job_has(job, ROW_EXPOSURE) && !objective_of(job->objective)->log_link)
        log_warning(
            "%s: key `exposure`: adds its logarithm to the margin; predictions are proportional to "
            "it only with poisson, gamma and tweedie, so it is probably not meant with %s; for "
            "numbers of trials use csv.weight, otherwise see `offset`",
            job->file, objective_name(job->objective));
    bool text = job->source.table.text && *job->source.table.text;
    warn_unless(job, "csv.category_least", !job->source.table.hash_bits || text, "with `csv.hash`");
    warn_unless(job, "csv.text_values", text, "without `csv.text`");
    warn_unless(job, "csv.ngrams", text, "without `csv.text`");
    warn_unless(job, "csv.lowercase", text, "without `csv.text`");
    warn_unless(job, "csv.word_least", text, "without `csv.text`");
    warn_unless(job, "csv.word_characters", text, "without `csv.text`");
    warn_unless(job, "cross_least", job->cross[0], "without `cross`");
    warn_unless(job, "precondition_block",
                job->precondition == PRECONDITION_AUTO || job->precondition == PRECONDITION_BLOCK,
                "with this value of `precondition`");
}

void job_warn_of_csv(const struct job *job, const char *format) {
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        bool csv = key->offset != offsetof(struct job, positive) &&
                   (!strncmp(key->name, "csv.", 4) || !strcmp(key->name, "missing_columns") ||
                    !strncmp(key->name, "cross", 5) || !strcmp(key->name, "monotone"));
        if (csv && job->given[i] && !key_is_default(key, job))
            log_warning("%s: key `%s`: has no effect: the data is %s, not a table", job->file,
                        key->name, format);
    }
}

bool job_gives(const struct job *job, const char *key) {
    return job->given[key_find(key) - keys];
}
