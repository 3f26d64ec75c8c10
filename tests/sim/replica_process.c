/* The I/O shell of a simulated replica: its arithmetic is real, done at one virtual instant at the
 * start or at the end of the time that it takes. */
#include "replica/replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "objective/halves.h"
#include "replica/compute.h"
#include "replica/needs.h"
#include "tests/sim/cluster.h"
#include "tests/sim/copies.h"
#include "tests/cluster/decoded.h"
#include "tests/cluster/host.h"
#include "tests/cluster/network.h"

enum { ALARM_DEADLINE, ALARM_WORK };
#define ALARM_UNANSWERED (UINT64_C(1) << 31) /* and the number of the attempt to connect */
#define ALARM_LOOK (UINT64_C(1) << 28)       /* and the number of the look */
#define CONNECT_NS (5 * NS_PER_S)
/* Values of a chunk as the replica is told: no evaluation is one over few, or nearly all are. */
#define CHUNK_VALUES_MANY (UINT64_C(1) << 24)
#define CHUNK_VALUES_FEW 1

/* What was put aside of a place, and a look at one. */
struct aside {
    uint8_t bytes[COPY_PLACE_BYTES_MAX];
    uint64_t length;
};

struct look_at {
    uint64_t number;
    uint32_t place;
};

/* A copy of a set that comes by messages. */
struct copied {
    struct set_range places[COPY_PLACES_MAX];
    struct aside aside[COPY_PLACES_MAX + 1]; /* the last: of the head */
    bool here[COPY_PLACES_MAX];              /* looked at, in this life */
    uint32_t count, heads;
    struct set_range head; /* the part that the head lacks */
    struct look_at looks[COPY_PLACES_MAX];
    uint32_t look_count;
    uint64_t looked; /* looks so far */
};

struct replica_process {
    char host_name[16];
    struct worker_host host;
    struct replica *replica;
    struct copied *copied;                            /* NULL: the set is seen; owned */
    struct objective_scratch *scratch, *last_scratch; /* the other one: of the last strip; */
    struct objective_scratch *upper_scratch;          /* of what lies above all strips */
    int64_t *sum;
    size_t sums_bytes; /* room for those of any evaluation */
    struct sums_sizes sizes;
    enum sums_layout sums;  /* of the last computation */
    uint32_t block_columns; /* of the preconditioner, as the set-up says; */
    bool shares_block;      /* outputs share its matrix */
    bool lists;             /* it has listed weights */
    uint64_t work;          /* counts what was started: an alarm for anything else is void */
    bool working, gathering, computed_already;
    bool has_device;
    struct action action; /* the work in hand */
    struct computed computed;
    int64_t deadline_ns;             /* for which an alarm is set */
    uint32_t attempt, evaluation;    /* of the last portion */
    uint64_t plain;                  /* chunks handed out in it that may be accrued */
    uint64_t solo;                   /* first chunks of portions that are flushes of their own */
    uint64_t solo_lengths[64];       /* by first chunk: bit set of the lengths of such portions */
    uint64_t attempts;               /* to connect to shards */
    uint64_t unanswered[SHARDS_MAX]; /* the attempt at each shard that nobody answers; 0: none */
};

static bool is_odd(const struct process *process) {
    return process->index == cluster_of(process)->shape.odd && cluster_of(process)->shape.elastic;
}

static bool sees_files(void *context, const char *state, const char *holder) {
    const struct process *process = context;
    (void)state, (void)holder;
    return !cluster_of(process)->shape.apart;
}

/* Processes share memory only within a host. */
static void begin(struct process *process) {
    static uint64_t proof;
    if (!proof)
        proof = objective_proof();
    struct replica_process *self = memory_new(1, sizeof *self);
    bool one_host = cluster_of(process)->shape.shared_memory;
    snprintf(self->host_name, sizeof self->host_name, "host%u", one_host ? 0 : process->number);
    process->state = self;
    if (cluster_of(process)->shape.apart)
        self->copied = memory_new(1, sizeof *self->copied);
    if (self->copied && world_chance(process->world, 3))
        copies_damage(process);
    self->replica = replica_new(&(struct replica_identity){.pid = process->life,
                                                           .threads = 1,
                                                           .proof = proof + is_odd(process),
                                                           .host = self->host_name,
                                                           .description = "simulated",
                                                           .shares = sees_files,
                                                           .context = process});
    self->deadline_ns = NEVER_NS;
    worker_host_init(&self->host);
}

static void drop_set(struct replica_process *self) {
    objective_scratch_free(self->scratch);
    objective_scratch_free(self->last_scratch);
    objective_scratch_free(self->upper_scratch);
    free(self->sum);
    self->scratch = self->last_scratch = self->upper_scratch = NULL;
    self->sum = NULL;
    self->working = false;
    self->work++;
}

static void end(struct process *process) {
    struct replica_process *self = process->state;
    drop_set(self);
    replica_free(self->replica);
    free(self->copied);
    worker_host_release(&self->host);
    free(self);
}

/* ---- arithmetic ---- */

static bool has_upper(const struct job *job) {
    return job->tiles && job->shape.network.layers;
}

/* Of the model, or that of a strip; any number from the last one on stands for the last. */
static struct objective_shape strip_shape(const struct job *job, uint32_t strip) {
    uint32_t strips = job->tiles ? set_strips(&job->data) : 1;
    return objective_strip(&job->shape, job->data.strip_columns,
                           strip < strips ? strip : strips - 1);
}

/* Every other job knows which rows a portion has, and need not fetch others of a vector of rows. */
static void send_rows(struct replica *replica, const struct job *job) {
    uint64_t *first = memory_new(job->data.chunks + 1, sizeof *first);
    for (uint32_t i = 0; i < job->data.chunks; i++) {
        first[i] = job->chunks[i].first;
        first[i + 1] = first[i] + job->chunks[i].count;
    }
    if (job->seed % 2)
        replica_rows_of_chunks(replica, first, job->data.chunks);
    free(first);
}

static void open_set(struct process *process, const struct replica_setup *setup) {
    struct replica_process *self = process->state;
    const struct job *job = cluster_of(process)->job;
    self->has_device = cluster_of(process)->shape.devices && strcmp(setup->device, "cpu") != 0;
    if (self->has_device)
        replica_computes_on(self->replica, "simulated");
    drop_set(self);
    const struct objective_shape first = strip_shape(job, 0), last = strip_shape(job, UINT32_MAX);
    self->scratch = objective_scratch_new(&first);
    self->last_scratch = objective_scratch_new(&last);
    if (has_upper(job)) {
        const struct objective_shape upper = objective_upper(&job->shape);
        self->upper_scratch = objective_scratch_new(&upper);
    }
    self->sizes = replica_sums_sizes(setup);
    self->block_columns = setup->block_columns;
    self->shares_block = setup->precondition == PRECONDITION_LEADING;
    self->lists = setup->precondition == PRECONDITION_LISTED;
    self->sums_bytes = (evaluation_sums_most(&self->sizes) * sizeof(int64_t) + 63) / 64 * 64;
    self->sum = aligned_alloc(64, self->sums_bytes);
    memset(self->sum, 0, self->sums_bytes);
    if (!job->data.dense && (job->tiles || objective_has_products(&job->shape)))
        replica_rows_are_sparse(self->replica,
                                job->data.rows % 2 ? CHUNK_VALUES_MANY : CHUNK_VALUES_FEW,
                                job->tiles ? set_tiles(&job->data) : job->data.chunks);
    send_rows(self->replica, job);
    if (self->copied) {
        struct copied *copied = self->copied;
        copied->count = copies_places(job, copied->places, &copied->heads);
        replica_set_is_copied(self->replica, copied->places, copied->count, copied->heads);
    }
    replica_opened(self->replica, 0, "", process->world->now_ns, &self->host.out);
}

/* ---- a set that comes by messages ---- */

static struct aside *aside_of(struct copied *copied, uint32_t place) {
    return &copied->aside[place == PLACE_HEAD ? COPY_PLACES_MAX : place];
}

static void begin_copy(struct process *process) {
    struct replica_process *self = process->state;
    struct copied *copied = self->copied;
    drop_set(self);
    *copied = (struct copied){.looked = copied->looked, .head = copies_head_lacks(process)};
    replica_head_lacks(self->replica, copied->head, 0, "", &self->host.out);
}

static void keep(struct process *process, const struct action *action) {
    struct replica_process *self = process->state;
    struct copied *copied = self->copied;
    struct aside *aside = aside_of(copied, action->place);
    if (action->place != PLACE_HEAD && copied->here[action->place])
        world_fail(process->world, "%s has asked for place %u, which it has", process->name,
                   action->place);
    if (!action->at)
        aside->length = 0;
    if (action->at != aside->length || action->byte_count > sizeof aside->bytes - aside->length)
        world_fail(process->world, "%s puts bytes of place %u aside that do not follow",
                   process->name, action->place);
    else
        memcpy(aside->bytes + aside->length, action->bytes, action->byte_count);
    aside->length += action->byte_count;
}

static void look_at_head(struct process *process) {
    struct replica_process *self = process->state;
    struct copied *copied = self->copied;
    const struct aside *aside = aside_of(copied, PLACE_HEAD);
    if (aside->length == copied->head.bytes && copies_sound(aside->bytes, copied->head))
        memcpy(copies_of(process) + copied->head.offset, aside->bytes, aside->length);
    copied->head = copies_head_lacks(process);
    replica_head_lacks(self->replica, copied->head, 0, "", &self->host.out);
}

static void finish_look(struct process *process, uint64_t number) {
    struct replica_process *self = process->state;
    struct copied *copied = self->copied;
    uint32_t i = 0;
    while (i < copied->look_count && copied->looks[i].number != number)
        i++;
    if (i == copied->look_count)
        return; /* another set was opened meanwhile */
    const uint32_t place = copied->looks[i].place;
    copied->looks[i] = copied->looks[--copied->look_count];
    struct aside *aside = aside_of(copied, place);
    const struct set_range range = copied->places[place];
    uint8_t *kept = copies_of(process) + range.offset;
    if (aside->length == range.bytes && copies_sound(aside->bytes, range))
        memcpy(kept, aside->bytes, range.bytes);
    aside->length = 0;
    copied->here[place] = copies_sound(kept, range);
    replica_looked(self->replica, place, copied->here[place], 0, "", process->world->now_ns,
                   &self->host.out);
}

static void look(struct process *process, uint32_t place) {
    struct replica_process *self = process->state;
    struct copied *copied = self->copied;
    const uint64_t number = ++copied->looked;
    if (place == PLACE_HEAD) {
        look_at_head(process);
        return;
    }
    copied->looks[copied->look_count++] = (struct look_at){number, place};
    if (world_chance(process->world, 2))
        finish_look(process, number);
    else
        world_alarm(process, process->world->now_ns + world_delay(process->world, NS_PER_MS / 5),
                    ALARM_LOOK + number);
}

/* Whether the rows of a chunk or tile are in the copy. */
static bool has_rows(const struct replica_process *self, uint32_t chunk) {
    const struct copied *copied = self->copied;
    return !copied || (copied->heads ? copied->here[chunk % copied->heads] &&
                                           copied->here[copied->heads + chunk]
                                     : copied->here[chunk]);
}

static void compute_chunk(const struct job *job, struct replica_process *self, uint32_t chunk) {
    const struct computation *computation = &self->action.computation;
    const bool upper = computation->upper != NULL;
    const struct objective_shape shape =
        upper ? objective_upper(&job->shape) : strip_shape(job, computation->strip);
    bool last = job->tiles && computation->strip + 1 == set_strips(&job->data);
    const int16_t *all = job->own_exponents  ? job->own_exponents
                         : job->data.uniform ? NULL
                                             : job->exponent;
    uint32_t column =
        upper ? objective_columns(&job->shape) : computation->strip * job->data.strip_columns;
    const struct objective_scale scale = {.exponent = all ? all + column : NULL,
                                          .uniform = job->data.uniform_exponent,
                                          .bounds = computation->bounds};
    const struct objective_sample sample = {.form = kind_form(computation->parts.items[0].kind),
                                            .exponent = job->exponent,
                                            .examples = job->data.rows,
                                            .columns = self->block_columns,
                                            .shared = self->shares_block,
                                            .list = self->lists ? &computation->weights : NULL,
                                            .derivative_exponent = computation->bounds.exponent[0],
                                            .sampling = computation->sampling};
    const struct kernel_place place = {.shape = &shape,
                                       .scale = &scale,
                                       .sample = &sample,
                                       .parameters = computation->parameters,
                                       .first_number = computation->first_number,
                                       .upper = computation->upper,
                                       .sizes = &self->sizes,
                                       .sums = computation->sums ? self->sum : NULL,
                                       .scratch = upper  ? self->upper_scratch
                                                  : last ? self->last_scratch
                                                         : self->scratch};
    const struct rows *rows =
        job->tiles ? &job->tiles[chunk - computation->tiles_below] : &job->chunks[chunk];
    if (computation->columns)
        needs_note(rows, computation->columns);
    if (computation->scan_only)
        return;
    objective_scratch_scaled(place.scratch, computation->scaled);
    self->computed.error = kernel_run(&place, &computation->parts, chunk, rows, &self->computed);
}

static void compute(const struct process *process, struct replica_process *self, uint32_t chunks) {
    const struct job *job = cluster_of(process)->job;
    const struct computation *computation = &self->action.computation;
    if (computation->clear)
        memset(self->sum, 0, self->sums_bytes);
    computed_init(&self->computed, &computation->parts);
    self->computed.stopped = chunks < computation->count;
    for (uint32_t i = 0; i < chunks; i++)
        if (!has_rows(self, computation->first + i - computation->tiles_below))
            world_fail(process->world, "%s computes chunk %u, which is not here", process->name,
                       computation->first + i);
    for (uint32_t i = 0; i < chunks && !self->computed.error; i++)
        compute_chunk(job, self, computation->first + i);
    if (is_odd(process) && computation->sums)
        self->sum[0] += INT64_C(1) << 40;
    self->computed_already = true;
}

static void start_work(struct process *process, const struct action *action, int64_t takes_ns) {
    struct replica_process *self = process->state;
    self->action = *action;
    self->working = true;
    self->gathering = action->kind == ACTION_GATHER;
    if (!self->gathering)
        self->sums = evaluation_sums(&action->computation.parts);
    self->computed_already = false;
    self->work++;
    world_alarm(process, process->world->now_ns + takes_ns, ALARM_WORK + self->work);
}

static void start_computing(struct process *process, const struct action *action) {
    struct replica_process *self = process->state;
    const struct cluster *cluster = cluster_of(process);
    struct world *world = process->world;
    int64_t takes_ns = world_delay(world, cluster->shape.chunk_ns * action->computation.count);
    if (process->index == cluster->shape.slow)
        takes_ns *= 10;
    start_work(process, action, takes_ns);
    if (world_chance(world, 2))
        compute(process, self, action->computation.count);
}

/* As two threads would list them: one has a part of an element that the other has, too. */
static void gather_lists(struct replica_process *self, int64_t now_ns, struct outbox *out) {
    const uint64_t count = self->action.sums;
    struct sum_list list[2];
    const struct sum_list *items[] = {&list[0], &list[1]};
    for (int i = 0; i < 2; i++)
        list[i] = (struct sum_list){.element = memory_new(count, sizeof *list[i].element),
                                    .value = memory_new(count, sizeof *list[i].value)};
    for (uint64_t k = 0; k < count; k++)
        for (int i = 0; i < 2; i++) {
            const int64_t part = k % 3 == 0 ? 7 : 0, value = i ? part : self->sum[k] - part;
            list[i].element[list[i].count] = (uint32_t)k;
            list[i].value[list[i].count] = value;
            list[i].count += value != 0;
        }
    replica_gathered(self->replica, &(struct sum_lists){items, 2}, now_ns, out);
    for (int i = 0; i < 2; i++)
        sum_list_release(&list[i]);
}

static void finish_work(struct process *process) {
    struct replica_process *self = process->state;
    int64_t now_ns = process->world->now_ns;
    self->working = false;
    if (self->gathering) {
        size_t bytes = self->action.sums * sizeof *self->sum;
        bool lists = self->sums == SUMS_PARAMETERS && !cluster_of(process)->job->tiles;
        if (lists && self->work % 2) {
            gather_lists(self, now_ns, &self->host.out);
        } else {
            memcpy(self->action.into, self->sum + self->action.first, bytes);
            replica_gathered(self->replica, NULL, now_ns, &self->host.out);
        }
        memset(self->sum + self->action.first, 0, bytes);
        return;
    }
    if (!self->computed_already)
        compute(process, self, self->action.computation.count);
    replica_computed(self->replica, &self->computed, now_ns, &self->host.out);
}

/* Told to stop: it has computed a part of the chunks, and answers soon. */
static void stop(struct process *process) {
    struct replica_process *self = process->state;
    if (!self->working || self->gathering)
        return;
    if (!self->computed_already) {
        uint32_t count = self->action.computation.count;
        compute(process, self, (uint32_t)world_between(process->world, 0, count));
    }
    self->work++;
    world_alarm(process, process->world->now_ns + world_delay(process->world, NS_PER_MS / 5),
                ALARM_WORK + self->work);
}

/* What was under way on the device is never answered. */
static void fail_device(struct process *process) {
    struct replica_process *self = process->state;
    if (!self->has_device)
        return;
    world_say(process->world, "the device of %s fails", process->name);
    cluster_of(process)->tally.devices_failed++;
    self->has_device = self->working = false;
    self->work++;
    replica_device_failed(self->replica, ERROR_UNAVAILABLE, "the device is lost", &self->host.out);
}

/* ---- actions ---- */

/* By the socket of a shard on this host, which ends with its process. */
static bool connect_local(struct process *process, struct process *shard, const char *address,
                          uint32_t *link) {
    struct cluster *cluster = cluster_of(process);
    const struct local_secret secret = cluster_secret(shard);
    char *own = local_address(secret.digits);
    bool there = !strcmp(address, own) && network_connect_local(process, shard, link);
    free(own);
    cluster->tally.locals += there;
    if (there && cluster->shape.shut) {
        cluster->tally.shut_out++;
        network_separate(process, shard);
    }
    return there;
}

/* Across a partition no refusal comes back: the attempt ends at its deadline. */
static void connect_shard(struct process *process, const struct action *action) {
    struct replica_process *self = process->state;
    struct process *shard = cluster_shard(cluster_of(process), action->shard);
    uint32_t link = 0;
    bool local = cluster_of(process)->shape.local && address_is_unix(action->address);
    bool there = local ? connect_local(process, shard, action->address, &link)
                       : network_connect(process, shard, &link);
    self->unanswered[action->shard] = 0;
    if (!there && !local && network_parted(process->world->network, process, shard)) {
        self->unanswered[action->shard] = ++self->attempts;
        world_alarm(process, process->world->now_ns + CONNECT_NS,
                    ALARM_UNANSWERED + self->attempts);
        return;
    }
    replica_connected(self->replica, action->shard, link, there ? 0 : ERROR_UNAVAILABLE,
                      there ? "" : "nobody answers", &self->host.out);
}

static void give_up(struct process *process, uint64_t attempt) {
    struct replica_process *self = process->state;
    for (uint32_t i = 0; i < SHARDS_MAX; i++)
        if (self->unanswered[i] == attempt) {
            self->unanswered[i] = 0;
            replica_connected(self->replica, i, 0, ERROR_UNAVAILABLE, "nobody answers",
                              &self->host.out);
        }
}

static void carry_out(struct process *process, const struct action *action) {
    switch (action->kind) {
    case ACTION_OPEN_SET:
        open_set(process, &action->setup);
        break;
    case ACTION_COPY_SET:
        begin_copy(process);
        break;
    case ACTION_KEEP:
        keep(process, action);
        break;
    case ACTION_LOOK:
        look(process, action->place);
        break;
    case ACTION_CONNECT:
        connect_shard(process, action);
        break;
    case ACTION_CLOSE:
        network_close(process, action->link);
        break;
    case ACTION_COMPUTE:
        start_computing(process, action);
        break;
    case ACTION_STOP:
        stop(process);
        break;
    case ACTION_GATHER:
        start_work(process, action,
                   world_chance(process->world, 2) ? 0
                                                   : world_delay(process->world, NS_PER_MS / 2));
        if (world_chance(process->world, 2))
            finish_work(process);
        break;
    }
}

/* ---- portions that are to be flushes of their own ---- */

/* A chunk that also comes without the flag may be accrued. */
static void note_portion(struct replica_process *self, const struct message *message) {
    const struct message_portion *portion = &message->portion;
    if (message->type != MESSAGE_PORTION)
        return;
    if (portion->attempt != self->attempt || portion->evaluation != self->evaluation) {
        self->plain = self->solo = 0;
        memset(self->solo_lengths, 0, sizeof self->solo_lengths);
    }
    self->attempt = portion->attempt;
    self->evaluation = portion->evaluation;
    if (portion->flags & PORTION_SOLO) {
        self->solo |= UINT64_C(1) << portion->first;
        self->solo_lengths[portion->first] |= UINT64_C(1) << portion->count;
    }
    for (uint32_t i = 0; i < portion->count && !(portion->flags & PORTION_SOLO); i++)
        self->plain |= UINT64_C(1) << (portion->first + i);
    self->solo &= ~self->plain;
}

/* Whether it holds a portion that was to be a flush of its own, and other chunks. */
static bool adds_to_solo(const struct replica_process *self, const struct message_stage *stage) {
    bool current =
        stage->flush.attempt == self->attempt && stage->flush.evaluation == self->evaluation;
    const struct chunk_range *range = stage->portions.items;
    if (current && stage->portions.length == 1 &&
        self->solo_lengths[range->first] >> range->count & 1)
        return false;
    for (uint32_t i = 0; current && i < stage->portions.length; i++)
        for (uint32_t j = 0; j < range[i].count; j++)
            if (self->solo >> (range[i].first + j) & 1)
                return true;
    return false;
}

static void check_stages(struct process *process) {
    struct replica_process *self = process->state;
    const struct outbox *out = &self->host.out;
    for (size_t i = 0; i < out->count; i++) {
        struct message message = decoded(out, &out->envelopes[i]);
        if (message.type == MESSAGE_STAGE && adds_to_solo(self, &message.stage))
            world_fail(process->world,
                       "%s accrued a portion with others that was to be a flush of "
                       "its own",
                       process->name);
    }
}

/* As the I/O shell of the real one: actions, then timers, then what is to be sent. */
static void finish_step(struct process *process) {
    struct replica_process *self = process->state;
    int64_t now_ns = process->world->now_ns;
    struct action action;
    while (replica_next_action(self->replica, &action))
        carry_out(process, &action);
    if (now_ns >= replica_deadline_ns(self->replica))
        replica_timer(self->replica, now_ns, &self->host.out);
    while (replica_next_action(self->replica, &action))
        carry_out(process, &action);
    int64_t deadline_ns = replica_deadline_ns(self->replica);
    if (deadline_ns != NEVER_NS && deadline_ns != self->deadline_ns)
        world_alarm(process, deadline_ns, ALARM_DEADLINE);
    self->deadline_ns = deadline_ns;
    check_stages(process);
    worker_host_drain(process, &self->host);
}

static void message(struct process *process, uint32_t link, const struct message *taken) {
    struct replica_process *self = process->state;
    if (worker_host_takes(process, &self->host, link, taken))
        return;
    if (link == self->host.coordinator) /* one that is fenced out is not obeyed */
        note_portion(self, taken);
    replica_step(self->replica, link, taken, process->world->now_ns, &self->host.out);
    finish_step(process);
    worker_host_message(process, &self->host, link, taken);
}

static void gone(struct process *process, uint32_t link) {
    struct replica_process *self = process->state;
    replica_gone(self->replica, link, &self->host.out);
    finish_step(process);
    worker_host_gone(process, &self->host, link);
}

static void alarm(struct process *process, uint64_t which) {
    struct replica_process *self = process->state;
    if (which >= HOST_ALARMS) {
        worker_host_alarm(process, &self->host, which);
        return;
    }
    if (which == ALARM_DEVICE)
        fail_device(process);
    else if (which >= ALARM_UNANSWERED)
        give_up(process, which - ALARM_UNANSWERED);
    else if (which >= ALARM_LOOK && self->copied)
        finish_look(process, which - ALARM_LOOK);
    else if (which == ALARM_DEADLINE)
        self->deadline_ns = NEVER_NS;
    else if (self->working && which == ALARM_WORK + self->work)
        finish_work(process);
    finish_step(process);
}

const struct behaviour replica_behaviour = {
    .begin = begin, .end = end, .message = message, .gone = gone, .alarm = alarm};
