/* Statistics of a fit: compared with the families of statsmodels 0.15.0 at given margins, whatever
 * model they come from, and with sums that are written out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "model/fit.h"

#define ROWS 12
#define PARAMETERS 3
#define RELATIVE 1e-11

static const double weight[ROWS] = {1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 0.25, 1.0, 1.0, 1.0, 1.5, 2.0};
static const double offset[ROWS] = {0.001, 0.149, -0.137, -0.445, -0.227, -0.496,
                                    0.03,  0.67,  -0.246, -0.31,  0.245,  0.178};
static const double margin[ROWS] = {0.374,  -0.351, 0.28,   0.787, -0.641, -0.02,
                                    -1.031, -0.603, -0.989, 0.135, -0.587, 0.49};

/* By whether there are weights, times 2, and offsets. */
static const struct {
    const char *objective;
    double label[ROWS];
    struct {
        double deviance, null_deviance, pearson, likelihood;
    } expected[4];
} cases[] = {
    {"squared",
     {1.31, 0.63, -4.03, -0.08, 0.9, 1.23, -2.06, 0.04, -0.96, -0.62, 3.12, -0.62},
     {
         {42.120532000000004, 36.24490000000001, 42.120532000000004, -24.561034406319916},
         {40.37305, 35.730653999999994, 40.37305, -24.306797398705175},
         {44.22873675, 30.996317213114757, 44.22873675, -24.448605774865126},
         {45.265896749999996, 32.13883893442623, 45.265896749999996, -24.587680898680933},
     }},
    {"logistic",
     {0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0},
     {
         {17.48298107719026, 16.300638383796617, 14.329005624209396, -8.741490538595132},
         {19.218822969716726, 18.215331190147978, 16.47123672042217, -9.609411484858363},
         {20.112606542749532, 20.93972624775281, 15.403216403763759, -10.056303271374766},
         {21.054909035625247, 22.268156418873154, 16.875917418250673, -10.527454517812625},
     }},
    {"poisson",
     {3.0, 3.0, 1.0, 1.0, 1.0, 3.0, 2.0, 1.0, 1.0, 3.0, 0.0, 250.0},
     {
         {2036.0837884800737, 1116.7947979415524, 37817.80507445837, -1034.0124397976633},
         {1950.2398427588328, 1034.7453980611958, 31581.107832212718, -991.0904669370427},
         {4062.334109459534, 1843.4565425789947, 75618.95886545973, -2053.825230807776},
         {3892.137701059244, 1661.6033391003443, 63148.959316410415, -1968.727026607631},
     }},
    {"gamma",
     {0.286, 2.316, 4.087, 1.852, 6.763, 1.957, 2.273, 0.904, 1.736, 3.99, 4.031, 5.141},
     {
         {49.58869589318613, 6.1562024481691875, 244.03594133367642, -52.05812430690321},
         {57.43028848293609, 7.5592492104974385, 334.303257414981, -55.344243973406485},
         {53.0380895359755, 6.827999220296801, 251.58262484303117, -51.845718835812555},
         {61.33054515203591, 7.675597700548987, 338.26115595787877, -54.90428491551619},
     }},
    {"tweedie",
     {0.0, 0.0, 3.808, 3.233, 0.267, 1.131, 9.853, 1.476, 3.581, 2.122, 3.648, 40.0},
     {
         {153.80142323917187, 60.26140067086769, 1207.2703505719, -85.31468289728653},
         {145.38136105997143, 55.35689386058835, 1031.6016062695146, -82.3357443076536},
         {207.01440605477006, 99.7112595103323, 1605.9789802232701, -90.76782136036579},
         {188.9570152363315, 88.45228231389305, 1266.7683611331345, -86.27059948642234},
     }},
};

static void assert_near(double actual, double expected) {
    if (!(fabs(actual - expected) <= RELATIVE * fabs(expected)))
        fail_msg("%.17g is not %.17g", actual, expected);
}

static void add_rows(struct fit *fit, const double *label, bool weighted, bool has_offsets,
                     uint32_t first, uint32_t step) {
    for (uint32_t i = first; i < ROWS; i += step) {
        double offset_of_row = has_offsets ? offset[i] : 0, margins[] = {margin[i] + offset_of_row};
        const struct fit_row row = {.margins = margins,
                                    .label = label[i],
                                    .weight = weighted ? weight[i] : 1,
                                    .offset = offset_of_row};
        fit_add(fit, &row);
    }
}

static struct fit_statistics statistics_of(const char *name, const double *label, bool weighted,
                                           bool has_offsets, uint32_t parts) {
    static const struct loss_parameters loss = {{1.5}};
    struct fit_statistics statistics;
    struct fit *fit = fit_new(objective_find(name), &loss, 1, true, PARAMETERS);
    do
        for (uint32_t part = 0; part < parts; part++)
            add_rows(fit, label, weighted, has_offsets, part, parts);
    while (fit_next_pass(fit));
    fit_finish(fit, &statistics);
    fit_free(fit);
    return statistics;
}

static void statistics_are_those_of_statsmodels(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (unsigned i = 0; i < 4; i++) {
            struct fit_statistics found =
                statistics_of(cases[c].objective, cases[c].label, i >> 1 & 1, i & 1, 1);
            double freedom = ROWS - PARAMETERS;
            assert_near(found.deviance, cases[c].expected[i].deviance);
            assert_near(found.null_deviance, cases[c].expected[i].null_deviance);
            assert_near(found.pearson, cases[c].expected[i].pearson);
            assert_near(found.log_likelihood, cases[c].expected[i].likelihood);
            assert_near(found.aic, -2 * cases[c].expected[i].likelihood + 2 * PARAMETERS);
            assert_near(found.bic, -2 * cases[c].expected[i].likelihood + log(ROWS) * PARAMETERS);
            assert_near(found.deviance_ratio, cases[c].expected[i].deviance / freedom);
            assert_near(found.pearson_ratio, cases[c].expected[i].pearson / freedom);
            assert_true(found.dispersion ==
                        (found.distribution->has_dispersion ? found.pearson_ratio : 1));
            assert_true(found.rows == ROWS && found.null_freedom == ROWS - 1);
        }
}

static void the_order_of_rows_changes_no_bit(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct fit_statistics whole =
            statistics_of(cases[c].objective, cases[c].label, true, true, 1);
        struct fit_statistics parts =
            statistics_of(cases[c].objective, cases[c].label, true, true, 5);
        assert_memory_equal(&whole, &parts, sizeof whole);
    }
}

/* log_likelihood of one row of weight 1; values by Dunn and Smyth's series with 60 digits. */
static void densities_keep_their_digits_over_a_wide_range(void **state) {
    (void)state;
    static const struct {
        double power, margin, label, dispersion, expected;
    } rows[] = {
        {1.5, 0.3, 2, 1, -1.6218311801238053297},
        {1.01, 0, 3, 2, -8.7651200952713144834},
        {1.99, 1, 0.5, 0.7, -1.3668633388079832221},
        {1.2, 5, 1000, 0.5, -680.14894469737468886},
        {1.5, 2, 1e-06, 3, -2.6231181248864390434},
        {1.5, 2, 1e-06, 0.0001, -54311.605557035686783},
        {1.9, -3, 100, 40, -49.248496504769514035},
        {1.3, 6, 500, 0.001, -1737.5084259934174127},
        {1.5, 12, 200000.0, 0.01, -958.17847523886355664},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct loss_parameters loss = {{rows[i].power}};
        double found = distribution_tweedie.log_likelihood(&loss, rows[i].margin, rows[i].label, 1,
                                                           rows[i].dispersion);
        if (!(fabs(found - rows[i].expected) <= 1e-12 * fmax(1, fabs(rows[i].expected))))
            fail_msg("row %zu: %.17g is not %.17g", i, found, rows[i].expected);
    }
}

/* Where the fit is exact, or nearly: normal with the variance φ·y^p; and where it is no fit. */
static void the_density_of_tweedie_has_an_end_at_any_dispersion(void **state) {
    (void)state;
    static const double dispersions[] = {1e-10, 1e-12, 1e-16, 1e-30, 1e-200};
    const struct loss_parameters loss = {{1.5}};
    const double of_2 = log(2);
    for (size_t i = 0; i < sizeof dispersions / sizeof *dispersions; i++) {
        double found = distribution_tweedie.log_likelihood(&loss, of_2, 2, 1, dispersions[i]);
        double expected = -0.5 * log(2 * M_PI * dispersions[i] * pow(2, 1.5));
        if (!(fabs(found - expected) <= 1e-9))
            fail_msg("dispersion %g: %.17g is not %.17g", dispersions[i], found, expected);
    }
    assert_true(!isfinite(distribution_tweedie.log_likelihood(&loss, of_2, 2, 1, 0)));
    assert_true(!isfinite(distribution_tweedie.log_likelihood(&loss, of_2, 2, 1, INFINITY)));
}

static const struct distribution *distribution_of(const char *objective) {
    return objective_find(objective)->distribution;
}

/* Where the mean is 0 or infinite as a double, as of a class that is never there; values with 60
 * digits. */
static void statistics_of_a_row_are_right_where_its_mean_is_no_number(void **state) {
    (void)state;
    static const struct {
        const char *objective;
        double power, label, margin, pearson, likelihood; /* the last: 0 is not looked at */
    } rows[] = {
        {"poisson", 0, 0, -720, 0, 0},
        {"poisson", 0, 0, -800, 0, -1e-310},
        {"poisson", 0, 3, -600, 3.3957182708369458e261, -1801.7917594692281},
        {"poisson", 0, 3, -750, INFINITY, -2251.7917594692281},
        {"poisson", 0, 40, -760, INFINITY, -30510.320639714757},
        {"poisson", 0, 3, 600, 3.7730203009299398e260, -3.7730203009299398e260},
        {"poisson", 0, 4, 1.3862943620512131, 3.4694466063887189e-18, 0},
        {"gamma", 0, 1e-300, -715, 1.0992820123393319e21, 0},
        {"gamma", 0, 5, 750, 1, 0},
        {"gamma", 0, 1e100, 229.5, 1.2884317269955887, 0},
        {"tweedie", 1.5, 0, -800, 1.9151695967140057e-174, 0},
        {"tweedie", 1.5, 7, 800, 5.221469689764144e173, 0},
        {"tweedie", 1.5, 1e-140, -330.25, 1.3750010465200471e-65, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct loss_parameters loss = {{rows[i].power}};
        const struct distribution *of = distribution_of(rows[i].objective);
        double expected = rows[i].pearson, density = rows[i].likelihood;
        double found = of->pearson(&loss, 1, &rows[i].margin, rows[i].label);
        if (found != expected && !(fabs(found - expected) <= 2e-6 * expected + 1e-300))
            fail_msg("row %zu: %.17g is not %.17g", i, found, expected);
        if (density != 0)
            found = of->log_likelihood(&loss, rows[i].margin, rows[i].label, 1, 1);
        if (density != 0 && !(fabs(found - density) <= 1e-12 * fabs(density) + 1e-300))
            fail_msg("row %zu: %.17g is not %.17g", i, found, density);
    }
    const struct loss_parameters loss = {{0}};
    double found = distribution_gamma.log_likelihood(&loss, -715, 1e-300, 1, 0.4);
    assert_true(fabs(found + 82888554412.827609) < 1e-10 * 82888554412.0);
    found = distribution_gamma.log_likelihood(&loss, 760, 2, 1, 0.4);
    assert_true(fabs(found + 1896.9542352699476) < 1e-9);
}

/* Three classes: the deviance of the null model is that of their shares. */
static void classes_have_their_shares_as_null_model(void **state) {
    (void)state;
    static const double margins[3] = {0.5, -1, 2};
    static const char *const names[] = {"softmax", "one_vs_rest"};
    for (unsigned i = 0; i < 2; i++) {
        const struct loss_parameters loss = {{0}};
        struct fit_statistics found;
        struct fit *fit = fit_new(objective_find(names[i]), &loss, 3, true, 4);
        do
            for (unsigned row = 0; row < 8; row++)
                fit_add(fit, &(struct fit_row){.margins = margins,
                                               .label = row < 5   ? 0
                                                        : row < 7 ? 1
                                                                  : 2,
                                               .weight = row == 7 ? 2.5 : 1});
        while (fit_next_pass(fit));
        fit_finish(fit, &found);
        fit_free(fit);
        double of[] = {5, 2, 2.5}, all = 9.5, sum = exp(0.5) + exp(-1) + exp(2);
        double null = 0, likelihood = 0, pearson = 0;
        for (unsigned k = 0; k < 3; k++) {
            null -= of[k] * log(of[k] / all);
            likelihood += of[k] * (margins[k] - log(sum));
            pearson += of[k] * (sum / exp(margins[k]) - 1);
        }
        if (i == 0) {
            assert_near(found.log_likelihood, likelihood);
            assert_near(found.pearson, pearson);
            assert_near(found.null_freedom, 8 - 2);
        } else {
            for (unsigned k = 0; k < 3; k++)
                null -= (all - of[k]) * log((all - of[k]) / all);
            assert_near(found.null_freedom, 3 * 8 - 3);
        }
        assert_near(found.null_deviance, 2 * null);
        assert_near(found.deviance, -2 * found.log_likelihood);
        assert_near(found.weight, all);
    }
}

/* The same classes as lists of one: a logistic model for each. */
static void lists_of_classes_are_a_model_for_each(void **state) {
    (void)state;
    static const double margins[3] = {0.5, -1, 2};
    const struct loss_parameters loss = {{0}};
    struct fit_statistics found[2];
    for (unsigned lists = 0; lists < 2; lists++) {
        const struct objective *objective = objective_find(lists ? "multilabel" : "one_vs_rest");
        struct fit *fit = fit_new(objective, &loss, 3, true, 4);
        do
            for (unsigned row = 0; row < 8; row++) {
                double has[3] = {row < 5, row >= 5 && row < 7, row == 7};
                fit_add(fit, &(struct fit_row){.margins = margins,
                                               .label = row < 5   ? 0
                                                        : row < 7 ? 1
                                                                  : 2,
                                               .has = has,
                                               .weight = row == 7 ? 2.5 : 1});
            }
        while (fit_next_pass(fit));
        fit_finish(fit, &found[lists]);
        fit_free(fit);
    }
    assert_near(found[1].deviance, found[0].deviance);
    assert_near(found[1].null_deviance, found[0].null_deviance);
    assert_near(found[1].pearson, found[0].pearson);
    assert_near(found[1].aic, found[0].aic);
}

static void a_model_without_an_intercept_has_a_null_model_without(void **state) {
    (void)state;
    const struct loss_parameters loss = {{0}};
    struct fit_statistics found;
    struct fit *fit = fit_new(objective_find("squared"), &loss, 1, false, 1);
    do
        add_rows(fit, cases[0].label, false, true, 0, 1);
    while (fit_next_pass(fit));
    fit_finish(fit, &found);
    fit_free(fit);
    double null = 0;
    for (unsigned i = 0; i < ROWS; i++)
        null += (cases[0].label[i] - offset[i]) * (cases[0].label[i] - offset[i]);
    assert_near(found.null_deviance, null);
    assert_true(found.null_freedom == ROWS);
}

static void rows_without_weight_count_for_nothing(void **state) {
    (void)state;
    const struct loss_parameters loss = {{0}};
    struct fit_statistics found;
    struct fit *fit = fit_new(objective_find("gamma"), &loss, 1, true, PARAMETERS);
    double odd[] = {NAN};
    do {
        add_rows(fit, cases[3].label, true, true, 0, 1);
        fit_add(fit, &(struct fit_row){.margins = odd, .label = -3, .weight = 0});
    } while (fit_next_pass(fit));
    fit_finish(fit, &found);
    fit_free(fit);
    assert_near(found.deviance, cases[3].expected[3].deviance);
    assert_true(found.rows == ROWS);
}

static void losses_without_a_distribution_have_no_likelihood(void **state) {
    (void)state;
    struct fit_statistics found = statistics_of("huber", cases[0].label, false, false, 1);
    assert_null(found.distribution);
    assert_true(found.rows == ROWS && found.loss > 0);
    assert_true(isnan(found.deviance) && isnan(found.aic) && isnan(found.dispersion));
    json_t *object = fit_json(&found);
    assert_true(json_is_null(json_object_get(object, "deviance")));
    assert_int_equal(json_integer_value(json_object_get(object, "rows")), ROWS);
    json_decref(object);
}

/* All of one class, with offsets: the intercept of the null model has no end. */
static void a_search_without_an_end_is_given_up(void **state) {
    (void)state;
    static const double ones[ROWS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct fit_statistics found = statistics_of("logistic", ones, false, true, 1);
    assert_true(found.null_deviance >= 0 && found.null_deviance < 1e-12);
}

SUITE(fit) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_are_those_of_statsmodels),
        cmocka_unit_test(the_order_of_rows_changes_no_bit),
        cmocka_unit_test(densities_keep_their_digits_over_a_wide_range),
        cmocka_unit_test(the_density_of_tweedie_has_an_end_at_any_dispersion),
        cmocka_unit_test(statistics_of_a_row_are_right_where_its_mean_is_no_number),
        cmocka_unit_test(classes_have_their_shares_as_null_model),
        cmocka_unit_test(lists_of_classes_are_a_model_for_each),
        cmocka_unit_test(a_model_without_an_intercept_has_a_null_model_without),
        cmocka_unit_test(rows_without_weight_count_for_nothing),
        cmocka_unit_test(losses_without_a_distribution_have_no_likelihood),
        cmocka_unit_test(a_search_without_an_end_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
