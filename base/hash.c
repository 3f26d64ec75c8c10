#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

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
        abort();
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
