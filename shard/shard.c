#include "shard/shard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "shard/state.h"

struct shard *shard_new(const struct shard_self *self) {
    struct shard *shard = memory_new(1, sizeof *shard);
    shard->self = *self;
    bytes_init(&shard->last.scalars);
    return shard;
}

void shard_free(struct shard *shard) {
    if (!shard)
        return;
    forget_waiting(shard);
    free(shard->waiting.messages);
    saving_release(&shard->saving);
    staging_release(&shard->staging);
    registers_release(&shard->registers);
    bytes_release(&shard->last.scalars);
    for (size_t i = 0; i < shard->replica_count; i++)
        kept_bulk_release(&shard->replicas[i].wanted);
    free(shard->replicas);
    free(shard->run);
    free(shard);
}

const struct shard_counters *shard_counters(const struct shard *shard) {
    return &shard->counters;
}

void shard_answer(const struct shard *shard, uint32_t to, struct message message,
                  struct outbox *out) {
    message.term = shard->term;
    outbox_add(out, to, &message);
}

/* Only devices fail with ERROR_UNAVAILABLE here. */
void shard_fail(struct shard *shard, int code, struct outbox *out) {
    struct message message = {.type = MESSAGE_FAILED};
    shard->device_failed = code == ERROR_UNAVAILABLE;
    message.failed = (struct message_failed){
        .status = (uint32_t)-code, .reason = error_text(), .device = shard->device_failed};
    shard_answer(shard, shard->coordinator, message, out);
    error_clear();
}

/* The first replica whose link is not below this one. */
static size_t place_of_link(const struct shard *shard, uint32_t link) {
    size_t first = 0, end = shard->replica_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (shard->replicas[middle].link < link)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

struct replica_link *shard_replica(const struct shard *shard, uint32_t link) {
    size_t place = place_of_link(shard, link);
    bool there = place < shard->replica_count && shard->replicas[place].link == link;
    return there ? &shard->replicas[place] : NULL;
}

struct replica_link *shard_add_replica(struct shard *shard, uint32_t link) {
    size_t place = place_of_link(shard, link);
    assert(!shard_replica(shard, link));
    MEMORY_ROOM(shard->replicas, shard->replica_count, shard->replica_capacity);
    struct replica_link *replica = &shard->replicas[place];
    memmove(replica + 1, replica, (shard->replica_count++ - place) * sizeof *replica);
    *replica = (struct replica_link){.link = link};
    return replica;
}

/* ---- messages that wait for something on disk ---- */

/* `taken` is set by the writer's thread after its last read of the history (release); this load
 * (acquire) makes it safe to overwrite the slots. */
static bool is_being_written(const struct checkpoint_job *job, bool direction, uint32_t slot) {
    const struct checkpoint_header *header = &job->checkpoint.header;
    uint32_t end = direction ? checkpoint_entries(header) : header->pairs;
    if (atomic_load(&job->taken))
        return false;
    for (uint32_t i = direction ? header->pairs : 0; i < end; i++)
        if (job->vectors[i][0] && job->checkpoint.pairs[i].slot == slot)
            return true;
    return false;
}

static bool overwrites(const struct operation *operation, const struct checkpoint_job *job) {
    switch (operation->code) {
    case OPERATION_PAIR:
        return is_being_written(job, false, operation->slot);
    case OPERATION_ROWS_TAKE:
        if (operation->vector != ROWS_PRODUCT)
            return false;
        return is_being_written(job, true, operation->slot);
    case OPERATION_KEEP:
        return is_being_written(job, true, operation->slot) && !mutant(DIRECTION_OVERWRITTEN);
    default:
        return false;
    }
}

/* The points were copied when the job was made, so x and g may change. The pairs and directions
 * were not copied, as they are most of the memory: only a program that forms one in a slot being
 * written must wait. */
static bool disturbs_writing(const struct checkpoint_job *job, const struct message *message) {
    switch (message->type) {
    case MESSAGE_SHARD_SETUP:
    case MESSAGE_CHECKPOINT:
    case MESSAGE_RESTORE:
        return true;
    case MESSAGE_PROGRAM:
        break;
    default:
        return false;
    }
    const struct blob *program = &message->program.operations;
    struct cursor cursor = cursor_over(program->data, program->length);
    struct operation operation;
    while (program_next(&cursor, &operation))
        if (overwrites(&operation, job))
            return !mutant(PAIR_OVERWRITTEN);
    return false;
}

static bool is_hindered(const struct shard *shard, const struct message *message) {
    const struct saving *saving = &shard->saving;
    return saving->unanswered || (saving->job && disturbs_writing(saving->job, message));
}

static void keep_waiting(struct shard *shard, const struct message *message) {
    struct waiting *waiting = &shard->waiting;
    MEMORY_ROOM(waiting->messages, waiting->count, waiting->capacity);
    struct waiting_message *kept = &waiting->messages[waiting->count++];
    *kept = (struct waiting_message){.type = message->type, .term = message->term};
    message_encode(message, &kept->body);
    bulk_keep(&message->bulk, &kept->bulk);
}

static struct message decode_kept(const struct waiting_message *kept) {
    struct message message;
    const char *why;
    if (message_decode(kept->type, kept->body.data, kept->body.length, &message, &why))
        abort(); /* it was encoded here */
    message.term = kept->term;
    message.bulk = (struct bulk){.data = kept->bulk.data, .length = kept->bulk.length};
    return message;
}

static void waiting_release(struct waiting_message *kept) {
    bytes_release(&kept->body);
    kept_bulk_release(&kept->bulk);
}

void forget_waiting(struct shard *shard) {
    for (size_t i = 0; i < shard->waiting.count; i++)
        waiting_release(&shard->waiting.messages[i]);
    shard->waiting.count = 0;
}

/* ---- dispatch ---- */

enum sender { ANYBODY, COORDINATOR, REPLICA };

struct handler {
    enum sender sender;
    void (*call)(struct shard *shard, uint32_t from, const struct message *message,
                 struct outbox *out);
};

static const struct handler handlers[] = {
    [MESSAGE_HELLO] = {ANYBODY, on_hello},
    [MESSAGE_GREET] = {ANYBODY, on_greet},
    [MESSAGE_SHARD_SETUP] = {COORDINATOR, on_shard_setup},
    [MESSAGE_EXPONENTS] = {COORDINATOR, on_exponents},
    [MESSAGE_START] = {COORDINATOR, on_start},
    [MESSAGE_PROGRAM] = {COORDINATOR, on_program},
    [MESSAGE_COORDINATES] = {COORDINATOR, on_coordinates},
    [MESSAGE_LIMITS] = {COORDINATOR, on_limits},
    [MESSAGE_SQUARES] = {COORDINATOR, on_squares},
    [MESSAGE_FOLD] = {COORDINATOR, on_fold},
    [MESSAGE_DROP] = {COORDINATOR, on_drop},
    [MESSAGE_READ] = {COORDINATOR, on_read},
    [MESSAGE_CHECKPOINT] = {COORDINATOR, on_checkpoint},
    [MESSAGE_RESTORE] = {COORDINATOR, on_restore},
    [MESSAGE_RETAIN] = {COORDINATOR, on_retain},
    [MESSAGE_READ_FILE] = {COORDINATOR, on_read_file},
    [MESSAGE_FILE_BYTES] = {COORDINATOR, on_file_bytes},
    [MESSAGE_FETCH] = {REPLICA, on_fetch},
    [MESSAGE_STAGE] = {REPLICA, on_stage},
};

/* Pieces of files go to and fro beside all else: a shard that waits for one takes no other message
 * of the coordinator. */
static bool is_at_once(enum message_type type) {
    return type == MESSAGE_READ_FILE || type == MESSAGE_FILE_BYTES;
}

/* What a shard whose device failed still takes. */
static bool begins_anew(enum message_type type) {
    return type == MESSAGE_HELLO || type == MESSAGE_GREET || type == MESSAGE_SHARD_SETUP;
}

/* What holds between any two messages. */
static void check_state(const struct shard *shard) {
    const struct saving *saving = &shard->saving;
    const struct staging *staging = &shard->staging;
    assert(!shard->coordinator || shard->run);
    assert(!shard->set_up || shard->registers.backend);
    assert(!shard->ready || (shard->set_up && registers_complete(&shard->registers)));
    assert(!shard->begun || (shard->ready && shard->last.number));
    assert(!shard->trial_is_there || shard->begun);
    assert(shard->begun || (!staging->staged_count && !staging->folded_count));
    assert(!saving->welcoming || saving->unanswered);
    assert(!saving->job || saving->folder);
    assert(!shard->waiting.count || shard->coordinator);
}

void shard_step(struct shard *shard, uint32_t from, const struct message *message, int64_t now_ns,
                struct outbox *out) {
    (void)now_ns;
    check_state(shard);
    bool known = message->type < sizeof handlers / sizeof *handlers;
    const struct handler *handler = known ? &handlers[message->type] : NULL;
    if (!handler || !handler->call)
        return; /* BYE, REFUSED and FAILED ask for no answer: the I/O shell ends or reports */
    bool may_say = handler->sender == ANYBODY ||
                   (handler->sender == COORDINATOR ? from == shard->coordinator
                                                   : shard_replica(shard, from) != NULL);
    if (message->term < shard->term && message->type != MESSAGE_HELLO && !mutant(NO_TERM_CHECK))
        shard->counters.old_term++;
    else if (!may_say)
        shard->counters.stranger++;
    else if (shard->device_failed && !begins_anew(message->type))
        shard->counters.stale++;
    /* Once one message waits, all later ones wait behind it: order is part of the protocol. */
    else if (handler->sender == COORDINATOR && !is_at_once(message->type) &&
             (shard->waiting.count || is_hindered(shard, message)))
        keep_waiting(shard, message);
    else
        handler->call(shard, from, message, out);
    check_state(shard);
}

void handle_waiting(struct shard *shard, struct outbox *out) {
    struct waiting *waiting = &shard->waiting;
    size_t done = 0;
    assert(!waiting->count || shard->coordinator);
    for (; done < waiting->count; done++) {
        struct message message = decode_kept(&waiting->messages[done]);
        if (is_hindered(shard, &message))
            break;
        if (shard->device_failed && !begins_anew(message.type))
            shard->counters.stale++;
        else
            handlers[message.type].call(shard, shard->coordinator, &message, out);
        waiting_release(&waiting->messages[done]);
    }
    waiting->count -= done;
    for (size_t i = 0; done && i < waiting->count; i++)
        waiting->messages[i] = waiting->messages[i + done];
}

void shard_peer_gone(struct shard *shard, uint32_t link) {
    struct replica_link *replica = shard_replica(shard, link);
    if (link == shard->coordinator) {
        shard->coordinator = 0;
        apart_give_up(&shard->saving);
        forget_waiting(shard);
    }
    if (!replica)
        return;
    kept_bulk_release(&replica->wanted);
    struct replica_link *end = shard->replicas + shard->replica_count--;
    memmove(replica, replica + 1, (size_t)(end - (replica + 1)) * sizeof *replica);
}
