/* Networks on a device against objective_block(), chunk for chunk and bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "objective/on_device.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/network_fixture.h"

enum { CHUNKS_MAX = 8 };

static struct device *device;

/* A net's rows in chunks, and what the device has of them. */
struct trial {
    const struct net *net;
    uint32_t count;
    struct rows rows[CHUNKS_MAX];
    uint32_t *start[CHUNKS_MAX];
    struct objective_device *on;
};

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

static int chunk_of(void *context, uint32_t number, struct rows *rows) {
    const struct trial *trial = context;
    *rows = trial->rows[number];
    return 0;
}

static void begin(struct trial *trial, const struct net *net, const uint32_t *ends, uint32_t count,
                  uint64_t memory) {
    *trial = (struct trial){.net = net};
    for (uint32_t c = 0; c < count; c++)
        cut(trial, c ? ends[c - 1] : 0, ends[c]);
    const struct objective_device_settings settings = {.shape = net->shape,
                                                       .exponent = net->exponent,
                                                       .memory = memory,
                                                       .chunk = chunk_of,
                                                       .context = trial};
    assert_null(objective_device_cannot(&net->shape, false));
    assert_int_equal(objective_device_new(device, &settings, &trial->on), 0);
    assert_int_equal(objective_device_point(trial->on, net->parameters), 0);
}

static void end(struct trial *trial) {
    for (uint32_t c = 0; c < trial->count; c++)
        free(trial->start[c]);
    objective_device_free(trial->on);
}

/* ---- against the processor ---- */

/* Which NaN a result is may differ. */
static bool same(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void assert_result(const struct objective_result *found,
                          const struct objective_result *expected) {
    assert_true(same(found->loss, expected->loss));
    assert_true(same(found->correct, expected->correct));
    assert_int_equal(found->maxima.count, expected->maxima.count);
    assert_true(found->exceeded == expected->exceeded);
    for (uint32_t t = 0; t < expected->maxima.count; t++)
        if (!same(found->maxima.value[t], expected->maxima.value[t]))
            fail_msg("maximum %u is %a, not %a", t, found->maxima.value[t],
                     expected->maxima.value[t]);
}

static void assert_sums(const struct trial *trial, const int64_t *expected) {
    uint64_t n = trial->net->n;
    int64_t *sum = memory_new(n, sizeof *sum);
    assert_int_equal(objective_device_gather(trial->on, sum, n), 0);
    for (uint64_t i = 0; i < n; i++)
        if (sum[i] != expected[i])
            fail_msg("sum %llu is %lld, not %lld", (unsigned long long)i, (long long)sum[i],
                     (long long)expected[i]);
    free(sum);
}

/* The results and sums of an evaluation; scale NULL: of its loss alone. Returns the maxima over all
 * chunks. */
static struct maxima assert_evaluation(const struct trial *trial,
                                       const struct objective_scale *scale, bool sums) {
    const struct net *net = trial->net;
    struct objective_device_work work = {.kind = scale ? OBJECTIVE_DEVICE_GRADIENT
                                                       : OBJECTIVE_DEVICE_LOSS,
                                         .count = trial->count,
                                         .sums = sums};
    struct objective_device_result found[CHUNKS_MAX];
    struct objective_result expected;
    struct objective_scratch *scratch = objective_scratch_new(&net->shape);
    struct maxima maxima = {0};
    int64_t *sum = memory_new(net->n, sizeof *sum);
    bool stopped;
    if (scale)
        work.bounds = scale->bounds;
    assert_int_equal(objective_device_compute(trial->on, &work, found, &stopped), 0);
    for (uint32_t c = 0; c < trial->count; c++) {
        objective_block(&net->shape, scale, &trial->rows[c], net->parameters, sums ? sum : NULL,
                        scratch, &expected);
        assert_result(&found[c].result, &expected);
        maxima_merge(&maxima, &expected.maxima);
    }
    assert_sums(trial, sum);
    free(sum);
    objective_scratch_free(scratch);
    return maxima;
}

/* First with bounds that some chunks may exceed, then with those that hold. */
static void assert_within(const struct net *net, const uint32_t *ends, uint32_t count,
                          uint64_t memory) {
    struct trial trial;
    struct objective_scale scale = {.exponent = net->exponent,
                                    .bounds = {.count = net->layout.count}};
    begin(&trial, net, ends, count, memory);
    assert_evaluation(&trial, NULL, false);
    struct maxima maxima = assert_evaluation(&trial, &scale, true);
    if (isfinite(maxima_largest(&maxima))) {
        scale.bounds = net_bounds(&maxima);
        assert_evaluation(&trial, &scale, true);
        assert_evaluation(&trial, &scale, false);
    }
    end(&trial);
}

static void assert_as_the_processor(const struct net *net, const uint32_t *ends, uint32_t count) {
    assert_within(net, ends, count, 0);
}

static void assert_in_one_chunk(const struct net *net) {
    assert_as_the_processor(net, &net->rows.count, 1);
}

/* Of all combinations; prime to the number of each of what is combined. */
enum { EACH_WAY = SANITIZED ? 7 : 1 };

static void every_loss_activation_precision_and_format_has_the_bits_of_the_processor(void **state) {
    (void)state;
    static const uint32_t ends[] = {7, 7, 12};
    for (int kind = 0; kind < OBJECTIVES; kind++)
        for (int way = kind % EACH_WAY; way < ACTIVATIONS * PRECISIONS * NET_FORMATS;
             way += EACH_WAY) {
            const struct net_format *format = &net_formats[way % NET_FORMATS];
            struct objective_shape shape = net_shape(
                (enum objective_kind)kind, (enum activation)(way / NET_FORMATS % ACTIVATIONS),
                (enum precision)(way / NET_FORMATS / ACTIVATIONS));
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

static struct objective_shape any_shape(struct random *random) {
    struct objective_shape shape = net_shape((enum objective_kind)random_below(random, OBJECTIVES),
                                             (enum activation)random_below(random, ACTIVATIONS),
                                             (enum precision)random_below(random, PRECISIONS));
    shape.features = (uint32_t)random_below(random, NET_FEATURES_MAX + 1);
    shape.network.layers = 1 + (uint32_t)random_below(random, 3);
    for (uint32_t l = 0; l < shape.network.layers; l++)
        shape.network.units[l] = 1 + (uint32_t)random_below(random, 30);
    return shape;
}

enum { ANY_NETWORKS = SANITIZED ? 8 : 40 };

static void any_network_has_the_bits_of_the_processor(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 77);
    for (int round = 0; round < ANY_NETWORKS; round++) {
        const struct net_format *format = &net_formats[random_below(&random, NET_FORMATS)];
        uint32_t ends[3];
        for (uint32_t c = 0; c < 3; c++)
            ends[c] = (c ? ends[c - 1] : 0) + (uint32_t)random_below(&random, 90);
        struct objective_shape shape = any_shape(&random);
        struct net *net =
            net_new(shape, ends[2], format->dense, format->type, (uint64_t)(500 + round));
        for (uint32_t i = 0; i < ends[2]; i++)
            net->weight[i] = random_below(&random, 3) ? 4 * random_unit(&random) : 0;
        net->rows.weight = round % 2 ? net->weight : NULL;
        net_measure(net);
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
        for (int way = (int)f % EACH_WAY; way < ACTIVATIONS * PRECISIONS * 4; way += EACH_WAY) {
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
    for (int f = 0; f < NET_FORMATS; f++) {
        struct objective_shape shape =
            net_shape(OBJECTIVE_ORDINAL, ACTIVATION_RELU, PRECISION_FLOAT);
        shape.features = 1;
        struct net *net = net_new(shape, 1, net_formats[f].dense, net_formats[f].type, 8);
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

/* So that chunks are streamed, and computed one by one. */
static void little_memory_changes_no_bits(void **state) {
    (void)state;
    static const uint32_t ends[] = {30, 60, 61, 100};
    for (int dense = 0; dense < 2; dense++) {
        struct objective_shape shape =
            net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_GELU, PRECISION_FLOAT);
        shape.features = 40;
        struct net *net = net_new(shape, 100, dense, VALUE_FLOAT, 6);
        assert_within(net, ends, 4, 8000);
        net_free(net);
    }
}

/* The code of an evaluation on a device that fails after so many calls. */
static int evaluate_on(struct device *failing, struct trial *trial) {
    const struct net *net = trial->net;
    const struct objective_device_settings settings = {
        .shape = net->shape, .exponent = net->exponent, .chunk = chunk_of, .context = trial};
    const struct objective_device_work work = {
        .count = trial->count, .sums = true, .bounds = {.count = net->layout.count}};
    struct objective_device_result results[CHUNKS_MAX];
    int64_t *sum = memory_new(net->n, sizeof *sum);
    bool stopped;
    int code = objective_device_new(failing, &settings, &trial->on);
    if (!code)
        code = objective_device_point(trial->on, net->parameters);
    if (!code)
        code = objective_device_compute(trial->on, &work, results, &stopped);
    if (!code)
        code = objective_device_gather(trial->on, sum, net->n);
    free(sum);
    return code;
}

static void any_call_of_a_device_may_fail(void **state) {
    (void)state;
    static const uint32_t ends[] = {5, 12};
    struct net *net = net_new(net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_GELU, PRECISION_FLOAT), 12,
                              false, VALUE_FLOAT, 6);
    int code = ERROR_UNAVAILABLE;
    uint64_t calls = 0;
    for (; code; calls++) {
        struct device *failing;
        struct trial trial = {.net = net};
        cut(&trial, 0, ends[0]);
        cut(&trial, ends[0], ends[1]);
        assert_int_equal(device_open(DEVICE_EMULATED, 0, &failing), 0);
        device_fail_after(failing, calls);
        code = evaluate_on(failing, &trial);
        assert_true(code == 0 || code == ERROR_UNAVAILABLE);
        end(&trial);
        device_close(failing);
        error_clear();
    }
    assert_true(calls > 40);
    net_free(net);
}

static void networks_with_kronecker_factors_are_refused_by_name(void **state) {
    (void)state;
    struct objective_shape shape = net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, PRECISION_DOUBLE);
    shape.network.kronecker = true;
    assert_non_null(strstr(objective_device_cannot(&shape, false), "Kronecker"));
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

SUITE(device_network) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_loss_activation_precision_and_format_has_the_bits_of_the_processor),
        cmocka_unit_test(
            sums_longer_than_a_strip_and_matrices_wider_than_a_tile_have_the_same_bits),
        cmocka_unit_test(any_network_has_the_bits_of_the_processor),
        cmocka_unit_test(rows_count_as_much_as_they_weigh),
        cmocka_unit_test(extreme_numbers_have_the_bits_of_the_processor),
        cmocka_unit_test(parameters_that_are_no_numbers_exceed_all_bounds),
        cmocka_unit_test(fifteen_layers_of_one_unit_have_the_bits_of_the_processor),
        cmocka_unit_test(one_row_of_one_column_has_the_bits_of_the_processor),
        cmocka_unit_test(no_features_and_rows_without_values_have_the_bits_of_the_processor),
        cmocka_unit_test(margins_are_in_the_unit_of_the_labels),
        cmocka_unit_test(little_memory_changes_no_bits),
        cmocka_unit_test(any_call_of_a_device_may_fail),
        cmocka_unit_test(networks_with_kronecker_factors_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, open_it, close_it);
}
