#include "coordinator/job/gate.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* ---- parsing ---- */

static void skip_blanks(const char **at) {
    while (isspace((unsigned char)**at))
        (*at)++;
}

/* Takes `word` if it is next, and not only the beginning of a longer one. */
static bool take_word(const char **at, const char *word) {
    size_t length = strlen(word);
    skip_blanks(at);
    char next = strncmp(*at, word, length) ? 'a' : (*at)[length];
    if (isalnum((unsigned char)next) || next == '_')
        return false;
    *at += length;
    return true;
}

static bool take_mark(const char **at, const char *mark) {
    skip_blanks(at);
    if (strncmp(*at, mark, strlen(mark)))
        return false;
    *at += strlen(mark);
    return true;
}

static bool take_number(const char **at, double *number) {
    char *end;
    skip_blanks(at);
    *number = strtod(*at, &end);
    if (end == *at || !isfinite(*number))
        return false;
    *at = end;
    return true;
}

static bool take_comparison(const char **at, enum gate_comparison *comparison) {
    if (take_mark(at, "<="))
        *comparison = GATE_AT_MOST;
    else if (take_mark(at, "<"))
        *comparison = GATE_BELOW;
    else if (take_mark(at, ">="))
        *comparison = GATE_AT_LEAST;
    else if (take_mark(at, ">"))
        *comparison = GATE_ABOVE;
    else
        return false;
    return true;
}

/* After `live`: nothing, or + or - and a number. */
static bool take_offset(const char **at, double *offset) {
    double sign = take_mark(at, "+") ? 1 : take_mark(at, "-") ? -1 : 0;
    if (sign == 0)
        return true;
    if (!take_number(at, offset))
        return false;
    *offset *= sign;
    return true;
}

static bool take_limit(const char **at, struct gate_condition *condition) {
    double number;
    condition->factor = 1;
    condition->offset = 0;
    condition->relative = take_word(at, "live");
    if (condition->relative)
        return take_offset(at, &condition->offset);
    if (!take_number(at, &number))
        return false;
    if (!take_mark(at, "*")) {
        condition->offset = number;
        return true;
    }
    condition->factor = number;
    condition->relative = take_word(at, "live");
    return condition->relative && take_offset(at, &condition->offset);
}

/* The figure whose name is next, or NULL. */
static const struct score_figure *take_figure(const char **at) {
    for (size_t i = 0; i < score_figure_count; i++)
        if (take_word(at, score_figure_table[i].name))
            return &score_figure_table[i];
    return NULL;
}

bool gate_parse(const char *text, struct gate_condition *condition) {
    const char *at = text;
    condition->figure = take_figure(&at);
    if (!condition->figure || !take_comparison(&at, &condition->comparison) ||
        !take_limit(&at, condition))
        return false;
    skip_blanks(&at);
    return !*at;
}

const char *gate_suggestion(const char *text) {
    const char *at = text;
    bool known = take_figure(&at) != NULL;
    while (*at && !isalpha((unsigned char)*at))
        at++;
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
    char *word = memory_format("%.*s", (int)length, at);
    struct nearest nearest = {.text = word};
    if (known)
        nearest_offer(&nearest, "live");
    for (size_t i = 0; !known && i < score_figure_count; i++)
        nearest_offer(&nearest, score_figure_table[i].name);
    free(word);
    return nearest.distance ? nearest_suggestion(&nearest, "") : "";
}

/* A bound from the wrong side would let only bad models through. A share above 1 would let none
 * through. */
bool gate_is_condition(const char *text) {
    struct gate_condition condition;
    if (!gate_parse(text, &condition))
        return false;
    const struct score_figure *figure = condition.figure;
    bool upper = condition.comparison == GATE_AT_MOST || condition.comparison == GATE_BELOW;
    bool in_reach = upper || condition.relative || condition.offset <= figure->most;
    bool wanted = figure->better == SCORE_NEITHER || (figure->better == SCORE_LOWER) == upper;
    return wanted && in_reach;
}

bool gate_suits(const struct gate_condition *condition, enum objective_kind objective) {
    return score_figure_suits(condition->figure, objective_of(objective));
}

/* ---- checking ---- */

static double limit_of_condition(const struct gate_outcome *outcome) {
    const struct gate_condition *condition = &outcome->condition;
    double product = condition->relative ? condition->factor * outcome->live : 0;
    return product + condition->offset;
}

static bool compares(enum gate_comparison comparison, double figure, double limit) {
    if (!isfinite(figure) || !isfinite(limit))
        return false;
    switch (comparison) {
    case GATE_AT_MOST:
        return figure <= limit;
    case GATE_BELOW:
        return figure < limit;
    case GATE_AT_LEAST:
        return figure >= limit;
    case GATE_ABOVE:
        break;
    }
    return figure > limit;
}

struct gate_outcome gate_check(const char *text, const struct score_figures *new,
                               const struct score_figures *live) {
    struct gate_outcome outcome = {.text = text};
    bool parsed = gate_parse(text, &outcome.condition);
    assert(parsed); /* it was checked when the job file was read */
    outcome.new = score_figure_value(new, outcome.condition.figure);
    outcome.live = live ? score_figure_value(live, outcome.condition.figure) : NAN;
    outcome.unpublished = outcome.condition.relative && !live;
    outcome.holds = outcome.unpublished || compares(outcome.condition.comparison, outcome.new,
                                                    limit_of_condition(&outcome));
    return outcome;
}

/* ---- explaining ---- */

static const char *const comparisons[] = {[GATE_AT_MOST] = "at most",
                                          [GATE_BELOW] = "below",
                                          [GATE_AT_LEAST] = "at least",
                                          [GATE_ABOVE] = "above"};

char *gate_explain(const struct gate_outcome *outcome) {
    const char *figure = outcome->condition.figure->name;
    assert(outcome->condition.comparison < sizeof comparisons / sizeof *comparisons);
    if (outcome->unpublished)
        return memory_format("%s holds: there is no live model yet", outcome->text);
    if (!isfinite(outcome->new))
        return memory_format("%s does not hold: the new model has no finite %s on the holdout",
                             outcome->text, figure);
    if (outcome->condition.relative && !isfinite(outcome->live))
        return memory_format("%s does not hold: the live model has no finite %s on the holdout",
                             outcome->text, figure);
    char live[48] = "";
    if (outcome->condition.relative)
        snprintf(live, sizeof live, " (live %.6g)", outcome->live);
    return memory_format("%s %s: the new model's %s %.6g is %s%s %.6g%s", outcome->text,
                         outcome->holds ? "holds" : "does not hold", figure, outcome->new,
                         outcome->holds ? "" : "not ", comparisons[outcome->condition.comparison],
                         limit_of_condition(outcome), live);
}

json_t *gate_outcome_json(const struct gate_outcome *outcome) {
    return json_pack("{s:s, s:o, s:o, s:b}", "condition", outcome->text, "new",
                     number_json(outcome->new), "live", number_json(outcome->live), "holds",
                     outcome->holds);
}
