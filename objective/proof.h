/* Inside objective/ only: the fixed data of the proofs, small enough that every start of a replica
 * can compute its gradients. */
#ifndef DML_OBJECTIVE_PROOF_H
#define DML_OBJECTIVE_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "objective/block.h"
#include "objective/shape.h"

enum { PROOF_ROWS = 300, PROOF_FEATURES = 200, PROOF_OUTPUTS = 3 };
enum { PROOF_VALUES = PROOF_ROWS * PROOF_FEATURES };
enum { PROOF_PARAMETERS = (PROOF_FEATURES + 1) * PROOF_OUTPUTS }; /* most of a linear model */

/* For curvature, which costs more a feature. Short rows follow each other over the features. */
enum { PROOF_HESSIAN_FEATURES = 45, PROOF_SHORT = PROOF_HESSIAN_FEATURES / 9 };
enum { PROOF_HESSIAN_PARAMETERS = (PROOF_HESSIAN_FEATURES + 1) * PROOF_OUTPUTS };
enum { PROOF_TRIANGLE = PROOF_HESSIAN_PARAMETERS * (PROOF_HESSIAN_PARAMETERS + 1) / 2 };
enum { PROOF_HESSIAN_CHUNK = 1, PROOF_HESSIAN_BOUND = 6 };
static const struct row_sampling proof_sampling = {.rate = 0.05, .floor = 0.1, .sample_seed = 1};

/* Networks get fewer rows: without fused products in hardware they take long. Units that fill lanes
 * and leave some over. */
enum { PROOF_UNITS = 21, PROOF_UNITS_ABOVE = 9, PROOF_NETWORK_ROWS = 50 };
enum {
    PROOF_NETWORK_PARAMETERS = (PROOF_FEATURES + 1) * PROOF_UNITS +
                               (PROOF_UNITS + 1) * PROOF_UNITS_ABOVE +
                               (PROOF_UNITS_ABOVE + 1) * PROOF_OUTPUTS
};
enum { PROOF_TENSORS = 6 };

struct proof_data {
    uint32_t start[PROOF_ROWS + 1], short_start[PROOF_ROWS + 1];
    uint32_t feature[PROOF_VALUES], short_feature[PROOF_ROWS * PROOF_SHORT];
    float value[PROOF_VALUES];
    double label[PROOF_ROWS];
    uint32_t lists_start[3], lists_class[2]; /* none, and two of three classes */
    struct label_lists lists;
    double parameters[PROOF_PARAMETERS];
    double parted[PROOF_PARAMETERS]; /* the parameters with two biases that fall, in models of both
                                        sizes */
    double network_parameters[PROOF_NETWORK_PARAMETERS]; /* of the last network asked for */
    int16_t exponent[PROOF_FEATURES + 1];
};

/* Release with free(). */
struct proof_data *proof_data_new(void);

/* An evaluation of some of the data, which must outlive it. */
struct proof_case {
    struct objective_shape shape;
    struct objective_scale scale;
    struct rows rows;
    const double *parameters; /* objective_parameters() of the shape */
};
struct proof_case proof_linear(const struct proof_data *data, enum objective_kind kind, bool dense);
struct proof_case proof_network(struct proof_data *data, enum activation activation,
                                enum precision precision, bool dense);

/* Rows and shape for curvature. The rows are dense, or sparse and so short that they are added in
 * the other way. */
struct proof_case proof_curvature(const struct proof_data *data, enum objective_kind kind,
                                  bool dense);

#endif
