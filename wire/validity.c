/* Which messages are invalid for any receiver. There is one function for each message; it returns
 * the reason, or NULL. The receiver checks what depends on its state (its range, its phase).
 *
 * A message of the table that has no function here does not compile. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/step_files.h"
#include "device/find.h"
#include "wire/address.h"
#include "wire/evaluation.h"
#include "wire/message.h"
#include "wire/program.h"
#include "wire/wanted.h"

/* The number of elements of the longest vector that is possible. */
#define ELEMENTS_MAX PARAMETERS_MAX

/* Exit statuses that a worker may name: those of sysexits.h. */
enum { STATUS_MIN = 64, STATUS_MAX = 78 };

static const char *unless(bool holds, const char *fault) {
    return holds ? NULL : fault;
}

/* The first fault of several, each of which may be NULL. All are looked for. */
#define FIRST_OF(...) first_of((const char *const[]){__VA_ARGS__, ""})

static const char *first_of(const char *const *faults) {
    while (!*faults)
        faults++;
    return **faults ? *faults : NULL;
}

/* ---- what several messages hold ---- */

static const char *fault_of_attempt(uint32_t attempt) {
    return unless(attempt, "attempts count from 1");
}

static const char *fault_of_evaluation(uint32_t attempt, uint32_t evaluation) {
    return FIRST_OF(fault_of_attempt(attempt), unless(evaluation, "evaluations count from 1"));
}

static const char *fault_of_incarnation(uint64_t incarnation) {
    return unless(incarnation, "an incarnation that nobody is given");
}

static const char *fault_of_flush(const struct flush_id *id) {
    return FIRST_OF(fault_of_evaluation(id->attempt, id->evaluation),
                    fault_of_incarnation(id->incarnation));
}

/* A list of the flushes of one evaluation. */
static const char *fault_of_flushes(const struct blob *flushes) {
    struct cursor cursor = cursor_over(flushes->data, flushes->length);
    struct flush_id id, first = {0};
    const char *fault = unless(flushes->length && flushes->length % FLUSH_ID_BYTES == 0 &&
                                   flushes->length / FLUSH_ID_BYTES <= FOLD_FLUSHES_MAX,
                               "no flushes, too many, or a part of one");
    while (!fault && cursor_left(&cursor)) {
        id = flush_id_decode(&cursor);
        first = first.attempt ? first : id;
        fault = FIRST_OF(fault_of_flush(&id),
                         unless(id.attempt == first.attempt && id.evaluation == first.evaluation,
                                "flushes of several evaluations"));
    }
    return fault;
}

static const char *fault_of_range(uint64_t first, uint64_t count, uint64_t end) {
    return unless(first <= end && count <= end - first, "a range beyond the end");
}

/* Elements first… of `size` bytes each, which come with the message. */
static const char *fault_of_elements(uint64_t first, uint64_t count, size_t size,
                                     const struct bulk *bulk) {
    return FIRST_OF(fault_of_range(first, count, ELEMENTS_MAX),
                    unless(bulk->length % size == 0 && bulk->length / size == count,
                           "elements of another number than it says"));
}

static const char *chunk_range_fault(struct chunk_range range) {
    return unless(range.count && range.count <= UINT32_MAX - range.first,
                  "no chunks, or chunks beyond the last that there may be");
}

static const char *chunk_ranges_fault(const struct chunk_ranges *ranges) {
    const char *fault = unless(ranges->length, "a flush of no chunks");
    for (uint32_t i = 0; i < ranges->length && !fault; i++)
        fault = chunk_range_fault(ranges->items[i]);
    return fault;
}

static const char *fault_of_worker(uint8_t role) {
    return unless(role == ROLE_SHARD || role == ROLE_REPLICA, "a role that no worker has");
}

static const char *fault_of_register(uint8_t number) {
    return unless(number < REGISTERS, "there is no such register");
}

static const char *fault_of_exponent(int64_t exponent) {
    return unless(exponent >= INT16_MIN && exponent <= INT16_MAX, "an exponent out of range");
}

static const char *fault_of_flag(uint8_t flag) {
    return unless(flag <= 1, "a flag that is neither 0 nor 1");
}

static const char *fault_of_status(uint32_t status) {
    return unless(status >= STATUS_MIN && status <= STATUS_MAX, "not an exit status");
}

static const char *fault_of_device(const char *device) {
    return unless(device_choice_read(device, &(struct device_choice){0}),
                  "a choice of device that is none");
}

static const char *fault_of_precondition(uint8_t precondition, uint32_t columns, uint8_t scaled,
                                         const struct blob *blob) {
    struct layout layout;
    if (precondition == PRECONDITION_NONE || layout_decode(blob->data, blob->length, &layout))
        return NULL;
    if (precondition >= PRECONDITIONS)
        return "an unknown preconditioner";
    const struct layout_tensor *first = &layout.tensor[0];
    uint64_t order = evaluation_block(&layout, precondition, columns);
    uint64_t most =
        precondition == PRECONDITION_LISTED ? first->rows * first->columns : first->rows;
    if (columns > most || (precondition == PRECONDITION_LEADING && !scaled))
        return "a block of columns that are none, or are not scaled";
    if (precondition == PRECONDITION_FULL && order != layout_parameters(&layout))
        return "a preconditioner that leaves parameters out";
    if (order > layout_parameters(&layout)) /* where the first tensor is itself of biases */
        return "a block of more parameters than there are";
    return unless(columns <= PRECONDITION_PARAMETERS_MAX && order <= PRECONDITION_PARAMETERS_MAX,
                  "more parameters than a preconditioner may have");
}

/* A scaling is of the columns that the first tensor is for. */
static const char *fault_of_coordinates(uint8_t coordinates, const struct blob *layout) {
    struct layout parameters;
    if (!coordinates || layout_decode(layout->data, layout->length, &parameters))
        return fault_of_flag(coordinates);
    return FIRST_OF(
        fault_of_flag(coordinates),
        unless(layout_can_scale(&parameters), "coordinates of parameters that can have none"));
}

/* ---- one function a message ---- */

#define FAULT_IN(name)                                                                             \
    static const char *fault_in_##name(const struct message_##name *body, const struct bulk *bulk)

#define FAULT_IN_BODY(name)                                                                        \
    static const char *fault_in_body_of_##name(const struct message_##name *body);                 \
    FAULT_IN(name) {                                                                               \
        (void)bulk;                                                                                \
        return fault_in_body_of_##name(body);                                                      \
    }                                                                                              \
    static const char *fault_in_body_of_##name(const struct message_##name *body)

/* For a message whose fields are valid whatever they contain. */
#define NOTHING_TO_CHECK(name)                                                                     \
    FAULT_IN_BODY(name) {                                                                          \
        (void)body;                                                                                \
        return NULL;                                                                               \
    }

/* NULL in what is sent: no text. */
static const char *fault_of_local(const char *secret) {
    return unless(!secret || !*secret || local_secret_is_valid(secret),
                  "a secret that no worker has");
}

/* handshake; versions of the protocol are compared by the receiver, who says that they differ */

/* The folder in which a worker looks for the coordinator's lock. NULL in what is sent: no text. */
static const char *fault_of_state(const char *state, const char *holder) {
    if (!state || !*state)
        return unless(!holder || !*holder, "a holder of no lock");
    return FIRST_OF(unless(*state == '/', "a state folder whose path is relative"),
                    unless(holder && *holder, "a lock without a holder"));
}

FAULT_IN_BODY(hello) {
    return FIRST_OF(unless(*body->run, "a run without a name"), fault_of_worker(body->role),
                    unless(body->index < (body->role == ROLE_SHARD ? SHARDS_MAX : REPLICAS_MAX),
                           "an index beyond the last worker"),
                    fault_of_incarnation(body->incarnation),
                    fault_of_state(body->state, body->holder));
}

FAULT_IN_BODY(welcome) {
    return FIRST_OF(fault_of_worker(body->role), fault_of_incarnation(body->incarnation),
                    fault_of_local(body->local), fault_of_flag(body->shares));
}

NOTHING_TO_CHECK(refused)
NOTHING_TO_CHECK(bye)

FAULT_IN_BODY(failed) {
    return FIRST_OF(fault_of_status(body->status), fault_of_flag(body->device));
}

/* liveness */

NOTHING_TO_CHECK(ping)
NOTHING_TO_CHECK(pong)

/* set-up */

/* The shard's range must be within the layout's elements and consist of whole blocks: a block is
 * the unit of the fixed order in which sums are taken. */
static const char *fault_of_part(const struct message_shard_setup *body) {
    struct layout layout;
    const char *fault = layout_decode(body->layout.data, body->layout.length, &layout);
    uint64_t all = layout_parameters(&layout);
    if (!fault)
        fault = fault_of_range(body->first, body->count, all);
    if (fault || !body->count)
        return fault;
    bool to_end = body->first + body->count == all;
    return unless(body->first % BLOCK_ELEMENTS == 0 &&
                      (to_end || body->count % BLOCK_ELEMENTS == 0),
                  "a range that does not end on blocks");
}

/* A matrix of all parameters is on the shard that has them all, a leading block on the first one,
 * to its end. */
static const char *fault_of_block_of_part(const struct message_shard_setup *body) {
    struct layout layout;
    if (!body->count || layout_decode(body->layout.data, body->layout.length, &layout))
        return NULL;
    if (body->hessian.precondition == PRECONDITION_FULL)
        return unless(body->count == layout_parameters(&layout),
                      "a preconditioner of parameters that others have");
    return unless(body->first || body->hessian.precondition != PRECONDITION_LEADING ||
                      body->count >= layout_block_weights(&layout, body->hessian.block_columns),
                  "a block that others have a part of");
}

/* Vectors of rows: they have a window if there are directions. */
static const char *fault_of_rows(const struct section_rows *body) {
    const char *fault =
        FIRST_OF(fault_of_flag(body->tiles),
                 unless(!body->tiles || body->total, "tiles without vectors of rows"),
                 unless(body->held <= body->total, "more rows held out than there are"));
    if (fault)
        return fault;
    if (!body->total)
        return unless(!body->directions && !body->outputs, "directions or outputs, but no rows");
    if (!body->outputs || body->outputs > CLASSES_MAX)
        return "rows without outputs, or too many";
    return FIRST_OF(unless(body->directions <= DIRECTIONS_MAX, "more directions than there may be"),
                    unless(body->total <= ELEMENTS_MAX / body->outputs, "too many rows"),
                    unless(*body->objective || (body->tiles && !body->directions),
                           "an objective without a name"),
                    unless(body->loss.length == LOSS_PARAMETERS_MAX * sizeof(double),
                           "another number of parameters of the loss"),
                    fault_of_flag(body->weighted), fault_of_flag(body->offsets));
}

/* Limits are of columns, in a model whose columns have weights. */
static const char *fault_of_box(const struct section_box *body, const struct blob *layout,
                                const char *device) {
    return FIRST_OF(fault_of_flag(body->used), fault_of_flag(body->limited),
                    unless(!body->limited || !strcmp(device, "cpu"), "limits on a device"),
                    body->limited ? fault_of_coordinates(1, layout) : NULL);
}

static const char *fault_of_scaling(const struct section_scaling *body, const struct blob *layout) {
    return FIRST_OF(fault_of_flag(body->measured), fault_of_coordinates(body->coordinates, layout),
                    fault_of_exponent(body->bias_exponent),
                    fault_of_exponent(body->block_bias_exponent));
}

/* Sums of all rows are finer in each column, or in none; only those of all parameters can be. */
static const char *fault_of_extra_bits(const struct section_hessian *body,
                                       const struct blob *encoded) {
    struct layout layout;
    const struct blob *extra_bits = &body->extra_bits;
    const uint8_t *bits = extra_bits->data;
    if (!extra_bits->length)
        return NULL;
    if (body->precondition != PRECONDITION_FULL)
        return "finer sums than there are";
    const char *fault = layout_decode(encoded->data, encoded->length, &layout);
    if (!fault && extra_bits->length != layout_exponents(&layout))
        fault = "finer sums of another number of columns";
    for (uint32_t i = 0; i < extra_bits->length && !fault; i++)
        fault = unless(bits[i] <= FINER_MAX, "finer sums than there may be");
    return fault;
}

static const char *fault_of_hessian(const struct section_hessian *body, uint8_t coordinates,
                                    const struct blob *layout) {
    return FIRST_OF(
        fault_of_precondition(body->precondition, body->block_columns, coordinates, layout),
        fault_of_extra_bits(body, layout));
}

FAULT_IN_BODY(shard_setup) {
    return FIRST_OF(
        fault_of_attempt(body->attempt), fault_of_part(body), fault_of_rows(&body->rows),
        unless(body->slots <= SLOTS_MAX, "a longer history than there may be"),
        unless(isfinite(body->weight_sum) && body->weight_sum > 0, "no weight"),
        fault_of_flag(body->uniform), fault_of_exponent(body->uniform_exponent),
        fault_of_flag(body->start), fault_of_flag(body->keeps_best), fault_of_flag(body->adagrad),
        fault_of_box(&body->box, &body->layout, body->machine.device),
        fault_of_hessian(&body->hessian, body->scaling.coordinates, &body->layout),
        fault_of_block_of_part(body), fault_of_scaling(&body->scaling, &body->layout),
        fault_of_device(body->machine.device));
}

FAULT_IN(coordinates) {
    const char *fault =
        FIRST_OF(fault_of_attempt(body->attempt),
                 fault_of_elements(body->first, body->count, sizeof(struct column_scaling), bulk));
    const struct column_scaling *columns = bulk->data;
    for (uint64_t i = 0; !fault && i < body->count; i++)
        fault = unless(column_scaling_is_valid(&columns[i]), "coordinates that are none");
    return fault;
}

FAULT_IN(limits) {
    const char *fault =
        FIRST_OF(fault_of_attempt(body->attempt),
                 fault_of_elements(body->first, body->count, sizeof(struct column_limit), bulk));
    const struct column_limit *columns = bulk->data;
    for (uint64_t i = 0; !fault && i < body->count; i++)
        fault = unless(column_limit_is_valid(&columns[i]), "limits that are none");
    return fault;
}

FAULT_IN(squares) {
    const char *fault = FIRST_OF(fault_of_attempt(body->attempt),
                                 fault_of_elements(body->first, body->count, sizeof(double), bulk));
    const double *squares = bulk->data;
    for (uint64_t i = 0; !fault && i < body->count; i++)
        fault = unless(squares[i] >= 0 && squares[i] < INFINITY, "squares that are none");
    return fault;
}

FAULT_IN(factors) {
    return FIRST_OF(
        fault_of_attempt(body->attempt),
        unless(bulk->length && bulk->length % sizeof(double) == 0, "factors that are no numbers"));
}

FAULT_IN(exponents) {
    return FIRST_OF(fault_of_attempt(body->attempt),
                    fault_of_elements(body->first, body->count, sizeof(int16_t), bulk));
}

FAULT_IN(start) {
    return FIRST_OF(fault_of_attempt(body->attempt), unless(body->program, "programs count from 1"),
                    fault_of_register(body->register_),
                    fault_of_elements(body->first, body->count, sizeof(double), bulk));
}

FAULT_IN_BODY(replica_setup) {
    struct layout layout;
    return FIRST_OF(
        fault_of_attempt(body->attempt), unless(*body->set, "a set without a name"),
        unless(*body->objective, "an objective without a name"),
        unless(body->loss.length == LOSS_PARAMETERS_MAX * sizeof(double),
               "another number of parameters of the loss"),
        layout_decode(body->layout.data, body->layout.length, &layout),
        unless(body->shards && body->shards <= SHARDS_MAX, "a number of shards out of range"),
        unless(body->unit >= 0 && body->unit < INFINITY, "a unit that is none"),
        unless(body->l2 >= 0 && body->l2 < INFINITY, "an l2 that is none"),
        unless(body->rows <= ELEMENTS_MAX, "more rows than vectors may have"),
        fault_of_hessian(&body->hessian, body->coordinates, &body->layout),
        fault_of_coordinates(body->coordinates, &body->layout),
        fault_of_device(body->machine.device),
        unless(body->machine.threads <= THREADS_MAX, "more threads than there may be"));
}

FAULT_IN_BODY(shard_at) {
    return FIRST_OF(fault_of_attempt(body->attempt),
                    unless(body->index < SHARDS_MAX, "an index beyond the last shard"),
                    fault_of_incarnation(body->incarnation),
                    fault_of_range(body->first, body->count, ELEMENTS_MAX),
                    unless(*body->address, "a shard without an address"),
                    fault_of_local(body->local));
}

FAULT_IN_BODY(ready) {
    return fault_of_attempt(body->attempt);
}

FAULT_IN_BODY(greet) {
    return FIRST_OF(unless(*body->run, "a run without a name"),
                    fault_of_incarnation(body->incarnation), fault_of_local(body->local));
}

FAULT_IN_BODY(greeted) {
    return FIRST_OF(unless(body->index < SHARDS_MAX, "an index beyond the last shard"),
                    fault_of_incarnation(body->incarnation));
}

/* programs */

FAULT_IN_BODY(program) {
    const struct blob *operations = &body->operations;
    return FIRST_OF(fault_of_attempt(body->attempt), unless(body->number, "programs count from 1"),
                    unless(program_hash(operations->data, operations->length) == body->hash,
                           "a program that does not have the hash it says"),
                    program_fault(operations->data, operations->length));
}

FAULT_IN_BODY(result) {
    return FIRST_OF(fault_of_attempt(body->attempt), unless(body->number, "programs count from 1"));
}

/* evaluations */

/* Not a number is refused as well. */
static const char *fault_of_sampling(const struct message_evaluate *body) {
    return FIRST_OF(unless(body->rate >= 0 && body->rate < INFINITY, "a rate that is no rate"),
                    unless(body->floor > 0 && body->floor <= 1, "a floor that is no chance"));
}

static const char *fault_of_weights(const struct u64_list *weights) {
    if (weights->length > WORKING_SET_MAX)
        return "more weights than may be listed";
    for (uint32_t i = 1; i < weights->length; i++)
        if (weights->items[i] <= weights->items[i - 1])
            return "weights that do not rise";
    return NULL;
}

FAULT_IN_BODY(evaluate) {
    return FIRST_OF(fault_of_evaluation(body->attempt, body->evaluation),
                    bounds_fault(&body->bounds), evaluation_fault(&body->parts),
                    fault_of_sampling(body), fault_of_weights(&body->weights));
}

FAULT_IN_BODY(portion) {
    return FIRST_OF(fault_of_evaluation(body->attempt, body->evaluation),
                    chunk_range_fault((struct chunk_range){body->first, body->count}),
                    unless(!(body->flags & ~(PORTION_SOLO | PORTION_LAST)), "unknown flags"));
}

FAULT_IN_BODY(want) {
    return fault_of_evaluation(body->attempt, body->evaluation);
}

FAULT_IN_BODY(rest) {
    return fault_of_evaluation(body->attempt, body->evaluation);
}

static const char *fault_of_wanted(const struct message_fetch *body, const struct bulk *bulk) {
    if (!body->columns)
        return unless(!bulk->length, "bits of no columns");
    if (body->column > ELEMENTS_MAX || body->columns > ELEMENTS_MAX || !body->width ||
        body->column + body->columns > ELEMENTS_MAX / body->width)
        return "columns beyond the last that there may be";
    if (!bulk->length)
        return NULL; /* the last that came; whether they are those, the shard knows */
    return FIRST_OF(
        unless(bulk->length == wanted_bytes(body->columns), "another number of bits than columns"),
        unless(hash64(bulk->data, bulk->length) == body->hash,
               "bits that do not have the hash they say"));
}

FAULT_IN(fetch) {
    return FIRST_OF(fault_of_evaluation(body->attempt, body->evaluation),
                    unless(body->vector < FETCH_VECTORS, "no vector that is given out"),
                    fault_of_range(body->first, body->count, ELEMENTS_MAX),
                    fault_of_wanted(body, bulk));
}

/* Which of them were asked for, the replica knows. */
FAULT_IN(parameters) {
    return FIRST_OF(
        fault_of_evaluation(body->attempt, body->evaluation),
        unless(body->vector < FETCH_VECTORS, "no vector that is given out"),
        fault_of_range(body->first, body->count, ELEMENTS_MAX),
        unless(bulk->length % sizeof(double) == 0 && bulk->length / sizeof(double) <= body->count,
               "more elements than it says"));
}

/* exactly once */

static const char *fault_of_encoding(const struct message_stage *body, const struct bulk *bulk) {
    switch (body->encoding) {
    case STAGE_NONE:
        return unless(!bulk->length && !body->entries && !body->first,
                      "an empty slice with elements");
    case STAGE_DENSE:
        return unless(body->entries <= ELEMENTS_MAX &&
                          bulk->length == body->entries * sizeof(int64_t),
                      "a dense slice of another length than it says");
    case STAGE_SPARSE:
        return unless(body->entries <= ELEMENTS_MAX &&
                          bulk->length == stage_sparse_bytes(body->entries),
                      "a sparse slice of another length than it says");
    case STAGE_BITMAP:
        return unless(body->entries <= ELEMENTS_MAX && bulk->length % sizeof(uint64_t) == 0 &&
                          bulk->length / sizeof(int64_t) >= body->entries,
                      "a slice by bits of another length than it says");
    default:
        return "a slice in an unknown encoding";
    }
}

FAULT_IN(stage) {
    return FIRST_OF(fault_of_flush(&body->flush), chunk_ranges_fault(&body->portions),
                    fault_of_encoding(body, bulk));
}

FAULT_IN_BODY(staged) {
    return FIRST_OF(fault_of_flush(&body->flush),
                    unless(body->index < SHARDS_MAX, "an index beyond the last shard"),
                    fault_of_incarnation(body->incarnation));
}

FAULT_IN_BODY(flushed) {
    return FIRST_OF(
        fault_of_flush(&body->flush), chunk_ranges_fault(&body->portions),
        maxima_fault(&body->maxima), fault_of_flag(body->exceeded),
        unless(body->incarnations.length <= SHARDS_MAX, "kept by more shards than there may be"));
}

FAULT_IN_BODY(verdict) {
    return FIRST_OF(fault_of_flush(&body->flush), fault_of_flag(body->accepted));
}

FAULT_IN_BODY(fold) {
    return fault_of_flushes(&body->flushes);
}

FAULT_IN_BODY(drop) {
    return fault_of_flushes(&body->flushes);
}

FAULT_IN_BODY(folded) {
    return fault_of_flushes(&body->flushes);
}

/* slices of registers */

FAULT_IN_BODY(read) {
    return FIRST_OF(fault_of_register(body->register_),
                    fault_of_range(body->first, body->count, ELEMENTS_MAX));
}

FAULT_IN(slice) {
    return FIRST_OF(fault_of_register(body->register_),
                    fault_of_elements(body->first, body->count, sizeof(double), bulk));
}

/* durability */

static const char *fault_of_pairs(const struct u64_list *slots, const struct u64_list *serials) {
    bool taken[SLOTS_MAX] = {false};
    if (slots->length != serials->length)
        return "pairs without a slot or a serial number";
    for (uint32_t i = 0; i < slots->length; i++) {
        if (slots->items[i] >= SLOTS_MAX || taken[slots->items[i]])
            return "a slot beyond the last, or named twice";
        taken[slots->items[i]] = true;
    }
    return NULL;
}

FAULT_IN_BODY(checkpoint) {
    return FIRST_OF(fault_of_attempt(body->attempt), fault_of_flag(body->best),
                    fault_of_flag(body->sums), fault_of_pairs(&body->slots, &body->serials),
                    fault_of_pairs(&body->window, &body->window_serials),
                    fault_of_flag(body->margins));
}

FAULT_IN_BODY(checkpointed) {
    return FIRST_OF(fault_of_attempt(body->attempt),
                    body->status ? fault_of_status(body->status) : NULL);
}

FAULT_IN_BODY(restore) {
    return fault_of_attempt(body->attempt);
}

FAULT_IN_BODY(restored) {
    return FIRST_OF(fault_of_attempt(body->attempt),
                    body->status ? fault_of_status(body->status) : NULL);
}

FAULT_IN_BODY(retain) {
    return unless(body->older <= body->newer, "an older step that is newer");
}

FAULT_IN_BODY(read_file) {
    return FIRST_OF(fault_of_attempt(body->attempt),
                    unless(body->bytes && body->bytes <= FILE_PIECE_BYTES,
                           "a piece of no bytes, or of too many"));
}

FAULT_IN(file_bytes) {
    const bool fits = body->offset <= body->length && bulk->length <= FILE_PIECE_BYTES &&
                      bulk->length <= body->length - body->offset;
    return FIRST_OF(fault_of_attempt(body->attempt),
                    body->status ? fault_of_status(body->status) : NULL,
                    unless(fits || body->status, "a piece beyond the end of its file"));
}

NOTHING_TO_CHECK(needed)

/* Attempt 0: this shard was never set up. */
FAULT_IN_BODY(holding) {
    return unless(body->folded.length % FLUSH_ID_BYTES == 0 &&
                      body->staged.length % FLUSH_ID_BYTES == 0,
                  "a list that ends within the id of a flush");
}

/* rows by message */

FAULT_IN_BODY(read_set) {
    return FIRST_OF(unless(*body->fingerprint, "a set without a fingerprint"),
                    unless(body->bytes && body->bytes <= SET_PIECE_BYTES_MAX,
                           "no bytes of a set, or too many at once"),
                    unless(body->offset <= UINT64_MAX / 2, "bytes beyond the end of any file"));
}

/* Which bytes were asked for, the replica knows. */
FAULT_IN(set_bytes) {
    return FIRST_OF(unless(*body->fingerprint, "a set without a fingerprint"),
                    unless(bulk->length <= SET_PIECE_BYTES_MAX, "too many bytes of a set at once"),
                    unless(body->offset <= UINT64_MAX / 2, "bytes beyond the end of any file"),
                    unless(!*body->reason == (bulk->length > 0),
                           "bytes and a reason why there are none, or neither"));
}

/* ---- the table ---- */

const char *message_fault(const struct message *message) {
    switch (message->type) {
#define MESSAGE(NAME, name, number, limit, bulks, text, fields)                                    \
    case MESSAGE_##NAME:                                                                           \
        return fault_in_##name(&message->name, &message->bulk);
#include "wire/messages.def"
    default:
        return "unknown message type";
    }
}
