/* Some chunks of canned rows, computed on a device and by objective_block(). */
#ifndef DML_TESTS_UNIT_ON_DEVICE_BENCH_H
#define DML_TESTS_UNIT_ON_DEVICE_BENCH_H

#include "objective/on_device.h"
#include "tests/unit/canned.h"

enum { BENCH_CHUNKS = 6 };
extern const uint32_t bench_rows[BENCH_CHUNKS];

/* Of every objective. */
enum { BENCH_SHAPES = 20 };
extern const struct objective_shape bench_shapes[BENCH_SHAPES];
const struct objective_shape *bench_shape(enum objective_kind kind);

struct bench {
    struct canned *canned;
    struct rows rows[BENCH_CHUNKS];
    uint32_t *start[BENCH_CHUNKS];
    uint32_t asked; /* how often rows were asked for */
    struct objective_scale scale;
    struct device *device;
    uint64_t room; /* of the device at first */
    struct objective_device *on;
};

/* Canned rows, or those with columns of this scale, in chunks; and a device. */
void bench_begin(struct bench *bench, const struct objective_shape *shape, bool dense,
                 enum value_type type, bool weighted, const double *scale, uint64_t seed);

/* Releases all; the device must have its room again, unless it was lost. */
void bench_end(struct bench *bench);

/* Brings shape and point to the device; `memory` as in the settings. */
int bench_open(struct bench *bench, uint64_t memory);

struct found {
    struct objective_device_result results[BENCH_CHUNKS];
    int64_t sum[CANNED_PARAMETERS];
    int64_t margins[CANNED_ROWS * CANNED_OUTPUTS_MAX]; /* of a product */
};

/* What the device finds in all chunks. */
int bench_compute(struct bench *bench, enum objective_device_kind kind, bool sums,
                  struct found *found);

/* Asserts that it is what the processor finds. Whether a bound was exceeded. */
bool bench_assert_same(const struct bench *bench, enum objective_device_kind kind, bool sums,
                       const struct found *found);

/* Computes a product, and a transpose of made-up derivatives, where the shape has them, in so much
 * memory. */
void bench_assert_products(struct bench *bench, uint64_t memory);

/* Computes gradients, with sums and without, and losses. */
void bench_assert_computes(struct bench *bench);

#endif
