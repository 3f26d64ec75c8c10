/* What a shard's folder holds besides whole checkpoints: the epoch that fences out older
 * coordinators, and files that nobody needs any more. */
#ifndef DML_SHARD_FOLDER_H
#define DML_SHARD_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "shard/disk.h"

/* FOLDER/epoch, as it lies there. */
struct epoch_file {
    char magic[8];
    uint64_t epoch;
    uint64_t checksum; /* of what is before it */
};

/* Writes the epoch into the folder, unless it stands there already. ERROR_AGAIN if a higher one
 * does: a newer coordinator works with this folder. ERROR_DATA if what stands there is damaged. */
int folder_fence(const struct disk *disk, const char *folder, uint64_t epoch);

/* Removes the checkpoints of steps before `before` but these, and what was begun for such a step
 * and not finished. Later steps stay, also undone ones: a process that was replaced and does not
 * know it yet must not remove what its successor wrote. So do files with other names. */
int folder_keep(const struct disk *disk, const char *folder, const uint64_t *steps, size_t count,
                uint64_t before);

#endif
