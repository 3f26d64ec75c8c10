#include "model/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/number.h"

struct number {
    double value;
    uint32_t class;
};

struct text {
    const char *value;
    uint32_t class;
};

struct labels {
    struct number *numbers; /* names that are numbers, sorted */
    struct text *texts;     /* the others, sorted */
    uint32_t number_count, text_count;
};

static int compare_numbers(const void *a, const void *b) {
    double x = ((const struct number *)a)->value, y = ((const struct number *)b)->value;
    return (x > y) - (x < y);
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(((const struct text *)a)->value, ((const struct text *)b)->value);
}

struct labels *label_table_new(const struct model_layout *layout) {
    struct labels *labels = memory_new(1, sizeof *labels);
    labels->numbers = memory_new(layout->classes, sizeof *labels->numbers);
    labels->texts = memory_new(layout->classes, sizeof *labels->texts);
    for (uint32_t i = 0; i < layout->classes; i++) {
        const char *name = layout->class_names[i];
        double value;
        if (number_of_text(name, &value))
            labels->numbers[labels->number_count++] = (struct number){value, i};
        else
            labels->texts[labels->text_count++] = (struct text){name, i};
    }
    qsort(labels->numbers, labels->number_count, sizeof *labels->numbers, compare_numbers);
    qsort(labels->texts, labels->text_count, sizeof *labels->texts, compare_texts);
    return labels;
}

void label_table_free(struct labels *labels) {
    if (!labels)
        return;
    free(labels->numbers);
    free(labels->texts);
    free(labels);
}

static const struct text *find_text(const struct labels *labels, const char *text) {
    struct text key = {.value = text};
    return bsearch(&key, labels->texts, labels->text_count, sizeof key, compare_texts);
}

uint32_t label_table_find(const struct labels *labels, double number, const char *text) {
    if (!text) {
        struct number key = {.value = number};
        const struct number *found =
            bsearch(&key, labels->numbers, labels->number_count, sizeof key, compare_numbers);
        return found ? found->class : LABEL_UNSEEN;
    }
    const struct text *found = find_text(labels, text);
    if (!found) {
        json_t *stored = text_to_json(text); /* the form that names have in model.json */
        found = find_text(labels, json_string_value(stored));
        json_decref(stored);
    }
    return found ? found->class : LABEL_UNSEEN;
}

uint32_t label_table_find_name(const struct labels *labels, const char *name) {
    double number = 0;
    bool is_number = number_of_text(name, &number);
    return label_table_find(labels, number, is_number ? NULL : name);
}
