/* Whether a device computes the bits of the processor: on the data of objective_proof(). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/family.h"
#include "objective/halves.h"
#include "objective/on_device.h"
#include "objective/proof.h"

/* Enough for the largest case, so that no chunk must be copied twice. */
#define MEMORY_BYTES (UINT64_C(16) << 20)

struct proof_result {
    struct objective_device_result result;
    int64_t sum[PROOF_NETWORK_PARAMETERS];
};

static int give(void *context, uint32_t number, struct rows *rows) {
    const struct proof_case *data = context;
    (void)number;
    *rows = data->rows;
    return 0;
}

/* An evaluation of the data as its only chunk, and the `count` sums of it. */
static int compute(struct device *device, const struct objective_device_settings *settings,
                   const double *parameters, const struct objective_device_work *work,
                   struct objective_device_result *result, int64_t *sum, uint64_t count) {
    struct objective_device *on;
    bool stopped;
    int code = objective_device_new(device, settings, &on);
    if (!code)
        code = objective_device_point(on, parameters);
    if (!code)
        code = objective_device_compute(on, work, result, &stopped);
    if (!code)
        code = objective_device_gather(on, sum, count);
    objective_device_free(on);
    return code;
}

static struct objective_device_settings device_settings(struct proof_case *data) {
    return (struct objective_device_settings){.shape = data->shape,
                                              .exponent = data->scale.exponent,
                                              .uniform = data->scale.uniform,
                                              .memory = MEMORY_BYTES,
                                              .chunk = give,
                                              .context = data};
}

static void find_here(const struct proof_case *data, struct proof_result *found) {
    struct objective_scratch *scratch = objective_scratch_new(&data->shape);
    objective_block(&data->shape, &data->scale, &data->rows, data->parameters, found->sum, scratch,
                    &found->result.result);
    objective_scratch_free(scratch);
}

/* Finds bounds that hold: an evaluation that exceeds one has no sums to compare. */
static void find_within_bounds(struct proof_case *data, struct proof_result *found) {
    struct bounds *bounds = &data->scale.bounds;
    find_here(data, found);
    if (!found->result.result.exceeded)
        return;
    for (uint32_t i = 0; i < bounds->count; i++)
        bounds->exponent[i] = fixed_derivative_exponent(found->result.result.maxima.value[i]);
    memset(found, 0, sizeof *found);
    find_here(data, found);
}

static bool is_same(const struct proof_result *a, const struct proof_result *b) {
    const struct objective_result *one = &a->result.result, *other = &b->result.result;
    return memcmp(&one->loss, &other->loss, sizeof one->loss) == 0 && !one->exceeded &&
           !other->exceeded && one->maxima.count == other->maxima.count &&
           memcmp(one->maxima.value, other->maxima.value, sizeof one->maxima.value) == 0 &&
           memcmp(a->sum, b->sum, sizeof a->sum) == 0;
}

static int differs(const struct device *device, const struct proof_case *data, const char *what) {
    return error_set(ERROR_CONFIG,
                     "%s: it computes other bits than the CPU: in the %s of `%s` over %s rows. "
                     "Use `device = cpu`, and report this",
                     device_name(device), what, objective_name(data->shape.kind),
                     data->rows.dense ? "dense" : "sparse");
}

static int prove(struct device *device, struct proof_case *data) {
    if (objective_device_cannot(&data->shape, false))
        return 0;
    struct proof_result *found = memory_new(2, sizeof *found);
    find_within_bounds(data, &found[1]);
    const struct objective_device_settings settings = device_settings(data);
    const struct objective_device_work work = {
        .kind = OBJECTIVE_DEVICE_GRADIENT, .count = 1, .sums = true, .bounds = data->scale.bounds};
    int code = compute(device, &settings, data->parameters, &work, &found[0].result, found[0].sum,
                       objective_parameters(&data->shape));
    if (!code && !is_same(&found[0], &found[1]))
        code =
            differs(device, data, family_of(&data->shape)->rounds_chunks ? "network" : "gradient");
    free(found);
    return code;
}

/* ---- products and transposes ---- */

enum { PROOF_MARGINS = PROOF_ROWS * PROOF_OUTPUTS };

struct proof_halves {
    int64_t margins[PROOF_MARGINS];
    int64_t sum[PROOF_PARAMETERS];
    struct objective_device_result transposed;
};

static int halves_on_device(struct device *device, struct proof_case *data,
                            const double *derivatives, struct proof_halves *found) {
    const struct objective_device_settings settings = device_settings(data);
    struct objective_device_result product;
    int64_t none[PROOF_PARAMETERS];
    uint64_t n = objective_parameters(&data->shape);
    struct objective_device_work work = {.kind = OBJECTIVE_DEVICE_PRODUCT,
                                         .count = 1,
                                         .bounds = data->scale.bounds,
                                         .margins = found->margins};
    int code = compute(device, &settings, data->parameters, &work, &product, none, n);
    work.kind = OBJECTIVE_DEVICE_TRANSPOSE;
    work.sums = true;
    work.derivatives = derivatives;
    return code ? code
                : compute(device, &settings, data->parameters, &work, &found->transposed,
                          found->sum, n);
}

static int prove_halves(struct device *device, struct proof_case *data) {
    if (!objective_has_products(&data->shape))
        return 0;
    struct proof_halves *found = memory_new(2, sizeof *found);
    double *derivatives = memory_new(PROOF_MARGINS, sizeof *derivatives);
    /* Any will do as derivatives: the margins of the processor are, within the bound. */
    struct objective_scratch *scratch = objective_scratch_new(&data->shape);
    struct objective_result result;
    objective_product(&data->shape, NULL, &data->rows, data->parameters, found[1].margins, scratch,
                      &result);
    memcpy(derivatives, found[1].margins, sizeof found[1].margins);
    objective_transpose(&data->shape, &data->scale, &data->rows, derivatives, found[1].sum, scratch,
                        &found[1].transposed.result);
    objective_scratch_free(scratch);
    int code = halves_on_device(device, data, derivatives, &found[0]);
    const struct objective_result *one = &found[0].transposed.result,
                                  *other = &found[1].transposed.result;
    bool same = memcmp(found[0].margins, found[1].margins, sizeof found->margins) == 0 &&
                memcmp(found[0].sum, found[1].sum, sizeof found->sum) == 0 &&
                one->maxima.value[0] == other->maxima.value[0] && !one->exceeded &&
                !other->exceeded;
    if (!code && !same)
        code = differs(device, data, "products");
    free(derivatives);
    free(found);
    return code;
}

/* ---- second derivatives ---- */

struct hessian_totals {
    struct objective_hessian result;
    int64_t triangle[PROOF_TRIANGLE];
};

static int hessian_on_device(struct device *device, const int16_t *exponent,
                             struct proof_case *data, struct hessian_totals *hessian) {
    const struct objective_device_settings settings = {.shape = data->shape,
                                                       .curvature = true,
                                                       .block_columns =
                                                           objective_columns(&data->shape),
                                                       .uniform = data->scale.uniform,
                                                       .exponents = exponent,
                                                       .examples = PROOF_ROWS,
                                                       .memory = MEMORY_BYTES,
                                                       .chunk = give,
                                                       .context = data};
    const struct objective_device_work work = {.kind = OBJECTIVE_DEVICE_CURVATURE,
                                               .first = PROOF_HESSIAN_CHUNK,
                                               .count = 1,
                                               .sums = true,
                                               .bounds = bounds_of_one(PROOF_HESSIAN_BOUND),
                                               .sampling = proof_sampling};
    uint64_t n = objective_parameters(&data->shape);
    struct objective_device_result result = {0};
    int code = compute(device, &settings, data->parameters, &work, &result, hessian->triangle,
                       n * (n + 1) / 2);
    hessian->result = result.hessian;
    return code;
}

static void hessian_here(const struct proof_case *data, const int16_t *exponent,
                         struct hessian_totals *hessian) {
    const struct objective_sample sample = {.form = &second_sampled,
                                            .exponent = exponent,
                                            .examples = PROOF_ROWS,
                                            .columns = objective_columns(&data->shape),
                                            .derivative_exponent = PROOF_HESSIAN_BOUND,
                                            .sampling = proof_sampling};
    struct objective_scratch *scratch = objective_scratch_new(&data->shape);
    objective_curvature(&data->shape, &sample, &data->rows, PROOF_HESSIAN_CHUNK, data->parameters,
                        hessian->triangle, scratch, &hessian->result);
    objective_scratch_free(scratch);
}

/* Where the bound was exceeded, what was added until then is of no use. */
static bool is_hessian_alike(const struct hessian_totals *a, const struct hessian_totals *b) {
    const struct objective_hessian *one = &a->result, *other = &b->result;
    bool totals =
        memcmp(&one->trace_leverage, &other->trace_leverage, sizeof one->trace_leverage) == 0 &&
        memcmp(&one->trace, &other->trace, sizeof one->trace) == 0 &&
        one->sampled == other->sampled && one->exceeded == other->exceeded;
    return totals && (one->exceeded || (one->terms == other->terms &&
                                        memcmp(a->triangle, b->triangle, sizeof a->triangle) == 0));
}

static int prove_curvature(struct device *device, const struct proof_data *proof,
                           enum objective_kind kind, bool dense) {
    struct proof_case data = proof_curvature(proof, kind, dense);
    if (objective_device_cannot(&data.shape, true))
        return 0;
    struct hessian_totals *hessian = memory_new(2, sizeof *hessian);
    hessian_here(&data, proof->exponent, &hessian[1]);
    int code = hessian_on_device(device, proof->exponent, &data, &hessian[0]);
    if (!code && !is_hessian_alike(&hessian[0], &hessian[1]))
        code = differs(device, &data, "second derivatives");
    free(hessian);
    return code;
}

/* ---- all of it ---- */

int objective_device_prove(struct device *device) {
    struct proof_data *data = proof_data_new();
    int code = 0;
    for (int dense = 0; dense < 2 && !code; dense++) {
        for (int kind = 0; kind < OBJECTIVES && !code; kind++) {
            struct proof_case linear = proof_linear(data, (enum objective_kind)kind, dense);
            code = prove(device, &linear);
            if (!code)
                code = prove_halves(device, &linear);
            if (!code)
                code = prove_curvature(device, data, (enum objective_kind)kind, dense);
        }
        if (!code) {
            for (int activation = 0; activation < ACTIVATIONS && !code; activation++)
                for (int precision = PRECISION_DOUBLE; precision <= PRECISION_FLOAT && !code;
                     precision++) {
                    struct proof_case network = proof_network(data, (enum activation)activation,
                                                              (enum precision)precision, dense);
                    code = prove(device, &network);
                }
        }
    }
    free(data);
    return code;
}
