#include "coordinator/run/convergence.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/family.h"
#include "coordinator/job/key.h"
#include "coordinator/job/sizing.h"
#include "coordinator/run/null_loss.h"
#include "coordinator/status/figures.h"
#include "numeric/fixed.h"

/* A loss whose minimum is 0 falls for ever: below this share of the null model's loss nobody asks
 * how far the minimum is. For classes that loss is taken for 1, and for labels that have a unit,
 * without offsets, for the loss of a residual of that unit. */
#define LOSS_LEAST 1e-3

/* Where the intercept alone fits all rows, a share of what curves the loss: predictions are right
 * to seven digits. */
#define SECOND_LEAST 1e-15

/* A loss of labels that have a unit, for a residual of one unit: how large it is, and how its
 * derivative changes on the way, which is far less than its bound where corners are sharp. */
struct typical {
    double loss, second;
};

static struct typical typical_of(const struct objective_shape *shape, const struct set_info *data) {
    const struct objective *objective = objective_of(shape->kind);
    /* A power of two, with which the arithmetic is exact. */
    double unit = ldexp(1, ilogb(objective_unit(objective, data->targets))), work[2], loss[2];
    double label[2] = {shape->start - unit, shape->start + unit};
    double derivative[2] = {shape->start, shape->start};
    objective->losses(&shape->loss, 2, 1, label, derivative, loss, work);
    return (struct typical){.loss = 0.5 * (loss[0] + loss[1]),
                            .second = (derivative[0] - derivative[1]) / (2 * unit)};
}

/* The gap of the sum of all losses that leaves estimates off by a hundredth of their errors, at
 * most; and the least share that rounding allows. */
#define GAP_OF_ERRORS 5e-5
#define GAP_LEAST 1e-12

struct gap_settings gap_settings_of(const struct job *job, const struct objective_shape *shape,
                                    const struct set_info *data) {
    const struct objective *objective = objective_of(shape->kind);
    if (!objective->convex || !family_of(shape)->convex)
        return (struct gap_settings){.known = false};
    bool stops_elsewhere = job_gives(job, "gradient_tolerance") || job_gives(job, "loss_tolerance");
    struct gap_settings settings = {.bias_share = 1,
                                    .typical_second = INFINITY,
                                    .least = LOSS_LEAST,
                                    .tolerance = job->gap_tolerance,
                                    .asked_for = job_gives(job, "gap_tolerance"),
                                    /* With corners as sharp as those of huber most rows have no
                                     * curvature in P, though all resist a longer step. */
                                    .newton = !objective->has_unit || objective->second_constant};
    /* Whoever says how large the gap may be wants it to be no larger at the end. */
    settings.waited_for = !stops_elsewhere || settings.asked_for;
    /* Second derivatives that have no bound of their own are taken where the run starts. */
    settings.second = objective->adapts && objective->second_bound
                          ? sizing_second_first(data, shape)
                          : objective_second_bound(shape, 0, data->label_max_abs);
    settings.known = data->features && settings.second > 0 && isfinite(settings.second);
    if (objective->has_unit) {
        const struct typical typical = typical_of(shape, data);
        settings.least *= typical.loss;
        settings.typical_second = typical.second;
    }
    if ((objective->figures & FIGURE_LOG_LOSS) && objective->labels != LABEL_ORDERED)
        settings.typical_second = 0; /* the loss itself says what they are */
    /* Where errors are found at the end of a run that does not go to the very optimum for them. */
    if (job->summary && !job_inverts(job) && !settings.asked_for)
        settings.tolerance =
            fmin(settings.tolerance, fmax(GAP_OF_ERRORS / data->weight_total, GAP_LEAST));
    return settings;
}

/* Rates of 1e-8, counts of 1e6 and prices that hardly differ have null losses far from 1. Where the
 * labels are their offsets and a constant, the null loss is rounding. */
int gap_find_least(const struct objective_shape *shape, struct set *set,
                   struct gap_settings *settings) {
    const struct objective *objective = objective_of(shape->kind);
    const struct set_info *data = set_info(set);
    if (!settings->known || objective->labels != LABEL_TARGET ||
        (objective->has_unit && (!data->has_offsets || labels_are_one_number(data->targets))))
        return 0;
    double null, second = objective->has_unit ? 0 : sizing_second_first(data, shape);
    int code = null_loss_find(set, shape, &null);
    if (!code && isfinite(null))
        settings->least = fmax(LOSS_LEAST * null, SECOND_LEAST * second);
    return code;
}

/* 0 where values are too large to be squared. */
static double known_square(double square) {
    return isfinite(square) ? square : 0;
}

void gap_measure(const struct set_info *data, const struct moments *moments,
                 struct column_scaling *columns) {
    assert(moments->kind == MOMENTS_EXACT);
    for (uint64_t j = 0; j < data->features; j++) {
        double shift = moments->mean[j] - columns[j].mean, scale = columns[j].scale;
        columns[j].square = known_square(scale * scale * (moments->variance[j] + shift * shift));
    }
}

double gap_bias_share(const struct gap_settings *settings, const struct set_info *data, double l2,
                      const double *squares) {
    double rows = (double)data->rows, row_square = 0;
    assert(settings->known && l2 >= 0);
    for (uint64_t j = 0; j < data->features; j++)
        row_square += squares[j];
    double follows = l2 / (l2 + settings->second * row_square / rows);
    return follows > 0 ? fmax(follows, 1 - (double)data->features / rows) : 1;
}

/* Where rows curve F more than that beyond l2, in the mean of as many directions as there are
 * rows, what l2 alone says is far above the gap. */
#define CURVES_BEYOND_L2 8

bool gap_is_by_l2(const struct gap_settings *settings, const struct set_info *data, double l2,
                  double mean_square) {
    double beyond = settings->second * mean_square / (double)data->rows;
    assert(settings->known);
    return l2 > 0 && data->features >= data->rows && beyond <= CURVES_BEYOND_L2 * l2;
}

void gap_unscaled(const struct set_info *data, double *squares) {
    for (uint64_t j = 0; j < data->features; j++)
        squares[j] = known_square(squares[j]);
}

/* If the answer is the last point, more may be known of it than of an earlier point. */
static struct optimizer_point last_point(const struct coordinator_view *view) {
    if (view->answer.step == view->step)
        return view->answer;
    return (struct optimizer_point){.step = view->step,
                                    .loss = view->loss,
                                    .gradient_max = view->gradient_max,
                                    .gap_estimate = view->gap_estimate};
}

struct gap gap_of(const struct gap_settings *settings, const struct coordinator_view *view) {
    const struct optimizer_point last = last_point(view);
    return (struct gap){.known = settings->known && !isnan(last.gap_estimate),
                        .estimate = last.gap_estimate,
                        .allowed = gap_allowed(settings, last.loss)};
}

bool gap_is_small(const struct gap *gap) {
    return !gap->known || gap->estimate <= gap->allowed;
}

/* Scales of columns that differ by less are not mentioned. */
#define DECADES_WORTH_SAYING 3

/* Two columns: those with the largest and the least values. */
struct scales {
    uint64_t largest, least;
    double largest_mean, least_mean; /* of values that are not 0 */
};

/* False where nothing is known of them, or columns are of one unit. */
static bool scales_of(const struct set_info *data, const struct moments *moments,
                      struct scales *scales) {
    bool found = false;
    *scales = (struct scales){0};
    if (moments->kind == MOMENTS_NONE || scaling_is_of_one_unit(data, moments))
        return false;
    for (uint64_t i = 0; i < data->features; i++) {
        double size = moments_size(moments, i);
        if (size > 0 && (!found || size > scales->largest_mean))
            scales->largest = i, scales->largest_mean = size;
        if (size > 0 && (!found || size < scales->least_mean))
            scales->least = i, scales->least_mean = size;
        found |= size > 0;
    }
    return found;
}

/* Its name, else its number in the data. */
static char *column_name(const struct set_info *data, uint64_t column) {
    if (data->feature_names)
        return memory_format("`%s`", data->feature_names[column]);
    return memory_format("%llu", (unsigned long long)data->feature_id[column]);
}

static void add_sentence(json_t *list, char *text) {
    json_array_append_new(list, text_to_json(text));
    free(text);
}

/* How far it is from the end: a tolerance that the gradient is within already is not what lacks. */
static void report_distance(json_t *list, const struct not_converged *end,
                            const struct coordinator_view *view) {
    double largest = last_point(view).gradient_max;
    bool gap_lacks = end->gap->known && !gap_is_small(end->gap);
    if (gap_lacks)
        add_sentence(list, memory_format("the loss (%.6g) may be %.2g above its minimum, by an "
                                         "estimate; within %.2g it would count as converged",
                                         end->loss, end->gap->estimate, end->gap->allowed));
    if (gap_lacks && largest <= view->gradient_tolerance)
        return;
    if (view->gradient_tolerance > 0 && largest > view->gradient_tolerance)
        add_sentence(
            list, memory_format("the largest component of the gradient is still %.3g, %.3g times "
                                "gradient_tolerance",
                                largest, largest / view->gradient_tolerance));
    else
        add_sentence(list,
                     memory_format("the largest component of the gradient is still %.3g", largest));
}

/* Whether that is said. */
static bool report_scales(json_t *list, const struct not_converged *end) {
    const struct set_info *data = end->data;
    struct scales scales;
    if (end->scaling->standardised || end->scaling->diagonal || end->scaling->sized ||
        !scales_of(data, end->moments, &scales))
        return false;
    double decades = log10(scales.largest_mean / scales.least_mean);
    if (decades < DECADES_WORTH_SAYING)
        return false;
    char *largest = column_name(data, scales.largest), *least = column_name(data, scales.least);
    add_sentence(
        list,
        memory_format("the scales of columns differ by 10^%.0f: values of column %s are about "
                      "%.1g, those of column %s about %.1g; standardise = true scales all columns "
                      "alike: that helps most",
                      decades, largest, scales.largest_mean, least, scales.least_mean));
    free(largest);
    free(least);
    return true;
}

static void report_tolerance(json_t *list, const struct not_converged *end,
                             const struct coordinator_view *view) {
    const struct job *job = end->job;
    double gradient = fmin(job->gradient_tolerance, last_point(view).gradient_max);
    if (view->reason == REASON_LOSS_TOLERANCE)
        add_sentence(list,
                     memory_format("loss_tolerance = 0 (it was %g) goes on while the loss falls "
                                   "slowly, for max_steps (%llu) at most",
                                   job->loss_tolerance, (unsigned long long)job->max_steps));
    else
        add_sentence(list,
                     memory_format("gradient_tolerance = %.0e comes nearer (it was %g)",
                                   gradient * sqrt(end->gap->allowed / end->gap->estimate) / 2,
                                   job->gradient_tolerance));
}

static void report_remedy(json_t *list, const struct coordinator_view *view, const struct job *job,
                          const char *command) {
    bool goes_on = command[0] == 'r' && command[1] == 'u'; /* "run"; `retrain` trains anew */
    const char *then = goes_on ? ": the same command goes on" : " for the next training";
    if (view->reason == REASON_STEP_LIMIT)
        add_sentence(list, memory_format("raise max_steps (%llu)%s",
                                         (unsigned long long)job->max_steps, then));
    else if (view->reason == REASON_TIME_LIMIT)
        add_sentence(list, memory_format("raise max_seconds (%g)%s", job->max_seconds, then));
    else if (view->reason == REASON_EPOCH_LIMIT)
        add_sentence(
            list, memory_format("minibatches alone come near the optimum, not to it: raise "
                                "downpour.epochs (%u)%s; let L-BFGS follow (start = downpour); or, "
                                "if the loss of epochs does not fall, lower downpour.rate (%g)",
                                job->downpour.epochs, then, view->downpour.rate));
    else if (job_family(job)->no_lower_loss)
        add_sentence(list, job_family(job)->no_lower_loss(job, view->answer.loss));
    else
        add_sentence(list,
                     memory_format("no step found a lower loss than %.12g: it may be as low as "
                                   "rounding allows, and then a larger gradient_tolerance or "
                                   "loss_tolerance is reached",
                                   view->answer.loss));
    if (job->optimizer == JOB_DOWNPOUR)
        return;
    add_sentence(list,
                 memory_format("a larger l2 (it is %g) or a looser gradient_tolerance (%g) or "
                               "loss_tolerance (%g) needs fewer steps",
                               job->l2.value, job->gradient_tolerance, job->loss_tolerance));
}

/* Below this loss, without a penalty, it is asked whether the classes are separable. */
#define SEPARABLE_LOSS 1e-3
/* As long as weights of separable classes grow, each step takes at least this share of it away. */
#define SEPARABLE_FALL 1e-2

/* A wrong answer costs log 2 or more in each of the losses of probabilities. So where all rows
 * together cost less, all answers are right, and the weights can grow for ever. Where the rows are
 * more, or have weights, the loss falls at a tolerance only if they grow. */
bool convergence_is_separable(const struct job *job, const struct set_info *data,
                              const struct coordinator_view *view) {
    const struct objective *objective = objective_of(job->objective);
    bool tells_probabilities = objective->labels != LABEL_TARGET && objective->predict;
    bool seeks_optimum = job->optimizer == JOB_LBFGS && job_family(job)->family->convex;
    if (!tells_probabilities || !seeks_optimum || job->l1.value > 0 || job->l2.value > 0 ||
        !(view->loss < SEPARABLE_LOSS))
        return false;
    bool all_right = !data->weighted && view->loss * (double)data->rows < log(2);
    return all_right ||
           (reason_claims_optimum(view->reason) && view->fall > SEPARABLE_FALL * view->loss);
}

/* Stored values of columns, at most, of which some tens of passes are no matter. */
#define VALUES_LOOKED_AT 2e7

bool convergence_may_run_away(const struct job *job, const struct set_info *data,
                              enum reason reason) {
    const struct objective *objective = objective_of(job->objective);
    bool convex = job_family(job)->family->convex && objective->distribution && objective->second;
    return convex && job->optimizer == JOB_LBFGS && reason_claims_optimum(reason) &&
           !(job->l1.value > 0) && !(job->l2.value > 0) && !data->strip_columns &&
           (double)data->values <= VALUES_LOOKED_AT;
}

/* Columns that are named, at most. */
#define RUNAWAYS_NAMED 3

/* False if no estimate is known to run away. */
static bool report_runaways(json_t *list, const struct not_converged *end) {
    const struct set_info *data = end->data;
    const struct objective *objective = objective_of(end->job->objective);
    uint64_t weights = objective->output_a_class ? data->classes : 1, named = 0;
    char *names = memory_copy_string("");
    for (uint64_t j = 0; end->runs_away && j < data->features; j++) {
        bool any = false;
        for (uint64_t k = 0; k < weights; k++)
            any |= end->runs_away[j * weights + k];
        if (!any || ++named > RUNAWAYS_NAMED)
            continue;
        char *name = column_name(data, j);
        char *longer = memory_format("%s%s%s", names, named > 1 ? ", " : "", name);
        free(name);
        free(names);
        names = longer;
    }
    if (named)
        add_sentence(
            list,
            memory_format("there is no optimum: rows in which column %s%s has a value have the "
                          "same %s without exception, and no smaller tolerance comes nearer; l2 "
                          "= auto or a number makes the estimates finite, or csv.skip leaves "
                          "the column out",
                          names, named > RUNAWAYS_NAMED ? ", ..." : "",
                          objective->labels == LABEL_TARGET ? "label, 0," : "class"));
    free(names);
    return named > 0;
}

/* False unless it is known that a column nearly follows from others. */
static bool report_nearly(json_t *list, const struct not_converged *end) {
    if (!end->nearly)
        return false;
    char *name = column_name(end->data, end->nearly->weakest);
    if (end->nearly->late)
        add_sentence(list,
                     memory_format("column %s nearly follows from those before it, and max_seconds "
                                   "(%g) ended the search for the optimum in twice the precision: "
                                   "raise max_seconds, and train again with --fresh",
                                   name, end->job->max_seconds));
    else
        add_sentence(
            list,
            memory_format("column %s nearly follows from those before it: %.1g of its deviation "
                          "is its own, which weights as doubles do not resolve; csv.skip "
                          "leaves it out, a larger l2 (%g) makes the estimates sound, and "
                          "powers of a column are best taken of its difference from a value "
                          "in its middle (year - 1960)",
                          name, end->nearly->own, end->job->l2.value));
    free(name);
    return true;
}

static void report_separable(json_t *list) {
    add_sentence(list,
                 memory_copy_string("the classes are separable: without a penalty there is no "
                                    "optimum; l2 = auto or a number"));
}

/* Explains the end of a run that reached a tolerance before it converged. */
static void report_early_end(json_t *list, const struct not_converged *end,
                             const struct coordinator_view *view) {
    if (convergence_is_separable(end->job, end->data, view)) {
        report_separable(list);
        return;
    }
    if (report_runaways(list, end))
        return;
    /* The run says that it is at the optimum, and is not. */
    add_sentence(
        list, memory_format("the loss (%.6g) may be %.2g above its minimum, an estimate from the "
                            "gradient with each column in its own scale; within %.2g it would "
                            "count as converged",
                            end->loss, end->gap->estimate, end->gap->allowed));
    if (report_nearly(list, end))
        return;
    if (!report_scales(list, end)) {
        bool scaled = end->scaling->standardised || end->scaling->diagonal || end->scaling->sized ||
                      end->preconditioned || end->data->strip_columns ||
                      scaling_is_of_one_unit(end->data, end->moments);
        add_sentence(
            list, memory_format("columns may be nearly collinear, or classes almost separable: a "
                                "larger l2 (%g)%s helps",
                                end->job->l2.value,
                                scaled ? "" : ", standardise = true or precondition = diagonal"));
    }
    report_tolerance(list, end, view);
}

json_t *not_converged_json(const struct not_converged *end) {
    const struct coordinator_view view = coordinator_view(end->coordinator);
    json_t *list = json_array();
    assert(end->job && end->data && end->moments && end->scaling && end->gap);
    if (reason_claims_optimum(view.reason)) {
        report_early_end(list, end, &view);
        return list;
    }
    report_distance(list, end, &view);
    const bool separable = convergence_is_separable(end->job, end->data, &view);
    if (!separable && report_nearly(list, end))
        return list;
    report_scales(list, end);
    if (separable)
        report_separable(list);
    report_remedy(list, &view, end->job, end->command);
    return list;
}

void not_converged_log(const json_t *result) {
    size_t i;
    json_t *text;
    const json_t *list = json_object_get(result, "shortfall");
    if (!list)
        return;
    log_warning("not converged: the run ended after %lld steps: %s", member_count(result, "steps"),
                member_text(result, "reason"));
    json_array_foreach(list, i, text) log_warning("not converged: %s", json_string_value(text));
}

bool not_converged_at_all(const json_t *result) {
    return !strcmp(member_text(result, "reason"), reason_text(REASON_TIME_LIMIT)) &&
           !member_count(result, "steps");
}

int not_converged_strict(const json_t *result, bool strict) {
    if (!strict || !json_is_false(json_object_get(result, "converged")))
        return 0;
    return error_set(ERROR_NOT_CONVERGED,
                     "the run has not converged (%s), and --strict asks for status 1",
                     member_text(result, "reason"));
}

int convergence_diverged(const struct downpour_view *downpour) {
    return error_set(ERROR_DATA,
                     "the loss is not finite any more after minibatch %llu of epoch %llu: set "
                     "downpour.rate lower than %g; no model was written",
                     (unsigned long long)downpour->minibatch,
                     (unsigned long long)downpour->epoch + 1, downpour->rate);
}

/* Squares of larger values are beyond the range of doubles, or sums of them are. */
#define SQUARABLE 1e150

int convergence_not_finite(const struct set_info *data, const struct job *job, bool from_model) {
    uint64_t largest = 0; /* the column whose exponent leaves most room for the sum of its values */
    for (uint64_t j = 1; j < data->features; j++)
        if (data->exponent[j] < data->exponent[largest])
            largest = j;
    double typical =
        data->features ? fixed_absolute_sum(data->exponent[largest]) / (double)data->rows : 0;
    char *seen, *name = NULL;
    if (job_family(job)->not_finite) {
        seen = job_family(job)->not_finite(job);
    } else if (typical > SQUARABLE) {
        name = column_name(data, largest);
        seen = memory_format("values of %s are about %.0e; scale the columns so that their squares "
                             "are numbers",
                             name, typical);
    } else if (data->labels == LABEL_TARGET) {
        seen = memory_format("labels are as large as %.3g; scale labels and columns so that their "
                             "squares are numbers",
                             data->label_max_abs);
    } else {
        seen = memory_copy_string("values are too large; scale the columns");
    }
    free(name);
    int code =
        error_set(ERROR_DATA,
                  "the loss or its gradient is not finite where the run starts: %s%s; no "
                  "model was written",
                  seen, from_model ? ", or start from zero (no --start, warm_start = off)" : "");
    free(seen);
    return code;
}
