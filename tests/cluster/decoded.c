#include "tests/cluster/decoded.h"

#include <stdio.h>
#include <stdlib.h>

struct message decoded_body(enum message_type type, uint64_t term, const void *body,
                            size_t length) {
    struct message message;
    const char *why;
    if (message_decode(type, body, length, &message, &why)) {
        fprintf(stderr, "%s cannot be read: %s\n", message_name(type), why);
        abort();
    }
    message.term = term;
    message.bulk = (struct bulk){0};
    return message;
}

struct message decoded(const struct outbox *outbox, const struct envelope *envelope) {
    struct message message = decoded_body(envelope->type, envelope->term,
                                          outbox_body(outbox, envelope), envelope->body_length);
    message.bulk = envelope->bulk;
    return message;
}

struct blob listed_flushes(const struct flush_id *ids, uint32_t count) {
    static struct bytes list;
    bytes_clear(&list);
    for (uint32_t i = 0; i < count; i++)
        flush_id_encode(&ids[i], &list);
    return (struct blob){.data = list.data, .length = (uint32_t)list.length};
}
