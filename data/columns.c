/* Numbers the columns of a set: by falling log2 of the count, then by first appearance. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/merge.h"

static unsigned frequency_class(uint64_t count) {
    return 63u - (unsigned)__builtin_clzll(count | 1);
}

/* Numbers all features by first appearance; of_pack then holds these numbers. */
static int collect(struct columns *columns, struct dictionary *dictionary,
                   struct pack *const *packs) {
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = packs[p];
        uint32_t *of_pack = columns->of_pack[p] =
            memory_new(pack->facts->features, sizeof *of_pack);
        for (uint32_t i = 0; i < pack->facts->features; i++) {
            of_pack[i] = dictionary_add(dictionary, pack->id[i]);
            if (of_pack[i] == DICTIONARY_NONE)
                return error_set(ERROR_DATA, "the data has more than %u different features",
                                 FEATURES_MAX);
        }
    }
    if (!dictionary->count)
        return error_set(ERROR_DATA, "%s: no row has a single feature", pack_source(packs[0]));
    return 0;
}

/* The column of each number by first appearance: a counting sort over the frequency classes. */
static uint32_t *sort_by_frequency(const uint64_t *values, uint32_t count) {
    uint64_t next[65] = {0};
    for (uint32_t i = 0; i < count; i++)
        next[63 - frequency_class(values[i]) + 1]++;
    for (unsigned c = 1; c < 65; c++)
        next[c] += next[c - 1];
    uint32_t *column = memory_new(count, sizeof *column);
    for (uint32_t i = 0; i < count; i++)
        column[i] = (uint32_t)next[63 - frequency_class(values[i])]++;
    return column;
}

/* Sums of the counts over all packs, by first appearance. */
static uint64_t *sum_counts(const struct columns *columns, struct pack *const *packs) {
    uint64_t *values = memory_new(columns->count, sizeof *values);
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t i = 0; i < packs[p]->facts->features; i++)
            values[columns->of_pack[p][i]] += packs[p]->count[i];
    return values;
}

static void renumber(struct columns *columns, struct pack *const *packs,
                     const struct dictionary *dictionary) {
    uint64_t *values = sum_counts(columns, packs);
    uint32_t *column = sort_by_frequency(values, columns->count);
    columns->id = memory_new(columns->count, sizeof *columns->id);
    columns->values = memory_new(columns->count, sizeof *columns->values);
    for (uint32_t i = 0; i < columns->count; i++) {
        columns->id[column[i]] = dictionary->id[i];
        columns->values[column[i]] = values[i];
    }
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t i = 0; i < packs[p]->facts->features; i++)
            columns->of_pack[p][i] = column[columns->of_pack[p][i]];
    free(values);
    free(column);
}

/* Takes the names from the header lines, which must agree. */
static int take_names(struct columns *columns, struct pack *const *packs) {
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = packs[p];
        if (!pack->name)
            continue;
        if (!columns->name)
            columns->name = memory_new(columns->count, sizeof *columns->name);
        for (uint32_t i = 0; i < pack->facts->features; i++) {
            const char **name = &columns->name[columns->of_pack[p][i]];
            if (*name && strcmp(*name, pack->name[i]))
                return error_set(
                    ERROR_DATA, "%s:1: column %llu is named \"%s\", but \"%s\" in a file before",
                    pack_source(pack), (unsigned long long)pack->id[i], pack->name[i], *name);
            *name = pack->name[i];
        }
    }
    for (uint32_t i = 0; columns->name && i < columns->count; i++)
        if (!columns->name[i])
            columns->name[i] = "";
    return 0;
}

struct id_and_column {
    uint64_t id;
    uint32_t column;
};

static int compare_ids(const void *a, const void *b) {
    const struct id_and_column *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static void sort_by_id(struct columns *columns) {
    struct id_and_column *entries = memory_new(columns->count, sizeof *entries);
    for (uint32_t i = 0; i < columns->count; i++)
        entries[i] = (struct id_and_column){columns->id[i], i};
    qsort(entries, columns->count, sizeof *entries, compare_ids);
    columns->order = memory_new(columns->count, sizeof *columns->order);
    for (uint32_t i = 0; i < columns->count; i++)
        columns->order[i] = entries[i].column;
    free(entries);
}

int columns_find(struct columns *columns, struct pack *const *packs, uint32_t count) {
    *columns = (struct columns){.packs = count};
    columns->of_pack = memory_new(count, sizeof *columns->of_pack);
    struct dictionary dictionary;
    dictionary_init(&dictionary);
    int code = collect(columns, &dictionary, packs);
    if (!code) {
        columns->count = dictionary.count;
        renumber(columns, packs, &dictionary);
        sort_by_id(columns);
        code = take_names(columns, packs);
    }
    dictionary_release(&dictionary);
    return code;
}

void columns_release(struct columns *columns) {
    for (uint32_t p = 0; p < columns->packs; p++)
        free(columns->of_pack[p]);
    free(columns->of_pack);
    free(columns->id);
    free(columns->values);
    free(columns->name);
    free(columns->order);
    *columns = (struct columns){0};
}
