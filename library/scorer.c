/* Rows of the caller's become terms of the model (model/terms.h), margins, and what follows from
 * them: by the same functions by which `predict` scores files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/csv/table_row.h"
#include "data/source/blocks.h"
#include "data/text/number.h"
#include "library/calls.h"
#include "library/opened.h"
#include "model/explain.h"
#include "model/family.h"
#include "model/margins.h"
#include "model/offsets.h"
#include "model/response.h"
#include "model/score.h"
#include "model/terms.h"

enum form { FORM_CELLS, FORM_IDS, FORM_SPARSE };

struct dml_scorer {
    const struct dml_model *opened;
    const struct model *model;
    enum form form;
    uint32_t columns; /* of a row; of sparse rows as many as the longest so far */
    bool broken;      /* a call ended too early: nothing here is as it should be */

    struct term_mapper mapper;
    struct margins *margins;
    double *prediction; /* of a row */

    struct explainer *explainer; /* NULL until something is to be explained */
    struct terms terms;          /* of the row that is explained */

    /* A scorer of cells has these members: */
    struct source_options options;
    struct format format; /* of the columns */
    bool *reads;          /* of each column: whether something is made of it */
    struct batch batch;   /* a row */
    struct bytes *text;   /* of each column: a copy of the row's cell, to which its origin points */

    /* A scorer of ids has these members: */
    uint64_t *id; /* rising, `columns` */
    struct id_place {
        uint64_t id; /* first, for compare_ids() */
        size_t at;
    } * place; /* where the value of each is; NULL: they rise as they come */
    double *value;
};

/* ---- making scorers ---- */

static int check_form(const struct model *model, enum form form) {
    const struct table *table = model->layout.table;
    if (form == FORM_CELLS && !table)
        return error_set(ERROR_USAGE,
                         "%s is not a model of a table: give its rows by the ids of features",
                         model->folder);
    if (form != FORM_CELLS && table)
        return error_set(ERROR_USAGE,
                         "%s is a model of a table: give its rows by the names of columns",
                         model->folder);
    if (!model_family(&model->layout)->family->own_tensors)
        return 0;
    return error_set(ERROR_UNAVAILABLE,
                     "%s is a model of a plug-in, whose library runs in a process of its own: it "
                     "is scored by `dml-coordinator predict` alone",
                     model->folder);
}

/* A scorer that lacks what its form needs. */
static int begin(const struct dml_model *opened, enum form form, size_t columns,
                 struct dml_scorer **result) {
    const struct model *model = opened->model;
    int code = check_form(model, form);
    if (code)
        return code;
    if (columns > CSV_COLUMNS_MAX)
        return error_set(ERROR_USAGE, "%zu columns: there may be %u", columns, CSV_COLUMNS_MAX);
    struct dml_scorer *scorer = *result = memory_new(1, sizeof *scorer);
    scorer->opened = opened_hold(opened);
    scorer->model = model;
    scorer->form = form;
    scorer->columns = (uint32_t)columns;
    scorer->margins = margins_new(model);
    scorer->prediction = memory_new(dml_model_values(opened), sizeof *scorer->prediction);
    term_mapper_init(&scorer->mapper, model);
    batch_init(&scorer->batch);
    return 0;
}

void dml_scorer_free(struct dml_scorer *scorer) {
    if (!scorer)
        return;
    margins_free(scorer->margins);
    term_mapper_release(&scorer->mapper);
    explainer_free(scorer->explainer);
    terms_release(&scorer->terms);
    free(scorer->prediction);
    format_release(&scorer->format);
    score_options_release(&scorer->options);
    batch_release(&scorer->batch);
    for (uint32_t i = 0; scorer->text && i < scorer->columns; i++)
        bytes_release(&scorer->text[i]);
    free(scorer->text);
    free(scorer->reads);
    free(scorer->id);
    free(scorer->place);
    free(scorer->value);
    opened_let_go(scorer->opened); /* last: what is above looks at the model */
    free(scorer);
}

/* Answers `code`, without the scorer if it is an error. */
static int finish(int code, struct dml_scorer **scorer) {
    if (code) {
        dml_scorer_free(*scorer);
        *scorer = NULL;
    }
    return code;
}

/* ---- columns ---- */

static int lay_out(struct dml_scorer *scorer, const char *const *names, unsigned flags) {
    const struct table *table = scorer->model->layout.table;
    if (flags & ~DML_MISSING_COLUMNS)
        return error_set(ERROR_USAGE, "flags 0x%x: only DML_MISSING_COLUMNS is known", flags);
    if (names && !table_is_named(table))
        return error_set(ERROR_USAGE,
                         "%s: the columns have no names: give them by their places, without names",
                         scorer->model->folder);
    int code = score_options(scorer->model, &scorer->options);
    if (code)
        return code;
    scorer->options.label.optional = true;
    scorer->options.property.ignores_weights = true;
    if (flags & DML_MISSING_COLUMNS)
        scorer->options.table.missing_columns = MISSING_COLUMNS_MISSING;
    code = format_of_names(&scorer->format, &scorer->options, names, scorer->columns);
    if (code)
        return code;
    scorer->reads = memory_new(scorer->columns, sizeof *scorer->reads);
    scorer->text = memory_new(scorer->columns, sizeof *scorer->text);
    for (uint32_t i = 0; i < scorer->columns; i++)
        /* Text for a column that says nothing of a row would be read for nothing. */
        scorer->reads[i] = scorer->format.column[i].kind != COLUMN_LABEL &&
                           scorer->format.column[i].kind != COLUMN_SKIPPED &&
                           scorer->format.column[i].kind != COLUMN_WEIGHT &&
                           scorer->format.column[i].kind != COLUMN_CLUSTER;
    return term_mapper_check_table(&scorer->mapper, "the rows", scorer->format.table, false);
}

static int of_columns(const struct dml_model *opened, size_t count, const char *const *names,
                      unsigned flags, struct dml_scorer **scorer) {
    int code = begin(opened, FORM_CELLS, count, scorer);
    return finish(code ? code : lay_out(*scorer, names, flags), scorer);
}

int dml_scorer_of_columns(const struct dml_model *model, size_t count, const char *const *names,
                          unsigned flags, struct dml_scorer **scorer) {
    *scorer = NULL;
    CALL(of_columns(model, count, names, flags, scorer));
}

/* ---- ids ---- */

/* Sorts ids into scorer->place. Answers 0, or that one is repeated. */
static int sort_ids(struct dml_scorer *scorer, size_t count, const uint64_t *ids) {
    for (size_t i = 0; i < count; i++)
        scorer->place[i] = (struct id_place){ids[i], i};
    qsort(scorer->place, count, sizeof *scorer->place, compare_ids);
    for (size_t i = 0; i < count; i++) {
        scorer->id[i] = scorer->place[i].id;
        if (i && scorer->id[i] == scorer->id[i - 1])
            return error_set(ERROR_DATA, "id %llu is given twice",
                             (unsigned long long)scorer->id[i]);
    }
    return 0;
}

static bool rise(size_t count, const uint64_t *ids) {
    size_t i = 1;
    while (i < count && ids[i - 1] < ids[i])
        i++;
    return i >= count;
}

static void make_room(struct dml_scorer *scorer, size_t count) {
    scorer->id = memory_resize(scorer->id, count, sizeof *scorer->id);
    scorer->value = memory_resize(scorer->value, count, sizeof *scorer->value);
    scorer->place = memory_resize(scorer->place, count, sizeof *scorer->place);
    scorer->columns = (uint32_t)count;
}

/* The ids 1 … columns: there must be no others. */
static int number_ids(struct dml_scorer *scorer) {
    const struct model_layout *layout = &scorer->model->layout;
    uint64_t last = layout->features ? layout->feature_id[layout->features - 1] : 0;
    if (last > scorer->columns)
        return error_set(ERROR_DATA,
                         "rows have %u numbers, and the model has a feature of id %llu: give as "
                         "many numbers as training had, or their ids",
                         scorer->columns, (unsigned long long)last);
    for (uint32_t i = 0; i < scorer->columns; i++)
        scorer->id[i] = i + UINT64_C(1);
    return 0;
}

static int take_ids(struct dml_scorer *scorer, const uint64_t *ids) {
    bool rising = !ids || rise(scorer->columns, ids);
    make_room(scorer, scorer->columns);
    int code = !ids ? number_ids(scorer) : sort_ids(scorer, scorer->columns, ids);
    if (rising) {
        free(scorer->place);
        scorer->place = NULL;
    }
    return code;
}

static int of_ids(const struct dml_model *opened, size_t count, const uint64_t *ids,
                  struct dml_scorer **scorer) {
    int code = begin(opened, FORM_IDS, count, scorer);
    return finish(code ? code : take_ids(*scorer, ids), scorer);
}

int dml_scorer_of_ids(const struct dml_model *model, size_t count, const uint64_t *ids,
                      struct dml_scorer **scorer) {
    *scorer = NULL;
    CALL(of_ids(model, count, ids, scorer));
}

int dml_scorer_of_sparse(const struct dml_model *model, struct dml_scorer **scorer) {
    *scorer = NULL;
    CALL(finish(begin(model, FORM_SPARSE, 0, scorer), scorer));
}

/* ---- a row of cells ---- */

/* A text as a cell of CSV has it: blanks around it count in categories alone. */
static bool put_text(struct dml_scorer *scorer, struct table_row *row, uint32_t column,
                     const char *text) {
    bool trims = scorer->format.column[column].kind != COLUMN_CATEGORY;
    while (trims && *text == ' ')
        text++;
    size_t length = strlen(text);
    while (trims && length && text[length - 1] == ' ')
        length--;
    bytes_clear(&scorer->text[column]);
    char *copy = bytes_extend(&scorer->text[column], length + TEXT_END_BYTES);
    memcpy(copy, text, length);
    memset(copy + length, 0, TEXT_END_BYTES); /* parsers may read them */
    return row_take(row, column, copy);
}

static int rejected(const struct batch *batch) {
    return error_set(ERROR_DATA, "%s", batch->bad[batch->bad_count - 1].why);
}

static int read_cells(struct dml_scorer *scorer, const struct dml_rows *rows, size_t number) {
    size_t first = number * scorer->columns;
    const char *const *texts = rows->texts ? rows->texts + first : NULL;
    const double *numbers = rows->numbers ? rows->numbers + first : NULL;
    batch_clear(&scorer->batch);
    scorer->batch.alike = !scorer->format.categories;
    struct table_row row = row_begin(&scorer->format, &scorer->batch, 2);
    for (uint32_t i = 0; i < scorer->columns; i++) {
        const char *text = texts ? texts[i] : NULL;
        if (scorer->reads[i] &&
            !(text ? put_text(scorer, &row, i, text)
                   : row_take_number(&row, i, numbers ? numbers[i] : (double)NAN)))
            return rejected(&scorer->batch);
    }
    return row_end(&row) ? 0 : rejected(&scorer->batch);
}

/* ---- a row of ids ---- */

static int check_finite(size_t count, const uint64_t *ids, const double *values) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return error_set(ERROR_DATA, "the value of id %llu is not finite",
                             (unsigned long long)ids[i]);
    return 0;
}

/* Puts the values where sort_ids() found their ids. */
static const double *sorted_values(struct dml_scorer *scorer, size_t count, const double *values) {
    for (size_t i = 0; i < count; i++)
        scorer->value[i] = values[scorer->place[i].at];
    return scorer->value;
}

static int view_sparse(struct dml_scorer *scorer, size_t count, const uint64_t *ids,
                       const double *values, struct source_rows *view) {
    int code = 0;
    view->id = ids;
    view->value = values;
    if (!rise(count, ids)) {
        if (count > scorer->columns)
            make_room(scorer, count);
        code = sort_ids(scorer, count, ids);
        view->id = scorer->id;
        view->value = sorted_values(scorer, count, values);
    }
    return code ? code : check_finite(count, view->id, view->value);
}

/* ---- offsets beside the rows ---- */

static int add_property(const double *numbers, size_t number, enum row_property property,
                        double *offset) {
    if (!numbers)
        return 0;
    if (!property_is_valid(property, numbers[number]))
        return error_set(ERROR_DATA, "the %s is %g; allowed: %s", property_rules[property].name,
                         numbers[number], property_rules[property].allowed);
    *offset += property_offset(property, numbers[number]);
    return 0;
}

static int add_offsets(const struct dml_rows *rows, size_t number, double *offset) {
    int code = add_property(rows->offsets, number, ROW_OFFSET, offset);
    return code ? code : add_property(rows->exposures, number, ROW_EXPOSURE, offset);
}

/* ---- rows ---- */

/* Adds the terms of the row, and finds its offset. */
static int read_row(struct dml_scorer *scorer, const struct dml_rows *rows, size_t number,
                    struct terms *terms, double *offset) {
    uint64_t ends[2] = {0, scorer->columns};
    struct source_rows one = {.count = 1, .start = ends};
    const struct source_rows *view = &one;
    int code;
    if (scorer->form == FORM_CELLS) {
        code = read_cells(scorer, rows, number);
        view = batch_view(&scorer->batch);
    } else if (scorer->form == FORM_IDS) {
        const double *values = rows->numbers + number * scorer->columns;
        one.id = scorer->id;
        one.value = scorer->place ? sorted_values(scorer, scorer->columns, values) : values;
        code = check_finite(scorer->columns, one.id, one.value);
    } else {
        size_t first = rows->start[number], end = rows->start[number + 1];
        if (end < first)
            return error_set(ERROR_DATA, "it ends before it starts: start[] must not fall");
        ends[1] = end - first;
        code = view_sparse(scorer, ends[1], rows->ids + first, rows->values + first, &one);
    }
    *offset = !code && view->offset ? view->offset[0] : 0;
    if (!code)
        code = add_offsets(rows, number, offset);
    if (!code)
        term_mapper_row(&scorer->mapper, view, 0, terms);
    return code;
}

/* Adds the row to the block of margins. */
static int add_row(struct dml_scorer *scorer, const struct dml_rows *rows, size_t number) {
    double offset;
    int code = read_row(scorer, rows, number, margins_terms(scorer->margins), &offset);
    if (!code)
        margins_end_row(scorer->margins, offset);
    return code;
}

static int check_reach(const struct dml_scorer *scorer, const double *margins) {
    for (uint32_t k = 0; k < scorer->model->layout.outputs; k++)
        if (response_out_of_reach(scorer->opened->objective, margins[k])) {
            error_clear(); /* what is wrong with a row behind this one is not told */
            return error_set(ERROR_DATA,
                             "the values are too large for this model: its margin is %g",
                             margins[k]);
        }
    return 0;
}

static void write_labels(const struct dml_scorer *scorer, const double *margins, int32_t *labels) {
    const struct model_layout *layout = &scorer->model->layout;
    if (!layout->separator) {
        *labels =
            (int32_t)response_class(scorer->opened->objective, layout, margins, scorer->prediction);
        return;
    }
    for (uint32_t k = 0; k < layout->classes; k++)
        labels[k] = response_has_class(layout, k, margins[k], scorer->prediction[k]);
}

static void write_probabilities(const struct dml_scorer *scorer, const double *margins,
                                double *probabilities) {
    const struct objective *objective = scorer->opened->objective;
    const struct model_layout *layout = &scorer->model->layout;
    if (objective->labels == LABEL_BINARY)
        response_both(objective, layout, margins[0], probabilities);
    else
        memcpy(probabilities, scorer->prediction, layout->classes * sizeof *probabilities);
}

static void write_scores(const struct dml_scorer *scorer, const double *margins, size_t number,
                         const struct dml_scores *scores) {
    const struct dml_model *opened = scorer->opened;
    const struct model_layout *layout = &scorer->model->layout;
    size_t values = dml_model_values(opened);
    if (scores->margins)
        memcpy(scores->margins + number * layout->outputs, margins,
               layout->outputs * sizeof *margins);
    if (!scores->values && !scores->probabilities && !scores->labels)
        return;
    response_predict(opened->objective, layout, margins, scorer->prediction);
    if (scores->values)
        memcpy(scores->values + number * values, scorer->prediction,
               values * sizeof *scores->values);
    if (scores->probabilities)
        write_probabilities(scorer, margins, scores->probabilities + number * layout->classes);
    if (scores->labels)
        write_labels(scorer, margins, scores->labels + number * dml_model_labels(opened));
}

/* Scores the block of rows that were added since row *scored. */
static int score_block(struct dml_scorer *scorer, size_t end, const struct dml_scores *scores,
                       size_t *scored) {
    const double *margins;
    uint32_t outputs = scorer->model->layout.outputs;
    int code = margins_compute(scorer->margins, NULL, &margins);
    for (; *scored < end && !code; margins += outputs) {
        code = check_reach(scorer, margins);
        if (code)
            break;
        write_scores(scorer, margins, *scored, scores);
        ++*scored;
    }
    return code;
}

#define WHY_BYTES 1024

/* Says which row an error is of. */
static int error_of_row(int code, size_t number) {
    char why[WHY_BYTES];
    snprintf(why, sizeof why, "%s", error_text());
    error_clear();
    return error_set(code, "rows[%zu]: %s", number, why);
}

static int score_rows(struct dml_scorer *scorer, const struct dml_rows *rows,
                      const struct dml_scores *scores, size_t *scored) {
    int code = 0;
    for (size_t i = 0; i < rows->count && !code; i++) {
        int refused = add_row(scorer, rows, i);
        if (refused || i + 1 == rows->count || margins_full(scorer->margins))
            code = score_block(scorer, refused ? i : i + 1, scores, scored);
        code = code ? code : refused;
    }
    return code ? error_of_row(code, *scored) : 0;
}

/* ---- calls ---- */

static int check_beside(const struct dml_scorer *scorer, const double *numbers,
                        enum row_property property) {
    bool needed = offsets_needed_beside(&scorer->model->layout, property);
    const char *name = property_rules[property].name;
    if (needed == (numbers != NULL))
        return 0;
    return error_set(ERROR_USAGE,
                     needed ? "the model was trained with an %s for each row, in a file beside the "
                              "data; give one for these rows"
                            : "the model takes no %s for each row beside its columns; leave it out",
                     name);
}

/* Whether the rows have the form that the scorer is for. */
static int check_rows(const struct dml_scorer *scorer, const struct dml_rows *rows) {
    bool has = scorer->form == FORM_CELLS ? rows->texts || rows->numbers
               : scorer->form == FORM_IDS ? rows->numbers && !rows->texts
                                          : rows->start && rows->ids && rows->values;
    if (scorer->broken)
        return error_set(ERROR_USAGE, "a call with this scorer ended too early: free it");
    if (rows->count && !has)
        return error_set(ERROR_USAGE, "the rows are not of the form that the scorer is for");
    int code = check_beside(scorer, rows->offsets, ROW_OFFSET);
    return code ? code : check_beside(scorer, rows->exposures, ROW_EXPOSURE);
}

static int check_scores(const struct dml_scorer *scorer, const struct dml_scores *scores) {
    const struct dml_model *opened = scorer->opened;
    if (scores->probabilities && !dml_model_probabilities(opened))
        return error_set(ERROR_USAGE, "the model has no probabilities (objective %s)",
                         opened->objective->name);
    if (scores->labels && !dml_model_labels(opened))
        return error_set(ERROR_USAGE, "the model predicts numbers and has no labels (objective %s)",
                         opened->objective->name);
    return 0;
}

static int score(struct dml_scorer *scorer, const struct dml_rows *rows,
                 const struct dml_scores *scores, size_t *scored) {
    int code = check_rows(scorer, rows);
    if (!code)
        code = check_scores(scorer, scores);
    if (code)
        return code;
    size_t done = 0;
    term_mapper_forget(&scorer->mapper);
    scorer->broken = true;
    code = score_rows(scorer, rows, scores, &done);
    scorer->broken = false;
    if (scored)
        *scored = done;
    return code;
}

int dml_score(struct dml_scorer *scorer, const struct dml_rows *rows,
              const struct dml_scores *scores, size_t *scored) {
    if (scored)
        *scored = 0;
    CALL(score(scorer, rows, scores, scored));
}

/* ---- explanations ---- */

static int explained_by(struct dml_scorer *scorer, struct dml_explained *explained) {
    int code = scorer->explainer ? 0 : explainer_new(scorer->model, &scorer->explainer);
    if (!code)
        *explained = (struct dml_explained){.columns = explainer_columns(scorer->explainer),
                                            .names = explainer_names(scorer->explainer),
                                            .base = explainer_base(scorer->explainer)};
    return code;
}

int dml_scorer_explained(struct dml_scorer *scorer, struct dml_explained *explained) {
    CALL(explained_by(scorer, explained));
}

/* A row whose margin leaves the range of numbers is refused, as in scores. */
static int explain_row(struct dml_scorer *scorer, const struct dml_rows *rows, size_t number,
                       const struct dml_explained *explained, double *contributions) {
    double offset;
    scorer->terms.count = 0;
    int code = read_row(scorer, rows, number, &scorer->terms, &offset);
    if (code)
        return code;
    explainer_row(scorer->explainer, scorer->terms.feature, scorer->terms.value,
                  scorer->terms.count, contributions);
    const uint32_t outputs = scorer->model->layout.outputs;
    double *margins = memory_new(outputs, sizeof *margins);
    for (uint32_t k = 0; k < outputs; k++) {
        margins[k] = explained->base[k] + offset;
        for (size_t c = 0; c < explained->columns; c++)
            margins[k] += contributions[k * explained->columns + c];
    }
    code = check_reach(scorer, margins);
    free(margins);
    return code;
}

static int explain(struct dml_scorer *scorer, const struct dml_rows *rows, double *contributions,
                   size_t *done) {
    struct dml_explained explained;
    int code = check_rows(scorer, rows);
    if (!code)
        code = explained_by(scorer, &explained);
    if (code)
        return code;
    const size_t each = scorer->model->layout.outputs * explained.columns;
    size_t row = 0;
    term_mapper_forget(&scorer->mapper);
    scorer->broken = true;
    for (; row < rows->count && !code; row += !code)
        code = explain_row(scorer, rows, row, &explained, contributions + row * each);
    scorer->broken = false;
    if (done)
        *done = row;
    return code ? error_of_row(code, row) : 0;
}

int dml_explain(struct dml_scorer *scorer, const struct dml_rows *rows, double *contributions,
                size_t *explained) {
    if (explained)
        *explained = 0;
    CALL(explain(scorer, rows, contributions, explained));
}

/* A date's texts are never unseen: each is a date or refused. */
uint64_t dml_scorer_unseen(const struct dml_scorer *scorer, uint64_t *unseen, uint64_t *known) {
    uint64_t sum = 0;
    for (size_t i = 0; scorer->form == FORM_CELLS && i < scorer->opened->columns; i++) {
        const struct term_counts *counts = &scorer->mapper.counts[scorer->opened->column[i].number];
        sum += counts->unseen;
        if (unseen)
            unseen[i] = counts->unseen;
        if (known)
            known[i] = counts->known;
    }
    return sum;
}
