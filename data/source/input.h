/* The text of a source file: opened, hashed as stored, decompressed, in one pass. */
#ifndef DML_DATA_SOURCE_INPUT_H
#define DML_DATA_SOURCE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "data/source/source.h"

/* Whether a path means standard input: it is "-". */
bool source_is_input(const char *path);

/* Whether what a path leads to can be read once: it is that, or a pipe. */
bool source_is_stream(const char *path);

/* How messages name a path: that of standard input has no name of a file. */
const char *source_name(const char *path);

struct input; /* opaque; used by one thread at a time */

/* Opens a regular file, or the object behind an address as it is shown (data/remote/address.h);
 * with `streams` also a pipe or the like, and "-" as standard input. ERROR_DATA if it is missing, a
 * folder; ERROR_PERMISSION. The path must outlive the input.
 */
int input_open(const char *path, bool streams, struct input **input);
void input_close(struct input *input);

/* Fills up to `capacity` bytes with text; *length 0 is the end. A damaged or truncated archive is
 * ERROR_DATA. */
int input_read(struct input *input, void *buffer, size_t capacity, size_t *length);

/* Whether whoever writes to a pipe seems to wait: the text goes on, but nothing more of it is there
 * now. Never of a file, nor of what is compressed. */
bool input_is_waiting(const struct input *input);

/* Call at the end of the text. ERROR_DATA if the file was changed while it was read: what was read
 * may be a mixture of old and new. */
int input_check_unchanged(const struct input *input);

/* The file itself, for reads at places of it; -1 if it is none that can be read so, or compressed.
 */
int input_descriptor(const struct input *input);

/* The stamp of the file when it was opened. */
struct source_stamp input_stamp(const struct input *input);
struct source_stamp input_stamp_of(const struct stat *status);

/* The stamp that a file or an object has now; ERROR_DATA if it is not there. */
int input_look(const char *path, struct source_stamp *stamp);

/* Where a member of a zip archive is in its file. */
struct input_member {
    uint64_t place, stored_bytes, text_bytes;
    uint32_t crc; /* of the text */
    bool deflated;
};

/* Opens a member of the archive behind the descriptor, which stays the caller's. `path` names the
 * member in messages, and must outlive the input. It has no stamp and no hash, which are the
 * archive's; text that does not fit `member` is ERROR_DATA of input_read(). */
int input_open_member(const char *path, int descriptor, const struct input_member *member,
                      struct input **input);

/* At the end of the text: bytes as stored, and their hash. */
uint64_t input_stored_bytes(const struct input *input);
void input_hash(const struct input *input, char text[HASH128_TEXT]);

/* The hash of a whole file as stored; ERROR_DATA also if the file changes meanwhile. */
int input_hash_file(const char *path, char text[HASH128_TEXT]);

/* Files of formats that are not read, told by their first bytes or lines. */

/* ERROR_DATA, with what to do, if a file that begins with these bytes is of such a format, and the
 * options make nothing of it. Without options (NULL) texts are not looked at. */
int foreign_check(const char *path, const struct source_options *options, const void *bytes,
                  size_t length);

/* ERROR_DATA, with what to do, if a path is an address such as s3://bucket/file. */
int foreign_check_path(const char *path);

#endif
