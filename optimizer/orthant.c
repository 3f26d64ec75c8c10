#include "optimizer/orthant.h"

#include <math.h>

#define SUFFICIENT_DECREASE 1e-4
#define SHRINK_LEAST 0.5 /* of a step, from one trial to the next */
#define SHRINK_MOST 0.1
#define TRIALS_MAX 30
#define COSINE_LEAST 1e-10 /* of s and y */

/* A share of the step, between SHRINK_MOST and SHRINK_LEAST. `expected` is what the slope promised
 * for it, below 0. */
static double share_left(double change, double expected) {
    if (change <= expected)
        return SHRINK_LEAST;
    double share = -expected / (2 * (change - expected));
    return fmax(SHRINK_MOST, fmin(SHRINK_LEAST, share));
}

enum linesearch_answer orthant_search_next(struct linesearch *search,
                                           const struct orthant_trial *trial) {
    bool finite = isfinite(trial->loss) && isfinite(trial->falls) && isfinite(trial->ends);
    double change = trial->loss - search->value0;
    search->trials++;
    if (fabs(change) <= search->noise)
        change = (trial->falls + trial->ends) / 2;
    if (finite && trial->falls < 0 && change <= SUFFICIENT_DECREASE * trial->falls)
        return LINESEARCH_ACCEPT;
    if (search->trials >= TRIALS_MAX)
        return LINESEARCH_FAIL;
    search->step *= finite ? share_left(change, search->slope0 * search->step) : SHRINK_MOST;
    return LINESEARCH_TRY;
}

enum linesearch_answer orthant_search_refused(struct linesearch *search, double bound) {
    if (++search->trials >= TRIALS_MAX)
        return LINESEARCH_FAIL;
    search->step *= share_left(bound - search->value0, search->slope0 * search->step);
    return LINESEARCH_TRY;
}

bool orthant_keeps_pair(double sy, double step_square, double yy) {
    return isfinite(sy) && sy > COSINE_LEAST * sqrt(step_square) * sqrt(yy);
}

double orthant_gap_bound(double l1, double l2, const struct orthant_gap *gap) {
    double penalty = l1 * gap->norm_1 + l2 / 2 * gap->square;
    double scale = gap->excess > l1 ? l1 / gap->excess : 1;
    double bound = l2 > 0 ? gap->wr + penalty + gap->excess / (2 * l2)
                          : (1 - scale) * gap->mean_loss + scale * gap->wr + penalty;
    return isfinite(bound) ? fmax(bound, 0) : NAN;
}
