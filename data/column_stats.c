/* What the training rows teach about a table's numbers: means, weighted by the rows' weights, and
 * places where bins part.
 *
 * The sum of a column is one of whole numbers, so it is the same in every order: its numbers, each
 * times its row's weight, are counted in units of 2^(e − UNIT_BITS), where 2^e is above all of
 * them; what is left below a unit is cut off. So there are two passes over the rows, in which
 * threads take blocks. Weights are summed alike. */
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
#include "numeric/clones.h"

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
    uint32_t used;          /* features that have a place */
    uint32_t first_feature; /* of these; the others follow it in order, as their places do, */
    bool consecutive;       /* if this is set */
};

static inline void find_run(struct number_pass *numbers, uint32_t features) {
    uint32_t first = 0;
    while (first < features && numbers->place[first] == DICTIONARY_NONE)
        first++;
    numbers->first_feature = first;
    numbers->consecutive = first + (uint64_t)numbers->used <= features;
    for (uint32_t i = 1; numbers->consecutive && i < numbers->used; i++)
        numbers->consecutive = numbers->place[first + i] == numbers->place[first] + i;
}

static inline void number_pass_find_places(struct number_pass *numbers, const struct pack *pack) {
    numbers->place = memory_resize(numbers->place, pack->facts->features, sizeof(uint32_t));
    numbers->used = 0;
    for (uint32_t i = 0; i < pack->facts->features; i++) {
        uint32_t place = pack->column[i] - numbers->first;
        bool here = pack->id[i] < FEATURE_HASHED && place < numbers->count;
        numbers->place[i] = here ? place : DICTIONARY_NONE;
        numbers->used += here;
    }
    find_run(numbers, pack->facts->features);
}

/* Whether each row has all of them, one behind the other. The rows of a dense block have the first
 * features of the pack, which later blocks may add to. */
static inline bool rows_have_run(const struct number_pass *numbers, const struct pack_rows *rows) {
    return !rows->feature && numbers->consecutive &&
           (numbers->first_feature + (uint64_t)numbers->used) * rows->rows <= rows->values;
}

/* ---- the same for rows that all have these numbers, one behind the other ---- */

/* Numbers `first` to `first` + `count` of each row. */
struct number_rows {
    const struct pack_rows *rows;
    const uint8_t *side; /* enum row_side of each row; NULL: all are trained on */
    uint32_t first, count;
};

#define GROUPS_MOST (COLUMNS_MOST / HALF)
#define SIGN (UINT64_C(1) << 63)

/* Takes the type of the values for a constant. What is loaded beside the numbers of the columns is
 * other numbers of the rows, which nobody asks for. */
LANES_INLINE void load_numbers(half_lanes *to, const struct pack_rows *rows, enum value_type type,
                               uint64_t at) {
    if (at + HALF > rows->values || type == VALUE_BYTE) {
        for (uint32_t i = 0; i < HALF; i++)
            (*to)[i] = at + i < rows->values ? value_at(type, rows->value, at + i) : 0;
    } else if (type == VALUE_FLOAT) {
        half_load_floats(to, (const float *)rows->value + at);
    } else {
        memcpy(to, (const double *)rows->value + at, sizeof *to);
    }
}

LANES_INLINE void split_sign(half_lanes *value, half_words *sign) {
    half_words bits;
    memcpy(&bits, value, sizeof bits);
    *sign = bits & SIGN;
    bits ^= *sign;
    memcpy(value, &bits, sizeof bits);
}

LANES_INLINE void flip_sign(half_lanes *value, const half_words *sign) {
    half_words bits;
    memcpy(&bits, value, sizeof bits);
    bits ^= *sign;
    memcpy(value, &bits, sizeof bits);
}

/* The largest sizes of some columns. */
struct lane_sizes {
    half_lanes most[GROUPS_MOST];
};

LANES_INLINE void see_lanes(half_lanes *most, half_lanes *value) {
    half_abs(value);
    half_words above = (half_words)(*value > *most);
    half_choose(most, &above, value, most);
}

/* Sums of whole numbers below 2^62 in two parts that doubles hold exactly, of as many rows as
 * ROWS_MOST: multiples of 2^HIGH_BITS, and what is over. */
#define HIGH_BITS 31
#define ROWS_MOST (1u << 20)
#define ROUND_TO_1 0x1.8p52 /* no bit is left for less behind the sum with it */
#define ROUND_TO_HIGH 0x1.8p83
struct lane_sums {
    half_lanes unit[GROUPS_MOST], high[GROUPS_MOST], low[GROUPS_MOST];
};

/* Adds what (int64_t)number would be. */
LANES_INLINE void add_lanes(half_lanes *high_sum, half_lanes *low_sum, half_lanes *number) {
    half_words sign, below;
    half_lanes one = {1, 1, 1, 1};
    split_sign(number, &sign);
    half_lanes high = *number + ROUND_TO_HIGH - ROUND_TO_HIGH, over = *number - high;
    half_lanes low = over + ROUND_TO_1 - ROUND_TO_1;
    half_words bits;
    memcpy(&bits, &one, sizeof bits);
    below = (half_words)(low > over) & bits; /* it is cut off, not rounded */
    memcpy(&one, &below, sizeof one);
    low -= one;
    flip_sign(&high, &sign);
    flip_sign(&low, &sign);
    *high_sum += high;
    *low_sum += low;
}

LANES_INLINE bool skips(const struct number_rows *of, uint32_t row) {
    return of->side && of->side[row] != ROW_TRAINED;
}

LANES_INLINE void see_all(const struct number_rows *of, enum value_type type,
                          struct lane_sizes *sizes) {
    uint64_t width = of->rows->values / of->rows->rows, at = of->first;
    for (uint32_t row = 0; row < of->rows->rows; row++, at += width)
        for (uint32_t i = skips(of, row) ? of->count : 0; i < of->count; i += HALF) {
            half_lanes value;
            load_numbers(&value, of->rows, type, at + i);
            see_lanes(&sizes->most[i / HALF], &value);
        }
}

LANES_INLINE void add_all(const struct number_rows *of, enum value_type type, uint32_t first,
                          uint32_t end, struct lane_sums *sums) {
    uint64_t width = of->rows->values / of->rows->rows, at = of->first + first * width;
    for (uint32_t row = first; row < end; row++, at += width)
        for (uint32_t i = skips(of, row) ? of->count : 0; i < of->count; i += HALF) {
            half_lanes value;
            load_numbers(&value, of->rows, type, at + i);
            value *= sums->unit[i / HALF];
            add_lanes(&sums->high[i / HALF], &sums->low[i / HALF], &value);
        }
}

VECTOR_CLONES
static void see_rows(const struct number_rows *of, struct lane_sizes *sizes) {
    if (of->rows->type == VALUE_FLOAT)
        see_all(of, VALUE_FLOAT, sizes);
    else
        see_all(of, of->rows->type, sizes);
}

VECTOR_CLONES
static void add_rows(const struct number_rows *of, uint32_t first, uint32_t end,
                     struct lane_sums *sums) {
    if (of->rows->type == VALUE_FLOAT)
        add_all(of, VALUE_FLOAT, first, end, sums);
    else
        add_all(of, of->rows->type, first, end, sums);
}

static void see_number_rows(const struct number_rows *of, struct column_sum *sums) {
    struct lane_sizes sizes = {0};
    uint32_t rows = 0;
    see_rows(of, &sizes);
    for (uint32_t row = 0; row < of->rows->rows; row++)
        rows += !skips(of, row);
    for (uint32_t i = 0; i < of->count; i++) {
        sums[i].values += rows;
        see_term(&sums[i].numbers, sizes.most[i / HALF][i % HALF]);
    }
}

static void add_number_rows(const struct number_rows *of, struct column_sum *sums) {
    uint32_t rows = of->rows->rows;
    for (uint32_t first = 0; first < rows; first += ROWS_MOST) {
        struct lane_sums parts = {0};
        for (uint32_t i = 0; i < of->count; i++)
            parts.unit[i / HALF][i % HALF] = sums[i].numbers.unit;
        add_rows(of, first, rows - first < ROWS_MOST ? rows : first + ROWS_MOST, &parts);
        for (uint32_t i = 0; i < of->count; i++) {
            wide high = (int64_t)ldexp(parts.high[i / HALF][i % HALF], -HIGH_BITS);
            sums[i].numbers.sum += high * ((wide)1 << HIGH_BITS);
            sums[i].numbers.sum += (int64_t)parts.low[i / HALF][i % HALF];
        }
    }
}

/* ---- the same for sparse rows ---- */

/* What a block has of some columns; the last is of the values that are of none of them. */
struct sparse_sums {
    double most[COLUMNS_MOST + 1], unit[COLUMNS_MOST + 1];
    uint64_t values[COLUMNS_MOST + 1];
    wide sum[COLUMNS_MOST + 1];
};

/* Type and step are constants for the compiler. */
LANES_INLINE void take_values(const struct number_pass *numbers, const struct pack_rows *rows,
                              enum value_type type, enum pass_step step, uint64_t first,
                              uint64_t end, struct sparse_sums *sums) {
    const uint32_t *feature = rows->feature, *places = numbers->place;
    const void *values = rows->value;
    for (uint64_t i = first; i < end; i++) {
        uint32_t place = places[feature[i]] < COLUMNS_MOST ? places[feature[i]] : COLUMNS_MOST;
        double value = value_at(type, values, i), size = fabs(value);
        if (step == STEP_ADD) {
            sums->sum[place] += (int64_t)(value * sums->unit[place]);
            continue;
        }
        sums->values[place]++;
        sums->most[place] = size > sums->most[place] ? size : sums->most[place];
    }
}

/* Rows that are trained on, as many as follow each other at a time. */
LANES_INLINE void take_sparse_rows(const struct number_pass *numbers, const struct pack_rows *rows,
                                   const uint8_t *side, enum value_type type, enum pass_step step,
                                   struct sparse_sums *sums) {
    for (uint32_t row = 0, end; row < rows->rows; row = end + 1) {
        end = side ? row : rows->rows;
        while (end < rows->rows && side[end] == ROW_TRAINED)
            end++;
        take_values(numbers, rows, type, step, rows->start[row], rows->start[end], sums);
    }
}

LANES_INLINE void take_sparse_block(const struct number_pass *numbers, const struct pack_rows *rows,
                                    const uint8_t *side, enum pass_step step,
                                    struct column_sum *sums) {
    struct sparse_sums block = {0};
    for (uint32_t i = 0; i < numbers->count; i++)
        block.unit[i] = sums[i].numbers.unit;
    if (rows->type == VALUE_FLOAT)
        take_sparse_rows(numbers, rows, side, VALUE_FLOAT, step, &block);
    else if (rows->type == VALUE_DOUBLE)
        take_sparse_rows(numbers, rows, side, VALUE_DOUBLE, step, &block);
    else
        take_sparse_rows(numbers, rows, side, rows->type, step, &block);
    for (uint32_t i = 0; i < numbers->count; i++) {
        sums[i].values += block.values[i];
        see_term(&sums[i].numbers, block.most[i]);
        sums[i].numbers.sum += block.sum[i];
    }
}

/* ---- rows of any kind ---- */

/* Type and step are constants for the compiler. */
__attribute__((always_inline)) static inline void
number_pass_row(const struct number_pass *numbers, struct pack_rows rows, uint32_t row,
                enum value_type type, enum pass_step step, struct column_sum *sums) {
    uint64_t first, end = pack_row(&rows, row, &first);
    double weight = rows.weight ? rows.weight[row] : 1;
    rows.type = type;
    if (rows_have_run(numbers, &rows)) {
        sums += numbers->place[numbers->first_feature];
        for (uint32_t i = 0; i < numbers->used; i++)
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
number_pass_block(const struct number_pass *numbers, uint32_t p, uint32_t b, enum pass_step step,
                  struct column_sum *sums) {
    const struct split *split = numbers->split;
    struct pack_rows rows = pack_rows(split->packs[p], b);
    const uint8_t *side = split->side[p];
    bool plain = step == STEP_SEE || step == STEP_ADD;
    side = side ? side + split->packs[p]->block[b].first_row : NULL;
    if (plain && rows.feature) {
        take_sparse_block(numbers, &rows, side, step, sums);
        return;
    }
    if (plain && rows_have_run(numbers, &rows) && rows.value) {
        struct number_rows of = {
            .rows = &rows, .side = side, .first = numbers->first_feature, .count = numbers->used};
        sums += numbers->place[numbers->first_feature];
        if (step == STEP_SEE)
            see_number_rows(&of, sums);
        else
            add_number_rows(&of, sums);
        return;
    }
    for (uint32_t row = 0; row < rows.rows; row++)
        if (split_side(split, p, b, row) != ROW_TRAINED)
            continue;
        else if (rows.type == VALUE_FLOAT)
            number_pass_row(numbers, rows, row, VALUE_FLOAT, step, sums);
        else
            number_pass_row(numbers, rows, row, rows.type, step, sums);
}

/* ---- passes by threads ---- */

/* Blocks of the training packs that are tables, in order. */
struct block_queue {
    const struct split *split;
    pthread_mutex_t mutex; /* guards what follows */
    uint32_t pack, block;  /* the next one */
};

/* Takes a block, unless there are no more. */
static bool take_block(struct block_queue *queue, uint32_t *p, uint32_t *b) {
    const struct split *split = queue->split;
    pthread_mutex_lock(&queue->mutex);
    while (queue->pack < split->trained &&
           (!split->packs[queue->pack]->table ||
            queue->block == split->packs[queue->pack]->facts->blocks)) {
        queue->pack++;
        queue->block = 0;
    }
    bool there = queue->pack < split->trained;
    *p = queue->pack;
    *b = there ? queue->block++ : 0;
    pthread_mutex_unlock(&queue->mutex);
    return there;
}

/* Goes over the blocks that this thread gets. */
__attribute__((always_inline)) static inline void number_pass_each(struct number_pass *numbers,
                                                                   struct block_queue *queue,
                                                                   enum pass_step step,
                                                                   struct column_sum *sums) {
    uint32_t p, b, placed = UINT32_MAX;
    while (take_block(queue, &p, &b)) {
        if (p != placed)
            number_pass_find_places(numbers, numbers->split->packs[p]);
        placed = p;
        if (numbers->used)
            number_pass_block(numbers, p, b, step, sums);
    }
}

/* The sums of some columns of a table. */
struct column_sums {
    const struct split *split;
    struct table *table;
    uint32_t first, count, bins;
    unsigned threads;
    enum pass_step step;
    struct block_queue blocks; /* of the pass */
    pthread_mutex_t mutex;     /* guards what follows while threads are at work */
    uint32_t next;             /* column whose numbers are kept */
    struct column_sum sum[COLUMNS_MOST];
};

/* Adds what a thread has seen or added. */
static void fold_sums(struct column_sums *total, const struct column_sum *sums) {
    pthread_mutex_lock(&total->mutex);
    for (uint32_t i = 0; i < total->count; i++) {
        struct column_sum *sum = &total->sum[i];
        sum->values += sums[i].values;
        see_term(&sum->numbers, sums[i].numbers.most);
        see_term(&sum->weights, sums[i].weights.most);
        sum->numbers.sum += sums[i].numbers.sum;
        sum->weights.sum += sums[i].weights.sum;
    }
    pthread_mutex_unlock(&total->mutex);
}

static void *sum_blocks(void *argument) {
    struct column_sums *total = argument;
    struct number_pass numbers = {
        .split = total->split, .first = total->first, .count = total->count};
    struct column_sum *sums = memory_new(COLUMNS_MOST, sizeof *sums);
    for (uint32_t i = 0; i < total->count; i++) {
        sums[i].numbers.unit = total->sum[i].numbers.unit;
        sums[i].weights.unit = total->sum[i].weights.unit;
    }
    if (total->step == STEP_SEE)
        number_pass_each(&numbers, &total->blocks, STEP_SEE, sums);
    else if (total->step == STEP_ADD)
        number_pass_each(&numbers, &total->blocks, STEP_ADD, sums);
    else if (total->step == STEP_SEE_WEIGHTED)
        number_pass_each(&numbers, &total->blocks, STEP_SEE_WEIGHTED, sums);
    else
        number_pass_each(&numbers, &total->blocks, STEP_ADD_WEIGHTED, sums);
    fold_sums(total, sums);
    free(numbers.place);
    free(sums);
    return NULL;
}

static struct block_queue all_blocks(const struct split *split) {
    return (struct block_queue){.split = split, .mutex = PTHREAD_MUTEX_INITIALIZER};
}

static void pass_over_rows(struct column_sums *sums, enum pass_step step) {
    sums->step = step;
    sums->blocks = all_blocks(sums->split);
    threads_run(sums->threads, sum_blocks, sums);
}

/* The sums of the columns' numbers, and with `weighted` of these times their rows' weights. */
static void sum_rows(struct column_sums *sums, bool weighted) {
    memset(sums->sum, 0, sizeof sums->sum);
    pass_over_rows(sums, weighted ? STEP_SEE_WEIGHTED : STEP_SEE);
    for (uint32_t i = 0; i < sums->count; i++) {
        choose_unit(&sums->sum[i].numbers);
        choose_unit(&sums->sum[i].weights);
    }
    pass_over_rows(sums, weighted ? STEP_ADD_WEIGHTED : STEP_ADD);
}

/* A mean has all digits of a double: rounded to fewer, the mean of a column far from 0, such as a
 * time in seconds, would lie far from the column's other values. A column without a number in any
 * row whose weight is not 0 keeps the plain mean. */
static void find_means(struct column_sums *sums, bool weighted) {
    sum_rows(sums, weighted);
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct column_sum *sum = &sums->sum[i];
        if (weighted ? sum->weights.sum == 0 : sum->values == 0)
            continue;
        double rows = weighted ? (double)sum->weights.sum / sum->weights.unit : (double)sum->values;
        double mean = (double)sum->numbers.sum / rows / sum->numbers.unit;
        sums->table->column[sums->first + i].mean = mean + 0.0;
    }
}

/* ---- places where bins part ---- */

static void find_edges(struct column_sum *sum, uint32_t bins, struct table_column *column) {
    qsort(sum->value, sum->values, sizeof *sum->value, compare_doubles);
    column->edge = memory_new(bins, sizeof *column->edge);
    column->in_bin = memory_new(bins, sizeof *column->in_bin);
    column->edges = bins_part(sum->value, sum->values, bins, column->edge, column->in_bin);
}

/* Of `count` columns from `at` on, whose numbers are counted. */
static void find_edges_of(struct column_sums *sums, uint32_t at, uint32_t count) {
    struct number_pass numbers = {.split = sums->split, .first = sums->first + at, .count = count};
    struct block_queue blocks = all_blocks(sums->split);
    struct column_sum *sum = sums->sum + at;
    for (uint32_t i = 0; i < count; i++)
        sum[i].value = memory_new(sum[i].values, sizeof(double));
    number_pass_each(&numbers, &blocks, STEP_KEEP, sum);
    for (uint32_t i = 0; i < count; i++) {
        if (sum[i].values)
            find_edges(&sum[i], sums->bins, &sums->table->column[numbers.first + i]);
        free(sum[i].value);
    }
    free(numbers.place);
}

/* A share of `count` for each of the threads. */
static uint32_t share_of(uint32_t count, unsigned threads) {
    return count / threads + (count % threads != 0);
}

/* Threads take some columns each. */
static void *find_some_edges(void *argument) {
    struct column_sums *sums = argument;
    for (;;) {
        pthread_mutex_lock(&sums->mutex);
        uint32_t at = sums->next, left = sums->count - at,
                 each = share_of(sums->count, sums->threads), count = left < each ? left : each;
        sums->next += count;
        pthread_mutex_unlock(&sums->mutex);
        if (!count)
            return NULL;
        find_edges_of(sums, at, count);
    }
}

void column_stats_find(struct table *table, const struct split *split, uint32_t bins,
                       unsigned threads) {
    struct column_sums *sums = memory_new(1, sizeof *sums);
    *sums = (struct column_sums){.split = split,
                                 .table = table,
                                 .bins = bins,
                                 .threads = threads < 1             ? 1
                                            : threads > THREADS_MAX ? THREADS_MAX
                                                                    : threads,
                                 .mutex = PTHREAD_MUTEX_INITIALIZER};
    for (; sums->first < table->columns; sums->first += sums->count) {
        uint32_t left = table->columns - sums->first;
        sums->count = left < COLUMNS_MOST ? left : COLUMNS_MOST;
        find_means(sums, false);
        if (split->trained_weighted)
            find_means(sums, true);
        sums->next = 0;
        if (bins)
            threads_run(sums->threads, find_some_edges, sums);
    }
    free(sums);
}
