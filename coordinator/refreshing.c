/* Refreshes of the preconditioner: the evaluation of the curvature, and what is told of it. */
#include <math.h>

#include "coordinator/steering_parts.h"
#include "numeric/fixed.h"

/* The totals of an evaluation of the curvature. */
enum { TOTAL_SCORE, TOTAL_DRAWN, TOTAL_TERMS };

/* A drawn row weighs at most 1/floor. One bit more is for the rounding of the products. */
static int curvature_exponent(const struct coordinator *c,
                              const struct objective_drawing *drawing) {
    double bound =
        objective_second_bound(&c->settings.shape, maxima_largest(&c->steering->maxima_at_x),
                               c->settings.data->label_max_abs);
    return fixed_derivative_exponent(bound / drawing->floor) + 1;
}

void refreshing_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct optimizer *o = &c->steering->optimizer;
    struct evaluation_request request = {.parts = {.count = 1}};
    request.drawing = preconditioner_drawing(&o->preconditioner, &o->settings.preconditioner);
    request.bounds = bounds_of_one(curvature_exponent(c, &request.drawing));
    request.parts.items[0] = steering_training_part(&c->settings, EVALUATION_CURVATURE);
    steering_begin_evaluation(c, OPTIMIZER_CURVATURE, &request, now_ns, out);
}

void refreshing_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct current_evaluation *evaluation = &c->dispatch.evaluation;
    struct drawn drawn = {.rows = exact_value(&evaluation->totals.sum[TOTAL_DRAWN]),
                          .terms = exact_value(&evaluation->totals.sum[TOTAL_TERMS]),
                          .score = exact_value(&evaluation->totals.sum[TOTAL_SCORE])};
    if (evaluation->exceeded) /* a second derivative was not a number: there are no sums */
        drawn.score = NAN;
    recording_evaluation(c, c->steering->optimizer.step, 0, "curvature", now_ns, out);
    enum optimizer_want want =
        optimizer_curved(&c->steering->optimizer, &drawn, &c->steering->program);
    steering_follow(c, want, now_ns, out);
}

void refreshing_factored(const struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct optimizer *o = &c->steering->optimizer;
    const struct preconditioner *p = &o->preconditioner;
    double seconds = (double)(now_ns - c->dispatch.evaluation.started_ns) / 1e9;
    if (!p->in_force) {
        output_event(out, "preconditioner",
                     "step %llu: the curvature could not be factored; going on without it",
                     (unsigned long long)o->step);
        return;
    }
    output_event(out, "preconditioner",
                 "step %llu: refresh %llu, curvature of %.0f of %llu rows in %.3f s, about %.2g "
                 "passes",
                 (unsigned long long)o->step, (unsigned long long)p->refreshes, p->drawn.rows,
                 (unsigned long long)c->settings.data->rows, seconds,
                 preconditioner_price(p, &o->settings.preconditioner));
}
