/* What the processor can compute at most: the measure for kernels that compute much. */
#ifndef DML_BENCH_PEAK_H
#define DML_BENCH_PEAK_H

/* Double-precision operations of a chain-free loop of fma, done `rounds` times on one thread: how
 * many there are. 0 if this processor has no fma that we know. */
double peak_operations(long rounds);

#endif
