/* Apart from objective/on_device.c, so that who only asks links no kernels. */
#include <stddef.h>

#include "objective/on_device.h"

const char *objective_device_cannot(const struct objective_shape *shape, bool curvature) {
    if (shape->plugin)
        return "plug-ins are computed by the CPU";
    if (shape->network.mixed)
        return "networks with the Kronecker preconditioner are computed by the CPU";
    if (curvature && (!objective_of(shape->kind)->second || shape->network.layers))
        return "this objective has no second derivatives";
    return NULL;
}
