/* A block of whole lines of a source, and the rows they hold: what travels through the reading
 * pipeline. Its memory is used again for the next block. */
#ifndef DML_DATA_SOURCE_BATCH_H
#define DML_DATA_SOURCE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "data/source/rows.h"
#include "data/source/source.h"
#include "data/table/words.h"
#include "data/text/number.h"

/* Zeros after a text: its end, and what a parser may read beyond. */
#define TEXT_END_BYTES (1 + DIGITS_READ_PAST)

struct batch {
    char *text; /* owned, TEXT_END_BYTES zeros after it; parsers may write into it */
    size_t text_length, text_capacity;
    uint64_t first_line;
    bool has_comments, has_zeros; /* it has a '#', a byte of 0 */
    uint32_t text_rows;           /* of a sparse matrix: the rows whose bytes the text has, */
    uint64_t text_values;         /* and their values */

    struct source_rows rows; /* the view that is handed out; filled by batch_view() */
    uint32_t row_count, row_capacity;
    uint64_t value_count, value_capacity;
    uint64_t *start; /* of each row, and the end of the last */
    uint64_t *id;    /* with `alike` those of the first row alone */
    double *value;
    struct source_origin *origin; /* of each value, while `has_origins` */
    double *label;
    const char **label_text;
    double *weight;
    double row_weight; /* of the row being read: 1 unless its parser sets it */
    double *offset;
    double row_offset; /* of the row being read: 0 unless its parser sets it */
    uint64_t *cluster;
    uint64_t row_cluster; /* of the row being read: 0 unless its parser sets it */
    uint64_t *hash;       /* of each raw row, if these are asked for */
    uint64_t row_hash;    /* of the row being read; its parser sets it */
    uint64_t *line;       /* of each row */
    uint64_t row_line;    /* of the row being read */
    uint32_t *position;
    const char *copied; /* the text or the records, */
    char *copy;         /* and a copy of them, for the cells that go along with rows */
    size_t copy_capacity;
    char *records; /* of JSON Lines: its lines as CSV, each zero-terminated; TEXT_END_BYTES zeros
                      after the last */
    size_t records_length, records_capacity;
    struct bytes tokens, key; /* workspace of data/csv/json_lines.c */
    struct bytes folders;     /* cells that folders give, each zero-terminated */
    const char **carried;     /* row_capacity × carried_count such cells, row-major */
    uint32_t carried_count;   /* of a row, set by batch_carry() */
    bool alike, bytes;        /* as in struct source_rows */
    bool has_label_text, has_weights, has_offsets, has_clusters, has_positions, has_origins;
    bool has_hashes;  /* set before the first row */
    bool has_unknown; /* a text without a place for what it is known by */
    struct batch_number {
        uint64_t missing_id;
        struct source_origin number, missing;
        uint32_t known[2];   /* what these are known by */
        uint32_t by_missing; /* element k: the number of the k-th lowest missing_id */
    } * numbers;             /* of each number of a row; owned. NULL: none was missing yet */
    struct bytes workspace;  /* of whoever takes the rows */
    struct batch_text {
        uint64_t id; /* first, for compare_ids() */
        double value;
        struct source_origin origin;
    } * texts, *spread; /* of the row being read; workspace to sort them */
    uint32_t text_count, texts_capacity;
    struct words words;

    struct bad_line *bad;
    uint64_t bad_count, bad_capacity;
};

void batch_init(struct batch *batch);
void batch_release(struct batch *batch);

/* Forgets rows and bad lines; the text stays. */
void batch_clear(struct batch *batch);

/* Before the first row: `count` cells will go along with each, cut from a copy of the text. */
void batch_carry(struct batch *batch, uint32_t count);

/* `count` cells go along with each row, from a text of up to `capacity` bytes that the caller
 * writes twice: to `text` and to batch->copy. */
void batch_carry_written(struct batch *batch, uint32_t count, const char *text, size_t capacity);

/* Makes room for a row of up to `values` values: parsers put ids and values at value_count, and
 * count them in. */
void batch_reserve(struct batch *batch, uint64_t values);

/* A value of the row being read, which comes after those of its numbers. */
static inline void batch_add_text(struct batch *batch, uint64_t id, double value,
                                  const struct source_origin *origin) {
    MEMORY_ROOM(batch->texts, batch->text_count, batch->texts_capacity);
    batch->has_unknown |= !origin->known;
    batch->texts[batch->text_count++] = (struct batch_text){id, value, *origin};
}

/* Puts the values that were added so after the others, by rising id; false if an id is repeated.
 */
bool batch_put_texts(struct batch *batch);

/* From now on rows need not be alike: gives each row its ids, and each value its origin. */
void batch_give_ids_per_row(struct batch *batch);

/* Ends the row being read; `label_text` as in struct source_rows. If `sorted` is false, sorts the
 * row by id. If an id is repeated, writes it to *repeated, does not add the row, and returns false.
 */
bool batch_row(struct batch *batch, double label, const char *label_text, bool sorted,
               uint64_t *repeated);

/* Whether a line begins with the byte order mark of UTF-8, as it does where files were joined that
 * begin with one. The mark at the beginning of a file is no part of its first line. */
static inline bool line_has_mark(const char *text) {
    return (unsigned char)text[0] == 0xef && (unsigned char)text[1] == 0xbb &&
           (unsigned char)text[2] == 0xbf;
}
#define MARK_WITHIN "a byte order mark (U+FEFF) in the middle of the file; remove it from this line"

/* Discards the row being read and notes why. Always false, for `return batch_reject(…)`. */
bool batch_reject(struct batch *batch, uint64_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the weight of a row that was read. */
void batch_weigh(struct batch *batch, uint32_t row, double weight);

/* Adds to the offset of a row that was read. */
void batch_add_offset(struct batch *batch, uint32_t row, double offset);

const struct source_rows *batch_view(struct batch *batch);

#endif
