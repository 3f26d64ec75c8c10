/* Sends the trial point to replicas, takes slices of flushes in, and answers READ. */
#include <string.h>

#include "base/error.h"
#include "base/mutant.h"
#include "numeric/fixed.h"
#include "shard/backend.h"
#include "shard/state.h"

/* ---- the trial point ---- */

static void send_parameters(const struct shard *shard, uint32_t to, struct outbox *out) {
    const struct registers *registers = &shard->registers;
    const struct vector *t = &registers->vector[REGISTER_T];
    struct message message = {.type = MESSAGE_PARAMETERS};
    message.parameters = (struct message_parameters){.attempt = shard->attempt,
                                                     .evaluation = shard->evaluation,
                                                     .first = registers->first,
                                                     .count = registers->count};
    message.bulk = (struct bulk){
        .data = t->elements, .length = registers->count * sizeof(double), .segment = t->segment};
    shard_answer(shard, to, message, out);
}

enum age { STALE, AT_HAND, TO_COME };

static enum age age_of(const struct shard *shard, uint32_t attempt, uint32_t evaluation) {
    if (attempt != shard->attempt)
        return attempt < shard->attempt ? STALE : TO_COME;
    if (!shard->begun || evaluation > shard->evaluation)
        return TO_COME;
    return evaluation == shard->evaluation && shard->trial_is_there ? AT_HAND : STALE;
}

void on_fetch(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out) {
    const struct message_fetch *fetch = &message->fetch;
    struct replica_link *replica = shard_replica(shard, from);
    switch (age_of(shard, fetch->attempt, fetch->evaluation)) {
    case STALE:
        shard->counters.stale++;
        break;
    case AT_HAND:
        send_parameters(shard, from, out);
        break;
    case TO_COME:
        replica->fetching = true;
        replica->attempt = fetch->attempt;
        replica->evaluation = fetch->evaluation;
        break;
    }
}

void answer_held_fetches(struct shard *shard, struct outbox *out) {
    for (size_t i = 0; i < shard->replica_count; i++) {
        struct replica_link *replica = &shard->replicas[i];
        if (!replica->fetching)
            continue;
        enum age age = age_of(shard, replica->attempt, replica->evaluation);
        if (age == AT_HAND)
            send_parameters(shard, replica->link, out);
        replica->fetching = age == TO_COME;
    }
}

/* ---- flushes ---- */

static bool is_at_hand(struct shard *shard, const struct flush_id *id) {
    bool at_hand = shard->begun && (id->attempt == shard->attempt || mutant(ATTEMPT_IGNORED)) &&
                   id->evaluation == shard->evaluation;
    if (!at_hand)
        shard->counters.stale++;
    return at_hand;
}

static size_t biases_of(const struct shard *shard) {
    return shard->sums == SUMS_PARAMETERS ? shard->registers.frame.biases : 0;
}

/* Biases are few: the host has their sums, wherever the others are. */
static int add_slice(void *context, const struct slice *slice, bool first) {
    struct shard *shard = context;
    struct registers *registers = &shard->registers;
    int64_t *bias = registers->frame.bias_sum;
    size_t biases = biases_of(shard);
    if (first && biases)
        memset(bias, 0, biases * sizeof *bias);
    if (slice->biases)
        fixed_merge(biases, bias, slice->biases);
    return registers->backend->fold(registers, registers_sums(registers, shard->sums), slice,
                                    first);
}

/* Those of the evaluation at hand. */
static struct sums sums_of(struct shard *shard) {
    return (struct sums){.count = registers_sums(&shard->registers, shard->sums),
                         .biases = biases_of(shard),
                         .add = add_slice,
                         .context = shard};
}

void on_stage(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out) {
    const struct flush_id *id = &message->stage.flush;
    if (!is_at_hand(shard, id))
        return;
    if (id->incarnation != shard_replica(shard, from)->incarnation) {
        shard->counters.stranger++;
        return;
    }
    struct message answer = {.type = MESSAGE_STAGED};
    const struct sums sums = sums_of(shard);
    if (staging_keep(&shard->staging, message, &sums)) {
        shard->counters.stages_refused++;
        answer.type = MESSAGE_REFUSED;
        answer.refused.reason = error_text();
    } else {
        answer.staged = (struct message_staged){
            .flush = *id, .index = shard->index, .incarnation = shard->incarnation};
    }
    if (mutant(FOLD_WITHOUT_VERDICT))
        staging_fold(&shard->staging, id, &sums);
    shard_answer(shard, from, answer, out);
    error_clear();
}

void on_fold(struct shard *shard, uint32_t from, const struct message *message,
             struct outbox *out) {
    const struct flush_id *id = &message->fold.flush;
    if (!is_at_hand(shard, id))
        return;
    const struct sums sums = sums_of(shard);
    enum fold_result result = staging_fold(&shard->staging, id, &sums);
    if (result == FOLD_FAILED) {
        shard_fail(shard, ERROR_UNAVAILABLE, out);
        return;
    }
    if (result == FOLD_UNKNOWN) {
        shard_fail(shard,
                   error_set(ERROR_INTERNAL,
                             "asked to fold flush %u of replica %llu in evaluation "
                             "%u, which is not staged here",
                             id->sequence, (unsigned long long)id->incarnation, id->evaluation),
                   out);
        return;
    }
    shard_answer(shard, from, (struct message){.type = MESSAGE_FOLDED, .folded = {.flush = *id}},
                 out);
}

void on_drop(struct shard *shard, uint32_t from, const struct message *message,
             struct outbox *out) {
    (void)from, (void)out;
    if (is_at_hand(shard, &message->drop.flush))
        staging_drop(&shard->staging, &message->drop.flush);
}

/* ---- reading registers ---- */

void on_read(struct shard *shard, uint32_t from, const struct message *message,
             struct outbox *out) {
    const struct message_read *read = &message->read;
    struct registers *registers = &shard->registers;
    if (!shard->ready || !registers_hold(registers, read->register_, read->first, read->count)) {
        shard_fail(shard, error_set(ERROR_INTERNAL, "asked for elements that this shard lacks"),
                   out);
        return;
    }
    size_t offset = (size_t)(read->first - registers->first);
    int code = registers_pull(registers, read->register_, offset, (size_t)read->count);
    if (code) {
        shard_fail(shard, code, out);
        return;
    }
    const struct vector *vector = &registers->vector[read->register_];
    struct message answer = {.type = MESSAGE_SLICE};
    answer.slice = (struct message_slice){
        .register_ = read->register_, .first = read->first, .count = read->count};
    answer.bulk = (struct bulk){.data = vector->elements + offset,
                                .length = read->count * sizeof(double),
                                .segment = vector->segment};
    shard_answer(shard, from, answer, out);
}
