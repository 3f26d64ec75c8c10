#include "numeric/dense.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/clones.h"

void dense_upper_solve(size_t n, const double *r, size_t ld, bool transposed, double *b) {
    assert(n <= ld);
    for (size_t j = 0; j < n && transposed; j++) {
        for (size_t i = 0; i < j; i++)
            b[j] -= r[i + j * ld] * b[i];
        b[j] /= r[j + j * ld];
    }
    for (size_t j = n; j-- > 0 && !transposed;) {
        b[j] /= r[j + j * ld];
        for (size_t i = 0; i < j; i++)
            b[i] -= r[i + j * ld] * b[j];
    }
}

void dense_semidefinite_solve(size_t n, double *a, double least, double *b) {
    assert(least >= 0);
    for (size_t i = 0; i < n; i++) {
        /* Row i of the Cholesky factor of A, when the rows above it are known. A row that stays out
         * is 0 but for a diagonal of infinity: then nothing depends on it, and its solution is 0.
         */
        double *row = a + i * n, pivot = row[i];
        for (size_t j = 0; j < i; j++) {
            const double *above = a + j * n;
            for (size_t k = 0; k < j; k++)
                row[j] -= row[k] * above[k];
            row[j] = isfinite(above[j]) ? row[j] / above[j] : 0;
            pivot -= row[j] * row[j];
        }
        row[i] = pivot > least && isfinite(pivot) ? sqrt(pivot) : INFINITY;
        for (size_t j = 0; j < i && !isfinite(row[i]); j++)
            row[j] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            b[i] -= a[i * n + j] * b[j];
        b[i] = isfinite(a[i * n + i]) ? b[i] / a[i * n + i] : 0;
    }
    for (size_t i = n; i-- > 0;) {
        b[i] = isfinite(a[i * n + i]) ? b[i] / a[i * n + i] : 0;
        for (size_t j = 0; j < i; j++)
            b[j] -= a[i * n + j] * b[i];
    }
}

/* Row k of X = R⁻¹ (row-major n×n, zero before), when the rows below it are known. */
static void invert_row(size_t n, const double *r, size_t ld, size_t k, double *x) {
    assert(k < n);
    double *row = x + k * n, pivot = r[k + k * ld];
    for (size_t i = k + 1; i < n; i++)
        for (size_t j = i; j < n; j++)
            row[j] -= r[k + i * ld] * x[i * n + j];
    for (size_t j = k + 1; j < n; j++)
        row[j] /= pivot;
    row[k] = 1 / pivot;
}

/* NaN if one of the sums is. */
static double largest(size_t count, const double *sums) {
    double most = 0;
    for (size_t j = 0; j < count && !isnan(most); j++)
        most = sums[j] <= most ? most : sums[j];
    return most;
}

/* The inverse of a corner is the same corner of the inverse. So the corner grows row by row, and
 * with each row the sums over its columns, of which the 1-norm is the largest. Norms of a larger
 * corner are no smaller: the first that is too badly conditioned is one too many. */
size_t dense_upper_corner(size_t n, const double *r, size_t ld, double least) {
    assert(n <= ld && least > 0);
    double *x = memory_new(n * (n + 2), sizeof *x), *sums = x + n * n, *inverse_sums = sums + n;
    size_t k = n;
    while (k > 0) {
        size_t row = k - 1;
        invert_row(n, r, ld, row, x);
        for (size_t j = row; j < n; j++) {
            sums[j] += fabs(r[row + j * ld]);
            inverse_sums[j] += fabs(x[row * n + j]);
        }
        if (!(least * largest(n - row, sums + row) * largest(n - row, inverse_sums + row) <= 1))
            break;
        k = row;
    }
    free(x);
    return n - k;
}

/* A pivot is what is left of a 1 on the diagonal: rounding leaves about n·1e-16 of it. */
#define PIVOT_LEAST 1e-14

/* Rows that are found together: each element of the rows above is then read once for all. */
enum { TOGETHER = 8 };

static_assert(TOGETHER % LANES == 0, "rows that are found together are of one length");
static_assert(PRECONDITION_PARAMETERS_MAX % LANES == 0, "padded, a row has at most LANES more");
static_assert(LANES == 2 * HALF, "the sums of lanes are kept in two halves");
static_assert(sizeof(lanes) == LANES * sizeof(double) && sizeof(half_lanes) == sizeof(lanes) / 2,
              "rows are read in whole lanes");

size_t triangle_row(size_t r) {
    size_t whole = r / LANES; /* groups of rows of one length before row r */
    return LANES * (whole + 1) * (LANES / 2 * whole + r % LANES);
}

/* Elements of row r with its padding. */
static size_t row_length(size_t r) {
    return (r / LANES + 1) * LANES;
}

/* ---- the factor ---- */

/* The half of the lanes from `half` on of the products of `count` rows with one other row. AVX2 has
 * registers for the sums of half of them. */
LANES_INLINE void half_dots(size_t count, size_t half, size_t length, const double *const *rows,
                            const double *other, half_lanes *dots) {
    half_lanes sum[TOGETHER] = {0};
    for (size_t k = half; k < length; k += LANES) {
        half_lanes b;
        memcpy(&b, other + k, sizeof b);
        UNROLL for (size_t r = 0; r < count; r++) {
            half_lanes a;
            memcpy(&a, rows[r] + k, sizeof a);
            sum[r] += a * b;
        }
    }
    memcpy(dots, sum, sizeof sum);
}

/* Dot products with all lanes at once: AVX-512 has registers for their sums. */
LANES_INLINE void whole_dots(size_t count, size_t length, const double *const *rows,
                             const double *other, double *dots) {
    lanes sum[TOGETHER] = {0};
    for (size_t k = 0; k < length; k += LANES) {
        lanes b;
        lanes_load(&b, other + k);
        UNROLL for (size_t r = 0; r < count; r++) {
            lanes a;
            lanes_load(&a, rows[r] + k);
            sum[r] += a * b;
        }
    }
    for (size_t r = 0; r < count; r++)
        dots[r] = lanes_sum(&sum[r]);
}

/* Products of `count` rows with one other row, in the order of that row's elements. */
LANES_INLINE void row_dots(bool whole, size_t count, size_t length, const double *const *rows,
                           const double *other, double *dots) {
    half_lanes low[TOGETHER], high[TOGETHER];
    if (whole) {
        whole_dots(count, length, rows, other, dots);
        return;
    }
    half_dots(count, 0, length, rows, other, low);
    half_dots(count, HALF, length, rows, other, high);
    for (size_t r = 0; r < count; r++)
        dots[r] = half_lanes_sum(&low[r], &high[r]);
}

/* Rows first… of C, left to right. A row's elements from k on are 0 until they are found, so a
 * product over whole lanes is one over the elements before k. */
LANES_INLINE bool find_rows(bool whole, size_t count, size_t first, double *c,
                            const double *const *a, const double *least) {
    double *rows[TOGETHER] = {0};
    double dots[TOGETHER];
    for (size_t r = 0; r < count; r++)
        rows[r] = c + triangle_row(first + r);
    for (size_t k = 0; k < first; k++) {
        const double *above = c + triangle_row(k);
        row_dots(whole, count, row_length(k), (const double *const *)rows, above, dots);
        for (size_t r = 0; r < count; r++)
            rows[r][k] = (a[r][k] - dots[r]) / above[k];
    }
    for (size_t k = first; k < first + count; k++) {
        size_t own = k - first;
        row_dots(whole, count - own, row_length(k), (const double *const *)rows + own, rows[own],
                 dots + own);
        double pivot = a[own][k] - dots[own];
        if (!(least ? isfinite(pivot) : pivot > PIVOT_LEAST) || isinf(pivot))
            return false;
        rows[own][k] = least && !(pivot > least[k]) ? CHOLESKY_ALIASED : sqrt(pivot);
        for (size_t r = own + 1; r < count; r++)
            rows[r][k] = (a[r][k] - dots[r]) / rows[own][k];
    }
    return true;
}

LANES_INLINE bool factor_by(bool whole, size_t begin, size_t n, double *triangle,
                            double *const *kept, const double *least) {
    const double *const *a = (const double *const *)kept;
    for (size_t first = begin; first < n; first += TOGETHER) {
        size_t count = n - first < TOGETHER ? n - first : TOGETHER;
        heartbeat();
        /* Keeps rows first… of A and clears them, since those of C grow in their place. */
        for (size_t r = 0; r < count; r++) {
            size_t bytes = row_length(first + r) * sizeof(double);
            double *row = triangle + triangle_row(first + r);
            memcpy(kept[r], row, bytes);
            memset(row, 0, bytes);
        }
        bool found = count == TOGETHER ? find_rows(whole, TOGETHER, first, triangle, a, least)
                                       : find_rows(whole, count, first, triangle, a, least);
        if (!found)
            return false;
    }
    return true;
}

VECTOR_CLONES
static bool factor(size_t begin, size_t n, double *triangle, double *const *kept,
                   const double *least) {
    return factor_by(false, begin, n, triangle, kept, least);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static bool
factor_whole(size_t begin, size_t n, double *triangle, double *const *kept, const double *least) {
    return factor_by(true, begin, n, triangle, kept, least);
}

static bool has_whole_lanes(void) {
    return __builtin_cpu_supports("avx512f");
}
#else
#define factor_whole factor
static bool has_whole_lanes(void) {
    return false;
}
#endif

static bool factor_in_room(size_t begin, size_t n, double *a, const double *least) {
    assert(begin <= n && n <= PRECONDITION_PARAMETERS_MAX);
    size_t length = row_length(n);
    double *room = memory_new(TOGETHER * length, sizeof *room), *kept[TOGETHER];
    assert(triangle_row(n) + length == triangle_row(n + 1));
    for (size_t r = 0; r < TOGETHER; r++)
        kept[r] = room + r * length;
    bool found = has_whole_lanes() ? factor_whole(begin, n, a, kept, least)
                                   : factor(begin, n, a, kept, least);
    free(room);
    return found;
}

bool cholesky_factor(size_t n, double *a) {
    return factor_in_room(0, n, a, NULL);
}

bool cholesky_ranked(size_t n, double *a, const double *least) {
    return factor_in_room(0, n, a, least);
}

bool cholesky_ranked_from(size_t begin, size_t n, double *a, const double *least) {
    return factor_in_room(begin, n, a, least);
}

/* ---- solutions ---- */

LANES_INLINE double row_dot(size_t length, const double *row, const double *z) {
    lanes sum[2] = {{0}, {0}};
    for (size_t k = 0; k < length; k += LANES) {
        lanes a, b;
        lanes_load(&a, row + k);
        lanes_load(&b, z + k);
        sum[k / LANES % 2] += a * b;
    }
    sum[0] += sum[1];
    return lanes_sum(&sum[0]);
}

/* z = C⁻¹·b; z is zero before. */
LANES_INLINE void solve_forward(size_t n, const double *c, const double *b, double *z) {
    for (size_t r = 0; r < n; r++) {
        const double *row = c + triangle_row(r);
        z[r] = (b[r] - row_dot(row_length(r), row, z)) / row[r];
    }
}

/* z = C⁻ᵀ·z. What follows an element in its lane is subtracted 0 times. */
LANES_INLINE void solve_backward(size_t n, const double *c, double *z) {
    for (size_t r = n; r-- > 0;) {
        const double *row = c + triangle_row(r);
        double found = z[r] / row[r];
        for (size_t k = 0; k < row_length(r); k += LANES) {
            lanes a, v;
            lanes_load(&a, row + k);
            lanes_load(&v, z + k);
            v -= found * a;
            lanes_store(z + k, &v);
        }
        z[r] = found;
    }
}

VECTOR_CLONES
void cholesky_solve(size_t n, const double *c, double *b) {
    _Alignas(64) double z[PRECONDITION_PARAMETERS_MAX + LANES];
    assert(n <= PRECONDITION_PARAMETERS_MAX);
    memset(z, 0, row_length(n) * sizeof *z);
    solve_forward(n, c, b, z);
    solve_backward(n, c, z);
    memcpy(b, z, n * sizeof *b);
}

/* Iterations of the subspace: directions of eigenvalues half as large as the last one that is
 * wanted have then lost all but 2⁻¹² of their share. */
#define ITERATIONS 12
#define SWEEPS_MAX 30

/* ---- small symmetric matrices ---- */

static void swap(double *a, double *b) {
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Rotates rows and columns p and q of the matrix so that its element (p, q) becomes 0. */
static void rotate(size_t n, double *matrix, double *vectors, size_t p, size_t q) {
    assert(p < q && q < n);
    double off = matrix[p * n + q];
    if (off == 0)
        return;
    double theta = (matrix[q * n + q] - matrix[p * n + p]) / (2 * off);
    double t = 1 / (fabs(theta) + sqrt(theta * theta + 1));
    t = theta < 0 ? -t : t;
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t k = 0; k < n; k++) {
        double a = matrix[k * n + p], b = matrix[k * n + q];
        matrix[k * n + p] = c * a - s * b;
        matrix[k * n + q] = s * a + c * b;
    }
    for (size_t k = 0; k < n; k++) {
        double a = matrix[p * n + k], b = matrix[q * n + k];
        matrix[p * n + k] = c * a - s * b;
        matrix[q * n + k] = s * a + c * b;
    }
    for (size_t k = 0; k < n; k++) {
        double a = vectors[k * n + p], b = vectors[k * n + q];
        vectors[k * n + p] = c * a - s * b;
        vectors[k * n + q] = s * a + c * b;
    }
}

static void sort_falling(size_t n, double *values, double *vectors) {
    for (size_t i = 0; i < n; i++) {
        size_t most = i;
        for (size_t j = i + 1; j < n; j++)
            if (values[j] > values[most])
                most = j;
        if (most == i)
            continue;
        swap(&values[i], &values[most]);
        for (size_t k = 0; k < n; k++)
            swap(&vectors[k * n + i], &vectors[k * n + most]);
    }
}

/* The eigenvalues, falling, and vectors (columns) of a symmetric matrix, n ≤ EIGEN_MAX, by Jacobi's
 * rotations. The matrix is overwritten. */
static void eigen_symmetric(size_t n, double *matrix, double *values, double *vectors) {
    double trace = 0;
    assert(n <= EIGEN_MAX);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            vectors[i * n + j] = i == j;
        trace += fabs(matrix[i * n + i]);
    }
    for (unsigned sweep = 0; sweep < SWEEPS_MAX; sweep++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            for (size_t j = i + 1; j < n; j++)
                sum += fabs(matrix[i * n + j]);
        if (!(sum > 1e-15 * trace))
            break;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++)
                rotate(n, matrix, vectors, p, q);
    }
    for (size_t i = 0; i < n; i++)
        values[i] = matrix[i * n + i];
    sort_falling(n, values, vectors);
}

/* ---- large ones ---- */

/* Column k of the n×count matrix, times itself or another one. */
static double column_dot(size_t n, size_t count, const double *q, size_t k, size_t other) {
    assert(k < count && other < count);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += q[i * count + k] * q[i * count + other];
    return sum;
}

/* Gram and Schmidt, each column twice. What is left of a column that depends on those before is
 * rounding: it becomes 0. */
static void orthonormalise(size_t n, size_t count, double *q) {
    assert(count <= n); /* more columns would depend on one another */
    for (size_t k = 0; k < count; k++) {
        double before = column_dot(n, count, q, k, k);
        for (size_t twice = 0; twice < 2; twice++)
            for (size_t other = 0; other < k; other++) {
                double share = column_dot(n, count, q, k, other);
                for (size_t i = 0; i < n; i++)
                    q[i * count + k] -= share * q[i * count + other];
            }
        double left = column_dot(n, count, q, k, k);
        double scale = left > 1e-24 * before && left > 0 ? 1 / sqrt(left) : 0;
        for (size_t i = 0; i < n; i++)
            q[i * count + k] *= scale;
    }
}

void eigen_largest(struct matrix_scratch *scratch, size_t m, size_t n, const double *a,
                   size_t count, double *values, double *vectors) {
    assert(count <= n && count <= EIGEN_MAX);
    double small[EIGEN_MAX * EIGEN_MAX] = {0}, turn[EIGEN_MAX * EIGEN_MAX];
    double *q = memory_new(n * count + 1, sizeof *q),
           *image = memory_new(m * count + 1, sizeof *image);
    for (size_t i = 0; i < n * count; i++)
        /* Evenly in (−1, 1), by the element's number. */
        q[i] = (double)(random_mix(((uint64_t)i + 1) * RANDOM_STEP) >> 11) * 0x1p-52 - 1;
    orthonormalise(n, count, q);
    for (unsigned iteration = 0; iteration < ITERATIONS; iteration++) {
        matrix_product(scratch, m, count, n, a, n, q, count, image, count);
        memset(q, 0, n * count * sizeof *q);
        matrix_add_transposed(scratch, n, count, m, a, n, image, count, q, count);
        orthonormalise(n, count, q);
    }
    matrix_product(scratch, m, count, n, a, n, q, count, image, count);
    matrix_add_transposed(scratch, count, count, m, image, count, image, count, small, count);
    eigen_symmetric(count, small, values, turn);
    for (size_t k = 0; k < count; k++)
        values[k] = fmax(values[k], 0) / (double)(m ? m : 1);
    matrix_product(scratch, n, count, count, q, count, turn, count, vectors, count);
    free(q);
    free(image);
}
