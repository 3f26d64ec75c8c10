/* What programs measure with. Times are of the processor, not of the clock on the wall, because
 * others may use the machine. */
#ifndef DML_BENCH_MEASURE_H
#define DML_BENCH_MEASURE_H

#include <stddef.h>

/* Nanoseconds that this thread has computed so far. */
double thread_ns(void);

/* The least nanoseconds of each way of doing a thing, of `turns` turns in which all ways run one
 * after the other. run() does it by way number `way`, from 0 on. */
void least_ns(unsigned turns, size_t ways, void (*run)(void *context, size_t way), void *context,
              double *least);

/* Numbers from -0.5 to 0.5, the same for every call. The caller frees them. */
double *random_numbers(size_t count);

/* Double-precision operations of a chain-free loop of fma, done `rounds` times on one thread: how
 * many there are. They are the most that the processor can compute. 0 if it has no fma that we
 * know. */
double peak_operations(long rounds);

#endif
