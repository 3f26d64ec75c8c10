#include "replica/kernels.h"

#include <string.h>

#include "base/error.h"

typedef int kernel(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                   struct exact *totals, struct computed *computed);

/* The loss is the total. Once a bound was exceeded the sums are of no use. */
static int gradient(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                    struct exact *totals, struct computed *computed) {
    (void)number;
    struct objective_result result;
    int code = objective_block(place->shape, place->scale, rows, place->parameters,
                               computed->exceeded ? NULL : place->sums, place->scratch, &result);
    if (code)
        return code;
    exact_add(&totals[0], result.loss);
    maxima_merge(&computed->maxima, &result.maxima);
    computed->exceeded |= result.exceeded;
    computed->values += rows->values;
    return 0;
}

/* The loss, and the weight of the rows that are predicted correctly. Derivatives of these rows go
 * into no sum, so no bound applies. */
static int loss(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                struct exact *totals, struct computed *computed) {
    (void)number, (void)computed;
    struct objective_result result;
    int code =
        objective_block(place->shape, NULL, rows, place->parameters, NULL, place->scratch, &result);
    if (code)
        return code;
    exact_add(&totals[0], result.loss);
    exact_add(&totals[1], result.correct);
    return 0;
}

/* Second derivatives of the rows that are drawn; the totals are over all rows. */
static int curvature(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                     struct exact *totals, struct computed *computed) {
    struct objective_curved curved;
    objective_curvature(place->shape, place->sample, rows, number, place->parameters,
                        computed->exceeded ? NULL : place->sums, place->scratch, &curved);
    exact_add(&totals[0], curved.trace_leverage);
    exact_add(&totals[1], (double)curved.drawn);
    exact_add(&totals[2], (double)curved.terms);
    computed->exceeded |= curved.exceeded;
    computed->values += rows->values;
    return 0;
}

static kernel *const kernels[] = {
#define KIND(NAME, name, number, totals, sums, text) [number] = name,
#include "wire/kinds.def"
};

int kernel_run(const struct kernel_place *place, const struct evaluation_parts *parts,
               uint32_t number, const struct rows *rows, struct computed *computed) {
    uint32_t index = evaluation_part_at(parts, number);
    if (index == parts->count)
        return error_set(ERROR_INTERNAL, "chunk %u is of no part of the evaluation", number);
    struct exact *totals = &computed->totals.sum[evaluation_first_total(parts, index)];
    return kernels[parts->items[index].kind](place, number, rows, totals, computed);
}

void computed_init(struct computed *computed, const struct evaluation_parts *parts) {
    totals_init(&computed->totals, evaluation_totals(parts));
    computed->maxima = (struct maxima){0};
    computed->exceeded = computed->stopped = false;
    computed->values = 0;
    computed->error = 0;
    computed->reason[0] = '\0';
}

void computed_add(struct computed *into, const struct computed *part) {
    totals_merge(&into->totals, &part->totals);
    maxima_merge(&into->maxima, &part->maxima);
    into->exceeded |= part->exceeded;
    into->stopped |= part->stopped;
    into->values += part->values;
    if (part->error && !into->error) {
        into->error = part->error;
        memcpy(into->reason, part->reason, sizeof into->reason);
    }
}
