/* The classes of labels that are lists. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/list.h"
#include "data/merge.h"
#include "data/number.h"

/* The class of a part of a list, or DICTIONARY_NONE. */
static uint32_t class_of_part(const struct labels *labels, const char *part) {
    double number = 0;
    bool is_number = number_of_text(part, &number);
    uint32_t text = is_number ? DICTIONARY_NONE : text_dictionary_find(&labels->texts, part);
    if (!is_number && text == DICTIONARY_NONE)
        return DICTIONARY_NONE;
    return labels_class(labels, text, number + 0.0); /* −0 is 0 */
}

/* Whether all classes of a list are known. */
static bool is_known(const struct labels *labels, const char *list, struct bytes *part) {
    while (list_next(&list, labels->separator, part))
        if (class_of_part(labels, (const char *)part->data) == DICTIONARY_NONE)
            return false;
    return true;
}

/* A list that only held-out rows have may be one of known classes. */
static void find_other_lists(struct labels *labels, const struct split *split, struct bytes *part) {
    for (uint32_t p = 0; p < split->count; p++)
        for (uint32_t i = 0; i < split->packs[p]->facts->label_texts; i++) {
            uint32_t *list = &labels->text_of_pack[p][i];
            const char *text = split->packs[p]->label_text[i];
            if (*list == DICTIONARY_NONE && is_known(labels, text, part))
                *list = text_dictionary_add(&labels->lists, text);
        }
}

static int compare(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts classes[first … count) and takes out repeated ones; how many there are then. */
static uint32_t sort_list(uint32_t *classes, uint32_t first, uint32_t count) {
    uint32_t kept = first;
    qsort(classes + first, count - first, sizeof *classes, compare);
    for (uint32_t i = first; i < count; i++)
        if (i == first || classes[i] != classes[i - 1])
            classes[kept++] = classes[i];
    return kept;
}

void labels_find_lists(struct labels *labels, const struct split *split) {
    struct bytes part;
    uint64_t capacity = 0;
    uint32_t count = 0;
    bytes_init(&part);
    find_other_lists(labels, split, &part);
    labels->list_start = memory_new(labels->lists.count + (size_t)1, sizeof *labels->list_start);
    for (uint32_t i = 0; i < labels->lists.count; i++) {
        const char *at = text_dictionary_get(&labels->lists, i);
        while (list_next(&at, labels->separator, &part)) {
            MEMORY_ROOM(labels->list_class, count, capacity);
            labels->list_class[count++] = class_of_part(labels, (const char *)part.data);
        }
        if (labels->list_class)
            count = sort_list(labels->list_class, labels->list_start[i], count);
        labels->list_start[i + 1] = count;
    }
    bytes_release(&part);
}
