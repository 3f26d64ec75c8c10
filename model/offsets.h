/* Models whose rows have offsets or exposures: what model.json says of them, and what such a model
 * asks of the rows that it scores. */
#ifndef DML_MODEL_OFFSETS_H
#define DML_MODEL_OFFSETS_H

#include <jansson.h>
#include <stdbool.h>

#include "model/model.h"

bool offsets_needed(const struct model_layout *layout);

/* Whether each row needs one that is in no column of the model's table. */
bool offsets_needed_beside(const struct model_layout *layout, enum row_property property);

/* The member `offsets` of model.json: the names of those that each row has. A new reference. */
json_t *offsets_json(const struct model_layout *layout);

/* Reads it from model.json, which `all` is. ERROR_DATA if it names another. */
int offsets_read(const json_t *all, const char *path, struct model_layout *layout);

/* Whether a file that is read with these options has what the model needs, and nothing that it does
 * not know. A column of a table is looked for when the file is read. ERROR_USAGE. */
int offsets_check_options(const struct model_layout *layout, const char *path,
                          const struct source_options *options);

/* Whether a pack has what the model needs: ERROR_DATA. What the model does not know is left out. */
int offsets_check_pack(const struct model_layout *layout, const char *path,
                       const struct source_report *report);

#endif
