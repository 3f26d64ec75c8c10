#include "replica/mixing.h"

#include <stdlib.h>

#include "base/memory.h"

void mixing_release(struct mixing *mixing) {
    kronecker_work_free(mixing->work);
    kronecker_free(mixing->kronecker);
    free(mixing->pull);
    *mixing = (struct mixing){0};
}

void mixing_set_up(struct mixing *mixing, const struct layout *layout) {
    mixing_release(mixing);
    mixing->used = objective_is_mixed(layout);
}

const char *mixing_take(struct mixing *mixing, const struct layout *layout,
                        const struct bulk *factors) {
    bool used = mixing->used;
    if (!used || factors->length != kronecker_size(layout) * sizeof(double))
        return "factors came of other coordinates than there are";
    mixing_release(mixing);
    mixing->used = used;
    mixing->kronecker = kronecker_new(layout, (const double *)factors->data);
    if (!mixing->kronecker)
        return "factors came that are none";
    mixing->work = kronecker_work_new(mixing->kronecker);
    mixing->pull = memory_new(layout_parameters(layout), sizeof *mixing->pull);
    mixing->set = true;
    return NULL;
}

/* Adds a tensor's part, whose rows have these penalties, or 1, to what weights cost. */
static double pull_of(const struct layout_tensor *tensor, const struct coordinate *columns,
                      double l2, const double *vector, double *pull) {
    double cost = 0;
    for (uint64_t j = 0; j < tensor->rows; j++)
        for (uint64_t k = 0; k < tensor->columns; k++) {
            uint64_t i = tensor->first + j * tensor->columns + k;
            double penalty = columns ? columns[j].penalty : 1;
            pull[i] = l2 * penalty * vector[i];
            cost += pull[i] * vector[i];
        }
    return cost / 2;
}

void mixing_leave(struct mixing *mixing, const struct layout *layout,
                  const struct coordinate *columns, double l2, double *vector) {
    kronecker_turn(mixing->kronecker, mixing->work, vector);
    mixing->change = (struct objective_change){
        .kronecker = mixing->kronecker, .columns = columns, .pull = mixing->pull};
    for (uint32_t t = 0; t < layout->count; t++)
        if (layout->tensor[t].regularized)
            mixing->change.penalty +=
                pull_of(&layout->tensor[t], t == 0 ? columns : NULL, l2, vector, mixing->pull);
}
