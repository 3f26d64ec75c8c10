#include "tests/unit/memory_backend.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "tests/unit/memory_shards.h"

/* What is minimised. */
struct problem {
    test_function *function;
    test_hessian *hessian;
    double score;
    test_holdout *holdout;
    const double *diagonal; /* of H₀; NULL: none */
    bool resumes;
};

/* Computes what was requested at t: a training set of one row, and a holdout of one. */
static void evaluate(const struct problem *problem, struct backend *backend,
                     struct lbfgs *optimizer, struct optimizer_request *request) {
    const double *t = backend->vector[REGISTER_T];
    struct evaluation_parts parts = request->parts;
    uint32_t n = backend->n;
    double totals[EVALUATION_TOTALS_MAX] = {0};
    if (request->want == OPTIMIZER_CURVATURE) {
        problem->hessian(n, t, backend->hessian);
        totals[0] = problem->score;
        totals[1] = (double)optimizer->settings.preconditioner.rows;
        totals[2] = n * n;
        totals[3] = backend->hessian[(size_t)n * n - 1]; /* by the bias: of a row by its margin */
    } else {
        totals[0] = problem->function(n, t, backend->sum);
        totals[1] = problem->holdout ? problem->holdout(n, t) : NAN;
    }
    struct evaluation_found found = {.parts = &parts, .totals = totals};
    lbfgs_row.evaluated(optimizer, &found, request);
}

static void run(const struct problem *problem, uint32_t n, const double *start,
                const struct optimizer_settings *settings, struct minimization *result) {
    static double scalars[4 * SLOTS_MAX + 8];
    static const struct optimizer_data data = {
        .chunks = 1, .holdout_chunks = 1, .rows = 1, .weight_sum = 1, .holdout_weight_sum = 1};
    struct backend backend;
    struct bytes program;
    struct lbfgs *optimizer = &result->optimizer;
    double before = INFINITY;

    backend_init(&backend, n);
    if (settings->preconditioner.form == PRECONDITION_LEADING)
        backend.block = settings->preconditioner.block_columns;
    bytes_init(&program);
    memcpy(backend.vector[REGISTER_X], start, n * sizeof *start);
    lbfgs_init(optimizer, settings, &data);
    optimizer->scaled = problem->diagonal != NULL;
    if (problem->diagonal)
        memcpy(backend.vector[REGISTER_A], problem->diagonal, n * sizeof *start);
    result->loss_largest_rise = -INFINITY;

    struct optimizer_request request = {.program = &program};
    lbfgs_row.begin(optimizer, &request);
    uint64_t resumed = 0;
    while (request.want != OPTIMIZER_FINISH) {
        backend_run(&backend, &program, scalars);
        bytes_clear(&program);
        uint64_t step = optimizer->step;
        struct optimizer_request next = {
            .program = &program, .want = request.want, .parts = request.parts};
        if (problem->resumes && step > resumed) {
            resumed = step;
            backend_lose(&backend, optimizer);
            lbfgs_row.begin(optimizer, &next);
        } else if (request.want == OPTIMIZER_MEASURE) {
            lbfgs_row.measured(optimizer, scalars, &next);
        } else {
            evaluate(problem, &backend, optimizer, &next);
        }
        request = next;
        if (optimizer->step > step) {
            result->loss_largest_rise = fmax(result->loss_largest_rise, optimizer->loss - before);
            before = optimizer->loss;
        }
    }
    backend_run(&backend, &program, scalars);
    result->x = memory_new(n, sizeof(double));
    memcpy(result->x, backend.vector[lbfgs_answer_register(optimizer)], n * sizeof *start);
    bytes_release(&program);
    backend_release(&backend);
}

void minimize(test_function *function, uint32_t n, const double *start,
              const struct optimizer_settings *settings, struct minimization *result) {
    minimize_watched(function, NULL, false, n, start, settings, result);
}

void minimize_watched(test_function *function, test_holdout *holdout, bool resumes, uint32_t n,
                      const double *start, const struct optimizer_settings *settings,
                      struct minimization *result) {
    struct problem problem = {.function = function, .holdout = holdout, .resumes = resumes};
    run(&problem, n, start, settings, result);
}

void minimize_conditioned(test_function *function, test_hessian *hessian, double score,
                          bool resumes, uint32_t n, const double *start,
                          const struct optimizer_settings *settings, struct minimization *result) {
    struct problem problem = {
        .function = function, .hessian = hessian, .score = score, .resumes = resumes};
    run(&problem, n, start, settings, result);
}

void minimize_scaled(test_function *function, test_hessian *hessian, const double *diagonal,
                     bool resumes, uint32_t n, const double *start,
                     const struct optimizer_settings *settings, struct minimization *result) {
    struct problem problem = {.function = function,
                              .hessian = hessian,
                              .score = 1000,
                              .diagonal = diagonal,
                              .resumes = resumes};
    run(&problem, n, start, settings, result);
}

/* ---- over rows ---- */

/* The optimizer as it reads itself from what it wrote. */
static void reread(struct lbfgs *optimizer, const struct bytes *state) {
    struct optimizer_settings settings = optimizer->settings;
    struct optimizer_data data = optimizer->data;
    struct codec codec = {.in = cursor_over(state->data, state->length)};
    lbfgs_init(optimizer, &settings, &data);
    lbfgs_row.serialize(&codec, optimizer);
    assert(!codec.in.failed && !cursor_left(&codec.in));
}

static void write_state(struct lbfgs *optimizer, struct bytes *state) {
    struct codec codec = {.out = state};
    bytes_clear(state);
    lbfgs_row.serialize(&codec, optimizer);
}

struct row_run {
    struct backend backend, durable;
    struct memory_rows rows, durable_rows;
    test_hessian *hessian;
    struct bytes program, state;
    double *scalars;
};

/* Answers whether a bound was exceeded. */
static bool evaluate_rows(struct row_run *run, struct minimization *result,
                          const struct optimizer_request *request, double *totals) {
    const struct evaluation_part *part = &request->parts.items[0];
    struct backend *backend = &run->backend;
    const double *t = backend->vector[REGISTER_T];
    uint32_t n = backend->n;
    if (request->want == OPTIMIZER_CURVATURE) {
        run->hessian(n, t, backend->hessian);
        totals[0] = 1000;
        totals[1] = (double)result->optimizer.settings.preconditioner.rows;
        totals[2] = n * n;
        totals[3] = 1;
        return false;
    }
    const struct rows_problem *problem = run->rows.problem, *holdout = problem->holdout;
    bool exceeded = false, product = part->kind == EVALUATION_PRODUCT;
    bool strips = product || part->kind == EVALUATION_TRANSPOSE;
    assert(part->count == (problem->tiles && strips ? problem->tiles : 1));
    assert(!problem->tiles || !product || request->bounded);
    int point = request->bounded ? fixed_derivative_exponent(request->largest) : 0;
    if (part->kind == EVALUATION_LOSS)
        totals[0] = rows_loss_at(holdout, t);
    else
        totals[0] = memory_rows_evaluate(&run->rows, part->kind, point, t, backend->sum, &exceeded);
    if (request->parts.count > 1)
        totals[1] = rows_loss_at(holdout, t);
    result->passes += part->kind == EVALUATION_GRADIENT    ? 1
                      : part->kind == EVALUATION_TRANSPOSE ? 0.5
                      : part->kind == EVALUATION_PRODUCT   ? 0.5
                                                           : 0;
    return exceeded;
}

/* The shards ran the program of a request before anything could happen to it. */
static void answer(struct row_run *run, struct minimization *result,
                   struct optimizer_request *request) {
    struct optimizer_request next = {.program = &run->program};
    double totals[EVALUATION_TOTALS_MAX] = {0};
    struct evaluation_parts parts = request->parts;
    struct evaluation_found found = {.parts = &parts, .totals = totals};
    if (request->want == OPTIMIZER_MEASURE) {
        lbfgs_row.measured(&result->optimizer, run->scalars, &next);
    } else {
        found.exceeded = evaluate_rows(run, result, request, totals);
        lbfgs_row.evaluated(&result->optimizer, &found, &next);
    }
    *request = next;
}

static void restart(struct row_run *run, struct minimization *result,
                    struct optimizer_request *request) {
    *request = (struct optimizer_request){.program = &run->program};
    bytes_clear(&run->program);
    backend_lose(&run->backend, &result->optimizer);
    lbfgs_row.begin(&result->optimizer, request);
}

static void cancel(struct row_run *run, struct minimization *result,
                   struct optimizer_request *request) {
    struct optimizer_request end = {.program = &run->program};
    enum optimizer_end came = lbfgs_row.end(&result->optimizer, REASON_CANCELLED, &end);
    if (came == END_TOO_EARLY)
        return;
    if (came == END_REQUESTED)
        *request = end;
    while (request->want != OPTIMIZER_FINISH) {
        answer(run, result, request);
        backend_run(&run->backend, &run->program, run->scalars);
        bytes_clear(&run->program);
    }
    assert(came == END_COMING || result->optimizer.reason == REASON_CANCELLED);
    backend_run(&run->backend, &run->program, run->scalars);
    restart(run, result, request);
    backend_run(&run->backend, &run->program, run->scalars);
    bytes_clear(&run->program);
}

static void disturb(struct row_run *run, enum disturbance disturbance, struct minimization *result,
                    struct optimizer_request *request) {
    struct bytes state;
    bytes_init(&state);
    if (disturbance == SERIALIZED) {
        write_state(&result->optimizer, &state);
        reread(&result->optimizer, &state);
    } else if (disturbance == CANCELLED) {
        cancel(run, result, request);
    } else if (disturbance == ROLLED_BACK && run->state.length) {
        backend_copy(&run->backend, &run->durable);
        reread(&result->optimizer, &run->state);
        restart(run, result, request);
        backend_run(&run->backend, &run->program, run->scalars);
        bytes_clear(&run->program);
    }
    bytes_release(&state);
}

static void row_run_init(struct row_run *run, const struct rows_problem *problem,
                         test_hessian *hessian, const double *start) {
    uint32_t n = problem->columns * problem->outputs;
    *run = (struct row_run){.hessian = hessian};
    backend_init(&run->backend, n);
    backend_init(&run->durable, n);
    memory_rows_init(&run->rows, problem);
    memory_rows_init(&run->durable_rows, problem);
    run->backend.rows = &run->rows;
    run->durable.rows = &run->durable_rows;
    bytes_init(&run->program);
    bytes_init(&run->state);
    run->scalars = memory_new(SCALARS_MAX, sizeof *run->scalars);
    memcpy(run->backend.vector[REGISTER_X], start, n * sizeof *start);
}

static void row_run_release(struct row_run *run) {
    backend_release(&run->backend);
    backend_release(&run->durable);
    memory_rows_release(&run->rows);
    memory_rows_release(&run->durable_rows);
    bytes_release(&run->program);
    bytes_release(&run->state);
    free(run->scalars);
}

static void keep_durable(struct row_run *run, enum disturbance disturbance,
                         struct lbfgs *optimizer) {
    if (disturbance != ROLLED_BACK)
        return;
    backend_copy(&run->durable, &run->backend);
    write_state(optimizer, &run->state);
}

/* To the end. Answers whether that is the limit of steps. */
static bool run_rows(struct row_run *run, enum disturbance disturbance, uint32_t at,
                     struct optimizer_request *request, struct minimization *result) {
    double before = INFINITY;
    while (request->want != OPTIMIZER_FINISH) {
        bool accepted = request->accepted;
        backend_run(&run->backend, &run->program, run->scalars);
        bytes_clear(&run->program);
        if (accepted) {
            keep_durable(run, disturbance, &result->optimizer);
            result->loss_largest_rise =
                fmax(result->loss_largest_rise, result->optimizer.loss - before);
            before = result->optimizer.loss;
        }
        if (disturbance == SERIALIZED || result->requests == at)
            disturb(run, disturbance, result, request);
        result->requests++;
        answer(run, result, request);
    }
    backend_run(&run->backend, &run->program, run->scalars);
    return result->optimizer.reason == REASON_STEP_LIMIT;
}

void minimize_rows(const struct rows_problem *rows, test_hessian *hessian,
                   enum disturbance disturbance, uint32_t at, const double *start,
                   const struct optimizer_settings *settings, struct minimization *result) {
    static struct row_run run;
    struct optimizer_data data = {
        .chunks = 1, .tiles = rows->tiles, .rows = rows->rows, .weight_sum = rows_weight_sum(rows)};
    struct lbfgs *optimizer = &result->optimizer;
    if (rows->holdout) {
        data.holdout_chunks = 1;
        data.holdout_weight_sum = rows_weight_sum(rows->holdout);
    }
    row_run_init(&run, rows, hessian, start);
    *result = (struct minimization){.loss_largest_rise = -INFINITY};
    lbfgs_init(optimizer, settings, &data);
    if (disturbance == LIMITED)
        optimizer->settings.steps_max = at;
    struct optimizer_request request = {.program = &run.program};
    lbfgs_row.begin(optimizer, &request);
    bool limit = run_rows(&run, disturbance, at, &request, result);
    if (limit && disturbance == LIMITED) {
        optimizer->settings.steps_max = settings->steps_max;
        restart(&run, result, &request);
        run_rows(&run, UNDISTURBED, 0, &request, result);
    }
    result->x = memory_new(run.backend.n, sizeof(double));
    memcpy(result->x, run.backend.vector[lbfgs_answer_register(optimizer)],
           run.backend.n * sizeof *start);
    row_run_release(&run);
}
