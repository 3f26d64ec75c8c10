#include "tests/unit/suites.h"
#include "coordinator/job/job.h"
#include "coordinator/job/family.h"
#include "tests/unit/job_fixture.h"

static void a_network_has_defaults_of_its_own(void **state) {
    (void)state;
    struct job *job = job_of("objective = network");
    const struct network network = job_shape(job).network;
    assert_int_equal(job->objective, OBJECTIVE_SOFTMAX);
    assert_int_equal(network.layers, 1);
    assert_int_equal(network.units[0], 100);
    assert_int_equal(network.activation, ACTIVATION_TANH);
    assert_int_equal(network.precision, PRECISION_DOUBLE);
    assert_int_equal(network.seed, 1);
    assert_true(job->l2.value == 1e-4 && job->l2.count == 1);
    assert_true(job_holdout_share(job) == 0.1);
    assert_int_equal(job->early_stopping, 20);
    job_free(job);
}

static void what_a_job_says_comes_before_them(void **state) {
    (void)state;
    struct job *job = job_of("objective = network\nl2 = 0\nholdout = 0.3\nearly_stopping = 4\n"
                             "network { layers = { 7, 5, 3 }\n activation = gelu\n loss = squared\n"
                             " seed = 9\n precision = float }");
    const struct network network = job_shape(job).network;
    assert_int_equal(job->objective, OBJECTIVE_SQUARED);
    assert_int_equal(network.layers, 3);
    assert_true(network.units[0] == 7 && network.units[1] == 5 && network.units[2] == 3);
    assert_int_equal(network.activation, ACTIVATION_GELU);
    assert_int_equal(network.precision, PRECISION_FLOAT);
    assert_int_equal(network.seed, 9);
    assert_true(job->l2.value == 0 && job_holdout_share(job) == 0.3);
    assert_int_equal(job->early_stopping, 4);
    job_free(job);
}

static void nothing_is_held_out_where_early_stopping_is_off(void **state) {
    (void)state;
    static const char *const texts[] = {"early_stopping = off", "holdout = { }"};
    for (int i = 0; i < 2; i++) {
        char text[64];
        snprintf(text, sizeof text, "objective = network\n%s", texts[i]);
        struct job *job = job_of(text);
        assert_null(job->holdout[0]);
        assert_int_equal(job->early_stopping, 0);
        job_free(job);
    }
}

static void another_job_has_no_layers(void **state) {
    (void)state;
    struct job *job = job_of("objective = softmax");
    assert_ptr_equal(job_family(job)->family, &family_linear);
    assert_int_equal(job->objective, OBJECTIVE_SOFTMAX);
    assert_int_equal(job_shape(job).network.layers, 0);
    assert_true(job->l2.automatic && !job->holdout[0] && !job->early_stopping);
    job_free(job);
}

static void parameters_of_the_loss_are_those_of_a_network_with_it(void **state) {
    (void)state;
    struct job *job = job_of("objective = network\nnetwork { loss = huber }\nhuber { delta = 2 }");
    assert_true(job->loss[OBJECTIVE_HUBER].value[0] == 2);
    job_free(job);
    refused("objective = network\nhuber { delta = 2 }", "huber.delta",
            "write network.loss = huber");
}

static void mistakes_name_their_key(void **state) {
    (void)state;
    refused("network { layers = 5 }", "network.layers", "write objective = network");
    refused("objective = network\nnetwork { layers = { 5, 0 } }", "network.layers", "out of range");
    refused("objective = network\nnetwork { layers = 65537 }", "network.layers", "65536");
    refused("objective = network\nnetwork { layers = { } }", "network.layers", "an empty list");
    refused("objective = network\nnetwork { layers = "
            "{ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } }",
            "network.layers", "at most 15");
    refused("objective = network\nnetwork { activation = tan }", "network.activation", "tanh");
    refused("objective = network\nnetwork { precision = half }", "network.precision", "float");
    refused("objective = network\nnetwork { loss = network }", "network.loss", "softmax");
    refused("objective = network\nintercept = false", "intercept", "allowed: true");
    refused("objective = network\nprecondition = block", "precondition", "none");
    refused("objective = network\nprecondition = diagonal", "precondition", "none");
    refused("objective = network\nholdout = { }\nearly_stopping = 3", "early_stopping", "holdout");
}

static void each_key_makes_another_run(void **state) {
    (void)state;
    static const char *const keys[] = {"layers = 3", "activation = relu", "loss = one_vs_rest",
                                       "seed = 2", "precision = float"};
    makes_other_runs("objective = network", "network", keys, 5);
}

SUITE(network_keys) {
    const struct CMUnitTest tests[] = {
        JOB_TEST(a_network_has_defaults_of_its_own),
        JOB_TEST(what_a_job_says_comes_before_them),
        JOB_TEST(nothing_is_held_out_where_early_stopping_is_off),
        JOB_TEST(another_job_has_no_layers),
        JOB_TEST(parameters_of_the_loss_are_those_of_a_network_with_it),
        JOB_TEST(mistakes_name_their_key),
        JOB_TEST(each_key_makes_another_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
