#include "optimizer/reason.h"

#include <string.h>

static const struct {
    const char *text;
    bool resumes, model, converged, optimum;
} reasons[] = {
#define X(name, text, resumes, model, converged, optimum)                                          \
    {text, resumes, model, converged, optimum},
    REASON_TABLE(X)
#undef X
};

const char *reason_text(enum reason reason) {
    return reasons[reason].text;
}

bool reason_can_resume(enum reason reason) {
    return reasons[reason].resumes;
}

bool reason_text_can_resume(const char *text) {
    return reason_can_resume(reason_of(text));
}

bool reason_has_model(enum reason reason) {
    return reasons[reason].model;
}

bool reason_has_converged(enum reason reason) {
    return reasons[reason].converged;
}

bool reason_claims_optimum(enum reason reason) {
    return reasons[reason].optimum;
}

enum reason reason_of(const char *text) {
    for (enum reason reason = REASON_NONE; text && reason < REASONS; reason++)
        if (!strcmp(reasons[reason].text, text))
            return reason;
    return REASON_NONE;
}
