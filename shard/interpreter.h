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

/* Decodes a program without fault (program_fault()), and checks that the shard has its slots:
 * ERROR_INTERNAL if not. Either way release the list. */
int operation_list_read(struct operation_list *list, const struct blob *program, uint32_t slots);
void operation_list_release(struct operation_list *list);

/* Runs all but the operations that act first, block by block, and appends the encoded scalars.
 * `derivative_exponent` is that of the evaluation whose sum the registers hold. */
void interpreter_run(const struct operation_list *list, struct registers *registers,
                     int derivative_exponent, struct bytes *scalars);

#endif
