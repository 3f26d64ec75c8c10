/* How far predicted numbers are from their targets. Inside model/ only. */
#ifndef DML_MODEL_RESIDUALS_H
#define DML_MODEL_RESIDUALS_H

#include "model/score.h"

struct residuals; /* opaque */

/* `quantile` is that of the pinball loss. */
struct residuals *residuals_new(double quantile);
void residuals_free(struct residuals *residuals); /* harmless on NULL */

void residuals_add(struct residuals *residuals, double prediction, double target, double weight);

/* Sets rmse, mae, r2, pinball and coverage. r2 is NaN if all targets are equal. */
void residuals_finish(const struct residuals *residuals, struct score_figures *result);

#endif
