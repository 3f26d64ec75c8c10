#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "objective/objective.h"

enum { ROWS = 300, FEATURES = 200, OUTPUTS = 3, VALUES = ROWS * FEATURES };
enum { PARAMETERS = (FEATURES + 1) * OUTPUTS };

/* For curvature, which costs more a feature. Short rows follow each other over the features. */
enum { CURVED = 45, SHORT = CURVED / 9 };
enum { CURVED_PARAMETERS = (CURVED + 1) * OUTPUTS };
enum { TRIANGLE = CURVED_PARAMETERS * (CURVED_PARAMETERS + 1) / 2 };

/* A fixed data set, small enough that every start of a replica can compute its gradients. */
struct canned {
    uint32_t start[ROWS + 1], short_start[ROWS + 1];
    uint32_t feature[VALUES], short_feature[ROWS * SHORT];
    float value[VALUES];
    double label[ROWS];
    uint32_t lists_start[3], lists_class[2]; /* none, and two of three classes */
    struct label_lists lists;
    double parameters[PARAMETERS];
    int16_t exponent[FEATURES + 1];
};

struct outcome {
    int64_t sum[PARAMETERS];
    double loss;
    double derivative_max;
};

static void fill(struct canned *canned) {
    struct random random;
    random_init(&random, 7);
    for (uint32_t i = 0; i < ROWS; i++) {
        canned->start[i + 1] = (i + 1) * FEATURES;
        canned->short_start[i + 1] = (i + 1) * SHORT;
        canned->label[i] = (double)random_below(&random, 2);
    }
    for (uint32_t i = 0; i < VALUES; i++) {
        canned->feature[i] = i % FEATURES;
        canned->value[i] = (float)(random_unit(&random) - 0.5);
    }
    for (uint32_t i = 0; i < ROWS * SHORT; i++)
        canned->short_feature[i] = i % CURVED;
    for (uint32_t i = 0; i < PARAMETERS; i++)
        canned->parameters[i] = 4 * (random_unit(&random) - 0.5);
    canned->lists_start[2] = canned->lists_class[1] = 2;
    canned->lists = (struct label_lists){2, canned->lists_start, canned->lists_class};
    for (uint32_t j = 0; j <= FEATURES; j++)
        canned->exponent[j] = (int16_t)(52 + j % 3);
}

/* Of networks fewer rows: without fused products in hardware they take long. A network of every
 * activation and precision, of units that fill lanes and leave some over. */
enum { UNITS = 21, UNITS_ABOVE = 9, NETWORK_ROWS = 50 };
enum {
    NETWORK_PARAMETERS =
        (FEATURES + 1) * UNITS + (UNITS + 1) * UNITS_ABOVE + (UNITS_ABOVE + 1) * OUTPUTS
};
enum { TENSORS = 6 };

static struct objective_shape shape_of(enum objective_kind kind, uint32_t features) {
    return (struct objective_shape){.kind = kind,
                                    .features = features,
                                    .outputs = objective_outputs(objective_of(kind), OUTPUTS),
                                    .intercept = true,
                                    .loss = objective_defaults(kind)};
}

static struct rows dense_rows(const struct canned *canned, uint32_t features) {
    return (struct rows){.count = ROWS,
                         .features = features,
                         .values = ROWS * features,
                         .dense = true,
                         .type = VALUE_FLOAT,
                         .value = canned->value,
                         .label = canned->label,
                         .lists = &canned->lists};
}

static struct rows sparse_rows(const struct canned *canned, uint32_t features,
                               const uint32_t *start, const uint32_t *feature) {
    struct rows rows = dense_rows(canned, features);
    rows.dense = false;
    rows.values = start[ROWS];
    rows.start = start;
    rows.feature = feature;
    return rows;
}

static uint64_t hash_of(const struct canned *canned, enum objective_kind kind, bool dense,
                        uint64_t seed) {
    struct objective_shape shape = shape_of(kind, FEATURES);
    /* The sums of 300 values below ½ fit, and the scale is so fine that the last bits of a
     * derivative change the hash. */
    struct objective_scale scale = {.uniform = 54, .bounds = bounds_of_one(6)};
    struct rows rows = dense ? dense_rows(canned, FEATURES)
                             : sparse_rows(canned, FEATURES, canned->start, canned->feature);
    struct outcome *outcome = memory_new(1, sizeof *outcome);
    struct objective_scratch *scratch = objective_scratch_new(&shape);
    struct objective_result result;
    objective_block(&shape, &scale, &rows, canned->parameters, outcome->sum, scratch, &result);
    outcome->loss = result.loss;
    outcome->derivative_max = result.maxima.value[0];
    uint64_t hash = hash64_seeded(outcome, sizeof *outcome, seed);
    objective_scratch_free(scratch);
    free(outcome);
    return hash;
}

/* Dense rows, and sparse ones so short that they are added in the other way. */
static uint64_t hash_of_curvature(const struct canned *canned, enum objective_kind kind, bool dense,
                                  uint64_t seed) {
    struct objective_shape shape = shape_of(kind, CURVED);
    struct objective_sample sample = {.exponent = canned->exponent,
                                      .examples = ROWS,
                                      .derivative_exponent = 6,
                                      .drawing = {.rate = 0.05, .floor = 0.1, .dice = 1}};
    struct rows rows =
        dense ? dense_rows(canned, CURVED)
              : sparse_rows(canned, CURVED, canned->short_start, canned->short_feature);
    struct objective_scratch *scratch = objective_scratch_new(&shape);
    struct objective_curved curved;
    int64_t *triangle = memory_new(TRIANGLE, sizeof *triangle);
    objective_curvature(&shape, &sample, &rows, 1, canned->parameters, triangle, scratch, &curved);
    double totals[] = {curved.trace_leverage, curved.trace, (double)curved.drawn};
    uint64_t hash = hash64_seeded(triangle, TRIANGLE * sizeof *triangle, seed);
    hash = hash64_seeded(totals, sizeof totals, hash);
    objective_scratch_free(scratch);
    free(triangle);
    return hash;
}

static uint64_t hash_of_network(const struct canned *canned, const struct network *network,
                                bool dense, uint64_t seed) {
    struct objective_shape shape = shape_of(OBJECTIVE_SOFTMAX, FEATURES);
    struct objective_scale scale = {.uniform = 54, .bounds = {.count = TENSORS}};
    for (uint32_t t = 0; t < TENSORS; t++)
        scale.bounds.exponent[t] = 8;
    shape.network = *network;
    struct rows rows = dense ? dense_rows(canned, FEATURES)
                             : sparse_rows(canned, FEATURES, canned->start, canned->feature);
    rows.count = NETWORK_ROWS;
    struct layout layout = objective_layout(&shape);
    double *parameters = memory_new(NETWORK_PARAMETERS, sizeof *parameters);
    int64_t *sum = memory_new(NETWORK_PARAMETERS, sizeof *sum);
    layout_start(&layout, 0, NETWORK_PARAMETERS, parameters);
    struct objective_scratch *scratch = objective_scratch_new(&shape);
    struct objective_result result;
    objective_block(&shape, &scale, &rows, parameters, sum, scratch, &result);
    uint64_t hash = hash64_seeded(sum, NETWORK_PARAMETERS * sizeof *sum, seed);
    hash = hash64_seeded(&result.loss, sizeof result.loss, hash);
    hash = hash64_seeded(result.maxima.value, TENSORS * sizeof(double), hash);
    objective_scratch_free(scratch);
    free(parameters);
    free(sum);
    return hash;
}

static uint64_t hash_of_networks(const struct canned *canned, uint64_t hash) {
    for (int activation = 0; activation < ACTIVATIONS; activation++)
        for (int precision = PRECISION_DOUBLE; precision <= PRECISION_FLOAT; precision++)
            for (int dense = 0; dense < 2; dense++) {
                const struct network network = {.layers = 2,
                                                .units = {UNITS, UNITS_ABOVE},
                                                .activation = (enum activation)activation,
                                                .precision = (enum precision)precision,
                                                .seed = 1};
                hash = hash_of_network(canned, &network, dense, hash);
            }
    return hash;
}

uint64_t objective_proof(void) {
    struct canned *canned = memory_new(1, sizeof *canned);
    fill(canned);
    uint64_t hash = 0;
    for (int kind = 0; kind < OBJECTIVES; kind++)
        for (int dense = 0; dense < 2; dense++) {
            hash = hash_of(canned, (enum objective_kind)kind, dense, hash);
            if (objective_of((enum objective_kind)kind)->second)
                hash = hash_of_curvature(canned, (enum objective_kind)kind, dense, hash);
        }
    hash = hash_of_networks(canned, hash);
    free(canned);
    return hash;
}
