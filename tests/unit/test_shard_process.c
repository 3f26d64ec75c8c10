/* The dml-shard program: checkpoints through its thread and its files, and what outlives it. */
#define _GNU_SOURCE
#include "tests/unit/suites.h"
#include "tests/unit/connect_fixture.h"
#include "tests/unit/shard_saving.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/error.h"
#include "wire/peer.h"

struct process {
    pid_t pid;
    struct event_base *base;
    struct peer *peer; /* the coordinator's connection; NULL when it is closed */
    bool may_die;
    struct outbox got; /* copies of what came */
    uint64_t number;   /* of the last program */
};

/* A shard that has to wait for the processor may say that it is alive at any time. */
static void on_message(void *context, struct peer *peer, const struct message *message) {
    (void)peer;
    struct process *process = context;
    if (message->type == MESSAGE_PONG)
        return;
    outbox_add(&process->got, 0, message);
    event_base_loopbreak(process->base);
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    (void)peer;
    struct process *process = context;
    process->peer = NULL;
    if (!process->may_die)
        fail_msg("the shard closed the connection: %s", reason);
    event_base_loopbreak(process->base);
}

static void process_connect(struct process *process, const char *address) {
    static const struct peer_callbacks callbacks = {on_message, on_closed};
    struct channel *channel = NULL;
    if (process->peer)
        peer_free(process->peer);
    assert_int_equal(connect_now(address, 5000, &channel), 0);
    process->peer = peer_new(process->base, channel, &callbacks, process);
}

static void process_start(struct process *process, const char *address) {
    int told[2];
    char line[8];
    *process = (struct process){.base = event_base_new()};
    outbox_init(&process->got);
    assert_int_equal(pipe(told), 0);
    process->pid = fork();
    if (!process->pid) {
        dup2(told[1], STDOUT_FILENO);
        close(told[0]);
        execl("./dml-shard", "dml-shard", "--quiet", "--listen", address, (char *)NULL);
        _exit(127);
    }
    close(told[1]);
    assert_true(read(told[0], line, sizeof line) > 0); /* it listens */
    close(told[0]);
    process_connect(process, address);
}

static void process_end(struct process *process, int signal_number) {
    int status;
    if (process->peer)
        peer_free(process->peer);
    event_base_free(process->base);
    outbox_release(&process->got);
    kill(process->pid, signal_number);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    if (signal_number == SIGTERM)
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void post(struct process *process, struct message message, uint64_t term) {
    message.term = term;
    peer_send(process->peer, &message);
}

/* Waits for the next message, which must be of this type; valid until the next call. */
static struct message expect(struct process *process, enum message_type type) {
    static struct outbox last;
    while (!process->got.count)
        assert_true(event_base_loop(process->base, EVLOOP_ONCE) >= 0);
    const struct envelope first = process->got.envelopes[0];
    assert_string_equal(message_name(first.type), message_name(type));
    const struct message message = decoded(&process->got, &first);
    outbox_clear(&last);
    outbox_add(&last, 0, &message);
    process->got.count--;
    memmove(process->got.envelopes, process->got.envelopes + 1,
            process->got.count * sizeof *process->got.envelopes);
    return decoded(&last, &last.envelopes[0]);
}

/* The number of the last program that it holds. */
static uint64_t post_hello(struct process *process, uint64_t term) {
    struct message message = hello();
    message.hello.reconnect_seconds = 60;
    post(process, message, term);
    (void)expect(process, MESSAGE_WELCOME);
    return expect(process, MESSAGE_HOLDING).holding.number;
}

static void run_pair(struct process *process, uint64_t term) {
    struct bytes program;
    const struct operation pair = pair_in(0);
    bytes_init(&program);
    program_add(&program, &pair);
    post(process, program_message(++process->number, &program), term);
    bytes_release(&program);
}

/* HELLO and SHARD_SETUP of a coordinator that begins an attempt. */
static void set_up(struct process *process, const char *folder, uint32_t attempt, uint64_t term) {
    (void)post_hello(process, term);
    post(process, setup_saving(folder, attempt), term);
    (void)expect(process, MESSAGE_READY);
}

/* With one pair, that of the step, in slot 0. */
static void ask_for_checkpoint(struct process *process, uint64_t step) {
    const uint64_t slot = 0;
    post(
        process,
        (struct message){
            .type = MESSAGE_CHECKPOINT,
            .checkpoint = {.attempt = 1, .step = step, .slots = {&slot, 1}, .serials = {&step, 1}}},
        TERM);
}

static uint64_t write_checkpoint(struct process *process, uint64_t step) {
    ask_for_checkpoint(process, step);
    struct message_checkpointed done = expect(process, MESSAGE_CHECKPOINTED).checkpointed;
    assert_string_equal(done.reason, "");
    return done.digest;
}

static uint32_t ask_to_restore(struct process *process, uint32_t attempt, uint64_t step,
                               uint64_t digest, uint64_t term) {
    post(process, (struct message){.type = MESSAGE_RESTORE, .restore = {attempt, step, digest}},
         term);
    return expect(process, MESSAGE_RESTORED).restored.status;
}

static void make_place(struct saved *saved, char address[128]) {
    *saved = (struct saved){0};
    folder_new(saved);
    snprintf(address, 128, "unix:%s/socket", saved->folder);
}

static void what_a_killed_process_wrote_its_successor_restores(void **state) {
    (void)state;
    struct saved saved;
    struct process process;
    char address[128];
    make_place(&saved, address);
    process_start(&process, address);
    set_up(&process, saved.folder, 1, TERM);
    run_pair(&process, TERM);
    (void)expect(&process, MESSAGE_RESULT);
    uint64_t digest = write_checkpoint(&process, 7);
    assert_int_equal(write_checkpoint(&process, 7), digest);

    process_connect(&process, address); /* the next coordinator */
    assert_int_equal(post_hello(&process, TERM + 1), 1);
    run_pair(&process, TERM + 1);
    (void)expect(&process, MESSAGE_RESULT);
    process_end(&process, SIGKILL);

    process_start(&process, address);
    assert_int_equal(post_hello(&process, TERM), 0);
    post(&process, setup_saving(saved.folder, 2), TERM);
    assert_int_equal(expect(&process, MESSAGE_FAILED).failed.status, 75); /* fenced */
    process_connect(&process, address);
    set_up(&process, saved.folder, 2, TERM + 2);
    assert_int_equal(ask_to_restore(&process, 2, 7, digest, TERM + 2), 0);
    process_end(&process, SIGTERM);
    folder_delete(&saved);
}

/* ---- failpoints ---- */

/* A process with a checkpoint of step 1 that is asked for that of step 2, and is hit then. */
static void hit_second_checkpoint(struct process *process, const struct saved *saved,
                                  const char *address, const char *failpoint, uint64_t digests[2]) {
    setenv("DML_FAILPOINT", failpoint, 1);
    process_start(process, address);
    unsetenv("DML_FAILPOINT");
    set_up(process, saved->folder, 1, TERM);
    digests[0] = write_checkpoint(process, 1);
    ask_for_checkpoint(process, 2);
}

/* Both steps as they would be restored now, from nothing but the files. */
static void try_restores(const struct saved *saved, const char *address, const uint64_t digests[2],
                         uint32_t statuses[2]) {
    struct process process;
    for (uint32_t i = 0; i < 2; i++) {
        process_start(&process, address);
        set_up(&process, saved->folder, 2, TERM);
        statuses[i] = ask_to_restore(&process, 2, i + 1, digests[i], TERM);
        process_end(&process, SIGTERM);
    }
}

static void a_process_killed_anywhere_in_writing_leaves_whole_checkpoints(void **state) {
    (void)state;
    /* The term and the first checkpoint, of five pieces, come first. */
    const char *const places[] = {"none",
                                  "checkpoint_begin:2",
                                  "file_write:7",
                                  "file_written:8",
                                  "file_write:9",
                                  "file_written:11",
                                  "file_fsync:3",
                                  "file_fsynced:3",
                                  "file_rename:3",
                                  "file_renamed:3",
                                  "folder_fsync:3",
                                  "folder_fsynced:3",
                                  "checkpoint_done:2"};
    const size_t in_place_from = 9; /* file_renamed */
    uint64_t digests[2], expected = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct saved saved;
        struct process process;
        char address[128], failpoint[64];
        uint32_t statuses[2];
        make_place(&saved, address);
        snprintf(failpoint, sizeof failpoint, "%s:kill", places[i]);
        hit_second_checkpoint(&process, &saved, address, i ? failpoint : "", digests);
        process.may_die = i > 0;
        while (process.peer && !process.got.count)
            assert_true(event_base_loop(process.base, EVLOOP_ONCE) >= 0);
        if (i == 0)
            expected = expect(&process, MESSAGE_CHECKPOINTED).checkpointed.digest;
        assert_true(i == 0 || !process.peer);
        process_end(&process, SIGKILL);
        digests[1] = expected; /* the registers are the same each time */
        try_restores(&saved, address, digests, statuses);
        assert_int_equal(statuses[0], 0);
        assert_int_equal(statuses[1], i && i < in_place_from ? 65 : 0);
        folder_delete(&saved);
    }
}

static void a_write_that_fails_is_told_and_the_process_goes_on(void **state) {
    (void)state;
    const char *const places[] = {"file_write:8:enospc", "file_fsync:3:eio", "file_rename:3:eio",
                                  "folder_fsync:3:eio"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct saved saved;
        struct process process;
        char address[128];
        uint64_t digests[2];
        uint32_t statuses[2];
        make_place(&saved, address);
        hit_second_checkpoint(&process, &saved, address, places[i], digests);
        assert_int_equal(expect(&process, MESSAGE_CHECKPOINTED).checkpointed.status, 74);
        digests[1] = write_checkpoint(&process, 2);
        process_end(&process, SIGTERM);
        try_restores(&saved, address, digests, statuses);
        assert_int_equal(statuses[0], 0);
        assert_int_equal(statuses[1], 0);
        folder_delete(&saved);
    }
}

SUITE(shard_process) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_killed_process_wrote_its_successor_restores),
        cmocka_unit_test(a_process_killed_anywhere_in_writing_leaves_whole_checkpoints),
        cmocka_unit_test(a_write_that_fails_is_told_and_the_process_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
