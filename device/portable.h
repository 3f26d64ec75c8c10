/* Functions that a processor and a device compute to the same bits: compiled by the C compiler, and
 * by nvcc for both sides.
 *
 * They keep to what C17 and CUDA C++ have in common: no compound literals, no designated
 * initialisers, no arrays of variable length, casts from void *, no names that are words of C++. No
 * product is contracted with an addition unless fma() says so, on either side. */
#ifndef DML_DEVICE_PORTABLE_H
#define DML_DEVICE_PORTABLE_H

#include <stdint.h>

#ifdef __CUDACC__
#define PORTABLE __host__ __device__ static inline
#else
#define PORTABLE static inline
#endif

/* *to += value, where other threads may do the same. No order of additions shows in the sum. */
PORTABLE void device_add_i64(int64_t *to, int64_t value) {
#ifdef __CUDA_ARCH__
    atomicAdd((unsigned long long *)to, (unsigned long long)value);
#else
    __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
#endif
}

/* *to += value; what was there before. */
PORTABLE uint32_t device_count_u32(uint32_t *to, uint32_t value) {
#ifdef __CUDA_ARCH__
    return atomicAdd((unsigned int *)to, value);
#else
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
#endif
}

/* *from, where other threads may change it: what it was at some time. */
PORTABLE uint64_t device_read_u64(const uint64_t *from) {
#ifdef __CUDA_ARCH__
    return *(const volatile uint64_t *)from;
#else
    return __atomic_load_n(from, __ATOMIC_RELAXED);
#endif
}

/* *to = the larger of *to and value, where other threads may do the same. */
PORTABLE void device_max_u64(uint64_t *to, uint64_t value) {
#ifdef __CUDA_ARCH__
    atomicMax((unsigned long long *)to, (unsigned long long)value);
#else
    uint64_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (seen < value &&
           !__atomic_compare_exchange_n(to, &seen, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
#endif
}

/* *to |= bits, where other threads may do the same. */
PORTABLE void device_or_u32(uint32_t *to, uint32_t bits) {
#ifdef __CUDA_ARCH__
    atomicOr((unsigned int *)to, bits);
#else
    __atomic_fetch_or(to, bits, __ATOMIC_RELAXED);
#endif
}

#endif
