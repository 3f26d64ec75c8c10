/* Speed of the products of rows beside OpenBLAS's that could stand for them: of linear models with
 * several outputs, of second derivatives, and of networks; and of the activations. All ways take
 * turns in one run, on one thread, and the least processor time of each counts. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/matrix.h"
#include "numeric/product.h"
#include "numeric/special.h"
#include "objective/block.h"
#include "objective/second.h"
#include "objective/shape.h"

enum { TURNS = 15 };

/* Nanoseconds that this thread has computed so far: others may use the machine. */
static double thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least nanoseconds of each way of doing a thing. All ways run one after the other in each
 * turn; run() does the thing by way number `way`, from 0 on. */
static void least_ns(size_t ways, void (*run)(void *context, size_t way), void *context,
                     double *least) {
    for (size_t way = 0; way < ways; way++)
        least[way] = INFINITY;
    for (unsigned turn = 0; turn < TURNS; turn++)
        for (size_t way = 0; way < ways; way++) {
            double start = thread_ns();
            run(context, way);
            least[way] = fmin(least[way], thread_ns() - start);
        }
}

/* Numbers from -0.5 to 0.5, the same for every call. The caller frees them. */
static double *random_numbers(size_t count) {
    double *numbers = memory_new_aligned(count, sizeof *numbers);
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < count; i++)
        numbers[i] = random_unit(&random) - 0.5;
    return numbers;
}

/* ---- margins and gradient of linear models ---- */

/* The rows of a batch of so many columns, and those of a chunk of bytes. */
enum { FEATURES = 784, BATCH = 24, CHUNK = 56 * BATCH };

/* What a product may be told to take at once: OpenBLAS is faster with more. */
static const size_t peer_rows[] = {BATCH, 8 * BATCH, CHUNK};
enum { PEERS = sizeof peer_rows / sizeof *peer_rows };

struct pass {
    size_t outputs;
    void (*ours)(const struct pass *);
    void (*peer)(const struct pass *, size_t rows);
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

static void run_pass(void *context, size_t way) {
    const struct pass *pass = context;
    way ? pass->peer(pass, peer_rows[way - 1]) : pass->ours(pass);
}

static void compare_pass(const char *name, struct pass *pass) {
    const double operations = 2.0 * CHUNK * FEATURES * (double)pass->outputs;
    double least[1 + PEERS];
    least_ns(1 + PEERS, run_pass, pass, least);
    printf("K = %3zu  %-8s  %5.1f GFlop/s; OpenBLAS by", pass->outputs, name,
           operations / least[0]);
    for (size_t p = 0; p < PEERS; p++)
        printf(" %4zu rows %5.1f (ratio %.2f)", peer_rows[p], operations / least[1 + p],
               least[1 + p] / least[0]);
    printf("\n");
}

static void compare_outputs(size_t outputs) {
    struct pass pass = {.outputs = outputs,
                        .ours = our_margins,
                        .peer = peer_margins,
                        .rows = random_numbers((size_t)CHUNK * FEATURES),
                        .parameters = random_numbers(FEATURES * outputs),
                        .packed = random_numbers(product_packed(FEATURES, outputs)),
                        .margins = random_numbers(CHUNK * outputs),
                        .gradient = random_numbers(FEATURES * outputs)};
    compare_pass("margins", &pass);
    free(pass.margins);
    pass.margins = random_numbers(CHUNK * outputs); /* as derivatives */
    pass.ours = our_gradient, pass.peer = peer_gradient;
    compare_pass("gradient", &pass);
    free(pass.rows);
    free(pass.parameters);
    free(pass.packed);
    free(pass.margins);
    free(pass.gradient);
}

/* ---- second derivatives ---- */

enum { TRIANGLE_ROWS = 256, TOGETHER = 64 };

/* The triangle of a logistic loss without intercept, all rows drawn. */
struct triangle {
    size_t n;
    const struct objective_shape *shape;
    const struct objective_sample *sample;
    const struct rows *rows;
    double *point, *square;
    int64_t *sums;
    struct objective_scratch *scratch;
    struct objective_hessian hessian;
};

/* OpenBLAS adds TOGETHER rows at a time. It would have to multiply each by the root of its second
 * derivative, which is not counted. */
static void run_triangle(void *context, size_t way) {
    struct triangle *triangle = context;
    const int n = (int)triangle->n;
    const double *values = triangle->rows->value;
    if (!way)
        objective_curvature(triangle->shape, triangle->sample, triangle->rows, 0, triangle->point,
                            triangle->sums, triangle->scratch, &triangle->hessian);
    for (size_t r = 0; way && r < TRIANGLE_ROWS; r += TOGETHER)
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, n, TOGETHER, 1, values + r * triangle->n,
                    n, 1, triangle->square, n);
}

static void compare_triangle(int features) {
    const size_t n = (size_t)features;
    double *values = random_numbers(TRIANGLE_ROWS * n);
    double *label = memory_new(TRIANGLE_ROWS, sizeof *label);
    int16_t *exponent = memory_new(n, sizeof *exponent);
    for (size_t j = 0; j < n; j++)
        exponent[j] = 50;
    struct objective_shape shape = {
        .kind = OBJECTIVE_LOGISTIC, .features = (uint32_t)features, .outputs = 1};
    struct objective_sample sample = {.form = &second_sampled,
                                      .exponent = exponent,
                                      .examples = TRIANGLE_ROWS,
                                      .columns = objective_columns(&shape),
                                      .sampling = {.floor = 1}};
    struct rows rows = {.count = TRIANGLE_ROWS,
                        .features = (uint32_t)features,
                        .values = TRIANGLE_ROWS * n,
                        .dense = true,
                        .type = VALUE_DOUBLE,
                        .value = values,
                        .label = label};
    struct triangle triangle = {.n = n,
                                .shape = &shape,
                                .sample = &sample,
                                .rows = &rows,
                                .point = memory_new(n, sizeof *triangle.point),
                                .square = memory_new(n * n, sizeof *triangle.square),
                                .sums = memory_new(n * (n + 1) / 2, sizeof *triangle.sums),
                                .scratch = objective_scratch_new(&shape)};
    double least[2];
    least_ns(2, run_triangle, &triangle, least);
    const double terms = (double)n * ((double)n + 1) / 2 * TRIANGLE_ROWS;
    printf("triangle of %4d: %.2f ns a term; dsyrk %.2f, ratio %.2f%s\n", features,
           least[0] / terms, least[1] / terms, least[1] / least[0],
           triangle.hessian.exceeded ? " (exceeded)" : "");
    objective_scratch_free(triangle.scratch);
    free(values);
    free(label);
    free(exponent);
    free(triangle.point);
    free(triangle.square);
    free(triangle.sums);
}

/* ---- networks ---- */

enum form { PLAIN, BY_TRANSPOSED, ADD_TRANSPOSED };

/* The products of 784-100-10 for a chunk's rows: rows stand for 0. */
static const struct product {
    const char *name;
    enum form form;
    size_t m, n, k;
} products[] = {
    {"X W1", PLAIN, 0, 100, 784},         {"H W2", PLAIN, 0, 10, 100},
    {"D W2'", BY_TRANSPOSED, 0, 100, 10}, {"H'D", ADD_TRANSPOSED, 100, 10, 0},
    {"X'D", ADD_TRANSPOSED, 784, 100, 0},
};
enum { PRODUCTS = sizeof products / sizeof *products };

struct operands {
    struct matrix_scratch *scratch;
    struct product of; /* what is measured */
    bool narrow;
    double *a, *b, *c;
    float *fa, *fb, *fc;
};

static void run_ours(const struct operands *o) {
    const struct product *of = &o->of;
    const size_t m = of->m, n = of->n, k = of->k;
    const bool narrow = o->narrow;
    switch (of->form) {
    case PLAIN:
        narrow ? matrix_product_float(o->scratch, m, n, k, o->fa, k, o->fb, n, o->fc, n)
               : matrix_product(o->scratch, m, n, k, o->a, k, o->b, n, o->c, n);
        return;
    case BY_TRANSPOSED:
        narrow ? matrix_by_transposed_float(o->scratch, m, n, k, o->fa, k, o->fb, k, o->fc, n)
               : matrix_by_transposed(o->scratch, m, n, k, o->a, k, o->b, k, o->c, n);
        return;
    case ADD_TRANSPOSED:
        narrow ? matrix_add_transposed_float(o->scratch, m, n, k, o->fa, m, o->fb, n, o->fc, n)
               : matrix_add_transposed(o->scratch, m, n, k, o->a, m, o->b, n, o->c, n);
    }
}

static void run_peer(const struct operands *o) {
    const struct product *of = &o->of;
    const int m = (int)of->m, n = (int)of->n, k = (int)of->k;
    const CBLAS_TRANSPOSE left = of->form == ADD_TRANSPOSED ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE right = of->form == BY_TRANSPOSED ? CblasTrans : CblasNoTrans;
    const int lda = of->form == ADD_TRANSPOSED ? m : k, ldb = of->form == BY_TRANSPOSED ? k : n;
    const int add = of->form == ADD_TRANSPOSED;
    if (o->narrow)
        cblas_sgemm(CblasRowMajor, left, right, m, n, k, 1, o->fa, lda, o->fb, ldb, (float)add,
                    o->fc, n);
    else
        cblas_dgemm(CblasRowMajor, left, right, m, n, k, 1, o->a, lda, o->b, ldb, add, o->c, n);
}

static void run_product(void *context, size_t way) {
    way ? run_peer(context) : run_ours(context);
}

static struct operands operands_new(size_t count) {
    struct operands o = {.scratch = matrix_scratch_new(),
                         .a = random_numbers(count),
                         .b = random_numbers(count),
                         .c = memory_new(count, sizeof *o.c),
                         .fa = memory_new(count, sizeof *o.fa),
                         .fb = memory_new(count, sizeof *o.fb),
                         .fc = memory_new(count, sizeof *o.fc)};
    for (size_t i = 0; i < count; i++) {
        o.fa[i] = (float)o.a[i];
        o.fb[i] = (float)o.b[i];
    }
    return o;
}

static void operands_free(struct operands *o) {
    matrix_scratch_free(o->scratch);
    free(o->a);
    free(o->b);
    free(o->c);
    free(o->fa);
    free(o->fb);
    free(o->fc);
}

/* One line a product, and one for all of them. */
static void compare_products(size_t rows, bool narrow) {
    struct operands o = operands_new(rows * 784 + 784 * 100);
    double all[2] = {0};
    o.narrow = narrow;
    for (size_t i = 0; i < PRODUCTS; i++) {
        o.of = products[i];
        o.of.m = o.of.m ? o.of.m : rows;
        o.of.k = o.of.k ? o.of.k : rows;
        double least[2], operations = 2 * (double)o.of.m * (double)o.of.n * (double)o.of.k;
        least_ns(2, run_product, &o, least);
        all[0] += least[0];
        all[1] += least[1];
        printf("%4zu rows  %-6s  %-6s  %6.1f GFlop/s  OpenBLAS %6.1f  ratio %.2f\n", rows,
               narrow ? "float" : "double", o.of.name, operations / least[0], operations / least[1],
               least[1] / least[0]);
    }
    printf("%4zu rows  %-6s  all     %8.0f us       OpenBLAS %6.0f  ratio %.2f\n", rows,
           narrow ? "float" : "double", all[0] * 1e-3, all[1] * 1e-3, all[1] / all[0]);
    operands_free(&o);
}

enum { ELEMENTS = 4096 };

struct applied {
    const struct activation_row *of;
    struct operands *operands;
};

enum { FORMS = 4 };

static void run_activation(void *context, size_t way) {
    const struct activation_row *of = ((struct applied *)context)->of;
    struct operands *o = ((struct applied *)context)->operands;
    switch (way) {
    case 0:
        of->forward(ELEMENTS, o->c, o->a);
        return;
    case 1:
        of->back(ELEMENTS, o->c, o->b, o->a);
        return;
    case 2:
        of->forward_float(ELEMENTS, o->fc, o->fa);
        return;
    default:
        of->back_float(ELEMENTS, o->fc, o->fb, o->fa);
    }
}

static void measure_activations(void) {
    struct operands o = operands_new(ELEMENTS);
    for (size_t i = 0; i < ACTIVATIONS; i++) {
        double least[FORMS];
        least_ns(FORMS, run_activation, &(struct applied){&activation_rows[i], &o}, least);
        printf("%s, ns an element: double %.2f, back %.2f; float %.2f, back %.2f\n",
               activation_rows[i].name, least[0] / ELEMENTS, least[1] / ELEMENTS,
               least[2] / ELEMENTS, least[3] / ELEMENTS);
    }
    operands_free(&o);
}

int main(void) {
    const size_t outputs[] = {3, 7, 10, 20, 100}, rows[] = {128, 1300};
    const int features[] = {54, 200, 784, 2000};
    openblas_set_num_threads(1);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        compare_outputs(outputs[i]);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        compare_triangle(features[i]);
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            compare_products(rows[i], narrow);
    measure_activations();
    return 0;
}
