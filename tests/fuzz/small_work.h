/* What the replicas of the small cluster compute: a loss that depends on a few parameters. */
#ifndef DML_TESTS_FUZZ_SMALL_WORK_H
#define DML_TESTS_FUZZ_SMALL_WORK_H

#include "tests/fuzz/small_cluster.h"

enum {
    ACTIVE = 48,        /* elements that it depends on */
    EXPONENT = 30,      /* the base exponent of all */
    BLOCK_ROWS = 20,    /* of a chunk of training; row i has a value in element i % ACTIVE alone, */
    ROWS = 100,         /* of all */
    ROWS_MOST = 1 << 20 /* of vectors of rows: no set has more */
};

double small_work_curvature(uint32_t element);

/* Does the computation that the replica asked for. Bounds apply if the loss is `squared`. */
void small_work_compute(struct replica_work *work, bool squared, struct computed *answer);

/* Puts the sums of what was computed where the replica asked for them. */
void small_work_gather(struct replica_work *work);

#endif
