#include "optimizer/row.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- why a run ends ---- */

static const struct {
    const char *text;
    bool resumes, model, converged, optimum;
} reasons[] = {
#define X(name, text, resumes, model, converged, optimum)                                          \
    {text, resumes, model, converged, optimum},
    REASON_TABLE(X)
#undef X
};
static_assert(sizeof reasons / sizeof reasons[0] == REASONS, "every reason has its row");

const char *reason_text(enum reason reason) {
    assert((unsigned)reason < REASONS);
    return reasons[reason].text;
}

bool reason_can_resume(enum reason reason) {
    assert((unsigned)reason < REASONS);
    return reasons[reason].resumes;
}

bool reason_text_can_resume(const char *text) {
    return reason_can_resume(reason_of(text));
}

bool reason_has_model(enum reason reason) {
    assert((unsigned)reason < REASONS);
    return reasons[reason].model;
}

bool reason_says_converged(enum reason reason) {
    assert((unsigned)reason < REASONS);
    return reasons[reason].converged;
}

bool reason_claims_optimum(enum reason reason) {
    assert((unsigned)reason < REASONS);
    return reasons[reason].optimum;
}

enum reason reason_of(const char *text) {
    for (enum reason reason = REASON_NONE; text && reason < REASONS; reason++)
        if (!strcmp(reasons[reason].text, text))
            return reason;
    return REASON_NONE;
}

/* ---- what is found, and told ---- */

double found_total(const struct evaluation_found *found, uint32_t part, uint32_t number) {
    assert(found->parts->count <= EVALUATION_PARTS_MAX);
    if (part >= found->parts->count)
        return NAN;
    uint32_t first = evaluation_first_total(found->parts, part);
    assert(first + number < evaluation_totals(found->parts));
    return found->totals[first + number];
}

struct held found_held(const struct evaluation_found *found, uint32_t part,
                       const struct optimizer_data *data) {
    assert(part < EVALUATION_PARTS_MAX);
    const double sums[] = {found_total(found, part, 0), found_total(found, part, 1)};
    return held_of(sums, data);
}

struct held held_of(const double *sums, const struct optimizer_data *data) {
    const double weights = data->holdout_weight_sum;
    return (struct held){.loss = sums[0] / weights,
                         .accuracy = data->classes ? sums[1] / weights : NAN};
}

void report_event(struct optimizer_report *report, const char *kind, const char *format, ...) {
    assert(!report->event && *kind); /* a call has one thing to tell at most */
    report->event = kind;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->event_text, sizeof report->event_text, format, arguments);
    va_end(arguments);
}

void program_return(struct bytes *program) {
    program_add(program,
                &(struct operation){
                    .code = OPERATION_ADD, .a = REGISTER_T, .b = REGISTER_X, .c = REGISTER_X});
}

void serialize_held(struct codec *codec, struct held *held) {
    serialize_f64(codec, &held->loss);
    serialize_f64(codec, &held->accuracy);
}

uint32_t serialize_enum(struct codec *codec, uint32_t number, uint32_t values) {
    serialize_u32(codec, &number);
    serialize_fails_if(codec, number >= values);
    return number;
}

bool gap_by_columns(const struct gap_settings *settings) {
    return settings->known && settings->mean_square <= 0;
}

double gap_allowed(const struct gap_settings *settings, double loss) {
    return settings->tolerance * fmax(loss, settings->least);
}
