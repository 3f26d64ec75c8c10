#include "coordinator/job/sizing.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/family.h"
#include "numeric/fixed.h"
#include "optimizer/span.h"
#include "wire/address.h"

/* K shards take W/K of a step for its vectors, and K messages a round: the least is at the root of
 * W. Two and one are as fast at 8,192 parameters, about (bench/NOTES.md). */
#define PARAMETERS_OF_ONE_SHARD 4096.0

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Bytes that an evaluation moves, counted and not measured: the same for every machine. For a value
 * of a sparse row they are its column, itself and, on average, one cache line of the point and of
 * the gradient, which are too wide for the caches. Dense rows read these in sequence. A parameter
 * is read or written some eighteen times an evaluation: cleared, added up, staged, folded, and as
 * an element of x, t, g, h, d and a new pair. */
#define SPARSE_VALUE_BYTES 72.0
#define SPARSE_OUTPUT_BYTES 16.0 /* a value and an output: of the point, and of the gradient */
#define DENSE_VALUE_BYTES 8.0
#define PARAMETER_BYTES 144.0

/* The pairs may cost at most this share of what else an evaluation costs. */
#define HISTORY_SHARE 0.5

uint32_t sizing_history(const struct set_info *data, uint64_t parameters, enum history_type type) {
    double element = type == HISTORY_DOUBLE ? sizeof(double) : sizeof(float);
    assert(parameters > 0);
    double pair = READS_OF_A_PAIR * element * (double)parameters;
    double outputs = data->features ? floor((double)parameters / (double)data->features) : 1;
    double value = data->dense ? DENSE_VALUE_BYTES
                               : SPARSE_VALUE_BYTES + SPARSE_OUTPUT_BYTES * fmax(outputs, 1);
    double evaluation = value * (double)data->values + PARAMETER_BYTES * (double)parameters;
    double pairs = HISTORY_SHARE * evaluation / pair;
    pairs = fmin(fmax(pairs, HISTORY_AUTO_MIN), HISTORY_AUTO_MAX);
    return pairs < (double)parameters ? (uint32_t)pairs : (uint32_t)parameters;
}

/* The number of addresses; without addresses the number in the job, else the automatic one. Beside
 * a name that lists addresses the number in the job is that of the replicas that are expected. */
static int count_workers(const char *key, uint32_t wanted, char *const *addresses,
                         uint32_t automatic, uint32_t *count) {
    uint32_t given = names_count(addresses);
    bool names = false;
    for (uint32_t i = 0; i < given; i++)
        names |= address_is_name(addresses[i]);
    if (given && wanted && wanted != given && !names)
        return error_set(ERROR_CONFIG, "key `%s` is %u, but there are %u addresses; leave `%s` out",
                         key, wanted, given, key);
    *count = given && !(names && wanted) ? given : wanted ? wanted : automatic;
    return 0;
}

int sizing_workers(const struct job *job, uint64_t parameters, uint32_t cpus,
                   struct sizing *sizing) {
    double worthwhile = floor(sqrt((double)parameters / PARAMETERS_OF_ONE_SHARD));
    uint32_t shards = (uint32_t)fmax(1, fmin(worthwhile, least(cpus, SHARDS_MAX)));
    /* As few replicas as are needed for a thread on each CPU: the threads of a replica share the
     * point, and send their sums to the shards as one. */
    uint32_t replicas = cpus ? (cpus - 1) / THREADS_MAX + 1 : 1;
    int code = count_workers("shards", job->shards, job->shard_addresses, shards, &sizing->shards);
    if (!code)
        code = count_workers("replicas", job->replicas, job->replica_addresses, replicas,
                             &sizing->replicas);
    if (code)
        return code;
    assert(sizing->shards > 0 && sizing->replicas > 0);
    sizing->threads = job->threads;
    if (!sizing->threads && !names_count(job->replica_addresses)) {
        uint32_t share = cpus / sizing->replicas;
        sizing->threads = share ? least(share, THREADS_MAX) : 1;
    }
    return 0;
}

int sizing_of(const struct job *job, const struct set_info *data, uint64_t parameters,
              uint32_t cpus, struct sizing *sizing) {
    sizing->history =
        job->history ? job->history : sizing_history(data, parameters, job->history_type);
    sizing->history_type = job->history_type;
    return sizing_workers(job, parameters, cpus, sizing);
}

/* ---- on hosts ---- */

#define FLUSH_MS_MAX 1e6

/* Every host fetches the point and sends its gradient, so shards take and send so many bytes for
 * each parameter and host, each its part; and each flush costs the coordinator two messages a
 * shard. The sum of both times is least with √(parameters·bytes·STREAM_NS/(2·MESSAGE_NS)) shards,
 * however many hosts there are. doc/SCALE.md has the figures. */
#define STREAM_NS 1.4   /* for a byte between hosts, through TLS */
#define MESSAGE_NS 500. /* of the coordinator, for one message that lists many flushes */

/* What is lost with a host, the work since its last flush, must not cost more than it saves: while
 * nobody is lost, at most this share of the shards' time goes into such flushes. */
#define FLUSH_SHARE 0.05

uint32_t sizing_flush_ms(const struct job *job, uint64_t parameters, const struct sizing *sizing) {
    double bytes = (double)sizing->replicas * (double)parameters * sizeof(int64_t);
    double least_ms = bytes * STREAM_NS / sizing->shards / FLUSH_SHARE / 1e6;
    return least_ms > job->flush_ms ? (uint32_t)fmin(least_ms, FLUSH_MS_MAX) : job->flush_ms;
}

void sizing_on_hosts(const struct job *job, const struct set_info *data, uint64_t parameters,
                     uint32_t hosts, struct sizing *sizing) {
    /* A host with sparse rows fetches and sends only the columns that its rows have: at most one
     * for each value. What is sent names them. */
    const double dense = 2 * sizeof(double), sparse = dense + sizeof(uint32_t);
    double columns = (double)data->features * hosts;
    double share = data->dense || !(columns > 0) ? 1 : fmin((double)data->values / columns, 1);
    double bytes = (double)parameters * fmin(dense, sparse * share);
    double best = sqrt(bytes * STREAM_NS / (2 * MESSAGE_NS));
    uint64_t blocks = (parameters + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    double shards_most = fmin(fmin(hosts, SHARDS_MAX), (double)blocks);
    assert(hosts > 0);
    sizing->shards = job->shards ? job->shards : (uint32_t)fmax(fmin(best, shards_most), 1);
    sizing->replicas = job->replicas ? job->replicas : hosts;
    sizing->threads = job->threads;
}

/* ---- the biases ---- */

#define BIAS_SCALE_LEAST 0x1p-20 /* keeps pairs in single precision far from 0 */

double sizing_bias_scale(const struct set_info *data) {
    double square = 0; /* |E|x||² */
    for (uint64_t j = 0; j < data->features; j++) {
        double mean = fixed_absolute_sum(data->exponent[j]) / (double)data->rows;
        square += mean * mean;
    }
    int exponent;
    frexp(fmin(fmax(square, BIAS_SCALE_LEAST), 1), &exponent);
    return ldexp(1, exponent - 1);
}

/* ---- the preconditioner ---- */

/* What a term of the Hessian and a product of its factorisation take, in products of a pass for a
 * gradient: ratios of times, about. Dense rows with one output add terms eight at a time; with
 * several outputs the gradient is a matrix product, which is much faster. */
#define TERM_COST_SPARSE 1.0
#define TERM_COST_DENSE 0.4
#define TERM_COST_OUTPUTS 2.5
#define FACTOR_COST_DENSE 0.3
#define FACTOR_COST_SPARSE 0.04

/* The first sample has this many rows a parameter, or as many as have this cost. */
#define SAMPLE_A_PARAMETER 20
#define SAMPLE_COST 0.25

/* The trace of the second derivatives of a row's loss by its margins, at the start. The label is
 * the mean, if that decides the start. */
static double trace_first(const struct set_info *data, const struct objective_shape *shape) {
    const struct objective *objective = objective_of(shape->kind);
    uint32_t outputs = shape->outputs;
    double *margins = memory_new(4 * (size_t)outputs, sizeof *margins);
    double *work = margins + outputs, *diagonal = margins + 2 * outputs, loss, trace = 0;
    double *label = margins + 3 * outputs;
    label[0] = objective->start ? data->targets->mean : 0;
    for (uint32_t k = 0; k < outputs; k++)
        margins[k] = objective_typical_margin(shape);
    objective->losses(&shape->loss, 1, outputs, label, margins, &loss, work);
    objective->second(&shape->loss, 1, outputs, label, margins, work, diagonal);
    for (uint32_t k = 0; k < outputs; k++)
        trace += diagonal[k];
    free(margins);
    return trace;
}

/* An output each, or one that all share. */
static uint32_t weights_of_column(const struct objective_shape *shape) {
    return objective_of(shape->kind)->shares_weights ? 1 : shape->outputs;
}

double sizing_second_first(const struct set_info *data, const struct objective_shape *shape) {
    const struct objective *objective = objective_of(shape->kind);
    double parts = weights_of_column(shape);
    double second = objective->second ? trace_first(data, shape) / parts : 1;
    return second > 0 ? second : 1;
}

/* What a refresh costs, with n parameters in the block and `terms` a sampled row on average.
 * Outputs that share weights add the terms of a row once each. */
static void set_costs(const struct set_info *data, const struct objective_shape *shape, double n,
                      double terms, struct preconditioner_settings *settings) {
    double outputs = weights_of_column(shape);
    double times = shape->outputs / outputs;
    double pass = 2 * ((double)data->values + (double)data->rows) * outputs; /* products */
    settings->cost_all =
        0.5 + (data->dense ? FACTOR_COST_DENSE : FACTOR_COST_SPARSE) * n * n * n / 3 / pass;
    double cost = data->dense ? TERM_COST_DENSE : TERM_COST_SPARSE;
    settings->cost_term = (outputs > 1 ? TERM_COST_OUTPUTS : cost) / pass;
    double cheap = SAMPLE_COST / (settings->cost_term * times * terms);
    settings->sample = (uint64_t)fmin(fmax(SAMPLE_A_PARAMETER * n, cheap), (double)data->rows);
}

/* As many columns as a leading block has room for. */
static uint32_t columns_that_fit(const struct job *job, const struct objective_shape *shape) {
    struct layout layout = objective_layout(shape);
    uint64_t biases = layout_leading_block(&layout, 0);
    return job->precondition_block > biases
               ? (uint32_t)fmin((double)(job->precondition_block - biases), (double)shape->features)
               : 0;
}

/* Products of a pass that take no longer than its messages do: of fewer the cost is that of so
 * many, beside which second derivatives are cheap. */
#define PASS_LEAST 4e5

/* With l1: room for second derivatives by a working set. */
static void set_listed(const struct job *job, const struct set_info *data,
                       const struct objective_shape *shape,
                       struct preconditioner_settings *settings) {
    const struct objective *objective = objective_of(shape->kind);
    bool linear = family_of(shape) == &family_linear && objective->convex;
    uint32_t outputs = weights_of_column(shape), biases = shape->intercept ? shape->outputs : 0;
    if (job->precondition == PRECONDITION_OFF || job_has_minibatches(job) || !linear ||
        !objective->second || !shape->features || biases >= WORKING_SET_MAX)
        return;
    uint64_t weights = shape->features * outputs, most = WORKING_SET_MAX - biases;
    *settings = (struct preconditioner_settings){
        .form = PRECONDITION_LISTED,
        .rows = data->rows,
        .columns = shape->features + shape->intercept,
        .block_columns = (uint32_t)(weights < most ? weights : most),
        .parts = outputs,
        .density = (double)data->values / ((double)data->rows * (double)shape->features),
        .constant = objective->second_constant,
        .trace_first = trace_first(data, shape),
    };
    set_costs(data, shape, 0, 1, settings);
    double pass = 2 * ((double)data->values + (double)data->rows) * outputs;
    settings->cost_term *= fmin(1, pass / PASS_LEAST);
}

/* Errors of estimates need the inverse of a matrix of all parameters. */
static int check_summary(const struct job *job, const struct set_info *data, uint64_t parameters) {
    if (!job->summary)
        return 0;
    if (job_inverts(job) && parameters > PRECONDITION_PARAMETERS_MAX)
        return error_set(
            ERROR_CONFIG,
            "%s: key `summary`: the model has %llu parameters, and the standard errors of all are "
            "computed for at most %d; name those that you need (summary_columns), leave columns "
            "out (csv.skip), combine rare levels (csv.category_least), or set summary = none",
            job->file, (unsigned long long)parameters, PRECONDITION_PARAMETERS_MAX);
    if (data->strip_columns)
        return error_set(ERROR_CONFIG,
                         "%s: key `summary`: columns in tiles have no standard errors; set "
                         "strip_columns = 0, or summary = none",
                         job->file);
    return 0;
}

int sizing_precondition(const struct job *job, const struct set_info *data,
                        const struct objective_shape *shape,
                        struct preconditioner_settings *settings) {
    const struct objective *objective = objective_of(shape->kind);
    uint64_t parameters = objective_parameters(shape);
    bool has_second = objective->second && family_of(shape)->second;
    uint32_t most = job_inverts(job) ? PRECONDITION_PARAMETERS_MAX : job->precondition_block;
    bool full = parameters <= most;
    uint32_t columns = !has_second                ? 0
                       : full && job_inverts(job) ? (uint32_t)shape->features
                                                  : columns_that_fit(job, shape);
    *settings = (struct preconditioner_settings){.form = PRECONDITION_NONE};
    int code = check_summary(job, data, parameters);
    if (code)
        return code;
    assert(job->precondition != PRECONDITION_BLOCK || !job_has_orthants(job));
    if (job->precondition == PRECONDITION_BLOCK && !columns)
        return error_set(ERROR_CONFIG,
                         "%s: key `precondition`: not one column fits into `precondition_block`; "
                         "take `auto` or `none`",
                         job->file);
    if (job_has_orthants(job) && !data->strip_columns)
        set_listed(job, data, shape, settings);
    if (job->precondition == PRECONDITION_OFF || data->strip_columns ||
        job->precondition == PRECONDITION_KRONECKER || job->precondition == PRECONDITION_DIAGONAL ||
        job_has_orthants(job) || job_has_minibatches(job) || !columns)
        return 0;
    *settings = (struct preconditioner_settings){
        .form = full ? PRECONDITION_FULL : PRECONDITION_LEADING,
        .rows = data->rows,
        .columns = shape->features + shape->intercept,
        .block_columns = full ? (uint32_t)shape->features : columns,
        .parts = weights_of_column(shape),
        .constant = objective->second_constant,
        .change = objective->second_change,
        .shared = !full && weights_of_column(shape) > 1,
        .trace_first = trace_first(data, shape),
    };
    double outputs = settings->parts;
    double side = ((double)data->values / (double)data->rows + 1) * outputs;
    set_costs(data, shape, (double)parameters, side * side / 2, settings);
    return 0;
}

uint64_t sizing_block(const struct objective_shape *shape,
                      const struct preconditioner_settings *settings) {
    struct layout layout = objective_layout(shape);
    return evaluation_block(&layout, settings->form, settings->block_columns);
}

/* ---- a leading block ---- */

/* A refresh costs at most so many passes. */
#define PASSES_MOST 2

/* Rows of a table have about as many values each: the deviation is at most this share of the mean.
 * The lengths of texts differ more. */
#define DEVIATION_OF_A_TABLE (1.0 / 3)

/* Or their numbers of values beyond the largest block vary little more than those of independent
 * columns, whose variance is the mean at most. The scaled Hessian of columns of one scale has an
 * eigenvalue as large as this ratio, where its others are about 1. */
#define VARIANCE_OF_A_TABLE 3.0 /* of the mean */

static double variance_of(double rows, double sum, double square) {
    double mean = sum / rows;
    return square / rows - mean * mean;
}

static bool is_table(const struct set_info *data, const struct prefix_counts *counts) {
    double rows = (double)counts->rows, mean = counts->all_sum / rows;
    double variance = variance_of(rows, counts->all_sum, counts->all_square);
    double rest = counts->all_sum - counts->sum[0];
    double rest_variance = variance_of(rows, rest, counts->rest_square);
    return data->table || variance <= DEVIATION_OF_A_TABLE * DEVIATION_OF_A_TABLE * mean * mean ||
           rest_variance <= VARIANCE_OF_A_TABLE * rest / rows;
}

/* Columns beyond a block have a diagonal, which does not know what they have in common. Values of
 * categories seldom meet in a row, but pixels always do: there a diagonal costs more evaluations
 * than it saves. So of those columns a row has at most this share on average. */
#define SHARE_OF_RARE_COLUMNS 0.1

static bool is_rest_rare(const struct set_info *data, const struct prefix_counts *counts,
                         uint32_t prefix) {
    double columns = (double)data->features - counts->columns[prefix];
    double values = (counts->all_sum - counts->sum[prefix]) / (double)counts->rows;
    return values <= SHARE_OF_RARE_COLUMNS * columns;
}

/* Whether a block of the prefix is cheap enough; sets its costs. */
static bool is_cheap(const struct set_info *data, const struct objective_shape *shape,
                     const struct prefix_counts *counts, uint32_t prefix,
                     struct preconditioner_settings *settings) {
    struct layout layout = objective_layout(shape);
    /* Terms that a row adds on average to a block of the prefix: t(t + 1)/2, t = values +
     * intercept. */
    double rows = (double)counts->rows, sum = counts->sum[prefix] / rows;
    double intercept = shape->intercept;
    double square = counts->square[prefix] / rows + 2 * intercept * sum + intercept * intercept;
    double terms = (square + sum + intercept) / 2;
    settings->block_columns = counts->columns[prefix];
    set_costs(data, shape, (double)layout_leading_block(&layout, settings->block_columns), terms,
              settings);
    double sampled = (double)settings->sample * terms * settings->cost_term;
    return settings->cost_all + sampled <= PASSES_MOST;
}

/* One matrix for all outputs knows nothing of how well each row is fitted. Where rows are many for
 * each column that makes other steps than the matrix would, and the diagonal needs no more of them:
 * so outputs share a block only where columns are so many that it leaves some out. */
static bool may_share(const struct set_info *data, const struct prefix_counts *counts,
                      const struct preconditioner_settings *settings) {
    return !settings->shared || counts->columns[0] < data->features;
}

void sizing_leading(const struct job *job, const struct set_info *data,
                    const struct objective_shape *shape, const struct prefix_counts *counts,
                    struct preconditioner_settings *settings) {
    bool wanted = job->precondition == PRECONDITION_BLOCK;
    assert(settings->form == PRECONDITION_LEADING && counts->columns[0] == settings->block_columns);
    settings->ridge = job->l2.value / sizing_second_first(data, shape);
    if (wanted || (is_table(data, counts) && may_share(data, counts, settings)))
        for (uint32_t i = 0; i < PREFIXES && counts->columns[i]; i++) {
            bool cheap = is_cheap(data, shape, counts, i, settings);
            if (wanted || (cheap && is_rest_rare(data, counts, i)))
                return;
        }
    settings->form = PRECONDITION_NONE;
}

/* An idle process, with its libraries and threads. */
#define BASE_BYTES 40e6

/* Vectors in a shard, each as long as its range: x, t, g, h, d, the sum, a message that is being
 * received, the copies for a checkpoint and what pairs are made of; and one for each replica of
 * this host, in memory that both share. */
#define SHARD_VECTORS 15
#define VECTORS_A_REPLICA 1

/* Vectors in a replica, as long as the model: three for the point, in memory that it shares with
 * the shards, and its sums. Each thread has those of the family besides. */
#define REPLICA_MAPPED 4
#define REPLICA_VECTORS 1

/* Vectors of rows, where there are any: of a shard Z, D, those of a trial, labels, weights, sums,
 * and a slice that is being received; of a replica those that it fetches or sends, and its sums. */
#define ROW_VECTORS_A_SHARD 7
#define ROW_VECTORS_A_REPLICA 2

/* Bytes of the coordinator for a parameter: the square of its column, and first the same on its way
 * to a shard, at the end the column's place in the model and its weight there. That one is in a
 * mapped file, but is written in another order than shards send it: with less room it takes longer
 * (model/scatter.h). In tiles the square waits on disk (file_park()) before it is sent. */
#define COORDINATOR_BYTES 24.0
#define COORDINATOR_BYTES_IN_TILES 16.0
#define COORDINATOR_BYTES_WITHOUT_SQUARES 12.0

static double shard_need(const struct job *job, double parameters, const struct sizing *sizing) {
    assert(sizing->shards > 0);
    double range = parameters / sizing->shards;
    double vectors = SHARD_VECTORS + VECTORS_A_REPLICA * sizing->replicas;
    vectors += job->early_stopping ? 1 : 0;
    vectors += job_has_orthants(job) ? 2 : 0;
    vectors += job_has_bounds(job) ? 3 : 0;
    vectors += job_has_minibatches(job) ? 1 : 0;
    uint32_t window = sizing->directions ? sizing->directions + 2 : 0;
    double stored = 2.0 * (sizing->history + 2) + window;
    double element = (double)history_size(sizing->history_type);
    double rows = sizing->row_numbers / sizing->shards;
    return range * (sizeof(double) * vectors + stored * element) +
           rows * (sizeof(double) * ROW_VECTORS_A_SHARD + window * element);
}

struct memory_need memory_need_of(const struct job *job, uint64_t parameters,
                                  const struct sizing *sizing, uint64_t block) {
    double count = (double)parameters;
    uint32_t threads = sizing->threads ? sizing->threads : 1;
    double triangle = (double)block * (double)(block + 1) / 2 * sizeof(double);
    double vectors = REPLICA_VECTORS + (double)job_family(job)->family->thread_vectors * threads;
    double held = sizing->held > 0 ? sizing->held : count;
    bool has_gap = job_family(job)->family->convex;
    bool parked = held < count && !job_has_sweep(job);
    double each = parked ? COORDINATOR_BYTES_IN_TILES : COORDINATOR_BYTES;
    each = has_gap ? each : COORDINATOR_BYTES_WITHOUT_SQUARES;
    double replica = vectors * held * sizeof(double) + triangle * (1 + threads) + BASE_BYTES;
    double vectors_of_rows = ROW_VECTORS_A_REPLICA + (sizing->upper ? 0 : threads);
    replica += sizing->row_numbers * sizeof(double) * vectors_of_rows;
    struct memory_need need = {
        .coordinator = BASE_BYTES + each * count,
        .shard = BASE_BYTES + shard_need(job, count, sizing) + 3 * triangle,
        .replica = replica + REPLICA_MAPPED * held * sizeof(double),
        .shards = sizing->shards,
        .replicas = sizing->replicas,
    };
    double shards = need.shard * need.shards, replicas = replica * need.replicas;
    need.all = need.coordinator + shards + replicas;
    need.here = need.coordinator + (names_count(job->shard_addresses) ? 0 : shards) +
                (names_count(job->replica_addresses) ? 0 : replicas);
    return need;
}

static double most(const struct memory_need *need) {
    double worker = need->shard > need->replica ? need->shard : need->replica;
    return need->coordinator > worker ? need->coordinator : worker;
}

char *memory_need_exceeds(const struct memory_need *need) {
    struct memory_limit one = memory_limit_of_process(), all = memory_limit_of_all();
    if (most(need) > one.bytes)
        return memory_format("one process needs about %s, and %s (%s) are allowed",
                             memory_words(most(need)), memory_words(one.bytes), one.set);
    if (need->here > all.bytes)
        return memory_format("all processes need about %s, and %s (%s) are allowed",
                             memory_words(need->here), memory_words(all.bytes), all.set);
    return NULL;
}

char *memory_need_unmet(const struct memory_need *need, bool shard) {
    double own = shard ? need->shard : need->replica;
    struct memory_limit one = memory_limit_of_process(), all = memory_limit_of_all();
    bool alone = one.bytes < all.bytes;
    return memory_format("ended for lack of memory: about %s are needed%s, %s allowed (%s)",
                         memory_words(alone ? own : need->here), alone ? "" : " by all processes",
                         memory_words(alone ? one.bytes : all.bytes), alone ? one.set : all.set);
}
