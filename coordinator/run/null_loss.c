#include "coordinator/run/null_loss.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

#define CHUNKS_MOST 16

/* Sums over the rows of weight × loss, and of the weights. */
struct sums {
    double loss, weight;
};

static void add_null_losses(const struct objective_shape *shape, double intercept,
                            const struct rows *rows, struct sums *sums) {
    double *margins = memory_new(3 * (size_t)rows->count, sizeof *margins);
    double *loss = margins + rows->count, *work = loss + rows->count;
    for (uint32_t i = 0; i < rows->count; i++)
        margins[i] = intercept + (rows->offset ? rows->offset[i] : 0);
    objective_of(shape->kind)
        ->losses(&shape->loss, rows->count, 1, rows->label, margins, loss, work);
    for (uint32_t i = 0; i < rows->count; i++) {
        double weight = rows->weight ? rows->weight[i] : 1;
        if (weight == 0) /* whatever its label is */
            continue;
        sums->loss += weight * loss[i];
        sums->weight += weight;
    }
    free(margins);
}

int null_loss_find(struct set *set, const struct objective_shape *shape, double *loss) {
    const struct set_info *info = set_info(set);
    const uint32_t chunks = set_training_chunks(info);
    const uint32_t taken = chunks < CHUNKS_MOST ? chunks : CHUNKS_MOST;
    struct sums sums = {0};
    assert(info->targets && shape->outputs == 1);
    for (uint32_t i = 0; i < taken; i++) {
        uint32_t number = (uint32_t)((uint64_t)i * chunks / taken);
        struct rows rows;
        int code =
            info->strip_columns ? set_tile(set, number, &rows) : set_chunk(set, number, &rows);
        if (code)
            return code;
        add_null_losses(shape, objective_null_intercept(shape, info->targets), &rows, &sums);
    }
    *loss = sums.weight > 0 ? sums.loss / sums.weight : 0;
    return 0;
}
