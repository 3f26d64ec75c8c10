/* Operations of programs on listed parameters (wire/program.h): steps over a working set. */
#ifndef DML_SHARD_LISTED_H
#define DML_SHARD_LISTED_H

#include <stdbool.h>

struct bounds;         /* base/bounds.h */
struct bytes;          /* base/bytes.h */
struct layout;         /* base/layout.h */
struct operation;      /* wire/program.h */
struct operation_list; /* shard/pass_plan.h */
struct registers;      /* shard/registers.h */
struct yield;          /* shard/registers.h */

/* Runs LIST, SOLVE and SCATTER of a program in their order; the others are passed over. `yields`
 * are those of the whole program, `bounds` those of the last evaluation. What LIST lists is
 * appended to `listed`: how many u32, and the list. 0, or ERROR_UNAVAILABLE from a device. */
int listed_run(const struct operation_list *list, struct registers *registers,
               const struct bounds *bounds, struct yield *yields, struct bytes *listed);

/* Whether the biases that SOLVE lists, behind all weights, are those that it can take the means of
 * columns out by: none, one an output, or any where outputs share the weights. */
bool listed_biases_fit(const struct operation *operation, const struct layout *layout);

#endif
