/* Speed of the products of linear models with several outputs, and of the triangle of second
 * derivatives, beside OpenBLAS's products that could stand for them: each and its peer take turns
 * in one run, on one thread, and the least time of both counts. Times are of the processor, not of
 * the clock on the wall: others may use the machine. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/product.h"
#include "objective/objective.h"

enum { REPEATS = 15 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double *made_up(size_t count) {
    double *numbers = memory_new_aligned(count, sizeof *numbers);
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < count; i++)
        numbers[i] = random_unit(&random) - 0.5;
    return numbers;
}

/* ---- margins and gradient ---- */

/* The rows of a batch of so many columns, and those of a chunk of bytes. */
enum { FEATURES = 784, BATCH = 24, CHUNK = 56 * BATCH };

/* What a product may be told to take at once: OpenBLAS is faster with more. */
static const size_t peer_rows[] = {BATCH, 8 * BATCH, CHUNK};
enum { PEERS = sizeof peer_rows / sizeof *peer_rows };

struct pass {
    size_t outputs;
    double *rows, *parameters, *packed, *margins, *gradient;
};

static void our_margins(const struct pass *pass) {
    product_pack(FEATURES, pass->outputs, pass->parameters, pass->packed);
    for (size_t i = 0; i < CHUNK; i += BATCH)
        product_plain(BATCH, pass->outputs, FEATURES, pass->rows + i * FEATURES, pass->packed,
                      pass->margins + i * pass->outputs);
}

static void peer_margins(const struct pass *pass, size_t rows) {
    const int outputs = (int)pass->outputs;
    for (size_t i = 0; i < CHUNK; i += rows)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, outputs, FEATURES, 1,
                    pass->rows + i * FEATURES, FEATURES, pass->parameters, outputs, 0,
                    pass->margins + i * pass->outputs, outputs);
}

static void our_gradient(const struct pass *pass) {
    memset(pass->gradient, 0, FEATURES * pass->outputs * sizeof(double));
    for (size_t i = 0; i < CHUNK; i += BATCH)
        product_transposed(FEATURES, pass->outputs, BATCH, pass->rows + i * FEATURES,
                           pass->margins + i * pass->outputs, pass->gradient,
                           pass->rows + (i + BATCH) % CHUNK * FEATURES, sizeof(double));
}

static void peer_gradient(const struct pass *pass, size_t rows) {
    const int outputs = (int)pass->outputs;
    for (size_t i = 0; i < CHUNK; i += rows)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, outputs, FEATURES, (int)rows, 1,
                    pass->margins + i * pass->outputs, outputs, pass->rows + i * FEATURES, FEATURES,
                    i > 0, pass->gradient, FEATURES);
}

static void compare(const char *name, const struct pass *pass, void (*ours)(const struct pass *),
                    void (*peer)(const struct pass *, size_t)) {
    const double operations = 2.0 * CHUNK * FEATURES * (double)pass->outputs;
    double best[1 + PEERS];
    for (size_t p = 0; p <= PEERS; p++)
        best[p] = INFINITY;
    for (int i = 0; i < REPEATS; i++)
        for (size_t p = 0; p <= PEERS; p++) {
            double start = now_ns();
            p ? peer(pass, peer_rows[p - 1]) : ours(pass);
            best[p] = fmin(best[p], now_ns() - start);
        }
    printf("K = %3zu  %-8s  %5.1f GFlop/s; OpenBLAS by", pass->outputs, name, operations / best[0]);
    for (size_t p = 0; p < PEERS; p++)
        printf(" %4zu rows %5.1f (ratio %.2f)", peer_rows[p], operations / best[1 + p],
               best[1 + p] / best[0]);
    printf("\n");
}

static void compare_outputs(size_t outputs) {
    struct pass pass = {.outputs = outputs,
                        .rows = made_up((size_t)CHUNK * FEATURES),
                        .parameters = made_up(FEATURES * outputs),
                        .packed = made_up(product_packed(FEATURES, outputs)),
                        .margins = made_up(CHUNK * outputs),
                        .gradient = made_up(FEATURES * outputs)};
    compare("margins", &pass, our_margins, peer_margins);
    double *derivatives = made_up(CHUNK * outputs);
    memcpy(pass.margins, derivatives, CHUNK * outputs * sizeof *derivatives);
    compare("gradient", &pass, our_gradient, peer_gradient);
    free(derivatives);
    free(pass.rows);
    free(pass.parameters);
    free(pass.packed);
    free(pass.margins);
    free(pass.gradient);
}

/* ---- second derivatives ---- */

enum { CURVED_ROWS = 256, CURVED_TOGETHER = 64 };

/* Compares the triangle of a logistic loss without intercept, all rows drawn. OpenBLAS adds as many
 * rows at a time, each times the root of its second derivative, which is not counted. */
static void compare_triangle(int features) {
    const size_t n = (size_t)features;
    double *values = made_up(CURVED_ROWS * n), *label = memory_new(CURVED_ROWS, sizeof *label);
    double *point = memory_new(n, sizeof *point), *square = memory_new(n * n, sizeof *square);
    int64_t *triangle = memory_new(n * (n + 1) / 2, sizeof *triangle);
    int16_t *exponent = memory_new(n, sizeof *exponent);
    for (size_t j = 0; j < n; j++)
        exponent[j] = 50;
    struct objective_shape shape = {
        .kind = OBJECTIVE_LOGISTIC, .features = (uint32_t)features, .outputs = 1};
    struct objective_sample sample = {.exponent = exponent,
                                      .examples = CURVED_ROWS,
                                      .columns = objective_columns(&shape),
                                      .sampling = {.floor = 1}};
    struct rows rows = {.count = CURVED_ROWS,
                        .features = (uint32_t)features,
                        .values = CURVED_ROWS * n,
                        .dense = true,
                        .type = VALUE_DOUBLE,
                        .value = values,
                        .label = label};
    struct objective_scratch *scratch = objective_scratch_new(&shape);
    struct objective_hessian curved;
    double ours = INFINITY, peer = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_ns();
        objective_curvature(&shape, &sample, &rows, 0, point, triangle, scratch, &curved);
        double between = now_ns();
        for (size_t r = 0; r < CURVED_ROWS; r += CURVED_TOGETHER)
            cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, features, CURVED_TOGETHER, 1,
                        values + r * n, features, 1, square, features);
        ours = fmin(ours, between - start);
        peer = fmin(peer, now_ns() - between);
    }
    const double terms = (double)n * ((double)n + 1) / 2 * CURVED_ROWS;
    printf("triangle of %4d: %.2f ns a term; dsyrk %.2f, ratio %.2f%s\n", features, ours / terms,
           peer / terms, peer / ours, curved.exceeded ? " (exceeded)" : "");
    objective_scratch_free(scratch);
    free(values);
    free(label);
    free(point);
    free(square);
    free(triangle);
    free(exponent);
}

int main(void) {
    const size_t outputs[] = {3, 7, 10, 20, 100};
    const int features[] = {54, 200, 784, 2000};
    openblas_set_num_threads(1);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        compare_outputs(outputs[i]);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        compare_triangle(features[i]);
    return 0;
}
