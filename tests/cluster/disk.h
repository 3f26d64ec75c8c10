/* The disk under the shards' folders. A file that was written whole is there whole, also after a
 * power cut; one that was being written may be there, or lie half-written beside its place; one
 * that was removed may be back after a power cut. */
#ifndef DML_TESTS_CLUSTER_DISK_H
#define DML_TESTS_CLUSTER_DISK_H

#include <stdbool.h>

#include "base/random.h"
#include "base/disk.h"

struct virtual_file; /* opaque */

struct virtual_disk {
    struct disk disk; /* what shards are given */
    struct disk
        slow; /* the same, but what is written lies beside its place until it is published */
    struct virtual_file *files;
    size_t count, capacity;
    bool full;
};

void virtual_disk_init(struct virtual_disk *disk);
void virtual_disk_release(struct virtual_disk *disk);

/* The disk is lost, and there is an empty one in its place. */
void virtual_disk_clear(struct virtual_disk *disk);

/* Puts into place what was written beside it. */
int virtual_disk_publish(struct virtual_disk *disk, const char *path);

/* Leaves a part of a file beside its place, as an interrupted write does. */
void virtual_disk_litter(struct virtual_disk *disk, const char *path);

void virtual_disk_power_cut(struct virtual_disk *disk, struct random *random);

/* Whether for each file of the other disk there is one of that name in `folder` of this one. */
bool virtual_disk_has_all(const struct virtual_disk *disk, const char *folder,
                          const struct virtual_disk *other);

/* Flips a bit of the newest file whose path begins with `prefix`; false if there is none. */
bool virtual_disk_damage(struct virtual_disk *disk, const char *prefix, struct random *random);

#endif
