/* Waiting for workers that someone else starts: they may come up later than the coordinator, and
 * come back later than it lost them. Nothing here connects: the caller does, again and again, and
 * says what came of it.
 *
 * A run needs all shards and one replica. So a worker that is not there in time ends the run, but
 * for a replica beside which another one works: the run goes on without it, and it joins when it
 * comes. */
#ifndef DML_COORDINATOR_RUN_MISSING_WORKERS_H
#define DML_COORDINATOR_RUN_MISSING_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

/* A worker that is not there. */
struct missing_worker {
    bool missing;
    bool strict;      /* it was not waited for: the run ends also if others are there */
    bool given_up;    /* nobody waits for it any more */
    int64_t until_ns; /* how long somebody does */
    char *why;        /* the last attempt failed; owned; NULL: there was none */
};

struct missing_workers {
    const char *const *addresses; /* by link, shards first; they may change */
    uint32_t shards, links;
    struct missing_worker *workers; /* [links]; owned */
    bool waits;                     /* for some worker, as of missing_check() */
    int64_t since_ns, told_ns;
};

void missing_init(struct missing_workers *missing, const char *const *addresses, uint32_t shards,
                  uint32_t replicas);
void missing_release(struct missing_workers *missing);

/* Waits for the worker of this link from now on. 0 seconds: the first failure ends the run. A
 * worker that is waited for already goes on as it was. */
void missing_begin(struct missing_workers *missing, uint32_t link, int64_t now_ns, double seconds);

/* An attempt to reach it failed. */
void missing_failed(struct missing_workers *missing, uint32_t link, const char *why);

/* Whether this is not why the last attempt failed. */
bool missing_is_new(const struct missing_workers *missing, uint32_t link, const char *why);

/* It is there. */
void missing_came(struct missing_workers *missing, uint32_t link);

/* Whether nobody waits for it any more: it may still come. */
bool missing_gave_up(const struct missing_workers *missing, uint32_t link);

/* Logs now and then for whom the run waits. `replica_there`: some replica works. ERROR_UNAVAILABLE,
 * with who is not there and what to start, if the time of a worker is over that the run needs. */
int missing_check(struct missing_workers *missing, bool replica_there, int64_t now_ns);

/* "shard 0 at unix:/run/s0, replica 3 at host:77": for whom the run waits, shortened if they are
 * many; NULL: for nobody. Free it. */
char *missing_text(const struct missing_workers *missing);

#endif
