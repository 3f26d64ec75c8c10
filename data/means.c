/* The means of a table's numbers. The sum of a column is one of whole numbers, so it is the same in
 * every order: its numbers are counted in units of 2^(e − UNIT_BITS), where 2^e is above all of
 * them; what is left below a unit is cut off. So there are two passes over the rows. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "data/merge.h"

#define UNIT_BITS 62

/* So many columns are summed at a time: their sums stay in the cache. */
#define COLUMNS_MOST 256

__extension__ typedef __int128 wide;

struct sum {
    double most; /* the largest size of a number */
    double unit; /* how many units are 1 */
    wide units;
    uint64_t values;
};

/* The sums of columns [first, first + count) of the table. */
struct summing {
    const struct split *split;
    struct table *table;
    uint32_t first, count;
    struct sum sum[COLUMNS_MOST];
    uint32_t *place; /* of each feature of the pack being read: its sum, or DICTIONARY_NONE */
    bool adds;       /* the second pass */
};

static void find_places(struct summing *summing, const struct pack *pack) {
    summing->place = memory_resize(summing->place, pack->facts->features, sizeof(uint32_t));
    for (uint32_t i = 0; i < pack->facts->features; i++) {
        uint32_t place = pack->column[i] - summing->first;
        bool here = pack->id[i] < FEATURE_HASHED && place < summing->count;
        summing->place[i] = here ? place : DICTIONARY_NONE;
    }
}

static inline void see(struct sum *sum, double value) {
    double size = fabs(value);
    sum->most = size > sum->most ? size : sum->most;
    sum->values++;
}

static inline void add(struct sum *sum, double value) {
    sum->units += (int64_t)(value * sum->unit);
}

/* The type is a constant for the compiler. */
static inline void pass_row(struct summing *summing, struct pack_rows rows, uint32_t row,
                            enum value_type type) {
    uint64_t first, end = pack_row(&rows, row, &first);
    rows.type = type;
    for (uint64_t i = first; i < end; i++) {
        uint32_t place = summing->place[pack_feature(&rows, first, i)];
        if (place == DICTIONARY_NONE)
            continue;
        if (summing->adds)
            add(&summing->sum[place], pack_value(&rows, i));
        else
            see(&summing->sum[place], pack_value(&rows, i));
    }
}

static void pass_pack(struct summing *summing, uint32_t p) {
    const struct pack *pack = summing->split->packs[p];
    find_places(summing, pack);
    for (uint32_t b = 0; b < pack->facts->blocks; b++) {
        struct pack_rows rows = pack_rows(pack, b);
        for (uint32_t row = 0; row < rows.rows; row++) {
            if (split_side(summing->split, p, b, row) != ROW_TRAINED)
                continue;
            if (rows.type == VALUE_FLOAT)
                pass_row(summing, rows, row, VALUE_FLOAT);
            else
                pass_row(summing, rows, row, rows.type);
        }
    }
}

static void pass(struct summing *summing, bool adds) {
    summing->adds = adds;
    for (uint32_t p = 0; p < summing->split->trained; p++)
        if (summing->split->packs[p]->table)
            pass_pack(summing, p);
}

/* To the 24 digits of a float: data that is otherwise stored as floats stays so. */
static double rounded(double mean) {
    int exponent;
    double digits = frexp(mean, &exponent);
    return ldexp(nearbyint(ldexp(digits, 24)), exponent - 24) + 0.0;
}

static void sum_columns(struct summing *summing) {
    memset(summing->sum, 0, sizeof summing->sum);
    pass(summing, false);
    for (uint32_t i = 0; i < summing->count; i++) {
        int exponent;
        frexp(summing->sum[i].most, &exponent);
        summing->sum[i].unit = ldexp(1, exponent < -900 ? 900 : UNIT_BITS - exponent);
    }
    pass(summing, true);
    for (uint32_t i = 0; i < summing->count; i++) {
        const struct sum *sum = &summing->sum[i];
        if (sum->values)
            summing->table->column[summing->first + i].mean =
                rounded((double)sum->units / (double)sum->values / sum->unit);
    }
}

/* Threads take some columns each. */
struct work {
    const struct split *split;
    struct table *table;
    uint32_t step;
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
    *summing = (struct summing){.split = work->split, .table = work->table};
    while ((summing->count = take_columns(work, &summing->first)))
        sum_columns(summing);
    free(summing->place);
    free(summing);
    return NULL;
}

static uint32_t columns_each(uint32_t columns, unsigned threads) {
    uint32_t each = columns / threads + (columns % threads != 0);
    return each > COLUMNS_MOST ? COLUMNS_MOST : each;
}

/* By the set's columns, as chunks need them. */
static void spread(struct columns *columns) {
    columns->mean = memory_new(columns->count, sizeof *columns->mean);
    for (uint32_t i = 0; i < columns->count; i++)
        if (columns->id[i] && columns->id[i] <= columns->table->columns)
            columns->mean[i] = columns->table->column[columns->id[i] - 1].mean;
}

void means_find(struct columns *columns, const struct split *split, unsigned threads) {
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    struct work work = {.split = split,
                        .table = columns->table,
                        .step = columns_each(columns->table->columns, threads),
                        .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t others[THREADS_MAX];
    unsigned started = 0;
    for (unsigned i = 1; i < threads && i * work.step < columns->table->columns; i++)
        if (!pthread_create(&others[started], NULL, sum_in_thread, &work))
            started++;
    sum_in_thread(&work);
    for (unsigned i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    spread(columns);
}
