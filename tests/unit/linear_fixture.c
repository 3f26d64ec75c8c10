#include "tests/unit/linear_fixture.h"

#include <math.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/device_arranged.h"

static double even(struct random *random) { /* −1 to 1 */
    return 2 * random_unit(random) - 1;
}

/* ---- rows ---- */

static void set_value(enum value_type type, void *value, size_t i, double scale,
                      struct random *random) {
    if (type == VALUE_BYTE)
        ((uint8_t *)value)[i] = (uint8_t)random_below(random, 256);
    else if (type == VALUE_FLOAT)
        ((float *)value)[i] = (float)even(random);
    else if (type == VALUE_DOUBLE)
        ((double *)value)[i] = even(random) * scale;
}

/* Some rows are empty, and some full. */
static void fill_chunk(const struct linear_kind *kind, const double *scale, struct random *random,
                       struct linear_chunk *chunk) {
    const uint32_t n = kind->features, rows = (uint32_t)random_below(random, kind->rows_most + 1);
    const enum value_type type = (enum value_type)random_below(random, 4);
    const size_t most = (size_t)rows * n;
    chunk->start = memory_new(rows + 1, sizeof *chunk->start);
    chunk->feature = memory_new(most, sizeof *chunk->feature);
    chunk->value = type == VALUE_ONES ? NULL : memory_new(most, sizeof(double));
    uint32_t at = 0;
    for (uint32_t i = 0; i < rows; i++) {
        double density = random_below(random, 8) ? kind->density : (double)random_below(random, 2);
        for (uint32_t j = 0; j < n; j++)
            if (kind->dense || random_unit(random) < density) {
                chunk->feature[at] = j;
                set_value(type, chunk->value, at++, scale[j], random);
            }
        chunk->start[i + 1] = at;
    }
    chunk->rows = (struct rows){.count = rows,
                                .features = n,
                                .values = at,
                                .dense = kind->dense,
                                .type = type,
                                .start = kind->dense ? NULL : chunk->start,
                                .feature = kind->dense ? NULL : chunk->feature,
                                .value = chunk->value};
}

/* ---- exponents ---- */

/* Σ|value| and how many of each column; of the intercept the rows. */
static void measure(const struct linear_problem *problem, double *sum, uint64_t *count) {
    const uint32_t n = objective_columns(&problem->shape);
    for (size_t c = 0; c < LINEAR_CHUNKS; c++) {
        const struct rows *rows = &problem->chunk[c].rows;
        for (size_t i = 0; i < rows->values; i++) {
            uint32_t j = problem->chunk[c].feature[i];
            sum[j] += fabs(value_at(rows->type, rows->value, i));
            count[j]++;
        }
    }
    sum[n] = (double)problem->rows;
    count[n] = problem->rows;
}

static void choose_exponents(struct linear_problem *problem, bool by_column) {
    const size_t columns = (size_t)problem->shape.features + 1;
    double *sum = memory_new(columns, sizeof *sum);
    uint64_t *count = memory_new(columns, sizeof *count);
    int16_t *exponent = memory_new(columns, sizeof *exponent);
    measure(problem, sum, count);
    problem->uniform = FIXED_EXPONENT_MAX;
    for (size_t j = 0; j < columns; j++) {
        exponent[j] = (int16_t)fixed_exponent(sum[j], count[j]);
        problem->uniform = exponent[j] < problem->uniform ? exponent[j] : problem->uniform;
    }
    free(sum);
    free(count);
    if (by_column)
        problem->exponent = exponent;
    else
        free(exponent);
}

/* ---- problems ---- */

/* Of outputs that share their weights the derivatives add up to at most 1 too. */
static void fill_derivatives(struct linear_problem *problem, struct random *random) {
    const uint32_t outputs = problem->shape.outputs;
    problem->derivatives = memory_new(problem->rows * outputs, sizeof(double));
    for (size_t i = 0; i < problem->rows * outputs; i++) {
        double small = random_below(random, 4) ? 1 : pow(10, -300 * random_unit(random));
        problem->derivatives[i] = even(random) * small / outputs;
    }
}

struct linear_problem *linear_new(const struct linear_kind *kind, uint64_t seed) {
    struct linear_problem *problem = memory_new(1, sizeof *problem);
    const uint32_t n = kind->features;
    double *scale = memory_new(n, sizeof *scale);
    struct random random;
    random_init(&random, seed);
    problem->shape = (struct objective_shape){
        .kind = kind->kind, .features = n, .outputs = kind->outputs, .intercept = kind->intercept};
    for (uint32_t j = 0; j < n; j++)
        scale[j] = pow(10, kind->decades * even(&random));
    for (size_t c = 0; c < LINEAR_CHUNKS; c++) {
        fill_chunk(kind, scale, &random, &problem->chunk[c]);
        problem->rows += problem->chunk[c].rows.count;
    }
    problem->parameters = objective_parameters(&problem->shape);
    problem->point = memory_new(problem->parameters, sizeof(double));
    uint32_t weights = objective_weights(objective_of(kind->kind), kind->outputs);
    for (uint64_t p = 0; p < problem->parameters; p++)
        problem->point[p] = even(&random) / (p < (uint64_t)n * weights ? scale[p / weights] : 1);
    fill_derivatives(problem, &random);
    choose_exponents(problem, kind->by_column);
    free(scale);
    return problem;
}

void linear_free(struct linear_problem *problem) {
    for (size_t c = 0; c < LINEAR_CHUNKS; c++) {
        free(problem->chunk[c].start);
        free(problem->chunk[c].feature);
        free(problem->chunk[c].value);
    }
    free(problem->point);
    free(problem->derivatives);
    free(problem->exponent);
    free(problem);
}

/* ---- on the processor ---- */

void linear_margins(const struct linear_problem *problem, double *margins) {
    struct objective_scratch *scratch = objective_scratch_new(&problem->shape);
    for (size_t c = 0; c < LINEAR_CHUNKS; c++) {
        const struct rows *rows = &problem->chunk[c].rows;
        prepare_for(&problem->shape, rows, NULL, false, scratch);
        struct batches batches = batches_over(&problem->shape, rows, problem->point, scratch);
        for (uint32_t first = 0; first < rows->count; first += batches.most) {
            struct row_batch batch = batch_at(rows, first, batches.most);
            if (rows->dense)
                dense_margins(&scratch->weights, &batch, problem->point, scratch, margins);
            else
                sparse_margins(&scratch->weights, &batch, problem->point, NULL, margins);
            margins += (size_t)batch.count * scratch->weights.outputs;
        }
    }
    objective_scratch_free(scratch);
}

/* The derivatives that the weights of a batch see; the scratch has room for them. */
static double *batch_derivatives(const struct linear_problem *problem,
                                 const struct row_batch *batch, const double *derivatives,
                                 struct objective_scratch *scratch) {
    const uint32_t outputs = problem->shape.outputs;
    double *seen = scratch->common ? scratch->common : scratch->margins;
    if (!scratch->common) {
        memcpy(seen, derivatives, (size_t)batch->count * outputs * sizeof *seen);
        return seen;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        seen[i] = 0;
        for (uint32_t k = 0; k < outputs; k++)
            seen[i] += derivatives[i * outputs + k];
    }
    return seen;
}

static void chunk_gradient(const struct linear_problem *problem, const struct rows *rows,
                           const double *derivatives, struct objective_scratch *scratch,
                           int64_t *sum) {
    const struct objective_scale scale = {.exponent = problem->exponent,
                                          .uniform = problem->uniform};
    prepare_for(&problem->shape, rows, NULL, true, scratch);
    struct batches batches = batches_over(&problem->shape, rows, problem->point, scratch);
    for (uint32_t first = 0; first < rows->count; first += batches.most) {
        struct row_batch batch = batch_at(rows, first, batches.most);
        if (problem->shape.intercept)
            batch_bias_gradient(&scratch->bias, &scale, &batch, derivatives, sum);
        if (rows->dense) /* leaves the rows as doubles for the gradient */
            dense_margins(&scratch->weights, &batch, problem->point, scratch, scratch->work);
        double *seen = batch_derivatives(problem, &batch, derivatives, scratch);
        if (rows->dense)
            dense_gradient(&scratch->weights, &scale, &batch, seen, sum, scratch);
        else
            sparse_gradient(&scratch->weights, &scale, &batch, seen, sum);
        derivatives += (size_t)batch.count * problem->shape.outputs;
    }
    if (rows->dense)
        dense_finish(&scratch->weights, &scale, sum, scratch);
}

void linear_gradient(const struct linear_problem *problem, int64_t *sum) {
    struct objective_scratch *scratch = objective_scratch_new(&problem->shape);
    const double *derivatives = problem->derivatives;
    memset(sum, 0, problem->parameters * sizeof *sum);
    for (size_t c = 0; c < LINEAR_CHUNKS; c++) {
        const struct rows *rows = &problem->chunk[c].rows;
        chunk_gradient(problem, rows, derivatives, scratch, sum);
        derivatives += (size_t)rows->count * problem->shape.outputs;
    }
    objective_scratch_free(scratch);
}

/* ---- on a device ---- */

void *linear_put(struct device *device, const void *from, size_t bytes) {
    void *memory;
    if (device_new(device, bytes, &memory) ||
        (from && device_put(device, QUEUE_COMPUTE, memory, from, bytes))) {
        fprintf(stderr, "%s\n", error_text());
        exit(1);
    }
    return memory;
}

void linear_put_table(struct linear_device *on) {
    device_delete(on->device, (void *)(uintptr_t)on->pass.chunks);
    on->pass.chunks = linear_put(on->device, on->chunk, sizeof on->chunk);
}

static void put_chunks(const struct linear_problem *problem, struct linear_device *on) {
    for (uint32_t c = 0; c < LINEAR_CHUNKS; c++) {
        const struct rows *rows = &problem->chunk[c].rows;
        struct device_chunk *chunk = &on->chunk[c];
        *chunk = (struct device_chunk){.rows = rows->count,
                                       .number = c,
                                       .values = rows->values,
                                       .type = rows->type,
                                       .first_row = on->pass.rows};
        if (!rows->dense) {
            chunk->start = linear_put(on->device, rows->start,
                                      ((size_t)rows->count + 1) * sizeof *rows->start);
            chunk->feature =
                linear_put(on->device, rows->feature, rows->values * sizeof *rows->feature);
        }
        if (rows->value)
            chunk->value =
                linear_put(on->device, rows->value, rows->values * value_bytes(rows->type));
        on->pass.rows += rows->count;
        on->pass.values += rows->values;
        on->pass.rows_most = rows->count > on->pass.rows_most ? rows->count : on->pass.rows_most;
        if (rows->values > on->pass.values_most)
            on->pass.values_most = rows->values;
    }
    linear_put_table(on);
}

/* What was put there as derivatives, and their sums by row. */
static void put_rows(const struct linear_problem *problem, struct linear_device *on) {
    const uint32_t outputs = problem->shape.outputs;
    const size_t count = problem->rows * outputs;
    on->pass.margins = linear_put(on->device, problem->derivatives, count * sizeof(double));
    if (!objective_of(problem->shape.kind)->shares_weights)
        return;
    double *common = memory_new(problem->rows, sizeof *common);
    for (size_t i = 0; i < count; i++)
        common[i / outputs] += problem->derivatives[i];
    on->pass.common = linear_put(on->device, common, problem->rows * sizeof *common);
    free(common);
}

struct linear_device *linear_device_new(const struct linear_problem *problem) {
    struct linear_device *on = memory_new(1, sizeof *on);
    struct objective_scratch *scratch = objective_scratch_new(&problem->shape);
    on->device = test_device();
    on->weights = scratch->weights.outputs;
    on->pass.device = on->device;
    on->pass.shape = &problem->shape;
    on->pass.dense = problem->chunk[0].rows.dense;
    on->pass.batch_rows =
        family_of(&problem->shape)->compute->batch_rows(&problem->shape, on->pass.dense);
    on->pass.count = LINEAR_CHUNKS;
    put_chunks(problem, on);
    put_rows(problem, on);
    on->pass.parameters =
        linear_put(on->device, problem->point, problem->parameters * sizeof(double));
    if (problem->exponent)
        on->pass.exponent =
            linear_put(on->device, problem->exponent,
                       ((size_t)problem->shape.features + 1) * sizeof *problem->exponent);
    on->pass.uniform = problem->uniform;
    on->pass.sum = linear_put(on->device, NULL, problem->parameters * sizeof(int64_t));
    device_fill(on->device, QUEUE_COMPUTE, on->pass.sum, 0, problem->parameters * sizeof(int64_t));
    objective_scratch_free(scratch);
    return on;
}

void linear_arrange(const struct linear_problem *problem, unsigned columns,
                    struct linear_device *on) {
    on->pass.by_column = 0;
    for (uint32_t c = 0; c < LINEAR_CHUNKS; c++) {
        const struct rows *rows = &problem->chunk[c].rows;
        struct device_arrangement arrangement;
        device_arrangement_init(&arrangement, rows, columns >> c & 1);
        void *scratch = linear_put(on->device, NULL, device_arrange_scratch(&arrangement, rows));
        void *memory = linear_put(on->device, NULL, arrangement.bytes);
        struct device_bundle bundle;
        device_bundle_init(&bundle, on->device, QUEUE_COMPUTE);
        if (device_arrange(&bundle, rows, &arrangement, scratch, memory, &on->chunk[c]))
            exit(1);
        device_bundle_release(&bundle);
        on->pass.by_column += arrangement.by_column;
        device_delete(on->device, scratch);
        device_arrangement_release(&arrangement);
    }
    linear_put_table(on);
}

void linear_device_free(struct linear_device *on) {
    device_close(on->device);
    free(on);
}
