/* Operations of programs on vectors of rows. */
#ifndef DML_SHARD_ROWS_MEASURE_H
#define DML_SHARD_ROWS_MEASURE_H

struct bounds;         /* base/bounds.h */
struct operation_list; /* shard/pass_plan.h */
struct registers;      /* shard/registers.h */
struct yield;          /* shard/registers.h */

/* Runs the operations on vectors of rows of a program, in their order; the others are passed over.
 * `yields` are those of the whole program. 0, or ERROR_UNAVAILABLE from a device. */
int rows_run(const struct operation_list *list, struct registers *registers,
             const struct bounds *bounds, struct yield *yields);

#endif
