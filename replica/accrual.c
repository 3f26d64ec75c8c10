#include "replica/accrual.h"

#include <stdlib.h>

#include "base/memory.h"

void accrual_clear(struct accrual *accrual) {
    struct run *portions = accrual->portions;
    uint32_t capacity = accrual->capacity;
    *accrual = (struct accrual){.portions = portions, .capacity = capacity};
    exact_init(&accrual->loss);
    exact_init(&accrual->holdout_loss);
}

void accrual_release(struct accrual *accrual) {
    free(accrual->portions);
    *accrual = (struct accrual){0};
}

void accrual_add(struct accrual *accrual, struct run portion, const struct computed *computed,
                 int64_t started_ns, int64_t now_ns) {
    if (accrual->count == accrual->capacity) {
        accrual->capacity = accrual->capacity ? 2 * accrual->capacity : 8;
        accrual->portions =
            memory_resize(accrual->portions, accrual->capacity, sizeof *accrual->portions);
    }
    if (!accrual->count)
        accrual->since_ns = started_ns;
    accrual->portions[accrual->count++] = portion;
    exact_merge(&accrual->loss, &computed->loss);
    exact_merge(&accrual->holdout_loss, &computed->holdout_loss);
    if (computed->derivative_max > accrual->derivative_max)
        accrual->derivative_max = computed->derivative_max;
    accrual->exceeded |= computed->exceeded;
    accrual->values += computed->values;
    accrual->busy_ns += now_ns - started_ns;
}
