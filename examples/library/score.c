/* Scores the rows of standard input with a model of dml, by libdml: a line for each, as
 * `dml-coordinator predict` prints it.
 *
 *     score [--margins | --probabilities | --labels] MODEL < rows.csv
 *
 * Of a model of a table the rows are lines of CSV, and the first line has the names of the columns;
 * else they are lines of LIBSVM's format, with or without a label.
 *
 *     cc score.c $(pkg-config --cflags --libs dml) -o score */
#define _GNU_SOURCE
#include <dml/model.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 4096

enum shown { VALUES, MARGINS, PROBABILITIES, LABELS };

struct score {
    const struct dml_model *model;
    struct dml_scorer *scorer;
    enum shown shown;
    double *numbers;
    int32_t *labels;
    size_t width; /* how many of them a row has */
};

static void fail(const char *what) {
    fprintf(stderr, "score: %s\n", what);
    exit(65);
}

static void *room(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        fail("out of memory");
    return memory;
}

/* ---- output ---- */

static void print_labels(const struct score *score) {
    bool list = score->width > 1, first = true;
    for (size_t k = 0; k < score->width; k++) {
        size_t class = list ? k : (size_t)score->labels[0];
        if (list && !score->labels[k])
            continue;
        printf("%s%s", first ? "" : ",", dml_model_class(score->model, class));
        first = false;
    }
    putchar('\n');
}

static void score_row(const struct score *score, const struct dml_rows *row) {
    const struct dml_scores scores = {
        .values = score->shown == VALUES ? score->numbers : NULL,
        .margins = score->shown == MARGINS ? score->numbers : NULL,
        .probabilities = score->shown == PROBABILITIES ? score->numbers : NULL,
        .labels = score->shown == LABELS ? score->labels : NULL,
    };
    if (dml_score(score->scorer, row, &scores, NULL))
        fail(dml_error_text());
    if (score->shown == LABELS) {
        print_labels(score);
        return;
    }
    for (size_t k = 0; k < score->width; k++)
        printf("%s%.17g", k ? " " : "", score->numbers[k]);
    putchar('\n');
}

/* ---- CSV ---- */

/* Splits a line in place: quotes around a cell are taken off, and doubled ones in it are one. */
static size_t split(char *line, char **cell) {
    size_t count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at; count++) {
        char *to = at + 1, *from = at + 1;
        if (count == COLUMNS_MAX)
            fail("too many columns");
        if (*at != '"') {
            cell[count] = strsep(&at, ",");
            continue;
        }
        for (; *from && (*from != '"' || *++from == '"'); from++)
            *to++ = *from;
        cell[count] = at + 1;
        at = *from == ',' ? from + 1 : NULL;
        *to = '\0';
    }
    return count;
}

static void score_table(struct score *score) {
    static char *text[COLUMNS_MAX];
    char *line = NULL;
    size_t capacity = 0, columns;
    if (getline(&line, &capacity, stdin) < 0)
        fail("no header line");
    columns = split(line, text);
    if (dml_scorer_of_columns(score->model, columns, (const char *const *)text, 0, &score->scorer))
        fail(dml_error_text());
    while (getline(&line, &capacity, stdin) >= 0) {
        if (split(line, text) != columns)
            fail("another number of columns than the header has");
        score_row(score, &(struct dml_rows){.count = 1, .texts = (const char *const *)text});
    }
    free(line);
}

/* ---- LIBSVM ---- */

static void score_sparse(struct score *score) {
    static uint64_t ids[COLUMNS_MAX];
    static double values[COLUMNS_MAX];
    char *line = NULL;
    size_t capacity = 0;
    if (dml_scorer_of_sparse(score->model, &score->scorer))
        fail(dml_error_text());
    while (getline(&line, &capacity, stdin) >= 0) {
        size_t ends[2] = {0, 0};
        for (char *at = line, *word; (word = strsep(&at, " \r\n"));) {
            char *value = strchr(word, ':');
            if (!value)
                continue; /* the label */
            if (ends[1] == COLUMNS_MAX)
                fail("too many values");
            ids[ends[1]] = strtoull(word, NULL, 10);
            values[ends[1]++] = strtod(value + 1, NULL);
        }
        score_row(score,
                  &(struct dml_rows){.count = 1, .start = ends, .ids = ids, .values = values});
    }
    free(line);
}

int main(int argc, char **argv) {
    static const char *const options[] = {"", "--margins", "--probabilities", "--labels"};
    struct score score = {0};
    struct dml_model *model;
    for (int i = LABELS; argc == 3 && i > VALUES; i--)
        if (!strcmp(argv[1], options[i]))
            score.shown = (enum shown)i;
    if (argc < 2 || argc > 3 || (argc == 3 && !score.shown)) {
        fputs("usage: score [--margins | --probabilities | --labels] MODEL < ROWS\n", stderr);
        return 64;
    }
    if (dml_model_open(argv[argc - 1], &model))
        fail(dml_error_text());
    score.model = model;
    score.width = score.shown == MARGINS         ? dml_model_margins(model)
                  : score.shown == PROBABILITIES ? dml_model_probabilities(model)
                  : score.shown == LABELS        ? dml_model_labels(model)
                                                 : dml_model_values(model);
    score.numbers = room(score.width, sizeof *score.numbers);
    score.labels = room(score.width, sizeof *score.labels);
    if (dml_model_columns(model))
        score_table(&score);
    else
        score_sparse(&score);
    dml_scorer_free(score.scorer);
    dml_model_close(model);
    free(score.numbers);
    free(score.labels);
    return 0;
}
