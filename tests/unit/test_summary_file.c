/* summary.json beside a model: it comes back as it was written, and nothing else is taken for it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "model/summary.h"
#include "tests/unit/model_fixture.h"

static const double variance[PARAMETERS] = {0.25, 1e-300, [PARAMETERS - 1] = NAN};
static const bool aliased[PARAMETERS] = {[4] = true, [PARAMETERS - 1] = true};

static json_t *some_summary(void) {
    const struct summary_covariance covariance = {.parameters = PARAMETERS,
                                                  .variance = variance,
                                                  .aliased = aliased,
                                                  .clustered = variance,
                                                  .trace = 2.5,
                                                  .cluster = "house",
                                                  .clusters = 7,
                                                  .single_rows = 2};
    json_t *fit = json_pack("{s:f}", "deviance", 1.0 / 3);
    json_t *summary = summary_json(fit, &covariance, NULL);
    json_decref(fit);
    return summary;
}

/* Writes a model with a summary, which is changed before by `change` if there is one. */
static void write_with(const char *name, void (*change)(json_t *)) {
    struct model_writer *writer = started(name, &softmax);
    feed(writer);
    json_t *summary = some_summary();
    if (change)
        change(summary);
    assert_int_equal(model_writer_summary(writer, summary), 0);
    json_decref(summary);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
}

static struct model *opened(const char *name) {
    struct model *model;
    assert_int_equal(model_open(inside(name), &model), 0);
    return model;
}

static void a_summary_is_read_as_it_was_written(void **state) {
    (void)state;
    write_with("1", NULL);
    struct model *model = opened("1");
    json_t *summary;
    assert_int_equal(summary_read(model, &summary), 0);
    const json_t *covariance = json_object_get(summary, "covariance");
    const json_t *list = json_object_get(covariance, "variance");
    assert_true(json_number_value(json_object_get(json_object_get(summary, "fit"), "deviance")) ==
                1.0 / 3);
    assert_int_equal(json_array_size(list), PARAMETERS);
    assert_true(json_number_value(json_array_get(list, 1)) == 1e-300);
    assert_true(json_is_null(json_array_get(list, PARAMETERS - 1)));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(covariance, "aliased"), 0)),
                     4);
    assert_null(json_object_get(covariance, "robust"));
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(covariance, "clusters"), "of_one_row")),
        2);
    json_decref(summary);
    model_close(model);
}

static void a_model_without_a_summary_has_none(void **state) {
    (void)state;
    write_model("1");
    struct model *model = opened("1");
    json_t *summary;
    assert_int_equal(summary_read(model, &summary), 0);
    assert_null(summary);
    model_close(model);
}

static void numbers_of_parameters_are_places_in_the_file(void **state) {
    (void)state;
    struct model_writer *writer = started("1", &softmax);
    assert_int_equal(model_writer_parameters(writer), PARAMETERS);
    for (uint32_t r = 0; r < FEATURES; r++)
        for (uint32_t k = 0; k < OUTPUTS; k++)
            assert_int_equal(model_writer_number(writer, order[r] * OUTPUTS + k), k * FEATURES + r);
    for (uint32_t k = 0; k < OUTPUTS; k++)
        assert_int_equal(model_writer_number(writer, FEATURES * OUTPUTS + k),
                         FEATURES * OUTPUTS + k);
    model_writer_discard(writer);
}

static void assert_refused(const char *name, const char *why) {
    struct model *model = opened(name);
    json_t *summary;
    assert_int_equal(summary_read(model, &summary), ERROR_DATA);
    assert_null(summary);
    assert_non_null(strstr(error_text(), why));
    error_clear();
    model_close(model);
}

static void raise_version(json_t *summary) {
    json_object_set_new(summary, "format_version", json_integer(SUMMARY_FORMAT_VERSION + 1));
}

static void shorten(json_t *summary) {
    json_array_remove(json_object_get(json_object_get(summary, "covariance"), "variance"), 0);
}

static void misnumber(json_t *summary) {
    json_array_append_new(json_object_get(json_object_get(summary, "covariance"), "aliased"),
                          json_integer(PARAMETERS));
}

static void files_that_are_none_are_refused(void **state) {
    (void)state;
    write_with("newer", raise_version);
    assert_refused("newer", "format version");
    write_with("short", shorten);
    assert_refused("short", "a number for each parameter");
    write_with("misnumbered", misnumber);
    assert_refused("misnumbered", "a number for each parameter");
}

static void damage_is_noticed(void **state) {
    (void)state;
    write_with("1", NULL);
    char path[512];
    snprintf(path, sizeof path, "%s/" MODEL_SUMMARY, inside("1"));
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        if (c == '7') { /* of the clusters, or of a digit before */
            fseek(file, -1, SEEK_CUR);
            putc('8', file);
            break;
        }
    fclose(file);
    assert_refused("1", "is damaged, or was edited");
    file = fopen(path, "w");
    fputs("[", file);
    fclose(file);
    assert_refused("1", "not a JSON object");
}

static void a_summary_of_another_model_is_refused(void **state) {
    (void)state;
    write_with("1", NULL);
    struct model_writer *writer = started("2", &softmax);
    double other[PARAMETERS] = {1};
    assert_int_equal(model_writer_slice(writer, 0, PARAMETERS, other), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    char from[512];
    snprintf(from, sizeof from, "%s/" MODEL_SUMMARY, inside("1"));
    char to[512];
    snprintf(to, sizeof to, "%s/" MODEL_SUMMARY, inside("2"));
    assert_int_equal(rename(from, to), 0);
    assert_refused("2", "of another model");
}

SUITE(summary_file) {
    const struct CMUnitTest tests[] = {
        HOLDS(a_summary_is_read_as_it_was_written),
        HOLDS(a_model_without_a_summary_has_none),
        HOLDS(numbers_of_parameters_are_places_in_the_file),
        HOLDS(files_that_are_none_are_refused),
        HOLDS(damage_is_noticed),
        HOLDS(a_summary_of_another_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
