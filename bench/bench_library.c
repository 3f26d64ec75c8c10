/* What a row costs by libdml: `bench_library MODEL ROWS.csv` scores the rows of a table one by one,
 * as texts and, where columns are numbers, as numbers, for a second each, and prints the user time
 * of a row. */
#define _GNU_SOURCE
#include <dml/model.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define COLUMNS_MAX 256
#define ROWS_MAX 4096
#define SECONDS 1.0

static double user_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

static void fail(const char *what) {
    fprintf(stderr, "bench_library: %s\n", what);
    exit(1);
}

static char *cells[ROWS_MAX + 1][COLUMNS_MAX]; /* the header first */
static const char *texts[ROWS_MAX][COLUMNS_MAX];
static double numbers[ROWS_MAX][COLUMNS_MAX];

static size_t read_rows(const char *path, size_t *columns) {
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0, rows = 0;
    if (!file)
        fail(path);
    while (rows <= ROWS_MAX && getline(&line, &capacity, file) >= 0) {
        char *at = strdup(line);
        at[strcspn(at, "\r\n")] = '\0';
        for (*columns = 0; at && *columns < COLUMNS_MAX; ++*columns)
            cells[rows][*columns] = strsep(&at, ",");
        rows++;
    }
    free(line);
    fclose(file);
    return rows - 1;
}

/* Scores the rows again and again, `block` at a time. */
static void measure(struct dml_scorer *scorer, const char *what, size_t rows, size_t columns,
                    size_t block) {
    static double values[ROWS_MAX];
    double begin = user_seconds(), seconds = 0;
    size_t scored = 0;
    while (seconds < SECONDS) {
        for (size_t i = 0; i + block <= rows; i += block, scored += block) {
            const struct dml_rows some = {.count = block,
                                          .texts = &texts[0][0] + i * columns,
                                          .numbers = &numbers[0][0] + i * columns};
            if (dml_score(scorer, &some, &(struct dml_scores){.values = values}, NULL))
                fail(dml_error_text());
        }
        seconds = user_seconds() - begin;
    }
    printf("%-28s %6.0f ns a row\n", what, seconds / (double)scored * 1e9);
}

/* Lays the rows out one behind the other; `as_numbers`: what is a number is one. */
static void lay_out(size_t rows, size_t columns, int as_numbers) {
    for (size_t i = 0; i < rows * columns; i++) {
        char *cell = cells[1 + i / columns][i % columns], *end;
        double number = strtod(cell, &end);
        int is_number = as_numbers && *cell && !*end;
        (&texts[0][0])[i] = is_number ? NULL : cell;
        (&numbers[0][0])[i] = is_number ? number : 0;
    }
}

int main(int argc, char **argv) {
    struct dml_model *model;
    struct dml_scorer *scorer;
    size_t columns = 0;
    if (argc != 3)
        fail("usage: bench_library MODEL ROWS.csv");
    size_t rows = read_rows(argv[2], &columns);
    if (dml_model_open(argv[1], &model) ||
        dml_scorer_of_columns(model, columns, (const char *const *)cells[0], 0, &scorer))
        fail(dml_error_text());
    for (int as_numbers = 0; as_numbers < 2; as_numbers++) {
        lay_out(rows, columns, as_numbers);
        measure(scorer, as_numbers ? "numbers, one by one" : "texts, one by one", rows, columns, 1);
        measure(scorer, as_numbers ? "numbers, 256 at a time" : "texts, 256 at a time", rows,
                columns, 256);
    }
    dml_scorer_free(scorer);
    dml_model_close(model);
    return 0;
}
