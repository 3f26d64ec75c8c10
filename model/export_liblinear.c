/* LIBLINEAR's model file. It is dense: a line for each index from 1 to the largest; the weight of
 * the constant 1 (`bias 1`) comes last.
 *
 * With two labels each line has one weight. A margin above 0 means the first label, and the
 * logistic function of the margin is the probability of the first label; so we write the positive
 * class first. With more labels each line has a weight for each label, and the label with the
 * largest margin wins: solver type MCSVM_CS predicts by this rule alone. With two labels MCSVM_CS
 * follows another rule; so we write a softmax over two classes as what it is, the logistic function
 * of the difference of the two margins. */
#include "model/export.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "objective/objective.h"
#include "data/number.h"

#define NUMBER_BYTES_MAX 25 /* what "%.17g " may write */

/* Weights a line. */
static uint32_t columns_of(const struct model_layout *layout) {
    return layout->outputs > 2 ? layout->outputs : 1;
}

static uint64_t lines_of(const struct model_layout *layout) {
    return layout->features ? layout->feature_id[layout->features - 1] : 0;
}

static int check_indices(const struct model_layout *layout) {
    uint64_t lines = lines_of(layout), columns = columns_of(layout);
    if (layout->features && layout->feature_id[0] == 0)
        return error_set(ERROR_DATA, "the model has a feature 0, but LIBLINEAR's features count "
                                     "from 1; --format tsv and json have it");
    if (lines >= FEATURE_HASHED)
        return error_set(ERROR_DATA,
                         "the ids of a table's texts, missing cells and bins are hashes, and "
                         "LIBLINEAR's file has a line for every number up to the largest id; "
                         "--format tsv and json name these features as the table does");
    double bytes = (double)lines * (2 * (double)columns + 1) +
                   (double)layout->features * (double)columns * (NUMBER_BYTES_MAX - 2);
    if (lines >= INT_MAX || bytes > (double)EXPORT_LIBLINEAR_BYTES_MAX)
        return error_set(ERROR_DATA,
                         "LIBLINEAR's file has a line for every feature up to the largest, here "
                         "%llu: it would have about %.1f GiB, and at most %.0f are written; "
                         "--format tsv and json have only the %llu features of the model",
                         (unsigned long long)lines, bytes / 0x1p30,
                         (double)EXPORT_LIBLINEAR_BYTES_MAX / 0x1p30,
                         (unsigned long long)layout->features);
    return 0;
}

static bool is_integer(const char *text, int *value) {
    double number;
    if (!number_of_text(text, &number) || fabs(number) > INT_MAX || number != floor(number))
        return false;
    *value = (int)number;
    return true;
}

static bool labels_are_integers(const struct model_layout *layout) {
    int value;
    for (uint32_t k = 0; k < layout->classes; k++)
        if (!is_integer(layout->class_names[k], &value))
            return false;
    return true;
}

/* The integer that stands for a class: the label itself if all labels are integers, else the number
 * of the class, from 0. */
static int label_of(const struct model_layout *layout, bool integers, uint32_t class) {
    int value = (int)class;
    if (integers)
        is_integer(layout->class_names[class], &value);
    return value;
}

/* The solver that predicts as the objective does; NULL if LIBLINEAR has none. */
static const char *solver_of(const struct model_layout *layout) {
    const struct objective *objective = objective_find(layout->objective);
    return columns_of(layout) > 1 ? objective->liblinear_classes : objective->liblinear;
}

int export_liblinear_check(const struct model *model) {
    const struct model_layout *layout = &model->layout;
    if (!solver_of(layout))
        return error_set(ERROR_DATA,
                         "LIBLINEAR has no model that predicts as one for the objective %s does; "
                         "--format tsv and json have it",
                         layout->objective);
    int code = check_indices(layout);
    if (code)
        return code;
    if (!labels_are_integers(layout))
        for (uint32_t k = 0; k < layout->classes; k++)
            log_warning("LIBLINEAR's labels are integers: %u stands for \"%s\"", k,
                        layout->class_names[k]);
    if (columns_of(layout) > 1)
        log_info("with more than two classes LIBLINEAR's file predicts the class, but gives no "
                 "probabilities");
    return 0;
}

/* Writes one line: the weights of a feature, or the intercepts. `values` are K values, `stride`
 * elements apart. */
static void put_line(const struct model_layout *layout, const double *values, uint64_t stride,
                     FILE *file) {
    if (layout->outputs == 2) {
        fprintf(file, "%.17g\n", values[stride] - values[0]);
        return;
    }
    for (uint32_t k = 0; k < layout->outputs; k++)
        fprintf(file, "%s%.17g", k ? " " : "", values[k * stride]);
    putc('\n', file);
}

static void put_head(const struct model *model, FILE *file) {
    const struct model_layout *layout = &model->layout;
    fprintf(file, "solver_type %s\nnr_class %u\n", solver_of(layout),
            layout->classes ? layout->classes : 2);
    if (layout->classes) {
        bool integers = labels_are_integers(layout);
        fputs("label", file);
        for (uint32_t i = 0; i < layout->classes; i++)
            fprintf(file, " %d", label_of(layout, integers, layout->classes == 2 ? 1 - i : i));
        putc('\n', file);
    }
    fprintf(file, "nr_feature %llu\nbias %d\nw\n", (unsigned long long)lines_of(layout),
            model->bias ? 1 : -1);
}

void export_liblinear_write(const struct model *model, FILE *file) {
    const struct model_layout *layout = &model->layout;
    uint64_t next = 1;
    put_head(model, file);
    for (uint64_t j = 0; j < layout->features; j++, next++) {
        for (; next < layout->feature_id[j]; next++)
            for (uint32_t k = 0; k < columns_of(layout); k++)
                fputs(k + 1 < columns_of(layout) ? "0 " : "0\n", file);
        put_line(layout, model->weight + j, layout->features, file);
    }
    if (model->bias)
        put_line(layout, model->bias, 1, file);
}
