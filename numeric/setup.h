/* Process-wide settings of arithmetic, and proof that a process computes our bits. */
#ifndef DML_NUMERIC_SETUP_H
#define DML_NUMERIC_SETUP_H

#include <stdint.h>

/* Rounding to nearest, denormals kept. Call once in main, before threads start. */
void numeric_setup(void);

/* What computes here, recorded with a run: compiler and CPU family. */
const char *numeric_description(void);

/* A hash of a canned computation with vector kernels and fixed point: what shards must agree on. */
uint64_t numeric_proof_vectors(void);

#endif
