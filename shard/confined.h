/* A disk that gives access below one folder only. */
#ifndef DML_SHARD_CONFINED_H
#define DML_SHARD_CONFINED_H

#include "base/disk.h"

/* A disk that gives access below one folder only, whatever path the coordinator names. */
struct confined {
    struct disk disk;         /* to be used; refers to the struct, which must not move */
    const struct disk *below; /* the disk that does the work */
    char *root;               /* owned, without links */
};

/* Confines `below` to `folder`, which is made if it is missing. ERROR_CREATE or ERROR_PERMISSION.
 */
int confined_init(struct confined *confined, const struct disk *below, const char *folder);
void confined_release(struct confined *confined);

#endif
