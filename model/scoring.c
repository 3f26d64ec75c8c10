#include "model/score.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/set/holdout.h"
#include "model/explain.h"
#include "model/figures.h"
#include "model/output.h"
#include "model/ranking.h"
#include "model/response.h"
#include "model/margins.h"
#include "model/offsets.h"
#include "model/terms.h"
#include "data/source/input.h"
#include "base/text.h"

struct scored_row {
    uint32_t number;
    uint64_t known; /* how many of its values belong to features that the model has */
};

struct scorer {
    const struct model *model;
    const struct objective *objective; /* the model's */
    const char *path;                  /* the file being read */
    struct source_report report;       /* what is known about that file */
    bool names_checked;                /* its header was compared with the model's names */
    struct figures *figures;           /* or NULL */
    struct lines *lines;               /* or NULL */
    const struct score_output *output; /* or NULL */
    bool streams;                      /* the file is one that is read as it comes */
    const struct holdout_pick *pick;   /* only these rows are scored; NULL: all */
    uint64_t bad_lines_max;            /* of a file */
    struct margins *margins;
    struct scored_row row[MARGINS_ROWS_MAX]; /* the rows of the block */
    uint32_t rows;
    double label[MARGINS_ROWS_MAX]; /* of these, as losses take them */
    struct term_mapper mapper;
    double *contributions; /* of a row, if they are wanted; owned */
};

/* The name of a feature for a message, as in " (radius)"; empty if the feature has no name. */
#define NAME_TEXT 128

static const char *name_in_brackets(const struct model_layout *layout, uint64_t feature,
                                    char text[NAME_TEXT]) {
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    snprintf(text, NAME_TEXT, "%s%.100s%s", *name ? " (" : "", name, *name ? ")" : "");
    return text;
}

/* Names the line of the file, or the row of a pack. */
static int row_error(const struct scorer *scorer, const struct source_rows *rows, uint32_t row,
                     const char *why) {
    return error_set(ERROR_DATA, rows->line ? "%s:%llu: %s" : "%s: row %llu: %s", scorer->path,
                     (unsigned long long)source_row_line(rows, row), why);
}

/* A CSV row has a value for every column. A row that lacks one belongs to another table, or its
 * label is in another column than in training. */
static int missing_values_error(const struct scorer *scorer, const struct source_rows *rows,
                                uint32_t row, uint64_t known) {
    const struct model_layout *layout = &scorer->model->layout;
    /* The first feature of the model that a row does not have. */
    const uint64_t *id = source_row_ids(rows, row);
    uint64_t at = 0, values = rows->start[row + 1] - rows->start[row], missing = 0;
    for (; missing < layout->features; missing++) {
        while (at < values && id[at] < layout->feature_id[missing])
            at++;
        if (at == values || id[at] != layout->feature_id[missing])
            break;
    }
    char name[NAME_TEXT], why[NAME_TEXT + 256];
    snprintf(why, sizeof why,
             "no value in column %llu%s, and only %llu of the %llu columns that the model was "
             "trained on; they must be in the same places, and so must the label if it is there",
             (unsigned long long)layout->feature_id[missing],
             name_in_brackets(layout, missing, name), (unsigned long long)known,
             (unsigned long long)layout->features);
    return row_error(scorer, rows, row, why);
}

/* A label that the loss does not allow would make the mean loss NaN. */
static int check_label(const struct scorer *scorer, const struct source_rows *rows, uint32_t row) {
    const struct objective *objective = scorer->objective;
    double label = rows->label[row];
    bool counts = !isnan(label) && !(rows->weight && rows->weight[row] == 0);
    if (!objective->label_fits || !counts || objective->label_fits(label))
        return 0;
    char why[256];
    snprintf(why, sizeof why, "the label is %g; a model for %s needs %s", label, objective->name,
             objective->label_allowed);
    return row_error(scorer, rows, row, why);
}

/* A row of values that are too large is a bad line of its file. */
static int check_reach(struct scorer *scorer, const struct source_rows *rows, uint32_t row,
                       const double *margins, bool *bad) {
    uint32_t k = 0, outputs = scorer->model->layout.outputs;
    char why[128];
    while (k < outputs && !response_out_of_reach(scorer->objective, margins[k]))
        k++;
    *bad = k < outputs;
    if (!*bad)
        return 0;
    snprintf(why, sizeof why, "the values are too large for this model: its margin is %g",
             margins[k]);
    return rows->line ? source_reject(&scorer->report, scorer->path, scorer->bad_lines_max,
                                      source_row_line(rows, row), why)
                      : row_error(scorer, rows, row, why);
}

static int check_row(struct scorer *scorer, const struct source_rows *rows,
                     const struct scored_row *row, const double *margins, bool *bad) {
    const struct model_layout *layout = &scorer->model->layout;
    enum source_format format = scorer->report.format;
    bool complete = source_is_table(format) || format == FORMAT_IDX || format == FORMAT_NPY;
    if (complete && !layout->table && row->known < layout->features)
        return missing_values_error(scorer, rows, row->number, row->known);
    int code = check_reach(scorer, rows, row->number, margins, bad);
    return code || *bad || !scorer->figures ? code : check_label(scorer, rows, row->number);
}

/* Columns must be what they were in the training data. Of a model without a table, a header must
 * name them as the header of the training data did. */
static int check_columns(struct scorer *scorer) {
    const struct model_layout *layout = &scorer->model->layout;
    char **names = scorer->report.column_names;
    const uint64_t columns = names_count(names);
    scorer->names_checked = true;
    if (layout->table && scorer->report.table)
        return term_mapper_check_table(&scorer->mapper, scorer->path, scorer->report.table, true);
    for (uint64_t j = 0; layout->feature_names && j < layout->features; j++) {
        uint64_t column = layout->feature_id[j];
        if (!*layout->feature_names[j] || column < 1 || column > columns)
            continue;
        json_t *name = text_to_json(names[column - 1]); /* the form that names have in a model */
        bool same = strcmp(json_string_value(name), layout->feature_names[j]) == 0;
        json_decref(name);
        if (!same)
            return error_set(ERROR_DATA,
                             "%s:1: column %llu is named \"%s\", but \"%s\" in the data that the "
                             "model was trained on; if this file has no header line, use "
                             "--set csv.header=no",
                             scorer->path, (unsigned long long)column, names[column - 1],
                             layout->feature_names[j]);
    }
    return 0;
}

/* Writes a line for each bad line of the file, from number *next on, that stands before `row`. */
static void write_bad(const struct scorer *scorer, const struct source_rows *rows, uint32_t row,
                      uint64_t *next) {
    for (; *next < rows->bad_count && rows->bad[*next].row <= row; ++*next)
        if (scorer->lines)
            lines_write_bad(scorer->lines, NULL);
}

/* Counts and writes row `number` of the block. */
static int score_row(struct scorer *scorer, const struct source_rows *rows, uint32_t number,
                     const double *margins) {
    const struct scored_row *scored = &scorer->row[number];
    uint32_t row = scored->number;
    bool bad = false;
    int code = check_row(scorer, rows, scored, margins, &bad);
    if (bad && !code && scorer->lines)
        lines_write_bad(scorer->lines, source_row_carried(rows, row));
    if (code || bad)
        return code;
    if (scorer->figures)
        figures_add(scorer->figures, margins, rows->label[row],
                    rows->label_text ? rows->label_text[row] : NULL,
                    rows->weight ? rows->weight[row] : 1);
    if (scorer->contributions) {
        const double *values;
        size_t count;
        const uint64_t *features = margins_row_terms(scorer->margins, number, &values, &count);
        explainer_row(scorer->output->explainer, features, values, count, scorer->contributions);
    }
    if (scorer->lines)
        lines_write(scorer->lines, margins, scorer->contributions, source_row_carried(rows, row));
    return 0;
}

/* The labels of the block's rows, for a plug-in whose losses are wanted; else NULL. */
static const double *find_labels(struct scorer *scorer, const struct source_rows *rows) {
    if (!scorer->figures || !margins_take_labels(scorer->margins))
        return NULL;
    for (uint32_t i = 0; i < scorer->rows; i++) {
        uint32_t row = scorer->row[i].number;
        scorer->label[i] = figures_label(scorer->figures, rows->label[row],
                                         rows->label_text ? rows->label_text[row] : NULL);
    }
    return scorer->label;
}

/* Scores the block; *bad is as *next of write_bad(). */
static int score_block(struct scorer *scorer, const struct source_rows *rows, uint64_t *bad) {
    const double *margins, *labels = find_labels(scorer, rows);
    uint32_t count = scorer->rows, outputs = scorer->model->layout.outputs;
    int code = margins_compute(scorer->margins, labels, &margins);
    const double *losses = margins_losses(scorer->margins);
    scorer->rows = 0;
    for (uint32_t i = 0; i < count && !code; i++) {
        write_bad(scorer, rows, scorer->row[i].number, bad);
        if (losses)
            figures_give_loss(scorer->figures, losses[i]);
        code = score_row(scorer, rows, i, margins + (size_t)i * outputs);
    }
    return code;
}

static int cannot_write(const struct score_output *output) {
    return error_set_stream(output->file, output->name ? output->name : "the predictions");
}

static int score_rows(void *context, const struct source_rows *rows) {
    struct scorer *scorer = context;
    uint64_t bad = 0;
    int code = scorer->names_checked ? 0 : check_columns(scorer);
    for (uint32_t row = 0; row < rows->count && !code; row++) {
        if (scorer->pick && !holdout_picks(scorer->pick, holdout_hash(rows, row)))
            continue;
        /* Adds a row to the block. */
        uint64_t known =
            term_mapper_row(&scorer->mapper, rows, row, margins_terms(scorer->margins));
        bool shifts = rows->offset && offsets_needed(&scorer->model->layout);
        margins_end_row(scorer->margins, shifts ? rows->offset[row] : 0);
        assert(scorer->rows < MARGINS_ROWS_MAX);
        scorer->row[scorer->rows++] = (struct scored_row){row, known};
        if (margins_full(scorer->margins))
            code = score_block(scorer, rows, &bad);
    }
    if (!code)
        code = score_block(scorer, rows, &bad);
    if (code)
        return code;
    write_bad(scorer, rows, rows->count, &bad);
    /* Whoever asks row by row waits for the answer. */
    if (scorer->output && scorer->streams)
        fflush(scorer->output->file);
    if (scorer->output && ferror(scorer->output->file))
        return cannot_write(scorer->output);
    return 0;
}

static int read_files(struct scorer *scorer, char *const *paths, const struct source_beside *beside,
                      const struct source_options *options, unsigned threads) {
    struct source_options reading = *options;
    for (uint32_t number = 0; *paths; paths++, number++) {
        scorer->path = source_name(*paths);
        scorer->names_checked = false;
        scorer->streams = source_is_stream(*paths);
        if (beside)
            source_beside_name(beside, number, &reading);
        struct source_report *report = &scorer->report;
        int code = offsets_check_options(&scorer->model->layout, scorer->path, &reading);
        if (!code)
            code = source_read(*paths, &reading, threads, score_rows, scorer, report);
        if (!code && !report->rows)
            log_info("%s has no rows: it is passed over", scorer->path);
        if (!code)
            source_warn_rejected(scorer->path, report->rejected,
                                 (const char *const *)report->rejected_reasons,
                                 names_count(report->rejected_reasons));
        source_report_release(report);
        if (code)
            return code;
    }
    if (scorer->output && fflush(scorer->output->file))
        return cannot_write(scorer->output);
    return 0;
}

static int read_packs(struct scorer *scorer, struct pack *const *packs, uint32_t count) {
    int code = 0;
    for (uint32_t i = 0; i < count && !code; i++) {
        scorer->path = pack_source(packs[i]);
        scorer->names_checked = false;
        pack_report(packs[i], &scorer->report);
        code = offsets_check_pack(&scorer->model->layout, scorer->path, &scorer->report);
        if (!code)
            code = pack_read_with_texts(packs[i], score_rows, scorer);
        source_report_release(&scorer->report);
    }
    return code;
}

static void scorer_init(struct scorer *scorer, const struct model *model) {
    *scorer = (struct scorer){.model = model, .objective = objective_find(model->layout.objective)};
    scorer->margins = margins_new(model);
    term_mapper_init(&scorer->mapper, model);
}

static void warn_of_unseen(const struct term_mapper *mapper) {
    const struct table *table = mapper->model->layout.table;
    const char *text = table ? mapper->counts[mapper->unseen_column].text : NULL;
    char column[COLUMN_TEXT], *such = NULL;
    if (text)
        such = memory_format(
            ", such as \"%.40s\" in %s%s", text,
            table_describe(mapper->model->layout.table, mapper->unseen_column, column),
            text_is_utf8(text) ? "" : ", which is not UTF-8; that of training may have been");
    log_info("%llu %s nothing to the predictions%s", (unsigned long long)mapper->unseen,
             mapper->unseen == 1 ? "value or text that training did not have adds"
                                 : "values or texts that training did not have add",
             such ? such : "");
    free(such);
}

/* A column that says nothing of any row is more often written in another way than it is news. */
static void warn_of_mute(const struct term_mapper *mapper) {
    const struct table *table = mapper->model->layout.table;
    char column[COLUMN_TEXT];
    for (uint32_t i = 0; table && i < table->columns; i++) {
        const struct term_counts *counts = &mapper->counts[i];
        if (!term_mapper_column_is_mute(mapper, i))
            continue;
        table_describe(table, i, column);
        if (counts->unseen)
            log_warning("%s: none of %llu rows has a text that training had%s%.40s%s: the column "
                        "adds nothing to the predictions",
                        column, (unsigned long long)mapper->rows,
                        counts->text ? ", but such as \"" : "", counts->text ? counts->text : "",
                        counts->text ? "\"" : "");
        else
            log_warning("%s is missing in each of %llu rows, and was not in training", column,
                        (unsigned long long)mapper->rows);
    }
}

/* Releases what the scorer holds; fills the figures if `code` is 0. Returns `code`. */
static int scorer_finish(struct scorer *scorer, int code, struct score_figures *figures) {
    if (!code && figures) {
        figures_finish(scorer->figures, figures);
        figures->unseen_features = scorer->mapper.unseen;
    }
    if (!code && scorer->lines && scorer->mapper.unseen)
        warn_of_unseen(&scorer->mapper);
    if (!code)
        warn_of_mute(&scorer->mapper);
    lines_free(scorer->lines);
    free(scorer->contributions);
    figures_free(scorer->figures);
    margins_free(scorer->margins);
    term_mapper_release(&scorer->mapper);
    return code;
}

int score_files(const struct model *model, char *const *paths, const struct source_beside *beside,
                const struct source_options *options, unsigned threads,
                const struct score_output *output, struct score_figures *figures) {
    struct scorer scorer;
    int code = output ? score_check_output(&model->layout, output) : 0;
    if (code)
        return code;
    scorer_init(&scorer, model);
    if (figures)
        scorer.figures = figures_new(&model->layout, FIGURES_ALL);
    scorer.output = output;
    if (output && output->explainer)
        scorer.contributions =
            memory_new((size_t)model->layout.outputs * explainer_columns(output->explainer),
                       sizeof *scorer.contributions);
    if (output) {
        scorer.lines = lines_new(&model->layout, output);
        lines_write_header(scorer.lines);
    }
    struct source_options reading = *options;
    reading.property.ignores_weights = !figures;
    scorer.bad_lines_max = reading.bad_lines_max;
    return scorer_finish(&scorer, read_files(&scorer, paths, beside, &reading, threads), figures);
}

int score_packs(const struct model *model, struct pack *const *packs, uint32_t count,
                const struct holdout_pick *pick, struct score_figures *figures) {
    struct scorer scorer;
    scorer_init(&scorer, model);
    scorer.figures = figures_new(&model->layout, FIGURES_ALL);
    scorer.pick = pick;
    return scorer_finish(&scorer, read_packs(&scorer, packs, count), figures);
}

int score_margins(const struct model *model, struct pack *const *packs, uint32_t count,
                  const struct holdout_pick *pick, struct ranking **ranking) {
    struct scorer scorer;
    scorer_init(&scorer, model);
    scorer.figures = figures_new(&model->layout, FIGURES_MARGINS);
    scorer.pick = pick;
    int code = read_packs(&scorer, packs, count);
    *ranking = figures_take_ranking(scorer.figures);
    if (code) {
        ranking_free(*ranking);
        *ranking = NULL;
    }
    return scorer_finish(&scorer, code, NULL);
}

int score_labels(const struct model *model, struct pack *const *packs, uint32_t count,
                 struct score_figures *figures) {
    struct scorer scorer;
    scorer_init(&scorer, model);
    scorer.figures = figures_new(&model->layout, FIGURES_LABELS);
    return scorer_finish(&scorer, read_packs(&scorer, packs, count), figures);
}

#define CLASSES_LISTED 5

int score_check_labels(const struct score_figures *figures, const char *where, uint32_t classes,
                       const char *const *class_names) {
    unsigned long long examples = figures->examples;
    if (!examples)
        return error_set(ERROR_DATA, "%s: there is no row with a label", where);
    if (figures->unseen_labels < examples)
        return 0;
    if (!classes)
        return error_set(ERROR_DATA,
                         "%s: none of the %llu labels (%s) is a number, and numbers are trained on",
                         where, examples, figures->unseen);
    /* The first classes that were trained on, for a message. */
    char *list = memory_copy_string("");
    for (uint32_t i = 0; i < classes && i < CLASSES_LISTED; i++) {
        char *more = memory_format("%s%s%s", list, i ? ", " : "", class_names[i]);
        free(list);
        list = more;
    }
    int code =
        error_set(ERROR_DATA,
                  "%s: none of the %llu labels (%s) is one of those that are trained on "
                  "(%s%s); is it data of the same kind, and its label in the same column?",
                  where, examples, figures->unseen, list, classes > CLASSES_LISTED ? ", ..." : "");
    free(list);
    return code;
}
