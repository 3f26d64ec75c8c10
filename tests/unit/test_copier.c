/* The thread that writes the coordinator's copies of checkpoints, beside the event loop. Under the
 * thread sanitizer, the two do not touch the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/file.h"
#include "coordinator/run/copier.h"
#include "tests/cluster/decoded.h"
#include "tests/unit/folder_fixture.h"
#include "tests/unit/suites.h"

enum { TERM = 6, SHARD = 1, FILE_BYTES = 3000, STEPS = 20 };

struct desk {
    struct event_base *base;
    struct copier *copier;
    struct outbox out;
    int passed; /* checkpoints, with status 0 */
    uint64_t step;
    uint8_t file[FILE_BYTES];
};

/* The shard answers each READ_FILE; its file is one piece. */
static void answer(struct desk *desk) {
    struct outbox asked = desk->out;
    outbox_init(&desk->out);
    for (size_t i = 0; i < asked.count; i++) {
        const struct message question = decoded(&asked, &asked.envelopes[i]);
        assert_int_equal(question.type, MESSAGE_READ_FILE);
        const struct message piece = {
            .type = MESSAGE_FILE_BYTES,
            .term = TERM,
            .file_bytes = {1, question.read_file.step, 0, FILE_BYTES, 0, ""},
            .bulk = {.data = desk->file, .length = FILE_BYTES}};
        assert_null(copier_take(desk->copier, SHARD, &piece));
        memset(desk->file, (int)question.read_file.step + 1, FILE_BYTES); /* the copy was taken */
    }
    outbox_release(&asked);
}

static void write_step(struct desk *desk) {
    uint64_t files[] = {++desk->step};
    memset(desk->file, (int)desk->step, FILE_BYTES);
    const struct message written = {
        .type = MESSAGE_CHECKPOINTED,
        .term = TERM,
        .checkpointed = {
            .attempt = 1, .step = desk->step, .digest = 7, .reason = "", .files = {files, 1}}};
    assert_null(copier_take(desk->copier, SHARD, &written));
    answer(desk);
}

static void on_passed(void *context, uint32_t worker, const struct message *message) {
    struct desk *desk = context;
    if (!message)
        return;
    assert_int_equal(worker, SHARD);
    assert_int_equal(message->checkpointed.status, 0);
    assert_int_equal(message->checkpointed.step, desk->step);
    if (++desk->passed < STEPS)
        write_step(desk);
    else
        event_base_loopbreak(desk->base);
}

static void checkpoints_pass_one_after_the_other_when_the_thread_has_written_them(void **state) {
    (void)state;
    struct desk desk = {.base = event_base_new()};
    char *found;
    size_t length;
    outbox_init(&desk.out);
    desk.copier = copier_new(desk.base, folder, TERM, 2, &desk.out,
                             &(struct copier_callbacks){.passed = on_passed, .context = &desk});
    write_step(&desk);
    event_base_dispatch(desk.base);
    assert_int_equal(desk.passed, STEPS);
    assert_int_equal(file_read(inside("1/step-20"), FILE_BYTES, &found, &length), 0);
    assert_int_equal(length, FILE_BYTES);
    assert_int_equal(found[FILE_BYTES - 1], STEPS);
    free(found);
    write_step(&desk); /* is under way when the run ends */
    copier_free(desk.copier);
    outbox_release(&desk.out);
    event_base_free(desk.base);
}

SUITE(copier) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            checkpoints_pass_one_after_the_other_when_the_thread_has_written_them, make_folder,
            remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
