#include "coordinator/run/training.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/resources.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/host_list.h"
#include "coordinator/run/host_lookup.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/progress.h"
#include "wire/address.h"
#include "wire/peer.h"
#include "wire/channel.h"

static void begin_launching(struct training *run) {
    struct session *session = run->session;
    const char *verbosity = session->options->quiet     ? "--quiet"
                            : session->options->verbose ? "--verbose"
                                                        : NULL;
    if (!session->launch.base)
        launch_init(&session->launch, session->loop.base, session->job->state, verbosity);
}

/* How many of them are started on this machine. */
static int start_here(struct training *run, uint32_t shards, uint32_t replicas) {
    return launch_start(&run->session->launch, run->session->job->shard_addresses[0] ? 0 : shards,
                        run->session->job->replica_addresses[0] ? 0 : replicas);
}

/* ---- the key ---- */

/* Reads STATE/key into `session->tls`, unless that was done, and makes it first if need be. */
static int read_key(struct training *run) {
    struct session *session = run->session;
    struct key key;
    bool made;
    if (session->tls)
        return 0;
    int code = key_ensure(session->job->state, &key, &made);
    if (!code && made) {
        char *path = key_path(session->job->state);
        if (session->hosts.count)
            log_info("made the key %s for links between hosts", path);
        else
            log_warning("made the key %s: start workers on other hosts with --key and this file",
                        path);
        free(path);
    }
    if (!code)
        code = tls_new(&key, &session->tls);
    key_forget(&key);
    return code;
}

/* ---- before the data is read ---- */

/* Which of the earlier runs there are. */
struct earlier {
    bool open;       /* one whose coordinator was lost */
    bool unfinished; /* one that may go on, with the shards that it had */
};

static int take_earlier(void *context, const char *reason) {
    struct earlier *earlier = context;
    earlier->open |= !reason;
    earlier->unfinished |= reason && reason_text_can_resume(reason);
    return 0;
}

/* Which run goes on is known only with the data. If that is one whose coordinator was lost, its
 * workers are adopted: others must not take their places now. */
int workers_prepare(struct training *run) {
    struct session *session = run->session;
    struct sizing sizing;
    struct earlier earlier = {0};
    if (host_list_is_given(session->job))
        return 0;
    int code = store_reasons(session->store, take_earlier, &earlier);
    if (!code)
        code = sizing_workers(session->job, 0, cpus_usable(), &sizing);
    if (code || earlier.open)
        return code;
    run->prepares = session->options->fresh || !earlier.unfinished;
    begin_launching(run);
    return start_here(run, sizing.shards, sizing.replicas);
}

int workers_prepare_all(struct training *run) {
    if (!run->prepares || run->session->rests)
        return 0;
    assert(run->session->launch.base && !run->session->hosts.count);
    return start_here(run, run->sizing.shards, run->sizing.replicas);
}

/* ---- when the run is known ---- */

/* Rows come oldest first, so the last row of a worker counts. If this state folder is a copy, its
 * rows name workers of the original, which are not ours to adopt. A worker on a host is adopted if
 * the host is one of those that the run has now, by its name: several may be reached at one
 * address, as nodes of Slurm on one machine are. */
static int adopt(void *context, const struct store_process_row *process) {
    struct training *run = context;
    struct session *session = run->session;
    const bool shard = strcmp(process->role, role_name(ROLE_SHARD)) == 0;
    const enum role role = shard ? ROLE_SHARD : ROLE_REPLICA;
    bool here = shard ? !session->job->shard_addresses[0] : !session->job->replica_addresses[0];
    uint32_t count = shard ? run->sizing.shards : run->sizing.replicas;
    bool local = strncmp(process->address, "unix:", 5) == 0;
    if (!here || process->index >= count || local == (session->hosts.count > 0))
        return 0;
    if (session->hosts.count) {
        uint32_t worker = shard ? process->index : run->sizing.shards + process->index;
        uint32_t host = hosts_find(&session->hosts, process->host);
        if (host == HOSTS_NONE || !hosts_adopt(&session->hosts, worker, host, clock_monotonic_ns()))
            return 0;
        launch_place(&session->launch, role, process->index, hosts_of(&session->hosts, worker));
    } else if (!launch_is_of_state(session->job->state, process->address)) {
        log_info("%s is a copy: %s %u of the original is left to that", session->job->state,
                 process->role, process->index);
        return 0;
    }
    launch_adopt(&session->launch, role, process->index, process->pid, process->address);
    return 0;
}

/* ---- replicas whose number changes ---- */

/* Where replicas were that an earlier coordinator had: those that live are expected in the places
 * that they had, so that they go on with what they have in hand. */
static int take_place(void *context, const struct store_process_row *process) {
    struct training *run = context;
    if (strcmp(process->role, role_name(ROLE_REPLICA)) != 0 || process->index < run->places.fixed ||
        process->index >= REPLICAS_MAX || !*process->address)
        return 0;
    while (run->places.count <= process->index) {
        char **more = memory_resize(run->places.address, run->places.count + 1, sizeof *more);
        run->places.address = more;
        run->places.address[run->places.count++] = NULL;
    }
    free(run->places.address[process->index]);
    run->places.address[process->index] = memory_copy_string(process->address);
    return 0;
}

static int find_places(struct training *run) {
    char *const *addresses = run->session->job->replica_addresses;
    for (uint32_t i = 0; addresses[i]; i++)
        run->places.any |= address_is_name(addresses[i]);
    for (uint32_t i = 0; addresses[i] && run->places.any; i++)
        run->places.fixed += !address_is_name(addresses[i]);
    if (!run->places.any || !run->interrupted)
        return 0;
    return store_processes(run->session->store, run->recorder.run, take_place, run);
}

uint32_t workers_replicas(const struct training *run) {
    uint32_t fixed = run->places.fixed, known = run->places.count;
    if (!run->places.any)
        return run->sizing.replicas;
    return known > fixed ? known : fixed ? fixed : 1;
}

/* The address of a replica that someone else starts; NULL: not known yet. */
static const char *address_of_replica(const struct training *run, uint32_t index) {
    char *const *addresses = run->session->job->replica_addresses;
    if (!run->places.any)
        return addresses[index];
    if (index >= run->places.fixed)
        return index < run->places.count ? run->places.address[index] : NULL;
    for (uint32_t i = 0; addresses[i]; i++)
        if (!address_is_name(addresses[i]) && index-- == 0)
            return addresses[i];
    return NULL;
}

/* ---- all of them ---- */

static void list_workers(struct training *run) {
    struct session *session = run->session;
    uint32_t shards = run->sizing.shards, replicas = workers_replicas(run);
    uint32_t most = shards + (run->places.any ? REPLICAS_MAX : replicas);
    assert(!run->addresses && !run->launched && shards > 0 && replicas > 0);
    run->addresses = memory_new(most, sizeof *run->addresses);
    run->launched = memory_new(most, sizeof(struct launched *));
    for (uint32_t i = 0; i < shards + replicas; i++) {
        bool shard = i < shards;
        uint32_t index = shard ? i : i - shards;
        run->launched[i] = launch_find(&session->launch, shard ? ROLE_SHARD : ROLE_REPLICA, index);
        run->addresses[i] = run->launched[i] ? run->launched[i]->address
                            : shard          ? session->job->shard_addresses[index]
                                             : address_of_replica(run, index);
    }
    run->recorder.addresses = run->addresses;
    run->recorder.hosts = session->hosts.count ? &session->hosts : NULL;
}

/* ---- when they served another member of the sweep ---- */

/* What is known of the hosts holds for this run, too. A worker that does not run is started by the
 * cluster, when that is due. */
static void begin_again(struct training *run) {
    struct session *session = run->session;
    if (!session->hosts.count)
        return;
    hosts_begin_next_run(&session->hosts);
    for (uint32_t i = 0; i < session->launch.count; i++) {
        const struct launched *worker = session->launch.workers[i];
        if (!launch_runs(worker))
            hosts_worker_left(&session->hosts, worker->role == ROLE_SHARD
                                                   ? worker->index
                                                   : run->sizing.shards + worker->index);
    }
}

/* Other data may need other numbers of them. */
static int begin_anew(struct training *run) {
    struct session *session = run->session;
    if (session->rests)
        workers_release(session, 0);
    int code = hosts_look_up(session->job, &session->loop, &session->hosts);
    begin_launching(run);
    if (!code && session->hosts.count) {
        uint32_t shards = run->sizing.shards;
        hosts_begin(&session->hosts, shards, run->sizing.replicas);
        for (uint32_t i = 0; i < shards + run->sizing.replicas; i++)
            launch_place(&session->launch, i < shards ? ROLE_SHARD : ROLE_REPLICA,
                         i < shards ? i : i - shards, hosts_of(&session->hosts, i));
        char *state = path_absolute(session->job->state);
        launch_set_remote(&session->launch, host_list_launch(session->job), state);
        free(state);
        code = read_key(run); /* the workers get it when they start */
    }
    if (!code && run->interrupted)
        code = store_processes(session->store, run->recorder.run, adopt, run);
    return code ? code : start_here(run, run->sizing.shards, run->sizing.replicas);
}

/* If the run's coordinator was lost, its workers may still wait for the next one: they are adopted.
 * If the run ended, its workers were told to exit: to look for them would count them as lost. */
int workers_start(struct training *run) {
    struct session *session = run->session;
    const struct job *job = session->job;
    const uint32_t shards = run->sizing.shards, replicas = run->sizing.replicas;
    int code = 0;
    progress_stage("starting shards and replicas");
    if (session->rests && launch_has(&session->launch, job->shard_addresses[0] ? 0 : shards,
                                     job->replica_addresses[0] ? 0 : replicas))
        begin_again(run);
    else
        code = begin_anew(run);
    session->rests = false;
    if (!code)
        code = find_places(run);
    if (code)
        return code;
    list_workers(run);
    bool needs_key = run->places.any;
    for (uint32_t i = 0; i < shards + workers_replicas(run); i++)
        needs_key |= run->addresses[i] && !address_is_unix(run->addresses[i]);
    return needs_key ? read_key(run) : 0;
}

void workers_release(struct session *session, int grace_ms) {
    launch_release(&session->launch, grace_ms);
    hosts_release(&session->hosts);
    tls_free(session->tls);
    session->tls = NULL;
}
