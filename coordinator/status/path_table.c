#include "coordinator/status/path_table.h"

#include <stdbool.h>
#include <stdio.h>

#include "coordinator/status/members.h"

static void print_number(const json_t *row, const char *member, const char *format)
    __attribute__((format(printf, 3, 0)));

static void print_number(const json_t *row, const char *member, const char *format) {
    const json_t *value = json_object_get(row, member);
    char text[32] = "-";
    if (json_is_number(value))
        snprintf(text, sizeof text, format, json_number_value(value));
    printf(" %11s", text);
}

static void print_head(bool penalties, bool folds) {
    printf("\n%11s", "l2");
    if (penalties)
        printf(" %11s %11s", "l1", "nonzero");
    printf(" %11s", "loss");
    if (folds)
        printf(" %11s %11s", "fold mean", "deviation");
    else
        printf(" %11s", "holdout");
    printf(" %5s %6s  %s\n", "run", "evals", "ended");
}

static void print_row(const json_t *row, bool penalties, bool folds) {
    const json_t *over = json_object_get(row, "folds");
    printf("%11.4g", member_number(row, "l2"));
    if (penalties) {
        print_number(row, "l1", "%.4g");
        print_number(row, "nonzero", "%.0f");
    }
    print_number(row, "loss", "%.6g");
    if (folds) {
        print_number(over, "mean", "%.6g");
        print_number(over, "deviation", "%.2g");
    } else {
        print_number(row, "holdout_loss", "%.6g");
    }
    printf(" %5lld %6lld  %s%s\n", member_count(row, "run"), member_count(row, "evaluations"),
           member_text(row, "reason"),
           json_is_true(json_object_get(row, "chosen")) ? ", chosen" : "");
}

void path_table_print(const json_t *result) {
    const json_t *path = json_object_get(result, "path"), *first = json_array_get(path, 0);
    bool penalties = false, folds = json_object_get(first, "folds");
    size_t i;
    json_t *row;
    if (!first)
        return;
    json_array_foreach(path, i, row) penalties |= member_number(row, "l1") > 0;
    print_head(penalties, folds);
    json_array_foreach(path, i, row) print_row(row, penalties, folds);
}
