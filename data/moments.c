#include "data/set.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/number.h"

/* Consecutive chunks make a group. A group is added up by one thread in the order of its chunks,
 * and groups are added in their order. Of wide sets there is one: each takes room for all columns.
 */
#define GROUPS 16
#define COLUMNS_OF_GROUPS (1u << 17)

/* To squares alone a group brings at least so many values for each column that it takes room for.
 */
#define VALUES_OF_SQUARE 4

enum reading { READ_SUMS, READ_DEVIATIONS, READ_SQUARES };

struct chunk_group {
    uint32_t first, end; /* chunks */
    double *sum;         /* Σ w·x, then Σ w·(x − mean) of stored values */
    double *square;      /* Σ w·(x − mean)² of stored values, or Σ w·x² */
    double *stored;      /* Σ w of them */
    uint64_t *nonzero;   /* of them */
    uint64_t rows;       /* whose weight is not 0 */
};

struct moments_pass {
    struct set *set;
    uint32_t columns;
    enum reading reading;
    const double *mean; /* for READ_DEVIATIONS */
    struct chunk_group groups[GROUPS];
    uint32_t count;

    pthread_mutex_t mutex; /* guards what follows */
    uint32_t next;
    int code; /* of the first failure */
    char *text;
};

/* ---- one group ---- */

static inline void add_value(const struct moments_pass *pass, struct chunk_group *group,
                             uint32_t column, double value, double weight) {
    if (pass->reading == READ_SQUARES) {
        group->square[column] += weight * (value * value);
        return;
    }
    if (pass->reading == READ_SUMS) {
        group->sum[column] += weight * value;
        group->stored[column] += weight;
        group->nonzero[column] += value != 0;
        return;
    }
    double difference = value - pass->mean[column];
    group->sum[column] += weight * difference;
    group->square[column] += weight * (difference * difference);
}

static void add_chunk_rows(const struct moments_pass *pass, struct chunk_group *group,
                           const struct rows *rows) {
    for (uint32_t row = 0; row < rows->count; row++) {
        double weight = rows->weight ? rows->weight[row] : 1;
        if (weight == 0) /* whatever it holds: 0 times what overflows is not a number */
            continue;
        group->rows++;
        uint64_t first = rows->dense ? (uint64_t)row * pass->columns : rows->start[row];
        uint64_t end = rows->dense ? first + pass->columns : rows->start[row + 1];
        for (uint64_t i = first; i < end; i++)
            add_value(pass, group, rows->dense ? (uint32_t)(i - first) : rows->feature[i],
                      value_at(rows->type, rows->value, i), weight);
    }
}

/* ---- all groups ---- */

/* Several threads do this at once. Each takes a whole group, so the sums of a group are taken in
 * one order, whoever takes it. */
static void *add_groups(void *argument) {
    struct moments_pass *pass = argument;
    for (;;) {
        pthread_mutex_lock(&pass->mutex);
        bool there = pass->next < pass->count && !pass->code;
        struct chunk_group *group = there ? &pass->groups[pass->next++] : NULL;
        pthread_mutex_unlock(&pass->mutex);
        if (!group)
            return NULL;
        int code = 0;
        for (uint32_t chunk = group->first; chunk < group->end && !code; chunk++) {
            struct rows rows;
            code = set_chunk(pass->set, chunk, &rows);
            if (!code)
                add_chunk_rows(pass, group, &rows);
        }
        if (!code)
            continue;
        pthread_mutex_lock(&pass->mutex);
        if (!pass->code) {
            pass->code = code;
            pass->text = memory_copy_string(error_text());
        }
        pthread_mutex_unlock(&pass->mutex);
        error_clear();
    }
}

static int run_pass(struct moments_pass *pass, unsigned threads) {
    pass->next = 0;
    threads_run(threads < pass->count ? threads : pass->count, add_groups, pass);
    return pass->code ? error_set(pass->code, "%s", pass->text) : 0;
}

static uint32_t groups_of(const struct set_info *info, enum reading reading) {
    if (info->features > COLUMNS_OF_GROUPS)
        return 1;
    uint64_t most = reading == READ_SQUARES && info->features
                        ? info->values / ((uint64_t)info->features * VALUES_OF_SQUARE)
                        : GROUPS;
    return most < 1 ? 1 : most < GROUPS ? (uint32_t)most : GROUPS;
}

static void begin(struct moments_pass *pass, struct set *set, enum reading reading) {
    const struct set_info *info = set_info(set);
    uint32_t chunks = info->chunks - info->holdout_chunks;
    *pass = (struct moments_pass){.set = set,
                                  .columns = info->features,
                                  .reading = reading,
                                  .count = groups_of(info, reading),
                                  .mutex = PTHREAD_MUTEX_INITIALIZER};
    for (uint32_t i = 0; i < pass->count; i++) {
        struct chunk_group *group = &pass->groups[i];
        group->first = (uint32_t)((uint64_t)chunks * i / pass->count);
        group->end = (uint32_t)((uint64_t)chunks * (i + 1) / pass->count);
        assert(group->first <= group->end && group->end <= chunks);
        group->square = memory_new(pass->columns, sizeof *group->square);
        if (reading == READ_SQUARES)
            continue;
        group->sum = memory_new(pass->columns, sizeof *group->sum);
        group->stored = memory_new(pass->columns, sizeof *group->stored);
        group->nonzero = memory_new(pass->columns, sizeof *group->nonzero);
    }
}

static void end(struct moments_pass *pass) {
    for (uint32_t i = 0; i < pass->count; i++) {
        free(pass->groups[i].sum);
        free(pass->groups[i].square);
        free(pass->groups[i].stored);
        free(pass->groups[i].nonzero);
    }
    free(pass->text);
}

/* ---- what they come to ---- */

static void finish_means(struct moments_pass *pass, double weights, struct moments *moments) {
    for (uint32_t i = 0; i < pass->count; i++)
        moments->rows += pass->groups[i].rows;
    for (uint32_t j = 0; j < pass->columns; j++) {
        double sum = 0;
        for (uint32_t i = 0; i < pass->count; i++) {
            sum += pass->groups[i].sum[j];
            moments->nonzero[j] += pass->groups[i].nonzero[j];
            pass->groups[i].sum[j] = 0;
        }
        moments->mean[j] = sum / weights;
    }
}

/* `sum` is Σ w·(x − mean), which is not 0 because the mean is rounded. A variance that could be
 * rounding alone becomes 0: the column is constant. */
static double variance_of(double sum, double square, double mean, double weights) {
    double variance = (square - sum * sum / weights) / weights;
    double rounding = weights * fabs(mean) * DBL_EPSILON;
    return variance > weights * DBL_EPSILON * variance + rounding * rounding || !isfinite(variance)
               ? variance
               : 0;
}

static void finish_variances(const struct moments_pass *pass, const struct set_info *info,
                             struct moments *moments) {
    for (uint32_t j = 0; j < pass->columns; j++) {
        double sum = 0, square = 0, mean = moments->mean[j], stored = 0;
        for (uint32_t i = 0; i < pass->count; i++) {
            sum += pass->groups[i].sum[j];
            square += pass->groups[i].square[j];
            stored += pass->groups[i].stored[j];
        }
        /* The weight of the rows without a stored value: a difference of sums, so that of rows
         * with weights what little there is can be rounding alone. */
        double zeros = info->weight_sum - stored;
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
    begin(&pass, set, READ_SUMS);
    int code = run_pass(&pass, threads);
    if (!code) {
        finish_means(&pass, info->weight_sum, moments);
        pass.mean = moments->mean;
        pass.reading = READ_DEVIATIONS;
        code = run_pass(&pass, threads);
    }
    if (!code)
        finish_variances(&pass, info, moments);
    end(&pass);
    return code;
}

static int read_squares(struct set *set, unsigned threads, double *squares) {
    struct moments_pass pass;
    begin(&pass, set, READ_SQUARES);
    int code = run_pass(&pass, threads);
    for (uint32_t j = 0; j < pass.columns; j++) {
        for (uint32_t i = 0; i < pass.count; i++)
            squares[j] += pass.groups[i].square[j];
        squares[j] /= set_info(set)->weight_sum;
    }
    end(&pass);
    return code;
}

int moments_squares(struct set *set, unsigned threads, const struct moments *known,
                    double *squares) {
    uint32_t columns = set_info(set)->features;
    memset(squares, 0, columns * sizeof *squares);
    if (!known->mean)
        return read_squares(set, threads, squares);
    for (uint32_t j = 0; j < columns; j++)
        squares[j] = known->variance[j] + known->mean[j] * known->mean[j];
    return 0;
}

double moments_size(const struct moments *moments, uint32_t j) {
    double square = moments->variance[j] + moments->mean[j] * moments->mean[j];
    double nonzero = (double)moments->nonzero[j];
    return nonzero > 0 && isfinite(square) ? sqrt(square * (double)moments->rows / nonzero) : 0;
}

/* Fewer columns are those of a table; sizes that are nearly the same differ by less. */
#define COLUMNS_OF_ONE_UNIT 64
#define NEARLY 3.0

bool moments_share_unit(const struct moments *moments, uint32_t columns) {
    double *size = memory_new(columns, sizeof *size);
    uint32_t count = 0, near = 0;
    for (uint32_t j = 0; j < columns; j++) {
        size[count] = moments_size(moments, j);
        count += size[count] > 0;
    }
    qsort(size, count, sizeof *size, compare_doubles);
    double median = count ? size[count / 2] : 0;
    for (uint32_t i = 0; i < count; i++)
        near += size[i] * NEARLY >= median;
    bool shared =
        count >= COLUMNS_OF_ONE_UNIT && 4 * near >= 3 * count && size[count - 1] <= NEARLY * median;
    free(size);
    return shared;
}

void moments_release(struct moments *moments) {
    free(moments->mean);
    free(moments->variance);
    free(moments->nonzero);
    *moments = (struct moments){0};
}
