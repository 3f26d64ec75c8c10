#include "model/classes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/text/number.h"
#include "model/response.h"

/* ---- which class a label means ---- */

struct named_number {
    double value;
    uint32_t class;
};

struct named_text {
    const char *value;
    uint32_t class;
};

struct class_table {
    struct named_number *numbers; /* names that are numbers, sorted */
    struct named_text *texts;     /* the others, sorted */
    uint32_t number_count, text_count;
    bool codes; /* some texts are numbers with zeros before them, or too long for one */
};

static int compare_named_numbers(const void *a, const void *b) {
    double x = ((const struct named_number *)a)->value, y = ((const struct named_number *)b)->value;
    return (x > y) - (x < y);
}

static int compare_named_texts(const void *a, const void *b) {
    return strcmp(((const struct named_text *)a)->value, ((const struct named_text *)b)->value);
}

struct class_table *class_table_new(const struct model_layout *layout) {
    struct class_table *table = memory_new(1, sizeof *table);
    table->numbers = memory_new(layout->classes, sizeof *table->numbers);
    table->texts = memory_new(layout->classes, sizeof *table->texts);
    for (uint32_t i = 0; i < layout->classes; i++) {
        const char *name = layout->class_names[i];
        double value;
        const bool code = number_is_code(name, strlen(name));
        table->codes |= code;
        if (!code && number_of_text(name, &value))
            table->numbers[table->number_count++] = (struct named_number){value, i};
        else
            table->texts[table->text_count++] = (struct named_text){name, i};
    }
    qsort(table->numbers, table->number_count, sizeof *table->numbers, compare_named_numbers);
    qsort(table->texts, table->text_count, sizeof *table->texts, compare_named_texts);
    assert(table->number_count + table->text_count == layout->classes);
    return table;
}

void class_table_free(struct class_table *table) {
    if (!table)
        return;
    free(table->numbers);
    free(table->texts);
    free(table);
}

static const struct named_text *find_text(const struct class_table *table, const char *text) {
    struct named_text key = {.value = text};
    return bsearch(&key, table->texts, table->text_count, sizeof key, compare_named_texts);
}

uint32_t class_table_find(const struct class_table *table, double number, const char *text) {
    if (!text) {
        struct named_number key = {.value = number};
        const struct named_number *found =
            bsearch(&key, table->numbers, table->number_count, sizeof key, compare_named_numbers);
        return found ? found->class : LABEL_UNSEEN;
    }
    const struct named_text *found = find_text(table, text);
    if (!found) {
        json_t *stored = text_to_json(text); /* the form that names have in model.json */
        found = find_text(table, json_string_value(stored));
        json_decref(stored);
    }
    if (!found && !table->codes && !isnan(number)) /* training had no codes: 07 is 7 there */
        return class_table_find(table, number, NULL);
    return found ? found->class : LABEL_UNSEEN;
}

uint32_t class_table_find_name(const struct class_table *table, const char *name) {
    double number;
    if (!number_of_text(name, &number))
        return class_table_find(table, NAN, name);
    return class_table_find(table, number, number_is_code(name, strlen(name)) ? name : NULL);
}

/* ---- which classes are predicted for which ---- */

/* What is counted for one class. */
struct class_counts {
    struct weight_sum examples, predicted, hits;
};

static void counts_release(struct class_counts *counts) {
    weight_sum_release(&counts->examples);
    weight_sum_release(&counts->predicted);
    weight_sum_release(&counts->hits);
}

struct confusion {
    uint32_t classes;
    struct weight_sum unseen;
    struct class_counts *of;
    struct weight_sum *cell; /* classes × classes, or NULL */
};

struct confusion *confusion_new(uint32_t classes, bool matrix) {
    assert(classes > 0);
    struct confusion *confusion = memory_new(1, sizeof *confusion);
    confusion->classes = classes;
    confusion->of = memory_new(classes, sizeof *confusion->of);
    if (matrix && classes <= SCORE_MATRIX_CLASSES)
        confusion->cell = memory_new((size_t)classes * classes, sizeof *confusion->cell);
    return confusion;
}

void confusion_free(struct confusion *confusion) {
    if (!confusion)
        return;
    uint32_t classes = confusion->classes;
    for (uint32_t k = 0; k < classes; k++)
        counts_release(&confusion->of[k]);
    for (uint32_t i = 0; confusion->cell && i < classes * classes; i++)
        weight_sum_release(&confusion->cell[i]);
    weight_sum_release(&confusion->unseen);
    free(confusion->of);
    free(confusion->cell);
    free(confusion);
}

void confusion_add(struct confusion *confusion, uint32_t class, uint32_t answer, double weight) {
    assert(weight >= 0);
    assert(answer < confusion->classes && (class < confusion->classes || class == LABEL_UNSEEN));
    weight_sum_add(&confusion->of[answer].predicted, weight);
    if (class == LABEL_UNSEEN) {
        weight_sum_add(&confusion->unseen, weight);
        return;
    }
    weight_sum_add(&confusion->of[class].examples, weight);
    if (class == answer)
        weight_sum_add(&confusion->of[class].hits, weight);
    if (confusion->cell)
        weight_sum_add(&confusion->cell[(size_t) class * confusion->classes + answer], weight);
}

/* Precision, recall and F1 of a class; NaN where the divisor is 0. */
struct quality {
    double examples, predicted, precision, recall, f1;
};

static double share(double part, double all) {
    return all > 0 ? part / all : NAN;
}

static struct quality quality_of(const struct class_counts *counts) {
    double hits = weight_sum_value(&counts->hits);
    struct quality quality = {.examples = weight_sum_value(&counts->examples),
                              .predicted = weight_sum_value(&counts->predicted)};
    quality.precision = share(hits, quality.predicted);
    quality.recall = share(hits, quality.examples);
    quality.f1 = share(2 * hits, quality.examples + quality.predicted);
    return quality;
}

static double accuracy(const struct confusion *confusion) {
    struct weight_sum all = {0}, hits = {0};
    weight_sum_merge(&all, &confusion->unseen);
    for (uint32_t k = 0; k < confusion->classes; k++) {
        weight_sum_merge(&all, &confusion->of[k].examples);
        weight_sum_merge(&hits, &confusion->of[k].hits);
    }
    double result = share(weight_sum_value(&hits), weight_sum_value(&all));
    weight_sum_release(&all);
    weight_sum_release(&hits);
    return result;
}

static double or_zero(double figure) {
    return isnan(figure) ? 0 : figure;
}

/* The means over the classes that occur, as a label or as a prediction. What is not defined counts
 * as 0 there. */
static void set_macro(const struct confusion *confusion, struct score_figures *result) {
    double precision = 0, recall = 0, f1 = 0, count = 0;
    for (uint32_t k = 0; k < confusion->classes; k++) {
        struct quality quality = quality_of(&confusion->of[k]);
        if (!(quality.examples + quality.predicted > 0))
            continue;
        count++;
        precision += or_zero(quality.precision);
        recall += or_zero(quality.recall);
        f1 += or_zero(quality.f1);
    }
    result->macro_precision = share(precision, count);
    result->macro_recall = share(recall, count);
    result->macro_f1 = share(f1, count);
}

void confusion_finish(const struct confusion *confusion, bool binary,
                      struct score_figures *result) {
    assert(!binary || confusion->classes == 2);
    result->accuracy = accuracy(confusion);
    set_macro(confusion, result);
    if (!binary)
        return;
    struct quality quality = quality_of(&confusion->of[1]);
    result->precision = quality.precision;
    result->recall = quality.recall;
    result->f1 = quality.f1;
}

/* Sums of weights are mostly whole numbers: then they are written as such. */
static json_t *amount(const struct weight_sum *sum) {
    return sum->rest ? json_real(weight_sum_value(sum)) : json_integer((json_int_t)sum->ones);
}

json_t *confusion_class_json(const struct confusion *confusion, uint32_t class, const char *name) {
    assert(class < confusion->classes);
    const struct class_counts *counts = &confusion->of[class];
    struct quality quality = quality_of(counts);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "class", text_to_json(name), "examples",
                     amount(&counts->examples), "precision", number_json(quality.precision),
                     "recall", number_json(quality.recall), "f1", number_json(quality.f1));
}

json_t *confusion_matrix_json(const struct confusion *confusion) {
    uint32_t classes = confusion->classes;
    if (!confusion->cell)
        return NULL;
    json_t *rows = json_array();
    for (uint32_t k = 0; k < classes; k++) {
        json_t *row = json_array();
        for (uint32_t answer = 0; answer < classes; answer++)
            json_array_append_new(row, amount(&confusion->cell[(size_t)k * classes + answer]));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* ---- rows that have any number of classes ---- */

struct listed {
    const struct model_layout *layout;
    struct class_table *labels;
    struct confusion *confusion;
    double *has; /* of each class: whether the label that was read last names it */
    struct bytes part;
    struct weight_sum all, right; /* examples, and those whose classes are all right */
};

struct listed *listed_new(const struct model_layout *layout) {
    assert(layout->classes > 0 && layout->separator);
    struct listed *listed = memory_new(1, sizeof *listed);
    listed->layout = layout;
    listed->labels = class_table_new(layout);
    listed->confusion = confusion_new(layout->classes, false);
    listed->has = memory_new(layout->classes, sizeof *listed->has);
    bytes_init(&listed->part);
    return listed;
}

void listed_free(struct listed *listed) {
    if (!listed)
        return;
    class_table_free(listed->labels);
    confusion_free(listed->confusion);
    weight_sum_release(&listed->all);
    weight_sum_release(&listed->right);
    bytes_release(&listed->part);
    free(listed->has);
    free(listed);
}

const double *listed_read(struct listed *listed, const char *label, bool *unseen) {
    memset(listed->has, 0, listed->layout->classes * sizeof *listed->has);
    *unseen = false;
    while (list_next(&label, listed->layout->separator, &listed->part)) {
        uint32_t class = class_table_find_name(listed->labels, (const char *)listed->part.data);
        if (class == LABEL_UNSEEN)
            *unseen = true;
        else
            listed->has[class] = 1;
    }
    return listed->has;
}

void listed_add(struct listed *listed, const double *margins, const double *prediction, bool unseen,
                double weight) {
    assert(listed->confusion->classes == listed->layout->classes && weight >= 0);
    bool right = !unseen;
    for (uint32_t k = 0; k < listed->layout->classes; k++) {
        bool has = listed->has[k] != 0;
        bool predicted = response_has_class(listed->layout, k, margins[k], prediction[k]);
        struct class_counts *counts = &listed->confusion->of[k];
        if (has)
            weight_sum_add(&counts->examples, weight);
        if (predicted)
            weight_sum_add(&counts->predicted, weight);
        if (has && predicted)
            weight_sum_add(&counts->hits, weight);
        right &= has == predicted;
    }
    weight_sum_add(&listed->all, weight);
    if (right)
        weight_sum_add(&listed->right, weight);
}

void listed_finish(const struct listed *listed, struct score_figures *result) {
    const struct confusion *confusion = listed->confusion;
    double weights = weight_sum_value(&listed->all);
    struct class_counts all = {0};
    for (uint32_t k = 0; k < confusion->classes; k++) {
        weight_sum_merge(&all.examples, &confusion->of[k].examples);
        weight_sum_merge(&all.predicted, &confusion->of[k].predicted);
        weight_sum_merge(&all.hits, &confusion->of[k].hits);
    }
    struct quality micro = quality_of(&all);
    double wrong = micro.examples + micro.predicted - 2 * weight_sum_value(&all.hits);
    set_macro(confusion, result);
    result->micro_precision = micro.precision;
    result->micro_recall = micro.recall;
    result->micro_f1 = micro.f1;
    result->accuracy = share(weight_sum_value(&listed->right), weights);
    result->hamming = share(wrong, weights * confusion->classes);
    counts_release(&all);
}

json_t *listed_class_json(const struct listed *listed, uint32_t class) {
    return confusion_class_json(listed->confusion, class, listed->layout->class_names[class]);
}
