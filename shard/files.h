/* The disk of a shard that runs as a process: files in folders, through base/file.h. */
#ifndef DML_SHARD_FILES_H
#define DML_SHARD_FILES_H

#include "shard/disk.h"

extern const struct disk files_disk;

#endif
