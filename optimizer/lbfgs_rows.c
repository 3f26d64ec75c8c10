/* Vectors of rows on the shards: the phase that begins each attempt with the rows' own numbers, as
 * the plan of the run lists them; and the loss on the holdout, where shards find it. */
#include <assert.h>
#include <math.h>

#include "base/mutant.h"
#include "optimizer/lbfgs_phase.h"

void rows_add_take(struct bytes *program, enum row_vector vector, uint16_t slot) {
    program_add(program,
                &(struct operation){.code = OPERATION_ROWS_TAKE, .vector = vector, .slot = slot});
}

/* ---- the holdout ---- */

void rows_add_held(const struct lbfgs *o, struct bytes *program) {
    if (o->plan.held == HELD_BY_SHARDS)
        program_add(program, &(struct operation){.code = OPERATION_ROWS_HELD});
}

uint32_t rows_take_held(struct lbfgs *o, const double *scalars) {
    if (o->plan.held != HELD_BY_SHARDS)
        return 0;
    lbfgs_take_held(o, held_of(scalars, &o->data));
    return 2;
}

/* ---- the rows' own numbers ---- */

/* Asks for the first of these; where there is none, the attempt begins at x, or at the starting
 * point. Numbers need no point; replicas get one all the same. */
static enum optimizer_want ask(struct lbfgs *o, const enum common_stage *numbers,
                               struct bytes *program) {
    const bool lost[COMMON_STAGES] = {[COMMON_LABELS] = mutant(LABELS_NOT_FETCHED),
                                      [COMMON_WEIGHTS] = mutant(WEIGHTS_NOT_FETCHED),
                                      [COMMON_OFFSETS] = mutant(OFFSETS_NOT_FETCHED),
                                      [COMMON_SIZES] = mutant(SIZES_NOT_FETCHED)};
    while (o->started && lost[*numbers])
        numbers++;
    if (*numbers) {
        program_return(program);
        return lbfgs_evaluate_stage(o, *numbers);
    }
    return o->started ? lbfgs_leave(o, program) : o->plan.way->directions->start(o, program);
}

enum optimizer_want rows_begin(struct lbfgs *o, struct bytes *program) {
    assert(!o->accepted);
    return ask(o, o->plan.numbers, program);
}

/* The vector that the evaluation of a stage is of. */
static const struct {
    bool own;
    enum row_vector vector;
} numbers_of[COMMON_STAGES] = {[COMMON_LABELS] = {true, ROWS_LABELS},
                               [COMMON_WEIGHTS] = {true, ROWS_WEIGHTS},
                               [COMMON_SIZES] = {true, ROWS_SIZES},
                               [COMMON_OFFSETS] = {true, ROWS_OFFSETS}};

static bool rows_evaluates(const struct lbfgs *o) {
    return numbers_of[o->common.stage].own;
}

static enum optimizer_want rows_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                          struct optimizer_request *request) {
    const enum common_stage stage = o->common.stage, *numbers = o->plan.numbers;
    (void)found;
    for (; *numbers != stage; numbers++)
        assert(*numbers);
    lbfgs_report(&request->report, o, lbfgs_outcome(o), NAN, NAN);
    o->common.stage = COMMON_NONE;
    rows_add_take(request->program, numbers_of[stage].vector, 0);
    return ask(o, numbers + 1, request->program);
}

static void rows_resume(struct lbfgs *o) {
    o->common.stage = COMMON_NONE;
    o->common.checked = false;
    o->common.ends = REASON_NONE;
}

const struct phase rows_phase = {
    .evaluates = rows_evaluates,
    .request = lbfgs_request,
    .evaluated = rows_evaluated,
    .resume = rows_resume,
};
