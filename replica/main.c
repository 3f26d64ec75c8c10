/* dml-replica: binds a replica's state machine to sockets, a data set and threads. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/resources.h"
#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/set/set.h"
#include "device/find.h"
#include "numeric/setup.h"
#include "objective/family.h"
#include "objective/block.h"
#include "objective/halves.h"
#include "objective/objective.h"
#include "objective/shape.h"
#include "objective/on_device.h"
#include "plugin/plugin.h"
#include "replica/keeper.h"
#include "replica/replica.h"
#include "replica/workers.h"
#include "wire/host.h"

struct shell {
    struct host *host;
    const struct host_options *options;
    struct keeper *keeper; /* of a set that comes by messages */
    char *copies;          /* the folder for it; owned */
    bool temporary;        /* which is the worker's own: it goes with the run */
    bool dismissed;        /* the run is over, and no other of this coordinator follows */
    struct replica *replica;
    uint64_t proof; /* objective_proof(): takes longer than many an evaluation */
    struct set *set;
    struct workers *workers;
    struct device *device;     /* that was opened last, for the workers; NULL: none */
    bool device_failed;        /* the last set could not be opened only because a device failed */
    const char *device_option; /* of the command line, or NULL */
    int16_t *exponents;        /* base exponents of a network or plug-in; owned */
    int16_t *extra_bits;       /* those of sums for errors of estimates; owned */

    /* A plug-in has these members: */
    struct objective_plugin plugin;
    void *plugin_source; /* its texts; owned */
    uint32_t *rank;      /* of its columns; owned */
    struct computed computed;
    uint64_t shuffle, pause_us;
};

/* The default of DML_PAUSE_US: the longest pause before a chunk if the order is shuffled. */
#define PAUSE_US 200

/* The number of threads: `asked`, or one for each usable CPU if that is 0. */
static unsigned threads_for(uint32_t asked) {
    unsigned threads = asked ? asked : cpus_usable();
    return threads > THREADS_MAX ? THREADS_MAX : threads;
}

/* ---- the data set and its workers ---- */

static int chunk(void *context, uint32_t number, struct rows *rows) {
    struct shell *shell = context;
    const struct set_info *info = set_info(shell->set);
    const bool tiles = info->strip_columns > 0;
    const uint32_t there = tiles ? set_tiles(info) : info->chunks;
    if (number >= there)
        return error_set(ERROR_INTERNAL,
                         "chunk %" PRIu32 " was asked for, but %s has only %" PRIu32, number,
                         set_path(shell->set), there);
    return tiles ? set_tile(shell->set, number, rows) : set_chunk(shell->set, number, rows);
}

static void wake(void *context) {
    struct shell *shell = context;
    host_wake(shell->host);
}

static void close_set(struct shell *shell) {
    keeper_stop(shell->keeper);
    workers_free(shell->workers);
    shell->workers = NULL;
    free(shell->exponents);
    shell->exponents = NULL;
    free(shell->extra_bits);
    shell->extra_bits = NULL;
    free(shell->plugin_source);
    shell->plugin_source = NULL;
    free(shell->rank);
    shell->rank = NULL;
    if (shell->set)
        set_close(shell->set);
    shell->set = NULL;
}

static int check_set(const struct shell *shell, const struct replica_setup *setup,
                     const struct objective_shape *shape) {
    const struct set_info *info = set_info(shell->set);
    if (strcmp(info->fingerprint, setup->fingerprint))
        return error_set(ERROR_DATA,
                         "%s: has the fingerprint %s, but the run uses %s; "
                         "remove the file and start the run again",
                         setup->set, info->fingerprint, setup->fingerprint);
    if (setup->strip_columns != info->strip_columns)
        return error_set(ERROR_INTERNAL,
                         "%s: has strips of %" PRIu32 " columns (0: none), but the coordinator "
                         "counts %" PRIu32,
                         setup->set, info->strip_columns, setup->strip_columns);
    if (setup->rows && setup->rows != set_vector_rows(info))
        return error_set(ERROR_INTERNAL,
                         "%s: has %" PRIu64 " rows, but the coordinator counts %" PRIu64,
                         setup->set, set_vector_rows(info), setup->rows);
    if (setup->rows &&
        !(setup->strip_columns ? objective_has_strips(shape) : objective_has_products(shape)))
        return error_set(ERROR_INTERNAL, "the objective `%s` has no vectors of rows",
                         setup->objective);
    struct layout layout = objective_layout(shape);
    if (!layout_equal(&layout, &setup->layout))
        return error_set(ERROR_INTERNAL,
                         "%s: gives %" PRIu64 " parameters, but the coordinator counts %" PRIu64
                         ", or others",
                         setup->set, layout_parameters(&layout), layout_parameters(&setup->layout));
    return 0;
}

static int add_plugin(struct shell *shell, const struct replica_setup *setup,
                      struct objective_shape *shape) {
    const struct set_info *info = set_info(shell->set);
    size_t length = setup->plugin.length;
    if (!length && !objective_of(shape->kind)->losses)
        return error_set(ERROR_INTERNAL, "the objective `%s` came without its plug-in",
                         setup->objective);
    if (!length)
        return 0;
    shell->plugin_source = memory_new(length, 1);
    memcpy(shell->plugin_source, setup->plugin.data, length);
    shell->plugin = (struct objective_plugin){.tensors = {.layout = setup->layout}};
    if (!plugin_source_decode(shell->plugin_source, length, &shell->plugin.source))
        return error_set(ERROR_INTERNAL, "the coordinator told of no plug-in that can be");
    shell->plugin.source.program = "/proc/self/exe";
    shell->plugin.rank = shell->rank = set_ranks(info); /* it sees the columns in that order */
    shape->plugin = &shell->plugin;
    shape->outputs = objective_outputs(objective_of(shape->kind), info->classes);
    /* Finds out now, and not in the middle of a computation, whether the library is the run's. */
    const struct plugin_data data = {.features = objective_columns(shape),
                                     .outputs = shape->outputs};
    struct plugin *plugin;
    int code = plugin_start_checked(&shape->plugin->source, &data, &shape->plugin->tensors.layout,
                                    &plugin);
    if (!code)
        plugin_stop(plugin);
    return code;
}

/* Reads the shape of the model off the layout. check_set() verifies that the layout is its. */
static int shape_of(const struct replica_setup *setup, uint64_t features,
                    struct objective_shape *shape) {
    int kind = objective_from_name(setup->objective);
    if (kind < 0)
        return error_set(ERROR_INTERNAL, "this replica does not know the objective `%s`",
                         setup->objective);
    const struct loss_parameter *invalid =
        objective_parameter_invalid((enum objective_kind)kind, &setup->loss);
    if (invalid)
        return error_set(ERROR_INTERNAL, "the objective `%s` cannot have this %s", setup->objective,
                         invalid->name);
    if (setup->activation >= ACTIVATIONS || setup->precision >= PRECISIONS)
        return error_set(ERROR_INTERNAL, "this replica does not know the network's activation or "
                                         "precision");
    *shape = (struct objective_shape){
        .kind = (enum objective_kind)kind,
        .features = features,
        .loss = setup->loss,
        .network = {.activation = (enum activation)setup->activation,
                    .precision = (enum precision)setup->precision,
                    .unit = setup->unit},
    };
    objective_read_layout(shape, &setup->layout);
    const struct family *family = family_of(shape);
    bool second = objective_of(shape->kind)->second && family->second;
    if (setup->precondition != PRECONDITION_NONE && !second)
        return error_set(ERROR_INTERNAL, "the objective `%s`%s%s has no second derivatives",
                         setup->objective, family->second ? "" : " of a ",
                         family->second ? "" : family->name);
    return 0;
}

/* ---- the workers and what they compute on ---- */

/* How many products of a value and an output a GPU must be spared for in each pass to be worth its
 * start and its copies of the point and the sums. Not measured on hardware: a processor's core
 * takes some 30 ms for as many. */
#define DEVICE_PAYS UINT64_C(10000000)

static bool pays(const struct set_info *info, const struct objective_shape *shape) {
    uint64_t width = family_of(shape)->width(shape);
    return info->values >= DEVICE_PAYS / (width ? width : 1);
}

struct workers_start {
    struct workers_settings *settings;
    struct workers **workers;
};

static int start_on(void *context, struct device *device) {
    const struct workers_start *start = context;
    start->settings->device = device;
    return workers_new(start->settings, start->workers);
}

static int start_on_processor(struct shell *shell, struct workers_start *start) {
    const struct set_info *info = set_info(shell->set);
    bool strips = info->strip_columns > 0;
    if (!info->dense && (strips || objective_has_products(&start->settings->shape)))
        replica_rows_are_sparse(shell->replica, info->values / info->chunks + 1,
                                strips ? set_tiles(info) : info->chunks);
    return start_on(start, NULL);
}

static int start_workers(struct shell *shell, const struct replica_setup *setup,
                         struct workers_settings *settings) {
    struct workers_start start = {settings, &shell->workers};
    const struct device_wish wish = {
        .asked = setup->device,
        .own = shell->device_option,
        .index = setup->on_host,
        .cannot = objective_device_cannot(&settings->shape, settings->sizes.order > 0),
        .pays = pays(set_info(shell->set), &settings->shape),
        .prove = objective_device_prove,
        .use = start_on,
        .context = &start,
    };
    if (setup->strip_columns)
        return start_on_processor(shell, &start);
    int code = device_choose(&wish, &shell->device);
    shell->device_failed = code == ERROR_UNAVAILABLE;
    if (code)
        return code;
    if (!shell->device)
        return start_on_processor(shell, &start);
    device_be_patient(shell->device, DEVICE_WORK_MS); /* a thread of its own waits from now on */
    replica_computes_on(shell->replica, device_name(shell->device));
    return 0;
}

/* Base exponents of sums for errors of estimates; those of all others if nothing is finer. */
static const int16_t *extra_exponent_bits(struct shell *shell, const struct blob *extra_bits) {
    const struct set_info *info = set_info(shell->set);
    const uint8_t *bits = extra_bits->data;
    if (!extra_bits->length)
        return info->exponent;
    assert(extra_bits->length <= info->features + 1);
    shell->extra_bits = memory_new(info->features + 1, sizeof *shell->extra_bits);
    for (uint32_t i = 0; i < extra_bits->length; i++)
        shell->extra_bits[i] = (int16_t)(info->exponent[i] + bits[i]);
    return shell->extra_bits;
}

/* ---- a set that comes by messages ---- */

/* `scratch`, or a folder in the worker's own. What others left there may be of use, and goes when
 * nobody uses it. NULL: there is none. */
static char *folder_for_copies(const struct shell *shell, const struct replica_setup *setup) {
    if (*setup->scratch)
        return memory_copy_string(setup->scratch);
    char *own;
    if (host_own_folder(shell->options, &own)) {
        log_warning("the set is kept in memory: %s", error_text());
        error_clear();
        return NULL;
    }
    char *folder = path_join(own, "copies");
    free(own);
    return folder;
}

static void tell_head(struct shell *shell, int code, struct outbox *out) {
    struct set_range lacks = code ? (struct set_range){0} : keeper_head_lacks(shell->keeper);
    replica_head_lacks(shell->replica, lacks, code, error_text(), out);
    error_clear();
}

static void begin_copy(struct shell *shell, const struct replica_setup *setup, struct outbox *out) {
    close_set(shell);
    free(shell->copies);
    shell->copies = folder_for_copies(shell, setup);
    shell->temporary = shell->copies && !*setup->scratch;
    tell_head(shell, keeper_begin(shell->keeper, shell->copies, setup->fingerprint), out);
}

static int open_copy(struct shell *shell) {
    int code = keeper_open(shell->keeper, &shell->set);
    if (code)
        return code;
    const struct set_info *info = set_info(shell->set);
    const uint32_t count = set_places(shell->set);
    struct set_range *places = memory_new(count, sizeof *places);
    for (uint32_t i = 0; i < count; i++)
        places[i].bytes = set_place(shell->set, i, &places[i].offset);
    replica_set_is_copied(shell->replica, places, count, info->strip_columns ? info->chunks : 0);
    free(places);
    log_info("the set comes by messages, into %s", shell->copies ? shell->copies : "memory");
    return 0;
}

static void take_looks(struct shell *shell, int64_t now_ns, struct outbox *out) {
    struct keeper_answer answer;
    while (keeper_take(shell->keeper, &answer))
        replica_looked(shell->replica, answer.place, answer.here, answer.error, answer.reason,
                       now_ns, out);
}

static int open_set(struct shell *shell, const struct replica_setup *setup) {
    close_set(shell);
    int code = setup->copied ? open_copy(shell) : set_open(setup->set, &shell->set);
    if (code)
        return code;
    /* Without a copy it works as well. */
    if (!setup->copied && *setup->scratch && set_copy_to(shell->set, setup->scratch))
        log_warning("no copy of the set is kept: %s", error_text());
    error_clear();
    const struct set_info *info = set_info(shell->set);
    struct workers_settings settings = {
        .threads = threads_for(setup->threads),
        .exponent = info->uniform ? NULL : info->exponent,
        .uniform = info->uniform_exponent,
        .exponents = info->exponent,
        .examples = info->rows,
        .strip_columns = setup->strip_columns,
        .upper = setup->strip_columns && layout_upper(&setup->layout).count,
        .sizes = replica_sums_sizes(setup),
        .block_columns = setup->block_columns,
        .shared = setup->precondition == PRECONDITION_LEADING,
        .most = set_rows_most(shell->set),
        .chunk = chunk,
        .done = wake,
        .context = shell,
        .shuffle = shell->shuffle,
        .pause_us = shell->pause_us,
    };
    code = shape_of(setup, info->features, &settings.shape);
    if (!code)
        code = add_plugin(shell, setup, &settings.shape);
    if (!code)
        code = check_set(shell, setup, &settings.shape);
    if (code)
        return code;
    if (setup->rows) {
        uint32_t chunks = set_info(shell->set)->chunks;
        uint64_t *first = set_first_rows(shell->set);
        replica_rows_of_chunks(shell->replica, first, chunks);
        free(first);
    }
    settings.extra_bits = extra_exponent_bits(shell, &setup->extra_bits);
    if (objective_has_products(&settings.shape) && settings.sizes.parameters <= UINT32_MAX)
        settings.column_weights = setup->layout.tensor[0].columns;
    if (family_of(&settings.shape)->rounds_chunks)
        settings.exponent = shell->exponents =
            objective_exponents(&settings.shape, info->exponent, set_training_chunks(info));
    return start_workers(shell, setup, &settings);
}

/* ---- actions ---- */

static void carry_out(struct shell *shell, const struct action *action, int64_t now_ns,
                      struct outbox *out) {
    switch (action->kind) {
    case ACTION_OPEN_SET: {
        shell->device_failed = false;
        int code = open_set(shell, &action->setup);
        if (shell->device_failed)
            replica_device_failed(shell->replica, code, error_text(), out);
        else
            replica_opened(shell->replica, code, error_text(), now_ns, out);
        error_clear();
        break;
    }
    case ACTION_COPY_SET:
        begin_copy(shell, &action->setup, out);
        break;
    case ACTION_KEEP:
        keeper_put_aside(shell->keeper, action);
        break;
    case ACTION_LOOK:
        if (action->place == PLACE_HEAD)
            tell_head(shell, keeper_look_at_head(shell->keeper), out);
        else
            keeper_look(shell->keeper, action->place);
        break;
    case ACTION_CONNECT:
        host_connect(shell->host, action->address, action->shard);
        break;
    case ACTION_CLOSE:
        host_close(shell->host, action->link);
        break;
    case ACTION_COMPUTE:
        assert(shell->workers && !shell->device_failed);
        /* What is wrong shows when the rows are used, or afterwards (settle()). */
        if (set_look(shell->set, action->computation.first - action->computation.tiles_below,
                     action->computation.count))
            error_clear();
        workers_compute(shell->workers, &action->computation);
        break;
    case ACTION_STOP:
        workers_stop(shell->workers);
        break;
    case ACTION_GATHER:
        assert(shell->workers);
        if (workers_gather(shell->workers, action->first, action->sums, action->into))
            replica_gathered(shell->replica, workers_listed(shell->workers), now_ns, out);
        break;
    }
}

static void carry_out_all(struct shell *shell, int64_t now_ns, struct outbox *out) {
    struct action action;
    while (replica_next_action(shell->replica, &action))
        carry_out(shell, &action, now_ns, out);
}

/* Sums over rows that were not those of the set any more must not leave this process. */
static void settle(struct shell *shell) {
    struct computed *computed = &shell->computed;
    int code = computed->error ? 0 : set_settle(shell->set);
    if (!code)
        return;
    computed->error = code;
    snprintf(computed->reason, sizeof computed->reason, "%s", error_text());
    error_clear();
}

static void take_work(struct shell *shell, int64_t now_ns, struct outbox *out) {
    const struct computed *computed = &shell->computed;
    enum work work = shell->workers ? workers_take(shell->workers, &shell->computed) : WORK_NONE;
    if (work != WORK_NONE && computed->device_failed) {
        replica_device_failed(shell->replica, computed->error, computed->reason, out);
        return;
    }
    switch (work) {
    case WORK_COMPUTE:
        settle(shell);
        replica_computed(shell->replica, computed, now_ns, out);
        break;
    case WORK_GATHER:
        replica_gathered(shell->replica, NULL, now_ns, out);
        break;
    case WORK_NONE:
        break;
    }
}

/* ---- the host's calls ---- */

static void on_message(void *state, uint32_t from, const struct message *message, int64_t now_ns,
                       struct outbox *out) {
    struct shell *shell = state;
    shell->dismissed |= message->type == MESSAGE_BYE && !message->bye.again;
    replica_step(shell->replica, from, message, now_ns, out);
}

static void on_gone(void *state, uint32_t link, int64_t now_ns, struct outbox *out) {
    struct shell *shell = state;
    (void)now_ns;
    replica_gone(shell->replica, link, out);
}

static void on_connected(void *state, uint32_t shard, uint32_t link, int code, struct outbox *out) {
    struct shell *shell = state;
    replica_connected(shell->replica, shard, link, code, error_text(), out);
}

static void after(void *state, int64_t now_ns, struct outbox *out) {
    struct shell *shell = state;
    carry_out_all(shell, now_ns, out);
    take_work(shell, now_ns, out);
    take_looks(shell, now_ns, out);
    if (now_ns >= replica_deadline_ns(shell->replica))
        replica_timer(shell->replica, now_ns, out);
    carry_out_all(shell, now_ns, out);
    int64_t deadline_ns = replica_deadline_ns(shell->replica);
    host_alarm(shell->host, deadline_ns == INT64_MAX ? -1
                            : deadline_ns > now_ns   ? deadline_ns - now_ns
                                                     : 0);
}

/* ---- main ---- */

static struct replica *new_replica(uint64_t proof) {
    static char host[256];
    gethostname(host, sizeof host - 1);
    return replica_new(&(struct replica_identity){
        .pid = (uint32_t)getpid(),
        .threads = threads_for(0),
        .proof = proof,
        .host = host,
        .description = numeric_description(),
        .shares = host_sees_state,
    });
}

static void report(const struct shell *shell) {
    const struct replica_counters *counters = replica_counters(shell->replica);
    if (counters->set_bytes)
        log_info("%" PRIu64 " bytes of the set came by messages", counters->set_bytes);
    log_debug("portions %" PRIu64 ", flushes %" PRIu64 " (accepted %" PRIu64 ", dropped %" PRIu64
              "), stale messages %" PRIu64,
              counters->portions, counters->flushes, counters->accepted, counters->dropped,
              counters->stale);
}

static void release(struct shell *shell) {
    if (shell->set && shell->temporary && shell->dismissed)
        set_remove_copy(shell->set);
    shell->temporary = shell->dismissed = false;
    close_set(shell);
    device_close(shell->device);
    shell->device = NULL;
    free(shell->copies);
    shell->copies = NULL;
}

static void forget(void *state) {
    struct shell *shell = state;
    report(shell);
    release(shell);
    replica_free(shell->replica);
    shell->replica = new_replica(shell->proof);
}

static int serve(const struct host_options *options) {
    numeric_setup();
    int code = memory_suffices();
    if (code)
        return code;
    const char *shuffle = getenv("DML_SHUFFLE");
    const char *pause = getenv("DML_PAUSE_US");
    struct shell shell = {.options = options,
                          .proof = objective_proof(),
                          .device_option = options->device,
                          .shuffle = shuffle ? strtoull(shuffle, NULL, 10) : 0,
                          .pause_us = pause ? strtoull(pause, NULL, 10) : PAUSE_US};
    struct host_role role = {.state = &shell,
                             .message = on_message,
                             .gone = on_gone,
                             .connected = on_connected,
                             .after = after,
                             .forget = forget};
    shell.replica = new_replica(shell.proof);
    shell.keeper = keeper_new(wake, &shell);
    shell.host = host_new(options, &role, &code);
    if (shell.host)
        code = host_run(shell.host);
    report(&shell);
    release(&shell);
    keeper_free(shell.keeper);
    host_free(shell.host);
    replica_free(shell.replica);
    return code;
}

int main(int argc, char **argv) {
    int code = process_begin();
    file_name_bus_errors();
    if (!code && argc > 1 && strcmp(argv[1], PLUGIN_OPTION) == 0)
        return plugin_process(argc - 2, argv + 2);
    if (!code)
        code = host_main(argc, argv, "replica",
                         "computes loss and gradient of its portions of the data", serve);
    if (code && *error_text())
        log_error("%s", error_text());
    return -code;
}
