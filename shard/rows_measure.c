/* Losses, slopes and second derivatives of rows, block by block of ROW_BLOCK rows. The one file of
 * the shard that knows of objectives.
 *
 * A block is taken in pieces that fit into the cache, and the sums of a block are added up in an
 * order that depends on the block alone; blocks are added exactly. So the division of rows among
 * shards does not show in the bits. */
#include "shard/rows_measure.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/product.h"
#include "numeric/vector.h"
#include "objective/objective.h"
#include "shard/pass_plan.h"
#include "shard/registers.h"

/* TILE_ROWS is what served best of 32 to 256: tiles of 40 slots fit into the second cache beside
 * what they are gathered from. */
enum { BLOCKS_A_BEAT = 64, TILE_ROWS = 128 };

const struct objective *rows_objective(const char *name, uint32_t outputs) {
    const struct objective *objective = objective_find(name);
    const char *fault = !objective                         ? "is not known to this shard"
                        : !objective->losses               ? "has no losses of margins"
                        : objective->labels == LABEL_LISTS ? "has lists for labels"
                        : outputs > BLOCK_ELEMENTS         ? "has too many outputs"
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

/* Second derivatives by the slots' coefficients, while rows are drawn. Every drawn row and output
 * has a row in both tiles: of Q, and of weight/rate·S·Q. */
struct tile {
    const struct operation *operation;
    size_t slots;  /* of the operation, or 1 */
    size_t rows;   /* filled: TILE_ROWS at most, or one row's outputs */
    double *plain; /* rows × slots */
    double *curved;
    double *sums;   /* slots × slots: of the block */
    double *second; /* a row of S: outputs */
};

/* What is at hand: a piece of a block. */
struct piece {
    struct row_vectors *rows;
    size_t first, count; /* rows of the shard: all trained on, or all held out */
    bool held;
    double correct;      /* of held rows: the weight of those that are predicted correctly */
    double *derivatives; /* by the margins at v; 0 for rows of weight 0, and for held ones */
    double *weighed;     /* those times weights; they themselves without weights */
    double *loss, *work, *diagonal;
    double *curved; /* S times margins of a slot */
};

/* Sums of one block, or of what was added of it so far: as many as the operation yields. */
struct block_sums {
    double *sums;
    struct tile tile; /* SECOND */
};

static size_t at(const struct piece *piece) {
    return piece->first * piece->rows->outputs;
}

static size_t numbers(const struct piece *piece) {
    return piece->count * piece->rows->outputs;
}

/* ---- the point ---- */

static const struct loss_parameters *loss_of(const struct row_vectors *rows,
                                             struct loss_parameters *room) {
    memcpy(room->value, rows->loss, sizeof room->value);
    return room;
}

/* v, in place of the derivatives. */
static void find_margins(const struct piece *piece, const struct operation *where) {
    const struct row_vectors *rows = piece->rows;
    size_t n = numbers(piece);
    memcpy(piece->derivatives, rows->margins + at(piece), n * sizeof(double));
    for (uint32_t i = 0; where && i < where->count; i++)
        if (where->u[i] != 0)
            vector_add(n, piece->derivatives, piece->derivatives, where->u[i],
                   rows_product(rows, where->slots[i]) + at(piece));
}

/* Losses and derivatives at v. A row of weight 0 counts for nothing, whatever its values are. */
static void find_losses(struct piece *piece) {
    const struct row_vectors *rows = piece->rows;
    const double *weight = rows->weights ? rows->weights + piece->first : NULL;
    struct loss_parameters room;
    size_t outputs = rows->outputs;
    rows->objective->losses(loss_of(rows, &room), piece->count, outputs,
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
static void find_held_losses(struct piece *piece) {
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
    memset(piece->derivatives, 0, numbers(piece) * sizeof(double));
}

/* ---- second derivatives ---- */

/* A number that is even in [0, 1), and a function of these alone (random_mix() of a counter, as
 * replicas draw the rows of curvature). */
static double drawn(uint64_t dice, uint64_t row) {
    uint64_t bits = random_mix(random_mix(dice) + (row + 1) * RANDOM_STEP);
    return (double)(bits >> 11) * 0x1p-53;
}

static void tile_flush(struct tile *tile) {
    size_t slots = tile->slots;
    for (size_t first = 0, some; first < tile->rows; first += some) {
        some = tile->rows - first < PRODUCT_ROWS_MAX ? tile->rows - first : PRODUCT_ROWS_MAX;
        product_triangle(slots, some, tile->plain + first * slots, tile->curved + first * slots,
                         tile->sums);
    }
    tile->rows = 0;
}

/* Margins of all slots of rows that were drawn, from row `tile->rows` of the tile on: an output of a
 * row each. */
static void gather_rows(const struct piece *piece, size_t count, const uint16_t *row,
                        struct tile *tile) {
    const struct row_vectors *rows = piece->rows;
    const struct operation *operation = tile->operation;
    size_t outputs = rows->outputs, slots = operation->count;
    for (size_t s = 0; s < slots; s++) {
        const double *from = rows_product(rows, operation->slots[s]) + at(piece);
        double *to = tile->plain + s;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < outputs; k++, to += slots)
                *to = from[row[i] * outputs + k];
    }
}

/* `curved` = weight·S·Q of one row, of whose S most elements may be 0. */
static void curve_by_rows(const struct piece *piece, size_t i, double weight, struct tile *tile,
                          const double *plain, double *curved) {
    const struct row_vectors *rows = piece->rows;
    size_t outputs = rows->outputs, slots = tile->slots;
    memset(curved, 0, outputs * slots * sizeof *curved);
    for (size_t k = 0; k < outputs; k++, curved += slots) {
        rows->objective->second_row(outputs, rows->labels[piece->first + i],
                                    piece->derivatives + i * outputs, k, tile->second);
        for (size_t j = 0; j < outputs; j++)
            for (size_t s = 0; tile->second[j] != 0 && s < slots; s++)
                curved[s] += weight * tile->second[j] * plain[j * slots + s];
    }
}

static void curve_row(const struct piece *piece, size_t i, double weight, struct tile *tile,
                      const double *plain, double *curved) {
    const struct row_vectors *rows = piece->rows;
    size_t outputs = rows->outputs;
    if (rows->objective->second_product)
        rows->objective->second_product(outputs, rows->labels[piece->first + i],
                                        piece->derivatives + i * outputs, weight,
                                        tile->slots, plain, curved);
    else
        curve_by_rows(piece, i, weight, tile, plain, curved);
}

/* Of several outputs: K rows of the tile for each row that was drawn. */
static void second_of_rows(const struct piece *piece, size_t count, const uint16_t *row,
                           const double *weight, struct tile *tile) {
    size_t outputs = piece->rows->outputs, size = outputs * tile->slots;
    size_t most = TILE_ROWS > outputs ? TILE_ROWS / outputs : 1;
    for (size_t first = 0, some; first < count; first += some, tile_flush(tile)) {
        some = count - first < most ? count - first : most;
        gather_rows(piece, some, row + first, tile);
        for (size_t i = 0; i < some; i++)
            curve_row(piece, row[first + i], weight[first + i], tile, tile->plain + i * size,
                      tile->curved + i * size);
        tile->rows = some * outputs;
    }
}

/* Of one output: each slot's numbers of the rows that were drawn, side by side, as many at a time
 * as the first cache has room for. */
static void second_of_column(const struct piece *piece, size_t count, const uint16_t *row,
                             const double *weight, struct tile *tile) {
    const struct row_vectors *rows = piece->rows;
    const struct operation *operation = tile->operation;
    size_t slots = operation->count;
    assert(!tile->rows);
    for (size_t first = 0; first < count; first += TILE_ROWS, tile_flush(tile)) {
        tile->rows = count - first < TILE_ROWS ? count - first : TILE_ROWS;
        for (size_t s = 0; s < slots; s++) {
            const double *from = rows_product(rows, operation->slots[s]) + piece->first;
            for (size_t i = 0; i < tile->rows; i++) {
                double margin = from[row[first + i]];
                tile->plain[i * slots + s] = margin;
                tile->curved[i * slots + s] = weight[first + i] * margin;
            }
        }
    }
}

/* Those of a piece that an operation draws, and what each counts. */
struct drawn_rows {
    size_t count;
    uint16_t row[ROW_BLOCK];
    double weight[ROW_BLOCK];
};

static void draw_rows(const struct piece *piece, const struct operation *operation,
                      struct drawn_rows *drawn_rows) {
    const struct row_vectors *rows = piece->rows;
    drawn_rows->count = 0;
    for (size_t i = 0; i < piece->count; i++) {
        double own = rows->weights ? rows->weights[piece->first + i] : 1;
        if (own == 0 ||
            !(drawn(operation->serial, rows->first + piece->first + i) < operation->alpha))
            continue;
        drawn_rows->row[drawn_rows->count] = (uint16_t)i;
        drawn_rows->weight[drawn_rows->count++] = own / operation->alpha;
    }
}

/* Of one output S is a number: it joins the weight. */
static void weigh_second(const struct piece *piece, struct drawn_rows *drawn_rows) {
    const struct row_vectors *rows = piece->rows;
    struct loss_parameters room;
    if (!drawn_rows->count)
        return;
    rows->objective->second(loss_of(rows, &room), piece->count, 1, rows->labels + piece->first,
                            piece->derivatives, piece->work, piece->diagonal);
    for (size_t i = 0; i < drawn_rows->count; i++)
        drawn_rows->weight[i] *= piece->diagonal[drawn_rows->row[i]];
}

static void add_second(struct piece *piece, struct tile *tile) {
    struct drawn_rows of;
    draw_rows(piece, tile->operation, &of);
    if (piece->rows->outputs == 1) {
        weigh_second(piece, &of);
        second_of_column(piece, of.count, of.row, of.weight, tile);
    } else {
        second_of_rows(piece, of.count, of.row, of.weight, tile);
    }
}

/* S times the margins of one slot, and the products of that with those of all. */
static void add_curved(struct piece *piece, struct tile *tile, double *sums) {
    const struct row_vectors *rows = piece->rows;
    const struct operation *operation = tile->operation;
    const double *of = rows_product(rows, operation->slot) + at(piece);
    size_t outputs = rows->outputs;
    struct drawn_rows with;
    draw_rows(piece, operation, &with);
    if (outputs == 1)
        weigh_second(piece, &with);
    memset(piece->curved, 0, numbers(piece) * sizeof *piece->curved);
    for (size_t i = 0; i < with.count; i++) {
        size_t from = with.row[i] * outputs;
        if (outputs == 1)
            piece->curved[from] = with.weight[i] * of[from];
        else
            curve_row(piece, with.row[i], with.weight[i], tile, of + from, piece->curved + from);
    }
    for (uint32_t s = 0; s < operation->count; s++)
        sums[s] += vector_dot(numbers(piece), piece->curved,
                              rows_product(rows, operation->slots[s]) + at(piece));
}

/* Sums of the block: i ≥ j, row by row of the triangle. */
static void finish_second(struct tile *tile, double *sums) {
    size_t slots = tile->slots;
    tile_flush(tile);
    for (size_t i = 0; i < slots; i++)
        for (size_t j = 0; j <= i; j++)
            *sums++ = tile->sums[i * slots + j];
    memset(tile->sums, 0, slots * slots * sizeof *tile->sums);
}

static struct tile tile_new(const struct row_vectors *rows, const struct operation *operation,
                            size_t slots) {
    size_t outputs = rows->outputs;
    size_t most = outputs > TILE_ROWS ? outputs : TILE_ROWS;
    return (struct tile){.operation = operation,
                         .slots = slots,
                         .plain = memory_new(most * slots, sizeof(double)),
                         .curved = memory_new(most * slots, sizeof(double)),
                         .sums = memory_new(slots * slots, sizeof(double)),
                         .second = memory_new(outputs, sizeof(double))};
}

static void tile_release(struct tile *tile) {
    free(tile->plain);
    free(tile->curved);
    free(tile->sums);
    free(tile->second);
}

/* ---- a block ---- */

static void add_loss(const struct piece *piece, double *sum) {
    for (size_t i = 0; i < piece->count; i++)
        *sum += piece->loss[i];
}

static void add_slopes(const struct piece *piece, const struct operation *operation, double *sums) {
    for (uint32_t s = 0; s < operation->count; s++)
        sums[s] += vector_dot(numbers(piece), piece->weighed,
                              rows_product(piece->rows, operation->slots[s]) + at(piece));
}

/* What an operation does with a piece. */
static void add_piece(struct piece *piece, const struct operation *operation,
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
        yield->max = fmax(yield->max, vector_max_abs(numbers(piece), piece->derivatives));
        break;
    case OPERATION_ROWS_SLOPES:
        add_slopes(piece, operation, block->sums);
        break;
    case OPERATION_ROWS_SECOND:
        add_second(piece, &block->tile);
        break;
    case OPERATION_ROWS_CURVED:
        add_curved(piece, &block->tile, block->sums);
        break;
    default:
        assert(operation->code == OPERATION_ROWS_ADVANCE);
        memcpy(rows_derivatives(piece->rows) + at(piece), piece->derivatives,
               numbers(piece) * sizeof(double));
        break;
    }
}

static void finish_block(const struct operation *operation, struct block_sums *block,
                         struct yield *yield) {
    uint32_t scalars = operation_scalars(operation);
    if (operation->code == OPERATION_ROWS_SECOND)
        finish_second(&block->tile, block->sums);
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

/* Rows of a piece: of its numbers vectors of BLOCK_ELEMENTS can be made. */
static size_t piece_rows(const struct row_vectors *rows) {
    size_t most = BLOCK_ELEMENTS / rows->outputs;
    assert(most);
    return most < ROW_BLOCK ? most : ROW_BLOCK;
}

/* Whether an operation is over such rows: all of them become the point. */
static bool concerns(const struct operation *operation, const struct piece *piece) {
    return operation->code == OPERATION_ROWS_ADVANCE ||
           (operation->code == OPERATION_ROWS_HELD) == piece->held;
}

static void measure_piece(struct piece *piece, const struct row_measure *measure,
                          struct block_sums *blocks) {
    find_margins(piece, measure->at);
    if (advances(measure))
        memcpy(piece->rows->margins + at(piece), piece->derivatives,
               numbers(piece) * sizeof(double));
    if (piece->held)
        find_held_losses(piece);
    else
        find_losses(piece);
    for (size_t i = 0; i < measure->count; i++)
        if (concerns(measure->operations[i], piece))
            add_piece(piece, measure->operations[i], &blocks[i], measure->yields[i]);
}

static void measure_block(struct piece *piece, size_t first, const struct row_measure *measure,
                          struct block_sums *blocks) {
    size_t left = piece->rows->count - first, most = piece_rows(piece->rows);
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
        if (operation->code == OPERATION_ROWS_CURVED)
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

static void measure_rows(struct row_vectors *rows, const struct row_measure *measure) {
    _Alignas(64) double derivatives[BLOCK_ELEMENTS], weighed[BLOCK_ELEMENTS];
    _Alignas(64) double work[BLOCK_ELEMENTS], curved[BLOCK_ELEMENTS];
    _Alignas(64) double loss[ROW_BLOCK], diagonal[ROW_BLOCK];
    struct piece piece = {.rows = rows,
                          .derivatives = derivatives,
                          .weighed = rows->weights ? weighed : derivatives,
                          .loss = loss,
                          .work = work,
                          .diagonal = diagonal,
                          .curved = curved};
    struct block_sums *blocks = blocks_new(rows, measure);
    for (size_t first = 0; first < rows->count; first += ROW_BLOCK) {
        measure_block(&piece, first, measure, blocks);
        if (first % (BLOCKS_A_BEAT * ROW_BLOCK) == 0)
            heartbeat();
    }
    blocks_free(blocks, measure->count);
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
    case OPERATION_ROWS_CURVED:
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
