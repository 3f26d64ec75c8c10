/* SHA-256, which people compare, and of which the name of a key is a part. */
#ifndef DML_BASE_SHA256_H
#define DML_BASE_SHA256_H

#include <stddef.h>

struct sha256; /* opaque */
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *sha, const void *data, size_t length);
#define SHA256_TEXT 65
/* Writes the digest in hexadecimal and frees `sha`. */
void sha256_finish(struct sha256 *sha, char text[SHA256_TEXT]);

#endif
