/* A small seeded generator (xorshift64*), for tests, schedules and jitter; never for secrets. */
#ifndef DML_BASE_RANDOM_H
#define DML_BASE_RANDOM_H

#include <stdint.h>

/* 2⁶⁴ over the golden ratio: the step of SplitMix64. */
#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

struct random {
    uint64_t state; /* never 0 */
};

static inline void random_init(struct random *random, uint64_t seed) {
    random->state = seed * RANDOM_STEP + UINT64_C(0x632be59bd9b4e019);
    if (!random->state)
        random->state = 1;
}

static inline uint64_t random_next(struct random *random) {
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Spreads the bits of a number over all 64, one to one: the finalizer of SplitMix64 (Steele, Lea
 * and Flood 2014, Fast splittable pseudorandom number generators). Every bit of the argument
 * changes about half of the bits of the result. */
static inline uint64_t random_mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Evenly in [0, limit); limit > 0. */
static inline uint64_t random_below(struct random *random, uint64_t limit) {
    return random_next(random) % limit;
}

/* Evenly in [0, 1). */
static inline double random_unit(struct random *random) {
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

/* Pseudo-random permutations of [0, count) as functions: any element by itself, without memory.
 *
 * A balanced Feistel network of PERMUTATION_ROUNDS rounds permutes the numbers of 2h bits, with the
 * least h ≥ 1 for which 4^h ≥ count; a result that is not below `count` is put through again until
 * one is. So orders that follow from a seed are the same everywhere. doc/FORMATS.md has the
 * formulae: what is stored, and the bits of models, depend on them. Not for secrets. */

#define PERMUTATION_ROUNDS 6

/* Key number `number` of those that follow from a seed, or from another key. */
uint64_t permutation_key(uint64_t seed, uint64_t number);

/* Where `index` < count goes. */
uint64_t permutation_at(uint64_t index, uint64_t count, uint64_t key);

/* What goes to `place` < count. */
uint64_t permutation_inverse(uint64_t place, uint64_t count, uint64_t key);

#endif
