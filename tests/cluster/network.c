#include "tests/cluster/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/cluster/trace.h"

#define PARTITION_BREAKS_NS (12 * NS_PER_S) /* connections across one that lasts so long */

struct end {
    struct process *process;
    uint32_t link;
    bool open;       /* the process has not let go, and not been told that it is gone */
    int64_t last_ns; /* when the last parcel to this end arrives */
    int64_t cut_ns;  /* messages that would arrive later are lost */
};

struct connection {
    struct end ends[2];
    bool broken; /* what is sent now is lost */
    bool local;  /* within a host */
};

struct partition {
    uint64_t set;
    int64_t until_ns;
};

struct network {
    struct world *world;
    int64_t delay_ns;
    const struct pace *pace; /* or NULL: as delay_ns says */
    bool shared_memory;
    struct connection *connections;
    uint32_t count, capacity;
    struct partition partitions[8];
    uint32_t partition_count;
};

/* On its way to an end: a message, or the news that the connection is gone. */
struct delivery {
    struct network *network;
    uint32_t connection;
    uint8_t to;
    bool gone;
    bool came; /* its first byte; of a network with a pace */
    int64_t at_ns;
    struct parcel parcel;
};

struct network *network_new(struct world *world) {
    struct network *network = memory_new(1, sizeof *network);
    network->world = world;
    network->delay_ns = NS_PER_MS / 10;
    return network;
}

void network_free(struct network *network) {
    free(network->connections);
    free(network);
}

void network_set(struct network *network, int64_t delay_ns, bool shared_memory) {
    network->delay_ns = delay_ns;
    network->shared_memory = shared_memory;
}

void network_pace(struct network *network, const struct pace *pace) {
    network->pace = pace;
}

/* ---- connections ---- */

/* The connection of a link that is open at this process, and which end of it that is. */
static struct connection *find(const struct process *process, uint32_t link, uint32_t *side) {
    const struct network *network = process->world->network;
    if (!link || link > process->last_link)
        return NULL;
    struct connection *connection = &network->connections[process->connections[link - 1]];
    *side = connection->ends[0].process != process;
    return connection->ends[*side].open ? connection : NULL;
}

struct process *network_peer(const struct process *process, uint32_t link) {
    uint32_t side;
    const struct connection *connection = find(process, link, &side);
    return connection ? connection->ends[1 - side].process : NULL;
}

static struct end new_end(struct process *process, uint32_t connection) {
    MEMORY_ROOM(process->connections, process->last_link, process->connection_capacity);
    process->connections[process->last_link] = connection;
    return (struct end){process, ++process->last_link, true, 0, NEVER_NS};
}

static bool add_connection(struct process *from, struct process *to, bool local, uint32_t *link) {
    struct network *network = from->world->network;
    if (!to->alive)
        return false;
    MEMORY_ROOM(network->connections, network->count, network->capacity);
    network->connections[network->count] = (struct connection){
        .ends = {new_end(from, network->count), new_end(to, network->count)}, .local = local};
    *link = network->connections[network->count++].ends[0].link;
    return true;
}

bool network_connect(struct process *from, struct process *to, uint32_t *link) {
    return !network_parted(from->world->network, from, to) && add_connection(from, to, false, link);
}

bool network_connect_local(struct process *from, struct process *to, uint32_t *link) {
    return add_connection(from, to, true, link);
}

static void post(struct network *network, const struct delivery *news, double at_ns) {
    struct delivery *delivery = memory_new(1, sizeof *delivery);
    *delivery = *news;
    delivery->network = network;
    struct end *end = &network->connections[delivery->connection].ends[delivery->to];
    if (!network->pace)
        at_ns = fmax(at_ns, (double)end->last_ns);
    end->last_ns = delivery->at_ns = (int64_t)at_ns;
    world_post(end->process, at_ns, delivery);
}

/* Tells an end that is open that the connection is gone, after what still arrives. */
static void post_gone(struct network *network, uint32_t connection, uint8_t to, int64_t at_ns) {
    if (network->connections[connection].ends[to].open)
        post(network, &(struct delivery){.connection = connection, .to = to, .gone = true},
             (double)at_ns);
}

static void hang_up(struct network *network, uint32_t number, uint32_t side, int64_t at_ns) {
    struct connection *connection = &network->connections[number];
    connection->ends[side].open = false;
    if (!connection->broken)
        post_gone(network, number, (uint8_t)(1 - side), at_ns);
    connection->broken = true;
}

void network_close(struct process *process, uint32_t link) {
    struct network *network = process->world->network;
    uint32_t side;
    struct connection *connection = find(process, link, &side);
    if (connection)
        hang_up(network, (uint32_t)(connection - network->connections), side,
                network->world->now_ns + world_delay(network->world, network->delay_ns));
}

/* Of what is under way to an end, only the front still arrives. */
static void cut(struct network *network, struct end *end) {
    int64_t now_ns = network->world->now_ns;
    if (end->last_ns > now_ns)
        end->cut_ns =
            now_ns + (int64_t)world_between(network->world, 0, (uint64_t)(end->last_ns - now_ns));
    if (end->cut_ns != NEVER_NS)
        end->last_ns = end->cut_ns;
}

bool network_break(struct network *network, uint32_t number) {
    struct connection *connection = &network->connections[number];
    if (connection->broken || !connection->ends[0].open || !connection->ends[1].open)
        return false;
    world_say(network->world, "the connection of %s and %s breaks",
              connection->ends[0].process->name, connection->ends[1].process->name);
    connection->broken = true;
    for (uint8_t side = 0; side < 2; side++) {
        cut(network, &connection->ends[side]);
        post_gone(network, number, side,
                  network->world->now_ns + world_delay(network->world, 2 * NS_PER_MS));
    }
    return true;
}

void network_separate(struct process *a, struct process *b) {
    struct network *network = a->world->network;
    for (uint32_t i = 0; i < network->count; i++) {
        const struct end *ends = network->connections[i].ends;
        uint32_t side = ends[0].process != a;
        if (ends[side].process == a && (!b || ends[1 - side].process == b))
            network_break(network, i);
    }
}

uint32_t network_connections(const struct network *network) {
    return network->count;
}

void network_ended(struct process *process, bool orderly) {
    struct network *network = process->world->network;
    for (uint32_t i = 0; i < network->count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            struct connection *connection = &network->connections[i];
            if (connection->ends[side].process != process || !connection->ends[side].open)
                continue;
            if (!orderly && world_chance(network->world, 2))
                cut(network, &connection->ends[1 - side]);
            hang_up(network, i, side,
                    network->world->now_ns + world_delay(network->world, network->delay_ns));
        }
}

/* ---- partitions ---- */

static bool apart(const struct partition *partition, const struct process *a,
                  const struct process *b) {
    return (partition->set >> a->number & 1) != (partition->set >> b->number & 1);
}

static int64_t parted_until(const struct network *network, const struct process *a,
                            const struct process *b) {
    int64_t until_ns = 0;
    for (uint32_t i = 0; i < network->partition_count; i++)
        if (apart(&network->partitions[i], a, b) && network->partitions[i].until_ns > until_ns)
            until_ns = network->partitions[i].until_ns;
    return until_ns;
}

bool network_parted(const struct network *network, const struct process *a,
                    const struct process *b) {
    return parted_until(network, a, b) > network->world->now_ns;
}

static void break_across(struct world *world, uint64_t number) {
    struct network *network = world->network;
    for (uint32_t i = 0; i < network->count; i++) {
        struct end *ends = network->connections[i].ends;
        if (!network->connections[i].local &&
            apart(&network->partitions[number], ends[0].process, ends[1].process))
            network_break(network, i);
    }
}

void network_part(struct network *network, uint64_t set, int64_t until_ns) {
    struct world *world = network->world;
    if (network->partition_count == sizeof network->partitions / sizeof *network->partitions)
        return;
    world_say(world, "the network parts, set %#llx, for %.3f s", (unsigned long long)set,
              (double)(until_ns - world->now_ns) / 1e9);
    network->partitions[network->partition_count] = (struct partition){set, until_ns};
    if (until_ns - world->now_ns > PARTITION_BREAKS_NS)
        world_call(world, world->now_ns + PARTITION_BREAKS_NS, break_across,
                   network->partition_count);
    network->partition_count++;
}

/* ---- messages ---- */

/* Of the first byte of what is sent now. */
static double arrival_ns(const struct process *from, const struct process *to,
                         const struct parcel *parcel) {
    const struct network *network = from->world->network;
    double at_ns = world_free_ns(from);
    if (network->pace)
        return network->pace->sent(from, to, parcel, at_ns);
    int64_t usual_ns = network->delay_ns * (from->far || to->far ? 20 : 1);
    return at_ns + (double)world_delay(from->world, usual_ns);
}

void network_send(struct process *process, uint32_t link, const struct outbox *outbox,
                  const struct envelope *envelope) {
    struct network *network = process->world->network;
    uint32_t side;
    struct connection *connection = find(process, link, &side);
    if (!connection || connection->broken)
        return;
    struct delivery delivery = {
        .connection = (uint32_t)(connection - network->connections),
        .to = (uint8_t)(1 - side),
        .parcel = parcel_pack(outbox, envelope, network->shared_memory || connection->local)};
    post(network, &delivery,
         arrival_ns(process, connection->ends[1 - side].process, &delivery.parcel));
}

void network_lose(void *context) {
    struct delivery *delivery = context;
    parcel_release(&delivery->parcel);
    free(delivery);
}

static void hand_over(struct delivery *delivery, struct end *end, const struct process *from) {
    struct message message = parcel_message(&delivery->parcel);
    const char *why = message_fault(&message);
    if (why) {
        world_fail(delivery->network->world, "%s of %s cannot be: %s", message_name(message.type),
                   from->name, why);
        return;
    }
    trace_message(from, end->process, &message);
    end->process->behaviour->message(end->process, end->link, &message);
}

static bool arrives(const struct delivery *delivery, const struct end *end) {
    return end->open && !delivery->gone && delivery->at_ns <= end->cut_ns;
}

double network_due(void *context) {
    struct delivery *delivery = context;
    const struct network *network = delivery->network;
    struct connection *connection = &network->connections[delivery->connection];
    struct end *end = &connection->ends[delivery->to];
    const struct process *from = connection->ends[1 - delivery->to].process;
    int64_t until_ns = connection->local ? 0 : parted_until(network, from, end->process);
    if (!arrives(delivery, end))
        return 0;
    if (network->pace && !delivery->came) {
        delivery->came = true;
        return network->pace->received(from, end->process, &delivery->parcel);
    }
    if (until_ns <= network->world->now_ns)
        return 0;
    delivery->at_ns = until_ns;
    if (end->last_ns < until_ns)
        end->last_ns = until_ns;
    return (double)until_ns;
}

void network_deliver(void *context) {
    struct delivery *delivery = context;
    struct connection *connection = &delivery->network->connections[delivery->connection];
    struct end *end = &connection->ends[delivery->to];
    if (arrives(delivery, end)) {
        hand_over(delivery, end, connection->ends[1 - delivery->to].process);
    } else if (end->open && delivery->gone) {
        end->open = false;
        end->process->behaviour->gone(end->process, end->link);
    }
    network_lose(delivery);
}

enum message_type network_type(const void *context) {
    const struct delivery *delivery = context;
    return delivery->parcel.type;
}
