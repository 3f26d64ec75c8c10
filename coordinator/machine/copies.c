#include "coordinator/machine/copies.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"

#define AHEAD 4 /* pieces that are asked for before the first of them is on disk */

/* A checkpoint whose files are being read. */
struct arrival {
    bool under_way;
    uint64_t serial;                          /* tells it from the one before */
    struct message_checkpointed checkpointed; /* without its list and reason */
    uint64_t *files;                          /* [count] steps of files, the one at hand is */
    uint32_t count, at;
    uint64_t length, asked, got, put; /* bytes of that file */
};

struct copies {
    char *folder; /* owned */
    uint64_t term;
    uint32_t shards;
    struct arrival *arrivals; /* [shards]; owned */
    uint64_t serials;
    struct copies_action *actions; /* queued; owned */
    size_t action_count, action_capacity;
    struct message released; /* what copies_take() or copies_done() returned last */
    char reason[512];
};

struct copies *copies_new(const char *folder, uint64_t term, uint32_t shards) {
    struct copies *copies = memory_new(1, sizeof *copies);
    assert(folder && shards && term);
    *copies = (struct copies){.folder = memory_copy_string(folder),
                              .term = term,
                              .shards = shards,
                              .arrivals = memory_new(shards, sizeof *copies->arrivals)};
    return copies;
}

void copies_action_release(struct copies_action *action) {
    free(action->folder);
    free(action->piece.data);
    free(action->steps);
    *action = (struct copies_action){0};
}

void copies_free(struct copies *copies) {
    if (!copies)
        return;
    for (size_t i = 0; i < copies->action_count; i++)
        copies_action_release(&copies->actions[i]);
    for (uint32_t i = 0; i < copies->shards; i++)
        free(copies->arrivals[i].files);
    free(copies->actions);
    free(copies->arrivals);
    free(copies->folder);
    free(copies);
}

/* ---- actions ---- */

static struct copies_action *add_action(struct copies *copies, enum copies_action_kind kind,
                                        uint32_t shard) {
    MEMORY_ROOM(copies->actions, copies->action_count, copies->action_capacity);
    struct copies_action *action = &copies->actions[copies->action_count++];
    *action = (struct copies_action){.kind = kind, .shard = shard};
    action->folder = memory_format("%s/%" PRIu32, copies->folder, shard);
    return action;
}

bool copies_next_action(struct copies *copies, struct copies_action *action) {
    if (!copies->action_count)
        return false;
    *action = copies->actions[0];
    copies->action_count--;
    memmove(copies->actions, copies->actions + 1, copies->action_count * sizeof *copies->actions);
    return true;
}

void copies_carry_out(const struct disk *disk, struct copies_action *action) {
    switch (action->kind) {
    case COPIES_PUT:
        action->code = step_file_put(disk, action->folder, action->number, &action->piece);
        break;
    case COPIES_READ:
        action->code = step_file_read(disk, action->folder, action->bytes, &action->piece);
        break;
    case COPIES_KEEP:
        action->code =
            step_files_keep(disk, action->folder, action->steps, action->count, action->before);
        break;
    }
    snprintf(action->reason, sizeof action->reason, "%s", error_text());
    error_clear();
}

/* ---- checkpoints that come ---- */

static void send(const struct copies *copies, uint32_t shard, struct message message,
                 struct outbox *out) {
    message.term = copies->term;
    outbox_add(out, shard, &message);
}

static void ask(const struct copies *copies, uint32_t shard, struct outbox *out) {
    struct arrival *arrival = &copies->arrivals[shard];
    while (arrival->asked < arrival->length &&
           arrival->asked - arrival->put < (uint64_t)AHEAD * FILE_PIECE_BYTES) {
        struct message message = {.type = MESSAGE_READ_FILE};
        message.read_file = (struct message_read_file){.attempt = arrival->checkpointed.attempt,
                                                       .step = arrival->files[arrival->at],
                                                       .offset = arrival->asked,
                                                       .bytes = FILE_PIECE_BYTES};
        send(copies, shard, message, out);
        arrival->asked += FILE_PIECE_BYTES;
    }
}

/* One piece is asked for first, as it tells how long the file is. */
static void ask_for_file(const struct copies *copies, uint32_t shard, struct outbox *out) {
    struct arrival *arrival = &copies->arrivals[shard];
    assert(arrival->under_way && arrival->at < arrival->count);
    arrival->asked = arrival->got = arrival->put = 0;
    arrival->length = 1;
    ask(copies, shard, out);
}

/* What the machine is told: that the files are here, or why not. */
static const struct message *release(struct copies *copies, uint32_t shard, int code,
                                     const char *reason) {
    struct arrival *arrival = &copies->arrivals[shard];
    assert(arrival->under_way);
    arrival->under_way = false;
    snprintf(copies->reason, sizeof copies->reason, "%s", reason);
    copies->released = (struct message){
        .type = MESSAGE_CHECKPOINTED, .term = copies->term, .checkpointed = arrival->checkpointed};
    copies->released.checkpointed.status = (uint32_t)-code;
    copies->released.checkpointed.reason = copies->reason;
    return &copies->released;
}

/* A checkpoint that is still coming is one of an older attempt, which nobody waits for. */
static const struct message *begin(struct copies *copies, uint32_t shard,
                                   const struct message *message, struct outbox *out) {
    struct arrival *arrival = &copies->arrivals[shard];
    const struct message_checkpointed *checkpointed = &message->checkpointed;
    if (checkpointed->status || !checkpointed->files.length || mutant(COPIES_NOT_AWAITED))
        return message;
    free(arrival->files);
    *arrival = (struct arrival){.under_way = true,
                                .serial = ++copies->serials,
                                .checkpointed = *checkpointed,
                                .count = checkpointed->files.length};
    arrival->checkpointed.files = (struct u64_list){0};
    arrival->checkpointed.reason = "";
    arrival->files = memory_new(arrival->count, sizeof *arrival->files);
    memcpy(arrival->files, checkpointed->files.items, arrival->count * sizeof *arrival->files);
    ask_for_file(copies, shard, out);
    return NULL;
}

static const struct message *on_piece(struct copies *copies, uint32_t shard,
                                      const struct message *message) {
    struct arrival *arrival = &copies->arrivals[shard];
    const struct message_file_bytes *bytes = &message->file_bytes;
    if (!arrival->under_way || bytes->attempt != arrival->checkpointed.attempt ||
        bytes->step != arrival->files[arrival->at] || bytes->offset != arrival->got)
        return NULL;
    if (bytes->status)
        return release(copies, shard, -(int)bytes->status, bytes->reason);
    if (!message->bulk.length)
        return release(copies, shard, ERROR_DATA, "the shard's file became shorter");
    struct copies_action *action = add_action(copies, COPIES_PUT, shard);
    action->serial = arrival->serial;
    action->number = copies->term;
    action->piece = (struct file_piece){.step = bytes->step,
                                        .offset = bytes->offset,
                                        .file_length = bytes->length,
                                        .data = memory_new(message->bulk.length, 1),
                                        .length = message->bulk.length};
    memcpy(action->piece.data, message->bulk.data, message->bulk.length);
    arrival->length = bytes->length;
    arrival->got += message->bulk.length;
    return NULL;
}

/* A piece of a checkpoint that was given up meanwhile changes nothing. */
static const struct message *piece_is_put(struct copies *copies, const struct copies_action *action,
                                          struct outbox *out) {
    struct arrival *arrival = &copies->arrivals[action->shard];
    if (!arrival->under_way || action->serial != arrival->serial)
        return NULL;
    if (action->code)
        return release(copies, action->shard, action->code, action->reason);
    arrival->put += action->piece.length;
    if (arrival->put < arrival->length) {
        ask(copies, action->shard, out);
        return NULL;
    }
    if (++arrival->at == arrival->count || mutant(FIRST_COPY_ENOUGH))
        return release(copies, action->shard, 0, "");
    ask_for_file(copies, action->shard, out);
    return NULL;
}

/* ---- checkpoints that go ---- */

static void read_for(struct copies *copies, uint32_t shard,
                     const struct message_read_file *wanted) {
    struct copies_action *action = add_action(copies, COPIES_READ, shard);
    action->attempt = wanted->attempt;
    action->piece = (struct file_piece){.step = wanted->step, .offset = wanted->offset};
    action->bytes = wanted->bytes;
}

static void send_piece(const struct copies *copies, struct copies_action *action,
                       struct outbox *out) {
    struct file_piece *piece = &action->piece;
    struct message message = {.type = MESSAGE_FILE_BYTES, .term = copies->term};
    message.file_bytes = (struct message_file_bytes){.attempt = action->attempt,
                                                     .step = piece->step,
                                                     .offset = piece->offset,
                                                     .length = piece->file_length,
                                                     .status = (uint32_t)-action->code,
                                                     .reason = action->reason};
    message.bulk = (struct bulk){.data = piece->data, .length = piece->length};
    outbox_add_owned(out, action->shard, &message, piece->data);
    piece->data = NULL;
}

static void keep(struct copies *copies, uint32_t shard, const struct message_needed *needed) {
    struct copies_action *action = add_action(copies, COPIES_KEEP, shard);
    action->before = needed->before;
    action->count = mutant(COPIES_REMOVED_EARLY) ? 0 : needed->steps.length;
    action->steps = memory_new(needed->steps.length, sizeof *action->steps);
    memcpy(action->steps, needed->steps.items, needed->steps.length * sizeof *action->steps);
}

/* ---- the calls ---- */

const struct message *copies_take(struct copies *copies, uint32_t worker,
                                  const struct message *message, struct outbox *out) {
    if (worker >= copies->shards || message->term != copies->term)
        return message;
    switch (message->type) {
    case MESSAGE_CHECKPOINTED:
        return begin(copies, worker, message, out);
    case MESSAGE_FILE_BYTES:
        return on_piece(copies, worker, message);
    case MESSAGE_READ_FILE:
        read_for(copies, worker, &message->read_file);
        return NULL;
    case MESSAGE_NEEDED:
        keep(copies, worker, &message->needed);
        return NULL;
    default:
        return message;
    }
}

void copies_lost(struct copies *copies, uint32_t worker) {
    if (worker < copies->shards)
        copies->arrivals[worker].under_way = false;
}

const struct message *copies_done(struct copies *copies, struct copies_action *action,
                                  struct outbox *out) {
    const struct message *released = NULL;
    if (action->kind == COPIES_PUT)
        released = piece_is_put(copies, action, out);
    else if (action->kind == COPIES_READ)
        send_piece(copies, action, out);
    else if (action->code)
        log_warning("%s", action->reason);
    copies_action_release(action);
    return released;
}
