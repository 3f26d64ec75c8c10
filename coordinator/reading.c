/* Reading the model: register x, slice by slice, one at a time, so that memory stays bounded. */
#include "base/error.h"
#include "coordinator/parts.h"
#include "wire/program.h"

#define SLICE_ELEMENTS (1u << 18)

static void ask(struct coordinator *c, struct output *out) {
    for (uint32_t i = 0; i < c->settings.shards; i++) {
        uint64_t first, count;
        coordinator_range(c, i, &first, &count);
        if (c->read < first || c->read >= first + count)
            continue;
        uint64_t left = first + count - c->read;
        struct message message = {.type = MESSAGE_READ};
        message.read = (struct message_read){
            .register_ = REGISTER_X,
            .first = c->read,
            .count = left < SLICE_ELEMENTS ? left : SLICE_ELEMENTS,
        };
        send_to(c, i, message, out);
    }
}

void reading_begin(struct coordinator *c, struct output *out) {
    c->phase = PHASE_READING;
    c->read = 0;
    ask(c, out);
}

int on_slice(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
             struct output *out) {
    (void)now_ns;
    const struct message_slice *slice = &message->slice;
    if (c->phase != PHASE_READING || slice->first != c->read) {
        c->stale++;
        return 0;
    }
    if (message->bulk.length != slice->count * sizeof(double) || slice->count == 0 ||
        slice->count > c->parameters - slice->first)
        return error_set(ERROR_INTERNAL, "shard %u sent a slice of another length than was asked",
                         link);
    struct record *record = output_add(out, RECORD_SLICE);
    record->slice.first = slice->first;
    record->slice.count = slice->count;
    record->slice.values = message->bulk.data;
    c->read += slice->count;
    if (c->read < c->parameters)
        ask(c, out);
    else
        c->phase = PHASE_READ;
    return 0;
}
