/* Kernels for the tests of devices. */
#ifndef DML_TESTS_DEVICE_KERNELS_H
#define DML_TESTS_DEVICE_KERNELS_H

#include "device/kernel.h"

/* Reverses the elements of each block of 64. */
struct reverse_arguments {
    const uint64_t *in;
    uint64_t *out;
};
PORTABLE void reverse_body(const struct place *place, const struct reverse_arguments *arguments,
                           void *shared, uint32_t phase) {
    uint64_t *part = (uint64_t *)shared;
    uint64_t first = (uint64_t)place->block * place->threads;
    if (phase == 0)
        part[place->thread] = arguments->in[first + place->thread];
    else
        arguments->out[first + place->thread] = part[place->threads - 1 - place->thread];
}

/* Adds all elements, of which each thread of all blocks has one, in each of the rounds; and finds
 * the largest. */
struct total_arguments {
    const uint64_t *in;
    int64_t *sum;
    uint64_t *largest;
    uint32_t rounds;
};
PORTABLE void total_body(const struct place *place, const struct total_arguments *arguments,
                         void *shared, uint32_t phase) {
    uint64_t element = arguments->in[(uint64_t)place->block * place->threads + place->thread];
    (void)shared, (void)phase;
    device_add_i64(arguments->sum, (int64_t)element);
    device_max_u64(arguments->largest, element);
}

#endif
