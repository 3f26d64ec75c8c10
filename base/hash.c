#include "config.h"

#include "base/hash.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#ifdef HAVE_XXH3_64BITS_DISPATCH
#include <xxh_x86dispatch.h> /* has the widest vectors of the processor */
#endif

#include "base/memory.h"

uint64_t hash64(const void *data, size_t length) {
    return XXH3_64bits(data, length);
}

uint64_t hash64_seeded(const void *data, size_t length, uint64_t seed) {
    return XXH3_64bits_withSeed(data, length, seed);
}

struct hash_stream {
    XXH3_state_t *state;
};

struct hash_stream *hash_stream_new(void) {
    struct hash_stream *stream = memory_new(1, sizeof *stream);
    stream->state = XXH3_createState();
    if (!stream->state || XXH3_128bits_reset(stream->state) != XXH_OK)
        memory_exhausted(1, sizeof stream); /* it fails for nothing else */
    return stream;
}

void hash_stream_add(struct hash_stream *stream, const void *data, size_t length) {
    XXH3_128bits_update(stream->state, data, length);
}

void hash_stream_text(const struct hash_stream *stream, char text[HASH128_TEXT]) {
    XXH128_hash_t digest = XXH3_128bits_digest(stream->state);
    snprintf(text, HASH128_TEXT, "%016llx%016llx", (unsigned long long)digest.high64,
             (unsigned long long)digest.low64);
}

void hash_stream_free(struct hash_stream *stream) {
    if (stream)
        XXH3_freeState(stream->state);
    free(stream);
}

struct sha256 {
    EVP_MD_CTX *context;
};

struct sha256 *sha256_new(void) {
    struct sha256 *sha = memory_new(1, sizeof *sha);
    sha->context = EVP_MD_CTX_new();
    if (!sha->context || !EVP_DigestInit_ex(sha->context, EVP_sha256(), NULL))
        memory_exhausted(1, sizeof sha); /* it fails for nothing else */
    return sha;
}

void sha256_add(struct sha256 *sha, const void *data, size_t length) {
    EVP_DigestUpdate(sha->context, data, length);
}

void sha256_finish(struct sha256 *sha, char text[SHA256_TEXT]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_DigestFinal_ex(sha->context, digest, &length);
    assert(2 * length + 1 == SHA256_TEXT);
    for (unsigned i = 0; i < length; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    EVP_MD_CTX_free(sha->context);
    free(sha);
}

void sha256_of(const void *data, size_t length, char text[SHA256_TEXT]) {
    struct sha256 *sha = sha256_new();
    sha256_add(sha, data, length);
    sha256_finish(sha, text);
}
