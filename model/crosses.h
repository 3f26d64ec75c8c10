/* The crosses of a row of a table that a model has. Inside model/ only. */
#ifndef DML_MODEL_CROSSES_H
#define DML_MODEL_CROSSES_H

#include <stdint.h>

#include "model/model.h"

struct cross_mapper; /* opaque */

/* NULL if the model has no crosses. */
struct cross_mapper *cross_mapper_new(const struct model *model);
void cross_mapper_free(struct cross_mapper *mapper); /* harmless on NULL */

/* From now on rows have that column's missing cell, until all are forgotten. */
void cross_mapper_miss(struct cross_mapper *mapper, uint32_t column);
void cross_mapper_forget_missed(struct cross_mapper *mapper);

/* A row begins; it has a value of a column: of a number itself, else the feature that it has in the
 * model; and it ends, which answers the ranks of its crosses that the model has, *count of them,
 * valid until the next row. Each has the value table->cross_value. */
void cross_mapper_begin(struct cross_mapper *mapper);
void cross_mapper_see_number(struct cross_mapper *mapper, uint32_t column, double value);
void cross_mapper_see(struct cross_mapper *mapper, uint32_t column, uint64_t id);
const uint64_t *cross_mapper_end(struct cross_mapper *mapper, uint32_t *count);

#endif
