/* What words weigh, and the values that they have in a set: counts, or tf-idf as scikit-learn's
 * TfidfVectorizer has it. idf = ln((1 + n)/(1 + df)) + 1, with n the training rows and df those
 * that have the word; the values of a text are divided by the root of the sum of their squares. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/set/column_builder.h"
#include "numeric/special.h"

void columns_find_texts(struct columns *columns, const struct split *split) {
    const struct table *table = columns->table;
    columns->text_number = memory_new(table->columns, sizeof *columns->text_number);
    columns->has_words = memory_new(columns->packs, sizeof *columns->has_words);
    for (uint32_t c = 0; c < table->columns; c++)
        columns->text_number[c] =
            table->column[c].kind == COLUMN_WORDS ? columns->texts++ : DICTIONARY_NONE;
    for (uint32_t p = 0; p < columns->packs; p++)
        columns->has_words[p] = split->packs[p]->table && table_has_texts(split->packs[p]->table);
}

bool columns_is_word(const struct columns *columns, const struct pack *pack, uint32_t feature) {
    return columns->text_number[pack->column[feature]] != DICTIONARY_NONE;
}

void columns_weigh_words(struct columns *columns, const struct split *split) {
    if (!columns->texts || !table_weighs_words(columns->table))
        return;
    uint64_t rows = 0;
    for (uint32_t p = 0; p < split->trained; p++)
        rows += split_count_trained(split, p);
    columns->table->text.rows = rows;
    double *idf = columns->idf = memory_new(columns->count, sizeof *idf);
    for (uint32_t i = 0; i < columns->count; i++)
        idf[i] = table_word_idf(columns->table, columns->values[i]);
    bool *word = memory_new(columns->count, sizeof *word);
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t i = 0; columns->has_words[p] && i < split->packs[p]->facts->features; i++)
            if (columns_has(columns, p, i))
                word[columns->of_pack[p].narrow[i]] |= columns_is_word(columns, split->packs[p], i);
    for (uint32_t i = 0; i < columns->count; i++)
        idf[i] = word[i] ? idf[i] : 0;
    free(word);
}

/* Divides the values of words by the norm of their text. */
static void normalise(const struct columns *columns, const struct pack *pack,
                      const struct pack_rows *rows, uint32_t row, double *value,
                      const double *squares) {
    uint64_t first, end = pack_row(rows, row, &first);
    for (uint64_t i = first; i < end; i++) {
        uint32_t feature = pack_feature(rows, first, i);
        uint32_t text = columns->text_number[pack->column[feature]];
        if (text != DICTIONARY_NONE && squares[text] > 0)
            value[i - first] /= sqrt(squares[text]);
    }
}

const double *columns_row_values(const struct columns *columns, const struct split *split,
                                 uint32_t p, const struct pack_rows *rows, uint32_t row,
                                 struct bytes *workspace) {
    const struct pack *pack = split->packs[p];
    uint64_t first, end = pack_row(rows, row, &first);
    bytes_clear(workspace);
    double *value = bytes_extend(workspace, (end - first + columns->texts) * sizeof *value);
    double *squares = value + (end - first);
    memset(squares, 0, columns->texts * sizeof *squares);
    for (uint64_t i = first; i < end; i++) {
        uint32_t feature = pack_feature(rows, first, i),
                 column = columns->of_pack[p].narrow[feature];
        uint32_t text = columns->text_number[pack->column[feature]];
        double here = value[i - first] = pack_value(rows, i);
        if (text == DICTIONARY_NONE || column == DICTIONARY_NONE)
            continue;
        here = table_word_value(columns->table, here, columns->idf ? columns->idf[column] : 0);
        value[i - first] = here;
        squares[text] += here * here;
    }
    if (columns->idf)
        normalise(columns, pack, rows, row, value, squares);
    return value;
}

enum value_type columns_word_type(const struct columns *columns, double count) {
    if (columns->idf)
        return VALUE_DOUBLE;
    return count == 1 || columns->table->text.values == TEXT_BINARY ? VALUE_ONES : VALUE_FLOAT;
}
