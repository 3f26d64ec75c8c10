/* Fields of a record of the machine's state. One listing of the fields serves both ways: a codec
 * either appends them or reads them. A function whose name has serialize is such a
 * listing: it appends a struct, or overwrites it with what is read. Whoever has read a record looks
 * at `in.failed` at its end; what was read of a record that failed is not to be used. */
#ifndef DML_BASE_CODEC_H
#define DML_BASE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct codec {
    struct bytes *out; /* appending, or NULL */
    struct cursor in;
};

#define SERIALIZE(name, type)                                                                      \
    static inline void serialize_##name(struct codec *codec, type *value) {                        \
        if (codec->out)                                                                            \
            bytes_put_##name(codec->out, *value);                                                  \
        else                                                                                       \
            *value = cursor_##name(&codec->in);                                                    \
    }
SERIALIZE(u16, uint16_t)
SERIALIZE(u32, uint32_t)
SERIALIZE(u64, uint64_t)
SERIALIZE(i64, int64_t)
SERIALIZE(f64, double)
#undef SERIALIZE

static inline void serialize_bool(struct codec *codec, bool *value) {
    if (codec->out)
        bytes_put_u8(codec->out, *value);
    else
        *value = cursor_u8(&codec->in) != 0;
}

/* A record that is wrong is refused as one that ends early. */
static inline void serialize_fails_if(struct codec *codec, bool wrong) {
    codec->in.failed |= wrong;
}

#endif
