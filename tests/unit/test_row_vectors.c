/* Vectors of rows, on shards that hold them between them, against plain loops over dense arrays. */
#include "tests/unit/suites.h"
#include "tests/unit/row_cluster.h"

#include "numeric/product.h"

/* More outputs than the second derivatives of a row are computed for at once. */
enum { OUTPUTS_MOST = PRODUCT_ROWS_MAX + 44, DICE = 17, NEWEST_SLOT = 3 };

/* One problem: every vector as the whole of it. */
struct problem {
    uint32_t outputs;
    bool weighted;
    double *labels, *weights, *z, *q[DIRECTIONS]; /* [ROWS * outputs] each, of `numbers` */
    double numbers[];
};

static struct problem *problem_new(uint32_t outputs, bool weighted) {
    const size_t length = (size_t)ROWS * outputs;
    struct problem *p = memory_new(1, sizeof *p + (3 + DIRECTIONS) * length * sizeof *p->numbers);
    struct random random;
    random_init(&random, outputs);
    p->labels = p->numbers, p->weights = p->labels + length, p->z = p->weights + length;
    for (size_t slot = 0; slot < DIRECTIONS; slot++)
        p->q[slot] = p->z + (1 + slot) * length;
    p->outputs = outputs;
    p->weighted = weighted;
    for (size_t i = 0; i < ROWS; i++) {
        uint32_t classes = outputs == 1 ? 2 : outputs;
        p->labels[i * outputs] = (double)random_below(&random, classes);
        p->weights[i * outputs] = weighted ? (double)random_below(&random, 4) / 2 : 1;
    }
    for (size_t i = 0; i < length; i++) {
        p->z[i] = 3 * random_unit(&random) - 1.5;
        for (size_t slot = 0; slot < DIRECTIONS; slot++)
            p->q[slot][i] = 2 * random_unit(&random) - 1;
    }
    return p;
}

static void take_problem(struct row_cluster *cluster, const struct problem *p) {
    put_rows(cluster, ROWS_LABELS, 0, p->labels);
    if (p->weighted)
        put_rows(cluster, ROWS_WEIGHTS, 0, p->weights);
    put_rows(cluster, ROWS_MARGINS, 0, p->z);
    for (uint32_t slot = 0; slot < DIRECTIONS; slot++)
        put_rows(cluster, ROWS_PRODUCT, slot, p->q[slot]);
}

/* ---- plain loops ---- */

/* Loss and derivatives of a row, of logistic and of softmax, and the probability of each output. */
static double loss_of_row(size_t outputs, const double *m, double label, double *derivatives,
                          double *chance) {
    double sum = outputs == 1;
    size_t own = (size_t)label;
    for (size_t k = 0; k < outputs; k++)
        sum += chance[k] = exp(m[k]);
    for (size_t k = 0; k < outputs; k++) {
        chance[k] /= sum;
        derivatives[k] = chance[k] - (outputs == 1 ? label == 1 : k == own);
    }
    return log(sum) - (outputs == 1 ? label * m[0] : m[own]);
}

struct expected {
    double loss, derivative_max, slopes[DIRECTIONS], second[DIRECTIONS * (DIRECTIONS + 1) / 2];
    double derivatives[]; /* ROWS * outputs */
};

static struct expected *expected_new(uint32_t outputs) {
    return memory_new(1, sizeof(struct expected) + (size_t)ROWS * outputs * sizeof(double));
}

static bool is_drawn(size_t row, double rate) {
    uint64_t bits = random_mix(random_mix(DICE) + (row + 1) * RANDOM_STEP);
    return (double)(bits >> 11) * 0x1p-53 < rate;
}

/* aᵀ(diag(p) − ppᵀ)b: between both lie the second derivatives of a row. */
static double bilinear(size_t outputs, const double *a, const double *p, const double *b) {
    double both = 0, left = 0, right = 0;
    for (size_t k = 0; k < outputs; k++) {
        both += a[k] * p[k] * b[k];
        left += a[k] * p[k];
        right += p[k] * b[k];
    }
    return both - left * right;
}

/* At Z + Σ u·Q of the slots that the operations below name. */
static void expect(const struct problem *p, const struct operation *at, double rate,
                   struct expected *out) {
    const size_t outputs = p->outputs;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < ROWS; i++) {
        double v[OUTPUTS_MOST], chance[OUTPUTS_MOST];
        double *derivatives = &out->derivatives[i * outputs], weight = p->weights[i * outputs];
        for (size_t k = 0; k < outputs; k++) {
            v[k] = p->z[i * outputs + k];
            for (uint32_t s = 0; s < at->count; s++)
                v[k] += at->u[s] * p->q[at->slots[s]][i * outputs + k];
        }
        double loss = loss_of_row(outputs, v, p->labels[i * outputs], derivatives, chance);
        for (size_t k = 0; k < outputs; k++)
            derivatives[k] = weight > 0 ? derivatives[k] : 0;
        out->loss += weight * loss;
        size_t at_second = 0;
        for (size_t s = 0; s < DIRECTIONS; s++) {
            for (size_t k = 0; k < outputs; k++)
                out->slopes[s] += weight * derivatives[k] * p->q[s][i * outputs + k];
            for (size_t r = 0; r <= s; r++, at_second++)
                if (is_drawn(i, rate))
                    out->second[at_second] +=
                        weight / rate *
                        bilinear(outputs, &p->q[s][i * outputs], chance, &p->q[r][i * outputs]);
        }
        for (size_t k = 0; k < outputs; k++)
            out->derivative_max = fmax(out->derivative_max, fabs(derivatives[k]));
    }
}

static void assert_near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-10 * (1 + fabs(expected))))
        fail_msg("%.17g is not %.17g", found, expected);
}

static const struct operation at_a_point = {
    .code = OPERATION_ROWS_AT, .count = 3, .slots = {4, 0, 7}, .u = {0.5, -0.75, 0.3}};

static struct operation over_all_slots(enum operation_code code, double rate) {
    struct operation operation = {.code = code, .count = DIRECTIONS, .alpha = rate, .serial = DICE};
    for (uint16_t i = 0; i < DIRECTIONS; i++)
        operation.slots[i] = i;
    operation.slot = code == OPERATION_ROWS_HESSIAN_PRODUCT ? NEWEST_SLOT : 0;
    return operation;
}

static double second_of(const struct expected *expected, size_t r, size_t s) {
    return r > s ? expected->second[r * (r + 1) / 2 + s] : expected->second[s * (s + 1) / 2 + r];
}

static void assert_measures(const struct row_yields *yields, const struct expected *expected) {
    const struct exact *sum = yields->sums;
    assert_near(exact_value(sum++), expected->loss);
    for (size_t i = 0; i < DIRECTIONS; i++)
        assert_near(exact_value(sum++), expected->slopes[i]);
    for (size_t i = 0; i < DIRECTIONS * (DIRECTIONS + 1) / 2; i++)
        assert_near(exact_value(sum++), expected->second[i]);
    const struct exact *end = yields->sums + yields->count;
    for (size_t i = 0; sum < end && i < DIRECTIONS;
         i++) /* of ROWS_HESSIAN_PRODUCT, if it was asked for */
        assert_near(exact_value(sum++), second_of(expected, i, NEWEST_SLOT));
    assert_int_equal(sum - yields->sums, yields->count);
    assert_near(yields->max, expected->derivative_max);
}

static void assert_same_bits(const struct row_yields *a, const struct row_yields *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(&a->max, &b->max, sizeof a->max);
    for (size_t i = 0; i < a->count; i++) {
        double one = exact_value(&a->sums[i]), other = exact_value(&b->sums[i]);
        assert_memory_equal(&one, &other, sizeof one);
    }
}

/* With all rows and with a sample of them. */
static void measure_on_any_number_of_shards(uint32_t outputs, bool weighted, double rate) {
    const struct operation operations[] = {at_a_point,
                                           {.code = OPERATION_ROWS_LOSS},
                                           {.code = OPERATION_ROWS_DERIVATIVE},
                                           over_all_slots(OPERATION_ROWS_SLOPES, 0),
                                           over_all_slots(OPERATION_ROWS_SECOND, rate),
                                           over_all_slots(OPERATION_ROWS_HESSIAN_PRODUCT, rate)};
    struct problem *p = problem_new(outputs, weighted);
    struct expected *expected = expected_new(outputs);
    struct row_yields yields[ROW_SHARDS];
    expect(p, &at_a_point, rate, expected);
    const size_t fewest = SANITIZED && outputs == OUTPUTS_MOST ? ROW_SHARDS : 1;
    for (size_t shards = fewest; shards <= ROW_SHARDS; shards++) {
        struct row_cluster cluster;
        row_cluster_init(&cluster, shards, outputs == 1 ? "logistic" : "softmax", outputs,
                         weighted);
        take_problem(&cluster, p);
        run_rows(&cluster, operations, 6, &yields[shards - 1]);
        assert_measures(&yields[shards - 1], expected);
        assert_same_bits(&yields[fewest - 1], &yields[shards - 1]);
        row_cluster_release(&cluster);
    }
    free(expected);
    free(p);
}

static void rows_are_measured_alike_on_any_number_of_shards(void **state) {
    (void)state;
    for (uint32_t outputs = 1; outputs <= 3; outputs += 2)
        for (int weighted = 0; weighted < 2; weighted++) {
            measure_on_any_number_of_shards(outputs, weighted, 1);
            measure_on_any_number_of_shards(outputs, weighted, 0.375);
        }
    measure_on_any_number_of_shards(20, true, 0.1); /* blocks of several pieces */
    measure_on_any_number_of_shards(OUTPUTS_MOST, false, 0.01);
}

/* Slopes first: then shards may find both in one reading. */
static void assert_together_as_apart(struct row_cluster *cluster, struct operation slopes,
                                     struct operation hessian_product) {
    struct row_yields together, apart;
    const struct operation one[] = {at_a_point, slopes, hessian_product};
    const struct operation two[] = {at_a_point, hessian_product, slopes};
    run_rows(cluster, one, 3, &together);
    run_rows(cluster, two, 3, &apart);
    struct row_yields swapped = apart;
    memcpy(swapped.sums, apart.sums + hessian_product.count, slopes.count * sizeof *apart.sums);
    memcpy(swapped.sums + slopes.count, apart.sums, hessian_product.count * sizeof *apart.sums);
    assert_int_equal(together.count, slopes.count + hessian_product.count);
    assert_same_bits(&together, &swapped);
}

static void slopes_and_second_derivatives_are_the_same_together_as_apart(void **state) {
    (void)state;
    for (uint32_t outputs = 1; outputs <= 20; outputs += 19) {
        struct problem *p = problem_new(outputs, true);
        struct operation slopes = over_all_slots(OPERATION_ROWS_SLOPES, 0);
        struct operation hessian_product = over_all_slots(OPERATION_ROWS_HESSIAN_PRODUCT, 0.375);
        struct row_cluster cluster;
        row_cluster_init(&cluster, 2, outputs == 1 ? "logistic" : "softmax", outputs, true);
        take_problem(&cluster, p);
        assert_together_as_apart(&cluster, slopes, hessian_product);
        hessian_product.slots[0] = DIRECTIONS - 1, hessian_product.slots[DIRECTIONS - 1] = 0;
        assert_together_as_apart(&cluster, slopes, hessian_product);
        slopes.count--;
        assert_together_as_apart(&cluster, slopes, hessian_product);
        row_cluster_release(&cluster);
        free(p);
    }
}

/* ---- giving out derivatives ---- */

static void fetch(struct bench *bench, uint32_t evaluation) {
    tell(bench, REPLICA_LINK, fetch_all(evaluation));
}

static void assert_derivatives(struct row_cluster *cluster, const double *expected) {
    for (size_t i = 0; i < cluster->count; i++) {
        const struct sums_range range = cluster->ranges[i];
        fetch(&cluster->shards[i], cluster->evaluation);
        assert_answer(&cluster->shards[i], 0, REPLICA_LINK, MESSAGE_PARAMETERS);
        struct message message = answer(&cluster->shards[i], 0);
        const double *found = message.bulk.data;
        assert_int_equal(message.parameters.first, range.first * cluster->outputs);
        assert_int_equal(message.parameters.count, range.count * cluster->outputs);
        assert_int_equal(message.bulk.length, message.parameters.count * sizeof *found);
        for (size_t k = 0; k < message.parameters.count; k++)
            assert_near(found[k], expected[message.parameters.first + k]);
    }
}

/* And Z is there from then on. */
static void replicas_fetch_the_derivatives_where_margins_have_advanced(void **state) {
    (void)state;
    struct problem *p = problem_new(3, true);
    struct expected *expected = expected_new(3);
    struct row_cluster cluster;
    struct row_yields moved, there;
    expect(p, &at_a_point, 1, expected);
    row_cluster_init(&cluster, 2, "softmax", 3, true);
    take_problem(&cluster, p);
    const struct operation advance[] = {at_a_point,
                                        {.code = OPERATION_ROWS_ADVANCE},
                                        {.code = OPERATION_ROWS_LOSS},
                                        begin_rows(++cluster.evaluation, true)};
    run_rows(&cluster, advance, 4, &moved);
    assert_derivatives(&cluster, expected->derivatives);
    const struct operation measure[] = {{.code = OPERATION_ROWS_AT}, {.code = OPERATION_ROWS_LOSS}};
    run_rows(&cluster, measure, 2, &there);
    assert_same_bits(&there, &moved);
    assert_derivatives(&cluster, expected->derivatives); /* measuring has left them as they were */
    row_cluster_release(&cluster);
    free(expected);
    free(p);
}

/* ---- rows that are held out ---- */

/* Loss, and the weight of rows whose class is predicted, from row `first` on. */
static void expect_held(const struct problem *p, const struct operation *at, size_t first,
                        double expected[2]) {
    const size_t outputs = p->outputs;
    expected[0] = expected[1] = 0;
    for (size_t i = first; i < ROWS; i++) {
        double v[OUTPUTS_MOST], derivatives[OUTPUTS_MOST], chance[OUTPUTS_MOST];
        double weight = p->weights[i * outputs], label = p->labels[i * outputs];
        size_t best = 0;
        for (size_t k = 0; k < outputs; k++) {
            v[k] = p->z[i * outputs + k];
            for (uint32_t s = 0; s < at->count; s++)
                v[k] += at->u[s] * p->q[at->slots[s]][i * outputs + k];
            best = v[k] > v[best] ? k : best;
        }
        expected[0] += weight * loss_of_row(outputs, v, label, derivatives, chance);
        expected[1] += (outputs == 1 ? v[0] > 0 : (double)best) == label ? weight : 0;
    }
}

/* What is measured of the others is as if the held ones weighed nothing. */
static void assert_held(size_t shards, uint32_t outputs, uint64_t held) {
    const struct operation operations[] = {at_a_point,
                                           {.code = OPERATION_ROWS_HELD},
                                           {.code = OPERATION_ROWS_LOSS},
                                           {.code = OPERATION_ROWS_DERIVATIVE},
                                           over_all_slots(OPERATION_ROWS_SLOPES, 0),
                                           over_all_slots(OPERATION_ROWS_SECOND, 0.375),
                                           {.code = OPERATION_ROWS_ADVANCE},
                                           begin_rows(100, true)};
    struct problem *p = problem_new(outputs, true);
    struct expected *expected = expected_new(outputs);
    struct row_cluster cluster;
    struct row_yields yields;
    double found[2];
    expect_held(p, &at_a_point, ROWS - held, found);
    row_cluster_init_held(&cluster, shards, outputs == 1 ? "logistic" : "softmax", outputs, true,
                          held);
    take_problem(&cluster, p);
    memset(p->weights + (ROWS - held) * outputs, 0, held * outputs * sizeof *p->weights);
    expect(p, &at_a_point, 0.375, expected);
    cluster.evaluation = 100;
    run_rows(&cluster, operations, 8, &yields);
    assert_near(exact_value(&yields.sums[0]), found[0]);
    assert_near(exact_value(&yields.sums[1]), found[1]);
    memmove(yields.sums, yields.sums + 2, (yields.count -= 2) * sizeof *yields.sums);
    assert_measures(&yields, expected);
    assert_derivatives(&cluster, expected->derivatives);
    row_cluster_release(&cluster);
    free(expected);
    free(p);
}

static void rows_that_are_held_out_are_evaluated_and_nothing_is_learnt_from_them(void **state) {
    (void)state;
    const uint64_t held[] = {0, 1, 77, 300, 3 * ROW_BLOCK + 77, ROWS - 1};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        for (uint32_t outputs = 1; outputs <= 3; outputs += 2)
            for (size_t shards = 1; shards <= ROW_SHARDS; shards++)
                assert_held(shards, outputs, held[i]);
    assert_held(2, 20, 300); /* blocks of several pieces */
}

/* A replica asks every shard for the elements of a strip: a shard gives what it has of them. */
static void a_shard_gives_the_part_of_a_strip_that_it_has(void **state) {
    (void)state;
    struct row_cluster cluster;
    struct problem *p = problem_new(1, false);
    row_cluster_init(&cluster, 2, "logistic", 1, false);
    take_problem(&cluster, p);
    const struct operation advance[] = {{.code = OPERATION_ROWS_AT},
                                        {.code = OPERATION_ROWS_ADVANCE},
                                        begin_rows(++cluster.evaluation, true)};
    struct row_yields none;
    run_rows(&cluster, advance, 3, &none);
    uint64_t border = cluster.ranges[1].first;
    const struct {
        uint64_t first, count, counts[2];
    } cases[] = {{0, 5, {5, 0}},
                 {border - 2, 5, {2, 3}},
                 {border, 1, {0, 1}},
                 {ROWS, 5, {0, 0}},
                 {0, ROWS, {border, ROWS - border}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t shard = 0; shard < 2; shard++) {
            struct bench *bench = &cluster.shards[shard];
            tell(bench, REPLICA_LINK,
                 (struct message){.type = MESSAGE_FETCH,
                                  .fetch = {.attempt = 1,
                                            .evaluation = cluster.evaluation,
                                            .first = cases[i].first,
                                            .count = cases[i].count}});
            assert_answer(bench, 0, REPLICA_LINK, MESSAGE_PARAMETERS);
            struct message message = answer(bench, 0);
            uint64_t first = shard && cases[i].first < border ? border : cases[i].first;
            assert_int_equal(message.parameters.count, cases[i].counts[shard]);
            assert_int_equal(message.bulk.length, cases[i].counts[shard] * sizeof(double));
            if (message.parameters.count)
                assert_int_equal(message.parameters.first, first);
        }
    row_cluster_release(&cluster);
    free(p);
}

static void assert_given(struct bench *bench, uint32_t evaluation, bool given) {
    fetch(bench, evaluation);
    assert_int_equal(bench->out.count, given ? 1 : 0);
}

static void nothing_is_given_out_once_it_has_changed(void **state) {
    (void)state;
    const struct operation advance[] = {{.code = OPERATION_ROWS_AT},
                                        {.code = OPERATION_ROWS_ADVANCE}};
    struct bench bench;
    bench_init(&bench, row_setup("logistic", 1, false, 0));
    run_one(&bench, begin_rows(1, true));
    run_one(&bench, (struct operation){.code = OPERATION_ZERO, .a = REGISTER_T});
    assert_given(&bench, 1, true);
    run_operations(&bench, advance, 2);
    assert_given(&bench, 1, false);
    for (enum operation_code code = OPERATION_KEEP; code <= OPERATION_COMBINE; code++) {
        run_one(&bench, begin_rows(2, false));
        run_operations(&bench, advance, 2);
        assert_given(&bench, 2, true);
        run_one(&bench, (struct operation){.code = code, .a = REGISTER_T});
        assert_given(&bench, 2, false);
    }
    bench_release(&bench);
}

/* ---- edges ---- */

static void a_vector_that_no_slice_made_is_zero(void **state) {
    (void)state;
    struct problem *p = problem_new(1, false);
    struct row_cluster cluster;
    struct row_yields yields;
    row_cluster_init(&cluster, 1, "logistic", 1, false);
    take_problem(&cluster, p);
    run_one(&cluster.shards[0], begin_rows(100, false));
    const struct operation operations[] = {{.code = OPERATION_ROWS_TAKE, .vector = ROWS_MARGINS},
                                           {.code = OPERATION_ROWS_AT},
                                           {.code = OPERATION_ROWS_LOSS}};
    run_rows(&cluster, operations, 3, &yields);
    assert_near(exact_value(&yields.sums[0]), ROWS * log(2));
    row_cluster_release(&cluster);
    free(p);
}

static void margins_beyond_numbers_yield_losses_that_are_none(void **state) {
    (void)state;
    const double strange[] = {NAN, INFINITY, -INFINITY};
    const struct operation operations[] = {
        {.code = OPERATION_ROWS_AT, .count = 1, .slots = {2}, .u = {1}},
        {.code = OPERATION_ROWS_LOSS},
        {.code = OPERATION_ROWS_DERIVATIVE},
        {.code = OPERATION_ROWS_SLOPES, .count = 1, .slots = {2}},
        {.code = OPERATION_ROWS_SECOND, .count = 1, .slots = {2}, .alpha = 1}};
    for (uint32_t outputs = 1; outputs <= 3; outputs += 2)
        for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
            struct problem *p = problem_new(outputs, false);
            struct row_cluster cluster;
            struct row_yields yields;
            row_cluster_init(&cluster, 2, outputs == 1 ? "logistic" : "softmax", outputs, false);
            p->q[2][700] = strange[i];
            take_problem(&cluster, p);
            run_rows(&cluster, operations, 5, &yields);
            assert_true(!isfinite(exact_value(&yields.sums[0])));
            row_cluster_release(&cluster);
            free(p);
        }
}

/* ---- what is refused ---- */

static void assert_refused(struct message with, const struct operation *operations, size_t count) {
    struct bench bench;
    bench_init(&bench, with);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    run_operations(&bench, operations, count);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

static void a_shard_without_rows_refuses_them(void **state) {
    (void)state;
    const struct operation operations[] = {
        {.code = OPERATION_ROWS_TAKE}, {.code = OPERATION_ROWS_AT},
        {.code = OPERATION_KEEP},      {.code = OPERATION_WINDOW_DOTS, .count = 1},
        begin_rows(1, false),          begin_rows(1, true),
    };
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        assert_refused(setup(10, 0, 10), &operations[i], 1);
}

static void operations_that_do_not_fit_the_shard_are_refused(void **state) {
    (void)state;
    const struct operation beyond[] = {
        {.code = OPERATION_KEEP, .slot = DIRECTIONS + 2},
        {.code = OPERATION_COMBINE, .count = 1, .slots = {DIRECTIONS + 2}},
        {.code = OPERATION_ROWS_AT, .count = 1, .slots = {DIRECTIONS + 2}},
        {.code = OPERATION_ROWS_TAKE, .vector = ROWS_LABELS}, /* of sums over parameters */
    };
    const struct operation weights[] = {begin_rows(1, false)};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        assert_refused(row_setup("logistic", 1, false, 0), &beyond[i], 1);
    struct bench bench;
    bench_init(&bench, row_setup("logistic", 1, false, 0));
    run_one(&bench, weights[0]);
    run_operations(&bench, &(struct operation){.code = OPERATION_ROWS_TAKE, .vector = ROWS_WEIGHTS},
                   1);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

static void a_set_up_with_an_objective_that_rows_cannot_have_fails(void **state) {
    (void)state;
    const char *const objectives[] = {"unheard-of", "multilabel", "logistic", "poisson"};
    for (size_t i = 0; i < sizeof objectives / sizeof *objectives; i++) {
        struct bench bench;
        bench_init(&bench, row_setup(objectives[i], 2, false, 0));
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        bench_release(&bench);
    }
}

/* ---- directions of the window ---- */

enum { KEPT = 3, BIASES_KEPT = 500 };

/* A direction of random elements, by way of the sums of a gradient: those that are kept. */
static double *keep_direction(struct bench *bench, struct random *random, uint32_t number) {
    const size_t count = ROW_PARAMETERS;
    const struct operation keep[] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_D, .alpha = 10},
        {.code = OPERATION_KEEP, .a = REGISTER_D, .slot = DIRECTIONS + 1 - number}};
    double *kept = memory_new(count, sizeof *kept);
    int64_t *slice = memory_new(count, sizeof *slice);
    for (size_t k = 0; k < count; k++)
        slice[k] = (int64_t)random_below(random, 1 << 30) - (1 << 29);
    begin(bench, number + 1);
    tell(bench, REPLICA_LINK, stage(flush(number + 1, 1), slice, count));
    tell(bench, COORDINATOR_LINK, fold(flush(number + 1, 1)));
    run_operations(bench, keep, 2);
    for (size_t k = 0; k < count; k++)
        kept[k] = (float)((double)slice[k] * 0x1p-20 / 10);
    assert_memory_equal(read_register(bench, REGISTER_D, 0, count), kept, count * sizeof *kept);
    free(slice);
    return kept;
}

/* Both ways of COMBINE: from another register, and in place. */
static void directions_are_kept_combined_and_measured(void **state) {
    (void)state;
    const struct operation operations[] = {{.code = OPERATION_COMBINE,
                                            .a = REGISTER_T,
                                            .b = REGISTER_D,
                                            .count = 2,
                                            .slots = {DIRECTIONS + 1, DIRECTIONS},
                                            .u = {0.25, -0.7}},
                                           {.code = OPERATION_COMBINE,
                                            .a = REGISTER_T,
                                            .b = REGISTER_T,
                                            .count = 1,
                                            .slots = {DIRECTIONS - 1},
                                            .u = {-1}},
                                           {.code = OPERATION_WINDOW_DOTS,
                                            .a = REGISTER_T,
                                            .count = KEPT,
                                            .slots = {DIRECTIONS + 1, DIRECTIONS, DIRECTIONS - 1}}};
    struct random random;
    struct bench bench;
    struct row_yields yields;
    double *v[KEPT], dots[KEPT] = {0};
    struct message with = row_setup("logistic", 1, false, 0);
    random_init(&random, 3);
    with.shard_setup.layout = layout_blob(ROW_PARAMETERS - BIASES_KEPT, 1, BIASES_KEPT);
    with.shard_setup.history_type = HISTORY_FLOAT;
    bench_init(&bench, with);
    for (uint32_t i = 0; i < KEPT; i++)
        v[i] = keep_direction(&bench, &random, i);
    run_operations(&bench, operations, 3);
    yields_init(&yields);
    add_yields(&bench, operations, 3, &yields);
    const double *t = read_register(&bench, REGISTER_T, 0, ROW_PARAMETERS);
    for (size_t k = 0; k < ROW_PARAMETERS; k++) {
        assert_near(t[k], 0.25 * v[0][k] - 0.7 * v[1][k]);
        for (size_t i = 0; i < KEPT; i++)
            dots[i] += k < ROW_PARAMETERS - BIASES_KEPT ? t[k] * v[i][k] : 0;
    }
    for (size_t i = 0; i < KEPT; i++) {
        assert_near(exact_value(&yields.sums[i]), dots[i]);
        free(v[i]);
    }
    bench_release(&bench);
}

SUITE(row_vectors) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_measured_alike_on_any_number_of_shards),
        cmocka_unit_test(slopes_and_second_derivatives_are_the_same_together_as_apart),
        cmocka_unit_test(rows_that_are_held_out_are_evaluated_and_nothing_is_learnt_from_them),
        cmocka_unit_test(replicas_fetch_the_derivatives_where_margins_have_advanced),
        cmocka_unit_test(a_shard_gives_the_part_of_a_strip_that_it_has),
        cmocka_unit_test(nothing_is_given_out_once_it_has_changed),
        cmocka_unit_test(a_vector_that_no_slice_made_is_zero),
        cmocka_unit_test(margins_beyond_numbers_yield_losses_that_are_none),
        cmocka_unit_test(a_shard_without_rows_refuses_them),
        cmocka_unit_test(operations_that_do_not_fit_the_shard_are_refused),
        cmocka_unit_test(a_set_up_with_an_objective_that_rows_cannot_have_fails),
        cmocka_unit_test(directions_are_kept_combined_and_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
