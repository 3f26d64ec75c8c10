#include "tests/sim/job.h"

#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/exact.h"
#include "numeric/fixed.h"
#include "tests/sim/tiles.h"

enum { CHUNKS_MAX = 40, ROWS_MAX = 6, VALUES_MAX = 8 }; /* of a job, a chunk, a row */
_Static_assert(CHUNKS_MAX <= 64, "sets of chunks fit a word");
_Static_assert(CHUNKS_MAX <= JOB_MINIBATCHES_MAX, "a minibatch has a chunk at least");

static uint32_t between(struct random *random, uint32_t least, uint32_t most) {
    return least + (uint32_t)random_below(random, most - least + 1);
}

/* Parameters in one to four blocks, so that up to four shards have something to own. */
static void choose_shape(struct job *job, struct random *random) {
    struct objective_shape *shape = &job->shape;
    shape->kind = (enum objective_kind)random_below(random, 3);
    shape->outputs = shape->kind == OBJECTIVE_SOFTMAX ? between(random, 2, 4) : 1;
    shape->intercept = random_below(random, 2);
    uint32_t blocks = random_below(random, 2) ? 1 : between(random, 2, 4);
    shape->features = between(random, 3, 40);
    if (blocks > 1)
        shape->features += (blocks - 1) * BLOCK_ELEMENTS / shape->outputs;
}

/* A third are networks, some of them on values so far apart in scale that bounds are exceeded.
 * Drawn from a generator of its own, so that the other jobs are what they would be without. */
static void choose_network(struct job *job) {
    struct random random;
    struct objective_shape *shape = &job->shape;
    struct network *network = &shape->network;
    random_init(&random, job->seed ^ UINT64_C(0x4e7));
    if (random_below(&random, 3))
        return;
    network->layers = between(&random, 1, 3);
    for (uint32_t i = 0; i < network->layers; i++)
        network->units[i] = between(&random, 1, 4);
    network->activation = (enum activation)random_below(&random, ACTIVATIONS);
    network->precision = random_below(&random, 4) ? PRECISION_DOUBLE : PRECISION_FLOAT;
    network->seed = random_next(&random);
    shape->features = 3 + shape->features * shape->outputs / network->units[0];
    shape->intercept = true;
    job->rough = random_below(&random, 2);
}

static void choose_settings(struct job *job, struct random *random) {
    job->optimizer = (struct optimizer_settings){
        .memory = between(random, 1, 5),
        .l2 = random_below(random, 3) ? 0.01 : 0,
        .bias_scale = random_below(random, 2) ? 1 : 0.25,
        .gradient_tolerance = random_below(random, 4) ? 1e-12 : 1e-2,
        .steps_max = between(random, 4, JOB_STEPS_MAX),
        .single = job->shape.network.precision == PRECISION_FLOAT,
    };
    job->history_type = random_below(random, 2) ? HISTORY_FLOAT : HISTORY_DOUBLE;
}

/* Most values fall on the first features, as in sorted packs; some anywhere. */
static void make_row(struct job *job, struct random *random, uint32_t row, uint32_t *values) {
    uint32_t features = objective_columns(&job->shape), hot = features < 20 ? features : 20;
    uint32_t feature = 0;
    for (uint32_t i = 0; i < VALUES_MAX; i++) {
        feature += i < 5 ? between(random, 1, hot / 5 + 1) : between(random, 1, features / 2);
        if (feature > features)
            break;
        job->feature[*values] = feature - 1;
        job->value[*values] =
            ldexp(random_unit(random) - 0.4, (int)(feature % 7) * (job->rough ? 4 : 1) - 3);
        (*values)++;
    }
    job->start[row + 1] = *values;
    double label = (double)random_below(random, job->shape.outputs > 1 ? job->shape.outputs : 2);
    job->label[row] = job->shape.kind == OBJECTIVE_SQUARED ? 40 * random_unit(random) - 10 : label;
}

static void make_rows(struct job *job, struct random *random) {
    uint32_t chunks = between(random, 3, CHUNKS_MAX), rows = 0, values = 0;
    job->chunks = memory_new(CHUNKS_MAX, sizeof *job->chunks);
    job->start = memory_new(chunks * ROWS_MAX + 1, sizeof *job->start);
    job->feature = memory_new(chunks * ROWS_MAX * VALUES_MAX, sizeof *job->feature);
    job->value = memory_new(chunks * ROWS_MAX * VALUES_MAX, sizeof *job->value);
    job->label = memory_new(chunks * ROWS_MAX, sizeof *job->label);
    for (uint32_t i = 0; i < chunks; i++) {
        struct rows *chunk = &job->chunks[i];
        *chunk = (struct rows){.count = between(random, 1, ROWS_MAX),
                               .features = objective_columns(&job->shape),
                               .type = VALUE_DOUBLE,
                               .start = job->start + rows,
                               .feature = job->feature,
                               .value = job->value,
                               .label = job->label + rows};
        uint32_t before = values;
        for (uint32_t row = 0; row < chunk->count; row++)
            make_row(job, random, rows + row, &values);
        rows += chunk->count;
        chunk->values = values - before;
    }
    job->data.rows = rows;
    job->data.values = values;
    job->data.chunks = chunks;
}

/* ---- Downpour ---- */

/* Cuts the rows into chunks of `rows` each. The last one may have fewer. */
static void cut_alike(struct job *job, uint32_t rows) {
    uint32_t all = (uint32_t)job->data.rows;
    job->data.block_rows = rows;
    job->data.chunks = (all + rows - 1) / rows;
    for (uint32_t i = 0; i < job->data.chunks; i++) {
        uint32_t first = i * rows, end = first + rows < all ? first + rows : all;
        struct rows *chunk = &job->chunks[i];
        *chunk = job->chunks[0];
        chunk->count = end - first;
        chunk->start = job->start + first;
        chunk->label = job->label + first;
        chunk->values = job->start[end] - job->start[first];
    }
}

/* Half of the networks, and an eighth of the others, learn from minibatches first, or from these
 * alone: one or more chunks each, more of them from epoch to epoch, at rates that fall, some too
 * high for anything to be learnt. Drawn from a generator of its own. */
static void choose_downpour(struct job *job) {
    struct random random;
    struct downpour_settings *downpour = &job->downpour;
    random_init(&random, job->seed ^ UINT64_C(0xd0e7));
    if (random_below(&random, job->shape.network.layers ? 2 : 8))
        return;
    uint32_t rows = (uint32_t)job->data.rows, least = (rows + CHUNKS_MAX - 1) / CHUNKS_MAX;
    uint32_t most = rows / 3 < ROWS_MAX ? rows / 3 : ROWS_MAX; /* three chunks at least */
    cut_alike(job, between(&random, least, most));
    *downpour = (struct downpour_settings){
        .epochs = between(&random, 1, JOB_EPOCHS_MAX),
        .batch = job->data.block_rows * between(&random, 1, 1 + job->data.chunks / 3),
        .seed = random_next(&random),
        .rates = job->rates,
        .rate_count = between(&random, 1, JOB_EPOCHS_MAX),
        .multiples = job->multiples,
        .multiple_count = between(&random, 1, JOB_EPOCHS_MAX),
        .alone = random_below(&random, 3) == 0,
        .scales = job->seed % 4 != 0,
    };
    downpour->scales = random_below(&random, 2);
    for (uint32_t i = 0; i < JOB_EPOCHS_MAX; i++) {
        job->rates[i] = ldexp(random_unit(&random), -(int)random_below(&random, 8));
        job->multiples[i] = 1 + (uint32_t)random_below(&random, i + 1);
    }
}

/* The last chunk of training may have fewer rows. */
static void shorten_last(struct job *job) {
    struct rows *chunk = &job->chunks[set_training_chunks(&job->data) - 1];
    uint32_t fewer = (uint32_t)(job->seed % chunk->count);
    job->data.rows -= fewer;
    chunk->count -= fewer;
    job->data.values -= chunk->values;
    chunk->values = chunk->start[chunk->count] - chunk->start[0];
    job->data.values += chunk->values;
}

/* The order of an epoch, from 1, as doc/FORMATS.md has it. */
static void order_epoch(struct job *job, uint32_t epoch) {
    const struct downpour_settings *downpour = &job->downpour;
    uint32_t last = downpour->multiple_count - 1, number = epoch - 1 < last ? epoch - 1 : last;
    uint64_t chunks = set_training_chunks(&job->data), key = permutation_key(downpour->seed, epoch);
    uint64_t each = downpour->batch * job->multiples[number] / job->data.block_rows;
    uint64_t minibatches = (chunks + each - 1) / each, offset = permutation_key(key, 1) % chunks;
    for (uint64_t i = 0; i < minibatches; i++) {
        uint64_t first = each * permutation_at(i, minibatches, key), set = 0;
        for (uint64_t j = first; j < first + each && j < chunks; j++)
            set |= UINT64_C(1) << (j + offset) % chunks;
        job->minibatch[job->minibatch_count++] = set;
    }
}

static void order_minibatches(struct job *job) {
    job->downpour.measures = job->data.holdout_chunks > 0;
    if (job->downpour.measures)
        job->to_count = job->data.chunks;
    for (uint32_t epoch = 1; epoch <= job->downpour.epochs; epoch++)
        order_epoch(job, epoch);
}

/* ---- the holdout, and weights ---- */

/* In half of the jobs the last chunks are held out, mostly for early stopping. Most of them are
 * chunks that are trained on as well, so that their loss falls before it rises. */
static void hold_out(struct job *job, uint64_t seed) {
    struct random random;
    struct set_info *data = &job->data;
    random_init(&random,
                seed ^ UINT64_C(0x401d)); /* of its own: the other jobs stay as they were */
    if (random_below(&random, 2) && data->chunks > 1)
        data->holdout_chunks = between(&random, 1, data->chunks / 2);
    if (data->holdout_chunks && random_below(&random, 5))
        job->optimizer.patience = between(&random, 1, 6);
    uint32_t border = data->chunks - data->holdout_chunks;
    for (uint32_t i = border; i < data->chunks; i++) {
        data->rows -= job->chunks[i].count;
        data->values -= job->chunks[i].values;
        if (random_below(&random, 4))
            job->chunks[i] = job->chunks[random_below(&random, border)];
        data->holdout_rows += job->chunks[i].count;
    }
    if (job->downpour.epochs)
        shorten_last(job);
    job->to_count = data->chunks - (job->optimizer.patience ? 0 : data->holdout_chunks);
    job->to_train_on = data->rows;
}

/* The sum of the weights of some chunks, as the data folder makes it. */
static double weight_of(const struct job *job, uint32_t first, uint32_t end) {
    struct exact sum;
    exact_init(&sum);
    for (uint32_t i = first; i < end; i++)
        for (uint32_t row = 0; row < job->chunks[i].count; row++)
            exact_add(&sum, job->chunks[i].weight ? job->chunks[i].weight[row] : 1);
    return exact_value(&sum);
}

/* A third have rows with weights, some of 0 and some far apart. Drawn from a generator of its own.
 */
static void weigh(struct job *job) {
    struct random random;
    struct set_info *data = &job->data;
    random_init(&random, job->seed ^ UINT64_C(0x3e164));
    data->weighted = random_below(&random, 3) == 0;
    uint32_t rows = data->chunks * ROWS_MAX;
    job->weight = memory_new(rows, sizeof *job->weight);
    for (uint32_t row = 0; row < rows; row++) {
        job->weight[row] = ldexp(random_unit(&random) + 0.1, (int)random_below(&random, 40) - 30);
        if (row && random_below(&random, 8) == 0)
            job->weight[row] = 0;
    }
    for (uint32_t i = 0; data->weighted && i < data->chunks; i++)
        job->chunks[i].weight = job->weight + (job->chunks[i].label - job->label);
    uint32_t border = data->chunks - data->holdout_chunks;
    data->weight_sum = weight_of(job, 0, border);
    data->holdout_weight_sum = weight_of(job, border, data->chunks);
}

/* A third have rows with offsets. Drawn from a generator of its own, too. */
static void shift(struct job *job) {
    struct random random;
    struct set_info *data = &job->data;
    random_init(&random, job->seed ^ UINT64_C(0x0ff5e7));
    data->has_offsets = random_below(&random, 3) == 0;
    uint32_t rows = data->chunks * ROWS_MAX;
    job->offset = memory_new(rows, sizeof *job->offset);
    for (uint32_t row = 0; row < rows; row++)
        job->offset[row] = 2 * random_unit(&random) - 1;
    for (uint32_t i = 0; data->has_offsets && i < data->chunks; i++)
        job->chunks[i].offset = job->offset + (job->chunks[i].label - job->label);
    if (data->has_offsets)
        data->offsets = (struct offset_summary){.least = -1, .most = 1};
}

/* As the data folder does it; sometimes with an exponent of its own for each column. */
static void find_exponents(struct job *job, struct random *random) {
    uint32_t columns = objective_columns(&job->shape) + 1;
    double *sum = memory_new(columns, sizeof *sum);
    uint64_t *count = memory_new(columns, sizeof *count);
    job->exponent = memory_new(columns, sizeof *job->exponent);
    for (uint64_t row = 0; row < job->data.rows; row++) {
        double weight = job->data.weighted ? fixed_weight(job->weight[row]) : 1;
        for (uint32_t i = job->start[row]; i < job->start[row + 1]; i++) {
            sum[job->feature[i]] += weight * fabs(job->value[i]);
            count[job->feature[i]]++;
        }
        sum[columns - 1] += weight;
    }
    count[columns - 1] = job->data.rows;
    for (uint32_t i = 0; i < columns; i++)
        job->exponent[i] = (int16_t)fixed_exponent(sum[i], count[i]);
    job->data.uniform = random_below(random, 3) && fixed_uniform(columns, job->exponent, sum, count,
                                                                 &job->data.uniform_exponent);
    if (job->shape.network.layers)
        job->own_exponents = objective_exponents(&job->shape, job->exponent, job->data.chunks);
    free(sum);
    free(count);
}

/* A third start elsewhere than at zero. Drawn from a generator of its own, so that the rest of the
 * job is what it would be without. */
static void choose_start(struct job *job) {
    struct random random;
    random_init(&random, job->seed ^ UINT64_C(0x57a28));
    if (random_below(&random, 3) || (job->downpour.epochs && !job->downpour.alone))
        return;
    job->pair_count = job->downpour.epochs ? 0 : (uint32_t)random_below(&random, 3);
    job->pairs = memory_new(2 * job->pair_count * job->parameters, sizeof *job->pairs);
    for (uint64_t i = 0; i < job->pair_count * job->parameters; i++) {
        uint64_t at = i + i / job->parameters * job->parameters; /* y lies behind s */
        job->pairs[at] = random_unit(&random) - 0.5;
        job->pairs[at + job->parameters] = job->pairs[at] * (0.5 + random_unit(&random));
    }
    job->origin = memory_new(job->parameters, sizeof *job->origin);
    for (uint64_t i = 0; i < job->parameters; i++)
        job->origin[i] = ldexp(random_unit(&random) - 0.5, -3);
}

/* A block of some of the first columns, where most values are, and the diagonal of the rest. */
static void choose_block(struct job *job, struct random *random) {
    struct preconditioner_settings *settings = &job->optimizer.preconditioner;
    uint32_t features = objective_columns(&job->shape);
    settings->form = PRECONDITION_LEADING;
    settings->block_columns = between(random, 1, features < 40 ? features : 40);
    settings->ridge = random_below(random, 2) ? job->optimizer.l2 : 0;
}

/* Costs are so low that it is refreshed often, with samples that need not grow far to have all
 * rows. */
static struct preconditioner_settings full_block(const struct job *job, struct random *random) {
    return (struct preconditioner_settings){
        .form = PRECONDITION_FULL,
        .rows = job->data.rows,
        .sample = random_below(random, 2) ? 20 : 20 * job->parameters,
        .columns = job->shape.features + job->shape.intercept,
        .block_columns = objective_columns(&job->shape),
        .parts = job->shape.outputs,
        .constant = job->shape.kind == OBJECTIVE_SQUARED,
        .trace_first = 0.5,
        .cost_all = random_unit(random),
        .cost_term = random_unit(random) / 1e5,
    };
}

/* A third have a preconditioner, if the model is linear: half of them a leading block, and also
 * those that are too large for a block of all parameters, if they have one. Drawn from a generator
 * of its own. */
static void choose_preconditioner(struct job *job) {
    struct random random;
    random_init(&random, job->seed ^ UINT64_C(0xc0dd));
    if (random_below(&random, 3) || job->shape.network.layers || job->data.strip_columns)
        return;
    struct preconditioner_settings settings = full_block(job, &random);
    bool leading = random_below(&random, 2);
    if (!leading && job->parameters > PRECONDITION_BLOCK_MAX)
        return;
    job->optimizer.preconditioner = settings;
    if (leading)
        choose_block(job, &random);
    job->pair_count = 0;
}

/* Half of the small linear ones end with the errors of their estimates. Drawn from a generator
 * of its own. */
static void choose_summary(struct job *job) {
    struct random random;
    random_init(&random, job->seed ^ UINT64_C(0x5e));
    if (job->parameters > BLOCK_ELEMENTS || job->shape.network.layers || job->data.strip_columns ||
        job->optimizer.patience || job->downpour.epochs || random_below(&random, 2))
        return;
    job->optimizer.preconditioner = full_block(job, &random);
    job->optimizer.summary = random_below(&random, 4) ? SUMMARY_ROBUST : SUMMARY_MODEL;
    job->optimizer.steps_max = JOB_STEPS_MAX;
    if (random_below(&random, 4)) /* so that steps are left for the way to the optimum */
        job->optimizer.gradient_tolerance = 0.1;
    job->pair_count = 0;
}

/* Steps over working sets, of at most so few weights that some runs have more. */
static void choose_working_set(struct job *job, struct random *random) {
    const struct objective *objective = objective_of(job->shape.kind);
    uint32_t features = objective_columns(&job->shape);
    uint32_t outputs = objective_weights(objective, job->shape.outputs);
    uint32_t weights = features * outputs;
    uint32_t most = weights < 500 ? weights : 500;
    if (job->shape.network.layers || !features || !objective->convex || !objective->second ||
        job->downpour.epochs || job->data.strip_columns)
        return;
    job->optimizer.preconditioner = (struct preconditioner_settings){
        .form = PRECONDITION_LISTED,
        .rows = job->data.rows,
        .columns = features + job->shape.intercept,
        .block_columns = random_below(random, 4) ? most : between(random, 1, most),
        .parts = outputs,
        .constant = job->shape.kind == OBJECTIVE_SQUARED,
        .trace_first = 0.5,
        .cost_all = random_unit(random),
        .cost_term = random_unit(random) / 1e5,
    };
}

/* A third of those without one, and a ninth of those in tiles, have l1, from so little that few
 * weights are zero to so much that most are. Drawn from a generator of its own. */
static void choose_l1(struct job *job) {
    struct random random;
    random_init(&random, job->seed ^ UINT64_C(0x11));
    if (job->optimizer.preconditioner.form || random_below(&random, 3) ||
        (job->data.strip_columns && random_below(&random, 3) != 2))
        return;
    job->optimizer.l1 = ldexp(random_unit(&random), -(int)random_below(&random, 10));
    job->optimizer.bounds_gap = !job->shape.intercept;
    if (random_below(&random, 8))
        choose_working_set(job, &random);
}

/* A quarter of those with l1 or without a preconditioner, and a twelfth of those in tiles, have
 * limits: bounds of all kinds, and an l1 of each column. Drawn from a generator of its own. */
static void choose_limits(struct job *job) {
    struct random random;
    struct optimizer_settings *optimizer = &job->optimizer;
    enum precondition form = optimizer->preconditioner.form;
    random_init(&random, job->seed ^ UINT64_C(0xb0d));
    if (job->shape.network.layers || job->downpour.epochs ||
        (form && form != PRECONDITION_LISTED) || random_below(&random, 4) ||
        (job->data.strip_columns && random_below(&random, 3) != 2))
        return;
    optimizer->limited = true;
    optimizer->bounds_gap = false;
    if (!form && random_below(&random, 4))
        choose_working_set(job, &random);
    job->limits = memory_new(job->shape.features, sizeof *job->limits);
    for (uint32_t j = 0; j < job->shape.features; j++) {
        double low = random_unit(&random) - 0.9, room = random_unit(&random);
        bool l1 = optimizer->l1 > 0 && random_below(&random, 4);
        job->limits[j] =
            (struct column_limit){.lasso = l1 ? random_unit(&random) : 0,
                                  .low = random_below(&random, 3) ? low : -INFINITY,
                                  .high = random_below(&random, 3) ? low + room : INFINITY};
    }
}

/* A third are trained scaled, and all with a leading block. Drawn from a generator of its own. */
static void choose_scaling(struct job *job) {
    struct random random;
    random_init(&random, job->seed ^ UINT64_C(0xc00d));
    bool leading = job->optimizer.preconditioner.form == PRECONDITION_LEADING;
    if (job->data.strip_columns || (random_below(&random, 3) && !leading))
        return;
    job->columns = memory_new(job->shape.features, sizeof *job->columns);
    for (uint32_t j = 0; j < job->shape.features; j++)
        job->columns[j] =
            (struct column_scaling){.mean = job->shape.intercept ? random_unit(&random) - 0.5 : 0,
                                    .scale = ldexp(1 + random_unit(&random), (int)(j % 5) - 2),
                                    .penalty = random_unit(&random)};
}

/* Half of the linear ones estimate the gap, with squares that may be 0, and half of these end by
 * it. Drawn from a generator of its own. */
static void choose_gap(struct job *job) {
    struct random random;
    random_init(&random, job->seed ^ UINT64_C(0x9a9));
    if (job->shape.network.layers || random_below(&random, 2))
        return;
    job->optimizer.gap =
        (struct gap_settings){.known = true,
                              .second = 0.25 + random_unit(&random),
                              .typical_second = random_below(&random, 2) ? INFINITY : 0,
                              .bias_share = ldexp(1, -(int)(job->seed % 8)),
                              .mean_square = job->seed % 5 ? 0 : 30,
                              .newton = random_below(&random, 2),
                              .least = 1e-3,
                              .tolerance = 1e-4 * random_unit(&random),
                              .waited_for = random_below(&random, 2),
                              .asked_for = job->seed % 3 == 0};
    if (!job->columns)
        job->squares = memory_new(job->shape.features, sizeof *job->squares);
    for (uint32_t j = 0; j < job->shape.features; j++) {
        double *square = job->columns ? &job->columns[j].square : &job->squares[j];
        *square = random_below(&random, 5) ? random_unit(&random) : 0;
    }
}

/* Nearly all linear ones without l1, limits and minibatches minimise over common directions, and
 * all such in tiles: with windows so short that directions leave them soon, and often with
 * fewer pairs, as it is by default. Drawn from a generator of its own. */
static void choose_directions(struct job *job) {
    struct random random;
    struct optimizer_settings *optimizer = &job->optimizer;
    random_init(&random, job->seed ^ UINT64_C(0xd14));
    if (job->shape.network.layers || job->downpour.epochs || optimizer->summary)
        return;
    optimizer->outputs = job->shape.outputs;
    optimizer->weighted = job->data.weighted;
    optimizer->offsets = job->data.has_offsets;
    if (settings_boxed(optimizer) || (random_below(&random, 16) == 0 && !job->data.strip_columns))
        return;
    optimizer->directions = random_below(&random, 3) ? between(&random, 2, 7) : 1;
    struct layout layout = objective_layout(&job->shape);
    optimizer->from_zero = !job->origin && layout_starts_at_zero(&layout);
    if (optimizer->directions > 2 && random_below(&random, 2))
        optimizer->memory = 1;
}

/* Where each chunk begins in vectors of rows. */
static void number_rows(struct job *job) {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < job->data.chunks; i++) {
        job->chunks[i].first = rows;
        rows += job->chunks[i].count;
    }
}

static double largest_label(const struct job *job) {
    double largest = 0;
    for (uint64_t i = 0; i < job->data.rows; i++)
        largest = fmax(largest, fabs(job->label[i]));
    return largest;
}

void job_init(struct job *job, uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    *job = (struct job){.seed = seed};
    choose_shape(job, &random);
    choose_network(job);
    choose_settings(job, &random);
    make_rows(job, &random);
    choose_downpour(job);
    tiles_choose(job);
    hold_out(job, seed);
    order_minibatches(job);
    weigh(job);
    shift(job);
    find_exponents(job, &random);
    job->data.features = job->shape.features;
    job->data.type = VALUE_DOUBLE;
    job->data.classes = job->shape.kind == OBJECTIVE_SOFTMAX ? job->shape.outputs : 2;
    job->data.label_max_abs = largest_label(job);
    job->data.exponent = job->exponent;
    job->data.fingerprint = "simulated";
    job->parameters = objective_parameters(&job->shape);
    choose_start(job);
    choose_preconditioner(job);
    choose_summary(job);
    choose_l1(job);
    choose_limits(job);
    choose_scaling(job);
    choose_gap(job);
    choose_directions(job);
    number_rows(job);
    tiles_make(job);
}

void job_release(struct job *job) {
    tiles_release(job);
    free(job->chunks);
    free(job->start);
    free(job->feature);
    free(job->value);
    free(job->label);
    free(job->weight);
    free(job->offset);
    free(job->exponent);
    free(job->own_exponents);
    free(job->columns);
    free(job->limits);
    free(job->squares);
    free(job->origin);
    free(job->pairs);
    free(job->expected.model);
    free(job->expected.errors);
}

/* ---- what it evaluates ---- */

bool job_has_minibatch(const struct job *job, uint64_t chunks) {
    for (uint32_t i = 0; i < job->minibatch_count; i++)
        if (job->minibatch[i] == chunks)
            return true;
    return false;
}

static uint64_t first_chunks(uint32_t count) {
    return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* The curvature is of training rows alone, as is the gradient if the holdout ends nothing. */
bool job_evaluates(const struct job *job, uint64_t chunks) {
    uint64_t all = first_chunks(job->data.chunks),
             training = first_chunks(set_training_chunks(&job->data));
    uint32_t tiles = set_tiles(&job->data);
    if (job->tiles && job->shape.network.layers)
        return chunks == all || chunks == training || chunks == first_chunks(tiles) ||
               chunks == first_chunks(tiles + set_training_chunks(&job->data));
    if (job->tiles)
        return chunks == all || chunks == first_chunks(tiles);
    if (chunks == all)
        return job->optimizer.patience || all == training;
    if (chunks == training)
        return !job->optimizer.patience || job->optimizer.preconditioner.form ||
               job->optimizer.directions || job_has_minibatch(job, chunks);
    bool held_out =
        job->downpour.measures || (job->optimizer.directions && job->optimizer.patience);
    return job_has_minibatch(job, chunks) || (held_out && chunks == (all & ~training));
}
