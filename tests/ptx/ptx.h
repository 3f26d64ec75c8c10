/* An interpreter of PTX, the text that nvcc makes of kernels: what the compiled kernels compute can
 * be compared with what the processor computes where there is no GPU.
 *
 * It knows the operations that occur in the kernels of this project. Threads of a block run one
 * after the other to their next barrier, in a random order; so do blocks. What is wrong ends the
 * process with a text that names the kernel and the line: an operation that it does not know,
 * memory that is not there or was never written, a barrier that not all threads of a block meet at,
 * and threads that touch the same memory without a barrier between them. */
#ifndef DML_TESTS_PTX_PTX_H
#define DML_TESTS_PTX_PTX_H

#include <stddef.h>
#include <stdint.h>

/* ---- kernels ---- */

struct program; /* a kernel's; opaque */

/* Of the name that the compiler gave it, in the texts kept by the build in folder DML_PTX. */
struct program *ptx_program(const char *name);

size_t ptx_argument_bytes(const struct program *program);

void ptx_run(struct program *program, uint32_t blocks, uint32_t threads, const void *arguments,
             uint64_t seed);

/* ---- memory of the device ---- */

void *ptx_memory_new(size_t bytes); /* NULL: no memory */
void ptx_memory_free(void *memory); /* NULL is fine */

/* From the host, to the host, and within the device. */
void ptx_memory_put(void *to, const void *from, size_t bytes);
void ptx_memory_fill(void *to, int byte, size_t bytes);
void ptx_memory_get(void *to, const void *from, size_t bytes);
void ptx_memory_copy(void *to, const void *from, size_t bytes);

#endif
