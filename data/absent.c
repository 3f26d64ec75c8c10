/* Columns of a table that some files of the data lack: each row of these has what a row with an
 * empty field has. Packs do not hold it, so they stay as they are when another file brings a
 * column. */
#include <stdlib.h>

#include "base/memory.h"
#include "data/collecting.h"

static bool pack_lacks(const struct columns *columns, const struct pack *pack, uint32_t column) {
    return pack->table && table_uses(&columns->table->column[column]) &&
           table_lacks(pack->table, column);
}

static uint64_t count_trained(const struct split *split, uint32_t p) {
    uint64_t rows = split->packs[p]->facts->rows, trained = 0;
    for (uint64_t row = 0; split->side[p] && row < rows; row++)
        trained += split->side[p][row] == ROW_TRAINED;
    return split->side[p] ? trained : rows;
}

/* How many training rows each column of the table is missing in because their files lack it. */
static uint64_t *count_lacking(const struct columns *columns, const struct split *split) {
    uint64_t *rows = memory_new(columns->table->columns, sizeof *rows);
    for (uint32_t p = 0; p < split->trained; p++) {
        uint64_t trained = count_trained(split, p);
        for (uint32_t c = 0; c < columns->table->columns; c++)
            rows[c] += pack_lacks(columns, split->packs[p], c) ? trained : 0;
    }
    return rows;
}

/* Finds the features that say of the columns that they are missing, or adds them. */
static void find_features(struct columns *columns, struct collecting *collecting,
                          const uint64_t *rows) {
    uint32_t width = columns->table->columns, count = columns->count;
    for (uint32_t c = 0; c < width; c++) {
        uint64_t id = table_feature(columns->table->ids, c, ROLE_MISSING, NULL, 0);
        uint32_t *number = &columns->missing_column[c];
        for (uint32_t i = 0; i < count && rows[c] && *number == DICTIONARY_NONE; i++)
            if (collecting->id[i] == id)
                *number = i;
        if (rows[c] && *number == DICTIONARY_NONE) {
            *number = columns->count;
            collecting_add(columns, collecting, id, 0);
        }
    }
}

void columns_find_absent(struct columns *columns, struct collecting *collecting) {
    uint64_t *rows = count_lacking(columns, collecting->split);
    find_features(columns, collecting, rows);
    for (uint32_t c = 0; c < columns->table->columns; c++) {
        if (columns->missing_column[c] != DICTIONARY_NONE)
            collecting->values[columns->missing_column[c]] += rows[c];
        if (columns->number_column[c] != DICTIONARY_NONE)
            collecting->values[columns->number_column[c]] += rows[c];
    }
    free(rows);
}

static void add(struct absent *absent, uint32_t column, double value) {
    if (column == DICTIONARY_NONE)
        return;
    absent->values =
        memory_resize(absent->values, absent->count + (size_t)1, sizeof(struct derived));
    absent->values[absent->count++] = (struct derived){column, value};
}

void columns_list_absent(struct columns *columns, const struct split *split) {
    columns->absent = memory_new(columns->packs, sizeof *columns->absent);
    for (uint32_t p = 0; columns->table && p < columns->packs; p++)
        for (uint32_t c = 0; c < columns->table->columns; c++) {
            if (!pack_lacks(columns, split->packs[p], c))
                continue;
            add(&columns->absent[p], columns->missing_column[c], 1);
            if (columns->table->column[c].kind == COLUMN_NUMBER)
                add(&columns->absent[p], columns->number_column[c], columns->table->column[c].mean);
        }
}
