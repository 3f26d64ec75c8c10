#include "wire/tenancy.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

void tenancy_begin(struct tenancy *tenancy, const char *run) {
    tenancy->until_ns = 0;
    if (!tenancy->run)
        tenancy->run = memory_copy_string(run);
}

void tenancy_end(struct tenancy *tenancy) {
    free(tenancy->run);
    *tenancy = (struct tenancy){0};
}

/* The UUID, without what tells copies of a state folder apart. */
#define RUN "%.36s"

char *tenancy_objection(const struct tenancy *tenancy, const char *run, int64_t now_ns) {
    if (!tenancy->run || !strcmp(tenancy->run, run))
        return NULL;
    if (!tenancy->until_ns)
        return memory_format("it is busy with another run, " RUN ", until that ends", tenancy->run);
    int64_t left_ns = tenancy->until_ns - now_ns;
    return memory_format("it is busy with another run, " RUN ", whose coordinator is lost, and "
                         "waits for that for %.0f s more",
                         tenancy->run, left_ns > 0 ? (double)left_ns / (double)NS_PER_S : 0.0);
}
