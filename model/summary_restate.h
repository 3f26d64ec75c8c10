/* Estimates as a table shows them: aliased parameters are 0. */
#ifndef DML_MODEL_SUMMARY_RESTATE_H
#define DML_MODEL_SUMMARY_RESTATE_H

#include "model/model.h"

/* Changes the parameters, in the order of model/summary.h, so that aliased ones become 0 and all
 * margins of training rows stay, but for what all outputs of a softmax share. Of two kinds this
 * follows from what features mean:
 *
 *   each row has one of the texts, or bins, of a column: what all of them have goes to the
 * intercept a softmax has a whole class that is aliased: the others become differences from it
 *
 * An aliased parameter of another kind stays as it is, and so do those that it follows from. */
void summary_restate(const struct model_layout *layout, const bool *aliased, double *estimate);

#endif
