/* Inside objective/ only: networks on a device, to the bits of network_block(). All is put into the
 * compute queue, in order:
 *
 *   device_network_margins()   rows × K, with biases, in the unit of the labels
 *   device_losses()            of a network
 *   device_network_gradient()  the gradient of each chunk, its maxima, and it, rounded, to the sums
 *
 * Functions answer as those of device/device.h. */
#ifndef DML_OBJECTIVE_DEVICE_NETWORK_H
#define DML_OBJECTIVE_DEVICE_NETWORK_H

#include "objective/device_pass.h"

struct device_network; /* opaque: a shape, and memory for the units and gradients of a pass */

/* The device must outlive it. *out is NULL after an error. */
int device_network_new(struct device *device, const struct objective_shape *shape,
                       struct device_network **out);
void device_network_free(struct device_network *network); /* NULL is fine */

/* The bytes of the device that it takes: from the beginning on; and of a pass for each row, each
 * chunk, and each column that a sparse chunk has values in. */
struct device_network_costs {
    uint64_t fixed, row, dense_chunk, sparse_chunk, column;
};
struct device_network_costs device_network_costs(const struct objective_shape *shape);

/* The parameters of all passes from now on: n doubles on the device, which stay there. */
int device_network_point(struct device_network *network, const double *parameters);

int device_network_margins(struct device_network *network, const struct device_pass *pass);

/* After device_losses() of the same pass. Without pass->sum only maxima are found. */
int device_network_gradient(struct device_network *network, const struct device_pass *pass,
                            const struct bounds *bounds);

/* Waits for the maxima of the `count` chunks of the last gradient. */
int device_network_maxima(struct device_network *network, uint32_t count, struct maxima *maxima);

#endif
