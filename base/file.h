/* Files written whole or not at all, folders, and who may write them. Every path in a message is
 * given as typed. */
#ifndef DML_BASE_FILE_H
#define DML_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file being written beside its final place: NAME.tmp.NUMBER until it is published. */
struct new_file {
    char *path;      /* the final place; owned */
    char *temporary; /* owned */
    int descriptor;
};

/* Starts `path`. As guard_check(); ERROR_CREATE, ERROR_PERMISSION or ERROR_IO. */
int new_file_open(struct new_file *file, const char *path);

int new_file_write(struct new_file *file, const void *data, size_t length);

/* fsync, rename, fsync of the folder, if guard_check() allows it: afterwards the whole file is
 * there, also after a power cut. On failure the temporary file is removed; if only the folder's
 * fsync failed, the file is in place but may be lost in a power cut. Either way the struct is
 * released. */
int new_file_publish(struct new_file *file);

/* Drops what was written. Harmless on a zeroed or published struct. */
void new_file_discard(struct new_file *file);

/* Opens a file for reading, never a pipe, which could make this process wait for ever.
 * ERROR_UNAVAILABLE if it is not there, ERROR_DATA if it is none. */
struct stat;
int file_open_regular(const char *path, int *descriptor, struct stat *status);

/* Starts to bring what was written to a file to disk, and does not wait for it: a later fsync then
 * has less to do. */
void file_write_back(int descriptor);

/* Writes all of `length` bytes to a descriptor; `path` is for the message. */
int file_write_all(int descriptor, const void *data, size_t length, const char *path);

/* Reads a whole file of at most `length_max` bytes, with a 0 after it. Free *data. */
int file_read(const char *path, size_t length_max, char **data, size_t *length);

/* ERROR_UNAVAILABLE if this process may have fewer than DESCRIPTORS_LEAST files open. Ask before
 * the first call of a library: several libraries exit without a message when they run out. */
int descriptors_check(void);

/* Maps a whole file for reading; *data is NULL for an empty one. Release with memory_unmap(). Only
 * for files that are never changed once they have their name. On a network file system a file of at
 * most NETWORK_READ_BYTES_MAX is read into memory instead. */
int file_map(const char *path, const void **data, size_t *length);

/* A file of file_map() that is cut short ends the process with a line that names it and the status
 * of ERROR_IO. For programs: a library leaves signals alone. */
void file_name_bus_errors(void);

/* Puts an array of memory_map() into a file without a name in the folder, and returns where it is
 * mapped from there, for reading: the system may drop its pages and read them again. Release that
 * in place of the array, in the same way. Where there are no such files, or no room, it is the
 * array itself. */
void *file_park(const char *folder, void *array, size_t bytes);

/* Makes the folder and those above it that are missing, each on disk in the one above it. Fine if
 * it is there. */
int folder_make(const char *path, unsigned mode);

/* fsync of a folder, after a rename in it. */
int folder_sync(const char *path);

/* The names in a folder, sorted bytewise, without "." and "..", NULL at the end; no names if the
 * folder is missing. Free with names_free(); NULL after an error. Search for files with this and
 * not with glob(): a path that a user chose may contain `*` or `[`. */
int folder_names(const char *path, char ***names);
void names_free(char **names);

/* How many names a list has that ends with NULL; 0 for NULL. */
uint32_t names_count(char *const *names);

/* The bytes of a file, or of all files in a folder and its folders; 0 for what is missing. */
uint64_t file_bytes(const char *path);

/* Whether this is the name of a half-written file: NAME.tmp.NUMBER. */
bool name_is_temporary(const char *name);

/* Whether a name has something before `ending`, and ends with it. */
bool name_ends(const char *name, const char *ending);

/* The length of a path without .gz or .zst at its end. */
size_t name_plain_length(const char *path);

/* `folder`/`name`; `name` alone when it is absolute. Free the result. */
char *path_join(const char *folder, const char *name);

/* The path from the root, of what is seen from the working folder under `path`. The way to that
 * folder is the one that the shell went ($PWD), which other hosts are likelier to know than the one
 * with links resolved. Free the result. */
char *path_absolute(const char *path);

/* The folder part of a path, "." when it has none. Free the result. */
char *path_folder(const char *path);

/* "; did you mean `PATH`?" where nothing is at a path: the nearest name in the folder, of those
 * with one of the endings (NULL at the end; none: of all). A name that is the path's and an ending
 * is nearest. Valid until the next call in this thread. */
const char *file_suggestion(const char *path, const char *const *endings);

/* The private folder of this user on this host: ${TMPDIR:-/var/tmp}/dml-UID, from the root. It is
 * made if it is missing, for its owner alone (0700). ERROR_PERMISSION if what is there is a link,
 * another user's or open to others: all users may write into the folder above it. ERROR_CREATE.
 * Free *path. */
int folder_of_user(char **path);

/* Whether the file or folder lies on a network file system: NFS, SMB, Lustre, GPFS, BeeGFS, Ceph,
 * …, and everything that FUSE serves, since that may be anything. A file system that is not known,
 * or a path that cannot be looked at, counts as local.
 *
 * The environment variable DML_FILESYSTEM, `network` or `local`, decides for all paths: for tests,
 * and for a file system that is not recognised. */
bool filesystem_is_network(const char *path);

/* ---- the guard: whether this process is still the one that may write ----
 *
 * A lock can be lost without a word: a lock on a network file system is a lease, which a host that
 * was cut off or a process that was stopped does not renew. Then another process takes the lock and
 * the work over, and this one goes on as if nothing had happened. So whoever takes the lock writes
 * its own identity into the lock file, and everything that changes the state folder looks there
 * first: before a commit, before a file gets its final name, before anything is removed.
 *
 * What is left is the moment between the look and the change. A process that is stopped for so long
 * just there can do one change too many; only the file system could prevent that (an NFSv4 client
 * does: it fails I/O on a file whose lock was lost). */

#define GUARD_TEXT 320

/* From now on this process may write while the file at `path` has exactly this text, shorter than
 * GUARD_TEXT. Before other threads ask. */
void guard_set(const char *path, const char *text);
/* It may write without being asked. */
void guard_clear(void);

/* The text of guard_set(); "" if there is none. Valid until the next call of that. */
const char *guard_text(void);

/* Whether the file at `path`, which need not be this process's, has exactly this text, shorter than
 * GUARD_TEXT: what another host has written there for sure. Reads nothing but a regular file. */
bool guard_is(const char *path, const char *text);

/* 0, or ERROR_AGAIN: another process took over. ERROR_IO if the file cannot be read. From any
 * thread. */
int guard_check(void);

/* Checks the guard for callers that cannot fail: sets no error. */
bool guard_holds(void);

#endif
