#define _GNU_SOURCE
#include "tests/fuzz/small_cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "numeric/vector.h"
#include "tests/fuzz/small_work.h"
#include "wire/peer.h"

enum {
    FEATURES = 2 * BLOCK_ELEMENTS - 1,
    PARAMETERS = FEATURES + 1, /* with the intercept: a block for each shard */
    CHUNKS = 6,
    HELD_OUT = 1,        /* of them */
    STRANGERS = 1000000, /* their links are numbered from here on */
};

/* Roles log what others did wrong. Here they would do so all the time. */
enum log_level log_level_now = LOG_ERROR;

void log_line(enum log_level level, const char *format, ...) {
    (void)level, (void)format;
}

/* ---- messages under way ---- */

static void post(struct small_cluster *cluster, uint8_t from, uint8_t to,
                 const struct outbox *outbox, const struct envelope *envelope) {
    MEMORY_ROOM(cluster->packets, cluster->packet_count, cluster->packet_capacity);
    cluster->packets[cluster->packet_count++] =
        (struct packet){.from = from, .to = to, .parcel = parcel_pack(outbox, envelope, false)};
}

struct packet small_cluster_take(struct small_cluster *cluster, size_t number) {
    struct packet *packets = cluster->packets;
    size_t first = 0;
    while (packets[first].from != packets[number].from || packets[first].to != packets[number].to)
        first++;
    struct packet taken = packets[first];
    cluster->packet_count--;
    memmove(packets + first, packets + first + 1,
            (cluster->packet_count - first) * sizeof *packets);
    return taken;
}

static void drop_packets(struct small_cluster *cluster, uint8_t a, uint8_t b) {
    size_t kept = 0;
    for (size_t i = 0; i < cluster->packet_count; i++) {
        struct packet *packet = &cluster->packets[i];
        if ((packet->from == a && packet->to == b) || (packet->from == b && packet->to == a))
            parcel_release(&packet->parcel);
        else
            cluster->packets[kept++] = *packet;
    }
    cluster->packet_count = kept;
}

/* ---- connections ---- */

static bool is_shard(uint8_t node) {
    return node < SHARDS;
}

/* The coordinator numbers its links by worker; other nodes give each new link a new number. */
static void join_nodes(struct small_cluster *cluster, uint8_t a, uint8_t b) {
    cluster->links[a][b] = ++cluster->last_link;
    cluster->links[b][a] = ++cluster->last_link;
}

static void disconnect(struct small_cluster *cluster, uint8_t a, uint8_t b) {
    cluster->links[a][b] = cluster->links[b][a] = 0;
    drop_packets(cluster, a, b);
}

static uint8_t node_of(const struct small_cluster *cluster, uint8_t at, uint32_t link) {
    if (at == COORDINATOR)
        return cluster->links[at][link] ? (uint8_t)link : (uint8_t)NODES;
    for (uint8_t of = 0; of < NODES && link; of++)
        if (cluster->links[at][of] == link)
            return of;
    return NODES;
}

/* Posts the messages that a role has put into its outbox. */
static void drain(struct small_cluster *cluster, uint8_t from, const struct outbox *outbox) {
    for (size_t i = 0; i < outbox->count; i++) {
        uint8_t to = node_of(cluster, from, outbox->envelopes[i].to);
        if (to < NODES)
            post(cluster, from, to, outbox, &outbox->envelopes[i]);
    }
}

/* ---- shards ---- */

static void carry_out_shard(struct small_cluster *cluster, uint8_t node, struct outbox *out) {
    struct shard_action action;
    while (shard_next_action(cluster->shards[node], &action)) {
        if (action.kind == SHARD_WRITE) {
            cluster->writing[node] = action;
            cluster->writes[node] = true;
        } else {
            shard_carry_out(cluster->shards[node], &cluster->disk.disk, &action, out);
        }
    }
}

static void after_shard(struct small_cluster *cluster, uint8_t node, struct outbox *out) {
    carry_out_shard(cluster, node, out);
    drain(cluster, node, out);
    outbox_release(out);
    error_clear();
}

static void finish_write(struct small_cluster *cluster, uint8_t node) {
    struct outbox out;
    outbox_init(&out);
    cluster->writes[node] = false;
    shard_carry_out(cluster->shards[node], &cluster->disk.disk, &cluster->writing[node], &out);
    after_shard(cluster, node, &out);
}

static void new_shard(struct small_cluster *cluster, uint8_t node) {
    static const struct shard_self self = {.host = "here", .description = "fuzzed", .proof = 9};
    while (cluster->writes[node]) /* what waited for one may begin another */
        finish_write(cluster, node);
    shard_free(cluster->shards[node]);
    cluster->shards[node] = shard_new(&self);
}

/* ---- replicas ---- */

static void after_replica(struct small_cluster *cluster, uint8_t node, struct outbox *out);

static void carry_out_replica(struct small_cluster *cluster, uint8_t node,
                              const struct action *action, struct outbox *out) {
    struct replica_work *work = &cluster->replicas[node - SHARDS];
    switch (action->kind) {
    case ACTION_OPEN_SET:
        work->computing = work->gathering = false;
        work->summed = 0;
        work->active = (uint32_t)fmin(ACTIVE, (double)layout_parameters(&action->setup.layout));
        work->rows = (uint32_t)(action->setup.rows < ROWS ? action->setup.rows : ROWS);
        /* As the program does, which compares them with the set. */
        if (action->setup.rows > ROWS_MOST)
            replica_opened(work->replica, ERROR_INTERNAL, "another set", cluster->now_ns, out);
        else
            replica_opened(work->replica, 0, "", cluster->now_ns, out);
        break;
    case ACTION_CONNECT:
        if (action->shard >= SHARDS) {
            replica_connected(work->replica, action->shard, 0, ERROR_UNAVAILABLE, "nobody there",
                              out);
            break;
        }
        disconnect(cluster, node, (uint8_t)action->shard);
        join_nodes(cluster, node, (uint8_t)action->shard);
        replica_connected(work->replica, action->shard, cluster->links[node][action->shard], 0, "",
                          out);
        break;
    case ACTION_CLOSE:
        if (node_of(cluster, node, action->link) < SHARDS)
            small_cluster_break(cluster, node, node_of(cluster, node, action->link));
        break;
    case ACTION_COMPUTE:
        work->computing = true;
        work->computation = action->computation;
        break;
    case ACTION_STOP:
    case ACTION_COPY_SET: /* all see the set */
    case ACTION_KEEP:
    case ACTION_LOOK:
        break;
    case ACTION_GATHER:
        work->gathering = true;
        work->into = action->into;
        break;
    }
}

static void after_replica(struct small_cluster *cluster, uint8_t node, struct outbox *out) {
    struct replica_work *work = &cluster->replicas[node - SHARDS];
    struct action action;
    while (replica_next_action(work->replica, &action))
        carry_out_replica(cluster, node, &action, out);
    drain(cluster, node, out);
    outbox_release(out);
    error_clear();
}

static void compute(struct small_cluster *cluster, uint8_t node) {
    struct replica_work *work = &cluster->replicas[node - SHARDS];
    struct computed answer;
    struct outbox out;
    small_work_compute(work, cluster->options.squared, &answer);
    outbox_init(&out);
    replica_computed(work->replica, &answer, cluster->now_ns, &out);
    after_replica(cluster, node, &out);
}

static void gather(struct small_cluster *cluster, uint8_t node) {
    struct replica_work *work = &cluster->replicas[node - SHARDS];
    struct outbox out;
    small_work_gather(work);
    outbox_init(&out);
    replica_gathered(work->replica, NULL, cluster->now_ns, &out);
    after_replica(cluster, node, &out);
}

static void new_replica(struct small_cluster *cluster, uint8_t node) {
    static const struct replica_identity identity = {
        .threads = 1, .proof = 8, .host = "here", .description = "fuzzed"};
    struct replica_work *work = &cluster->replicas[node - SHARDS];
    replica_free(work->replica);
    *work = (struct replica_work){.replica = replica_new(&identity)};
}

/* ---- the coordinator ---- */

static void start_worker(struct small_cluster *cluster, uint8_t node) {
    for (uint8_t other = 0; other < COORDINATOR; other++)
        if (cluster->links[node][other])
            small_cluster_break(cluster, node, other);
    disconnect(cluster, COORDINATOR, node);
    cluster->counts.workers++;
    if (is_shard(node))
        new_shard(cluster, node);
    else
        new_replica(cluster, node);
}

static int keep_record(struct small_cluster *cluster, const struct record *record) {
    cluster->counts.steps += record->kind == RECORD_STEP;
    cluster->counts.common += record->kind == RECORD_STEP && cluster->options.directions;
    cluster->counts.epochs += record->kind == RECORD_EPOCH;
    cluster->counts.durable += record->kind == RECORD_DURABLE_STEP;
    return virtual_store_record(&cluster->store, record, cluster->output.blobs.data, SHARDS);
}

/* Records first, then messages; workers that are to be started afterwards, for that calls the
 * coordinator again. */
static void after_coordinator(struct small_cluster *cluster, int code) {
    bool starts[COORDINATOR] = {false};
    struct output *output = &cluster->output;
    uint64_t term = cluster->store.term;
    coordinator_end_turn(cluster->coordinator, output);
    for (uint32_t i = 0; i < output->record_count && !code; i++) {
        if (output->records[i].kind == RECORD_START)
            starts[output->records[i].start.link] = true;
        code = keep_record(cluster, &output->records[i]);
    }
    if (!code)
        code = virtual_store_flush(&cluster->store);
    if (!code)
        drain(cluster, COORDINATOR, &output->messages);
    output_clear(output);
    error_clear();
    if (code) { /* it dismisses its workers */
        for (uint8_t node = 0; node < COORDINATOR; node++)
            start_worker(cluster, node);
        small_cluster_next_coordinator(cluster);
        return;
    }
    for (uint8_t node = 0; node < COORDINATOR && cluster->store.term == term; node++) {
        if (!starts[node])
            continue;
        start_worker(cluster, node);
        join_nodes(cluster, COORDINATOR, node);
        coordinator_opened(cluster->coordinator, node, cluster->now_ns, output);
        after_coordinator(cluster, 0);
    }
}

/* All have as many parameters: a network has a weight and two biases beside W1. */
static struct objective_shape shape_of(const struct cluster_options *options) {
    struct objective_shape shape = {.kind =
                                        options->squared ? OBJECTIVE_SQUARED : OBJECTIVE_LOGISTIC,
                                    .features = FEATURES,
                                    .outputs = 1,
                                    .intercept = true};
    if (options->network) {
        shape.features -= 2;
        shape.network = (struct network){.layers = 1, .units = {1}};
    }
    return shape;
}

static struct coordinator *new_coordinator(struct small_cluster *cluster) {
    static const double rate = 0.25;
    static const uint32_t multiple = 1;
    static const char *const addresses[SHARDS] = {"unix:/0", "unix:/1"};
    const struct cluster_options *options = &cluster->options;
    const struct objective_shape shape = shape_of(options);
    struct store_saved saved;
    struct store_blob *journal;
    virtual_store_read(&cluster->store, &saved, &journal);
    struct coordinator *coordinator = coordinator_new(&(struct coordinator_settings){
        .optimizer = {.memory = 4,
                      .bias_scale = 1,
                      .l1 = options->sparse ? 0.01 : 0,
                      .directions = options->directions ? 2 : 0,
                      .outputs = 1,
                      .steps_max = 30,
                      .gradient_tolerance = 1e-9,
                      .patience = options->keeps_best ? 3 : 0},
        .downpour = {.epochs = options->pours ? 3 : 0,
                     .batch = 2 * BLOCK_ROWS,
                     .rates = &rate,
                     .rate_count = 1,
                     .multiples = &multiple,
                     .multiple_count = 1,
                     .scales = true,
                     .measures = true},
        .shape = shape,
        .layout = objective_layout(&shape),
        .history_type = HISTORY_DOUBLE,
        .data = &cluster->data,
        .exponents = options->network ? cluster->exponents : NULL,
        .set_path = "the set",
        .run = "run",
        .term = virtual_store_term(&cluster->store),
        .shards = SHARDS,
        .replicas = REPLICAS,
        .portion_chunks = 2,
        .backup_copies = true,
        .flush_ms = 1,
        .shard_addresses = addresses,
        .shards_folder = "shards",
        .restarts_max = 1000,
        .start = options->starts ? cluster->point : NULL,
        .start_pairs = cluster->point + PARAMETERS,
        .start_pair_count = options->starts,
        .pairs_kept = 2,
        .saved = saved.attempt ? &saved : NULL,
    });
    free(journal);
    return coordinator;
}

void small_cluster_next_coordinator(struct small_cluster *cluster) {
    for (uint8_t node = 0; node < COORDINATOR; node++) {
        uint32_t link = cluster->links[node][COORDINATOR];
        struct outbox out;
        outbox_init(&out);
        disconnect(cluster, COORDINATOR, node);
        if (is_shard(node) && link)
            shard_peer_gone(cluster->shards[node], link);
        else if (link)
            replica_gone(cluster->replicas[node - SHARDS].replica, link, &out);
        outbox_release(&out);
    }
    coordinator_free(cluster->coordinator);
    cluster->counts.coordinators++;
    cluster->store.full = false;
    virtual_store_crash(&cluster->store);
    output_clear(&cluster->output);
    cluster->coordinator = new_coordinator(cluster);
    coordinator_begin(cluster->coordinator, cluster->now_ns, &cluster->output);
    for (uint8_t node = 0; node < COORDINATOR; node++) {
        join_nodes(cluster, COORDINATOR, node);
        coordinator_opened(cluster->coordinator, node, cluster->now_ns, &cluster->output);
    }
    after_coordinator(cluster, 0);
}

/* ---- what happens ---- */

static void gone(struct small_cluster *cluster, uint8_t at, uint8_t of, uint32_t link) {
    struct outbox out;
    outbox_init(&out);
    if (at == COORDINATOR) {
        int code = coordinator_lost(cluster->coordinator, of, "the connection broke",
                                    cluster->now_ns, &cluster->output);
        after_coordinator(cluster, code);
    } else if (is_shard(at)) {
        shard_peer_gone(cluster->shards[at], link);
    } else {
        replica_gone(cluster->replicas[at - SHARDS].replica, link, &out);
        after_replica(cluster, at, &out);
        return;
    }
    outbox_release(&out);
}

void small_cluster_break(struct small_cluster *cluster, uint8_t a, uint8_t b) {
    uint32_t at_a = cluster->links[a][b], at_b = cluster->links[b][a];
    if (!at_a)
        return;
    disconnect(cluster, a, b);
    if (a == COORDINATOR) {
        gone(cluster, b, a, at_b); /* before the coordinator may start it anew */
        gone(cluster, a, b, at_a);
    } else {
        gone(cluster, a, b, at_a);
        gone(cluster, b, a, at_b);
    }
}

void small_cluster_give(struct small_cluster *cluster, uint8_t from, uint8_t to,
                        const struct message *message) {
    uint32_t link =
        cluster->links[to][from] ? cluster->links[to][from] : STRANGERS + ++cluster->last_link;
    struct outbox out;
    outbox_init(&out);
    cluster->counts.messages++;
    if (to == COORDINATOR && cluster->links[to][from]) {
        int code = coordinator_step(cluster->coordinator, from, message, cluster->now_ns,
                                    &cluster->output);
        after_coordinator(cluster, code);
    } else if (is_shard(to)) {
        shard_step(cluster->shards[to], link, message, cluster->now_ns, &out);
        after_shard(cluster, to, &out);
    } else if (to != COORDINATOR) {
        replica_step(cluster->replicas[to - SHARDS].replica, link, message, cluster->now_ns, &out);
        after_replica(cluster, to, &out);
    }
}

bool small_cluster_work(struct small_cluster *cluster) {
    bool any = false;
    for (uint8_t node = 0; node < COORDINATOR; node++) {
        bool writes = is_shard(node) && cluster->writes[node];
        bool computes = !is_shard(node) && cluster->replicas[node - SHARDS].computing;
        bool gathers = !is_shard(node) && cluster->replicas[node - SHARDS].gathering;
        any |= writes || computes || gathers;
        if (writes)
            finish_write(cluster, node);
        else if (computes)
            compute(cluster, node);
        else if (gathers)
            gather(cluster, node);
    }
    return any;
}

void small_cluster_tick(struct small_cluster *cluster, int64_t ns) {
    cluster->now_ns += ns;
    int code = coordinator_tick(cluster->coordinator, cluster->now_ns, &cluster->output);
    after_coordinator(cluster, code);
    for (uint8_t node = SHARDS; node < COORDINATOR; node++) {
        struct replica *replica = cluster->replicas[node - SHARDS].replica;
        if (cluster->now_ns < replica_deadline_ns(replica))
            continue;
        struct outbox out;
        outbox_init(&out);
        replica_timer(replica, cluster->now_ns, &out);
        after_replica(cluster, node, &out);
    }
}

/* ---- life ---- */

static void make_data(struct small_cluster *cluster) {
    cluster->exponents = memory_new(PARAMETERS, sizeof *cluster->exponents);
    cluster->point = memory_new((size_t)3 * PARAMETERS, sizeof *cluster->point);
    for (size_t i = 0; i < PARAMETERS; i++)
        cluster->exponents[i] = EXPONENT;
    for (size_t i = 0; i < ACTIVE; i++) {
        cluster->point[PARAMETERS + i] = 1;
        cluster->point[2 * PARAMETERS + i] = small_work_curvature((uint32_t)i);
    }
    cluster->data = (struct set_info){.rows = ROWS,
                                      .weight_sum = 100,
                                      .values = 1000,
                                      .features = shape_of(&cluster->options).features,
                                      .chunks = CHUNKS,
                                      .block_rows = BLOCK_ROWS,
                                      .exponent = cluster->exponents,
                                      .uniform = cluster->options.uniform,
                                      .uniform_exponent = EXPONENT,
                                      .fingerprint = "f",
                                      .label_max_abs = 3,
                                      .holdout_chunks = HELD_OUT,
                                      .holdout_rows = 10};
}

void small_cluster_init(struct small_cluster *cluster, const struct cluster_options *options) {
    *cluster = (struct small_cluster){.options = *options, .now_ns = 1000000000};
    make_data(cluster);
    output_init(&cluster->output);
    virtual_disk_init(&cluster->disk);
    for (uint8_t node = 0; node < COORDINATOR; node++)
        start_worker(cluster, node);
    small_cluster_next_coordinator(cluster);
}

void small_cluster_release(struct small_cluster *cluster) {
    for (uint8_t node = 0; node < SHARDS; node++) {
        if (cluster->writes[node])
            finish_write(cluster, node);
        shard_free(cluster->shards[node]);
    }
    for (size_t i = 0; i < REPLICAS; i++)
        replica_free(cluster->replicas[i].replica);
    coordinator_free(cluster->coordinator);
    for (size_t i = 0; i < cluster->packet_count; i++)
        parcel_release(&cluster->packets[i].parcel);
    output_release(&cluster->output);
    virtual_disk_release(&cluster->disk);
    virtual_store_release(&cluster->store);
    free(cluster->packets);
    free(cluster->exponents);
    free(cluster->point);
}
