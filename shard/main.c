/* dml-shard: binds a shard to its connections, its files and the thread that writes them. */
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "numeric/setup.h"
#include "shard/confined.h"
#include "shard/placing.h"
#include "shard/rows.h"
#include "shard/shard.h"
#include "shard/writer.h"
#include "wire/address.h"
#include "wire/host.h"

struct shell {
    struct host *host;
    const struct host_options *options;
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
    const struct shell *shell = state;
    shard_step(shell->shard, from, message, now_ns, out);
}

static void on_gone(void *state, uint32_t link, int64_t now_ns, struct outbox *out) {
    (void)now_ns, (void)out;
    const struct shell *shell = state;
    shard_peer_gone(shell->shard, link);
}

static void after(void *state, int64_t now_ns, struct outbox *out) {
    (void)now_ns;
    const struct shell *shell = state;
    struct shard_action action;
    int code;
    if (writer_take(shell->writer, &code)) {
        shard_written(shell->shard, code, error_text(), out);
        error_clear();
    }
    shard_taken(shell->shard, out);
    while (shard_next_action(shell->shard, &action)) {
        if (action.kind == SHARD_WRITE)
            writer_start(shell->writer, action.job);
        else
            shard_carry_out(shell->shard, shell->disk, &action, out);
    }
}

static void wake(void *context) {
    const struct shell *shell = context;
    host_wake(shell->host);
}

/* ---- main ---- */

static void report(const struct shard_counters *counters) {
    log_debug("not acted on: %llu of an older epoch, %llu stale, %llu of strangers, %llu malformed",
              (unsigned long long)counters->old_term, (unsigned long long)counters->stale,
              (unsigned long long)counters->stranger, (unsigned long long)counters->stages_refused);
}

/* Waits for the checkpoint that is being written. */
static void forget(void *state) {
    struct shell *shell = state;
    report(shard_counters(shell->shard));
    writer_free(shell->writer);
    shard_clear(shell->shard, shell->disk);
    shard_free(shell->shard);
    shell->shard = shard_new(&shell->self);
    shell->writer = writer_new(shell->disk, wake, shell);
}

/* ---- what the shard asks ---- */

static int place_on(void *context, const struct message_shard_setup *setup,
                    struct shard_place *place) {
    struct shell *shell = context;
    return shard_placing_find(&shell->placing, setup, place);
}

static int own_folder(void *context, char **path) {
    const struct shell *shell = context;
    return host_own_folder(shell->options, path);
}

/* ---- life ---- */

static int choose_disk(struct shell *shell, const struct host_options *options) {
    shell->disk = &files_disk;
    if (!options->folder)
        return 0;
    shell->disk = &shell->confined.disk;
    return confined_init(&shell->confined, &files_disk, options->folder);
}

static int serve(const struct host_options *options) {
    numeric_setup();
    char name[256] = "", local[LOCAL_SECRET_DIGITS + 1] = "";
    struct host_options own = *options;
    (void)gethostname(name, sizeof name - 1);
    if (!address_is_unix(options->listen))
        local_secret_draw(local);
    own.local = local;
    struct shell shell = {.self = {.pid = (uint32_t)getpid(),
                                   .host = name,
                                   .local = local,
                                   .description = numeric_description(),
                                   .proof = numeric_proof_vectors() ^ rows_proof()}};
    const struct host_role role = {
        .state = &shell, .message = on_message, .gone = on_gone, .after = after, .forget = forget};
    shell.placing.own = options->device;
    shell.options = options;
    shell.self.place = place_on;
    shell.self.shares = host_sees_state;
    shell.self.own_folder = own_folder;
    shell.self.context = &shell;
    shell.shard = shard_new(&shell.self);
    int code = choose_disk(&shell, options);
    if (!code)
        shell.host = host_new(&own, &role, &code);
    shell.writer = writer_new(shell.disk, wake, &shell);
    if (shell.host)
        code = host_run(shell.host);
    report(shard_counters(shell.shard));
    writer_free(shell.writer);
    shard_clear(shell.shard, shell.disk);
    confined_release(&shell.confined);
    host_free(shell.host);
    shard_free(shell.shard);
    shard_placing_release(&shell.placing);
    return code;
}

int main(int argc, char **argv) {
    int code = process_begin();
    file_name_bus_errors();
    if (!code)
        code =
            host_main(argc, argv, "shard", "Keeps one range of a model's vectors for dml.", serve);
    if (code)
        fprintf(stderr, "dml-shard: %s: %s\n", error_name(code), error_text());
    return -code;
}
