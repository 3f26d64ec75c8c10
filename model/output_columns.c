#include "model/output_columns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/text/number.h"
#include "model/cell.h"
#include "model/explanation.h"
#include "model/response.h"
#include "objective/objective.h"

struct output_column {
    enum output_kind { OUTPUT_CELL, OUTPUT_LABEL, OUTPUT_PREDICTION, OUTPUT_MARGIN } kind;
    uint32_t number; /* of the cell, the class or the output */
    char *name;      /* in the header, owned, */
    char *member;    /* and of an object: quoted for JSON, owned */
};

struct output_columns {
    const struct model_layout *layout;
    const struct objective *objective;
    struct output_column *column;
    uint32_t count;
    size_t capacity;
    const char **carried; /* names of columns of the data, owned, NULL-terminated; NULL: none */
    uint32_t carried_count;
};

/* In place of the number of a class: the one that is predicted. */
#define PREDICTED_CLASS UINT32_MAX

#define OF_DATA "column:"

/* ---- what a model has ---- */

static bool has_classes(const struct output_columns *columns) {
    return columns->objective->labels != LABEL_TARGET;
}

static bool is_binary(const struct output_columns *columns) {
    return columns->objective->labels == LABEL_BINARY;
}

/* ---- reading the list ---- */

/* Takes the name over. Members of an object have one name each. */
static int add_column(struct output_columns *columns, enum output_kind kind, uint32_t number,
                      char *name) {
    int code = 0;
    for (uint32_t i = 0; i < columns->count; i++)
        if (strcmp(columns->column[i].name, name) == 0)
            code = error_set(ERROR_USAGE, "`--columns` has %s twice", name);
    MEMORY_ROOM(columns->column, columns->count, columns->capacity);
    json_t *member = text_to_json(name);
    columns->column[columns->count++] =
        (struct output_column){kind, number, name, json_dumps(member, JSON_ENCODE_ANY)};
    json_decref(member);
    return code;
}

/* `name` is as the list has it, `cell` without what says that it is of the data. */
static int add_cell(struct output_columns *columns, const char *name, const char *cell) {
    if (!*cell)
        return error_set(ERROR_USAGE, "`--columns` has an empty name: give names with one comma "
                                      "between them, as in id,label");
    uint32_t number = columns->carried_count++;
    columns->carried =
        memory_resize(columns->carried, columns->carried_count + 1, sizeof *columns->carried);
    columns->carried[number] = memory_copy_string(cell);
    columns->carried[number + 1] = NULL;
    return add_column(columns, OUTPUT_CELL, number, memory_copy_string(name));
}

static int refuse(const struct output_columns *columns, const char *name, const char *why) {
    return error_set(ERROR_USAGE,
                     "`--columns`: there is no %s, since the model (objective %s) %s; a column of "
                     "the data that has this name is " OF_DATA "%s",
                     name, columns->layout->objective, why, name);
}

/* The class of that name; `classes` if there is none. */
static uint32_t find_class(const struct model_layout *layout, const char *name) {
    uint32_t k = 0;
    while (k < layout->classes && strcmp(layout->class_names[k], name) != 0)
        k++;
    return k;
}

/* The columns of each class, or of the one that is named after the colon. */
static int add_classes(struct output_columns *columns, enum output_kind kind, const char *what,
                       uint32_t first, const char *name) {
    const struct model_layout *layout = columns->layout;
    uint32_t one = name ? find_class(layout, name) : layout->classes;
    struct nearest nearest = {.text = name};
    for (uint32_t k = first; name && k < layout->classes; k++)
        nearest_offer(&nearest, layout->class_names[k]);
    if (name && (one == layout->classes || one < first))
        return error_set(ERROR_USAGE, "`--columns`: %s:%s: the model has no such class%s", what,
                         name, nearest_suggestion(&nearest, ""));
    int code = 0;
    for (uint32_t k = first; k < layout->classes && !code; k++)
        if (!name || k == one)
            code = add_column(columns, kind, kind == OUTPUT_MARGIN ? k - first : k,
                              memory_format("%s:%s", what, layout->class_names[k]));
    return code;
}

static int add_probability(struct output_columns *columns, const char *name, const char *class) {
    if (!(has_classes(columns) && columns->objective->predict))
        return refuse(columns, name, "has no probabilities");
    if (class || strcmp(name, "probabilities") == 0)
        return add_classes(columns, OUTPUT_PREDICTION, "probability", 0, class);
    if (columns->layout->separator)
        return refuse(columns, name,
                      "has a probability for each class: take probabilities, or probability:CLASS");
    return add_column(columns, OUTPUT_PREDICTION, is_binary(columns) ? 1 : PREDICTED_CLASS,
                      memory_copy_string("probability"));
}

static int add_margin(struct output_columns *columns, const char *name, const char *class) {
    bool one = is_binary(columns) || !has_classes(columns);
    if (!one && (class || strcmp(name, "margins") == 0))
        /* A margin belongs to a class, but for the one of two classes, or of a number. Of ordered
         * classes it is that of being in this class or a higher one, which the lowest does not
         * need. */
        return add_classes(columns, OUTPUT_MARGIN, "margin", columns->layout->shared ? 1 : 0,
                           class);
    if (!one)
        return refuse(columns, name, "has a margin for each class: take margins, or margin:CLASS");
    if (class)
        return refuse(columns, name, "has one margin for all: take margin");
    return add_column(columns, OUTPUT_MARGIN, 0, memory_copy_string("margin"));
}

/* What is after "probability:" in "probability:CLASS"; NULL if the text begins otherwise. */
static const char *behind(const char *text, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static int add_named(struct output_columns *columns, const char *name) {
    const char *class;
    if (behind(name, OF_DATA))
        return add_cell(columns, name, behind(name, OF_DATA));
    if (strcmp(name, "label") == 0) {
        if (!has_classes(columns))
            return refuse(columns, name, "predicts numbers: take value");
        return add_column(columns, OUTPUT_LABEL, 0, memory_copy_string(name));
    }
    if (strcmp(name, "value") == 0) {
        if (has_classes(columns))
            return refuse(columns, name, "predicts classes: take label");
        return add_column(columns, OUTPUT_PREDICTION, 0, memory_copy_string(name));
    }
    class = behind(name, "probability:");
    if (class || strcmp(name, "probability") == 0 || strcmp(name, "probabilities") == 0)
        return add_probability(columns, name, class);
    class = behind(name, "margin:");
    if (class || strcmp(name, "margin") == 0 || strcmp(name, "margins") == 0)
        return add_margin(columns, name, class);
    return add_cell(columns, name, name);
}

/* Takes the next name off the list, which it moves past the comma; NULL at the end of the list.
 */
static const char *next_name(const char *list, char *name) {
    bool quoted = *list == '"';
    for (list += quoted; *list && (quoted || *list != ','); list++) {
        if (quoted && *list == '"' && *++list != '"') {
            list += strcspn(list, ",");
            break;
        }
        *name++ = *list;
    }
    *name = '\0';
    return *list ? list + 1 : NULL;
}

int output_columns_parse(const struct model_layout *layout, const char *list,
                         struct output_columns **result) {
    struct output_columns *columns = memory_new(1, sizeof *columns);
    char *name = memory_new(strlen(list) + 1, 1);
    int code = 0;
    *columns =
        (struct output_columns){.layout = layout, .objective = objective_find(layout->objective)};
    for (const char *at = list; at && !code;) {
        at = next_name(at, name);
        code = add_named(columns, name);
    }
    free(name);
    *result = columns;
    return code;
}

void output_columns_free(struct output_columns *columns) {
    if (!columns)
        return;
    for (uint32_t i = 0; i < columns->count; i++) {
        free(columns->column[i].name);
        free(columns->column[i].member);
    }
    for (uint32_t i = 0; i < columns->carried_count; i++)
        free((char *)columns->carried[i]);
    free(columns->carried);
    free(columns->column);
    free(columns);
}

const char *const *output_columns_carried(const struct output_columns *columns) {
    return columns->carried;
}

/* ---- writing ---- */

static void write_text(const char *text, const struct score_output *output) {
    if (output->json) {
        json_t *string = text_to_json(text);
        json_dumpf(string, output->file, JSON_ENCODE_ANY);
        json_decref(string);
    } else
        output_write_cell(text, output->file);
}

/* The classes that are predicted, as a list of JSON or as labels of the data have them. */
static void write_classes(const struct output_columns *columns, const struct score_output *output,
                          const bool *predicted) {
    assert(predicted);
    const struct model_layout *layout = columns->layout;
    char *text = memory_copy_string("");
    json_t *list = json_array();
    for (uint32_t k = 0; k < layout->classes; k++) {
        if (!predicted[k])
            continue;
        char separator[2] = {*text ? layout->separator : '\0'};
        char *longer = memory_format("%s%s%s", text, separator, layout->class_names[k]);
        free(text);
        text = longer;
        json_array_append_new(list, json_string(layout->class_names[k]));
    }
    if (output->json)
        json_dumpf(list, output->file, JSON_COMPACT);
    else
        output_write_cell(text, output->file);
    json_decref(list);
    free(text);
}

static double find_prediction(const struct output_columns *columns, uint32_t class,
                              const struct output_answer *answer) {
    assert(class == PREDICTED_CLASS ||
           class < (is_binary(columns)
                        ? 2
                        : objective_predictions(columns->objective, columns->layout->outputs)));
    double both[2];
    if (!is_binary(columns))
        return answer->prediction[class == PREDICTED_CLASS ? answer->class : class];
    if (class == 1)
        return answer->prediction[0];
    response_both(columns->objective, columns->layout, answer->margins[0], both);
    return both[class];
}

static void write_answer(const struct output_columns *columns, const struct output_column *column,
                         const struct score_output *output, const struct output_answer *answer) {
    switch (column->kind) {
    case OUTPUT_CELL:
        write_text(answer->cells[column->number], output);
        break;
    case OUTPUT_LABEL:
        if (columns->layout->separator)
            write_classes(columns, output, answer->predicted);
        else
            write_text(columns->layout->class_names[answer->class], output);
        break;
    case OUTPUT_PREDICTION:
        fprintf(output->file, "%.17g", find_prediction(columns, column->number, answer));
        break;
    case OUTPUT_MARGIN:
        fprintf(output->file, "%.17g", answer->margins[column->number]);
        break;
    }
}

/* `answered`: the example has a prediction, and not cells alone. */
static void write_line(const struct output_columns *columns, const struct score_output *output,
                       const struct output_answer *answer, bool answered) {
    if (output->json)
        putc('{', output->file);
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct output_column *column = &columns->column[i];
        /* What is before column `i` of a line. */
        if (i)
            putc(',', output->file);
        if (output->json)
            fprintf(output->file, "%s:", columns->column[i].member);
        if (answered || (column->kind == OUTPUT_CELL && answer->cells))
            write_answer(columns, column, output, answer);
        else if (output->json)
            fputs("null", output->file);
    }
    if (output->explainer)
        explanation_write(columns->layout, output, answered ? answer->contributions : NULL);
    fputs(output->json ? "}\n" : "\n", output->file);
}

void output_columns_write_header(const struct output_columns *columns,
                                 const struct score_output *output) {
    FILE *file = output->file;
    for (uint32_t i = 0; i < columns->count; i++) {
        if (i)
            putc(',', file);
        output_write_cell(columns->column[i].name, file);
    }
    if (output->explainer)
        explanation_write_header(columns->layout, output);
    putc('\n', file);
}

void output_columns_write(const struct output_columns *columns, const struct score_output *output,
                          const struct output_answer *answer) {
    assert(answer->margins && answer->prediction);
    write_line(columns, output, answer, true);
}

void output_columns_write_bad(const struct output_columns *columns,
                              const struct score_output *output, const char *const *cells) {
    if (output->json && !cells)
        fputs("null\n", output->file);
    else
        write_line(columns, output, &(struct output_answer){.cells = cells}, false);
}
