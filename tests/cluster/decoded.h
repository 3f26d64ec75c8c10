/* Messages as their bytes say. What a state machine has written can be read: else the test ends. */
#ifndef DML_TESTS_CLUSTER_DECODED_H
#define DML_TESTS_CLUSTER_DECODED_H

#include "wire/message.h"

/* Without bulk. The fields point into the body. */
struct message decoded_body(enum message_type type, uint64_t term, const void *body, size_t length);

/* A list of ids, as FOLD and FOLDED have it; valid until the next call. */
struct blob listed_flushes(const struct flush_id *ids, uint32_t count);

/* What waits in an outbox to be sent. */
struct message decoded(const struct outbox *outbox, const struct envelope *envelope);

#endif
