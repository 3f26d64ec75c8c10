/* Compressed pages. */
#include <limits.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "data/parquet/parquet.h"

static const char *const names[] = {"no codec", "snappy", "gzip", "LZO",
                                    "brotli",   "LZ4",    "zstd", "LZ4_RAW"};

const char *parquet_codec_name(uint32_t codec) {
    return codec < sizeof names / sizeof *names ? names[codec] : NULL;
}

bool parquet_unpacks(uint32_t codec) {
    return codec == PARQUET_UNCOMPRESSED || codec == PARQUET_SNAPPY || codec == PARQUET_GZIP ||
           codec == PARQUET_ZSTD || codec == PARQUET_LZ4_RAW;
}

static bool unpack_snappy(const uint8_t *from, size_t stored, uint8_t *to, size_t length) {
    size_t said;
    const char *text = (const char *)from;
    return snappy_uncompressed_length(text, stored, &said) == SNAPPY_OK && said == length &&
           snappy_uncompress(text, stored, (char *)to, &said) == SNAPPY_OK && said == length;
}

/* There may be several members, one after the other, and each of gzip or of zlib. */
static bool unpack_gzip(const uint8_t *from, size_t stored, uint8_t *to, size_t length) {
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)from,
                       .avail_in = (uInt)stored,
                       .next_out = to,
                       .avail_out = (uInt)length};
    if (inflateInit2(&stream, 15 + 32) != Z_OK)
        return false;
    int answer = inflate(&stream, Z_FINISH);
    while (answer == Z_STREAM_END && stream.avail_in && stream.avail_out &&
           inflateReset(&stream) == Z_OK)
        answer = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return answer == Z_STREAM_END && !stream.avail_out;
}

bool parquet_unpack(enum parquet_codec codec, const uint8_t *from, size_t stored, uint8_t *to,
                    size_t length) {
    if (stored > INT_MAX || length > INT_MAX)
        return false;
    switch (codec) {
    case PARQUET_SNAPPY:
        return unpack_snappy(from, stored, to, length);
    case PARQUET_GZIP:
        return unpack_gzip(from, stored, to, length);
    case PARQUET_ZSTD:
        return ZSTD_decompress(to, length, from, stored) == length;
    case PARQUET_LZ4_RAW:
        return LZ4_decompress_safe((const char *)from, (char *)to, (int)stored, (int)length) ==
               (int)length;
    default:
        return false;
    }
}
