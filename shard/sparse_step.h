/* A step of Downpour over the touched elements alone.
 *
 * Where the gradient of a minibatch is zero, and neither l2 nor l1 pulls, a step changes nothing:
 *
 *     A + 0² = A      x − rate·0/(√A + β) = x      t = x + 0·x, which it is already
 *
 * So the program GRADIENT g, ADAGRAD x A g, ADD t = x leaves the same bits in every register if it
 * goes over the elements whose sums were touched, and over those of centred columns, whose gradient
 * has a share of that by the biases. The gradient is zero elsewhere, and is made so where the step
 * before it had one. This is for the host: a device goes over all of them. */
#ifndef DML_SHARD_SPARSE_STEP_H
#define DML_SHARD_SPARSE_STEP_H

#include <stdbool.h>

#include "shard/pass_plan.h"
#include "shard/registers.h"

/* Whether the program is such a step, and few enough elements are touched. To be asked when the
 * gradient by the biases has been read (scaling_read_biases()). */
bool sparse_step_fits(const struct registers *registers, const struct operation_list *list);

/* Makes it. */
void sparse_step_run(struct registers *registers, const struct bounds *bounds,
                     const struct operation_list *list);

/* A program was run: notes whether t is x now, and what of the gradient may be other than zero.
 * `sparse`: it was run by sparse_step_run(). */
void sparse_step_note(struct registers *registers, const struct operation_list *list, bool sparse);

#endif
