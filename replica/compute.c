#include "replica/compute.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

typedef int kernel(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                   int64_t *sums, struct chunk_result *found);

static int gradient(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                    int64_t *sums, struct chunk_result *found) {
    (void)number;
    return objective_block(place->shape, place->scale, rows, place->parameters, sums,
                           place->scratch, &found->result);
}

static int curvature(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                     int64_t *sums, struct chunk_result *found) {
    objective_curvature(place->shape, place->sample, rows, number, place->parameters, sums,
                        place->scratch, &found->hessian);
    return 0;
}

static int information(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                       int64_t *sums, struct chunk_result *found) {
    assert(place->sample->seconds == SECONDS_EXPECTED);
    return curvature(place, number, rows, sums, found);
}

static int scores(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                  int64_t *sums, struct chunk_result *found) {
    assert(place->sample->seconds == SECONDS_SCORES);
    return curvature(place, number, rows, sums, found);
}

/* The workspace of a thread is for blocks of listed columns, or for those of the first, in a run.
 */
static int listed(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                  int64_t *sums, struct chunk_result *found) {
    assert(place->sample->list);
    return curvature(place, number, rows, sums, found);
}

int kernel_find_rows(const struct sums_sizes *sizes, uint32_t number, const struct rows *rows,
                     uint64_t *at) {
    if (rows->first > sizes->rows || rows->count > sizes->rows - rows->first)
        return error_set(ERROR_INTERNAL, "the rows of chunk %u are in no vector of rows", number);
    assert(sizes->outputs > 0);
    *at = rows->first * sizes->outputs;
    return 0;
}

/* What each row has of its own, whatever the point. */
static int add_of_rows(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                       int64_t *sums,
                       void (*add)(const struct objective_shape *shape, const struct rows *rows,
                                   int64_t *sum)) {
    uint64_t at = 0;
    int code = kernel_find_rows(place->sizes, number, rows, &at);
    if (!code && sums)
        add(place->shape, rows, sums + at);
    return code;
}

static int labels(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                  int64_t *sums, struct chunk_result *found) {
    (void)found;
    return add_of_rows(place, number, rows, sums, objective_add_labels);
}

static int weights(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                   int64_t *sums, struct chunk_result *found) {
    (void)found;
    return add_of_rows(place, number, rows, sums, objective_add_weights);
}

static int offsets(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                   int64_t *sums, struct chunk_result *found) {
    (void)found;
    return add_of_rows(place, number, rows, sums, objective_add_offsets);
}

static int sizes(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                 int64_t *sums, struct chunk_result *found) {
    (void)found;
    if (!rows->size)
        return error_set(ERROR_INTERNAL, "asked for the sizes of rows that are not in tiles");
    return add_of_rows(place, number, rows, sums, objective_add_sizes);
}

/* A strip of a network is a linear model, with one bound: that of the network's first tensor. */
static void fill_maxima(const struct kernel_place *place, struct maxima *maxima) {
    if (maxima->count)
        maxima->count = place->scale->bounds.count;
}

static int product(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                   int64_t *sums, struct chunk_result *found) {
    uint64_t at = 0;
    int code = kernel_find_rows(place->sizes, number, rows, &at);
    if (!code)
        objective_product(place->shape, place->scale, rows, place->parameters,
                          sums ? sums + at : NULL, place->scratch, &found->result);
    fill_maxima(place, &found->result.maxima);
    return code;
}

static int transpose(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                     int64_t *sums, struct chunk_result *found) {
    uint64_t at = 0;
    int code = kernel_find_rows(place->sizes, number, rows, &at);
    assert(code || at >= place->first_number);
    if (!code)
        objective_transpose(place->shape, place->scale, rows,
                            place->parameters + (at - place->first_number), sums, place->scratch,
                            &found->result);
    fill_maxima(place, &found->result.maxima);
    return code;
}

/* Where the upper layers are computed for these rows. *at: as kernel_find_rows(). */
static int find_upper_point(const struct kernel_place *place, uint32_t number,
                            const struct rows *rows, struct upper_point *point, uint64_t *at) {
    int code = kernel_find_rows(place->sizes, number, rows, at);
    if (code)
        return code;
    if (!place->upper)
        return error_set(ERROR_INTERNAL, "asked for upper layers of a model that has none");
    assert(*at >= place->first_number);
    *point = (struct upper_point){.parameters = place->upper,
                                  .margins = place->parameters + (*at - place->first_number)};
    return 0;
}

/* Of the held-out rows of a network in tiles: at the margins of its first layer. */
static int upper_loss(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                      struct chunk_result *found) {
    struct upper_point point;
    uint64_t at = 0;
    int code = find_upper_point(place, number, rows, &point, &at);
    if (!code)
        objective_upper_loss(place->shape, rows, &point, place->scratch, &found->result);
    return code;
}

static int loss(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                int64_t *sums, struct chunk_result *found) {
    (void)sums;
    if (place->upper)
        return upper_loss(place, number, rows, found);
    return objective_block(place->shape, NULL, rows, place->parameters, NULL, place->scratch,
                           &found->result);
}

static int derivatives(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                       int64_t *sums, struct chunk_result *found) {
    struct upper_point point;
    uint64_t at = 0;
    int code = find_upper_point(place, number, rows, &point, &at);
    if (!code)
        objective_derivatives(place->shape, place->scale, rows, &point, sums ? sums + at : NULL,
                              place->scratch, &found->result);
    return code;
}

static int upper(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                 int64_t *sums, struct chunk_result *found) {
    struct upper_point point;
    uint64_t at = 0;
    int code = find_upper_point(place, number, rows, &point, &at);
    if (!code)
        objective_upper_gradient(place->shape, place->scale, rows, &point, sums, place->scratch,
                                 &found->result);
    return code;
}

static kernel *const kernels[] = {
#define KIND(NAME, name, number, totals, sums, text) [number] = name,
#include "wire/kinds.def"
};

/* Once a bound was exceeded the sums are void, and nothing is added to them. */
int kernel_run(const struct kernel_place *place, const struct evaluation_parts *parts,
               uint32_t number, const struct rows *rows, struct computed *computed) {
    uint32_t part = evaluation_part_at(parts, number);
    if (part == parts->count)
        return kernel_no_part(number);
    struct chunk_result found = {.values = rows->values, .first = rows->first, .rows = rows->count};
    int code = kernels[parts->items[part].kind](place, number, rows,
                                                computed->exceeded ? NULL : place->sums, &found);
    if (!code)
        computed_add_chunk(computed, parts, part, &found);
    return code;
}

bool parts_take_rows(const struct evaluation_parts *parts) {
    assert(parts->count > 0);
    return parts->items[0].kind == EVALUATION_TRANSPOSE;
}

bool parts_take_no_point(const struct evaluation_parts *parts) {
    for (uint32_t i = 0; i < parts->count; i++) {
        uint32_t kind = parts->items[i].kind;
        if (kind != EVALUATION_LABELS && kind != EVALUATION_WEIGHTS && kind != EVALUATION_OFFSETS &&
            kind != EVALUATION_SIZES)
            return false;
    }
    return true;
}

bool parts_mix_points(const struct evaluation_parts *parts) {
    for (uint32_t i = 1; i < parts->count; i++)
        if (parts->items[i].kind != EVALUATION_UPPER &&
            (parts->items[i].kind == EVALUATION_TRANSPOSE) != parts_take_rows(parts))
            return true;
    return false;
}

bool part_is_upper(const struct evaluation_parts *parts, uint32_t part) {
    assert(part < parts->count);
    return parts->items[part].kind == EVALUATION_UPPER ||
           parts->items[0].kind == EVALUATION_DERIVATIVES;
}

bool parts_are_upper(const struct evaluation_parts *parts) {
    for (uint32_t i = 0; i < parts->count; i++)
        if (part_is_upper(parts, i))
            return true;
    return false;
}

enum objective_seconds kind_seconds(uint32_t kind) {
    return kind == EVALUATION_INFORMATION ? SECONDS_EXPECTED
           : kind == EVALUATION_SCORES    ? SECONDS_SCORES
                                          : SECONDS_SAMPLED;
}

bool kind_is_of_processor(uint32_t kind) {
    switch ((enum evaluation_kind)kind) {
    case EVALUATION_LABELS:
    case EVALUATION_WEIGHTS:
    case EVALUATION_OFFSETS:
    case EVALUATION_SIZES:
    case EVALUATION_LISTED:
    case EVALUATION_INFORMATION:
    case EVALUATION_SCORES:
    case EVALUATION_DERIVATIVES:
    case EVALUATION_UPPER:
        return true;
    case EVALUATION_GRADIENT:
    case EVALUATION_LOSS:
    case EVALUATION_CURVATURE:
    case EVALUATION_PRODUCT:
    case EVALUATION_TRANSPOSE:
        break;
    }
    return false;
}

int kernel_no_part(uint32_t number) {
    return error_set(ERROR_INTERNAL, "chunk %u is of no part of the evaluation", number);
}

/* ---- what was computed ---- */

static void add_result(struct computed *computed, const struct objective_result *result,
                       uint64_t values) {
    maxima_merge(&computed->maxima, &result->maxima);
    computed->exceeded |= result->exceeded;
    computed->values += values;
}

static void add_rows(struct computed *computed, const struct chunk_result *found) {
    computed->rows = row_range_join(computed->rows,
                                    (struct row_range){found->first, found->first + found->rows});
}

void computed_add_chunk(struct computed *computed, const struct evaluation_parts *parts,
                        uint32_t part, const struct chunk_result *found) {
    const struct objective_result *result = &found->result;
    const struct objective_hessian *hessian = &found->hessian;
    assert(part < parts->count && computed->totals.count == evaluation_totals(parts));
    struct exact *totals = &computed->totals.sum[evaluation_first_total(parts, part)];
    switch ((enum evaluation_kind)parts->items[part].kind) {
    case EVALUATION_GRADIENT:
    case EVALUATION_UPPER:
        /* The loss is the total. */
        exact_add(&totals[0], result->loss);
        add_result(computed, result, found->values);
        break;
    case EVALUATION_LOSS:
        /* The loss, and the weight of the rows that are predicted correctly. Derivatives of these
         * rows go into no sum, so no bound applies. */
        exact_add(&totals[0], result->loss);
        exact_add(&totals[1], result->correct);
        break;
    case EVALUATION_CURVATURE:
    case EVALUATION_LISTED:
    case EVALUATION_INFORMATION:
    case EVALUATION_SCORES:
        /* Second derivatives are of the rows that are sampled; the totals are over all rows. */
        exact_add(&totals[0], hessian->trace_leverage);
        exact_add(&totals[1], (double)hessian->sampled);
        exact_add(&totals[2], (double)hessian->terms);
        exact_add(&totals[3], hessian->trace);
        if (parts->items[part].kind == EVALUATION_SCORES) {
            const struct maxima largest = maxima_of_one(hessian->largest);
            maxima_merge(&computed->maxima, &largest);
        }
        computed->exceeded |= hessian->exceeded;
        computed->values += found->values;
        break;
    case EVALUATION_LABELS:
    case EVALUATION_WEIGHTS:
    case EVALUATION_OFFSETS:
    case EVALUATION_SIZES:
    case EVALUATION_PRODUCT:
        /* Its rows; each has a value of the sums an output. */
        exact_add(&totals[0], found->rows);
        add_result(computed, result, found->rows);
        add_rows(computed, found);
        break;
    case EVALUATION_DERIVATIVES:
        /* The loss; its rows, as above. */
        exact_add(&totals[0], result->loss);
        add_result(computed, result, found->rows);
        add_rows(computed, found);
        break;
    case EVALUATION_TRANSPOSE:
        /* Its rows: the losses are the shards'. */
        exact_add(&totals[0], found->rows);
        add_result(computed, result, found->values);
        break;
    }
}

struct row_range row_range_join(struct row_range a, struct row_range b) {
    if (a.first == a.end || b.first == b.end)
        return a.first == a.end ? b : a;
    return (struct row_range){a.first < b.first ? a.first : b.first, a.end > b.end ? a.end : b.end};
}

void computed_init(struct computed *computed, const struct evaluation_parts *parts) {
    *computed = (struct computed){0};
    totals_init(&computed->totals, evaluation_totals(parts));
}

void computed_add(struct computed *into, const struct computed *part) {
    assert(into->totals.count == part->totals.count);
    totals_merge(&into->totals, &part->totals);
    maxima_merge(&into->maxima, &part->maxima);
    into->exceeded |= part->exceeded;
    into->stopped |= part->stopped;
    into->values += part->values;
    into->rows = row_range_join(into->rows, part->rows);
    if (part->error && !into->error) {
        into->error = part->error;
        into->device_failed = part->device_failed;
        memcpy(into->reason, part->reason, sizeof into->reason);
    }
}
