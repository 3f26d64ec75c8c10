/* A shard whose host does not see the coordinator's state folder: its checkpoints go to the
 * coordinator and come back. This test plays the coordinator, with copies in a folder of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/step_files.h"
#include "tests/unit/shard_saving.h"
#include "tests/unit/suites.h"

struct hosts_apart {
    struct bench_place place;
    struct saved saved;
    char copies[64];
};

/* A process on the host, which is set up. */
static void start(struct hosts_apart *apart, uint32_t attempt) {
    bench_init_at(&apart->saved.bench, setup_saving("/state/shards/1/3", attempt), &apart->place);
    carry_out(&apart->saved.bench, &files_disk);
    assert_answer(&apart->saved.bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static void init(struct hosts_apart *apart) {
    *apart = (struct hosts_apart){.copies = "/tmp/test-copies-XXXXXX"};
    assert_non_null(mkdtemp(apart->copies));
    folder_new(&apart->saved);
    random_init(&apart->saved.random, 1);
    apart->saved.place = &apart->place;
    apart->place.own_folder = apart->saved.folder;
    start(apart, 1);
}

static void release(struct hosts_apart *apart) {
    saved_release(&apart->saved);
    strcpy(apart->saved.folder, apart->copies);
    folder_delete(&apart->saved);
}

/* Another host, or the same one with an empty disk. */
static void lose_disk(struct hosts_apart *apart, uint32_t attempt) {
    saved_release(&apart->saved);
    folder_new(&apart->saved);
    start(apart, attempt);
}

/* Reads the files that CHECKPOINTED names, as the coordinator does. */
static void read_files(struct hosts_apart *apart, const uint64_t *files, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct file_piece piece = {.step = files[i]};
        do {
            order(&apart->saved.bench,
                  (struct message){.type = MESSAGE_READ_FILE,
                                   .read_file = {1, files[i], piece.offset, FILE_PIECE_BYTES}});
            assert_answer(&apart->saved.bench, 0, COORDINATOR_LINK, MESSAGE_FILE_BYTES);
            struct message message = answer(&apart->saved.bench, 0);
            assert_int_equal(message.file_bytes.status, 0);
            assert_int_equal(message.file_bytes.offset, piece.offset);
            piece.file_length = message.file_bytes.length;
            piece.data = (void *)message.bulk.data;
            piece.length = message.bulk.length;
            assert_int_equal(step_file_put(&files_disk, apart->copies, 7, &piece), 0);
            piece.offset += piece.length;
        } while (piece.offset < piece.file_length);
    }
}

/* A checkpoint that the coordinator has afterwards; `count` files were named for it. */
static struct point *deliver(struct hosts_apart *apart, uint64_t *digest, uint32_t count) {
    uint64_t files[APART_FILES_MAX];
    struct point *point = save(&apart->saved, digest);
    const struct u64_list named = answer(&apart->saved.bench, 0).checkpointed.files;
    assert_int_equal(named.length, count);
    memcpy(files, named.items, count * sizeof *files);
    read_files(apart, files, count);
    return point;
}

/* Answers each READ_FILE from the copies until the shard answers RESTORED; how many there were. */
static unsigned bring(struct hosts_apart *apart, uint32_t attempt, uint64_t step, uint64_t digest,
                      struct message_restored *restored) {
    struct bench *bench = &apart->saved.bench;
    unsigned asked = 0;
    order(bench, (struct message){.type = MESSAGE_RESTORE, .restore = {attempt, step, digest}});
    while (answer(bench, 0).type == MESSAGE_READ_FILE) {
        const struct message_read_file wanted = answer(bench, 0).read_file;
        struct file_piece piece = {.step = wanted.step, .offset = wanted.offset};
        int code = step_file_read(&files_disk, apart->copies, wanted.bytes, &piece);
        asked++;
        order(bench, (struct message){.type = MESSAGE_FILE_BYTES,
                                      .file_bytes = {attempt, wanted.step, wanted.offset,
                                                     piece.file_length, (uint32_t)-code,
                                                     code ? "it is not there" : ""},
                                      .bulk = {.data = piece.data, .length = piece.length}});
        free(piece.data);
    }
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_RESTORED);
    *restored = answer(bench, 0).restored;
    return asked;
}

static void assert_brought(struct hosts_apart *apart, uint32_t attempt, const struct point *point,
                           uint64_t digest, unsigned files) {
    struct message_restored restored;
    assert_int_equal(bring(apart, attempt, point->step, digest, &restored), files);
    assert_string_equal(restored.reason, "");
    assert_holds(&apart->saved, point);
}

static void a_shard_restores_on_an_empty_disk_what_the_coordinator_has_read(void **state) {
    (void)state;
    struct hosts_apart apart;
    uint64_t digest;
    init(&apart);
    take_step(&apart.saved);
    free(deliver(&apart, &digest, 1));
    order(&apart.saved.bench, (struct message){.type = MESSAGE_RETAIN, .retain = {1, 1}});
    take_step(&apart.saved);
    struct point *point = deliver(&apart, &digest, 1); /* its first pair is in the file of step 1 */
    lose_disk(&apart, 2);
    assert_brought(&apart, 2, point, digest, 2);
    free(point);
    release(&apart);
}

static void what_a_disk_still_has_is_not_asked_for(void **state) {
    (void)state;
    struct hosts_apart apart;
    uint64_t digest;
    init(&apart);
    take_step(&apart.saved);
    struct point *point = deliver(&apart, &digest, 1);
    bench_release(&apart.saved.bench);
    start(&apart, 2);
    assert_brought(&apart, 2, point, digest, 0);
    free(point);
    release(&apart);
}

static void files_of_checkpoints_that_no_durable_step_has_are_named_with_the_next(void **state) {
    (void)state;
    struct hosts_apart apart;
    uint64_t digest;
    init(&apart);
    take_step(&apart.saved);
    free(save(&apart.saved, &digest)); /* its coordinator dies before it has read it */
    take_step(&apart.saved);
    struct point *point = deliver(&apart, &digest, 2);
    lose_disk(&apart, 2);
    assert_brought(&apart, 2, point, digest, 2);
    free(point);
    release(&apart);
}

static void own_files_that_are_damaged_are_all_brought_once(void **state) {
    (void)state;
    struct hosts_apart apart;
    uint64_t digest;
    char command[256];
    init(&apart);
    take_step(&apart.saved);
    struct point *point = deliver(&apart, &digest, 1);
    bench_release(&apart.saved.bench);
    snprintf(command, sizeof command,
             "printf X | dd of=$(echo %s/shards/*/step-1) bs=1 seek=4000 conv=notrunc 2>/dev/null",
             apart.saved.folder);
    assert_int_equal(system(command), 0);
    start(&apart, 2);
    assert_brought(&apart, 2, point, digest, 1);
    free(point);
    release(&apart);
}

static void a_file_that_the_coordinator_lacks_is_reported(void **state) {
    (void)state;
    struct hosts_apart apart;
    struct message_restored restored;
    uint64_t digest;
    init(&apart);
    take_step(&apart.saved);
    free(save(&apart.saved, &digest));
    lose_disk(&apart, 2);
    assert_int_equal(bring(&apart, 2, 1, digest, &restored), 1);
    assert_int_equal(restored.status, 65);
    assert_string_equal(restored.reason, "it is not there");
    release(&apart);
}

static void a_coordinator_that_is_gone_is_not_waited_for(void **state) {
    (void)state;
    struct hosts_apart apart;
    uint64_t digest;
    init(&apart);
    take_step(&apart.saved);
    struct point *point = deliver(&apart, &digest, 1);
    lose_disk(&apart, 2);
    struct bench *bench = &apart.saved.bench;
    order(bench, (struct message){.type = MESSAGE_RESTORE, .restore = {2, 1, digest}});
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READ_FILE);
    shard_peer_gone(bench->shard, COORDINATOR_LINK);
    struct message next = hello();
    next.term = TERM + 1;
    order(bench, next);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_WELCOME);
    next = setup_saving("/state/shards/1/3", 3);
    next.term = TERM + 1;
    order(bench, next);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    free(point);
    release(&apart);
}

static void after_retain_the_coordinator_is_told_which_files_are_needed(void **state) {
    (void)state;
    struct hosts_apart apart;
    uint64_t digest;
    init(&apart);
    for (int i = 0; i < 2; i++) {
        take_step(&apart.saved);
        free(save(&apart.saved, &digest));
    }
    order(&apart.saved.bench, (struct message){.type = MESSAGE_RETAIN, .retain = {2, 2}});
    assert_answer(&apart.saved.bench, 0, COORDINATOR_LINK, MESSAGE_NEEDED);
    const struct message_needed needed = answer(&apart.saved.bench, 0).needed;
    assert_int_equal(needed.before, 2);
    assert_true(needed.steps.length >= 2); /* step 2, and the file of step 1 for its pair */
    release(&apart);
}

static void the_end_of_the_run_leaves_no_file_on_the_host(void **state) {
    (void)state;
    struct hosts_apart apart;
    uint64_t digest;
    char command[128];
    init(&apart);
    take_step(&apart.saved);
    free(save(&apart.saved, &digest));
    shard_clear(apart.saved.bench.shard, &files_disk);
    snprintf(command, sizeof command, "test -z \"$(ls -A %s/shards)\"", apart.saved.folder);
    assert_int_equal(system(command), 0);
    release(&apart);
}

SUITE(apart) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_restores_on_an_empty_disk_what_the_coordinator_has_read),
        cmocka_unit_test(what_a_disk_still_has_is_not_asked_for),
        cmocka_unit_test(files_of_checkpoints_that_no_durable_step_has_are_named_with_the_next),
        cmocka_unit_test(own_files_that_are_damaged_are_all_brought_once),
        cmocka_unit_test(a_file_that_the_coordinator_lacks_is_reported),
        cmocka_unit_test(a_coordinator_that_is_gone_is_not_waited_for),
        cmocka_unit_test(after_retain_the_coordinator_is_told_which_files_are_needed),
        cmocka_unit_test(the_end_of_the_run_leaves_no_file_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
