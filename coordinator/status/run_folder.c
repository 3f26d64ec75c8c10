#include "coordinator/status/run_folder.h"

#include <stdlib.h>

#include "base/memory.h"

char *run_model_folder(const char *state, int64_t run) {
    return memory_format("%s/models/%lld", state, (long long)run);
}

int64_t run_of_folder(const char *name) {
    char *end;
    long long number = strtoll(name, &end, 10);
    return !*end && number > 0 && number < INT64_MAX ? number : 0;
}
