/* Source files as they are: LIBSVM, CSV, JSON Lines or Parquet, or arrays of numbers, IDX or .npy,
 * with their labels in another such file; plain, .gz or .zst (told by content). Of Parquet all is
 * as of the CSV with the same table: so FORMAT_CSV is what reports have. */
#ifndef DML_DATA_SOURCE_SOURCE_H
#define DML_DATA_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "data/remote/stamp.h"
#include "data/table/table.h"

/* What a row has of its own beside label and features: a number from a column of a table, or from a
 * file with a line for each row; a cluster from a column alone. */
enum row_property {
    ROW_WEIGHT,                /* from 0 to WEIGHT_MAX; rows without one weigh 1 */
    ROW_OFFSET,                /* a finite number, which is added to the row's margin */
    ROW_EXPOSURE,              /* above 0: its natural logarithm is added to the offset */
    ROW_NUMBERS,               /* behind those that are numbers, and may have files */
    ROW_CLUSTER = ROW_NUMBERS, /* a text: rows that have it in common are not independent */
    ROW_PROPERTIES
};

/* Packs have these numbers. */
enum source_format {
    FORMAT_AUTO,
    FORMAT_LIBSVM,
    FORMAT_CSV,
    FORMAT_IDX,
    FORMAT_NPY,
    FORMAT_JSONL,
    FORMAT_PARQUET,
    FORMATS
};
extern const char *const source_format_names[]; /* in this order, and a NULL */

/* Whether files of the format are tables, whose rows have cells. */
static inline bool source_is_table(enum source_format format) {
    return format == FORMAT_CSV || format == FORMAT_JSONL;
}

enum csv_header { CSV_HEADER_AUTO, CSV_HEADER_YES, CSV_HEADER_NO };

/* What quotes in CSV are. AUTO: they enclose cells, as DOUBLE says, but not cells that take in
 * whole rows, as one does that begins at a stray quote. NONE: characters like others. */
enum csv_quote { CSV_QUOTE_AUTO, CSV_QUOTE_DOUBLE, CSV_QUOTE_NONE, CSV_QUOTES };
extern const char *const source_quote_names[]; /* in this order, and a NULL */

/* A column that a folder KEY=VALUE of a file's path gives: all its rows have this cell. */
struct source_folder {
    char *name, *value; /* the value is "" where it is missing */
    bool texts;         /* of some file of the list it is neither a number nor missing */
};

/* Which such folders are columns. AUTO: those whose values differ among the files that are trained
 * on, and those that other options name or `order` has. ALL: also those of one value. */
enum csv_folders { CSV_FOLDERS_AUTO, CSV_FOLDERS_ALL, CSV_FOLDERS_NONE, CSV_FOLDERS };
extern const char *const source_folders_names[]; /* in this order, and a NULL */

/* What a file without a column of `table` is. AUTO is for whoever reads jobs; here it is ERROR. */
enum missing_columns { MISSING_COLUMNS_AUTO, MISSING_COLUMNS_ERROR, MISSING_COLUMNS_MISSING };

/* How to read; part of a pack's identity. Strings are owned by the caller. */
struct source_options {
    enum source_format format;
    enum csv_header header;
    const char *delimiter; /* CSV: one character, or "tab"; NULL: found from the first line */
    enum csv_quote quote;
    const char
        *comment; /* CSV: the character that begins lines which are none; NULL: there are none */
    const char *decimal;     /* CSV: "," where numbers have a comma for their point. NULL: a point,
                                and texts that look like such numbers are refused */
    const char *label;       /* CSV: column by name or by number from 1; NULL: the last. If
                                `label_optional`, one that is not there means no labels */
    const char *const *skip; /* CSV: columns to leave out, by name or number; NULL-terminated */
    const char *weight;      /* CSV: column of the rows' weights, likewise; NULL: that of `table` if
                                it has one, which may be missing from the file then */
    const char *offset, *exposure; /* CSV: columns of these, as `weight`; but that of `table` may
                                      not be missing */
    const char *cluster;           /* CSV: column of clusters, likewise; NULL: rows have none,
                                      whatever `table` says */
    bool ignores_weights;          /* every row weighs 1 */
    const char *weights; /* a file with a weight for each row, or NULL: data/source/blocks.h */
    const char *offsets, *exposures; /* files with an offset or an exposure for each row, or NULL */
    const char *labels; /* of an array: the file with a label for each row; else NULL */
    const char *const *numbers, *const *categories; /* CSV: columns of these kinds, likewise */
    const char *const *amounts; /* CSV: columns of numbers, or of labels and the like, which are
                                   written as amounts: number_of_amount(); likewise */
    const char *const *text;    /* CSV: columns of texts, likewise, which become words */
    uint32_t ngrams;            /* CSV: and up to so many words together; 0: 1 */
    bool lowercase;             /* CSV: words are brought to lower case, */
    uint32_t word_least;        /* have so many letters at the least; 0: WORD_LEAST, */
    const char *letters;        /* and these besides letters, digits and _; NULL or "": none */
    const char *const *dates;   /* CSV: columns of dates, likewise, */
    const char *date_format;    /* which are written so: date_parse(); NULL: ISO 8601 */
    const char *const *missing; /* CSV: words for a missing cell, and for a missing label;
                                   NULL-terminated. None or NULL: table_missing_words, for cells */
    char separator;             /* labels are texts: lists with this between their parts, which may
                                   be none (data/text/number.h); 0: a row has one label */
    uint32_t hash_bits;         /* CSV: texts of categories, and words, are hashed to so many bits;
                                   0: not */
    bool trim;                  /* CSV: blanks around the text of a category do not count */
    enum csv_folders folders;   /* for source_find_folders() */
    const struct source_folder *folder; /* CSV: columns that folders give, behind those of the file,
                                           in the order of the path; the last has no name. NULL:
                                           none. Those that neither `table` nor `carried` knows do
                                           not count */
    const char *folders_differ; /* CSV: why these are none, and the file is refused; or NULL */
    bool numbers_only;          /* CSV: every column is a number, and no cell may be missing */
    const struct table *table;  /* CSV: what the columns are, found out before; NULL: find it out.
                                   Columns are matched by name where both sides have names, and what
                                   `skip`, `numbers`, `categories`, `text`, `missing` say does not
                                   count */
    const struct table *order;  /* CSV, without `table`: columns take the numbers that they have
                                   here,  by name, where both sides have names; new ones follow */
    enum missing_columns missing_columns; /* CSV, with `table` */
    bool adds_columns;          /* CSV: one of several files, whose columns add up: `table` becomes
                                   larger by those that it does not have, and `skip`, `numbers` and
                                   `categories` may name columns of other files */
    bool surveys;               /* for a look at a file: texts too long for a category are cut, and
                                   texts such as 4,5 are no error */
    bool by_model;              /* `table` is a model's, which settles what columns are */
    uint64_t bad_lines_max;     /* malformed lines that are skipped and reported before an error */
    bool label_optional;        /* for prediction: rows may come without their label */
    const char *const *carried; /* CSV: columns, by name or by number from 1, whose cells go along
                                   with each row, whatever else they are for; NULL: none */
    bool streams;               /* also from pipes, and from standard input as "-" */
    bool hands_out_bad;         /* rows may be none, and only bad lines */
    bool may_be_empty;          /* a file without rows, as one that holds a header alone, is no
                                   error: the report says so by 0 rows */
    bool hashes_rows;           /* rows come with the hash of what stands in the file */
    uint32_t columns; /* CSV: how many there must be, less the label's if that is optional; of an
                         array: one more than a row has; 0: as many as there are */
};

/* A malformed line. */
struct bad_line {
    uint64_t line;
    uint32_t row; /* the next row of the same batch, if there is one */
    char *why;    /* owned by the batch */
};

/* Where a value of a CSV row comes from. */
struct source_origin {
    const char *text; /* of ROLE_VALUE and ROLE_WORD; else NULL */
    uint32_t column;  /* from 0, as the table counts */
    enum feature_role role;
    uint32_t hash;   /* of ROLE_HASHED; of ROLE_WORD its number among the words of the block */
    uint32_t *known; /* NULL, or where whoever takes the rows may keep what it knows this by: 0
                        before, and the same for all values that are alike in id and origin */
};

/* Some consecutive rows of a file, in the file's order. Owned by the reader; valid in the call. */
struct source_rows {
    uint32_t count;
    uint64_t first_line;   /* of the file, from 1; rows of an array count as lines */
    const uint64_t *line;  /* of each row, likewise; NULL: of a pack, whose lines are rows */
    const uint64_t *start; /* count+1 offsets into id and value */
    const uint64_t *id;    /* original feature id: LIBSVM's index; CSV: table_feature(); of an
                              array the place in the row, from 1. Rising within a row (sorted
                              if the text was not) */
    bool alike;            /* every row has the ids of the first, and `id` has those alone */
    const double *value;
    bool bytes;                         /* the values are bytes in the file */
    const struct source_origin *origin; /* of each value, if some are not ROLE_NUMBER; or NULL */
    bool known;                         /* all texts have a place for what they are known by */
    uint32_t words;                     /* how many different words the block has; 0 of a pack */
    const uint32_t *column;             /* of a pack of CSV, as `id`: the column of each value */
    const uint32_t *position; /* of each value in its row's text, from 0; NULL: as they stand */
    const double *label;      /* NaN where the label is a text or absent */
    const char *const *label_text; /* NULL where the label is a number and nothing else: of a code,
                                      as number_is_code() has it, it is there beside `label`; the
                                      whole array may be NULL */
    const double *weight;          /* from 0 to WEIGHT_MAX; NULL: all are 1 */
    const double *offset;          /* with the logarithm of the exposure; NULL: all are 0 */
    const uint64_t *cluster;       /* the hash of its text; NULL: there are none */
    const uint64_t *hash;       /* of the raw row, as it stands in the file, whatever is read of it:
                                   doc/FORMATS.md. NULL: it was not asked for */
    const char *const *carried; /* count × carried_count cells, row-major, as texts; NULL: none */
    uint32_t carried_count;
    const struct bad_line *bad; /* the lines between the rows that were skipped, in order; from a
                                   pack there are none */
    uint64_t bad_count;
    struct bytes *workspace; /* of source_read_in_parts() only */
};

static inline uint64_t source_row_line(const struct source_rows *rows, uint32_t row) {
    return rows->line ? rows->line[row] : rows->first_line + row;
}

/* The cells that go along with a row; NULL: there are none. */
static inline const char *const *source_row_carried(const struct source_rows *rows, uint32_t row) {
    return rows->carried ? rows->carried + (size_t)row * rows->carried_count : NULL;
}

/* The ids of a row's values. */
static inline const uint64_t *source_row_ids(const struct source_rows *rows, uint32_t row) {
    return rows->id + (rows->alike ? 0 : rows->start[row]);
}

/* The column of value `i` of a row of CSV, from 0, as the table counts. */
static inline uint32_t source_row_column(const struct source_rows *rows, uint32_t row, uint64_t i) {
    uint64_t at = (rows->alike ? 0 : rows->start[row]) + i;
    return rows->column   ? rows->column[at]
           : rows->origin ? rows->origin[rows->start[row] + i].column
                          : (uint32_t)(rows->id[at] - 1);
}

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
    char labels_hash[HASH128_TEXT]; /* of the file of labels, likewise */
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

/* Called with the rows in order, by one thread at a time but not always the same one; an answer
 * other than 0 ends the reading with that code. */
typedef int source_take(void *context, const struct source_rows *rows);

/* Whether a path means standard input: it is "-". */
bool source_is_input(const char *path);

/* Whether what a path leads to can be read once: it is that, or a pipe. */
bool source_is_stream(const char *path);

/* How messages name a path: that of standard input has no name of a file. */
const char *source_name(const char *path);

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

/* Expands globs (each sorted bytewise) relative to `folder`; every entry must match at least one
 * regular file, or lead to a pipe, or be "-". The name of a file that is there, and the folders at
 * the beginning of an entry that are there under their very names, with `folder`, are no patterns.
 * A folder means the files of data below it, and `**` any number of folders: data/remote/pattern.h.
 * What a glob cannot look at is ERROR_IO or ERROR_PERMISSION. A file that is met again, under
 * whatever name, is left out with a warning. The list is NULL-terminated; free with names_free().
 */
int source_paths(const char *folder, const char *const *patterns, char ***paths);

/* The paths of files alone, with those that are met again. */
int source_paths_all(const char *folder, const char *const *patterns, char ***paths);

/* Those of a command line, `count` of them, likewise a list: patterns of objects are expanded, but
 * paths of files stand as they are, as the shell has expanded its patterns, and folders mean the
 * files below them. Nothing is left out. */
int source_paths_given(const char *const *given, size_t count, char ***paths);

/* Files beside those of some data: a list has one for each of them, in their order, or none. NULL
 * is none, too. */
struct source_beside {
    char **property[ROW_PROPERTIES]; /* weights, offsets and exposures as in struct source_options,
                                        NULL-terminated, as `labels` is */
    char **labels;
    struct source_folder **folder; /* as in struct source_options; owned */
    char *folders_differ;          /* as in struct source_options; owned */
};
void source_beside_release(struct source_beside *beside);

/* Finds the columns that the folders of files give: of each path from the end of `base` on, if it
 * begins so. Names and values are percent-decoded; __HIVE_DEFAULT_PARTITION__ is a missing value.
 * `trained`: the files are those that are trained on, and decide together which folders are
 * columns; each of them must have all, unless the options say that columns may be missing. Of other
 * files all folders are found. */
void source_find_folders(const char *base, char *const *paths, const struct source_options *options,
                         bool trained, struct source_beside *beside);

/* Whether a folder gives a column of this name. */
bool source_has_folder(const struct source_options *options, const char *name);

/* The column that options name for a property, and the file; NULL: none. */
const char *source_property_column(const struct source_options *options,
                                   enum row_property property);
const char *source_property_file(const struct source_options *options, enum row_property property);

/* Names in `options` the files beside file `number` of the data, from 0. */
void source_beside_name(const struct source_beside *beside, uint32_t number,
                        struct source_options *options);

/* The first of `paths` that is a file of `others`, under whatever name: *other is that; or NULL. */
const char *source_paths_shared(char *const *paths, char *const *others, const char **other);

#endif
