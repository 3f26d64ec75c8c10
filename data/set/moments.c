#include "data/set/statistics.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"

/* Consecutive chunks make a group, which is added up in the order of its chunks, and groups are
 * added in their order. Of wide sets there is one.
 *
 * Either threads take a group each, with room for all columns, or they take a range of the columns
 * each, and go through the groups in that. The latter looks into every row, and the former takes
 * much memory if there are more columns in all groups than rows. */
#define GROUPS 16
#define COLUMNS_OF_GROUPS (1u << 17)

/* To squares alone a group brings at least so many values for each column. */
#define VALUES_OF_SQUARE 4

/* Columns are parted among the threads by so many values of a sample. */
#define SAMPLED 4096
#define SAMPLED_OF_CHUNK 64

/* So many values ahead, the sums of a column are asked for: of wide data, most are far away. */
#define AHEAD 32

enum reading { READ_SUMS, READ_DEVIATIONS, READ_SQUARES, READ_MEANS };

/* Whether a column has one sum. */
static inline bool has_single(enum reading reading) {
    return reading == READ_SQUARES || reading == READ_MEANS;
}

/* The sums of a column, from the stored values of a group. All in one line of the cache. */
struct column_sums {
    double sum;    /* Σ w·x, then Σ w·(x − mean) */
    double square; /* Σ w·(x − mean)² */
    double stored; /* Σ w */
    union {
        uint64_t nonzero; /* values, for READ_SUMS */
        double mean;      /* for READ_DEVIATIONS */
    };
};

/* The sums of all columns. */
struct sums {
    struct column_sums *column; /* of READ_SUMS and READ_DEVIATIONS */
    double *single;             /* of the others: Σ w·x² or, of READ_MEANS, Σ w·x */
};

struct chunk_group {
    uint32_t first, end; /* chunks */
    struct sums sums;    /* one object for all groups if threads take ranges */
    uint64_t rows;       /* whose weight is not 0 */
};

/* Columns [first, end); of a set in tiles whole strips. */
struct column_range {
    uint64_t first, end;
};

struct moments_pass {
    struct set *set;
    uint64_t columns;
    enum reading reading;
    struct chunk_group groups[GROUPS];
    struct sums total; /* of all groups; of one group it is that of the group */
    uint32_t count;
    bool by_range;
    struct column_range ranges[THREADS_MAX]; /* all columns, each once */
    uint32_t range_count;                    /* 1 unless `by_range` */
};

/* ---- some columns of one group ---- */

/* `reading` is a constant for the compiler, here and below. */
__attribute__((always_inline)) static inline void add_value(struct chunk_group *group,
                                                            enum reading reading, uint64_t column,
                                                            double value, double weight) {
    if (reading == READ_SQUARES) {
        group->sums.single[column] += weight * (value * value);
        return;
    }
    if (reading == READ_MEANS) {
        group->sums.single[column] += weight * value;
        return;
    }
    struct column_sums *sums = &group->sums.column[column];
    if (reading == READ_SUMS) {
        sums->sum += weight * value;
        sums->stored += weight;
        sums->nonzero += value != 0;
    } else {
        double difference = value - sums->mean;
        sums->sum += weight * difference;
        sums->square += weight * (difference * difference);
    }
}

/* The first of the row's values whose column is not below `column`. */
static uint64_t find_column(const struct rows *rows, uint32_t row, uint64_t column) {
    uint64_t first = rows->start[row], count = rows->start[row + 1] - first;
    while (count && column) {
        uint64_t half = count / 2;
        bool below = rows->feature[first + half] < column;
        first += below ? half + 1 : 0;
        count = below ? count - half - 1 : half;
    }
    return first;
}

static inline void ask_ahead(const struct chunk_group *group, enum reading reading,
                             const struct rows *rows, uint64_t base, uint64_t i) {
    if (i + AHEAD >= rows->values)
        return;
    uint64_t column = base + rows->feature[i + AHEAD];
    __builtin_prefetch(has_single(reading) ? (const void *)&group->sums.single[column]
                                           : &group->sums.column[column],
                       1);
}

__attribute__((always_inline)) static inline void
add_row(struct chunk_group *group, enum reading reading, const struct rows *rows, uint32_t row,
        uint64_t base, const struct column_range *range, double weight) {
    if (rows->dense) {
        uint64_t first = (uint64_t)row * rows->features;
        for (uint64_t j = range->first; j < range->end; j++)
            add_value(group, reading, j, value_at(rows->type, rows->value, first + j), weight);
        return;
    }
    uint64_t end = rows->start[row + 1];
    for (uint64_t i = find_column(rows, row, range->first);
         i < end && rows->feature[i] < range->end; i++) {
        ask_ahead(group, reading, rows, base, i);
        add_value(group, reading, base + rows->feature[i], value_at(rows->type, rows->value, i),
                  weight);
    }
}

/* The sums of values alone, of dense rows: the type is a constant for the compiler. */
__attribute__((always_inline)) static inline void
sum_dense(double *restrict sum, enum value_type type, const struct rows *rows, uint32_t row,
          const struct column_range *range, double weight) {
    uint64_t first = (uint64_t)row * rows->features;
    for (uint64_t j = range->first; j < range->end; j++)
        sum[j] += weight * value_at(type, rows->value, first + j);
}

static void add_dense(struct chunk_group *group, const struct rows *rows, uint32_t row,
                      const struct column_range *range, double weight) {
    double *sum = group->sums.single;
    if (rows->type == VALUE_FLOAT)
        sum_dense(sum, VALUE_FLOAT, rows, row, range, weight);
    else if (rows->type == VALUE_DOUBLE)
        sum_dense(sum, VALUE_DOUBLE, rows, row, range, weight);
    else
        sum_dense(sum, rows->type, rows, row, range, weight);
}

/* Adds what rows have in the columns of `range`, counted from the first of `rows`, which is column
 * `base` of the set. */
__attribute__((always_inline)) static inline void add_rows(struct chunk_group *group,
                                                           enum reading reading,
                                                           const struct rows *rows, uint64_t base,
                                                           const struct column_range *range) {
    uint64_t counted = 0;
    for (uint32_t row = 0; row < rows->count; row++) {
        double weight = rows->weight ? rows->weight[row] : 1;
        if (weight == 0) /* whatever it holds: 0 times what overflows is not a number */
            continue;
        counted++;
        if (reading == READ_MEANS && rows->dense)
            add_dense(group, rows, row, range, weight);
        else
            add_row(group, reading, rows, row, base, range, weight);
    }
    if (!base && !range->first) /* other threads have the other ranges of this group */
        group->rows += counted;
}

static void add_chunk(const struct moments_pass *pass, struct chunk_group *group,
                      const struct rows *rows, uint64_t base, const struct column_range *range) {
    if (pass->reading == READ_SUMS)
        add_rows(group, READ_SUMS, rows, base, range);
    else if (pass->reading == READ_DEVIATIONS)
        add_rows(group, READ_DEVIATIONS, rows, base, range);
    else if (pass->reading == READ_MEANS)
        add_rows(group, READ_MEANS, rows, base, range);
    else
        add_rows(group, READ_SQUARES, rows, base, range);
}

/* Adds the rows of a set in tiles, strip by strip. A column's values come in the order of the
 * chunks, so their sums have the bits of the set that is not in tiles. */
static int add_strips(const struct moments_pass *pass, struct chunk_group *group,
                      const struct column_range *range) {
    const struct set_info *info = set_info(pass->set);
    const uint32_t wide = info->strip_columns;
    assert(range->first % wide == 0);
    for (uint64_t base = range->first; base < range->end; base += wide)
        for (uint32_t chunk = group->first; chunk < group->end; chunk++) {
            struct rows rows;
            int code = set_tile(pass->set, (uint32_t)(base / wide) * info->chunks + chunk, &rows);
            if (code)
                return code;
            add_chunk(pass, group, &rows, base, &(struct column_range){0, rows.features});
        }
    return 0;
}

static int add_group(const struct moments_pass *pass, struct chunk_group *group,
                     const struct column_range *range) {
    if (set_info(pass->set)->strip_columns)
        return add_strips(pass, group, range);
    for (uint32_t chunk = group->first; chunk < group->end; chunk++) {
        struct rows rows;
        int code = set_chunk(pass->set, chunk, &rows);
        if (code)
            return code;
        add_chunk(pass, group, &rows, 0, range);
    }
    return 0;
}

/* ---- ranges of columns ---- */

static int compare_columns(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Columns of values that are spread over the chunks. Returns how many. */
static uint32_t sample_columns(const struct moments_pass *pass, uint32_t chunks,
                               uint32_t column[SAMPLED]) {
    uint32_t count = 0,
             sampled = chunks < SAMPLED / SAMPLED_OF_CHUNK ? chunks : SAMPLED / SAMPLED_OF_CHUNK;
    for (uint32_t k = 0; k < sampled; k++) {
        struct rows rows;
        if (set_chunk(pass->set, (uint32_t)((uint64_t)chunks * k / sampled), &rows))
            return error_clear(), 0; /* whoever adds it up will tell */
        for (uint32_t i = 0; i < SAMPLED_OF_CHUNK && rows.values && !rows.dense; i++)
            column[count++] = rows.feature[rows.values * i / SAMPLED_OF_CHUNK];
    }
    assert(count <= SAMPLED);
    return count;
}

/* Ranges with about as many values each, one a thread. They change no sum. */
static void part_columns(struct moments_pass *pass, uint32_t chunks, unsigned threads) {
    uint32_t column[SAMPLED], count = 0;
    uint64_t first = 0;
    bool dense = set_info(pass->set)->dense;
    if (threads > 1 && !dense)
        count = sample_columns(pass, chunks, column);
    qsort(column, count, sizeof *column, compare_columns);
    pass->range_count = 0;
    for (unsigned i = 1; i < threads && i < THREADS_MAX && (count || dense); i++) {
        uint64_t end = dense ? pass->columns * i / threads : column[(uint64_t)count * i / threads];
        if (end > first)
            pass->ranges[pass->range_count++] = (struct column_range){first, end};
        first = end > first ? end : first;
    }
    pass->ranges[pass->range_count++] = (struct column_range){first, pass->columns};
}

/* ---- all groups ---- */

/* Adds what a group has to the total, and clears it for the next. */
static void end_group(struct moments_pass *pass, const struct chunk_group *group,
                      const struct column_range *range) {
    if (pass->count == 1)
        return;
    assert(range->first <= range->end && range->end <= pass->columns);
    for (uint64_t j = range->first; j < range->end && has_single(pass->reading); j++) {
        pass->total.single[j] += group->sums.single[j];
        group->sums.single[j] = 0;
    }
    for (uint64_t j = range->first; j < range->end && !has_single(pass->reading); j++) {
        struct column_sums *sums = &group->sums.column[j], *total = &pass->total.column[j];
        total->sum += sums->sum;
        total->square += sums->square;
        total->stored += sums->stored;
        sums->sum = sums->square = sums->stored = 0;
        if (pass->reading == READ_DEVIATIONS)
            continue;
        total->nonzero += sums->nonzero;
        sums->nonzero = 0;
    }
}

static int add_range(struct moments_pass *pass, const struct column_range *range) {
    int code = 0;
    for (uint32_t i = 0; i < pass->count && !code; i++) {
        code = add_group(pass, &pass->groups[i], range);
        end_group(pass, &pass->groups[i], range);
    }
    return code;
}

/* A group, or a range of the columns: the sums of a column are taken in one order, whichever thread
 * takes them. */
static int add_part(void *context, unsigned part) {
    struct moments_pass *pass = context;
    assert(part < (pass->by_range ? pass->range_count : pass->count));
    return pass->by_range ? add_range(pass, &pass->ranges[part])
                          : add_group(pass, &pass->groups[part], &pass->ranges[0]);
}

static int run_pass(struct moments_pass *pass, unsigned threads) {
    int code =
        threads_try(threads, pass->by_range ? pass->range_count : pass->count, add_part, pass);
    for (uint32_t i = 0; i < pass->count && !pass->by_range; i++)
        end_group(pass, &pass->groups[i], &pass->ranges[0]);
    return code;
}

static uint32_t groups_of(const struct set_info *info, enum reading reading) {
    if (info->features > COLUMNS_OF_GROUPS)
        return 1;
    uint64_t most = reading == READ_SQUARES && info->features
                        ? info->values / (info->features * VALUES_OF_SQUARE)
                        : GROUPS;
    return most < 1 ? 1 : most < GROUPS ? (uint32_t)most : GROUPS;
}

static struct sums sums_new(const struct moments_pass *pass) {
    if (has_single(pass->reading))
        return (struct sums){.single = memory_map(pass->columns * sizeof(double))};
    return (struct sums){.column = memory_map(pass->columns * sizeof(struct column_sums))};
}

static void sums_free(const struct moments_pass *pass, struct sums *sums) {
    memory_unmap(sums->column, pass->columns * sizeof *sums->column);
    memory_unmap(sums->single, pass->columns * sizeof *sums->single);
}

/* How many groups have sums of their own. */
static uint32_t groups_apart(const struct moments_pass *pass) {
    return pass->by_range ? 1 : pass->count;
}

static void begin(struct moments_pass *pass, struct set *set, enum reading reading,
                  unsigned threads) {
    const struct set_info *info = set_info(set);
    uint32_t chunks = set_training_chunks(info);
    *pass = (struct moments_pass){.set = set,
                                  .columns = info->features,
                                  .reading = reading,
                                  .count = groups_of(info, reading)};
    pass->by_range =
        info->strip_columns || pass->count == 1 || info->rows < pass->columns * pass->count;
    if (info->strip_columns) {
        /* Each strip of a set in tiles is a range, or as many ranges as there may be have some
         * strips each. */
        uint64_t strips = set_strips(info);
        pass->range_count = strips < THREADS_MAX ? (uint32_t)strips : THREADS_MAX;
        for (uint32_t i = 0; i < pass->range_count; i++) {
            uint64_t first = strips * i / pass->range_count,
                     end = strips * (i + 1) / pass->range_count;
            bool last = i + 1 == pass->range_count;
            pass->ranges[i] = (struct column_range){
                first * info->strip_columns, last ? pass->columns : end * info->strip_columns};
        }
    } else
        part_columns(pass, chunks, pass->by_range ? threads : 1);
    assert(pass->ranges[pass->range_count - 1].end == pass->columns); /* each column once */
    for (uint32_t i = 0; i < pass->count; i++) {
        struct chunk_group *group = &pass->groups[i];
        group->first = (uint32_t)((uint64_t)chunks * i / pass->count);
        group->end = (uint32_t)((uint64_t)chunks * (i + 1) / pass->count);
        assert(group->first <= group->end && group->end <= chunks);
        group->sums = i < groups_apart(pass) ? sums_new(pass) : pass->groups[0].sums;
    }
    pass->total = pass->count == 1 ? pass->groups[0].sums : sums_new(pass);
}

static void end(struct moments_pass *pass) {
    for (uint32_t i = 0; i < groups_apart(pass); i++)
        sums_free(pass, &pass->groups[i].sums);
    if (pass->count > 1)
        sums_free(pass, &pass->total);
}

/* ---- what they come to ---- */

/* `sum` is Σ w·(x − mean), which is not 0 because the mean is rounded. A variance that could be
 * rounding alone becomes 0: the column is constant. */
static double variance_of(double sum, double square, double mean, double weights) {
    assert(weights > 0);
    double variance = (square - sum * sum / weights) / weights;
    double rounding = weights * fabs(mean) * DBL_EPSILON;
    return variance > weights * DBL_EPSILON * variance + rounding * rounding || !isfinite(variance)
               ? variance
               : 0;
}

static void finish_variances(const struct moments_pass *pass, const struct set_info *info,
                             struct moments *moments) {
    assert(pass->reading == READ_DEVIATIONS);
    for (uint64_t j = 0; j < pass->columns; j++) {
        const struct column_sums *total = &pass->total.column[j];
        double sum = total->sum, square = total->square, mean = moments->mean[j];
        /* The weight of the rows without a stored value: a difference of sums, so that of rows
         * with weights what little there is can be rounding alone. */
        double zeros = info->weight_sum - total->stored;
        if (info->weighted && fabs(zeros) <= info->weight_sum * (double)info->rows * DBL_EPSILON)
            zeros = 0;
        moments->variance[j] =
            variance_of(sum - zeros * mean, square + zeros * mean * mean, mean, info->weight_sum);
    }
}

int moments_find(struct set *set, unsigned threads, struct moments *moments) {
    const struct set_info *info = set_info(set);
    struct moments_pass pass;
    *moments = (struct moments){.mean = memory_new(info->features, sizeof *moments->mean),
                                .variance = memory_new(info->features, sizeof *moments->variance),
                                .nonzero = memory_new(info->features, sizeof *moments->nonzero)};
    begin(&pass, set, READ_SUMS, threads);
    int code = run_pass(&pass, threads);
    if (!code) {
        /* Readies the groups for READ_DEVIATIONS. */
        for (uint32_t i = 0; i < pass.count; i++)
            moments->rows += pass.groups[i].rows;
        for (uint64_t j = 0; j < pass.columns; j++) {
            struct column_sums *total = &pass.total.column[j];
            moments->nonzero[j] = total->nonzero;
            moments->mean[j] = total->sum / info->weight_sum;
            total->sum = 0;
            for (uint32_t i = 0; i < groups_apart(&pass); i++)
                pass.groups[i].sums.column[j].mean = moments->mean[j];
        }
        pass.reading = READ_DEVIATIONS;
        code = run_pass(&pass, threads);
    }
    if (!code) {
        finish_variances(&pass, info, moments);
        moments->kind = MOMENTS_EXACT;
    }
    end(&pass);
    return code;
}

void moments_of_squares(const struct set_info *data, const double *squares,
                        struct moments *moments) {
    *moments = (struct moments){.mean = memory_new(data->features, sizeof *moments->mean),
                                .variance = memory_new(data->features, sizeof *moments->variance),
                                .nonzero = memory_new(data->features, sizeof *moments->nonzero),
                                .rows = data->rows,
                                .kind = MOMENTS_OF_SQUARES};
    memcpy(moments->variance, squares, data->features * sizeof *squares);
    memcpy(moments->nonzero, data->counts, data->features * sizeof *data->counts);
}

/* Reads what has one sum a column. The quotients take the place of the sums: a model of many
 * columns has no room for both. */
static int read_single(struct set *set, enum reading reading, unsigned threads,
                       double **quotients) {
    struct moments_pass pass;
    assert(has_single(reading));
    begin(&pass, set, reading, threads);
    int code = run_pass(&pass, threads);
    double **sums = pass.count == 1 ? &pass.groups[0].sums.single : &pass.total.single;
    for (uint64_t j = 0; j < pass.columns && !code; j++)
        (*sums)[j] /= set_info(set)->weight_sum;
    if (!code) {
        *quotients = *sums;
        *sums = NULL;
    }
    end(&pass);
    return code;
}

/* If values are all 1, in rows that all weigh 1, the sums of values and of squares are counts,
 * unless values that are 0 were left out of the set. False if the rows have to be read. */
static bool count_single(struct set *set, double **quotients) {
    const struct set_info *info = set_info(set);
    uint64_t counted = 0;
    for (uint64_t j = 0; j < info->features; j++)
        counted += info->counts[j];
    if (info->type != VALUE_ONES || info->dense || info->weighted || counted != info->values)
        return false;
    *quotients = memory_map(info->features * sizeof **quotients);
    for (uint64_t j = 0; j < info->features; j++)
        (*quotients)[j] = (double)info->counts[j] / info->weight_sum;
    return true;
}

static int keep_squares(struct set *set, unsigned threads) {
    double **kept = set_squares(set);
    return *kept || count_single(set, kept) ? 0 : read_single(set, READ_SQUARES, threads, kept);
}

int moments_squares(struct set *set, unsigned threads, const struct moments *known,
                    double *squares) {
    assert(squares);
    uint64_t columns = set_info(set)->features;
    bool is_known = known->kind != MOMENTS_NONE;
    for (uint64_t j = 0; j < columns && is_known; j++)
        squares[j] = known->variance[j] + known->mean[j] * known->mean[j];
    if (is_known)
        return 0;
    int code = keep_squares(set, threads);
    if (!code)
        memcpy(squares, *set_squares(set), columns * sizeof *squares);
    return code;
}

int moments_take_squares(struct set *set, unsigned threads, double **squares) {
    double **kept = set_squares(set);
    int code = keep_squares(set, threads);
    *squares = *kept;
    *kept = NULL;
    return code;
}

int moments_means(struct set *set, unsigned threads, const struct moments *known, double **means) {
    const struct set_info *info = set_info(set);
    int code = 0;
    *means = NULL;
    if (known->kind == MOMENTS_EXACT) {
        *means = memory_map(info->features * sizeof **means);
        memcpy(*means, known->mean, info->features * sizeof **means);
    } else if (!count_single(set, means)) {
        code = read_single(set, READ_MEANS, threads, means);
    }
    for (uint64_t j = 0; !code && info->centre && j < info->features; j++)
        (*means)[j] += info->centre[j];
    return code;
}

double moments_size(const struct moments *moments, uint64_t j) {
    assert(moments->kind != MOMENTS_NONE);
    double square = moments->variance[j] + moments->mean[j] * moments->mean[j];
    double nonzero = (double)moments->nonzero[j];
    return nonzero > 0 && isfinite(square) ? sqrt(square * (double)moments->rows / nonzero) : 0;
}

/* Fewer columns are those of a table; sizes that are nearly the same differ by less. */
#define COLUMNS_OF_ONE_UNIT 64
#define NEARLY 3.0

/* The size that would stand at `rank` if they were sorted, found digit by digit: numbers that are
 * not negative have the order of their bits. */
static double size_of_rank(const double *size, uint64_t count, uint64_t rank) {
    uint64_t found = 0, known = 0;
    assert(rank < count);
    for (int shift = 56; shift >= 0; shift -= 8) {
        uint64_t of_digit[256] = {0}, digit = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t bits;
            memcpy(&bits, &size[i], sizeof bits);
            if ((bits & known) == found)
                of_digit[bits >> shift & 255]++;
        }
        for (; rank >= of_digit[digit]; digit++)
            rank -= of_digit[digit];
        assert(digit < 256);
        found |= digit << shift;
        known |= UINT64_C(255) << shift;
    }
    double answer;
    memcpy(&answer, &found, sizeof answer);
    return answer;
}

/* Whether the largest size is near the median, and three quarters of the others. */
static bool are_near_the_median(const double *size, uint64_t count, double most) {
    double median = size_of_rank(size, count, count / 2);
    uint64_t near = 0;
    for (uint64_t i = 0; i < count; i++)
        near += size[i] * NEARLY >= median;
    return 4 * near >= 3 * count && most <= NEARLY * median;
}

bool moments_share_unit(const struct moments *moments, uint64_t columns) {
    double *size = memory_new(columns, sizeof *size);
    double most = 0, least = INFINITY;
    uint64_t count = 0;
    for (uint64_t j = 0; j < columns; j++) {
        size[count] = moments_size(moments, j);
        most = size[count] > most ? size[count] : most;
        least = size[count] > 0 && size[count] < least ? size[count] : least;
        count += size[count] > 0;
    }
    /* Where all are near one another, as in rows of ones, they are near any median. */
    bool shared = count >= COLUMNS_OF_ONE_UNIT &&
                  (most <= NEARLY * least || are_near_the_median(size, count, most));
    free(size);
    return shared;
}

void moments_release(struct moments *moments) {
    free(moments->mean);
    free(moments->variance);
    free(moments->nonzero);
    *moments = (struct moments){0};
}
