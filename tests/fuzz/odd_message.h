/* Messages with something odd in them, as a faulty or hostile sender might make them. */
#ifndef DML_TESTS_FUZZ_ODD_MESSAGE_H
#define DML_TESTS_FUZZ_ODD_MESSAGE_H

#include "tests/fuzz/draw.h"
#include "wire/message.h"

/* Changes one field of a message, or its bulk; `bulk` are the same bytes, writable. What the fields
 * point to is valid until the next call. */
void odd_message(struct message *message, uint8_t *bulk, struct draw *draw);

#endif
