#include "wire/failpoints.h"

const struct failpoint_row message_failpoints[MESSAGE_FAILPOINTS] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    [FAILPOINT_send_##NAME - FAILPOINTS] = {"send_" #NAME, FAILPOINT_PLACE, text},                 \
                             [FAILPOINT_receive_##NAME -                                           \
                                 FAILPOINTS] = {"receive_" #NAME, FAILPOINT_PLACE, text},
#include "wire/messages.def"
};
_Static_assert((int)MESSAGE_FAILPOINTS_END <= (int)FAILPOINTS_MAX,
               "visits are counted for all of them");

void failpoint_send(enum message_type type) {
    static const unsigned of_type[] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields) [number] = FAILPOINT_send_##NAME,
#include "wire/messages.def"
    };
    failpoint(of_type[type]);
}

void failpoint_receive(enum message_type type) {
    static const unsigned of_type[] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields) [number] = FAILPOINT_receive_##NAME,
#include "wire/messages.def"
    };
    failpoint(of_type[type]);
}
