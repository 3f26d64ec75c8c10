/* Objects behind addresses (data/remote/address.h), read from beginning to end by HTTP.
 *
 * A link that breaks is taken up again where it broke, only from the object with the same ETag;
 * where a server gives none, or no ranges, the object is read again from its beginning, and what
 * was read before must come again. So a text is never of two objects. */
#ifndef DML_DATA_REMOTE_REMOTE_H
#define DML_DATA_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "data/remote/stamp.h"

/* Keys that a pattern may be looked for among. */
#define REMOTE_KEYS_MAX 1000000

struct remote; /* opaque; used by one thread at a time */

/* `path` is shown, and must outlive the object. ERROR_DATA if it is not there, ERROR_PERMISSION,
 * ERROR_UNAVAILABLE if no server answers. */
int remote_open(const char *path, struct remote **remote);
void remote_close(struct remote *remote); /* harmless on NULL */

/* As input_read(): *length 0 is the end. ERROR_DATA if the object changes. */
int remote_read(struct remote *remote, void *buffer, size_t capacity, size_t *length);

/* What tells the object from later ones of its name: size and ETag. Without a strong ETag two
 * stamps are never alike. */
struct source_stamp remote_stamp(const struct remote *remote);

/* The stamp of an address without reading the object. */
int remote_look(const char *path, struct source_stamp *stamp);

/* The addresses of all objects that match a pattern s3://BUCKET/PATTERN, as glob() has it, sorted
 * bytewise; *paths is NULL-terminated, free with names_free(). */
int remote_list(const char *pattern, char ***paths);

/* Whether a path is such a pattern. */
bool remote_is_pattern(const char *path);

#endif
