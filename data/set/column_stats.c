/* What the training rows teach about a table's numbers: means, weighted by the rows' weights, and
 * places where bins part.
 *
 * The sum of a column is one of whole numbers, so it is the same in every order: its numbers, each
 * times its row's weight, are counted in units of 2^(e − UNIT_BITS), where 2^e is above all of
 * them; what is left below a unit is cut off. So there are two passes over the rows, in which
 * threads take blocks. Weights are summed alike. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/set/bins.h"
#include "data/set/column_builder.h"
#include "data/text/number.h"
#include "numeric/clones.h"

/* ---- sums ---- */

#define UNIT_BITS 62

/* So many columns of dense rows are taken at a time: their sums stay in the cache. */
#define COLUMNS_MOST 64

/* So many columns are summed in one pass over the rows. Of a sparse row every value is looked at in
 * every pass, so a table of very many columns must not need a pass for each few of them. */
#define PASS_COLUMNS_MOST (1u << 16)

/* So many numbers are kept at a time for finding where bins part, or those of one column. */
#define KEPT_MOST (1u << 22)

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
    assert(units->most >= 0);
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

/* Where the numbers of a pack are, found once for all passes. */
struct pack_numbers {
    uint32_t *column;  /* of each feature that is a number: its column; else DICTIONARY_NONE */
    uint32_t *feature; /* of each column of the table: its number's feature, or DICTIONARY_NONE */
};

static struct pack_numbers pack_numbers_find(const struct pack *pack, uint32_t columns) {
    assert(pack->table && pack->column);
    const uint32_t features = pack->facts->features;
    struct pack_numbers numbers = {memory_new(features, sizeof(uint32_t)),
                                   memory_new(columns, sizeof(uint32_t))};
    for (uint32_t i = 0; i < columns; i++)
        numbers.feature[i] = DICTIONARY_NONE;
    for (uint32_t i = 0; i < features; i++) {
        const bool here = pack->id[i] < FEATURE_HASHED && pack->column[i] < columns;
        numbers.column[i] = here ? pack->column[i] : DICTIONARY_NONE;
        if (here)
            numbers.feature[pack->column[i]] = i;
    }
    return numbers;
}

/* Columns [first, first + count) of the table. */
struct number_pass {
    const struct split *split;
    const struct pack_numbers *packs; /* one for each pack that is trained on */
    uint32_t first, count;
    const uint32_t *column; /* of the present pack: as in struct pack_numbers */
    const uint32_t *feature;
};

/* The place of a feature's number among the columns of the pass; `count` or more: it has none. */
static inline uint32_t place_of(const struct number_pass *numbers, uint32_t feature) {
    return numbers->column[feature] - numbers->first;
}

/* Columns of a pass whose numbers follow each other in each row, in the order of the table. */
struct run {
    uint32_t place, feature; /* of the first */
    uint32_t count;          /* columns that have numbers at all */
    bool consecutive;
};

static struct run find_run(const struct number_pass *numbers, uint32_t from, uint32_t count) {
    const uint32_t *feature = numbers->feature + numbers->first;
    struct run run = {.place = from, .consecutive = true};
    while (run.place < from + count && feature[run.place] == DICTIONARY_NONE)
        run.place++;
    for (uint32_t i = run.place; i < from + count; i++)
        run.count += feature[i] != DICTIONARY_NONE;
    assert(run.count <= count && from + count <= numbers->count);
    run.feature = run.count ? feature[run.place] : 0;
    for (uint32_t i = 1; i < run.count; i++)
        run.consecutive = run.consecutive && feature[run.place + i] == run.feature + i;
    return run;
}

/* Whether each row has all of them, one after the other. The rows of a dense block have the first
 * features of the pack, which later blocks may add to. */
static inline bool rows_have_run(const struct run *run, const struct pack_rows *rows) {
    return !rows->feature && run->consecutive &&
           (run->feature + (uint64_t)run->count) * rows->rows <= rows->values;
}

/* ---- the same for rows that all have these numbers, one after the other ---- */

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
#define ROUND_TO_1 0x1.8p52 /* no bit is left for less after the sum with it */
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
    assert(of->count <= COLUMNS_MOST);
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
    assert(of->count <= COLUMNS_MOST);
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

/* What a block has of a column; after those of the columns there is one of the values that are of
 * none of them. */
struct sparse_sum {
    double most, unit;
    uint64_t values;
    wide sum;
};

/* Type and step are constants for the compiler. */
LANES_INLINE void take_values(const struct number_pass *numbers, const struct pack_rows *rows,
                              enum value_type type, enum pass_step step, uint64_t first,
                              uint64_t end, struct sparse_sum *sums) {
    const uint32_t *feature = rows->feature, count = numbers->count;
    const void *values = rows->value;
    for (uint64_t i = first; i < end; i++) {
        uint32_t place = place_of(numbers, feature[i]);
        struct sparse_sum *sum = &sums[place < count ? place : count];
        double value = value_at(type, values, i), size = fabs(value);
        if (step == STEP_ADD) {
            sum->sum += (int64_t)(value * sum->unit);
            continue;
        }
        sum->values++;
        sum->most = size > sum->most ? size : sum->most;
    }
}

/* Rows that are trained on, as many as follow each other at a time. */
LANES_INLINE void take_sparse_rows(const struct number_pass *numbers, const struct pack_rows *rows,
                                   const uint8_t *side, enum value_type type, enum pass_step step,
                                   struct sparse_sum *sums) {
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
    struct sparse_sum few[COLUMNS_MOST + 1] = {0};
    const bool many = numbers->count > COLUMNS_MOST;
    struct sparse_sum *block = many ? memory_new(numbers->count + 1, sizeof *block) : few;
    for (uint32_t i = 0; i < numbers->count; i++)
        block[i].unit = sums[i].numbers.unit;
    if (rows->type == VALUE_FLOAT)
        take_sparse_rows(numbers, rows, side, VALUE_FLOAT, step, block);
    else if (rows->type == VALUE_DOUBLE)
        take_sparse_rows(numbers, rows, side, VALUE_DOUBLE, step, block);
    else
        take_sparse_rows(numbers, rows, side, rows->type, step, block);
    for (uint32_t i = 0; i < numbers->count; i++) {
        sums[i].values += block[i].values;
        see_term(&sums[i].numbers, block[i].most);
        sums[i].numbers.sum += block[i].sum;
    }
    if (many)
        free(block);
}

/* ---- rows of any kind ---- */

/* Type and step are constants for the compiler. */
__attribute__((always_inline)) static inline void
number_pass_row(const struct number_pass *numbers, struct pack_rows rows, uint32_t row,
                const struct run *run, enum value_type type, enum pass_step step,
                struct column_sum *sums) {
    uint64_t first, end = pack_row(&rows, row, &first);
    double weight = rows.weight ? rows.weight[row] : 1;
    rows.type = type;
    if (rows_have_run(run, &rows)) {
        for (uint32_t i = 0; i < run->count; i++)
            take_number(&sums[run->place + i], step, pack_value(&rows, first + run->feature + i),
                        weight);
        return;
    }
    for (uint64_t i = first; i < end; i++) {
        uint32_t place = place_of(numbers, pack_feature(&rows, first, i));
        if (place < numbers->count)
            take_number(&sums[place], step, pack_value(&rows, i), weight);
    }
}

/* Sums the columns of a dense block, some at a time, as far as their numbers follow each other;
 * false if those of some columns do not, and nothing was summed. */
static bool sum_dense_block(const struct number_pass *numbers, const struct pack_rows *rows,
                            const uint8_t *side, enum pass_step step, struct column_sum *sums) {
    bool follow = rows->value != NULL;
    for (uint32_t at = 0; at < numbers->count && follow; at += COLUMNS_MOST) {
        const uint32_t left = numbers->count - at;
        const struct run run = find_run(numbers, at, left < COLUMNS_MOST ? left : COLUMNS_MOST);
        follow = rows_have_run(&run, rows);
    }
    for (uint32_t at = 0; at < numbers->count && follow; at += COLUMNS_MOST) {
        const uint32_t left = numbers->count - at;
        const struct run run = find_run(numbers, at, left < COLUMNS_MOST ? left : COLUMNS_MOST);
        const struct number_rows of = {
            .rows = rows, .side = side, .first = run.feature, .count = run.count};
        if (run.count && step == STEP_SEE)
            see_number_rows(&of, sums + run.place);
        else if (run.count)
            add_number_rows(&of, sums + run.place);
    }
    return follow;
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
    if (plain && sum_dense_block(numbers, &rows, side, step, sums))
        return;
    const struct run run = find_run(numbers, 0, numbers->count);
    for (uint32_t row = 0; row < rows.rows; row++)
        if (split_side(split, p, b, row) != ROW_TRAINED)
            continue;
        else if (rows.type == VALUE_FLOAT)
            number_pass_row(numbers, rows, row, &run, VALUE_FLOAT, step, sums);
        else
            number_pass_row(numbers, rows, row, &run, rows.type, step, sums);
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
    assert(queue->pack <= split->trained);
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
    uint32_t p, b;
    while (take_block(queue, &p, &b)) {
        numbers->column = numbers->packs[p].column;
        numbers->feature = numbers->packs[p].feature;
        if (find_run(numbers, 0, numbers->count).count)
            number_pass_block(numbers, p, b, step, sums);
    }
}

/* The sums of some columns of a table. */
struct column_sums {
    const struct split *split;
    struct pack_numbers *packs; /* of each pack that is trained on and a table */
    struct table *table;
    uint32_t first, count, bins;
    unsigned threads;
    enum pass_step step;
    struct block_queue blocks; /* of the pass */
    pthread_mutex_t mutex;     /* guards what follows while threads are at work */
    uint32_t next;             /* column whose numbers are kept */
    struct column_sum *sum;
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
    assert(total->first + total->count <= total->table->columns);
    struct number_pass numbers = {
        .split = total->split, .packs = total->packs, .first = total->first, .count = total->count};
    struct column_sum *sums = memory_new(total->count, sizeof *sums);
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
    memset(sums->sum, 0, sums->count * sizeof *sums->sum);
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
    assert(sum->filled == sum->values); /* each was counted before, and kept now */
    qsort(sum->value, sum->values, sizeof *sum->value, compare_doubles);
    column->edge = memory_new(bins, sizeof *column->edge);
    column->in_bin = memory_new(bins, sizeof *column->in_bin);
    column->edges = bins_part(sum->value, sum->values, bins, column->edge, column->in_bin);
    assert(column->edges < bins);
}

/* Finds the edges of `count` columns from `at` on, whose numbers are counted. */
static void find_edges_of(struct column_sums *sums, uint32_t at, uint32_t count) {
    struct number_pass numbers = {
        .split = sums->split, .packs = sums->packs, .first = sums->first + at, .count = count};
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
}

/* How many columns from sums->next on a thread takes: its share, but not more numbers than are kept
 * at a time. */
static uint32_t columns_to_keep(const struct column_sums *sums) {
    assert(sums->next <= sums->count);
    const uint32_t left = sums->count - sums->next,
                   each = sums->count / sums->threads + (sums->count % sums->threads != 0);
    const uint32_t most = left < each ? left : each;
    uint64_t kept = 0;
    uint32_t count = 0;
    while (count < most && (!count || kept + sums->sum[sums->next + count].values <= KEPT_MOST))
        kept += sums->sum[sums->next + count++].values;
    return count;
}

/* Threads take some columns each. */
static void *find_some_edges(void *argument) {
    struct column_sums *sums = argument;
    for (;;) {
        pthread_mutex_lock(&sums->mutex);
        const uint32_t at = sums->next, count = columns_to_keep(sums);
        sums->next += count;
        pthread_mutex_unlock(&sums->mutex);
        if (!count)
            return NULL;
        find_edges_of(sums, at, count);
    }
}

void column_stats_find(struct table *table, const struct split *split, uint32_t bins,
                       unsigned threads) {
    const uint32_t most = table->columns < PASS_COLUMNS_MOST ? table->columns : PASS_COLUMNS_MOST;
    struct column_sums sums = {.split = split,
                               .packs = memory_new(split->trained, sizeof *sums.packs),
                               .table = table,
                               .bins = bins,
                               .threads = threads < 1             ? 1
                                          : threads > THREADS_MAX ? THREADS_MAX
                                                                  : threads,
                               .mutex = PTHREAD_MUTEX_INITIALIZER,
                               .sum = memory_new(most, sizeof *sums.sum)};
    for (uint32_t p = 0; p < split->trained; p++)
        if (split->packs[p]->table)
            sums.packs[p] = pack_numbers_find(split->packs[p], table->columns);
    for (; sums.first < table->columns; sums.first += sums.count) {
        const uint32_t left = table->columns - sums.first;
        sums.count = left < most ? left : most;
        find_means(&sums, false);
        if (split->trained_weighted)
            find_means(&sums, true);
        sums.next = 0;
        if (bins)
            threads_run(sums.threads, find_some_edges, &sums);
    }
    for (uint32_t p = 0; p < split->trained; p++) {
        free(sums.packs[p].column);
        free(sums.packs[p].feature);
    }
    free(sums.packs);
    free(sums.sum);
}
