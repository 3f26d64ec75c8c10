/* What the training rows teach about a table's numbers: means, weighted by the rows' weights, and
 * places where bins part.
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
#include "data/bins.h"
#include "data/merge.h"
#include "data/number.h"

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

struct column_sum {
    struct units numbers, weights; /* the second only where rows have weights */
    uint64_t values;
    double *value; /* all of them, for bins */
    uint64_t filled;
};

static inline void see_term(struct units *units, double term) {
    double size = fabs(term);
    units->most = size > units->most ? size : units->most;
}

/* The unit is 0 if a term is beyond the range of doubles: then there is no sum. */
static void choose_unit(struct units *units) {
    int exponent;
    frexp(units->most, &exponent);
    units->unit =
        isfinite(units->most) ? ldexp(1, exponent < -900 ? 900 : UNIT_BITS - exponent) : 0;
}

static inline void add_term(struct units *units, double term) {
    units->sum += (int64_t)(term * units->unit);
}

/* What a pass over the rows does with each number. */
enum pass_step { STEP_SEE, STEP_ADD, STEP_SEE_WEIGHTED, STEP_ADD_WEIGHTED, STEP_KEEP };

/* The step is a constant for the compiler. `weight` is that of the number's row. */
__attribute__((always_inline)) static inline void
take_number(struct column_sum *sum, enum pass_step step, double value, double weight) {
    if (step == STEP_KEEP)
        sum->value[sum->filled++] = value;
    else if (step == STEP_SEE || step == STEP_SEE_WEIGHTED)
        sum->values++;
    if (step == STEP_SEE) {
        see_term(&sum->numbers, value);
    } else if (step == STEP_ADD) {
        add_term(&sum->numbers, value);
    } else if (step == STEP_SEE_WEIGHTED) {
        see_term(&sum->numbers, value * weight);
        see_term(&sum->weights, weight);
    } else if (step == STEP_ADD_WEIGHTED && sum->numbers.unit != 0) {
        add_term(&sum->numbers, value * weight);
        add_term(&sum->weights, weight);
    }
}

/* ---- a pass over the numbers of some columns, in the rows that are trained on ---- */

/* Columns [first, first + count) of the table. */
struct number_pass {
    const struct split *split;
    uint32_t first, count;
    uint32_t *place;        /* of each feature of the pack; free() it at the end */
    uint32_t first_feature; /* of the pack: the feature of place 0, */
    bool consecutive;       /* if those of the other places follow it in order */
};

static inline void number_pass_find_places(struct number_pass *numbers, const struct pack *pack) {
    numbers->place = memory_resize(numbers->place, pack->facts->features, sizeof(uint32_t));
    for (uint32_t i = 0; i < pack->facts->features; i++) {
        uint32_t place = pack->column[i] - numbers->first;
        bool here = pack->id[i] < FEATURE_HASHED && place < numbers->count;
        numbers->place[i] = here ? place : DICTIONARY_NONE;
    }
    numbers->first_feature = 0;
    while (numbers->first_feature < pack->facts->features && numbers->place[numbers->first_feature])
        numbers->first_feature++;
    numbers->consecutive =
        numbers->first_feature + (uint64_t)numbers->count <= pack->facts->features;
    for (uint32_t i = 0; numbers->consecutive && i < numbers->count; i++)
        numbers->consecutive = numbers->place[numbers->first_feature + i] == i;
}

/* Type and step are constants for the compiler. */
__attribute__((always_inline)) static inline void
number_pass_row(const struct number_pass *numbers, struct pack_rows rows, uint32_t row,
                enum value_type type, enum pass_step step, struct column_sum *sums) {
    uint64_t first, end = pack_row(&rows, row, &first);
    double weight = rows.weight ? rows.weight[row] : 1;
    rows.type = type;
    if (!rows.feature && numbers->consecutive) {
        for (uint32_t i = 0; i < numbers->count; i++)
            take_number(&sums[i], step, pack_value(&rows, first + numbers->first_feature + i),
                        weight);
        return;
    }
    for (uint64_t i = first; i < end; i++) {
        uint32_t place = numbers->place[pack_feature(&rows, first, i)];
        if (place != DICTIONARY_NONE)
            take_number(&sums[place], step, pack_value(&rows, i), weight);
    }
}

__attribute__((always_inline)) static inline void
number_pass_each(struct number_pass *numbers, enum pass_step step, struct column_sum *sums) {
    const struct split *split = numbers->split;
    for (uint32_t p = 0; p < split->trained; p++) {
        const struct pack *pack = split->packs[p];
        if (!pack->table)
            continue;
        number_pass_find_places(numbers, pack);
        for (uint32_t b = 0; b < pack->facts->blocks; b++) {
            struct pack_rows rows = pack_rows(pack, b);
            for (uint32_t row = 0; row < rows.rows; row++)
                if (split_side(split, p, b, row) != ROW_TRAINED)
                    continue;
                else if (rows.type == VALUE_FLOAT)
                    number_pass_row(numbers, rows, row, VALUE_FLOAT, step, sums);
                else
                    number_pass_row(numbers, rows, row, rows.type, step, sums);
        }
    }
}

/* The sums of some columns of a table. */
struct column_sums {
    struct number_pass numbers;
    struct table *table;
    uint32_t bins;
    struct column_sum sum[COLUMNS_MOST];
};

static void find_edges(struct column_sum *sum, uint32_t bins, struct table_column *column) {
    qsort(sum->value, sum->values, sizeof *sum->value, compare_doubles);
    column->edge = memory_new(bins, sizeof *column->edge);
    column->in_bin = memory_new(bins, sizeof *column->in_bin);
    column->edges = bins_part(sum->value, sum->values, bins, column->edge, column->in_bin);
}

/* The sums of the columns' numbers, and with `weighted` of these times their rows' weights. */
static void sum_rows(struct column_sums *sums, bool weighted) {
    memset(sums->sum, 0, sizeof sums->sum);
    if (weighted)
        number_pass_each(&sums->numbers, STEP_SEE_WEIGHTED, sums->sum);
    else
        number_pass_each(&sums->numbers, STEP_SEE, sums->sum);
    for (uint32_t i = 0; i < sums->numbers.count; i++) {
        choose_unit(&sums->sum[i].numbers);
        choose_unit(&sums->sum[i].weights);
    }
    if (weighted)
        number_pass_each(&sums->numbers, STEP_ADD_WEIGHTED, sums->sum);
    else
        number_pass_each(&sums->numbers, STEP_ADD, sums->sum);
}

/* Means are rounded to the 24 digits of a float: data that is otherwise stored as floats stays so.
 * Columns without a number in any row whose weight is not 0 keep the plain mean. */
static void find_means(struct column_sums *sums, bool weighted) {
    sum_rows(sums, weighted);
    for (uint32_t i = 0; i < sums->numbers.count; i++) {
        const struct column_sum *sum = &sums->sum[i];
        if (weighted ? sum->weights.sum == 0 : sum->values == 0)
            continue;
        double rows = weighted ? (double)sum->weights.sum / sum->weights.unit : (double)sum->values;
        double mean = (double)sum->numbers.sum / rows / sum->numbers.unit;
        int exponent;
        double digits = frexp(mean, &exponent);
        sums->table->column[sums->numbers.first + i].mean =
            ldexp(nearbyint(ldexp(digits, 24)), exponent - 24) + 0.0;
    }
}

/* Threads take some columns each. */
struct column_queue {
    const struct split *split;
    struct table *table;
    uint32_t step, bins;
    pthread_mutex_t mutex; /* guards next */
    uint32_t next;
};

static void *sum_columns(void *argument) {
    struct column_queue *queue = argument;
    struct column_sums *sums = memory_new(1, sizeof *sums);
    struct number_pass *numbers = &sums->numbers;
    numbers->split = queue->split;
    sums->table = queue->table;
    sums->bins = queue->bins;
    for (;;) {
        pthread_mutex_lock(&queue->mutex);
        uint32_t left = queue->table->columns - queue->next;
        numbers->first = queue->next;
        numbers->count = left < queue->step ? left : queue->step;
        queue->next += numbers->count;
        pthread_mutex_unlock(&queue->mutex);
        if (!numbers->count)
            break;
        find_means(sums, false);
        if (queue->split->trained_weighted)
            find_means(sums, true);
        if (sums->bins) {
            for (uint32_t i = 0; i < sums->numbers.count; i++)
                sums->sum[i].value = memory_new(sums->sum[i].values, sizeof(double));
            number_pass_each(&sums->numbers, STEP_KEEP, sums->sum);
            for (uint32_t i = 0; i < sums->numbers.count; i++) {
                if (sums->sum[i].values)
                    find_edges(&sums->sum[i], sums->bins,
                               &sums->table->column[sums->numbers.first + i]);
                free(sums->sum[i].value);
            }
        }
    }
    free(numbers->place);
    free(sums);
    return NULL;
}

void column_stats_find(struct table *table, const struct split *split, uint32_t bins,
                       unsigned threads) {
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    uint32_t each = table->columns / threads + (table->columns % threads != 0);
    struct column_queue queue = {.split = split,
                                 .table = table,
                                 .bins = bins,
                                 .step = each > COLUMNS_MOST ? COLUMNS_MOST : each,
                                 .mutex = PTHREAD_MUTEX_INITIALIZER};
    threads_run(threads, sum_columns, &queue);
}
