/* What is shared by finding the factors of a network's coordinates and using them. */
#ifndef DML_OBJECTIVE_KRONECKER_PARTS_H
#define DML_OBJECTIVE_KRONECKER_PARTS_H

#include <stdint.h>

#include "objective/kronecker.h"

/* Eigenvalues that are kept of a side of n elements. */
static inline uint64_t kronecker_rank(uint64_t n) {
    return n < KRONECKER_RANK ? n : KRONECKER_RANK;
}

/* Doubles that a side of n elements takes: base, roots, and a row of n for each root. */
uint64_t kronecker_side_size(uint64_t n);

#endif
