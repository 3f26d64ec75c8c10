/* What concerns several keys of a job. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coordinator/job/downpour.h"
#include "coordinator/job/gate.h"
#include "coordinator/job/host_list.h"
#include "coordinator/job/key.h"
#include "coordinator/job/network.h"
#include "coordinator/job/plugin.h"
#include "data/set.h"

/* A key of what the job does not train with has no effect: perhaps that was forgotten. */
static int refuse_downpour(const struct job *job, const struct key *key) {
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: is for training on minibatches; write start = downpour or "
                     "optimizer = downpour, or remove it",
                     job->file, key->name);
}

static int check_applies(const struct job *job) {
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        if (key_applies(key, job) || key_is_default(key, job))
            continue;
        if (key->downpour)
            return refuse_downpour(job, key);
        bool network = job_is_network(job);
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: is for another objective; write %s = %.*s, or remove it; "
                         "the %s is %s",
                         job->file, key->name, network ? "network.loss" : "objective",
                         (int)key_section(key), key->name,
                         network ? "loss of the network" : "objective",
                         objective_name(job->objective));
    }
    return 0;
}

/* A network has the objective of its loss. */
static int refuse_objective(const struct job *job, const char *key, const char *needs) {
    const char *name = objective_name(job->objective);
    if (job_is_network(job))
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: needs a loss of the network with %s, such as network.loss "
                         "= logistic; the loss is %s",
                         job->file, key, needs, name);
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: needs an objective with %s, such as logistic; the objective is "
                     "%s",
                     job->file, key, needs, name);
}

static bool same_label(const char *a, const char *b) {
    double x, y;
    return !strcmp(a, b) || (key_number(a, &x) && key_number(b, &y) && x == y);
}

/* Classes in order have thresholds between them, which are intercepts. */
static int check_ordered(const struct job *job) {
    if (!job->intercept && objective_of(job->objective)->shares_weights)
        return error_set(ERROR_CONFIG,
                         "%s: key `intercept`: objective = %s has an intercept between each two "
                         "classes; allowed: true",
                         job->file, objective_name(job->objective));
    for (char **label = job->order; *label; label++)
        for (char **before = job->order; before < label; before++)
            if (same_label(*label, *before))
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
                             "%s: key `holdout`: the share %s stands together with other entries; "
                             "allowed: either one share, or files",
                             job->file, *entry);
    if (job->early_stopping && !job->holdout[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `early_stopping`: needs rows that are held out; also set "
                         "`holdout`, for example holdout = 0.1, or set early_stopping = off",
                         job->file);
    return 0;
}

/* Rows have weights from one place, and classes of an objective that has them. */
static int check_weights(const struct job *job) {
    char **classes = job->class_weight;
    enum label_kind labels = objective_of(job->objective)->labels;
    if (*classes && (labels == LABEL_TARGET || labels == LABEL_LISTS))
        return refuse_objective(job, "class_weight", "classes, of which a row has one");
    for (char **entry = classes; *entry && classes[1]; entry++)
        if (!strcmp(*entry, CLASS_WEIGHT_BALANCED))
            return error_set(ERROR_CONFIG,
                             "%s: key `class_weight`: %s stands together with other entries; "
                             "allowed: either %s, or weights",
                             job->file, *entry, *entry);
    if (job->source.weight && (job->weights[0] || job->test_weights[0] || job->holdout_weights[0]))
        return error_set(ERROR_CONFIG,
                         "%s: key `csv.weight`: stands together with files of weights; allowed: "
                         "one of both",
                         job->file);
    return 0;
}

/* Files beside those of `test` and of the holdout; `what`: "weights" or "labels". */
static int check_beside(const struct job *job, const char *what, char *const *test,
                        char *const *holdout) {
    if (test[0] && !job->test[0])
        return error_set(ERROR_CONFIG, "%s: key `test_%s`: there is no `test`", job->file, what);
    if (holdout[0] && !job_holdout_paths(job)[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `holdout_%s`: the holdout is no files; rows that are held out by "
                         "a share have their %s from `%s`",
                         job->file, what, what, what);
    return 0;
}

/* One key may have a list, and something must judge the models of its values. */
static int check_path(const struct job *job) {
    if (job->l1.count > 1 && job->l2.count > 1)
        return error_set(ERROR_CONFIG,
                         "%s: key `l1`: has a list of values, and so has `l2`; allowed: a list for "
                         "one of them, and one value for the other",
                         job->file);
    if ((job->l1.count < 2 && job->l2.count < 2) || job->folds || job->holdout[0])
        return 0;
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: a list of values needs rows to choose among their models; also "
                     "set `holdout`, for example holdout = 0.1, or `folds`, for example folds = 5",
                     job->file, job_sweep_key(job));
}

/* A gate needs a holdout, and its figures must be figures of the objective. */
static int check_gate(const struct job *job) {
    struct gate_condition condition;
    if (job->gate[0] && !job->holdout[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `gate`: needs rows to judge models on; also set `holdout`, to a "
                         "share of the rows, for example 0.1, or to files of their own",
                         job->file);
    for (char **text = job->gate; *text; text++)
        if (gate_parse(*text, &condition) && !gate_suits(&condition, job->objective)) {
            char *allowed = gate_figures(job->objective);
            error_set(ERROR_CONFIG,
                      "%s: key `gate`: \"%s\": the objective does not have this figure; figures of "
                      "%s: %s",
                      job->file, *text, objective_name(job->objective), allowed);
            free(allowed);
            return ERROR_CONFIG;
        }
    return 0;
}

int job_check(const struct job *job) {
    if (!job->data[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `data`: missing; allowed: "
                         "a path or glob, or a list of them",
                         job->file);
    int code = job->positive && objective_of(job->objective)->labels != LABEL_BINARY
                   ? refuse_objective(job, "csv.positive", "two classes")
                   : check_applies(job);
    if (!code)
        code = job_check_network(job);
    if (!code)
        code = job_check_plugin(job);
    if (!code)
        code = job_check_downpour(job);
    if (!code)
        code = check_ordered(job);
    if (!code)
        code = check_weights(job);
    if (!code)
        code = check_beside(job, "weights", job->test_weights, job->holdout_weights);
    if (!code)
        code = check_beside(job, "labels", job->test_labels, job->holdout_labels);
    if (!code)
        code = check_holdout(job);
    if (!code)
        code = check_path(job);
    if (!code)
        code = host_list_check(job);
    return code ? code : check_gate(job);
}
