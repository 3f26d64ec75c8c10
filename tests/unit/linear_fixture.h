/* Made-up chunks of rows of linear models, on the host and on a device. */
#ifndef DML_TESTS_UNIT_LINEAR_FIXTURE_H
#define DML_TESTS_UNIT_LINEAR_FIXTURE_H

#include "base/random.h"
#include "objective/device_pass.h"
#include "objective/parts.h"
#include "tests/unit/device_fixture.h"

enum { LINEAR_CHUNKS = 4 };

/* What a problem is like. Column j is multiplied by 10^±decades at most, and its weights divided by
 * about as much. */
struct linear_kind {
    enum objective_kind kind;
    uint32_t features, outputs, rows_most;
    bool intercept, dense, by_column; /* exponents by column */
    double decades, density;
};

struct linear_chunk {
    struct rows rows;
    uint32_t *start, *feature;
    void *value;
};

/* Margins and derivatives of all chunks, one behind the other. */
struct linear_problem {
    struct objective_shape shape;
    struct linear_chunk chunk[LINEAR_CHUNKS];
    uint64_t rows, parameters;
    double *point;
    double *derivatives; /* made up */
    int16_t *exponent;   /* NULL: all have `uniform` */
    int uniform;
};

struct linear_problem *linear_new(const struct linear_kind *kind, uint64_t seed);
void linear_free(struct linear_problem *problem);

/* As the processor computes them; the biases are not in the margins. Of outputs that share their
 * weights the margin is one. Weights of rows are in the derivatives, if there are any. */
void linear_margins(const struct linear_problem *problem, double *margins);
void linear_gradient(const struct linear_problem *problem, int64_t *sum);

/* The same on a device. `pass` is what is there; change what is to be changed. */
struct linear_device {
    struct device *device;
    struct device_chunk chunk[LINEAR_CHUNKS]; /* as the table on the device */
    struct device_pass pass;
    uint32_t weights; /* of a column */
};
struct linear_device *linear_device_new(const struct linear_problem *problem);

/* Arranges the rows of sparse chunks; `columns`: of those with a bit set there, by column too. */
void linear_arrange(const struct linear_problem *problem, unsigned columns,
                    struct linear_device *device);
void linear_device_free(struct linear_device *device);

/* Memory of the device with a copy of that. */
void *linear_put(struct device *device, const void *from, size_t bytes);
void linear_put_table(struct linear_device *device);

#endif
