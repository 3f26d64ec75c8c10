/* Models, and a table in memory in place of the files that are scored. */
#ifndef DML_TESTS_UNIT_SCORE_FIXTURE_H
#define DML_TESTS_UNIT_SCORE_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "model/score.h"

/* ---- a source in memory ---- */

#define ROWS_MAX 400
#define VALUES_MAX 4000

/* What source_read() hands out here, whatever the path. */
extern struct scored {
    enum source_format format;
    uint32_t count;
    uint64_t start[ROWS_MAX + 1], id[VALUES_MAX];
    double value[VALUES_MAX], label[ROWS_MAX];
    uint64_t line[ROWS_MAX];
    const char *text[ROWS_MAX];
} table;

__attribute__((unused)) static void clear(void) {
    memset(&table, 0, sizeof table);
    error_clear();
}

__attribute__((unused)) static void add_row(double label, const char *text) {
    table.label[table.count] = label;
    table.text[table.count] = text;
    table.line[table.count] = table.count + UINT64_C(1);
    table.count++;
    table.start[table.count] = table.start[table.count - 1];
}

/* Adds a value to the last row. */
__attribute__((unused)) static void add_value(uint64_t id, double value) {
    uint64_t at = table.start[table.count]++;
    table.id[at] = id;
    table.value[at] = value;
}

/* ---- models ---- */

static const uint64_t ids[] = {2, 5, 9};
static const double weights[] = {1, -2, 0.5, /* output 0 */ 3, 0, -1, /* 1 */ 0, 0, 0 /* 2 */};
static const double biases[] = {0.25, -1, 2};
static const char *const binary_names[] = {"-1", "+1"};
__attribute__((unused)) static const char *const class_names[] = {"1", "2.0", "say \"three\""};

__attribute__((unused)) static const struct model binary = {
    .layout = {.objective = "logistic",
               .outputs = 1,
               .intercept = true,
               .features = 3,
               .feature_id = ids,
               .classes = 2,
               .class_names = binary_names},
    .weight = weights,
    .bias = biases,
};
__attribute__((unused)) static const struct model softmax = {
    .layout = {.objective = "softmax",
               .outputs = 3,
               .intercept = true,
               .features = 3,
               .feature_id = ids,
               .classes = 3,
               .class_names = class_names},
    .weight = weights,
    .bias = biases,
};
/* Of ordered classes; its thresholds do not rise. */
__attribute__((unused)) static const struct model ordinal = {
    .layout = {.objective = "ordinal",
               .outputs = 2,
               .shared = true,
               .intercept = true,
               .features = 3,
               .feature_id = ids,
               .classes = 3,
               .class_names = class_names},
    .weight = weights,
    .bias = biases + 1,
};
/* Of any number of classes a row. */
__attribute__((unused)) static const struct model multilabel = {
    .layout = {.objective = "multilabel",
               .outputs = 3,
               .intercept = true,
               .features = 3,
               .feature_id = ids,
               .classes = 3,
               .class_names = class_names,
               .separator = ';'},
    .weight = weights,
    .bias = biases,
};
__attribute__((unused)) static const struct model squared = {
    .layout = {.objective = "squared", .outputs = 1, .features = 3, .feature_id = ids},
    .weight = weights,
};

/* The predictions as text; free it. */
__attribute__((unused)) static char *predictions_of(const struct model *model,
                                                    struct score_output output) {
    struct source_options options = {0};
    char *paths[] = {(char *)"data", NULL}, *text;
    size_t length;
    output.file = open_memstream(&text, &length);
    assert_int_equal(score_files(model, paths, NULL, &options, 1, &output, NULL), 0);
    fclose(output.file);
    return text;
}

__attribute__((unused)) static struct score_figures figures_of(const struct model *model) {
    struct source_options options = {0};
    struct score_figures figures;
    char *paths[] = {(char *)"data", NULL};
    assert_int_equal(score_files(model, paths, NULL, &options, 1, NULL, &figures), 0);
    score_figures_release(&figures); /* lists of classes; figures stay */
    return figures;
}

__attribute__((unused)) static void assert_close(const char *name, double figure, double expected) {
    if (!(fabs(figure - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%s is %.17g, not %.17g", name, figure, expected);
}

#endif
