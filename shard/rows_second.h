/* Second derivatives of rows by the margins of directions. */
#ifndef DML_SHARD_ROWS_SECOND_H
#define DML_SHARD_ROWS_SECOND_H

#include <stdbool.h>
#include <string.h>

#include "objective/objective.h"
#include "shard/rows.h"

/* What is at hand: a piece of a block. */
struct row_piece {
    struct row_vectors *rows;
    size_t first, count; /* rows of the shard: all trained on, or all held out */
    bool held;
    double correct;      /* of held rows: the weight of those that are predicted correctly */
    double *derivatives; /* by the margins at v; 0 for rows of weight 0, and for held ones */
    double *weighed;     /* those times weights; they themselves without weights */
    double *loss, *work, *diagonal;
    double *margins;         /* of a slot */
    double *hessian_product; /* S times those */
};

static inline size_t piece_at(const struct row_piece *piece) {
    return piece->first * piece->rows->outputs;
}

static inline size_t piece_numbers(const struct row_piece *piece) {
    return piece->count * piece->rows->outputs;
}

/* Q of a slot. */
static inline const void *piece_product(const struct row_piece *piece, uint32_t slot) {
    return rows_product(piece->rows, slot, piece_at(piece));
}

/* Finds the derivatives of the rows that an operation draws, at these margins of the piece; those
 * of others are 0. */
void piece_find_drawn(const struct row_piece *piece, const struct operation *operation,
                      const double *margins);

/* A vector of the piece's, and for each slot of an operation the sum of its products with Q. */
struct slot_sums {
    const double *vector;
    double *sums;
};

/* Adds Σ vector·Q of the slots to the sums of one or of two, for which Q is read but once. */
void piece_dots(const struct row_piece *piece, const struct operation *operation, size_t count,
                const struct slot_sums *of);

static inline const struct loss_parameters *rows_loss(const struct row_vectors *rows,
                                                      struct loss_parameters *room) {
    memcpy(room->value, rows->loss, sizeof room->value);
    return room;
}

/* Second derivatives by the slots' coefficients, while rows are drawn. Every drawn row and output
 * has a row in both tiles: of Q, and of weight/rate·S·Q. */
struct row_tile {
    const struct operation *operation;
    size_t slots;  /* of the operation, or 1 */
    size_t rows;   /* filled: TILE_ROWS at most, or one row's outputs */
    double *plain; /* rows × slots */
    double *hessian_product;
    double *sums;   /* slots × slots: of the block */
    double *second; /* a row of S: outputs */
};

struct row_tile tile_new(const struct row_vectors *rows, const struct operation *operation,
                         size_t slots);
void tile_release(struct row_tile *tile);

/* Adds a piece to the sums of its block, by all slots and all slots. */
void tile_add(const struct row_piece *piece, struct row_tile *tile);

/* The sums of the block, which begin anew: i ≥ j, row by row of the triangle. */
void tile_finish(struct row_tile *tile, double *sums);

/* Whether an operation draws all rows that have a weight. */
static inline bool draws_all(const struct operation *operation) {
    return operation->alpha >= 1;
}

/* The piece's `hessian_product` = S times the margins of the operation's slot. It draws all rows.
 */
void tile_hessian_product(const struct row_piece *piece, struct row_tile *tile);

/* Adds the products of that with the margins of all slots. Where rows are drawn, it reads Q of
 * those alone. */
void tile_add_hessian_product(const struct row_piece *piece, struct row_tile *tile, double *sums);

#endif
