/* Draws rows of a block and adds up their second derivatives by the parameters. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/loss_row.h"
#include "objective/parts.h"

/* A value is multiplied by 2^e in two halves, so that the product of two values of a row stays in
 * range: 2^(e − 31) is a double for every base exponent (the smallest are denormal, and exact). */
static double half_power(int exponent) {
    return ldexp(1, exponent - 31);
}

/* The columns of the triangle beside those of features. */
static size_t bias_columns(const struct objective_shape *shape, bool listed) {
    bool each = listed || objective_of(shape->kind)->shares_weights;
    return !shape->intercept ? 0 : each ? shape->outputs : 1;
}

static struct hessian_workspace *hessian_workspace_new(const struct objective_shape *shape,
                                                       const struct objective_sample *sample) {
    struct hessian_workspace *workspace = memory_new(1, sizeof *workspace);
    bool listed = sample->list != NULL;
    uint32_t block_columns = sample->columns;
    assert(listed || block_columns <= shape->features);
    size_t order = objective_weights(objective_of(shape->kind), shape->outputs);
    if (sample->shared && order > 1) {
        workspace->second_shared = objective_second_at_zero(shape);
        order = 1;
    }
    size_t columns = block_columns + bias_columns(shape, listed), outputs = listed ? 1 : order;
    workspace->columns = columns;
    workspace->block_columns = block_columns;
    workspace->outputs = outputs;
    workspace->order = order;
    if (listed)
        workspace->place = memory_new(shape->features, sizeof *workspace->place);
    if (listed && order > 1)
        workspace->output = memory_new(columns, sizeof *workspace->output);
    workspace->power = memory_new((size_t)shape->features + 1, sizeof(double));
    workspace->exponent = memory_new((size_t)shape->features + 1, sizeof(int16_t));
    for (size_t j = 0; j <= shape->features && (!listed || workspace->output); j++)
        workspace->power[j] = half_power(0);
    workspace->diagonal = memory_new(BATCH_ROWS_MAX * (size_t)shape->outputs, sizeof(double));
    workspace->leverage = memory_new(BATCH_ROWS_MAX, sizeof(double));
    workspace->column = memory_new(columns, sizeof(uint32_t));
    workspace->value = memory_new(columns, sizeof(double));
    workspace->runs = memory_new(columns, sizeof *workspace->runs);
    workspace->second = memory_new(order, sizeof(double));
    workspace->seconds = memory_new(TRIANGLE_ROWS * order, sizeof(double));
    workspace->right = memory_new(TRIANGLE_ROWS * columns * outputs, sizeof(double));
    workspace->left = memory_new(TRIANGLE_ROWS * columns, sizeof(double));
    workspace->derivatives = memory_new(TRIANGLE_ROWS * order, sizeof(double));
    return workspace;
}

void hessian_workspace_free(struct hessian_workspace *workspace) {
    if (!workspace)
        return;
    listed_values_free(&workspace->listed);
    free(workspace->place);
    free(workspace->output);
    free(workspace->power);
    free(workspace->exponent);
    free(workspace->diagonal);
    free(workspace->leverage);
    free(workspace->column);
    free(workspace->value);
    free(workspace->runs);
    free(workspace->second);
    free(workspace->seconds);
    free(workspace->right);
    free(workspace->left);
    free(workspace->derivatives);
    free(workspace);
}

void curvature_prepare(const struct objective_shape *shape, const struct objective_need *need,
                       struct objective_scratch *scratch) {
    if (!scratch->workspace)
        scratch->workspace = hessian_workspace_new(shape, need->sample);
    if (listed_values_fit(shape, need->sample, need->rows.dense, scratch))
        listed_values_prepare(&need->rows, objective_columns(shape), &scratch->workspace->listed);
}

/* All chunks have the same exponents, and to raise two to that of each column of a wide set takes
 * longer than the sampled rows of a chunk. */
static void find_powers(struct hessian_workspace *workspace, size_t columns,
                        const int16_t *exponent) {
    if (memcmp(workspace->exponent, exponent, columns * sizeof *exponent) == 0)
        return;
    memcpy(workspace->exponent, exponent, columns * sizeof *exponent);
    for (size_t j = 0; j < columns; j++)
        workspace->power[j] = half_power(exponent[j]);
}

/* ---- the block ---- */

/* Most chunks have the list of the one before. An empty list has its biases from the first on.
 * With one output powers are those of what is listed alone: the leverage of a row is that by these
 * columns. With several outputs it is that by all columns, which took fewer passes. */
static void use_list(struct hessian_workspace *workspace, const struct objective_shape *shape,
                     const struct weight_list *list, const int16_t *exponent) {
    struct weight_list *now = &workspace->list;
    const size_t bytes = list->count * sizeof *list->column;
    const bool one_output = !workspace->output;
    if (now->count && now->count == list->count && !memcmp(now->column, list->column, bytes) &&
        !memcmp(now->output, list->output, bytes))
        return;
    for (uint32_t i = 0; i < now->count; i++) {
        workspace->place[now->column[i]] = 0;
        if (one_output)
            workspace->power[now->column[i]] = 0;
    }
    for (uint32_t i = list->count; i-- > 0;) {
        const uint32_t column = list->column[i];
        assert(column < shape->features && list->output[i] < workspace->order);
        workspace->place[column] = i + 1;
        if (one_output)
            workspace->power[column] = half_power(exponent[column]);
    }
    if (one_output && shape->intercept)
        workspace->power[shape->features] = half_power(exponent[shape->features]);
    now->count = list->count;
    memcpy(now->column, list->column, bytes);
    memcpy(now->output, list->output, bytes);
    workspace->listed.point = 0;
    workspace->block_columns = list->count;
    workspace->columns = list->count + bias_columns(shape, true);
    for (size_t i = 0; workspace->output && i < workspace->columns; i++)
        workspace->output[i] = i < list->count ? list->output[i] : (uint32_t)i - list->count;
}

/* ---- leverage ---- */

/* Σ |x_j|·power_j over the stored values of a row, in an order that depends on the row alone. */
LANES_INLINE double sparse_size(enum value_type type, const struct rows *rows, size_t row,
                                const double *power) {
    const uint32_t *feature = rows->feature;
    size_t i = rows->start[row], end = rows->start[row + 1];
    double sum[4] = {0};
    for (; i + 4 <= end; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += fabs(value_at(type, rows->value, i + k)) * power[feature[i + k]];
    for (; i < end; i++)
        sum[0] += fabs(value_at(type, rows->value, i)) * power[feature[i]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* sum += |value·power| at HALF values from i on. */
LANES_INLINE void add_sizes(half_lanes *sum, enum value_type type, const void *value, size_t i,
                            const double *power) {
    half_lanes size, by;
    memcpy(&size, power, sizeof size);
    if (type == VALUE_BYTE) {
        load_values(type, &by, value, i);
        size *= by;
    } else if (type == VALUE_FLOAT) {
        half_load_floats(&by, (const float *)value + i);
        size *= by;
    } else if (type == VALUE_DOUBLE) {
        memcpy(&by, (const double *)value + i, sizeof by);
        size *= by;
    }
    half_abs(&size);
    *sum += size;
}

LANES_INLINE double dense_size(enum value_type type, const struct rows *rows, size_t row,
                               const double *power) {
    size_t n = rows->features, begin = row * n, j = 0;
    half_lanes a = {0}, b = {0};
    for (; j + 2 * HALF <= n; j += 2 * HALF) {
        add_sizes(&a, type, rows->value, begin + j, power + j);
        add_sizes(&b, type, rows->value, begin + j + HALF, power + j + HALF);
    }
    a += b;
    double sum = (a[0] + a[2]) + (a[1] + a[3]);
    for (; j < n; j++)
        sum += fabs(value_at(type, rows->value, begin + j)) * power[j];
    return sum;
}

LANES_INLINE void typed_sizes(enum value_type type, const struct row_batch *batch,
                              const double *power, double *size) {
    for (size_t i = 0; i < batch->count; i++)
        size[i] = batch->rows->dense ? dense_size(type, batch->rows, batch->first + i, power)
                                     : sparse_size(type, batch->rows, batch->first + i, power);
}

VECTOR_CLONES
static void sizes(const struct row_batch *batch, const double *power, double *size) {
    switch (batch->rows->type) {
    case VALUE_ONES:
        typed_sizes(VALUE_ONES, batch, power, size);
        break;
    case VALUE_BYTE:
        typed_sizes(VALUE_BYTE, batch, power, size);
        break;
    case VALUE_FLOAT:
        typed_sizes(VALUE_FLOAT, batch, power, size);
        break;
    case VALUE_DOUBLE:
        typed_sizes(VALUE_DOUBLE, batch, power, size);
        break;
    }
}

/* ---- sampling ---- */

LANES_INLINE size_t typed_values(enum value_type type, const struct rows *rows, size_t row,
                                 struct hessian_workspace *workspace) {
    size_t i = rows->dense ? row * rows->features : rows->start[row];
    size_t end = rows->dense ? i + rows->features : rows->start[row + 1];
    size_t count = 0;
    for (uint32_t j = 0; i < end; i++, j++) {
        uint32_t column = rows->dense ? j : rows->feature[i];
        if (column >= workspace->block_columns)
            break; /* the columns of a row rise */
        double value = value_at(type, rows->value, i) * workspace->power[column];
        workspace->column[count] = column;
        workspace->value[count] = value;
        count += value != 0;
    }
    return count;
}

/* Collects a row's values of listed weights, by their places. */
LANES_INLINE size_t typed_listed(enum value_type type, const struct rows *rows, size_t row,
                                 struct hessian_workspace *workspace) {
    size_t i = rows->dense ? row * rows->features : rows->start[row];
    size_t end = rows->dense ? i + rows->features : rows->start[row + 1];
    const struct weight_list *list = &workspace->list;
    size_t count = 0;
    for (uint32_t j = 0; i < end; i++, j++) {
        uint32_t column = rows->dense ? j : rows->feature[i];
        uint32_t at = workspace->place[column];
        if (!at)
            continue;
        double value = value_at(type, rows->value, i) * workspace->power[column];
        if (value == 0)
            continue;
        do {
            workspace->column[count] = at - 1;
            workspace->value[count++] = value;
        } while (at < list->count && list->column[at++] == column);
    }
    return count;
}

LANES_INLINE size_t values_of(enum value_type type, const struct rows *rows, size_t row,
                              struct hessian_workspace *workspace) {
    return workspace->place ? typed_listed(type, rows, row, workspace)
                            : typed_values(type, rows, row, workspace);
}

static size_t block_values(const struct rows *rows, size_t row,
                           struct hessian_workspace *workspace) {
    switch (rows->type) {
    case VALUE_ONES:
        return values_of(VALUE_ONES, rows, row, workspace);
    case VALUE_BYTE:
        return values_of(VALUE_BYTE, rows, row, workspace);
    case VALUE_FLOAT:
        return values_of(VALUE_FLOAT, rows, row, workspace);
    default:
        return values_of(VALUE_DOUBLE, rows, row, workspace);
    }
}

/* Lists the columns and values of a row that are in the block, the intercept last, or if weights
 * are listed every bias; how many there are. */
static size_t list_values(const struct objective_shape *shape, const struct rows *rows, size_t row,
                          struct hessian_workspace *workspace) {
    size_t count = block_values(rows, row, workspace);
    size_t biases = !shape->intercept ? 0 : workspace->output ? shape->outputs : 1;
    for (uint32_t k = 0; k < biases; k++) {
        workspace->column[count] = workspace->block_columns + k;
        workspace->value[count++] = workspace->power[shape->features];
    }
    return count;
}

/* What outputs `label` − 1 and `label` have beside the diagonal, but for its sign; 0: nothing. The
 * products of scores have the same. */
static double pair_of(const struct objective_shape *shape, double label,
                      const double *derivatives) {
    bool acts = objective_of(shape->kind)->second_sums && shape->intercept;
    size_t own = acts ? (size_t)label : 0; /* other labels are no outputs, and may be below 0 */
    bool between = own > 0 && own < shape->outputs;
    return between ? fabs(derivatives[own - 1] * derivatives[own]) : 0;
}

/* S = Σ s_k·e_k·e_kᵀ + pair·(e_a − e_b)·(e_a − e_b)ᵀ with s_k the sums of its rows. The last term
 * acts on two biases alone: the values of the row cancel out. */
static void add_pair(const struct objective *objective, struct hessian_workspace *workspace,
                     struct sampled_row row, double pair, int64_t *triangle,
                     struct objective_hessian *hessian) {
    double value = row.value[row.count - 1];
    for (uint32_t i = 0; i < 2; i++) {
        workspace->column[i] = workspace->block_columns + (uint32_t)row.label - 1 + i;
        workspace->value[i] = i ? -value : value;
    }
    row.count = 2;
    row.column = workspace->column;
    row.value = workspace->value;
    row.second = &pair;
    triangle_add(objective, workspace, &row, triangle);
    hessian->terms += 3;
}

/* Columns and values of row i of a batch: those that were found for all of its rows, or just now.
 */
static void take_values(const struct objective_shape *shape, const struct row_batch *batch,
                        size_t i, struct hessian_workspace *workspace, struct sampled_row *row) {
    const struct listed_values *listed = &workspace->listed;
    if (workspace->by_batch) {
        row->count = listed->begin[i + 1] - listed->begin[i];
        row->column = listed->column + listed->begin[i];
        row->value = listed->value + listed->begin[i];
        return;
    }
    row->count = list_values(shape, batch->rows, batch->first + i, workspace);
    row->column = workspace->column;
    row->value = workspace->value;
}

/* Outputs that share their weights count one after the other, as rows that differ in their last
 * column: each has its own bias. */
static void sample_row(const struct objective_shape *shape, const struct objective_sample *sample,
                       const struct row_batch *batch, size_t i, double chance,
                       const double *derivatives, struct hessian_workspace *workspace,
                       int64_t *triangle, struct objective_hessian *hessian) {
    const struct objective *objective = objective_of(shape->kind);
    double weight = weight_at(batch->rows, batch->first + i) / chance;
    assert(chance > 0 && chance <= 1);
    if (workspace->form->scores)
        weight *= weight_at(batch->rows, batch->first + i);
    struct sampled_row row = {.factor = fixed_power(-sample->derivative_exponent) * weight,
                              .label = batch->rows->label[batch->first + i],
                              .derivatives = derivatives + i * shape->outputs,
                              .second = workspace->diagonal + i * shape->outputs};
    take_values(shape, batch, i, workspace, &row);
    size_t touched = row.count * workspace->outputs;
    uint32_t times = objective->shares_weights ? shape->outputs : 1;
    double pair = pair_of(shape, row.label, row.derivatives);
    for (uint32_t k = 0; k < times; k++, row.second++) {
        if (objective->shares_weights && shape->intercept)
            workspace->column[row.count - 1] = workspace->block_columns + k;
        if (objective->second_sums && *row.second == 0)
            continue;
        triangle_add(objective, workspace, &row, triangle);
        hessian->terms += touched * (touched + 1) / 2;
    }
    if (pair > 0)
        add_pair(objective, workspace, row, pair, triangle, hessian);
}

/* One that is not finite has no bound. */
static double add_score(struct objective_hessian *hessian, double score) {
    if (!(score <= hessian->largest))
        hessian->largest = isnan(score) ? INFINITY : score;
    return score;
}

/* A trace that is not a number makes a chance that is none, and draws nothing. */
static void sample_batch(const struct objective_shape *shape, const struct objective_sample *sample,
                         const struct row_batch *batch, uint32_t number, const double *derivatives,
                         struct hessian_workspace *workspace, int64_t *triangle,
                         struct objective_hessian *hessian) {
    const struct row_sampling *sampling = &sample->sampling;
    double bound = ldexp(sampling->floor, sample->derivative_exponent);
    size_t outputs = shape->outputs;
    for (uint32_t i = 0; i < batch->count; i++) {
        double weight = weight_at(batch->rows, batch->first + i);
        if (weight == 0)
            continue;
        double pair =
            pair_of(shape, batch->rows->label[batch->first + i], derivatives + i * outputs);
        double trace = 2 * pair;
        for (size_t k = 0; k < outputs; k++) {
            double second = workspace->diagonal[i * outputs + k];
            trace += second;
            second = pair > 0 ? fmax(2 * fabs(second), 2 * pair) : second;
            if (workspace->form->scores)
                second = add_score(hessian, weight * second);
            hessian->exceeded |= !(second <= bound);
        }
        double weighted = trace * workspace->leverage[i];
        double chance = sampling->floor + sampling->rate * weighted;
        chance = chance > 1 ? 1 : chance;
        hessian->trace += weight * trace;
        hessian->trace_leverage += weighted;
        if (!(sample_hash(sampling->sample_seed, number, batch->first + i) < chance))
            continue;
        hessian->sampled++;
        if (triangle && !hessian->exceeded)
            sample_row(shape, sample, batch, i, chance, derivatives, workspace, triangle, hessian);
    }
    hessian->exceeded |= !isfinite(hessian->trace_leverage);
}

/* ---- what second derivatives are ---- */

static void sampled_diagonal(const struct objective_shape *shape, const struct row_batch *batch,
                             const struct objective_scratch *scratch, double *diagonal) {
    const struct objective *objective = objective_of(shape->kind);
    const double *label = batch->rows->label + batch->first;
    if (objective->second_sums)
        objective->second_sums(batch->count, shape->outputs, label, scratch->margins, diagonal);
    else
        objective->second(&shape->loss, batch->count, shape->outputs, label, scratch->margins,
                          scratch->work, diagonal);
}

static void sampled_row(const struct objective *objective, size_t outputs, double label,
                        const double *derivatives, size_t k, double *row) {
    objective->second_row(outputs, label, derivatives, k, row);
}

const struct second_form second_sampled = {.diagonal = sampled_diagonal, .row = sampled_row};

/* What they are on average over the labels that a row may have: `expected` changes what `second`
 * has found. */
static void expected_diagonal(const struct objective_shape *shape, const struct row_batch *batch,
                              const struct objective_scratch *scratch, double *diagonal) {
    const struct objective *objective = objective_of(shape->kind);
    sampled_diagonal(shape, batch, scratch, diagonal);
    if (objective->expected)
        objective->expected(&shape->loss, batch->count, scratch->margins, diagonal);
}

const struct second_form second_expected = {.diagonal = expected_diagonal, .row = sampled_row};

/* In their place g·gᵀ, with the derivatives g. */
static void scores_diagonal(const struct objective_shape *shape, const struct row_batch *batch,
                            const struct objective_scratch *scratch, double *diagonal) {
    const double *derivatives = scratch->margins;
    const bool sums = objective_of(shape->kind)->second_sums != NULL;
    const size_t outputs = shape->outputs;
    for (size_t i = 0; i < batch->count; i++, derivatives += outputs, diagonal += outputs) {
        double all = 0;
        for (size_t k = 0; k < outputs; k++)
            all += derivatives[k];
        for (size_t k = 0; k < outputs; k++)
            diagonal[k] = derivatives[k] * (sums ? all : derivatives[k]);
    }
}

static void scores_row(const struct objective *objective, size_t outputs, double label,
                       const double *derivatives, size_t k, double *row) {
    (void)objective, (void)label;
    for (size_t other = 0; other < outputs; other++)
        row[other] = derivatives[k] * derivatives[other];
}

const struct second_form second_scores = {
    .diagonal = scores_diagonal, .row = scores_row, .scores = true};

/* ---- a block ---- */

static struct hessian_workspace *use_workspace(const struct objective_shape *shape,
                                               const struct objective_sample *sample,
                                               const struct rows *rows, const double *parameters,
                                               struct objective_scratch *scratch) {
    struct hessian_workspace *workspace = scratch->workspace;
    assert(!workspace->place == !sample->list);
    assert(sample->list || sample->columns <= shape->features);
    if (sample->list)
        use_list(workspace, shape, sample->list, sample->exponent);
    if (!sample->list || workspace->output)
        find_powers(workspace, (size_t)shape->features + shape->intercept, sample->exponent);
    assert(workspace->block_columns <= sample->columns);
    workspace->form = sample->form;
    workspace->by_batch = listed_values_fit(shape, sample, rows->dense, scratch);
    if (workspace->by_batch)
        listed_values_begin(workspace, objective_columns(shape), parameters, scratch->point);
    return workspace;
}

/* The next batch, with derivatives and sizes of its rows; false at the end. */
static bool next_batch(struct batches *batches, struct row_batch *batch) {
    struct objective_scratch *scratch = batches->scratch;
    struct hessian_workspace *workspace = scratch->workspace;
    if (!workspace->by_batch) {
        if (!batches_next(batches, batch))
            return false;
        sizes(batch, workspace->power, workspace->leverage);
        return true;
    }
    if (batches->next >= batches->rows->count)
        return false;
    *batch = batch_at(batches->rows, batches->next, batches->most);
    batches->next += batch->count;
    listed_values_take(batches->shape, batch, batches->parameters, scratch);
    batch_losses(batches->shape, batch, scratch, NULL);
    return true;
}

void objective_curvature(const struct objective_shape *shape, const struct objective_sample *sample,
                         const struct rows *rows, uint32_t number, const double *parameters,
                         int64_t *triangle, struct objective_scratch *scratch,
                         struct objective_hessian *hessian) {
    const struct objective *objective = objective_of(shape->kind);
    const struct objective_need need = {.rows = rows_most_of(rows), .sample = sample};
    objective_prepare(shape, &need, scratch);
    struct batches batches = batches_over(shape, rows, parameters, scratch);
    struct hessian_workspace *workspace = use_workspace(shape, sample, rows, parameters, scratch);
    struct row_batch batch;
    *hessian = (struct objective_hessian){0};
    while (next_batch(&batches, &batch)) {
        if (workspace->second_shared > 0)
            for (size_t i = 0; i < batch.count * shape->outputs; i++)
                workspace->diagonal[i] = workspace->second_shared;
        else
            sample->form->diagonal(shape, &batch, scratch, workspace->diagonal);
        double intercept = shape->intercept ? workspace->power[shape->features] : 0;
        double share = (double)sample->examples * 0x1p-31;
        for (size_t i = 0; i < batch.count; i++)
            workspace->leverage[i] = share * weight_at(batch.rows, batch.first + i) *
                                     (workspace->leverage[i] + intercept);
        sample_batch(shape, sample, &batch, number, scratch->margins, workspace, triangle, hessian);
    }
    if (triangle && !hessian->exceeded)
        triangle_finish(objective, workspace, triangle);
    workspace->waiting = 0;
}
