/* The inside of the reader of Parquet: which pages blocks of rows need, and who reads them. */
#ifndef DML_DATA_PARQUET_PARQUET_BLOCK_H
#define DML_DATA_PARQUET_PARQUET_BLOCK_H

#include <pthread.h>

#include "data/csv/format.h"
#include "data/parquet/parquet.h"
#include "data/parquet/parquet_cell.h"
#include "data/source/spool.h"

/* What values of a dictionary, or truths, are as cells: found out once. */
struct parquet_entries {
    double *number;            /* of a column of numbers; NaN: its text tells. Owned */
    bool whole;                /* none is NaN */
    struct category *category; /* of a column of categories; owned */
    char *text;                /* what these point into; owned */
};
void parquet_entries_release(struct parquet_entries *entries);

/* A page, or a dictionary, that some block needs, or may need. */
struct held_page {
    const struct parquet_column *column;
    struct parquet_page page;
    enum parquet_codec codec;
    struct held_page *dictionary; /* holds it; or NULL */
    struct parquet_values values; /* once it is read */
    struct parquet_entries entries;

    /* Guarded by the reader's `mutex`: */
    uint32_t holders;
    enum { PAGE_WANTED, PAGE_AT_WORK, PAGE_READ } state;
    enum { ENTRIES_WANTED, ENTRIES_AT_WORK, ENTRIES_MADE } entries_state;
    int code;    /* of the failure to read it */
    char *error; /* and its text; owned */
};

/* Rows of a page that a block has. */
struct page_rows {
    struct held_page *page;
    uint32_t column; /* of the file */
    uint32_t first, count;
    uint32_t at; /* of the first of them in the block */
};

/* Memory for texts, all of which is given up together. */
struct text_room {
    char **part; /* owned */
    uint32_t parts, capacity;
    size_t left;
    char *at;
};
char *text_room_take(struct text_room *room, size_t length);
void text_room_clear(struct text_room *room);
void text_room_release(struct text_room *room);

struct parquet_block {
    uint64_t first_row; /* of the file, from 1 */
    uint32_t rows;
    struct page_rows *part; /* column by column, in their order; owned */
    uint32_t parts, capacity;
    struct text_room room;
    double *number; /* rows × the numbers of a row; owned */
    uint8_t *odd;   /* of each row: in what way some number is none; owned */
    double *other;  /* rows × the columns that are neither numbers nor skipped; owned */
    uint64_t *hash; /* of each row, if they are asked for; owned */
    const struct category **category; /* rows × the categories of a row; owned */
    size_t hash_capacity, number_capacity, odd_capacity, other_capacity, category_capacity;
};

/* Where the reading of a column is in the group of rows. */
struct column_cursor {
    uint64_t at, end;             /* of its pages */
    struct held_page *page;       /* that the next row is in, or NULL; held */
    uint32_t first;               /* of its rows that no block has */
    struct held_page *dictionary; /* held; or NULL */
    bool used;
    bool only_hashed; /* it is part of the hashes of rows, and nothing else is read of it */
};

struct parquet_reader {
    struct source_options options; /* of the file as a table with a header */
    struct blocks *blocks;         /* the caller's */
    struct spool spool;
    struct parquet_file file;
    struct column_cursor *cursor; /* of each column; owned */
    uint32_t group;               /* the next one */
    uint64_t group_left;          /* rows of the one before that no block has */
    uint64_t next_row;
    struct held_page **first; /* of each column a page that was read to find the layout, until the
                                 first block is taken; held, or NULL. Owned */
    uint32_t block_rows;
    struct parquet_entries *truths; /* of each column that holds truths; owned */
    struct category *missing;       /* what a null is in each column of categories; owned */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

struct parquet_block *parquet_block_new(void);
void parquet_block_free(struct parquet_reader *reader, struct parquet_block *block);

/* Begins at the first row. */
void parquet_rewind(struct parquet_reader *reader);

/* Keeps the pages of a block for the first block that is taken; then gives them up. */
void parquet_first_keep(struct parquet_reader *reader, const struct parquet_block *block);
void parquet_first_forget(struct parquet_reader *reader);

/* The next rows, up to `rows` of them; block->rows 0: there are none. */
int parquet_block_take(struct parquet_reader *reader, struct parquet_block *block, uint32_t rows);

/* Reads all pages of a block that nobody has read. */
int parquet_block_read(struct parquet_reader *reader, struct parquet_block *block);

/* Fills block->hash, when the pages are read. */
void parquet_hash_rows(struct parquet_block *block);

/* Gives its pages and texts up. */
void parquet_block_clear(struct parquet_reader *reader, struct parquet_block *block);

/* Makes the entries of a dictionary, unless that is done; `make` is called by one thread alone. */
typedef void make_entries(const struct format *format, uint32_t column, struct held_page *page);
void parquet_entries_make(struct parquet_reader *reader, const struct format *format,
                          uint32_t column, struct held_page *page, make_entries *make);

/* What truths and nulls mean in columns of categories: reader->truths and reader->missing. */
void parquet_find_constants(struct parquet_reader *reader, const struct format *format);

/* Finds out from the first rows what the columns are. */
int parquet_layout_find(struct parquet_reader *reader, struct format *format);

#endif
