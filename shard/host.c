/* Registers in the memory of the host, where nothing has to be moved, and fused passes over them:
 * block by block, each step by a function of numeric/. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mutant.h"
#include "numeric/box.h"
#include "numeric/fixed.h"
#include "numeric/steps.h"
#include "shard/pass_plan.h"
#include "shard/registers.h"

enum { BLOCKS_A_BEAT = 64, ROOMS = 4 };

/* One block of a pass. */
struct pass_block {
    const struct registers *registers;
    const struct pass_plan *pass;
    size_t offset, count;           /* elements */
    double *y;                      /* of the pair formed last, rounded, without B */
    double (*room)[BLOCK_ELEMENTS]; /* [ROOMS]: workspace for operands that a step transforms */
    struct yield *yields;
};

/* The elements of a step that lie in a block. */
struct block_part {
    size_t first, count; /* of the range */
};

static struct block_part part_of(const struct pass_step *step, const struct pass_block *block) {
    size_t end = block->offset + block->count;
    struct block_part part = {.first = step->first > block->offset ? step->first : block->offset};
    end = step->end < end ? step->end : end;
    part.count = end > part.first ? end - part.first : 0;
    return part;
}

static void add_to(const struct pass_block *block, const struct pass_step *step, uint32_t result,
                   double sum) {
    assert(result < step->results);
    exact_add(&block->yields[step->yield + result * step->yield_step].sum, sum);
}

static void *stored(const struct pass_block *block, void *vector, size_t first) {
    return (uint8_t *)vector + first * history_size(block->registers->history_type);
}

/* ---- steps that make elements ---- */

/* Elements of a gradient from their sums, all under one bound. */
static void run_gradient(const struct pass_step *step, const struct pass_block *block,
                         struct block_part part) {
    const struct registers *registers = block->registers;
    const int64_t *sum = registers->sum + part.first;
    double *a = step->a + part.first;
    if (registers->uniform)
        vector_from_fixed(part.count, a, sum, registers->exponent - step->bound, step->alpha);
    else
        vector_from_fixed_columns(part.count, a, sum, registers->exponents + part.first,
                                  step->bound, step->alpha);
}

/* Operand b, times the step's weights if it has any; then in room 0 of the block. */
static const double *weighed_b(const struct pass_step *step, const struct pass_block *block,
                               struct block_part part) {
    const double *b = step->b + part.first;
    if (!step->weight)
        return b;
    vector_multiply(part.count, block->room[0], step->weight + part.first, b);
    return block->room[0];
}

static void run_vector(const struct pass_step *step, const struct pass_block *block,
                       struct block_part part) {
    double *a = step->a + part.first;
    const double *b = step->b + part.first, *c = step->c + part.first;
    switch (step->code) {
    case PASS_ZERO:
        memset(a, 0, part.count * sizeof *a);
        break;
    case PASS_ADD:
        vector_add(part.count, a, b, step->alpha, c);
        break;
    case PASS_SCALE:
        vector_scale(part.count, a, step->alpha, b);
        break;
    case PASS_MULTIPLY:
        vector_multiply(part.count, a, a, b);
        break;
    case PASS_GRADIENT:
        run_gradient(step, block, part);
        break;
    case PASS_TO_SCALED:
        scaling_gradient_to_scaled(&block->registers->scaling, part.first, part.count, a);
        break;
    default:
        assert(step->code == PASS_REGULARIZE);
        vector_add(part.count, a, a, step->alpha, weighed_b(step, block, part));
        break;
    }
}

static void run_history(const struct pass_step *step, const struct pass_block *block,
                        struct block_part part) {
    enum history_type type = block->registers->history_type;
    size_t n = part.count;
    const double *a = step->a ? step->a + part.first : NULL, *b = step->b + part.first;
    double *y = block->y + (part.first - block->offset);
    switch (step->code) {
    case PASS_STORE_S:
        history_store(type, n, stored(block, step->s, part.first), block->room[0], a, b);
        break;
    case PASS_KEEP:
        memset(block->room[0], 0, n * sizeof(double));
        history_store(type, n, stored(block, step->s, part.first), step->a + part.first, a,
                      block->room[0]);
        break;
    case PASS_STORE_Q:
        history_store(type, n, stored(block, step->q, part.first), y, a, b);
        break;
    case PASS_DIFFERENCE:
        vector_add(n, y, a, -1, b);
        break;
    case PASS_SCALE_Q:
        history_scale(type, n, stored(block, step->q, part.first), step->alpha);
        break;
    case PASS_MULTIPLY_Q:
        history_multiply(type, n, stored(block, step->q, part.first), a);
        break;
    default:
        assert(step->code == PASS_ADD_HISTORY);
        for (uint32_t i = 0; i < step->terms; i++) {
            const struct pass_term *term = &block->pass->terms[step->first_term + i];
            history_add(type, n, step->a + part.first, term->p, stored(block, term->s, part.first),
                        term->r, stored(block, term->q, part.first));
        }
        break;
    }
}

/* ---- steps in a box: with l1, and within bounds ---- */

/* That of the elements of a part: their limits; else l1 alone, and no bounds. */
static struct box box_of(const struct pass_block *block, struct block_part part, double l1) {
    const struct limits *limits = &block->registers->limits;
    return limits->used ? limits_box(limits, part.first, l1) : (struct box){.l1 = l1};
}

/* With scaled columns l1 acts on weights, √penalty·|z|: as if each point were multiplied by
 * √penalty and each gradient divided by it. Limits are those of scaled elements already. */
static bool weighs(const struct pass_block *block) {
    return block->registers->scaling.used && !block->registers->limits.used;
}

/* The elements of an operand after that: in room `room` of the block, or unchanged where they are
 * if nothing is weighed. */
static const double *weighed(const struct pass_block *block, struct block_part part,
                             const double *operand, unsigned room, bool gradient) {
    if (!weighs(block))
        return operand + part.first;
    scaling_weigh(&block->registers->scaling, part.first, part.count, block->room[room],
                  operand + part.first, gradient);
    return block->room[room];
}

/* Only a pseudo-gradient needs the l1: elsewhere it is enough that an element has some. */
static void run_box(const struct pass_step *step, const struct pass_block *block,
                    struct block_part part) {
    const struct box box = box_of(block, part, step->code == PASS_PSEUDO ? step->l1 : 1);
    double *a = step->a + part.first;
    const double *b = step->b + part.first, *c = step->c + part.first;
    switch (step->code) {
    case PASS_PSEUDO:
        box_pseudo_gradient(&box, part.count, a, b, weighed(block, part, step->c, 0, true));
        if (weighs(block))
            scaling_weigh(&block->registers->scaling, part.first, part.count, a, a, false);
        break;
    case PASS_PROJECT:
        box_project(&box, part.count, a, b, c);
        break;
    case PASS_CLIP:
        box_clip_all(&box, part.count, a, b);
        break;
    case PASS_ALIGN:
        box_align(&box, part.count, a, b, c);
        break;
    default:
        assert(step->code == PASS_MASK);
        box_mask(&box, block->registers->history_type, part.count,
                 stored(block, step->q, part.first), block->y + (part.first - block->offset), b, a);
        break;
    }
}

/* ---- Adagrad ---- */

static void run_shrink(const struct pass_step *step, const struct pass_block *block,
                       struct block_part part) {
    const struct limits *limits = &block->registers->limits;
    double *l1 = block->room[0];
    for (size_t i = 0; i < part.count; i++)
        l1[i] = limits->used ? step->l1 * limits->lasso[part.first + i] : step->l1;
    if (weighs(block))
        scaling_weigh(&block->registers->scaling, part.first, part.count, l1, l1, false);
    adagrad_shrink(part.count, step->a + part.first, step->b + part.first, l1, step->alpha,
                   step->beta);
}

static void run_adagrad(const struct pass_step *step, const struct pass_block *block,
                        struct block_part part) {
    double *a = step->a + part.first;
    assert(step->code >= PASS_ADAGRAD && step->code <= PASS_DIAGONAL);
    if (step->code == PASS_ADAGRAD)
        adagrad_step(part.count, a, step->sums + part.first, step->c + part.first, step->alpha,
                     step->beta);
    else if (step->code == PASS_SHRINK)
        run_shrink(step, block, part);
    else
        adagrad_diagonal(part.count, a, step->alpha, step->beta);
}

/* ---- steps that add up ---- */

static void run_box_sum(const struct pass_step *step, const struct pass_block *block,
                        struct block_part part) {
    const struct box box = box_of(block, part, step->l1);
    const double *a = weighed(block, part, step->a, 0, step->code == PASS_EXCESS);
    double sums[3] = {0};
    switch (step->code) {
    case PASS_NORM:
        sums[0] = box_norm(&box, part.count, a);
        sums[1] = (double)orthant_nonzeros(part.count, a);
        break;
    case PASS_HELD:
        box_count(&box, part.count, a, sums);
        break;
    case PASS_DESCENT:
        box_descent(&box, part.count, a, weighed(block, part, step->b, 1, false),
                    weighed(block, part, step->c, 2, true), weighed(block, part, step->d, 3, true),
                    sums);
        break;
    default:
        assert(step->code == PASS_EXCESS);
        sums[0] = orthant_excess(part.count, a, step->alpha,
                                 weighed(block, part, step->b, 1, false), step->l1);
        break;
    }
    for (uint32_t k = 0; k < step->results; k++)
        add_to(block, step, k, sums[k]);
}

/* As pass_curvature() has it. */
static void find_curvature(const struct pass_step *step, struct block_part part, double *out) {
    vector_curvature(part.count, out, step->alpha, step->square ? step->square + part.first : NULL,
                     step->beta, step->weight ? step->weight + part.first : NULL);
}

/* Σ (a − b)²·curvature, as pass_product() has it. */
static double metric_of_step(const struct pass_step *step, const struct pass_block *block,
                             struct block_part part) {
    double *by = block->room[0], *curvature = block->room[1];
    vector_add(part.count, by, step->a + part.first, -1, step->b + part.first);
    find_curvature(step, part, curvature);
    vector_multiply(part.count, curvature, by, curvature);
    return vector_dot(part.count, by, curvature);
}

/* As pass_by_curvature() has it. */
static void divide_by_curvature(const struct pass_step *step, struct block_part part, double *out) {
    find_curvature(step, part, out);
    vector_divide(part.count, out, step->a + part.first, out);
}

static void run_sum(const struct pass_step *step, const struct pass_block *block,
                    struct block_part part) {
    const double *a = step->a + part.first, *b = step->b + part.first;
    size_t n = part.count;
    switch (step->code) {
    case PASS_DOT:
        add_to(block, step, 0, vector_dot(n, a, weighed_b(step, block, part)));
        break;
    case PASS_GAP:
        divide_by_curvature(step, part, block->room[0]);
        add_to(block, step, 0, vector_dot(n, a, block->room[0]));
        break;
    case PASS_METRIC:
        add_to(block, step, 0, metric_of_step(step, block, part));
        break;
    case PASS_SQUARE_OF_STEP:
        vector_add(n, block->room[0], a, -1, b);
        add_to(block, step, 0, vector_dot(n, block->room[0], block->room[0]));
        break;
    case PASS_MAX: {
        struct yield *yield = &block->yields[step->yield];
        yield->max = fmax(yield->max, vector_max_abs(n, a));
        break;
    }
    default:
        run_box_sum(step, block, part);
        break;
    }
}

/* One call for all neighbouring steps that read the history beside one vector: stored vectors are
 * read side by side. Answers how many steps these are. */
static size_t run_history_sums(const struct pass_step *step, const struct pass_step *end,
                               const struct pass_block *block) {
    const void *vectors[2 * SLOTS_MAX]; /* s or q */
    double dots[2 * SLOTS_MAX][2];      /* with a and with the new y */
    size_t count = 0;
    for (; step + count < end && count < 2 * SLOTS_MAX && step[count].code == PASS_HISTORY &&
           step[count].a == step->a;
         count++)
        vectors[count] = stored(block, step[count].s, block->offset);
    history_dots_all(block->registers->history_type, count, block->count, vectors,
                     step->a + block->offset, block->y, dots);
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < 2; k++)
            add_to(block, &step[i], k, dots[i][k]);
    return count;
}

/* How many neighbouring steps take the same vector times directions. */
static size_t window_steps(const struct pass_step *step, const struct pass_step *end) {
    size_t count = 0;
    while (step + count < end && count < WINDOW_MAX && step[count].code == PASS_WINDOW &&
           step[count].a == step->a && step[count].first == step->first)
        count++;
    return count;
}

/* Whether `count` steps are followed by as many that take another vector times the same directions,
 * so that these need to be read but once. */
static bool window_again(const struct pass_step *step, const struct pass_step *end, size_t count) {
    bool same = window_steps(step + count, end) == count;
    for (size_t i = 0; same && i < count; i++)
        same = step[count + i].s == step[i].s && step[count + i].first == step[i].first;
    return same;
}

/* Operand a, times the step's weights if it has any; then in a room of the block. */
static const double *weighed_a(const struct pass_step *step, const struct pass_block *block,
                               struct block_part part, unsigned room) {
    const double *a = step->a + part.first;
    if (!step->weight)
        return a;
    vector_multiply(part.count, block->room[room], step->weight + part.first, a);
    return block->room[room];
}

/* Runs neighbouring steps that read directions over one part of the block. */
static size_t run_window_sums(const struct pass_step *step, const struct pass_step *end,
                              const struct pass_block *block) {
    const void *directions[WINDOW_MAX];
    double dots[WINDOW_MAX][2]; /* with both vectors, or twice with the same one */
    const struct block_part part = part_of(step, block);
    const size_t count = window_steps(step, end);
    const bool again = window_again(step, end, count);
    for (size_t i = 0; i < count; i++)
        directions[i] = stored(block, step[i].s, part.first);
    const double *a = weighed_a(step, block, part, 0);
    const double *b = again ? weighed_a(step + count, block, part, 1) : a;
    history_dots_all(block->registers->history_type, count, part.count, directions, a, b, dots);
    for (size_t i = 0; part.count && i < count; i++)
        for (size_t k = 0; k <= again; k++)
            add_to(block, &step[k * count + i], 0, dots[i][k]);
    return again ? 2 * count : count;
}

/* ---- a pass ---- */

static void run_step(const struct pass_step *step, const struct pass_block *block) {
    struct block_part part = part_of(step, block);
    if (!part.count)
        return;
    if (step->code >= PASS_EACH_END)
        run_sum(step, block, part);
    else if (step->code >= PASS_ADAGRAD && step->code <= PASS_DIAGONAL)
        run_adagrad(step, block, part);
    else if (step->code >= PASS_PSEUDO)
        run_box(step, block, part);
    else if (step->code >= PASS_STORE_S)
        run_history(step, block, part);
    else
        run_vector(step, block, part);
}

static int run_pass(struct registers *registers, struct pass_plan *pass, struct yield *yields) {
    _Alignas(64) double y[BLOCK_ELEMENTS], room[ROOMS][BLOCK_ELEMENTS];
    struct pass_block block = {
        .registers = registers, .pass = pass, .y = y, .room = room, .yields = yields};
    if (!pass->step_count)
        return 0;
    const struct pass_step *end = pass->steps + pass->step_count;
    for (; block.offset < registers->count; block.offset += BLOCK_ELEMENTS) {
        size_t left = registers->count - block.offset;
        block.count = left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;
        for (const struct pass_step *step = pass->steps; step < end;) {
            if (step->code == PASS_HISTORY) {
                step += run_history_sums(step, end, &block);
                continue;
            }
            if (step->code == PASS_WINDOW) {
                step += run_window_sums(step, end, &block);
                continue;
            }
            run_step(step++, &block);
        }
        if (block.offset % (BLOCKS_A_BEAT * BLOCK_ELEMENTS) == 0)
            heartbeat();
    }
    return 0;
}

/* ---- the sum ---- */

/* The first `count` sums become zero. */
static void clear_sums(struct registers *registers, size_t count) {
    struct touched *touched = &registers->sum_touched;
    uint32_t found[BLOCK_ELEMENTS];
    size_t at = 0, some, used = registers->sum_used;
    if (touched->some && count == registers->count)
        while ((some = touched_next(touched, &at, count, found, BLOCK_ELEMENTS)))
            for (size_t i = 0; i < some; i++)
                registers->sum[found[i]] = 0;
    else
        heartbeat_clear(registers->sum, (count < used ? count : used) * sizeof *registers->sum);
    if (used <= count)
        registers->sum_used = 0;
    /* Sums of other layouts than the parameters' are not looked at. */
    if (count == registers->count)
        touched_none(&registers->sum_touched);
    else
        touched_all(&registers->sum_touched);
}

static int clear_sum(struct registers *registers, enum sums_layout layout) {
    clear_sums(registers, registers_sums(registers, layout));
    return 0;
}

static void note_used(struct registers *registers, size_t end) {
    assert(end <= registers->sum_length);
    registers->sum_used = end > registers->sum_used ? end : registers->sum_used;
}

/* The entries of a sparse slice may come in any order: integer sums do not depend on it. */
static int fold(struct registers *registers, size_t count, const struct slice *slice, bool first) {
    int64_t *sum = registers->sum + slice->first;
    bool dense = !slice->offsets && slice->entries;
    bool copies = first && dense && slice->entries == count;
    assert(count <= registers->sum_length && slice->first <= count);
    assert(!dense || slice->entries <= count - slice->first);
    if (first && !copies)
        clear_sums(registers, count);
    if (copies)
        heartbeat_copy(sum, slice->values, slice->entries * sizeof *sum);
    else if (dense)
        fixed_merge(slice->entries, sum, slice->values);
    if (dense && !mutant(TOUCHED_FORGOTTEN))
        touched_all(&registers->sum_touched);
    if (dense)
        note_used(registers, slice->first + slice->entries);
    uint64_t last = 0;
    for (uint64_t i = 0; slice->offsets && i < slice->entries; i++) {
        const uint32_t offset = slice_offset(slice, i);
        if (offset >= count - slice->first)
            return slice_has_changed();
        fixed_merge_one(&sum[offset], slice->values[i]);
        touched_add(&registers->sum_touched, slice->first + offset);
        last = offset > last ? offset : last;
    }
    if (slice->offsets && slice->entries)
        note_used(registers, slice->first + last + 1);
    return 0;
}

/* Nothing has to be moved. */
const struct shard_backend shard_on_host = {
    .run_pass = run_pass,
    .clear_sum = clear_sum,
    .fold = fold,
};
