/* How many common directions a run has, by what steps in their span cost beside those along lines
 * (doc/OPTIMIZERS.md). */
#include <assert.h>
#include <math.h>

#include "base/layout.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/family.h"
#include "coordinator/job/sizing.h"
#include "optimizer/span.h"

/* A leading block knows most of what older directions do. Without one each saves steps, and more of
 * them are taken as long as all together take little memory. */
#define DIRECTIONS_AUTO_MAX_WITH_BLOCK 20
#define DIRECTIONS_AUTO_MAX 40
#define DIRECTIONS_AUTO_MAX_SEVERAL 50 /* of several outputs, whose steps gain by each */
#define DIRECTIONS_AUTO_MAX_SMALL 80
#define DIRECTIONS_SMALL_BYTES 0x1p28

/* Fewer directions than this save less than they cost; with a leading block few are enough. */
#define DIRECTIONS_LEAST 20
#define DIRECTIONS_LEAST_WITH_BLOCK 5

/* More pairs help a direction little where steps have a window besides: but they do help, where
 * vectors are so short that pairs cost nothing. */
#define HISTORY_BESIDE_DIRECTIONS 2
#define HISTORY_BESIDE_DIRECTIONS_SEVERAL 5 /* of several outputs; fewer were not measured */
#define PARAMETERS_THAT_COST (1u << 15)
#define NUMBERS_THAT_COST (1u << 18) /* of a vector of rows */

/* Passes with fewer products than this would wait for rounds most of the time. */
#define PRODUCTS_WORTH_ROUNDS 4e5

/* A step in the span takes at most so many times as long as one along a line; about half as many
 * do. Of rows with several outputs more directions save more. */
#define SPAN_STEP 1.6
#define SPAN_STEP_SEVERAL 2.0

/* Nanoseconds, about: for a product of a pass, whose elements lie anywhere where a sparse row has
 * one output, beside one another where it has several, and in matrices where rows are dense; for a
 * parameter of a step, and an element of a stored vector that is read, of columns or of rows; and
 * in the span for a loss, and a product of the matrix. A step takes about so many trials and
 * matrices, and reads each pair READS_OF_A_PAIR times and a direction twice. */
#define PRODUCT_APART_NS 1.5
#define PRODUCT_BESIDE_NS 0.5
#define PRODUCT_DENSE_NS 0.25
#define PRODUCT_OF_MATRICES_NS 0.08
#define PARAMETER_NS 12.0
#define STORED_NS 0.25
#define ROW_LOSS_NS 10.0
#define ROW_SECOND_NS 0.14
#define TRIALS_A_STEP 2
#define MATRICES_A_STEP 0.4
#define READS_OF_A_DIRECTION 2

/* Whether steps in the span of so many directions beside `few` pairs are, rather than those along
 * lines with `pairs`. */
static bool is_worth_it(const struct set_info *data, const struct objective_shape *shape,
                        uint32_t count, uint32_t few, uint32_t pairs) {
    const bool several = shape->outputs > 1;
    assert(few <= pairs && count > 0);
    double outputs = shape->outputs, parameters = (double)objective_parameters(shape);
    double product = data->dense ? several ? PRODUCT_OF_MATRICES_NS : PRODUCT_DENSE_NS
                     : several   ? PRODUCT_BESIDE_NS
                                 : PRODUCT_APART_NS;
    double pass = 2 * product * (double)data->values * outputs;
    /* A step in the span, for a number of a vector of rows. Of many rows the matrix is of a sample
     * (optimizer/span.c). */
    double trial = 2 * count * STORED_NS + ROW_LOSS_NS;
    double second = (double)count * count / 2 * ROW_SECOND_NS * (several ? 2 : 1);
    second *= span_rate(count, data->rows, shape->outputs);
    double span = TRIALS_A_STEP * trial + MATRICES_A_STEP * second;
    double common = pass + parameters * PARAMETER_NS;
    double reads = READS_OF_A_PAIR * few + READS_OF_A_DIRECTION * count;
    double line = common + parameters * STORED_NS * READS_OF_A_PAIR * pairs;
    double step = common + parameters * STORED_NS * reads + (double)data->rows * outputs * span;
    return step <= line * (several ? SPAN_STEP_SEVERAL : SPAN_STEP);
}

/* How many pairs are kept beside directions, of the `pairs` that a run with line searches would
 * have: short vectors cost nothing. */
static uint32_t pairs_beside(const struct objective_shape *shape, uint32_t pairs) {
    bool cost = objective_parameters(shape) >= PARAMETERS_THAT_COST;
    uint32_t few =
        shape->outputs > 1 ? HISTORY_BESIDE_DIRECTIONS_SEVERAL : HISTORY_BESIDE_DIRECTIONS;
    return cost && pairs > few ? few : pairs;
}

/* The number of directions for data in tiles, whose steps are always in their span. */
#define DIRECTIONS_IN_TILES 10

/* The type of directions and of margins along them, of those that a job may have. The condition of
 * P is that of the Hessian: what rounding to floats adds to a direction where F curves little is
 * too much where it curves most. And where vectors are short, floats save nothing: of columns, and
 * of rows, too. */
static enum history_type type_beside(const struct set_info *data,
                                     const struct objective_shape *shape, enum precondition form,
                                     enum history_type type) {
    bool is_short = objective_parameters(shape) < PARAMETERS_THAT_COST &&
                    (double)data->rows * shape->outputs < NUMBERS_THAT_COST;
    return form == PRECONDITION_FULL || is_short ? HISTORY_DOUBLE : type;
}

static uint32_t directions_auto(const struct set_info *data, const struct objective_shape *shape,
                                enum precondition form, const struct sizing *sizing) {
    double outputs = shape->outputs, numbers = (double)data->rows * outputs;
    if (form == PRECONDITION_FULL || (double)data->values * outputs < PRODUCTS_WORTH_ROUNDS)
        return 0;
    /* Margins of the directions take as much as the set and the pairs of a run without at most. */
    double element = (double)history_size(type_beside(data, shape, form, sizing->history_type));
    double pairs = 2.0 * sizing->history * element * (double)objective_parameters(shape);
    /* A value of the set, as it is stored, about: with its column unless rows are dense. */
    size_t value = value_bytes(data->type) + (data->dense ? 0 : sizeof(uint32_t));
    double fit = ((double)value * (double)data->values + pairs) / (numbers * element);
    /* A direction is a vector of columns and one of rows. */
    double small =
        fmin(DIRECTIONS_SMALL_BYTES / (element * ((double)objective_parameters(shape) + numbers)),
             DIRECTIONS_AUTO_MAX_SMALL);
    double most =
        form == PRECONDITION_LEADING
            ? DIRECTIONS_AUTO_MAX_WITH_BLOCK
            : fmax(small, shape->outputs > 1 ? DIRECTIONS_AUTO_MAX_SEVERAL : DIRECTIONS_AUTO_MAX);
    uint32_t count = (uint32_t)fmin(fit, most);
    uint32_t least = form == PRECONDITION_LEADING ? DIRECTIONS_LEAST_WITH_BLOCK : DIRECTIONS_LEAST;
    uint32_t few = pairs_beside(shape, sizing->history);
    while (count >= least && !is_worth_it(data, shape, count, few, sizing->history))
        count--;
    return count < least ? 0 : count;
}

void sizing_directions(const struct job *job, const struct set_info *data,
                       const struct objective_shape *shape, enum precondition form,
                       struct sizing *sizing) {
    /* Margins must be what the data's rows and a point make alone, and their losses be known to
     * shards. */
    const struct objective *objective = objective_of(shape->kind);
    const bool can = family_of(shape) == &family_linear && objective->second && objective->convex &&
                     data->labels != LABEL_LISTS && !job_has_orthants(job) &&
                     !job_has_minibatches(job) && !job_inverts(job);
    sizing->directions = !can ? 0 : job->directions;
    if (sizing->directions == DIRECTIONS_AUTO) {
        const uint32_t count = directions_auto(data, shape, form, sizing);
        sizing->directions = count || !data->strip_columns ? count : DIRECTIONS_IN_TILES;
    }
    if (sizing->directions && !job->history)
        sizing->history = pairs_beside(shape, sizing->history);
    struct layout layout = objective_layout(shape);
    sizing->held = (double)layout_strip_most(&layout, data->strip_columns);
    if (sizing->directions)
        sizing->history_type = type_beside(data, shape, form, sizing->history_type);
    bool products = sizing->directions || data->strip_columns;
    sizing->upper = data->strip_columns && layout_upper(&layout).count;
    double numbers = sizing->upper ? (double)layout.tensor[0].columns : shape->outputs;
    assert(sizing->directions <= DIRECTIONS_MAX);
    sizing->row_numbers = products ? (double)set_vector_rows(data) * numbers : 0;
}
