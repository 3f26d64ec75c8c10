/* What a replica's state machine asks of those who do its arithmetic, and what they answer. */
#ifndef DML_REPLICA_WORK_H
#define DML_REPLICA_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "numeric/exact.h"

struct computation {
    uint32_t first, count;    /* chunks */
    const double *parameters; /* the point; stays as it is until the answer */
    int derivative_exponent;  /* b of the evaluation */
    bool gradient;            /* else only losses and largest derivatives */
    bool clear;               /* what the sums hold is of no use: zero them first */
};

struct computed {
    struct exact loss;         /* Σ of the chunks' losses */
    struct exact holdout_loss; /* the same over chunks of the holdout, which give nothing else */
    double derivative_max;     /* exact, over all other rows */
    bool exceeded;             /* a derivative exceeded 2^b: the sums must be thrown away */
    bool stopped;              /* told to stop before its end: all of this must be thrown away */
    uint64_t values;           /* stored values seen that went into the sums */
    int error;                 /* 0, or why it could not be done */
    char reason[1024];         /* text of the error */
};

#endif
