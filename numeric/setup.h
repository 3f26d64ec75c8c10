/* Process-wide settings of the numeric libraries, and proof that a process computes our bits. */
#ifndef DML_NUMERIC_SETUP_H
#define DML_NUMERIC_SETUP_H

#include <stdint.h>

/* One BLAS thread, rounding to nearest, denormals kept. Call once in main, before threads start. */
void numeric_setup(void);

/* ERROR_UNAVAILABLE if OpenBLAS could not have the memory that it takes with its first call: it
 * would ask for it again for ever. Ask before anything is begun that ends in such a call. */
int numeric_memory(void);

/* What computes here, recorded with a run: compiler, CPU family, BLAS kernel, vector math. */
const char *numeric_description(void);

/* A hash of a canned computation with vector kernels and fixed point: what shards must agree on. */
uint64_t numeric_proof_vectors(void);

#endif
