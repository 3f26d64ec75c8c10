/* A step of Downpour over the touched elements alone.
 *
 * Where the gradient of a minibatch is zero, and neither l2 nor l1 pulls, a step changes nothing:
 *
 *     A + 0² = A      x − rate·0/(√A + β) = x      t = x + 0·x, which it is already
 *
 * So the program GRADIENT g, ADAGRAD x A g, ADD t = x leaves the same bits in every register if it
 * goes over the elements whose sums were touched, and over those of centred columns, whose gradient
 * has a share of that by the biases. This is for the host: a device goes over all of them.
 *
 * Each element is some lines of memory far apart, and a step takes as long as these take to come.
 * So it reads and writes t alone and not x, which is the same, and leaves the gradient of the step
 * before where that had one and it has none, until somebody looks at x or G:
 * registers_settle(). Where the program
 * begins the next evaluation, which makes the sums void, it zeroes those that it has read. */
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
