#include "model/importance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* So many products of a weight and a value are formed in a pass, and so many weights have room. */
#define PRODUCTS_MOST (UINT64_C(1) << 24)
#define WEIGHTS_MOST (UINT64_C(1) << 22)

/* How the values of a feature of the set, and later those of a column of the data, are spread. */
struct spread {
    double mean;   /* of the values */
    double square; /* Σ w·(x − mean)² over the rows that have it */
    double stored; /* Σ w over these rows */
};

struct survey {
    struct set *set;
    const struct set_info *info;
    uint32_t outputs, stride; /* every so many chunks one is read */
    double weight_sum;
    uint64_t rows;
    struct spread *feature; /* [features of the set]; owned, as all of these */

    /* NULL without room for the weights: */
    double *weight;   /* [features of the set × outputs] */
    uint32_t *column; /* of each feature of the set; `columns` if it is of none */
    uint32_t columns;
    double *mean; /* [columns × outputs]: of the contributions; of all columns after them */
    double *sum;  /* [columns × outputs]: of one row */
    uint32_t *touched, touched_count;
    bool *is_touched;
    double *square, *product, *stored; /* [columns]: Σ w·(u − mean)² over the rows that have it, */
    double total; /* Σ w·u·(η − mean of η), Σ w; and Σ w·(η − mean of η)² */
};

/* ---- a row ---- */

static void add_contribution(struct survey *survey, uint32_t j, double value) {
    uint32_t c = survey->column[j], outputs = survey->outputs;
    if (!survey->is_touched[c]) {
        survey->is_touched[c] = true;
        survey->touched[survey->touched_count++] = c;
    }
    for (uint32_t k = 0; k < outputs; k++)
        survey->sum[(size_t)c * outputs + k] += survey->weight[(size_t)j * outputs + k] * value;
}

/* Ends a row whose contributions are added up. η − its mean is in `eta`, and 0 at first. */
static void end_row(struct survey *survey, double weight, double *eta) {
    uint32_t outputs = survey->outputs;
    const double *eta_mean = survey->mean + (size_t)(survey->columns + 1) * outputs;
    for (uint32_t k = 0; k < outputs; k++)
        eta[k] = -eta_mean[k];
    for (uint32_t i = 0; i < survey->touched_count; i++)
        for (uint32_t k = 0; k < outputs; k++)
            eta[k] += survey->sum[(size_t)survey->touched[i] * outputs + k];
    for (uint32_t k = 0; k < outputs; k++)
        survey->total += weight * (eta[k] * eta[k]);
    for (uint32_t i = 0; i < survey->touched_count; i++) {
        uint32_t c = survey->touched[i];
        const double *mean = survey->mean + (size_t)c * outputs;
        double *sum = survey->sum + (size_t)c * outputs;
        for (uint32_t k = 0; k < outputs; k++) {
            survey->square[c] += weight * ((sum[k] - mean[k]) * (sum[k] - mean[k]));
            survey->product[c] += weight * (sum[k] * eta[k]);
            sum[k] = 0;
        }
        survey->stored[c] += weight;
        survey->is_touched[c] = false;
    }
    survey->touched_count = 0;
}

enum survey_pass { PASS_MEANS, PASS_DEVIATIONS };

static void add_value(struct survey *survey, enum survey_pass pass, uint32_t j, double value,
                      double weight) {
    struct spread *spread = &survey->feature[j];
    if (pass == PASS_MEANS) {
        spread->mean += weight * value;
        return;
    }
    spread->square += weight * ((value - spread->mean) * (value - spread->mean));
    spread->stored += weight;
    if (survey->weight)
        add_contribution(survey, j, value);
}

static void read_row(struct survey *survey, enum survey_pass pass, const struct rows *rows,
                     uint32_t i, double *eta) {
    size_t begin = rows->dense ? (size_t)i * rows->features : rows->start[i];
    size_t end = rows->dense ? begin + rows->features : rows->start[i + 1];
    double weight = rows->weight ? rows->weight[i] : 1;
    if (weight == 0)
        return;
    for (size_t at = begin; at < end; at++)
        add_value(survey, pass, rows->dense ? (uint32_t)(at - begin) : rows->feature[at],
                  value_at(rows->type, rows->value, at), weight);
    if (pass == PASS_MEANS) {
        survey->weight_sum += weight;
        survey->rows++;
    } else if (survey->weight) {
        end_row(survey, weight, eta);
    }
}

static int read_all(struct survey *survey, enum survey_pass pass) {
    uint32_t chunks = set_training_chunks(survey->info);
    double *eta = memory_new(survey->outputs, sizeof *eta);
    int code = 0;
    for (uint32_t chunk = 0; chunk < chunks && !code; chunk += survey->stride) {
        struct rows rows;
        code = set_chunk(survey->set, chunk, &rows);
        for (uint32_t i = 0; !code && i < rows.count; i++)
            read_row(survey, pass, &rows, i, eta);
    }
    free(eta);
    return code;
}

/* ---- which features are of which column ---- */

/* For each feature of the set, its place among those of the model; UINT64_MAX if the model lacks
 * it. Both lists are gone through by rising id. Free it. */
static uint64_t *find_places(const struct set_info *info, const struct model_layout *layout) {
    uint64_t *place = memory_new(info->features, sizeof *place), at = 0;
    for (uint64_t i = 0; i < info->features; i++) {
        uint64_t j = column_order_at(&info->original_order, i);
        while (at < layout->features && layout->feature_id[at] < info->feature_id[j])
            at++;
        bool both = at < layout->features && layout->feature_id[at] == info->feature_id[j];
        place[j] = both ? at : UINT64_MAX;
    }
    return place;
}

/* Columns of a table have their numbers, and its crosses those after them. */
static void find_columns(struct survey *survey) {
    const struct set_info *info = survey->info;
    const struct table *table = info->table;
    survey->columns = table ? table->columns + table->crosses : (uint32_t)info->features;
    for (uint64_t j = 0; j < info->features; j++) {
        const char *name = info->feature_names ? info->feature_names[j] : "";
        uint32_t c = table ? table_column_of(table, info->feature_id[j], name) : (uint32_t)j;
        if (c == COLUMN_NOWHERE)
            c = table->columns + table_cross_of(table, name);
        survey->column[j] = c < survey->columns ? c : survey->columns;
    }
}

static void take_weights(struct survey *survey, const struct model *model, const uint64_t *place) {
    uint32_t outputs = survey->outputs;
    bool centred = objective_from_name(model->layout.objective) == OBJECTIVE_SOFTMAX;
    for (uint64_t j = 0; j < survey->info->features; j++) {
        double *weight = survey->weight + (size_t)j * outputs, mean = 0;
        for (uint32_t k = 0; k < outputs && place[j] != UINT64_MAX; k++) {
            weight[k] = model->weight[k * model->layout.features + place[j]];
            mean += weight[k] / outputs;
        }
        for (uint32_t k = 0; k < outputs && centred; k++)
            weight[k] -= mean;
    }
}

static void begin_columns(struct survey *survey, const struct model *model, const uint64_t *place) {
    assert(!survey->weight && survey->outputs > 0);
    uint64_t features = survey->info->features;
    uint32_t outputs = survey->outputs;
    if (!features || features > WEIGHTS_MOST / outputs)
        return;
    survey->weight = memory_new(features * outputs, sizeof *survey->weight);
    survey->column = memory_new(features, sizeof *survey->column);
    take_weights(survey, model, place);
    find_columns(survey);
    size_t columns = survey->columns + 1; /* features of none are after the others */
    survey->mean = memory_new((columns + 1) * outputs, sizeof *survey->mean);
    survey->sum = memory_new(columns * outputs, sizeof *survey->sum);
    survey->touched = memory_new(columns, sizeof *survey->touched);
    survey->is_touched = memory_new(columns, sizeof *survey->is_touched);
    survey->square = memory_new(columns, sizeof *survey->square);
    survey->product = memory_new(columns, sizeof *survey->product);
    survey->stored = memory_new(columns, sizeof *survey->stored);
}

static void survey_release(struct survey *survey) {
    free(survey->feature);
    free(survey->weight);
    free(survey->column);
    free(survey->mean);
    free(survey->sum);
    free(survey->touched);
    free(survey->is_touched);
    free(survey->square);
    free(survey->product);
    free(survey->stored);
}

/* ---- what it comes to ---- */

static void finish_means(struct survey *survey) {
    uint32_t outputs = survey->outputs;
    for (uint64_t j = 0; j < survey->info->features; j++) {
        survey->feature[j].mean /= survey->weight_sum;
        for (uint32_t k = 0; survey->weight && k < outputs; k++) {
            double mean = survey->weight[(size_t)j * outputs + k] * survey->feature[j].mean;
            survey->mean[(size_t)survey->column[j] * outputs + k] += mean;
            survey->mean[(size_t)(survey->columns + 1) * outputs + k] += mean;
        }
    }
}

/* The rows that do not have it have a 0 there. */
static double variance_of(double square, double stored, double mean_square, double weight_sum) {
    double zeros = weight_sum - stored;
    double all = square + (zeros > 0 ? zeros : 0) * mean_square;
    return all > 0 ? all / weight_sum : 0;
}

static char *name_of_column(const struct set_info *info, uint32_t c) {
    assert(c < (info->table ? info->table->columns + info->table->crosses : info->features));
    char label[COLUMN_LABEL_TEXT];
    const char *name = info->feature_names && !info->table ? info->feature_names[c] : NULL;
    if (info->table && c >= info->table->columns)
        return table_cross_name(info->table, &info->table->cross[c - info->table->columns]);
    if (info->table)
        return memory_copy_string(table_label(info->table, c, label));
    if (name && *name)
        return memory_copy_string(name);
    return memory_format("%llu", (unsigned long long)info->feature_id[c]);
}

static int compare_columns(const void *a, const void *b) {
    const struct importance_column *x = a, *y = b;
    if (x->deviation != y->deviation)
        return x->deviation < y->deviation ? 1 : -1;
    return strcmp(x->name, y->name);
}

static struct importance_column finish_column(const struct survey *survey, uint32_t c) {
    const double *mean = survey->mean + (size_t)c * survey->outputs;
    double mean_square = 0, total = survey->total;
    for (uint32_t k = 0; k < survey->outputs; k++)
        mean_square += mean[k] * mean[k];
    return (struct importance_column){.name = name_of_column(survey->info, c),
                                      .deviation =
                                          sqrt(variance_of(survey->square[c], survey->stored[c],
                                                           mean_square, survey->weight_sum)),
                                      .share = total > 0 ? survey->product[c] / total : 0};
}

static void finish_columns(const struct survey *survey, struct importance *importance) {
    uint64_t *features = memory_new(survey->columns + 1, sizeof *features);
    for (uint64_t j = 0; j < survey->info->features; j++)
        features[survey->column[j]]++;
    importance->column = memory_new(survey->columns, sizeof *importance->column);
    for (uint32_t c = 0; c < survey->columns; c++) {
        if (!features[c])
            continue;
        importance->column[importance->count] = finish_column(survey, c);
        importance->column[importance->count++].features = features[c];
    }
    qsort(importance->column, importance->count, sizeof *importance->column, compare_columns);
    free(features);
}

static void finish_deviations(const struct survey *survey, const struct model *model,
                              const uint64_t *place, struct importance *importance) {
    importance->deviation = memory_new(model->layout.features, sizeof *importance->deviation);
    for (uint64_t j = 0; j < model->layout.features; j++)
        importance->deviation[j] = NAN;
    for (uint64_t j = 0; j < survey->info->features; j++) {
        const struct spread *spread = &survey->feature[j];
        if (place[j] != UINT64_MAX)
            importance->deviation[place[j]] = sqrt(variance_of(
                spread->square, spread->stored, spread->mean * spread->mean, survey->weight_sum));
    }
}

int importance_find(struct set *set, const struct model *model, struct importance *importance) {
    const struct set_info *info = set_info(set);
    *importance = (struct importance){0};
    if (!model->weight || info->strip_columns)
        return 0;
    struct survey survey = {.set = set, .info = info, .outputs = model_rows(&model->layout)};
    assert(survey.outputs > 0);
    survey.stride = 1 + (uint32_t)(info->values / (PRODUCTS_MOST / survey.outputs + 1));
    survey.feature = memory_new(info->features, sizeof *survey.feature);
    uint64_t *place = find_places(info, &model->layout);
    begin_columns(&survey, model, place);
    int code = read_all(&survey, PASS_MEANS);
    if (!code) {
        finish_means(&survey);
        code = read_all(&survey, PASS_DEVIATIONS);
    }
    if (!code) {
        importance->rows = survey.rows;
        importance->training_rows = info->rows;
        finish_deviations(&survey, model, place, importance);
        if (survey.weight)
            finish_columns(&survey, importance);
    }
    free(place);
    survey_release(&survey);
    return code;
}

void importance_release(struct importance *importance) {
    for (uint32_t c = 0; c < importance->count; c++)
        free(importance->column[c].name);
    free(importance->column);
    free(importance->deviation);
    *importance = (struct importance){0};
}

/* ---- for people and programs ---- */

json_t *importance_json(const struct importance *importance, size_t most) {
    assert(importance->rows <= importance->training_rows);
    json_t *columns = json_array();
    size_t shown = importance->count < most ? importance->count : most;
    for (size_t c = 0; c < shown; c++) {
        const struct importance_column *column = &importance->column[c];
        json_array_append_new(columns, json_pack("{s:o, s:f, s:f, s:I}", "column",
                                                 text_to_json(column->name), "deviation",
                                                 column->deviation, "share", column->share,
                                                 "features", (json_int_t)column->features));
    }
    return json_pack("{s:I, s:I, s:o, s:I}", "rows", (json_int_t)importance->rows, "training_rows",
                     (json_int_t)importance->training_rows, "columns", columns, "more",
                     (json_int_t)(importance->count - shown));
}

void importance_print(const struct importance *importance, FILE *out) {
    fprintf(out, "%12s %7s %9s  column\n", "deviation", "share", "features");
    for (uint32_t c = 0; c < importance->count; c++) {
        const struct importance_column *column = &importance->column[c];
        fprintf(out, "%12.4g %6.1f%% %9llu  ", column->deviation,
                fabs(column->share) < 5e-4 ? 0 : 100 * column->share,
                (unsigned long long)column->features);
        escape_put(column->name, out);
        putc('\n', out);
    }
    if (importance->rows < importance->training_rows)
        fprintf(out, "over %llu of %llu training rows\n", (unsigned long long)importance->rows,
                (unsigned long long)importance->training_rows);
}
