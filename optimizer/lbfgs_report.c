/* What is told of L-BFGS, for people. */
#include <assert.h>
#include <math.h>

#include "optimizer/lbfgs_internal.h"

void lbfgs_report(struct optimizer_report *report, const struct lbfgs *before, const char *outcome,
                  double loss, double slope) {
    assert(!report->evaluation.outcome);
    report->evaluation.outcome = outcome;
    report->evaluation.step = before->step + before->started;
    report->evaluation.step_length = before->search.step;
    report->evaluation.loss = loss;
    report->evaluation.slope = slope;
}

/* The step that was just accepted, and the safeguards that fired for it. */
void lbfgs_report_step(struct optimizer_report *report, struct lbfgs *o) {
    assert(o->started && !report->step.made);
    report->step.made = true;
    report->step.safeguards = o->fired;
    report->step.step = o->step;
    report->step.loss = o->loss;
    report->step.gradient_max = o->gradient_max;
    report->step.step_length = o->last_step_length;
    report->step.trials = o->last_trials;
    report->step.pairs = o->history.pairs;
    report->step.holdout = o->settings.patience ? o->holdout : (struct held){NAN, NAN};
    o->fired = 0;
}

/* The factor is there, or there is none. */
void lbfgs_report_factor(struct optimizer_request *request, const struct lbfgs *o) {
    const struct preconditioner *p = &o->preconditioner;
    assert(!o->refreshing && p->evaluations > 0);
    if (!p->in_force)
        report_event(&request->report, "preconditioner",
                     "step %llu: the curvature could not be factored; going on without it",
                     (unsigned long long)o->step);
    else
        report_event(&request->report, "preconditioner",
                     "step %llu: refresh %llu, curvature of %.0f of %llu rows in %.3f s, about "
                     "%.3g passes",
                     (unsigned long long)o->step, (unsigned long long)p->refreshes, p->found.rows,
                     (unsigned long long)o->data.rows, request->evaluation_seconds,
                     preconditioner_price(p, &o->settings.preconditioner));
}

void lbfgs_report_working(struct optimizer_request *request, const struct lbfgs *o) {
    const struct preconditioner *p = &o->preconditioner;
    report_event(&request->report, "working set",
                 "step %llu: %u parameters, curvature of %.0f of %llu rows, about %.3g passes",
                 (unsigned long long)o->step, o->working.count, p->found.rows,
                 (unsigned long long)o->data.rows,
                 preconditioner_price(p, &o->settings.preconditioner));
}

void lbfgs_report_summary(struct optimizer_request *request, const struct lbfgs *o,
                          const double *scalars) {
    report_event(&request->report, "summary",
                 "step %llu: second derivatives of all %llu rows in %.3f s; parameters that follow "
                 "from others: %.0f",
                 (unsigned long long)o->step, (unsigned long long)o->data.rows,
                 request->evaluation_seconds, scalars[SUMMARY_ALIASED]);
}
