/* What each kind of evaluation computes over one chunk: a function a kind. A chunk is computed by
 * one thread in a fixed order, so the result depends on the chunk and the point alone. */
#ifndef DML_REPLICA_KERNELS_H
#define DML_REPLICA_KERNELS_H

#include "objective/objective.h"
#include "replica/work.h"
#include "wire/evaluation.h"

/* What a thread computes with, and its sums. */
struct kernel_place {
    const struct objective_shape *shape;
    const struct objective_scale *scale;
    const struct objective_sample *sample; /* of the curvature */
    const double *parameters;              /* the point */
    int64_t *sums; /* of the evaluation's layout; NULL: only totals and maxima */
    struct objective_scratch *scratch;
};

/* Computes chunk `number`, whose rows these are, as the part of `parts` says that it belongs to,
 * and adds what comes out to `computed` and, unless a bound was exceeded, to the place's sums.
 * ERROR_INTERNAL if it belongs to none. */
int kernel_run(const struct kernel_place *place, const struct evaluation_parts *parts,
               uint32_t number, const struct rows *rows, struct computed *computed);

/* Records that a chunk belongs to no part. */
int kernel_no_part(uint32_t number);

/* Adds what came out of a chunk of part `part`, of which its kind uses `result` or `curved`;
 * `values` are the stored values of its rows. */
void computed_add_chunk(struct computed *computed, const struct evaluation_parts *parts,
                        uint32_t part, const struct objective_result *result,
                        const struct objective_curved *curved, uint64_t values);

/* Nothing computed, for an evaluation of these parts. */
void computed_init(struct computed *computed, const struct evaluation_parts *parts);

/* Adds what was computed elsewhere in the same evaluation; the first error stays. */
void computed_add(struct computed *into, const struct computed *part);

#endif
