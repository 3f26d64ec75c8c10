/* What the training rows teach about a table's numbers: means, weighted by the rows' weights, and
 * quantiles that part bins.
 *
 * The sum of a column is one of whole numbers, so it is the same in every order: its numbers, each
 * times its row's weight, are counted in units of 2^(e − UNIT_BITS), where 2^e is above all of
 * them; what is left below a unit is cut off. So there are two passes over the rows. Weights are
 * summed alike. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/merge.h"

/* ---- a pass over the numbers of some columns, in the rows that are trained on ---- */

/* Columns [first, first + count) of the table. */
struct numbers {
    const struct split *split;
    uint32_t first, count;
    uint32_t *place; /* scratch; free() it at the end */
    uint32_t run;    /* of the pack: its first feature that has a place, if they follow in order */
    bool runs;
};

/* What is done with a number; `place` is that of its column among those of the pass, `weight` that
 * of its row. */
typedef void numbers_take(void *context, uint32_t place, double value, double weight);

static inline void numbers_find_places(struct numbers *numbers, const struct pack *pack) {
    numbers->place = memory_resize(numbers->place, pack->facts->features, sizeof(uint32_t));
    for (uint32_t i = 0; i < pack->facts->features; i++) {
        uint32_t place = pack->column[i] - numbers->first;
        bool here = pack->id[i] < FEATURE_HASHED && place < numbers->count;
        numbers->place[i] = here ? place : DICTIONARY_NONE;
    }
    numbers->run = 0;
    while (numbers->run < pack->facts->features && numbers->place[numbers->run])
        numbers->run++;
    numbers->runs = numbers->run + (uint64_t)numbers->count <= pack->facts->features;
    for (uint32_t i = 0; numbers->runs && i < numbers->count; i++)
        numbers->runs = numbers->place[numbers->run + i] == i;
}

/* The type and `take` are constants for the compiler. */
__attribute__((always_inline)) static inline void
numbers_of_row(const struct numbers *numbers, struct pack_rows rows, uint32_t row,
               enum value_type type, numbers_take *take, void *context) {
    uint64_t first, end = pack_row(&rows, row, &first);
    double weight = rows.weight ? rows.weight[row] : 1;
    rows.type = type;
    if (!rows.feature && numbers->runs) {
        for (uint32_t i = 0; i < numbers->count; i++)
            take(context, i, pack_value(&rows, first + numbers->run + i), weight);
        return;
    }
    for (uint64_t i = first; i < end; i++) {
        uint32_t place = numbers->place[pack_feature(&rows, first, i)];
        if (place != DICTIONARY_NONE)
            take(context, place, pack_value(&rows, i), weight);
    }
}

__attribute__((always_inline)) static inline void numbers_each(struct numbers *numbers,
                                                               numbers_take *take, void *context) {
    const struct split *split = numbers->split;
    for (uint32_t p = 0; p < split->trained; p++) {
        const struct pack *pack = split->packs[p];
        if (!pack->table)
            continue;
        numbers_find_places(numbers, pack);
        for (uint32_t b = 0; b < pack->facts->blocks; b++) {
            struct pack_rows rows = pack_rows(pack, b);
            for (uint32_t row = 0; row < rows.rows; row++)
                if (split_side(split, p, b, row) != ROW_TRAINED)
                    continue;
                else if (rows.type == VALUE_FLOAT)
                    numbers_of_row(numbers, rows, row, VALUE_FLOAT, take, context);
                else
                    numbers_of_row(numbers, rows, row, rows.type, take, context);
        }
    }
}

/* ---- sums ---- */

#define UNIT_BITS 62

/* So many columns are taken at a time: their sums stay in the cache. */
#define COLUMNS_MOST 64

__extension__ typedef __int128 wide;

/* A sum in such units. */
struct units {
    double most; /* the largest size of a term */
    double unit; /* how many units are 1 */
    wide sum;
};

struct sum {
    struct units numbers, weights; /* the second only where rows have weights */
    uint64_t values;
    double *value; /* all of them, for bins */
    uint64_t filled;
};

static inline void see_term(struct units *units, double term) {
    double size = fabs(term);
    units->most = size > units->most ? size : units->most;
}

/* 0: a term is beyond the range of doubles, so there is no sum. */
static void choose_unit(struct units *units) {
    int exponent;
    frexp(units->most, &exponent);
    units->unit =
        isfinite(units->most) ? ldexp(1, exponent < -900 ? 900 : UNIT_BITS - exponent) : 0;
}

static inline void add_term(struct units *units, double term) {
    units->sum += (int64_t)(term * units->unit);
}

static void see(void *context, uint32_t place, double value, double weight) {
    struct sum *sum = (struct sum *)context + place;
    (void)weight;
    see_term(&sum->numbers, value);
    sum->values++;
}

static void add(void *context, uint32_t place, double value, double weight) {
    struct sum *sum = (struct sum *)context + place;
    (void)weight;
    add_term(&sum->numbers, value);
}

static void see_weighted(void *context, uint32_t place, double value, double weight) {
    struct sum *sum = (struct sum *)context + place;
    see_term(&sum->numbers, value * weight);
    see_term(&sum->weights, weight);
    sum->values++;
}

static void add_weighted(void *context, uint32_t place, double value, double weight) {
    struct sum *sum = (struct sum *)context + place;
    if (sum->numbers.unit == 0)
        return;
    add_term(&sum->numbers, value * weight);
    add_term(&sum->weights, weight);
}

static void keep(void *context, uint32_t place, double value, double weight) {
    struct sum *sum = (struct sum *)context + place;
    (void)weight;
    sum->value[sum->filled++] = value;
}

/* The sums of some columns of a table. */
struct summing {
    struct numbers numbers;
    struct table *table;
    uint32_t bins;
    struct sum sum[COLUMNS_MOST];
};

/* To the 24 digits of a float: data that is otherwise stored as floats stays so. */
static double rounded(double mean) {
    int exponent;
    double digits = frexp(mean, &exponent);
    return ldexp(nearbyint(ldexp(digits, 24)), exponent - 24) + 0.0;
}

static int compare_values(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Parts the values at their quantiles. Each edge is a value, and the first of its bin; so no bin is
 * empty. */
static void find_edges(struct sum *sum, uint32_t bins, struct table_column *column) {
    qsort(sum->value, sum->values, sizeof *sum->value, compare_values);
    column->edge = memory_new(bins, sizeof *column->edge);
    column->in_bin = memory_new(bins, sizeof *column->in_bin);
    double before = sum->value[0];
    uint64_t first = 0;
    for (uint32_t i = 1; i < bins; i++) {
        uint64_t at = sum->values * i / bins;
        double edge = sum->value[at];
        if (edge == before)
            continue;
        while (sum->value[at - 1] == edge)
            at--;
        column->in_bin[column->edges] = at - first;
        column->edge[column->edges++] = before = edge;
        first = at;
    }
    column->in_bin[column->edges] = sum->values - first;
}

static void bin_columns(struct summing *summing) {
    for (uint32_t i = 0; i < summing->numbers.count; i++)
        summing->sum[i].value = memory_new(summing->sum[i].values, sizeof(double));
    numbers_each(&summing->numbers, keep, summing->sum);
    for (uint32_t i = 0; i < summing->numbers.count; i++) {
        if (summing->sum[i].values)
            find_edges(&summing->sum[i], summing->bins,
                       &summing->table->column[summing->numbers.first + i]);
        free(summing->sum[i].value);
    }
}

static void choose_units(struct summing *summing) {
    for (uint32_t i = 0; i < summing->numbers.count; i++) {
        choose_unit(&summing->sum[i].numbers);
        choose_unit(&summing->sum[i].weights);
    }
}

static void sum_rows(struct summing *summing) {
    memset(summing->sum, 0, sizeof summing->sum);
    numbers_each(&summing->numbers, see, summing->sum);
    choose_units(summing);
    numbers_each(&summing->numbers, add, summing->sum);
}

static void sum_weighted_rows(struct summing *summing) {
    memset(summing->sum, 0, sizeof summing->sum);
    numbers_each(&summing->numbers, see_weighted, summing->sum);
    choose_units(summing);
    numbers_each(&summing->numbers, add_weighted, summing->sum);
}

static double mean_of(const struct units *numbers, double of) {
    return rounded((double)numbers->sum / of / numbers->unit);
}

/* Columns without a number in any row whose weight is not 0 keep the plain mean. */
static void find_weighted_means(struct summing *summing) {
    sum_weighted_rows(summing);
    for (uint32_t i = 0; i < summing->numbers.count; i++) {
        const struct sum *sum = &summing->sum[i];
        if (sum->weights.sum)
            summing->table->column[summing->numbers.first + i].mean =
                mean_of(&sum->numbers, (double)sum->weights.sum / sum->weights.unit);
    }
}

static void find_means(struct summing *summing) {
    sum_rows(summing);
    for (uint32_t i = 0; i < summing->numbers.count; i++) {
        const struct sum *sum = &summing->sum[i];
        if (sum->values)
            summing->table->column[summing->numbers.first + i].mean =
                mean_of(&sum->numbers, (double)sum->values);
    }
}

static void sum_columns(struct summing *summing) {
    find_means(summing);
    if (summing->numbers.split->trained_weighted)
        find_weighted_means(summing);
    if (summing->bins)
        bin_columns(summing);
}

/* Threads take some columns each. */
struct work {
    const struct split *split;
    struct table *table;
    uint32_t step, bins;
    pthread_mutex_t mutex; /* guards next */
    uint32_t next;
};

static uint32_t take_columns(struct work *work, uint32_t *first) {
    pthread_mutex_lock(&work->mutex);
    *first = work->next;
    uint32_t left = work->table->columns - *first, count = left < work->step ? left : work->step;
    work->next += count;
    pthread_mutex_unlock(&work->mutex);
    return count;
}

static void *sum_in_thread(void *argument) {
    struct work *work = argument;
    struct summing *summing = memory_new(1, sizeof *summing);
    summing->numbers.split = work->split;
    summing->table = work->table;
    summing->bins = work->bins;
    while ((summing->numbers.count = take_columns(work, &summing->numbers.first)))
        sum_columns(summing);
    free(summing->numbers.place);
    free(summing);
    return NULL;
}

void numbers_learn(struct table *table, const struct split *split, uint32_t bins,
                   unsigned threads) {
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    uint32_t each = table->columns / threads + (table->columns % threads != 0);
    struct work work = {.split = split,
                        .table = table,
                        .bins = bins,
                        .step = each > COLUMNS_MOST ? COLUMNS_MOST : each,
                        .mutex = PTHREAD_MUTEX_INITIALIZER};
    threads_run(threads, sum_in_thread, &work);
}
