/* Adds sampled rows to the triangle of second derivatives.
 *
 * A term is the product of `left`, x_j·2^(e_j − 31), and `right`, factor·S_kk'·x_l·2^(e_l − 31),
 * rounded to an integer. Rows with few values are added pair by pair. Others wait until there are
 * many, and are added element by element of the triangle, which is passed over once for all of
 * them. All ways round to the same integers. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "numeric/fixed.h"
#include "objective/parts.h"

static size_t triangle_row(size_t r) {
    return r * (r + 1) / 2;
}

/* Row k of the second derivatives of an example by its margins, times the row's factor. */
static void scaled_second(const struct objective *objective,
                          const struct hessian_workspace *workspace, const double *second,
                          double label, const double *derivatives, double factor, size_t k,
                          double *row) {
    size_t outputs = workspace->order;
    row[0] = *second;
    if (outputs > 1)
        workspace->form->row(objective, outputs, label, derivatives, k, row);
    for (size_t other = 0; other < outputs; other++)
        row[other] *= factor;
}

/* total += the bits of left·right + 1.5·2⁵². Where no product reaches 2⁵¹ its low bits are those of
 * the rounded product; TERM_BITS are the others. */
#define TERM_BITS UINT64_C(0x4338000000000000)
LANES_INLINE void add_term(half_words *total, const half_lanes *left, const double *right) {
    half_lanes term;
    half_words bits;
    memcpy(&term, right, sizeof term);
    term = term * *left + 0x1.8p52;
    memcpy(&bits, &term, sizeof bits);
    *total += bits;
}

/* Whether no product of the row comes near 2⁵¹. */
static bool is_small(size_t outputs, const struct sampled_row *row) {
#ifdef INEXACT_SUMS
    (void)outputs, (void)row;
    return false; /* sums are doubles there */
#else
    double largest = 0, second = 0; /* beside the diagonal no second derivative is larger */
    for (size_t k = 0; k < outputs; k++)
        second = fabs(row->second[k]) > second ? fabs(row->second[k]) : second;
    for (size_t q = 0; q < row->count; q++)
        largest = fabs(row->value[q]) > largest ? fabs(row->value[q]) : largest;
    return second * row->factor * largest * largest < 0x1p50;
#endif
}

/* ---- pair by pair ---- */

/* Elements that a run must have on average, to be worth it. */
#define RUN_LEAST 5

/* Whether parameter `r` of a list is of output k. Without a list rows of all k are asked for. */
static bool is_of(const struct hessian_workspace *workspace, size_t r, size_t k) {
    return !workspace->output || workspace->output[r] == k;
}

LANES_INLINE void add_run(size_t count, double value, const double *right, int64_t *sum) {
    const half_lanes left = {value, value, value, value};
    size_t i = 0;
    for (; i + HALF <= count; i += HALF) {
        half_words total;
        memcpy(&total, sum + i, sizeof total);
        total -= TERM_BITS;
        add_term(&total, &left, right + i);
        memcpy(sum + i, &total, sizeof total);
    }
    for (; i < count; i++)
        fixed_add(&sum[i], value * right[i]);
}

/* Row k of the elements of a sampled row, whose products are all small. */
VECTOR_CLONES
static void add_runs(const struct hessian_workspace *workspace, const struct sampled_row *row,
                     size_t k, int64_t *triangle) {
    const struct column_run *runs = workspace->runs, *own = runs; /* the one that p belongs to */
    const double *right = workspace->right;
    size_t outputs = workspace->outputs, within = workspace->output ? 0 : k;
    for (size_t p = 0; p < row->count; p++) {
        int64_t *out = triangle + triangle_row(row->column[p] * outputs + within);
        own += p && row->column[p] != row->column[p - 1] + 1;
        if (!is_of(workspace, row->column[p], k))
            continue;
        for (const struct column_run *run = runs; run < own; run++)
            add_run(run->count, row->value[p], right + run->first * outputs, out + run->at);
        add_run((p - own->first) * outputs + within + 1, row->value[p],
                right + own->first * outputs, out + own->at);
    }
}

/* Row k of the elements of any sampled row. */
static void add_pairs(const struct hessian_workspace *workspace, const struct sampled_row *row,
                      size_t k, int64_t *triangle) {
    const double *right = workspace->right;
    size_t outputs = workspace->outputs, within = workspace->output ? 0 : k;
    for (size_t p = 0; p < row->count; p++) {
        int64_t *out = triangle + triangle_row(row->column[p] * outputs + within);
        double left = row->value[p];
        if (!is_of(workspace, row->column[p], k))
            continue;
        for (size_t q = 0; outputs == 1 && q <= p; q++)
            fixed_add(&out[row->column[q]], left * right[q]);
        for (size_t q = 0; outputs > 1 && q <= p; q++)
            for (size_t other = 0; other < (q < p ? outputs : k + 1); other++)
                fixed_add(&out[row->column[q] * outputs + other],
                          left * right[q * outputs + other]);
    }
}

/* Adds the pairs of one output, whose products are all small: rounded four at a time. */
VECTOR_CLONES
static void add_small_pairs(const struct hessian_workspace *workspace,
                            const struct sampled_row *row, int64_t *triangle) {
    const uint32_t *column = row->column;
    const double *right = workspace->right;
    for (size_t p = 0; p < row->count; p++) {
        int64_t *out = triangle + triangle_row(column[p]);
        const half_lanes left = {row->value[p], row->value[p], row->value[p], row->value[p]};
        size_t q = 0;
        for (; q + HALF <= p + 1; q += HALF) {
            half_words term = {0};
            term -= TERM_BITS;
            add_term(&term, &left, right + q);
            UNROLL for (size_t k = 0; k < HALF; k++) out[column[q + k]] += (int64_t)term[k];
        }
        for (; q <= p; q++)
            fixed_add(&out[column[q]], row->value[p] * right[q]);
    }
}

/* right[(q, k')] = factor·S_kk'·value[q]; of a list the one k' that q has. */
static void fill_right_of_row(struct hessian_workspace *workspace, const struct sampled_row *row) {
    const double *second = workspace->second;
    size_t outputs = workspace->outputs;
    if (workspace->output)
        for (size_t q = 0; q < row->count; q++)
            workspace->right[q] = second[workspace->output[row->column[q]]] * row->value[q];
    else
        for (size_t q = 0; q < row->count; q++)
            for (size_t other = 0; other < outputs; other++)
                workspace->right[q * outputs + other] = second[other] * row->value[q];
}

static void add_sparse(const struct objective *objective, struct hessian_workspace *workspace,
                       const struct sampled_row *row, bool small, int64_t *triangle) {
    size_t outputs = workspace->outputs, order = workspace->order;
    size_t count = 0;
    for (size_t q = 0; q < row->count; q++) {
        if (!q || row->column[q] != row->column[q - 1] + 1)
            workspace->runs[count++] = (struct column_run){q, row->column[q] * outputs, 0};
        workspace->runs[count - 1].count += outputs;
    }
    size_t runs = count;
    bool by_runs = small && row->count * outputs >= runs * RUN_LEAST;
    for (size_t k = 0; k < order; k++) {
        scaled_second(objective, workspace, row->second, row->label, row->derivatives, row->factor,
                      k, workspace->second);
        fill_right_of_row(workspace, row);
        if (by_runs)
            add_runs(workspace, row, k, triangle);
        else if (small && outputs == 1 && order == 1)
            add_small_pairs(workspace, row, triangle);
        else
            add_pairs(workspace, row, k, triangle);
    }
}

/* ---- element by element ---- */

/* Columns of `right` that stay in the cache while rows of the triangle pass. */
#define TILE 32
static_assert(TRIANGLE_ROWS % HALF == 0, "rows are added HALF at a time");

LANES_INLINE void add_sum(int64_t *out, const half_words *total, size_t steps) {
    *out +=
        (int64_t)((*total)[0] + (*total)[1] + (*total)[2] + (*total)[3] - HALF * steps * TERM_BITS);
}

/* out[c] += Σ_w rint(left[w]·right[c][w]) at `count` columns, over `steps` × HALF rows w. */
LANES_INLINE void add_columns(size_t steps, size_t count, const double *left, const double *right,
                              int64_t *out) {
    size_t c = 0;
    for (; c + 4 <= count; c += 4) {
        const double *column = right + c * TRIANGLE_ROWS;
        half_words a = {0}, b = {0}, d = {0}, e = {0};
        for (size_t step = 0; step < steps; step++, column += HALF) {
            half_lanes by;
            memcpy(&by, left + step * HALF, sizeof by);
            add_term(&a, &by, column);
            add_term(&b, &by, column + TRIANGLE_ROWS);
            add_term(&d, &by, column + 2 * TRIANGLE_ROWS);
            add_term(&e, &by, column + 3 * TRIANGLE_ROWS);
        }
        add_sum(out + c, &a, steps);
        add_sum(out + c + 1, &b, steps);
        add_sum(out + c + 2, &d, steps);
        add_sum(out + c + 3, &e, steps);
    }
    for (; c < count; c++) {
        half_words a = {0};
        for (size_t step = 0; step < steps; step++) {
            half_lanes by;
            memcpy(&by, left + step * HALF, sizeof by);
            add_term(&a, &by, right + c * TRIANGLE_ROWS + step * HALF);
        }
        add_sum(out + c, &a, steps);
    }
}

/* All rows (j, k) of the triangle for one k, at the columns of a tile. */
VECTOR_CLONES
static void add_tile(const struct hessian_workspace *workspace, size_t steps, size_t k,
                     size_t first, int64_t *triangle) {
    const double *right = workspace->right + first * TRIANGLE_ROWS;
    size_t within = workspace->output ? 0 : k;
    for (size_t j = first / workspace->outputs; j < workspace->columns; j++) {
        size_t r = j * workspace->outputs + within;
        if (!is_of(workspace, j, k))
            continue;
        size_t count = r < first ? 0 : r - first + 1;
        add_columns(steps, count < TILE ? count : TILE, workspace->left + j * TRIANGLE_ROWS, right,
                    triangle + triangle_row(r) + first);
    }
}

/* right[(l, k')][w] = factor·S_kk'·left[l][w]; of a list the one k' that l has. */
VECTOR_CLONES
static void multiply_columns(const struct hessian_workspace *workspace, size_t steps,
                             double *right) {
    for (size_t j = 0; j < workspace->columns; j++)
        for (size_t other = 0; other < workspace->outputs; other++, right += TRIANGLE_ROWS) {
            size_t at = workspace->output ? workspace->output[j] : other;
            for (size_t w = 0; w < steps * HALF; w += HALF) {
                half_lanes left, second;
                memcpy(&left, workspace->left + j * TRIANGLE_ROWS + w, sizeof left);
                memcpy(&second, workspace->seconds + at * TRIANGLE_ROWS + w, sizeof second);
                second *= left;
                memcpy(right + w, &second, sizeof second);
            }
        }
}

/* Rows that are missing to whole halves count as 0. */
void triangle_finish(const struct objective *objective, struct hessian_workspace *workspace,
                     int64_t *triangle) {
    size_t steps = (workspace->waiting + HALF - 1) / HALF, outputs = workspace->outputs;
    for (size_t j = 0; j < workspace->columns; j++)
        for (size_t w = workspace->waiting; w < steps * HALF; w++)
            workspace->left[j * TRIANGLE_ROWS + w] = 0;
    for (size_t k = 0; k < workspace->order && steps; k++) {
        size_t order = workspace->order;
        for (size_t w = 0; w < workspace->waiting; w++) {
            scaled_second(objective, workspace, workspace->waiting_second + w, workspace->label[w],
                          workspace->derivatives + w * order, workspace->factor[w], k,
                          workspace->second);
            for (size_t other = 0; other < order; other++)
                workspace->seconds[other * TRIANGLE_ROWS + w] = workspace->second[other];
        }
        multiply_columns(workspace, steps, workspace->right);
        for (size_t first = 0; first < workspace->columns * outputs; first += TILE)
            add_tile(workspace, steps, k, first, triangle);
    }
    workspace->waiting = 0;
}

static void wait_for_more(struct hessian_workspace *workspace, const struct sampled_row *row) {
    size_t w = workspace->waiting++;
    assert(w < TRIANGLE_ROWS);
    double *left = workspace->left + w;
    if (row->count < workspace->columns)
        for (size_t j = 0; j < workspace->columns; j++)
            left[j * TRIANGLE_ROWS] = 0;
    for (size_t q = 0; q < row->count; q++)
        left[row->column[q] * TRIANGLE_ROWS] = row->value[q];
    for (size_t k = 0; k < workspace->order; k++)
        workspace->derivatives[w * workspace->order + k] = row->derivatives[k];
    workspace->waiting_second[w] = *row->second;
    workspace->label[w] = row->label;
    workspace->factor[w] = row->factor;
}

void triangle_add(const struct objective *objective, struct hessian_workspace *workspace,
                  const struct sampled_row *row, int64_t *triangle) {
    bool small = is_small(workspace->order, row);
    assert(row->count <= workspace->columns);
    /* Pair by pair costs more for a term, the most if there is one output, where no terms are next
     * to each other. */
    if (!small || (workspace->outputs == 1 ? row->count * 2 < workspace->columns
                                           : row->count * 3 < workspace->columns * 2)) {
        add_sparse(objective, workspace, row, small, triangle);
        return;
    }
    wait_for_more(workspace, row);
    if (workspace->waiting == TRIANGLE_ROWS)
        triangle_finish(objective, workspace, triangle);
}
