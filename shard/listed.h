/* Operations of programs on listed parameters (wire/program.h): steps over a working set. */
#ifndef DML_SHARD_LISTED_H
#define DML_SHARD_LISTED_H

struct bounds;         /* base/bounds.h */
struct bytes;          /* base/bytes.h */
struct operation_list; /* shard/pass_plan.h */
struct registers;      /* shard/registers.h */
struct yield;          /* shard/registers.h */

/* Runs LIST, SOLVE and SCATTER of a program in their order; the others are passed over. `yields`
 * are those of the whole program, `bounds` those of the last evaluation. What LIST lists is
 * appended to `listed`: how many u32, and the list. 0, or ERROR_UNAVAILABLE from a device. */
int listed_run(const struct operation_list *list, struct registers *registers,
               const struct bounds *bounds, struct yield *yields, struct bytes *listed);

#endif
