/* Models on disk: what is written can be read, and a model that is not whole is never published. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <openssl/sha.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "tests/unit/model_fixture.h"

static size_t entries(const char *path) {
    DIR *list = opendir(path);
    assert_non_null(list);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(list));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(list);
    return count;
}

static void a_model_is_read_as_it_was_written(void **state) {
    (void)state;
    write_model("deep/below/1");
    struct model *model;
    assert_int_equal(model_open(inside("deep/below/1"), &model), 0);
    assert_string_equal(model->layout.objective, "softmax");
    assert_int_equal(model->layout.outputs, OUTPUTS);
    assert_int_equal(model->layout.features, FEATURES);
    assert_true(model->layout.intercept);
    assert_false(column_order_given(&model->layout.original_order));
    assert_string_equal(model->layout.class_names[2], "caf\xc3\xa9");
    assert_string_equal(model->layout.feature_names[0], "na\xc3\xaf\xc3\xa9");
    assert_string_equal(model->layout.feature_names[3], "last");
    assert_true(json_real_value(json_object_get(model->details, "loss")) == 0.25);
    assert_null(model->layout.mean);
    model_close(model);
}

static void parameters_are_permuted_to_the_order_of_original_ids(void **state) {
    (void)state;
    write_model("1");
    struct model *model;
    assert_int_equal(model_open(inside("1/model.safetensors"), &model), 0);
    for (uint32_t r = 0; r < FEATURES; r++) {
        assert_int_equal(model->layout.feature_id[r], ids[order[r]]);
        for (uint32_t k = 0; k < OUTPUTS; k++)
            assert_true(model->weight[k * FEATURES + r] == parameter(order[r] * OUTPUTS + k));
    }
    for (uint32_t k = 0; k < OUTPUTS; k++)
        assert_true(model->bias[k] == parameter(FEATURES * OUTPUTS + k));
    assert_false(signbit(model->weight[1 * FEATURES + 0])); /* −0 went in */
    assert_int_equal((uintptr_t)model->weight % 64, 0);
    model_close(model);
}

static void the_hash_is_over_classes_then_original_ids_then_the_intercept(void **state) {
    (void)state;
    double all[PARAMETERS];
    size_t at = 0;
    for (uint32_t k = 0; k < OUTPUTS; k++) {
        for (uint32_t r = 0; r < FEATURES; r++)
            all[at++] = parameter(order[r] * OUTPUTS + k) + 0.0;
        all[at++] = parameter(FEATURES * OUTPUTS + k);
    }
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)all, sizeof all, digest);
    char expected[SHA256_TEXT], actual[SHA256_TEXT];
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(expected + 2 * i, 3, "%02x", digest[i]);

    struct model_writer *writer = started("1", &softmax);
    feed(writer);
    assert_int_equal(model_writer_hash(writer, actual), 0);
    assert_string_equal(actual, expected);
    model_writer_discard(writer);
}

/* The view of one model against another of the same parameters as it is read. */
static void assert_view(const struct model_layout *layout) {
    struct model view, *model;
    struct model_writer *published = started("2", layout), *writer = started("1", layout);
    feed(published);
    assert_int_equal(model_writer_publish(published, NULL), 0);
    assert_int_equal(model_open(inside("2"), &model), 0);
    assert_int_equal(model_writer_view(writer, &view), ERROR_INTERNAL);
    error_clear();
    feed(writer);
    assert_int_equal(model_writer_view(writer, &view), 0);
    uint64_t features = model->layout.features;
    assert_int_equal(view.layout.features, features);
    assert_memory_equal(view.weight, model->weight, OUTPUTS * features * sizeof *view.weight);
    assert_memory_equal(view.bias, model->bias, OUTPUTS * sizeof *view.bias);
    assert_memory_equal(view.layout.feature_id, model->layout.feature_id,
                        features * sizeof *view.layout.feature_id);
    for (uint64_t r = 0; r < features; r++)
        assert_string_equal(view.layout.feature_names[r], model->layout.feature_names[r]);
    assert_false(column_order_given(&view.layout.original_order));
    assert_int_equal(view.layout.classes, model->layout.classes);
    model_close(model);
    model_writer_discard(writer);
}

static void the_view_of_a_writer_is_the_model_to_be(void **state) {
    (void)state;
    static const uint64_t kept_id[] = {5};
    static const double kept_weight[OUTPUTS] = {0.5, -0.25, 8};
    static const char *const kept_name[] = {"five"};
    const struct model_kept kept = {1, kept_id, kept_weight, kept_name};
    struct model_layout layout = softmax;
    assert_view(&layout);
    layout.kept = &kept;
    assert_view(&layout);
}

/* They change the file and not the hash of the parameters; a kept feature has the mean 0. */
static void means_are_permuted_with_their_features(void **state) {
    (void)state;
    static const uint64_t kept_id[] = {5};
    static const double kept_weight[OUTPUTS] = {0.5, -0.25, 8}, means[FEATURES] = {1, -0.0, 3, 4};
    const struct model_kept kept = {1, kept_id, kept_weight, NULL};
    struct model_layout layout = softmax;
    layout.feature_names = NULL;
    layout.kept = &kept;
    struct model_writer *plain = started("1", &layout);
    feed(plain);
    char without[SHA256_TEXT];
    assert_int_equal(model_writer_hash(plain, without), 0);
    model_writer_discard(plain);

    layout.keeps_means = true;
    struct model_writer *writer = started("1", &layout);
    feed(writer);
    model_writer_means(writer, means);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    struct model *model;
    assert_int_equal(model_open(inside("1"), &model), 0);
    assert_string_equal(model->sha256, without);
    assert_non_null(model->layout.mean);
    static const double expected[FEATURES + 1] = {0, 0, 4, 1, 3}; /* of ids 3, 5, 11, 70, last */
    assert_memory_equal(model->layout.mean, expected, sizeof expected);
    model_close(model);
}

static void a_model_without_intercept_has_no_bias(void **state) {
    (void)state;
    struct model_layout layout = {.objective = "squared",
                                  .outputs = 1,
                                  .features = FEATURES,
                                  .feature_id = ids,
                                  .original_order.narrow = order};
    struct model_writer *writer = started("1", &layout);
    assert_int_equal(model_writer_slice(writer, 0, FEATURES, (double[]){1, 2, 3, 4}), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    struct model *model;
    assert_int_equal(model_open(inside("1"), &model), 0);
    assert_null(model->bias);
    assert_null(model->layout.feature_names);
    assert_int_equal(model->layout.classes, 0);
    assert_true(model->weight[0] == 2 && model->weight[3] == 3);
    model_close(model);
}

static const struct model_layout ordinal = {
    .objective = "ordinal",
    .outputs = OUTPUTS - 1,
    .shared = true,
    .intercept = true,
    .features = FEATURES,
    .feature_id = ids,
    .original_order.narrow = order,
    .classes = OUTPUTS,
    .class_names = classes,
};

static void
a_model_of_ordered_classes_has_one_weight_a_feature_and_a_bias_a_threshold(void **state) {
    (void)state;
    static const double parameters[] = {1, 2, 3, 4, 0.5, -0.5};
    struct model_writer *writer = started("1", &ordinal);
    char hash[SHA256_TEXT], expected[SHA256_TEXT];
    assert_int_equal(model_writer_slice(writer, 0, FEATURES + OUTPUTS - 1, parameters), 0);
    assert_int_equal(model_writer_hash(writer, hash), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    struct model *model;
    assert_int_equal(model_open(inside("1"), &model), 0);
    assert_true(model->layout.shared && model->layout.intercept);
    assert_int_equal(model->layout.outputs, OUTPUTS - 1);
    static const double ordered[] = {2, 4, 1, 3, 0.5, -0.5};
    assert_memory_equal(model->weight, ordered, FEATURES * sizeof *ordered);
    assert_memory_equal(model->bias, ordered + FEATURES, (OUTPUTS - 1) * sizeof *ordered);
    sha256_of(ordered, sizeof ordered, expected);
    assert_string_equal(hash, expected);
    assert_string_equal(model->sha256, expected);
    model_close(model);
}

/* One row of weights for three classes is of no softmax, and thresholds are of no logistic. */
static void biases_that_the_objective_cannot_have_are_refused(void **state) {
    (void)state;
    static const char *const objectives[] = {"softmax", "logistic", "squared", "ordinal"};
    struct model_layout layout = ordinal;
    for (size_t i = 0; i < 4; i++) {
        layout.objective = objectives[i];
        layout.outputs = OUTPUTS; /* of ordered classes, one too many */
        layout.classes = i == 1 ? 2 : i == 2 ? 0 : OUTPUTS;
        struct model_writer *writer = started("1", &layout);
        double parameters[FEATURES + OUTPUTS] = {0};
        assert_int_equal(model_writer_slice(writer, 0, FEATURES + OUTPUTS, parameters), 0);
        assert_int_equal(model_writer_publish(writer, NULL), 0);
        struct model *model;
        assert_int_equal(model_open(inside("1"), &model), ERROR_DATA);
        assert_non_null(strstr(error_text(), "cannot have 3 outputs"));
        error_clear();
    }
}

static void a_state_folder_stands_for_its_current_model(void **state) {
    (void)state;
    write_model("models/1");
    write_model("models/2");
    struct model *model;
    assert_int_equal(model_open(folder, &model), ERROR_DATA);
    assert_non_null(strstr(error_text(), folder));
    error_clear();
    for (const char *const *name = (const char *const[]){"1", "2", NULL}; *name; name++) {
        char target[16] = "";
        assert_int_equal(model_set_current(inside("models"), *name), 0);
        assert_int_equal(readlink(inside("models/current"), target, sizeof target - 1), 1);
        assert_string_equal(target, *name);
        assert_int_equal(model_open(folder, &model), 0);
        model_close(model);
    }
    assert_int_equal(entries(inside("models")), 3);
    assert_int_equal(unlink(inside("models/current")), 0);
    assert_int_equal(mkdir(inside("models/current"), 0700),
                     0); /* as of a copy that follows links */
    assert_int_equal(model_set_current(inside("models"), "1"), ERROR_CREATE);
    assert_non_null(strstr(error_text(), "it is a folder"));
    error_clear();
    assert_int_equal(entries(inside("models")), 3);
}

static void a_model_that_is_there_is_replaced(void **state) {
    (void)state;
    write_model("1");
    struct model_writer *writer = started("1/", &softmax);
    double zeros[PARAMETERS] = {0};
    assert_int_equal(model_writer_slice(writer, 0, PARAMETERS, zeros), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    struct model *model;
    assert_int_equal(model_open(inside("1"), &model), 0);
    assert_true(model->weight[0] == 0);
    model_close(model);
    assert_int_equal(entries(folder), 1);
}

static void a_parameter_that_is_not_finite_is_refused(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        error_clear();
        struct model_writer *writer = started("1", &softmax);
        assert_int_equal(model_writer_slice(writer, 2, 1, bad + i), ERROR_INTERNAL);
        model_writer_discard(writer);
        assert_int_equal(entries(folder), 0);
    }
}

static void parameters_beyond_the_model_are_refused(void **state) {
    (void)state;
    struct model_writer *writer = started("1", &softmax);
    double values[PARAMETERS] = {0};
    assert_int_equal(model_writer_slice(writer, 1, PARAMETERS, values), ERROR_INTERNAL);
    assert_int_equal(model_writer_slice(writer, UINT64_MAX, 2, values), ERROR_INTERNAL);
    model_writer_discard(writer);
}

static void an_unfinished_model_is_not_published(void **state) {
    (void)state;
    char text[SHA256_TEXT];
    struct model_writer *writer = started("1", &softmax);
    assert_int_equal(model_writer_slice(writer, 0, 1, &(double){1}), 0);
    assert_int_equal(model_writer_hash(writer, text), ERROR_INTERNAL);
    assert_int_equal(model_writer_publish(writer, NULL), ERROR_INTERNAL);
    assert_int_equal(entries(folder), 0);
}

static void a_failed_publication_leaves_nothing_behind(void **state) {
    (void)state;
    struct model_writer *writer = started("1", &softmax);
    feed(writer);
    FILE *file = fopen(inside("1"), "w"); /* a file where the folder should go */
    assert_non_null(file);
    fclose(file);
    assert_int_equal(model_writer_publish(writer, NULL), ERROR_CREATE);
    assert_non_null(strstr(error_text(), inside("1")));
    assert_int_equal(entries(folder), 1);
}

static void a_model_too_large_for_the_disk_is_an_error_at_the_start(void **state) {
    (void)state;
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    struct model_writer *writer;
    int code = model_writer_new(inside("1"), &softmax, &writer);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(code, ERROR_IO);
    assert_int_equal(entries(folder), 0);
}

SUITE(model) {
    const struct CMUnitTest tests[] = {
        HOLDS(a_model_is_read_as_it_was_written),
        HOLDS(parameters_are_permuted_to_the_order_of_original_ids),
        HOLDS(the_hash_is_over_classes_then_original_ids_then_the_intercept),
        HOLDS(the_view_of_a_writer_is_the_model_to_be),
        HOLDS(means_are_permuted_with_their_features),
        HOLDS(a_model_without_intercept_has_no_bias),
        HOLDS(a_model_of_ordered_classes_has_one_weight_a_feature_and_a_bias_a_threshold),
        HOLDS(biases_that_the_objective_cannot_have_are_refused),
        HOLDS(a_state_folder_stands_for_its_current_model),
        HOLDS(a_model_that_is_there_is_replaced),
        HOLDS(a_parameter_that_is_not_finite_is_refused),
        HOLDS(parameters_beyond_the_model_are_refused),
        HOLDS(an_unfinished_model_is_not_published),
        HOLDS(a_failed_publication_leaves_nothing_behind),
        HOLDS(a_model_too_large_for_the_disk_is_an_error_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
