#include "model/single_errors.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/hessian.h"

/* A solution waits for so many steps, whose gains tell what is missing: Strakoš and Tichý, "On
 * error estimation in the conjugate gradient method and why it works in finite precision
 * computations" (2002). */
#define DELAY 10

/* A variance times the diagonal of H is what the other columns make of a 1: as the least pivot of
 * shard/covariance.h. Of biases, which follow from no column there, it is that squared. */
#define INFLATION_MOST 1e11

struct solver {
    struct set *set;
    struct hessian *hessian;
    struct hessian_sums sums;
    const struct model_layout *layout;
    const struct single_point *point;
    uint64_t count, biases;
    uint32_t weights;
    bool centred;     /* the preconditioner knows what columns share with their bias */
    double *solution; /* owned, as are the next */
    double *residual, *direction, *changed, *product;
    double sampling; /* of a direct solution */
    uint64_t products;
    uint32_t steps_most; /* of a solution */
};

/* ---- the preconditioner ---- */

static double ridge_at(const struct solver *solver, uint64_t i) {
    return solver->point->ridge ? solver->point->ridge[i] : 0;
}

/* The bias of a weight's output. */
static uint64_t bias_of(const struct solver *solver, uint64_t i) {
    return solver->biases + i % solver->weights;
}

static double own_of(const struct solver *solver, uint64_t i) {
    return solver->sums.diagonal[i] + ridge_at(solver, i);
}

static bool is_aliased(const struct solver *solver, uint64_t i) {
    const struct collinear *direct = solver->point->direct;
    if (direct)
        return collinear_kind_of(direct, i) != COLLINEAR_NOT;
    return solver->point->aliased[i] || !(own_of(solver, i) > 0);
}

/* What a column has in common with its bias: a mean. */
static double mean_of(const struct solver *solver, uint64_t i) {
    uint64_t bias = bias_of(solver, i);
    bool shared = solver->centred && !is_aliased(solver, bias);
    return shared ? solver->sums.beside[i] / solver->sums.diagonal[bias] : 0;
}

/* The diagonal of H + Λ over columns without their means. */
static double spread_of(const struct solver *solver, uint64_t i) {
    return own_of(solver, i) - mean_of(solver, i) * solver->sums.beside[i];
}

/* A column that is constant, but for rounding, follows from the bias. */
static bool is_left_out(const struct solver *solver, uint64_t i) {
    if (solver->point->direct)
        return is_aliased(solver, i);
    bool constant =
        i < solver->biases && !(spread_of(solver, i) * INFLATION_MOST > own_of(solver, i));
    return is_aliased(solver, i) || constant;
}

/* out = P·r, as if columns had been shifted by their means and scaled. */
static void precondition(const struct solver *solver, const double *r, double *out) {
    for (uint64_t i = solver->biases; i < solver->count; i++)
        out[i] = is_left_out(solver, i) ? 0 : r[i] / solver->sums.diagonal[i];
    for (uint64_t i = 0; i < solver->biases; i++) {
        double mean = mean_of(solver, i);
        double shifted = r[i] - (mean != 0 ? mean * r[bias_of(solver, i)] : 0);
        out[i] = is_left_out(solver, i) ? 0 : shifted / spread_of(solver, i);
        if (mean != 0)
            out[bias_of(solver, i)] -= mean * out[i];
    }
}

/* ---- conjugate gradients ---- */

static double dot(uint64_t count, const double *a, const double *b) {
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* product = (H + Λ)·direction, of what is not left out. */
static int multiply(struct solver *solver) {
    int code = hessian_multiply(solver->hessian, solver->direction, solver->product);
    solver->products++;
    for (uint64_t i = 0; i < solver->count; i++)
        solver->product[i] = is_left_out(solver, i)
                                 ? 0
                                 : solver->product[i] + ridge_at(solver, i) * solver->direction[i];
    return code;
}

/* The residual is b, and nothing is solved. */
static double begin(struct solver *solver) {
    for (uint64_t i = 0; i < solver->count; i++)
        if (is_left_out(solver, i))
            solver->residual[i] = 0;
    memset(solver->solution, 0, solver->count * sizeof *solver->solution);
    precondition(solver, solver->residual, solver->changed);
    memcpy(solver->direction, solver->changed, solver->count * sizeof *solver->direction);
    return dot(solver->count, solver->residual, solver->changed);
}

/* A step of the length that a product tells; answers residualᵀ·P·residual after it. */
static double step(struct solver *solver, double length, double before) {
    const uint64_t n = solver->count;
    for (uint64_t i = 0; i < n; i++) {
        solver->solution[i] += length * solver->direction[i];
        solver->residual[i] -= length * solver->product[i];
    }
    precondition(solver, solver->residual, solver->changed);
    double after = dot(n, solver->residual, solver->changed);
    for (uint64_t i = 0; i < n; i++)
        solver->direction[i] = solver->changed[i] + after / before * solver->direction[i];
    return after;
}

static double sum_of_gains(const double *gains) {
    double sum = 0;
    for (int i = 0; i < DELAY; i++)
        sum += gains[i];
    return sum;
}

/* Solves (H + Λ)·solution = residual, which is given; *energy = residualᵀ·(H + Λ)⁻¹·residual, the
 * sum of what each step gained: NaN if it is beyond `most`, or did not settle. */
static int solve(struct solver *solver, double most, double *energy) {
    if (solver->point->direct) {
        collinear_solve(solver->point->direct, solver->residual, solver->solution, energy,
                        &solver->sampling);
        return 0;
    }
    double gains[DELAY] = {0}, left = begin(solver), sum = 0;
    *energy = 0;
    for (uint32_t i = 0; left > 0; i++) {
        int code = multiply(solver);
        double curvature = dot(solver->count, solver->direction, solver->product);
        double length = left / curvature;
        if (code)
            return code;
        *energy = NAN;
        if (!(curvature > 0) || !(sum + length * left <= most) || i == solver->steps_most)
            return 0;
        gains[i % DELAY] = length * left;
        sum += length * left;
        left = step(solver, length, left);
        *energy = sum;
        if (i >= DELAY && sum_of_gains(gains) <= SINGLE_SHARE_LEAST * sum)
            return 0;
    }
    return 0;
}

/* ---- errors ---- */

/* The residual of a parameter of the data: a bias there is b_k − Σ_j centre_j·w_jk of the set. */
static void take_unit(struct solver *solver, uint64_t element) {
    assert(element < solver->count);
    const double *centre = set_info(solver->set)->centre;
    uint64_t of = solver->layout->shared ? 0 : element - solver->biases;
    memset(solver->residual, 0, solver->count * sizeof *solver->residual);
    solver->residual[element] = 1;
    if (element < solver->biases || !centre)
        return;
    for (uint64_t i = of; i < solver->biases; i += solver->weights)
        solver->residual[i] = -centre[i / solver->weights];
}

static int find_error(struct solver *solver, uint64_t element, struct single_error *error,
                      struct single_totals *totals) {
    assert(element < solver->count);
    struct score_sums sums;
    *error = (struct single_error){NAN, NAN, NAN, NAN};
    if (is_left_out(solver, element))
        return 0;
    bool bias = element >= solver->biases;
    double own =
        bias ? solver->sums.diagonal[element] / INFLATION_MOST : spread_of(solver, element);
    take_unit(solver, element);
    failpoint(FAILPOINT_single_errors);
    int code = solve(solver, INFLATION_MOST / own, &error->variance);
    if (code || isnan(error->variance))
        return code;
    error->sampling = solver->point->direct ? solver->sampling : error->variance;
    for (uint64_t i = 0; i < solver->count && !solver->point->direct; i++)
        error->sampling -= ridge_at(solver, i) * solver->solution[i] * solver->solution[i];
    code = hessian_scores(solver->hessian, solver->solution, &sums);
    error->robust = sums.independent;
    error->clustered = sums.clustered;
    totals->clusters = sums.clusters;
    totals->single_rows = sums.single_rows;
    return code;
}

static int find_distance(struct solver *solver, struct single_totals *totals) {
    double square;
    int code = solve(solver, INFINITY, &square);
    totals->distance = sqrt(square);
    return code;
}

/* ---- what follows from others ---- */

/* A solution leaves 1e-9 of what H curves by 1. So it leaves more than this, where columns have a
 * deviation of 1, in directions alone which H hardly curves. */
#define LEFT_LEAST 1e-4
/* A share of the mean curvature of columns, as the least pivot of shard/covariance.h is. */
#define CURVATURE_LEAST 1e-11
/* Parameters that a direction moves have at least this share of the largest. */
#define MOVED_SHARE 1e-3

/* How far a direction goes by parameter i, in deviations of its column. */
static double reach_of(const struct solver *solver, const double *direction, uint64_t i) {
    return is_left_out(solver, i) ? 0 : fabs(direction[i]) * sqrt(spread_of(solver, i));
}

/* The part of a drawn vector that H does not see: with Hv = Hz, z - v. *largest is 0 if none is
 * left. */
static int find_unseen(struct solver *solver, uint64_t round, double *unseen, double *largest) {
    double energy, curvature = 0, square = 0;
    /* A vector without a structure that directions could be orthogonal to: from -1 to 1 for columns
     * with a deviation of 1. */
    for (uint64_t i = 0; i < solver->count; i++) {
        double drawn = (double)(random_mix(solver->count * round + i) >> 11) * 0x1p-52 - 1;
        solver->residual[i] = is_left_out(solver, i) ? 0 : drawn * sqrt(spread_of(solver, i));
    }
    precondition(solver, solver->residual, unseen);
    memcpy(solver->direction, unseen, solver->count * sizeof *unseen);
    int code = multiply(solver);
    memcpy(solver->residual, solver->product, solver->count * sizeof *unseen);
    if (!code)
        code = solve(solver, INFINITY, &energy);
    for (uint64_t i = 0; i < solver->count; i++)
        solver->direction[i] = unseen[i] -= solver->solution[i];
    if (!code)
        code = multiply(solver);
    *largest = 0;
    for (uint64_t i = 0; i < solver->biases; i++) {
        double reach = reach_of(solver, unseen, i);
        *largest = fmax(*largest, reach);
        square += reach * reach;
    }
    for (uint64_t i = 0; i < solver->count; i++)
        curvature += unseen[i] * solver->product[i];
    if (*largest < LEFT_LEAST || curvature > CURVATURE_LEAST * square)
        *largest = 0;
    return code;
}

/* The last one in the order that a direction moves, which takes its estimate to 0. */
static void leave_last_out(struct solver *solver, const double *unseen, double largest) {
    assert(largest > 0);
    const uint32_t weights = solver->weights;
    double *restated = solver->point->restated;
    uint64_t last = solver->biases;
    for (uint64_t i = 0; i < solver->biases; i++) {
        bool later = last == solver->biases || i / weights > last / weights;
        if (later && reach_of(solver, unseen, i) >= MOVED_SHARE * largest)
            last = i;
    }
    double length = restated[last] / unseen[last];
    for (uint64_t i = 0; i < solver->count; i++)
        restated[i] -= length * unseen[i];
    restated[last] = 0;
    solver->point->aliased[last] = true;
}

/* Marks the weights that the solver leaves out from the start. A column that has but one value
 * moves to its bias. */
static void leave_out_constants(struct solver *solver, struct single_totals *totals) {
    double *restated = solver->point->restated;
    for (uint64_t i = 0; i < solver->biases; i++)
        if (is_left_out(solver, i) && !solver->point->aliased[i]) {
            if (restated[i] != 0 && solver->sums.diagonal[i] > 0)
                restated[bias_of(solver, i)] += mean_of(solver, i) * restated[i];
            restated[i] = 0;
            solver->point->aliased[i] = true;
            totals->dependent++;
        }
}

static int find_dependent(struct solver *solver, struct single_totals *totals) {
    assert(!solver->point->direct && !solver->point->ridge);
    double *unseen = memory_new(solver->count, sizeof *unseen), largest = 1;
    int code = 0;
    leave_out_constants(solver, totals);
    for (uint64_t round = 0; largest > 0 && round < DEPENDENT_MAX && !code; round++) {
        code = find_unseen(solver, round, unseen, &largest);
        if (!code && largest > 0) {
            leave_last_out(solver, unseen, largest);
            totals->dependent++;
        }
    }
    totals->more = largest > 0;
    free(unseen);
    return code;
}

/* ---- what runs away ---- */

/* Σ g²/H of columns without their means, for each unit of weight, below which a gradient is but
 * rounding. */
#define ROUNDING 1e-20
/* Rows that run away have at most this share of the second derivative that rows have. */
#define INFORMATION_MOST 0.1
/* A column is named that has this share of what their margins change by. */
#define SHARE_NAMED 0.05

static bool has_gradient(const struct solver *solver) {
    double sum = 0, weight = set_info(solver->set)->weight_total;
    for (uint64_t i = 0; i < solver->count; i++) {
        double own = solver->residual[i] * solver->residual[i] / spread_of(solver, i);
        sum += is_left_out(solver, i) ? 0 : own;
    }
    return sum > ROUNDING * weight;
}

/* The solution is Newton's step. */
static int find_runaways(struct solver *solver, bool *runs_away) {
    assert(runs_away);
    struct moved_sums sums;
    int code = hessian_moves(solver->hessian, solver->solution, &sums);
    if (!code && sums.change > 0 && sums.second <= INFORMATION_MOST * sums.typical * sums.square) {
        /* Shares are of columns without their means. The intercept beside them has an error of its
         * own only where nothing else runs away: all labels are 0. */
        bool any = false;
        for (uint64_t i = 0; i < solver->biases; i++) {
            double mean = mean_of(solver, i);
            double toward =
                sums.toward[i] - (mean != 0 ? mean * sums.toward[bias_of(solver, i)] : 0);
            runs_away[i] = solver->solution[i] * toward >= SHARE_NAMED * sums.change;
            any |= runs_away[i];
        }
        for (uint64_t i = solver->biases; i < solver->count && !any; i++)
            runs_away[i] = solver->solution[i] * sums.toward[i] >= SHARE_NAMED * sums.change;
    }
    moved_sums_release(&sums);
    return code;
}

static void release(struct solver *solver) {
    hessian_free(solver->hessian);
    hessian_sums_release(&solver->sums);
    free(solver->solution);
    free(solver->residual);
    free(solver->direction);
    free(solver->changed);
    free(solver->product);
}

int single_errors_find(struct set *set, const struct model_layout *layout,
                       const struct single_point *point, const uint64_t *element, size_t count,
                       struct single_error *errors, bool *runs_away, struct single_totals *totals) {
    assert(!count || (element && errors));
    struct solver solver = {.set = set,
                            .layout = layout,
                            .point = point,
                            .count = model_parameters(layout),
                            .weights = model_rows(layout),
                            .biases = layout->features * model_rows(layout),
                            .steps_most = point->steps ? point->steps : SINGLE_STEPS_MAX,
                            .centred = layout->intercept && !layout->shared};
    *totals = (struct single_totals){.distance = NAN};
    int code =
        hessian_new(set, layout, point->parameters, point->threads, &solver.hessian, &solver.sums);
    double **const vectors[] = {&solver.solution, &solver.residual, &solver.direction,
                                &solver.changed, &solver.product};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        *vectors[i] = memory_new(solver.count, sizeof(double));
    if (point->direct && count) {
        /* Where it is known what follows from others. */
        collinear_restate(solver.point->direct, solver.point->restated);
        for (uint64_t i = 0; i < solver.count; i++) {
            solver.point->aliased[i] = is_aliased(&solver, i);
            totals->dependent += solver.point->aliased[i];
        }
    } else if (!code && count && !point->ridge)
        code = find_dependent(&solver, totals);
    if (!code) {
        for (uint64_t i = 0; i < solver.count; i++)
            solver.residual[i] =
                solver.sums.gradient[i] + ridge_at(&solver, i) * solver.point->parameters[i];
    }
    bool moves = !code && has_gradient(&solver);
    if (!code && (count || moves))
        code = find_distance(&solver, totals);
    if (!code && moves)
        code = find_runaways(&solver, runs_away);
    for (size_t i = 0; i < count && !code; i++)
        code = find_error(&solver, element[i], &errors[i], totals);
    totals->products = solver.products;
    release(&solver);
    return code;
}
