/* The data set of a run: its packs merged into one numbered set of chunks.
 *
 * data/ turns files into packs, and packs into sets. It knows base/ and exact sums of numeric/, and
 * nothing of objectives, models and runs. The way of a row from its file to a chunk is in eight
 * files:
 *
 *   data/pipeline.c         threads read blocks of a file; rows are handed out in its order
 *   data/csv/csv.c          a line becomes a row of a batch (data/csv/format.c: LIBSVM;
 *                           data/array_reader.c: arrays)
 *   data/pack/pack_write.c  the ids of the row's features get the numbers of the pack
 *   data/pack/pack_file.c   the rows of a batch become a block of the pack, and come back from it
 *   columns_find.c          the features of all packs become columns of the set
 *   chunk_fill.c            the row, its columns sorted, goes to its place in a chunk
 *   tiles.c                 of a wide set: the chunk is cut along columns
 *   set.c                   the chunk is verified and handed to whoever computes
 *
 * Between packs and chunks set_write.c decides which rows are trained on (split.c), the columns,
 * labels (labels.c), weights (weights.c) and where chunks begin (plan.c).
 *
 * Features are numbered by falling floor(log2(count)), then by first appearance in the order of
 * files, rows and positions; within a row they are sorted. A chunk is a block of consecutive rows:
 * the atom of work. Chunks depend on the data alone. One file or the same rows in many give the
 * same bytes. The training rows of a shuffled set are in an order that follows from a seed, for
 * optimizers that take a few chunks at a time. Format: see doc/FORMATS.md. */
#ifndef DML_DATA_SET_SET_H
#define DML_DATA_SET_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/column_order.h"
#include "base/rows.h"
#include "data/pack/pack.h"
#include "data/set/holdout.h"
#include "data/table/table.h"

struct set_info {
    uint64_t rows, values;
    uint64_t features; /* columns, without an intercept; at most FEATURES_MAX if not in tiles */
    uint32_t chunks;
    uint32_t block_rows; /* shuffled: the rows of each chunk of training; the last may have fewer.
                            Else 0 */
    uint32_t strip_columns; /* of each strip of a set in tiles, the last may have fewer; else 0 */
    bool dense;
    enum value_type type; /* VALUE_BYTE: every value is a byte of an image, 0 to 255 */
    enum label_kind labels;
    uint32_t classes;                    /* 2 for binary, 0 for targets */
    const char *const *class_names;      /* `classes` texts, as in the data: "1", "-1", "M" */
    double label_max_abs;                /* targets: the largest |target| */
    const struct label_summary *targets; /* NULL for classes */
    const struct label_lists *lists;     /* of LABEL_LISTS; else NULL */
    const uint64_t *feature_id;          /* original id of each column */
    struct column_order original_order;  /* columns by rising original id: a permutation */
    const char *const *feature_names;    /* by column, or NULL: CSV */
    const struct table *table; /* CSV: what the columns of the files are, with the means of the
                                  training rows; or NULL */
    const uint64_t *counts;    /* by column, how many values the training rows had in the text */
    const double *idf; /* CSV with texts: by column, what a word weighs (data/set/weigh_words.c), 0
                          of others; or NULL */
    const double *centre;    /* by column, what chunks have less than the data: a column that is
                                far from 0 is stored as its differences from that, 0 of
                                others; or NULL: chunks have the values of the data */
    const int16_t *exponent; /* base exponents (numeric/fixed.h), `features` + 1 with that
                                of the intercept last */
    bool uniform;            /* one exponent will do: */
    int uniform_exponent;
    const char *fingerprint; /* of the data and how it was merged */
    uint64_t rejected;       /* malformed lines skipped, over all sources */

    /* Weights as chunks have them: those of the row and of its class multiplied, times 2^exponent,
     * which makes their mean about 1. */
    bool weighted;       /* else all weights are 1 */
    int weight_exponent; /* else 0 */
    double weight_sum;   /* of training, the exact sum rounded once; `rows` unless weighted */
    double weight_total; /* the sum of the weights as they were given */
    const double *class_weight; /* `classes`, as given or balanced; NULL: classes have none */

    bool has_offsets;              /* some row has another offset than 0 */
    struct offset_summary offsets; /* of training rows */

    /* Everything above except `chunks` describes the training rows alone. */
    uint32_t fold;             /* that was left out, from 1; 0: none */
    double holdout;            /* the share of the rows that is held out by hash, or 0 */
    uint64_t rows_held_out;    /* by that share, whether they are kept here or not */
    uint32_t holdout_chunks;   /* the last ones of `chunks`, 0 unless holdout rows were kept: */
    uint64_t holdout_rows;     /* the rows in them, */
    double holdout_weight_sum; /* the sum of their weights, */
    uint64_t holdout_unseen;   /* and the held-out rows left out: no training row has their label */
};

static inline uint32_t set_training_chunks(const struct set_info *info) {
    return info->chunks - info->holdout_chunks;
}

/* Chunks of a set in tiles are cut along columns, too: tile number s·C + c is what the rows of
 * chunk c have in the columns of strip s, with C chunks. */
static inline uint32_t set_strips(const struct set_info *info) {
    return info->strip_columns ? (uint32_t)strips_of(info->features, info->strip_columns) : 0;
}

static inline uint32_t set_tiles(const struct set_info *info) {
    return set_strips(info) * info->chunks;
}

/* How many rows vectors of rows have: in tiles those of the holdout as well, whose losses are found
 * by their margins. */
static inline uint64_t set_vector_rows(const struct set_info *info) {
    return info->rows + (info->strip_columns ? info->holdout_rows : 0);
}

struct set; /* opaque; a mapped file. Reading chunks is safe from many threads. */

/* How a set is made, and from what besides the training packs. */
struct set_options {
    enum label_kind labels;
    const char *positive;     /* the positive class of binary labels, or NULL */
    const char *const *order; /* of LABEL_ORDERED: the labels from low to high, NULL-terminated; or
                                 NULL: they are numbers */
    char separator;           /* of LABEL_LISTS: as in struct source_options */
    double holdout; /* share of the packs' rows that is held out by hash (data/set/holdout.h) */
    struct holdout_pick fold;          /* if it has folds: its rows are left out, too */
    struct pack *const *holdout_packs; /* or whole packs that are held out */
    uint32_t holdout_count;
    const char *const *class_weight; /* "balanced" alone, or LABEL = WEIGHT for some classes, as of
                                        class_weight_parse(); NULL-terminated; or NULL: all 1 */
    bool keep_holdout;               /* put held-out rows into chunks after those of training */
    uint32_t category_least; /* a category's texts that fewer training rows have are one feature */
    enum text_values text_values; /* of the words of columns of texts */
    uint32_t bins;                /* of each number of a table, beside it; 0: none */
    const char *const *monotone;  /* of table_find_monotone() */
    const char *const *cross;     /* of table_find_crosses() */
    uint32_t cross_least;         /* crosses that fewer training rows have are left out */
    /* The training row at place p is number permutation_at(p, rows, permutation_key(shuffle_seed,
     * 0)) in the order of files, and chunks of training have block_rows rows (0: SET_BLOCK_ROWS),
     * halved, down to SET_BLOCK_ROWS_MIN, while there are fewer than chunks_least. All else is as
     * without. */
    bool shuffled;
    uint64_t shuffle_seed;
    uint32_t block_rows, chunks_least;
    /* Whether the set is in tiles, in strips of strip_columns: set_is_cut(). Not if it is shuffled,
     * or its labels are lists. */
    uint32_t strip_columns, whole_columns;
    uint32_t narrow_columns; /* at most so many have numbers of 32 bits until they are cut into
                                strips, which changes no byte; 0: FEATURES_MAX */
    uint64_t window_bytes;   /* rows are shuffled so many bytes at a time (data/set/set_write.c),
                                which changes no byte; 0: as suits the machine */
    bool centred; /* columns that are far from 0 may be stored as differences: models have an
                     intercept, which takes what is left out */
    unsigned threads;
};

/* A sparse set of more columns than both is in tiles, unless strip_columns is 0. */
static inline bool set_is_cut(const struct set_options *options, bool dense, uint64_t columns) {
    return options->strip_columns && !dense && columns > options->strip_columns &&
           columns > options->whole_columns;
}

/* The word in place of class weights that are inverse to how much each class weighs: W/(K·W_c),
 * with W the weight of all training rows, W_c that of class c, and K the number of classes. */
#define CLASS_WEIGHT_BALANCED "balanced"

/* Takes "LABEL = WEIGHT" apart at the last "=": the length of the label, and its weight; false if
 * it is no such text, or the weight is not one. */
bool class_weight_parse(const char *text, size_t *label_length, double *weight);

/* Merges the packs, in order, into `sets`/FINGERPRINT.set unless it is there. Rows that are held
 * out leave no trace in columns, classes, exponents, counts and training chunks: the set is as if
 * they were not in the files. If they are kept, their chunks have columns and classes of training
 * alone: values of other features are dropped, rows of other labels left out and counted. Chunks
 * of training are [0, chunks − holdout_chunks).
 *
 * ERROR_DATA if labels do not fit the kind (one class only, more than two for binary, a text for a
 * target, a text or number that is not in the order), if the share or the fold leaves no row on one
 * of the sides, if all training rows weigh 0, or if a class weight is for a label that no row has.
 */
int set_of_packs(const char *sets, struct pack *const *packs, uint32_t count,
                 const struct set_options *options, struct set **set, bool *made);

int set_open(const char *path, struct set **set);

/* From now on chunks that are read are copied to a file in `folder`, and read from there if it has
 * them (data/set/set_file.h). Before the first chunk is read. As chunk_cache_open(); after an error
 * the set is as it was. */
int set_copy_to(struct set *set, const char *folder);
void set_close(struct set *set);
const char *set_path(const struct set *set);

/* The fingerprint of the first pack that it was made of. */
const char *set_first_pack(const struct set *set);
const struct set_info *set_info(const struct set *set);

/* Where moments_squares() keeps what it found, of memory_map(), until the set is closed or they are
 * forgotten. NULL: nothing yet. */
double **set_squares(struct set *set);
void set_forget_squares(struct set *set);

/* The number of each column in the order of the original ids; NULL if that is the order of the
 * columns. Not for a set in tiles. Free it. */
uint32_t *set_ranks(const struct set_info *info);

/* The number of the first row of each chunk in a vector of rows, and that of the row after the
 * last chunk; rows that are held out come after all others. Free it. */
uint64_t *set_first_rows(const struct set *set);

/* What the largest chunk has, or of a set in tiles the largest tile. */
struct rows_most set_rows_most(const struct set *set);

/* Verifies the checksums of all chunks, whatever was verified before. ERROR_DATA names the first
 * that is wrong. */
int set_verify(struct set *set);

/* Whether chunks from `first` on (of a set in tiles: tiles) are as they were verified; what is not
 * is verified again when it is used. With this call, before each portion, and set_settle() after
 * it, set_chunk() and set_tile() do not look by themselves any more: a call of the system for each
 * of many small chunks would cost some percent. */
int set_look(struct set *set, uint32_t first, uint32_t count);

/* To be called after rows were used and before what came of it is: 0 if the file is as it was, or
 * has the same content at least. */
int set_settle(struct set *set);

/* Chunk `number` as arrays in the mapping, or in that of the copy. Its checksum is verified at the
 * first touch, and again if the file has changed since or a part of the chunk is not in memory any
 * more: ERROR_DATA names file and chunk. A copy whose checksum is wrong is made anew. */
int set_chunk(struct set *set, uint32_t number, struct rows *rows);

/* Reads a tile of a set in tiles, which has no chunks that can be read whole: the rows of the
 * chunk, their sizes, and what they have in the columns of the strip, numbered from its first on.
 * No other tile is read. Tiles of one chunk have the same labels, weights and sizes, at the same
 * place. */
int set_tile(struct set *set, uint32_t number, struct rows *rows);

/* ---- a set that comes in pieces, for a host that does not see its file ----
 *
 * Its copy is a sparse file as set_copy_to() makes it, with the head of the set besides: all that
 * is not rows. The head comes first, and the set is opened over it. Then come places, as they are
 * needed: a place is what has a checksum of its own, a chunk, or of a set in tiles first the heads
 * of all chunks and then the tiles. Only bytes with the checksum of the set are put into the file,
 * which other processes of the host may use at the same time. */

/* The file of a set as it lies, from any set; NULL if there are no such bytes. */
const void *set_bytes(const struct set *set, uint64_t offset, uint64_t bytes);
uint64_t set_length(const struct set *set);

struct partial_set; /* opaque: a copy whose head is incomplete */

/* A copy in `folder`, or, without a folder and where that has no room, in memory. */
struct partial_set *partial_new(const char *folder, const char *fingerprint);
void partial_free(struct partial_set *partial);

/* Which bytes of the file the head lacks next; 0: none. */
uint64_t partial_lacks(struct partial_set *partial, uint64_t *offset);

/* Puts the bytes that partial_lacks() named last, or drops them if they are wrong. ERROR_CREATE,
 * ERROR_IO, ERROR_UNAVAILABLE. */
int partial_put(struct partial_set *partial, const void *data);

/* Opens the set over the head, which is complete. Its settling, unlike that of other sets, verifies
 * only what was used since set_look(); the error is ERROR_UNAVAILABLE. */
int partial_open(struct partial_set *partial, struct set **set);

/* How many places there are, and where one is: its bytes. */
uint32_t set_places(const struct set *set);
uint64_t set_place(const struct set *set, uint32_t place, uint64_t *offset);

/* Whether a partial set has the place. From any thread. */
bool set_has(struct set *set, uint32_t place);

/* Puts a place into a partial set; bytes with a wrong checksum are dropped. From one thread, beside
 * those that read chunks. ERROR_UNAVAILABLE if neither the disk nor memory has room. */
int set_put(struct set *set, uint32_t place, const void *data);

/* Removes the file of a partial set, unless another process uses it. */
void set_remove_copy(struct set *set);

/* Prints what a pack or a set holds, for people or as one JSON object. */
int inspect_print(const char *path, bool json);

#endif
