/* A shard under test with a folder for its checkpoints, and steps to take with it. */
#ifndef DML_TESTS_SHARD_SAVING_H
#define DML_TESTS_SHARD_SAVING_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/disk.h"
#include "shard/state.h"
#include "tests/unit/shard_bench.h"

enum {
    ELEMENTS = BLOCK_ELEMENTS + 100,
    PARAMETERS = 4 * BLOCK_ELEMENTS,
    FIRST = 2 * BLOCK_ELEMENTS,
    MEMORY = 4, /* pairs in use; there are two slots more */
    SLOTS = MEMORY + 2,
};

/* What a step leaves: as the bytes of x and g and, by slot, of s and y. */
struct point {
    uint64_t step;
    uint64_t slots[MEMORY], serials[MEMORY];
    uint32_t pairs;
    double x[ELEMENTS], g[ELEMENTS];
    float s[SLOTS][ELEMENTS], y[SLOTS][ELEMENTS];
};

struct saved {
    struct bench bench;
    char folder[64];
    uint64_t step;
    struct random random;
    struct bench_place *place; /* NULL: where all shards of the test are */
};

static inline void folder_new(struct saved *saved) {
    strcpy(saved->folder, "/tmp/test-shard-XXXXXX");
    assert_non_null(mkdtemp(saved->folder));
}

static inline void folder_delete(const struct saved *saved) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", saved->folder);
    assert_int_equal(system(command), 0);
}

static inline struct message setup_saving(const char *folder, uint32_t attempt) {
    struct message message = setup(FIRST + ELEMENTS, FIRST, ELEMENTS);
    message.shard_setup.attempt = attempt;
    message.shard_setup.slots = SLOTS;
    message.shard_setup.history_type = HISTORY_FLOAT;
    message.shard_setup.folder = folder;
    return message;
}

/* Carries out what is queued, but for writing: that stays under way until finish_writing(). */
static inline void carry_out(struct bench *bench, const struct disk *disk) {
    struct shard_action action;
    while (shard_next_action(bench->shard, &action))
        if (action.kind != SHARD_WRITE)
            shard_carry_out(bench->shard, disk, &action, &bench->out);
}

/* As tell(), and what follows of it on disk. */
static inline void order(struct bench *bench, struct message message) {
    tell(bench, COORDINATOR_LINK, message);
    carry_out(bench, &files_disk);
}

/* Afterwards `out` holds the answers to the end of writing alone. */
static inline void finish_writing(struct bench *bench, const struct disk *disk) {
    const struct shard_action action = {.kind = SHARD_WRITE, .job = bench->shard->saving.job};
    outbox_clear(&bench->out);
    assert_non_null(action.job);
    shard_carry_out(bench->shard, disk, &action, &bench->out);
    carry_out(bench, &files_disk);
}

/* A new process for the same folder. */
static inline void start_shard(struct saved *saved, uint32_t attempt) {
    bench_init_at(&saved->bench, setup_saving(saved->folder, attempt), saved->place);
    carry_out(&saved->bench, &files_disk);
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static inline void saved_init_at(struct saved *saved, struct bench_place *place) {
    *saved = (struct saved){.place = place};
    random_init(&saved->random, 1);
    folder_new(saved);
    start_shard(saved, 1);
}

static inline void saved_init(struct saved *saved) {
    saved_init_at(saved, NULL);
}

static inline void saved_release(struct saved *saved) {
    bench_release(&saved->bench);
    folder_delete(saved);
}

static inline struct registers *registers_of(struct saved *saved) {
    return &saved->bench.shard->registers;
}

static inline struct operation pair_in(uint32_t slot) {
    return (struct operation){.code = OPERATION_PAIR,
                              .a = REGISTER_T,
                              .b = REGISTER_X,
                              .c = REGISTER_H,
                              .d = REGISTER_G,
                              .e = REGISTER_H,
                              .f = REGISTER_G,
                              .slot = slot};
}

static inline uint32_t slot_of(uint64_t step) {
    return (uint32_t)(step % SLOTS);
}

static inline void randomize(struct saved *saved, enum vector_register number) {
    for (size_t i = 0; i < ELEMENTS; i++)
        registers_of(saved)->vector[number].elements[i] = random_unit(&saved->random) - 0.5;
    bench_push(registers_of(saved), (uint8_t)number);
}

/* The next step: a new point, the pair that led to it in the slot whose turn it is. */
static inline void take_step(struct saved *saved) {
    saved->step++;
    randomize(saved, REGISTER_T);
    randomize(saved, REGISTER_H);
    run_one(&saved->bench, pair_in(slot_of(saved->step)));
    run_operations(
        &saved->bench,
        (const struct operation[]){{.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_T},
                                   {.code = OPERATION_SWAP, .a = REGISTER_G, .b = REGISTER_H}},
        2);
}

/* What the shard holds of the last step. */
static inline struct point *point_now(struct saved *saved) {
    struct point *point = memory_new(1, sizeof *point);
    struct registers *registers = registers_of(saved);
    bench_pull(registers);
    point->step = saved->step;
    point->pairs = saved->step < MEMORY ? (uint32_t)saved->step : MEMORY;
    memcpy(point->x, registers->vector[REGISTER_X].elements, sizeof point->x);
    memcpy(point->g, registers->vector[REGISTER_G].elements, sizeof point->g);
    for (uint32_t i = 0; i < point->pairs; i++) {
        uint64_t serial = saved->step - point->pairs + 1 + i;
        uint32_t slot = slot_of(serial);
        point->serials[i] = serial;
        point->slots[i] = slot;
        memcpy(point->s[slot], registers_s(registers, slot), sizeof point->s[slot]);
        memcpy(point->y[slot], registers_q(registers, slot), sizeof point->y[slot]);
    }
    return point;
}

static inline void assert_holds(struct saved *saved, const struct point *point) {
    struct registers *registers = registers_of(saved);
    bench_pull(registers);
    assert_memory_equal(point->x, registers->vector[REGISTER_X].elements, sizeof point->x);
    assert_memory_equal(point->g, registers->vector[REGISTER_G].elements, sizeof point->g);
    for (uint32_t i = 0; i < point->pairs; i++) {
        uint32_t slot = (uint32_t)point->slots[i];
        assert_memory_equal(point->s[slot], registers_s(registers, slot), sizeof point->s[slot]);
        assert_memory_equal(point->y[slot], registers_q(registers, slot), sizeof point->y[slot]);
    }
}

static inline struct message checkpoint_of(const struct point *point) {
    return (struct message){.type = MESSAGE_CHECKPOINT,
                            .checkpoint = {.attempt = 1,
                                           .step = point->step,
                                           .slots = {point->slots, point->pairs},
                                           .serials = {point->serials, point->pairs}}};
}

/* Asks for a checkpoint of where the shard is; it is under way afterwards. */
static inline struct point *begin_checkpoint(struct saved *saved) {
    struct point *point = point_now(saved);
    order(&saved->bench, checkpoint_of(point));
    assert_int_equal(saved->bench.out.count, 0);
    return point;
}

/* The digest of a checkpoint that went well. */
static inline uint64_t assert_checkpointed(const struct bench *bench) {
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    struct message_checkpointed done = answer(bench, 0).checkpointed;
    assert_string_equal(done.reason, "");
    assert_int_equal(done.status, 0);
    return done.digest;
}

static inline struct point *save(struct saved *saved, uint64_t *digest) {
    struct point *point = begin_checkpoint(saved);
    finish_writing(&saved->bench, &files_disk);
    *digest = assert_checkpointed(&saved->bench);
    return point;
}

static inline void retain(struct saved *saved, uint64_t older, uint64_t newer) {
    order(&saved->bench, (struct message){.type = MESSAGE_RETAIN, .retain = {older, newer}});
    assert_int_equal(saved->bench.out.count, 0);
}

/* Sends RESTORE to a shard that was set up for `attempt`; the answer, whose text lives until the
 * next message. */
static inline struct message_restored restore(struct saved *saved, uint32_t attempt, uint64_t step,
                                              uint64_t digest) {
    order(&saved->bench,
          (struct message){.type = MESSAGE_RESTORE, .restore = {attempt, step, digest}});
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_RESTORED);
    struct message_restored restored = answer(&saved->bench, 0).restored;
    assert_int_equal(restored.attempt, attempt);
    assert_int_equal(restored.step, step);
    return restored;
}

static inline void assert_restores(struct saved *saved, uint32_t attempt, const struct point *point,
                                   uint64_t digest) {
    struct message_restored restored = restore(saved, attempt, point->step, digest);
    assert_string_equal(restored.reason, "");
    assert_int_equal(restored.status, 0);
    assert_holds(saved, point);
}

/* The process ends, another takes its place. */
static inline void restart(struct saved *saved, uint32_t attempt) {
    bench_release(&saved->bench);
    start_shard(saved, attempt);
}

/* ---- files ---- */

static inline char *path_in(const struct saved *saved, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", saved->folder, name);
    return path;
}

static inline bool is_there(const struct saved *saved, const char *name) {
    return access(path_in(saved, name), F_OK) == 0;
}

static inline size_t size_of(const struct saved *saved, const char *name) {
    struct stat status;
    assert_int_equal(stat(path_in(saved, name), &status), 0);
    return (size_t)status.st_size;
}

/* ---- damage ---- */

/* Flips a bit of a file. */
static inline void flip(const struct saved *saved, const char *name, size_t offset) {
    int descriptor = open(path_in(saved, name), O_RDWR);
    uint8_t byte;
    assert_int_equal(pread(descriptor, &byte, 1, (off_t)offset), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(descriptor, &byte, 1, (off_t)offset), 1);
    close(descriptor);
}

/* Sends RESTORE in a fresh attempt, expects it to fail, and what the reason must name. */
static inline void assert_refused(struct saved *saved, uint64_t step, uint64_t digest,
                                  uint32_t status, const char *file, const char *what) {
    struct message_restored restored = restore(saved, saved->bench.shard->attempt, step, digest);
    assert_int_equal(restored.status, status);
    assert_non_null(strstr(restored.reason, path_in(saved, file)));
    assert_non_null(strstr(restored.reason, what));
}

#endif
