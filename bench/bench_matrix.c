/* Speed of the matrix products of networks beside OpenBLAS's, and of the activations: each figure
 * and its peer take turns in one run, on one thread, and the least time of both counts. Times are
 * of the processor, not of the clock on the wall: others may use the machine. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/special.h"
#include "numeric/matrix.h"

enum { REPEATS = 15 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

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
    double *a, *b, *c;
    float *fa, *fb, *fc;
};

static void run_ours(const struct product *of, struct operands *o, bool narrow) {
    const size_t m = of->m, n = of->n, k = of->k;
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

static void run_peer(const struct product *of, struct operands *o, bool narrow) {
    const int m = (int)of->m, n = (int)of->n, k = (int)of->k;
    const CBLAS_TRANSPOSE left = of->form == ADD_TRANSPOSED ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE right = of->form == BY_TRANSPOSED ? CblasTrans : CblasNoTrans;
    const int lda = of->form == ADD_TRANSPOSED ? m : k, ldb = of->form == BY_TRANSPOSED ? k : n;
    const int add = of->form == ADD_TRANSPOSED;
    if (narrow)
        cblas_sgemm(CblasRowMajor, left, right, m, n, k, 1, o->fa, lda, o->fb, ldb, (float)add,
                    o->fc, n);
    else
        cblas_dgemm(CblasRowMajor, left, right, m, n, k, 1, o->a, lda, o->b, ldb, add, o->c, n);
}

/* Least times of both, which take turns. */
static void measure(const struct product *of, struct operands *o, bool narrow, double *ours,
                    double *peer) {
    *ours = *peer = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_ns();
        run_ours(of, o, narrow);
        double between = now_ns();
        run_peer(of, o, narrow);
        *ours = fmin(*ours, between - start);
        *peer = fmin(*peer, now_ns() - between);
    }
}

static struct operands operands_new(size_t count) {
    struct operands o = {matrix_scratch_new(),
                         memory_new(count, sizeof *o.a),
                         memory_new(count, sizeof *o.b),
                         memory_new(count, sizeof *o.c),
                         memory_new(count, sizeof *o.fa),
                         memory_new(count, sizeof *o.fb),
                         memory_new(count, sizeof *o.fc)};
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < count; i++) {
        o.a[i] = random_unit(&random) - 0.5;
        o.b[i] = random_unit(&random) - 0.5;
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
static void compare(size_t rows, bool narrow) {
    struct operands o = operands_new(rows * 784 + 784 * 100);
    double all_ours = 0, all_peer = 0;
    for (size_t i = 0; i < PRODUCTS; i++) {
        struct product of = products[i];
        of.m = of.m ? of.m : rows;
        of.k = of.k ? of.k : rows;
        double ours, peer, operations = 2 * (double)of.m * (double)of.n * (double)of.k;
        measure(&of, &o, narrow, &ours, &peer);
        all_ours += ours;
        all_peer += peer;
        printf("%4zu rows  %-6s  %-6s  %6.1f GFlop/s  OpenBLAS %6.1f  ratio %.2f\n", rows,
               narrow ? "float" : "double", of.name, operations / ours, operations / peer,
               peer / ours);
    }
    printf("%4zu rows  %-6s  all     %8.0f us       OpenBLAS %6.0f  ratio %.2f\n", rows,
           narrow ? "float" : "double", all_ours * 1e-3, all_peer * 1e-3, all_peer / all_ours);
    operands_free(&o);
}

enum { ELEMENTS = 4096 };

static const struct function {
    const char *name;
    void (*wide)(size_t n, double *out, const double *x);
    void (*narrow)(size_t n, float *out, const float *x);
    void (*wide_back)(size_t n, double *out, const double *gradient, const double *x);
    void (*narrow_back)(size_t n, float *out, const float *gradient, const float *x);
} functions[] = {
    {"tanh", activation_tanh, activation_tanh_float, activation_tanh_back,
     activation_tanh_back_float},
    {"relu", activation_relu, activation_relu_float, activation_relu_back,
     activation_relu_back_float},
    {"gelu", activation_gelu, activation_gelu_float, activation_gelu_back,
     activation_gelu_back_float},
};

static void activations(const struct function *of, struct operands *o) {
    double best[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    for (int i = 0; i < REPEATS; i++) {
        double t[5] = {now_ns()};
        of->wide(ELEMENTS, o->c, o->a);
        t[1] = now_ns();
        of->wide_back(ELEMENTS, o->c, o->b, o->a);
        t[2] = now_ns();
        of->narrow(ELEMENTS, o->fc, o->fa);
        t[3] = now_ns();
        of->narrow_back(ELEMENTS, o->fc, o->fb, o->fa);
        t[4] = now_ns();
        for (int k = 0; k < 4; k++)
            best[k] = fmin(best[k], (t[k + 1] - t[k]) / ELEMENTS);
    }
    printf("%s, ns an element: double %.2f, back %.2f; float %.2f, back %.2f\n", of->name, best[0],
           best[1], best[2], best[3]);
}

int main(void) {
    const size_t rows[] = {128, 300, 1300};
    openblas_set_num_threads(1);
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            compare(rows[i], narrow);
    struct operands o = operands_new(ELEMENTS);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        activations(&functions[i], &o);
    operands_free(&o);
    return 0;
}
