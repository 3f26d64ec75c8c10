/* Crossed columns of a table: what several columns of a row have together is a feature of its own.
 *
 * Of each crossed column a row has one level: its text, that it is rare or missing, or the bin of
 * its number. Each level is a column of the set, too. The cell of a cross is the number that the
 * levels of its columns are the digits of. Only cells that occur in the training rows are kept, and
 * of these only those of enough rows: where a combination is rare, the columns themselves still say
 * what there is to say. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "data/set/column_builder.h"
#include "data/text/number.h"

/* ---- which columns are crossed ---- */

/* The texts of a job's list, while crosses are made of them. */
struct cross_reader {
    struct table *table;
    const char *text; /* the entry being read */
    bool bins;        /* numbers have bins */
    uint32_t capacity;
};

/* The column of that name, or of that number from 1 in the first file; `columns` if there is none.
 */
static uint32_t find_column(const struct table *table, const char *name) {
    struct table_column wanted = {0};
    uint32_t i = 0;
    table_set_name(&wanted, name);
    char label[COLUMN_LABEL_TEXT];
    while (i < table->columns && ((!table->column[i].name && !table->column[i].is_part) ||
                                  strcmp(table_label(table, i, label), wanted.name) != 0))
        i++;
    free(wanted.name);
    size_t digits = strspn(name, "0123456789");
    bool number = i == table->columns && digits && !name[digits] && digits < 9;
    uint32_t place = number ? (uint32_t)strtoul(name, NULL, 10) - 1 : COLUMN_NOWHERE;
    if (number)
        for (i = 0; i < table->columns && table->column[i].place != place;)
            i++;
    return place == COLUMN_NOWHERE && number ? table->columns : i;
}

static int no_column(const struct cross_reader *reader, const char *name) {
    struct nearest nearest = {.text = name};
    for (uint32_t i = 0; i < reader->table->columns; i++)
        if (reader->table->column[i].name && table_uses(&reader->table->column[i]))
            nearest_offer(&nearest, reader->table->column[i].name);
    return error_set(ERROR_DATA,
                     "\"%s\": there is no column \"%s\": give names, or "
                     "numbers from 1, with * between them%s",
                     reader->text, name, nearest_suggestion(&nearest, ""));
}

static int check_column(const struct cross_reader *reader, const struct table_cross *cross,
                        uint32_t column) {
    char name[COLUMN_TEXT];
    const struct table_column *here = &reader->table->column[column];
    table_describe(reader->table, column, name);
    for (uint32_t i = 0; i < cross->columns; i++)
        if (cross->column[i] == column)
            return error_set(ERROR_CONFIG, "\"%s\" has %s twice", reader->text, name);
    if (!table_uses(here))
        return error_set(ERROR_CONFIG, "\"%s\": %s is no feature: it is %s", reader->text, name,
                         here->kind == COLUMN_LABEL    ? "the label"
                         : here->kind == COLUMN_WEIGHT ? "the weight"
                         : here->kind == COLUMN_DATE   ? "a date, whose parts are: year, month, "
                                                         "weekday, hour and days, as in when.month"
                                                       : "left out");
    if (here->kind == COLUMN_NUMBER && !reader->bins)
        return error_set(ERROR_CONFIG,
                         "\"%s\": %s holds numbers, of which bins are crossed: also "
                         "set csv.bins, for example csv.bins = 16, or list the column in "
                         "csv.categories",
                         reader->text, name);
    if (here->monotone != MONOTONE_NONE)
        return error_set(ERROR_CONFIG,
                         "\"%s\": %s is in both `cross` and `monotone`; remove it from one: beside "
                         "a cross its effect need not be monotone",
                         reader->text, name);
    if (here->kind == COLUMN_WORDS)
        return error_set(ERROR_CONFIG, "\"%s\": %s holds sentences, which are not crossed",
                         reader->text, name);
    if (cross->columns == CROSS_COLUMNS_MAX)
        return error_set(ERROR_CONFIG, "\"%s\": allowed: at most %u columns", reader->text,
                         CROSS_COLUMNS_MAX);
    return 0;
}

/* Keeps the columns of a cross rising. */
static void insert_column(struct table_cross *cross, uint32_t column) {
    assert(cross->columns < CROSS_COLUMNS_MAX);
    uint32_t at = cross->columns++;
    for (; at && cross->column[at - 1] > column; at--)
        cross->column[at] = cross->column[at - 1];
    cross->column[at] = column;
}

static int add_cross(struct cross_reader *reader, const struct table_cross *cross) {
    struct table *table = reader->table;
    if (table->crosses == CROSSES_MAX)
        return error_set(ERROR_CONFIG, "\"%s\": more than %u crosses", reader->text, CROSSES_MAX);
    MEMORY_ROOM(table->cross, table->crosses, reader->capacity);
    table->cross[table->crosses++] = *cross;
    return 0;
}

/* "a * b". */
static int read_cross(struct cross_reader *reader) {
    struct table_cross cross = {0};
    struct bytes part;
    const char *at = reader->text;
    int code = 0;
    bytes_init(&part);
    while (!code && list_next(&at, '*', &part)) {
        const char *name = (const char *)part.data;
        uint32_t column = find_column(reader->table, name);
        code = column == reader->table->columns ? no_column(reader, name)
                                                : check_column(reader, &cross, column);
        if (!code)
            insert_column(&cross, column);
    }
    bytes_release(&part);
    if (!code && cross.columns < 2)
        code = error_set(ERROR_CONFIG,
                         "\"%s\" is one column: a cross needs two to %u of them, with "
                         "* between them",
                         reader->text, CROSS_COLUMNS_MAX);
    return code ? code : add_cross(reader, &cross);
}

static bool is_crossed(const struct cross_reader *reader, uint32_t column) {
    enum column_kind kind = reader->table->column[column].kind;
    return kind == COLUMN_CATEGORY || (kind == COLUMN_NUMBER && reader->bins &&
                                       reader->table->column[column].monotone == MONOTONE_NONE);
}

static int add_pairs(struct cross_reader *reader) {
    uint32_t columns = reader->table->columns, before = reader->table->crosses;
    int code = 0;
    for (uint32_t a = 0; a < columns; a++)
        for (uint32_t b = a + 1; b < columns && !code; b++)
            if (is_crossed(reader, a) && is_crossed(reader, b))
                code = add_cross(reader, &(struct table_cross){2, {a, b}});
    if (code || reader->table->crosses > before)
        return code;
    return error_set(ERROR_CONFIG, "\"" CROSS_PAIRS "\": there are no two columns of categories%s",
                     reader->bins ? " or numbers"
                                  : "; to cross numbers, too, set csv.bins, for example "
                                    "csv.bins = 16");
}

static int compare_crosses(const void *a, const void *b) {
    const struct table_cross *x = a, *y = b;
    if (x->columns != y->columns)
        return x->columns < y->columns ? -1 : 1;
    for (uint32_t i = 0; i < x->columns; i++)
        if (x->column[i] != y->column[i])
            return x->column[i] < y->column[i] ? -1 : 1;
    return 0;
}

int table_find_crosses(struct table *table, const char *const *texts, bool bins) {
    struct cross_reader reader = {.table = table, .bins = bins};
    uint32_t differ = 0;
    int code = 0;
    free(table->cross);
    table->cross = NULL;
    table->crosses = 0;
    for (; texts && *texts && !code; texts++) {
        reader.text = *texts;
        code = strcmp(*texts, CROSS_PAIRS) == 0 ? add_pairs(&reader) : read_cross(&reader);
    }
    if (table->crosses)
        qsort(table->cross, table->crosses, sizeof *table->cross, compare_crosses);
    for (uint32_t i = 0; i < table->crosses; i++)
        if (!i || compare_crosses(&table->cross[i], &table->cross[i - 1]))
            table->cross[differ++] = table->cross[i];
    table->crosses = differ;
    table->cross_value = table_cross_value(differ);
    return code;
}

/* ---- levels ---- */

/* The place of each column of the table among those that are crossed, or DICTIONARY_NONE. */
static uint32_t *find_slots(struct crosses *crosses, const struct table *table) {
    uint32_t *slot_of = memory_new(table->columns, sizeof *slot_of);
    for (uint32_t i = 0; i < table->columns; i++)
        slot_of[i] = DICTIONARY_NONE;
    crosses->slot = memory_new(table->columns, sizeof *crosses->slot);
    for (uint32_t k = 0; k < crosses->count; k++) {
        const struct table_cross *cross = &table->cross[k];
        crosses->cross[k].columns = cross->columns;
        for (uint32_t i = 0; i < cross->columns; i++) {
            uint32_t *slot = &slot_of[cross->column[i]];
            *slot = *slot == DICTIONARY_NONE ? crosses->slots++ : *slot;
            crosses->cross[k].slot[i] = *slot;
        }
    }
    assert(crosses->slots <= table->columns);
    return slot_of;
}

/* Makes a column of the set the next level of a slot, unless it is one. */
static void add_level(struct crosses *crosses, uint32_t slot, uint32_t number) {
    if (slot == DICTIONARY_NONE || number == DICTIONARY_NONE ||
        crosses->level[number].slot != DICTIONARY_NONE)
        return;
    assert(slot < crosses->slots);
    struct cross_slot *of = &crosses->slot[slot];
    MEMORY_ROOM(of->number, of->levels, of->capacity);
    crosses->level[number] = (struct cross_level){slot, of->levels};
    of->number[of->levels++] = number;
}

static void find_levels(struct columns *columns, const struct split *split,
                        const uint32_t *slot_of) {
    struct crosses *crosses = columns->crosses;
    crosses->level = memory_new(columns->count, sizeof *crosses->level);
    for (uint32_t i = 0; i < columns->count; i++)
        crosses->level[i].slot = DICTIONARY_NONE;
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = split->packs[p];
        for (uint32_t i = 0; pack->table && i < pack->facts->features; i++)
            if (pack->id[i] >= FEATURE_HASHED)
                add_level(crosses, slot_of[pack->column[i]], columns->of_pack[p].narrow[i]);
    }
    for (uint32_t c = 0; c < columns->table->columns; c++) {
        add_level(crosses, slot_of[c], columns->missing_column[c]);
        for (uint32_t bin = 0; columns->bin_column[c] && bin <= columns->table->column[c].edges;
             bin++)
            add_level(crosses, slot_of[c], columns->bin_column[c][bin]);
    }
}

/* Few possible cells are looked up in an array, many in a hash table of those that occur. */
#define CELLS_DIRECT (UINT64_C(1) << 20)
#define CELLS_MAX (UINT64_C(1) << 62)

static int place_cells(const struct columns *columns, uint32_t number) {
    struct cross *cross = &columns->crosses->cross[number];
    uint64_t cells = 1;
    for (uint32_t i = 0; i < cross->columns; i++) {
        uint64_t levels = columns->crosses->slot[cross->slot[i]].levels;
        levels = levels ? levels : 1;
        if (cells > CELLS_MAX / levels) {
            char *name = table_cross_name(columns->table, &columns->table->cross[number]);
            error_set(ERROR_DATA,
                      "key `cross`: %s can have more than 2^62 values: cross fewer columns, or put "
                      "rare texts together with csv.category_least",
                      name);
            free(name);
            return ERROR_DATA;
        }
        cells *= levels;
    }
    cross->first = cells > CELLS_DIRECT ? DICTIONARY_DIRECT_MAX : 0;
    return 0;
}

/* ---- the cells of a row ---- */

static inline void see_column(const struct crosses *crosses, uint32_t number, uint32_t *level) {
    const struct cross_level *of = &crosses->level[number];
    if (of->slot != DICTIONARY_NONE)
        level[of->slot] = of->level;
}

/* The levels of a row: of text and, after it, of what that brings. A slot without one has
 * DICTIONARY_NONE. */
static void find_row_levels(const struct columns *columns, uint32_t p, const struct pack_rows *rows,
                            uint32_t row, const struct derived *made, uint32_t count,
                            uint32_t *level) {
    const struct crosses *crosses = columns->crosses;
    const uint32_t *column_of = columns->of_pack[p].narrow;
    uint64_t first, end = pack_row(rows, row, &first);
    for (uint32_t i = 0; i < crosses->slots; i++)
        level[i] = DICTIONARY_NONE;
    for (uint64_t i = first; i < end; i++) {
        uint32_t number = column_of[pack_feature(rows, first, i)];
        if (number != DICTIONARY_NONE)
            see_column(crosses, number, level);
    }
    for (uint32_t i = 0; i < count; i++)
        see_column(crosses, made[i].column, level);
}

/* False if the row has no level of one of the columns. */
static inline bool cell_of(const struct crosses *crosses, const struct cross *cross,
                           const uint32_t *level, uint64_t *cell) {
    *cell = 0;
    for (uint32_t i = 0; i < cross->columns; i++) {
        uint32_t slot = cross->slot[i];
        if (level[slot] == DICTIONARY_NONE)
            return false;
        *cell = *cell * crosses->slot[slot].levels + level[slot];
    }
    *cell += cross->first;
    return true;
}

/* ---- what a row has besides its text ----
 *
 * All of it is made here: what its values bring with them, what it has for columns that its file
 * lacks, and its crosses, in this order. */

static uint32_t made_before_crosses(const struct columns *columns, uint32_t p,
                                    const struct pack_rows *rows, uint32_t row,
                                    struct derived *made) {
    const struct absent *absent = &columns->absent[p];
    const bool *derives = columns->derives[p];
    const struct pack_rows of = *rows; /* which nothing below changes */
    uint64_t first, end = pack_row(&of, row, &first);
    uint32_t count = 0;
    for (uint64_t i = first; derives && i < end; i++) {
        uint32_t feature = pack_feature(&of, first, i);
        if (derives[feature])
            count += columns_derived(columns, p, feature, pack_value(&of, i), made + count);
    }
    for (uint32_t i = 0; i < absent->count; i++)
        made[count++] = absent->values[i];
    return count;
}

/* The most values that are made for a row of so many. */
static uint64_t made_most(const struct columns *columns, uint32_t p, uint64_t values) {
    return (columns->derivation[p] ? values + columns->steps_most : 0) + columns->absent[p].count +
           (columns->crosses ? columns->crosses->count : 0);
}

const struct derived *columns_make(const struct columns *columns, uint32_t p,
                                   const struct pack_rows *rows, uint32_t row,
                                   struct bytes *workspace, uint32_t *count) {
    const struct crosses *crosses = columns->crosses;
    uint64_t first, end = pack_row(rows, row, &first), most = made_most(columns, p, end - first);
    bytes_clear(workspace);
    struct derived *made = bytes_extend(
        workspace, most * sizeof *made + (crosses ? crosses->slots : 0) * sizeof(uint32_t));
    uint32_t *level = (uint32_t *)(made + most);
    *count = made_before_crosses(columns, p, rows, row, made);
    if (!crosses)
        return made;
    const double value = columns->table->cross_value;
    find_row_levels(columns, p, rows, row, made, *count, level);
    for (uint32_t k = 0; k < crosses->count; k++) {
        const struct cross *cross = &crosses->cross[k];
        uint64_t cell;
        uint32_t known = cell_of(crosses, cross, level, &cell)
                             ? dictionary_find(&cross->cells, cell)
                             : DICTIONARY_NONE;
        if (known != DICTIONARY_NONE)
            made[(*count)++] = (struct derived){cross->number[known], value};
    }
    assert(*count <= most);
    return made;
}

uint64_t columns_made(const struct columns *columns, uint32_t p, const struct pack_rows *rows,
                      uint32_t row, struct bytes *workspace) {
    uint64_t first, end = pack_row(rows, row, &first), made = columns->absent[p].count;
    uint32_t count;
    if (columns->crosses) {
        columns_make(columns, p, rows, row, workspace, &count);
        return count;
    }
    const bool *derives = columns->derives[p];
    for (uint64_t i = first; derives && i < end; i++) {
        uint32_t feature = pack_feature(rows, first, i);
        if (derives[feature])
            made += columns_derived(columns, p, feature, pack_value(rows, i), NULL);
    }
    return made;
}

uint64_t columns_made_most(const struct columns *columns, uint32_t p,
                           const struct pack_rows *rows) {
    uint64_t longest = 0;
    for (uint32_t row = 0; row < rows->rows; row++) {
        uint64_t first, end = pack_row(rows, row, &first);
        longest = end - first > longest ? end - first : longest;
    }
    return longest + made_most(columns, p, longest);
}

/* ---- the cells of the training rows ---- */

/* Threads take some crosses each, and go over all rows. */
struct cell_count {
    const struct columns *columns;
    const struct split *split;
    uint32_t each;
    pthread_mutex_t mutex; /* guards what follows */
    uint32_t next;
    bool too_many;
};

static bool count_row_cells(const struct crosses *crosses, uint32_t first, uint32_t end,
                            const uint32_t *level) {
    for (uint32_t k = first; k < end; k++) {
        struct cross *cross = &crosses->cross[k];
        uint64_t cell;
        if (!cell_of(crosses, cross, level, &cell))
            continue;
        uint32_t number = dictionary_number(&cross->cells, cell);
        if (number == DICTIONARY_NONE)
            return false;
        if (number == cross->counted) {
            MEMORY_ROOM(cross->values, cross->counted, cross->capacity);
            cross->values[cross->counted++] = 0;
        }
        cross->values[number]++;
    }
    return true;
}

static bool count_cells_of(const struct cell_count *counting, uint32_t first, uint32_t end) {
    const struct columns *columns = counting->columns;
    const struct split *split = counting->split;
    /* What is made of a column: a bin or a mean, or two values where its file lacks it. */
    size_t most = 3 * (size_t)columns->table->columns + columns->steps_most;
    struct derived *made = memory_new(most, sizeof *made);
    uint32_t *level = memory_new(columns->crosses->slots, sizeof *level);
    bool fits = true;
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t b = 0; b < split->packs[p]->facts->blocks && fits; b++) {
            struct pack_rows rows = pack_rows(split->packs[p], b);
            for (uint32_t row = 0; row < rows.rows && fits; row++) {
                if (split_side(split, p, b, row) != ROW_TRAINED)
                    continue;
                uint32_t count = made_before_crosses(columns, p, &rows, row, made);
                assert(count <= most);
                find_row_levels(columns, p, &rows, row, made, count, level);
                fits = count_row_cells(columns->crosses, first, end, level);
            }
        }
    free(made);
    free(level);
    return fits;
}

static void *count_cells(void *argument) {
    struct cell_count *counting = argument;
    uint32_t count = counting->columns->crosses->count;
    for (;;) {
        pthread_mutex_lock(&counting->mutex);
        uint32_t first = counting->too_many ? count : counting->next;
        uint32_t end = count - first < counting->each ? count : first + counting->each;
        assert(first <= end && end <= count);
        counting->next = end;
        pthread_mutex_unlock(&counting->mutex);
        if (first == end)
            return NULL;
        if (count_cells_of(counting, first, end))
            continue;
        pthread_mutex_lock(&counting->mutex);
        counting->too_many = true;
        pthread_mutex_unlock(&counting->mutex);
    }
}

/* The feature of a cell; its levels are told by the columns that they are. */
static uint64_t cell_feature(const struct columns *columns, const struct cross *cross,
                             uint64_t cell, const uint64_t *id) {
    uint64_t part[CROSS_COLUMNS_MAX];
    cell -= cross->first;
    for (uint32_t i = cross->columns; i-- > 0;) {
        const struct cross_slot *slot = &columns->crosses->slot[cross->slot[i]];
        part[i] = id[slot->number[cell % slot->levels]];
        cell /= slot->levels;
    }
    assert(!cell); /* it was its levels and nothing else */
    return table_cross_feature(part, cross->columns);
}

/* Makes columns of the cells of a cross that enough rows have, and forgets the others. */
static int keep_cells(struct columns *columns, struct column_builder *builder, struct cross *cross,
                      uint32_t least) {
    struct dictionary counted = cross->cells;
    uint32_t kept = 0;
    dictionary_init(&cross->cells);
    for (uint32_t i = 0; i < counted.count; i++)
        kept += cross->values[i] >= least;
    bool fits = kept <= FEATURES_MAX - columns->count;
    if (fits) {
        column_builder_reserve(columns, builder, kept);
        cross->number = memory_new(kept, sizeof *cross->number);
    }
    for (uint32_t i = 0; i < counted.count && fits; i++) {
        if (cross->values[i] < least)
            continue;
        cross->number[dictionary_add(&cross->cells, counted.id[i])] = columns_of_table(columns);
        column_builder_add(columns, builder,
                           cell_feature(columns, cross, counted.id[i], builder->id),
                           cross->values[i]);
    }
    assert(!fits || cross->cells.count == kept);
    dictionary_release(&counted);
    free(cross->values);
    cross->values = NULL;
    return fits ? 0
                : error_set(ERROR_DATA, "the data has more than %u different features",
                            FEATURES_MAX);
}

int columns_cross(struct columns *columns, struct column_builder *builder,
                  const struct set_options *options) {
    struct table *table = columns->table;
    int code = table_find_crosses(table, options->cross, options->bins > 0);
    if (code || !table->crosses)
        return code;
    struct crosses *crosses = columns->crosses = memory_new(1, sizeof *crosses);
    crosses->count = table->crosses;
    crosses->cross = memory_new(crosses->count, sizeof *crosses->cross);
    uint32_t *slot_of = find_slots(crosses, table);
    find_levels(columns, builder->split, slot_of);
    free(slot_of);
    columns_list_absent(columns, builder->split);
    for (uint32_t k = 0; k < crosses->count && !code; k++)
        code = place_cells(columns, k);
    unsigned threads = options->threads < 1 ? 1 : options->threads;
    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    struct cell_count counting = {.columns = columns,
                                  .split = builder->split,
                                  .each = crosses->count / threads + (crosses->count % threads > 0),
                                  .mutex = PTHREAD_MUTEX_INITIALIZER};
    if (!code)
        threads_run(threads, count_cells, &counting);
    if (counting.too_many)
        code =
            error_set(ERROR_DATA, "the crosses have more than %u different values", FEATURES_MAX);
    for (uint32_t k = 0; k < crosses->count && !code; k++)
        code = keep_cells(columns, builder, &crosses->cross[k], options->cross_least);
    return code;
}

/* ---- numbers and names ---- */

void crosses_renumber(struct crosses *crosses, const uint32_t *to) {
    for (uint32_t i = 0; i < crosses->slots; i++)
        for (uint32_t k = 0; k < crosses->slot[i].levels; k++)
            crosses->slot[i].number[k] = to[crosses->slot[i].number[k]];
    for (uint32_t k = 0; k < crosses->count; k++)
        for (uint32_t i = 0; i < crosses->cross[k].cells.count; i++)
            crosses->cross[k].number[i] = to[crosses->cross[k].number[i]];
}

void crosses_find_levels(struct crosses *crosses, uint32_t columns) {
    crosses->level = memory_resize(crosses->level, columns, sizeof *crosses->level);
    for (uint32_t i = 0; i < columns; i++)
        crosses->level[i].slot = DICTIONARY_NONE;
    for (uint32_t i = 0; i < crosses->slots; i++)
        for (uint32_t k = 0; k < crosses->slot[i].levels; k++)
            crosses->level[crosses->slot[i].number[k]] = (struct cross_level){i, k};
}

char *crosses_name(const struct columns *columns, uint32_t number, uint32_t known) {
    const struct cross *cross = &columns->crosses->cross[number];
    uint64_t cell = cross->cells.id[known] - cross->first;
    assert(known < cross->cells.count);
    char *name = NULL;
    for (uint32_t i = cross->columns; i-- > 0;) {
        const struct cross_slot *slot = &columns->crosses->slot[cross->slot[i]];
        const char *part = columns->name[slot->number[cell % slot->levels]];
        char *longer = name ? memory_format("%s * %s", part, name) : memory_copy_string(part);
        free(name);
        name = longer;
        cell /= slot->levels;
    }
    return name;
}

void crosses_free(struct crosses *crosses) {
    for (uint32_t i = 0; crosses && i < crosses->slots; i++)
        free(crosses->slot[i].number);
    for (uint32_t k = 0; crosses && k < crosses->count; k++) {
        dictionary_release(&crosses->cross[k].cells);
        free(crosses->cross[k].values);
        free(crosses->cross[k].number);
    }
    if (crosses) {
        free(crosses->slot);
        free(crosses->cross);
        free(crosses->level);
    }
    free(crosses);
}
