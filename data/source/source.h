/* Source files as they are: LIBSVM, CSV, JSON Lines or Parquet, or arrays of numbers, IDX or .npy,
 * with their labels in another such file; plain, .gz or .zst (told by content). Of Parquet all is
 * as of the CSV with the same table, so FORMAT_CSV is what reports have; and of sparse matrices,
 * .npz, as of the LIBSVM text with the same rows, so it is FORMAT_LIBSVM. */
#ifndef DML_DATA_SOURCE_SOURCE_H
#define DML_DATA_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "data/remote/stamp.h"
#include "data/source/folders.h"
#include "data/source/properties.h"
#include "data/table/options.h"
#include "data/text/syntax.h"

/* Packs have these numbers. */
enum source_format {
    FORMAT_AUTO,
    FORMAT_LIBSVM,
    FORMAT_CSV,
    FORMAT_IDX,
    FORMAT_NPY,
    FORMAT_JSONL,
    FORMAT_PARQUET,
    FORMAT_NPZ,
    FORMATS
};
extern const char *const source_format_names[]; /* in this order, and a NULL */

/* Whether files of the format are tables, whose rows have cells. */
static inline bool source_is_table(enum source_format format) {
    return format == FORMAT_CSV || format == FORMAT_JSONL;
}

extern const char *const source_quote_names[];   /* in the order of enum csv_quote, and a NULL */
extern const char *const source_folders_names[]; /* in the order of enum csv_folders, and a NULL */

/* How to read; part of a pack's identity. Strings are owned by the caller. All but the label's and
 * the properties' are about tables. */
struct source_options {
    enum source_format format;
    struct text_syntax syntax;
    struct table_options table;
    struct word_options words;
    struct folder_options folders;
    struct label_options label;
    struct property_options property;
    const char *const *carried; /* columns, by name or by number from 1, whose cells go along with
                                   each row, whatever else they are for; NULL: none */
    uint64_t bad_lines_max;     /* malformed lines that are skipped and reported before an error */
    bool streams;               /* also from pipes, and from standard input as "-" */
    bool hands_out_bad;         /* rows may be none, and only bad lines */
    bool may_be_empty;          /* a file without rows, as one that holds a header alone, is no
                                   error: the report says so by 0 rows */
    bool hashes_rows;           /* rows come with the hash of what stands in the file */
};

/* The result of reading a file. Release with source_report_release(). */
struct source_report {
    enum source_format format; /* known from the first call of `take` on */
    uint64_t bytes;            /* of the file as stored */
    struct source_stamp stamp; /* of what was read */
    uint64_t text_bytes;       /* after decompression */
    uint64_t rows, values;
    char hash[HASH128_TEXT]; /* of the bytes as stored */
    struct source_beside_report {
        char hash[HASH128_TEXT]; /* of the bytes of that file; "" if there is none */
        struct source_stamp stamp;
    } property[ROW_PROPERTIES];     /* of the files of weights, offsets and exposures */
    char labels_hash[HASH128_TEXT]; /* of the file of labels, if there is one */
    struct source_stamp labels_stamp;
    char **column_names;   /* CSV with a header: name of column 1, 2, …; NULL-terminated; or NULL.
                              Known from the first call of `take` on */
    struct table *table;   /* CSV: what the columns are. Known like the names; or NULL */
    uint32_t columns;      /* CSV: how many; of arrays as if the label was the last; else 0 */
    uint32_t label_column; /* from 1; 0 if there is none */
    bool names_doubtful;   /* CSV: the first line was taken for a row, but may name the columns */
    uint64_t rejected;     /* malformed lines skipped */
    char **rejected_reasons; /* of the first 100, "FILE:LINE: why"; NULL-terminated; or NULL */
};

void source_report_release(struct source_report *report);

/* Counts a bad line, with its reason; ERROR_DATA if there were `limit` already. */
int source_reject(struct source_report *report, const char *path, uint64_t limit, uint64_t line,
                  const char *why);

/* Logs the lines that were skipped, each with its reason as far as `reasons` of them are known. */
void source_warn_rejected(const char *path, uint64_t rejected, const char *const *reason,
                          uint32_t reasons);

/* The format that files were found to have, for reading other files alike; "auto" and 0 where they
 * differ. */
struct source_shape {
    enum source_format format;
    enum csv_header header;
    uint32_t columns, label_column; /* as in struct source_report */
    char label[16];                 /* that column as text */
    struct table *table;            /* that of the first file that has one, with the columns that
                                       others add; owned */
};
void source_shape_release(struct source_shape *shape);

/* Adds a file to those seen; `first`: there were none. The table gets the columns of all. */
void source_shape_add(struct source_shape *shape, const struct source_report *report, bool first);

/* The options for reading a file as those of that shape, which were read with `options`. Strings
 * belong to both. */
struct source_options source_options_alike(const struct source_options *options,
                                           const struct source_shape *shape);

struct source_rows; /* data/source/rows.h */

/* Called with the rows in order, by one thread at a time but not always the same one; a result
 * other than 0 ends the reading with that code. */
typedef int source_take(void *context, const struct source_rows *rows);

/* Reads a whole file, parsing on up to `threads` threads. Errors are ERROR_DATA with file and line,
 * or ERROR_IO. A file without rows is an error unless the options say that it may be empty. One
 * that changes while it is read is an error, too: what was handed out is then of no use. */
int source_read(const char *path, const struct source_options *options, unsigned threads,
                source_take *take, void *context, struct source_report *report);

/* The functions of a reader that can do part of its work out of order. */
struct source_parts {
    source_take *prepare; /* before `take`: many threads at once, for different rows; or NULL */
    source_take *take;    /* in order, one thread at a time */
    source_take *finish;  /* when `take` has returned 0: as `prepare`; or NULL */
};

/* Each part gets the same rows, and what one leaves in rows->workspace the next finds there. An
 * error of `prepare` comes in the rows' turn. */
int source_read_in_parts(const char *path, const struct source_options *options, unsigned threads,
                         const struct source_parts *parts, void *context,
                         struct source_report *report);

/* What columns a CSV file has, with `kinds` or without: *table is NULL if the file is none, or if
 * it may be empty and is; *empty says which, unless `empty` is NULL. Reads its beginning. */
int source_columns(const char *path, const struct source_options *options, bool kinds,
                   struct table **table, bool *empty);

#endif
