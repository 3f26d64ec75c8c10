#include "model/confusion.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/labels.h"
#include "model/weight_sum.h"

/* Of one class. */
struct counts {
    struct weight_sum examples, predicted, hits;
};

struct confusion {
    uint32_t classes;
    struct weight_sum unseen;
    struct counts *of;
    struct weight_sum *cell; /* classes × classes, or NULL */
};

struct confusion *confusion_new(uint32_t classes, bool matrix) {
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
    for (uint32_t k = 0; k < classes; k++) {
        weight_sum_release(&confusion->of[k].examples);
        weight_sum_release(&confusion->of[k].predicted);
        weight_sum_release(&confusion->of[k].hits);
    }
    for (uint32_t i = 0; confusion->cell && i < classes * classes; i++)
        weight_sum_release(&confusion->cell[i]);
    weight_sum_release(&confusion->unseen);
    free(confusion->of);
    free(confusion->cell);
    free(confusion);
}

void confusion_add(struct confusion *confusion, uint32_t class, uint32_t answer, double weight) {
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

void confusion_note(struct confusion *confusion, uint32_t class, bool has, bool predicted,
                    double weight) {
    struct counts *counts = &confusion->of[class];
    if (has)
        weight_sum_add(&counts->examples, weight);
    if (predicted)
        weight_sum_add(&counts->predicted, weight);
    if (has && predicted)
        weight_sum_add(&counts->hits, weight);
}

/* Precision, recall and F1 of a class; NaN where nothing is divided by. */
struct quality {
    double examples, predicted, precision, recall, f1;
};

static double share(double part, double all) {
    return all > 0 ? part / all : NAN;
}

static struct quality quality_of(const struct counts *counts) {
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

void confusion_finish_notes(const struct confusion *confusion, struct score_figures *result) {
    struct counts all = {0};
    for (uint32_t k = 0; k < confusion->classes; k++) {
        weight_sum_merge(&all.examples, &confusion->of[k].examples);
        weight_sum_merge(&all.predicted, &confusion->of[k].predicted);
        weight_sum_merge(&all.hits, &confusion->of[k].hits);
    }
    struct quality micro = quality_of(&all);
    set_macro(confusion, result);
    result->micro_precision = micro.precision;
    result->micro_recall = micro.recall;
    result->micro_f1 = micro.f1;
    result->hamming = micro.examples + micro.predicted - 2 * weight_sum_value(&all.hits);
    weight_sum_release(&all.examples);
    weight_sum_release(&all.predicted);
    weight_sum_release(&all.hits);
}

void confusion_finish(const struct confusion *confusion, bool binary,
                      struct score_figures *result) {
    result->accuracy = accuracy(confusion);
    set_macro(confusion, result);
    if (!binary)
        return;
    struct quality quality = quality_of(&confusion->of[1]);
    result->precision = quality.precision;
    result->recall = quality.recall;
    result->f1 = quality.f1;
}

/* ---- for people and programs ---- */

/* Sums of weights are whole numbers as a rule, and look like it. */
static json_t *amount(const struct weight_sum *sum) {
    return sum->rest ? json_real(weight_sum_value(sum)) : json_integer((json_int_t)sum->ones);
}

json_t *confusion_class_json(const struct confusion *confusion, uint32_t class, const char *name) {
    const struct counts *counts = &confusion->of[class];
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
