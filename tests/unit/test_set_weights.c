/* Weights of rows and classes in sets. */
#include <math.h>

#include "tests/unit/suites.h"
#include "base/bytes.h"
#include "base/random.h"
#include "data/pack/pack_file.h"
#include "data/set/set.h"
#include "data/set/set_file.h"
#include "numeric/fixed.h"
#include "tests/unit/data_fixture.h"

#define FILES_MAX 4

/* A set to be made: texts of data files, each with its text of weights or NULL. */
struct wanted {
    const char *text[FILES_MAX], *weights[FILES_MAX];
    uint32_t count, held; /* files; the last `held` are of the holdout */
    enum label_kind labels;
    const char *const *class_weight;
    double share;
    unsigned threads;
};

static int make(const struct wanted *wanted, struct set **set) {
    struct pack *pack[FILES_MAX];
    bool made;
    for (uint32_t i = 0; i < wanted->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "data%u", i);
        const char *data = fixture_text(name, wanted->text[i]);
        snprintf(name, sizeof name, "weights%u", i);
        const struct source_options reading = {
            .property.file[ROW_WEIGHT] =
                wanted->weights[i] ? fixture_text(name, wanted->weights[i]) : NULL};
        if (pack_of_source(fixture_path("packs"), data, &reading, 2, &pack[i], &made))
            fail_msg("%s", error_text());
    }
    uint32_t trained = wanted->count - wanted->held;
    const struct set_options options = {.labels = wanted->labels,
                                        .class_weight = wanted->class_weight,
                                        .holdout = wanted->share,
                                        .holdout_packs = pack + trained,
                                        .holdout_count = wanted->held,
                                        .keep_holdout = true,
                                        .threads = wanted->threads ? wanted->threads : 2};
    int code = set_of_packs(fixture_path("sets"), pack, trained, &options, set, &made);
    for (uint32_t i = 0; i < wanted->count; i++)
        pack_close(pack[i]);
    return code;
}

static struct set *make_set(const struct wanted *wanted) {
    struct set *set;
    if (make(wanted, &set))
        fail_msg("%s", error_text());
    return set;
}

static void assert_refused(const struct wanted *wanted, const char *words) {
    struct set *set;
    if (make(wanted, &set) != ERROR_DATA || !strstr(error_text(), words))
        fail_msg("\"%s\" instead of \"%s\"", error_text(), words);
    error_clear();
}

static struct rows rows_of(struct set *set, uint32_t chunk) {
    struct rows rows;
    assert_int_equal(set_chunk(set, chunk, &rows), 0);
    return rows;
}

/* Scaled by a power of two to a mean from 1 to 2; the sum is of what is stored. A row of weight 0
 * is not there. */
static void weights_are_stored_scaled(void **state) {
    (void)state;
    const struct wanted wanted = {
        .text = {"1 1:3\n7 9:1e300\n0 2:1\n1 1:1\n"}, .weights = {"6\n0\n3\n24\n"}, .count = 1};
    struct set *set = make_set(&wanted);
    const struct set_info *info = set_info(set);
    static const double expected[] = {0.75, 0.375, 3};
    assert_true(info->weighted);
    assert_int_equal(info->weight_exponent, -3);
    assert_true(info->weight_sum == 4.125);
    assert_memory_equal(rows_of(set, 0).weight, expected, sizeof expected);
    assert_int_equal(info->rows, 3);
    assert_int_equal(info->features, 2);
    set_close(set);
}

static double mean_with(const char *text, const char *weights) {
    const struct wanted wanted = {.text = {text}, .weights = {weights}, .count = 1};
    struct set *set = make_set(&wanted);
    double mean = set_info(set)->table->column[0].mean;
    set_close(set);
    return mean;
}

/* A product beyond the range of doubles is taken, too. */
static void means_are_weighted_by_rows(void **state) {
    (void)state;
    static const char *const text = "a,y\n4,1\n1,0\n,1\n10,0\n";
    assert_true(mean_with(text, NULL) == 5);
    assert_true(mean_with(text, "1\n1\n7\n1\n") == 5);
    assert_true(mean_with(text, "3\n0\n7\n1\n") == 5.5);
    assert_true(mean_with(text, "6e-200\n0\n7\n2e-200\n") == 5.5);
    assert_true(mean_with("a,y\n1e300,1\n-1e300,0\n,1\n", "1e100\n1\n1\n") == 0);
}

#define WIDE 11
#define LONG 300
__extension__ typedef __int128 wide_integer;

/* Of the rows whose weight is not 0. */
static double mean_of_units(double value[LONG][WIDE], const char *weights, int column) {
    double most = 0, rows = 0;
    wide_integer sum = 0;
    int exponent;
    for (int i = 0; i < LONG; i++)
        most = fmax(most, weights[2 * i] == '0' ? 0 : fabs(value[i][column]));
    frexp(most, &exponent);
    double unit = ldexp(1, 62 - exponent);
    for (int i = 0; i < LONG; i++) {
        sum += weights[2 * i] == '0' ? 0 : (int64_t)(value[i][column] * unit);
        rows += weights[2 * i] != '0';
    }
    return (double)sum / rows / unit;
}

/* As data/set/column_stats.c says: in units that the largest number has 62 bits of, cut off below.
 * With texts rows are sparse. */
static void check_means(bool texts) {
    static double value[LONG][WIDE];
    struct random random;
    struct bytes text, weights;
    random_init(&random, 3);
    bytes_init(&text);
    bytes_init(&weights);
    bytes_append(&text, "a,b,c,d,e,f,g,h,i,j,k,", 2 * WIDE);
    bytes_append(&text, texts ? "t,y\n" : "y\n", texts ? 4 : 2);
    for (int i = 0; i < LONG; i++) {
        char cell[40];
        bytes_append(&weights, random_below(&random, 4) ? "1\n" : "0\n", 2);
        for (int k = 0; k < WIDE; k++) {
            double scale = ldexp(1, (int)random_below(&random, 8 * (uint64_t)k + 1));
            value[i][k] = ((double)random_below(&random, 2001) - 1000) / 7 * scale;
            int length = snprintf(cell, sizeof cell, "%.17g,", value[i][k]);
            bytes_append(&text, cell, (size_t)length);
        }
        bytes_append(&text, i % 3 ? "p," : "q,", texts ? 2 : 0);
        bytes_append(&text, i % 2 ? "1\n" : "0\n", 2);
    }
    bytes_append(&text, "", 1);
    bytes_append(&weights, "", 1);
    const struct wanted wanted = {
        .text = {(char *)text.data}, .weights = {(char *)weights.data}, .count = 1};
    struct set *set = make_set(&wanted);
    assert_false(set_info(set)->weighted);
    for (int k = 0; k < WIDE; k++)
        assert_true(set_info(set)->table->column[k].mean ==
                    mean_of_units(value, (char *)weights.data, k));
    set_close(set);
    bytes_release(&text);
    bytes_release(&weights);
}

static void means_are_of_sums_in_units(void **state) {
    (void)state;
    check_means(false);
    check_means(true);
}

/* A factor of two leaves no trace; weights that are alike leave none in the results. */
static void only_ratios_of_weights_matter(void **state) {
    (void)state;
    struct wanted wanted = {.text = {"1 1:3\n0 2:1\n"}, .weights = {"6\n2.5\n"}, .count = 1};
    struct set *one = make_set(&wanted);
    wanted.weights[0] = "3\n1.25\n";
    struct set *half = make_set(&wanted);
    assert_memory_equal(rows_of(one, 0).weight, rows_of(half, 0).weight, 2 * sizeof(double));
    assert_true(set_info(one)->weight_sum == set_info(half)->weight_sum);
    wanted.weights[0] = "4\n4\n";
    struct set *alike = make_set(&wanted);
    wanted.weights[0] = NULL;
    struct set *plain = make_set(&wanted);
    assert_false(set_info(plain)->weighted);
    assert_null(rows_of(plain, 0).weight);
    assert_true(set_info(plain)->weight_sum == 2 && set_info(alike)->weight_sum == 2);
    assert_memory_equal(set_info(plain)->exponent, set_info(alike)->exponent, 3 * sizeof(int16_t));
    set_close(one);
    set_close(half);
    set_close(alike);
    set_close(plain);
}

static void the_least_and_the_largest_weights_are_scaled(void **state) {
    (void)state;
    static const char *const weights[] = {"5e-324\n5e-324\n0\n0\n", "1e100\n0\n1e100\n1\n",
                                          "1e-320\n1\n1e-9\n0\n"};
    for (int i = 0; i < 3; i++) {
        const struct wanted wanted = {
            .text = {"1 1:3\n0 2:1\n1 1:1\n0 1:1\n"}, .weights = {weights[i]}, .count = 1};
        struct set *set = make_set(&wanted);
        assert_true(set_info(set)->weight_sum > 0 && set_info(set)->weight_sum < 8);
        assert_true(set_info(set)->weight_total > 0);
        set_close(set);
    }
}

/* Weights count in the exponents as fixed_weight() says, in sparse rows of every type and in dense
 * ones. */
static void exponents_follow_the_weighted_sums(void **state) {
    (void)state;
    static const char *const texts[] = {"1 1:1\n0 1:1 9:1\n1 9:1\n0 5:1\n1 7:1\n0 3:1\n",
                                        "1 1:0.5\n0 1:4 9:1\n1 9:2\n0 5:1\n1 7:1\n0 3:1\n",
                                        "1 1:0.1\n0 1:4 9:1\n1 9:2\n0 5:1\n1 7:1\n0 3:1\n",
                                        "1 1:0.5 9:0\n0 1:4 9:1\n1 1:0 9:2\n"};
    static const double first[] = {1, 0.5, 0.1, 0.5}, second[] = {1, 4, 4, 4};
    for (int t = 0; t < 4; t++) {
        struct wanted wanted = {.text = {texts[t]},
                                .weights = {t < 3 ? "1e-6\n1e-2\n9\n1\n1\n1\n" : "1e-6\n1e-2\n9\n"},
                                .count = 1};
        struct set *set = make_set(&wanted);
        const struct set_info *info = set_info(set);
        double times = ldexp(1, info->weight_exponent);
        double sum = fixed_weight(1e-6 * times) * first[t] + fixed_weight(1e-2 * times) * second[t];
        assert_int_equal(info->dense, t == 3);
        for (uint32_t j = 0; j < info->features; j++)
            if (info->feature_id[j] == 1)
                assert_int_equal(info->exponent[j], fixed_exponent(sum, 2));
        double all = 0;
        for (uint32_t i = 0; i < info->rows; i++)
            all += fixed_weight(rows_of(set, 0).weight[i]);
        assert_int_equal(info->exponent[info->features], fixed_exponent(all, info->rows));
        set_close(set);
    }
}

static void class_weights_multiply_those_of_rows(void **state) {
    (void)state;
    const char *const classes[] = {"b = 4", NULL};
    struct wanted wanted = {.text = {"1,2,a\n0,1,a\n2,0,b\n1,4,b\n"},
                            .weights = {"1\n3\n1\n2\n"},
                            .count = 1,
                            .class_weight = classes};
    struct set *set = make_set(&wanted);
    static const double expected[] = {0.25, 0.75, 1, 2};
    assert_memory_equal(rows_of(set, 0).weight, expected, sizeof expected);
    assert_int_equal(set_info(set)->weight_exponent, -2);
    set_close(set);
    wanted.weights[0] = NULL;
    set = make_set(&wanted);
    static const double without[] = {0.5, 0.5, 2, 2};
    assert_memory_equal(rows_of(set, 0).weight, without, sizeof without);
    set_close(set);
}

/* n/(K·n_c), and W/(K·W_c) if rows have weights. */
static void balanced_classes_weigh_the_same(void **state) {
    (void)state;
    const char *const balanced[] = {CLASS_WEIGHT_BALANCED, NULL};
    struct wanted wanted = {.text = {"1,x\n2,x\n3,x\n4,y\n5,z\n6,z\n"},
                            .count = 1,
                            .labels = LABEL_CLASSES,
                            .class_weight = balanced};
    struct set *set = make_set(&wanted);
    const double x = 6. / (3 * 3), y = 6. / (3 * 1), z = 6. / (3 * 2);
    const double expected[] = {x, x, x, y, z, z};
    assert_memory_equal(rows_of(set, 0).weight, expected, sizeof expected);
    assert_true(fabs(set_info(set)->weight_sum - 6) < 1e-15);
    set_close(set);
    wanted.weights[0] = "1\n1\n2\n4\n0\n4\n";
    set = make_set(&wanted);
    assert_false(rows_of(set, 0).weight == NULL); /* the classes are alike, the rows are not */
    assert_true(rows_of(set, 0).weight[3] == 2 && rows_of(set, 0).weight[4] == 2);
    set_close(set);
    wanted.weights[0] = NULL;
    wanted.text[0] = "1,x\n2,y\n";
    set = make_set(&wanted);
    assert_false(set_info(set)->weighted); /* each weighs 1 already */
    set_close(set);
}

static void class_weights_that_fit_no_class_are_refused(void **state) {
    (void)state;
    const char *const other[] = {"c = 2", NULL}, *const twice[] = {"1 = 2", "1.0 = 3", NULL};
    const char *const balanced[] = {CLASS_WEIGHT_BALANCED, NULL}, *const none[] = {"1 = 0",
                                                                                   "-1 = 0", NULL};
    struct wanted wanted = {
        .text = {"1 1:1\n-1 1:2\n"}, .weights = {NULL}, .count = 1, .class_weight = other};
    assert_refused(&wanted, "the label \"c\" of class_weight: the labels are \"-1\", \"1\"");
    wanted.class_weight = twice;
    assert_refused(&wanted, "two weights for the label \"1\"");
    wanted.class_weight = balanced;
    wanted.weights[0] = "1e100\n1e-200\n";
    assert_refused(&wanted, "the rows of the label \"-1\" weigh 1e-200 of 1e+100");
    wanted.class_weight = NULL;
    wanted.weights[0] = "0\n0\n";
    assert_refused(&wanted, "data0: all rows that are trained on have a weight of 0");
    wanted.class_weight = none;
    wanted.weights[0] = NULL;
    assert_refused(&wanted, "have a weight of 0");
    wanted.class_weight = NULL;
    wanted.text[0] = "1 1:1e308\n-1 1:1e308\n-1 2:1\n-1 2:1\n-1 2:1\n";
    wanted.weights[0] = "3\n3\n0\n0\n0\n";
    assert_refused(&wanted, "column 1: its values times the rows' weights leave the range");
}

static void texts_of_class_weights_are_taken_apart(void **state) {
    (void)state;
    size_t length;
    double weight;
    assert_true(class_weight_parse("a = 2.5", &length, &weight) && length == 1 && weight == 2.5);
    assert_true(class_weight_parse("a=b =1e-3", &length, &weight) && length == 3);
    assert_true(class_weight_parse("-1=0", &length, &weight) && length == 2 && weight == 0);
    static const char *const bad[] = {"balanced", "a",       "= 2", "a = ",    "a = x",
                                      "a = -1",   "a = nan", "",    "a = inf", "a = 1e308"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(class_weight_parse(bad[i], &length, &weight));
}

/* Held-out rows have the weights of their own file and of their class, scaled like the others; they
 * count in no sum of training, nor in the balance of classes. */
static void held_out_rows_have_weights_too(void **state) {
    (void)state;
    const char *const balanced[] = {CLASS_WEIGHT_BALANCED, NULL};
    struct wanted wanted = {.text = {"1,x\n2,y\n3,y\n4,y\n", "5,x\n6,y\n7,z\n8,x\n"},
                            .weights = {NULL, "3\n3\n9\n0\n"},
                            .count = 2,
                            .held = 1,
                            .class_weight = balanced};
    struct set *set = make_set(&wanted);
    const struct set_info *info = set_info(set);
    const double x = 2, y = 4. / (2 * 3);
    const double trained[] = {x, y, y, y}, held[] = {3 * x, 3 * y, 0};
    assert_int_equal(info->holdout_rows, 3);
    assert_int_equal(info->weight_exponent, 0);
    assert_memory_equal(rows_of(set, 0).weight, trained, sizeof trained);
    assert_memory_equal(rows_of(set, 1).weight, held, sizeof held);
    assert_true(info->holdout_weight_sum == 8 && info->weight_sum == x + 3 * y);
    set_close(set);
}

/* The bytes of the chunks, and all that is told of weights. */
static void assert_same(struct set *one, struct set *other) {
    const struct set_info *a = set_info(one), *b = set_info(other);
    assert_string_equal(a->fingerprint, b->fingerprint);
    assert_true(a->weight_sum == b->weight_sum && a->weight_exponent == b->weight_exponent);
    assert_memory_equal(a->exponent, b->exponent, (a->features + 1) * sizeof *a->exponent);
    for (uint32_t i = 0; i < a->chunks; i++) {
        struct rows x = rows_of(one, i), y = rows_of(other, i);
        assert_memory_equal(x.weight, y.weight, x.count * sizeof *x.weight);
    }
}

static void files_and_threads_do_not_change_the_weights(void **state) {
    (void)state;
    enum { MANY = 3000 };
    struct bytes text[3], weights[3]; /* the whole, and two parts of it */
    for (int i = 0; i < 3; i++) {
        bytes_init(&text[i]);
        bytes_init(&weights[i]);
    }
    for (int i = 0; i < MANY; i++) {
        char line[64], weight[64];
        int part = i < 1234 ? 1 : 2;
        int length = snprintf(line, sizeof line, "%d %d:1 %d:0.5\n", i % 3, i % 50 + 1, i % 7 + 60);
        int of_weight = snprintf(weight, sizeof weight, "%g\n", exp(i % 77 - 38) / 3);
        for (int to = 0; to <= part; to += part) {
            bytes_append(&text[to], line, (size_t)length);
            bytes_append(&weights[to], weight, (size_t)of_weight);
        }
    }
    for (int i = 0; i < 3; i++) {
        bytes_append(&text[i], "", 1);
        bytes_append(&weights[i], "", 1);
    }
    const char *const balanced[] = {CLASS_WEIGHT_BALANCED, NULL};
    struct wanted wanted = {.text = {(const char *)text[0].data},
                            .weights = {(const char *)weights[0].data},
                            .count = 1,
                            .labels = LABEL_CLASSES,
                            .class_weight = balanced,
                            .threads = 1};
    struct set *whole = make_set(&wanted);
    assert_true(set_info(whole)->chunks > 3);
    wanted.count = 2;
    wanted.threads = 4;
    for (int i = 0; i < 2; i++) {
        wanted.text[i] = (const char *)text[i + 1].data;
        wanted.weights[i] = (const char *)weights[i + 1].data;
    }
    struct set *parts = make_set(&wanted);
    assert_same(whole, parts);
    set_close(whole);
    set_close(parts);
    for (int i = 0; i < 3; i++) {
        bytes_release(&text[i]);
        bytes_release(&weights[i]);
    }
}

static void other_weights_are_another_set(void **state) {
    (void)state;
    const char *const some[] = {"0 = 2", NULL}, *const others[] = {"0 = 3", NULL};
    struct wanted wanted = {.text = {"1 1:1\n0 1:2\n"}, .weights = {NULL}, .count = 1};
    struct set *plain = make_set(&wanted);
    wanted.class_weight = some;
    struct set *two = make_set(&wanted);
    wanted.class_weight = others;
    struct set *three = make_set(&wanted);
    assert_string_not_equal(set_path(plain), set_path(two));
    assert_string_not_equal(set_path(two), set_path(three));
    assert_string_not_equal(set_info(plain)->fingerprint, set_info(two)->fingerprint);
    assert_string_not_equal(set_info(two)->fingerprint, set_info(three)->fingerprint);
    set_close(plain);
    set_close(two);
    set_close(three);
}

SUITE(set_weights) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_are_weighted_by_rows),
        cmocka_unit_test(means_are_of_sums_in_units),
        cmocka_unit_test(weights_are_stored_scaled),
        cmocka_unit_test(only_ratios_of_weights_matter),
        cmocka_unit_test(the_least_and_the_largest_weights_are_scaled),
        cmocka_unit_test(exponents_follow_the_weighted_sums),
        cmocka_unit_test(class_weights_multiply_those_of_rows),
        cmocka_unit_test(balanced_classes_weigh_the_same),
        cmocka_unit_test(class_weights_that_fit_no_class_are_refused),
        cmocka_unit_test(texts_of_class_weights_are_taken_apart),
        cmocka_unit_test(held_out_rows_have_weights_too),
        cmocka_unit_test(files_and_threads_do_not_change_the_weights),
        cmocka_unit_test(other_weights_are_another_set),
    };
    return cmocka_run_group_tests_name("set weights", tests, fixture_set_up, fixture_tear_down);
}
