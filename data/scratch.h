/* A copy of a set's chunks on a local disk, for sets that lie where reading is slow. It has those
 * chunks that were asked for, at their places in the set; between them the file has holes. Nothing
 * says which are there: a chunk counts if its checksum is that of the set. So it does not matter
 * who wrote it, whether that process was killed meanwhile, or what the disk made of it; and the
 * replicas of one host share the file, which any of them may write to at any time. */
#ifndef DML_DATA_SCRATCH_H
#define DML_DATA_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

struct scratch; /* opaque */

/* Opens or makes FOLDER/dml-FINGERPRINT.scratch for a set of `bytes`, and the folder. Removes the
 * copies of other sets that no process has open. ERROR_CREATE, ERROR_IO, ERROR_PERMISSION. */
int scratch_open(const char *folder, const char *fingerprint, uint64_t bytes,
                 struct scratch **scratch);

/* Leaves the file for the next run. Harmless on NULL. */
void scratch_close(struct scratch *scratch);

/* What the file has at this place: `length` bytes that may be anything. From any thread. */
const uint8_t *scratch_at(const struct scratch *scratch, uint64_t offset);

/* Puts a chunk into the file. After the first failure (a full disk) nothing is written any more;
 * the log has one line. From any thread. */
void scratch_put(struct scratch *scratch, uint64_t offset, const void *data, size_t length);

#endif
