/* Networks on a device: chunk for chunk and bit for bit what objective_block() finds. The losses
 * are the processor's here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objective/device_network.h"
#include "objective/network.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/network_fixture.h"

enum { CHUNKS_MAX = 8 };

static struct device *device;

/* Chunks of a net's rows, on the device. */
struct trial {
    const struct net *net;
    uint32_t count;
    struct rows rows[CHUNKS_MAX];
    uint32_t *start[CHUNKS_MAX];
    struct device_chunk chunks[CHUNKS_MAX];
    struct device_network_chunk network_chunks[CHUNKS_MAX];
    struct device_network *network;
    struct device_pass pass;
    void *memory[10 * CHUNKS_MAX + 10];
    size_t memories;
};

static void *put(struct trial *trial, const void *from, size_t bytes) {
    void *memory;
    assert_int_equal(device_new(device, bytes, &memory), 0);
    if (bytes)
        assert_int_equal(device_put(device, QUEUE_COMPUTE, memory, from, bytes), 0);
    trial->memory[trial->memories++] = memory;
    return memory;
}

/* Rows [first, end) of the net. */
static void cut(struct trial *trial, uint32_t first, uint32_t end) {
    const struct net *net = trial->net;
    uint32_t c = trial->count++, begin = net->start[first];
    struct rows *rows = &trial->rows[c];
    *rows = net->rows;
    rows->count = end - first;
    rows->values = net->start[end] - begin;
    rows->label += first;
    rows->weight = rows->weight ? rows->weight + first : NULL;
    if (rows->value)
        rows->value = (const char *)rows->value + begin * value_bytes(rows->type);
    trial->start[c] = memory_new(rows->count + 1, sizeof **trial->start);
    for (uint32_t i = 0; i <= rows->count; i++)
        trial->start[c][i] = net->start[first + i] - begin;
    if (rows->dense)
        return;
    rows->start = trial->start[c];
    rows->feature += begin;
}

static void load(struct trial *trial, uint32_t c) {
    const struct rows *rows = &trial->rows[c];
    struct device_chunk *chunk = &trial->chunks[c];
    const void *list;
    size_t bytes;
    *chunk = (struct device_chunk){
        .rows = rows->count, .number = c, .values = rows->values, .type = rows->type};
    if (rows->value)
        chunk->value = put(trial, rows->value, rows->values * value_bytes(rows->type));
    if (rows->weight)
        chunk->weight = put(trial, rows->weight, rows->count * sizeof *rows->weight);
    chunk->first_row = trial->pass.rows;
    trial->network_chunks[c] = device_network_list(trial->network, rows, &list, &bytes);
    if (!rows->dense) {
        chunk->start = put(trial, rows->start, (rows->count + 1) * sizeof *rows->start);
        chunk->feature = put(trial, rows->feature, rows->values * sizeof *rows->feature);
        trial->network_chunks[c].list = put(trial, list, bytes);
    }
    trial->pass.rows += rows->count;
    trial->pass.values += rows->values;
    if (rows->count > trial->pass.rows_most)
        trial->pass.rows_most = rows->count;
}

static void begin(struct trial *trial, const struct net *net, const uint32_t *ends,
                  uint32_t count) {
    *trial = (struct trial){.net = net};
    assert_int_equal(device_network_new(device, &net->shape, net->rows.dense, &trial->network), 0);
    trial->pass = (struct device_pass){
        .device = device, .shape = &net->shape, .dense = net->rows.dense, .count = count};
    for (uint32_t c = 0; c < count; c++) {
        cut(trial, c ? ends[c - 1] : 0, ends[c]);
        load(trial, c);
    }
    struct device_pass *pass = &trial->pass;
    pass->chunks = put(trial, trial->chunks, count * sizeof *trial->chunks);
    pass->parameters = put(trial, net->parameters, net->n * sizeof *net->parameters);
    pass->exponent =
        put(trial, net->exponent, layout_exponents(&net->layout) * sizeof *net->exponent);
    double *margins = memory_new(pass->rows * net->shape.outputs, sizeof *margins);
    pass->margins = put(trial, margins, pass->rows * net->shape.outputs * sizeof *margins);
    free(margins);
    int64_t *sum = memory_new(net->n, sizeof *sum);
    pass->sum = put(trial, sum, net->n * sizeof *sum);
    free(sum);
}

static void end(struct trial *trial) {
    for (size_t i = 0; i < trial->memories; i++)
        device_delete(device, trial->memory[i]);
    for (uint32_t c = 0; c < trial->count; c++)
        free(trial->start[c]);
    device_network_free(trial->network);
}

/* ---- margins and losses ---- */

static bool same(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void assert_margins(const struct trial *trial, struct objective_scratch *scratch,
                           const double *margins) {
    size_t outputs = trial->net->shape.outputs;
    double *expected = memory_new(trial->pass.rows * outputs, sizeof *expected), *at = expected;
    double unit = network_unit(&trial->net->shape.network);
    for (uint32_t c = 0; c < trial->count; at += trial->rows[c++].count * outputs)
        objective_margins(&trial->net->shape, &trial->rows[c], trial->net->parameters, scratch, at);
    for (size_t i = 0; i < trial->pass.rows * outputs; i++)
        assert_true(same(margins[i], unit * expected[i]));
    free(expected);
}

/* Replaces margins by derivatives; returns the loss. */
static double losses_of(const struct trial *trial, uint32_t c, struct objective_scratch *scratch,
                        double *margins) {
    const struct objective_shape *shape = &trial->net->shape;
    const struct rows *rows = &trial->rows[c];
    double loss = 0;
    for (uint32_t first = 0; first < rows->count; first += scratch->network->batch_rows) {
        struct batch batch = batch_at(rows, first, scratch->network->batch_rows);
        size_t bytes = batch.count * shape->outputs * sizeof *margins;
        double *at = margins + first * shape->outputs;
        memcpy(scratch->margins, at, bytes);
        batch_losses(shape, &batch, scratch, NULL);
        if (rows->weight)
            batch_weigh_losses(&batch, shape->outputs, scratch);
        for (uint32_t i = 0; i < batch.count; i++)
            loss += scratch->loss[i];
        memcpy(at, scratch->margins, bytes);
    }
    return loss;
}

static const double *losses(struct trial *trial, double loss[CHUNKS_MAX]) {
    const struct device_pass *pass = &trial->pass;
    size_t outputs = trial->net->shape.outputs, bytes = pass->rows * outputs * sizeof(double);
    struct objective_scratch *scratch = objective_scratch_new(&trial->net->shape);
    double *margins = memory_new(pass->rows * outputs, sizeof *margins), *at = margins;
    assert_int_equal(device_get(device, QUEUE_COMPUTE, margins, pass->margins, bytes), 0);
    assert_margins(trial, scratch, margins);
    for (uint32_t c = 0; c < trial->count; at += trial->rows[c++].count * outputs)
        loss[c] = losses_of(trial, c, scratch, at);
    assert_int_equal(device_put(device, QUEUE_COMPUTE, pass->margins, margins, bytes), 0);
    objective_scratch_free(scratch);
    free(margins);
    return put(trial, loss, trial->count * sizeof *loss);
}

/* ---- against the processor ---- */

static void assert_result(const struct objective_result *found,
                          const struct objective_result *expected) {
    assert_int_equal(found->maxima.count, expected->maxima.count);
    assert_true(found->exceeded == expected->exceeded);
    for (uint32_t t = 0; t < expected->maxima.count; t++)
        if (!same(found->maxima.value[t], expected->maxima.value[t]))
            fail_msg("maximum %u is %a, not %a", t, found->maxima.value[t],
                     expected->maxima.value[t]);
}

/* The results and sums of an evaluation with these bounds. Returns the maxima over all chunks. */
static struct maxima assert_evaluation(struct trial *trial, const struct bounds *bounds) {
    const struct net *net = trial->net;
    struct objective_scale scale = {.exponent = net->exponent, .bounds = *bounds};
    struct objective_result found[CHUNKS_MAX], expected, *results[CHUNKS_MAX];
    struct objective_scratch *scratch = objective_scratch_new(&net->shape);
    struct maxima maxima = {0};
    int64_t *sum = memory_new(net->n, sizeof *sum), *expected_sum = memory_new(net->n, sizeof *sum);
    double loss[CHUNKS_MAX];
    assert_int_equal(device_fill(device, QUEUE_COMPUTE, trial->pass.sum, 0, net->n * sizeof *sum),
                     0);
    assert_int_equal(device_network_point(trial->network, trial->pass.parameters), 0);
    assert_int_equal(device_network_margins(trial->network, &trial->pass, trial->network_chunks),
                     0);
    const double *losses_there = losses(trial, loss);
    assert_int_equal(device_network_gradient(trial->network, &trial->pass, losses_there, bounds),
                     0);
    for (uint32_t c = 0; c < trial->count; c++)
        results[c] = &found[c];
    assert_int_equal(device_network_results(trial->network, &trial->pass, bounds, results), 0);
    for (uint32_t c = 0; c < trial->count; c++) {
        objective_block(&net->shape, &scale, &trial->rows[c], net->parameters, expected_sum,
                        scratch, &expected);
        assert_result(&found[c], &expected);
        maxima_merge(&maxima, &expected.maxima);
    }
    device_get(device, QUEUE_COMPUTE, sum, trial->pass.sum, net->n * sizeof *sum);
    for (uint64_t i = 0; i < net->n; i++)
        if (sum[i] != expected_sum[i])
            fail_msg("sum %llu is %lld, not %lld", (unsigned long long)i, (long long)sum[i],
                     (long long)expected_sum[i]);
    free(sum);
    free(expected_sum);
    objective_scratch_free(scratch);
    return maxima;
}

/* First with bounds that some chunks may exceed, then with those that hold. */
static void assert_as_the_processor(const struct net *net, const uint32_t *ends, uint32_t count) {
    struct trial trial;
    struct bounds bounds = {.count = net->layout.count};
    begin(&trial, net, ends, count);
    struct maxima maxima = assert_evaluation(&trial, &bounds);
    if (isfinite(maxima_largest(&maxima))) {
        bounds = net_bounds(&maxima);
        assert_evaluation(&trial, &bounds);
    }
    end(&trial);
}

static void assert_in_one_chunk(const struct net *net) {
    assert_as_the_processor(net, &net->rows.count, 1);
}

static const struct format {
    bool dense;
    enum value_type type;
} formats[] = {{true, VALUE_DOUBLE}, {true, VALUE_FLOAT}, {true, VALUE_ONES}, {false, VALUE_DOUBLE},
               {false, VALUE_FLOAT}, {false, VALUE_ONES}, {true, VALUE_BYTE}, {false, VALUE_BYTE}};
enum { FORMATS = sizeof formats / sizeof *formats };

static void every_loss_activation_precision_and_format_has_the_bits_of_the_processor(void **state) {
    (void)state;
    static const uint32_t ends[] = {7, 7, 12};
    for (int kind = 0; kind < OBJECTIVES; kind++)
        for (int way = 0; way < ACTIVATIONS * PRECISIONS * FORMATS; way++) {
            const struct format *format = &formats[way % FORMATS];
            struct objective_shape shape =
                net_shape((enum objective_kind)kind, (enum activation)(way / FORMATS % ACTIVATIONS),
                          (enum precision)(way / FORMATS / ACTIVATIONS));
            struct net *net =
                net_new(shape, 12, format->dense, format->type, (uint64_t)(100 * kind + way));
            assert_as_the_processor(net, ends, 3);
            net_free(net);
        }
}

/* Layers of more units than a tile has, and more rows. */
static void
sums_longer_than_a_strip_and_matrices_wider_than_a_tile_have_the_same_bits(void **state) {
    (void)state;
    static const uint32_t ends[] = {70, 71, 200};
    for (int precision = 0; precision < PRECISIONS; precision++)
        for (int dense = 0; dense < 2; dense++) {
            struct objective_shape shape =
                net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, (enum precision)precision);
            shape.features = 33;
            shape.network.layers = 1;
            shape.network.units[0] = 67;
            struct net *net = net_new(shape, 200, dense, VALUE_FLOAT, 21);
            assert_as_the_processor(net, ends, 3);
            net_free(net);
        }
}

/* Those of weight 0 may have values beyond all numbers. */
static void rows_count_as_much_as_they_weigh(void **state) {
    (void)state;
    static const uint32_t ends[] = {5, 9, 30};
    for (int way = 0; way < ACTIVATIONS * PRECISIONS * 2; way++) {
        bool dense = way % 2;
        struct objective_shape shape = net_shape(
            way % 4 < 2 ? OBJECTIVE_ORDINAL : OBJECTIVE_MULTILABEL,
            (enum activation)(way / 2 % ACTIVATIONS), (enum precision)(way / 2 / ACTIVATIONS));
        struct net *net = net_new(shape, 30, dense, VALUE_DOUBLE, (uint64_t)way);
        for (uint32_t i = 0; i < 30; i++)
            net->weight[i] = i % 4 && (i < 5 || i >= 9) ? 0.37 * i : 0;
        net->rows.weight = net->weight;
        net_measure(net);
        for (uint32_t v = net->start[8]; v < net->start[9]; v++)
            net->wide[v] = v % 2 ? 1.7e308 : -1.7e308;
        for (uint32_t v = net->start[12]; v < net->start[13]; v++)
            net->wide[v] = v % 2 ? 1.7e308 : -1.7e308;
        assert_as_the_processor(net, ends, 3);
        net_free(net);
    }
}

/* Parameters and values so large or small that sums overflow, or are denormal. */
static void extreme_numbers_have_the_bits_of_the_processor(void **state) {
    (void)state;
    static const double factors[] = {1e-300, 1e-160, 1e-38, 1e-20, 1e10, 1e30, 1e155, 1e300};
    static const uint32_t ends[] = {3, 12};
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
        for (int way = 0; way < ACTIVATIONS * PRECISIONS * 4; way++) {
            struct objective_shape shape = net_shape(
                way % 2 ? OBJECTIVE_SQUARED : OBJECTIVE_SOFTMAX,
                (enum activation)(way / 4 % ACTIVATIONS), (enum precision)(way / 4 / ACTIVATIONS));
            struct net *net = net_new(shape, 12, way / 2 % 2, VALUE_DOUBLE, f);
            for (uint64_t i = 0; f % 2 && i < net->n; i++)
                net->parameters[i] *= factors[f];
            for (uint32_t v = 0; v < net->start[12]; v++)
                net->wide[v] *= f % 2 && way % 3 ? 1 : factors[f];
            net_measure(net);
            assert_as_the_processor(net, ends, 2);
            net_free(net);
        }
}

static void parameters_that_are_no_numbers_exceed_all_bounds(void **state) {
    (void)state;
    for (int precision = 0; precision < PRECISIONS; precision++) {
        struct net *net =
            net_new(net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_GELU, (enum precision)precision), 6,
                    precision, VALUE_FLOAT, 4);
        net->parameters[1] = NAN;
        net->parameters[net->n - 1] = INFINITY;
        assert_in_one_chunk(net);
        net_free(net);
    }
}

/* ---- shapes at the limits ---- */

static void fifteen_layers_of_one_unit_have_the_bits_of_the_processor(void **state) {
    (void)state;
    struct objective_shape shape = net_shape(OBJECTIVE_SQUARED, ACTIVATION_TANH, PRECISION_DOUBLE);
    shape.network.layers = NETWORK_LAYERS_MAX;
    for (uint32_t i = 0; i < NETWORK_LAYERS_MAX; i++)
        shape.network.units[i] = 1;
    for (int dense = 0; dense < 2; dense++) {
        struct net *net = net_new(shape, 5, dense, VALUE_FLOAT, 6);
        assert_in_one_chunk(net);
        net_free(net);
    }
}

static void one_row_of_one_column_has_the_bits_of_the_processor(void **state) {
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        struct objective_shape shape =
            net_shape(OBJECTIVE_ORDINAL, ACTIVATION_RELU, PRECISION_FLOAT);
        shape.features = 1;
        struct net *net = net_new(shape, 1, formats[f].dense, formats[f].type, 8);
        assert_in_one_chunk(net);
        net_free(net);
    }
}

static void no_features_and_rows_without_values_have_the_bits_of_the_processor(void **state) {
    (void)state;
    for (uint32_t features = 0; features < 10; features += 5)
        for (int dense = 0; dense < 2; dense++) {
            struct objective_shape shape =
                net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, PRECISION_DOUBLE);
            shape.features = features;
            struct net *net = net_new(shape, 6, dense && !features, VALUE_DOUBLE, 8);
            memset(net->start, 0, sizeof net->start);
            net->rows.values = 0;
            assert_in_one_chunk(net);
            net_free(net);
        }
}

/* A network's labels may have a unit. */
static void margins_are_in_the_unit_of_the_labels(void **state) {
    (void)state;
    struct objective_shape shape = net_shape(OBJECTIVE_SQUARED, ACTIVATION_TANH, PRECISION_FLOAT);
    shape.network.unit = 0x1p20;
    struct net *net = net_new(shape, 20, true, VALUE_FLOAT, 6);
    assert_in_one_chunk(net);
    net_free(net);
}

static int open_it(void **state) {
    (void)state;
    device = test_device();
    return 0;
}

static int close_it(void **state) {
    (void)state;
    device_close(device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_loss_activation_precision_and_format_has_the_bits_of_the_processor),
        cmocka_unit_test(
            sums_longer_than_a_strip_and_matrices_wider_than_a_tile_have_the_same_bits),
        cmocka_unit_test(rows_count_as_much_as_they_weigh),
        cmocka_unit_test(extreme_numbers_have_the_bits_of_the_processor),
        cmocka_unit_test(parameters_that_are_no_numbers_exceed_all_bounds),
        cmocka_unit_test(fifteen_layers_of_one_unit_have_the_bits_of_the_processor),
        cmocka_unit_test(one_row_of_one_column_has_the_bits_of_the_processor),
        cmocka_unit_test(no_features_and_rows_without_values_have_the_bits_of_the_processor),
        cmocka_unit_test(margins_are_in_the_unit_of_the_labels),
    };
    return cmocka_run_group_tests(tests, open_it, close_it);
}
