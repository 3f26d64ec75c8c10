/* The disk as the code that writes and reads checkpoints sees it: a table of functions. There is
 * the real one, and one that is confined to a folder; tests and the simulator bring their own.
 * Beside checkpoints (shard/checkpoint.h) a shard's folder holds a term that keeps older
 * coordinators out.
 *
 * Every function of the table answers 0 or an error code, with a text that names the path. */
#ifndef DML_SHARD_DISK_H
#define DML_SHARD_DISK_H

#include <stddef.h>
#include <stdint.h>

struct disk_piece {
    const void *data;
    size_t length; /* bytes */
};

/* Called once the pieces have been read, possibly before they are safe on disk: from then on their
 * memory may change. */
struct disk_taken {
    void (*report)(void *context);
    void *context;
};

struct disk {
    void *context; /* handed to every function */

    /* Puts a file in place that holds the pieces one after the other. After the answer 0 the whole
     * file is there, also after a power cut; after an error the former file is still there. The
     * temporary file is called PATH.tmp.SOMETHING. Makes the folder if it is missing. `taken` may
     * be NULL. */
    int (*write)(void *context, const char *path, const struct disk_piece *pieces, size_t count,
                 const struct disk_taken *taken);

    /* Opens a file for reading, until close(). ERROR_UNAVAILABLE if there is none. */
    int (*open)(void *context, const char *path, void **file, uint64_t *length);
    /* Exactly `length` bytes from `offset` on. ERROR_IO. */
    int (*read)(void *context, void *file, uint64_t offset, void *into, size_t length);
    void (*close)(void *context, void *file);

    /* Names each file of a folder, in any order; a folder that is missing has none. */
    int (*list)(void *context, const char *folder, void (*visit)(void *visitor, const char *name),
                void *visitor);
    int (*remove)(void *context, const char *path);
};

/* The disk of a shard that runs as a process: files in folders, through base/file.h. */
extern const struct disk files_disk;

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
