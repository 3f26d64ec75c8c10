/* The coordinator's copies of checkpoints of shards on hosts that do not see its state folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "coordinator/machine/copies.h"
#include "tests/cluster/decoded.h"
#include "tests/unit/folder_fixture.h"
#include "tests/unit/suites.h"

enum { TERM = 6 };

struct desk {
    struct copies *copies;
    struct outbox out;
};

static void init(struct desk *desk) {
    desk->copies = copies_new(folder, TERM, 2);
    outbox_init(&desk->out);
}

static void release(struct desk *desk) {
    outbox_release(&desk->out);
    copies_free(desk->copies);
}

static const struct message *tell(struct desk *desk, uint32_t shard, struct message message) {
    outbox_clear(&desk->out);
    message.term = TERM;
    return copies_take(desk->copies, shard, &message, &desk->out);
}

/* Carries the next action out; there must be one. */
static const struct message *carry_out(struct desk *desk) {
    struct copies_action action;
    assert_true(copies_next_action(desk->copies, &action));
    copies_carry_out(&files_disk, &action);
    outbox_clear(&desk->out);
    return copies_done(desk->copies, &action, &desk->out);
}

static const struct message *say_written(struct desk *desk, uint32_t shard, uint64_t *files,
                                         uint32_t count) {
    return tell(desk, shard,
                (struct message){.type = MESSAGE_CHECKPOINTED,
                                 .checkpointed = {.attempt = 1,
                                                  .step = files[0],
                                                  .digest = 77,
                                                  .reason = "",
                                                  .files = {files, count}}});
}

static struct message_read_file question(const struct desk *desk) {
    assert_true(desk->out.count > 0);
    struct message message = decoded(&desk->out, &desk->out.envelopes[0]);
    assert_int_equal(message.type, MESSAGE_READ_FILE);
    return message.read_file;
}

/* The shard's file of a step is its text. */
static const struct message *give(struct desk *desk, uint32_t shard, uint64_t step,
                                  const char *text) {
    return tell(desk, shard,
                (struct message){.type = MESSAGE_FILE_BYTES,
                                 .file_bytes = {1, step, 0, strlen(text), 0, ""},
                                 .bulk = {.data = text, .length = strlen(text)}});
}

static void assert_file(const char *name, const char *text) {
    char *found;
    size_t length;
    assert_int_equal(file_read(inside(name), 1000, &found, &length), 0);
    assert_string_equal(found, text);
    free(found);
}

static void a_checkpoint_of_another_host_passes_once_its_files_are_safe_here(void **state) {
    (void)state;
    struct desk desk;
    uint64_t files[] = {9, 7};
    init(&desk);
    assert_null(say_written(&desk, 1, files, 2));
    assert_int_equal(question(&desk).step, 9);
    assert_null(give(&desk, 1, 9, "nine"));
    assert_null(carry_out(&desk));
    assert_int_equal(question(&desk).step, 7);
    assert_null(give(&desk, 1, 7, "seven"));
    const struct message *passed = carry_out(&desk);
    assert_non_null(passed);
    assert_int_equal(passed->type, MESSAGE_CHECKPOINTED);
    assert_int_equal(passed->checkpointed.status, 0);
    assert_int_equal(passed->checkpointed.step, 9);
    assert_int_equal(passed->checkpointed.digest, 77);
    assert_file("1/step-9", "nine");
    assert_file("1/step-7", "seven");
    release(&desk);
}

static void a_checkpoint_that_lies_here_passes_at_once(void **state) {
    (void)state;
    struct desk desk;
    init(&desk);
    assert_non_null(say_written(&desk, 0, (uint64_t[]){3}, 0));
    assert_non_null(tell(&desk, 5, (struct message){.type = MESSAGE_READ_FILE})); /* a replica's */
    release(&desk);
}

static void a_copy_that_cannot_be_written_fails_the_checkpoint_with_the_reason(void **state) {
    (void)state;
    struct desk desk;
    init(&desk);
    FILE *file = fopen(inside("0"), "w");
    assert_non_null(file);
    fclose(file);
    assert_null(say_written(&desk, 0, (uint64_t[]){3}, 1));
    assert_null(give(&desk, 0, 3, "three"));
    const struct message *passed = carry_out(&desk);
    assert_non_null(passed);
    assert_true(passed->checkpointed.status > 0);
    assert_non_null(strstr(passed->checkpointed.reason, folder));
    release(&desk);
}

static void a_file_that_the_shard_cannot_read_fails_the_checkpoint(void **state) {
    (void)state;
    struct desk desk;
    init(&desk);
    assert_null(say_written(&desk, 0, (uint64_t[]){3}, 1));
    const struct message *passed = tell(
        &desk, 0,
        (struct message){.type = MESSAGE_FILE_BYTES, .file_bytes = {1, 3, 0, 0, 74, "a bad disk"}});
    assert_non_null(passed);
    assert_int_equal(passed->checkpointed.status, 74);
    assert_string_equal(passed->checkpointed.reason, "a bad disk");
    release(&desk);
}

static void what_a_lost_shard_had_begun_to_send_is_forgotten(void **state) {
    (void)state;
    struct desk desk;
    init(&desk);
    assert_null(say_written(&desk, 0, (uint64_t[]){3}, 1));
    assert_null(give(&desk, 0, 3, "three"));
    copies_lost(desk.copies, 0);
    assert_null(carry_out(&desk));
    assert_null(say_written(&desk, 0, (uint64_t[]){4}, 1));
    assert_null(give(&desk, 0, 3, "three")); /* late */
    assert_false(copies_next_action(desk.copies, &(struct copies_action){0}));
    assert_null(give(&desk, 0, 4, "four"));
    assert_non_null(carry_out(&desk));
    release(&desk);
}

static void a_shard_reads_its_files_and_is_told_of_those_that_are_missing(void **state) {
    (void)state;
    struct desk desk;
    init(&desk);
    say_written(&desk, 0, (uint64_t[]){3}, 1);
    give(&desk, 0, 3, "three");
    carry_out(&desk);
    tell(&desk, 0, (struct message){.type = MESSAGE_READ_FILE, .read_file = {2, 3, 1, 3}});
    assert_null(carry_out(&desk));
    struct message message = decoded(&desk.out, &desk.out.envelopes[0]);
    assert_int_equal(message.file_bytes.length, 5);
    assert_int_equal(message.bulk.length, 3);
    assert_memory_equal(message.bulk.data, "hre", 3);
    tell(&desk, 0, (struct message){.type = MESSAGE_READ_FILE, .read_file = {2, 8, 0, 3}});
    assert_null(carry_out(&desk));
    assert_int_equal(decoded(&desk.out, &desk.out.envelopes[0]).file_bytes.status, 65);
    release(&desk);
}

static void copies_that_are_not_needed_are_removed_and_later_ones_stay(void **state) {
    (void)state;
    struct desk desk;
    init(&desk);
    for (uint64_t step = 1; step <= 4; step++) {
        say_written(&desk, 0, &step, 1);
        give(&desk, 0, step, "a file");
        carry_out(&desk);
    }
    tell(&desk, 0,
         (struct message){.type = MESSAGE_NEEDED, .needed = {3, {(uint64_t[]){2, 3}, 2}}});
    carry_out(&desk);
    char **names;
    assert_int_equal(folder_names(inside("0"), &names), 0);
    assert_int_equal(names_count(names), 3); /* 2, 3 and 4 */
    names_free(names);
    release(&desk);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

SUITE(copies) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_checkpoint_of_another_host_passes_once_its_files_are_safe_here),
        IN_FOLDER(a_checkpoint_that_lies_here_passes_at_once),
        IN_FOLDER(a_copy_that_cannot_be_written_fails_the_checkpoint_with_the_reason),
        IN_FOLDER(a_file_that_the_shard_cannot_read_fails_the_checkpoint),
        IN_FOLDER(what_a_lost_shard_had_begun_to_send_is_forgotten),
        IN_FOLDER(a_shard_reads_its_files_and_is_told_of_those_that_are_missing),
        IN_FOLDER(copies_that_are_not_needed_are_removed_and_later_ones_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
