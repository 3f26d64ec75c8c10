/* Fields of a record of the machine's state. One listing of the fields serves both ways: a coder
 * either appends them or reads them. */
#ifndef DML_COORDINATOR_CODER_H
#define DML_COORDINATOR_CODER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct coder {
    struct bytes *out; /* appending, or NULL */
    struct cursor in;
};

#define CODE(name, type)                                                                           \
    static inline void code_##name(struct coder *coder, type *value) {                             \
        if (coder->out)                                                                            \
            bytes_put_##name(coder->out, *value);                                                  \
        else                                                                                       \
            *value = cursor_##name(&coder->in);                                                    \
    }
CODE(u16, uint16_t)
CODE(u32, uint32_t)
CODE(u64, uint64_t)
CODE(i64, int64_t)
CODE(f64, double)
#undef CODE

static inline void code_bool(struct coder *coder, bool *value) {
    if (coder->out)
        bytes_put_u8(coder->out, *value);
    else
        *value = cursor_u8(&coder->in) != 0;
}

/* A record that is wrong is refused as one that ends early. */
static inline void code_fails_if(struct coder *coder, bool wrong) {
    coder->in.failed |= wrong;
}

#endif
