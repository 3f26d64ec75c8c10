/* The gradient of a chunk in the coordinates of a network that is mixed. */
#include <string.h>

#include "base/memory.h"
#include "objective/kronecker.h"
#include "objective/network.h"

static void copy_tensor(const struct network_scratch *scratch, uint32_t t, size_t at, size_t n,
                        double *to) {
    const char *from = (const char *)scratch->gradient[t] + at * scratch->kernels->size;
    if (n)
        scratch->kernels->widen(n, from, to);
}

/* All tensors, as the layout has them; of sparse rows, columns without values have 0. */
static void gather(struct network_scratch *scratch, double *vector) {
    const struct layout *layout = &scratch->layout;
    size_t width = scratch->width[1], features = scratch->width[0];
    for (uint32_t t = scratch->dense ? 0 : 1; t < layout->count; t++)
        copy_tensor(scratch, t, 0, layout->tensor[t].rows * layout->tensor[t].columns,
                    vector + layout->tensor[t].first);
    if (scratch->dense)
        return;
    memset(vector, 0, features * width * sizeof *vector);
    for (size_t c = 0; c < scratch->columns; c++)
        copy_tensor(scratch, 0, c * width, width, vector + scratch->column[c] * width);
}

/* By weights of columns as they are, to weights of shifted and scaled ones: base/coordinates.h. */
static void enter_columns(const struct network_scratch *scratch, const struct coordinate *columns,
                          double *vector) {
    size_t width = scratch->width[1];
    const double *bias = vector + scratch->layout.tensor[scratch->layers].first;
    for (size_t j = 0; j < scratch->width[0]; j++)
        for (size_t k = 0; k < width; k++)
            vector[j * width + k] =
                columns[j].scale * (vector[j * width + k] - columns[j].mean * bias[k]);
}

void network_mix(struct network_scratch *scratch, const struct objective_change *change,
                 double weight, struct objective_result *result) {
    size_t n = layout_parameters(&scratch->layout);
    if (!scratch->mixed) {
        scratch->mixed = memory_new(n, sizeof *scratch->mixed);
        scratch->mixing = kronecker_work_new(change->kronecker);
    }
    gather(scratch, scratch->mixed);
    enter_columns(scratch, change->columns, scratch->mixed);
    for (size_t i = 0; i < n; i++)
        scratch->mixed[i] += weight * change->pull[i];
    kronecker_turn(change->kronecker, scratch->mixing, scratch->mixed);
    result->loss += weight * change->penalty;
}
