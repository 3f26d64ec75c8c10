/* A failpoint for the sending and one for the receiving of each message: send_STAGE,
 * receive_STAGE. The peers visit them. */
#ifndef DML_WIRE_FAILPOINTS_H
#define DML_WIRE_FAILPOINTS_H

#include "base/failpoint.h"
#include "wire/message.h"

enum {
    MESSAGE_FAILPOINTS_BEGIN = FAILPOINTS - 1,
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    FAILPOINT_send_##NAME, FAILPOINT_receive_##NAME,
#include "wire/messages.def"
    MESSAGE_FAILPOINTS_END,
    MESSAGE_FAILPOINTS = MESSAGE_FAILPOINTS_END - FAILPOINTS,
};

/* For failpoint_setup(). */
extern const struct failpoint_row message_failpoints[MESSAGE_FAILPOINTS];

/* Visited before a message is sent, and after one was received, before the role gets it. */
void failpoint_send(enum message_type type);
void failpoint_receive(enum message_type type);

#endif
