/* Why a run ended, and what follows from that. */
#ifndef DML_OPTIMIZER_REASON_H
#define DML_OPTIMIZER_REASON_H

#include <stdbool.h>

/* name, text, whether the run can go on from there (from a limit that was raised), whether it has a
 * model, whether it has converged: came to where the job file wants to stop, and whether it claims
 * to be next to the optimum by that. */
#define REASON_TABLE(X)                                                                            \
    X(REASON_NONE, "", false, false, false, false)                                                 \
    X(REASON_GRADIENT_TOLERANCE, "gradient tolerance", false, true, true, true)                    \
    X(REASON_LOSS_TOLERANCE, "loss tolerance", false, true, true, true)                            \
    X(REASON_STEP_LIMIT, "step limit", true, true, false, false)                                   \
    X(REASON_EPOCH_LIMIT, "epoch limit", true, true, false, false)                                 \
    X(REASON_TIME_LIMIT, "time limit", true, true, false, false)                                   \
    X(REASON_STALLED, "stalled", false, true, false, false)                                        \
    X(REASON_EARLY_STOPPING, "early stopping", false, true, true, false)                           \
    X(REASON_CANCELLED, "cancelled", true, false, false, false)                                    \
    X(REASON_NOT_FINITE, "not finite", false, false, false, false) /* no starting point */

enum reason {
#define X(name, text, resumes, model, converged, optimum) name,
    REASON_TABLE(X)
#undef X
        REASONS
};

const char *reason_text(enum reason reason);
bool reason_can_resume(enum reason reason);
bool reason_has_model(enum reason reason);
bool reason_has_converged(enum reason reason);
bool reason_claims_optimum(enum reason reason);

/* The same of a text that reason_text() gave. */
bool reason_text_can_resume(const char *text);

/* The reason of this text; REASON_NONE if there is none, or the text is NULL. */
enum reason reason_of(const char *text);

#endif
