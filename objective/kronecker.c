#include "objective/kronecker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objective/kronecker_parts.h"

bool kronecker_suits(const struct objective_shape *shape) {
    const struct network *network = &shape->network;
    const struct objective *objective = objective_of(shape->kind);
    bool fits = network->layers && shape->features <= KRONECKER_WIDTH_MAX &&
                shape->outputs <= KRONECKER_WIDTH_MAX && !objective->shares_weights &&
                objective->labels != LABEL_LISTS;
    for (uint32_t i = 0; fits && i < network->layers; i++)
        fits = network->units[i] <= KRONECKER_WIDTH_MAX;
    return fits;
}

/* ---- factors as a vector ---- */

uint64_t kronecker_side_size(uint64_t n) {
    return 1 + kronecker_rank(n) * (1 + n);
}

/* The two sides of layer `l`, from 0: [W; b] has a row more than W. */
static void widths_of(const struct layout *layout, uint32_t l, uint64_t width[2]) {
    width[0] = layout->tensor[l].rows + 1;
    width[1] = layout->tensor[l].columns;
}

uint64_t kronecker_size(const struct layout *layout) {
    uint64_t size = 0, width[2];
    for (uint32_t l = 0; l < layout->count / 2; l++) {
        widths_of(layout, l, width);
        size += kronecker_side_size(width[0]) + kronecker_side_size(width[1]);
    }
    return size;
}

/* (M + ρ)^−½ = base·(1 + Σ (1/root_i − 1)·u_i·u_iᵀ). */
struct side {
    uint64_t n;
    uint64_t rank;
    double base;
    const double *root; /* [rank], above 0 */
    const double *u;    /* rank × n */
};

static const double *read_side(struct side *side, uint64_t n, const double *at) {
    *side = (struct side){.n = n, .rank = kronecker_rank(n), .base = at[0], .root = at + 1};
    side->u = side->root + side->rank;
    return side->u + side->rank * n;
}

static bool is_sound(const struct side *side) {
    bool sound = isfinite(side->base) && side->base > 0;
    for (uint64_t i = 0; i < side->rank; i++)
        sound &= isfinite(side->root[i]) && side->root[i] > 0;
    for (uint64_t i = 0; i < side->rank * side->n; i++)
        sound &= fabs(side->u[i]) <= 2;
    return sound;
}

struct kronecker {
    struct layout layout;
    uint32_t layers;
    struct side side[NETWORK_LAYERS_MAX + 1][2];
    double *factors; /* that the sides point into; owned */
};

struct kronecker *kronecker_new(const struct layout *layout, const double *factors) {
    uint64_t size = kronecker_size(layout), width[2];
    struct kronecker *kronecker = memory_new(1, sizeof *kronecker);
    bool sound = layout->count / 2 <= NETWORK_LAYERS_MAX + 1;
    kronecker->layout = *layout;
    kronecker->layers = sound ? layout->count / 2 : 0;
    kronecker->factors = memory_new(size, sizeof *factors);
    if (size)
        memcpy(kronecker->factors, factors, size * sizeof *factors);
    const double *at = kronecker->factors;
    for (uint32_t l = 0; l < kronecker->layers; l++) {
        widths_of(layout, l, width);
        for (unsigned i = 0; i < 2; i++) {
            at = read_side(&kronecker->side[l][i], width[i], at);
            sound &= is_sound(&kronecker->side[l][i]);
        }
    }
    if (sound)
        return kronecker;
    kronecker_free(kronecker);
    return NULL;
}

void kronecker_free(struct kronecker *kronecker) {
    if (!kronecker)
        return;
    free(kronecker->factors);
    free(kronecker);
}

/* ---- turning ---- */

struct kronecker_work {
    struct matrix_scratch *matrix;
    double *layer;  /* [W; b] */
    double *shares; /* rank × the wider side */
};

struct kronecker_work *kronecker_work_new(const struct kronecker *kronecker) {
    uint64_t elements = 0, widest = 0, width[2];
    for (uint32_t l = 0; l < kronecker->layers; l++) {
        widths_of(&kronecker->layout, l, width);
        elements = width[0] * width[1] > elements ? width[0] * width[1] : elements;
        widest = width[0] > widest ? width[0] : widest;
        widest = width[1] > widest ? width[1] : widest;
    }
    struct kronecker_work *work = memory_new(1, sizeof *work);
    work->matrix = matrix_scratch_new();
    work->layer = memory_new(elements, sizeof *work->layer);
    work->shares = memory_new(KRONECKER_RANK * widest, sizeof *work->shares);
    return work;
}

void kronecker_work_free(struct kronecker_work *work) {
    if (!work)
        return;
    matrix_scratch_free(work->matrix);
    free(work->layer);
    free(work->shares);
    free(work);
}

static double factor_of(const struct side *side, uint64_t i, bool inverse) {
    return (inverse ? side->root[i] : 1 / side->root[i]) - 1;
}

static void scale_shares(const struct side *side, bool inverse, uint64_t columns, double *shares) {
    for (uint64_t i = 0; i < side->rank; i++) {
        double factor = factor_of(side, i, inverse);
        for (uint64_t j = 0; j < columns; j++)
            shares[i * columns + j] *= factor;
    }
}

/* X ← P·X and X ← X·Q, without their bases; X is rows × columns. */
static void turn_rows(const struct side *side, bool inverse, struct kronecker_work *work,
                      uint64_t columns) {
    matrix_product(work->matrix, side->rank, columns, side->n, side->u, side->n, work->layer,
                   columns, work->shares, columns);
    scale_shares(side, inverse, columns, work->shares);
    matrix_add_transposed(work->matrix, side->n, columns, side->rank, side->u, side->n,
                          work->shares, columns, work->layer, columns);
}

static void turn_columns(const struct side *side, bool inverse, struct kronecker_work *work,
                         uint64_t rows) {
    matrix_by_transposed(work->matrix, side->rank, rows, side->n, side->u, side->n, work->layer,
                         side->n, work->shares, rows);
    scale_shares(side, inverse, rows, work->shares);
    matrix_add_transposed(work->matrix, rows, side->n, side->rank, work->shares, rows, side->u,
                          side->n, work->layer, side->n);
}

static void turn_layer(const struct kronecker *kronecker, uint32_t l, bool inverse,
                       struct kronecker_work *work, double *vector) {
    const struct side *in = &kronecker->side[l][0], *out = &kronecker->side[l][1];
    double *weight = vector + kronecker->layout.tensor[l].first;
    double *bias = vector + kronecker->layout.tensor[kronecker->layers + l].first;
    uint64_t weights = (in->n - 1) * out->n;
    double base = in->base * out->base;
    base = inverse ? 1 / base : base;
    memcpy(work->layer, weight, weights * sizeof *weight);
    memcpy(work->layer + weights, bias, out->n * sizeof *bias);
    turn_rows(in, inverse, work, out->n);
    turn_columns(out, inverse, work, in->n);
    for (uint64_t i = 0; i < weights; i++)
        weight[i] = base * work->layer[i];
    for (uint64_t i = 0; i < out->n; i++)
        bias[i] = base * work->layer[weights + i];
}

void kronecker_turn(const struct kronecker *kronecker, struct kronecker_work *work,
                    double *vector) {
    for (uint32_t l = 0; l < kronecker->layers; l++)
        turn_layer(kronecker, l, false, work, vector);
}

void kronecker_enter(const struct kronecker *kronecker, struct kronecker_work *work,
                     double *vector) {
    for (uint32_t l = 0; l < kronecker->layers; l++)
        turn_layer(kronecker, l, true, work, vector);
}
