/* Checkpoints: asks for writing, loading, deleting and fencing, and acts on the answers. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/step_files.h"
#include "shard/state.h"

/* ---- the folder: the term that keeps older coordinators out ---- */

/* The file FOLDER/epoch, byte for byte. */
struct term_file {
    char magic[8];
    uint64_t term;
    uint64_t checksum; /* of the fields before it */
};

static const char term_magic[8] = "DMLEPOC\n";

static uint64_t checksum_of(const struct term_file *content) {
    return hash64(content, offsetof(struct term_file, checksum));
}

/* 0 if there is no file. */
static int read_term(const struct disk *disk, const char *path, uint64_t *term) {
    struct term_file content;
    void *file;
    uint64_t length;
    *term = 0;
    int code = disk->open(disk->context, path, &file, &length);
    if (code == ERROR_UNAVAILABLE) {
        error_clear();
        return 0;
    }
    if (code)
        return code;
    if (length == sizeof content)
        code = disk->read(disk->context, file, 0, &content, sizeof content);
    if (!code &&
        (length != sizeof content || memcmp(content.magic, term_magic, sizeof term_magic) ||
         content.checksum != checksum_of(&content)))
        code = error_set(ERROR_DATA,
                         "%s is damaged: remove it once no coordinator of this run is left", path);
    disk->close(disk->context, file);
    *term = code ? 0 : content.term;
    return code;
}

static int write_term(const struct disk *disk, const char *path, uint64_t term) {
    struct term_file content = {.term = term};
    memcpy(content.magic, term_magic, sizeof term_magic);
    content.checksum = checksum_of(&content);
    const struct disk_piece piece = {&content, sizeof content};
    if (failpoint_write(FAILPOINT_fence_write))
        return error_set_errno(ERROR_IO, "cannot write %s", path);
    int code = disk->write(disk->context, path, &piece, 1, NULL);
    if (!code)
        failpoint(FAILPOINT_fence_written);
    return code;
}

/* Writes the term into the folder, unless the folder holds it already. ERROR_AGAIN if the folder
 * holds a higher one: a newer coordinator works with it. ERROR_DATA if the file is damaged. */
static int folder_fence(const struct disk *disk, const char *folder, uint64_t term) {
    char *path = memory_format("%s/epoch", folder);
    uint64_t there;
    int code = read_term(disk, path, &there);
    if (!code && there > term && !mutant(NO_TERM_CHECK))
        code = error_set(ERROR_AGAIN,
                         "a newer coordinator, of epoch %" PRIu64 ", works with %s; this one has "
                         "epoch %" PRIu64 " and must end",
                         there, folder, term);
    else if (!code && there < term)
        code = write_term(disk, path, term);
    free(path);
    return code;
}

/* ---- actions ---- */

/* At most one action of a kind is queued. A second one replaces the first: a FENCE of a higher term
 * or a KEEP of a later step makes the earlier one needless. */
void saving_act(struct saving *saving, struct shard_action action) {
    size_t place = 0;
    while (place < saving->action_count && saving->actions[place].kind != action.kind)
        place++;
    if (place == saving->action_count) {
        assert(place < sizeof saving->actions / sizeof *saving->actions);
        saving->action_count++;
        saving->unanswered +=
            action.kind == SHARD_FENCE || action.kind == SHARD_LOAD || action.kind == SHARD_LOOK;
    }
    assert(saving->folder);
    action.folder = saving->folder;
    saving->actions[place] = action;
}

bool shard_next_action(struct shard *shard, struct shard_action *action) {
    struct saving *saving = &shard->saving;
    if (!saving->action_count)
        return false;
    *action = saving->actions[0];
    saving->action_count--;
    memmove(saving->actions, saving->actions + 1, saving->action_count * sizeof *saving->actions);
    return true;
}

static void look(struct shard *shard, const struct disk *disk, const struct shard_action *action,
                 struct outbox *out) {
    uint64_t lacking;
    int code = action->anew ? step_files_keep(disk, action->folder, NULL, 0, UINT64_MAX) : 0;
    bool lacks = !code && checkpoint_lacks(disk, action->folder, &action->expected, action->digest,
                                           &lacking);
    shard_looked(shard, code, error_text(), lacks ? &lacking : NULL, out);
}

void shard_carry_out(struct shard *shard, const struct disk *disk,
                     const struct shard_action *action, struct outbox *out) {
    struct file_piece piece;
    int code;
    switch (action->kind) {
    case SHARD_WRITE:
        code = checkpoint_write(action->job, disk);
        shard_written(shard, code, error_text(), out);
        break;
    case SHARD_LOAD:
        failpoint(FAILPOINT_restore_begin);
        code = checkpoint_load(disk, action->folder, &action->expected, action->digest,
                               action->registers, action->loaded);
        failpoint(FAILPOINT_restore_done);
        shard_loaded(shard, code, error_text(), out);
        break;
    case SHARD_KEEP:
        if (step_files_keep(disk, action->folder, action->steps, action->count, action->before))
            log_warning("%s", error_text());
        shard_kept(shard, action, out);
        break;
    case SHARD_LOOK:
        look(shard, disk, action, out);
        break;
    case SHARD_READ:
        piece = action->piece;
        code = step_file_read(disk, action->folder, action->bytes, &piece);
        shard_read(shard, &piece, code, error_text(), out);
        break;
    case SHARD_PUT:
        code = step_file_put(disk, action->folder, action->number, &action->piece);
        shard_put(shard, code, error_text(), action->piece.length, out);
        break;
    case SHARD_FENCE:
        code = folder_fence(disk, action->folder, action->term);
        shard_fenced(shard, code, error_text(), out);
        break;
    }
    error_clear();
}

/* ---- what lies on disk ---- */

static void forget_kept(struct saving *saving, size_t number) {
    assert(number < saving->kept_count);
    checkpoint_release(&saving->kept[number]);
    saving->kept_count--;
    memmove(saving->kept + number, saving->kept + number + 1,
            (saving->kept_count - number) * sizeof *saving->kept);
}

/* Takes `checkpoint` over as the newest. The list stays rising: a step that is written again
 * replaces its entry and all later ones. */
static void note_kept(struct saving *saving, struct checkpoint *checkpoint) {
    while (saving->kept_count &&
           saving->kept[saving->kept_count - 1].header.step >= checkpoint->header.step)
        forget_kept(saving, saving->kept_count - 1);
    MEMORY_ROOM(saving->kept, saving->kept_count, saving->kept_capacity);
    saving->kept[saving->kept_count++] = *checkpoint;
    *checkpoint = (struct checkpoint){0};
}

static bool knows(const struct saving *saving, uint64_t step) {
    for (size_t i = 0; i < saving->kept_count; i++)
        if (saving->kept[i].header.step == step)
            return true;
    return false;
}

void saving_begin(struct saving *saving, const char *folder, bool apart) {
    while (saving->kept_count)
        forget_kept(saving, saving->kept_count - 1);
    assert(!saving->apart.bringing);
    saving->apart = (struct apart){.used = apart && *folder};
    if (saving->folder && !strcmp(saving->folder, folder))
        return;
    free(saving->folder);
    saving->folder = *folder ? memory_copy_string(folder) : NULL;
    saving->fenced = 0;
}

void saving_release(struct saving *saving) {
    while (saving->kept_count)
        forget_kept(saving, saving->kept_count - 1);
    checkpoint_release(&saving->loading);
    checkpoint_job_free(saving->job);
    free(saving->kept);
    free(saving->steps);
    free(saving->folder);
}

/* ---- fencing ---- */

/* The term must be on disk before this coordinator is welcomed, or before READY: a process that is
 * started in place of this shard knows only what the folder says, and must refuse an older
 * coordinator too. */
bool fence_folder(struct shard *shard) {
    struct saving *saving = &shard->saving;
    if (!saving->folder || saving->fenced >= shard->term)
        return false;
    saving_act(saving, (struct shard_action){.kind = SHARD_FENCE, .term = shard->term});
    return true;
}

void shard_fenced(struct shard *shard, int code, const char *reason, struct outbox *out) {
    struct saving *saving = &shard->saving;
    bool welcoming = saving->welcoming;
    assert(saving->unanswered && saving->fenced < shard->term);
    saving->welcoming = false;
    saving->unanswered--;
    if (!code) {
        saving->fenced = shard->term;
        if (welcoming)
            welcome_coordinator(shard, out);
        else
            send_if_ready(shard, out);
    } else if (welcoming) {
        send_refused(shard->term, shard->coordinator, reason, out);
        if (saving->former) /* it is not obeyed any more, and would wait for answers */
            send_refused(saving->former_term, saving->former, "a newer coordinator was here", out);
        shard->coordinator = 0;
        forget_waiting(shard);
    } else {
        shard_answer(
            shard, shard->coordinator,
            (struct message){.type = MESSAGE_FAILED, .failed = {(uint32_t)-code, reason, 0}}, out);
    }
    handle_waiting(shard, out);
}

/* ---- writing ---- */

static void send_checkpointed(const struct shard *shard, uint32_t to, uint32_t attempt,
                              uint64_t step, uint64_t digest, int code, const char *reason,
                              struct u64_list files, struct outbox *out) {
    struct message message = {.type = MESSAGE_CHECKPOINTED};
    message.checkpointed = (struct message_checkpointed){.attempt = attempt,
                                                         .step = step,
                                                         .digest = digest,
                                                         .status = (uint32_t)-code,
                                                         .reason = reason,
                                                         .files = files};
    shard_answer(shard, to, message, out);
}

static int check_slots(const struct u64_list *slots, uint32_t count) {
    for (uint32_t i = 0; i < slots->length; i++)
        if (slots->items[i] >= count)
            return error_set(ERROR_INTERNAL, "asked for a checkpoint of slot %llu of %u",
                             (unsigned long long)slots->items[i], count);
    return 0;
}

static int check_wanted(const struct shard *shard, const struct message_checkpoint *wanted) {
    uint64_t serial = registers_factor_serial(&shard->registers);
    if (!shard->ready || !shard->saving.folder)
        return error_set(ERROR_INTERNAL, "asked for a checkpoint, but this shard was given no "
                                         "folder for it");
    if (wanted->best && !shard->registers.keeps_best)
        return error_set(ERROR_INTERNAL, "asked for a checkpoint of a best point, but this shard "
                                         "keeps none");
    if (wanted->sums && !shard->registers.adagrad)
        return error_set(ERROR_INTERNAL, "asked for a checkpoint of Adagrad's sums, but this shard "
                                         "has none");
    if (wanted->factor && wanted->factor != serial && !(serial && mutant(FACTOR_KEPT)))
        return error_set(ERROR_INTERNAL,
                         "asked for a checkpoint of preconditioner %llu, but this shard has %llu",
                         (unsigned long long)wanted->factor, (unsigned long long)serial);
    if (wanted->margins && !shard->registers.rows.total)
        return error_set(ERROR_INTERNAL,
                         "asked for a checkpoint of margins of rows, but this shard "
                         "has none");
    int code = check_slots(&wanted->slots, shard->registers.slots);
    return code ? code : check_slots(&wanted->window, shard->registers.rows.slots);
}

/* Moves the points of a bit set between the host and where programs run. */
static int move_points(struct registers *registers, uint32_t points,
                       int (*move)(struct registers *registers, uint8_t number, size_t offset,
                                   size_t count)) {
    int code = 0;
    for (uint32_t i = 0; i < CHECKPOINT_POINTS && !code; i++)
        if (points >> i & 1)
            code = move(registers, checkpoint_registers[i], 0, registers->count);
    return code;
}

static struct checkpoint_header header_of(const struct shard *shard,
                                          const struct message_checkpoint *wanted) {
    struct checkpoint_header header;
    checkpoint_header_init(&header, shard->run, shard->index, &shard->registers, wanted->step);
    header.attempt = shard->attempt;
    header.points |= (uint32_t)wanted->best << CHECKPOINT_BEST;
    header.points |= (uint32_t)wanted->sums << CHECKPOINT_SUMS;
    header.factor = wanted->factor;
    header.factor_order = wanted->factor ? (uint32_t)registers_factor_order(&shard->registers) : 0;
    header.margins = wanted->margins;
    header.pairs = wanted->slots.length;
    header.window = wanted->window.length;
    return header;
}

static void name_entries(const struct u64_list *slots, const struct u64_list *serials,
                         struct checkpoint_pair *entries) {
    assert(serials->length == slots->length);
    for (uint32_t i = 0; i < slots->length; i++)
        entries[i] = (struct checkpoint_pair){.slot = (uint32_t)slots->items[i],
                                              .serial = serials->items[i]};
}

/* Copies the points and the margins. Pairs and directions are written from where they are (see
 * disturbs_writing()), as is the factor, for FACTOR makes the next one elsewhere. */
static struct checkpoint_job *take_snapshot(const struct shard *shard,
                                            const struct checkpoint_header *header,
                                            const struct message_checkpoint *wanted) {
    const struct saving *saving = &shard->saving;
    struct checkpoint_pair entries[SLOTS_MAX + WINDOW_MAX];
    assert(wanted->slots.length <= SLOTS_MAX && wanted->window.length <= WINDOW_MAX);
    name_entries(&wanted->slots, &wanted->serials, entries);
    name_entries(&wanted->window, &wanted->window_serials, entries + wanted->slots.length);
    return checkpoint_job_new(saving->folder, header, &shard->registers, entries,
                              saving->kept_count ? &saving->kept[saving->kept_count - 1] : NULL);
}

/* Brings the pairs and directions that no earlier file has to the host. Nothing changes these
 * copies until the next checkpoint. */
static int pull_entries(struct registers *registers, const struct checkpoint_job *job) {
    const struct checkpoint_header *header = &job->checkpoint.header;
    int code = 0;
    for (uint32_t i = 0; i < checkpoint_entries(header) && !code; i++) {
        uint32_t slot = job->checkpoint.pairs[i].slot;
        if (job->vectors[i][0])
            code = i < header->pairs ? registers_pull_pair(registers, slot)
                                     : registers_pull_direction(registers, slot);
    }
    return code;
}

void on_checkpoint(struct shard *shard, uint32_t from, const struct message *message,
                   struct outbox *out) {
    const struct message_checkpoint *wanted = &message->checkpoint;
    if (wanted->attempt != shard->attempt) {
        shard->counters.stale++;
        return;
    }
    int code = check_wanted(shard, wanted);
    if (code) {
        send_checkpointed(shard, from, wanted->attempt, wanted->step, 0, code, error_text(),
                          (struct u64_list){0}, out);
        error_clear();
        return;
    }
    assert(!shard->saving.job);
    struct checkpoint_header header = header_of(shard, wanted);
    code = move_points(&shard->registers, header.points, registers_pull);
    struct checkpoint_job *job = code ? NULL : take_snapshot(shard, &header, wanted);
    if (!code)
        code = pull_entries(&shard->registers, job);
    if (code) {
        checkpoint_job_free(job);
        shard_fail(shard, code, out);
        return;
    }
    shard->saving.job = job;
    shard->saving.asked_by = from;
    saving_act(&shard->saving, (struct shard_action){.kind = SHARD_WRITE, .job = job});
}

void shard_taken(struct shard *shard, struct outbox *out) {
    handle_waiting(shard, out);
}

void shard_written(struct shard *shard, int code, const char *reason, struct outbox *out) {
    struct saving *saving = &shard->saving;
    assert(saving->job);
    struct checkpoint *checkpoint = &saving->job->checkpoint;
    uint64_t files[APART_FILES_MAX];
    const struct u64_list apart = {.items = files,
                                   .length = code ? 0 : apart_files(shard, checkpoint, files)};
    /* A coordinator that came meanwhile has not asked for this checkpoint, so it is not told. The
     * file is kept in any case: a later checkpoint may refer to its pairs. */
    if (saving->asked_by == shard->coordinator)
        send_checkpointed(shard, saving->asked_by, checkpoint->header.attempt,
                          checkpoint->header.step, checkpoint->digest, code, reason, apart, out);
    if (!code)
        note_kept(saving, checkpoint);
    checkpoint_job_free(saving->job);
    saving->job = NULL;
    handle_waiting(shard, out);
}

/* ---- loading ---- */

void send_restored(const struct shard *shard, uint64_t step, int code, const char *reason,
                   struct outbox *out) {
    struct message message = {.type = MESSAGE_RESTORED};
    message.restored = (struct message_restored){
        .attempt = shard->attempt, .step = step, .status = (uint32_t)-code, .reason = reason};
    shard_answer(shard, shard->coordinator, message, out);
}

void on_restore(struct shard *shard, uint32_t from, const struct message *message,
                struct outbox *out) {
    (void)from;
    const struct message_restore *wanted = &message->restore;
    struct saving *saving = &shard->saving;
    if (wanted->attempt != shard->attempt) {
        shard->counters.stale++;
        return;
    }
    if (!shard->ready || !saving->folder || shard->last.number) {
        (void)error_set(ERROR_INTERNAL, "asked to restore step %llu, but %s",
                        (unsigned long long)wanted->step,
                        shard->last.number ? "programs have run in this attempt"
                                           : "this shard was given no folder");
        send_restored(shard, wanted->step, ERROR_INTERNAL, error_text(), out);
        error_clear();
        return;
    }
    saving->load = (struct shard_action){
        .digest = wanted->digest, .registers = &shard->registers, .loaded = &saving->loading};
    checkpoint_header_init(&saving->load.expected, shard->run, shard->index, &shard->registers,
                           wanted->step);
    saving->restoring = wanted->step;
    if (saving->apart.used)
        saving_look(saving, false);
    else
        saving_load(saving);
}

void saving_load(struct saving *saving) {
    saving->load.kind = SHARD_LOAD;
    saving_act(saving, saving->load);
}

void saving_look(struct saving *saving, bool anew) {
    saving->load.kind = SHARD_LOOK;
    saving->load.anew = anew;
    if (anew)
        saving->apart.brought = false;
    saving_act(saving, saving->load);
}

/* RESTORED with an error makes the coordinator try an older step. So a device that fails while the
 * points are moved to it is told as FAILED: the checkpoint is good. */
void shard_loaded(struct shard *shard, int code, const char *reason, struct outbox *out) {
    struct saving *saving = &shard->saving;
    assert(saving->unanswered && !saving->job);
    saving->unanswered--;
    /* What lies on this host's disk may be damaged, or of an attempt that this shard made
     * elsewhere: then all of it comes from the coordinator, once. */
    if (code == ERROR_DATA && saving->apart.used && !saving->apart.anew &&
        !mutant(OWN_DISK_BELIEVED)) {
        log_warning("asks the coordinator for its copy: %s", reason);
        saving->apart.anew = true;
        saving_look(saving, true);
        return;
    }
    if (!code)
        saving->apart.durable = saving->restoring;
    /* What was loaded into vectors of the host goes to where programs run. */
    struct registers *registers = &shard->registers;
    const struct checkpoint *loaded = &saving->loading;
    int pushed = code ? 0 : move_points(registers, loaded->header.points, registers_push);
    for (uint32_t i = 0; !code && i < checkpoint_entries(&loaded->header) && !pushed; i++)
        pushed = i < loaded->header.pairs
                     ? registers_push_pair(registers, loaded->pairs[i].slot)
                     : registers_push_direction(registers, loaded->pairs[i].slot);
    if (pushed)
        shard_fail(shard, pushed, out);
    else
        send_restored(shard, saving->restoring, code, reason, out);
    if (!code)
        note_kept(saving, &saving->loading);
    handle_waiting(shard, out);
}

/* ---- retaining ---- */

/* Lists every file that a known checkpoint needs. A checkpoint that is being written refers to no
 * other files: it takes its references from the newest known checkpoint. */
static size_t list_needed(struct saving *saving) {
    size_t count = 0;
    saving->steps = memory_resize(saving->steps, saving->kept_count * (SLOTS_MAX + WINDOW_MAX + 1),
                                  sizeof *saving->steps);
    for (size_t i = 0; i < saving->kept_count; i++) {
        const struct checkpoint *kept = &saving->kept[i];
        assert(!i || kept[-1].header.step < kept->header.step);
        saving->steps[count++] = kept->header.step;
        uint32_t entries = mutant(CHECKPOINT_DELETED_EARLY) ? 0 : checkpoint_entries(&kept->header);
        entries = mutant(DIRECTIONS_DELETED) ? kept->header.pairs : entries;
        for (uint32_t k = 0; k < entries; k++)
            saving->steps[count++] = kept->pairs[k].file;
    }
    return count;
}

void on_retain(struct shard *shard, uint32_t from, const struct message *message,
               struct outbox *out) {
    (void)from, (void)out;
    const struct message_retain *retain = &message->retain;
    struct saving *saving = &shard->saving;
    /* A process that has neither written nor loaded a step does not know which files the step
     * needs: then it deletes nothing. */
    if (!saving->folder || !knows(saving, retain->newer) ||
        (retain->older && !knows(saving, retain->older)))
        return;
    for (size_t i = saving->kept_count; i--;)
        if (saving->kept[i].header.step < retain->newer &&
            saving->kept[i].header.step != retain->older)
            forget_kept(saving, i);
    saving->apart.durable = retain->newer;
    size_t count = list_needed(saving);
    saving_act(saving, (struct shard_action){.kind = SHARD_KEEP,
                                             .steps = saving->steps,
                                             .count = count,
                                             .before = retain->newer});
}
