/* The hosts of a run, and on which of them each worker is started: a state machine without
 * processes. It is told what became of each start, and says where and when the next one is.
 *
 * Replica i belongs to host i (modulo their number) and waits while that host is set aside; a shard
 * goes wherever a host answers, since its checkpoint lies where all hosts reach it. Failures are
 * counted for each worker and host, and a move does not forget them: a worker avoids hosts where it
 * failed HOSTS_FAILURES_MAX times running. If no other worker lives there, it is the host that has
 * failed: it is set aside, and tried again from time to time. When all are set aside at once, that
 * may be due to the coordinator's own network: they are tried again for HOSTS_LOST_SECONDS.
 *
 * Workers are numbered as links are: shards first. */
#ifndef DML_COORDINATOR_MACHINE_HOSTS_H
#define DML_COORDINATOR_MACHINE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#define HOSTS_MAX 4096         /* as REPLICAS_MAX */
#define HOSTS_FAILURES_MAX 3   /* of one worker running, before it avoids the host */
#define HOSTS_TRIES_MAX 10     /* of one worker, if it avoids every host that answers */
#define HOSTS_LOST_SECONDS 300 /* for which hosts are tried while all are set aside */
#define HOSTS_NONE UINT32_MAX

enum hosts_state {
    HOSTS_STARTING,  /* no worker has come up there yet, and none has failed */
    HOSTS_UP,        /* a worker there was greeted */
    HOSTS_FAILING,   /* the last start failed; it is tried again soon */
    HOSTS_SET_ASIDE, /* it is tried again from time to time */
};

struct hosts_entry {
    char *name;        /* owned */
    char *address;     /* by which it is reached: a name or a number; owned */
    uint32_t threads;  /* of a replica there; 0: it takes what the host has */
    uint32_t up;       /* workers there that were greeted */
    uint32_t failures; /* of the worker that failed most often running */
    uint64_t failed;   /* in all */
    bool aside;        /* no worker is up there; until one comes up */
    int64_t retry_ns;  /* aside: no worker is started there before, unless all hosts are */
    char why[256];     /* of the last failure; "": there was none */
    uint32_t retries;  /* since it was set aside */
    bool told;         /* for the caller: that it was set aside is known */
    bool changed;      /* since hosts_changed() */
};

/* Where a worker is. */
struct hosts_worker {
    uint32_t host;     /* where it runs or is started next */
    uint8_t *failures; /* [hosts] there, running */
    uint32_t tries;    /* failures on any host since it was last greeted */
    bool up;           /* it was greeted */
    bool alone;        /* not up: nobody was up on its host when its start was put off */
    int64_t since_ns;  /* up: when that was; else: when its start began or is going to */
};

struct hosts {
    struct hosts_entry *items;
    uint32_t count;
    struct hosts_worker *workers; /* [shards + replicas] */
    uint32_t shards, replicas;
    uint32_t *threads; /* [replicas], of each where it is now; 0: it takes what its host has */
    uint8_t *failures; /* [shards + replicas][hosts] */
    bool met;          /* a worker was greeted or adopted */
    bool lost;         /* all hosts are set aside */
    int64_t lost_ns;   /* when that began, until a worker has worked for a while; else INT64_MAX */
};

/* Adds a host; its name must not be there yet. `address` NULL: as the name. */
void hosts_add(struct hosts *hosts, const char *name, const char *address, uint32_t threads);
void hosts_release(struct hosts *hosts); /* harmless on a zeroed struct */

/* The number of a host by its name, in any case; HOSTS_NONE. */
uint32_t hosts_find(const struct hosts *hosts, const char *name);

/* Says where each worker is started first. */
void hosts_begin(struct hosts *hosts, uint32_t shards, uint32_t replicas);

/* A worker of an earlier coordinator may live on this host. False if it has to be started anew: a
 * replica on a host that is not its own. */
bool hosts_adopt(struct hosts *hosts, uint32_t worker, uint32_t host, int64_t now_ns);

/* Another run begins with the workers where they are, and with what is known of the hosts. All of
 * them have changed, for whoever records that. */
void hosts_begin_next_run(struct hosts *hosts);

/* The worker's process ended between two runs. */
void hosts_worker_left(struct hosts *hosts, uint32_t worker);

/* When a worker that is not up was started, or is to be started. */
int64_t hosts_due(const struct hosts *hosts, uint32_t worker);

/* The host of a worker. */
const struct hosts_entry *hosts_of(const struct hosts *hosts, uint32_t worker);

enum hosts_state hosts_state(const struct hosts_entry *host);
const char *hosts_state_text(enum hosts_state state); /* "set aside", …; a constant */

/* ---- what happens ---- */

/* Its start on its host begins. Nothing if it is up. */
void hosts_started(struct hosts *hosts, uint32_t worker, int64_t now_ns);

/* It was greeted, also by another run. */
void hosts_worker_up(struct hosts *hosts, uint32_t worker, int64_t now_ns);

/* It is gone, or its start failed: decides where it is started next, and returns when that is; now,
 * or later. INT64_MAX if there is no place left for a worker that the run cannot do without. */
int64_t hosts_failed(struct hosts *hosts, uint32_t worker, const char *why, int64_t now_ns);

/* Time passes: a worker that has worked for a while is forgiven its failures. */
void hosts_tick(struct hosts *hosts, int64_t now_ns);

/* A worker that is to be started at once, or HOSTS_NONE: a shard whose start takes long while
 * another host answers, or a worker that waits for a host although that is back. */
uint32_t hosts_late(const struct hosts *hosts, int64_t now_ns);

/* Places such a worker where it is started now: a shard on the host that answers. */
void hosts_start_now(struct hosts *hosts, uint32_t worker, int64_t now_ns);

/* A host whose state changed since this last named it, or HOSTS_NONE. */
uint32_t hosts_changed(struct hosts *hosts);

#endif
