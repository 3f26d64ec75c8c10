/* Statistics of the rows of a set, and a sample of them. */
#ifndef DML_DATA_SET_STATISTICS_H
#define DML_DATA_SET_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set.h"

enum moments_kind {
    MOMENTS_NONE,       /* nothing is known */
    MOMENTS_EXACT,      /* of moments_find() */
    MOMENTS_OF_SQUARES, /* of moments_of_squares(): about 0, for sizes of columns alone */
};

/* Mean and variance of each column over the training rows of a set, each with its weight, zeros
 * that are not stored included. */
struct moments {
    double *mean; /* [features]; owned, as all of these */
    double
        *variance; /* Σ w(x − mean)²/Σ w; 0 for a column whose values differ by rounding at most */
    uint64_t *nonzero; /* rows whose value is not 0 */
    uint64_t rows;     /* all of them; rows of weight 0 count nowhere */
    enum moments_kind kind;
};

/* Reads the training chunks twice, with so many threads. Sums are taken in an order that follows
 * from the set alone: the same bits with any number of threads, and however the rows were spread
 * over files. ERROR_DATA if a chunk is damaged; sums beyond the range of doubles are infinite or
 * not a number. Of no kind after an error. Release it in any case. */
int moments_find(struct set *set, unsigned threads, struct moments *moments);
void moments_release(struct moments *moments);

/* What moments_size() and moments_share_unit() need, of the mean squares of columns that are known,
 * without a look at the rows: means are 0, variances squares, and a value of the text counts as one
 * that is not 0. Release it. */
void moments_of_squares(const struct set_info *data, const double *squares,
                        struct moments *moments);

/* The mean square of each column about 0, Σ w·x²/Σ w: squares[features]. Of moments that are known,
 * else (of no kind) from one read, whose bits follow from the set alone, too, and which is
 * the only one while the set is open: each value of a path asks. ERROR_DATA if a chunk is damaged.
 */
int moments_squares(struct set *set, unsigned threads, const struct moments *known,
                    double *squares);
/* Gives the squares by one read, or those that are kept, to who asks last: in memory of
 * memory_map(), the caller's, so that they need not be there twice. */
int moments_take_squares(struct set *set, unsigned threads, double **squares);

/* The mean of each column as the data has it: centres that were taken off its values are added
 * again. The bits follow from the set alone, whether moments are known (of no kind: they are not);
 * else one read finds them. In memory of memory_map(), `features` elements, the caller's; NULL
 * after an error. ERROR_DATA if a chunk is damaged; means beyond the range of doubles are infinite
 * or not a number. */
int moments_means(struct set *set, unsigned threads, const struct moments *known, double **means);

/* The mean square of a row, Σ w·|x|²/Σ w, of a set that is not in tiles, from one read in the order
 * of the values: far sooner there than squares of columns. Its bits follow from the set alone.
 * ERROR_DATA if a chunk is damaged. */
int set_mean_square(struct set *set, unsigned threads, double *mean);

/* The root mean square of a column's values that are not 0; 0 if it has none, or it is not known.
 */
double moments_size(const struct moments *moments, uint64_t column);

/* How many values rows have in the first columns, in a sample of chunks that follows from the set
 * alone. */
enum { PREFIXES = 8 };

struct prefix_counts {
    uint32_t columns[PREFIXES]; /* each half of the one before */
    uint64_t rows;              /* looked at; rows of weight 0 count nowhere */
    double sum[PREFIXES];       /* of the numbers of values */
    double square[PREFIXES];    /* and of their squares */
    double all_sum, all_square; /* the sum and the sum of squares over all columns */
    double rest_square;         /* and of squares over all but those of the first prefix */
};

/* ERROR_DATA if a chunk is damaged. */
int prefix_counts_find(struct set *set, uint32_t columns, struct prefix_counts *counts);

/* Whether columns look as if they all measured the same, as pixels do: there are many, most
 * are nearly as large as the median, and none is much larger. Rare ones may be smaller. */
bool moments_share_unit(const struct moments *moments, uint64_t columns);

/* A few training rows of a set, both as their file has them and as the set stores them: for
 * checking a model against the rows that it was trained on. */
struct sample {
    uint32_t count;      /* rows */
    uint64_t *row;       /* the number of each in its file, from 1 */
    char *file;          /* its path */
    struct table *table; /* CSV: the columns of that file; else NULL */

    /* As struct source_rows has them. */
    uint64_t *start, *id;
    uint32_t *source_column; /* CSV; else NULL */
    double *value;

    /* As the set has them, without zeros of the data. */
    uint64_t *stored_start; /* count + 1 */
    uint64_t *column;
    uint64_t *column_id; /* its original id */
    double *stored;
    double *centre; /* what the stored value has less than the data; NULL: nothing */
};

/* What a set does not say of itself: its folds, if it lacks one of them, and the seed of its order,
 * if it is shuffled. */
struct sample_options {
    uint32_t folds;
    uint64_t fold_seed, shuffle_seed;
};

/* Takes the first rows of the first file, which has its pack in folder `packs`. There may be none.
 * ERROR_DATA or ERROR_IO if pack or set cannot be read. Release it with sample_release(). */
int sample_take(struct set *set, const char *packs, const struct sample_options *options,
                struct sample *sample);
void sample_release(struct sample *sample); /* harmless on zeroed memory */

#endif
