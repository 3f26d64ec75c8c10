/* What a run must know of the columns of its data before it trains: how they are scaled, and how
 * large they are. */
#include <assert.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/scaling.h"
#include "coordinator/job/sizing.h"
#include "coordinator/run/convergence.h"
#include "coordinator/run/training.h"
#include "numeric/fixed.h"

int training_find_moments(struct training *run) {
    if (run->moments.kind == MOMENTS_EXACT)
        return 0;
    moments_release(&run->moments);
    return moments_find(run->set, cpus_usable(), &run->moments);
}

/* In tiles a model has many columns: their squares, which are sent at the start and to a shard that
 * takes the place of another, wait on disk. */
static bool parks_squares(const struct training *run) {
    return set_info(run->set)->strip_columns && !run->member.sweep;
}

int training_find_squares(struct training *run) {
    assert(!run->squares);
    run->squares_bytes = set_info(run->set)->features * sizeof *run->squares;
    if (parks_squares(run) && run->moments.kind == MOMENTS_NONE)
        return moments_take_squares(run->set, cpus_usable(), &run->squares);
    run->squares = memory_map(run->squares_bytes);
    return moments_squares(run->set, cpus_usable(), &run->moments, run->squares);
}

/* For the estimate of the gap. */
static int measure_columns(struct training *run) {
    struct session *session = run->session;
    const struct set_info *info = set_info(run->set);
    double l2 = objective_loss_unit(&run->shape) * session->job->l2.value;
    run->estimates = gap_settings_of(session->job, &run->shape, info);
    if (!run->estimates.known)
        return 0;
    int code = gap_find_least(&run->shape, run->set, &run->estimates);
    if (code)
        return code;
    if (run->scaling.columns) /* chosen by the moments */
        gap_measure(info, &run->moments, run->scaling.columns);
    if (run->scaling.columns && !run->scaling.plain)
        return 0;
    /* Where l2 alone tells the gap, squares of columns are not asked. */
    bool may_be_by_l2 = info->features >= info->rows && !info->strip_columns &&
                        !run->scaling.columns && !job_has_orthants(session->job);
    double square = 0;
    code = may_be_by_l2 ? set_mean_square(run->set, cpus_usable(), &square) : 0;
    if (!code && may_be_by_l2 && gap_is_by_l2(&run->estimates, info, l2, square))
        run->estimates.mean_square = square;
    if (code || run->estimates.mean_square > 0)
        return code;
    code = training_find_squares(run);
    if (!code && !job_has_orthants(session->job))
        run->estimates.bias_share = gap_bias_share(&run->estimates, info, l2, run->squares);
    if (!code)
        gap_unscaled(info, run->squares);
    if (!code && parks_squares(run))
        run->squares = file_park(session->job->state, run->squares, run->squares_bytes);
    if (run->scaling.plain) { /* columns have theirs */
        memory_unmap(run->squares, run->squares_bytes);
        run->squares = NULL;
    }
    return code;
}

/* The extra bits that sums for the errors of estimates need, by the squares of columns. */
static int find_extra_bits(struct training *run) {
    const struct set_info *info = set_info(run->set);
    double *squares = memory_new((size_t)info->features + 1, sizeof *squares);
    int code = moments_squares(run->set, cpus_usable(), &run->moments, squares);
    squares[info->features] = 1; /* of the intercept */
    free(run->extra_bits);
    run->extra_bits = memory_new((size_t)info->features + 1, sizeof *run->extra_bits);
    assert(code || info->weight_sum > 0);
    for (uint64_t j = 0; j <= info->features && !code; j++)
        run->extra_bits[j] =
            (uint8_t)fixed_extra_bits(squares[j] * info->weight_sum, info->exponent[j]);
    free(squares);
    return code;
}

int training_measure_columns(struct training *run) {
    struct session *session = run->session;
    const struct set_info *info = set_info(run->set);
    int code = column_rules_find(session->job, info, &run->rules);
    /* First: without a block wide data needs no moments, and their two reads of all values. */
    if (!code && run->preconditioner.form == PRECONDITION_LEADING) {
        struct prefix_counts counts;
        code = prefix_counts_find(run->set, run->preconditioner.block_columns, &counts);
        if (!code)
            sizing_leading(session->job, info, &run->shape, &counts, &run->preconditioner);
    }
    if (!code && scaling_needs_moments(session->job, info, run->preconditioner.form)) {
        code = training_find_moments(run);
        if (!code)
            code = scaling_choose(session->job, info, &run->shape, run->preconditioner.form,
                                  &run->moments, &run->rules, &run->scaling);
    }
    if (!code)
        scaling_add_rules(info, &run->rules, session->job->l1.value > 0, &run->scaling);
    if (!code && info->centre)
        code = training_find_moments(run);
    if (!code)
        scaling_add_centres(info, &run->scaling);
    if (!code)
        code = measure_columns(run);
    if (!code && job_inverts(session->job))
        code = find_extra_bits(run);
    if (!run->member.sweep) /* no other run asks for them */
        set_forget_squares(run->set);
    return code;
}
