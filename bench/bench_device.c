/* Speed of a device: how much of its memory's throughput is used by evaluations of linear models,
 * on data that stay there and on data that are copied there each time, and by a shard's history
 * passes; and how many operations a second the products of networks make.
 *
 *     bench_device [cuda[:N] | emulated [MEGABYTES]]
 *
 * MEGABYTES is the size of the data of each shape. The measure is a plain copy within the device's
 * memory, which reads and writes; it comes close to what the memory can do. Times are the least of
 * several, of the clock on the wall. The emulated device shows only that all of this works. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/random.h"
#include "device/device.h"
#include "numeric/setup.h"
#include "objective/objective.h"
#include "objective/shape.h"
#include "objective/on_device.h"
#include "shard/registers.h"
#include "shard/programs.h"

enum { REPEATS = 7, TEMPLATES = 8 };

static void must(int code) {
    if (code) {
        fprintf(stderr, "bench_device: %s\n", error_text());
        exit(1);
    }
}

/* ---- data ---- */

struct data {
    struct objective_shape shape;
    struct rows templates[TEMPLATES]; /* chunk i is templates[i % TEMPLATES] */
    uint32_t chunks;
    uint64_t chunk_bytes; /* of a chunk: what a pass must read of it */
};

/* Columns of a row, rising and crowded towards 0 as frequency makes them. */
static void fill_row(uint32_t *feature, uint32_t width, uint32_t features, struct random *random) {
    for (uint32_t j = 0; j < width; j++) {
        double reach = pow((double)(j + 1) / width, 4) * (features - width);
        uint32_t column = (uint32_t)(reach * random_unit(random)) + j;
        feature[j] = j && column <= feature[j - 1] ? feature[j - 1] + 1 : column;
    }
}

static struct rows new_rows(const struct objective_shape *shape, uint32_t count, uint32_t width,
                            bool dense, struct random *random) {
    uint64_t values = (uint64_t)count * width;
    uint32_t *start = memory_new(count + 1, sizeof *start);
    uint32_t *feature = memory_new(values, sizeof *feature);
    float *value = memory_new(values, sizeof *value);
    double *label = memory_new(count, sizeof *label);
    for (uint32_t i = 0; i < count; i++) {
        start[i + 1] = start[i] + width;
        fill_row(feature + start[i], width, objective_columns(shape), random);
        label[i] = (double)random_below(random, shape->outputs > 1 ? shape->outputs : 2);
    }
    for (uint64_t i = 0; i < values; i++)
        value[i] = (float)(random_unit(random) - 0.5);
    return (struct rows){.count = count,
                         .features = objective_columns(shape),
                         .values = values,
                         .dense = dense,
                         .type = VALUE_FLOAT,
                         .start = dense ? NULL : start,
                         .feature = dense ? NULL : feature,
                         .value = value,
                         .label = label};
}

static struct data new_data(const struct objective_shape *shape, uint32_t width, bool dense,
                            double megabytes) {
    struct random random;
    uint32_t value_size = dense ? sizeof(float) : sizeof(float) + sizeof(uint32_t);
    uint32_t count = (uint32_t)(CHUNK_BYTES_MAX / (width * value_size));
    struct data data = {.shape = *shape};
    count = count < megabytes * 1e6 / (width * value_size) ? count : 16;
    data.chunk_bytes = (uint64_t)count * (width * value_size + sizeof(double));
    data.chunks = 1 + (uint32_t)(megabytes * 1e6 / (double)data.chunk_bytes);
    random_init(&random, 1);
    for (int i = 0; i < TEMPLATES; i++)
        data.templates[i] = new_rows(shape, count, width, dense, &random);
    return data;
}

static void free_data(struct data *data) {
    for (int i = 0; i < TEMPLATES; i++) {
        free((void *)(uintptr_t)data->templates[i].start);
        free((void *)(uintptr_t)data->templates[i].feature);
        free((void *)(uintptr_t)data->templates[i].value);
        free((void *)(uintptr_t)data->templates[i].label);
    }
}

static int chunk(void *context, uint32_t number, struct rows *rows) {
    const struct data *data = context;
    *rows = data->templates[number % TEMPLATES];
    return 0;
}

/* ---- measuring ---- */

/* Seconds of one pass over all chunks, the sums included. */
static double pass_s(struct objective_device *on, const struct data *data,
                     struct objective_device_result *results) {
    struct objective_device_work work = {.kind = OBJECTIVE_DEVICE_GRADIENT,
                                         .count = data->chunks,
                                         .sums = true,
                                         .bounds = bounds_of_one(40)};
    bool stopped;
    int64_t begun_ns = clock_monotonic_ns();
    must(objective_device_compute(on, &work, results, &stopped));
    double seconds = (double)(clock_monotonic_ns() - begun_ns) / 1e9;
    must(objective_device_discard(on));
    return seconds;
}

/* The least of several passes, after one that brings the data there. */
static double best_pass_s(struct device *device, struct data *data, uint64_t memory) {
    uint64_t n = objective_parameters(&data->shape);
    struct objective_device_settings settings = {
        .shape = data->shape, .uniform = 30, .memory = memory, .chunk = chunk, .context = data};
    struct objective_device_result *results = memory_new(data->chunks, sizeof *results);
    double *parameters = memory_new(n, sizeof *parameters);
    struct objective_device *on;
    must(objective_device_new(device, &settings, &on));
    for (uint64_t p = 0; p < n; p++)
        parameters[p] = (double)(p % 100) / 1000;
    must(objective_device_point(on, parameters));
    double best = pass_s(on, data, results);
    for (int i = 0; i < REPEATS; i++)
        best = fmin(best, pass_s(on, data, results));
    objective_device_free(on);
    free(parameters);
    free(results);
    return best;
}

/* Bytes a second that a copy within the device reads and writes. */
static double copy_rate(struct device *device, size_t bytes) {
    void *from, *to;
    double best = INFINITY;
    must(device_new(device, bytes, &from));
    must(device_new(device, bytes, &to));
    must(device_fill(device, QUEUE_COMPUTE, from, 1, bytes));
    must(device_wait(device, QUEUE_COMPUTE));
    for (int i = 0; i < REPEATS; i++) {
        int64_t begun_ns = clock_monotonic_ns();
        must(device_copy(device, QUEUE_COMPUTE, to, from, bytes));
        must(device_wait(device, QUEUE_COMPUTE));
        best = fmin(best, (double)(clock_monotonic_ns() - begun_ns) / 1e9);
    }
    device_delete(device, to);
    device_delete(device, from);
    return 2 * (double)bytes / best;
}

static void print_speed(const char *name, double bytes, double seconds, double copy) {
    printf("%-44s %9.3f ms %8.1f GB/s %5.1f %% of the copy\n", name, seconds * 1e3,
           bytes / seconds / 1e9, 100 * bytes / seconds / copy);
}

static void data_pass(struct device *device, const char *name, enum objective_kind kind,
                      uint32_t outputs, uint32_t features, uint32_t width, double megabytes,
                      bool stream, double copy) {
    struct objective_shape shape = {.kind = kind,
                                    .features = features,
                                    .outputs = outputs,
                                    .intercept = true,
                                    .loss = objective_defaults(kind)};
    struct data data = new_data(&shape, width, features == width, megabytes);
    double bytes = (double)data.chunks * (double)data.chunk_bytes;
    print_speed(name, bytes, best_pass_s(device, &data, stream ? (uint64_t)(bytes / 3) : 0), copy);
    free_data(&data);
}

/* ---- networks ---- */

/* Images of 28 × 28 through 100 units to 10 classes. Products alone are counted: forward, of the
 * gradients, and of the errors of the hidden layer. */
static void network_pass(struct device *device, const char *name, enum precision precision,
                         double megabytes) {
    enum { FEATURES = 784, UNITS = 100, OUTPUTS = 10 };
    const double products = 2 * FEATURES * UNITS + 3 * UNITS * OUTPUTS;
    struct objective_shape shape = {
        .kind = OBJECTIVE_SOFTMAX,
        .features = FEATURES,
        .outputs = OUTPUTS,
        .intercept = true,
        .network = {.layers = 1, .units = {UNITS}, .precision = precision}};
    struct data data = new_data(&shape, FEATURES, true, megabytes);
    double rows = (double)data.chunks * data.templates[0].count;
    double seconds = best_pass_s(device, &data, 0);
    printf("%-44s %9.3f ms %8.1f GFlop/s\n", name, seconds * 1e3,
           2 * rows * products / seconds / 1e9);
    free_data(&data);
}

/* ---- history ---- */

enum { PAIRS = 20 };

/* As many elements as make a history of so many megabytes, all 0. */
static void set_up(struct registers *registers, struct device *device, double megabytes) {
    uint64_t n = 1 + (uint64_t)(megabytes * 1e6 / (2 * PAIRS * sizeof(float)));
    struct layout layout = layout_linear(n - 1, 1, true);
    struct bytes blob;
    bytes_init(&blob);
    layout_encode(&layout, &blob);
    const struct message_shard_setup setup = {.layout = {blob.data, (uint32_t)blob.length},
                                              .count = n,
                                              .slots = PAIRS,
                                              .history_type = HISTORY_FLOAT,
                                              .weight_sum = 1,
                                              .uniform = 1,
                                              .uniform_exponent = 20};
    registers_use(registers, &shard_on_device, device);
    must(registers_set_up(registers, &setup));
    must(registers_load(registers));
    bytes_release(&blob);
}

/* `bytes`: what the operation must read and write. */
static void history_pass(struct registers *registers, const char *name,
                         struct operation *operations, size_t count, double bytes, double copy) {
    struct operation_list list = {.items = operations, .count = count};
    const struct bounds bounds = bounds_of_one(0);
    struct bytes scalars;
    double best = INFINITY;
    for (uint16_t i = 0; i < PAIRS; i++)
        operations[count - 1].slots[i] = i;
    bytes_init(&scalars);
    for (int i = 0; i <= REPEATS; i++) {
        int64_t begun_ns = clock_monotonic_ns();
        must(operation_list_run(&list, registers, &bounds, &scalars));
        must(device_wait(registers->device, QUEUE_COMPUTE));
        best = fmin(best, (double)(clock_monotonic_ns() - begun_ns) / 1e9);
    }
    bytes_release(&scalars);
    print_speed(name, bytes, best, copy);
}

static void history_passes(struct device *device, double megabytes, double copy) {
    struct registers registers = {0};
    set_up(&registers, device, megabytes);
    double vector = (double)registers.count * sizeof(double), history = vector * PAIRS;
    struct operation products[] = {
        {.code = OPERATION_PAIR,
         .slot = PAIRS - 1,
         .a = REGISTER_T,
         .b = REGISTER_X,
         .c = REGISTER_H,
         .d = REGISTER_G,
         .e = REGISTER_H,
         .f = REGISTER_G,
         .beta = 1},
        {.code = OPERATION_HISTORY_DOTS, .a = REGISTER_G, .slot = PAIRS - 1, .count = PAIRS}};
    struct operation direction = {.code = OPERATION_DIRECTION,
                                  .a = REGISTER_D,
                                  .b = REGISTER_G,
                                  .alpha = 1,
                                  .beta = 1,
                                  .count = PAIRS};
    history_pass(&registers, "history, float, a pair and products with 20", products, 2,
                 history + 4 * vector, copy);
    history_pass(&registers, "history, float, direction of 20 pairs", &direction, 1,
                 history + 2 * vector, copy);
    registers_release(&registers);
}

int main(int argc, char **argv) {
    const char *asked = argc > 1 ? argv[1] : "cuda";
    bool cuda = strncmp(asked, "cuda", 4) == 0;
    double megabytes = argc > 2 ? atof(argv[2]) : 4000;
    enum objective_kind logistic = OBJECTIVE_LOGISTIC, softmax = OBJECTIVE_SOFTMAX;
    struct device *device;
    numeric_setup();
    must(device_open(cuda ? DEVICE_CUDA : DEVICE_EMULATED,
                     strncmp(asked, "cuda:", 5) == 0 ? (unsigned)atoi(asked + 5) : 0, &device));
    double copy = copy_rate(device, (size_t)(megabytes * 1e6 / 4));
    printf("%s: a copy %.1f GB/s\n", device_name(device), copy / 1e9);
    data_pass(device, "logistic, dense float, 784", logistic, 1, 784, 784, megabytes, false, copy);
    data_pass(device, "logistic, dense float, 30", logistic, 1, 30, 30, megabytes, false, copy);
    data_pass(device, "softmax of 10, dense float, 784", softmax, 10, 784, 784, megabytes, false,
              copy);
    data_pass(device, "logistic, sparse float, 230 of 90000", logistic, 1, 90000, 230, megabytes,
              false, copy);
    data_pass(device, "logistic, sparse float, 350 of 1.5 M", logistic, 1, 1500000, 350, megabytes,
              false, copy);
    data_pass(device, "softmax of 10, sparse float, 75 of 47000", softmax, 10, 47000, 75, megabytes,
              false, copy);
    data_pass(device, "copied: logistic, dense float, 784", logistic, 1, 784, 784, megabytes, true,
              copy);
    network_pass(device, "network of 784-100-10, double", PRECISION_DOUBLE, megabytes / 4);
    network_pass(device, "network of 784-100-10, float", PRECISION_FLOAT, megabytes / 4);
    history_passes(device, megabytes, copy);
    device_close(device);
    return 0;
}
