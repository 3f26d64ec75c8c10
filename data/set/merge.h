/* The decisions of a merge before it writes rows: sides, columns, classes, chunks. They depend on
 * the rows alone, and not on how the rows are spread over packs. */
#ifndef DML_DATA_SET_MERGE_H
#define DML_DATA_SET_MERGE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "data/pack/pack_file.h"
#include "data/set/set_file.h"
#include "data/source/dictionary.h"

/* ---- sides ---- */

enum row_side {
    ROW_TRAINED,
    ROW_HELD,     /* kept for chunks of the holdout */
    ROW_LEFT_OUT, /* of the set: of another fold, or of weight 0 */
};

/* The packs of a merge (packs of the holdout come last), and the side of each row. */
struct split {
    struct pack **packs; /* the array is owned */
    uint32_t count;
    uint32_t trained;    /* the first packs, without those of the holdout */
    uint8_t **side;      /* for each pack: enum row_side of each row; NULL: all are trained on */
    uint64_t held_out;   /* rows, by their hash */
    uint64_t of_fold;    /* rows that are left out for their fold */
    uint64_t weightless; /* rows that are left out for their weight of 0 */
    /* Whether some row that is not left out has another weight than 1; and some that is trained on.
     */
    bool weighted, trained_weighted;
};

int split_make(struct split *split, struct pack *const *packs, uint32_t count,
               const struct set_options *options);
void split_release(struct split *split);

/* How many rows of a pack are trained on. */
uint64_t split_count_trained(const struct split *split, uint32_t p);

/* The side of row `row` of a block. */
static inline enum row_side split_side(const struct split *split, uint32_t pack, uint32_t block,
                                       uint32_t row) {
    const uint8_t *side = split->side[pack];
    return side ? side[split->packs[pack]->block[block].first_row + row] : ROW_TRAINED;
}

/* ---- columns ---- */

#define COLUMN_NONE UINT64_MAX

/* Numbers of columns: of 32 bits each, or of 64 where there may be more than FEATURES_MAX columns.
 */
struct column_numbers {
    uint32_t *narrow; /* DICTIONARY_NONE: no column */
    uint64_t *wide;   /* COLUMN_NONE: no column */
};

static inline uint64_t column_number(const struct column_numbers *numbers, uint64_t i) {
    if (!numbers->narrow)
        return numbers->wide[i];
    return numbers->narrow[i] == DICTIONARY_NONE ? COLUMN_NONE : numbers->narrow[i];
}

/* COLUMN_NONE becomes DICTIONARY_NONE. */
static inline void column_number_put(struct column_numbers *numbers, uint64_t i, uint64_t column) {
    if (numbers->narrow)
        numbers->narrow[i] = (uint32_t)column;
    else
        numbers->wide[i] = column;
}

struct column_numbers column_numbers_new(uint64_t count, bool wide);
void column_numbers_free(struct column_numbers *numbers);

/* Of the rows that are trained on. */
struct columns {
    uint64_t count;
    uint64_t *id;                   /* original id of each column */
    uint64_t *values;               /* how many values the text had of each, with room for
                                       one more */
    const char **name;              /* into the packs, or NULL */
    struct column_numbers order;    /* columns by rising id */
    bool wide;                      /* there are more than numbers of 32 bits are for: FEATURES_MAX,
                                       or fewer in tests. Then there is no table */
    struct column_numbers *of_pack; /* for each pack: the column of each of its features, if any */
    uint32_t packs;
    struct table *table;                   /* CSV: with what the rows teach; owned. Else NULL */
    uint32_t *number_column, *rare_column; /* of each column of the table, or DICTIONARY_NONE: that
                                              of its number, and of its rare values */
    uint32_t steps_most;      /* how many bins a row can have beyond one for each number */
    uint32_t **bin_column;    /* of each column of the table: those of its bins, or NULL */
    uint32_t *missing_column; /* of each column of the table that some pack lacks: the column that
                                 says so, or DICTIONARY_NONE */
    struct derivation *
        *derivation;         /* for each pack: of each of its features; NULL if it has none, */
    bool **derives;          /* and whether there is one for it: rows are gone over by this */
    struct absent *absent;   /* for each pack */
    struct crosses *crosses; /* or NULL */
    uint32_t texts;          /* columns of texts that the table has; 0: the rest is not used */
    uint32_t *text_number;   /* of each column of the table: its number among these, or
                                DICTIONARY_NONE */
    bool *has_words;         /* for each pack */
    double *idf;             /* of each column, 0 if it is no word; NULL: words are not weighed */
    double *centre;          /* what is taken off the values of each column; NULL: nothing */
    uint64_t *far;           /* the columns that something is taken off; owned */
    size_t far_count;
    char **made_name; /* names that no pack has; owned; `made_names` of them */
    uint32_t made_names, made_capacity;
};

/* ---- crossed columns: data/set/cross.c ---- */

/* A column of the set as one of those that a row has one of. */
struct cross_level {
    uint32_t slot; /* DICTIONARY_NONE: it is none */
    uint32_t level;
};

/* A column of the table that is crossed. */
struct cross_slot {
    uint32_t levels, capacity;
    uint32_t *number; /* the column of the set that each level is; owned */
};

struct cross {
    uint32_t columns;
    uint32_t slot[CROSS_COLUMNS_MAX];
    uint64_t first;          /* what a cell's number begins at */
    struct dictionary cells; /* those that are columns; while they are counted, all that occur */
    uint32_t *number;        /* of each cell: the column of the set; owned */
    uint64_t *values;        /* while they are counted: rows of each cell; owned */
    uint32_t counted, capacity;
};

struct crosses {
    struct cross *cross; /* `count`, as in the table; owned */
    uint32_t count;
    struct cross_slot *slot; /* owned */
    uint32_t slots;
    struct cross_level *level; /* of each column of the set; owned */
};

/* What the value of a feature brings with it: the mean of the number that it says is missing, or
 * the bin that it is in. */
struct derivation {
    const struct table_column *column; /* of the table; NULL: nothing */
    const uint32_t *bin_column;        /* of each of the bins; NULL: the mean */
    const uint32_t *number_column;     /* the number's */
};

struct derived {
    uint32_t column;
    double value;
};

/* What every row of a pack has besides, for the columns of the table that its file lacks. */
struct absent {
    struct derived *values; /* owned */
    uint32_t count;
};

/* Whether a feature is a column. */
static inline bool columns_has(const struct columns *columns, uint32_t pack, uint32_t feature) {
    return column_number(&columns->of_pack[pack], feature) != COLUMN_NONE;
}

/* Whether a feature brings something with it. */
static inline bool columns_derive(const struct columns *columns, uint32_t pack, uint32_t feature) {
    return columns->derives[pack] && columns->derives[pack][feature];
}

/* Writes what its value brings to `made`, unless that is NULL, and answers how many these are: a
 * mean, a bin, or of a monotone number all bins up to its own but the first. */
static inline uint32_t columns_derived(const struct columns *columns, uint32_t pack,
                                       uint32_t feature, double value, struct derived *made) {
    const struct derivation *derivation = &columns->derivation[pack][feature];
    if (!derivation->bin_column) {
        if (made)
            *made = (struct derived){*derivation->number_column, derivation->column->mean};
        return 1;
    }
    uint32_t bin = table_bin(derivation->column, value);
    uint32_t first = derivation->column->monotone == MONOTONE_NONE ? bin : 1;
    for (uint32_t i = first; made && i <= bin; i++)
        made[i - first] = (struct derived){derivation->bin_column[i], 1};
    return bin + 1 - first;
}

/* Whether rows of a pack have more than their text has. */
static inline bool columns_makes(const struct columns *columns, uint32_t pack) {
    return columns->derivation[pack] || columns->absent[pack].count || columns->crosses;
}

/* Makes all that a row has besides its text: *count values, valid until the workspace is used
 * again. Safe from many threads. */
const struct derived *columns_make(const struct columns *columns, uint32_t pack,
                                   const struct pack_rows *rows, uint32_t row,
                                   struct bytes *workspace, uint32_t *count);

/* How many these are. */
uint64_t columns_made(const struct columns *columns, uint32_t pack, const struct pack_rows *rows,
                      uint32_t row, struct bytes *workspace);

/* At least as many as any row of a block has, its text's values included. */
uint64_t columns_made_most(const struct columns *columns, uint32_t pack,
                           const struct pack_rows *rows);

int columns_find(struct columns *columns, const struct split *split,
                 const struct set_options *options);
void columns_release(struct columns *columns);

/* Finds the means of the numbers over the training rows, and with `bins` the edges that part them
 * into so many (data/set/bins.h). Neither depends on how rows are ordered or spread. */
void column_stats_find(struct table *table, const struct split *split, uint32_t bins,
                       unsigned threads);

/* Columns while they are found, for the files that do so. What is found is numbered by first
 * appearance; `columns` holds such numbers until they are ordered by frequency. */
struct column_builder {
    const struct split *split;
    struct wide_dictionary dictionary; /* by first appearance */
    uint64_t *id;                      /* what is numbered so; owned */
    uint64_t *values;                  /* how many values training has of each; owned */
    uint64_t room;                     /* of both */
    uint64_t **trained; /* for each pack that is split: the number of values of each feature,
                           counted over training rows */
    struct bytes order; /* workspace: features of a row in the text's order */
};

/* Prepares the columns of a table as its training rows say: makes bins, finds what values bring
 * with them, and puts the rare values of categories together. ERROR_DATA for a category in which
 * nearly every row differs. */
int columns_prepare(struct columns *columns, struct column_builder *builder,
                    const struct set_options *options);

/* Finds the crosses of the columns that are there, and adds their cells behind them.
 * ERROR_CONFIG or ERROR_DATA if columns cannot be crossed so, or there would be too many. */
int columns_cross(struct columns *columns, struct column_builder *builder,
                  const struct set_options *options);

/* Replaces the numbers of columns by their places in `to`; then the levels of so many. */
void crosses_renumber(struct crosses *crosses, const uint32_t *to);
void crosses_find_levels(struct crosses *crosses, uint32_t columns);

/* The name of cell `known` of cross `number`, of the names of the other columns. Free it. */
char *crosses_name(const struct columns *columns, uint32_t number, uint32_t known);
void crosses_free(struct crosses *crosses); /* harmless on NULL */

/* Makes room for so many more columns. */
void column_builder_reserve(const struct columns *columns, struct column_builder *builder,
                            uint64_t more);

/* Adds a column behind those that are there. */
void column_builder_add(struct columns *columns, struct column_builder *builder, uint64_t id,
                        uint64_t values);

/* Counts what the training rows of packs have for columns that their files lack: what says that a
 * number or a category is missing, which may be a column of its own, and the number's mean. */
void columns_find_absent(struct columns *columns, struct column_builder *builder);

/* Lists it for each pack, by the numbers that columns have now. */
void columns_list_absent(struct columns *columns, const struct split *split);

/* Notes the columns of texts, and which packs have some. */
void columns_find_texts(struct columns *columns, const struct split *split);

/* Whether a feature of a pack is a word; of a pack that has some. */
bool columns_is_word(const struct columns *columns, const struct pack *pack, uint32_t feature);

/* Finds out what words weigh, if they do, when columns have their final numbers. */
void columns_weigh_words(struct columns *columns, const struct split *split);

/* Whether a pack has words: then rows have other values, or fewer, than there. */
static inline bool columns_has_words(const struct columns *columns, uint32_t pack) {
    return columns->texts && columns->has_words[pack];
}

/* The values of a row of a pack that has words, as a set has them; in the workspace. */
const double *columns_row_values(const struct columns *columns, const struct split *split,
                                 uint32_t p, const struct pack_rows *rows, uint32_t row,
                                 struct bytes *workspace);

/* The type of the value that a word has in a set of which a text has it so often. */
enum value_type columns_word_type(const struct columns *columns, double count);

/* Replaces each number by its place in `to`, as a number may be none. */
void columns_renumber(struct columns *columns, const struct split *split,
                      const struct column_numbers *to);

/* How many columns there are, of a table. */
static inline uint32_t columns_of_table(const struct columns *columns) {
    assert(!columns->wide && columns->count < DICTIONARY_NONE);
    return (uint32_t)columns->count;
}

/* Names the columns that no pack names. */
void columns_make_names(struct columns *columns);

/* ---- labels ---- */

/* A target less the offset of its row, and how far rounding may have moved it. */
struct weighed_residual {
    double residual, weight, rounding;
};

/* Sums up targets one by one. Zeroed memory is empty. */
struct targets {
    double least, sum, weights;
    struct weighed_residual *sample; /* of every stride-th target */
    uint32_t sampled;
    uint64_t stride, seen;
};

void targets_finish(struct targets *targets, struct label_summary *summary);

struct labels {
    enum label_kind kind;
    const char *const *order;  /* as in struct set_options */
    char separator;            /* likewise */
    uint64_t distinct;         /* labels met so far */
    struct dictionary numbers; /* the bits of a double as id */
    struct text_dictionary texts;
    uint32_t *class_of_number, *class_of_text;
    uint32_t **text_of_pack; /* for each pack: its label texts in `texts`; of LABEL_LISTS in: */
    struct text_dictionary lists; /* whole lists as texts; `numbers` and `texts` are their parts */
    uint32_t *list_start, *list_class; /* as in struct label_lists, for each of `lists`; owned */
    uint32_t packs;
    uint32_t classes;
    char **class_name; /* owned */
    double max_abs;    /* of targets, where the row's weight is not 0 */
    struct targets targets;
};

/* Looks at the labels of the rows that are trained on. */
int labels_find(struct labels *labels, const struct split *split,
                const struct set_options *options);
void labels_release(struct labels *labels);

/* The label of a row as the set stores it; NaN if no row that is trained on has it. Safe from many
 * threads. */
double label_of_row(const struct labels *labels, uint32_t pack, const struct pack_rows *rows,
                    uint32_t row);

/* Leaves out the held-out rows whose label no training row has; answers how many. */
uint64_t labels_leave_out(const struct labels *labels, struct split *split);

/* ---- offsets ---- */

/* Those of all rows of the set: the offset of a row, with the logarithm of its exposure. */
struct row_offsets {
    bool any; /* some offset is not 0; else the rest is not used */
    struct offset_summary summary;
};

/* Looks at the rows that are trained on, and at those that are held out. */
void row_offsets_find(struct row_offsets *offsets, const struct split *split);

/* Whether rows that are trained on have clusters: all have, or none. */
bool split_has_clusters(const struct split *split);

static inline double row_offset_of(const struct pack_rows *rows, uint32_t row) {
    return rows->offset ? rows->offset[row] : 0;
}

/* ---- weights ---- */

/* The weights of rows as the set stores them: that of the row, times that of its class, times
 * 2^exponent. */
struct row_weights {
    bool weighted;    /* some weight is not 1; else the rest is not used */
    double *of_class; /* or NULL: all 1 */
    int exponent;
    double sum, held_sum; /* of stored weights: of training rows, of held-out rows */
};

/* Looks at the rows that are trained on, and at those that are held out. */
int row_weights_find(struct row_weights *row_weights, const struct split *split,
                     const struct labels *labels, const char *const *class_weight);
void row_weights_release(struct row_weights *row_weights);

/* The weight of a row whose label the set stores as `label`. Safe from many threads. */
static inline double row_weight_of(const struct row_weights *row_weights,
                                   const struct pack_rows *rows, uint32_t row, double label) {
    double weight = rows->weight ? rows->weight[row] : 1;
    return ldexp(row_weights->of_class ? weight * row_weights->of_class[(uint32_t)label] : weight,
                 row_weights->exponent);
}

/* Whether a text of a label means that class. */
bool label_means(const struct labels *labels, uint32_t class, const char *text);

/* ---- chunks ---- */

/* A block of a pack that has rows of a side, and the number of its first one within the side. */
struct merge_block {
    uint64_t first_row;
    uint32_t pack, block;
};

/* The rows of one side. */
struct plan_part {
    enum row_side side;
    enum value_type type; /* the narrowest that holds all values exactly */
    uint64_t rows;
    uint64_t values;           /* in the text, of features that are columns */
    struct merge_block *block; /* owned */
    uint32_t blocks;
};

/* What rows have in the set's chunks beside label and values. */
struct chunk_extras {
    bool weighted, shifted, clustered;
};

struct chunk_plan {
    struct plan_part trained, held;
    bool dense;
    bool wide; /* columns have 64 bits until they are cut into strips */
    bool shuffled;
    uint32_t block_rows;     /* of a shuffled set: rows of its chunks of training; else 0 */
    uint64_t key;            /* of a shuffled set: of the permutation of training rows */
    uint64_t values;         /* of what is trained on, as stored */
    struct set_chunk *chunk; /* owned; offsets and checksums are not set. Those of `held` last */
    uint32_t chunks, held_chunks;
    uint32_t strip_columns, strips; /* 0: not in tiles */
    struct set_tile *tile; /* owned; by their numbers. tiles_place() sets all but checksums */
};

/* What is taken off a value of a column. */
static inline double columns_centre(const struct columns *columns, uint64_t column) {
    return columns->centre ? columns->centre[column] : 0;
}

/* Finds the columns that are far from 0, and their centres, from some of the rows that are trained
 * on. */
void columns_find_centres(struct columns *columns, const struct split *split,
                          const struct plan_part *trained);

/* How many far columns a row has no value of: the set has a value for each, 0 less the centre. */
uint32_t columns_lacking(const struct columns *columns, uint32_t p, const struct pack_rows *rows,
                         uint32_t row, struct bytes *workspace);

/* Finds centres first, if the options ask for it. Weights and offsets change neither where chunks
 * begin nor how many there are. ERROR_DATA if a
 * chunk of a shuffled set would have more values than can be numbered, or there would be too many
 * tiles. */
int chunk_plan_make(struct chunk_plan *plan, const struct split *split, struct columns *columns,
                    const struct chunk_extras *extras, const struct set_options *options);
void chunk_plan_release(struct chunk_plan *plan);

/* Where the arrays of a chunk are while it is made: those of the set, but for the columns of a wide
 * one. */
struct set_chunk_layout chunk_plan_layout(const struct chunk_plan *plan,
                                          const struct set_chunk *chunk);

static inline uint32_t chunk_plan_trained(const struct chunk_plan *plan) {
    return plan->chunks - plan->held_chunks;
}

/* Where a shuffled set has training row `row`, as the packs count. */
static inline uint64_t chunk_plan_place(const struct chunk_plan *plan, uint64_t row) {
    return permutation_inverse(row, plan->trained.rows, plan->key);
}

/* How many values a row has as it is stored: of a dense one, a value for each column. */
uint64_t chunk_plan_values(const struct chunk_plan *plan, const struct columns *columns,
                           const struct split *split, uint32_t pack, const struct pack_rows *rows,
                           uint32_t row, struct bytes *workspace);

static inline bool chunk_plan_is_held(const struct chunk_plan *plan, uint32_t chunk) {
    return chunk >= chunk_plan_trained(plan);
}

/* ---- rows ---- */

/* Walks over the rows of a side. */
struct row_walk {
    const struct split *split;
    const struct plan_part *part;
    uint32_t block; /* of the part */
    uint32_t pack;
    struct pack_rows rows;
    uint32_t row; /* within `rows` */
};

/* Stands at row `first` of the part. */
struct row_walk row_walk_from(const struct split *split, const struct plan_part *part,
                              uint64_t first);
void row_walk_next(struct row_walk *walk);

/* The number of the first row behind block `block` of the part. */
static inline uint64_t plan_part_end(const struct plan_part *part, uint32_t block) {
    return block + 1 < part->blocks ? part->block[block + 1].first_row : part->rows;
}

/* ---- chunks are filled: columns renumbered and sorted, values as the set stores them ---- */

/* Memory of one thread. */
struct chunk_buffer {
    uint8_t *data; /* the chunk as stored; 64-byte aligned; owned */
    size_t capacity;
    struct bytes sorting; /* workspace: the values of some rows */
    struct bytes places;  /* workspace: where each row's next value goes */
    struct bytes tile;    /* workspace: a tile as stored */
    struct bytes made;    /* workspace: what a row has besides its text */
    struct bytes words;   /* workspace: the values of a row with words */
};

void chunk_buffer_init(struct chunk_buffer *buffer);
void chunk_buffer_release(struct chunk_buffer *buffer);

/* What rows are made from. */
struct chunk_source {
    const struct split *split;
    const struct columns *columns;
    const struct labels *labels;
    const struct row_weights *row_weights;
    const struct chunk_plan *plan;
};

/* Fills buffer->data, chunk->bytes of it, with the rows of `part` from chunk->first_row on. */
void chunk_fill(struct chunk_buffer *buffer, const struct chunk_source *source,
                const struct set_chunk *chunk, const struct plan_part *part);

/* How many values the rows of a chunk, which are of `part`, have in each strip of the plan. */
void chunk_count_strips(struct chunk_buffer *buffer, const struct chunk_source *source,
                        const struct set_chunk *chunk, const struct plan_part *part,
                        uint64_t *values);

/* ---- tiles ---- */

/* Counts the values of all tiles, on up to `threads` threads, and reserves the place of each, and
 * that of each chunk's head. */
void tiles_place(const struct chunk_source *source, struct chunk_plan *plan,
                 struct container_writer *container, unsigned threads);

/* Writes head and tiles of the chunk that is in the buffer, and notes their checksums. ERROR_DATA
 * if the values of a row are too large to be added. */
int tiles_write(struct chunk_buffer *buffer, struct chunk_plan *plan, uint32_t chunk,
                const struct container_writer *container);

/* Some consecutive chunks of training of a shuffled set, whose rows are all over the packs: they
 * are filled together, as the packs' blocks are walked over in order. */
struct chunk_window {
    uint32_t first, end;
    uint8_t *data; /* where a chunk of offset 0 would be; the window's chunks are zeroed */
};

/* The stages of filling a window: each is done for all blocks of the part, or all chunks of the
 * window, before the next; by many threads at once, as each takes other blocks or chunks. The first
 * two are for sparse rows alone. */
typedef void chunk_window_stage(struct chunk_buffer *buffer, const struct chunk_source *source,
                                const struct chunk_window *window, uint32_t item);
chunk_window_stage chunk_window_count; /* block: notes how many values each of its rows here has */
chunk_window_stage chunk_window_start; /* chunk: makes of that where its rows begin */
chunk_window_stage chunk_window_fill;  /* block: puts its rows that go here to their places */

#endif
