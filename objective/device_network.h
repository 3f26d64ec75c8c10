/* Inside objective/ only: networks on a device, to the bits of network_block(). All is put into the
 * compute queue, in order:
 *
 *   device_network_margins()   rows × K, with biases, in the unit of the labels
 *   the losses                 by the caller: derivatives in place of margins, not yet weighted
 *   device_network_gradient()  maxima of each chunk, and its gradient, rounded, to the sums
 *   device_network_results()   brings the maxima to the host
 *
 * Functions answer as those of device/device.h. */
#ifndef DML_OBJECTIVE_DEVICE_NETWORK_H
#define DML_OBJECTIVE_DEVICE_NETWORK_H

#include "objective/device_pass.h"

struct device_network; /* opaque: a shape, and memory for the units of some chunks */

/* The device must outlive it. *out is NULL after an error. */
int device_network_new(struct device *device, const struct objective_shape *shape, bool dense,
                       struct device_network **out);
void device_network_free(struct device_network *network); /* NULL is fine */

/* How many bytes of the device it takes: at once, and for each row, chunk, and column of a sparse
 * chunk that a pass is over. */
struct device_network_room {
    uint64_t fixed, row, chunk, column;
};
struct device_network_room device_network_room(const struct objective_shape *shape, bool dense);

/* What a network asks of a chunk besides its rows. */
struct device_network_chunk {
    uint32_t columns; /* that it has values in; of dense rows 0 */
    bool weighs;      /* whether a row has a weight that is not 0 */
    const void *list; /* on the device: where the caller has put the list */
};

/* Finds it, all but `list`: that comes as `bytes` of the host, valid until the next call. Of dense
 * rows there are none. */
struct device_network_chunk device_network_list(struct device_network *network,
                                                const struct rows *rows, const void **list,
                                                size_t *bytes);

/* The parameters of all passes from now on: n doubles on the device, which stay there. */
int device_network_point(struct device_network *network, const double *parameters);

/* `chunks` are those of the pass. */
int device_network_margins(struct device_network *network, const struct device_pass *pass,
                           const struct device_network_chunk *chunks);

/* After device_network_margins() of the same pass. `loss` is each chunk's, on the device. With sum
 * == NULL only maxima are found. */
int device_network_gradient(struct device_network *network, const struct device_pass *pass,
                            const double *loss, const struct bounds *bounds);

/* Waits for the maxima of the last gradient, and writes those of each chunk, and whether it is
 * exceeded. */
int device_network_results(struct device_network *network, const struct device_pass *pass,
                           const struct bounds *bounds, struct objective_result *const *results);

#endif
