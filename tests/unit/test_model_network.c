#define _GNU_SOURCE
/* Models of networks: written and read, damaged, and as starting points. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/file.h"
#include "tests/unit/model_fixture.h"

/* Four features, hidden layers of 2 and 5 units, three classes. */
#define FIRST 2
#define SECOND 5
#define SIZE (FEATURES * FIRST + FIRST * SECOND + SECOND * OUTPUTS + FIRST + SECOND + OUTPUTS)
#define LAST_WEIGHTS (FEATURES * FIRST + FIRST * SECOND)
#define BIASES (LAST_WEIGHTS + SECOND * OUTPUTS)

static struct model_layout network(void) {
    struct model_layout layout = softmax;
    layout.network = (struct network){
        .layers = 2, .units = {FIRST, SECOND}, .activation = ACTIVATION_RELU, .seed = 7};
    return layout;
}

/* In slices that cross tensors, last first. */
static void feed_network(struct model_writer *writer, const uint64_t *cuts, size_t slices) {
    for (size_t cut = 0; cut < slices; cut++) {
        double slice[SIZE];
        uint64_t first = cuts[cut + 1], count = cuts[cut] - first;
        for (uint64_t i = 0; i < count; i++)
            slice[i] = parameter(first + i);
        assert_int_equal(model_writer_slice(writer, first, count, slice), 0);
    }
}

static struct model_writer *fed(const char *name, const struct model_layout *layout) {
    static const uint64_t cuts[] = {SIZE, 30, 17, 3, 0};
    struct model_writer *writer = started(name, layout);
    feed_network(writer, cuts, 4);
    return writer;
}

static struct model *opened(const char *name) {
    struct model *model;
    if (model_open(inside(name), &model))
        fail_msg("%s", error_text());
    return model;
}

static struct model *written(const char *name, const struct model_layout *layout) {
    assert_int_equal(model_writer_publish(fed(name, layout), NULL), 0);
    return opened(name);
}

/* The file's parameters: W1's rows by rising id, the rest as the run has it. */
static void in_file(double *all) {
    for (uint32_t r = 0; r < FEATURES; r++)
        for (uint32_t k = 0; k < FIRST; k++)
            all[r * FIRST + k] = parameter(order[r] * FIRST + k) + 0.0;
    for (uint32_t i = FEATURES * FIRST; i < SIZE; i++)
        all[i] = parameter(i);
}

static void a_network_is_read_as_it_was_written(void **state) {
    (void)state;
    struct model_layout layout = network();
    struct model *model = written("1", &layout);
    const struct network *read = &model->layout.network;
    double all[SIZE];
    in_file(all);
    assert_string_equal(model->layout.objective, "softmax");
    assert_int_equal(read->layers, 2);
    assert_int_equal(read->units[0], FIRST);
    assert_int_equal(read->units[1], SECOND);
    assert_int_equal(read->activation, ACTIVATION_RELU);
    assert_int_equal(read->precision, PRECISION_DOUBLE);
    assert_int_equal(model->layout.outputs, OUTPUTS);
    assert_int_equal(model->layout.features, FEATURES);
    assert_true(model->layout.intercept && !model->layout.shared);
    assert_null(model->weight);
    assert_null(model->bias);
    assert_memory_equal(model->vector, all, sizeof all);
    assert_int_equal((uintptr_t)model->vector % 64, 0);
    for (uint32_t r = 0; r < FEATURES; r++)
        assert_int_equal(model->layout.feature_id[r], ids[order[r]]);
    model_close(model);
}

static void float_and_every_activation_are_read_back(void **state) {
    (void)state;
    struct model_layout layout = network();
    layout.network.precision = PRECISION_FLOAT;
    for (int i = 0; i < ACTIVATIONS; i++) {
        layout.network.activation = (enum activation)i;
        struct model *model = written("1", &layout);
        assert_int_equal(model->layout.network.activation, i);
        assert_int_equal(model->layout.network.precision, PRECISION_FLOAT);
        model_close(model);
    }
}

static void the_hash_is_over_the_tensors_one_behind_the_other(void **state) {
    (void)state;
    struct model_layout layout = network();
    struct model_writer *writer = fed("1", &layout);
    char expected[SHA256_TEXT], hash[SHA256_TEXT];
    double all[SIZE];
    in_file(all);
    sha256_of(all, sizeof all, expected);
    assert_int_equal(model_writer_hash(writer, hash), 0);
    assert_string_equal(hash, expected);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    struct model *model = opened("1");
    assert_string_equal(model->sha256, expected);
    model_close(model);
}

static void the_view_of_a_writer_is_the_network_to_be(void **state) {
    (void)state;
    struct model_layout layout = network();
    struct model_writer *writer = fed("1", &layout);
    struct model view;
    double all[SIZE];
    in_file(all);
    assert_int_equal(model_writer_view(writer, &view), 0);
    assert_memory_equal(view.vector, all, sizeof all);
    assert_null(view.weight);
    assert_null(view.bias);
    assert_int_equal(view.layout.network.units[1], SECOND);
    model_writer_discard(writer);
}

/* ---- damage ---- */

struct damage {
    const char *find, *replace; /* of equal length */
    const char *says;
};

/* Replaces a text in a file. */
static void damage_file(const char *path, const struct damage *damage) {
    char *data;
    size_t length;
    assert_int_equal(file_read(path, 1 << 20, &data, &length), 0);
    char *at = memmem(data, length, damage->find, strlen(damage->find));
    if (!at || strlen(damage->find) != strlen(damage->replace))
        fail_msg("cannot replace %s", damage->find);
    memcpy(at, damage->replace, strlen(damage->replace));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    fclose(file);
    free(data);
}

static void assert_refused(const char *file, const struct damage *damage) {
    struct model_layout layout = network();
    struct model *model = written("1", &layout);
    char *path = path_join(inside("1"), file);
    model_close(model);
    damage_file(path, damage);
    int code = model_open(inside("1"), &model);
    if (code != ERROR_DATA || !strstr(error_text(), path) || !strstr(error_text(), damage->says))
        fail_msg("%s → %s: %d %s", damage->find, damage->replace, code, error_text());
    error_clear();
    free(path);
}

static void damaged_tensors_of_a_network_are_refused(void **state) {
    (void)state;
    static const struct damage damages[] = {
        {"\"W1\"", "\"V1\"", "weight"},
        {"\"W2\"", "\"V2\"", "layers"},
        {"\"W3\"", "\"V3\"", "does not follow"},
        {"\"b3\"", "\"c3\"", "layers"},
        {"\"W2\"", "\"W4\"", "layers"},
        {"[2,5]", "[3,5]", "layers"},
        {"[2,5]", "[2,6]", "layers"},
        {"[2,5]", "[ 10]", "layers"},
        {"[4,2]", "[5,2]", "shape"},
        {"[4,2]", "[2,4]", "layers"},
        {"[5,3]", "[5,4]", "shape"},
        {"[0,64]", "[0,56]", "shape"},
        {"[0,64]", "[8,72]", "does not follow"},
        {"F64", "F32", "F32"},
        {"\"1\",\"objective\":\"softmax\"", "\"99\",\"objective\":\"softma\"", "newer"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        assert_refused("model.safetensors", &damages[i]);
}

static void a_description_that_does_not_suit_the_tensors_is_refused(void **state) {
    (void)state;
    static const struct damage damages[] = {
        {"\"network\"", "\"nettles\"", "layers"},
        {"\"layers\"", "\"strata\"", "layers"},
        {"      5\n", "      6\n", "layers"},
        {"      2,", "      3,", "layers"},
        {"\"relu\"", "\"selu\"", "the activation `selu`"},
        {"\"double\"", "\"triple\"", "the precision `triple`"},
        {"\"precision\"", "\"precasion\"", "the precision"},
        {"\"softmax\"", "\"ordinal\"", "cannot have 3 outputs"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        assert_refused("model.json", &damages[i]);
}

static void a_parameter_of_a_network_that_is_not_finite_is_refused(void **state) {
    (void)state;
    struct model_layout layout = network();
    struct model_writer *writer = started("1", &layout);
    assert_int_equal(model_writer_slice(writer, SIZE - 1, 1, &(double){NAN}), ERROR_INTERNAL);
    model_writer_discard(writer);
    error_clear();
}

static void a_network_cut_short_is_refused(void **state) {
    (void)state;
    struct model_layout layout = network();
    struct model *model = written("1", &layout);
    size_t bytes = model->mapping_bytes;
    model_close(model);
    assert_int_equal(truncate(inside("1/model.safetensors"), (off_t)bytes - 8 * FEATURES - 8), 0);
    assert_int_equal(model_open(inside("1"), &model), ERROR_DATA);
    assert_non_null(strstr(error_text(), "cut short"));
}

/* ---- as a starting point ---- */

/* After `softmax`: 70 is gone, 4 is new; class "2" is gone, "4" is new. */
static const struct model_layout later = {
    .objective = "softmax",
    .outputs = OUTPUTS,
    .intercept = true,
    .features = FEATURES,
    .feature_id = (const uint64_t[]){4, FEATURE_ID_MAX, 3, 11},
    .original_order.narrow = (const uint32_t[]){2, 0, 3, 1},
    .classes = OUTPUTS,
    .class_names = (const char *const[]){"caf\xc3\xa9", "1", "4"},
};
/* Where each stood before; −1: nowhere. */
static const int column_before[FEATURES] = {-1, 2, 1, 3};
static const int class_before[OUTPUTS] = {2, 0, -1};

static struct model_layout later_network(void) {
    struct model_layout layout = later;
    layout.network = network().network;
    layout.network.seed = 8;
    return layout;
}

/* The earlier place of an output, in the row that begins at `row`; −1 if there was none. */
static int beside(int row, const int *before, int column) {
    return before[column] < 0 ? -1 : row + before[column];
}

/* The parameter of the earlier network that means the same as parameter i of the later one; −1 if
 * there is none. */
static int same_parameter(int i) {
    if (i < FEATURES * FIRST)
        return column_before[i / FIRST] < 0 ? -1 : column_before[i / FIRST] * FIRST + i % FIRST;
    if (i >= LAST_WEIGHTS && i < BIASES)
        return beside(i - (i - LAST_WEIGHTS) % OUTPUTS, class_before, (i - LAST_WEIGHTS) % OUTPUTS);
    if (i >= SIZE - OUTPUTS)
        return beside(SIZE - OUTPUTS, class_before, i - (SIZE - OUTPUTS));
    return i;
}

static void features_and_classes_of_a_network_are_matched(void **state) {
    (void)state;
    struct model_layout layout = network(), next = later_network();
    struct model *model = written("1", &layout);
    double start[SIZE];
    memset(start, 0xff, sizeof start);
    assert_int_equal(model_fits(model, &next), 0);
    assert_int_equal(model_parameters(&next), SIZE);
    model_spread(model, &next, start);
    for (int i = 0; i < SIZE; i++) {
        int before = same_parameter(i);
        if (start[i] != (before < 0 ? 0 : parameter((uint64_t)before)))
            fail_msg("parameter %d is %g, not that of %d", i, start[i], before);
    }
    model_close(model);
}

static void a_feature_that_vanished_keeps_its_row_of_the_first_layer(void **state) {
    (void)state;
    struct model_layout layout = network(), next = later_network();
    struct model *model = written("1", &layout);
    uint64_t rank, id;
    double weight[FIRST];
    assert_int_equal(model_vanished(model, &next, &rank), 1);
    model_vanished_weights(model, &next, &rank, 1, weight);
    id = model->layout.feature_id[rank];
    assert_int_equal(id, 70);
    const struct model_kept kept = {1, &id, weight, NULL};
    next.kept = &kept;
    struct model *after = written("2", &next);
    assert_int_equal(after->layout.features, FEATURES + 1);
    assert_int_equal(after->layout.feature_id[3], 70);
    assert_memory_equal(after->vector + 3 * FIRST, model->vector + rank * FIRST, sizeof weight);
    assert_true(after->vector[SIZE + FIRST - 1] == parameter(SIZE - 1));
    assert_true(after->vector[(FEATURES + 1) * FIRST] == parameter(FEATURES * FIRST));
    model_close(after);
    model_close(model);
}

static void assert_does_not_fit(const struct model *model, const struct model_layout *layout,
                                const char *why) {
    assert_int_equal(model_fits(model, layout), ERROR_DATA);
    if (!strstr(error_text(), why))
        fail_msg("%s", error_text());
    error_clear();
}

static void other_hidden_layers_do_not_fit(void **state) {
    (void)state;
    struct model_layout layout = network(), next = later_network();
    struct model *model = written("1", &layout);
    next.network.units[1]++;
    assert_does_not_fit(model, &next,
                        "it has hidden layers { 2, 5 } of relu, and the job hidden layers { 2, 6 }"
                        " of relu");
    next.network.layers = 1;
    assert_does_not_fit(model, &next, "and the job hidden layers { 2 } of relu");
    next = later_network();
    next.network.activation = ACTIVATION_TANH;
    assert_does_not_fit(model, &next, "and the job hidden layers { 2, 5 } of tanh");
    assert_does_not_fit(model, &later, "and the job no hidden layers");
    model_close(model);
    write_model("linear");
    model = opened("linear");
    next = later_network();
    assert_does_not_fit(model, &next, "it has no hidden layers, and the job hidden layers");
    model_close(model);
}

static void a_network_can_go_on_in_another_precision(void **state) {
    (void)state;
    struct model_layout layout = network(), next = later_network();
    struct model *model = written("1", &layout);
    next.network.precision = PRECISION_FLOAT;
    assert_int_equal(model_fits(model, &next), 0);
    model_close(model);
}

SUITE(model_network) {
    const struct CMUnitTest tests[] = {
        HOLDS(a_network_is_read_as_it_was_written),
        HOLDS(float_and_every_activation_are_read_back),
        HOLDS(the_hash_is_over_the_tensors_one_behind_the_other),
        HOLDS(the_view_of_a_writer_is_the_network_to_be),
        HOLDS(damaged_tensors_of_a_network_are_refused),
        HOLDS(a_description_that_does_not_suit_the_tensors_is_refused),
        HOLDS(a_parameter_of_a_network_that_is_not_finite_is_refused),
        HOLDS(a_network_cut_short_is_refused),
        HOLDS(features_and_classes_of_a_network_are_matched),
        HOLDS(a_feature_that_vanished_keeps_its_row_of_the_first_layer),
        HOLDS(other_hidden_layers_do_not_fit),
        HOLDS(a_network_can_go_on_in_another_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
