#include "replica/accrual.h"

#include <stdlib.h>

#include "base/memory.h"

void accrual_clear(struct accrual *accrual, uint32_t totals) {
    struct run *portions = accrual->portions;
    uint32_t capacity = accrual->capacity;
    *accrual = (struct accrual){.portions = portions, .capacity = capacity};
    totals_init(&accrual->totals, totals);
}

void accrual_release(struct accrual *accrual) {
    free(accrual->portions);
    *accrual = (struct accrual){0};
}

/* Portions of the home range follow one another: together they are one run, however many there
 * were.
 */
static void add_run(struct accrual *accrual, struct run portion) {
    struct run *last = accrual->count ? &accrual->portions[accrual->count - 1] : NULL;
    if (last && last->first + last->count == portion.first) {
        last->count += portion.count;
        return;
    }
    MEMORY_ROOM(accrual->portions, accrual->count, accrual->capacity);
    accrual->portions[accrual->count++] = portion;
}

void accrual_add(struct accrual *accrual, struct run portion, const struct computed *computed,
                 int64_t started_ns, int64_t now_ns) {
    if (!accrual->count)
        accrual->since_ns = started_ns;
    add_run(accrual, portion);
    totals_merge(&accrual->totals, &computed->totals);
    maxima_merge(&accrual->maxima, &computed->maxima);
    accrual->exceeded |= computed->exceeded;
    accrual->values += computed->values;
    accrual->busy_ns += now_ns - started_ns;
}
