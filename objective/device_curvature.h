/* Inside objective/ only: second derivatives on a device, with the results of
 * objective_curvature(), chunk for chunk. */
#ifndef DML_OBJECTIVE_DEVICE_CURVATURE_H
#define DML_OBJECTIVE_DEVICE_CURVATURE_H

#include "objective/device_pass.h"

struct device_curvature; /* what a shape's curvature takes on a device; opaque */

/* `exponent` and `examples` are as in struct objective_sample; `slab` is how many bytes the rows
 * may take that are added in one go. The device outlives it. *out is NULL after an error. */
int device_curvature_new(struct device *device, const struct objective_shape *shape,
                         const int16_t *exponent, uint64_t examples, uint64_t slab,
                         struct device_curvature **out);
void device_curvature_free(struct device_curvature *curvature); /* NULL is fine */

/* After device_losses() of the pass, which wants no gradient. Writes a result for each chunk, and
 * adds the terms of the rows that are drawn to `triangle`, in the device's memory; NULL: only the
 * results are wanted. `exponent` is b. Returns when all is done. */
int device_curvature_add(struct device_curvature *curvature, const struct device_pass *pass,
                         const struct objective_drawing *drawing, int exponent, int64_t *triangle,
                         struct objective_curved *curved);

#endif
