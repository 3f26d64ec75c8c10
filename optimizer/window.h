/* The window of common directions, from scalars alone: which of the last directions are in it, in
 * which slots of the shards they lie, and their products.
 *
 * A direction p lies on the shards as it was kept, rounded, and so do the margins X p, which are
 * exact for what is kept. The next one is formed in the slot `candidate`. It is measured against
 * the others, and enters when a step with it is made. Slots go round a ring that has two more than
 * the window: as with pairs (pairs.h), what a checkpoint holds is not overwritten by the next step.
 *
 * Here directions have places, oldest first; the place `count` is the candidate's, so that it may
 * be part of a span before it enters. The struct is plain data: it can be stored and resumed. */
#ifndef DML_OPTIMIZER_WINDOW_H
#define DML_OPTIMIZER_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/codec.h"
#include "base/limits.h"

struct window {
    uint32_t most;                 /* with the candidate; 0: there is no window */
    uint32_t count;                /* that are in it */
    uint16_t slot[DIRECTIONS_MAX]; /* theirs, oldest first */
    uint16_t candidate;            /* the slot of the next one */
    uint64_t serial[WINDOW_MAX];   /* of what is in a slot: never the same for two */
    uint64_t entered;              /* so far: the last serial number */
    double point[DIRECTIONS_MAX];  /* x·p of each, the candidate's as well, over what is
                                      regularised */
    double gram[DIRECTIONS_MAX][DIRECTIONS_MAX]; /* p_i·p_j likewise */
};

void window_init(struct window *window, uint32_t directions);

/* Drops the oldest if no other direction fits in, and says whether it did. */
bool window_make_room(struct window *window);

/* How many directions there are, the candidate included, and the slots of all, oldest first. */
uint32_t window_slots(const struct window *window, uint16_t *slots);

/* The products of the candidate with each of them, itself included, and those of x. */
void window_measured(struct window *window, const double *products, const double *point);

/* The candidate is the newest direction now. */
void window_enter(struct window *window);

void window_serialize(struct codec *codec, struct window *window);

#endif
