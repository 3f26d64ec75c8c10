#include "coordinator/run/set_service.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"

void set_service_init(struct set_service *service, const struct set *set) {
    *service = (struct set_service){.set = set};
}

void set_service_release(struct set_service *service) {
    free(service->questions);
    *service = (struct set_service){0};
}

void set_service_ask(struct set_service *service, uint32_t link,
                     const struct message_read_set *question) {
    for (uint32_t i = 0; i < service->count; i++) {
        const struct set_question *waits = &service->questions[i];
        if (waits->link == link && waits->offset == question->offset &&
            waits->bytes == question->bytes)
            return;
    }
    MEMORY_ROOM(service->questions, service->count, service->capacity);
    service->questions[service->count++] = (struct set_question){
        .link = link,
        .offset = question->offset,
        .bytes = question->bytes,
        .of_another =
            !service->set || strcmp(question->fingerprint, set_info(service->set)->fingerprint)};
}

static void take_out(struct set_service *service, uint32_t number) {
    assert(number < service->count);
    service->count--;
    memmove(service->questions + number, service->questions + number + 1,
            (service->count - number) * sizeof *service->questions);
}

void set_service_forget(struct set_service *service, uint32_t link) {
    for (uint32_t i = service->count; i-- > 0;)
        if (service->questions[i].link == link)
            take_out(service, i);
}

/* A file that was cut short ends this process with its name, as whenever it is read. */
static struct message answer_to(const struct set_service *service,
                                const struct set_question *question) {
    const void *bytes =
        question->of_another ? NULL : set_bytes(service->set, question->offset, question->bytes);
    struct message answer = {.type = MESSAGE_SET_BYTES};
    answer.set_bytes = (struct message_set_bytes){
        .fingerprint = service->set ? set_info(service->set)->fingerprint : "none",
        .offset = question->offset,
        .total = service->set ? set_length(service->set) : 0,
        .reason = bytes                  ? ""
                  : question->of_another ? "the coordinator works on another set"
                                         : "the set has no such bytes",
    };
    answer.bulk = (struct bulk){.data = bytes, .length = bytes ? question->bytes : 0};
    assert(question->bytes <= SET_PIECE_BYTES_MAX);
    return answer;
}

bool set_service_answer(struct set_service *service,
                        bool (*free)(const void *context, uint32_t link), const void *context,
                        uint32_t *link, struct message *answer) {
    uint32_t number = 0;
    while (number < service->count && !free(context, service->questions[number].link))
        number++;
    if (number == service->count)
        return false;
    *link = service->questions[number].link;
    *answer = answer_to(service, &service->questions[number]);
    take_out(service, number);
    return true;
}
