/* The minimum in a span, from the scalars that shards would send; and the window of directions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "numeric/dense.h"
#include "optimizer/span.h"
#include "tests/unit/suites.h"

enum { ROWS = 200, COLUMNS = 12, K_MAX = 16, CALLS_MAX = 200 };

enum { ANSWERS_MADE_UP = SANITIZED ? 60 : 3000, SEEDS = SANITIZED ? 10 : 30 };

static uint64_t random_state;

/* In [−1, 1). */
static double drawn(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)random_state * 0x1p-63;
}

/* Rows, a point with its margins, and directions with theirs. */
static struct {
    bool logistic, flat; /* else squared; |z − y|, which curves nowhere */
    uint32_t k;
    double l2;
    double data[ROWS][COLUMNS], labels[ROWS];
    double x[COLUMNS], z[ROWS], p[K_MAX][COLUMNS], q[K_MAX][ROWS];
    struct window window;
} span_world;

static double product(const double *a, const double *b) {
    double sum = 0;
    for (uint32_t j = 0; j < COLUMNS; j++)
        sum += a[j] * b[j];
    return sum;
}

static void measure_window(void) {
    struct window *window = &span_world.window;
    double products[K_MAX], point[K_MAX];
    window_init(window, K_MAX);
    for (uint32_t i = 0; i < span_world.k; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            products[j] = product(span_world.p[i], span_world.p[j]);
            point[j] = product(span_world.x, span_world.p[j]);
        }
        window_measured(window, products, point);
        if (i + 1 < span_world.k)
            window_enter(window);
        for (uint32_t r = 0; r < ROWS; r++)
            span_world.q[i][r] = product(span_world.data[r], span_world.p[i]);
    }
}

static void make_world(bool logistic, uint32_t k, uint64_t seed) {
    random_state = seed;
    memset(&span_world, 0, sizeof span_world);
    span_world.logistic = logistic;
    span_world.k = k;
    span_world.l2 = 1e-3;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t j = 0; j < COLUMNS; j++)
            span_world.data[r][j] = drawn();
        double sum = product(span_world.data[r], span_world.data[0]) + drawn();
        span_world.labels[r] = logistic ? (sum > 0 ? 1 : -1) : sum;
    }
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < COLUMNS; j++)
            span_world.p[i][j] = drawn();
}

static double row_loss(double z, double y, double *first, double *second) {
    if (!span_world.logistic) {
        *first = span_world.flat ? (z > y) - (z < y) : z - y;
        *second = !span_world.flat;
        return span_world.flat ? fabs(z - y) : (z - y) * (z - y) / 2;
    }
    double chance = 1 / (1 + exp(y * z));
    *first = -y * chance;
    *second = chance * (1 - chance);
    return y * z > 0 ? log1p(exp(-y * z)) : log1p(exp(y * z)) - y * z;
}

static bool asks_for_slopes(enum span_answer asked) {
    return asked == SPAN_SLOPES || asked == SPAN_NEWEST || asked == SPAN_ALL;
}

static bool asks_for_newest(enum span_answer asked) {
    return asked == SPAN_NEWEST || asked == SPAN_HESSIAN_PRODUCT;
}

static bool asks_for_all(enum span_answer asked) {
    return asked == SPAN_ALL || asked == SPAN_SECOND;
}

/* The sums over rows at c; the sample of a rate takes the first rows. */
static struct span_trial measured_at(const double *c, double rate, enum span_answer asked) {
    static double slopes[K_MAX], second[K_MAX * (K_MAX + 1) / 2];
    const double *newest = second + span_world.k * (span_world.k - 1) / 2;
    struct span_trial trial = {.slopes = asks_for_slopes(asked) ? slopes : NULL,
                               .newest = asks_for_newest(asked) ? newest : NULL,
                               .second = asks_for_all(asked) ? second : NULL};
    memset(slopes, 0, sizeof slopes);
    memset(second, 0, sizeof second);
    for (uint32_t r = 0; r < ROWS; r++) {
        double z = span_world.z[r], first, curvature;
        for (uint32_t i = 0; i < span_world.k; i++)
            z += c[i] * span_world.q[i][r];
        trial.loss += row_loss(z, span_world.labels[r], &first, &curvature);
        trial.derivative = fmax(trial.derivative, fabs(first));
        for (uint32_t i = 0, at = 0; i < span_world.k; i++) {
            slopes[i] += first * span_world.q[i][r];
            for (uint32_t j = 0; j <= i; j++, at++)
                if (r < rate * ROWS)
                    second[at] += curvature / rate * span_world.q[i][r] * span_world.q[j][r];
        }
    }
    return trial;
}

/* The slope of F at x along the newest direction. */
static double newest_slope(void) {
    const uint32_t newest = span_world.k - 1;
    const double zero[K_MAX] = {0};
    return measured_at(zero, 1, SPAN_SLOPES).slopes[newest] / ROWS +
           span_world.l2 * product(span_world.x, span_world.p[newest]);
}

/* Until it has an answer. */
static enum span_answer search(struct span *span, uint32_t *calls) {
    struct span_settings settings = {.weight_sum = ROWS,
                                     .l2 = span_world.l2,
                                     .rows = ROWS,
                                     .noise = 1e-13,
                                     .first = 1,
                                     .slope = newest_slope()};
    enum span_answer answer = span_begin(span, &span_world.window, &settings);
    for (*calls = 0; answer != SPAN_ACCEPT && answer != SPAN_FAIL; ++*calls) {
        double c[K_MAX];
        span_point(span, c);
        struct span_trial trial = measured_at(c, span->rate, answer);
        answer = span_next(span, &span_world.window, &trial);
        assert_true(*calls < CALLS_MAX);
    }
    return answer;
}

static double f_of_x(void) {
    double zero[K_MAX] = {0};
    return measured_at(zero, 1, SPAN_LOSS).loss / ROWS +
           span_world.l2 / 2 * product(span_world.x, span_world.x);
}

static void move(const double *c) {
    for (uint32_t i = 0; i < span_world.k; i++) {
        for (uint32_t j = 0; j < COLUMNS; j++)
            span_world.x[j] += c[i] * span_world.p[i][j];
        for (uint32_t r = 0; r < ROWS; r++)
            span_world.z[r] += c[i] * span_world.q[i][r];
    }
}

/* What one search leaves of what further ones find. */
static double share_left(void) {
    struct span span = {0};
    uint32_t calls;
    double before = f_of_x();
    measure_window();
    assert_int_equal(search(&span, &calls), SPAN_ACCEPT);
    assert_true(calls <= 12);
    move(span.c);
    double after = f_of_x(), least = after;
    for (int i = 0; i < 50; i++) {
        measure_window();
        if (search(&span, &calls) != SPAN_ACCEPT)
            break;
        move(span.c);
        least = fmin(least, f_of_x());
    }
    assert_true(after < before);
    return (after - least) / (before - least);
}

/* Of a direction that is new: loss and slopes are those at which the search before has ended. */
static void what_a_search_has_found_the_next_one_does_not_ask_for(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        struct span span = {0};
        uint32_t calls;
        make_world(true, 5, seed);
        measure_window();
        assert_int_equal(search(&span, &calls), SPAN_ACCEPT);
        move(span.c);
        span_stepped(&span);
        for (uint32_t j = 0; j < COLUMNS; j++)
            span_world.p[5][j] = drawn();
        span_world.k = 6;
        measure_window();
        double zero[K_MAX] = {0};
        struct span_trial here = measured_at(zero, 1, SPAN_SLOPES);
        double loss = here.loss / ROWS, slopes[6];
        memcpy(slopes, here.slopes, sizeof slopes);
        struct span_settings settings = {.weight_sum = ROWS,
                                         .l2 = span_world.l2,
                                         .rows = ROWS,
                                         .first = 1,
                                         .slope = newest_slope()};
        assert_int_equal(span_begin(&span, &span_world.window, &settings), SPAN_HESSIAN_PRODUCT);
        assert_true(fabs(span.loss - loss) < 1e-12);
        for (uint32_t i = 0; i < 6; i++)
            assert_true(fabs(span.sums[i] - slopes[i]) < 1e-9);
    }
}

static void a_quadratic_is_minimised_in_a_step(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        make_world(false, 1 + (uint32_t)seed % 10, seed);
        assert_true(share_left() < 1e-10);
    }
}

static void a_logistic_loss_is_minimised_to_a_few_hundredths(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 2 * SEEDS; seed++) {
        make_world(true, 1 + (uint32_t)seed % 10, seed);
        assert_true(share_left() < 6e-2);
    }
}

/* Everything is in units of the diagonal. */
static void sizes_of_directions_do_not_matter(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        make_world(seed % 2, 8, seed);
        for (uint32_t i = 0; i < 8; i++)
            for (uint32_t j = 0; j < COLUMNS; j++)
                span_world.p[i][j] *= pow(10, (double)((seed + 5 * i) % 17) - 8);
        assert_true(share_left() < 6e-2);
    }
}

static void directions_that_depend_on_others_do_no_harm(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        make_world(seed % 2, K_MAX, seed); /* more than there are columns */
        for (uint32_t j = 0; j < COLUMNS; j++) {
            span_world.p[3][j] = span_world.p[7][j];
            span_world.p[5][j] = 2 * span_world.p[1][j] - span_world.p[2][j];
            span_world.p[K_MAX - 1][j] = span_world.p[4][j]; /* the newest */
        }
        struct span span = {0};
        uint32_t calls;
        measure_window();
        assert_int_equal(search(&span, &calls), SPAN_ACCEPT);
        assert_true(span.c[K_MAX - 1] != 0 && span.c[4] == 0);
        assert_true(share_left() < 3e-2);
    }
}

/* Along a kink-free part of |z − y| a step is as good as the loss says. */
static void a_loss_without_curvature_is_gone_down_along_the_newest(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        make_world(false, 3, seed);
        span_world.flat = true;
        span_world.l2 = 0;
        measure_window();
        double zero[K_MAX] = {0}, before = f_of_x();
        double side = measured_at(zero, 1, SPAN_ALL).slopes[2] > 0 ? -1 : 1;
        for (uint32_t j = 0; j < COLUMNS; j++)
            span_world.p[2][j] *= side;
        measure_window();
        struct span span = {0};
        uint32_t calls;
        assert_int_equal(search(&span, &calls), SPAN_ACCEPT);
        assert_true(span.c[0] == 0 && span.c[2] > 0);
        move(span.c);
        assert_true(f_of_x() < before);
    }
}

/* Where l2 alone curves, and hardly, a step goes beyond all that the rows say. */
static void a_step_that_is_far_too_long_is_shortened_until_it_falls(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        make_world(false, 3, seed);
        span_world.flat = true;
        span_world.l2 = seed % 2 ? 1e-9 : 1e-12;
        measure_window();
        struct span span = {0};
        uint32_t calls;
        double before = f_of_x();
        assert_int_equal(search(&span, &calls), SPAN_ACCEPT);
        move(span.c);
        assert_true(f_of_x() < before);
    }
}

/* The quadratic says too little of a softplus far from its corner. */
static void a_quadratic_that_foretells_badly_is_damped_and_one_that_does_well_is_not(void **state) {
    (void)state;
    struct span_settings settings = {
        .weight_sum = ROWS, .rows = ROWS, .noise = 1e-13, .first = 1, .damping = 1};
    double second[1] = {1e-3 * ROWS}, slopes[1] = {ROWS};
    make_world(false, 1, 1);
    measure_window();
    for (int poor = 0; poor < 2; poor++) {
        struct span span = {0};
        assert_int_equal(span_begin(&span, &span_world.window, &settings), SPAN_ALL);
        struct span_trial trial = {
            .loss = ROWS, .derivative = 1, .slopes = slopes, .second = second};
        assert_int_equal(span_next(&span, &span_world.window, &trial), SPAN_SLOPES);
        trial.second = NULL;
        double c[K_MAX], foretold = -span.slope - span.curvature / 2;
        span_point(&span, c);
        assert_true(fabs(c[0] + 500) < 1e-6); /* half of Newton's step */
        trial.loss = ROWS * (1 - foretold * (poor ? 0.1 : 0.9));
        span_next(&span, &span_world.window, &trial);
        assert_int_equal(span.steps, 1);
        assert_true(span.damping == (poor ? 4 : 0.25));
    }
}

static void gradient_at_x(double *g) {
    for (uint32_t j = 0; j < COLUMNS; j++)
        g[j] = span_world.l2 * span_world.x[j];
    for (uint32_t r = 0; r < ROWS; r++) {
        double first, second;
        row_loss(span_world.z[r], span_world.labels[r], &first, &second);
        for (uint32_t j = 0; j < COLUMNS; j++)
            g[j] += first * span_world.data[r][j] / ROWS;
    }
}

/* Searches one after the other: each time the oldest direction leaves, and minus the gradient
 * comes. */
static void second_derivatives_are_kept_from_search_to_search(void **state) {
    (void)state;
    struct span span = {0};
    uint32_t calls, searches = 0, whole = 0;
    make_world(true, 6, 4);
    for (; searches < 60; searches++) {
        double *newest = span_world.p[span_world.k - 1];
        memmove(span_world.p[0], span_world.p[1], (span_world.k - 1) * sizeof span_world.p[0]);
        gradient_at_x(newest);
        if (product(newest, newest) < 1e-16)
            break;
        measure_window();
        span_drop_oldest(&span);
        assert_int_equal(span.kept.count, searches ? span_world.k - 1 : 0);
        assert_int_equal(search(&span, &calls), SPAN_ACCEPT);
        assert_true(span.kept.searches <= SPAN_SEARCHES_KEPT);
        whole += span.kept.searches == 1;
        move(span.c);
        span_stepped(&span);
    }
    assert_true(searches < 60 && whole < searches / 3);
}

static void nothing_is_found_where_nothing_falls(void **state) {
    (void)state;
    make_world(false, 4, 1);
    struct span span = {0};
    uint32_t calls;
    memset(span_world.p, 0, sizeof span_world.p);
    measure_window();
    assert_int_equal(search(&span, &calls), SPAN_FAIL);
    assert_int_equal(calls, 1);
}

/* A number of any kind. */
static double anything(void) {
    static const double odd[] = {0, NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -1};
    uint32_t choice = (uint32_t)(fabs(drawn()) * 16);
    return choice < 8 ? odd[choice] : drawn();
}

static void it_ends_whatever_it_is_told(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < ANSWERS_MADE_UP; seed++) {
        make_world(true, 1 + (uint32_t)(seed % 4), seed);
        measure_window();
        struct span_settings settings = {.weight_sum = ROWS,
                                         .l2 = seed % 2 ? 1e-3 : 0,
                                         .rows = seed % 3 ? 100 : 1000000,
                                         .noise = seed % 5 ? 1e-12 : 1,
                                         .first = 1};
        struct span span = {.kept.count = seed % 13 ? 0 : span_world.k - 1};
        enum span_answer answer = span_begin(&span, &span_world.window, &settings);
        uint32_t calls = 0;
        for (; answer != SPAN_ACCEPT && answer != SPAN_FAIL; calls++) {
            double slopes[K_MAX], second[K_MAX * K_MAX];
            for (uint32_t i = 0; i < K_MAX * K_MAX; i++)
                second[i] = seed % 7 ? 1 + drawn() : anything();
            for (uint32_t i = 0; i < K_MAX; i++)
                slopes[i] = seed % 11 ? drawn() : anything();
            struct span_trial trial = {.loss = calls && seed % 2 ? anything() : 100 * drawn(),
                                       .derivative = 1,
                                       .slopes = asks_for_slopes(answer) ? slopes : NULL,
                                       .newest = asks_for_newest(answer) ? second : NULL,
                                       .second = asks_for_all(answer) ? second : NULL};
            answer = span_next(&span, &span_world.window, &trial);
            assert_true(calls < CALLS_MAX);
        }
        for (uint32_t i = 0; i < span.count; i++)
            assert_true(answer == SPAN_FAIL || isfinite(span.c[i]));
    }
}

/* A sample that says too little of the curvature. */
static void all_rows_count_where_a_sample_is_not_enough(void **state) {
    (void)state;
    make_world(true, 4, 3);
    for (uint32_t r = 0; r < ROWS / 8; r++) /* those of the sample hardly see the first column */
        span_world.data[r][0] *= 0.02;
    for (uint32_t i = 0; i < 4; i++)
        span_world.p[i][0] *= 20;
    measure_window();
    struct span_settings settings = {
        .weight_sum = ROWS, .rows = 150 * K_MAX * 8, .noise = 1e-13, .first = 1};
    struct span span = {0};
    enum span_answer answer = span_begin(&span, &span_world.window, &settings);
    assert_true(span.rate == 0.125);
    for (uint32_t calls = 0; answer != SPAN_ACCEPT && answer != SPAN_FAIL; calls++) {
        double c[K_MAX];
        span_point(&span, c);
        struct span_trial trial = measured_at(c, span.rate, answer);
        answer = span_next(&span, &span_world.window, &trial);
        assert_true(calls < CALLS_MAX);
    }
    assert_int_equal(answer, SPAN_ACCEPT);
    assert_true(span.steps > 3 && span.rate == 1);
}

/* ---- its parts ---- */

static void a_dependent_row_stays_out_of_a_solution(void **state) {
    (void)state;
    double a[] = {4, 0, 0, 2, 1, 0, 0, 0, 9}, b[] = {8, 4, 18};
    dense_semidefinite_solve(3, a, 1e-12, b);
    assert_true(b[0] == 2 && b[1] == 0 && b[2] == 2);
}

static void slots_go_round_a_ring_and_serial_numbers_rise(void **state) {
    (void)state;
    struct window window;
    uint64_t last[WINDOW_MAX] = {0}, serial = 0;
    const double numbers[DIRECTIONS_MAX] = {0};
    window_init(&window, 3);
    for (uint64_t step = 1; step < 20; step++) {
        window_make_room(&window);
        uint16_t slots[DIRECTIONS_MAX], slot = window.candidate;
        assert_int_equal(window_slots(&window, slots), step < 3 ? step : 3);
        assert_true(slot < 5 && (!last[slot] || step - last[slot] == 5));
        window_measured(&window, numbers, numbers);
        window_enter(&window);
        last[slot] = step;
        assert_true(window.serial[slot] > serial);
        serial = window.serial[slot];
    }
}

static void dropping_the_oldest_moves_the_products_of_the_others(void **state) {
    (void)state;
    struct window window;
    window_init(&window, 2);
    window_measured(&window, (double[]){11}, (double[]){1});
    window_enter(&window);
    window_make_room(&window);
    window_measured(&window, (double[]){12, 22}, (double[]){1, 2});
    window_enter(&window);
    window_make_room(&window);
    window_measured(&window, (double[]){23, 33}, (double[]){2, 3});
    assert_true(window.gram[0][0] == 22 && window.gram[0][1] == 23 && window.gram[1][0] == 23 &&
                window.gram[1][1] == 33);
}

SUITE(span) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_search_has_found_the_next_one_does_not_ask_for),
        cmocka_unit_test(a_quadratic_is_minimised_in_a_step),
        cmocka_unit_test(a_logistic_loss_is_minimised_to_a_few_hundredths),
        cmocka_unit_test(sizes_of_directions_do_not_matter),
        cmocka_unit_test(directions_that_depend_on_others_do_no_harm),
        cmocka_unit_test(a_loss_without_curvature_is_gone_down_along_the_newest),
        cmocka_unit_test(a_step_that_is_far_too_long_is_shortened_until_it_falls),
        cmocka_unit_test(a_quadratic_that_foretells_badly_is_damped_and_one_that_does_well_is_not),
        cmocka_unit_test(second_derivatives_are_kept_from_search_to_search),
        cmocka_unit_test(nothing_is_found_where_nothing_falls),
        cmocka_unit_test(it_ends_whatever_it_is_told),
        cmocka_unit_test(all_rows_count_where_a_sample_is_not_enough),
        cmocka_unit_test(a_dependent_row_stays_out_of_a_solution),
        cmocka_unit_test(slots_go_round_a_ring_and_serial_numbers_rise),
        cmocka_unit_test(dropping_the_oldest_moves_the_products_of_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
