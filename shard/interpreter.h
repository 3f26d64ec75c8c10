/* Runs the block operations of programs on the registers. */
#ifndef DML_SHARD_INTERPRETER_H
#define DML_SHARD_INTERPRETER_H

#include <stddef.h>

#include "shard/registers.h"
#include "wire/program.h"

struct operation_list {
    struct operation *items; /* owned */
    size_t count, capacity;
};

/* Decodes a program that program_fault() has found sound. ERROR_INTERNAL if it names a slot that
 * the shard does not have. Release the list in any case. */
int operation_list_read(struct operation_list *list, const struct blob *program, uint32_t slots);
void operation_list_release(struct operation_list *list);

/* The weight that gradients of the program are taken with; 0: it takes none. */
double operation_list_weight(const struct operation_list *list);

/* Runs a program on vectors of the host: FACTOR, if there is one, and then the operations sweep by
 * sweep, except those that act before or after (SWAP, CHECK, BEGIN), and appends the encoded
 * scalars. PRECONDITION applies the factor in force. `bounds` are those of the evaluation whose sum
 * the registers hold. */
void interpreter_run(const struct operation_list *list, struct registers *registers,
                     const struct bounds *bounds, struct bytes *scalars);

/* FACTOR and PRECONDITION alone, on vectors of the host. `*added` is what FACTOR yields. */
void interpreter_factor(const struct operation *operation, struct registers *registers,
                        const struct bounds *bounds, double *added);
void interpreter_precondition(const struct operation *operation, const struct registers *registers);

#endif
