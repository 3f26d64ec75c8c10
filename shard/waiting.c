/* Messages of the coordinator that wait for something on disk, and those behind them. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "shard/state.h"

/* `taken` is set by the writer's thread after its last read of the history (release); this load
 * (acquire) makes it safe to overwrite the slots. */
static bool is_being_written(const struct checkpoint_job *job, uint32_t slot) {
    if (atomic_load(&job->taken))
        return false;
    for (uint32_t i = 0; i < job->checkpoint.header.pairs; i++)
        if (job->vectors[i][0] && job->checkpoint.pairs[i].slot == slot)
            return true;
    return false;
}

static bool overwrites(const struct checkpoint_job *job, const struct blob *program) {
    struct cursor cursor = cursor_over(program->data, program->length);
    struct operation operation;
    while (program_next(&cursor, &operation))
        if (operation.code == OPERATION_PAIR && is_being_written(job, operation.slot))
            return true;
    return false;
}

/* The points were copied when the job was made, so x and g may change. The pairs were not copied,
 * as they are most of the memory: only a program that forms a pair in a slot being written must
 * wait. */
static bool disturbs_writing(const struct checkpoint_job *job, const struct message *message) {
    switch (message->type) {
    case MESSAGE_SHARD_SETUP:
    case MESSAGE_CHECKPOINT:
    case MESSAGE_RESTORE:
        return true;
    case MESSAGE_PROGRAM:
        return overwrites(job, &message->program.operations) && !mutant(PAIR_OVERWRITTEN);
    default:
        return false;
    }
}

static bool is_hindered(const struct shard *shard, const struct message *message) {
    const struct saving *saving = &shard->saving;
    return saving->unanswered || (saving->job && disturbs_writing(saving->job, message));
}

/* Once one message waits, all later ones wait behind it: order is part of the protocol. */
bool must_wait(const struct shard *shard, const struct message *message) {
    return shard->waiting.count || is_hindered(shard, message);
}

void keep_waiting(struct shard *shard, const struct message *message) {
    struct waiting *waiting = &shard->waiting;
    MEMORY_ROOM(waiting->messages, waiting->count, waiting->capacity);
    struct waiting_message *kept = &waiting->messages[waiting->count++];
    *kept = (struct waiting_message){.type = message->type, .epoch = message->epoch};
    message_encode(message, &kept->body);
    bulk_keep(&message->bulk, &kept->bulk);
}

static void release(struct waiting_message *kept) {
    bytes_release(&kept->body);
    kept_bulk_release(&kept->bulk);
}

static struct message decode(const struct waiting_message *kept) {
    struct message message;
    const char *why;
    if (message_decode(kept->type, kept->body.data, kept->body.length, &message, &why))
        abort(); /* it was encoded here */
    message.epoch = kept->epoch;
    message.bulk = (struct bulk){.data = kept->bulk.data, .length = kept->bulk.length};
    return message;
}

void go_on(struct shard *shard, struct outbox *out) {
    struct waiting *waiting = &shard->waiting;
    size_t done = 0;
    for (; done < waiting->count; done++) {
        struct message message = decode(&waiting->messages[done]);
        if (is_hindered(shard, &message))
            break;
        shard_dispatch(shard, shard->coordinator, &message, out);
        release(&waiting->messages[done]);
    }
    waiting->count -= done;
    for (size_t i = 0; done && i < waiting->count; i++)
        waiting->messages[i] = waiting->messages[i + done];
}

void forget_waiting(struct shard *shard) {
    for (size_t i = 0; i < shard->waiting.count; i++)
        release(&shard->waiting.messages[i]);
    shard->waiting.count = 0;
}
