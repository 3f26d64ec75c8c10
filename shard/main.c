/* dml-shard: binds a shard to its connections. */
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "numeric/setup.h"
#include "shard/shard.h"
#include "wire/failpoints.h"
#include "wire/host.h"

static void on_message(void *state, uint32_t from, const struct message *message, int64_t now_ns,
                       struct outbox *out) {
    shard_step(state, from, message, now_ns, out);
}

static void on_gone(void *state, uint32_t link, int64_t now_ns, struct outbox *out) {
    (void)now_ns, (void)out;
    shard_peer_gone(state, link);
}

static void report(const struct shard_counters *counters) {
    log_debug("not acted on: %llu of an older epoch, %llu stale, %llu of strangers, %llu malformed",
              (unsigned long long)counters->old_epoch, (unsigned long long)counters->stale,
              (unsigned long long)counters->stranger, (unsigned long long)counters->stages_refused);
}

static int serve(const struct host_options *options) {
    char name[256] = "";
    (void)gethostname(name, sizeof name - 1);
    const struct shard_self self = {.pid = (uint32_t)getpid(),
                                    .host = name,
                                    .description = numeric_description(),
                                    .proof = numeric_proof_vectors()};
    struct shard *shard = shard_new(&self);
    const struct host_role role = {.state = shard, .message = on_message, .gone = on_gone};
    int code;
    struct host *host = host_new(options, &role, &code);
    if (host)
        code = host_run(host);
    report(shard_counters(shard));
    host_free(host);
    shard_free(shard);
    return code;
}

int main(int argc, char **argv) {
    struct host_options options;
    int code = failpoint_setup("shard", message_failpoints, MESSAGE_FAILPOINTS);
    if (code == 0)
        code = host_options_read(argc, argv, "Keeps one range of a model's vectors for dml.",
                                 &options);
    if (code == 1)
        return 0;
    if (code == 0) {
        log_open("shard", (enum log_level)options.log_level);
        numeric_setup();
        code = serve(&options);
    }
    if (code < 0)
        fprintf(stderr, "dml-shard: %s: %s\n", error_name(code), error_text());
    return -code;
}
