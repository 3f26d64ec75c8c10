/* What a replica computes over chunks: the work that its state machine asks for, the answer, and
 * what each kind of evaluation computes over one chunk. */
#ifndef DML_REPLICA_COMPUTE_H
#define DML_REPLICA_COMPUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "numeric/exact.h"
#include "objective/block.h"
#include "objective/second.h"
#include "objective/shape.h"
#include "objective/on_device.h"
#include "wire/evaluation.h"

/* The work that a replica's state machine gives to its threads; `struct computed` is the answer. */
struct computation {
    uint32_t first, count; /* chunks */
    struct evaluation_parts parts;
    uint32_t strip;           /* that all chunks are tiles of; 0 if there are no tiles */
    uint64_t point;           /* number of the point; another point has another; not 0 */
    const double *parameters; /* the point, of tiles its strip, or a vector of rows; does not change
                                 before the answer */
    uint64_t first_number;    /* of a vector of rows: which of its numbers `parameters` begins with,
                                 as it may have those of the chunks' rows alone; else 0 */
    const double *upper;      /* for kinds of the upper layers, whose parameters are these */
    uint32_t tiles_below;     /* the rows of chunk c are those of tile c − this */
    uint64_t *columns; /* not NULL: the columns of the chunks are noted here (replica/needs.h), */
    bool scan_only;    /* and nothing else is done */
    struct scaled_point scaled; /* the same; with `columns` the point is not weights and biases */
    struct objective_change change; /* the same; zeroed: there is none */
    struct bounds bounds;           /* of the evaluation */
    struct row_sampling sampling;   /* of the curvature */
    struct weight_list weights;     /* of LISTED */
    bool sums;                      /* false: only totals and maxima, no integer sums */
    bool clear;                     /* zero the sums first: they hold what nobody wants */
    bool flushed;                   /* gathering comes next, if nothing comes between */
};

/* Rows [first, end) of training; none where both are 0. */
struct row_range {
    uint64_t first, end;
};

struct computed {
    struct totals totals;  /* of the evaluation's parts */
    struct maxima maxima;  /* exact, over the rows whose gradient was asked for */
    bool exceeded;         /* a maximum is beyond its bound: discard the sums */
    bool stopped;          /* stopped before its end: discard everything */
    uint64_t values;       /* stored values of the rows that went into the sums */
    struct row_range rows; /* of sums by rows: no row beyond these is in them */
    int error;             /* 0 or an error code */
    bool device_failed;    /* the error is of the device alone: no more can be computed there */
    char reason[1024];     /* text of the error */
};

/* What comes out of a chunk; its kind of evaluation uses some, and the others are 0. */
struct chunk_result {
    struct objective_result result;
    struct objective_hessian hessian;
    uint64_t values; /* stored values of its rows */
    uint64_t first;  /* number of its first row */
    uint32_t rows;
};

/* What a thread computes a chunk from, and the sums that it adds to. One thread computes a chunk in
 * a fixed order, so the result depends on the chunk and the point alone. */
struct kernel_place {
    const struct objective_shape *shape;
    const struct objective_scale *scale;
    const struct objective_sample *sample; /* of the curvature */
    const double *parameters;              /* as in struct computation, as are these two */
    uint64_t first_number;
    const double *upper;
    const struct sums_sizes *sizes;
    int64_t *sums; /* of the evaluation's layout, of tiles those of the strip; NULL: only totals and
                      maxima */
    struct objective_scratch *scratch;
};

/* Computes the kind of evaluation that chunk `number`, whose rows these are, belongs to by `parts`.
 * Adds the result to `computed` and, unless a bound was exceeded, to the place's sums.
 * ERROR_INTERNAL if the chunk belongs to no part, or its rows are not in vectors of rows that the
 * kind needs. */
int kernel_run(const struct kernel_place *place, const struct evaluation_parts *parts,
               uint32_t number, const struct rows *rows, struct computed *computed);

/* What a row adds to the second derivatives of the kind; NULL if it adds up none. */
const struct second_form *kind_form(uint32_t kind);

/* What a device computes for the kind; OBJECTIVE_DEVICE_NONE: the processor computes it, even
 * beside a device. */
enum objective_device_kind kind_on_device(uint32_t kind);

/* Where the rows of chunk `number` are in a vector of rows: *at, in numbers. Those of the holdout
 * are in none: ERROR_INTERNAL. */
int kernel_find_rows(const struct sums_sizes *sizes, uint32_t number, const struct rows *rows,
                     uint64_t *at);

/* Records that a chunk belongs to no part. */
int kernel_no_part(uint32_t number);

/* Adds what came out of a chunk of part `part`. */
void computed_add_chunk(struct computed *computed, const struct evaluation_parts *parts,
                        uint32_t part, const struct chunk_result *found);

/* The least range that has both. */
struct row_range row_range_join(struct row_range a, struct row_range b);

/* Nothing computed, for an evaluation of these parts. */
void computed_init(struct computed *computed, const struct evaluation_parts *parts);

/* Adds what was computed elsewhere in the same evaluation; the first error stays. */
void computed_add(struct computed *into, const struct computed *part);

#endif
