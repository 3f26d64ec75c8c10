#include "model/onnx_sums.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/table/spelling.h"
#include "data/text/number.h"
#include "model/terms.h"

/* The most combinations of the columns of a cross; their weights are a table, which has one for
 * each. */
#define COMBINATIONS_MAX (UINT64_C(1) << 22)

/* A column becomes a code: the number of its bin or text, one more for a missing cell and, of
 * texts, one more for those that training did not have. */
struct coded_column {
    uint64_t *id;      /* of the feature that each code stands for; 0: none; owned */
    uint64_t codes;    /* 0: the column has none */
    const char *value; /* in the graph */
};

struct sums {
    struct onnx_graph *graph;
    const struct first_weights *weights;
    const struct table *table;
    struct coded_column *coded; /* of each column; owned */
    const char *total;          /* the sum so far, or NULL */
    const char **dense;         /* columns that are multiplied by weights, */
    double *dense_weight;       /* and these, dense_count × width; owned */
    uint32_t dense_count;
    size_t dense_room;
    bool *used; /* of each feature: the graph has it; owned */
};

struct first_weights first_weights_of(const struct model *model) {
    assert(model->weight || model->vector);
    const struct model_layout *layout = &model->layout;
    const struct layout tensors = model_tensors(layout);
    struct first_weights weights = {.layout = layout, .weight = model->weight};
    weights.width = (uint32_t)tensors.tensor[0].columns;
    weights.feature_stride = model->weight ? 1 : weights.width;
    weights.output_stride = model->weight ? layout->features : 1;
    if (!model->weight)
        weights.weight = model->vector + tensors.tensor[0].first;
    return weights;
}

/* ---- weights ---- */

/* Adds `scale` times the weights of the feature to `to`; false if the model has no such feature. */
static bool add_weights(const struct sums *sums, uint64_t id, double scale, double *to) {
    const struct first_weights *weights = sums->weights;
    const struct model_layout *layout = weights->layout;
    uint64_t rank = rank_from(layout, 0, id);
    if (rank == layout->features || layout->feature_id[rank] != id)
        return false;
    sums->used[rank] = true;
    for (uint32_t k = 0; k < weights->width; k++)
        to[k] +=
            scale * weights->weight[rank * weights->feature_stride + k * weights->output_stride];
    return true;
}

static void add_to_total(struct sums *sums, const char *part) {
    sums->total = sums->total ? onnx_node(sums->graph, "Add", sums->total, part, NULL) : part;
}

int onnx_check_room(const struct onnx_graph *graph, uint64_t doubles) {
    if (doubles < ONNX_BYTES_MAX / 8 && onnx_bytes(graph) + 8 * doubles < ONNX_BYTES_MAX)
        return 0;
    return error_set(ERROR_DATA,
                     "the model needs more than the 2 GiB that a file of ONNX can have: "
                     "use `dml-coordinator predict`, or --format json or tsv");
}

/* Adds for each row the weights of its code: a row of `table`, codes × width. */
static void add_looked_up(struct sums *sums, const char *code, const double *table,
                          uint64_t codes) {
    assert(codes > 0);
    const char *matrix = onnx_doubles(sums->graph, table, codes, sums->weights->width);
    add_to_total(sums, onnx_node(sums->graph, "Gather", matrix, code, NULL));
}

/* Adds a column of numbers, multiplied by the weights of a feature that the model may lack. */
static void add_number(struct sums *sums, const char *column, uint64_t id) {
    uint32_t width = sums->weights->width;
    double *weight = memory_new(width, sizeof *weight);
    if (add_weights(sums, id, 1, weight)) {
        MEMORY_ROOM(sums->dense, sums->dense_count, sums->dense_room);
        sums->dense_weight = memory_resize(sums->dense_weight,
                                           ((size_t)sums->dense_count + 1) * width, sizeof *weight);
        memcpy(sums->dense_weight + (size_t)sums->dense_count * width, weight,
               width * sizeof *weight);
        sums->dense[sums->dense_count++] = onnx_as_column(sums->graph, column);
    }
    free(weight);
}

static void add_dense(struct sums *sums) {
    if (!sums->dense_count)
        return;
    const char *columns = onnx_concat(sums->graph, sums->dense, sums->dense_count);
    const char *weights =
        onnx_doubles(sums->graph, sums->dense_weight, sums->dense_count, sums->weights->width);
    add_to_total(sums, onnx_node(sums->graph, "MatMul", columns, weights, NULL));
}

/* ---- numbers ---- */

/* How many edges are at most the number; of a missing one as many as there are bins. */
static const char *code_bins(struct sums *sums, const struct table_column *column,
                             const char *number, const char *missing) {
    struct onnx_graph *graph = sums->graph;
    const char *edges = onnx_doubles(graph, column->edge, column->edges, 0);
    const char *above =
        onnx_node(graph, "GreaterOrEqual", onnx_as_column(graph, number), edges, NULL);
    const char *counts = onnx_cast(graph, above, ONNX_INT64);
    const char *last = onnx_int64(graph, 1);
    const char *flat = onnx_int64(graph, -1);
    const char *code = onnx_node(graph, "ReduceSum", counts, last, NULL);
    code = onnx_node(graph, "Reshape", code, flat, NULL);
    return onnx_node(graph, "Where", missing, onnx_int64(graph, column->edges + INT64_C(1)), code);
}

static void add_bins(struct sums *sums, uint32_t number, const char *value, const char *missing) {
    assert(number < sums->table->columns && sums->table->column[number].edges > 0);
    const struct table_column *column = &sums->table->column[number];
    struct coded_column *coded = &sums->coded[number];
    uint32_t bins = column->edges + 1, width = sums->weights->width;
    bool steps = column->monotone != MONOTONE_NONE;
    coded->codes = bins + UINT64_C(1);
    coded->id = memory_new(coded->codes, sizeof *coded->id);
    coded->value = code_bins(sums, column, value, missing);
    double *table = memory_new(coded->codes * width, sizeof *table);
    for (uint32_t bin = 0; bin < bins; bin++) {
        double *row = table + (size_t)bin * width;
        coded->id[bin] = table_bin_feature(number, bin);
        if (steps && bin)
            memcpy(row, row - width, width * sizeof *row);
        if (!steps || bin)
            add_weights(sums, coded->id[bin], 1, row);
    }
    coded->id[bins] = table_feature(number, ROLE_MISSING, NULL, 0);
    add_looked_up(sums, coded->value, table, coded->codes);
    free(table);
}

static bool is_crossed(const struct table *table, uint32_t number) {
    for (uint32_t k = 0; k < table->crosses; k++)
        for (uint32_t i = 0; i < table->cross[k].columns; i++)
            if (table->cross[k].column[i] == number)
                return true;
    return false;
}

static void add_number_column(struct sums *sums, uint32_t number, const char *name) {
    const struct table_column *column = &sums->table->column[number];
    struct onnx_graph *graph = sums->graph;
    const char *value = onnx_input(graph, name, ONNX_DOUBLE, 0);
    const char *missing = onnx_node(graph, "IsNaN", value, NULL, NULL);
    const char *mean = onnx_double(graph, isnan(column->mean) ? 0 : column->mean);
    const char *filled = onnx_node(graph, "Where", missing, mean, value);
    add_number(sums, filled, table_feature(number, ROLE_NUMBER, NULL, 0));
    add_number(sums, onnx_cast(graph, missing, ONNX_DOUBLE),
               table_feature(number, ROLE_MISSING, NULL, 0));
    if (column->edges)
        add_bins(sums, number, value, missing);
    else if (is_crossed(sums->table, number)) {
        /* A number that has one value alone has no bins: crosses have of it that it is missing. */
        struct coded_column *coded = &sums->coded[number];
        coded->codes = 2;
        coded->id = memory_new(coded->codes, sizeof *coded->id);
        coded->id[1] = table_feature(number, ROLE_MISSING, NULL, 0);
        coded->value = onnx_cast(sums->graph, missing, ONNX_INT64);
    }
}

/* ---- categories ---- */

struct known_texts {
    char **text;   /* owned */
    int64_t *code; /* owned */
    uint64_t count;
    size_t room;
};

static void known_add(struct known_texts *known, char *text, int64_t code) {
    if (known->count == known->room) {
        known->room = 2 * known->room + 64;
        known->text = memory_resize(known->text, known->room, sizeof *known->text);
        known->code = memory_resize(known->code, known->room, sizeof *known->code);
    }
    known->text[known->count] = text;
    known->code[known->count++] = code;
}

static bool is_feature(const void *layout, uint64_t id) {
    return has_rank(layout, rank_from(layout, 0, id), id);
}

/* Adds the other spellings of the texts that are there, each of which means the text that it means
 * to `predict`: a truth is True to pandas, and a number 3.0. */
static void add_spellings(const struct sums *sums, uint32_t number,
                          const struct coded_column *coded, struct known_texts *known) {
    const struct model_layout *layout = sums->weights->layout;
    for (uint64_t k = 0, texts = known->count; k < texts; k++) {
        struct spellings spellings;
        spellings_find(&spellings, known->text[k]);
        for (uint32_t i = 0; i < spellings.count; i++) {
            const char *other = spellings.text[i];
            uint64_t id = table_feature(number, ROLE_VALUE, other, strlen(other));
            if (!is_feature(layout, id) &&
                spelling_find_known(number, other, is_feature, layout) == coded->id[known->code[k]])
                known_add(known, memory_copy_string(other), known->code[k]);
        }
    }
}

/* Finds the texts of a category among the model's features, and their ids. */
static void find_texts(const struct sums *sums, uint32_t number, struct known_texts *known,
                       struct coded_column *coded) {
    const struct model_layout *layout = sums->weights->layout;
    size_t room = 0;
    for (uint64_t j = rank_from(layout, 0, FEATURE_HASHED); j < layout->features; j++) {
        uint64_t id = layout->feature_id[j];
        const char *name = layout->feature_names ? layout->feature_names[j] : "";
        char *text = table_value_of(sums->table, number, id, name);
        if (!text)
            continue;
        MEMORY_ROOM(coded->id, coded->codes, room);
        known_add(known, text, (int64_t)coded->codes);
        coded->id[coded->codes++] = id;
    }
    coded->id = memory_resize(coded->id, coded->codes + 2, sizeof *coded->id);
}

/* The words that stand for a missing cell are no texts, whatever the model has. */
static void add_missing_words(const struct table *table, struct known_texts *known, int64_t code) {
    known_add(known, memory_copy_string(""), code);
    for (char *const *word = table->missing; word && *word; word++)
        if (**word)
            known_add(known, memory_copy_string(*word), code);
}

static int add_category_column(struct sums *sums, uint32_t number, const char *name) {
    struct coded_column *coded = &sums->coded[number];
    struct known_texts known = {0};
    uint32_t width = sums->weights->width;
    find_texts(sums, number, &known, coded);
    uint64_t texts = coded->codes;
    add_spellings(sums, number, coded, &known);
    coded->id[coded->codes++] = table_feature(number, ROLE_MISSING, NULL, 0);
    coded->id[coded->codes++] = 0;
    add_missing_words(sums->table, &known, (int64_t)texts);
    int code = onnx_check_room(sums->graph, coded->codes * (width + UINT64_C(4)));
    if (!code) {
        const char *value = onnx_input(sums->graph, name, ONNX_STRING, 0);
        double *table = memory_new(coded->codes * width, sizeof *table);
        coded->value = onnx_encode(sums->graph, value, (const char *const *)known.text, known.code,
                                   known.count, (int64_t)texts + 1);
        for (uint64_t i = 0; i < coded->codes; i++)
            if (coded->id[i])
                add_weights(sums, coded->id[i], 1, table + i * width);
        add_looked_up(sums, coded->value, table, coded->codes);
        free(table);
    }
    for (uint64_t i = 0; i < known.count; i++)
        free(known.text[i]);
    free(known.text);
    free(known.code);
    return code;
}

/* ---- crosses ---- */

/* The number of a combination from the codes of its columns, the first of which counts most. */
static const char *combine_codes(struct sums *sums, const struct table_cross *cross) {
    const char *code = sums->coded[cross->column[0]].value;
    for (uint32_t i = 1; i < cross->columns; i++) {
        const struct coded_column *coded = &sums->coded[cross->column[i]];
        const char *codes = onnx_int64(sums->graph, (int64_t)coded->codes);
        code = onnx_node(sums->graph, "Mul", code, codes, NULL);
        code = onnx_node(sums->graph, "Add", code, coded->value, NULL);
    }
    return code;
}

/* The feature that a combination stands for; 0: one of its columns has none. */
static uint64_t feature_of_combination(const struct sums *sums, const struct table_cross *cross,
                                       uint64_t number) {
    uint64_t part[CROSS_COLUMNS_MAX];
    for (uint32_t i = cross->columns; i-- > 0;) {
        const struct coded_column *coded = &sums->coded[cross->column[i]];
        part[i] = coded->id[number % coded->codes];
        number /= coded->codes;
        if (!part[i])
            return 0;
    }
    return table_cross_feature(part, cross->columns);
}

static int add_cross(struct sums *sums, const struct table_cross *cross) {
    assert(cross->columns > 0 && cross->columns <= CROSS_COLUMNS_MAX);
    uint32_t width = sums->weights->width;
    uint64_t combinations = 1;
    for (uint32_t i = 0; i < cross->columns && combinations <= COMBINATIONS_MAX; i++)
        combinations *= sums->coded[cross->column[i]].codes;
    if (combinations > COMBINATIONS_MAX) {
        char *name = table_cross_name(sums->table, cross);
        int code = error_set(ERROR_DATA,
                             "the cross %s has more than the %llu combinations that ONNX is "
                             "written for: use `dml-coordinator predict`",
                             name, (unsigned long long)COMBINATIONS_MAX);
        free(name);
        return code;
    }
    int code = onnx_check_room(sums->graph, combinations * width);
    if (code || !combinations)
        return code;
    double *table = memory_new(combinations * width, sizeof *table);
    for (uint64_t i = 0; i < combinations; i++) {
        uint64_t id = feature_of_combination(sums, cross, i);
        if (id)
            add_weights(sums, id, sums->table->cross_value, table + i * width);
    }
    add_looked_up(sums, combine_codes(sums, cross), table, combinations);
    free(table);
    return 0;
}

/* ---- rows ---- */

static int add_table(struct sums *sums) {
    const struct table *table = sums->table;
    int code = 0;
    sums->coded = memory_new(table->columns, sizeof *sums->coded);
    for (uint32_t i = 0; i < table->columns && !code; i++) {
        char label[COLUMN_LABEL_TEXT];
        const char *name = table_label(table, i, label);
        if (table->column[i].kind == COLUMN_NUMBER)
            add_number_column(sums, i, name);
        else if (table->column[i].kind == COLUMN_CATEGORY)
            code = add_category_column(sums, i, name);
    }
    for (uint32_t i = 0; i < table->crosses && !code; i++)
        code = add_cross(sums, &table->cross[i]);
    if (!code)
        add_dense(sums);
    for (uint32_t i = 0; i < table->columns; i++)
        free(sums->coded[i].id);
    free(sums->coded);
    return code;
}

static int add_matrix(struct sums *sums) {
    assert(!sums->table);
    const struct first_weights *weights = sums->weights;
    uint64_t features = weights->layout->features;
    int code = onnx_check_room(sums->graph, features * weights->width);
    if (code || !features)
        return code;
    double *matrix = memory_new(features * weights->width, sizeof *matrix);
    for (uint64_t j = 0; j < features; j++)
        add_weights(sums, weights->layout->feature_id[j], 1, matrix + j * weights->width);
    const char *rows = onnx_input(sums->graph, "features", ONNX_DOUBLE, features);
    const char *of = onnx_doubles(sums->graph, matrix, features, weights->width);
    add_to_total(sums, onnx_node(sums->graph, "MatMul", rows, of, NULL));
    free(matrix);
    return 0;
}

/* Texts of few rows are in the model by their hashes alone, and so are those that are not UTF-8. */
static void warn_of_unused(const struct sums *sums) {
    const struct model_layout *layout = sums->weights->layout;
    uint64_t count = 0;
    const char *first = "";
    for (uint64_t j = layout->features; j-- > 0;)
        if (!sums->used[j]) {
            count++;
            first = layout->feature_names ? layout->feature_names[j] : "";
        }
    if (count)
        log_warning("%llu features are left out, the first of them %s: the model has not the texts "
                    "that they stand for. To a row with such a text ONNX's model answers as if "
                    "training did not have it",
                    (unsigned long long)count, first);
}

int onnx_add_sums(struct onnx_graph *graph, const struct first_weights *weights,
                  const char **result) {
    struct sums sums = {.graph = graph, .weights = weights, .table = weights->layout->table};
    sums.used = memory_new(weights->layout->features, sizeof *sums.used);
    int code = sums.table ? add_table(&sums) : add_matrix(&sums);
    *result = sums.total;
    if (!code && !sums.total)
        code = error_set(ERROR_DATA, "the model has no features, so there are no rows to give it");
    if (!code)
        warn_of_unused(&sums);
    free(sums.dense);
    free(sums.dense_weight);
    free(sums.used);
    return code;
}

static int refuse_column(const struct table *table, uint32_t column, const char *why) {
    char name[COLUMN_TEXT];
    return error_set(ERROR_DATA,
                     "%s %s, which ONNX has no operators for: use `dml-coordinator "
                     "predict`",
                     table_describe(table, column, name), why);
}

int onnx_check_rows(const struct model *model) {
    const struct table *table = model->layout.table;
    for (uint32_t i = 0; table && i < table->columns; i++) {
        enum column_kind kind = table->column[i].kind;
        if (kind == COLUMN_DATE)
            return refuse_column(table, i, "holds dates");
        if (kind == COLUMN_WORDS)
            return refuse_column(table, i, "is a text that is split into words (csv.text)");
        if (kind == COLUMN_CATEGORY && table->hash)
            return refuse_column(table, i, "is hashed (csv.hash)");
    }
    return 0;
}
