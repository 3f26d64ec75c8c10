/* A coordinator, shards and replicas in one process: the real state machines. The caller decides
 * what happens to each message. The replicas compute a small quadratic; disks and the database are
 * those of the simulator. */
#ifndef DML_TESTS_FUZZ_SMALL_CLUSTER_H
#define DML_TESTS_FUZZ_SMALL_CLUSTER_H

#include "coordinator/machine/coordinator.h"
#include "replica/replica.h"
#include "shard/shard.h"
#include "tests/cluster/disk.h"
#include "tests/cluster/parcel.h"
#include "tests/cluster/store.h"

enum { SHARDS = 2, REPLICAS = 2, COORDINATOR = SHARDS + REPLICAS, NODES };

/* A message under way. */
struct packet {
    uint8_t from, to; /* nodes */
    struct parcel parcel;
};

struct cluster_options {
    bool uniform;    /* one exponent for all columns */
    bool keeps_best; /* early stopping */
    bool starts;     /* from a point, with curvature pairs */
    bool squared;    /* an objective whose derivative has no bound */
    bool sparse;     /* with l1 */
    bool network;    /* with a bound a tensor */
    bool pours;      /* Downpour first; from no point */
    bool directions; /* common directions; without l1, a network and Downpour */
};

struct replica_work {
    struct replica *replica;
    bool computing, gathering; /* asked for and not answered yet: */
    struct computation computation;
    int64_t *into;
    uint32_t active;      /* elements that the loss depends on */
    struct bounds bounds; /* of what is summed up */
    uint32_t summed;      /* chunks in the sums, */
    uint64_t chunks;      /* and which, a bit set */
    uint32_t rows;        /* of vectors of rows */
};

/* How far it came. */
struct cluster_counts {
    uint64_t messages, steps, common /* of these, with directions */, epochs, durable, coordinators,
        workers;
};

struct small_cluster {
    struct cluster_options options;
    struct cluster_counts counts;
    int64_t now_ns;

    struct coordinator *coordinator;
    struct output output;
    struct set_info data;
    int16_t *exponents;
    double *point; /* where to start, and behind it one curvature pair */
    struct virtual_store store;

    struct shard *shards[SHARDS];
    struct shard_action writing[SHARDS];
    bool writes[SHARDS]; /* `writing` is not answered yet */
    struct virtual_disk disk;

    struct replica_work replicas[REPLICAS];

    uint32_t links[NODES]
                  [NODES]; /* [at][of]: the number that node `at` gives to its link; 0: none */
    uint32_t last_link;
    struct packet *packets; /* under way, in the order they were sent */
    size_t packet_count, packet_capacity;
};

void small_cluster_init(struct small_cluster *cluster, const struct cluster_options *options);
void small_cluster_release(struct small_cluster *cluster);

/* The coordinator is gone, and the next one takes over. */
void small_cluster_next_coordinator(struct small_cluster *cluster);

/* The connection of two nodes is gone, with all that was under way. */
void small_cluster_break(struct small_cluster *cluster, uint8_t a, uint8_t b);

/* Hands a message over, from a node or, if they are not connected, from a stranger. */
void small_cluster_give(struct small_cluster *cluster, uint8_t from, uint8_t to,
                        const struct message *message);

/* Answers what replicas and disks were asked for. False if there was nothing to answer. */
bool small_cluster_work(struct small_cluster *cluster);

/* Time passes. */
void small_cluster_tick(struct small_cluster *cluster, int64_t ns);

/* Takes a packet out of the queue: the first one with the same sender and receiver as packet
 * `number`, since a connection keeps its order. Release the parcel. */
struct packet small_cluster_take(struct small_cluster *cluster, size_t number);

#endif
