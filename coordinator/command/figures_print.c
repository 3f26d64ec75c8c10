#define _GNU_SOURCE
#include "coordinator/command/figures_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "coordinator/status/figures.h"

#define CLASSES_PRINTED_MAX 100
#define MATRIX_PRINTED_MAX 16 /* classes; so many fit beside each other */
#define NAME_COLUMNS 16
#define CELL_COLUMNS 10

static void print_value(const char *name, const json_t *value, FILE *out) {
    fprintf(out, "%-17s ", name);
    if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.10g", json_real_value(value));
    else
        fputs("not defined", out);
    if (strcmp(name, "weight") == 0)
        fputs(" in all; all figures are weighted", out);
    putc('\n', out);
}

static void print_name(const char *name, FILE *out) {
    terminal_put_cell(out, false, STYLE_PLAIN, name, NAME_COLUMNS);
}

/* At the right of a column, over its numbers; cut if it is longer. */
static void print_heading(const char *name, FILE *out) {
    char *text;
    size_t length;
    FILE *cut = open_memstream(&text, &length);
    int columns = terminal_put_cut(cut, false, STYLE_PLAIN, name, CELL_COLUMNS);
    fclose(cut);
    fprintf(out, " %*s%s", CELL_COLUMNS - columns, "", text);
    free(text);
}

static void print_cell(const json_t *value, FILE *out) {
    if (json_is_number(value))
        fprintf(out, " %*.5g", CELL_COLUMNS, json_number_value(value));
    else
        fprintf(out, " %*s", CELL_COLUMNS, "-");
}

static void print_count(const json_t *value, FILE *out) {
    if (json_is_integer(value))
        fprintf(out, " %*lld", CELL_COLUMNS, (long long)json_integer_value(value));
    else
        print_cell(value, out);
}

/* Figures of classes, by their names in JSON. Two classes have no figures of their ranking: those
 * of the one are those of the other. */
static const struct {
    const char *member, *heading;
} columns[] = {{"precision", "precision"},
               {"recall", "recall"},
               {"f1", "f1"},
               {"auc", "auc"},
               {"average_precision", "avg. prec."}};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void print_classes(const json_t *classes, FILE *out) {
    size_t k;
    json_t *class;
    const json_t *first = json_array_get(classes, 0);
    putc('\n', out);
    print_name("class", out);
    fprintf(out, " %*s", CELL_COLUMNS, "examples");
    for (size_t i = 0; i < COLUMNS; i++)
        if (json_object_get(first, columns[i].member))
            fprintf(out, " %*s", CELL_COLUMNS, columns[i].heading);
    putc('\n', out);
    json_array_foreach(classes, k, class) {
        print_name(member_text(class, "class"), out);
        print_count(json_object_get(class, "examples"), out);
        for (size_t i = 0; i < COLUMNS; i++)
            if (json_object_get(class, columns[i].member))
                print_cell(json_object_get(class, columns[i].member), out);
        putc('\n', out);
    }
}

static void print_matrix(const json_t *matrix, const json_t *classes, FILE *out) {
    size_t k, i;
    json_t *row, *cell;
    putc('\n', out);
    print_name("as predicted:", out);
    json_array_foreach(classes, k, row) print_heading(member_text(row, "class"), out);
    putc('\n', out);
    json_array_foreach(matrix, k, row) {
        print_name(member_text(json_array_get(classes, k), "class"), out);
        json_array_foreach(row, i, cell) print_count(cell, out);
        putc('\n', out);
    }
}

void figures_print(json_t *figures, FILE *out) {
    const char *name;
    json_t *value;
    json_object_foreach(figures, name, value) {
        if (!json_is_array(value))
            print_value(name, value, out);
    }
    const json_t *classes = json_object_get(figures, "classes");
    const json_t *matrix = json_object_get(figures, "confusion");
    size_t count = json_array_size(classes);
    if (count && count <= CLASSES_PRINTED_MAX)
        print_classes(classes, out);
    if (matrix && count <= MATRIX_PRINTED_MAX)
        print_matrix(matrix, classes, out);
}
