#include "model/export.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/text/number.h"
#include "model/family.h"
#include "model/offsets.h"
#include "model/onnx.h"
#include "model/response.h"
#include "objective/objective.h"

const char *const export_format_names[] = {"liblinear", "tsv", "json", "onnx", NULL};

/* The name of a feature, or NULL if it has none. */
static const char *name_of(const struct model_layout *layout, uint64_t feature) {
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    return *name ? name : NULL;
}

/* ---- tsv ---- */

/* Writes a text so that it stays within its field: tab, newline, carriage return and backslash
 * become escapes as in C. */
static void put_field(const char *text, FILE *file) {
    static const char special[] = "\t\n\r\\", letters[] = "tnr\\";
    for (; *text; text++) {
        const char *found = strchr(special, *text);
        if (found)
            putc('\\', file);
        putc(found ? letters[found - special] : *text, file);
    }
}

static void put_rows(const struct model *model, const char *name, const double *weights,
                     uint64_t stride, double deviation, FILE *file) {
    const struct model_layout *layout = &model->layout;
    for (uint32_t k = 0; k < model_rows(layout); k++) {
        put_field(name, file);
        if (model_rows(layout) > 1) {
            putc('\t', file);
            put_field(layout->class_names[k], file);
        }
        fprintf(file, "\t%.17g\t", weights[k * stride]);
        /* Nothing where it is not known. */
        if (isfinite(deviation))
            fprintf(file, "%.17g", deviation);
        putc('\n', file);
    }
}

static void write_tsv(const struct model *model, const double *deviation, FILE *file) {
    const struct model_layout *layout = &model->layout;
    fputs(model_rows(layout) > 1 ? "feature\tclass\tweight\tdeviation\n"
                                 : "feature\tweight\tdeviation\n",
          file);
    for (uint64_t j = 0; j < layout->features; j++) {
        char id[24];
        const char *name = name_of(layout, j);
        snprintf(id, sizeof id, "%llu", (unsigned long long)layout->feature_id[j]);
        put_rows(model, name ? name : id, model->weight + j, layout->features,
                 deviation ? deviation[j] : NAN, file);
    }
    if (layout->shared) {
        /* The intercept of a class is that of being in it or in a higher one. */
        for (uint32_t k = 0; k < layout->outputs; k++) {
            fputs("(intercept >= ", file);
            put_field(layout->class_names[k + 1], file);
            fprintf(file, ")\t%.17g\t\n", model->bias[k]);
        }
    } else if (model->bias)
        put_rows(model, "(intercept)", model->bias, 1, NAN, file);
}

/* ---- JSON: written piece by piece, since a model may have many millions of weights ---- */

static void put_json(json_t *value, FILE *file) {
    json_dumpf(value, file, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref(value);
}

static void put_weights(const double *values, uint32_t count, uint64_t stride, FILE *file) {
    for (uint32_t k = 0; k < count; k++)
        fprintf(file, "%c%.17g", k ? ',' : '[', values[k * stride]);
    putc(']', file);
}

static void put_head(const struct model *model, FILE *file) {
    const struct model_layout *layout = &model->layout;
    const json_t *details = model->details;
    json_t *classes = json_object_get(details, "classes");
    fputs("{\"format_version\":1,\"objective\":", file);
    put_json(json_string(layout->objective), file);
    if (classes) {
        fputs(",\"classes\":", file);
        put_json(json_incref(classes), file);
    }
    fputs(",\"model_sha256\":", file);
    json_t *hash = json_object_get(details, "model_sha256");
    put_json(hash ? json_incref(hash) : json_null(), file);
    if (offsets_needed(layout)) {
        fputs(",\"offsets\":", file);
        put_json(offsets_json(layout), file);
    }
    if (model->bias) {
        fputs(",\n\"intercepts\":", file);
        put_weights(model->bias, layout->outputs, 1, file);
    }
    if (layout->response) {
        /* What is made of the margins, as model.json has it. */
        json_t *members = json_object(), *value;
        const char *name;
        response_describe(layout->response, members);
        json_object_foreach(members, name, value) {
            fprintf(file, ",\n\"%s\":", name);
            put_json(json_incref(value), file);
        }
        json_decref(members);
    }
}

static void write_json(const struct model *model, const double *deviation, FILE *file) {
    const struct model_layout *layout = &model->layout;
    put_head(model, file);
    fputs(",\n\"features\":[", file);
    for (uint64_t j = 0; j < layout->features; j++) {
        const char *name = name_of(layout, j);
        fprintf(file, "%s\n{\"id\":%llu,", j ? "," : "", (unsigned long long)layout->feature_id[j]);
        if (name) {
            fputs("\"name\":", file);
            put_json(json_string(name), file);
            putc(',', file);
        }
        fputs("\"weights\":", file);
        put_weights(model->weight + j, model_rows(layout), layout->features, file);
        if (deviation && isfinite(deviation[j]))
            fprintf(file, ",\"deviation\":%.17g", deviation[j]);
        putc('}', file);
    }
    fputs("]}\n", file);
}

/* ---- LIBLINEAR's model file ----
 *
 * It is dense: a line for each index from 1 to the largest; the weight of
 * the constant 1 (`bias 1`) comes last.
 *
 * With two labels each line has one weight. A margin above 0 means the first label, and the
 * logistic function of the margin is the probability of the first label; so we write the positive
 * class first. With more labels each line has a weight for each label, and the label with the
 * largest margin wins: solver type MCSVM_CS predicts by this rule alone. With two labels MCSVM_CS
 * follows another rule; so we write a softmax over two classes as what it is, the logistic function
 * of the difference of the two margins. */

#define NUMBER_BYTES_MAX 25 /* what "%.17g " may write */

/* Weights a line. */
static uint32_t liblinear_columns(const struct model_layout *layout) {
    return layout->outputs > 2 ? layout->outputs : 1;
}

static uint64_t lines_of(const struct model_layout *layout) {
    return layout->features ? layout->feature_id[layout->features - 1] : 0;
}

static int check_indices(const struct model_layout *layout) {
    uint64_t lines = lines_of(layout), columns = liblinear_columns(layout);
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
    if (number_is_code(text, strlen(text)) || !number_of_text(text, &number) ||
        fabs(number) > INT_MAX || number != floor(number))
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

/* The solver that predicts as the objective does; NULL if LIBLINEAR has none. */
static const char *solver_of(const struct model_layout *layout) {
    const struct objective *objective = objective_find(layout->objective);
    return liblinear_columns(layout) > 1 ? objective->liblinear_classes : objective->liblinear;
}

static int check_liblinear(const struct model *model) {
    const struct model_layout *layout = &model->layout;
    if (offsets_needed(layout))
        return error_set(ERROR_DATA,
                         "the model adds the offset of a row to its margin, which LIBLINEAR's file "
                         "cannot say; --format json does");
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
    if (liblinear_columns(layout) > 1)
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

static void write_liblinear(const struct model *model, FILE *file) {
    const struct model_layout *layout = &model->layout;
    uint64_t next = 1;
    fprintf(file, "solver_type %s\nnr_class %u\n", solver_of(layout),
            layout->classes ? layout->classes : 2);
    if (layout->classes) {
        bool integers = labels_are_integers(layout);
        fputs("label", file);
        for (uint32_t i = 0; i < layout->classes; i++) {
            /* The integer that stands for a class: the label itself if all labels are integers,
             * else the number of the class, from 0. */
            const uint32_t class = layout->classes == 2 ? 1 - i : i;
            int value = (int)class;
            if (integers)
                is_integer(layout->class_names[class], &value);
            fprintf(file, " %d", value);
        }
        putc('\n', file);
    }
    fprintf(file, "nr_feature %llu\nbias %d\nw\n", (unsigned long long)lines_of(layout),
            model->bias ? 1 : -1);
    for (uint64_t j = 0; j < layout->features; j++, next++) {
        for (; next < layout->feature_id[j]; next++)
            for (uint32_t k = 0; k < liblinear_columns(layout); k++)
                fputs(k + 1 < liblinear_columns(layout) ? "0 " : "0\n", file);
        put_line(layout, model->weight + j, layout->features, file);
    }
    if (model->bias)
        put_line(layout, model->bias, 1, file);
}

int export_check(const struct model *model, enum export_format format) {
    if (format == EXPORT_ONNX)
        return onnx_check(model);
    if (model->vector)
        return error_set(ERROR_DATA,
                         "%s: a %s has no weights that say by themselves what a feature adds, "
                         "so it cannot be exported: use `dml-coordinator predict`, or read its "
                         "model.safetensors as dml-tasks(7) shows under \"In Python\"",
                         model->folder, model_family(&model->layout)->family->name);
    int code = format == EXPORT_LIBLINEAR ? check_liblinear(model) : 0;
    if (!code && format != EXPORT_JSON) {
        /* All formats say what a feature adds to the margins. In a network, or a plug-in, a feature
         * does not add the same to all rows. */
        json_t *members = json_object(), *value;
        const char *name;
        if (model->layout.response)
            response_describe(model->layout.response, members);
        if (offsets_needed(&model->layout))
            json_object_set_new(members, "offsets", offsets_json(&model->layout));
        json_object_foreach(members, name, value)
            log_warning("the file has what the margins are made of, and not the model's `%s`: "
                        "--format json has it",
                        name);
        json_decref(members);
    }
    return code;
}

int export_write(const struct model *model, enum export_format format, const double *deviation,
                 FILE *file) {
    switch (format) {
    case EXPORT_LIBLINEAR:
        write_liblinear(model, file);
        break;
    case EXPORT_TSV:
        write_tsv(model, deviation, file);
        break;
    case EXPORT_JSON:
        write_json(model, deviation, file);
        break;
    case EXPORT_ONNX:
        return onnx_export(model, file);
    }
    return 0;
}

/* ---- the heaviest weights ---- */

struct heavy_weight {
    double size, weight; /* size: |weight|, or that times the deviation of the feature */
    uint64_t feature;
};

static int compare_heavy(const void *a, const void *b) {
    const struct heavy_weight *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return (x->feature > y->feature) - (x->feature < y->feature);
}

/* Lists up to `count` weights of an output whose size is not 0, the heaviest first; free *heavy.
 * Sizes are by the deviations unless these are NULL. Each time that twice as many are listed, the
 * lighter half goes. Returns how many there are. */
static size_t find_heavy(const struct model *model, uint32_t output, size_t count,
                         const double *deviation, struct heavy_weight **heavy) {
    uint64_t features = model->layout.features;
    const double *weight = model->weight + output * features;
    size_t found = 0, most = features < count ? (size_t)features : count;
    *heavy = memory_new(2 * most + 1, sizeof **heavy);
    for (uint64_t j = 0; j < features; j++) {
        double size = fabs(weight[j]) * (deviation ? deviation[j] : 1);
        if (!(size > 0))
            continue;
        (*heavy)[found++] = (struct heavy_weight){.size = size, .weight = weight[j], j};
        if (found < 2 * most)
            continue;
        qsort(*heavy, found, sizeof **heavy, compare_heavy);
        found = most;
    }
    qsort(*heavy, found, sizeof **heavy, compare_heavy);
    return found < most ? found : most;
}

/* For ordered classes the intercept of a class is that of being in it or in a higher one. */
static void put_intercepts(const struct model *model, uint32_t output, const char *indent,
                           FILE *file) {
    const struct model_layout *layout = &model->layout;
    if (model->bias && !layout->shared)
        fprintf(file, "%14.6g  %s(intercept)\n", model->bias[output], indent);
    for (uint32_t k = 0; layout->shared && k < layout->outputs; k++) {
        fprintf(file, "%14.6g  %s(intercept >= ", model->bias[k], indent);
        escape_put(layout->class_names[k + 1], file);
        fputs(")\n", file);
    }
}

void export_write_top(const struct model *model, size_t count, const double *deviation,
                      FILE *file) {
    const struct model_layout *layout = &model->layout;
    if (deviation)
        fputs("        weight  of deviation  feature\n", file);
    for (uint32_t k = 0; k < model_rows(layout); k++) {
        struct heavy_weight *heavy;
        size_t found = find_heavy(model, k, count, NULL, &heavy);
        /* Says which class positive weights speak for. */
        if (model_rows(layout) > 1) {
            fprintf(file, "%sclass ", k ? "\n" : "");
            escape_put(layout->class_names[k], file);
            putc('\n', file);
        } else if (layout->classes > 1) {
            fputs("towards class ", file);
            escape_put(layout->class_names[layout->classes - 1], file);
            fputs("; negative ones towards ", file);
            escape_put(layout->class_names[0], file);
            putc('\n', file);
        }
        for (size_t i = 0; i < found; i++) {
            fprintf(file, "%14.6g  ", heavy[i].weight);
            if (deviation && isfinite(deviation[heavy[i].feature]))
                fprintf(file, "%12.4g  ", heavy[i].weight * deviation[heavy[i].feature]);
            else if (deviation)
                fprintf(file, "%12s  ", "");
            const char *name = name_of(layout, heavy[i].feature);
            if (name)
                escape_put(name, file);
            else
                fprintf(file, "%llu", (unsigned long long)layout->feature_id[heavy[i].feature]);
            putc('\n', file);
        }
        put_intercepts(model, k, deviation ? "              " : "", file);
        free(heavy);
    }
}

static json_t *class_json(const struct model_layout *layout, uint32_t output) {
    if (!layout->classes)
        return json_null();
    return text_to_json(layout->class_names[model_rows(layout) > 1 ? output : layout->classes - 1]);
}

/* `by_deviation`: the sizes are by that. */
static json_t *weights_json(const struct model *model, uint32_t output, size_t count,
                            const double *deviation, bool by_deviation) {
    struct heavy_weight *heavy;
    size_t found = find_heavy(model, output, count, by_deviation ? deviation : NULL, &heavy);
    json_t *weights = json_array();
    for (size_t i = 0; i < found; i++) {
        const char *name = name_of(&model->layout, heavy[i].feature);
        json_t *weight =
            json_pack("{s:o, s:f}", "feature",
                      name ? text_to_json(name)
                           : json_integer((json_int_t)model->layout.feature_id[heavy[i].feature]),
                      "weight", heavy[i].weight);
        if (deviation && isfinite(deviation[heavy[i].feature]))
            json_object_set_new(weight, "deviation", json_real(deviation[heavy[i].feature]));
        json_array_append_new(weights, weight);
    }
    free(heavy);
    return weights;
}

json_t *export_top_json(const struct model *model, size_t count, uint32_t outputs_most,
                        const double *deviation) {
    const struct model_layout *layout = &model->layout;
    if (model->vector)
        return NULL;
    json_t *outputs = json_array();
    for (uint32_t k = 0; k < model_rows(layout) && k < outputs_most; k++) {
        bool one = model->bias && !layout->shared; /* ordered classes have several intercepts */
        json_t *intercept = one ? json_real(model->bias[k]) : json_null();
        json_t *output =
            json_pack("{s:o, s:o, s:o}", "class", class_json(layout, k), "intercept", intercept,
                      "weights", weights_json(model, k, count, deviation, false));
        if (deviation)
            json_object_set_new(output, "by_deviation",
                                weights_json(model, k, count, deviation, true));
        json_array_append_new(outputs, output);
    }
    return outputs;
}
