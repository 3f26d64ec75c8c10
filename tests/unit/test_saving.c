/* What waits for the disk, and what a coordinator that comes after another is told. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_saving.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "shard/writer.h"

/* ---- what waits ---- */

static void a_program_waits_only_while_the_slot_of_its_pair_is_being_written(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    saved_init(&saved);
    for (int i = 0; i < 4; i++)
        take_step(&saved);
    struct point *point = begin_checkpoint(&saved);
    take_step(&saved); /* another slot, and x and g change: they were copied */
    take_step(&saved);
    randomize(&saved, REGISTER_T);
    struct operation pair = pair_in(slot_of(1));
    run_operations(bench, &pair, 1);
    assert_int_equal(bench->out.count, 0);
    run_operations(bench, (const struct operation[]){{.code = OPERATION_ZERO}}, 1);
    assert_int_equal(bench->out.count, 0); /* behind it, though it could */
    tell(bench, REPLICA_LINK, greet());
    assert_answer(bench, 0, REPLICA_LINK, MESSAGE_GREETED);
    tell(bench, COORDINATOR_LINK, (struct message){.type = MESSAGE_READ, .read = {.first = FIRST}});
    assert_int_equal(bench->out.count, 0);
    finish_writing(bench, &files_disk);
    uint64_t digest = assert_checkpointed(bench);
    assert_answer(bench, 1, COORDINATOR_LINK, MESSAGE_RESULT);
    assert_answer(bench, 2, COORDINATOR_LINK, MESSAGE_RESULT);
    assert_answer(bench, 3, COORDINATOR_LINK, MESSAGE_SLICE);
    assert_int_equal(answer(bench, 1).result.number, bench->number - 1);
    assert_int_equal(answer(bench, 2).result.number, bench->number);
    restart(&saved, 2);
    assert_restores(&saved, 2, point, digest);
    free(point);
    saved_release(&saved);
}

static void a_slot_is_free_once_it_was_read_though_the_file_is_not_yet_safe(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    saved_init(&saved);
    take_step(&saved);
    take_step(&saved);
    free(begin_checkpoint(&saved));
    struct operation pair = pair_in(slot_of(1));
    run_operations(bench, &pair, 1);
    assert_int_equal(bench->out.count, 0);
    outbox_clear(&bench->out);
    atomic_store(&bench->shard->saving.job->taken, true);
    shard_taken(bench->shard, &bench->out);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    outbox_clear(&bench->out);
    shard_written(bench->shard, 0, "", &bench->out);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    saved_release(&saved);
}

static void a_pair_that_an_earlier_file_holds_may_be_replaced_at_once(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_init(&saved);
    for (int i = 0; i < 4; i++)
        take_step(&saved);
    free(save(&saved, &digest));
    take_step(&saved);
    free(begin_checkpoint(&saved));
    run_one(&saved.bench, pair_in(slot_of(2)));
    run_operations(&saved.bench, (const struct operation[]){pair_in(slot_of(5))}, 1);
    assert_int_equal(saved.bench.out.count, 0);
    finish_writing(&saved.bench, &files_disk);
    assert_answer(&saved.bench, 1, COORDINATOR_LINK, MESSAGE_RESULT);
    saved_release(&saved);
}

static void set_ups_restores_and_checkpoints_wait_for_the_writing_in_order(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    saved_init(&saved);
    take_step(&saved);
    struct point *point = begin_checkpoint(&saved);
    struct message message = checkpoint_of(point);
    tell(bench, COORDINATOR_LINK, message);
    tell(bench, COORDINATOR_LINK, setup_saving(saved.folder, 2));
    tell(bench, COORDINATOR_LINK, (struct message){.type = MESSAGE_RESTORE, .restore = {2, 1, 7}});
    assert_int_equal(bench->out.count, 0);
    assert_holds(&saved, point);
    finish_writing(bench, &files_disk);
    (void)assert_checkpointed(bench);
    assert_int_equal(bench->out.count, 1); /* the second is being written now */
    finish_writing(bench, &files_disk);
    (void)assert_checkpointed(bench);
    assert_answer(bench, 1, COORDINATOR_LINK, MESSAGE_READY);
    assert_answer(bench, 2, COORDINATOR_LINK, MESSAGE_RESTORED);
    assert_int_equal(answer(bench, 2).restored.status, 65);
    free(point);
    saved_release(&saved);
}

static void exponents_that_wait_are_kept_with_their_elements(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    int16_t exponents[FIRST + ELEMENTS];
    saved_init(&saved);
    take_step(&saved);
    free(begin_checkpoint(&saved));
    struct message again = setup_saving(saved.folder, 2);
    again.shard_setup.uniform = 0;
    tell(bench, COORDINATOR_LINK, again);
    for (size_t i = 0; i < FIRST + ELEMENTS; i++)
        exponents[i] = (int16_t)(i % 100);
    tell(bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_EXPONENTS,
                          .exponents = {.attempt = 2, .count = FIRST + ELEMENTS},
                          .bulk = {.data = exponents, .length = sizeof exponents}});
    memset(exponents, 0, sizeof exponents);
    finish_writing(bench, &files_disk);
    assert_answer(bench, 1, COORDINATOR_LINK, MESSAGE_READY);
    for (size_t i = 0; i < ELEMENTS; i++)
        assert_int_equal(registers_of(&saved)->exponents[i], (FIRST + i) % 100);
    saved_release(&saved);
}

static void a_restore_waits_for_the_writing(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    uint64_t digest;
    saved_init(&saved);
    take_step(&saved);
    struct point *point = save(&saved, &digest);
    restart(&saved, 2);
    assert_restores(&saved, 2, point, digest);
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = 2;
    order(bench, message);
    order(bench, (struct message){.type = MESSAGE_RESTORE, .restore = {2, 1, digest}});
    assert_int_equal(bench->out.count, 0);
    assert_null(bench->shard->saving.loading.pairs);
    finish_writing(bench, &files_disk);
    (void)assert_checkpointed(bench);
    assert_answer(bench, 1, COORDINATOR_LINK, MESSAGE_RESTORED);
    free(point);
    saved_release(&saved);
}

static void what_waited_behind_a_set_up_waits_for_the_new_folder_too(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    char other[256];
    saved_init(&saved);
    take_step(&saved);
    free(begin_checkpoint(&saved));
    strcpy(other, path_in(&saved, "other"));
    tell(bench, COORDINATOR_LINK, setup_saving(other, 2));
    tell(bench, COORDINATOR_LINK, (struct message){.type = MESSAGE_RESTORE, .restore = {2, 1, 7}});
    finish_writing(bench, &files_disk);
    (void)assert_checkpointed(bench);
    assert_answer(bench, 1, COORDINATOR_LINK, MESSAGE_READY);
    assert_answer(bench, 2, COORDINATOR_LINK, MESSAGE_RESTORED);
    assert_int_equal(answer(bench, 2).restored.status, 65);
    saved_release(&saved);
}

static void what_waits_from_a_coordinator_that_is_gone_is_forgotten(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    saved_init(&saved);
    take_step(&saved);
    free(begin_checkpoint(&saved));
    run_operations(bench, (const struct operation[]){pair_in(slot_of(1))}, 1);
    shard_peer_gone(bench->shard, COORDINATOR_LINK);
    finish_writing(bench, &files_disk);
    assert_int_equal(bench->out.count, 0); /* nobody who asked for it is there */
    assert_true(is_there(&saved, "step-1"));
    assert_int_equal(bench->shard->last.number, bench->number - 1);
    saved_release(&saved);
}

/* ---- what cannot be ---- */

static void a_checkpoint_or_restore_that_cannot_be_is_refused(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    saved_init(&saved);
    take_step(&saved);
    struct point *point = point_now(&saved);
    struct message message = checkpoint_of(point);
    message.checkpoint.attempt = 9;
    order(bench, message);
    assert_int_equal(bench->out.count, 0);
    message = checkpoint_of(point);
    point->slots[0] = SLOTS;
    order(bench, message);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_int_equal(answer(bench, 0).checkpointed.status, 70);
    assert_int_equal(restore(&saved, 1, 1, 1).status, 70); /* programs have run */
    order(bench, (struct message){.type = MESSAGE_RESTORE, .restore = {7, 1, 1}});
    assert_int_equal(bench->out.count, 0);
    order(bench, setup_saving("", 2)); /* no folder, no checkpoints */
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    message = (struct message){.type = MESSAGE_CHECKPOINT, .checkpoint = {.attempt = 2, .step = 1}};
    order(bench, message);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_int_equal(answer(bench, 0).checkpointed.status, 70);
    assert_int_equal(restore(&saved, 2, 1, 1).status, 70);
    retain(&saved, 0, 1);
    free(point);
    saved_release(&saved);
}

/* ---- the next coordinator ---- */

enum { NEXT_LINK = 8 };

static void assert_flushes(const struct blob *blob, const struct flush_id *ids, size_t count) {
    struct cursor cursor = cursor_over(blob->data, blob->length);
    assert_int_equal(blob->length, 20 * count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(cursor_u32(&cursor), ids[i].attempt);
        assert_int_equal(cursor_u32(&cursor), ids[i].evaluation);
        assert_int_equal(cursor_u64(&cursor), ids[i].incarnation);
        assert_int_equal(cursor_u32(&cursor), ids[i].sequence);
    }
}

static void greet_anew(struct bench *bench, uint64_t term) {
    struct message message = hello();
    message.term = term;
    tell(bench, NEXT_LINK, message);
    carry_out(bench, &files_disk);
    assert_answer(bench, 0, NEXT_LINK, MESSAGE_WELCOME);
}

static void the_next_coordinator_is_told_what_is_in_hand(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    int64_t slice[ELEMENTS] = {0};
    struct flush_id ids[] = {flush(3, 1), flush(3, 2), flush(3, 3)};
    saved_init(&saved);
    greet_anew(bench, TERM + 1);
    assert_answer(bench, 1, NEXT_LINK, MESSAGE_HOLDING);
    assert_int_equal(answer(bench, 1).holding.evaluation, 0);
    greet_anew(bench, TERM + 2);
    struct bytes program;
    bytes_init(&program);
    program_add(&program, &(struct operation){.code = OPERATION_BEGIN,
                                              .evaluation = 3,
                                              .sums = SUMS_PARAMETERS,
                                              .bounds.count = 1});
    struct message message = program_message(1, &program);
    message.term = TERM + 2;
    tell(bench, NEXT_LINK, message);
    for (size_t i = 0; i < 3; i++) {
        struct message slices = stage(ids[i], slice, ELEMENTS);
        slices.term = TERM + 2;
        tell(bench, REPLICA_LINK, slices);
    }
    struct message accepted = fold(ids[1]);
    accepted.term = TERM + 2;
    tell(bench, NEXT_LINK, accepted);
    greet_anew(bench, TERM + 3);
    assert_int_equal(bench->out.count, 2);
    assert_answer(bench, 1, NEXT_LINK, MESSAGE_HOLDING);
    assert_int_equal(answer(bench, 1).term, TERM + 3);
    struct message_holding holding = answer(bench, 1).holding;
    assert_int_equal(holding.attempt, 1);
    assert_int_equal(holding.number, 1);
    assert_int_equal(holding.hash, message.program.hash);
    assert_int_equal(holding.evaluation, 3);
    assert_string_not_equal(holding.device, "");
    assert_flushes(&holding.folded, &ids[1], 1);
    const struct flush_id staged[] = {ids[0], ids[2]};
    assert_flushes(&holding.staged, staged, 2);
    message.term = TERM + 3; /* its last program is answered from memory */
    tell(bench, NEXT_LINK, message);
    assert_answer(bench, 0, NEXT_LINK, MESSAGE_RESULT);
    accepted.term = TERM + 3; /* and the verdict is not new to it */
    tell(bench, NEXT_LINK, accepted);
    assert_answer(bench, 0, NEXT_LINK, MESSAGE_FOLDED);
    bytes_release(&program);
    saved_release(&saved);
}

static void a_shard_that_was_not_set_up_holds_attempt_0(void **state) {
    (void)state;
    struct bench bench = {.shard = shard_new(&(struct shard_self){.host = "here"})};
    outbox_init(&bench.out);
    tell(&bench, COORDINATOR_LINK, hello());
    greet_anew(&bench, TERM + 1);
    assert_answer(&bench, 1, NEXT_LINK, MESSAGE_HOLDING);
    assert_int_equal(answer(&bench, 1).holding.attempt, 0);
    bench_release(&bench);
}

static void a_term_is_on_disk_before_its_coordinator_is_welcomed(void **state) {
    (void)state;
    struct saved saved;
    struct bench *bench = &saved.bench;
    struct shard_action action;
    saved_init(&saved);
    assert_true(is_there(&saved, "epoch"));
    struct message message = hello();
    message.term = TERM + 1;
    tell(bench, NEXT_LINK, message);
    assert_int_equal(bench->out.count, 0);
    assert_true(shard_next_action(bench->shard, &action));
    assert_int_equal(action.kind, SHARD_FENCE);
    assert_int_equal(action.term, TERM + 1);
    shard_fenced(bench->shard, 0, "", &bench->out);
    assert_answer(bench, 0, NEXT_LINK, MESSAGE_WELCOME);
    assert_answer(bench, 1, NEXT_LINK, MESSAGE_HOLDING);
    message.term = TERM + 1; /* the same again: nothing to write */
    tell(bench, NEXT_LINK, message);
    assert_answer(bench, 0, NEXT_LINK, MESSAGE_WELCOME);
    message.term = TERM + 2;
    tell(bench, NEXT_LINK, message);
    assert_true(shard_next_action(bench->shard, &action));
    struct message early = setup_saving(saved.folder, 2);
    early.term = TERM + 2;
    tell(bench, NEXT_LINK, early); /* it waits, and goes with who sent it */
    shard_fenced(bench->shard, ERROR_IO, "the disk is full", &bench->out);
    assert_int_equal(bench->out.count, 2);
    assert_answer(bench, 0, NEXT_LINK, MESSAGE_REFUSED);
    assert_string_equal(answer(bench, 0).refused.reason, "the disk is full");
    message = setup_saving(saved.folder, 2);
    message.term = TERM + 2;
    tell(bench, NEXT_LINK, message); /* whom it refused it does not obey */
    assert_int_equal(shard_counters(bench->shard)->stranger, 1);
    saved_release(&saved);
}

static void a_shard_started_anew_refuses_an_older_coordinator(void **state) {
    (void)state;
    struct saved saved;
    saved_init(&saved);
    greet_anew(&saved.bench, TERM + 7);
    bench_release(&saved.bench);
    bench_init(&saved.bench, setup_saving(saved.folder, 1));
    carry_out(&saved.bench, &files_disk);
    assert_int_equal(saved.bench.out.count, 1);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    assert_int_equal(answer(&saved.bench, 0).failed.status, 75);
    assert_non_null(strstr(answer(&saved.bench, 0).failed.reason, "a newer coordinator"));
    greet_anew(&saved.bench, TERM + 8); /* a newer one is fine */
    saved_release(&saved);
}

static void a_shard_that_could_not_write_the_term_is_not_ready(void **state) {
    (void)state;
    struct bench bench;
    struct shard_action action;
    int16_t exponents[FIRST + ELEMENTS] = {0};
    struct message message = setup_saving("/nowhere", 1);
    message.shard_setup.uniform = 0;
    bench_init(&bench, message);
    assert_true(shard_next_action(bench.shard, &action));
    shard_fenced(bench.shard, ERROR_PERMISSION, "not allowed", &bench.out);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    assert_int_equal(answer(&bench, 0).failed.status, 77);
    tell(&bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_EXPONENTS,
                          .exponents = {.attempt = 1, .count = FIRST + ELEMENTS},
                          .bulk = {.data = exponents, .length = sizeof exponents}});
    assert_int_equal(bench.out.count, 0);
    bench_release(&bench);
}

static void a_damaged_term_is_found(void **state) {
    (void)state;
    struct saved saved;
    saved_init(&saved);
    for (off_t i = 0; i < 24; i++) {
        int descriptor = open(path_in(&saved, "epoch"), O_RDWR);
        uint8_t bytes[24];
        assert_int_equal(read(descriptor, bytes, 24), 24);
        bytes[i] ^= 1;
        assert_int_equal(pwrite(descriptor, bytes + i, 1, i), 1);
        bench_release(&saved.bench);
        bench_init(&saved.bench, setup_saving(saved.folder, 1));
        carry_out(&saved.bench, &files_disk);
        assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        assert_int_equal(answer(&saved.bench, 0).failed.status, 65);
        bytes[i] ^= 1;
        assert_int_equal(pwrite(descriptor, bytes + i, 1, i), 1);
        close(descriptor);
    }
    assert_int_equal(truncate(path_in(&saved, "epoch"), 23), 0);
    bench_release(&saved.bench);
    bench_init(&saved.bench, setup_saving(saved.folder, 1));
    carry_out(&saved.bench, &files_disk);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    saved_release(&saved);
}

/* ---- the thread ---- */

static void signal_done(void *context) {
    assert_int_equal(eventfd_write(*(int *)context, 1), 0);
}

/* Has the thread write what the shard asked for. */
static int write_beside(struct bench *bench, struct writer *writer, int done) {
    eventfd_t times;
    int code;
    assert_false(writer_take(writer, &code));
    writer_start(writer, bench->shard->saving.job);
    do /* it also wakes when it has taken what it reads */
        assert_int_equal(eventfd_read(done, &times), 0);
    while (!writer_take(writer, &code));
    assert_false(writer_take(writer, &(int){0}));
    outbox_clear(&bench->out);
    shard_written(bench->shard, code, error_text(), &bench->out);
    error_clear();
    return code;
}

static void a_thread_writes_beside_the_shard_and_tells_what_went_wrong(void **state) {
    (void)state;
    struct saved saved;
    int done = eventfd(0, 0);
    struct writer *writer = writer_new(&files_disk, signal_done, &done);
    saved_init(&saved);
    take_step(&saved);
    struct point *point = begin_checkpoint(&saved);
    assert_int_equal(write_beside(&saved.bench, writer, done), 0);
    uint64_t digest = assert_checkpointed(&saved.bench);
    take_step(&saved);
    assert_int_equal(mkdir(path_in(&saved, "step-2"), 0700), 0); /* in the way */
    free(begin_checkpoint(&saved));
    assert_true(write_beside(&saved.bench, writer, done) < 0);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.status, 73);
    assert_non_null(strstr(answer(&saved.bench, 0).checkpointed.reason, "step-2"));
    free(begin_checkpoint(&saved));
    writer_start(writer, saved.bench.shard->saving.job);
    writer_free(writer); /* ends what it has begun */
    restart(&saved, 2);
    assert_restores(&saved, 2, point, digest);
    free(point);
    close(done);
    saved_release(&saved);
}

SUITE(saving) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_waits_only_while_the_slot_of_its_pair_is_being_written),
        cmocka_unit_test(a_slot_is_free_once_it_was_read_though_the_file_is_not_yet_safe),
        cmocka_unit_test(a_pair_that_an_earlier_file_holds_may_be_replaced_at_once),
        cmocka_unit_test(set_ups_restores_and_checkpoints_wait_for_the_writing_in_order),
        cmocka_unit_test(exponents_that_wait_are_kept_with_their_elements),
        cmocka_unit_test(a_restore_waits_for_the_writing),
        cmocka_unit_test(what_waited_behind_a_set_up_waits_for_the_new_folder_too),
        cmocka_unit_test(what_waits_from_a_coordinator_that_is_gone_is_forgotten),
        cmocka_unit_test(a_checkpoint_or_restore_that_cannot_be_is_refused),
        cmocka_unit_test(the_next_coordinator_is_told_what_is_in_hand),
        cmocka_unit_test(a_shard_that_was_not_set_up_holds_attempt_0),
        cmocka_unit_test(a_term_is_on_disk_before_its_coordinator_is_welcomed),
        cmocka_unit_test(a_shard_started_anew_refuses_an_older_coordinator),
        cmocka_unit_test(a_shard_that_could_not_write_the_term_is_not_ready),
        cmocka_unit_test(a_damaged_term_is_found),
        cmocka_unit_test(a_thread_writes_beside_the_shard_and_tells_what_went_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
