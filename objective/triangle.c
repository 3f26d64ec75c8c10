/* Adds drawn rows to the triangle of second derivatives.
 *
 * A term is the product of `left`, x_j·2^(e_j − 31), and `right`, factor·S_kk'·x_l·2^(e_l − 31),
 * rounded to an integer. Rows with few values are added pair by pair; others wait until there are
 * several, and are added element by element of the triangle, which is passed over once for all of
 * them. All ways round to the same integers. */
#include <math.h>
#include <string.h>

#include "numeric/fixed.h"
#include "objective/parts.h"

/* A row is added pair by pair if it has a value in less than one column of so many. */
#define SPARSE_SHARE 4

static size_t triangle_row(size_t r) {
    return r * (r + 1) / 2;
}

/* Row k of the second derivatives of an example by its margins, times the row's factor. */
static void scaled_second(const struct objective *objective, size_t outputs, double label,
                          const double *derivatives, double factor, size_t k, double *row) {
    if (objective->second_row)
        objective->second_row(outputs, label, derivatives, k, row);
    else
        objective->second(1, 1, &label, derivatives, row);
    for (size_t other = 0; other < outputs; other++)
        row[other] *= factor;
}

/* ---- pair by pair ---- */

LANES_INLINE void add_products(size_t count, double left, const double *right, int64_t *sum) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes terms;
        memcpy(&terms, right + i, sizeof terms);
        terms *= left;
        fixed_add_lanes(&sum[i], &terms);
    }
    for (; i < count; i++)
        fixed_add(&sum[i], left * right[i]);
}

/* Row k of a drawn row's elements, for K outputs; right: its values times row k of S. */
VECTOR_CLONES
static void add_pairs(const struct drawn *row, size_t outputs, size_t k, const double *right,
                      int64_t *triangle) {
    for (size_t p = 0; p < row->count; p++) {
        int64_t *out = triangle + triangle_row(row->column[p] * outputs + k);
        double left = row->value[p];
        if (outputs == 1)
            for (size_t q = 0; q <= p; q++)
                fixed_add(&out[row->column[q]], left * right[q]);
        for (size_t q = 0; outputs > 1 && q <= p; q++)
            add_products(q < p ? outputs : k + 1, left, right + q * outputs,
                         out + row->column[q] * outputs);
    }
}

static void add_sparse(const struct objective *objective, struct curving *curving,
                       const struct drawn *row, int64_t *triangle) {
    size_t outputs = curving->outputs;
    for (size_t k = 0; k < outputs; k++) {
        scaled_second(objective, outputs, row->label, row->derivatives, row->factor, k,
                      curving->second);
        for (size_t q = 0; q < row->count; q++)
            for (size_t other = 0; other < outputs; other++)
                curving->right[q * outputs + other] = curving->second[other] * row->value[q];
        add_pairs(row, outputs, k, curving->right, triangle);
    }
}

/* ---- element by element ---- */

/* Half lanes: gcc keeps sums of these in registers, but not sums of whole lanes. */
#define HALF 4
typedef double half_lanes __attribute__((vector_size(32)));
typedef uint64_t half_words __attribute__((vector_size(32)));

/* total += the bits of left·right + 1.5·2⁵². Where no product reaches 2⁵¹ its low bits are those of
 * the rounded product. */
LANES_INLINE void add_term(half_words *total, const half_lanes *left, const double *right) {
    half_lanes term;
    half_words bits;
    memcpy(&term, right, sizeof term);
    term = term * *left + 0x1.8p52;
    memcpy(&bits, &term, sizeof bits);
    *total += bits;
}

/* sum[c] += Σ rint(left_w·right_w[c]) over several rows w at HALF columns. */
LANES_INLINE void add_half(size_t rows, size_t stride, const half_lanes *left, const double *right,
                           int64_t *sum) {
    const uint64_t bits_of_that = UINT64_C(0x4338000000000000);
    half_words total;
    memcpy(&total, sum, sizeof total);
    total -= rows * bits_of_that;
    size_t w = 0;
    for (; w + 4 <= rows; w += 4, right += 4 * stride) {
        add_term(&total, left + w, right);
        add_term(&total, left + w + 1, right + stride);
        add_term(&total, left + w + 2, right + 2 * stride);
        add_term(&total, left + w + 3, right + 3 * stride);
    }
    for (; w < rows; w++, right += stride)
        add_term(&total, left + w, right);
    memcpy(sum, &total, sizeof total);
}

/* The same for any number of columns. The last halves overlap those before them, which then count
 * as 0. */
LANES_INLINE void add_rows_of(size_t rows, size_t count, size_t stride, const double *left,
                              const double *right, int64_t *sum) {
    half_lanes by[TRIANGLE_ROWS];
    for (size_t w = 0; w < rows; w++)
        by[w] = (half_lanes){left[w], left[w], left[w], left[w]};
    size_t c = 0;
    for (; c + HALF <= count; c += HALF)
        add_half(rows, stride, by, right + c, sum + c);
    if (c < count && count >= HALF) {
        size_t at = count - HALF;
        for (size_t w = 0; w < rows; w++)
            for (size_t lane = 0; lane < c - at; lane++)
                by[w][lane] = 0;
        add_half(rows, stride, by, right + at, sum + at);
        return;
    }
    for (; c < count; c++)
        for (size_t w = 0; w < rows; w++)
            fixed_add(&sum[c], left[w] * right[w * stride + c]);
}

VECTOR_CLONES
static void add_rows(size_t rows, size_t count, size_t stride, const double *left,
                     const double *right, int64_t *sum) {
    if (rows == TRIANGLE_ROWS)
        add_rows_of(TRIANGLE_ROWS, count, stride, left, right, sum);
    else
        add_rows_of(rows, count, stride, left, right, sum);
}

/* The same for one row whose products may be large. */
VECTOR_CLONES
static void add_large_row(size_t count, double left, const double *right, int64_t *sum) {
    add_products(count, left, right, sum);
}

/* The multipliers of column j; false if all are 0. */
static bool column_of(const struct curving *curving, size_t j, double *left) {
    bool any = false;
    for (size_t w = 0; w < curving->waiting; w++) {
        left[w] = curving->left[w * curving->columns + j];
        any |= left[w] != 0;
    }
    return any;
}

static void fill_right(const struct objective *objective, struct curving *curving, size_t k) {
    size_t columns = curving->columns, outputs = curving->outputs;
    for (size_t w = 0; w < curving->waiting; w++) {
        double *right = curving->right + w * columns * outputs;
        const double *left = curving->left + w * columns;
        scaled_second(objective, outputs, curving->label[w], curving->derivatives + w * outputs,
                      curving->factor[w], k, curving->second);
        for (size_t j = 0; j < columns; j++)
            for (size_t other = 0; other < outputs; other++)
                right[j * outputs + other] = curving->second[other] * left[j];
    }
}

static void add_waiting(const struct objective *objective, struct curving *curving, bool small,
                        int64_t *triangle) {
    size_t columns = curving->columns, outputs = curving->outputs;
    double left[TRIANGLE_ROWS];
    for (size_t k = 0; k < outputs && curving->waiting; k++) {
        fill_right(objective, curving, k);
        for (size_t j = 0; j < columns; j++) {
            size_t r = j * outputs + k;
            if (!column_of(curving, j, left))
                continue;
            if (small)
                add_rows(curving->waiting, r + 1, columns * outputs, left, curving->right,
                         triangle + triangle_row(r));
            else
                add_large_row(r + 1, left[0], curving->right, triangle + triangle_row(r));
        }
    }
    curving->waiting = 0;
}

static void wait_for_more(struct curving *curving, const struct drawn *row) {
    size_t w = curving->waiting++;
    double *left = curving->left + w * curving->columns;
    memset(left, 0, curving->columns * sizeof *left);
    for (size_t q = 0; q < row->count; q++)
        left[row->column[q]] = row->value[q];
    memcpy(curving->derivatives + w * curving->outputs, row->derivatives,
           curving->outputs * sizeof *row->derivatives);
    curving->label[w] = row->label;
    curving->factor[w] = row->factor;
}

/* Whether no product of the row comes near 2⁵¹. */
static bool is_small(const struct objective *objective, const struct drawn *row) {
#ifdef INEXACT_SUMS
    (void)objective, (void)row;
    return false; /* sums are doubles there */
#else
    double largest = 0;
    for (size_t q = 0; q < row->count; q++)
        largest = fmax(largest, fabs(row->value[q]));
    return objective->second_max * row->factor * largest * largest < 0x1p50;
#endif
}

void triangle_add(const struct objective *objective, struct curving *curving,
                  const struct drawn *row, int64_t *triangle) {
    if (row->count * SPARSE_SHARE < curving->columns) {
        add_sparse(objective, curving, row, triangle);
        return;
    }
    bool small = is_small(objective, row);
    if (!small)
        triangle_finish(objective, curving, triangle);
    wait_for_more(curving, row);
    if (!small || curving->waiting == TRIANGLE_ROWS)
        add_waiting(objective, curving, small, triangle);
}

void triangle_finish(const struct objective *objective, struct curving *curving,
                     int64_t *triangle) {
    add_waiting(objective, curving, true, triangle);
}
