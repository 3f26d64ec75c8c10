#include "optimizer/preconditioner.h"

#include <assert.h>
#include <math.h>

#define SAMPLE_GROWTH 4
#define STEPS_LEAST 2
#define LOSS_CHANGE 0.05
#define PASSES_TO_GROW 4 /* times the cost */
#define UNIFORM_SHARE 0.1
#define FAILURES_MAX 3
#define DOUBLINGS_MAX 30
#define FIRST_STEP_LEAST 0.1

static uint64_t at_most(uint64_t rows, const struct preconditioner_settings *s) {
    assert(rows > 0 && s->rows > 0);
    return rows < s->rows ? rows : s->rows;
}

void preconditioner_starts_near(struct preconditioner_settings *s) {
    s->near = true;
    if (s->form == PRECONDITION_FULL)
        s->sample = at_most(SAMPLE_GROWTH * s->sample, s);
}

double preconditioner_cost(const struct preconditioner *p,
                           const struct preconditioner_settings *s) {
    return s->cost_all + p->found.terms * s->cost_term;
}

/* Whether the sample was too small to be of help for so long. What slows a leading block down is
 * the columns beyond it, of which a larger sample says nothing. */
static bool must_grow(const struct preconditioner *p, const struct preconditioner_settings *s) {
    assert(p->sample > 0);
    return s->form != PRECONDITION_LEADING && p->sample < s->rows &&
           (double)p->passes > PASSES_TO_GROW * preconditioner_cost(p, s);
}

bool preconditioner_due(const struct preconditioner *p, const struct preconditioner_settings *s,
                        double loss) {
    assert(p->refreshes <= p->evaluations && p->failures <= FAILURES_MAX);
    bool factored = s->form == PRECONDITION_FULL || s->form == PRECONDITION_LEADING;
    if (!factored || p->failures >= FAILURES_MAX)
        return false;
    if (!p->sample)
        return true;
    if (p->steps < STEPS_LEAST || ((s->constant || s->shared) && p->in_force))
        return false;
    /* How many costs the passes between two refreshes must exceed. What the pairs have learned of
     * the columns beyond a leading block is lost with each refresh, so these become rarer. */
    uint64_t refreshes = s->form == PRECONDITION_LEADING ? p->refreshes : p->refreshes > 1;
    uint64_t doublings = refreshes + p->overshoots;
    double costs = ldexp(1, doublings < DOUBLINGS_MAX ? (int)doublings : DOUBLINGS_MAX);
    if ((double)p->passes <= preconditioner_cost(p, s) * costs)
        return false;
    double change = s->change > 0 ? s->change : LOSS_CHANGE;
    bool changed = fabs(loss - p->loss) > change * fabs(p->loss);
    return changed || !p->in_force || must_grow(p, s);
}

uint64_t preconditioner_sample(const struct preconditioner *p,
                               const struct preconditioner_settings *s) {
    assert(p->sample <= s->rows);
    if (!p->sample)
        return s->constant ? s->rows : at_most(s->sample, s);
    return must_grow(p, s) ? at_most(SAMPLE_GROWTH * p->sample, s) : p->sample;
}

/* The chances of all rows add up to about the sample. Σ leverage_i is at most rows·columns: the
 * score before the first refresh. */
struct row_sampling preconditioner_sampling_of(const struct preconditioner *p,
                                               const struct preconditioner_settings *s,
                                               uint64_t sample) {
    assert(sample > 0 && s->rows > 0);
    double score = p->found.score;
    if (!(score > 0))
        score = s->trace_first * (double)s->rows * (double)s->columns;
    struct row_sampling all = {.floor = 1, .sample_seed = p->refreshes + 1};
    double rate = (1 - UNIFORM_SHARE) * (double)sample / score;
    if (sample >= s->rows || !isfinite(rate))
        return all;
    return (struct row_sampling){.rate = rate,
                                 .floor = UNIFORM_SHARE * (double)sample / (double)s->rows,
                                 .sample_seed = p->refreshes + 1};
}

struct row_sampling preconditioner_sampling(const struct preconditioner *p,
                                            const struct preconditioner_settings *s) {
    return preconditioner_sampling_of(p, s, preconditioner_sample(p, s));
}

/* Where most rows are fitted, as they are towards the end of classes that can nearly be separated,
 * they hardly curve, and P takes steps that bring other rows back to where they curve. */
void preconditioner_stepped(struct preconditioner *p, double length, uint64_t passes) {
    assert(passes > 0 && length >= 0);
    if (p->in_force && !p->steps && length < FIRST_STEP_LEAST)
        p->overshoots++;
    p->steps++;
    p->passes += passes;
}

/* A refresh was made: the next one is due from here on. */
static void begin_anew(struct preconditioner *p, const struct preconditioner_settings *s,
                       double loss) {
    p->evaluations++;
    p->sample = preconditioner_sample(p, s);
    p->loss = loss;
    p->steps = p->passes = 0;
    assert(p->sample > 0 && p->evaluations > p->refreshes);
}

void preconditioner_refreshed(struct preconditioner *p, const struct preconditioner_settings *s,
                              double loss, const struct curvature_found *found) {
    assert(isfinite(found->score)); /* else there is no factor */
    begin_anew(p, s, loss);
    p->found = *found;
    p->in_force = true;
    p->refreshes++;
    p->cost_total += preconditioner_cost(p, s);
    assert(p->refreshes <= p->evaluations);
}

void preconditioner_counted(struct preconditioner *p, const struct preconditioner_settings *s,
                            double loss, const struct curvature_found *found) {
    assert(isfinite(found->score) && !p->in_force);
    p->evaluations++;
    p->refreshes++;
    p->found = *found;
    p->loss = loss;
    p->steps = p->passes = 0;
    p->cost_total += preconditioner_cost(p, s);
}

void preconditioner_failed(struct preconditioner *p) {
    p->in_force = false;
    p->failures++;
    assert(p->failures <= FAILURES_MAX);
    p->steps = p->passes = 0;
}

void preconditioner_unfactored(struct preconditioner *p, const struct preconditioner_settings *s,
                               double loss) {
    begin_anew(p, s, loss);
    preconditioner_failed(p);
    p->cost_total += preconditioner_cost(p, s);
    assert(!p->in_force && p->failures > 0);
}

/* ---- in the record of the state ---- */

void serialize_curvature_found(struct codec *codec, struct curvature_found *found) {
    serialize_f64(codec, &found->rows);
    serialize_f64(codec, &found->terms);
    serialize_f64(codec, &found->score);
    serialize_f64(codec, &found->trace);
}

void preconditioner_serialize(struct codec *codec, struct preconditioner *p) {
    serialize_bool(codec, &p->in_force);
    serialize_u64(codec, &p->refreshes);
    serialize_u64(codec, &p->evaluations);
    serialize_u64(codec, &p->sample);
    serialize_curvature_found(codec, &p->found);
    serialize_f64(codec, &p->loss);
    serialize_u64(codec, &p->steps);
    serialize_u64(codec, &p->passes);
    serialize_f64(codec, &p->cost_total);
    serialize_u32(codec, &p->failures);
    serialize_u32(codec, &p->overshoots);
}
