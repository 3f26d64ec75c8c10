/* A disk that allows access below one folder only: anybody who reaches a shard over TCP can name
 * any folder to it. */
#ifndef DML_SHARD_CONFINED_H
#define DML_SHARD_CONFINED_H

#include "shard/disk.h"

struct confined {
    struct disk disk;         /* hand this out; the struct must not move */
    const struct disk *below; /* the disk that does the work */
    char *root;               /* owned, without links; NULL: nothing may be touched */
};

/* Confines `below` to `folder`, which is made if it is missing; with NULL everything is refused,
 * with an error that names the option --folder. ERROR_CREATE or ERROR_PERMISSION. */
int confined_init(struct confined *confined, const struct disk *below, const char *folder);
void confined_release(struct confined *confined);

#endif
