#include "coordinator/driver.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "numeric/fixed.h"
#include "objective/family.h"
#include "wire/program.h"

/* A trial may exceed the maxima at x by this factor before it has to be redone. Room costs no more
 * than bits: the gradient of a network grows faster, and has bits to spare, as it is rounded once a
 * chunk and not once a row. So do minibatches, which differ, and need fewer bits. */
#define LINEAR_ROOM 8
#define NETWORK_ROOM 1024

/* ---- life ---- */

bool coordinator_has_upper(const struct coordinator_settings *settings) {
    return settings->data->strip_columns && layout_upper(&settings->layout).count;
}

static void init_optimizer(struct driver *d, const struct coordinator_settings *settings) {
    const struct set_info *data = settings->data;
    struct optimizer_data examples = {
        .chunks = set_training_chunks(data),
        .holdout_chunks = data->holdout_chunks,
        .tiles = set_tiles(data),
        .upper = coordinator_has_upper(settings),
        .block_rows = data->block_rows,
        .rows = data->rows,
        .weight_sum = data->weight_sum,
        .holdout_weight_sum = data->holdout_weight_sum,
        .classes = objective_has_classes(objective_of(settings->shape.kind)),
    };
    assert(examples.chunks > 0 && examples.chunks <= data->chunks);
    optimizer_init(&d->optimizer, &settings->downpour, &settings->optimizer, &examples);
}

struct driver *driver_new(const struct coordinator_settings *settings) {
    struct driver *d = memory_new(1, sizeof *d);
    init_optimizer(d, settings);
    round_init(&d->round, settings->shards);
    assert(!d->round.running && !d->finishing);
    return d;
}

void driver_free(struct driver *d) {
    bytes_release(&d->program);
    round_release(&d->round);
    free(d);
}

void driver_reset(struct coordinator *c) {
    init_optimizer(c->driver, &c->settings);
    c->driver->maxima_at_x = (struct maxima){0};
    assert(optimizer_reason(&c->driver->optimizer) == REASON_NONE);
}

void driver_forget(struct coordinator *c) {
    struct driver *d = c->driver;
    d->round.running = false;
    d->round.number = 0;
    d->finishing = false;
    bytes_clear(&d->program);
    assert(driver_next_program(c) == 1);
}

uint64_t driver_next_program(const struct coordinator *c) {
    return c->driver->round.number + 1;
}

/* The tiles of the strips are followed by those of the upper layers. */
uint32_t driver_chunks(const struct coordinator *c) {
    const struct set_info *data = c->settings.data;
    assert(set_training_chunks(data) <= data->chunks);
    if (data->strip_columns)
        return set_tiles(data) + (coordinator_has_upper(&c->settings) ? data->chunks : 0);
    return optimizer_uses_holdout(&c->driver->optimizer) ? data->chunks : set_training_chunks(data);
}

/* ---- bounds ----
 *
 * They depend on completed evaluations and the data alone: so they are the same however the run
 * went, and so are the bits of the sums. */

/* The least bounds that hold for `room` times these maxima, which are finite. */
static struct bounds bounds_over(const struct coordinator *c, const struct maxima *maxima,
                                 double room) {
    struct bounds bounds = {.count = layout_bounds(&c->settings.layout)};
    assert(room >= 1 && bounds.count > 0);
    for (uint32_t i = 0; i < bounds.count; i++)
        bounds.exponent[i] = fixed_derivative_exponent(room * maxima->value[i]);
    return bounds;
}

/* The bounds of derivatives at the next point. Before the first evaluation they follow from the
 * data alone. */
static struct bounds next_bounds(const struct coordinator *c) {
    const struct objective_shape *shape = &c->settings.shape;
    const struct set_info *data = c->settings.data;
    bool linear = !family_of(shape)->rounds_chunks;
    assert(data->weight_sum > 0);
    bool fixed = linear && !objective_bound_adapts(shape, data->label_max_abs);
    if (fixed || !c->driver->maxima_at_x.count)
        return objective_first_bounds(shape, data->label_max_abs, data->weight_sum,
                                      set_training_chunks(data));
    bool narrow = linear && !optimizer_roams(&c->driver->optimizer);
    return bounds_over(c, &c->driver->maxima_at_x, narrow ? LINEAR_ROOM : NETWORK_ROOM);
}

/* The bound of products of scores is that at x, whose derivatives are known; if the evaluation is
 * repeated, it is what was found. In second derivatives a sampled row weighs at most 1/floor. One
 * bit more is for the rounding of the products. */
static struct bounds seconds_bounds(const struct coordinator *c,
                                    const struct optimizer_request *request) {
    const double largest = maxima_largest(&c->driver->maxima_at_x);
    const double floor = request->sampling.floor;
    if (kind_row(request->parts.items[0].kind)->hessian == HESSIAN_SCORES) {
        double found = maxima_largest(&c->dispatch.evaluation.maxima);
        double bound = request->again ? found : largest * largest;
        return bounds_of_one(fixed_derivative_exponent(bound) + 1);
    }
    assert(floor > 0 && floor <= 1);
    double bound =
        objective_second_bound(&c->settings.shape, largest, c->settings.data->label_max_abs);
    return bounds_of_one(fixed_derivative_exponent(bound / floor) + 1);
}

/* ---- requests ---- */

/* The program is journalled before it is sent, if programs are journalled now. A program that loads
 * or reads pairs is not: it needs what was sent beside it. Nor are brief ones, which are cheaper to
 * make again. */
void driver_send_program(struct coordinator *c, struct output *out) {
    struct driver *d = c->driver;
    assert(d->program.length > 0);
    round_begin(&d->round, &d->program);
    if (!mutant(PROGRAM_BEFORE_FOLDS))
        dispatch_send_folds(&c->dispatch, out);
    bool whole = !d->optimizer.loading && !optimizer_is_brief(&d->optimizer);
    recovery_journal_program(c, whole && c->phase == PHASE_RUNNING, out);
    struct message message = {.type = MESSAGE_PROGRAM};
    message.program = (struct message_program){
        .attempt = c->roster.attempt,
        .number = d->round.number,
        .hash = d->round.hash,
        .operations = {.data = d->program.data, .length = (uint32_t)d->program.length},
    };
    roster_send_shards(&c->roster, message, out);
    assert(d->round.running && d->round.number > 0);
}

/* Bounds of a request that tells how large what replicas get is. */
static struct bounds told_bounds(const struct coordinator *c,
                                 const struct optimizer_request *request) {
    bool derivatives = parts_take_rows(&request->parts);
    struct maxima largest = {.count = layout_bounds(&c->settings.layout)};
    for (uint32_t i = 0; i < largest.count; i++)
        largest.value[i] = derivatives ? objective_bound_of(&c->settings.shape, request->largest)
                                       : request->largest;
    return bounds_over(c, &largest, 1);
}

static void evaluate(struct coordinator *c, const struct optimizer_request *request, int64_t now_ns,
                     struct output *out) {
    assert(request->want == OPTIMIZER_EVALUATE || request->want == OPTIMIZER_CURVATURE);
    bool curvature = request->want == OPTIMIZER_CURVATURE;
    struct evaluation_request evaluation = {
        .parts = request->parts,
        .sampling = curvature ? request->sampling : (struct row_sampling){.floor = 1},
        .minibatch = optimizer_is_brief(&c->driver->optimizer)};
    evaluation.weight_count = request->weight_count;
    memcpy(evaluation.weights, request->weights,
           request->weight_count * sizeof *evaluation.weights);
    evaluation.bounds = curvature          ? seconds_bounds(c, request)
                        : request->bounded ? told_bounds(c, request)
                        : request->again   ? bounds_over(c, &c->dispatch.evaluation.maxima, 1)
                                           : next_bounds(c);
    assert(evaluation.bounds.count > 0);
    uint32_t number = dispatch_prepare(&c->dispatch, &evaluation);
    program_add(&c->driver->program, &(struct operation){.code = OPERATION_BEGIN,
                                                         .evaluation = number,
                                                         .sums = evaluation_sums(&evaluation.parts),
                                                         .bounds = evaluation.bounds,
                                                         .rows = request->rows});
    driver_send_program(c, out);
    dispatch_begin(&c->dispatch, now_ns, out);
}

/* START puts s into t and y into h; the program forms the pair from them and measures its products.
 * The next pair overwrites t and h, so it is sent when the program has run. */
static void load_pair(struct coordinator *c, uint32_t number, struct output *out) {
    const double *pair = c->settings.start_pairs + 2 * number * c->parameters;
    assert(c->settings.start_pairs && !c->recovery.restoring);
    assert(number < c->settings.start_pair_count);
    for (uint32_t i = 0; i < c->settings.shards; i++) {
        setup_send_vector(c, i, REGISTER_T, pair, out);
        setup_send_vector(c, i, REGISTER_H, pair + c->parameters, out);
    }
    driver_send_program(c, out);
}

/* ---- records of a request ---- */

static void record_evaluation(const struct coordinator *c, const struct optimizer_request *request,
                              struct output *out) {
    assert(request->report.evaluation.outcome && c->roster.attempt > 0);
    output_add(out, RECORD_EVALUATION)->evaluation = (struct store_evaluation){
        .evaluation = c->dispatch.evaluations,
        .attempt = c->roster.attempt,
        .step = request->report.evaluation.step,
        .step_length = request->report.evaluation.step_length,
        .loss = request->report.evaluation.loss,
        .slope = request->report.evaluation.slope,
        .examples = c->settings.data->rows,
        .seconds = request->evaluation_seconds,
        .outcome = request->report.evaluation.outcome,
    };
}

/* Each safeguard is an event, and all of them are the note of the step. The note is made beside the
 * record, as adding events may move those before them. */
static void record_step(const struct optimizer_report *report, struct output *out) {
    assert(report->step.made);
    char note[sizeof((struct record *)0)->note] = "";
    size_t length = 0;
    for (unsigned i = 0; i < SAFEGUARDS; i++) {
        if (!(report->step.safeguards >> i & 1))
            continue;
        output_event(out, "safeguard", "step %llu: %s", (unsigned long long)report->step.step,
                     safeguard_text(i));
        if (length < sizeof note)
            length += (size_t)snprintf(note + length, sizeof note - length, "%s%s",
                                       length ? "; " : "", safeguard_text(i));
    }
    struct record *record = output_add(out, RECORD_STEP);
    memcpy(record->note, note, sizeof note);
    record->step = (struct store_step){
        .step = report->step.step,
        .loss = report->step.loss,
        .gradient_max = report->step.gradient_max,
        .step_length = report->step.step_length,
        .trials = report->step.trials,
        .history = report->step.pairs,
        .holdout_loss = report->step.holdout.loss,
        .holdout_accuracy = report->step.holdout.accuracy,
    };
}

static void record(const struct coordinator *c, const struct optimizer_request *request,
                   struct output *out) {
    const struct optimizer_report *report = &request->report;
    if (report->event)
        output_event(out, report->event, "%s", report->event_text);
    if (report->evaluation.outcome)
        record_evaluation(c, request, out);
    if (report->step.made)
        record_step(report, out);
    if (report->epoch.through)
        output_add(out, RECORD_EPOCH)->epoch = (struct store_epoch){
            .epoch = report->epoch.epoch,
            .minibatches = report->epoch.minibatches,
            .rows = report->epoch.rows,
            .loss = report->epoch.loss,
            .holdout_loss = report->epoch.holdout.loss,
            .holdout_accuracy = report->epoch.holdout.accuracy,
            .seconds = report->epoch.seconds,
        };
}

/* ---- calls of the optimizer ---- */

static struct optimizer_request request_at(const struct coordinator *c, int64_t now_ns,
                                           struct bytes *program) {
    int64_t began_ns = c->dispatch.evaluation.started_ns;
    assert(now_ns >= began_ns);
    return (struct optimizer_request){.now_ns = now_ns,
                                      .evaluation_seconds = (double)(now_ns - began_ns) / 1e9,
                                      .program = program};
}

/* Does what the optimizer wants, with the program that it left. That program puts an accepted point
 * into x and g, so it comes before CHECKPOINT. */
static void follow(struct coordinator *c, const struct optimizer_request *request, int64_t now_ns,
                   struct output *out) {
    struct driver *d = c->driver;
    assert(!d->finishing && c->phase == PHASE_RUNNING);
    record(c, request, out);
    if (request->accepted)
        d->maxima_at_x = c->dispatch.evaluation.maxima;
    if (request->want != OPTIMIZER_LOAD)
        d->want = request->want;
    switch (request->want) {
    case OPTIMIZER_EVALUATE:
    case OPTIMIZER_CURVATURE:
        evaluate(c, request, now_ns, out);
        break;
    case OPTIMIZER_MEASURE:
        driver_send_program(c, out);
        break;
    case OPTIMIZER_LOAD:
        load_pair(c, request->pair, out);
        break;
    case OPTIMIZER_FINISH:
        d->finishing = true;
        if (d->program.length)
            driver_send_program(c, out);
        else
            recovery_final_checkpoint(c, now_ns, out);
        break;
    case OPTIMIZER_HAND_OVER:
        assert(false && "a request that is for the table of optimizers");
    }
    assert(!request->accepted || d->maxima_at_x.count <= TENSORS_MAX);
    if (request->accepted && !d->finishing)
        recovery_checkpoint_if_due(c, now_ns, out);
}

/* A run that is restored has its pairs from the checkpoint: none is loaded. */
void driver_start(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct driver *d = c->driver;
    struct optimizer_request request = request_at(c, now_ns, &d->program);
    assert(!d->round.running && d->round.number == 0);
    bytes_clear(&d->program);
    optimizer_begin(&d->optimizer, c->recovery.restoring ? 0 : c->settings.start_pair_count,
                    &request);
    follow(c, &request, now_ns, out);
}

void driver_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct driver *d = c->driver;
    const struct current_evaluation *evaluation = &c->dispatch.evaluation;
    double totals[EVALUATION_TOTALS_MAX];
    assert(!evaluation->running && evaluation->totals.count <= EVALUATION_TOTALS_MAX);
    for (uint32_t i = 0; i < evaluation->totals.count; i++)
        totals[i] = exact_value(&evaluation->totals.sum[i]);
    assert(evaluation->totals.count == evaluation_totals(&evaluation->request.parts));
    struct evaluation_found found = {.parts = &evaluation->request.parts,
                                     .totals = totals,
                                     .exceeded = evaluation->exceeded,
                                     .can_hold = maxima_largest(&evaluation->maxima) <=
                                                 fixed_power(FIXED_DERIVATIVE_MAX)};
    struct optimizer_request request = request_at(c, now_ns, &d->program);
    bytes_clear(&d->program);
    program_add(&d->program, &(struct operation){.code = OPERATION_CHECK,
                                                 .hash = c->dispatch.decisions.fold_hash,
                                                 .folds = c->dispatch.decisions.folds});
    optimizer_evaluated(&d->optimizer, &found, &request);
    follow(c, &request, now_ns, out);
}

static void measured(struct coordinator *c, int64_t now_ns, struct output *out) {
    static _Thread_local double scalars[SCALARS_MAX];
    struct driver *d = c->driver;
    struct optimizer_request request = request_at(c, now_ns, &d->program);
    assert(d->round.scalars > 0 && d->round.scalars <= SCALARS_MAX);
    round_scalars(&d->round, scalars);
    request.listed = d->round.listed;
    request.listed_count = d->round.listed_count;
    bytes_clear(&d->program);
    optimizer_measured(&d->optimizer, scalars, &request);
    follow(c, &request, now_ns, out);
}

bool driver_stop(struct coordinator *c, enum reason reason, int64_t now_ns, struct output *out) {
    struct driver *d = c->driver;
    struct bytes program;
    assert(!d->finishing && reason != REASON_NONE);
    bytes_init(&program);
    struct optimizer_request request = request_at(c, now_ns, &program);
    enum optimizer_end end = optimizer_end(&d->optimizer, reason, &request);
    if (end == END_REQUESTED) {
        dispatch_give_up(&c->dispatch);
        bytes_clear(&d->program);
        bytes_append(&d->program, program.data, program.length);
        follow(c, &request, now_ns, out);
    }
    bytes_release(&program);
    return end != END_TOO_EARLY;
}

int on_result(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out) {
    const struct message_result *result = &message->result;
    struct driver *d = c->driver;
    assert(link < c->settings.shards);
    if (result->attempt != c->roster.attempt) {
        c->stale++;
        return 0;
    }
    switch (round_take(&d->round, link, result->number, &result->scalars)) {
    case ROUND_IGNORED:
        c->stale++;
        return 0;
    case ROUND_BROKEN:
        return error_set(ERROR_INTERNAL,
                         "shard %u answered program %llu with scalars that do not "
                         "fit it",
                         link, (unsigned long long)result->number);
    case ROUND_WAIT:
        return 0;
    case ROUND_DONE:
        break;
    }
    if (c->phase == PHASE_READING)
        driver_ask_slice(c, out);
    else if (d->finishing)
        recovery_final_checkpoint(c, now_ns, out);
    else if (d->round.scalars)
        measured(c, now_ns, out);
    return 0;
}

/* ---- in the machine's record ---- */

static void serialize_program(struct codec *codec, struct bytes *program) {
    uint32_t length = (uint32_t)program->length;
    assert(program->length <= UINT32_MAX);
    serialize_u32(codec, &length);
    if (codec->out) {
        bytes_append(codec->out, program->data, length);
        return;
    }
    const void *start = cursor_take(&codec->in, length);
    bytes_clear(program);
    if (start)
        bytes_append(program, start, length);
}

void driver_serialize(struct codec *codec, struct coordinator *c) {
    struct driver *d = c->driver;
    uint32_t want = d->want;
    assert(!codec->out || want <= OPTIMIZER_FINISH);
    optimizer_serialize(codec, &d->optimizer);
    dispatch_serialize(codec, &c->dispatch);
    if (!mutant(BOUND_FORGOTTEN))
        serialize_maxima(codec, &d->maxima_at_x);
    serialize_u64(codec, &d->round.number);
    serialize_u32(codec, &want);
    serialize_bool(codec, &d->finishing);
    serialize_program(codec, &d->program);
    serialize_fails_if(codec, want > OPTIMIZER_FINISH);
    d->want = want;
}

/* ---- going on from a journal ---- */

bool driver_has_program(const struct coordinator *c) {
    return c->driver->program.length > 0;
}

/* Whether a shard that has not run the program has folded what its CHECK asks for. The former
 * coordinator may have sent it after a FOLD that never came there. */
static bool check_fits(const struct coordinator *c, const struct message_holding *holding) {
    const struct bytes *program = &c->driver->program;
    assert(program->length > 0);
    struct cursor operations = cursor_over(program->data, program->length);
    struct cursor ids = cursor_over(holding->folded.data, holding->folded.length);
    uint64_t folds = holding->folded.length / FLUSH_ID_BYTES, hash = 0;
    struct operation operation;
    while (cursor_left(&ids)) {
        struct flush_id id = flush_id_decode(&ids);
        hash += flush_id_hash(&id);
    }
    while (program_next(&operations, &operation))
        if (operation.code == OPERATION_CHECK &&
            (operation.folds != folds || operation.hash != hash))
            return false;
    return true;
}

/* Whether the program that was sent last began an evaluation. */
static bool begins_evaluation(const struct driver *d) {
    assert(d->want <= OPTIMIZER_FINISH);
    return d->want == OPTIMIZER_EVALUATE || d->want == OPTIMIZER_CURVATURE;
}

bool driver_fits(const struct coordinator *c, const struct message_holding *holding) {
    const struct driver *d = c->driver;
    assert(c->phase == PHASE_REJOINING);
    if (holding->number + 1 == d->round.number) /* not run yet: nothing can have been folded */
        return c->recovery.rejoined.length == 0 && check_fits(c, holding);
    bool evaluating = begins_evaluation(d);
    return holding->number == d->round.number &&
           holding->hash == program_hash(d->program.data, d->program.length) &&
           (!evaluating || (holding->evaluation == c->dispatch.evaluation.number &&
                            dispatch_fits(&c->recovery.rejoined, holding)));
}

/* The journalled program is sent again under its number, as the former coordinator may have died
 * before it sent it. A shard that has run it answers from memory. */
void driver_rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    assert(driver_has_program(c) && !c->driver->round.running);
    c->driver->round.number--;
    driver_send_program(c, out);
    if (begins_evaluation(c->driver))
        dispatch_rejoin(&c->dispatch, &c->recovery.rejoined, now_ns, out);
}
