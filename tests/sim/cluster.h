/* A simulated cluster: one job, its coordinator, shards and replicas in one world, and the faults
 * that it meets. */
#ifndef DML_TESTS_SIM_CLUSTER_H
#define DML_TESTS_SIM_CLUSTER_H

#include "tests/sim/job.h"
#include "tests/cluster/disk.h"
#include "tests/sim/hosts.h"
#include "tests/sim/ledger.h"
#include "tests/cluster/store.h"
#include "tests/cluster/world.h"
#include "wire/address.h"

#define SIM_SHARDS_MAX 4
#define SIM_REPLICAS_MAX 4
#define SIM_PLACES_MAX 6 /* for replicas that join and leave: some stay vacant */
#define SIM_WORKERS_MAX (SIM_SHARDS_MAX + SIM_PLACES_MAX)
#define SIM_NOBODY UINT32_MAX

/* How a cluster is made up. */
struct cluster_shape {
    uint32_t shards, replicas;
    uint32_t portion_chunks, flush_ms;
    bool backup_copies;
    uint32_t reconnect_seconds;
    int64_t checkpoint_ns;
    uint32_t hosts; /* that the coordinator starts workers on; 0: on its own */
    bool launched;  /* the coordinator starts workers; else a supervisor does */
    bool apart;     /* workers' hosts do not see the coordinator's disk, but have their own */
    bool shared_memory;
    bool local;     /* replicas with an even number are on the host of the shards, among others; */
    bool shut;      /* that lets none of them in, as if they were not of that host */
    bool cancels;   /* the user cancels a run with directions, and gives the command again */
    bool dies;      /* likewise any run, and the coordinator is killed before it has stopped */
    bool devices;   /* workers compute on devices, which fail; the job leaves the choice to them */
    bool ahead;     /* the coordinator's power goes when replicas know more than its journal */
    bool elastic;   /* replicas join and leave, as a name lists them or not */
    uint32_t fixed; /* with that: so many replicas, from the first on, are there all the time */
    uint32_t odd;   /* with that: a replica by index that computes other bits; UINT32_MAX: none */
    bool rivals;    /* coordinators take over from others that live and do not know it */
    int64_t delay_ns; /* of a message, usually */
    int64_t disk_ns;  /* to write a checkpoint, usually */
    int64_t chunk_ns; /* to compute a chunk, usually */
    uint32_t slow;    /* a replica by index, slowed tenfold; UINT32_MAX: none */
};

/* How often things happened: shows that the schedules reach what they are meant to reach. */
#define TALLY_TABLE(X)                                                                             \
    X(steps_durable, "steps made durable")                                                         \
    X(to_steps, "times back to a durable step")                                                    \
    X(to_starts, "times back to the start")                                                        \
    X(rejoined, "runs taken up from the journal")                                                  \
    X(restarts, "workers started anew")                                                            \
    X(hosts_failed, "hosts that failed")                                                           \
    X(moves, "shards started on another host")                                                     \
    X(disks_lost, "disks lost with a host")                                                        \
    X(delivered, "checkpoints delivered from other hosts' disks")                                  \
    X(brought, "checkpoints brought to other hosts' disks")                                        \
    X(takeovers, "locks lost to another coordinator")                                              \
    X(early_ends, "runs that ended early and were given again")                                    \
    X(refusals, "runs refused because checkpoints were damaged")                                   \
    X(cancelled, "runs that were cancelled and given again")                                       \
    X(devices_failed, "devices that failed")                                                       \
    X(redone, "evaluations made again under other bounds")                                         \
    X(minibatches, "minibatches")                                                                  \
    X(into_downpour, "times back into Downpour")                                                   \
    X(common_runs, "runs with common directions")                                                  \
    X(working_runs, "runs over working sets")                                                      \
    X(tiled_runs, "runs in tiles")                                                                 \
    X(trial_runs, "of them without common directions")                                             \
    X(network_runs, "of these of networks")                                                        \
    X(common_steps, "steps in their span")                                                         \
    X(common_back, "times back to a durable step with them")                                       \
    X(products, "products of rows with a direction")                                               \
    X(margins_anew, "times margins were made anew")                                                \
    X(errors, "models with errors of their estimates")                                             \
    X(locals, "connections within a host")                                                         \
    X(shut_out, "of them not let in")                                                              \
    X(pieces, "pieces of sets that were asked for by messages")                                    \
    X(backups, "backup copies")                                                                    \
    X(joined, "replicas that joined")                                                              \
    X(left, "replicas that left")                                                                  \
    X(left_at_work, "of them in an evaluation")                                                    \
    X(refused_joiners, "replicas with other bits that were refused")                               \
    X(ahead, "times that replicas knew more than a journal")

struct tally {
#define X(name, text) uint64_t name;
    TALLY_TABLE(X)
#undef X
};

struct cluster {
    struct world world;
    const struct job *job;
    struct cluster_shape shape;
    struct ledger ledger;
    struct virtual_disk disk;               /* of the coordinator's host */
    struct virtual_disk own[SIM_HOSTS_MAX]; /* of the hosts, where they are apart */
    struct virtual_store store;
    struct virtual_hosts hosts;
    struct {
        uint64_t listed;             /* the replicas that the name lists, a bit set by index */
        bool failing;                /* and nobody can tell */
        uint32_t at[SIM_PLACES_MAX]; /* the replica that was last in a place, or SIM_NOBODY */
        uint32_t places;
    } names; /* of an elastic cluster; `at` is what the coordinator has recorded */
    uint8_t *copies[SIM_REPLICAS_MAX]; /* of the set, on the host of each replica; owned */
    struct outcome outcome;            /* of this run */
    struct tally tally;
    uint32_t runs;              /* times that the command was given */
    bool ended;                 /* the coordinator has the model */
    bool was_full, was_damaged; /* a disk; an early end may be due to that */
    bool cut_ahead;             /* the next time that replicas know more, the power goes */
    bool refused;               /* it ended for good since checkpoints are damaged: no model */
    bool was_fenced;            /* a coordinator by another */
};

/* Processes by number: the coordinator, then shards, then replicas, then another coordinator, which
 * begins if the first one's lock is lost while it lives. */
static inline struct process *cluster_coordinator(struct cluster *cluster) {
    return &cluster->world.processes[0];
}
static inline struct process *cluster_rival(struct cluster *cluster) {
    return &cluster->world.processes[1 + cluster->shape.shards + cluster->shape.replicas];
}
static inline struct process *cluster_shard(struct cluster *cluster, uint32_t index) {
    return &cluster->world.processes[1 + index];
}
static inline struct process *cluster_replica(struct cluster *cluster, uint32_t index) {
    return &cluster->world.processes[1 + cluster->shape.shards + index];
}
static inline struct cluster *cluster_of(const struct process *process) {
    return process->world->context;
}

/* By link of the coordinator: shards, then replicas. */
static inline struct process *cluster_worker(struct cluster *cluster, uint32_t link) {
    return &cluster->world.processes[1 + link];
}

/* The secret of a shard that has begun so many lives: another process has another socket. */
struct local_secret {
    char digits[LOCAL_SECRET_DIGITS + 1];
};
struct local_secret cluster_secret(const struct process *shard);

/* For world_alarm(): the device of this worker fails, if it has one. */
#define ALARM_DEVICE (UINT64_C(1) << 30)

/* The user cancels the run of this coordinator. */
#define ALARM_CANCEL (UINT64_C(1) << 29)

void cluster_init(struct cluster *cluster, const struct job *job, const struct cluster_shape *shape,
                  uint64_t seed, bool trace);
void cluster_release(struct cluster *cluster);

/* Starts all processes, runs until the job has ended and the workers were dismissed. */
void cluster_run(struct cluster *cluster, int64_t limit_ns);

/* Begins and ends replicas so that those live that the name lists, if it is not there for others,
 * too. */
void cluster_scale(struct cluster *cluster, uint64_t listed);

/* Whether some coordinator lives. */
bool cluster_is_coordinated(struct cluster *cluster);

/* Whether such an early end of the run has to be expected, given the faults that were. */
bool cluster_expects(const struct cluster *cluster, int code, const char *text);

extern const struct behaviour coordinator_behaviour, shard_behaviour, replica_behaviour;

#endif
