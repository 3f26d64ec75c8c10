#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "objective/proof_data.h"

struct outcome {
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

static uint64_t hash_of(const struct proof_case *linear, uint64_t seed) {
    struct outcome *outcome = memory_new(1, sizeof *outcome);
    struct objective_result result = compute(linear, outcome->sum);
    outcome->loss = result.loss;
    outcome->derivative_max = result.maxima.value[0];
    uint64_t hash = hash64_seeded(outcome, sizeof *outcome, seed);
    free(outcome);
    return hash;
}

static uint64_t hash_of_curvature(const struct proof_data *data, enum objective_kind kind,
                                  bool dense, uint64_t seed) {
    struct proof_case curved = proof_curvature(data, kind, dense);
    struct objective_sample sample = {.exponent = data->exponent,
                                      .examples = PROOF_ROWS,
                                      .derivative_exponent = PROOF_CURVED_BOUND,
                                      .drawing = proof_drawing};
    struct objective_scratch *scratch = objective_scratch_new(&curved.shape);
    struct objective_curved result;
    int64_t *triangle = memory_new(PROOF_TRIANGLE, sizeof *triangle);
    objective_curvature(&curved.shape, &sample, &curved.rows, PROOF_CURVED_CHUNK, curved.parameters,
                        triangle, scratch, &result);
    double totals[] = {result.trace_leverage, result.trace, (double)result.drawn};
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
                hash = hash_of_network(&network, hash);
            }
    return hash;
}

uint64_t objective_proof(void) {
    struct proof_data *data = proof_data_new();
    uint64_t hash = 0;
    for (int kind = 0; kind < OBJECTIVES; kind++)
        for (int dense = 0; dense < 2; dense++) {
            struct proof_case linear = proof_linear(data, (enum objective_kind)kind, dense);
            hash = hash_of(&linear, hash);
            if (objective_of((enum objective_kind)kind)->second)
                hash = hash_of_curvature(data, (enum objective_kind)kind, dense, hash);
        }
    hash = hash_of_networks(data, hash);
    free(data);
    return hash;
}
