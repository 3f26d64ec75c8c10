/* What the pass over one chunk of a network takes: microseconds a row, and the shares of products,
 * activations and rounding, each measured by itself over the same sizes. Times are of the
 * processor, the least of several runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/special.h"
#include "numeric/setup.h"
#include "objective/network.h"

enum { REPEATS = 15, FEATURES = 784, CLASSES = 10, CHUNK_ROWS = (1 << 20) / (4 * FEATURES) };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A chunk of pictures of which half is 0, and the memory that the pass over it takes. */
struct chunk {
    struct objective_shape shape;
    struct layout layout;
    struct rows rows;
    struct objective_scale scale;
    double *parameters;
    int64_t *sum;
    struct objective_scratch *scratch;
};

static double best_ns(void (*run)(struct chunk *), struct chunk *chunk) {
    double best = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_ns();
        run(chunk);
        best = fmin(best, now_ns() - start);
    }
    return best;
}

static void fill(struct chunk *chunk) {
    float *value = memory_new(CHUNK_ROWS * FEATURES, sizeof *value);
    double *label = memory_new(CHUNK_ROWS, sizeof *label);
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < CHUNK_ROWS * FEATURES; i++)
        value[i] = random_below(&random, 2) ? (float)random_unit(&random) : 0;
    for (size_t i = 0; i < CHUNK_ROWS; i++)
        label[i] = (double)random_below(&random, CLASSES);
    chunk->rows = (struct rows){.count = CHUNK_ROWS,
                                .features = FEATURES,
                                .values = CHUNK_ROWS * FEATURES,
                                .dense = true,
                                .type = VALUE_FLOAT,
                                .value = value,
                                .label = label};
}

static void prepare(struct chunk *chunk, const struct network *network) {
    chunk->shape = (struct objective_shape){.kind = OBJECTIVE_SOFTMAX,
                                            .features = FEATURES,
                                            .outputs = CLASSES,
                                            .intercept = true,
                                            .network = *network};
    chunk->layout = objective_layout(&chunk->shape);
    uint64_t n = layout_parameters(&chunk->layout);
    chunk->scale = (struct objective_scale){.uniform = 53, .bounds = {chunk->layout.count, {0}}};
    for (uint32_t t = 0; t < chunk->layout.count; t++)
        chunk->scale.bounds.exponent[t] = 20;
    chunk->parameters = memory_new(n, sizeof *chunk->parameters);
    chunk->sum = memory_new(n, sizeof *chunk->sum);
    layout_start(&chunk->layout, 0, n, chunk->parameters);
    chunk->scratch = objective_scratch_new(&chunk->shape);
}

static void release(struct chunk *chunk) {
    free(chunk->parameters);
    free(chunk->sum);
    objective_scratch_free(chunk->scratch);
}

static void run_pass(struct chunk *chunk) {
    struct objective_result result;
    objective_block(&chunk->shape, &chunk->scale, &chunk->rows, chunk->parameters, chunk->sum,
                    chunk->scratch, &result);
}

/* Rounds the gradient that the pass has left: its largest elements, and its terms in the sums. */
static void run_rounding(struct chunk *chunk) {
    network_maxima(chunk->scratch->network, &chunk->scale);
    network_add(chunk->scratch->network, &chunk->scale, chunk->sum);
}

static void layer_products(struct chunk *chunk, uint32_t l) {
    struct network_scratch *s = chunk->scratch->network;
    size_t in = s->width[l - 1], out = s->width[l], rows = CHUNK_ROWS;
    const void *below = l == 1 ? s->from : s->units[l - 2];
    if (chunk->shape.network.precision == PRECISION_FLOAT) {
        matrix_product_float(s->matrix, rows, out, in, below, in, s->weight[l - 1], out,
                             s->units[l - 1], out);
        matrix_add_transposed_float(s->matrix, in, out, rows, below, in, s->units[l - 1], out,
                                    s->gradient[l - 1], out);
        if (l > 1)
            matrix_by_transposed_float(s->matrix, rows, in, out, s->units[l - 1], out,
                                       s->weight[l - 1], out, s->error[0], in);
    } else {
        matrix_product(s->matrix, rows, out, in, below, in, s->weight[l - 1], out, s->units[l - 1],
                       out);
        matrix_add_transposed(s->matrix, in, out, rows, below, in, s->units[l - 1], out,
                              s->gradient[l - 1], out);
        if (l > 1)
            matrix_by_transposed(s->matrix, rows, in, out, s->units[l - 1], out, s->weight[l - 1],
                                 out, s->error[0], in);
    }
}

static void run_products(struct chunk *chunk) {
    for (uint32_t l = 1; l <= chunk->scratch->network->layers; l++)
        layer_products(chunk, l);
}

static void run_activations(struct chunk *chunk) {
    struct network_scratch *s = chunk->scratch->network;
    for (uint32_t l = 1; l < s->layers; l++) {
        size_t n = CHUNK_ROWS * s->width[l];
        if (chunk->shape.network.precision == PRECISION_FLOAT) {
            activation_tanh_float(n, s->units[l - 1], s->units[l - 1]);
            activation_tanh_back_float(n, s->error[0], s->error[0], s->units[l - 1]);
        } else {
            activation_tanh(n, s->units[l - 1], s->units[l - 1]);
            activation_tanh_back(n, s->error[0], s->error[0], s->units[l - 1]);
        }
    }
}

static void measure(struct chunk *chunk, const char *name, const struct network *network) {
    prepare(chunk, network);
    double pass = best_ns(run_pass, chunk);
    double rounding = best_ns(run_rounding, chunk);
    double products = best_ns(run_products, chunk);
    double activations = best_ns(run_activations, chunk);
    printf("%-22s %-6s %7.2f us/row: products %4.1f %%, activations %4.1f %%, "
           "checks and rounding %4.1f %%\n",
           name, network->precision == PRECISION_FLOAT ? "float" : "double",
           pass / CHUNK_ROWS / 1e3, 100 * products / pass, 100 * activations / pass,
           100 * rounding / pass);
    release(chunk);
}

int main(void) {
    numeric_setup();
    struct chunk chunk = {0};
    fill(&chunk);
    for (int precision = 0; precision < 2; precision++) {
        struct network network = {
            .layers = 1, .units = {100}, .precision = (enum precision)precision, .seed = 1};
        measure(&chunk, "784-100-10 tanh", &network);
        network.layers = 2;
        network.units[0] = 300, network.units[1] = 100;
        measure(&chunk, "784-300-100-10 tanh", &network);
    }
    free((void *)chunk.rows.value);
    free((void *)chunk.rows.label);
    return 0;
}
