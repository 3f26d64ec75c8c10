/* model.json: what a model is, how its data was read, and the checksums of both files of a model.
 * Inside model/ only. */
#ifndef DML_MODEL_DESCRIPTION_H
#define DML_MODEL_DESCRIPTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

/* A walk over the features of a model's file, the run's and those that are kept besides, by rising
 * original id. */

/* The column of the run's feature that is at this place by rising original id. */
static inline uint64_t merge_column(const struct model_layout *layout, uint64_t rank) {
    return column_order_at(&layout->original_order, rank);
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

/* Names in the order of the file, which has so many features: by rising original id. A new
 * reference. */
json_t *description_feature_names(const struct model_layout *layout, uint64_t features);

/* The whole of model.json but its checksums; `details`, an object or NULL, is merged into it. A new
 * reference. */
json_t *description_json(const struct model_layout *layout, uint64_t features, const char *sha256,
                         const json_t *details);

/* ---- checksums: they show damage to anything that scoring reads ---- */

/* Members of model.json: the SHA-256 of the whole model.safetensors, and that of model.json. */
#define CHECKSUM_TENSORS "tensors_sha256"
#define CHECKSUM_JSON "json_sha256"

/* Puts both members into `all`, of which one is the hash of the tensors' file; they replace members
 * of these names. */
void checksum_add(json_t *all, const char *of_tensors);

/* Adds the checksum of an object that is written as a file of its own: CHECKSUM_JSON alone. */
void checksum_add_own(json_t *all);

/* ERROR_DATA if the object has that member and another hash. */
int checksum_check_own(const json_t *all, const char *path);

/* ERROR_DATA if a member is present and differs from the hash of what was read, that of the
 * tensors' file among them. The paths are for the message. */
int checksum_check(const json_t *all, const char *json_path, const char *of_tensors,
                   const char *tensors_path);

#endif
