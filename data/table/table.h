/* What is known about the columns of a table (CSV), so that other files are prepared in the same
 * way: found out from the first file of the training data or said by the job, kept in packs and
 * sets and, with what the training rows taught, in the model. As JSON: doc/FORMATS.md. */
#ifndef DML_DATA_TABLE_TABLE_H
#define DML_DATA_TABLE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum column_kind {
    COLUMN_NUMBER,
    COLUMN_CATEGORY, /* a feature for each text */
    COLUMN_LABEL,
    COLUMN_SKIPPED,
    COLUMN_WEIGHT, /* of the row */
    COLUMN_WORDS,  /* a feature for each word */
    COLUMN_OFFSET, /* of the row, as this: */
    COLUMN_EXPOSURE,
    COLUMN_DATE,    /* its parts are columns after those of the file */
    COLUMN_CLUSTER, /* of the row */
};

/* What becomes of a date: data/csv/csv_date.c. */
enum date_part { DATE_YEAR, DATE_MONTH, DATE_WEEKDAY, DATE_HOUR, DATE_DAYS, DATE_PARTS };
extern const char *const date_part_names[];

static inline bool date_part_is_number(enum date_part part) {
    return part == DATE_YEAR || part == DATE_DAYS;
}

/* Which way the steps from bin to bin of a number go. */
enum monotone { MONOTONE_NONE, MONOTONE_RISING, MONOTONE_FALLING };

struct table_column {
    char *name; /* in the form of text_to_json(), or NULL without a header line; owned */
    enum column_kind kind;
    uint32_t place; /* in the first file of training, from 0; COLUMN_NOWHERE: it has none */
    bool found;     /* the kind was found out and not said by the job */
    bool padded;    /* numbers that were found have zeros before them, as codes do: "01234" */
    bool amounts;   /* its numbers are written as amounts: number_of_amount() */
    uint32_t unit;  /* of durations: how many units a second has; 0: no file says that they are */
    double mean;    /* of a number's training rows; NaN while it is not known */
    bool is_part;   /* of a date: its place is COLUMN_NOWHERE, and its name that of the date and of
                       the part, "when.month" */
    uint32_t date;  /* the column that has the date; a lower number */
    enum date_part part;

    /* The edges of a number that is put into bins, rising. Bin 0 is below the first edge, and each
     * edge the least of the next bin. */
    double *edge; /* owned */
    uint32_t edges;
    /* How the weights of a number in bins may go: if not MONOTONE_NONE, a row of bin k has the
     * features of bins 1 … k, so that their weights are the steps from bin to bin, and bin 0 is no
     * feature. */
    enum monotone monotone;
    uint64_t *in_bin; /* how many values training has in each, only when a set is made; owned */

    /* The ids of a category's texts that training took for ROLE_RARE, rising. */
    uint64_t *rare; /* owned */
    uint32_t rares;
};

#define COLUMN_NOWHERE UINT32_MAX

/* The bin of a number. */
static inline uint32_t table_bin(const struct table_column *column, double value) {
    uint32_t low = 0, high = column->edges;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (column->edge[middle] <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Columns whose values together are features: data/set/cross.c. */
#define CROSS_COLUMNS_MAX 4u
#define CROSSES_MAX 65536u
struct table_cross {
    uint32_t columns;                   /* from 2 */
    uint32_t column[CROSS_COLUMNS_MAX]; /* of the table, rising */
};
#define WORD_LEAST 2 /* letters of a word, if nothing is said */
#define WORD_LEAST_MAX 100
#define WORD_CHARACTERS_MAX 32 /* that belong to words besides letters, digits and underscores */

/* What the value of a word is, from how often the text has it. */
enum text_values { TEXT_TFIDF, TEXT_LOG_TFIDF, TEXT_COUNT, TEXT_BINARY };
extern const char *const table_text_values[]; /* in this order, and a NULL */

/* How columns of texts become words, and these values (data/table/words.h). */
struct table_text {
    uint32_t ngrams; /* words that one feature has at most; from 1 */
    uint32_t least;  /* letters of a word, at the least; 0: WORD_LEAST */
    bool lowercase;
    char letters[WORD_CHARACTERS_MAX + 1]; /* what else belongs to words; of ASCII, with a 0 */
    enum text_values values;               /* what a set is made with; packs have counts */
    uint64_t rows; /* of training, by which words are weighed; 0: it is not known */
};
#define NGRAMS_MAX 5

uint32_t table_text_least(const struct table_text *text);

/* Whether these may belong to words besides letters, digits and underscores: other printable
 * characters of ASCII but a blank, as that parts words; at most WORD_CHARACTERS_MAX. */
bool word_characters_are_valid(const char *text);

struct table {
    uint32_t columns;
    struct table_text text;
    struct table_column *column; /* owned */
    struct table_cross *cross;   /* `crosses`, all different; owned. Packs have none */
    uint32_t crosses;
    double cross_value; /* of the feature of a cross */
    uint32_t hash;      /* canonical spellings (data/table/spelling.h) of texts of categories are
                           hashed to so many bits; 0: the texts are kept */
    bool trim;          /* blanks around a text do not count */
    char **missing;     /* the words that stand for a missing cell; NULL-terminated; owned */
    char *date_format;  /* of date_parse(); NULL: ISO 8601; owned */
};

/* The words that stand for a missing cell unless a job says others; NULL-terminated. */
extern const char *const table_missing_words[];

struct table *table_new(uint32_t columns);
struct table *table_copy(const struct table *table);
void table_free(struct table *table); /* harmless on NULL */

void table_set_missing(struct table *table, const char *const *words);
void table_set_name(struct table_column *column, const char *name);

/* Whether a column of this name, as files write it, is for something. */
bool table_has_name(const struct table *table, const char *name);

/* Whether the columns have names. */
bool table_is_named(const struct table *table);

/* Whether both have the same names in the same order. */
bool table_names_equal(const struct table *a, const struct table *b);

/* The first column of that kind; `columns` if there is none. */
uint32_t table_find_kind(const struct table *table, enum column_kind kind);

/* "label", "weight", … */
const char *table_kind_name(enum column_kind kind);

/* Whether a column has what rows have of their own: their weight, offset, exposure or
 * cluster. */
static inline bool table_is_own(const struct table_column *column) {
    return column->kind == COLUMN_WEIGHT || column->kind == COLUMN_OFFSET ||
           column->kind == COLUMN_EXPOSURE || column->kind == COLUMN_CLUSTER;
}

/* Whether features are made of a column. */
static inline bool table_uses(const struct table_column *column) {
    return column->kind == COLUMN_NUMBER || column->kind == COLUMN_CATEGORY ||
           column->kind == COLUMN_WORDS;
}

/* Whether it has columns of texts. */
bool table_has_texts(const struct table *table);

/* What a word counts for that so many rows have: its inverse document frequency. */
double table_word_idf(const struct table *table, uint64_t rows);

/* The value of a word, from how often a text has it, before the values of a text are divided by
 * their norm, if words are weighed. */
double table_word_value(const struct table *table, double count, double idf);

/* Whether words are weighed by how many rows have them. */
static inline bool table_weighs_words(const struct table *table) {
    return table->text.values == TEXT_TFIDF || table->text.values == TEXT_LOG_TFIDF;
}

/* Whether a column of a file is read: features are made of it, or of its parts. */
static inline bool table_reads(const struct table_column *column) {
    return (table_uses(column) && !column->is_part) || column->kind == COLUMN_DATE;
}

/* Whether the table has a column of dates. */
bool table_has_dates(const struct table *table);

/* Whether the table keeps only the name and the number of a column, which its file lacks. */
static inline bool table_lacks(const struct table *table, uint32_t column) {
    return column >= table->columns || (table->column[column].kind == COLUMN_SKIPPED &&
                                        table->column[column].place == COLUMN_NOWHERE);
}

/* Adds the columns that another file of the same data has: those after the table's, and those that
 * it lacks. */
void table_add_columns(struct table *table, const struct table *other);

/* A copy of the first columns. */
struct table *table_copy_first(const struct table *table, uint32_t columns);

/* "column 3 (age)", by number from 1. */
#define COLUMN_TEXT 160
const char *table_describe(const struct table *table, uint32_t column, char text[COLUMN_TEXT]);

/* Finds the columns that the texts of a list name, "a*b" or "1*4", and with CROSS_PAIRS all pairs
 * of categories and, if they have bins, numbers. The list is NULL-terminated, or NULL. ERROR_DATA
 * if a column is not there, ERROR_CONFIG if one cannot be crossed. */
#define CROSS_PAIRS "pairs"
int table_find_crosses(struct table *table, const char *const *texts, bool bins);

/* "COLUMN = rising" or "COLUMN = falling"; `length` is that of the column's name. */
bool monotone_parse(const char *text, size_t *length, enum monotone *monotone);

/* The column that a rule for one column names: by its name, or by its number from 1. ERROR_CONFIG
 * if there is none. */
int table_column_of_rule(const struct table *table, const char *name, uint32_t *column);

/* Says so of the columns of a table; the list is NULL-terminated, or NULL. ERROR_CONFIG for a
 * column that is not there, is no number that is trained on, or is given twice, and without bins.
 */
int table_find_monotone(struct table *table, const char *const *texts, bool bins);

/* The value of so many crosses' features: 2^−k, where 4^k is the largest power that is not above
 * their number. So all crosses of a row together have about the length of one column, and a penalty
 * that suits columns suits any number of crosses. */
double table_cross_value(uint32_t crosses);

/* What stands for a column in names: its own, or its number from 1, of a part that of its date:
 * "3.month". */
#define COLUMN_LABEL_TEXT 32
const char *table_label(const struct table *table, uint32_t column, char text[COLUMN_LABEL_TEXT]);

/* "age * town". Free the result. */
char *table_cross_name(const struct table *table, const struct table_cross *cross);

/* A new reference. */
json_t *table_json(const struct table *table);
/* ERROR_DATA, beginning with `where`, if the object is no such table. */
int table_of_json(const json_t *object, const char *where, struct table **table);

/* The table as a text. Free the result. */
char *table_text(const struct table *table);
int table_of_text(const char *text, const char *where, struct table **table);

/* ---- features ----
 *
 * A number's feature has its column's number, from 1, as original id. What a text means has a hash
 * with its top bit set, so the two never meet. */

enum feature_role {
    ROLE_NUMBER,
    ROLE_VALUE,   /* of a category: the text */
    ROLE_MISSING, /* the cell is missing */
    ROLE_RARE,    /* of a category: any text that training has in few rows */
    ROLE_HASHED,  /* of a category or a text: texts or words of one hash */
    ROLE_BIN,     /* of a number: it is in a bin, which `text` names by its number, "0" the first */
    ROLE_CROSS,   /* of several columns: what they have, table_cross_feature() */
    ROLE_WORD,    /* of a text: a word, or some that follow each other */
};

#define FEATURE_HASHED (UINT64_C(1) << 63)
#define HASH_BITS_MAX 28

#define CATEGORY_BYTES_MAX 4096u /* of a category's text */

/* `column` from 0. The text is used by ROLE_VALUE, ROLE_HASHED, ROLE_BIN and ROLE_WORD alone. */
uint64_t table_feature(uint32_t column, enum feature_role role, const char *text, size_t length);

uint64_t table_bin_feature(uint32_t column, uint32_t bin);

/* The feature of a cross, from a feature of each of its columns, in their order. */
uint64_t table_cross_feature(const uint64_t *id, uint32_t columns);

/* The hash of a category's text, and the feature of such a hash. */
uint32_t table_hash(const struct table *table, uint32_t column, const char *text, size_t length);
uint64_t table_hashed_feature(uint32_t column, uint32_t hash);

/* The column that a feature of this id and name was made of; COLUMN_NOWHERE if there is none. */
uint32_t table_column_of(const struct table *table, uint64_t id, const char *name);

/* The cross that a feature of this name was made of; `crosses` if there is none. Columns whose
 * names have such signs in them may be taken for others: this is for people. */
uint32_t table_cross_of(const struct table *table, const char *name);

/* The text of ROLE_VALUE of the column that the feature of this id and name stands for; NULL if it
 * stands for none, or if its name does not tell. Free the result. */
char *table_value_of(const struct table *table, uint32_t column, uint64_t id, const char *name);

/* The feature of ROLE_WORD whose text stands after TABLE_PREFIX_BYTES bytes at `joined`, which are
 * overwritten. */
#define TABLE_PREFIX_BYTES 5
uint64_t table_word_feature(uint32_t column, char *joined, size_t length);

/* The name of such a feature, as "workclass=Private" or "age=(missing)"; "" for a number without a
 * name. Free the result. */
char *table_feature_name(const struct table *table, uint32_t column, enum feature_role role,
                         const char *text);

#endif
