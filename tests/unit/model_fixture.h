/* Writes a small softmax model: four features, whose ids are not in order and one of whose names is
 * not UTF-8, and three classes. */
#ifndef DML_TESTS_UNIT_MODEL_FIXTURE_H
#define DML_TESTS_UNIT_MODEL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "model/model.h"
#include "tests/unit/folder_fixture.h"

#define FEATURES 4
#define OUTPUTS 3
#define PARAMETERS ((FEATURES + 1) * OUTPUTS)

static const uint64_t ids[FEATURES] = {70, 3, FEATURE_ID_MAX, 11};
static const uint32_t order[FEATURES] = {1, 3, 0, 2};
static const char *const names[FEATURES] = {"seventy", "na\xef\xe9", "last", "eleven"};
static const char *const classes[OUTPUTS] = {"1", "2", "caf\xc3\xa9"};

static const struct model_layout softmax = {
    .objective = "softmax",
    .outputs = OUTPUTS,
    .intercept = true,
    .features = FEATURES,
    .feature_id = ids,
    .original_order.narrow = order,
    .feature_names = names,
    .classes = OUTPUTS,
    .class_names = classes,
};

/* Parameter i of the run's vector. */
static double parameter(uint64_t i) {
    return i == 4 ? -0.0 : (double)i / 7 - 1;
}

static struct model_writer *started(const char *name, const struct model_layout *layout) {
    struct model_writer *writer;
    assert_int_equal(model_writer_new(inside(name), layout, &writer), 0);
    return writer;
}

/* In three slices that cross features, last first. */
static void feed(struct model_writer *writer) {
    static const uint64_t cuts[] = {PARAMETERS, 10, 1, 0};
    for (size_t cut = 0; cut + 1 < sizeof cuts / sizeof cuts[0]; cut++) {
        double slice[PARAMETERS];
        uint64_t first = cuts[cut + 1], count = cuts[cut] - first;
        for (uint64_t i = 0; i < count; i++)
            slice[i] = parameter(first + i);
        assert_int_equal(model_writer_slice(writer, first, count, slice), 0);
    }
}

static void write_model(const char *name) {
    struct model_writer *writer = started(name, &softmax);
    feed(writer);
    json_t *details = json_pack("{s:f, s:s}", "loss", 0.25, "objective", "not this one");
    assert_int_equal(model_writer_publish(writer, details), 0);
    json_decref(details);
}

#define HOLDS(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

#endif
