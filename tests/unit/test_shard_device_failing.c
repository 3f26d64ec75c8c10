/* Shards on a device that fails, or lacks memory, and checkpoints of the one kind for the other. */
#include "tests/unit/suites.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/shard_saving.h"

#include "base/error.h"
#include "device/device.h"
#include "shard/placing.h"

/* ---- checkpoints ---- */

static void *contents(const struct saved *saved, const char *name, size_t *length) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", saved->folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    void *bytes = memory_new(*length, 1);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

static void assert_same_file(const struct saved *one, const struct saved *other, const char *name) {
    size_t length, other_length;
    void *bytes = contents(one, name, &length), *other_bytes = contents(other, name, &other_length);
    assert_int_equal(length, other_length);
    assert_memory_equal(bytes, other_bytes, length);
    free(bytes);
    free(other_bytes);
}

/* The second file refers to pairs of the first. */
static void a_checkpoint_is_the_same_from_either_and_loads_on_either(void **state) {
    (void)state;
    struct bench_place places[] = {{0}, {.device = test_device()}};
    struct saved saved[2];
    struct point *points[2];
    uint64_t digests[2];
    for (int i = 0; i < 2; i++) {
        saved_init_at(&saved[i], &places[i]);
        for (int step = 0; step < 5; step++)
            take_step(&saved[i]);
        free(save(&saved[i], &digests[i]));
        take_step(&saved[i]);
        take_step(&saved[i]);
        points[i] = save(&saved[i], &digests[i]);
    }
    assert_true(digests[0] == digests[1]);
    assert_same_file(&saved[0], &saved[1], "step-5");
    assert_same_file(&saved[0], &saved[1], "step-7");
    for (int i = 0; i < 2; i++) {
        saved[i].place = &places[1 - i];
        restart(&saved[i], 2);
        assert_restores(&saved[i], 2, points[1 - i], digests[1 - i]);
    }
    for (int i = 0; i < 2; i++) {
        free(points[i]);
        saved_release(&saved[i]);
    }
    device_close(places[1].device);
}

static void what_is_written_is_what_was_there(void **state) {
    (void)state;
    struct bench_place place = {.device = test_device()};
    struct saved saved;
    uint64_t digest;
    saved_init_at(&saved, &place);
    for (int step = 0; step < 3; step++)
        take_step(&saved);
    struct point *point = begin_checkpoint(&saved);
    randomize(&saved, REGISTER_X);
    randomize(&saved, REGISTER_G);
    finish_writing(&saved.bench, &files_disk);
    digest = assert_checkpointed(&saved.bench);
    restart(&saved, 2);
    assert_restores(&saved, 2, point, digest);
    free(point);
    saved_release(&saved);
    device_close(place.device);
}

/* ---- failures ---- */

enum { COUNT = BLOCK_ELEMENTS + 9 };

/* A life of a shard, a message a step; false if an answer was FAILED. */
struct life {
    struct bench bench;
    struct saved saved; /* its folder */
    int64_t slice[COUNT];
    uint64_t digest;
};

static bool failed(struct bench *bench) {
    for (size_t i = 0; i < bench->out.count; i++)
        if (answer(bench, i).type == MESSAGE_FAILED)
            return true;
    return false;
}

static bool say(struct life *life, struct message message) {
    bool of_replica = message.type == MESSAGE_STAGE || message.type == MESSAGE_FETCH;
    tell(&life->bench, of_replica ? REPLICA_LINK : COORDINATOR_LINK, message);
    carry_out(&life->bench, &files_disk);
    return !failed(&life->bench);
}

static bool run_program(struct life *life, const struct operation *operations, size_t count) {
    run_operations(&life->bench, operations, count);
    return !failed(&life->bench);
}

static struct message setup_of(struct life *life, uint32_t attempt) {
    struct message message = setup(COUNT, 0, COUNT);
    message.shard_setup.attempt = attempt;
    message.shard_setup.folder = life->saved.folder;
    message.shard_setup.start = 1;
    return message;
}

static bool start(struct life *life, uint32_t attempt) {
    static double x[COUNT];
    x[7] = 3;
    return say(
        life,
        (struct message){
            .type = MESSAGE_START,
            .start = {.attempt = attempt, .program = 1, .register_ = REGISTER_X, .count = COUNT},
            .bulk = {.data = x, .length = sizeof x}});
}

static bool evaluate(struct life *life) {
    static const struct operation begin_one[] = {
        {.code = OPERATION_ADD, .a = REGISTER_T, .b = REGISTER_X, .c = REGISTER_X, .alpha = 1},
        {.code = OPERATION_BEGIN,
         .evaluation = 1,
         .sums = SUMS_PARAMETERS,
         .bounds = {.count = 1}}};
    return run_program(life, begin_one, 2) && say(life, stage(flush(1, 1), life->slice, COUNT)) &&
           say(life, stage(flush(1, 2), life->slice, COUNT)) && say(life, fold(flush(1, 1))) &&
           say(life, fold(flush(1, 2)));
}

static bool step(struct life *life) {
    static const struct operation operations[] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10},
        {.code = OPERATION_PAIR,
         .slot = 1,
         .a = REGISTER_T,
         .b = REGISTER_X,
         .c = REGISTER_H,
         .d = REGISTER_G,
         .e = REGISTER_H,
         .f = REGISTER_G,
         .beta = 1},
        {.code = OPERATION_HISTORY_DOTS, .a = REGISTER_H, .slot = 1, .count = 1, .slots = {1}}};
    return run_program(life, operations, 3);
}

static bool write_checkpoint(struct life *life) {
    static uint64_t slots[] = {1}, serials[] = {1};
    if (!say(life, (struct message){
                       .type = MESSAGE_CHECKPOINT,
                       .checkpoint = {
                           .attempt = 1, .step = 1, .slots = {slots, 1}, .serials = {serials, 1}}}))
        return false;
    finish_writing(&life->bench, &files_disk);
    life->digest = assert_checkpointed(&life->bench);
    return true;
}

static bool read_back(struct life *life) {
    return say(life, (struct message){.type = MESSAGE_READ,
                                      .read = {.register_ = REGISTER_H, .count = COUNT}});
}

static bool go_back(struct life *life) {
    return say(life, setup_of(life, 2)) && start(life, 2) &&
           say(life, (struct message){.type = MESSAGE_RESTORE, .restore = {2, 1, life->digest}});
}

static bool live(struct life *life) {
    return !failed(&life->bench) && start(life, 1) && evaluate(life) && step(life) &&
           write_checkpoint(life) && read_back(life) && go_back(life);
}

static void begin_life(struct life *life, struct bench_place *place) {
    *life = (struct life){.digest = 0};
    folder_new(&life->saved);
    for (size_t i = 0; i < COUNT; i++)
        life->slice[i] = (int64_t)i * 1000;
    bench_init_at(&life->bench, setup_of(life, 1), place);
    carry_out(&life->bench, &files_disk);
}

static void end_life(struct life *life) {
    bench_release(&life->bench);
    folder_delete(&life->saved);
}

/* What comes after the failure finds a shard that does nothing, until it is set up anew. */
static void assert_goes_on_elsewhere(struct life *life, struct bench_place *place) {
    struct message told = answer(&life->bench, life->bench.out.count - 1);
    assert_int_equal(told.type, MESSAGE_FAILED);
    assert_int_equal(told.failed.status, -ERROR_UNAVAILABLE);
    assert_int_equal(told.failed.device, 1);
    assert_non_null(strstr(told.failed.reason, "emulated"));
    step(life);
    assert_int_equal(life->bench.out.count, 0);
    say(life, fold(flush(1, 1)));
    assert_int_equal(life->bench.out.count, 0);
    place->device = NULL;
    assert_true(say(life, setup_of(life, 3)));
    assert_true(start(life, 3));
    assert_answer(&life->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_string_equal(answer(&life->bench, 0).ready.device, "cpu");
}

static void assert_restored(struct life *life) {
    assert_answer(&life->bench, 0, COORDINATOR_LINK, MESSAGE_RESTORED);
    assert_int_equal(answer(&life->bench, 0).restored.status, 0);
}

static void a_device_that_fails_at_any_call_ends_the_attempt_and_nothing_else(void **state) {
    (void)state;
    struct life *life = memory_new(1, sizeof *life);
    bool lived = false;
    uint64_t calls = 0;
    for (; !lived; calls++) {
        struct device *device = test_device();
        struct bench_place place = {.device = device};
        if (!test_device_is_emulated(device)) {
            device_close(device);
            free(life);
            skip();
        }
        device_fail_after(device, calls);
        begin_life(life, &place);
        lived = live(life);
        if (lived)
            assert_restored(life);
        else
            assert_goes_on_elsewhere(life, &place);
        end_life(life);
        device_close(device);
    }
    assert_true(calls > 20);
    free(life);
}

static void
a_range_without_room_on_the_device_is_computed_on_the_cpu_if_that_would_do(void **state) {
    (void)state;
    struct life *life = memory_new(1, sizeof *life);
    struct bench_place place = {.device = test_device(), .optional = true};
    device_limit(place.device, 10000);
    begin_life(life, &place);
    assert_true(start(life, 1));
    assert_answer(&life->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_string_equal(answer(&life->bench, 0).ready.device, "cpu");
    end_life(life);
    place.optional = false;
    begin_life(life, &place);
    assert_answer(&life->bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    assert_int_equal(answer(&life->bench, 0).failed.device, 1);
    end_life(life);
    device_close(place.device);
    free(life);
}

static void a_shard_says_which_device_it_is_on(void **state) {
    (void)state;
    struct life *life = memory_new(1, sizeof *life);
    struct bench_place place = {.device = test_device()};
    begin_life(life, &place);
    assert_true(start(life, 1));
    assert_answer(&life->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_string_equal(answer(&life->bench, 0).ready.device, device_name(place.device));
    end_life(life);
    device_close(place.device);
    free(life);
}

SUITE(shard_device_failing) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_the_same_from_either_and_loads_on_either),
        cmocka_unit_test(what_is_written_is_what_was_there),
        cmocka_unit_test(a_device_that_fails_at_any_call_ends_the_attempt_and_nothing_else),
        cmocka_unit_test(
            a_range_without_room_on_the_device_is_computed_on_the_cpu_if_that_would_do),
        cmocka_unit_test(a_shard_says_which_device_it_is_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
