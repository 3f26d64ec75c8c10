/* A walk over the features of a model's file, the run's and those that are kept besides, by rising
 * original id. Inside model/ only. */
#ifndef DML_MODEL_MERGE_H
#define DML_MODEL_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

/* The column of the run's feature that is at this place by rising original id. */
static inline uint32_t merge_column(const struct model_layout *layout, uint64_t rank) {
    return layout->original_order ? layout->original_order[rank] : (uint32_t)rank;
}

/* Start it zeroed, with a layout. */
struct merge {
    const struct model_layout *layout;
    uint64_t own, kept; /* how many of each the walk has passed */
};

/* Takes the next feature. Returns true and its number in `kept` if it is a kept one, else false and
 * its column in the run. */
static inline bool merge_next_is_kept(struct merge *merge, uint64_t *number) {
    const struct model_layout *layout = merge->layout;
    const struct model_kept *kept = layout->kept;
    bool none_left = !kept || merge->kept == kept->features;
    *number = merge->own < layout->features ? merge_column(layout, merge->own) : 0;
    if (none_left || (merge->own < layout->features &&
                      layout->feature_id[*number] < kept->feature_id[merge->kept])) {
        merge->own++;
        return false;
    }
    *number = merge->kept++;
    return true;
}

#endif
