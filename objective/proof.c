#include "objective/proof.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "objective/second.h"

struct proof_data *proof_data_new(void) {
    struct proof_data *data = memory_new(1, sizeof *data);
    struct random random;
    random_init(&random, 7);
    for (uint32_t i = 0; i < PROOF_ROWS; i++) {
        data->start[i + 1] = (i + 1) * PROOF_FEATURES;
        data->short_start[i + 1] = (i + 1) * PROOF_SHORT;
        data->label[i] = (double)random_below(&random, 2);
    }
    for (uint32_t i = 0; i < PROOF_VALUES; i++) {
        data->feature[i] = i % PROOF_FEATURES;
        data->value[i] = (float)(random_unit(&random) - 0.5);
    }
    for (uint32_t i = 0; i < PROOF_ROWS * PROOF_SHORT; i++)
        data->short_feature[i] = i % PROOF_HESSIAN_FEATURES;
    for (uint32_t i = 0; i < PROOF_PARAMETERS; i++)
        data->parameters[i] = 4 * (random_unit(&random) - 0.5);
    memcpy(data->parted, data->parameters, sizeof data->parted);
    data->parted[PROOF_FEATURES] = data->parted[PROOF_HESSIAN_FEATURES] = 1;
    data->parted[PROOF_FEATURES + 1] = data->parted[PROOF_HESSIAN_FEATURES + 1] = -0.5;
    data->lists_start[2] = data->lists_class[1] = 2;
    data->lists = (struct label_lists){2, data->lists_start, data->lists_class};
    for (uint32_t j = 0; j <= PROOF_FEATURES; j++)
        data->exponent[j] = (int16_t)(52 + j % 3);
    return data;
}

static struct objective_shape shape_of(enum objective_kind kind, uint32_t features) {
    return (struct objective_shape){.kind = kind,
                                    .features = features,
                                    .outputs = objective_outputs(objective_of(kind), PROOF_OUTPUTS),
                                    .intercept = true,
                                    .loss = objective_defaults(kind)};
}

static const double *parameters_of(const struct proof_data *data, enum objective_kind kind) {
    return objective_of(kind)->parts_outputs ? data->parted : data->parameters;
}

static struct rows dense_rows(const struct proof_data *data, uint32_t features) {
    return (struct rows){.count = PROOF_ROWS,
                         .features = features,
                         .values = (uint64_t)PROOF_ROWS * features,
                         .dense = true,
                         .type = VALUE_FLOAT,
                         .value = data->value,
                         .label = data->label,
                         .lists = &data->lists};
}

static struct rows sparse_rows(const struct proof_data *data, uint32_t features,
                               const uint32_t *start, const uint32_t *feature) {
    struct rows rows = dense_rows(data, features);
    rows.dense = false;
    rows.values = start[PROOF_ROWS];
    rows.start = start;
    rows.feature = feature;
    return rows;
}

/* The sums of 300 values below a half fit, and the scale is so fine that the last bits of a
 * derivative change them. */
struct proof_case proof_linear(const struct proof_data *data, enum objective_kind kind,
                               bool dense) {
    return (struct proof_case){
        .shape = shape_of(kind, PROOF_FEATURES),
        .scale = {.uniform = 54, .bounds = bounds_of_one(6)},
        .rows = dense ? dense_rows(data, PROOF_FEATURES)
                      : sparse_rows(data, PROOF_FEATURES, data->start, data->feature),
        .parameters = parameters_of(data, kind)};
}

struct proof_case proof_curvature(const struct proof_data *data, enum objective_kind kind,
                                  bool dense) {
    return (struct proof_case){.shape = shape_of(kind, PROOF_HESSIAN_FEATURES),
                               .rows = dense ? dense_rows(data, PROOF_HESSIAN_FEATURES)
                                             : sparse_rows(data, PROOF_HESSIAN_FEATURES,
                                                           data->short_start, data->short_feature),
                               .parameters = parameters_of(data, kind)};
}

struct proof_case proof_network(struct proof_data *data, enum activation activation,
                                enum precision precision, bool dense) {
    struct proof_case network = proof_linear(data, OBJECTIVE_SOFTMAX, dense);
    network.shape.network = (struct network){.layers = 2,
                                             .units = {PROOF_UNITS, PROOF_UNITS_ABOVE},
                                             .activation = activation,
                                             .precision = precision,
                                             .seed = 1};
    network.scale.bounds.count = PROOF_TENSORS;
    for (uint32_t t = 0; t < PROOF_TENSORS; t++)
        network.scale.bounds.exponent[t] = 8;
    network.rows.count = PROOF_NETWORK_ROWS;
    network.rows.values = (uint64_t)PROOF_NETWORK_ROWS * PROOF_FEATURES;
    network.parameters = data->network_parameters;
    struct layout layout = objective_layout(&network.shape);
    layout_start(&layout, 0, PROOF_NETWORK_PARAMETERS, data->network_parameters);
    return network;
}

/* The least that goes through whole pieces and a rest in every kernel. Every start of a replica
 * waits for this proof, that of a device for its own alone. */
enum { START_ROWS = 90, START_NETWORK_ROWS = 30 };

static void take_first(struct proof_case *data, uint32_t count) {
    struct rows *rows = &data->rows;
    assert(count <= rows->count);
    rows->count = count;
    rows->values = rows->dense ? (uint64_t)count * rows->features : rows->start[count];
}

struct proof_outcome {
    int64_t sum[PROOF_PARAMETERS];
    double loss;
    double derivative_max;
};

static struct objective_result compute(const struct proof_case *data, int64_t *sum) {
    struct objective_scratch *scratch = objective_scratch_new(&data->shape);
    struct objective_result result;
    objective_block(&data->shape, &data->scale, &data->rows, data->parameters, sum, scratch,
                    &result);
    objective_scratch_free(scratch);
    return result;
}

static uint64_t hash_of_linear(const struct proof_data *data, enum objective_kind kind, bool dense,
                               uint64_t seed) {
    struct proof_case linear = proof_linear(data, kind, dense);
    take_first(&linear, START_ROWS);
    struct proof_outcome *outcome = memory_new(1, sizeof *outcome);
    struct objective_result result = compute(&linear, outcome->sum);
    outcome->loss = result.loss;
    outcome->derivative_max = result.maxima.value[0];
    uint64_t hash = hash64_seeded(outcome, sizeof *outcome, seed);
    free(outcome);
    return hash;
}

static uint64_t hash_of_curvature(const struct proof_data *data, enum objective_kind kind,
                                  bool dense, uint64_t seed) {
    struct proof_case hessian = proof_curvature(data, kind, dense);
    take_first(&hessian, START_ROWS);
    struct objective_sample sample = {.form = &second_sampled,
                                      .exponent = data->exponent,
                                      .examples = START_ROWS,
                                      .columns = objective_columns(&hessian.shape),
                                      .derivative_exponent = PROOF_HESSIAN_BOUND,
                                      .sampling = proof_sampling};
    struct objective_scratch *scratch = objective_scratch_new(&hessian.shape);
    struct objective_hessian result;
    int64_t *triangle = memory_new(PROOF_TRIANGLE, sizeof *triangle);
    objective_curvature(&hessian.shape, &sample, &hessian.rows, PROOF_HESSIAN_CHUNK,
                        hessian.parameters, triangle, scratch, &result);
    double totals[] = {result.trace_leverage, result.trace, (double)result.sampled};
    uint64_t hash = hash64_seeded(triangle, PROOF_TRIANGLE * sizeof *triangle, seed);
    hash = hash64_seeded(totals, sizeof totals, hash);
    objective_scratch_free(scratch);
    free(triangle);
    return hash;
}

static uint64_t hash_of_network(const struct proof_case *network, uint64_t seed) {
    int64_t *sum = memory_new(PROOF_NETWORK_PARAMETERS, sizeof *sum);
    struct objective_result result = compute(network, sum);
    uint64_t hash = hash64_seeded(sum, PROOF_NETWORK_PARAMETERS * sizeof *sum, seed);
    hash = hash64_seeded(&result.loss, sizeof result.loss, hash);
    hash = hash64_seeded(result.maxima.value, PROOF_TENSORS * sizeof(double), hash);
    free(sum);
    return hash;
}

/* A network of every activation and precision. */
static uint64_t hash_of_networks(struct proof_data *data, uint64_t hash) {
    for (int activation = 0; activation < ACTIVATIONS; activation++)
        for (int precision = PRECISION_DOUBLE; precision <= PRECISION_FLOAT; precision++)
            for (int dense = 0; dense < 2; dense++) {
                struct proof_case network = proof_network(data, (enum activation)activation,
                                                          (enum precision)precision, dense);
                take_first(&network, START_NETWORK_ROWS);
                hash = hash_of_network(&network, hash);
            }
    return hash;
}

/* ---- losses alone ---- */

struct losses_proof {
    double margins[PROOF_ROWS * PROOF_OUTPUTS], work[PROOF_ROWS * PROOF_OUTPUTS];
    double diagonal[PROOF_ROWS * PROOF_OUTPUTS], row[PROOF_ROWS * PROOF_OUTPUTS];
    double loss[PROOF_ROWS];
};

static uint64_t hash_of_losses(const struct proof_data *data, enum objective_kind kind,
                               uint64_t seed) {
    const struct objective *objective = objective_of(kind);
    const struct loss_parameters parameters = objective_defaults(kind);
    const uint32_t outputs = objective_outputs(objective, PROOF_OUTPUTS);
    struct losses_proof *proof = memory_new(1, sizeof *proof);
    for (size_t i = 0; i < PROOF_ROWS * PROOF_OUTPUTS; i++)
        proof->margins[i] = 8 * data->parameters[i % PROOF_PARAMETERS];
    objective->losses(&parameters, PROOF_ROWS, outputs, data->label, proof->margins, proof->loss,
                      proof->work);
    if (objective->second)
        objective->second(&parameters, PROOF_ROWS, outputs, data->label, proof->margins,
                          proof->work, proof->diagonal);
    for (uint32_t i = 0; objective->second_row && i < PROOF_ROWS; i++)
        objective->second_row(outputs, data->label[i], proof->margins + i * outputs, i % outputs,
                              proof->row + i * outputs);
    uint64_t hash = hash64_seeded(proof, sizeof *proof, seed);
    free(proof);
    return hash;
}

uint64_t objective_proof_losses(void) {
    struct proof_data *data = proof_data_new();
    uint64_t hash = 0;
    for (int kind = 0; kind < OBJECTIVES; kind++)
        if (objective_of((enum objective_kind)kind)->labels != LABEL_LISTS)
            hash = hash_of_losses(data, (enum objective_kind)kind, hash);
    free(data);
    return hash;
}

/* ---- all of it ---- */

uint64_t objective_proof(void) {
    struct proof_data *data = proof_data_new();
    uint64_t hash = 0;
    for (int kind = 0; kind < OBJECTIVES; kind++)
        for (int dense = 0; dense < 2; dense++) {
            hash = hash_of_linear(data, (enum objective_kind)kind, dense, hash);
            if (objective_of((enum objective_kind)kind)->second)
                hash = hash_of_curvature(data, (enum objective_kind)kind, dense, hash);
        }
    hash = hash_of_networks(data, hash);
    free(data);
    return hash;
}
