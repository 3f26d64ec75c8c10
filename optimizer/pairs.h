/* Limited-memory BFGS in compact form, from scalars alone.
 *
 * The pairs s_i = x_{i+1} − x_i, y_i = g_{i+1} − g_i lie on the shards, in numbered slots. Here are
 * their products: with R = upper triangle of SᵀY (oldest pair first), D = diag(s_i·y_i) and
 * γ = s·y/y·y of the newest pair, the direction at a point with gradient g is
 *
 *     w = R⁻¹ Sᵀg    u = R⁻ᵀ ((D + γ YᵀY) w − γ Yᵀg)    d = −γ g − S u + γ Y w
 *
 * (Byrd, Nocedal and Schnabel, "Representations of quasi-Newton matrices and their use in limited
 * memory methods", 1994, theorem 2.2.) With a preconditioner P in place of γ the shards keep
 * q_i = P y_i in place of y_i. Then Q takes the place of γY, and YᵀP Y and YᵀP g are products of Q
 * with y and with g: only the products with the newest pair need its y, which is at hand then. So
 * `yy` holds q_i·y_j and `yg` q_i·g, and g in the first term becomes P g. Where P is the inverse of
 * a Hessian γ is 1; where it is only a scale for each direction the newest pair tells γ = s·y/q·y.
 *
 * Without P, H₀ = γB, where B is a power of two for biases (optimizer_settings.bias_scale) and 1
 * for all others. So it is as with P = B, but for γ = s·y/y·B y.
 *
 * R is scaled on both sides by (s_i·y_i)^-½ before its condition is checked and it is solved with;
 * while it is ill-conditioned the oldest pairs are dropped.
 *
 * The struct is plain data: it can be stored and resumed. */
#ifndef DML_OPTIMIZER_PAIRS_H
#define DML_OPTIMIZER_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/codec.h"
#include "base/limits.h"

struct pairs {
    uint32_t memory;                 /* pairs kept at most; there are memory + 2 slots */
    uint32_t pairs;                  /* pairs in use */
    uint16_t slot[HISTORY_MAX];      /* their slots, oldest first */
    uint16_t candidate;              /* the slot that the next pair is formed in */
    uint64_t serial[SLOTS_MAX];      /* of the pair in each slot: the step that formed it */
    bool rough;                      /* P, if any, is no inverse of all of a Hessian */
    bool preconditioned;             /* by P, else by γ alone */
    double gamma;                    /* scale of the initial inverse Hessian; 1 without pairs, and
                                        with a P that is not rough */
    double sy[SLOTS_MAX][SLOTS_MAX]; /* s_i·y_j by slot; meaningful where i is not newer than j */
    double yy[SLOTS_MAX][SLOTS_MAX]; /* y_i·y_j, symmetric */
    double sg[SLOTS_MAX], yg[SLOTS_MAX]; /* s_i·g, y_i·g at the current point */
};

/* Products of one pair i with the gradient h at a trial and with the candidate pair's y. With P,
 * q_i stands for y_i. */
struct pairs_products {
    double sh, yh, sy, yy; /* s_i·h, y_i·h, s_i·y, y_i·y */
};

/* `rough` says of what kind P is. */
void pairs_init(struct pairs *history, uint32_t memory, bool rough);

/* Forgets all pairs; those to come are preconditioned or not. */
void pairs_reset(struct pairs *history, bool preconditioned);

/* The trial was accepted as step `step`: h is the gradient now, and `candidate` becomes the newest
 * pair if `keep`. products[0 … pairs) belong to the pairs, oldest first, products[pairs] to the
 * candidate. Makes room by dropping the oldest pair; picks the next candidate slot. */
void pairs_accept(struct pairs *history, const struct pairs_products *products, bool keep,
                  uint64_t step);

/* Drops oldest pairs while the scaled R is ill-conditioned; returns how many. */
uint32_t pairs_condition(struct pairs *history);

/* u and w of the formula above, `pairs` elements each, oldest first. */
void pairs_direction(const struct pairs *history, double *u, double *w);

void pairs_serialize(struct codec *codec, struct pairs *history);

#endif
