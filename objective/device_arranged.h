/* Inside objective/ only: how chunks come to the memory of a device. Small arrays are bundled, the
 * columns of a chunk are listed, and sparse rows are arranged. */
#ifndef DML_OBJECTIVE_DEVICE_ARRANGED_H
#define DML_OBJECTIVE_DEVICE_ARRANGED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rows.h"
#include "device/device.h"
#include "objective/device_chunk.h"

/* ---- bundles ----
 *
 * Many small arrays that lie one after the other in the memory of a device come there as one copy.
 * Each copy costs a GPU as much as some ten kilobytes of it do. */

/* What arrays are aligned to. */
#define BUNDLE_ALIGNMENT 256

struct device_bundle {
    struct device *device;
    enum device_queue queue;
    char *to; /* where it begins */
    unsigned char *bytes;
    uint64_t length, capacity;
};

void device_bundle_init(struct device_bundle *bundle, struct device *device,
                        enum device_queue queue);
void device_bundle_release(struct device_bundle *bundle); /* forgets what was not flushed */

/* Will have put an array to `to`, which is aligned, once it is flushed. `from` may change as soon
 * as it returns. If the next one begins at the next such address, the two are one copy, and what
 * lies between them is overwritten: flush before putting to other memory of the device, which may
 * begin there. 0, or ERROR_UNAVAILABLE. */
int device_bundle_put(struct device_bundle *bundle, void *to, const void *from, uint64_t bytes);
int device_bundle_flush(struct device_bundle *bundle);

/* ---- columns ----
 *
 * The columns that a sparse chunk has values in, and the values of each in the order of rows: for
 * gradients of its columns alone, each added up row by row. */

struct device_columns; /* opaque: memory for making lists */

struct device_columns *device_columns_new(uint32_t features);
void device_columns_free(struct device_columns *columns); /* harmless on NULL */

/* The list of the chunk's columns, valid until the next call, in this order, all uint32_t:
 *
 *   column[count]       by first appearance
 *   start[count + 1]    which values are column c's: from start[c] to start[c + 1]
 *   value[2·values]     of each its row, and its number among the chunk's values */
const void *device_columns_list(struct device_columns *columns, const struct rows *rows,
                                uint32_t *count, size_t *bytes);

/* ---- sparse rows, arranged as objective/device_sparse.h says ---- */

/* How the rows of a chunk will lie. */
struct device_arrangement {
    uint32_t *order, *at; /* as in struct device_chunk, one a row */
    uint32_t straight;
    uint64_t room;  /* values, with those that fill up slices; at most three times the values */
    bool by_column; /* the values lie there column by column, too */
    uint64_t bytes; /* of the device's memory that device_arrange() takes */
};

/* Whether the gradient should be gathered column by column and not scattered row by row. To gather
 * needs twice the memory, and a pass over all columns for each chunk, but adds to a sum once for
 * many values. Not measured on hardware. */
bool device_arranged_by_column(const struct rows *rows);

/* Arranges sparse rows. Releasing an arrangement that is all 0 does nothing. */
void device_arrangement_init(struct device_arrangement *arrangement, const struct rows *rows,
                             bool by_column);
void device_arrangement_release(struct device_arrangement *arrangement);

/* Memory of the device for one chunk at a time, aligned to 256 bytes: the chunk as it is read, and
 * what arranging it needs. */
uint64_t device_arrange_scratch(const struct device_arrangement *arrangement,
                                const struct rows *rows);

/* Puts the rows into the bundle's queue, through the scratch memory, and arranges them in `memory`,
 * which is aligned as above; the bundle is flushed. Sets what of a chunk is about them. The
 * arrangement and the rows may go as soon as it returns. 0, or ERROR_UNAVAILABLE. */
int device_arrange(struct device_bundle *bundle, const struct rows *rows,
                   const struct device_arrangement *arrangement, void *scratch, void *memory,
                   struct device_chunk *chunk);

#endif
