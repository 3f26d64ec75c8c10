/* Functions that a processor and a device compute to the same bits: compiled by the C compiler, and
 * by nvcc for both sides.
 *
 * They keep to what C17 and CUDA C++ have in common: no compound literals, no designated
 * initialisers, no arrays of variable length, casts from void *, no names that are words of C++. No
 * product is contracted with an addition unless fma() says so, on either side. */
#ifndef DML_DEVICE_KERNEL_H
#define DML_DEVICE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"

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

/* Kernels: functions that many threads of a device run side by side.
 *
 * A kernel's body is a portable function (device/kernel.h) of the thread's place and of the
 * kernel's arguments, in a header that its C file and its CUDA file both include:
 *
 *     struct scale_arguments {
 *         double *elements;
 *         double by;
 *         uint64_t count;
 *     };
 *     PORTABLE void scale_body(const struct place *place, const struct scale_arguments *arguments,
 *                              void *shared, uint32_t phase) { … }
 *
 * It runs in phases. Between two of them all threads of a block wait for each other; within one
 * they run in any order, or at once. A thread keeps nothing from phase to phase but what it has
 * written to memory or to `shared`, memory of the block that holds anything at first. Blocks know
 * nothing of each other. Arguments point to memory of the device, and take at most
 * KERNEL_ARGUMENTS_MAX bytes.
 *
 * A list of kernels is a file of lines
 *
 *     KERNEL(scale, threads of a block, bytes of `shared`, phases)
 *
 * where `phases` may depend on `arguments`; the comment fma() ends the line if the body calls it.
 * The C file includes this header, the bodies and then the list, which makes
 * `const struct kernel kernel_scale`; the CUDA file, of another name, does the same, which makes
 * what kernel_scale launches. Others declare it by `extern const struct kernel kernel_scale`.
 */

#define KERNEL_ARGUMENTS_MAX 4096
#define KERNEL_THREADS_MAX 1024
#define KERNEL_SHARED_MAX 49152

/* Where a thread is. */
struct place {
    uint32_t block, blocks;
    uint32_t thread, threads; /* within its block */
};

struct kernel {
    const char *name;
    uint32_t threads; /* of a block */
    size_t shared;    /* bytes of a block */
    size_t arguments; /* bytes */
    uint32_t (*phases)(const void *arguments);
    void (*run)(const struct place *place, const void *arguments, void *shared, uint32_t phase);
    void (*launch)(void *stream, uint32_t blocks, const void *arguments); /* NULL without CUDA */
};

#if defined(__CUDACC__)

#define KERNEL(name, thread_count, shared_bytes, phase_count)                                      \
    static_assert(sizeof(struct name##_arguments) <= KERNEL_ARGUMENTS_MAX, "arguments fit");       \
    static_assert((shared_bytes) <= KERNEL_SHARED_MAX, "shared memory fits");                      \
    __global__ void __launch_bounds__(thread_count)                                                \
        name##_kernel(const __grid_constant__ struct name##_arguments given) {                     \
        __shared__ alignas(16) unsigned char shared[(shared_bytes) ? (shared_bytes) : 16];         \
        const struct name##_arguments *arguments = &given;                                         \
        const struct place place = {blockIdx.x, gridDim.x, threadIdx.x, blockDim.x};               \
        const uint32_t phases = (phase_count);                                                     \
        for (uint32_t phase = 0; phase < phases; phase++) {                                        \
            if (phase)                                                                             \
                __syncthreads();                                                                   \
            name##_body(&place, arguments, shared, phase);                                         \
        }                                                                                          \
    }                                                                                              \
    extern "C" void name##_launch(void *stream, uint32_t blocks, const void *arguments);           \
    void name##_launch(void *stream, uint32_t blocks, const void *arguments) {                     \
        name##_kernel<<<blocks, thread_count, 0, (cudaStream_t)stream>>>(                          \
            *(const struct name##_arguments *)arguments);                                          \
    }

#else

#ifdef HAVE_CUDA
#define KERNEL_LAUNCH(name) name##_launch
#else
#define KERNEL_LAUNCH(name) NULL
#endif

#define KERNEL(name, thread_count, shared_bytes, phase_count)                                      \
    _Static_assert(sizeof(struct name##_arguments) <= KERNEL_ARGUMENTS_MAX, "arguments fit");      \
    _Static_assert((shared_bytes) <= KERNEL_SHARED_MAX, "shared memory fits");                     \
    static uint32_t name##_phases(const void *given) {                                             \
        const struct name##_arguments *arguments = given;                                          \
        (void)arguments;                                                                           \
        return (phase_count);                                                                      \
    }                                                                                              \
    static void name##_run(const struct place *place, const void *arguments, void *shared,         \
                           uint32_t phase) {                                                       \
        name##_body(place, arguments, shared, phase);                                              \
    }                                                                                              \
    void name##_launch(void *stream, uint32_t blocks, const void *arguments);                      \
    extern const struct kernel kernel_##name;                                                      \
    const struct kernel kernel_##name = {                                                          \
        #name,         thread_count, shared_bytes,       sizeof(struct name##_arguments),          \
        name##_phases, name##_run,   KERNEL_LAUNCH(name)};

#endif

#endif
