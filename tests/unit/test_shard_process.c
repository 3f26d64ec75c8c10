/* The dml-shard program: checkpoints through its thread and its files, and what outlives it. */
#define _GNU_SOURCE
#include "tests/unit/shard_saving.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/error.h"
#include "wire/peer.h"

struct process {
    pid_t pid;
    struct event_base *base;
    struct peer *peer; /* the coordinator's connection */
    struct outbox got; /* copies of what came */
    uint64_t number;   /* of the last program */
};

static void on_message(void *context, struct peer *peer, const struct message *message) {
    (void)peer;
    struct process *process = context;
    outbox_add(&process->got, 0, message);
    event_base_loopbreak(process->base);
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    (void)context, (void)peer;
    fail_msg("the shard closed the connection: %s", reason);
}

static void process_connect(struct process *process, const char *address) {
    static const struct peer_callbacks callbacks = {on_message, on_closed};
    int descriptor;
    if (process->peer)
        peer_free(process->peer);
    assert_int_equal(address_connect(address, 5000, &descriptor), 0);
    process->peer = peer_new(process->base, descriptor, &callbacks, process);
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
    peer_free(process->peer);
    event_base_free(process->base);
    outbox_release(&process->got);
    kill(process->pid, signal_number);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    if (signal_number == SIGTERM)
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void post(struct process *process, struct message message, uint64_t epoch) {
    message.epoch = epoch;
    peer_send(process->peer, &message);
}

/* Waits for the next message, which must be of this type; valid until the next call. */
static struct message expect(struct process *process, enum message_type type) {
    static struct outbox last;
    struct message message;
    const char *why;
    while (!process->got.count)
        assert_true(event_base_loop(process->base, EVLOOP_ONCE) >= 0);
    const struct envelope first = process->got.envelopes[0];
    assert_string_equal(message_name(first.type), message_name(type));
    assert_int_equal(message_decode(first.type, outbox_body(&process->got, &first),
                                    first.body_length, &message, &why),
                     0);
    outbox_clear(&last);
    outbox_add(&last, 0, &message);
    process->got.count--;
    memmove(process->got.envelopes, process->got.envelopes + 1,
            process->got.count * sizeof *process->got.envelopes);
    (void)message_decode(type, outbox_body(&last, &last.envelopes[0]),
                         last.envelopes[0].body_length, &message, &why);
    return message;
}

static void post_hello(struct process *process, uint64_t epoch) {
    struct message message = hello();
    message.hello.reconnect_seconds = 60;
    post(process, message, epoch);
    (void)expect(process, MESSAGE_WELCOME);
}

static void run_pair(struct process *process, uint64_t epoch) {
    struct bytes program;
    const struct operation pair = pair_in(0);
    bytes_init(&program);
    program_add(&program, &pair);
    post(process, program_message(++process->number, &program), epoch);
    bytes_release(&program);
}

static const uint64_t slots[] = {0}, serials[] = {7};

static uint64_t write_checkpoint(struct process *process, uint64_t epoch) {
    post(process,
         (struct message){.type = MESSAGE_CHECKPOINT,
                          .checkpoint = {1, 7, {slots, 1}, {serials, 1}}},
         epoch);
    struct message_checkpointed done = expect(process, MESSAGE_CHECKPOINTED).checkpointed;
    assert_string_equal(done.reason, "");
    return done.digest;
}

static void a_process_writes_is_killed_and_its_successor_restores(void **state) {
    (void)state;
    struct saved saved = {0}; /* for its folder */
    struct process process;
    char address[128];
    folder_new(&saved);
    snprintf(address, sizeof address, "unix:%s/socket", saved.folder);
    process_start(&process, address);
    post_hello(&process, EPOCH);
    post(&process, setup_saving(saved.folder, 1), EPOCH);
    (void)expect(&process, MESSAGE_READY);
    run_pair(&process, EPOCH);
    (void)expect(&process, MESSAGE_RESULT);
    uint64_t digest = write_checkpoint(&process, EPOCH);
    assert_int_equal(write_checkpoint(&process, EPOCH), digest);

    process_connect(&process, address); /* the next coordinator */
    post_hello(&process, EPOCH + 1);
    assert_int_equal(expect(&process, MESSAGE_HOLDING).holding.number, 1);
    run_pair(&process, EPOCH + 1);
    (void)expect(&process, MESSAGE_RESULT);
    process_end(&process, SIGKILL);

    process_start(&process, address);
    post_hello(&process, EPOCH);
    post(&process, setup_saving(saved.folder, 2), EPOCH);
    assert_int_equal(expect(&process, MESSAGE_FAILED).failed.status, 75); /* fenced */
    process_connect(&process, address);
    post_hello(&process, EPOCH + 2);
    post(&process, setup_saving(saved.folder, 2), EPOCH + 2);
    (void)expect(&process, MESSAGE_READY);
    post(&process, (struct message){.type = MESSAGE_RESTORE, .restore = {2, 7, digest}}, EPOCH + 2);
    assert_string_equal(expect(&process, MESSAGE_RESTORED).restored.reason, "");
    process_end(&process, SIGTERM);
    folder_delete(&saved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_writes_is_killed_and_its_successor_restores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
