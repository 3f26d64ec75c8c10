/* The tables of `jobs --diff`. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/diff.h"

#define NAME_COLUMNS 22
#define VALUE_COLUMNS 22

static void put_cell(const char *text, int columns) {
    size_t length = strlen(text);
    terminal_put(stdout, false, STYLE_PLAIN, text);
    printf("%*s ", length < (size_t)columns ? columns - (int)length : 0, "");
}

/* A line of a table. A value that is longer than its column pushes the next one to a line below. */
static void put_row(const char *name, const char *a, const char *b, const char *more) {
    const bool wide = strlen(a) > VALUE_COLUMNS;
    put_cell(name, NAME_COLUMNS);
    if (*b || *more)
        put_cell(a, wide ? 0 : VALUE_COLUMNS);
    else
        terminal_put(stdout, false, STYLE_PLAIN, a);
    if (wide && (*b || *more))
        printf("\n%*s", NAME_COLUMNS + VALUE_COLUMNS + 2, "");
    if (*more)
        put_cell(b, VALUE_COLUMNS);
    else
        terminal_put(stdout, false, STYLE_PLAIN, b);
    puts(more);
}

static void put_heading(const char *name, const char *a, const char *b, const char *more) {
    putchar('\n');
    put_row(name, a, b, more);
}

static void print_run(const char *letter, const json_t *run) {
    char started[CLOCK_MINUTE];
    clock_minute(member_count(run, "started_ms"), started);
    const json_t *reason = json_object_get(run, "reason");
    const char *ended =
        json_is_string(reason) ? json_string_value(reason) : member_text(run, "state");
    printf("%s  run %lld of ", letter, member_count(run, "run"));
    escape_put(member_text(run, "folder"), stdout);
    printf(", %s: %s%s", started, ended,
           json_is_false(json_object_get(run, "converged")) ? ", not converged" : "");
    static const char *const members[] = {"publication", "tag", "note"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const char *text = json_string_value(json_object_get(run, members[i]));
        if (text && *text) {
            fputs(", ", stdout);
            escape_put(text, stdout);
        }
    }
    putchar('\n');
}

/* A value as it stands in JSON, numbers with six digits; "-" for none. Free it. */
static char *value_text(const json_t *value) {
    return !value || json_is_null(value)
               ? memory_copy_string("-")
               : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
}

static void print_settings(const json_t *settings) {
    size_t i;
    const json_t *setting;
    const char *heading = NULL;
    json_array_foreach(settings, i, setting) {
        const json_t *set = json_object_get(setting, "set"), *values;
        const bool is_set =
            json_is_true(json_array_get(set, 0)) || json_is_true(json_array_get(set, 1));
        const char *its = is_set ? "settings" : "other defaults";
        if (!heading || strcmp(heading, its) != 0)
            put_heading(its, "A", "B", "");
        heading = its;
        values = json_object_get(setting, "values");
        char *a = value_text(json_array_get(values, 0)), *b = value_text(json_array_get(values, 1));
        put_row(member_text(setting, "key"), a, b, "");
        free(a);
        free(b);
    }
    if (!heading)
        puts("\nsettings               no difference");
}

/* What a run read of a file. Free it. */
static char *file_text(const json_t *file) {
    if (!json_is_object(file))
        return memory_copy_string("-");
    return memory_format("%lld rows, %.8s", member_count(file, "rows"),
                         member_text(file, "fingerprint"));
}

#define FILES_SHOWN 20

static void print_data(const json_t *data) {
    const json_t *rows = json_object_get(data, "rows"), *files = json_object_get(data, "files");
    const json_t *count = json_object_get(data, "count"), *file;
    const bool same = json_is_true(json_object_get(data, "same"));
    const char *const words = same ? "no difference"
                              : json_array_size(files)
                                  ? ""
                                  : "the files are the same; the rows, columns or weights made of "
                                    "them differ";
    char *of[2];
    for (size_t i = 0; i < 2; i++)
        of[i] = memory_format("%lld rows in %lld file%s",
                              (long long)json_integer_value(json_array_get(rows, i)),
                              (long long)json_integer_value(json_array_get(count, i)),
                              json_integer_value(json_array_get(count, i)) == 1 ? "" : "s");
    put_heading("data", "A", "B", "");
    put_row("", of[0], of[1], "");
    free(of[0]);
    free(of[1]);
    size_t i;
    json_array_foreach(files, i, file) {
        if (i == FILES_SHOWN) {
            printf("%*s %zu more files differ; --json has all\n", NAME_COLUMNS, "",
                   json_array_size(files) - i);
            break;
        }
        char *a = file_text(json_object_get(file, "a")), *b = file_text(json_object_get(file, "b"));
        put_row(member_text(file, "path"), a, b, "");
        free(a);
        free(b);
    }
    if (*words)
        put_row("", words, "", "");
}

static char *number_text(const json_t *value) {
    return json_is_integer(value) ? memory_format("%lld", (long long)json_integer_value(value))
           : json_is_real(value)  ? memory_format("%.6g", json_real_value(value))
                                  : memory_copy_string("-");
}

static void print_pair(const char *name, const json_t *values) {
    const json_t *x = json_array_get(values, 0), *y = json_array_get(values, 1);
    char *a = number_text(x), *b = number_text(y), *more = memory_copy_string("");
    if (json_is_number(x) && json_is_number(y)) {
        free(more);
        more = json_equal(x, y)
                   ? memory_copy_string("=")
                   : memory_format("%+.4g", json_number_value(y) - json_number_value(x));
    }
    put_row(name, a, b, more);
    free(a);
    free(b);
    free(more);
}

/* Figures that neither run has are left out. */
static void print_figures(const char *of, const json_t *figures) {
    const char *name;
    json_t *values;
    if (!json_is_object(figures))
        return;
    put_heading(of, "A", "B", "B - A");
    json_object_foreach((json_t *)(uintptr_t)figures, name, values) {
        if (json_is_number(json_array_get(values, 0)) || json_is_number(json_array_get(values, 1)))
            print_pair(name, values);
    }
}

static void print_coefficients(const json_t *all) {
    const json_t *largest = json_object_get(all, "largest"), *one;
    const char *why = json_string_value(json_object_get(all, "why"));
    if (why) {
        fputs("\ncoefficients           not compared: ", stdout);
        escape_put(why, stdout);
        putchar('\n');
        return;
    }
    const bool by_deviation = strcmp(member_text(all, "by"), "deviation") == 0;
    put_heading("coefficients", "A", "B", by_deviation ? "B - A, times deviation" : "B - A");
    size_t i;
    json_array_foreach(largest, i, one) {
        const char *class = json_string_value(json_object_get(one, "class"));
        char *name = class ? memory_format("%s, %s", member_text(one, "feature"), class)
                           : memory_copy_string(member_text(one, "feature"));
        const json_t *weights = json_object_get(one, "weights");
        const double a = json_number_value(json_array_get(weights, 0));
        const double b = json_number_value(json_array_get(weights, 1));
        const double deviation = member_number(one, "deviation");
        char *x = memory_format("%.6g", a), *y = memory_format("%.6g", b);
        char *more = !by_deviation         ? memory_format("%+.4g", b - a)
                     : isfinite(deviation) ? memory_format("%+.4g", (b - a) * deviation)
                                           : memory_copy_string("-");
        put_row(name, x, y, more);
        free(name);
        free(x);
        free(y);
        free(more);
    }
    printf("%*s %lld of %lld differ", NAME_COLUMNS, "", member_count(all, "differ"),
           member_count(all, "weights"));
    puts(json_array_size(largest) < (size_t)member_count(all, "differ") ? "; these differ most"
                                                                        : "");
}

void diff_print(const json_t *diff) {
    const json_t *runs = json_object_get(diff, "runs");
    assert(json_array_size(runs) == 2);
    print_run("A", json_array_get(runs, 0));
    print_run("B", json_array_get(runs, 1));
    print_settings(json_object_get(diff, "settings"));
    print_data(json_object_get(diff, "data"));
    print_figures("training", json_object_get(diff, "training"));
    print_figures("holdout", json_object_get(diff, "holdout"));
    if (json_is_false(json_object_get(diff, "same_holdout")))
        puts("                       on different rows, so these figures are not comparable");
    print_figures("test", json_object_get(diff, "test"));
    print_coefficients(json_object_get(diff, "coefficients"));
}
