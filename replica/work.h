/* What a replica's state machine asks of those who do its arithmetic, and what they answer. */
#ifndef DML_REPLICA_WORK_H
#define DML_REPLICA_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "numeric/totals.h"
#include "wire/evaluation.h"

struct computation {
    uint32_t first, count; /* chunks */
    struct evaluation_parts parts;
    const double *parameters; /* the point; stays as it is until the answer */
    int derivative_exponent;  /* b of the evaluation */
    bool sums;                /* else only totals and maxima: nobody needs the integer sums */
    bool clear;               /* what the sums hold is of no use: zero them first */
};

struct computed {
    struct totals totals;  /* of the evaluation's parts */
    double derivative_max; /* exact, over the rows whose gradient was asked for */
    bool exceeded;         /* a derivative exceeded 2^b: the sums must be thrown away */
    bool stopped;          /* told to stop before its end: all of this must be thrown away */
    uint64_t values;       /* stored values seen that went into the sums */
    int error;             /* 0, or why it could not be done */
    char reason[1024];     /* text of the error */
};

#endif
