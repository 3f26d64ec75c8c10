/* Sends the trial point to replicas, takes slices of flushes in, and answers READ. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "numeric/fixed.h"
#include "shard/rows.h"
#include "shard/state.h"
#include "wire/wanted.h"

/* ---- the trial point ---- */

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Sends those elements of the message that belong to the columns that were asked for. */
static void send_wanted(const struct shard *shard, uint32_t to, const struct message *all,
                        const struct message_fetch *fetch, const uint64_t *bits,
                        struct outbox *out) {
    const struct wanted wanted = {fetch->column, fetch->columns, fetch->width, bits};
    uint64_t first = all->parameters.first, count = all->parameters.count;
    size_t length = wanted_total(&wanted, first, count) * sizeof(double);
    struct message message = *all;
    double *elements = memory_new(length + 1, 1);
    wanted_gather(&wanted, first, count, all->bulk.data, elements);
    message.term = shard->term;
    message.bulk = (struct bulk){.data = elements, .length = length};
    outbox_add_owned(out, to, &message, elements);
}

/* What a replica fetches elements of, and which of its numbers this shard has. */
struct given {
    const double *elements;
    uint64_t first, count;
    struct segment *segment; /* that they lie in; NULL: in memory of this process */
};

/* t, or D, or Z. */
static struct given given_of(const struct shard *shard, enum fetch_vector vector) {
    const struct registers *registers = &shard->registers;
    const struct row_vectors *rows = &registers->rows;
    const struct vector *t = &registers->vector[REGISTER_T];
    if (vector == FETCH_POINT || (vector == FETCH_GIVEN && !shard->gives_rows))
        return (struct given){t->elements, registers->first, registers->count, t->segment};
    struct given given = {.first = rows->first * rows->outputs, .count = rows_numbers(rows)};
    given.segment = vector == FETCH_GIVEN ? rows->derivatives : NULL;
    given.elements = vector == FETCH_GIVEN ? rows_derivatives(rows) : rows->margins;
    return given;
}

/* What this shard has of the elements that were asked for. */
static void send_parameters(const struct shard *shard, uint32_t to,
                            const struct message_fetch *fetch, const uint64_t *bits,
                            struct outbox *out) {
    const struct given given = given_of(shard, (enum fetch_vector)fetch->vector);
    uint64_t own = given.first, own_end = own + given.count;
    uint64_t end = fetch->first + fetch->count, first = larger(own, fetch->first);
    end = end < own_end ? end : own_end;
    assert(shard->ready && shard->begun && shard->trial_is_there);
    struct message message = {.type = MESSAGE_PARAMETERS};
    message.parameters = (struct message_parameters){.attempt = shard->attempt,
                                                     .evaluation = shard->evaluation,
                                                     .vector = fetch->vector,
                                                     .first = first < end ? first : own,
                                                     .count = first < end ? end - first : 0};
    message.bulk = (struct bulk){.data = given.elements + (message.parameters.first - own),
                                 .length = message.parameters.count * sizeof(double),
                                 .segment = given.segment};
    if (fetch->columns)
        send_wanted(shard, to, &message, fetch, bits, out);
    else
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

/* Whether the bits that the FETCH names are there: it has them, or they came last. A FETCH that is
 * held must not be answered by others. */
static bool has_bits(struct replica_link *replica, const struct message *message) {
    const struct message_fetch *fetch = &message->fetch;
    const struct wanted_key key = {fetch->column, fetch->columns, fetch->hash, fetch->width};
    if (!fetch->columns)
        return true;
    if (!message->bulk.length)
        return replica->key.columns && wanted_key_equal(&replica->key, &key);
    kept_bulk_release(&replica->wanted);
    bulk_keep(&message->bulk, &replica->wanted);
    replica->key = key;
    replica->fetching = false;
    return true;
}

void on_fetch(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out) {
    const struct message_fetch *fetch = &message->fetch;
    struct replica_link *replica = shard_replica(shard, from);
    if (!has_bits(replica, message)) {
        shard_answer(shard, from,
                     (struct message){.type = MESSAGE_REFUSED,
                                      .refused.reason = "a FETCH by bits that did not come"},
                     out);
        return;
    }
    switch (age_of(shard, fetch->attempt, fetch->evaluation)) {
    case STALE:
        shard->counters.stale++;
        break;
    case AT_HAND:
        send_parameters(shard, from, fetch, replica->wanted.data, out);
        break;
    case TO_COME:
        replica->fetching = true;
        replica->fetch = *fetch;
        break;
    }
}

void answer_held_fetches(struct shard *shard, struct outbox *out) {
    for (size_t i = 0; i < shard->replica_count; i++) {
        struct replica_link *replica = &shard->replicas[i];
        if (!replica->fetching)
            continue;
        const struct message_fetch *fetch = &replica->fetch;
        enum age age = age_of(shard, fetch->attempt, fetch->evaluation);
        if (age == AT_HAND)
            send_parameters(shard, replica->link, fetch, replica->wanted.data, out);
        replica->fetching = age == TO_COME;
    }
}

/* ---- staged slices ---- */

static void staged_release(struct staged *staged) {
    kept_bulk_release(&staged->bulk);
    free(staged->biases);
}

void staging_clear(struct staging *staging) {
    for (size_t i = 0; i < staging->staged_count; i++)
        staged_release(&staging->staged[i]);
    assert(staging->folded_count || !staging->folded_hash);
    staging->staged_count = 0;
    flush_index_clear(&staging->places);
    flush_index_clear(&staging->index);
    staging->folded_count = 0;
    staging->folded_hash = 0;
}

void staging_release(struct staging *staging) {
    staging_clear(staging);
    free(staging->staged);
    free(staging->folded);
    flush_index_release(&staging->index);
    flush_index_release(&staging->places);
    *staging = (struct staging){0};
}

static struct staged *find_staged(const struct staging *staging, const struct flush_id *id) {
    uint32_t place;
    if (!flush_index_find(&staging->places, id, &place))
        return NULL;
    assert(place < staging->staged_count);
    return &staging->staged[place];
}

static bool is_folded(const struct staging *staging, const struct flush_id *id) {
    return flush_index_find(&staging->index, id, NULL);
}

static void drop_staged(struct staging *staging, struct staged *staged) {
    assert(staging->staged_count && staged < staging->staged + staging->staged_count);
    flush_index_remove(&staging->places, &staged->id);
    staged_release(staged);
    struct staged *last = &staging->staged[--staging->staged_count];
    if (staged == last)
        return;
    *staged = *last; /* the order of those that wait does not matter */
    flush_index_remove(&staging->places, &staged->id);
    flush_index_add(&staging->places, &staged->id, (uint32_t)(staged - staging->staged));
}

/* How many sums of biases come beside each slice: none, unless columns are scaled. */
static size_t biases_of(const struct shard *shard) {
    return shard->sums == SUMS_PARAMETERS ? shard->registers.scaling.biases : 0;
}

/* `count`: the sums from the slice's first on. */
static int check_bits(const struct message *message, size_t count) {
    const uint64_t *words = message->bulk.data, entries = message->stage.entries;
    size_t words_count = message->bulk.length / sizeof *words - entries;
    uint64_t set = 0;
    if (words_count > stage_bitmap_values_at(count) / sizeof *words || count > UINT32_MAX)
        return error_set(ERROR_DATA, "a slice by bits that are more than the sums");
    for (size_t i = 0; i < words_count; i++)
        set += (uint64_t)__builtin_popcountll(words[i]);
    if (set != entries)
        return error_set(ERROR_DATA, "a slice by bits with another number of values");
    if (words_count * 64 > count && words[words_count - 1] >> count % 64)
        return error_set(ERROR_DATA, "a slice by bits with a bit outside of the sums");
    return 0;
}

static int check_slice(const struct shard *shard, const struct message *message) {
    const struct message_stage *stage = &message->stage;
    size_t count = registers_sums(&shard->registers, shard->sums), biases = biases_of(shard);
    bool listed = shard->sums == SUMS_TRIANGLE &&
                  shard->registers.precondition == PRECONDITION_LISTED; /* the first rows of it */
    bool parts = shard->sums == SUMS_ROWS || shard->registers.tiles || listed;
    if (stage->first > count ||
        (stage->encoding == STAGE_DENSE && stage->entries > count - stage->first))
        return error_set(ERROR_DATA, "a slice of sums that this shard has not");
    if (stage->encoding == STAGE_DENSE && !parts && stage->entries != count)
        return error_set(ERROR_DATA, "a dense slice that is not as long as the sums");
    if (stage->biases.length != (stage->encoding == STAGE_NONE ? 0 : biases))
        return error_set(ERROR_DATA, "a slice with the sums of %u biases, of %zu",
                         stage->biases.length, biases);
    const uint32_t *offsets = message->bulk.data;
    for (uint64_t i = 0; stage->encoding == STAGE_SPARSE && i < stage->entries; i++)
        if (offsets[i] >= count - stage->first)
            return error_set(ERROR_DATA, "a sparse slice with an offset outside of the sums");
    return stage->encoding == STAGE_BITMAP ? check_bits(message, count - stage->first) : 0;
}

/* Keeps a slice until FOLD or DROP, and takes its memory over. A replica sends a STAGE again if the
 * answer was lost with a connection or a coordinator. A flush that is folded already must not be
 * staged again: nobody would fold or drop that slice. */
static int keep_slice(struct shard *shard, const struct message *message) {
    struct staging *staging = &shard->staging;
    const struct message_stage *stage = &message->stage;
    if (find_staged(staging, &stage->flush) || is_folded(staging, &stage->flush))
        return 0;
    int code = check_slice(shard, message);
    if (code)
        return code;
    MEMORY_ROOM(staging->staged, staging->staged_count, staging->staged_capacity);
    flush_index_add(&staging->places, &stage->flush, (uint32_t)staging->staged_count);
    struct staged *staged = &staging->staged[staging->staged_count++];
    *staged = (struct staged){.id = stage->flush,
                              .encoding = stage->encoding,
                              .first = stage->first,
                              .entries = stage->entries};
    bulk_keep(&message->bulk, &staged->bulk);
    if (stage->biases.length) {
        staged->biases = memory_new(stage->biases.length, sizeof *staged->biases);
        memcpy(staged->biases, stage->biases.items, stage->biases.length * sizeof *staged->biases);
    }
    return 0;
}

/* The offsets of the bits that are set; free them. If they are not as many any more, the first is
 * of no sum, and backends refuse the slice. */
static uint32_t *offsets_of_bits(const uint64_t *words, size_t words_count, size_t set) {
    uint32_t *offsets = memory_new(set, sizeof *offsets);
    size_t found = 0;
    for (size_t i = 0; i < words_count; i++)
        for (uint64_t bits = words[i]; bits; bits &= bits - 1, found++)
            if (found < set)
                offsets[found] = (uint32_t)(i * 64 + (size_t)__builtin_ctzll(bits));
    if (set && found != set)
        offsets[0] = UINT32_MAX;
    return offsets;
}

/* The slice as backends add it. *made: to free, or NULL. */
static struct slice open_slice(const struct staged *staged, uint32_t **made) {
    static const uint8_t none[1];
    const uint8_t *data = staged->bulk.data ? staged->bulk.data : none;
    size_t values_at = 0;
    const uint32_t *offsets = *made = NULL;
    if (staged->encoding == STAGE_SPARSE) {
        values_at = stage_sparse_values_at(staged->entries);
        offsets = staged->bulk.data;
    }
    if (staged->encoding == STAGE_BITMAP) {
        values_at = staged->bulk.length - staged->entries * sizeof(int64_t);
        offsets = *made =
            offsets_of_bits(staged->bulk.data, values_at / sizeof(uint64_t), staged->entries);
    }
    return (struct slice){.first = staged->first,
                          .entries = staged->entries,
                          .values = (const int64_t *)(const void *)(data + values_at),
                          .offsets = offsets};
}

/* The first slice of an evaluation replaces what the sums held of the one before. The sums of the
 * biases are few, and always in the host's memory. */
static int add_slice(struct shard *shard, const struct staged *staged) {
    struct registers *registers = &shard->registers;
    bool first =
        !shard->staging.folded_count && !(shard->sums == SUMS_ROWS && mutant(ROWS_ADDED_UP));
    assert(shard->sums != SUMS_NONE || !staged->entries);
    int64_t *bias = registers->scaling.bias_sum;
    size_t biases = biases_of(shard);
    if (first && biases)
        memset(bias, 0, biases * sizeof *bias);
    if (staged->biases)
        fixed_merge(biases, bias, staged->biases);
    uint32_t *made;
    const struct slice slice = open_slice(staged, &made);
    int code =
        registers->backend->fold(registers, registers_sums(registers, shard->sums), &slice, first);
    free(made);
    return code;
}

/* Adds a flush exactly once: the next coordinator repeats FOLD for every flush in its journal, and
 * cannot know which of them this shard has carried out. So the list of folded flushes is asked
 * first. The list, the sums and the hash are of one evaluation; BEGIN clears them together, as does
 * SHARD_SETUP. ERROR_INTERNAL if the flush was never staged here, or dropped. */
static int fold(struct shard *shard, const struct flush_id *id) {
    struct staging *staging = &shard->staging;
    struct staged *staged = find_staged(staging, id);
    if (is_folded(staging, id)) {
        assert(!staged);
        return 0;
    }
    if (!staged)
        return error_set(ERROR_INTERNAL,
                         "asked to fold flush %u of replica %llu in evaluation "
                         "%u, which is not staged here",
                         id->sequence, (unsigned long long)id->incarnation, id->evaluation);
    int code = add_slice(shard, staged);
    if (code)
        return code;
    drop_staged(staging, staged);
    MEMORY_ROOM(staging->folded, staging->folded_count, staging->folded_capacity);
    flush_index_add(&staging->index, id, (uint32_t)staging->folded_count);
    staging->folded[staging->folded_count++] = *id;
    staging->folded_hash += flush_id_hash(id);
    return 0;
}

/* ---- flushes ---- */

/* Whether the flush is of the evaluation under way. */
static bool is_at_hand(struct shard *shard, const struct flush_id *id) {
    assert(!shard->begun || shard->ready);
    bool at_hand = shard->begun && (id->attempt == shard->attempt || mutant(ATTEMPT_IGNORED)) &&
                   id->evaluation == shard->evaluation;
    if (!at_hand)
        shard->counters.stale++;
    return at_hand;
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
    if (keep_slice(shard, message)) {
        shard->counters.stages_refused++;
        answer.type = MESSAGE_REFUSED;
        answer.refused.reason = error_text();
    } else {
        answer.staged = (struct message_staged){
            .flush = *id, .index = shard->index, .incarnation = shard->incarnation};
    }
    if (mutant(FOLD_WITHOUT_VERDICT))
        fold(shard, id);
    shard_answer(shard, from, answer, out);
    error_clear();
}

void on_fold(struct shard *shard, uint32_t from, const struct message *message,
             struct outbox *out) {
    const struct blob *flushes = &message->fold.flushes;
    struct cursor ids = cursor_over(flushes->data, flushes->length);
    struct message answer = {.type = MESSAGE_FOLDED, .folded = {.flushes = *flushes}};
    int code = 0;
    while (!code && cursor_left(&ids)) {
        const struct flush_id id = flush_id_decode(&ids);
        if (!is_at_hand(shard, &id)) /* nor are the others, which are of the same evaluation */
            return;
        code = fold(shard, &id);
        if (mutant(ONE_FOLD_OF_A_LIST))
            break;
    }
    if (code)
        shard_fail(shard, code, out);
    else
        shard_answer(shard, from, answer, out);
}

void on_drop(struct shard *shard, uint32_t from, const struct message *message,
             struct outbox *out) {
    (void)from, (void)out;
    const struct blob *flushes = &message->drop.flushes;
    struct cursor ids = cursor_over(flushes->data, flushes->length);
    while (cursor_left(&ids)) {
        const struct flush_id id = flush_id_decode(&ids);
        struct staged *staged = find_staged(&shard->staging, &id);
        if (is_at_hand(shard, &id) && staged)
            drop_staged(&shard->staging, mutant(DROP_OF_ANOTHER) ? shard->staging.staged : staged);
    }
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
