#include "coordinator/status/stage.h"

#include <stddef.h>

const char *stage_text(enum stage stage) {
    static const char *const texts[STAGE_COUNT] = {
#define X(name, text) [name] = text,
        STAGES(X)
#undef X
    };
    return texts[stage];
}
