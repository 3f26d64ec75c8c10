/* A model as the starting point of a run: what is matched, what is kept, what is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/memory.h"
#include "coordinator/run/curvature.h"
#include "coordinator/run/start.h"
#include "tests/unit/folder_fixture.h"

/* The model of an earlier run: features 2, 5, 9 in the order 9, 2, 5; classes a, b, c. Weight of
 * feature i and class k: i + k/4; intercepts -1 - k. */
#define BIAS_SCALE 0.25

static const struct model_layout before = {
    .objective = "softmax",
    .outputs = 3,
    .intercept = true,
    .features = 3,
    .feature_id = (const uint64_t[]){9, 2, 5},
    .original_order.narrow = (const uint32_t[]){1, 2, 0},
    .feature_names = (const char *const[]){"nine", "two", "five"},
    .classes = 3,
    .class_names = (const char *const[]){"a", "b", "c"},
};

/* What comes after it: 5 is gone, 1 and 7 are new; class b is gone, d is new. */
static const struct model_layout after = {
    .objective = "softmax",
    .outputs = 3,
    .intercept = true,
    .features = 4,
    .feature_id = (const uint64_t[]){2, 9, 7, 1},
    .original_order.narrow = (const uint32_t[]){3, 0, 2, 1},
    .feature_names = (const char *const[]){"two", "nine", "seven", "one"},
    .classes = 3,
    .class_names = (const char *const[]){"c", "d", "a"},
};

static const double expected[] = {2.5, 0, 2, 9.5, 0, 9, 0, 0, 0, 0, 0, 0, -3, 0, -1};
#define PARAMETERS (sizeof expected / sizeof *expected)

static struct model *written(const struct model_layout *layout, const char *name,
                             const double *parameters) {
    struct model_writer *writer;
    struct model *model;
    uint64_t count = model_parameters(layout);
    assert_int_equal(model_writer_new(inside(name), layout, &writer), 0);
    assert_int_equal(model_writer_slice(writer, 0, count, parameters), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    assert_int_equal(model_open(inside(name), &model), 0);
    return model;
}

static struct model *earlier(void) {
    double parameters[12];
    for (uint32_t j = 0; j < 3; j++)
        for (uint32_t k = 0; k < 3; k++)
            parameters[3 * j + k] = (double)before.feature_id[j] + k / 4.0;
    for (uint32_t k = 0; k < 3; k++)
        parameters[9 + k] = -1.0 - k;
    return written(&before, "earlier", parameters);
}

/* ---- matching ---- */

static void features_are_matched_by_id_and_classes_by_name(void **state) {
    (void)state;
    struct model *model = earlier();
    double start[PARAMETERS];
    memset(start, 0xff, sizeof start);
    assert_int_equal(model_fits(model, &after), 0);
    model_spread(model, &after, start);
    for (size_t i = 0; i < PARAMETERS; i++)
        assert_true(start[i] == expected[i]);
    model_close(model);
}

static void assert_does_not_fit(const struct model *model, struct model_layout layout,
                                const char *why) {
    assert_int_equal(model_fits(model, &layout), ERROR_DATA);
    assert_non_null(strstr(error_text(), why));
    error_clear();
}

static void what_means_something_else_does_not_fit(void **state) {
    (void)state;
    struct model *model = earlier();
    struct model_layout layout = after;
    layout.objective = "logistic";
    assert_does_not_fit(model, layout, "its objective is softmax, not logistic");
    layout = after;
    layout.intercept = false;
    assert_does_not_fit(model, layout, "it has an intercept, and the job none");
    layout = after;
    layout.feature_names = (const char *const[]){"two", "ten", "seven", "one"};
    assert_does_not_fit(model, layout, "column 9 was `nine` and is `ten`");
    model_close(model);
}

static void of_two_classes_both_must_be_the_same_in_any_spelling(void **state) {
    (void)state;
    struct model_layout layout = {.objective = "logistic",
                                  .outputs = 1,
                                  .features = 1,
                                  .feature_id = (const uint64_t[]){1},
                                  .classes = 2,
                                  .class_names = (const char *const[]){"-1", "+1"}};
    struct model *model = written(&layout, "two", (const double[]){3});
    layout.class_names = (const char *const[]){"-1.0", "1"};
    assert_int_equal(model_fits(model, &layout), 0);
    layout.class_names = (const char *const[]){"1", "-1"};
    assert_does_not_fit(model, layout, "its classes are `-1` and `+1`, the data's `1` and `-1`");
    layout.class_names = (const char *const[]){"no", "yes"};
    assert_does_not_fit(model, layout, "the data's `no` and `yes`");
    model_close(model);
}

static void of_ordered_classes_all_must_be_the_same_in_the_same_order(void **state) {
    (void)state;
    struct model_layout layout = {.objective = "ordinal",
                                  .outputs = 2,
                                  .shared = true,
                                  .intercept = true,
                                  .features = 2,
                                  .feature_id = (const uint64_t[]){1, 4},
                                  .classes = 3,
                                  .class_names = (const char *const[]){"low", "mid", "high"}};
    struct model *model = written(&layout, "ordered", (const double[]){3, 5, -1, -2});
    assert_int_equal(model_fits(model, &layout), 0);
    layout.features = 3;
    layout.feature_id = (const uint64_t[]){4, 7, 1};
    layout.original_order.narrow = (const uint32_t[]){2, 0, 1};
    double parameters[5];
    static const double spread[] = {5, 0, 3, -1, -2};
    model_spread(model, &layout, parameters);
    assert_memory_equal(parameters, spread, sizeof spread);
    layout.class_names = (const char *const[]){"high", "mid", "low"};
    assert_does_not_fit(model, layout,
                        "its classes are not those of the data, or in another order");
    layout.class_names = (const char *const[]){"low", "mid", "high", "huge"};
    layout.classes = 4;
    layout.outputs = 3;
    assert_does_not_fit(model, layout, "its classes are not those of the data");
    model_close(model);
}

/* ---- what is kept ---- */

static void a_start_is_read_as_it_was_written(void **state) {
    (void)state;
    struct model *model = earlier();
    struct start start;
    for (int keeps = 0; keeps < 2; keeps++) {
        assert_int_equal(start_write(inside("deep/run"), "run", model, &after,
                                     &(struct start_options){.keeps = keeps, .pairs_most = 9}),
                         0);
        assert_int_equal(start_open(inside("deep/run"), "run", model->sha256, &after, 0, &start),
                         0);
        assert_memory_equal(start.parameters, expected, sizeof expected);
        assert_int_equal(start.kept.features, keeps);
        start_close(&start);
    }
    model_close(model);
}

static void a_vanished_feature_is_kept_in_the_place_of_its_id(void **state) {
    (void)state;
    struct model *model = earlier(), *later;
    struct start start;
    struct model_layout layout = after;
    assert_int_equal(start_write(folder, "run", model, &after,
                                 &(struct start_options){.keeps = true, .pairs_most = 9}),
                     0);
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 0, &start), 0);
    layout.kept = &start.kept;
    later = written(&layout, "later", start.parameters);
    static const uint64_t ids[] = {1, 2, 5, 7, 9};
    static const double weight[] = {0, 2.5, 5.5, 0, 9.5, /* c */
                                    0, 0,   0,   0, 0,   /* d */
                                    0, 2,   5,   0, 9};  /* a */
    assert_int_equal(later->layout.features, 5);
    assert_memory_equal(later->layout.feature_id, ids, sizeof ids);
    assert_memory_equal(later->weight, weight, sizeof weight);
    assert_string_equal(later->layout.feature_names[2], "five");
    assert_string_equal(later->layout.feature_names[4], "nine");
    model_close(later);
    start_close(&start);
    model_close(model);
}

static void a_model_of_which_nothing_is_left_can_be_kept_whole(void **state) {
    (void)state;
    struct model *model = earlier(), *later;
    struct start start;
    struct model_layout layout = after;
    double zeros[3] = {0};
    layout.features = 0;
    assert_int_equal(start_write(folder, "run", model, &layout,
                                 &(struct start_options){.keeps = true, .pairs_most = 9}),
                     0);
    assert_int_equal(start_open(folder, "run", model->sha256, &layout, 0, &start), 0);
    layout.kept = &start.kept;
    later = written(&layout, "later", zeros);
    assert_int_equal(later->layout.features, 3);
    model_close(later);
    start_close(&start);
    model_close(model);
}

/* ---- curvature ---- */

/* A model of this layout with one pair: s is 1, 2, … in its numbering, y twice that. It comes with
 * a scale of the biases, which begin at `biases`. */
static struct model *with_pair(const struct model_layout *layout, uint64_t biases) {
    double parameters[20] = {0}, s[20], y[20];
    uint64_t count = model_parameters(layout);
    struct model_writer *writer;
    struct curvature_writer *curvature;
    struct model *model;
    char sha256[SHA256_TEXT];
    for (uint64_t i = 0; i < count; i++) {
        s[i] = (double)i + 1;
        y[i] = (i < biases ? 1 : BIAS_SCALE) * 2 * s[i];
    }
    assert_int_equal(model_writer_new(inside("earlier"), layout, &writer), 0);
    assert_int_equal(
        curvature_writer_new(model_writer_folder(writer), layout, 1, BIAS_SCALE, 0, &curvature), 0);
    assert_int_equal(model_writer_slice(writer, 0, count, parameters), 0);
    curvature_writer_slice(curvature, 1, 0, count, s);
    curvature_writer_slice(curvature, 2, 0, 5, y);
    curvature_writer_slice(curvature, 2, 5, count - 5, y + 5);
    assert_int_equal(model_writer_hash(writer, sha256), 0);
    assert_int_equal(curvature_writer_publish(curvature, sha256), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    assert_int_equal(model_open(inside("earlier"), &model), 0);
    return model;
}

static struct model *with_curvature(void) {
    return with_pair(&before, 9);
}

static void curvature_is_spread_like_the_parameters(void **state) {
    (void)state;
    static const double s[] = {6, 0, 4, 3, 0, 1, 0, 0, 0, 0, 0, 0, 12, 0, 10};
    struct model *model = with_curvature();
    struct start start;
    assert_int_equal(start_write(folder, "run", model, &after,
                                 &(struct start_options){.keeps = false, .pairs_most = 9}),
                     0);
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 0, &start), 0);
    assert_int_equal(start.pairs, 1);
    for (size_t i = 0; i < PARAMETERS; i++) {
        assert_true(start.vectors[i] == s[i]);
        assert_true(start.vectors[PARAMETERS + i] == 2 * s[i]);
    }
    start_close(&start);
    assert_int_equal(start_write(folder, "run", model, &after,
                                 &(struct start_options){.keeps = false, .pairs_most = 0}),
                     0);
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 0, &start), 0);
    assert_int_equal(start.pairs, 0);
    start_close(&start);
    model_close(model);
}

static void curvature_of_a_network_is_spread_like_its_parameters(void **state) {
    (void)state;
    static const double s[] = {3,  4,  1, 2,  0, 0,  0, 0, /* W1: what leads from 2, 9, 7, 1 */
                               9,  0,  7, 12, 0, 10,       /* W2: to c, d, a */
                               13, 14,                     /* b1 */
                               17, 0,  15 /* b2 */};
    struct model_layout earlier_layout = before, layout = after;
    earlier_layout.network = layout.network = (struct network){.layers = 1, .units = {2}};
    struct model *model = with_pair(&earlier_layout, 12);
    struct start start;
    const struct start_options options = {.pairs_most = 9};
    const size_t count = sizeof s / sizeof *s;
    assert_int_equal(start_write(folder, "run", model, &layout, &options), 0);
    assert_int_equal(start_open(folder, "run", model->sha256, &layout, 0, &start), 0);
    assert_int_equal(start.pairs, 1);
    for (size_t i = 0; i < count; i++) {
        assert_true(start.vectors[i] == s[i]);
        assert_true(start.vectors[count + i] == 2 * s[i]);
    }
    start_close(&start);
    model_close(model);
}

static void curvature_of_another_scaling_is_not_used(void **state) {
    (void)state;
    struct model *model = with_curvature();
    struct start start;
    const struct start_options other = {.pairs_most = 9, .form = 2};
    assert_int_equal(start_write(folder, "run", model, &after, &other), 0);
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 0, &start), ERROR_DATA);
    error_clear();
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 2, &start), 0);
    assert_int_equal(start.pairs, 0);
    start_close(&start);
    model_close(model);
}

static void a_start_is_scaled_as_the_run_is(void **state) {
    (void)state;
    static const struct column_scaling columns[] = {
        {1, 2, 1, 0, 0}, {0, 4, 1, 0, 0}, {-1, 0.5, 1, 0, 0}, {0, 1, 1, 0, 0}};
    struct scaling_walk walk = {0};
    const struct layout layout = layout_linear(after.features, after.outputs, after.intercept);
    const struct start_options options = {.form = 1, .walk = &walk};
    struct model *model = earlier();
    struct start start;
    scaling_walk_begin(&walk, &layout, columns);
    assert_int_equal(start_write(folder, "run", model, &after, &options), 0);
    scaling_walk_end(&walk);
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 1, &start), 0);
    for (unsigned k = 0; k < after.outputs; k++) {
        double shift = 0;
        for (unsigned j = 0; j < after.features; j++) {
            unsigned i = j * after.outputs + k;
            shift += columns[j].mean * expected[i];
            assert_true(start.parameters[i] == expected[i] / columns[j].scale);
        }
        unsigned bias = (unsigned)(after.features * after.outputs) + k;
        assert_true(start.parameters[bias] == expected[bias] + shift); /* of few binary digits */
    }
    start_close(&start);
    model_close(model);
}

static void flip(const char *path, off_t offset);

static void curvature_that_is_damaged_or_of_another_model_is_not_used(void **state) {
    (void)state;
    struct model *model = with_curvature();
    struct curvature curvature;
    assert_int_equal(curvature_open(model, &curvature), 0);
    struct container_header header = *curvature.file.header;
    curvature_close(&curvature);
    char *path = path_join(model->folder, MODEL_CURVATURE);
    struct start start;
    for (unsigned number = 0; number < CONTAINER_SECTIONS; number++) {
        if (!header.section[number].length)
            continue;
        flip(path, (off_t)header.section[number].offset);
        assert_int_equal(start_write(folder, "run", model, &after,
                                     &(struct start_options){.keeps = false, .pairs_most = 9}),
                         0);
        assert_int_equal(start_open(folder, "run", model->sha256, &after, 0, &start), 0);
        assert_int_equal(start.pairs, 0);
        start_close(&start);
        flip(path, (off_t)header.section[number].offset);
    }
    model->sha256[0] ^= 1;
    assert_int_equal(curvature_open(model, &curvature), ERROR_DATA);
    assert_non_null(strstr(error_text(), "that of another model"));
    error_clear();
    free(path);
    model_close(model);
}

/* What no writer of ours writes, in a file whose checksums are right: more pairs than their number
 * has room for, and columns that there are not. */
static void curvature_that_cannot_be_is_not_used(void **state) {
    (void)state;
    static const struct container_kind kind = {"DMLCURV\n", 1, "curvature"};
    const uint32_t pairs = 1u << 31, columns[] = {1, 2, 3};
    struct model *model = with_curvature();
    for (int wrong = 0; wrong < 2; wrong++) {
        struct curvature curvature;
        struct container_writer writer;
        uint8_t facts[104];
        assert_int_equal(curvature_open(model, &curvature), 0);
        assert_int_equal(container_create(&writer, &kind, curvature.file.path), 0);
        for (unsigned number = 0; number < 5; number++) {
            size_t length;
            const void *data = container_get(&curvature.file, number, &length);
            if (number == 0) {
                assert_int_equal(length, sizeof facts);
                memcpy(facts, data, length);
                memcpy(facts + 20, wrong ? facts + 20 : (const void *)&pairs, sizeof pairs);
                data = facts;
            }
            data = number == 2 && wrong ? columns : data;
            length = number == 4 && !wrong ? 0 : length; /* 2 * pairs, in 32 bits */
            assert_int_equal(container_section(&writer, number, data, length), 0);
        }
        char *path = memory_copy_string(curvature.file.path);
        assert_int_equal(container_publish(&writer, path), 0);
        curvature_close(&curvature);
        assert_int_equal(curvature_open(model, &curvature), ERROR_DATA);
        error_clear();
        free(path);
        model_close(model);
        model = with_curvature();
    }
    model_close(model);
}

/* ---- damage ---- */

static void assert_refused(const struct model *model, const char *why) {
    struct start start;
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 0, &start), ERROR_DATA);
    assert_non_null(strstr(error_text(), why));
    assert_non_null(strstr(error_text(), "--fresh"));
    assert_null(start.parameters);
    error_clear();
}

static void a_start_that_is_missing_or_of_another_run_is_refused(void **state) {
    (void)state;
    struct model *model = earlier();
    struct start start;
    assert_refused(model, "start");
    assert_int_equal(start_write(folder, "another", model, &after,
                                 &(struct start_options){.keeps = true, .pairs_most = 9}),
                     0);
    assert_refused(model, "that of another run");
    assert_int_equal(start_write(folder, "run", model, &before,
                                 &(struct start_options){.keeps = true, .pairs_most = 9}),
                     0);
    assert_refused(model, "that of another run");
    assert_int_equal(start_write(folder, "run", model, &after,
                                 &(struct start_options){.keeps = true, .pairs_most = 9}),
                     0);
    assert_int_equal(start_open(folder, "run", "0123", &after, 0, &start), ERROR_DATA);
    error_clear();
    model_close(model);
}

static void flip(const char *path, off_t offset) {
    int descriptor = open(path, O_RDWR);
    uint8_t byte;
    assert_int_equal(pread(descriptor, &byte, 1, offset), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(descriptor, &byte, 1, offset), 1);
    close(descriptor);
}

/* Only what lies between sections is not looked at, and not used. */
static void a_start_is_refused_when_any_byte_of_it_is_wrong(void **state) {
    (void)state;
    struct model *model = earlier();
    struct start start;
    assert_int_equal(start_write(folder, "run", model, &after,
                                 &(struct start_options){.keeps = true, .pairs_most = 9}),
                     0);
    assert_int_equal(start_open(folder, "run", model->sha256, &after, 0, &start), 0);
    struct container_header header = *start.file.header;
    size_t length = start.file.length;
    start_close(&start);
    char *path = memory_copy_string(inside("start"));
    for (size_t i = 0; i < sizeof header; i += 7) {
        flip(path, (off_t)i);
        assert_refused(model, "start");
        flip(path, (off_t)i);
    }
    for (unsigned number = 0; number < CONTAINER_SECTIONS; number++)
        for (uint64_t i = 0; i < header.section[number].length; i++) {
            flip(path, (off_t)(header.section[number].offset + i));
            assert_refused(model, "start");
            flip(path, (off_t)(header.section[number].offset + i));
        }
    assert_int_equal(truncate(path, (off_t)length - 1), 0);
    assert_refused(model, "its length is wrong");
    free(path);
    model_close(model);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

SUITE(start) {
    const struct CMUnitTest tests[] = {
        TEST(features_are_matched_by_id_and_classes_by_name),
        TEST(what_means_something_else_does_not_fit),
        TEST(of_two_classes_both_must_be_the_same_in_any_spelling),
        TEST(of_ordered_classes_all_must_be_the_same_in_the_same_order),
        TEST(a_start_is_read_as_it_was_written),
        TEST(a_vanished_feature_is_kept_in_the_place_of_its_id),
        TEST(a_model_of_which_nothing_is_left_can_be_kept_whole),
        TEST(curvature_is_spread_like_the_parameters),
        TEST(curvature_of_a_network_is_spread_like_its_parameters),
        TEST(curvature_of_another_scaling_is_not_used),
        TEST(a_start_is_scaled_as_the_run_is),
        TEST(curvature_that_is_damaged_or_of_another_model_is_not_used),
        TEST(curvature_that_cannot_be_is_not_used),
        TEST(a_start_that_is_missing_or_of_another_run_is_refused),
        TEST(a_start_is_refused_when_any_byte_of_it_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
