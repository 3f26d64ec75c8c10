#include "coordinator/command/summary_print.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

#define WIDTH 80
#define WIDTH_WIDE 120
#define NAME_LEAST 12
#define NUMBERS (2 * 11 + 2 * 9 + 2 * 10) /* columns of a row besides its name */
#define RATIOS (3 * 10)                   /* more of them */
#define P_LEAST 2.2e-16                   /* R prints what is less as <2e-16 */

/* ---- cells ---- */

enum { CELL = 24 };

static void put_number(FILE *out, const json_t *row, const char *member, int columns, int digits) {
    const json_t *value = json_object_get(row, member);
    char text[CELL] = "-";
    if (json_is_number(value))
        snprintf(text, sizeof text, "%.*g", digits, json_number_value(value));
    fprintf(out, " %*s", columns - 1, text);
}

static void put_statistic(FILE *out, const json_t *row) {
    const json_t *value = json_object_get(row, "statistic");
    double number = json_number_value(value);
    char text[CELL] = "-";
    if (json_is_number(value))
        snprintf(text, sizeof text, fabs(number) < 1e4 ? "%.2f" : "%.2e", number);
    fprintf(out, " %8s", text);
}

static void put_p(FILE *out, const json_t *row) {
    const json_t *value = json_object_get(row, "p");
    double p = json_number_value(value);
    char text[CELL] = "-";
    if (json_is_number(value) && p < P_LEAST)
        snprintf(text, sizeof text, "<2e-16");
    else if (json_is_number(value))
        snprintf(text, sizeof text, p < 1e-4 ? "%.1e" : "%.4f", p);
    fprintf(out, " %8s", text);
}

/* ---- the table ---- */

struct layout_of_text {
    int name;    /* columns of the names */
    bool ratios; /* beside the estimates */
};

static const char *text_of(const json_t *row, const char *member) {
    const char *text = json_string_value(json_object_get(row, member));
    return text ? text : "";
}

/* Names are cut only where lines would be longer than a terminal's, and two names that begin alike
 * would then look the same. */
static struct layout_of_text plan(const json_t *rows, bool has_ratio) {
    int longest = NAME_LEAST;
    size_t i;
    json_t *row;
    struct layout_of_text layout = {.ratios =
                                        has_ratio && terminal_columns(STDOUT_FILENO) >= WIDTH_WIDE};
    json_array_foreach(rows, i, row) {
        int columns = terminal_text_columns(text_of(row, "name"));
        longest = columns > longest ? columns : longest;
    }
    const int room =
        terminal_room(STDOUT_FILENO, NAME_LEAST, NUMBERS + (layout.ratios ? RATIOS : 0));
    layout.name = longest < room ? longest : room;
    return layout;
}

/* Puts the name of a class into a line that has `others` columns besides. */
static void put_class(const char *name, int others, FILE *out) {
    terminal_put_cut(out, false, STYLE_PLAIN, name,
                     terminal_room(STDOUT_FILENO, NAME_LEAST, others));
}

static void put_heading(const json_t *table, const struct layout_of_text *layout, FILE *out,
                        bool colors) {
    double level = 100 * json_number_value(json_object_get(table, "level"));
    char text[WIDTH_WIDE * 2], interval[CELL];
    snprintf(interval, sizeof interval, "%.4g%% interval", level);
    int length = snprintf(text, sizeof text, " %10s %10s %8s %8s %19s", "estimate", "error",
                          text_of(table, "test"), "p", interval);
    if (layout->ratios)
        snprintf(text + length, sizeof text - (size_t)length, " %9s %19s", "ratio", interval);
    fprintf(out, "%*s", layout->name, "");
    terminal_put(out, colors, STYLE_HEADING, text);
    putc('\n', out);
}

static void put_row(const json_t *row, const struct layout_of_text *layout, FILE *out) {
    terminal_put_cell(out, false, STYLE_PLAIN, text_of(row, "name"), layout->name);
    if (json_is_true(json_object_get(row, "aliased"))) {
        put_number(out, row, "estimate", 11, 5);
        fprintf(out, "  %s\n",
                json_is_true(json_object_get(row, "reference")) ? "(reference level)"
                                                                : "(aliased)");
        return;
    }
    put_number(out, row, "estimate", 11, 5);
    put_number(out, row, "error", 11, 4);
    put_statistic(out, row);
    put_p(out, row);
    put_number(out, row, "low", 10, 3);
    put_number(out, row, "high", 10, 3);
    if (layout->ratios) {
        put_number(out, row, "ratio", 10, 4);
        put_number(out, row, "ratio_low", 10, 3);
        put_number(out, row, "ratio_high", 10, 3);
    }
    putc('\n', out);
}

static void put_estimates(const json_t *table, const struct layout_of_text *layout, FILE *out,
                          bool colors) {
    size_t i;
    json_t *row;
    const char *class = "";
    put_heading(table, layout, out, colors);
    json_array_foreach(json_object_get(table, "rows"), i, row) {
        const char *own = text_of(row, "class");
        if (strcmp(own, class) != 0) {
            fputs("class ", out);
            terminal_put(out, colors, STYLE_HEADING, own);
            putc('\n', out);
        }
        class = own;
        put_row(row, layout, out);
    }
}

/* Where the table has no room for them. */
static void put_ratios(const json_t *table, const struct layout_of_text *layout, FILE *out,
                       bool colors) {
    size_t i;
    json_t *row;
    char text[WIDTH * 2], interval[CELL];
    snprintf(interval, sizeof interval, "%.4g%% interval",
             100 * json_number_value(json_object_get(table, "level")));
    snprintf(text, sizeof text, " %14s %25s", text_of(table, "ratio"), interval);
    fprintf(out, "\n%*s", layout->name, "");
    terminal_put(out, colors, STYLE_HEADING, text);
    putc('\n', out);
    json_array_foreach(json_object_get(table, "rows"), i, row) {
        if (json_is_true(json_object_get(row, "aliased")) ||
            strncmp(text_of(row, "name"), "(intercept", strlen("(intercept")) == 0)
            continue;
        terminal_put_cell(out, false, STYLE_PLAIN, text_of(row, "name"), layout->name);
        put_number(out, row, "ratio", 15, 5);
        put_number(out, row, "ratio_low", 13, 4);
        put_number(out, row, "ratio_high", 13, 4);
        if (*text_of(row, "class")) {
            fputs("  class ", out);
            put_class(text_of(row, "class"), layout->name + 15 + 13 + 13 + 8, out);
        }
        putc('\n', out);
    }
}

/* ---- above and below ---- */

static void put_fit_head(const json_t *table, FILE *out) {
    static const struct {
        const char *name, *words;
    } errors[] = {{"model", "errors from second derivatives"},
                  {"bayesian", "errors of a normal prior"},
                  {"HC0", "robust errors (HC0)"},
                  {"HC1", "robust errors (HC1)"},
                  {"cluster", "errors for clusters"},
                  {"none", "no errors"}};
    const json_t *fit = json_object_get(table, "fit");
    const json_t *clusters = json_object_get(table, "clusters");
    const char *shown = text_of(table, "errors");
    fputs(text_of(table, "objective"), out);
    if (*text_of(fit, "distribution"))
        fprintf(out, ": %s, link %s", text_of(fit, "distribution"), text_of(fit, "link"));
    if (*text_of(table, "positive")) {
        fputs(", of class ", out);
        put_class(text_of(table, "positive"), WIDTH - NAME_LEAST, out);
    }
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strcmp(errors[i].name, shown) == 0)
            fprintf(out, "; %s", errors[i].words);
    if (strcmp(shown, "cluster") == 0) {
        fprintf(out, ": %lld of ", member_count(clusters, "count"));
        escape_put(text_of(clusters, "column"), out);
    }
    fputs("\n\n", out);
}

static void put_pair(const json_t *fit, const char *name, const char *member, const char *of,
                     FILE *out) {
    const json_t *value = json_object_get(fit, member), *freedom = json_object_get(fit, of);
    if (!json_is_number(value))
        return;
    fprintf(out, "%-19s %.10g", name, json_number_value(value));
    if (json_is_number(freedom))
        fprintf(out, " on %.10g degrees of freedom", json_number_value(freedom));
    putc('\n', out);
}

static void put_fit(const json_t *fit, FILE *out) {
    if (!fit)
        return;
    putc('\n', out);
    put_pair(fit, "null deviance", "null_deviance", "null_freedom", out);
    put_pair(fit, "residual deviance", "deviance", "freedom", out);
    put_pair(fit, "Pearson chi2", "pearson", "", out);
    put_pair(fit, "dispersion", "dispersion", "", out);
    put_pair(fit, "log-likelihood", "log_likelihood", "", out);
    put_pair(fit, "AIC", "aic", "", out);
    put_pair(fit, "BIC", "bic", "", out);
    put_pair(fit, "parameters", "parameters", "", out);
    fprintf(out, "%-19s %lld", "rows", member_count(fit, "rows"));
    if (json_number_value(json_object_get(fit, "weight")) != (double)member_count(fit, "rows"))
        fprintf(out, ", weight %.10g", json_number_value(json_object_get(fit, "weight")));
    putc('\n', out);
}

/* Words are parted at blanks, so that no line has more than WIDTH columns. */
static void put_note(const char *text, FILE *out) {
    int column = 0;
    putc('\n', out);
    while (*text) {
        size_t length = strcspn(text, " ");
        char *word = memory_format("%.*s", (int)length, text);
        if (column && column + 1 + terminal_text_columns(word) > WIDTH) {
            putc('\n', out);
            column = 0;
        }
        if (column++)
            putc(' ', out);
        else
            column = 0;
        terminal_put(out, false, STYLE_PLAIN, word);
        column += terminal_text_columns(word);
        free(word);
        text += length + (text[length] == ' ');
    }
    putc('\n', out);
}

void summary_print(const json_t *table, FILE *out, bool colors) {
    size_t i;
    json_t *note;
    bool has_ratio = json_is_string(json_object_get(table, "ratio"));
    struct layout_of_text layout = plan(json_object_get(table, "rows"), has_ratio);
    put_fit_head(table, out);
    put_estimates(table, &layout, out, colors);
    if (has_ratio && !layout.ratios && strcmp(text_of(table, "errors"), "none") != 0)
        put_ratios(table, &layout, out, colors);
    put_fit(json_object_get(table, "fit"), out);
    json_array_foreach(json_object_get(table, "notes"), i, note)
        put_note(json_string_value(note), out);
}
