/* A pass over the numbers of some columns of a table, in the rows that are trained on. */
#ifndef DML_DATA_NUMBERS_H
#define DML_DATA_NUMBERS_H

#include "base/memory.h"
#include "data/merge.h"

/* Columns [first, first + count) of the table. */
struct numbers {
    const struct split *split;
    uint32_t first, count;
    uint32_t *place; /* scratch; free() it at the end */
    uint32_t run;    /* of the pack: its first feature that has a place, if they follow in order */
    bool runs;
};

/* What is done with a number; `place` is that of its column among those of the pass, `weight` that
 * of its row. */
typedef void numbers_take(void *context, uint32_t place, double value, double weight);

static inline void numbers_find_places(struct numbers *numbers, const struct pack *pack) {
    numbers->place = memory_resize(numbers->place, pack->facts->features, sizeof(uint32_t));
    for (uint32_t i = 0; i < pack->facts->features; i++) {
        uint32_t place = pack->column[i] - numbers->first;
        bool here = pack->id[i] < FEATURE_HASHED && place < numbers->count;
        numbers->place[i] = here ? place : DICTIONARY_NONE;
    }
    numbers->run = 0;
    while (numbers->run < pack->facts->features && numbers->place[numbers->run])
        numbers->run++;
    numbers->runs = numbers->run + (uint64_t)numbers->count <= pack->facts->features;
    for (uint32_t i = 0; numbers->runs && i < numbers->count; i++)
        numbers->runs = numbers->place[numbers->run + i] == i;
}

/* The type and `take` are constants for the compiler. */
__attribute__((always_inline)) static inline void
numbers_of_row(const struct numbers *numbers, struct pack_rows rows, uint32_t row,
               enum value_type type, numbers_take *take, void *context) {
    uint64_t first, end = pack_row(&rows, row, &first);
    double weight = rows.weight ? rows.weight[row] : 1;
    rows.type = type;
    if (!rows.feature && numbers->runs) {
        for (uint32_t i = 0; i < numbers->count; i++)
            take(context, i, pack_value(&rows, first + numbers->run + i), weight);
        return;
    }
    for (uint64_t i = first; i < end; i++) {
        uint32_t place = numbers->place[pack_feature(&rows, first, i)];
        if (place != DICTIONARY_NONE)
            take(context, place, pack_value(&rows, i), weight);
    }
}

__attribute__((always_inline)) static inline void numbers_each(struct numbers *numbers,
                                                               numbers_take *take, void *context) {
    const struct split *split = numbers->split;
    for (uint32_t p = 0; p < split->trained; p++) {
        const struct pack *pack = split->packs[p];
        if (!pack->table)
            continue;
        numbers_find_places(numbers, pack);
        for (uint32_t b = 0; b < pack->facts->blocks; b++) {
            struct pack_rows rows = pack_rows(pack, b);
            for (uint32_t row = 0; row < rows.rows; row++)
                if (split_side(split, p, b, row) != ROW_TRAINED)
                    continue;
                else if (rows.type == VALUE_FLOAT)
                    numbers_of_row(numbers, rows, row, VALUE_FLOAT, take, context);
                else
                    numbers_of_row(numbers, rows, row, rows.type, take, context);
        }
    }
}

#endif
