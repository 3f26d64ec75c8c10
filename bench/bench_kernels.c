/* Speed of the kernels: nanoseconds per stored value of a data pass and, where many outputs make it
 * compute much, its share of what the processor can do at most; and memory throughput of the
 * history passes beside a plain read of as much memory. Times are of the processor, not of the
 * clock on the wall: others may use the machine. With several threads the slowest counts. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/random.h"
#include "bench/measure.h"
#include "numeric/setup.h"
#include "numeric/special.h"
#include "numeric/vector.h"
#include "objective/block.h"
#include "objective/objective.h"
#include "objective/shape.h"

enum { TURNS = 7 };

struct data_pass {
    struct objective_shape shape;
    struct objective_scale scale;
    struct rows rows;
    double *parameters;
    size_t bytes;        /* of the parameters, and of a sum */
    uint32_t block_rows; /* as many as a chunk has */
};

/* What one thread computes of a data pass. */
struct share {
    const struct data_pass *pass;
    uint32_t first, end; /* rows */
    int64_t *sum;
    struct objective_scratch *scratch;
    double ns; /* the least time */
};

static void run_share(void *argument) {
    struct share *share = argument;
    const struct data_pass *pass = share->pass;
    struct objective_result result;
    for (uint32_t first = share->first; first < share->end; first += pass->block_rows) {
        struct rows block = pass->rows;
        uint32_t left = share->end - first;
        block.count = left < pass->block_rows ? left : pass->block_rows;
        block.label += first;
        if (block.dense)
            block.value = (const float *)block.value + (size_t)first * block.features;
        else
            block.start += first;
        objective_block(&pass->shape, &pass->scale, &block, pass->parameters, share->sum,
                        share->scratch, &result);
    }
}

/* The least time of several runs. */
static double best_ns(void (*run)(void *), void *argument) {
    double best = INFINITY;
    for (int i = 0; i < TURNS; i++) {
        double start = thread_ns();
        run(argument);
        best = fmin(best, thread_ns() - start);
    }
    return best;
}

static void *measure_share(void *argument) {
    struct share *share = argument;
    share->ns = best_ns(run_share, share);
    return NULL;
}

/* The slowest thread's least time for its share. */
static double measure_pass(const struct data_pass *pass, uint32_t threads) {
    struct share shares[THREADS_MAX] = {{0}};
    pthread_t ids[THREADS_MAX];
    double slowest = 0;
    for (uint32_t i = 0; i < threads; i++) {
        shares[i] = (struct share){.pass = pass,
                                   .first = pass->rows.count / threads * i,
                                   .end = pass->rows.count / threads * (i + 1),
                                   .sum = memory_map(pass->bytes),
                                   .scratch = objective_scratch_new(&pass->shape)};
        pthread_create(&ids[i], NULL, measure_share, &shares[i]);
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        slowest = fmax(slowest, shares[i].ns);
        memory_unmap(shares[i].sum, pass->bytes);
        objective_scratch_free(shares[i].scratch);
    }
    return slowest;
}

static void run_peak(void *argument) {
    double *operations = argument;
    *operations = peak_operations(1000000);
}

/* Prints what a pass took; of dense rows with several outputs, the share of the peak too: margins
 * and gradient are a product and an addition each for every value and output. */
static void print_pass(const char *name, const struct data_pass *pass, uint32_t threads,
                       double ns) {
    double values = (double)pass->rows.values;
    printf("%-52s %7.2f ns/value %8.1f ns/row", name, ns / values, ns / pass->rows.count);
    if (pass->rows.dense && pass->shape.outputs > 1) {
        double operations;
        double peak = best_ns(run_peak, &operations);
        peak = operations / peak * threads;
        printf(" %5.1f %% of peak", 100 * 4 * values * pass->shape.outputs / ns / peak);
    }
    printf("\n");
}

/* Columns of a row, rising and crowded towards 0 as frequency makes them. */
static void fill_sparse(struct rows *rows, uint32_t width, struct random *random) {
    uint32_t *start = memory_new(rows->count + 1, sizeof *start);
    uint32_t *feature = memory_new(rows->values, sizeof *feature);
    for (uint32_t i = 0; i < rows->count; i++) {
        start[i + 1] = start[i] + width;
        uint32_t last = 0;
        for (uint32_t j = 0; j < width; j++) {
            double reach = pow((double)(j + 1) / width, 4) * (rows->features - width);
            uint32_t column = (uint32_t)(reach * random_unit(random)) + j;
            last = column > last || j == 0 ? column : last + 1;
            feature[start[i] + j] = last;
        }
    }
    rows->start = start;
    rows->feature = feature;
}

/* The passes that are measured. */
static const struct pass_row {
    const char *name;
    enum objective_kind kind;
    bool dense;
    enum value_type type;
    uint32_t count, features, width, outputs; /* rows, columns, values of a row */
    bool uniform;                             /* one exponent for all columns */
    uint32_t threads;
} pass_rows[] = {
    {"logistic, sparse ones, 14 of 123", OBJECTIVE_LOGISTIC, false, VALUE_ONES, 32561, 123, 14, 1,
     true, 1},
    {"logistic, sparse ones, 14 of 123, by column", OBJECTIVE_LOGISTIC, false, VALUE_ONES, 32561,
     123, 14, 1, false, 1},
    {"logistic, sparse float, 75 of 47000", OBJECTIVE_LOGISTIC, false, VALUE_FLOAT, 20000, 47000,
     75, 1, true, 1},
    {"logistic, sparse float, 350 of 1.5 M", OBJECTIVE_LOGISTIC, false, VALUE_FLOAT, 25000, 1500000,
     350, 1, true, 1},
    {"logistic, sparse float, 350 of 1.5 M, by column", OBJECTIVE_LOGISTIC, false, VALUE_FLOAT,
     25000, 1500000, 350, 1, false, 1},
    {"logistic, dense float, 30", OBJECTIVE_LOGISTIC, true, VALUE_FLOAT, 200000, 30, 30, 1, false,
     1},
    {"logistic, dense float, 54", OBJECTIVE_LOGISTIC, true, VALUE_FLOAT, 100000, 54, 54, 1, false,
     1},
    {"logistic, dense float, 784", OBJECTIVE_LOGISTIC, true, VALUE_FLOAT, 10000, 784, 784, 1, false,
     1},
    {"logistic, dense bytes, 784", OBJECTIVE_LOGISTIC, true, VALUE_BYTE, 10000, 784, 784, 1, false,
     1},
    {"softmax of 10, sparse float, 75 of 47000", OBJECTIVE_SOFTMAX, false, VALUE_FLOAT, 10000,
     47000, 75, 10, false, 1},
    {"softmax of 3, sparse ones, 14 of 123", OBJECTIVE_SOFTMAX, false, VALUE_ONES, 32561, 123, 14,
     3, true, 1},
    {"softmax of 7, dense float, 54", OBJECTIVE_SOFTMAX, true, VALUE_FLOAT, 100000, 54, 54, 7,
     false, 1},
    {"softmax of 10, dense float, 784", OBJECTIVE_SOFTMAX, true, VALUE_FLOAT, 10000, 784, 784, 10,
     false, 1},
    {"softmax of 10, dense bytes, 784", OBJECTIVE_SOFTMAX, true, VALUE_BYTE, 10000, 784, 784, 10,
     false, 1},
    {"2 threads: logistic, sparse float, 350 of 1.5 M", OBJECTIVE_LOGISTIC, false, VALUE_FLOAT,
     25000, 1500000, 350, 1, true, 2},
    {"2 threads: softmax of 10, dense float, 784", OBJECTIVE_SOFTMAX, true, VALUE_FLOAT, 10000, 784,
     784, 10, false, 2},
};

static void data_pass(const struct pass_row *of) {
    struct random random;
    random_init(&random, 1);
    struct data_pass pass = {.shape = {.kind = of->kind,
                                       .features = of->features,
                                       .outputs = of->outputs,
                                       .intercept = true,
                                       .loss = objective_defaults(of->kind)}};
    pass.rows = (struct rows){
        .count = of->count, .features = of->features, .dense = of->dense, .type = of->type};
    pass.rows.values = (uint64_t)of->count * of->width;
    if (!of->dense)
        fill_sparse(&pass.rows, of->width, &random);
    float *value = memory_new(pass.rows.values, sizeof *value);
    double *label = memory_new(of->count, sizeof *label);
    for (uint64_t i = 0; i < pass.rows.values; i++)
        value[i] = (float)(random_unit(&random) - 0.5);
    for (uint32_t i = 0; i < of->count; i++)
        label[i] = (double)random_below(&random, of->outputs > 1 ? of->outputs : 2);
    uint8_t *byte = (uint8_t *)value; /* any value will do */
    for (uint64_t i = 0; of->type == VALUE_BYTE && i < pass.rows.values; i++)
        byte[i] = (uint8_t)random_below(&random, 256);
    pass.rows.value = of->type == VALUE_ONES ? NULL : value;
    pass.rows.label = label;
    uint64_t n = objective_parameters(&pass.shape);
    pass.bytes = n * sizeof(double);
    pass.parameters = memory_map(pass.bytes);
    uint32_t chunk_rows = CHUNK_BYTES_MAX / (of->width * (of->dense ? 4 : 8));
    pass.block_rows = chunk_rows ? chunk_rows : 1;
    for (uint64_t p = 0; p < n; p++)
        pass.parameters[p] = random_unit(&random) - 0.5;
    int16_t *exponent = memory_new(of->features + 1, sizeof *exponent);
    for (uint32_t j = 0; j <= of->features; j++)
        exponent[j] = (int16_t)(30 + j % 3);
    pass.scale = (struct objective_scale){.exponent = of->uniform ? NULL : exponent, .uniform = 30};
    print_pass(of->name, &pass, of->threads, measure_pass(&pass, of->threads));
    memory_unmap(pass.parameters, pass.bytes);
    free(exponent);
    free(value);
    free(label);
    free((void *)(uintptr_t)pass.rows.start);
    free((void *)(uintptr_t)pass.rows.feature);
}

enum { PAIRS = 20, ELEMENTS = 1 << 21 };

struct history {
    float *vectors[2 * PAIRS];
    double *a, *b, *out;
    double total;
};

/* A dot product with itself reads each element once and does little else. */
static void run_read(void *argument) {
    struct history *history = argument;
    for (int v = 0; v < 2 * PAIRS; v++)
        for (size_t i = 0; i < ELEMENTS / 2; i += BLOCK_ELEMENTS) {
            const double *block = (const double *)(void *)history->vectors[v] + i;
            history->total += vector_dot(BLOCK_ELEMENTS, block, block);
        }
}

static void run_dots(void *argument) {
    struct history *history = argument;
    const void *at[2 * PAIRS];
    double dots[2 * PAIRS][2];
    for (size_t i = 0; i < ELEMENTS; i += BLOCK_ELEMENTS) {
        for (int v = 0; v < 2 * PAIRS; v++)
            at[v] = history->vectors[v] + i;
        history_dots_all(HISTORY_FLOAT, 2 * PAIRS, BLOCK_ELEMENTS, at, history->a + i,
                         history->b + i, dots);
        history->total += dots[0][0];
    }
}

static void run_add(void *argument) {
    struct history *history = argument;
    for (size_t i = 0; i < ELEMENTS; i += BLOCK_ELEMENTS)
        for (int v = 0; v < PAIRS; v++)
            history_add(HISTORY_FLOAT, BLOCK_ELEMENTS, history->out + i, 0.5,
                        history->vectors[2 * v] + i, 0.25, history->vectors[2 * v + 1] + i);
}

/* `bytes`: with those of the two vectors that are not of the history. */
static void print_sweep(const char *name, double bytes, double ns, double read) {
    printf("%-52s %7.2f GB/s %5.0f %% of the read\n", name, bytes / ns, 100 * bytes / ns / read);
}

static void history_passes(void) {
    struct history history = {0};
    size_t wide = ELEMENTS * sizeof(double), narrow = ELEMENTS * sizeof(float);
    history.a = memory_map(wide);
    history.b = memory_map(wide);
    history.out = memory_map(wide);
    for (size_t i = 0; i < ELEMENTS; i++)
        history.a[i] = history.b[i] = 1;
    for (int v = 0; v < 2 * PAIRS; v++) {
        history.vectors[v] = memory_map(narrow);
        for (size_t i = 0; i < ELEMENTS; i++)
            history.vectors[v][i] = 1;
    }
    double bytes = 2.0 * PAIRS * (double)narrow;
    double read = bytes / best_ns(run_read, &history);
    printf("%-52s %7.2f GB/s\n", "read of the history", read);
    print_sweep("history_dots, float, two dots a vector", bytes + 2 * (double)wide,
                best_ns(run_dots, &history), read);
    print_sweep("history_add, float", bytes + 2 * (double)wide, best_ns(run_add, &history), read);
    for (int v = 0; v < 2 * PAIRS; v++)
        memory_unmap(history.vectors[v], narrow);
    memory_unmap(history.a, wide);
    memory_unmap(history.b, wide);
    memory_unmap(history.out, wide);
}

enum { SPECIAL = 4096 };

struct special {
    double in[SPECIAL], out[SPECIAL];
};

static void run_exp(void *argument) {
    struct special *special = argument;
    special_exp(SPECIAL, special->out, special->in);
}

static void run_log1p(void *argument) {
    struct special *special = argument;
    special_log1p(SPECIAL, special->out, special->in);
}

static void run_library(void *argument) {
    struct special *special = argument;
    for (int i = 0; i < SPECIAL; i++)
        special->out[i] = log1p(exp(-special->in[i]));
}

static void special_functions(void) {
    struct special *special = memory_new(1, sizeof *special);
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < SPECIAL; i++)
        special->in[i] = random_unit(&random);
    printf("%-52s %7.2f ns\n", "exp", best_ns(run_exp, special) / SPECIAL);
    printf("%-52s %7.2f ns\n", "log1p", best_ns(run_log1p, special) / SPECIAL);
    printf("%-52s %7.2f ns\n", "log1p(exp(x)) of the C library",
           best_ns(run_library, special) / SPECIAL);
    free(special);
}

int main(void) {
    numeric_setup();
    printf("%s\n", numeric_description());
    for (size_t i = 0; i < sizeof pass_rows / sizeof *pass_rows; i++)
        data_pass(&pass_rows[i]);
    history_passes();
    special_functions();
    return 0;
}
