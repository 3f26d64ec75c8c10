#include "model/collinear.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "model/summary.h"
#include "numeric/exact.h"
#include "numeric/orthogonal.h"
#include "objective/objective.h"

/* Rows that collinear_look() takes, at most. */
#define ROWS_LOOKED_AT(columns) ((columns) + 32)

/* A column nearly follows from others if so little of its deviation is its own: where a factor of
 * sums in doubles hides it (shard/factor_make.c), or a summary takes it as aliased. A few rows may
 * show four times as much. */
#define NEAR 0x1p-18
#define NEAR_IN_SAMPLE 0x1p-16

/* What is left of a column is but the rounding of its values if it is so small beside those of the
 * columns that it follows from, and 0 but for that of this arithmetic. */
#define ROUNDED 0x1p-49
#define EXACT 0x1p-80

#define STEPS_MAX 60
#define HALVINGS_MAX 30
/* A step is the last if it promises less than this share of the loss; and with more than the second
 * the optimum was not found. */
#define STEP_LEAST 1e-18
#define GAP_MOST 1e-9
/* The loss of a step may be so much higher by rounding. */
#define LOSS_ROUNDING 1e-14

/* Positions are those of R: biases first, then the weights of each column; of outputs the last
 * before the first, so that what follows from others is of the first class. */
struct collinear {
    struct set *set;
    const struct model_layout *layout;
    const struct objective *objective;
    const double *ridge;
    uint32_t outputs, weights; /* of a row, and of a column */
    size_t order, biases;      /* positions, and how many of them are biases */
    enum collinear_kind *kind;
    struct doubled *weight; /* owned, as all of these */
    struct doubled *gradient;
    struct doubled *row;
    double *value;            /* of a row, by columns */
    double *size;             /* √Σ w·s·x², with x as the data have it */
    struct orthogonal factor; /* RᵀR = H + Λ over what is of no other kind than COLLINEAR_NOT */
    struct doubled
        *parts;         /* order × order: what a column that is left out has of those before it */
    double *slope;      /* of a row: margins, then derivatives; owned, as the next */
    double *work, *has; /* as losses take it; the classes of a row with a list */
    double *second;     /* outputs × outputs */
    struct doubled *part; /* of the second derivatives of a row: take_part() */
    struct exact sum;     /* of losses */
    double loss;          /* Σ w·ℓ and the penalty */
    double alike;         /* the second derivative of all rows; 0: each has its own */
    bool extreme;         /* squares of values are not in the range of doubles */
    bool expected;        /* s is the expectation of the second derivative */
};

/* The output whose weight or bias is at a position, and for a weight its column. */
static uint32_t output_of(const struct collinear *c, size_t position) {
    return position < c->biases ? c->outputs - 1 - (uint32_t)position
                                : c->weights - 1 - (uint32_t)((position - c->biases) % c->weights);
}

static size_t column_of(const struct collinear *c, size_t position) {
    return (position - c->biases) / c->weights;
}

static uint64_t element_of(const struct collinear *c, size_t position) {
    uint64_t first = position < c->biases ? c->layout->features : column_of(c, position);
    return first * c->weights + output_of(c, position);
}

static size_t position_of(const struct collinear *c, uint64_t element) {
    uint64_t before = c->layout->features * c->weights;
    return element < before
               ? c->biases + (size_t)(element + c->weights - 1 - 2 * (element % c->weights))
               : c->outputs - 1 - (size_t)(element - before);
}

static double ridge_at(const struct collinear *c, size_t position) {
    return c->ridge ? c->ridge[element_of(c, position)] : 0;
}

static double centre_at(const struct collinear *c, size_t position) {
    const double *centre = set_info(c->set)->centre;
    return centre && position >= c->biases ? centre[column_of(c, position)] : 0;
}

static double value_of(const struct collinear *c, size_t position) {
    return position < c->biases ? 1 : c->value[column_of(c, position)];
}

static double total_weight(const struct collinear *c) {
    const struct set_info *info = set_info(c->set);
    return ldexp(info->weight_sum, -info->weight_exponent);
}

bool collinear_can(const struct set_info *info, const struct model_layout *layout) {
    const struct objective *objective = objective_find(layout->objective);
    if (!objective->convex || !objective->second || info->strip_columns)
        return false;
    double parameters = (double)model_parameters(layout);
    return parameters <= COLLINEAR_PARAMETERS_MAX && (double)info->values <= COLLINEAR_VALUES_MAX &&
           (double)info->rows * layout->outputs * parameters * parameters <= COLLINEAR_WORK_MAX;
}

static struct collinear *new_of(struct set *set, const struct model_layout *layout,
                                uint32_t outputs, uint32_t weights, const double *ridge) {
    struct collinear *c = memory_new(1, sizeof *c);
    const size_t biases = layout->intercept ? outputs : 0;
    const size_t order = biases + (size_t)layout->features * weights;
    *c = (struct collinear){.set = set,
                            .layout = layout,
                            .objective = objective_find(layout->objective),
                            .ridge = ridge,
                            .outputs = outputs,
                            .weights = weights,
                            .order = order,
                            .biases = biases,
                            .kind = memory_new(order, sizeof *c->kind),
                            .weight = memory_new(order, sizeof *c->weight),
                            .gradient = memory_new(order, sizeof *c->gradient),
                            .row = memory_new(order, sizeof *c->row),
                            .value = memory_new(layout->features, sizeof *c->value),
                            .size = memory_new(order, sizeof *c->size),
                            .parts = memory_new(order * order, sizeof *c->parts),
                            .slope = memory_new(outputs, sizeof *c->slope),
                            .work = memory_new(outputs, sizeof *c->work),
                            .has = memory_new(outputs, sizeof *c->has),
                            .second = memory_new((size_t)outputs * outputs, sizeof *c->second),
                            .part = memory_new(outputs, sizeof *c->part),
                            .factor = orthogonal_new(order)};
    return c;
}

struct collinear *collinear_new(struct set *set, const struct model_layout *layout,
                                const double *parameters, const double *ridge) {
    assert(collinear_can(set_info(set), layout));
    struct collinear *c = new_of(set, layout, layout->outputs, model_rows(layout), ridge);
    assert(c->order == model_parameters(layout));
    for (size_t j = 0; j < c->order; j++)
        c->weight[j] = doubled_of(parameters[element_of(c, j)]);
    return c;
}

void collinear_free(struct collinear *c) {
    if (!c)
        return;
    free(c->kind);
    free(c->weight);
    free(c->gradient);
    free(c->row);
    free(c->value);
    free(c->size);
    free(c->parts);
    free(c->slope);
    free(c->work);
    free(c->has);
    free(c->second);
    free(c->part);
    orthogonal_release(&c->factor);
    free(c);
}

/* ---- rows ---- */

static void read_values(struct collinear *c, const struct rows *rows, uint32_t i) {
    size_t begin = rows->dense ? (size_t)i * rows->features : rows->start[i];
    size_t end = rows->dense ? begin + rows->features : rows->start[i + 1];
    memset(c->value, 0, c->layout->features * sizeof *c->value);
    for (size_t at = begin; at < end; at++)
        c->value[rows->dense ? at - begin : rows->feature[at]] =
            value_at(rows->type, rows->value, at);
}

static double weight_of(const struct collinear *c, const struct rows *rows, uint32_t i) {
    return rows->weight ? ldexp(rows->weight[i], -set_info(c->set)->weight_exponent) : 1;
}

/* The margins of the row whose values were read. */
static void find_margins(const struct collinear *c, double offset, double *margins) {
    for (uint32_t k = 0; k < c->outputs; k++) {
        struct doubled margin = doubled_of(offset);
        for (size_t j = 0; j < c->order; j++) {
            bool own = output_of(c, j) == k || (j >= c->biases && c->weights < c->outputs);
            if (own && value_of(c, j) != 0)
                margin = doubled_plus(margin, c->weight[j], doubled_of(value_of(c, j)));
        }
        margins[k] = doubled_value(margin);
    }
}

static const double *label_of(struct collinear *c, const double *label) {
    const struct label_lists *lists = set_info(c->set)->lists;
    if (!lists)
        return label;
    memset(c->has, 0, c->outputs * sizeof *c->has);
    for (uint32_t at = lists->start[(size_t)*label]; at < lists->start[(size_t)*label + 1]; at++)
        c->has[lists->class[at]] = 1;
    return c->has;
}

/* The loss of a row with the margins in `slope`, which become its derivatives; and its second
 * derivatives. */
static double differentiate(struct collinear *c, const double *label) {
    const struct objective *objective = c->objective;
    const struct loss_parameters *loss = &c->layout->loss;
    const uint32_t outputs = c->outputs;
    double value;
    objective->losses(loss, 1, outputs, label_of(c, label), c->slope, &value, c->work);
    if (outputs == 1)
        objective->second(loss, 1, 1, label, c->slope, c->work, c->second);
    if (outputs == 1 && c->expected && objective->expected)
        objective->expected(loss, 1, c->slope, c->second); /* from those that it replaces */
    for (uint32_t k = 0; k < outputs && outputs > 1; k++)
        objective->second_row(outputs, *label, c->slope, k, c->second + k * outputs);
    return value;
}

/* What is left of a diagonal element of second derivatives is 0 but for rounding. */
#define SECOND_ROUNDING 1e-14

/* Takes Cholesky's next part out of the second derivatives, from the last output on: a vector v of
 * those that remain, S = vvᵀ + the rest. False if there is none. What all outputs of a softmax
 * share changes no loss, so the sum of v is exactly 0 there. */
static bool take_part(struct collinear *c, uint32_t i, double diagonal) {
    assert(i < c->outputs);
    const uint32_t outputs = c->outputs;
    const struct distribution *distribution = c->objective->distribution;
    double own = c->second[i * outputs + i];
    bool gauge = distribution && distribution->identified_but_for_a_class;
    if (!(own > SECOND_ROUNDING * diagonal) || (gauge && i == 0))
        return false;
    struct doubled sum = doubled_of(0);
    for (uint32_t k = 0; k < outputs; k++) {
        double part = k > i ? 0 : k == i ? sqrt(own) : c->second[i * outputs + k] / sqrt(own);
        c->part[k] = gauge && k == 0 ? doubled_of(0) : doubled_of(part);
        sum = doubled_add(sum, c->part[k]);
    }
    if (gauge)
        c->part[0] = doubled_negative(sum);
    for (uint32_t k = 0; k < i; k++)
        for (uint32_t l = 0; l < i; l++)
            c->second[k * outputs + l] -= c->part[k].high * c->part[l].high;
    return true;
}

/* What the outputs at a position have of `part`: weights that all of them share have the sum. */
static struct doubled part_of(const struct collinear *c, size_t position) {
    if (position < c->biases || c->weights == c->outputs)
        return c->part[output_of(c, position)];
    struct doubled sum = doubled_of(0);
    for (uint32_t k = 0; k < c->outputs; k++)
        sum = doubled_add(sum, c->part[k]);
    return sum;
}

/* Whether the square of a value is in the range of doubles, and so is what twice the precision adds
 * to it. */
static bool is_ordinary(double value) {
    return fabs(value) > 1e-120 && fabs(value) < 1e120;
}

/* Adds a part of the second derivatives of a row to the factor. */
static void add_part(struct collinear *c, double weight) {
    const struct doubled root = doubled_of(sqrt(weight));
    for (size_t j = 0; j < c->order; j++) {
        double x = value_of(c, j), raw = x + centre_at(c, j);
        const struct doubled part = doubled_times(root, part_of(c, j));
        c->size[j] += part.high * part.high * raw * raw;
        c->extreme |= x != 0 && part.high != 0 && !is_ordinary(part.high * x);
        c->row[j] = c->kind[j] == COLLINEAR_NOT && x != 0 ? doubled_times(part, doubled_of(x))
                                                          : doubled_of(0);
    }
    orthogonal_add(&c->factor, c->row);
}

/* Adds the row whose values were read. */
static void add_row(struct collinear *c, const double *label, double offset, double weight) {
    assert(c->alike == 0 || c->outputs == 1);
    if (c->alike > 0) {
        c->part[0] = doubled_of(sqrt(c->alike));
        add_part(c, weight);
        return;
    }
    find_margins(c, offset, c->slope);
    exact_add(&c->sum, weight * differentiate(c, label));
    for (size_t j = 0; j < c->order; j++) {
        double slope = c->slope[output_of(c, j)];
        for (uint32_t k = 1; j >= c->biases && c->weights < c->outputs && k < c->outputs; k++)
            slope += c->slope[k];
        if (c->kind[j] == COLLINEAR_NOT)
            c->gradient[j] =
                doubled_add(c->gradient[j], doubled_product(weight * slope, value_of(c, j)));
    }
    for (uint32_t i = c->outputs; i-- > 0;) {
        double diagonal = 0;
        for (uint32_t k = 0; k < c->outputs; k++)
            diagonal = fmax(diagonal, c->second[k * c->outputs + k]);
        if (take_part(c, i, diagonal))
            add_part(c, weight);
    }
}

/* The penalty on a share of the rows. */
static void add_penalty(struct collinear *c, double share) {
    for (size_t j = 0; j < c->order; j++) {
        const struct doubled ridge = doubled_of(share * ridge_at(c, j)), w = c->weight[j];
        if (!(ridge.high > 0))
            continue;
        exact_add(&c->sum, ridge.high / 2 * w.high * w.high);
        if (c->kind[j] != COLLINEAR_NOT)
            continue;
        memset(c->row, 0, c->order * sizeof *c->row);
        c->row[j] = doubled_root(ridge);
        c->gradient[j] = doubled_plus(c->gradient[j], ridge, w);
        orthogonal_add(&c->factor, c->row);
    }
}

/* Takes `rows` of the training rows, evenly spread, at the weights: loss, gradient and factor. */
static int take_rows(struct collinear *c, uint64_t rows) {
    const struct set_info *info = set_info(c->set);
    uint64_t taken = 0;
    int code = 0;
    orthogonal_clear(&c->factor);
    exact_init(&c->sum);
    for (size_t j = 0; j < c->order; j++) {
        c->gradient[j] = doubled_of(0);
        c->size[j] = 0;
    }
    for (uint32_t chunk = 0; chunk < set_training_chunks(info) && !code; chunk++) {
        struct rows own = {0};
        code = set_chunk(c->set, chunk, &own);
        for (; !code && taken < rows; taken++) {
            uint64_t row = taken * info->rows / rows;
            if (row >= own.first + own.count)
                break;
            uint32_t i = (uint32_t)(row - own.first);
            double weight = weight_of(c, &own, i);
            if (!(weight > 0))
                continue;
            read_values(c, &own, i);
            add_row(c, own.label + i, own.offset ? own.offset[i] : 0, weight);
        }
    }
    add_penalty(c, (double)rows / (double)info->rows);
    c->loss = exact_value(&c->sum);
    for (size_t j = 0; j < c->order; j++)
        c->size[j] = sqrt(c->size[j]);
    return code;
}

/* ---- what follows from what ---- */

static struct doubled at(const struct collinear *c, size_t row, size_t column) {
    return c->factor.element[row * c->order + column];
}

/* The length of a column without its mean, or of a bias. */
static double deviation_of(const struct collinear *c, size_t j) {
    double square = 0;
    for (size_t row = j < c->biases ? 0 : c->biases; row <= j; row++)
        square += at(c, row, j).high * at(c, row, j).high;
    return sqrt(square);
}

/* What it is beside those before it; finds what it has of each of them. */
static enum collinear_kind find_kind(struct collinear *c, size_t j) {
    struct doubled *part = c->parts + j * c->order;
    double own = at(c, j, j).high, size = c->size[j];
    for (size_t k = 0; k < j; k++)
        part[k] = at(c, k, j);
    orthogonal_solve(&c->factor, j, part);
    for (size_t k = 0; k < j; k++)
        size += fabs(part[k].high) * c->size[k];
    return !(own > EXACT * size)     ? COLLINEAR_EXACTLY
           : !(own > ROUNDED * size) ? COLLINEAR_ROUNDED
                                     : COLLINEAR_NOT;
}

/* Its weight goes to the columns that it follows from. */
static void restate(const struct collinear *c, size_t j, struct doubled *weight) {
    assert(j < c->order);
    for (size_t k = 0; k < j; k++)
        weight[k] = doubled_plus(weight[k], c->parts[j * c->order + k], weight[j]);
    weight[j] = doubled_of(0);
}

/* Sorts the columns out; returns whether one nearly follows from others. */
static bool sort_out(struct collinear *c, double near, struct collinear_fit *fit) {
    bool any = false;
    *fit = (struct collinear_fit){.parameters = fit->parameters, .own = INFINITY};
    for (size_t j = 0; j < c->order; j++) {
        c->kind[j] = find_kind(c, j);
        if (c->kind[j] == COLLINEAR_ROUNDED)
            restate(c, j, c->weight);
        any |= c->kind[j] == COLLINEAR_ROUNDED;
        if (c->kind[j] != COLLINEAR_NOT) {
            orthogonal_leave_out(&c->factor, j);
            continue;
        }
        double own = at(c, j, j).high / deviation_of(c, j);
        any |= own < near;
        if (own < fit->own && j >= c->biases) {
            fit->own = own;
            fit->weakest = column_of(c, j);
        }
    }
    return any;
}

int collinear_look(struct set *set, const struct model_layout *layout, const double *ridge,
                   double second, bool *near) {
    const uint64_t all = set_info(set)->rows, weights = model_rows(layout);
    double *of_columns = memory_new(layout->features + 1, sizeof *of_columns); /* a bias has none */
    for (uint64_t j = 0; j < layout->features && ridge; j++)
        of_columns[j] = ridge[j * weights];
    struct collinear *c = new_of(set, layout, 1, 1, ridge ? of_columns : NULL);
    struct collinear_fit fit = {0};
    const uint64_t some = ROWS_LOOKED_AT(c->order);
    c->alike = second;
    int code = take_rows(c, all < some ? all : some);
    *near = !code && !c->extreme && sort_out(c, NEAR_IN_SAMPLE, &fit);
    collinear_free(c);
    free(of_columns);
    return code;
}

enum collinear_kind collinear_kind_of(const struct collinear *c, uint64_t element) {
    assert(element < c->order);
    return c->kind[position_of(c, element)];
}

/* ---- Newton's steps ---- */

/* step = −(H + Λ)⁻¹·gradient; returns how far F falls with it, if F is a parabola. */
static double find_step(const struct collinear *c, struct doubled *step) {
    double square = 0;
    for (size_t j = 0; j < c->order; j++)
        step[j] = doubled_negative(c->gradient[j]);
    orthogonal_solve_transposed(&c->factor, c->order, step);
    for (size_t j = 0; j < c->order; j++)
        square += step[j].high * step[j].high;
    orthogonal_solve(&c->factor, c->order, step);
    return square / 2;
}

/* Goes along the step, the less the less F falls. *fell: it does not rise with so much of it. */
static int go(struct collinear *c, const struct doubled *step, bool *fell) {
    struct doubled *from = memory_new(c->order, sizeof *from);
    const double before = c->loss, most = before + LOSS_ROUNDING * fabs(before);
    double length = 1;
    int code = 0;
    memcpy(from, c->weight, c->order * sizeof *from);
    *fell = false;
    for (int i = 0; i <= HALVINGS_MAX && !code && !*fell; i++, length /= 2) {
        for (size_t j = 0; j < c->order; j++)
            c->weight[j] = doubled_plus(from[j], doubled_of(length), step[j]);
        code = take_rows(c, set_info(c->set)->rows);
        *fell = c->loss <= most;
    }
    free(from);
    return code;
}

/* *left: how far F is above its minimum. */
static int descend(struct collinear *c, double least, int64_t until_ns, double *left, bool *late) {
    struct doubled *step = memory_new(c->order, sizeof *step);
    bool fell = true;
    int code = 0;
    for (int i = 0; i < STEPS_MAX && !code && fell; i++) {
        *left = find_step(c, step);
        if (!(*left > STEP_LEAST * fmax(c->loss, least)) || !isfinite(*left))
            break;
        *late = clock_monotonic_ns() >= until_ns;
        if (*late)
            break;
        code = go(c, step, &fell);
    }
    free(step);
    return code;
}

/* The margins of the row whose values were read, as doubles predict them by these parameters of the
 * data. */
static void predict_margins(const struct collinear *c, const double *parameters, double offset,
                            double *margins) {
    for (uint32_t k = 0; k < c->outputs; k++) {
        const uint32_t by = c->weights < c->outputs ? 0 : k;
        margins[k] = offset + (c->biases ? parameters[c->layout->features * c->weights + k] : 0);
        for (size_t j = c->biases; j < c->order; j++)
            if (output_of(c, j) == by)
                margins[k] += parameters[element_of(c, j)] * (value_of(c, j) + centre_at(c, j));
    }
}

static int predict(struct collinear *c, const double *parameters, double *loss) {
    struct exact sum;
    int code = 0;
    exact_init(&sum);
    for (uint32_t chunk = 0; chunk < set_training_chunks(set_info(c->set)) && !code; chunk++) {
        struct rows rows = {0};
        code = set_chunk(c->set, chunk, &rows);
        for (uint32_t i = 0; i < rows.count && !code; i++) {
            double weight = weight_of(c, &rows, i);
            read_values(c, &rows, i);
            predict_margins(c, parameters, rows.offset ? rows.offset[i] : 0, c->slope);
            if (weight > 0)
                exact_add(&sum, weight * differentiate(c, rows.label + i));
        }
    }
    for (size_t j = 0; j < c->order; j++)
        exact_add(&sum,
                  ridge_at(c, j) / 2 * parameters[element_of(c, j)] * parameters[element_of(c, j)]);
    *loss = exact_value(&sum);
    return code;
}

/* Rounds the weights, and finds what comes of it. */
static int settle(struct collinear *c, const double *scale, struct collinear_fit *fit) {
    const struct set_info *info = set_info(c->set);
    struct doubled *step = memory_new(c->order, sizeof *step);
    double *of_data = memory_new(c->order, sizeof *of_data), loss = NAN;
    for (size_t j = 0; j < c->order; j++) {
        double rounded = doubled_value(c->weight[j]);
        c->weight[j] = doubled_of(rounded);
        fit->parameters[element_of(c, j)] = of_data[element_of(c, j)] = rounded;
    }
    summary_from_set(info, c->layout, of_data);
    c->expected = true;
    int code = take_rows(c, info->rows);
    if (!code)
        code = predict(c, of_data, &loss);
    fit->loss = loss / total_weight(c);
    fit->gap = (find_step(c, step) + fabs(loss - c->loss)) / total_weight(c);
    fit->found = isfinite(fit->loss) && isfinite(fit->gap);
    for (size_t j = 0; j < c->order; j++) {
        double unit = scale && j >= c->biases ? scale[column_of(c, j)] : 1;
        double slope = fabs(c->gradient[j].high) * unit / total_weight(c);
        fit->gradient_max = fmax(fit->gradient_max, slope);
    }
    free(step);
    free(of_data);
    return code;
}

/* How far the parameters that were given are above the minimum, by half of what a Newton step
 * promises. */
static int take_gap(struct collinear *c, struct collinear_fit *fit) {
    struct doubled *step = memory_new(c->order, sizeof *step);
    int code = take_rows(c, set_info(c->set)->rows);
    fit->gap = find_step(c, step) / total_weight(c);
    free(step);
    return code;
}

int collinear_find(struct collinear *c, double least, const double *scale, int64_t until_ns,
                   struct collinear_fit *fit) {
    assert(least >= 0 && fit->parameters);
    const uint64_t rows = set_info(c->set)->rows;
    double left = INFINITY;
    int code = take_rows(c, rows);
    fit->near = !code && sort_out(c, NEAR, fit);
    if (!fit->near)
        return code ? code : take_gap(c, fit);
    least *= total_weight(c);
    code = take_rows(c, rows);
    if (!code)
        code = descend(c, least, until_ns, &left, &fit->late);
    if (!code && !fit->late && left <= GAP_MOST * fmax(c->loss, least))
        code = settle(c, scale, fit);
    return code;
}

int collinear_factor(struct collinear *c) {
    struct collinear_fit fit = {0};
    c->expected = true;
    int code = take_rows(c, set_info(c->set)->rows);
    if (!code)
        sort_out(c, NEAR, &fit);
    return code;
}

/* ---- after that ---- */

void collinear_restate(const struct collinear *c, double *parameters) {
    struct doubled *weight = memory_new(c->order, sizeof *weight);
    memcpy(weight, c->weight, c->order * sizeof *weight);
    for (size_t j = 0; j < c->order; j++)
        if (c->kind[j] == COLLINEAR_EXACTLY)
            restate(c, j, weight);
    for (size_t j = 0; j < c->order; j++)
        parameters[element_of(c, j)] = doubled_value(weight[j]);
    free(weight);
}

void collinear_solve(const struct collinear *c, const double *b, double *solution, double *energy,
                     double *sampling) {
    struct doubled *x = memory_new(c->order, sizeof *x), sum = doubled_of(0);
    for (size_t j = 0; j < c->order; j++)
        x[j] = doubled_of(b[element_of(c, j)]);
    orthogonal_solve_transposed(&c->factor, c->order, x);
    for (size_t j = 0; j < c->order; j++)
        sum = doubled_plus(sum, x[j], x[j]);
    *energy = doubled_value(sum);
    orthogonal_solve(&c->factor, c->order, x);
    for (size_t j = 0; j < c->order; j++) {
        solution[element_of(c, j)] = doubled_value(x[j]);
        sum = doubled_minus(sum, doubled_times(doubled_of(ridge_at(c, j)), x[j]), x[j]);
    }
    *sampling = doubled_value(sum);
    free(x);
}
