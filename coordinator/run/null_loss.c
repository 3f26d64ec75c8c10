#include "coordinator/run/null_loss.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

#define CHUNKS_MOST 16

int null_loss_find(struct set *set, const struct objective_shape *shape, double *loss) {
    const struct set_info *info = set_info(set);
    const uint32_t chunks = set_training_chunks(info);
    const uint32_t taken = chunks < CHUNKS_MOST ? chunks : CHUNKS_MOST;
    double loss_sum = 0, weight_sum = 0;
    assert(info->targets && shape->outputs == 1);
    const double intercept = objective_null_intercept(shape, info->targets);
    for (uint32_t i = 0; i < taken; i++) {
        uint32_t number = (uint32_t)((uint64_t)i * chunks / taken);
        struct rows rows;
        int code =
            info->strip_columns ? set_tile(set, number, &rows) : set_chunk(set, number, &rows);
        if (code)
            return code;
        double *margins = memory_new(3 * (size_t)rows.count, sizeof *margins);
        double *losses = margins + rows.count, *work = losses + rows.count;
        for (uint32_t k = 0; k < rows.count; k++)
            margins[k] = intercept + (rows.offset ? rows.offset[k] : 0);
        objective_of(shape->kind)
            ->losses(&shape->loss, rows.count, 1, rows.label, margins, losses, work);
        for (uint32_t k = 0; k < rows.count; k++) {
            double weight = rows.weight ? rows.weight[k] : 1;
            if (weight == 0) /* whatever its label is */
                continue;
            loss_sum += weight * losses[k];
            weight_sum += weight;
        }
        free(margins);
    }
    *loss = weight_sum > 0 ? loss_sum / weight_sum : 0;
    return 0;
}
