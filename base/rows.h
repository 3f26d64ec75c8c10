/* A block of training examples as arrays: what the data reader hands out and an objective takes.
 * A view; nothing in it is owned. */
#ifndef DML_BASE_ROWS_H
#define DML_BASE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* How the values of a block are stored. A type holds the values of all types before it. */
enum value_type {
    VALUE_ONES,  /* every stored value is 1; none is stored */
    VALUE_BYTE,  /* uint8_t: the source has bytes, as images do; never of text */
    VALUE_FLOAT, /* float: exact for what the text said */
    VALUE_DOUBLE,
};

static inline size_t value_bytes(enum value_type type) {
    static const unsigned char bytes[] = {[VALUE_BYTE] = sizeof(uint8_t),
                                          [VALUE_FLOAT] = sizeof(float),
                                          [VALUE_DOUBLE] = sizeof(double)};
    return bytes[type];
}

/* As inspections name it. */
static inline const char *value_type_name(enum value_type type) {
    static const char *const names[] = {[VALUE_ONES] = "ones",
                                        [VALUE_BYTE] = "bytes",
                                        [VALUE_FLOAT] = "float",
                                        [VALUE_DOUBLE] = "double"};
    return names[type];
}

/* Value `i` of an array of that type. */
__attribute__((always_inline)) static inline double value_at(enum value_type type,
                                                             const void *value, size_t i) {
    switch (type) {
    case VALUE_ONES:
        return 1;
    case VALUE_BYTE:
        return ((const uint8_t *)value)[i];
    case VALUE_FLOAT:
        return (double)((const float *)value)[i];
    case VALUE_DOUBLE:
        return ((const double *)value)[i];
    }
    return 0;
}

enum label_kind {
    LABEL_BINARY,  /* 0 or 1: the larger of two classes (or `positive`) is 1 */
    LABEL_CLASSES, /* 0 … classes−1, in numeric, else bytewise, order */
    LABEL_TARGET,  /* the number itself */
    LABEL_ORDERED, /* 0 … classes−1, in numeric order, or in the order that the job gives */
    LABEL_LISTS,   /* the number of a list of classes, which are numbered as LABEL_CLASSES */
};

/* Lists of classes: of list i, class[start[i]] … class[start[i + 1] − 1], rising. */
struct label_lists {
    uint32_t count;
    const uint32_t *start; /* count + 1 */
    const uint32_t *class;
};

struct rows {
    uint32_t count;    /* examples */
    uint32_t features; /* columns of the data set, or of the strip; the intercept is none of them */
    uint64_t values;   /* stored values: dense, count·features */
    bool dense;
    enum value_type type;
    const uint32_t *start;           /* sparse: count+1 offsets into `feature` and `value` */
    const uint32_t *feature;         /* sparse: column of each value, rising within a row */
    const void *value;               /* as `type` says; dense: row-major count×features; NULL for
                                        VALUE_ONES */
    const double *label;             /* count; what they are says label_kind */
    const struct label_lists *lists; /* of LABEL_LISTS; else NULL */
    const double *weight;            /* count; ≥ 0 and finite; NULL: all are 1 */
    const double *offset;            /* count; finite; added to each margin; NULL: all are 0 */
    const uint64_t *cluster;         /* count; rows of one number are of one cluster, 0 of a row
                                        that is not trained on; NULL: there are none */
    const int16_t *size; /* of a tile: count; Σ|x_j| + 1 ≤ 2^size over all columns of the row; NULL:
                            the rows are whole */
    uint64_t first; /* number of the first example in its data set, where those of training come
                       first, each chunk's after those of the chunk before */
};

/* What memory for any of several blocks of rows is sized by: no block has more. */
struct rows_most {
    uint32_t count;
    uint64_t values;
    unsigned types; /* those that some block has: 1 << enum value_type */
    bool dense;     /* as all of them are */
};

static inline struct rows_most rows_most_of(const struct rows *rows) {
    const uint64_t values =
        rows->dense ? (uint64_t)rows->count * rows->features : rows->start[rows->count];
    return (struct rows_most){rows->count, values, 1U << rows->type, rows->dense};
}

/* How rows are sampled, for evaluations that do not take all: a row counts with the chance
 * min(1, floor + rate · (its share)), and weighs 1/chance. objective/objective.h says what the
 * share is. */
struct row_sampling {
    double rate;          /* ≥ 0 */
    double floor;         /* in (0, 1]; 1: all rows, with weight 1 */
    uint64_t sample_seed; /* makes another sample */
};

/* How many strips of `width` > 0 columns, of which the last may have fewer, so many columns are. */
static inline uint64_t strips_of(uint64_t columns, uint32_t width) {
    return columns / width + (columns % width != 0);
}

/* Weights of a linear model, by rising numbers: of which column each is, and of which output. */
struct weight_list {
    uint32_t count;
    uint32_t column[WORKING_SET_MAX], output[WORKING_SET_MAX];
};

/* What the offsets of training rows are like. All are 0 if no row has one. */
struct offset_summary {
    double least, most;
    double mean;         /* weighted */
    double log_mean_exp; /* the logarithm of the weighted mean of e^offset */
};

/* What the targets of a set are like, of rows whose weight is not 0. All are 0 if there are none.
 * The quantiles are those of targets less the offsets of their rows, which is what a model of
 * targets with a unit must explain: of some rows, evenly spread, each with its weight. [k] is about
 * as large as k/128 of them. */
#define LABEL_QUANTILES 129
struct label_summary {
    double least, mean;
    double quantile[LABEL_QUANTILES];
};

static inline bool labels_are_one_number(const struct label_summary *labels) {
    return labels->quantile[0] == labels->quantile[LABEL_QUANTILES - 1];
}

#endif
