/* Checkpoints that are damaged, or of another shard or run: named and refused. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_saving.h"

/* Two checkpoints, the later one needs the earlier; digest of the later. */
static uint64_t save_two(struct saved *saved) {
    uint64_t digest;
    saved_init(saved);
    take_step(saved);
    take_step(saved);
    free(save(saved, &digest));
    take_step(saved);
    free(save(saved, &digest));
    restart(saved, 2);
    return digest;
}

static void every_flipped_byte_of_a_header_is_found(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest = save_two(&saved);
    const char *const names[] = {"step-3", "step-2"};
    for (size_t file = 0; file < 2; file++) {
        size_t header = (184 + (file ? 2 : 3) * 40 + 63) / 64 * 64;
        for (size_t i = 0; i < header; i++) {
            flip(&saved, names[file], i);
            assert_refused(&saved, 3, digest, 65, names[file], "");
            flip(&saved, names[file], i);
        }
    }
    assert_int_equal(restore(&saved, 2, 3, digest).status, 0);
    saved_release(&saved);
}

static void flipped_bytes_of_a_body_are_found(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest = save_two(&saved);
    size_t length = size_of(&saved, "step-3");
    for (int i = 0; i < 200; i++) {
        size_t offset = 320 + random_below(&saved.random, length - 320);
        flip(&saved, "step-3", offset);
        assert_refused(&saved, 3, digest, 65, "step-3", "damaged");
        flip(&saved, "step-3", offset);
    }
    flip(&saved, "step-2", size_of(&saved, "step-2") - 1); /* a pair that step 3 needs of it */
    assert_refused(&saved, 3, digest, 65, "step-2", "damaged");
    saved_release(&saved);
}

static void an_earlier_file_of_the_same_step_with_other_pairs_is_found(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest = save_two(&saved), other;
    char aside[256];
    strcpy(aside, path_in(&saved, "aside"));
    rename(path_in(&saved, "step-3"), aside);
    bench_release(&saved.bench);
    start_shard(&saved, 1);
    saved.step = 0;
    take_step(&saved);
    take_step(&saved);
    free(save(&saved, &other)); /* over step-2, whole, but from other points */
    rename(aside, path_in(&saved, "step-3"));
    restart(&saved, 2);
    assert_refused(&saved, 3, digest, 65, "step-2", "damaged");
    saved_release(&saved);
}

static void files_cut_short_made_longer_or_missing_are_found(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest = save_two(&saved);
    const char *const names[] = {"step-3", "step-2"};
    for (size_t file = 0; file < 2; file++) {
        const char *name = names[file];
        size_t length = size_of(&saved, name);
        const size_t lengths[] = {length - 1, 400, 200, 100, 1, 0};
        char aside[256];
        strcpy(aside, path_in(&saved, "aside"));
        rename(path_in(&saved, name), aside);
        assert_refused(&saved, 3, digest, 65, name, "missing");
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            char command[600];
            snprintf(command, sizeof command, "head -c %zu '%s' >'%s'", lengths[i], aside,
                     path_in(&saved, name));
            assert_int_equal(system(command), 0);
            assert_refused(&saved, 3, digest, 65, name, "cut short");
        }
        rename(aside, path_in(&saved, name));
        assert_int_equal(truncate(path_in(&saved, name), (off_t)length + 1), 0);
        assert_refused(&saved, 3, digest, 65, name, "longer");
        assert_int_equal(truncate(path_in(&saved, name), (off_t)length), 0);
    }
    assert_int_equal(restore(&saved, 2, 3, digest).status, 0);
    saved_release(&saved);
}

/* A fresh process says HELLO and SHARD_SETUP as given, and is asked for step 3. */
static void assert_stranger_refused(struct saved *saved, struct message greeting,
                                    struct message with, uint64_t digest, const char *what) {
    bench_release(&saved->bench);
    saved->bench = (struct bench){.shard = shard_new(&(struct shard_self){.host = "here"})};
    outbox_init(&saved->bench.out);
    order(&saved->bench, greeting);
    order(&saved->bench, with);
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_refused(saved, 3, digest, 65, "step-3", what);
}

static void checkpoints_of_another_run_shard_range_or_history_are_refused(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest = save_two(&saved);
    struct message greeting = hello(), with = setup_saving(saved.folder, 2);
    greeting.hello.run = "another";
    assert_stranger_refused(&saved, greeting, with, digest, "belongs to run run, not to another");
    greeting = hello();
    greeting.hello.index++;
    assert_stranger_refused(&saved, greeting, with, digest, "belongs to shard 3, not to 4");
    greeting = hello();
    with.shard_setup.first -= BLOCK_ELEMENTS;
    with.shard_setup.layout = layout_blob(with.shard_setup.first + with.shard_setup.count, 1, 0);
    assert_stranger_refused(&saved, greeting, with, digest, "from 8192 on, not 4196 from 4096");
    with = setup_saving(saved.folder, 2);
    with.shard_setup.history_type = HISTORY_DOUBLE;
    assert_stranger_refused(&saved, greeting, with, digest, "another type");
    with = setup_saving(saved.folder, 2);
    with.shard_setup.slots = 2;
    assert_stranger_refused(&saved, greeting, with, digest, "more pairs");
    with = setup_saving(saved.folder, 2);
    assert_stranger_refused(&saved, greeting, with, digest ^ 1, "not the checkpoint that was com");
    char other[256];
    strcpy(other, path_in(&saved, "step-2"));
    rename(other, path_in(&saved, "step-3"));
    assert_stranger_refused(&saved, greeting, with, digest, "checkpoint of step 2");
    saved_release(&saved);
}

SUITE(checkpoint_damage) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_byte_of_a_header_is_found),
        cmocka_unit_test(flipped_bytes_of_a_body_are_found),
        cmocka_unit_test(an_earlier_file_of_the_same_step_with_other_pairs_is_found),
        cmocka_unit_test(files_cut_short_made_longer_or_missing_are_found),
        cmocka_unit_test(checkpoints_of_another_run_shard_range_or_history_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
