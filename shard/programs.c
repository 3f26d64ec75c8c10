#include "shard/programs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "shard/covariance.h"
#include "shard/factor.h"
#include "shard/listed.h"
#include "shard/pass_plan.h"
#include "shard/rows_measure.h"
#include "shard/sparse_step.h"
#include "shard/state.h"

/* The last one of a code, or NULL. */
static const struct operation *find_operation(const struct operation_list *list,
                                              enum operation_code code) {
    for (size_t i = list->count; i--;)
        if (list->items[i].code == code)
            return &list->items[i];
    return NULL;
}

/* ---- running ---- */

/* A program that is being run. */
struct program_run {
    const struct operation_list *list;
    struct registers *registers;
    const struct bounds *bounds;
    struct pass_plan pass; /* the one at hand */
    struct yield *yields;
    size_t yield_count;
    struct bytes listed; /* what LIST has listed, in order */
    double hidden;       /* of the last PRECONDITION, where the program asks for it */
};

static void yields_encode(const struct operation_list *list, const struct yield *yields,
                          struct bytes *scalars) {
    for (size_t i = 0; i < list->count; i++) {
        const struct operation *operation = &list->items[i];
        for (uint32_t n = operation_scalars(operation); n; n--, yields++) {
            if (operation_yields_max(operation))
                bytes_put_f64(scalars, yields->max);
            else
                exact_encode(&yields->sum, scalars);
        }
    }
}

/* A factor is made on the host, of a triangle of few sums. Its yield tells what was added. */
static int make_factor(const struct program_run *run, const struct operation *operation,
                       struct yield *yield) {
    struct registers *registers = run->registers;
    size_t sums = registers_sums(registers, SUMS_TRIANGLE);
    int code = registers->backend->pull_sum ? registers->backend->pull_sum(registers, sums) : 0;
    if (code)
        return code;
    failpoint(FAILPOINT_factor_begin);
    const struct factor_terms terms = {.lambda = operation->alpha,
                                       .beta = operation->beta,
                                       .gamma = operation->gamma,
                                       .serial = operation->serial};
    struct factor *factor = factor_make(registers, run->bounds->exponent[0], &terms, &yield->max);
    if (mutant(DIAGONAL_KEPT) && factor && registers->factor)
        memcpy(factor->elements, registers->factor->elements, 2 * sizeof(double));
    registers_set_factor(registers, factor);
    failpoint(FAILPOINT_factor_done);
    return 0;
}

static int make_factors(const struct program_run *run) {
    struct yield *yield = run->yields;
    int code = 0;
    for (size_t i = 0; i < run->list->count && !code; i++) {
        const struct operation *operation = &run->list->items[i];
        if (operation->code == OPERATION_FACTOR)
            code = make_factor(run, operation, yield);
        yield += operation_scalars(operation);
    }
    return code;
}

/* It takes a solve with the factor, which most programs have no use for. */
static void note_hidden(struct program_run *run, const double *applied) {
    if (find_operation(run->list, OPERATION_HIDDEN))
        run->hidden = factor_hidden_gap(run->registers, applied);
}

/* On the host, between two passes. A factor of all parameters is of the Hessian by weights, so what
 * is scaled is scaled back for it. */
static int apply_factor(struct program_run *run, const struct operation *operation) {
    struct registers *registers = run->registers;
    assert(registers->factor);
    double *a = registers->vector[operation->a].elements;
    const double *b = registers->vector[operation->b].elements;
    int code = registers_pull(registers, operation->b, 0, registers->count);
    if (code)
        return code;
    if (registers->precondition == PRECONDITION_LEADING) {
        factor_apply_leading(registers->factor, &registers->scaling, a, b);
    } else if (!registers->scaling.used || !registers->count) {
        factor_apply(registers->factor, a, b);
        note_hidden(run, a);
    } else {
        memcpy(a, b, registers->count * sizeof *a);
        scaling_gradient_from_scaled(&registers->scaling, a);
        factor_apply(registers->factor, a, a);
        note_hidden(run, a);
        scaling_step_to_scaled(&registers->scaling, a);
    }
    return registers_push(registers, operation->a, 0, registers->count);
}

static int run_pass(struct program_run *run) {
    struct registers *registers = run->registers;
    int code = registers->backend->run_pass(registers, &run->pass, run->yields);
    pass_plan_clear(&run->pass);
    return code;
}

/* A pass ends at PRECONDITION, which needs all blocks of what it is applied to. */
static int run_passes(struct program_run *run) {
    uint32_t yield = 0;
    int code = 0;
    for (size_t i = 0; i < run->list->count && !code; i++) {
        const struct operation *operation = &run->list->items[i];
        pass_plan_add(&run->pass, run->registers, run->bounds, operation, yield);
        if (operation->code == OPERATION_HIDDEN)
            exact_add(&run->yields[yield].sum, run->hidden);
        yield += operation_scalars(operation);
        if (operation->code != OPERATION_PRECONDITION)
            continue;
        code = run_pass(run);
        if (!code)
            code = apply_factor(run, operation);
    }
    assert(code || yield == run->yield_count);
    return code ? code : run_pass(run);
}

/* Before the first pass, as every element of a scaled gradient needs that by the biases. */
static void read_biases(const struct program_run *run) {
    for (size_t i = 0; i < run->list->count; i++) {
        const struct operation *operation = &run->list->items[i];
        if (operation->code == OPERATION_GRADIENT && operation->alpha > 0) {
            scaling_read_biases(&run->registers->scaling, run->bounds, operation->alpha);
            return;
        }
    }
}

int operation_list_run(const struct operation_list *list, struct registers *registers,
                       const struct bounds *bounds, struct bytes *scalars) {
    const struct shard_backend *backend = registers->backend;
    assert(backend && registers_complete(registers));
    struct program_run run = {.list = list, .registers = registers, .bounds = bounds};
    for (size_t i = 0; i < list->count; i++)
        run.yield_count += operation_scalars(&list->items[i]);
    run.yields = memory_new(run.yield_count, sizeof *run.yields);
    for (size_t i = 0; i < run.yield_count; i++)
        exact_init(&run.yields[i].sum);
    read_biases(&run);
    const bool sparse = sparse_step_fits(registers, list);
    if (!sparse)
        registers_settle(registers);
    int code = backend->begin ? backend->begin(registers, run.yield_count) : 0;
    if (!code)
        code = make_factors(&run);
    if (!code)
        code = rows_run(list, registers, bounds, run.yields);
    if (!code)
        code = covariance_run(list, registers, bounds, run.yields);
    if (!code)
        code = listed_run(list, registers, bounds, run.yields, &run.listed);
    if (!code && sparse)
        sparse_step_run(registers, bounds, list);
    else if (!code)
        code = run_passes(&run);
    sparse_step_note(registers, list, sparse);
    if (!code && backend->end)
        code = backend->end(registers, run.yields, run.yield_count);
    if (!code)
        yields_encode(list, run.yields, scalars);
    if (!code && run.listed.length)
        bytes_append(scalars, run.listed.data, run.listed.length);
    bytes_release(&run.listed);
    pass_plan_release(&run.pass);
    free(run.yields);
    return code;
}

/* ---- checks, before anything is changed ---- */

/* 0: run it; 1: it is the last one again, whose scalars are kept; else an error. The next
 * coordinator sends the journalled program again, because it cannot know whether the shard has run
 * it. */
static int check_number(const struct shard *shard, const struct message_program *program) {
    unsigned long long number = program->number;
    if (!shard->ready)
        return error_set(ERROR_INTERNAL, "program %llu came before the set-up", number);
    if (number == shard->last.number + 1)
        return 0;
    if (mutant(PROGRAM_TWICE) && number == shard->last.number)
        return 0;
    if (mutant(ADVANCED_TWICE) && number == shard->last.number && shard->gives_rows)
        return 0;
    if (number != shard->last.number || !number)
        return error_set(ERROR_INTERNAL, "program %llu came after program %llu", number,
                         (unsigned long long)shard->last.number);
    if (program->hash != shard->last.hash)
        return error_set(ERROR_INTERNAL, "program %llu came again with other content", number);
    return 1;
}

static int check_registers(const struct registers *registers, const struct operation *o) {
    const uint8_t named[] = {o->a, o->b, o->c, o->d, o->e, o->f};
    for (size_t k = 0; k < sizeof named; k++)
        if (!registers_have(registers, named[k]))
            return error_set(ERROR_INTERNAL,
                             "a program names register %u, which this shard was not set up with",
                             named[k]);
    if (o->scaled && !registers->adagrad)
        return error_set(ERROR_INTERNAL,
                         "a program scales by Adagrad's sums, which this shard has not");
    return 0;
}

/* Sums are read under the bounds that they were made under: as many as the parameters have. */
static int check_begin(const struct registers *registers, const struct operation *begin) {
    bool triangle = begin->sums == SUMS_TRIANGLE;
    if ((begin->sums == SUMS_ROWS || begin->rows) && !registers->rows.total)
        return error_set(ERROR_INTERNAL, "a program begins an evaluation of vectors of rows, which "
                                         "this shard was not set up with");
    uint32_t bounds = triangle ? 1 : layout_bounds(&registers->layout);
    if (triangle && !registers->precondition)
        return error_set(ERROR_INTERNAL, "a program begins an evaluation of second derivatives, "
                                         "but this shard has no room for them");
    if (begin->bounds.count != bounds)
        return error_set(ERROR_INTERNAL,
                         "a program begins an evaluation with %u bounds, not the %u of these "
                         "parameters",
                         begin->bounds.count, bounds);
    return 0;
}

/* Or what they are made of. */
static bool measures_losses(const struct operation *operation) {
    return operation->code == OPERATION_ROWS_TAKE ? operation->vector == ROWS_LABELS
                                                  : operation->code != OPERATION_ROWS_AT;
}

static int check_rows(const struct shard *shard, const struct operation *operation) {
    const struct row_vectors *rows = &shard->registers.rows;
    bool takes = operation->code == OPERATION_ROWS_TAKE;
    if (!rows->total)
        return error_set(ERROR_INTERNAL,
                         "a program works on vectors of rows, which this shard has not");
    if (takes && shard->sums != SUMS_ROWS)
        return error_set(ERROR_INTERNAL,
                         "a program takes a vector of rows of an evaluation that adds up none");
    if (!rows->objective && measures_losses(operation))
        return error_set(ERROR_INTERNAL, "a program measures losses of rows, but this shard was "
                                         "told of no objective");
    if (takes && operation->vector == ROWS_WEIGHTS && !rows->weights)
        return error_set(ERROR_INTERNAL, "a program takes weights of rows, but this shard was told "
                                         "that there are none");
    if (takes && operation->vector == ROWS_OFFSETS && !rows->offsets)
        return error_set(ERROR_INTERNAL, "a program takes offsets of rows, but this shard was told "
                                         "that there are none");
    if (takes && operation->vector == ROWS_SIZES && !rows->sizes)
        return error_set(ERROR_INTERNAL,
                         "a program takes sizes of rows, but this shard was not set "
                         "up for tiles");
    bool curves = operation->code == OPERATION_ROWS_SECOND ||
                  operation->code == OPERATION_ROWS_HESSIAN_PRODUCT;
    if (curves && !rows_have_second(rows))
        return error_set(ERROR_INTERNAL, "a program measures second derivatives of a loss that has "
                                         "none");
    return 0;
}

/* Errors are of all parameters, which are here then, or none. */
static int check_covariance(const struct shard *shard, const struct operation_list *list,
                            const struct operation *operation) {
    const struct registers *registers = &shard->registers;
    if (shard->sums != SUMS_TRIANGLE || registers->precondition != PRECONDITION_FULL)
        return error_set(ERROR_INTERNAL, "a program takes errors of estimates from an evaluation "
                                         "that adds up no second derivatives by all parameters");
    if (operation->code == OPERATION_SANDWICH && registers_factor_order(registers) &&
        !registers->covariance && !find_operation(list, OPERATION_COVARIANCE))
        return error_set(ERROR_INTERNAL, "a program takes robust errors of estimates, but this "
                                         "shard has no inverse of second derivatives");
    return 0;
}

/* A list with more parameters than the triangle has rows is of other sums. */
static int check_listed(const struct shard *shard, const struct operation *operation) {
    const struct registers *registers = &shard->registers;
    struct sums_sizes sizes = evaluation_sums_sizes(&registers->layout, registers->precondition,
                                                    registers->block_columns);
    bool solves = operation->code == OPERATION_SOLVE;
    if (registers->precondition != PRECONDITION_LISTED)
        return error_set(ERROR_INTERNAL,
                         "a program lists parameters, which this shard was not set up for");
    if (solves && (shard->sums != SUMS_TRIANGLE || operation->listed > sizes.order))
        return error_set(ERROR_INTERNAL, "a program solves for a step over parameters whose second "
                                         "derivatives are not here");
    if (solves && !listed_biases_fit(operation, &registers->layout))
        return error_set(ERROR_INTERNAL, "a program solves for a step over some of the biases");
    return 0;
}

/* EXCESS alone is of no limits. */
static int check_limits(const struct registers *registers, const struct operation *operation) {
    bool without = operation->code == OPERATION_EXCESS;
    if (registers->limits.used != without)
        return 0;
    return error_set(ERROR_INTERNAL, "a program is for shards %s limits of columns",
                     without ? "without" : "with");
}

static int check_squares(const struct registers *registers) {
    if (registers->scaling.square)
        return 0;
    return error_set(ERROR_INTERNAL,
                     "a program needs the curvature of columns, which this shard was "
                     "not told");
}

static int check_factor(const struct registers *registers, const struct operation *operation) {
    uint64_t serial = registers_factor_serial(registers);
    if (operation->serial == serial || (serial && mutant(FACTOR_KEPT)))
        return 0;
    return error_set(ERROR_INTERNAL,
                     "a program applies preconditioner %llu, but this shard has %llu",
                     (unsigned long long)operation->serial, (unsigned long long)serial);
}

/* A gradient is made of sums over the parameters, a preconditioner of sums of a triangle. The
 * preconditioner that is applied must be the one that the coordinator believes to be here. */
static int check_operation(const struct shard *shard, const struct operation_list *list,
                           const struct operation *operation) {
    const struct registers *registers = &shard->registers;
    switch (operation->code) {
    case OPERATION_CHECK:
        if (operation->hash == shard->staging.folded_hash &&
            operation->folds == shard->staging.folded_count)
            return 0;
        return error_set(ERROR_INTERNAL,
                         "this shard folded %zu flushes, the coordinator counted %llu%s",
                         shard->staging.folded_count, (unsigned long long)operation->folds,
                         operation->folds == shard->staging.folded_count ? " others" : "");
    case OPERATION_BEGIN:
        return check_begin(registers, operation);
    case OPERATION_GRADIENT:
        if (shard->sums != SUMS_PARAMETERS)
            return error_set(ERROR_INTERNAL,
                             "a program takes the gradient of an evaluation that adds up none");
        return 0;
    case OPERATION_FACTOR:
        if (shard->sums != SUMS_TRIANGLE || !registers_precondition(registers))
            return error_set(ERROR_INTERNAL, "a program makes a preconditioner of an evaluation "
                                             "that adds up no second derivatives");
        return 0;
    case OPERATION_COVARIANCE:
    case OPERATION_SANDWICH:
        return check_covariance(shard, list, operation);
    case OPERATION_LIST:
    case OPERATION_SCATTER:
    case OPERATION_SOLVE:
        return check_listed(shard, operation);
    case OPERATION_CLIP:
    case OPERATION_HELD:
    case OPERATION_EXCESS:
        return check_limits(registers, operation);
    case OPERATION_PRECONDITION:
        return check_factor(registers, operation);
    case OPERATION_GAP:
    case OPERATION_METRIC:
        return check_squares(registers);
    case OPERATION_TENSOR_SQUARES:
        if (operation->tensors != registers->layout.count)
            return error_set(ERROR_INTERNAL, "a program measures %u tensors, but there are %u",
                             operation->tensors, registers->layout.count);
        return 0;
    case OPERATION_ROWS_TAKE:
    case OPERATION_ROWS_AT:
    case OPERATION_ROWS_LOSS:
    case OPERATION_ROWS_HELD:
    case OPERATION_ROWS_DERIVATIVE:
    case OPERATION_ROWS_SLOPES:
    case OPERATION_ROWS_SECOND:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
    case OPERATION_ROWS_ADVANCE:
        return check_rows(shard, operation);
    default:
        return 0;
    }
}

/* All checks come before anything is changed, so that a refused program leaves no trace. */
static int check_operations(const struct shard *shard, const struct operation_list *list) {
    int code = 0;
    for (size_t i = 0; i < list->count && !code; i++) {
        code = check_registers(&shard->registers, &list->items[i]);
        if (!code)
            code = check_operation(shard, list, &list->items[i]);
    }
    return code;
}

/* ---- the program of a message ---- */

/* Whether the operation changes what the evaluation gives out, t or D. Replicas may not fetch it
 * any more then. */
static bool spoils_trial(const struct shard *shard, const struct operation *operation) {
    const struct row_vectors *rows = &shard->registers.rows;
    if (rows->total && !rows->objective) /* t, Z and D */
        return operation->code == OPERATION_ROWS_TAKE || operation_writes(operation, REGISTER_T);
    return shard->gives_rows ? operation->code == OPERATION_ROWS_ADVANCE
                             : operation_writes(operation, REGISTER_T);
}

/* Runs a program that has passed all checks. SWAP acts first. BEGIN acts last: the operations
 * before it may have read the sum and the bounds of the evaluation that it replaces. Replicas read
 * the trial point from the host's memory, so it is pulled there. */
static int run_checked(struct shard *shard, const struct operation_list *list) {
    struct registers *registers = &shard->registers;
    const struct operation *begin = find_operation(list, OPERATION_BEGIN);
    bool reads_sum =
        find_operation(list, OPERATION_GRADIENT) || find_operation(list, OPERATION_FACTOR) ||
        find_operation(list, OPERATION_ROWS_TAKE) || find_operation(list, OPERATION_SOLVE) ||
        find_operation(list, OPERATION_COVARIANCE) || find_operation(list, OPERATION_SANDWICH);
    int code = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct operation *operation = &list->items[i];
        if (spoils_trial(shard, operation))
            shard->trial_is_there = false;
        if (operation->code == OPERATION_SWAP)
            registers_swap(registers, operation->a, operation->b);
    }
    if (!shard->staging.folded_count && reads_sum)
        code = registers_clear_sum(registers, shard->sums);
    bytes_clear(&shard->last.scalars);
    if (!code)
        code = operation_list_run(list, registers, &shard->bounds, &shard->last.scalars);
    bool gives_point = begin && (!begin->rows || !registers->rows.objective);
    if (!code && gives_point)
        code = registers_pull(registers, REGISTER_T, 0, registers->count);
    if (!code && begin) {
        assert(shard->ready && begin->bounds.count);
        shard->begun = true;
        shard->gives_rows = begin->rows;
        shard->trial_is_there = true;
        shard->evaluation = begin->evaluation;
        shard->sums = begin->sums;
        shard->bounds = begin->bounds;
        staging_clear(&shard->staging); /* so the next fold replaces the former sum */
    }
    return code;
}

static int run(struct shard *shard, const struct message_program *program) {
    struct operation_list list;
    const struct slot_counts slots = {shard->registers.slots, shard->registers.rows.slots};
    int code = operation_list_read(&list, &program->operations, slots);
    if (!code)
        code = check_operations(shard, &list);
    if (!code)
        code = run_checked(shard, &list);
    if (!code) {
        assert(program->number >= shard->last.number);
        shard->last.number = program->number;
        shard->last.hash = program->hash;
    }
    operation_list_release(&list);
    return code;
}

void on_program(struct shard *shard, uint32_t from, const struct message *message,
                struct outbox *out) {
    (void)from;
    const struct message_program *program = &message->program;
    if (program->attempt != shard->attempt && !mutant(ATTEMPT_IGNORED)) {
        shard->counters.stale++;
        return;
    }
    int code = check_number(shard, program);
    if (code == 0)
        code = run(shard, program);
    if (code < 0) {
        shard_fail(shard, code, out);
        return;
    }
    const struct bytes *scalars = &shard->last.scalars;
    shard_answer(
        shard, shard->coordinator,
        (struct message){.type = MESSAGE_RESULT,
                         .result = {.attempt = shard->attempt,
                                    .number = shard->last.number,
                                    .scalars = {scalars->data, (uint32_t)scalars->length}}},
        out);
    answer_held_fetches(shard, out);
}
