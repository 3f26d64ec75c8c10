/* A world of processes under one virtual clock.
 *
 * Everything that happens is an event at a virtual time; events are taken in the order of time and,
 * at the same time, in the order in which they were made. All chance comes from one seeded
 * generator, so a seed replays to the last byte. A process has lives: what was meant for an earlier
 * life never reaches a later one. A paused process gets nothing until it goes on, and then
 * everything, in order. One with a cost handles one message or alarm after the other, each after
 * the time that it takes; it is not ended.
 *
 * What virtual clusters need of this folder:
 *
 *   the simulator (tests/sim)   schedules from seeds, lives; a network that delays, breaks and
 * parts; disks and a store that lose what was not safe bench/efficiency            time that
 * messages cost, fractions of ns included; a network whose pace follows from bytes that it counts
 * itself; nothing fails tests/fuzz/fuzz_roles       no time: bytes of the input say which message
 * is next; messages in memory of their exact sizes; the disks and the store benches in tests/unit
 * no time and no others: the test says it all, and reads messages */
#ifndef DML_TESTS_CLUSTER_WORLD_H
#define DML_TESTS_CLUSTER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/random.h"
#include "wire/message.h"

#define NEVER_NS INT64_MAX

struct world;
struct process;
struct network;

/* What a kind of process does when something happens to it. */
struct behaviour {
    void (*begin)(struct process *process); /* a life begins; `state` is to be made */
    void (*end)(struct process *process);   /* it ended, in whatever way: release `state` */
    void (*message)(struct process *process, uint32_t link, const struct message *message);
    void (*gone)(struct process *process, uint32_t link);
    void (*alarm)(struct process *process, uint64_t which); /* see world_alarm() */
    /* What a message of a type costs it, in ns; negative: it does not wait for others. NULL:
     * nothing takes time. */
    double (*cost)(const struct process *process, enum message_type type);
};

struct process {
    struct world *world;
    uint32_t number; /* in the world */
    enum role role;
    uint32_t index; /* among those of its role */
    char name[16];
    const struct behaviour *behaviour;
    void *state; /* of this life; NULL when it is dead */
    uint32_t life;
    bool alive;
    bool far;     /* messages to it and from it take long */
    bool greeted; /* a worker: by some coordinator, in this life */
    int64_t paused_until_ns;
    uint32_t last_link;    /* numbers given to connections, in all lives … */
    uint32_t *connections; /* … and what they are in the network */
    uint32_t connection_capacity;
    uint64_t effects_left;           /* sends and durable writes until it dies; UINT64_MAX: never */
    bool dying;                      /* that has come: it ends when its step returns */
    uint32_t host;                   /* where it is, for those who count that */
    double busy_until_ns, worked_ns; /* if it has a cost: with what has come; in all */
    struct waiting *line, **line_end; /* … and what has come and waits, the first in hand */
};

struct event; /* opaque */

struct world {
    int64_t now_ns;
    double exact_ns; /* the same with its fraction: what processes cost is no whole number */
    struct random random;
    bool trace;
    bool over; /* nothing more is to happen */
    struct process *processes;
    uint32_t process_count;
    struct network *network;
    void *context;                          /* the user's: a cluster */
    void (*ended)(struct process *process); /* called after a process has ended; or NULL */
    struct event *events;
    uint32_t event_count, event_capacity;
    uint64_t events_made;
    char failure[512]; /* what went wrong first; "" if nothing did */
};

void world_init(struct world *world, uint64_t seed, uint32_t processes);
void world_release(struct world *world);

/* Takes events until the world is over, nothing is left, or it is later than `limit_ns`. */
void world_run(struct world *world, int64_t limit_ns);

/* Notes a failure, if it is the first, and ends the world. */
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line of the trace. */
void world_say(const struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- processes ---- */

void sim_process_begin(struct process *process);

/* The process ends now; its links break. With `orderly`, what it sent still arrives. */
void sim_process_end(struct process *process, bool orderly);

void process_pause(struct process *process, int64_t until_ns);

/* The process is busy for so long with what it does now, and with what it has begun before; what it
 * sends leaves after that. */
void world_spend(struct process *process, double ns);
double world_free_ns(const struct process *process);
/* Whether more has come to it than what is in hand. */
bool world_more_waits(const struct process *process);

/* One send or durable write is about to happen. False if the process dies instead. */
bool process_acts(struct process *process);

/* ---- events ---- */

/* Calls behaviour->alarm(which) in this life of the process. */
void world_alarm(struct process *process, int64_t at_ns, uint64_t which);
void world_alarm_exact(struct process *process, double at_ns, uint64_t which);

/* Calls back whatever happens to processes. */
void world_call(struct world *world, int64_t at_ns,
                void (*call)(struct world *world, uint64_t what), uint64_t what);

/* For the network: hands `delivery` to network_deliver() when the process can take it. */
void world_post(struct process *process, double at_ns, void *delivery);

/* ---- chance ---- */

/* True with a chance of one in `times`. */
bool world_chance(struct world *world, uint64_t times);

/* Evenly in [least, most]. */
uint64_t world_between(struct world *world, uint64_t least, uint64_t most);

/* Mostly around `usual_ns`, at times much longer. */
int64_t world_delay(struct world *world, int64_t usual_ns);

#endif
