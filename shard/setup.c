/* The handshake with coordinators and replicas, and the set-up of the range. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "shard/state.h"

void send_refused(uint64_t term, uint32_t to, const char *reason, struct outbox *out) {
    outbox_add(
        out, to,
        &(struct message){.type = MESSAGE_REFUSED, .term = term, .refused = {.reason = reason}});
}

static const char *check_hello(const struct shard *shard, const struct message *message) {
    const struct message_hello *hello = &message->hello;
    if (hello->protocol != PROTOCOL_VERSION)
        return "the coordinator speaks another protocol version";
    if (message->term < shard->term && !mutant(NO_TERM_CHECK))
        return "a newer coordinator was here";
    if (hello->role != ROLE_SHARD)
        return "this is a shard";
    if (shard->run && strcmp(shard->run, hello->run))
        return "this shard works for another run";
    return NULL;
}

void on_hello(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out) {
    const char *fault = check_hello(shard, message);
    if (fault) {
        send_refused(message->term, from, fault, out);
        return;
    }
    if (!shard->run)
        shard->run = memory_copy_string(message->hello.run);
    shard->saving.former = shard->coordinator;
    shard->saving.former_term = shard->term;
    shard->term = message->term;
    shard->index = message->hello.index;
    if (shard->incarnation != message->hello.incarnation)
        shard->since = message->term;
    shard->incarnation = message->hello.incarnation;
    shard->coordinator = from;
    shard->shares =
        !shard->self.shares ||
        shard->self.shares(shard->self.context, message->hello.state, message->hello.holder);
    apart_give_up(&shard->saving);
    forget_waiting(shard);
    if (fence_folder(shard))
        shard->saving.welcoming = true;
    else
        welcome_coordinator(shard, out);
}

/* ---- a coordinator ---- */

/* Tells a new coordinator what it needs to go on where the former one was. A shard that is not
 * completely set up says attempt 0. */
static void send_holding(const struct shard *shard, struct outbox *out) {
    const struct staging *staging = &shard->staging;
    struct bytes folded, staged;
    bytes_init(&folded);
    bytes_init(&staged);
    for (size_t i = 0; i < staging->folded_count; i++)
        flush_id_encode(&staging->folded[i], &folded);
    for (size_t i = 0; i < staging->staged_count; i++)
        flush_id_encode(&staging->staged[i].id, &staged);
    struct message message = {.type = MESSAGE_HOLDING};
    message.holding = (struct message_holding){.attempt = shard->ready ? shard->attempt : 0,
                                               .number = shard->last.number,
                                               .hash = shard->last.hash,
                                               .evaluation = shard->begun ? shard->evaluation : 0,
                                               .folded = {folded.data, (uint32_t)folded.length},
                                               .staged = {staged.data, (uint32_t)staged.length},
                                               .device = shard->ready ? shard->place : ""};
    shard_answer(shard, shard->coordinator, message, out);
    bytes_release(&folded);
    bytes_release(&staged);
}

void welcome_coordinator(struct shard *shard, struct outbox *out) {
    struct message answer = {.type = MESSAGE_WELCOME};
    answer.welcome = (struct message_welcome){.protocol = PROTOCOL_VERSION,
                                              .role = ROLE_SHARD,
                                              .incarnation = shard->incarnation,
                                              .since = shard->since,
                                              .pid = shard->self.pid,
                                              .host = shard->self.host,
                                              .threads = 1,
                                              .proof = shard->self.proof,
                                              .description = shard->self.description,
                                              .local = shard->self.local,
                                              .shares = shard->shares};
    shard_answer(shard, shard->coordinator, answer, out);
    send_holding(shard, out);
}

/* ---- replicas ---- */

void on_greet(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out) {
    const struct message_greet *greet = &message->greet;
    if (greet->protocol != PROTOCOL_VERSION) {
        send_refused(message->term, from, "the replica speaks another protocol version", out);
        return;
    }
    if (!shard->run || strcmp(shard->run, greet->run)) {
        send_refused(message->term, from, "this shard works for another run, or for none", out);
        return;
    }
    struct replica_link *replica = shard_replica(shard, from);
    if (!replica)
        replica = shard_add_replica(shard, from);
    replica->incarnation = greet->incarnation;
    struct message answer = {.type = MESSAGE_GREETED};
    answer.greeted =
        (struct message_greeted){.index = shard->index, .incarnation = shard->incarnation};
    shard_answer(shard, from, answer, out);
}

/* ---- the range ---- */

void send_if_ready(struct shard *shard, struct outbox *out) {
    const struct saving *saving = &shard->saving;
    bool fenced = !saving->folder || saving->fenced >= shard->term;
    if (shard->ready || !shard->set_up || !fenced || !registers_complete(&shard->registers))
        return;
    int code = registers_load(&shard->registers);
    if (code) {
        shard_fail(shard, code, out);
        return;
    }
    assert(shard->set_up && !shard->begun && !shard->last.number);
    shard->ready = true;
    shard_answer(shard, shard->coordinator,
                 (struct message){.type = MESSAGE_READY,
                                  .ready = {.attempt = shard->attempt, .device = shard->place}},
                 out);
}

/* Where the job does not insist on a device, the CPU takes the place of one that cannot be used, as
 * for lack of memory. */
static int set_up_registers(struct shard *shard, const struct message_shard_setup *setup) {
    struct registers *registers = &shard->registers;
    struct shard_place place = {.backend = &shard_on_host};
    registers_use(registers, &shard_on_host, NULL); /* the device may be closed now */
    int code = shard->self.place ? shard->self.place(shard->self.context, setup, &place) : 0;
    if (code)
        return code;
    registers_use(registers, place.backend, place.device);
    code = registers_set_up(registers, setup);
    if (code == ERROR_UNAVAILABLE && place.device && place.optional) {
        log_warning("computes on the CPU, as the device cannot be used: %s", error_text());
        error_clear();
        place.device = NULL;
        registers_use(registers, &shard_on_host, NULL);
        code = registers_set_up(registers, setup);
    }
    assert(registers->device == place.device);
    shard->place = place.device ? place.name : "cpu";
    return code;
}

void on_shard_setup(struct shard *shard, uint32_t from, const struct message *message,
                    struct outbox *out) {
    (void)from;
    const struct message_shard_setup *setup = &message->shard_setup;
    if (shard->set_up && setup->attempt < shard->attempt) {
        shard->counters.stale++;
        return;
    }
    /* Whatever the set-up comes to, the registers change: nothing of an older attempt may be read
     * of them. Programs of the new attempt count from 1. */
    shard->attempt = setup->attempt;
    shard->set_up = shard->ready = shard->begun = shard->trial_is_there = false;
    shard->gives_rows = false;
    shard->device_failed = false;
    shard->last.number = shard->last.hash = 0;
    shard->sums = SUMS_NONE;
    staging_clear(&shard->staging);
    int code = set_up_registers(shard, setup);
    if (code) {
        shard_fail(shard, code, out);
        return;
    }
    shard->set_up = true;
    if (shard->shares || !*setup->folder) {
        saving_begin(&shard->saving, setup->folder, false);
    } else {
        char *own;
        code = apart_folder(shard, &own);
        if (code) {
            shard_fail(shard, code, out);
            return;
        }
        saving_begin(&shard->saving, own, true);
        free(own);
    }
    if (!fence_folder(shard))
        send_if_ready(shard, out);
}

/* One of the messages that complete a set-up was taken, with this result. */
static void answer_part_of_setup(struct shard *shard, int code, struct outbox *out) {
    if (code)
        shard_fail(shard, code, out);
    else
        send_if_ready(shard, out);
}

void on_exponents(struct shard *shard, uint32_t from, const struct message *message,
                  struct outbox *out) {
    (void)from;
    const struct message_exponents *exponents = &message->exponents;
    if (!shard->set_up || exponents->attempt != shard->attempt) {
        shard->counters.stale++;
        return;
    }
    int code = registers_set_exponents(&shard->registers, exponents->first, message->bulk.data,
                                       exponents->count);
    answer_part_of_setup(shard, code, out);
}

void on_coordinates(struct shard *shard, uint32_t from, const struct message *message,
                    struct outbox *out) {
    (void)from;
    const struct message_coordinates *coordinates = &message->coordinates;
    if (!shard->set_up || coordinates->attempt != shard->attempt) {
        shard->counters.stale++;
        return;
    }
    int code = scaling_set_columns(&shard->registers.scaling, coordinates->first,
                                   message->bulk.data, coordinates->count);
    answer_part_of_setup(shard, code, out);
}

void on_limits(struct shard *shard, uint32_t from, const struct message *message,
               struct outbox *out) {
    (void)from;
    const struct message_limits *limits = &message->limits;
    if (!shard->set_up || limits->attempt != shard->attempt) {
        shard->counters.stale++;
        return;
    }
    int code = limits_set_columns(&shard->registers.limits, limits->first, message->bulk.data,
                                  limits->count);
    answer_part_of_setup(shard, code, out);
}

void on_squares(struct shard *shard, uint32_t from, const struct message *message,
                struct outbox *out) {
    (void)from;
    const struct message_squares *squares = &message->squares;
    if (!shard->set_up || squares->attempt != shard->attempt) {
        shard->counters.stale++;
        return;
    }
    int code = scaling_set_squares(&shard->registers.scaling, squares->first, message->bulk.data,
                                   squares->count);
    answer_part_of_setup(shard, code, out);
}

void on_start(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out) {
    (void)from;
    const struct message_start *start = &message->start;
    if (!shard->set_up || start->attempt != shard->attempt ||
        start->program != shard->last.number + 1) {
        shard->counters.stale++;
        return;
    }
    /* x must be complete before the shard is ready; other registers are filled for one program. */
    const double *elements = message->bulk.data;
    struct registers *registers = &shard->registers;
    int code =
        start->register_ == REGISTER_X
            ? registers_set_start(registers, start->first, elements, start->count)
            : registers_fill(registers, start->register_, start->first, elements, start->count);
    answer_part_of_setup(shard, code, out);
}
