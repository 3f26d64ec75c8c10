/* The disk as the code that writes and reads checkpoints sees it: a table of functions. There is
 * the real one, and one that is confined to a folder (shard/confined.h); tests and the simulator
 * bring their own.
 *
 * Every function of the table returns 0 or an error code, with a text that names the path. */
#ifndef DML_BASE_DISK_H
#define DML_BASE_DISK_H

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

    /* Writes a file piece by piece, beside the place that it is for. Makes the folder if it is
     * missing. A piece at offset 0 begins the file anew. Nothing is safe before publish(). */
    int (*put)(void *context, const char *path, uint64_t offset, const void *data, size_t length);
    /* Gives a file that put() has written its name. After 0 the whole file is there, also after a
     * power cut, and the one that had the name is gone. */
    int (*publish)(void *context, const char *from, const char *to);

    /* Opens a file for reading, until close(). ERROR_UNAVAILABLE if there is none. */
    int (*open)(void *context, const char *path, void **file, uint64_t *length);
    /* Exactly `length` bytes from `offset` on. ERROR_IO. */
    int (*read)(void *context, void *file, uint64_t offset, void *into, size_t length);
    void (*close)(void *context, void *file);

    /* Names each file of a folder, in any order; a folder that is missing has none. */
    int (*list)(void *context, const char *folder, void (*visit)(void *visitor, const char *name),
                void *visitor);
    int (*remove)(void *context, const char *path); /* a file, or a folder that has none */
};

/* The disk of a process: files in folders, through base/file.h. */
extern const struct disk files_disk;

#endif
