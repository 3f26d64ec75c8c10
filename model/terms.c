#include "model/terms.h"

#include <stdlib.h>

#include "base/memory.h"

#define ROOM_FIRST 256

static void grow(struct terms *terms) {
    terms->room = terms->room ? 2 * terms->room : ROOM_FIRST;
    terms->feature = memory_resize(terms->feature, terms->room, sizeof *terms->feature);
    terms->value = memory_resize(terms->value, terms->room, sizeof *terms->value);
}

void terms_add(struct terms *terms, uint64_t feature, double value) {
    if (terms->count == terms->room)
        grow(terms);
    terms->feature[terms->count] = (uint32_t)feature;
    terms->value[terms->count++] = value;
}

void terms_append(struct terms *terms, const struct terms *others) {
    for (size_t i = 0; i < others->count; i++)
        terms_add(terms, others->feature[i], others->value[i]);
}

void terms_release(struct terms *terms) {
    free(terms->feature);
    free(terms->value);
    *terms = (struct terms){0};
}
