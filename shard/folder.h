/* A shard's folder apart from its checkpoints: the epoch that keeps older coordinators out, and the
 * removal of files that are not needed any more. */
#ifndef DML_SHARD_FOLDER_H
#define DML_SHARD_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "shard/disk.h"

/* The file FOLDER/epoch, byte for byte. */
struct epoch_file {
    char magic[8];
    uint64_t epoch;
    uint64_t checksum; /* of the fields before it */
};

/* Writes the epoch into the folder, unless the folder holds it already. ERROR_AGAIN if the folder
 * holds a higher one: a newer coordinator works with it. ERROR_DATA if the file is damaged. */
int folder_fence(const struct disk *disk, const char *folder, uint64_t epoch);

/* Removes the checkpoints of steps before `before` except `steps` [count], and temporary files of
 * such steps. Later steps stay, even if the run went back behind them: a process that was replaced
 * and does not know it yet must not remove what its successor wrote. Files with other names stay.
 */
int folder_keep(const struct disk *disk, const char *folder, const uint64_t *steps, size_t count,
                uint64_t before);

#endif
