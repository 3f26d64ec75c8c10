/* model.json: what a model is. Inside model/ only. */
#ifndef DML_MODEL_DESCRIPTION_H
#define DML_MODEL_DESCRIPTION_H

#include <jansson.h>

#include "model/model.h"

/* Names in the order of the file, which has so many features: by rising original id. A new
 * reference. */
json_t *description_feature_names(const struct model_layout *layout, uint64_t features);

/* The whole of model.json but its checksums; `details`, an object or NULL, is merged into it. A new
 * reference. */
json_t *description_json(const struct model_layout *layout, uint64_t features, const char *sha256,
                         const json_t *details);

#endif
