/* The work that a replica's state machine gives to its threads, and their answer. */
#ifndef DML_REPLICA_WORK_H
#define DML_REPLICA_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "numeric/totals.h"
#include "objective/objective.h"
#include "wire/evaluation.h"

struct computation {
    uint32_t first, count; /* chunks */
    struct evaluation_parts parts;
    uint64_t point;                        /* not 0; of another number it is another point */
    const double *parameters;              /* the point; does not change before the answer */
    const struct objective_change *change; /* nor does this; or NULL */
    struct bounds bounds;                  /* of the evaluation */
    struct objective_drawing drawing;      /* of the curvature */
    bool sums;                             /* false: only totals and maxima, no integer sums */
    bool clear;                            /* zero the sums first: they hold something useless */
};

struct computed {
    struct totals totals; /* of the evaluation's parts */
    struct maxima maxima; /* exact, over the rows whose gradient was asked for */
    bool exceeded;        /* one is beyond its bound: discard the sums */
    bool stopped;         /* stopped before its end: discard everything */
    uint64_t values;      /* stored values seen that went into the sums */
    int error;            /* 0 or an error code */
    bool device_failed;   /* the error is of the device alone: no more can be computed there */
    char reason[1024];    /* text of the error */
};

#endif
