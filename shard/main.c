/* dml-shard: binds a shard to its connections, its files and the thread that writes them. */
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "numeric/setup.h"
#include "shard/disk.h"
#include "shard/placing.h"
#include "shard/shard.h"
#include "shard/writer.h"
#include "wire/peer.h"
#include "wire/host.h"

struct rim {
    struct host *host;
    struct shard_self self;
    struct shard_placing placing;
    struct shard *shard;
    struct writer *writer;
    const struct disk *disk;
    struct confined confined;
};

/* ---- the host's calls ---- */

static void on_message(void *state, uint32_t from, const struct message *message, int64_t now_ns,
                       struct outbox *out) {
    const struct rim *rim = state;
    shard_step(rim->shard, from, message, now_ns, out);
}

static void on_gone(void *state, uint32_t link, int64_t now_ns, struct outbox *out) {
    (void)now_ns, (void)out;
    const struct rim *rim = state;
    shard_peer_gone(rim->shard, link);
}

static void after(void *state, int64_t now_ns, struct outbox *out) {
    (void)now_ns;
    const struct rim *rim = state;
    struct shard_action action;
    int code;
    if (writer_take(rim->writer, &code)) {
        shard_written(rim->shard, code, error_text(), out);
        error_clear();
    }
    shard_taken(rim->shard, out);
    while (shard_next_action(rim->shard, &action)) {
        if (action.kind == SHARD_WRITE)
            writer_start(rim->writer, action.job);
        else
            shard_carry_out(rim->shard, rim->disk, &action, out);
    }
}

static void wake(void *context) {
    const struct rim *rim = context;
    host_wake(rim->host);
}

/* ---- main ---- */

static void report(const struct shard_counters *counters) {
    log_debug("not acted on: %llu of an older epoch, %llu stale, %llu of strangers, %llu malformed",
              (unsigned long long)counters->old_epoch, (unsigned long long)counters->stale,
              (unsigned long long)counters->stranger, (unsigned long long)counters->stages_refused);
}

/* Waits for the checkpoint that is being written. */
static void forget(void *state) {
    struct rim *rim = state;
    report(shard_counters(rim->shard));
    writer_free(rim->writer);
    shard_free(rim->shard);
    rim->shard = shard_new(&rim->self);
    rim->writer = writer_new(rim->disk, wake, rim);
}

static int choose_disk(struct rim *rim, const struct host_options *options) {
    rim->disk = &files_disk;
    if (!options->folder)
        return 0;
    rim->disk = &rim->confined.disk;
    return confined_init(&rim->confined, &files_disk, options->folder);
}

static int serve(const struct host_options *options) {
    char name[256] = "";
    (void)gethostname(name, sizeof name - 1);
    struct rim rim = {.self = {.pid = (uint32_t)getpid(),
                               .host = name,
                               .description = numeric_description(),
                               .proof = numeric_proof_vectors()}};
    const struct host_role role = {
        .state = &rim, .message = on_message, .gone = on_gone, .after = after, .forget = forget};
    rim.placing.own = options->device;
    rim.self.place = shard_placing_find;
    rim.self.context = &rim.placing;
    rim.shard = shard_new(&rim.self);
    int code = choose_disk(&rim, options);
    if (!code)
        rim.host = host_new(options, &role, &code);
    rim.writer = writer_new(rim.disk, wake, &rim);
    if (rim.host)
        code = host_run(rim.host);
    report(shard_counters(rim.shard));
    writer_free(rim.writer);
    confined_release(&rim.confined);
    host_free(rim.host);
    shard_free(rim.shard);
    shard_placing_release(&rim.placing);
    return code;
}

int main(int argc, char **argv) {
    struct host_options options;
    process_begin();
    memory_is_of_worker();
    int code = failpoint_setup("shard", message_failpoints, MESSAGE_FAILPOINTS);
    if (code == 0)
        code = host_options_read(argc, argv, "Keeps one range of a model's vectors for dml.",
                                 &options);
    if (code == 0) {
        log_open("shard", (enum log_level)options.log_level);
        numeric_setup();
        code = serve(&options);
    }
    code = process_end(code == 1 ? 0 : code); /* 1: it has answered */
    if (code < 0)
        fprintf(stderr, "dml-shard: %s: %s\n", error_name(code), error_text());
    return -code;
}
