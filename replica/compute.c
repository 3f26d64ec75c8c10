#include "replica/compute.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "objective/halves.h"

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

static int loss(const struct kernel_place *place, uint32_t number, const struct rows *rows,
                int64_t *sums, struct chunk_result *found) {
    (void)sums;
    if (place->upper) {
        /* Held-out rows of a network in tiles, at the margins of its first layer. */
        struct upper_point point;
        uint64_t at = 0;
        int code = find_upper_point(place, number, rows, &point, &at);
        if (!code)
            objective_upper_loss(place->shape, rows, &point, place->scratch, &found->result);
        return code;
    }
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

/* What the coordinator does not look at in each row of the table: the two functions, and the forms
 * of second derivatives, which objective/curvature.c defines. */
#define HESSIAN(NAME, form, listed, extra_bits) extern const struct second_form second_##form;
#include "wire/kinds.def"
static const struct second_form *const forms[] = {
#define HESSIAN(NAME, form, listed, extra_bits) [HESSIAN_##NAME] = &second_##form,
#include "wire/kinds.def"
};
static const struct {
    kernel *on_processor;
    enum objective_device_kind on_device;
} kernels[] = {
#define KIND(NAME, name, number, totals, sums, point, strips, hessian, kernel, device, text)       \
    [number] = {kernel, OBJECTIVE_DEVICE_##device},
#include "wire/kinds.def"
};

enum objective_device_kind kind_on_device(uint32_t kind) {
    assert(kind_row(kind));
    return kernels[kind].on_device;
}

const struct second_form *kind_form(uint32_t kind) {
    assert(kind_row(kind));
    return forms[kind_row(kind)->hessian];
}

/* Once a bound was exceeded the sums are void, and nothing is added to them. */
int kernel_run(const struct kernel_place *place, const struct evaluation_parts *parts,
               uint32_t number, const struct rows *rows, struct computed *computed) {
    uint32_t part = evaluation_part_at(parts, number);
    if (part == parts->count)
        return kernel_no_part(number);
    const uint32_t kind = parts->items[part].kind;
    const struct second_form *form = kind_form(kind);
    struct chunk_result found = {.values = rows->values, .first = rows->first, .rows = rows->count};
    /* The workspace of a thread is for blocks of listed columns, or for those of the first, in a
     * run. */
    assert(!form ||
           (place->sample->form == form && kind_row(kind)->listed == !!place->sample->list));
    int code = kernels[kind].on_processor(place, number, rows,
                                          computed->exceeded ? NULL : place->sums, &found);
    if (!code)
        computed_add_chunk(computed, parts, part, &found);
    return code;
}

int kernel_no_part(uint32_t number) {
    return error_set(ERROR_INTERNAL, "chunk %u is of no part of the evaluation", number);
}

/* ---- what was computed ---- */

static void add_totals(struct exact *totals, enum kind_totals kind,
                       const struct chunk_result *found) {
    switch (kind) {
    case TOTALS_LOSS:
        exact_add(&totals[0], found->result.loss);
        break;
    case TOTALS_LOSS_AND_CORRECT:
        exact_add(&totals[0], found->result.loss);
        exact_add(&totals[1], found->result.correct);
        break;
    case TOTALS_ROWS:
        exact_add(&totals[0], found->rows);
        break;
    case TOTALS_HESSIAN:
        exact_add(&totals[0], found->hessian.trace_leverage);
        exact_add(&totals[1], (double)found->hessian.sampled);
        exact_add(&totals[2], (double)found->hessian.terms);
        exact_add(&totals[3], found->hessian.trace);
        break;
    case KIND_TOTALS:
        break;
    }
}

void computed_add_chunk(struct computed *computed, const struct evaluation_parts *parts,
                        uint32_t part, const struct chunk_result *found) {
    assert(part < parts->count && computed->totals.count == evaluation_totals(parts));
    const struct kind_row *kind = kind_row(parts->items[part].kind);
    add_totals(&computed->totals.sum[evaluation_first_total(parts, part)], kind->totals, found);
    if (kind->sums == SUMS_NONE) /* No derivative goes into a sum, so no bound applies. */
        return;
    const struct second_form *form = forms[kind->hessian];
    if (form && form->scores) {
        const struct maxima largest = maxima_of_one(found->hessian.largest);
        maxima_merge(&computed->maxima, &largest);
    }
    if (!form)
        maxima_merge(&computed->maxima, &found->result.maxima);
    computed->exceeded |= form ? found->hessian.exceeded : found->result.exceeded;
    if (kind->sums == SUMS_ROWS) { /* Each row has a value of the sums an output. */
        computed->values += found->rows;
        computed->rows = row_range_join(
            computed->rows, (struct row_range){found->first, found->first + found->rows});
    } else {
        computed->values += found->values;
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
