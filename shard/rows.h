/* Vectors of rows: what a shard has of them beside its range of the parameters. Rows are numbered
 * in the order of the chunks, those that are held out, if there are any, last; row i has K numbers,
 * one for each output, row-major (wire/program.h has the operations). They lie in the memory of the
 * host, also if a device has the registers. Memory that was never touched takes no room. */
#ifndef DML_SHARD_ROWS_H
#define DML_SHARD_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/limits.h"
#include "numeric/vector.h"
#include "wire/evaluation.h"
#include "wire/message.h"
#include "wire/program.h"

struct objective; /* objective/objective.h */
struct segment;   /* wire/bulk.h */

/* Z + Σ u·Q. Of no slots: nothing. */
struct row_point {
    uint32_t count;
    uint16_t slots[WINDOW_MAX];
    double u[WINDOW_MAX];
};

/* Zeroed memory is that of a shard without vectors of rows. */
struct row_vectors {
    uint64_t total;   /* rows of the whole data set; 0: there are no vectors */
    uint64_t first;   /* row of this shard, at the beginning of a block */
    size_t count;     /* rows of this shard, */
    size_t trained;   /* of which these are trained on, and those behind held out */
    uint32_t outputs; /* K */
    uint32_t slots;   /* of the window: directions + 2, or 0 without any */
    const struct objective *objective; /* whose losses are measured, */
    double loss[LOSS_PARAMETERS_MAX];  /* with these parameters; NULL: replicas find those of a
                                          network, of whose first layer are Z and D */
    double *margins;                   /* Z: count·K */
    double *labels;                    /* count; NULL without an objective */
    double *weights;                   /* count; NULL: all are 1 */
    double *offsets;                   /* count; NULL: all are 0 */
    int16_t *sizes;                    /* count; NULL: margins come as they are, not in tiles */
    enum history_type stored;          /* the type of Q, as of the directions themselves */
    void *products;                    /* Q: slots·count·K */
    struct segment *derivatives;       /* D: count·K; replicas read it in place */
    double *trial;                     /* v, as it was last found, and */
    double *trial_derivatives;         /* what D is there: NULL both without an objective; */
    struct row_point at;               /* the point of these, until Z or a product changes */
    unsigned threads;                  /* that measure rows, at most */
};

/* Slots of the window of a set-up; 0 without directions. */
uint32_t rows_slots(const struct message_shard_setup *setup);

/* Makes the vectors that a set-up asks for, all zero, or none. D stays where it is if there is one:
 * then it must be of the same length. ERROR_INTERNAL if this build has no such objective, or cannot
 * have its losses as functions of rows. A set-up may name none. */
int rows_set_up(struct row_vectors *rows, const struct message_shard_setup *setup,
                const struct layout *layout);
void rows_release(struct row_vectors *rows);

/* Numbers in a vector of the shard's rows. */
static inline size_t rows_numbers(const struct row_vectors *rows) {
    return rows->count * rows->outputs;
}

/* Q of a slot, from a number of the shard's rows on. */
static inline void *rows_product(const struct row_vectors *rows, uint32_t slot, size_t number) {
    size_t at = slot * rows_numbers(rows) + number;
    return (uint8_t *)rows->products + at * history_size(rows->stored);
}

/* D, count·K numbers, row-major, of a shard that has vectors of rows. */
double *rows_derivatives(const struct row_vectors *rows);

/* A vector of rows = the numbers whose bits an evaluation has added up, all rows of the shard. With
 * sizes, margins are sums of tiles in fixed point: s stands for s·2^(size + point − 61), where no
 * element of the point is beyond 2^point. Products are rounded to their type. */
void rows_take(struct row_vectors *rows, enum row_vector vector, uint32_t slot, int point,
               const int64_t *sums);

/* ---- the objective, of which shard/rows_measure.c alone knows ---- */

/* The objective of this name; NULL with a text if vectors of rows cannot have its losses. */
const struct objective *rows_objective(const char *name, uint32_t outputs);

/* objective_proof_losses(): that this process finds the losses of all others. */
uint64_t rows_proof(void);

/* Whether its losses have second derivatives. */
bool rows_have_second(const struct row_vectors *rows);

/* The largest label that rows can have, of those that number something; else infinity. */
double rows_label_most(const struct row_vectors *rows);

#endif
