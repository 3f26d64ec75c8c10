#include "shard/rows.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/resources.h"
#include "numeric/fixed.h"
#include "wire/bulk.h"

_Static_assert(sizeof(int64_t) == sizeof(double), "a sum has the bits of a number");

/* ---- memory ---- */

uint32_t rows_slots(const struct message_shard_setup *setup) {
    return setup->rows.directions ? setup->rows.directions + 2 : 0;
}

static size_t numbers_bytes(const struct row_vectors *rows) {
    return rows_numbers(rows) * sizeof(double);
}

static size_t products_bytes(const struct row_vectors *rows) {
    return rows->slots * rows_numbers(rows) * history_size(rows->stored);
}

static size_t labels_bytes(const struct row_vectors *rows) {
    return rows->count * sizeof(double);
}

static size_t sizes_bytes(const struct row_vectors *rows) {
    return rows->count * sizeof *rows->sizes;
}

/* All but D. */
static void unmap_private(struct row_vectors *rows) {
    memory_unmap(rows->margins, numbers_bytes(rows));
    memory_unmap(rows->trial, numbers_bytes(rows));
    memory_unmap(rows->trial_derivatives, numbers_bytes(rows));
    memory_unmap(rows->products, products_bytes(rows));
    memory_unmap(rows->labels, labels_bytes(rows));
    memory_unmap(rows->weights, labels_bytes(rows));
    memory_unmap(rows->offsets, labels_bytes(rows));
    memory_unmap(rows->sizes, sizes_bytes(rows));
    rows->margins = rows->trial = rows->trial_derivatives = NULL;
    rows->labels = rows->weights = rows->offsets = NULL;
    rows->products = NULL;
    rows->sizes = NULL;
}

static void map_private(struct row_vectors *rows, const struct message_shard_setup *setup) {
    rows->margins = memory_map(numbers_bytes(rows));
    rows->trial = rows->objective ? memory_map(numbers_bytes(rows)) : NULL;
    rows->trial_derivatives = rows->objective ? memory_map(numbers_bytes(rows)) : NULL;
    rows->products = memory_map(products_bytes(rows));
    rows->labels = rows->objective ? memory_map(labels_bytes(rows)) : NULL;
    rows->weights = setup->rows.weighted ? memory_map(labels_bytes(rows)) : NULL;
    rows->offsets = setup->rows.offsets ? memory_map(labels_bytes(rows)) : NULL;
    rows->sizes = setup->rows.tiles ? memory_map(sizes_bytes(rows)) : NULL;
}

void rows_release(struct row_vectors *rows) {
    unmap_private(rows);
    if (rows->derivatives)
        segment_free(rows->derivatives);
    *rows = (struct row_vectors){0};
}

/* Replicas may be on larger hosts than this shard. */
static unsigned threads_of(uint32_t asked) {
    unsigned usable = cpus_usable();
    return asked && asked < usable ? asked : usable;
}

/* New memory is zero without being touched. */
int rows_set_up(struct row_vectors *rows, const struct message_shard_setup *setup,
                const struct layout *layout) {
    struct segment *derivatives = rows->derivatives;
    const struct objective *objective = NULL;
    uint64_t parameters = layout_parameters(layout);
    if (setup->rows.total && *setup->rows.objective &&
        !(objective = rows_objective(setup->rows.objective, setup->rows.outputs)))
        return ERROR_INTERNAL;
    if (setup->rows.total &&
        (!parameters || setup->first > parameters || setup->count > parameters - setup->first))
        return error_set(ERROR_INTERNAL, "set-up: a range beyond the parameters");
    unmap_private(rows);
    *rows = (struct row_vectors){.total = setup->rows.total,
                                 .outputs = setup->rows.outputs,
                                 .slots = rows_slots(setup),
                                 .stored = (enum history_type)setup->history_type,
                                 .objective = objective,
                                 .threads = threads_of(setup->machine.threads),
                                 .derivatives = derivatives};
    if (!setup->rows.total)
        return 0;
    const struct sums_sizes sizes = {
        .parameters = layout_parameters(layout), .rows = rows->total, .outputs = rows->outputs};
    const struct sums_range range = evaluation_rows(&sizes, setup->first, setup->count);
    const uint64_t trained = setup->rows.total - setup->rows.held;
    rows->first = range.first;
    rows->count = (size_t)range.count;
    rows->trained = trained <= range.first                ? 0
                    : trained - range.first < range.count ? (size_t)(trained - range.first)
                                                          : rows->count;
    memcpy(rows->loss, setup->rows.loss.data, sizeof rows->loss);
    map_private(rows, setup);
    size_t bytes = numbers_bytes(rows);
    if (!derivatives)
        rows->derivatives = segment_new(bytes);
    else
        heartbeat_clear(derivatives->start, bytes);
    assert(rows->first % ROW_BLOCK == 0 || !rows->count);
    return 0;
}

double *rows_derivatives(const struct row_vectors *rows) {
    return rows->derivatives->start;
}

/* ---- operations ---- */

static void take_first_numbers(const struct row_vectors *rows, double *into, const int64_t *sums) {
    for (size_t i = 0; i < rows->count; i++)
        memcpy(&into[i], &sums[i * rows->outputs], sizeof *into);
}

/* What others send may be any number, here and below: losses take labels of classes for places. */
static void take_labels(const struct row_vectors *rows, const int64_t *sums) {
    const double most = rows_label_most(rows);
    take_first_numbers(rows, rows->labels, sums);
    for (size_t i = 0; most < INFINITY && i < rows->count; i++)
        rows->labels[i] = fmin(fmax(rows->labels[i], 0), most);
}

static void take_sizes(const struct row_vectors *rows, const int64_t *sums) {
    for (size_t i = 0; i < rows->count; i++) {
        double size;
        memcpy(&size, &sums[i * rows->outputs], sizeof size);
        rows->sizes[i] = (int16_t)fmin(fmax(size, 0), FIXED_SIZE_MAX);
    }
}

/* `count` margins, from a number of the shard's rows on: as they are, or, of tiles, as sums in
 * fixed point. */
static void read_margins(const struct row_vectors *rows, int point, size_t first, size_t count,
                         double *into, const int64_t *sums) {
    if (!rows->sizes) {
        memcpy(into, sums + first, count * sizeof *into);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t row = (first + i) / rows->outputs;
        into[i] = ldexp((double)sums[first + i], fixed_tile_exponent(rows->sizes[row], point));
    }
}

static size_t some_numbers(const struct row_vectors *rows, size_t first) {
    size_t left = rows_numbers(rows) - first;
    return left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;
}

static void take_margins(const struct row_vectors *rows, int point, const int64_t *sums) {
    for (size_t first = 0, some; first < rows_numbers(rows); first += some, heartbeat()) {
        some = some_numbers(rows, first);
        read_margins(rows, point, first, some, rows->margins + first, sums);
    }
}

static void take_product(const struct row_vectors *rows, uint32_t slot, int point,
                         const int64_t *sums) {
    double numbers[BLOCK_ELEMENTS];
    for (size_t first = 0, some; first < rows_numbers(rows); first += some, heartbeat()) {
        some = some_numbers(rows, first);
        read_margins(rows, point, first, some, numbers, sums);
        history_round(rows->stored, some, rows_product(rows, slot, first), numbers);
    }
}

static void add_offsets(const struct row_vectors *rows, double *margins) {
    for (size_t i = 0; rows->offsets && i < rows->count; i++)
        for (size_t k = i * rows->outputs; k < (i + 1) * rows->outputs; k++)
            margins[k] += rows->offsets[i];
}

void rows_take(struct row_vectors *rows, enum row_vector vector, uint32_t slot, int point,
               const int64_t *sums) {
    rows->at.count = 0;
    switch (vector) {
    case ROWS_LABELS:
        assert(rows->labels);
        take_labels(rows, sums);
        break;
    case ROWS_WEIGHTS:
        assert(rows->weights);
        take_first_numbers(rows, rows->weights, sums);
        break;
    case ROWS_OFFSETS:
        assert(rows->offsets);
        take_first_numbers(rows, rows->offsets, sums);
        break;
    case ROWS_MARGINS:
        take_margins(rows, point, sums);
        add_offsets(rows, rows->margins);
        break;
    case ROWS_PRODUCT:
        assert(slot < rows->slots);
        take_product(rows, slot, point, sums);
        break;
    case ROWS_SIZES:
        assert(rows->sizes);
        take_sizes(rows, sums);
        break;
    case ROWS_GIVEN:
        heartbeat_copy(rows_derivatives(rows), sums, numbers_bytes(rows));
        break;
    case ROW_VECTORS:
        assert(false);
        break;
    }
}
