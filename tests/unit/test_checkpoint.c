/* Checkpoints on disk: what is written, what is found damaged, what is deleted. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_saving.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/error.h"

static void a_restored_checkpoint_has_the_same_bits_after_slots_were_used_again(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digests[4];
    struct point *points[4];
    saved_init(&saved);
    for (size_t i = 0; i < 4; i++) { /* after steps 3, 6, 9, 12 of 6 slots */
        for (int n = 0; n < 3; n++)
            take_step(&saved);
        points[i] = save(&saved, &digests[i]);
    }
    take_step(&saved);
    for (uint32_t i = 0; i < 4; i++) {
        restart(&saved, i + 2);
        assert_restores(&saved, i + 2, points[i], digests[i]);
        free(points[i]);
    }
    saved_release(&saved);
}

static void a_living_shard_goes_back_in_a_new_attempt_and_on_from_there(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digests[2], digest;
    saved_init(&saved);
    for (int i = 0; i < 5; i++)
        take_step(&saved);
    struct point *first = save(&saved, &digests[0]);
    take_step(&saved);
    struct point *undone = save(&saved, &digests[1]);
    order(&saved.bench, setup_saving(saved.folder, 2));
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_restores(&saved, 2, first, digests[0]);
    /* The undone step again: its file is written anew, with the pairs that lay in it. */
    memcpy(registers_s(registers_of(&saved), slot_of(6)), undone->s[slot_of(6)], sizeof *undone->s);
    memcpy(registers_q(registers_of(&saved), slot_of(6)), undone->y[slot_of(6)], sizeof *undone->y);
    assert_int_equal(registers_push_pair(registers_of(&saved), slot_of(6)), 0);
    saved.step = 6;
    struct point *again = point_now(&saved);
    struct message message = checkpoint_of(again);
    message.checkpoint.attempt = 2;
    for (int i = 0; i < 2; i++) { /* and over itself */
        order(&saved.bench, message);
        finish_writing(&saved.bench, &files_disk);
        digest = assert_checkpointed(&saved.bench);
        assert_int_not_equal(digest, digests[1]); /* of another attempt */
    }
    retain(&saved, 5, 6);
    restart(&saved, 3);
    assert_restores(&saved, 3, again, digest);
    free(first);
    free(undone);
    free(again);
    saved_release(&saved);
}

static void a_run_that_starts_over_needs_nothing_of_what_was_undone(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_init(&saved);
    take_step(&saved);
    struct point *point = save(&saved, &digest);
    take_step(&saved);
    free(save(&saved, &digest));
    order(&saved.bench, setup_saving(saved.folder, 2));
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = 2;
    message.checkpoint.step = 3; /* with a pair that an undone checkpoint holds as well */
    order(&saved.bench, message);
    finish_writing(&saved.bench, &files_disk);
    digest = assert_checkpointed(&saved.bench);
    retain(&saved, 0, 3);
    assert_false(is_there(&saved, "step-1") || is_there(&saved, "step-2"));
    restart(&saved, 3);
    assert_int_equal(restore(&saved, 3, 3, digest).status, 0);
    free(point);
    saved_release(&saved);
}

static void after_an_older_step_was_restored_the_newer_one_is_not_known(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digests[2];
    saved_init(&saved);
    take_step(&saved);
    struct point *older = save(&saved, &digests[0]);
    for (int i = 0; i < MEMORY; i++)
        take_step(&saved);
    struct point *newer = save(&saved, &digests[1]);
    restart(&saved, 2);
    assert_restores(&saved, 2, newer, digests[1]); /* here, but not on another shard */
    assert_restores(&saved, 2, older, digests[0]);
    retain(&saved, 0, 5);
    assert_true(is_there(&saved, "step-1"));
    free(older);
    free(newer);
    saved_release(&saved);
}

static void only_pairs_that_no_earlier_file_holds_are_written(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    const size_t point = 2 * ELEMENTS * sizeof(double), pair = 2 * ELEMENTS * sizeof(float);
    saved_init(&saved);
    for (int i = 0; i < MEMORY; i++)
        take_step(&saved);
    free(save(&saved, &digest));
    assert_int_equal(size_of(&saved, "step-4"), 384 + point + 4 * pair);
    take_step(&saved);
    free(save(&saved, &digest));
    assert_int_equal(size_of(&saved, "step-5"), 384 + point + pair);
    free(save(&saved, &digest)); /* over the file that holds the newest pair */
    assert_int_equal(size_of(&saved, "step-5"), 384 + point + pair);
    restart(&saved, 2);
    assert_int_equal(restore(&saved, 2, 5, digest).status, 0);
    struct point *last = point_now(&saved); /* what the files hold is known again */
    struct message message = checkpoint_of(last);
    message.checkpoint.attempt = 2;
    message.checkpoint.step = 6;
    order(&saved.bench, message);
    finish_writing(&saved.bench, &files_disk);
    assert_int_equal(size_of(&saved, "step-6"), 384 + point);
    free(last);
    saved_release(&saved);
}

static void a_file_stays_as_long_as_a_retained_checkpoint_needs_it(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digests[12];
    struct point *points[12];
    const char *const others[] = {"step-3.tmp.99", "epoch.tmp.7", "step-0", "notes", "step-3.txt"};
    saved_init(&saved);
    for (uint32_t i = 1; i <= 10; i++) {
        take_step(&saved);
        points[i] = save(&saved, &digests[i]);
        if (i == 1)
            for (size_t n = 0; n < sizeof others / sizeof *others; n++)
                close(open(path_in(&saved, others[n]), O_CREAT | O_WRONLY, 0600));
        if (i > 1)
            retain(&saved, i - 1, i);
        for (uint32_t step = 1; step <= i; step++) { /* the pairs of i − 1 go back to i − 4 */
            char name[32];
            snprintf(name, sizeof name, "step-%u", step);
            assert_int_equal(is_there(&saved, name), i == 1 || step + MEMORY >= i);
        }
    }
    for (size_t n = 0; n < sizeof others / sizeof *others; n++)
        assert_int_equal(is_there(&saved, others[n]), n >= 3);
    for (uint32_t i = 1; i <= 10; i++) {
        restart(&saved, i + 1);
        if (i >= 9)
            assert_restores(&saved, i + 1, points[i], digests[i]);
        else
            assert_int_equal(restore(&saved, i + 1, i, digests[i]).status, 65);
        free(points[i]);
    }
    saved_release(&saved);
}

static void nothing_is_deleted_while_it_is_not_known_what_is_needed(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_init(&saved);
    take_step(&saved);
    free(save(&saved, &digest));
    for (int i = 0; i < MEMORY; i++)
        take_step(&saved);
    free(save(&saved, &digest));
    restart(&saved, 2);
    assert_int_equal(restore(&saved, 2, 5, digest).status, 0);
    retain(&saved, 1, 5); /* step 1 was not read by this process */
    assert_true(is_there(&saved, "step-1") && is_there(&saved, "step-5"));
    retain(&saved, 0, 9);
    assert_true(is_there(&saved, "step-1") && is_there(&saved, "step-5"));
    retain(&saved, 0, 5);
    assert_false(is_there(&saved, "step-1"));
    assert_true(is_there(&saved, "step-5"));
    saved_release(&saved);
}

static void the_file_being_written_and_what_it_needs_are_not_deleted(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_init(&saved);
    for (int i = 0; i < 3; i++) {
        take_step(&saved);
        free(save(&saved, &digest));
    }
    take_step(&saved);
    free(begin_checkpoint(&saved));
    close(open(path_in(&saved, "step-4.tmp.1"), O_CREAT | O_WRONLY, 0600));
    close(open(path_in(&saved, "step-4"), O_CREAT | O_WRONLY, 0600)); /* it may be whole by now */
    close(open(path_in(&saved, "step-9"), O_CREAT | O_WRONLY, 0600)); /* perhaps a successor's */
    retain(&saved, 0, 3);
    assert_true(is_there(&saved, "step-4") && is_there(&saved, "step-4.tmp.1"));
    assert_true(is_there(&saved, "step-9"));
    assert_true(is_there(&saved, "step-1"));
    finish_writing(&saved.bench, &files_disk);
    digest = assert_checkpointed(&saved.bench);
    restart(&saved, 2);
    assert_int_equal(restore(&saved, 2, 4, digest).status, 0);
    saved_release(&saved);
}

/* ---- the best point ---- */

/* A shard of a run that keeps the best point. */
static struct message setup_with_best(const struct saved *saved, uint32_t attempt) {
    struct message message = setup_saving(saved->folder, attempt);
    message.shard_setup.keeps_best = 1;
    return message;
}

static void the_best_point_is_saved_if_asked_and_comes_back(void **state) {
    (void)state;
    struct saved saved;
    double *best, kept[ELEMENTS];
    saved_init(&saved);
    order(&saved.bench, setup_with_best(&saved, 2));
    randomize(&saved, REGISTER_X);
    randomize(&saved, REGISTER_BEST);
    best = registers_of(&saved)->vector[REGISTER_BEST].elements;
    memcpy(kept, best, sizeof kept);
    struct point *point = point_now(&saved);
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = 2;
    message.checkpoint.best = 1;
    order(&saved.bench, message);
    randomize(&saved, REGISTER_BEST); /* too late to be in it */
    finish_writing(&saved.bench, &files_disk);
    uint64_t digest = assert_checkpointed(&saved.bench);
    assert_int_equal(size_of(&saved, "step-0"), 256 + 3 * sizeof kept);
    order(&saved.bench, setup_with_best(&saved, 3));
    assert_restores(&saved, 3, point, digest);
    assert_memory_equal(best, kept, sizeof kept);
    flip(&saved, "step-0", 256 + 3 * sizeof kept - 1);
    order(&saved.bench, setup_with_best(&saved, 4));
    assert_refused(&saved, 0, digest, 65, "step-0", "damaged");
    free(point);
    saved_release(&saved);
}

static void a_shard_that_keeps_no_best_point_neither_saves_nor_restores_one(void **state) {
    (void)state;
    struct saved saved;
    saved_init(&saved);
    order(&saved.bench, setup_with_best(&saved, 2));
    struct point *point = point_now(&saved);
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = 2;
    message.checkpoint.best = 1;
    order(&saved.bench, message);
    finish_writing(&saved.bench, &files_disk);
    uint64_t digest = assert_checkpointed(&saved.bench);
    restart(&saved, 3);
    assert_refused(&saved, 0, digest, 65, "step-0", "best point");
    message.checkpoint.attempt = 3;
    order(&saved.bench, message);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.status, 70);
    free(point);
    saved_release(&saved);
}

/* ---- Adagrad's sums ---- */

static struct message setup_with_sums(const struct saved *saved, uint32_t attempt, bool best) {
    struct message message = setup_saving(saved->folder, attempt);
    message.shard_setup.adagrad = 1;
    message.shard_setup.keeps_best = best;
    return message;
}

/* A checkpoint of step 0 with the sums; its digest. */
static uint64_t save_sums(struct saved *saved, struct point *point, bool best) {
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = saved->bench.shard->attempt;
    message.checkpoint.sums = 1;
    message.checkpoint.best = best;
    order(&saved->bench, message);
    randomize(saved, REGISTER_A); /* too late to be in it */
    finish_writing(&saved->bench, &files_disk);
    return assert_checkpointed(&saved->bench);
}

static void sums_are_saved_if_asked_and_come_back_beside_the_best_point_or_without(void **state) {
    (void)state;
    for (unsigned best = 0; best < 2; best++) {
        struct saved saved;
        double sums[ELEMENTS];
        size_t end = 256 + (3 + best) * sizeof sums;
        saved_init(&saved);
        order(&saved.bench, setup_with_sums(&saved, 2, best));
        for (uint8_t i = 0; i < REGISTERS; i++)
            if (registers_have(registers_of(&saved), i))
                randomize(&saved, i);
        struct point *point = point_now(&saved);
        memcpy(sums, registers_of(&saved)->vector[REGISTER_A].elements, sizeof sums);
        uint64_t digest = save_sums(&saved, point, best);
        assert_int_equal(size_of(&saved, "step-0"), end);
        order(&saved.bench, setup_with_sums(&saved, 3, best));
        assert_restores(&saved, 3, point, digest);
        assert_memory_equal(registers_of(&saved)->vector[REGISTER_A].elements, sums, sizeof sums);
        flip(&saved, "step-0", end - 1);
        order(&saved.bench, setup_with_sums(&saved, 4, best));
        assert_refused(&saved, 0, digest, 65, "step-0", "damaged");
        free(point);
        saved_release(&saved);
    }
}

static void sums_that_are_not_asked_for_are_zero_after_going_back(void **state) {
    (void)state;
    struct saved saved;
    saved_init(&saved);
    order(&saved.bench, setup_with_sums(&saved, 2, false));
    struct point *point = point_now(&saved);
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = 2;
    randomize(&saved, REGISTER_A);
    order(&saved.bench, message);
    finish_writing(&saved.bench, &files_disk);
    uint64_t digest = assert_checkpointed(&saved.bench);
    order(&saved.bench, setup_with_sums(&saved, 3, false));
    assert_restores(&saved, 3, point, digest);
    const double *found = read_register(&saved.bench, REGISTER_A, FIRST, ELEMENTS);
    for (size_t i = 0; i < ELEMENTS; i++)
        assert_true(found[i] == 0);
    free(point);
    saved_release(&saved);
}

static void a_shard_without_sums_neither_saves_nor_restores_them(void **state) {
    (void)state;
    struct saved saved;
    saved_init(&saved);
    order(&saved.bench, setup_with_sums(&saved, 2, false));
    struct point *point = point_now(&saved);
    uint64_t digest = save_sums(&saved, point, false);
    restart(&saved, 3);
    assert_refused(&saved, 0, digest, 65, "step-0", "sums of downpour");
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = 3;
    message.checkpoint.sums = 1;
    order(&saved.bench, message);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.status, 70);
    free(point);
    saved_release(&saved);
}

/* ---- a full disk ---- */

/* Files may not grow beyond `bytes`: as on a full disk, write() fails in the middle. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_is_told_and_the_last_good_files_stay(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest, later;
    saved_init(&saved);
    take_step(&saved);
    struct point *point = save(&saved, &digest);
    take_step(&saved);
    free(begin_checkpoint(&saved));
    limit_files(10000);
    finish_writing(&saved.bench, &files_disk);
    limit_files(RLIM_INFINITY);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.status, 74);
    assert_non_null(strstr(answer(&saved.bench, 0).checkpointed.reason, path_in(&saved, "step-2")));
    assert_false(is_there(&saved, "step-2"));
    struct point *second = save(&saved, &later); /* again, with room: whole */
    restart(&saved, 2);
    assert_restores(&saved, 2, second, later);
    restart(&saved, 3);
    assert_restores(&saved, 3, point, digest);
    free(point);
    free(second);
    saved_release(&saved);
}

static int fail_to_write(void *context, const char *path, const struct disk_piece *pieces,
                         size_t count, const struct disk_taken *taken) {
    (void)context, (void)pieces, (void)count, (void)taken;
    return error_set(ERROR_IO, "cannot write %s: Input/output error", path);
}

static void a_failed_write_is_told_and_its_pairs_are_written_the_next_time(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    struct disk broken = files_disk;
    broken.write = fail_to_write;
    saved_init(&saved);
    take_step(&saved);
    free(begin_checkpoint(&saved));
    finish_writing(&saved.bench, &broken);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.status, 74);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.step, 1);
    take_step(&saved);
    struct point *point = save(&saved, &digest);
    restart(&saved, 2);
    assert_restores(&saved, 2, point, digest);
    free(point);
    saved_release(&saved);
}

static void an_empty_shard_has_checkpoints_too(void **state) {
    (void)state;
    struct saved saved = {0};
    folder_new(&saved);
    struct message empty = setup(FIRST, FIRST, 0);
    empty.shard_setup.folder = path_in(&saved, "deep/below");
    char folder[256];
    strcpy(folder, empty.shard_setup.folder);
    empty.shard_setup.folder = folder;
    bench_init(&saved.bench, empty);
    carry_out(&saved.bench, &files_disk);
    run_one(&saved.bench, pair_in(0));
    order(&saved.bench, (struct message){.type = MESSAGE_CHECKPOINT,
                                         .checkpoint = {.attempt = 1,
                                                        .step = 1,
                                                        .slots = {(const uint64_t[]){0}, 1},
                                                        .serials = {(const uint64_t[]){1}, 1}}});
    finish_writing(&saved.bench, &files_disk);
    uint64_t digest = assert_checkpointed(&saved.bench);
    empty.shard_setup.attempt = 2;
    order(&saved.bench, empty);
    assert_int_equal(restore(&saved, 2, 1, digest).status, 0);
    saved_release(&saved);
}

SUITE(checkpoint) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restored_checkpoint_has_the_same_bits_after_slots_were_used_again),
        cmocka_unit_test(a_living_shard_goes_back_in_a_new_attempt_and_on_from_there),
        cmocka_unit_test(a_run_that_starts_over_needs_nothing_of_what_was_undone),
        cmocka_unit_test(after_an_older_step_was_restored_the_newer_one_is_not_known),
        cmocka_unit_test(only_pairs_that_no_earlier_file_holds_are_written),
        cmocka_unit_test(a_file_stays_as_long_as_a_retained_checkpoint_needs_it),
        cmocka_unit_test(nothing_is_deleted_while_it_is_not_known_what_is_needed),
        cmocka_unit_test(the_file_being_written_and_what_it_needs_are_not_deleted),
        cmocka_unit_test(the_best_point_is_saved_if_asked_and_comes_back),
        cmocka_unit_test(sums_are_saved_if_asked_and_come_back_beside_the_best_point_or_without),
        cmocka_unit_test(sums_that_are_not_asked_for_are_zero_after_going_back),
        cmocka_unit_test(a_shard_without_sums_neither_saves_nor_restores_them),
        cmocka_unit_test(a_shard_that_keeps_no_best_point_neither_saves_nor_restores_one),
        cmocka_unit_test(a_full_disk_is_told_and_the_last_good_files_stay),
        cmocka_unit_test(a_failed_write_is_told_and_its_pairs_are_written_the_next_time),
        cmocka_unit_test(an_empty_shard_has_checkpoints_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
