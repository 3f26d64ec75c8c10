/* Turns rows as files have them into terms of a model. Inside model/ only. */
#ifndef DML_MODEL_GATHER_H
#define DML_MODEL_GATHER_H

#include "data/source.h"
#include "model/preparation.h"

struct gathering {
    const struct model *model;
    struct preparation preparation; /* of a model of tables */
    uint64_t unseen;                /* values of features that the model does not have, so far */
};

void gathering_begin(struct gathering *gathering, const struct model *model);
void gathering_end(struct gathering *gathering);

/* Adds the terms of a row. Answers how many of its values belong to features that the model has. */
uint64_t gather_row(struct gathering *gathering, const struct source_rows *rows, uint32_t row,
                    struct terms *terms);

#endif
