/* Greeting workers, noticing that they are silent, and losing them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/machine/machine.h"
#include "coordinator/driver.h"
#include "wire/address.h"

#define PING_NS INT64_C(1000000000)

/* An incarnation holds the term in which it was issued, so that no two coordinators issue the
 * same. */
#define TERM_SHIFT 32

static uint64_t issue_incarnation(struct coordinator *c) {
    assert(c->membership.incarnations < (UINT64_C(1) << TERM_SHIFT) - 1);
    return c->settings.term << TERM_SHIFT | ++c->membership.incarnations;
}

static void make_member(struct coordinator *c, uint32_t link) {
    bool shard = link < c->settings.shards;
    uint32_t index = shard ? link : link - c->settings.shards;
    bool elastic = !shard && c->settings.replicas_most && index >= c->settings.replicas_fixed;
    c->roster.members[link] = (struct member){.role = shard ? ROLE_SHARD : ROLE_REPLICA,
                                              .index = index,
                                              .incarnation = issue_incarnation(c),
                                              .elastic = elastic,
                                              .vacant = elastic};
    c->roster.present += !shard && !elastic;
}

void membership_init(struct coordinator *c) {
    uint32_t most = c->settings.replicas_most;
    c->roster.shards = c->settings.shards;
    c->roster.replicas = c->settings.replicas;
    c->roster.term = c->settings.term;
    most = most > c->settings.replicas ? most : c->settings.replicas;
    c->roster.members = memory_new(c->settings.shards + most, sizeof *c->roster.members);
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        make_member(c, i);
    assert(c->membership.incarnations == coordinator_links(c));
}

void membership_release(struct coordinator *c) {
    free(c->roster.members);
}

/* ---- silence ---- */

void membership_ping(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct membership *membership = &c->membership;
    if (now_ns - membership->pinged_ns < PING_NS)
        return;
    membership->pinged_ns = now_ns;
    membership->pings++;
    struct message ping = {.type = MESSAGE_PING, .ping = {membership->pings}};
    roster_send_shards(&c->roster, ping, out);
    roster_send_replicas(&c->roster, ping, out);
}

/* A worker that is at long work gives signs of life, but to its coordinator alone. If that was
 * another one, it does not read our HELLO before the work is done. */
int membership_lose_silent(struct coordinator *c, int64_t now_ns, struct output *out) {
    int code = 0;
    for (uint32_t i = 0; i < coordinator_links(c) && !code; i++) {
        const struct member *member = &c->roster.members[i];
        bool may_be_at_work = c->phase == PHASE_REJOINING && !member->welcomed;
        uint64_t parameters = may_be_at_work ? layout_parameters(&c->settings.layout) : 0;
        int64_t most_ns = SILENCE_MS * NS_PER_MS + SILENCE_NS_A_PARAMETER * (int64_t)parameters;
        if (member->connected && now_ns - member->heard_ns > most_ns)
            code = coordinator_lost(c, i, "it is silent", now_ns, out);
    }
    return code;
}

void membership_forgive_silence(struct coordinator *c, int64_t now_ns) {
    assert(now_ns > c->ticked_ns);
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        c->roster.members[i].heard_ns = now_ns;
}

/* ---- forgetting a worker ---- */

/* The worker gets its next incarnation at once. The lost process may live on (a cable was pulled),
 * and what it sent may still be on its way. Its flushes, and the slices that it acknowledged, carry
 * the old incarnation and no longer count. */
static void forget_worker(struct coordinator *c, uint32_t link) {
    assert(link < coordinator_links(c));
    struct member *worker = &c->roster.members[link];
    bool kept = worker->elastic && mutant(LEFT_INCARNATION_KEPT);
    worker->connected = worker->welcomed = worker->introduced = false;
    worker->ready = false;
    worker->device[0] = '\0';
    if (!mutant(INCARNATION_KEPT) && !kept)
        worker->incarnation = issue_incarnation(c);
    assert(worker->incarnation != 0);
}

void membership_put_off(struct coordinator *c, uint32_t link, const char *why, struct output *out) {
    assert(link < coordinator_links(c));
    forget_worker(c, link);
    struct record *record = output_add(out, RECORD_BUSY);
    record->busy = link;
    snprintf(record->note, sizeof record->note, "%s", why);
}

/* ---- replicas that join and leave ----
 *
 * An elastic replica has a place, which is its link and its index. A place that is left stays, with
 * an incarnation that no process has had: the next replica in it is another worker in all respects.
 * That a replica leaves is no failure: it does not count as a restart. */

/* The place is vacant from now on. What the replica had in hand goes to others: between two
 * evaluations that is nothing. */
static void vacate(struct coordinator *c, uint32_t link, const char *why, int64_t now_ns,
                   struct output *out) {
    struct member *replica = &c->roster.members[link];
    assert(replica->elastic && !replica->vacant && c->roster.present > 0);
    if (replica->connected)
        roster_send(&c->roster, link,
                    (struct message){.type = MESSAGE_BYE, .bye = {.reason = "it is not needed"}},
                    out);
    forget_worker(c, link);
    replica->leaving = false;
    replica->vacant = true;
    replica->restarts = 0;
    replica->device_failed = false;
    c->roster.present--;
    output_worker(out, link, "left");
    output_event(out, "left", "replica %u has left: %s", replica->index, why);
    output_add(out, RECORD_LEFT)->left = link;
    if (!mutant(LEFT_PORTIONS_LOST))
        dispatch_lose(&c->dispatch, link, now_ns, out);
    setup_start_if_complete(c, now_ns, out);
}

void coordinator_expect(struct coordinator *c, uint32_t link) {
    assert(link <= coordinator_links(c) && link >= c->settings.shards + c->settings.replicas_fixed);
    if (link == coordinator_links(c)) {
        assert(c->settings.replicas < c->settings.replicas_most);
        c->roster.replicas = ++c->settings.replicas;
        make_member(c, link);
    }
    struct member *replica = &c->roster.members[link];
    assert(replica->elastic && (replica->vacant || replica->leaving));
    replica->leaving = false;
    if (!replica->vacant)
        return;
    replica->vacant = false;
    c->roster.present++;
    dispatch_expect(&c->dispatch, link);
}

void coordinator_let_go(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    assert(link < coordinator_links(c) && c->roster.members[link].elastic);
    struct member *replica = &c->roster.members[link];
    if (replica->vacant || c->phase >= PHASE_READ)
        return;
    replica->leaving = true;
    if (!replica->connected)
        vacate(c, link, "it was not there", now_ns, out);
    else
        membership_release_leaving(c, now_ns, out);
}

/* Without the last one that works nothing would go on, and those that are to take its place may
 * never come up. */
void membership_release_leaving(struct coordinator *c, int64_t now_ns, struct output *out) {
    bool stays = false; /* a replica that works */
    if (!c->settings.replicas_most || c->dispatch.evaluation.running || c->phase >= PHASE_READ)
        return;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c) && !stays; i++)
        stays = c->roster.members[i].ready && !c->roster.members[i].leaving;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c) && stays; i++)
        if (c->roster.members[i].leaving)
            vacate(c, i, "its name does not list it any more", now_ns, out);
}

/* ---- when a worker is lost ---- */

/* Whether it counts against restarts_max that a worker was never welcomed. For workers on hosts the
 * failures of the host count instead, and for those that others start the I/O shell limits the
 * time. */
static bool counts_unmet(const struct coordinator *c, const struct member *worker) {
    return !c->settings.on_hosts && !c->settings.by_hand[worker->role == ROLE_REPLICA];
}

bool membership_is_dispensable(const struct coordinator *c, const struct member *worker) {
    bool others = false;
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        const struct member *other = &c->roster.members[i];
        others |= other != worker && other->role == ROLE_REPLICA && other->welcomed;
    }
    return worker->role == ROLE_REPLICA && others;
}

/* A replica that others start may come and go as it likes: the run goes on with another one, or
 * waits. One that cannot be replaced, since what is started in its place never greets, is done
 * without: its program was replaced on disk, perhaps. But one that works and is lost time and again
 * ends the run: whatever it dies of would take the others, too. */
static bool is_lost_too_often(const struct coordinator *c, const struct member *worker, bool met) {
    bool free = worker->role == ROLE_REPLICA && c->settings.by_hand[1];
    bool spared = free || (!met && membership_is_dispensable(c, worker));
    bool worn = worker->restarts > c->settings.restarts_max;
    return !c->settings.on_hosts && !spared && worn;
}

/* Says once that the run goes on without the replica. */
static void report_worn(const struct coordinator *c, const struct member *worker, const char *why,
                        struct output *out) {
    if (!c->settings.on_hosts && worker->restarts == c->settings.restarts_max + 1)
        output_event(out, "lost",
                     "%s %u cannot be replaced (%s): the run goes on with the others, and tries "
                     "again now and then",
                     role_name(worker->role), worker->index, why);
}

int coordinator_lost(struct coordinator *c, uint32_t link, const char *why, int64_t now_ns,
                     struct output *out) {
    assert(link < coordinator_links(c));
    struct member *worker = &c->roster.members[link];
    if (c->phase >= PHASE_READ)
        return 0;
    if (worker->leaving) {
        vacate(c, link, why, now_ns, out);
        return 0;
    }
    bool met = worker->welcomed, counts = met || counts_unmet(c, worker);
    forget_worker(c, link);
    if (counts)
        output_worker(out, link, "lost");
    output_event(out, "lost", "%s %u %s: %s", role_name(worker->role), worker->index,
                 counts ? "was lost" : "did not come up", why);
    worker->restarts += counts;
    if (is_lost_too_often(c, worker, met)) {
        c->phase = PHASE_FAILED;
        return error_set(ERROR_UNAVAILABLE,
                         "%s %u was lost %u times, the last time because %s; what is durable is "
                         "kept: run the same command again to go on",
                         role_name(worker->role), worker->index, worker->restarts, why);
    }
    assert(!worker->connected && !worker->welcomed && !worker->ready);
    if (counts && !met)
        report_worn(c, worker, why, out);
    struct record *start = output_add(out, RECORD_START);
    start->start.link = link;
    start->start.met = met;
    snprintf(start->start.why, sizeof start->start.why, "%s", why);
    if (worker->role == ROLE_SHARD) {
        if (c->phase == PHASE_FINAL_CHECKPOINT &&
            optimizer_reason(&c->driver->optimizer) == REASON_CANCELLED)
            c->phase = PHASE_STOPPED; /* a later command goes on from what is durable */
        else if (c->phase == PHASE_SETTING_UP)
            setup_forget_replicas(c); /* they are told where its successor is */
        else if (!mutant(DEAD_SHARD_BELIEVED))
            recovery_roll_back(c, why, out);
    } else {
        dispatch_lose(&c->dispatch, link, now_ns, out);
        setup_start_if_complete(c, now_ns, out);
    }
    return 0;
}

/* ---- greetings ---- */

/* "" if it is not known. */
static const char *address_of(const struct coordinator *c, const struct member *worker) {
    const char *const *addresses =
        worker->role == ROLE_SHARD ? c->settings.shard_addresses : c->settings.replica_addresses;
    return addresses && addresses[worker->index] ? addresses[worker->index] : "";
}

void coordinator_opened(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    assert(link < coordinator_links(c));
    struct member *worker = &c->roster.members[link];
    assert(!worker->welcomed && !worker->ready);
    worker->connected = true;
    worker->heard_ns = now_ns;
    bool elsewhere = c->settings.state && !address_is_unix(address_of(c, worker));
    struct message message = {.type = MESSAGE_HELLO};
    message.hello = (struct message_hello){
        .protocol = PROTOCOL_VERSION,
        .run = c->settings.run,
        .role = (uint8_t)worker->role,
        .index = worker->index,
        .incarnation = worker->incarnation,
        .reconnect_seconds = c->settings.reconnect_seconds,
        .state = elsewhere ? c->settings.state : "",
        .holder = elsewhere ? c->settings.holder : "",
    };
    roster_send(&c->roster, link, message, out);
}

/* Another process answered than the one expected: greets it again, under a new incarnation. */
static void replace_worker(struct coordinator *c, uint32_t link, int64_t now_ns,
                           struct output *out) {
    struct member *worker = &c->roster.members[link];
    assert(!worker->welcomed);
    output_event(out, "recovery", "%s %u is not the one that was there before",
                 role_name(worker->role), worker->index);
    worker->incarnation = issue_incarnation(c);
    if (worker->role == ROLE_SHARD && c->phase == PHASE_REJOINING)
        recovery_roll_back(c, "a shard was lost with the last coordinator", out);
    coordinator_opened(c, link, now_ns, out);
}

/* All workers of a role must compute the same bits, and speak this protocol. */
static int check_worker(struct coordinator *c, const struct member *worker,
                        const struct message_welcome *welcome) {
    assert(worker->role == ROLE_SHARD || worker->role == ROLE_REPLICA);
    const char *role = role_name(worker->role);
    if (welcome->protocol != PROTOCOL_VERSION)
        return error_set(ERROR_UNAVAILABLE,
                         "%s %u speaks protocol %u, this coordinator %u: "
                         "install the same version everywhere",
                         role, worker->index, welcome->protocol, PROTOCOL_VERSION);
    if (welcome->role != worker->role)
        return error_set(ERROR_UNAVAILABLE,
                         "the worker at the address of %s %u is a %s: check "
                         "shard_addresses and replica_addresses",
                         role, worker->index, role_name(welcome->role));
    uint64_t *proof = &c->membership.proof[worker->role];
    if (*proof == 0)
        *proof = welcome->proof;
    if (*proof != welcome->proof && !(worker->elastic && mutant(JOINER_UNPROVEN)))
        return error_set(ERROR_UNAVAILABLE,
                         "%s %u on %s computes other bits than the others "
                         "(%s): use the same build on the same family of CPUs",
                         role, worker->index, welcome->host, welcome->description);
    return 0;
}

/* Tells a worker that it cannot take part. It ends the run, or is of a host that is of no use, or
 * in the place of a replica that worked, whose program was replaced on disk meanwhile, or is
 * elastic: then the run goes on with others, or waits for one. */
static int refuse_worker(struct coordinator *c, uint32_t link, int code, int64_t now_ns,
                         struct output *out) {
    const struct member *worker = &c->roster.members[link];
    assert(code < 0 && !worker->welcomed);
    struct message refusal = {.type = MESSAGE_REFUSED};
    refusal.refused.reason = error_text();
    roster_send(&c->roster, link, refusal, out);
    bool replaced = worker->restarts > 0 && membership_is_dispensable(c, worker);
    if (!c->settings.on_hosts && !worker->elastic && !replaced)
        return code;
    char *why = memory_copy_string(error_text());
    error_clear();
    code = coordinator_lost(c, link, why, now_ns, out);
    free(why);
    return code;
}

/* Says of a host that it does not see the state folder, unless a worker that was welcomed before
 * was on that host. */
static void report_apart(const struct coordinator *c, const char *host, struct output *out) {
    const size_t length = sizeof c->roster.members->host - 1;
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        const struct member *member = &c->roster.members[i];
        if (*member->host && !member->shares && !strncmp(member->host, host, length))
            return;
    }
    output_event(
        out, "worker",
        "host %s does not see the state folder %s: rows and checkpoints go over the network", host,
        c->settings.state ? c->settings.state : "");
}

int on_welcome(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out) {
    assert(link < coordinator_links(c));
    struct member *worker = &c->roster.members[link];
    const struct message_welcome *welcome = &message->welcome;
    if (worker->welcomed || welcome->incarnation != worker->incarnation) {
        c->stale++;
        return 0;
    }
    /* Only the process that was given the incarnation in the term that issued it may go on under
     * it: another one would give the same ids to other flushes. */
    if (welcome->since != worker->incarnation >> TERM_SHIFT) {
        replace_worker(c, link, now_ns, out);
        return 0;
    }
    int code = check_worker(c, worker, welcome);
    if (code)
        return refuse_worker(c, link, code, now_ns, out);
    assert(!worker->ready && !worker->introduced);
    worker->welcomed = true;
    worker->pid = welcome->pid;
    worker->threads = welcome->threads;
    if (!welcome->shares)
        report_apart(c, welcome->host, out);
    snprintf(worker->host, sizeof worker->host, "%s", welcome->host);
    snprintf(worker->local, sizeof worker->local, "%s", welcome->local);
    worker->shares = welcome->shares;
    output_worker(out, link, "running");
    if (c->phase == PHASE_REJOINING)
        return 0; /* each shard sends HOLDING next: on_holding() goes on */
    if (worker->role == ROLE_SHARD)
        setup_shard(c, link, out);
    setup_replicas(c, out);
    return 0;
}
