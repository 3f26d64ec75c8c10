/* Checksums (XXH3, 64 and 128 bit): they find damage and name content. */
#ifndef DML_BASE_HASH_H
#define DML_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash64(const void *data, size_t length);
uint64_t hash64_seeded(const void *data, size_t length, uint64_t seed);

/* A 128-bit hash of bytes that come in pieces. */
struct hash_stream; /* opaque */
struct hash_stream *hash_stream_new(void);
void hash_stream_add(struct hash_stream *stream, const void *data, size_t length);
#define HASH128_TEXT 33 /* 32 hexadecimal digits and the end of the string */
void hash_stream_text(const struct hash_stream *stream, char text[HASH128_TEXT]);
void hash_stream_free(struct hash_stream *stream);

/* SHA-256, which people compare, and of which the name of a key is a part. */
struct sha256; /* opaque */
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *sha, const void *data, size_t length);
#define SHA256_TEXT 65
/* Writes the digest in hexadecimal and frees `sha`. */
void sha256_finish(struct sha256 *sha, char text[SHA256_TEXT]);
/* Writes the digest of bytes that are all in memory. */
void sha256_of(const void *data, size_t length, char text[SHA256_TEXT]);

#endif
