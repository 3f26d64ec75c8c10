/* Losses, slopes and second derivatives of rows, block by block of ROW_BLOCK rows. The one file of
 * the shard that knows of objectives.
 *
 * A block is taken in pieces that fit into the cache, and the sums of a block are added up in an
 * order that depends on the block alone; blocks are added exactly. So the division of rows among
 * shards does not show in the bits. */
#include "shard/rows_measure.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/process.h"
#include "numeric/vector.h"
#include "objective/block.h"
#include "objective/objective.h"
#include "shard/pass_plan.h"
#include "shard/registers.h"
#include "shard/rows_second.h"

enum { BLOCKS_TAKEN = 4, NUMBERS_A_THREAD = 1 << 20 };

const struct objective *rows_objective(const char *name, uint32_t outputs) {
    const struct objective *objective = objective_find(name);
    const char *fault = !objective                              ? "is not known to this shard"
                        : !objective->losses                    ? "has no losses of margins"
                        : objective->labels == LABEL_LISTS      ? "has lists for labels"
                        : outputs > BLOCK_ELEMENTS              ? "has too many outputs"
                        : outputs > 1 && !objective->second_row ? "has one output"
                                                                : NULL;
    if (!fault)
        return objective;
    (void)error_set(ERROR_INTERNAL,
                    "set-up: no common directions are searched for objective %s, which %s", name,
                    fault);
    return NULL;
}

uint64_t rows_proof(void) {
    return objective_proof_losses();
}

bool rows_have_second(const struct row_vectors *rows) {
    return rows->objective && rows->objective->second;
}

double rows_label_most(const struct row_vectors *rows) {
    switch (rows->objective->labels) {
    case LABEL_CLASSES:
        return rows->outputs - 1;
    case LABEL_ORDERED:
        return rows->outputs;
    case LABEL_BINARY:
    case LABEL_TARGET:
    case LABEL_LISTS:
        break;
    }
    return INFINITY;
}

/* Operations that act at one point v = Z + Σ u·Q. */
struct row_measure {
    const struct operation *at; /* ROWS_AT; NULL: v = Z */
    const struct operation *operations[OPERATIONS_MAX];
    struct yield *yields[OPERATIONS_MAX]; /* the first of each */
    size_t count;
};

/* Sums of one block, or of what was added of it so far: as many as the operation yields. */
struct block_sums {
    double *sums;
    struct row_tile tile; /* SECOND */
};

/* ---- the point ---- */

static bool is_at(const struct row_vectors *rows, const struct operation *where) {
    const struct row_point *at = &rows->at;
    return at->count && at->count == where->count &&
           !memcmp(at->slots, where->slots, at->count * sizeof at->slots[0]) &&
           !memcmp(at->u, where->u, at->count * sizeof at->u[0]);
}

/* Whether v is that of a trial, and not Z. */
static bool moves(const struct operation *where) {
    return where && where->count;
}

/* v of all rows, where it need not be found; else NULL. */
static const double *known_margins(const struct row_vectors *rows, const struct operation *where) {
    if (!moves(where))
        return rows->margins;
    return is_at(rows, where) ? rows->trial : NULL;
}

/* Adds Σ u·Q, of two slots at a time. */
static void add_products(const struct row_piece *piece, const struct operation *where) {
    const enum history_type type = piece->rows->stored;
    const size_t n = piece_numbers(piece);
    uint32_t count = 0, moved[WINDOW_MAX];
    for (uint32_t i = 0; i < where->count; i++)
        if (where->u[i] != 0)
            moved[count++] = i;
    for (uint32_t i = 0; i < count; i += 2) {
        uint32_t a = moved[i], b = moved[i + 1 < count ? i + 1 : i];
        history_add(type, n, piece->derivatives, where->u[a], piece_product(piece, where->slots[a]),
                    a == b ? 0 : where->u[b], piece_product(piece, where->slots[b]));
    }
}

/* v, in place of the derivatives. The products with all directions are read but once a trial. */
static void find_margins(const struct row_piece *piece, const struct operation *where) {
    const struct row_vectors *rows = piece->rows;
    const double *known = known_margins(rows, where);
    size_t n = piece_numbers(piece);
    memcpy(piece->derivatives, (known ? known : rows->margins) + piece_at(piece),
           n * sizeof(double));
    if (known)
        return;
    add_products(piece, where);
    memcpy(rows->trial + piece_at(piece), piece->derivatives, n * sizeof(double));
}

/* Losses and derivatives at v. A row of weight 0 counts for nothing, whatever its values are. */
static void find_losses(struct row_piece *piece) {
    const struct row_vectors *rows = piece->rows;
    const double *weight = rows->weights ? rows->weights + piece->first : NULL;
    struct loss_parameters room;
    size_t outputs = rows->outputs;
    rows->objective->losses(rows_loss(rows, &room), piece->count, outputs,
                            rows->labels + piece->first, piece->derivatives, piece->loss,
                            piece->work);
    for (size_t i = 0; weight && i < piece->count; i++) {
        double *derivatives = piece->derivatives + i * outputs;
        piece->loss[i] = weight[i] > 0 ? weight[i] * piece->loss[i] : 0;
        if (weight[i] == 0)
            memset(derivatives, 0, outputs * sizeof *derivatives);
        for (size_t k = 0; k < outputs; k++)
            piece->weighed[i * outputs + k] = weight[i] * derivatives[k];
    }
}

/* Losses at v, and who is predicted correctly. Nothing is learnt from these rows. */
static void find_held_losses(struct row_piece *piece) {
    const struct row_vectors *rows = piece->rows;
    const size_t outputs = rows->outputs;
    piece->correct = 0;
    for (size_t i = 0; i < piece->count; i++) {
        size_t row = piece->first + i;
        if (objective_is_correct(rows->objective, outputs, piece->derivatives + i * outputs,
                                 &rows->labels[row]))
            piece->correct += rows->weights ? rows->weights[row] : 1;
    }
    find_losses(piece);
    memset(piece->derivatives, 0, piece_numbers(piece) * sizeof(double));
}

/* ---- a block ---- */

static void add_loss(const struct row_piece *piece, double *sum) {
    for (size_t i = 0; i < piece->count; i++)
        *sum += piece->loss[i];
}

/* What an operation does with a piece. */
static void add_piece(struct row_piece *piece, const struct operation *operation,
                      struct block_sums *block, struct yield *yield) {
    switch (operation->code) {
    case OPERATION_ROWS_LOSS:
        add_loss(piece, block->sums);
        break;
    case OPERATION_ROWS_HELD:
        add_loss(piece, &block->sums[0]);
        block->sums[1] += piece->correct;
        break;
    case OPERATION_ROWS_DERIVATIVE:
        yield->max = fmax(yield->max, vector_max_abs(piece_numbers(piece), piece->derivatives));
        break;
    case OPERATION_ROWS_SLOPES:
        piece_dots(piece, operation, 1, &(struct slot_sums){piece->weighed, block->sums});
        break;
    case OPERATION_ROWS_SECOND:
        tile_add(piece, &block->tile);
        break;
    case OPERATION_ROWS_HESSIAN_PRODUCT:
        tile_add_hessian_product(piece, &block->tile, block->sums);
        break;
    default:
        assert(operation->code == OPERATION_ROWS_ADVANCE);
        memcpy(rows_derivatives(piece->rows) + piece_at(piece), piece->derivatives,
               piece_numbers(piece) * sizeof(double));
        break;
    }
}

/* Whether operation i, the slopes, is followed by the second derivatives of all rows by the same
 * slots, as it is in most trials of few rows. */
static bool hessian_product_follows(const struct row_measure *measure, size_t i) {
    if (i + 1 == measure->count)
        return false;
    const struct operation *slopes = measure->operations[i], *products = measure->operations[i + 1];
    return slopes->code == OPERATION_ROWS_SLOPES &&
           products->code == OPERATION_ROWS_HESSIAN_PRODUCT && draws_all(products) &&
           slopes->count == products->count &&
           !memcmp(slopes->slots, products->slots, slopes->count * sizeof slopes->slots[0]);
}

static void add_piece_to_all(struct row_piece *piece, const struct row_measure *measure,
                             struct block_sums *blocks) {
    for (size_t i = 0; i < measure->count; i++) {
        const struct operation *operation = measure->operations[i];
        const bool of_held = operation->code == OPERATION_ROWS_HELD;
        /* All rows become the point. */
        if (operation->code != OPERATION_ROWS_ADVANCE && of_held != piece->held)
            continue;
        if (!hessian_product_follows(measure, i)) {
            add_piece(piece, operation, &blocks[i], measure->yields[i]);
            continue;
        }
        /* Both in one reading of the products with the directions. */
        struct block_sums *slopes = &blocks[i++], *products = slopes + 1;
        tile_hessian_product(piece, &products->tile);
        piece_dots(piece, operation, 2,
                   (struct slot_sums[]){{piece->weighed, slopes->sums},
                                        {piece->hessian_product, products->sums}});
    }
}

static void finish_block(const struct operation *operation, struct block_sums *block,
                         struct yield *yield) {
    uint32_t scalars = operation_scalars(operation);
    if (operation->code == OPERATION_ROWS_SECOND)
        tile_finish(&block->tile, block->sums);
    if (operation_yields_max(operation))
        return;
    for (uint32_t i = 0; i < scalars; i++)
        exact_add(&yield[i].sum, block->sums[i]);
    memset(block->sums, 0, scalars * sizeof *block->sums);
}

/* ---- all blocks ---- */

static bool advances(const struct row_measure *measure) {
    for (size_t i = 0; i < measure->count; i++)
        if (measure->operations[i]->code == OPERATION_ROWS_ADVANCE)
            return true;
    return false;
}

/* The operation that alone is asked for, of few rows, at margins that are there; else NULL. */
static const struct operation *only_sampled(const struct row_vectors *rows,
                                            const struct row_measure *measure) {
    const struct operation *first = measure->operations[0];
    bool draws =
        first->code == OPERATION_ROWS_SECOND || first->code == OPERATION_ROWS_HESSIAN_PRODUCT;
    bool there = known_margins(rows, measure->at);
    return measure->count == 1 && draws && !draws_all(first) && there ? first : NULL;
}

/* Asks for no losses of rows that were not drawn. */
static void measure_drawn(struct row_piece *piece, const struct row_measure *measure,
                          const struct operation *operation, struct block_sums *block) {
    const double *margins = known_margins(piece->rows, measure->at);
    if (piece->held)
        return;
    piece_find_drawn(piece, operation, margins + piece_at(piece));
    add_piece(piece, operation, block, measure->yields[0]);
}

static void measure_piece(struct row_piece *piece, const struct row_measure *measure,
                          struct block_sums *blocks) {
    const struct operation *drawing = only_sampled(piece->rows, measure);
    if (drawing) {
        measure_drawn(piece, measure, drawing, blocks);
        return;
    }
    find_margins(piece, measure->at);
    if (advances(measure))
        memcpy(piece->rows->margins + piece_at(piece), piece->derivatives,
               piece_numbers(piece) * sizeof(double));
    if (piece->held)
        find_held_losses(piece);
    else
        find_losses(piece);
    if (moves(measure->at))
        memcpy(piece->rows->trial_derivatives + piece_at(piece), piece->derivatives,
               piece_numbers(piece) * sizeof(double));
    add_piece_to_all(piece, measure, blocks);
}

static void measure_block(struct row_piece *piece, size_t first, const struct row_measure *measure,
                          struct block_sums *blocks) {
    /* Of the numbers of a piece vectors of BLOCK_ELEMENTS can be made. */
    size_t left = piece->rows->count - first, most = BLOCK_ELEMENTS / piece->rows->outputs;
    assert(most);
    most = most < ROW_BLOCK ? most : ROW_BLOCK;
    size_t end = first + (left < ROW_BLOCK ? left : ROW_BLOCK), border = piece->rows->trained;
    for (piece->first = first; piece->first < end; piece->first += piece->count) {
        piece->held = piece->first >= border;
        size_t to = piece->held || end < border ? end : border;
        piece->count = to - piece->first < most ? to - piece->first : most;
        measure_piece(piece, measure, blocks);
    }
    for (size_t i = 0; i < measure->count; i++)
        finish_block(measure->operations[i], &blocks[i], measure->yields[i]);
}

static struct block_sums *blocks_new(const struct row_vectors *rows,
                                     const struct row_measure *measure) {
    struct block_sums *blocks = memory_new(measure->count, sizeof *blocks);
    for (size_t i = 0; i < measure->count; i++) {
        const struct operation *operation = measure->operations[i];
        blocks[i].sums = memory_new(operation_scalars(operation), sizeof(double));
        if (operation->code == OPERATION_ROWS_SECOND)
            blocks[i].tile = tile_new(rows, operation, operation->count);
        if (operation->code == OPERATION_ROWS_HESSIAN_PRODUCT)
            blocks[i].tile = tile_new(rows, operation, 1);
    }
    return blocks;
}

static void blocks_free(struct block_sums *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(blocks[i].sums);
        tile_release(&blocks[i].tile);
    }
    free(blocks);
}

/* ---- threads ---- */

/* What threads share. Sums are exact and maxima are what they are, so it does not matter which of
 * them takes a block. */
struct row_team {
    struct row_vectors *rows;
    const struct row_measure *measure;
    pthread_mutex_t mutex; /* guards all below, and the yields */
    size_t next;           /* row */
};

static size_t next_blocks(struct row_team *team) {
    pthread_mutex_lock(&team->mutex);
    size_t first = team->next;
    team->next += BLOCKS_TAKEN * ROW_BLOCK;
    pthread_mutex_unlock(&team->mutex);
    return first;
}

static void measure_blocks(struct row_team *team, const struct row_measure *own,
                           struct block_sums *blocks) {
    _Alignas(64) double derivatives[BLOCK_ELEMENTS], weighed[BLOCK_ELEMENTS];
    _Alignas(64) double work[BLOCK_ELEMENTS], margins[BLOCK_ELEMENTS],
        hessian_product[BLOCK_ELEMENTS];
    _Alignas(64) double loss[ROW_BLOCK], diagonal[ROW_BLOCK];
    struct row_vectors *rows = team->rows;
    struct row_piece piece = {.rows = rows,
                              .derivatives = derivatives,
                              .weighed = rows->weights ? weighed : derivatives,
                              .loss = loss,
                              .work = work,
                              .diagonal = diagonal,
                              .margins = margins,
                              .hessian_product = hessian_product};
    for (size_t first = next_blocks(team); first < rows->count; first = next_blocks(team)) {
        for (size_t i = first; i < first + BLOCKS_TAKEN * ROW_BLOCK && i < rows->count;
             i += ROW_BLOCK)
            measure_block(&piece, i, own, blocks);
        heartbeat();
    }
}

static void *work_in_team(void *context) {
    struct row_team *team = context;
    struct row_measure own = *team->measure;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < own.count; i++)
        count += operation_scalars(own.operations[i]);
    struct yield *yields = memory_new(count, sizeof *yields);
    for (size_t i = 0; i < own.count; at += operation_scalars(own.operations[i++]))
        own.yields[i] = yields + at;
    for (size_t i = 0; i < count; i++)
        exact_init(&yields[i].sum);
    struct block_sums *blocks = blocks_new(team->rows, &own);
    measure_blocks(team, &own, blocks);
    blocks_free(blocks, own.count);
    pthread_mutex_lock(&team->mutex);
    for (size_t i = 0; i < own.count; i++)
        for (uint32_t k = 0; k < operation_scalars(own.operations[i]); k++) {
            struct yield *into = &team->measure->yields[i][k], *from = &own.yields[i][k];
            if (operation_yields_max(own.operations[i]))
                into->max = fmax(into->max, from->max);
            else
                exact_merge(&into->sum, &from->sum);
        }
    pthread_mutex_unlock(&team->mutex);
    free(yields);
    return NULL;
}

/* As many as have enough to do for the time that it takes to start one. */
static unsigned threads_for(const struct row_vectors *rows, const struct row_measure *measure) {
    size_t slots = measure->at ? measure->at->count : 0;
    for (size_t i = 0; i < measure->count; i++)
        slots += measure->operations[i]->count;
    size_t worth = rows_numbers(rows) * (slots + 1) / NUMBERS_A_THREAD;
    unsigned most = rows->threads < THREADS_MAX ? rows->threads : THREADS_MAX;
    return worth < most ? (unsigned)worth : most;
}

static void measure_rows(struct row_vectors *rows, const struct row_measure *measure) {
    struct row_team team = {.rows = rows, .measure = measure};
    if (measure->at && is_at(rows, measure->at) && measure->count == 1 && advances(measure)) {
        /* To where the losses were found last. */
        double *margins = rows->margins;
        rows->margins = rows->trial;
        rows->trial = margins;
        heartbeat_copy(rows_derivatives(rows), rows->trial_derivatives,
                       rows_numbers(rows) * sizeof(double));
        rows->at.count = 0;
        return;
    }
    pthread_mutex_init(&team.mutex, NULL);
    threads_run(threads_for(rows, measure), work_in_team, &team);
    pthread_mutex_destroy(&team.mutex);
    if (moves(measure->at)) { /* from here on v is known of all rows */
        struct row_point *at = &rows->at;
        at->count = measure->at->count;
        memcpy(at->slots, measure->at->slots, at->count * sizeof at->slots[0]);
        memcpy(at->u, measure->at->u, at->count * sizeof at->u[0]);
    }
    if (advances(measure))
        rows->at.count = 0;
}

/* ---- a program ---- */

static int take(struct registers *registers, const struct operation *operation,
                const struct bounds *bounds) {
    size_t sums = registers_sums(registers, SUMS_ROWS);
    int code = registers->backend->pull_sum ? registers->backend->pull_sum(registers, sums) : 0;
    if (!code)
        rows_take(&registers->rows, operation->vector, operation->slot, bounds->exponent[0],
                  registers->sum);
    failpoint(FAILPOINT_rows_taken);
    return code;
}

static bool is_measured(const struct operation *operation) {
    switch (operation->code) {
    case OPERATION_ROWS_LOSS:
    case OPERATION_ROWS_HELD:
    case OPERATION_ROWS_DERIVATIVE:
    case OPERATION_ROWS_SLOPES:
    case OPERATION_ROWS_SECOND:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
    case OPERATION_ROWS_ADVANCE:
        return true;
    default:
        return false;
    }
}

/* Carries out what was collected for one point. Once Z has advanced to v, that is Z itself. */
static void measure(struct registers *registers, struct row_measure *collected) {
    if (collected->count)
        measure_rows(&registers->rows, collected);
    for (size_t i = 0; i < collected->count; i++)
        if (collected->operations[i]->code == OPERATION_ROWS_ADVANCE) {
            collected->at = NULL;
            failpoint(FAILPOINT_rows_advanced);
        }
    collected->count = 0;
}

int rows_run(const struct operation_list *list, struct registers *registers,
             const struct bounds *bounds, struct yield *yields) {
    struct row_measure collected = {0};
    int code = 0;
    for (size_t i = 0; i < list->count && !code; i++) {
        const struct operation *operation = &list->items[i];
        bool takes = operation->code == OPERATION_ROWS_TAKE;
        if (takes || operation->code == OPERATION_ROWS_AT)
            measure(registers, &collected);
        if (takes)
            code = take(registers, operation, bounds);
        else if (operation->code == OPERATION_ROWS_AT)
            collected.at = operation;
        else if (is_measured(operation)) {
            collected.operations[collected.count] = operation;
            collected.yields[collected.count++] = yields;
        }
        yields += operation_scalars(operation);
    }
    if (!code)
        measure(registers, &collected);
    return code;
}
