/* Pseudo-random permutations of [0, count) as functions: any element by itself, without memory.
 *
 * A balanced Feistel network of PERMUTATION_ROUNDS rounds permutes the numbers of 2h bits, with the
 * least h ≥ 1 for which 4^h ≥ count; a result that is not below `count` is put through again until
 * one is. So orders that follow from a seed are the same everywhere. doc/FORMATS.md has the
 * formulae: what is stored, and the bits of models, depend on them. Not for secrets. */
#ifndef DML_BASE_PERMUTATION_H
#define DML_BASE_PERMUTATION_H

#include <stdint.h>

#define PERMUTATION_ROUNDS 6

/* Key number `number` of those that follow from a seed, or from another key. */
uint64_t permutation_key(uint64_t seed, uint64_t number);

/* Where `index` < count goes. */
uint64_t permutation_at(uint64_t index, uint64_t count, uint64_t key);

/* What goes to `place` < count. */
uint64_t permutation_inverse(uint64_t place, uint64_t count, uint64_t key);

#endif
