#include "shard/rows_second.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/product.h"
#include "numeric/vector.h"

/* What served best of 32 to 256: tiles of 40 slots fit into the second cache beside what they are
 * gathered from. */
enum { TILE_ROWS = 128 };

/* A number that is even in [0, 1), and a function of these alone (random_mix() of a counter, as
 * replicas draw the rows of curvature). */
static double drawn(uint64_t sample_seed, uint64_t row) {
    uint64_t bits = random_mix(random_mix(sample_seed) + (row + 1) * RANDOM_STEP);
    return (double)(bits >> 11) * 0x1p-53;
}

static void tile_flush(struct row_tile *tile) {
    size_t slots = tile->slots;
    for (size_t first = 0, some; first < tile->rows; first += some) {
        some = tile->rows - first < PRODUCT_ROWS_MAX ? tile->rows - first : PRODUCT_ROWS_MAX;
        product_triangle(slots, some, tile->plain + first * slots,
                         tile->hessian_product + first * slots, tile->sums);
    }
    tile->rows = 0;
}

void piece_dots(const struct row_piece *piece, const struct operation *operation, size_t count,
                const struct slot_sums *of) {
    const void *products[WINDOW_MAX];
    double dots[WINDOW_MAX][2];
    for (uint32_t s = 0; s < operation->count; s++)
        products[s] = piece_product(piece, operation->slots[s]);
    assert(count == 1 || count == 2);
    history_dots_all(piece->rows->stored, operation->count, piece_numbers(piece), products,
                     of[0].vector, of[count - 1].vector, dots);
    for (uint32_t s = 0; s < operation->count; s++)
        for (size_t i = 0; i < count; i++)
            of[i].sums[s] += dots[s][i];
}

/* Margins of a slot in `piece->margins`: of rows first … last of the piece. */
static void read_product(const struct row_piece *piece, uint32_t slot, size_t first, size_t last) {
    size_t outputs = piece->rows->outputs;
    history_expand(piece->rows->stored, (last + 1 - first) * outputs,
                   piece->margins + first * outputs,
                   rows_product(piece->rows, slot, piece_at(piece) + first * outputs));
}

/* Margins of all slots of rows that were drawn, from row `tile->rows` of the tile on: an output of
 * a row each. */
static void gather_rows(const struct row_piece *piece, size_t count, const uint16_t *row,
                        struct row_tile *tile) {
    const struct operation *operation = tile->operation;
    const enum history_type type = piece->rows->stored;
    size_t outputs = piece->rows->outputs, slots = operation->count;
    for (size_t s = 0; s < slots; s++) {
        const void *product = piece_product(piece, operation->slots[s]);
        double *to = tile->plain + s;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < outputs; k++, to += slots)
                *to = history_at(type, product, row[i] * outputs + k);
    }
}

/* `hessian_product` = weight·S·Q of one row, of whose S most elements may be 0. */
static void multiply_by_rows(const struct row_piece *piece, size_t i, double weight,
                             struct row_tile *tile, const double *plain, double *hessian_product) {
    const struct row_vectors *rows = piece->rows;
    size_t outputs = rows->outputs, slots = tile->slots;
    memset(hessian_product, 0, outputs * slots * sizeof *hessian_product);
    for (size_t k = 0; k < outputs; k++, hessian_product += slots) {
        rows->objective->second_row(outputs, rows->labels[piece->first + i],
                                    piece->derivatives + i * outputs, k, tile->second);
        for (size_t j = 0; j < outputs; j++)
            for (size_t s = 0; tile->second[j] != 0 && s < slots; s++)
                hessian_product[s] += weight * tile->second[j] * plain[j * slots + s];
    }
}

static void multiply_row(const struct row_piece *piece, size_t i, double weight,
                         struct row_tile *tile, const double *plain, double *hessian_product) {
    const struct row_vectors *rows = piece->rows;
    size_t outputs = rows->outputs;
    if (rows->objective->second_product)
        rows->objective->second_product(outputs, rows->labels[piece->first + i],
                                        piece->derivatives + i * outputs, weight, tile->slots,
                                        plain, hessian_product);
    else
        multiply_by_rows(piece, i, weight, tile, plain, hessian_product);
}

/* The second derivatives of several outputs: K rows of the tile for each row that was drawn. */
static void second_of_rows(const struct row_piece *piece, size_t count, const uint16_t *row,
                           const double *weight, struct row_tile *tile) {
    size_t outputs = piece->rows->outputs, size = outputs * tile->slots;
    size_t most = TILE_ROWS > outputs ? TILE_ROWS / outputs : 1;
    for (size_t first = 0, some; first < count; first += some, tile_flush(tile)) {
        some = count - first < most ? count - first : most;
        gather_rows(piece, some, row + first, tile);
        for (size_t i = 0; i < some; i++)
            multiply_row(piece, row[first + i], weight[first + i], tile, tile->plain + i * size,
                         tile->hessian_product + i * size);
        tile->rows = some * outputs;
    }
}

/* The second derivatives of one output: each slot's numbers of the rows that were drawn, side by
 * side, as many at a time as the first cache has room for. */
static void second_of_column(const struct row_piece *piece, size_t count, const uint16_t *row,
                             const double *weight, struct row_tile *tile) {
    const struct operation *operation = tile->operation;
    size_t slots = operation->count;
    assert(!tile->rows);
    for (size_t first = 0; first < count; first += TILE_ROWS, tile_flush(tile)) {
        tile->rows = count - first < TILE_ROWS ? count - first : TILE_ROWS;
        for (size_t s = 0; s < slots; s++) {
            read_product(piece, operation->slots[s], row[first], row[first + tile->rows - 1]);
            for (size_t i = 0; i < tile->rows; i++) {
                double margin = piece->margins[row[first + i]];
                tile->plain[i * slots + s] = margin;
                tile->hessian_product[i * slots + s] = weight[first + i] * margin;
            }
        }
    }
}

/* Those of a piece that an operation draws, and what each counts. */
struct drawn_rows {
    size_t count;
    uint16_t row[ROW_BLOCK];
    double weight[ROW_BLOCK];
};

static void draw_rows(const struct row_piece *piece, const struct operation *operation,
                      struct drawn_rows *drawn_rows) {
    const struct row_vectors *rows = piece->rows;
    drawn_rows->count = 0;
    for (size_t i = 0; i < piece->count; i++) {
        double own = rows->weights ? rows->weights[piece->first + i] : 1;
        if (own == 0 ||
            !(drawn(operation->serial, rows->first + piece->first + i) < operation->alpha))
            continue;
        drawn_rows->row[drawn_rows->count] = (uint16_t)i;
        drawn_rows->weight[drawn_rows->count++] = own / operation->alpha;
    }
}

void piece_find_drawn(const struct row_piece *piece, const struct operation *operation,
                      const double *margins) {
    const struct row_vectors *rows = piece->rows;
    const size_t outputs = rows->outputs;
    struct loss_parameters room;
    struct drawn_rows of;
    double labels[ROW_BLOCK];
    draw_rows(piece, operation, &of);
    for (size_t i = 0; i < of.count; i++) {
        labels[i] = rows->labels[piece->first + of.row[i]];
        memcpy(piece->margins + i * outputs, margins + of.row[i] * outputs,
               outputs * sizeof *margins);
    }
    rows->objective->losses(rows_loss(rows, &room), of.count, outputs, labels, piece->margins,
                            piece->loss, piece->work);
    memset(piece->derivatives, 0, piece_numbers(piece) * sizeof *piece->derivatives);
    for (size_t i = 0; i < of.count; i++)
        memcpy(piece->derivatives + of.row[i] * outputs, piece->margins + i * outputs,
               outputs * sizeof *margins);
}

/* For one output, S is a number: it joins the weight. */
static void weigh_second(const struct row_piece *piece, struct drawn_rows *drawn_rows) {
    const struct row_vectors *rows = piece->rows;
    struct loss_parameters room;
    if (!drawn_rows->count)
        return;
    rows->objective->second(rows_loss(rows, &room), piece->count, 1, rows->labels + piece->first,
                            piece->derivatives, piece->work, piece->diagonal);
    for (size_t i = 0; i < drawn_rows->count; i++)
        drawn_rows->weight[i] *= piece->diagonal[drawn_rows->row[i]];
}

void tile_add(const struct row_piece *piece, struct row_tile *tile) {
    struct drawn_rows of;
    draw_rows(piece, tile->operation, &of);
    if (piece->rows->outputs == 1) {
        weigh_second(piece, &of);
        second_of_column(piece, of.count, of.row, of.weight, tile);
    } else {
        second_of_rows(piece, of.count, of.row, of.weight, tile);
    }
}

/* As piece_dots() of `piece->hessian_product`, which is 0 for rows that were not drawn: of few
 * rows. */
static void drawn_dots(const struct row_piece *piece, const struct operation *operation,
                       const struct drawn_rows *of, double *sums) {
    size_t outputs = piece->rows->outputs;
    for (uint32_t s = 0; s < operation->count; s++) {
        const void *product = piece_product(piece, operation->slots[s]);
        for (size_t i = 0; i < of->count; i++)
            for (size_t at = of->row[i] * outputs; at < (of->row[i] + 1) * outputs; at++)
                sums[s] +=
                    history_at(piece->rows->stored, product, at) * piece->hessian_product[at];
    }
}

/* The piece's `hessian_product` = S times the margins of the operation's slot, of the rows that it
 * draws. */
static void multiply_drawn(const struct row_piece *piece, struct row_tile *tile,
                           struct drawn_rows *with) {
    const struct row_vectors *rows = piece->rows;
    const struct operation *operation = tile->operation;
    const double *of = piece->margins;
    size_t outputs = rows->outputs;
    draw_rows(piece, operation, with);
    if (outputs == 1)
        weigh_second(piece, with);
    read_product(piece, operation->slot, 0, piece->count - 1);
    memset(piece->hessian_product, 0, piece_numbers(piece) * sizeof *piece->hessian_product);
    for (size_t i = 0; i < with->count; i++) {
        size_t from = with->row[i] * outputs;
        if (outputs == 1)
            piece->hessian_product[from] = with->weight[i] * of[from];
        else
            multiply_row(piece, with->row[i], with->weight[i], tile, of + from,
                         piece->hessian_product + from);
    }
}

void tile_hessian_product(const struct row_piece *piece, struct row_tile *tile) {
    struct drawn_rows with;
    assert(draws_all(tile->operation));
    multiply_drawn(piece, tile, &with);
}

void tile_add_hessian_product(const struct row_piece *piece, struct row_tile *tile, double *sums) {
    struct drawn_rows with;
    multiply_drawn(piece, tile, &with);
    if (draws_all(tile->operation))
        piece_dots(piece, tile->operation, 1, &(struct slot_sums){piece->hessian_product, sums});
    else
        drawn_dots(piece, tile->operation, &with, sums);
}

void tile_finish(struct row_tile *tile, double *sums) {
    size_t slots = tile->slots;
    tile_flush(tile);
    for (size_t i = 0; i < slots; i++)
        for (size_t j = 0; j <= i; j++)
            *sums++ = tile->sums[i * slots + j];
    memset(tile->sums, 0, slots * slots * sizeof *tile->sums);
}

struct row_tile tile_new(const struct row_vectors *rows, const struct operation *operation,
                         size_t slots) {
    size_t outputs = rows->outputs;
    size_t most = outputs > TILE_ROWS ? outputs : TILE_ROWS;
    return (struct row_tile){.operation = operation,
                             .slots = slots,
                             .plain = memory_new(most * slots, sizeof(double)),
                             .hessian_product = memory_new(most * slots, sizeof(double)),
                             .sums = memory_new(slots * slots, sizeof(double)),
                             .second = memory_new(outputs, sizeof(double))};
}

void tile_release(struct row_tile *tile) {
    free(tile->plain);
    free(tile->hessian_product);
    free(tile->sums);
    free(tile->second);
}
