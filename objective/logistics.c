/* What losses share that are a logistic loss of each output. The derivatives are σ(m), less 1 where
 * the label is on the output's side: within [−1, 1]. */
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

/* The outputs that a row's label is on the side of, if these follow each other. */
struct side {
    size_t first, end;
};

static struct side side_of(enum logistics_side kind, double label) {
    size_t class = (size_t)label;
    return kind == LOGISTICS_BELOW ? (struct side){0, class} : (struct side){class, class + 1};
}

static bool is_own(enum logistics_side kind, const struct side *side, size_t output,
                   const double *listed) {
    return kind == LOGISTICS_LISTED ? *listed != 0 : output >= side->first && output < side->end;
}

/* Of one output, with t = e^−|m|. On entry `loss` is log(1 + t). With `own`, m counts the other
 * way. Each numerator is 1 or t, so that all digits are kept, however small the derivative is. */
static double finish(double margin, bool own, double t, double *loss) {
    double m = own ? -margin : margin, zero_or_nan = margin - margin;
    *loss += (m > 0 ? m : 0) + zero_or_nan;
    double slope = (m > 0 ? 1 : t) / (1 + t);
    return own ? -slope : slope;
}

/* Output by output of row by row. */
void logistics_losses(enum logistics_side kind, size_t rows, size_t outputs, const double *label,
                      double *margins, double *loss, double *work) {
    size_t count = rows * outputs, row = 0, output = 0;
    const bool listed = kind == LOGISTICS_LISTED;
    struct side side = side_of(kind, label[0]);
    for (size_t i = 0; i < count; i++)
        work[i] = -fabs(margins[i]);
    special_exp(count, work, work);
    for (size_t first = 0; first < count; first += PIECE) {
        double part[PIECE];
        size_t length = count - first < PIECE ? count - first : PIECE;
        special_log1p(length, part, work + first);
        for (size_t i = 0; i < length; i++) {
            double *margin = &margins[first + i];
            bool own = is_own(kind, &side, output, label + (listed ? first + i : 0));
            *margin = finish(*margin, own, work[first + i], &part[i]);
            loss[row] = output ? loss[row] + part[i] : part[i];
            if (++output < outputs)
                continue;
            output = 0;
            if (++row < rows)
                side = side_of(kind, label[listed ? 0 : row]);
        }
    }
}

/* |d|·(1 − |d|), with |d| the probability of the other side. */
static double variance(double derivative) {
    double size = fabs(derivative);
    return size * (1 - size);
}

void logistics_second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                      const double *label, const double *derivatives, const double *work,
                      double *diagonal) {
    (void)parameters;
    (void)label;
    (void)work;
    for (size_t i = 0; i < rows * outputs; i++)
        diagonal[i] = variance(derivatives[i]);
}

/* Outputs do not act on each other. */
void logistics_second_row(size_t outputs, double label, const double *derivatives, size_t k,
                          double *row) {
    (void)label;
    for (size_t other = 0; other < outputs; other++)
        row[other] = 0;
    row[k] = variance(derivatives[k]);
}

/* ---- for scoring ---- */

double logistic_loss(double margin, bool own) {
    double m = own ? -margin : margin;
    return log1p(exp(-fabs(m))) + (m > 0 ? m : 0);
}

double logistics_loss(enum logistics_side kind, size_t outputs, const double *margins,
                      double label) {
    struct side side = side_of(kind, label);
    double sum = 0;
    for (size_t k = 0; k < outputs; k++)
        sum += logistic_loss(margins[k], k >= side.first && k < side.end);
    return sum;
}

/* 1/(1 + e^−m) without overflow. */
static double probability(double margin) {
    double e = exp(-fabs(margin));
    return (margin >= 0 ? 1 : e) / (1 + e);
}

void logistics_predict(size_t outputs, double *margins) {
    for (size_t k = 0; k < outputs; k++)
        margins[k] = probability(margins[k]);
}
