/* Answers replicas whose hosts do not see the set's file: doc/PROTOCOL.md, "Rows by message".
 *
 * Questions wait in a line, and each answer has one piece of the file. So the caller, who asks for
 * one answer in a turn of its loop, does not keep other messages waiting, and can leave out whoever
 * has not taken the answers before. */
#ifndef DML_COORDINATOR_RUN_SET_SERVICE_H
#define DML_COORDINATOR_RUN_SET_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set.h"
#include "wire/message.h"

struct set_question {
    uint32_t link;
    uint64_t offset, bytes;
    bool of_another; /* set than the one that is served */
};

struct set_service {
    const struct set *set;          /* outlives the service */
    struct set_question *questions; /* in their order; owned */
    uint32_t count, capacity;
};

void set_service_init(struct set_service *service, const struct set *set);
void set_service_release(struct set_service *service);

/* Puts a question of this link into the line, unless it waits there: who has waited for long asks
 * again, which must not make the line longer. */
void set_service_ask(struct set_service *service, uint32_t link,
                     const struct message_read_set *question);

/* The link is another worker's from now on. */
void set_service_forget(struct set_service *service, uint32_t link);

/* Takes the first question of a link that is `free` and makes the answer, without its term. It
 * refers to the set. False: there is none. */
bool set_service_answer(struct set_service *service,
                        bool (*free)(const void *context, uint32_t link), const void *context,
                        uint32_t *link, struct message *answer);

#endif
