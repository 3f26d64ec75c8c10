/* Inside objective/ only: arranges sparse rows in the memory of a device, as
 * objective/device_arrange.h says. */
#ifndef DML_OBJECTIVE_DEVICE_ARRANGED_H
#define DML_OBJECTIVE_DEVICE_ARRANGED_H

#include <stdbool.h>

#include "base/rows.h"
#include "objective/device_bundle.h"
#include "objective/device_chunk.h"

/* How the rows of a chunk will lie. */
struct device_arrangement {
    uint32_t *order, *at; /* as in struct device_chunk, one a row */
    uint32_t straight;
    uint64_t room;  /* values, with those that fill up slices; at most three times the values */
    bool by_column; /* the values lie there column by column, too */
    uint64_t bytes; /* of the device's memory that device_arrange() takes */
};

/* Whether the gradient is better gathered from the columns than scattered from the rows: that needs
 * twice the memory, and once for each chunk a pass over all columns, but adds to a sum once for
 * many values. Not measured on hardware. */
bool device_arranged_by_column(const struct rows *rows);

/* Of sparse rows. Releasing one that is all 0 does nothing. */
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
