/* Programs (wire/program.h) on the registers: run, and their scalars encoded. */
#ifndef DML_SHARD_PROGRAMS_H
#define DML_SHARD_PROGRAMS_H

#include "shard/pass_plan.h"
#include "shard/registers.h"

/* Runs a program where the registers are: FACTOR, if there is one, then the operations on vectors
 * of rows, and then the others, fused pass by fused pass, except those that act before or after
 * (SWAP, CHECK, BEGIN); and appends the encoded scalars. PRECONDITION applies the factor in force.
 * `bounds` are those of the evaluation whose sum the registers hold. 0, or ERROR_UNAVAILABLE from a
 * device. */
int operation_list_run(const struct operation_list *list, struct registers *registers,
                       const struct bounds *bounds, struct bytes *scalars);

#endif
