/* A shard whose host does not see the coordinator's state folder: its checkpoints lie on its own
 * disk. The coordinator reads each of them before the step is durable, and gives back what the disk
 * lacks when the shard is to load a step, as on a host that it has moved to. doc/PROTOCOL.md,
 * "Hosts apart". */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/step_files.h"
#include "shard/state.h"

#define AHEAD 4 /* pieces that are asked for before the first of them is here */

int apart_folder(const struct shard *shard, char **path) {
    char *below;
    int code = shard->self.own_folder(shard->self.context, &below);
    if (code)
        return code;
    *path = memory_format("%s/shards/%016" PRIx64 "-%" PRIu32, below,
                          hash64(shard->run, strlen(shard->run)), shard->index);
    free(below);
    return 0;
}

/* ---- to the coordinator ---- */

static void add_once(uint64_t *steps, uint32_t *count, uint64_t step) {
    for (uint32_t i = 0; i < *count; i++)
        if (steps[i] == step)
            return;
    steps[(*count)++] = step;
}

/* Files up to the newest durable step are the coordinator's already: the ones that a checkpoint
 * refers to were read before that step was durable. Later ones may be files of checkpoints that
 * failed elsewhere, or whose coordinator died. */
uint32_t apart_files(const struct shard *shard, const struct checkpoint *checkpoint,
                     uint64_t steps[APART_FILES_MAX]) {
    const struct apart *apart = &shard->saving.apart;
    uint32_t count = 0;
    if (!apart->used)
        return 0;
    steps[count++] = checkpoint->header.step;
    for (uint32_t i = 0; i < checkpoint_entries(&checkpoint->header); i++)
        if (checkpoint->pairs[i].file > apart->durable && !mutant(EARLIER_FILES_LEFT))
            add_once(steps, &count, checkpoint->pairs[i].file);
    assert(count <= APART_FILES_MAX);
    return count;
}

void on_read_file(struct shard *shard, uint32_t from, const struct message *message,
                  struct outbox *out) {
    (void)from, (void)out;
    const struct message_read_file *wanted = &message->read_file;
    if (wanted->attempt != shard->attempt || !shard->saving.folder) {
        shard->counters.stale++;
        return;
    }
    saving_act(&shard->saving,
               (struct shard_action){.kind = SHARD_READ,
                                     .piece = {.step = wanted->step, .offset = wanted->offset},
                                     .bytes = wanted->bytes});
}

void shard_read(struct shard *shard, const struct file_piece *piece, int code, const char *reason,
                struct outbox *out) {
    struct message message = {.type = MESSAGE_FILE_BYTES, .term = shard->term};
    message.file_bytes = (struct message_file_bytes){.attempt = shard->attempt,
                                                     .step = piece->step,
                                                     .offset = piece->offset,
                                                     .length = piece->file_length,
                                                     .status = (uint32_t)-code,
                                                     .reason = reason};
    message.bulk = (struct bulk){.data = piece->data, .length = piece->length};
    outbox_add_owned(out, shard->coordinator, &message, piece->data);
}

void shard_kept(struct shard *shard, const struct shard_action *action, struct outbox *out) {
    if (!shard->saving.apart.used || !shard->coordinator)
        return;
    struct message message = {.type = MESSAGE_NEEDED};
    message.needed = (struct message_needed){
        .before = action->before,
        .steps = {.items = action->steps, .length = (uint32_t)action->count}};
    shard_answer(shard, shard->coordinator, message, out);
}

/* ---- from the coordinator ---- */

static void ask(struct shard *shard, struct outbox *out) {
    struct apart *apart = &shard->saving.apart;
    while (apart->asked < apart->length &&
           apart->asked - apart->got < (uint64_t)AHEAD * FILE_PIECE_BYTES) {
        struct message message = {.type = MESSAGE_READ_FILE};
        message.read_file = (struct message_read_file){.attempt = shard->attempt,
                                                       .step = apart->step,
                                                       .offset = apart->asked,
                                                       .bytes = FILE_PIECE_BYTES};
        shard_answer(shard, shard->coordinator, message, out);
        apart->asked += FILE_PIECE_BYTES;
    }
}

/* One piece is asked for first, as it tells how long the file is. */
static void bring(struct shard *shard, uint64_t step, struct outbox *out) {
    struct saving *saving = &shard->saving;
    assert(!saving->apart.bringing);
    saving->unanswered++;
    saving->apart.bringing = saving->apart.brought = true;
    saving->apart.step = step;
    saving->apart.got = saving->apart.asked = 0;
    saving->apart.length = 1;
    ask(shard, out);
}

static void end_bringing(struct saving *saving) {
    assert(saving->apart.bringing && saving->unanswered);
    saving->unanswered--;
    saving->apart.bringing = false;
}

void apart_give_up(struct saving *saving) {
    if (saving->apart.bringing)
        end_bringing(saving);
}

/* A file that is still not right after it was brought is left to LOAD, which says what is wrong. */
void shard_looked(struct shard *shard, int code, const char *reason, const uint64_t *lacking,
                  struct outbox *out) {
    struct saving *saving = &shard->saving;
    assert(saving->unanswered);
    saving->unanswered--;
    bool again = lacking && saving->apart.brought && *lacking == saving->apart.step;
    if (code)
        send_restored(shard, saving->restoring, code, reason, out);
    else if (lacking && !again)
        bring(shard, *lacking, out);
    else
        saving_load(saving);
    handle_waiting(shard, out);
}

void on_file_bytes(struct shard *shard, uint32_t from, const struct message *message,
                   struct outbox *out) {
    (void)from;
    const struct message_file_bytes *bytes = &message->file_bytes;
    struct apart *apart = &shard->saving.apart;
    bool expected = apart->bringing && bytes->attempt == shard->attempt &&
                    bytes->step == apart->step && bytes->offset == apart->got;
    if (!expected) {
        shard->counters.stale++;
        return;
    }
    if (bytes->status || !message->bulk.length) {
        end_bringing(&shard->saving);
        send_restored(shard, shard->saving.restoring,
                      bytes->status ? -(int)bytes->status : ERROR_DATA,
                      bytes->status ? bytes->reason : "the coordinator's copy is cut short", out);
        handle_waiting(shard, out);
        return;
    }
    apart->length = bytes->length;
    saving_act(&shard->saving, (struct shard_action){.kind = SHARD_PUT,
                                                     .piece = {.step = apart->step,
                                                               .offset = apart->got,
                                                               .file_length = apart->length,
                                                               .data = (void *)message->bulk.data,
                                                               .length = message->bulk.length},
                                                     .number = shard->incarnation});
}

void shard_put(struct shard *shard, int code, const char *reason, uint64_t bytes,
               struct outbox *out) {
    struct saving *saving = &shard->saving;
    assert(saving->apart.bringing);
    saving->apart.got += bytes;
    if (!code && saving->apart.got < saving->apart.length) {
        ask(shard, out);
        return;
    }
    end_bringing(saving);
    if (code)
        send_restored(shard, saving->restoring, code, reason, out);
    else
        saving_look(saving, false);
    handle_waiting(shard, out);
}

/* ---- the end ---- */

void shard_clear(const struct shard *shard, const struct disk *disk) {
    const char *folder = shard->saving.folder;
    if (!shard->saving.apart.used)
        return;
    char *path = memory_format("%s/epoch", folder);
    if (step_files_keep(disk, folder, NULL, 0, UINT64_MAX) || disk->remove(disk->context, path) ||
        disk->remove(disk->context, folder))
        log_warning("%s stays: %s", folder, error_text());
    error_clear();
    free(path);
}
