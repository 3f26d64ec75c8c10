#include "coordinator/job/scaling.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/family.h"
#include "coordinator/job/sizing.h"
#include "numeric/fixed.h"

/* With `precondition = auto` there is a diagonal if the columns have at least so many values on
 * average, and if their scales differ at least by this factor. With l1 and without `standardise`
 * the factor does not count: the diagonal helps at any scales. bench/NOTES.md has the counts. */
#define VALUES_A_COLUMN 100.0
#define SPREAD_LEAST 100.0

/* A wide set may have one, too, if the mean |value| of a column is so large: no word is so frequent
 * in each row. It is known without reading the set. */
#define MEAN_LARGE 100.0

static bool may_be_diagonal(const struct job *job, const struct set_info *data,
                            enum precondition form) {
    if (job->precondition == PRECONDITION_DIAGONAL || form == PRECONDITION_LEADING)
        return true;
    if (job->precondition != PRECONDITION_AUTO || !job_family(job)->family->scales_columns ||
        form == PRECONDITION_FULL)
        return false;
    int16_t least = INT16_MAX; /* the column of the least exponent has the largest sum */
    for (uint64_t j = 0; j < data->features; j++)
        least = data->exponent[j] < least ? data->exponent[j] : least;
    return (double)data->values >= VALUES_A_COLUMN * (double)data->features ||
           (data->features && fixed_absolute_sum(least) >= MEAN_LARGE * (double)data->rows);
}

static bool may_be_sized(const struct job *job, const struct set_info *data) {
    return job_has_units(job) && data->type != VALUE_ONES;
}

bool scaling_needs_moments(const struct job *job, const struct set_info *data,
                           enum precondition form) {
    return data->features && !data->strip_columns &&
           (job_family(job)->family->unit_values || job->standardise || may_be_sized(job, data) ||
            may_be_diagonal(job, data, form) || job_has_penalties(job));
}

/* What is known of a column, and how the job wants it scaled. */
struct column {
    double mean, variance, density;
    bool standardised, bytes, diagonal, sized, centred; /* as in struct scaling */
    bool rooted;  /* the root of the density divides the variance */
    double ridge; /* l2/h */
};

/* A column that so many rows have is centred for minibatches, too. Of a rarer one the weight must
 * stay where it is if no row of a minibatch has the column. */
#define DENSITY_CENTRED 0.5

static struct column_scaling sized_column(const struct column *column) {
    const struct column_scaling as_it_is = {.scale = 1, .penalty = 1};
    bool centred = column->centred && column->density >= DENSITY_CENTRED && column->variance > 0;
    double square = column->variance;
    if (!centred)
        square = (square + column->mean * column->mean) / column->density;
    struct column_scaling found = {
        .mean = centred ? column->mean : 0, .scale = 1 / sqrt(square), .penalty = 1 / square};
    return column_scaling_is_valid(&found) ? found : as_it_is;
}

static struct column_scaling column_scaling_of(const struct column *column) {
    if (column->sized && !column->diagonal)
        return sized_column(column);
    double unit = column->standardised && column->variance > 0 ? sqrt(column->variance)
                  : column->bytes                              ? UINT8_MAX
                                                               : 1; /* is 1 when scaled */
    struct column_scaling found = {
        .mean = column->centred ? column->mean : 0, .scale = 1 / unit, .penalty = 1};
    if (!column->diagonal)
        return found;
    double spread = column->variance;
    if (!column->centred)
        spread += column->mean * column->mean;
    if (spread > 0 && column->rooted)
        spread /= sqrt(column->density);
    double curvature = spread + column->ridge * unit * unit;
    if (curvature > 0)
        found.scale = 1 / sqrt(curvature);
    found.penalty = unit * found.scale * (unit * found.scale);
    return found;
}

static char *name_of_column(const struct set_info *data, uint64_t j) {
    return data->feature_names
               ? memory_format("column %s", data->feature_names[j])
               : memory_format("feature %llu", (unsigned long long)data->feature_id[j]);
}

static int scale_columns(const struct set_info *data, const struct column *wanted,
                         const struct moments *moments, const struct column_rules *rules,
                         struct column_scaling *columns) {
    assert(moments->kind == MOMENTS_EXACT);
    for (uint64_t j = 0; j < data->features; j++) {
        struct column column = *wanted;
        if (rules && rules->factor)
            column.ridge *= rules->factor[j];
        column.mean = moments->mean[j];
        column.variance = moments->variance[j];
        column.density = (double)moments->nonzero[j] / (double)moments->rows;
        columns[j] = column_scaling_of(&column);
        if (rules && rules->low && (isfinite(rules->low[j]) || isfinite(rules->high[j]))) {
            /* A power of 2 scales bounds exactly. */
            double power = ldexp(1, ilogb(columns[j].scale)), ratio = power / columns[j].scale;
            columns[j].scale = power;
            columns[j].penalty *= ratio * ratio;
        }
        if (!column_scaling_is_valid(&columns[j])) {
            char *name = name_of_column(data, j);
            int code =
                error_set(ERROR_DATA,
                          "%s has values too large or too small to be scaled; leave it out, or "
                          "divide it",
                          name);
            free(name);
            return code;
        }
    }
    return 0;
}

/* By which factor the diagonal makes the scales of the weights that l2 acts on differ. Constant
 * columns are left out. */
static double spread_of(const struct set_info *data, const struct moments *moments,
                        const struct column_scaling *columns) {
    double least = INFINITY, most = 0;
    for (uint64_t j = 0; j < data->features; j++) {
        if (!(moments->variance[j] > 0))
            continue;
        least = fmin(least, columns[j].penalty);
        most = fmax(most, columns[j].penalty);
    }
    return sqrt(most / least);
}

/* The activations of a network bend where values are about 1, and saturate far above. */
#define DEVIATION_MOST 10.0

bool scaling_is_of_one_unit(const struct set_info *data, const struct moments *moments) {
    return !data->features || data->type == VALUE_BYTE ||
           moments_share_unit(moments, data->features);
}

static void warn_of_scales(const struct job *job, const struct set_info *data,
                           const struct moments *moments) {
    uint64_t widest = 0;
    if (!job_family(job)->family->unit_values || job->standardise ||
        scaling_is_of_one_unit(data, moments))
        return;
    for (uint64_t j = 1; j < data->features; j++)
        if (moments->variance[j] > moments->variance[widest])
            widest = j;
    double deviation = sqrt(moments->variance[widest]);
    if (!(deviation > DEVIATION_MOST))
        return;
    char *column = name_of_column(data, widest);
    log_warning("values of %s have a deviation of %.2g, and a network is made for values of "
                "about 1: standardise = true scales all columns alike",
                column, deviation);
    free(column);
}

int scaling_choose(const struct job *job, const struct set_info *data,
                   const struct objective_shape *shape, enum precondition form,
                   const struct moments *moments, const struct column_rules *rules,
                   struct scaling *scaling) {
    bool automatic = job->precondition == PRECONDITION_AUTO;
    bool unit_values = job_family(job)->family->unit_values;
    const struct column wanted = {
        .standardised = job->standardise,
        .bytes = unit_values && data->type == VALUE_BYTE,
        .diagonal = may_be_diagonal(job, data, form),
        .sized = may_be_sized(job, data),
        .rooted = form != PRECONDITION_LEADING,
        .centred = shape->intercept,
        .ridge = job->l2.value / sizing_second_first(data, shape),
    };
    *scaling = (struct scaling){.columns = memory_new(data->features, sizeof *scaling->columns),
                                .standardised = wanted.standardised,
                                .bytes = wanted.bytes,
                                .diagonal = wanted.diagonal};
    int code = scale_columns(data, &wanted, moments, rules, scaling->columns);
    bool needed = unit_values || job->standardise || wanted.sized ||
                  (!automatic && (wanted.diagonal || !job_has_penalties(job)));
    bool gains = job_has_orthants(job) && !job->standardise;
    if (wanted.diagonal && automatic && form != PRECONDITION_LEADING &&
        (code || (!gains && !(spread_of(data, moments, scaling->columns) >= SPREAD_LEAST)))) {
        error_clear();
        struct column plain = wanted;
        plain.diagonal = scaling->diagonal = false;
        code = needed ? scale_columns(data, &plain, moments, rules, scaling->columns) : 0;
    }
    scaling->sized = wanted.sized && !scaling->diagonal;
    bool any_differs = false; /* columns of codes are as they are */
    for (uint64_t j = 0; j < data->features && !code && scaling->sized; j++)
        any_differs |= scaling->columns[j].mean != 0 || scaling->columns[j].scale != 1;
    if (code || (!needed && !scaling->diagonal) || (scaling->sized && !any_differs))
        scaling_release(scaling);
    if (!code)
        warn_of_scales(job, data, moments);
    return code;
}

/* ---- rules of columns ---- */

static void scale_plainly(const struct set_info *data, struct scaling *scaling) {
    assert(!scaling->columns);
    scaling->columns = memory_new(data->features, sizeof *scaling->columns);
    scaling->plain = true;
    for (uint64_t j = 0; j < data->features; j++)
        scaling->columns[j] = (struct column_scaling){.scale = 1, .penalty = 1};
}

void scaling_add_rules(const struct set_info *data, const struct column_rules *rules, bool l1,
                       struct scaling *scaling) {
    if (rules->factor && !scaling->columns)
        scale_plainly(data, scaling);
    if (rules->low || (rules->factor && l1))
        scaling->limits = memory_new(data->features, sizeof *scaling->limits);
    /* Before penalties are multiplied: l1 acts on the weight as l2 would without a factor. */
    for (uint64_t j = 0; scaling->limits && j < data->features; j++) {
        const struct column_scaling as_it_is = {.scale = 1, .penalty = 1};
        const struct column_scaling *column = scaling->columns ? &scaling->columns[j] : &as_it_is;
        const double factor = !l1 ? 0 : rules->factor ? rules->factor[j] : 1;
        scaling->limits[j] =
            (struct column_limit){.lasso = factor * sqrt(column->penalty),
                                  .low = rules->low ? rules->low[j] / column->scale : -INFINITY,
                                  .high = rules->high ? rules->high[j] / column->scale : INFINITY};
    }
    for (uint64_t j = 0; rules->factor && j < data->features; j++)
        scaling->columns[j].penalty *= rules->factor[j];
}

bool job_may_centre(const struct job *job) {
    return job->intercept && !job_family(job)->family->own_tensors;
}

void scaling_add_centres(const struct set_info *data, struct scaling *scaling) {
    if (!data->centre)
        return;
    if (!scaling->columns)
        scale_plainly(data, scaling);
    scaling->of_data = memory_new(data->features, sizeof *scaling->of_data);
    for (uint64_t j = 0; j < data->features; j++) {
        scaling->of_data[j] = scaling->columns[j];
        scaling->of_data[j].mean += data->centre[j];
        scaling->columns[j].centre = data->centre[j];
    }
}

#define CENTRES_BITS 18

uint32_t scaling_form(const struct scaling *scaling, const struct set_info *data, double unit) {
    uint32_t doublings = unit > 0 ? (uint32_t)(ilogb(unit) + 1024) % 1024 : 0; /* 0 of 1 */
    uint32_t columns = scaling->columns
                           ? (uint32_t)scaling->standardised + 2 * (uint32_t)scaling->diagonal +
                                 4 * (uint32_t)scaling->bytes + 8192 * (uint32_t)scaling->sized
                           : 0;
    uint64_t hash = 0; /* of which columns have which centres */
    for (uint64_t j = 0; data->centre && j < data->features; j++) {
        struct {
            uint64_t before, id;
            double centre;
        } next = {hash, data->feature_id[j], data->centre[j]};
        if (next.centre != 0)
            hash = hash64(&next, sizeof next);
    }
    uint32_t centres = hash ? (uint32_t)(hash % ((1u << CENTRES_BITS) - 1)) + 1 : 0;
    return columns + 8 * doublings + 16384 * centres;
}

void scaling_release(struct scaling *scaling) {
    free(scaling->columns);
    free(scaling->limits);
    free(scaling->of_data);
    *scaling = (struct scaling){0};
}
