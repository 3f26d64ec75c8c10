/* The statistics of a fit from the chunks of its training set. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/set/statistics.h"
#include "model/fit.h"
#include "model/summary.h"
#include "numeric/exact.h"

struct fit_reader {
    struct set *set;
    const struct model_layout *layout;
    const double *parameters; /* the run's vector */
    const struct objective *objective;
    struct fit *fit;
    double *margins; /* of the rows of a chunk: rows × outputs; owned */
    size_t room;
    double *has; /* of a row with a list of classes; owned */
};

/* Adds what the values of row `i` add to its margins, of columns from `first` on: `weights` a
 * feature. */
static void add_values(const struct fit_reader *reader, const struct rows *rows, uint32_t i,
                       uint64_t first, uint32_t weights, double *margins) {
    size_t begin = rows->dense ? (size_t)i * rows->features : rows->start[i];
    size_t end = rows->dense ? begin + rows->features : rows->start[i + 1];
    for (size_t at = begin; at < end; at++) {
        size_t column = first + (rows->dense ? at - begin : rows->feature[at]);
        double value = value_at(rows->type, rows->value, at);
        for (uint32_t k = 0; k < weights; k++)
            margins[k] += reader->parameters[column * weights + k] * value;
    }
}

/* The margins of a chunk's rows but for intercepts and offsets: from each of its tiles, or whole.
 */
static int read_margins(struct fit_reader *reader, uint32_t chunk, struct rows *rows) {
    const struct set_info *info = set_info(reader->set);
    uint32_t weights = model_rows(reader->layout), strips = set_strips(info);
    uint32_t outputs = reader->layout->outputs;
    for (uint32_t s = 0; s < (strips ? strips : 1); s++) {
        int code = strips ? set_tile(reader->set, s * info->chunks + chunk, rows)
                          : set_chunk(reader->set, chunk, rows);
        if (code)
            return code;
        size_t needed = (size_t)rows->count * outputs;
        if (needed > reader->room) {
            reader->margins = memory_resize(reader->margins, needed, sizeof *reader->margins);
            reader->room = needed;
        }
        for (size_t i = 0; i < needed && !s; i++)
            reader->margins[i] = 0;
        for (uint32_t i = 0; i < rows->count && fit_needs_margins(reader->fit); i++)
            add_values(reader, rows, i, (uint64_t)s * info->strip_columns, weights,
                       reader->margins + (size_t)i * outputs);
    }
    return 0;
}

/* Adds intercepts and the offset; the outputs that share their weights have one sum. */
static void end_margins(const struct fit_reader *reader, double offset, double *margins) {
    const struct model_layout *layout = reader->layout;
    const double *bias = reader->parameters + layout->features * model_rows(layout);
    for (uint32_t k = layout->outputs; k-- > 0;)
        margins[k] = margins[layout->shared ? 0 : k] + (layout->intercept ? bias[k] : 0) + offset;
}

/* 1 for each class of the list, else 0. */
static const double *read_list(struct fit_reader *reader, const struct label_lists *lists,
                               double label) {
    uint32_t list = (uint32_t)label;
    if (!lists)
        return NULL;
    for (uint32_t k = 0; k < reader->layout->outputs; k++)
        reader->has[k] = 0;
    for (uint32_t i = lists->start[list]; i < lists->start[list + 1]; i++)
        reader->has[lists->class[i]] = 1;
    return reader->has;
}

static int read_chunk(struct fit_reader *reader, uint32_t chunk) {
    struct rows rows = {0};
    int exponent = set_info(reader->set)->weight_exponent;
    int code = read_margins(reader, chunk, &rows);
    for (uint32_t i = 0; i < rows.count && !code; i++) {
        double *margins = reader->margins + (size_t)i * reader->layout->outputs;
        struct fit_row row = {.margins = margins,
                              .label = rows.label[i],
                              .weight = 1,
                              .offset = rows.offset ? rows.offset[i] : 0};
        if (rows.weight)
            row.weight = ldexp(rows.weight[i], -exponent);
        if (rows.offset)
            row.offset = rows.offset[i];
        row.has = read_list(reader, set_info(reader->set)->lists, row.label);
        end_margins(reader, row.offset, margins);
        fit_add(reader->fit, &row);
    }
    return code;
}

int summary_fit(struct set *set, const struct model_layout *layout, const double *parameters,
                double estimated, struct fit_statistics *statistics) {
    assert(parameters);
    const struct objective *objective = objective_find(layout->objective);
    struct fit_reader reader = {
        .set = set, .layout = layout, .parameters = parameters, .objective = objective};
    uint32_t chunks = set_training_chunks(set_info(set));
    int code = 0;
    reader.has = memory_new(layout->outputs, sizeof *reader.has);
    reader.fit = fit_new(objective, &layout->loss, layout->outputs, layout->intercept, estimated);
    do
        for (uint32_t chunk = 0; chunk < chunks && !code; chunk++)
            code = read_chunk(&reader, chunk);
    while (!code && fit_next_pass(reader.fit));
    if (!code)
        fit_finish(reader.fit, statistics);
    fit_free(reader.fit);
    free(reader.margins);
    free(reader.has);
    return code;
}

/* ---- centres ---- */

/* Σ_j centre_j·w_jk: exact products in an exact sum, as terms may cancel each other. */
static double moved_by_centres(const struct set_info *info, uint32_t weights, uint32_t k,
                               const double *parameters) {
    assert(info->centre && k < weights);
    struct exact sum;
    exact_init(&sum);
    for (uint64_t j = 0; j < info->features; j++) {
        double centre = info->centre[j], weight = parameters[j * weights + k];
        double product = centre * weight;
        if (centre == 0)
            continue;
        exact_add(&sum, product);
        exact_add(&sum, fma(centre, weight, -product));
    }
    return exact_value(&sum);
}

static void move_biases(const struct set_info *info, const struct model_layout *layout, double sign,
                        double *parameters) {
    uint32_t weights = model_rows(layout);
    double *bias = parameters + layout->features * weights;
    if (!info->centre)
        return;
    assert(layout->intercept);
    for (uint32_t k = 0; k < layout->outputs; k++)
        bias[k] += sign * moved_by_centres(info, weights, layout->shared ? 0 : k, parameters);
}

void summary_to_set(const struct set_info *info, const struct model_layout *layout,
                    double *parameters) {
    move_biases(info, layout, 1, parameters);
}

void summary_from_set(const struct set_info *info, const struct model_layout *layout,
                      double *parameters) {
    move_biases(info, layout, -1, parameters);
}

/* ---- how large the values of columns are ---- */

static double scale_of(const struct moments *moments, uint64_t column) {
    bool mostly_zero = 2 * moments->nonzero[column] < moments->rows;
    return mostly_zero ? moments_size(moments, column) : sqrt(moments->variance[column]);
}

void summary_add_scales(const struct moments *moments, uint64_t columns,
                        const struct model_writer *writer, json_t *summary) {
    assert(columns <= model_writer_features(writer));
    uint64_t features = model_writer_features(writer);
    double *scale = memory_new(features, sizeof *scale);
    for (uint64_t j = 0; j < columns; j++)
        scale[model_writer_place(writer, j)] = scale_of(moments, j);
    json_t *list = json_array();
    for (uint64_t j = 0; j < features; j++)
        json_array_append_new(list, scale[j] > 0 && isfinite(scale[j]) ? json_real(scale[j])
                                                                       : json_null());
    json_object_set_new(summary, "scale", list);
    free(scale);
}
