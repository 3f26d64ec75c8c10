#define _GNU_SOURCE
#include "plugin/ask.h"
#include "plugin/plugin.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h needs the above. */
#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

/* Two rows of two columns, of which the second row weighs 0. */
static const double values[] = {1, 2, 3, 4}, labels[] = {1, 1}, weights[] = {2, 0};
static const uint32_t starts[] = {0, 1, 2}, columns[] = {1, 0};
static const double point[] = {1, 2, 0.5};
static const struct rows dense = {.count = 2,
                                  .features = 2,
                                  .values = 4,
                                  .dense = true,
                                  .type = VALUE_DOUBLE,
                                  .value = values,
                                  .label = labels,
                                  .weight = weights};
static const struct plugin_data data = {.features = 2, .outputs = 1};

static char *beside(const char *name) {
    char own[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
    char *folder = path_folder(own), *path = path_join(folder, name);
    free(folder);
    return path;
}

/* What shall be done within the limit takes much less, also on a busy machine. */
static double seconds_for(const char *options) {
    return !strcmp(options, "loop in open") ? 0.2 : !strcmp(options, "loop in chunk") ? 5 : 60;
}

static int start(const char *name, const char *options, const char *sha256,
                 struct plugin **plugin) {
    static char *path; /* outlives the plug-in */
    free(path);
    path = beside(name);
    const struct plugin_source source = {.program = "/proc/self/exe",
                                         .library = path,
                                         .options = options,
                                         .sha256 = sha256,
                                         .seconds = seconds_for(options)};
    return plugin_start(&source, plugin);
}

static void assert_says(int code, int expected, const char *words) {
    assert_int_equal(code, expected);
    if (!strstr(error_text(), words))
        print_message("%s\n", error_text());
    assert_non_null(strstr(error_text(), words));
    assert_non_null(strstr(error_text(), "/library"));
    error_clear();
}

static struct plugin *started(const char *options) {
    struct plugin *plugin = NULL;
    int code = start("library.so", options, "", &plugin);
    if (code)
        print_message("%s\n", error_text());
    assert_int_equal(code, 0);
    return plugin;
}

static int compute(struct plugin *plugin, const struct rows *rows, bool gradient,
                   struct plugin_result *result) {
    return plugin_chunk(plugin, &data, rows, point, 3, gradient, result);
}

static void a_library_describes_itself_and_its_tensors(void **state) {
    (void)state;
    struct plugin *plugin = started("");
    const struct plugin_description *description = plugin_description(plugin);
    assert_string_equal(description->name, "test");
    assert_int_equal(strlen(description->sha256), 64);
    assert_int_equal(description->labels, LABEL_TARGET);
    assert_int_equal(description->prediction, PLUGIN_VALUE);
    struct plugin_tensors tensors;
    assert_int_equal(plugin_tensors(plugin, &data, 5, &tensors), 0);
    const struct layout layout = tensors.layout;
    assert_int_equal(tensors.by_feature, 1);
    assert_int_equal(layout.count, 2);
    assert_int_equal(layout.seed, 5);
    assert_int_equal(layout_parameters(&layout), 3);
    assert_true(layout_find(&layout, "w")->regularized);
    assert_int_equal(layout_find(&layout, "w")->exponents, LAYOUT_ONE_EXPONENT);
    assert_int_equal(layout_find(&layout, "b")->start, LAYOUT_START_CONSTANT);
    assert_true(layout_find(&layout, "b")->bound == 0.5);
    plugin_stop(plugin);
}

static void dense_and_sparse_rows_reach_it_without_those_of_weight_0(void **state) {
    (void)state;
    struct plugin *plugin = started("");
    struct plugin_result result;
    assert_int_equal(compute(plugin, &dense, true, &result), 0);
    assert_true(result.loss == 2 * 4.5 * 4.5 / 2); /* 1·1 + 2·2 + 0.5 − 1 */
    assert_true(result.gradient[0] == 9 && result.gradient[1] == 18 && result.gradient[2] == 9);
    struct rows sparse = dense;
    sparse.dense = false;
    sparse.values = 2;
    sparse.start = starts;
    sparse.feature = columns;
    sparse.type = VALUE_ONES;
    sparse.value = NULL;
    sparse.weight = NULL;
    assert_int_equal(compute(plugin, &sparse, true, &result), 0);
    assert_true(result.loss == 1.5 * 1.5 / 2 + 0.5 * 0.5 / 2);
    assert_true(result.gradient[0] == 0.5 && result.gradient[1] == 1.5 && result.gradient[2] == 2);
    assert_int_equal(compute(plugin, &sparse, false, &result), 0);
    assert_null(result.gradient);
    plugin_stop(plugin);
}

static void columns_reach_it_in_the_order_of_their_ranks(void **state) {
    static const uint32_t rank[] = {1, 0}, first[] = {0, 2, 2}, column[] = {0, 1};
    static const struct plugin_data ranked = {.features = 2, .outputs = 1, .rank = rank};
    (void)state;
    struct plugin *plugin = started("rising");
    double predictions[2];
    assert_int_equal(plugin_predict(plugin, &ranked, &dense, point, 3, predictions), 0);
    assert_true(predictions[0] == 2 * 1 + 1 * 2 + 0.5 && predictions[1] == 4 * 1 + 3 * 2 + 0.5);
    struct rows sparse = dense;
    sparse.dense = false;
    sparse.values = 2;
    sparse.start = first;
    sparse.feature = column;
    assert_int_equal(plugin_predict(plugin, &ranked, &sparse, point, 3, predictions), 0);
    assert_true(predictions[0] == 2 * 1 + 1 * 2 + 0.5 && predictions[1] == 0.5);
    plugin_stop(plugin);
}

static void predictions_and_losses_are_of_all_rows(void **state) {
    (void)state;
    struct plugin *plugin = started("");
    double predictions[2], losses[2];
    assert_int_equal(plugin_predict(plugin, &data, &dense, point, 3, predictions), 0);
    assert_int_equal(plugin_losses(plugin, &data, &dense, point, 3, losses), 0);
    assert_true(predictions[0] == 5.5 && predictions[1] == 11.5);
    assert_true(losses[0] == 4.5 * 4.5 / 2 && losses[1] == 10.5 * 10.5 / 2);
    plugin_stop(plugin);
}

static void a_library_that_does_not_fit_is_refused(void **state) {
    static const struct {
        const char *library, *words;
    } cases[] = {
        {"library-version.so", "version 2 of dml/objective.h"},
        {"library-size.so", "other sizes"},
        {"library-without.so", "does not export `dml_objective`"},
        {"library.none", "cannot be opened"},
        {"../unit", "is no file that could be a library"},
        {"library.text", "cannot be loaded: "},
    };
    (void)state;
    char *text = beside("library.text");
    FILE *file = fopen(text, "w");
    fputs("no library, but long enough that it could have the header of an ELF file in it\n", file);
    fclose(file);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plugin *plugin = NULL;
        int code = start(cases[i].library, "", "", &plugin);
        if (strncmp(cases[i].library, "library", 7) == 0) {
            assert_says(code, ERROR_CONFIG, cases[i].words);
        } else {
            assert_int_equal(code, ERROR_CONFIG);
            assert_non_null(strstr(error_text(), cases[i].words));
            error_clear();
        }
        assert_null(plugin);
    }
    unlink(text);
    free(text);
}

static void another_file_than_expected_is_refused_with_both_hashes(void **state) {
    (void)state;
    struct plugin *plugin = started("");
    char sha256[SHA256_TEXT];
    strcpy(sha256, plugin_description(plugin)->sha256);
    plugin_stop(plugin);
    assert_int_equal(start("library.so", "", sha256, &plugin), 0);
    plugin_stop(plugin);
    plugin = NULL;
    int code = start("library-without.so", "", sha256, &plugin);
    assert_non_null(strstr(error_text(), sha256));
    assert_says(code, ERROR_CONFIG, "is another file");
}

static void what_it_does_wrong_at_its_start_is_named(void **state) {
    static const struct {
        const char *options;
        int code;
        const char *words;
    } cases[] = {
        {"unknown", ERROR_CONFIG, "options \"unknown\": there is no option `unknown`"},
        {"labels", ERROR_PLUGIN, "sets labels to 77"},
        {"crash in open", ERROR_PLUGIN, "crashed while it was loaded: signal 11"},
        {"loop in open", ERROR_PLUGIN, "no answer within 0.2 seconds while it was loaded"},
        {"exit in open", ERROR_PLUGIN, "ended its process while it was loaded, with status 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plugin *plugin = NULL;
        assert_says(start("library.so", cases[i].options, "", &plugin), cases[i].code,
                    cases[i].words);
        assert_null(plugin);
    }
}

static void count_beat(void *context) {
    ++*(unsigned *)context;
}

/* A library may take longer to load than a worker may say nothing. */
static void who_waits_for_a_library_gives_signs_of_life(void **state) {
    (void)state;
    struct plugin *plugin = NULL;
    unsigned beats = 0;
    heartbeat_call(count_beat, &beats);
    int code = start("library.so", "loop in open", "", &plugin);
    heartbeat_call(NULL, NULL);
    assert_true(beats > 0);
    assert_says(code, ERROR_PLUGIN, "no answer within 0.2 seconds");
}

static void what_it_does_wrong_with_a_chunk_is_named(void **state) {
    static const struct {
        const char *options, *words;
    } cases[] = {
        {"crash in chunk", "(test): crashed in chunk(): signal 11"},
        {"loop in chunk", "(test): gave no answer within 5 seconds in chunk()"},
        {"exit in chunk", "(test): ended its process in chunk(), with status 3"},
        {"refuse", "(test): these rows are not for me"},
        {"nan gradient", "element 0 of the gradient of a chunk"},
        {"least loss", "the loss of a row is -infinity"},
        {"write below the gradient", "chunk() writes element -1 of `gradient`, which has 3"},
        {"write behind the gradient", "chunk() writes element 3 of `gradient`, which has 3"},
        {"write far below the gradient", "reaches for element -100000 of `gradient`"},
        {"write behind the loss", "chunk() writes element 1 of `loss`, which has 1"},
        {"write far behind the loss", "reaches for element 50000 of `loss`"},
        {"write a weight", "writes into its rows or parameters"},
        {"write a parameter behind", "reaches far beyond its rows or parameters"},
        {"write to descriptors", "writes into a descriptor that is not its own in chunk()"},
        {"close descriptors", "closed a descriptor in chunk() that is not its own"},
        {"fork and return", "(test): forked a process in chunk() that "},
        {"fork and crash", "crashed in chunk(): signal 11"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plugin *plugin = started(cases[i].options);
        struct plugin_result result;
        assert_says(compute(plugin, &dense, true, &result), ERROR_PLUGIN, cases[i].words);
        assert_says(compute(plugin, &dense, true, &result), ERROR_PLUGIN, cases[i].words);
        plugin_stop(plugin);
    }
}

/* The process exists, and is no zombie that nobody reaps. */
static bool lives(pid_t pid) {
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    int got = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return got == 1 && state != 'Z' && state != 'X';
}

/* The pid that the library's child wrote. */
static pid_t forked_pid(const char *path) {
    int pid = 0;
    for (int tries = 0; pid == 0 && tries < 10000; tries++) {
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%d", &pid) != 1)
            pid = 0;
        if (file)
            fclose(file);
        usleep(1000);
    }
    assert_true(pid > 0);
    return pid;
}

static void what_it_forked_has_ended_when_its_process_is_stopped(void **state) {
    (void)state;
    setenv("FORKED", "./forked", 1);
    struct plugin *plugin = started("fork and be slow to end");
    struct plugin_result result;
    assert_says(compute(plugin, &dense, true, &result), ERROR_PLUGIN, "has not ended when that");
    pid_t forked = forked_pid("./forked");
    plugin_stop(plugin);
    assert_false(lives(forked));
    unlink("./forked");
}

/* Nobody else could end it then: a replica may be killed at any instant. */
static void what_it_forked_ends_when_its_process_is_killed(void **state) {
    (void)state;
    setenv("FORKED", "./forked", 1);
    struct plugin *plugin = started("fork and be slow to end");
    struct plugin_result result;
    assert_says(compute(plugin, &dense, true, &result), ERROR_PLUGIN, "has not ended when that");
    pid_t forked = forked_pid("./forked");
    kill(plugin->pid, SIGKILL);
    for (int tries = 0; lives(forked) && tries < 10000; tries++)
        usleep(1000);
    assert_false(lives(forked));
    plugin_stop(plugin);
    unlink("./forked");
}

static void what_it_writes_behind_predictions_is_named(void **state) {
    (void)state;
    struct plugin *plugin = started("write behind the prediction");
    double predictions[2];
    assert_says(plugin_predict(plugin, &data, &dense, point, 3, predictions), ERROR_PLUGIN,
                "predict() writes element 2 of `prediction`, which has 2");
    plugin_stop(plugin);
}

/* Without its care the parent would end at the next touch of its memory, have other bits, or wait
 * for ever for a process that nothing ends. */
static void what_it_does_in_its_process_harms_no_other_answer(void **state) {
    static const char *const modes[] = {"shorten descriptors", "round up", "fork and wait",
                                        "leave the group"};
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct plugin *plugin = started(modes[i]);
        struct plugin_result result, again;
        double third[] = {1. / 3, 1. / 7, 1. / 11}, first[3];
        assert_int_equal(plugin_chunk(plugin, &data, &dense, third, 3, true, &result), 0);
        memcpy(first, result.gradient, sizeof first);
        assert_int_equal(plugin_chunk(plugin, &data, &dense, third, 3, true, &again), 0);
        assert_memory_equal(&again.loss, &result.loss, sizeof result.loss);
        assert_memory_equal(first, again.gradient, sizeof first);
        plugin_stop(plugin);
    }
}

/* Two columns of which one is a million times the other. */
static int check_gradient(const char *options, struct plugin_gradient *found) {
    static double value[40], label[20];
    struct plugin *plugin = started(options);
    struct plugin_tensors tensors;
    struct rows rows = dense;
    for (uint32_t i = 0; i < 20; i++) {
        value[2 * i] = 1e6 * sin(i);
        value[2 * i + 1] = cos(3 * i);
        label[i] = i % 3;
    }
    rows.count = 20;
    rows.values = 40;
    rows.value = value;
    rows.label = label;
    rows.weight = NULL;
    assert_int_equal(plugin_tensors(plugin, &data, 5, &tensors), 0);
    int code = plugin_check_gradient(plugin, &data, &rows, &tensors.layout, found);
    plugin_stop(plugin);
    return code;
}

static void a_gradient_is_compared_with_differences_of_the_loss(void **state) {
    (void)state;
    struct plugin_gradient found;
    assert_int_equal(check_gradient("", &found), 0);
    assert_int_equal(found.checked, 3);
    assert_true(found.error < 1);
    static const char *const modes[][2] = {
        {"wrong gradient", "is not that of the loss: element 2, which is b[0, 0]"},
        {"small gradient", "is not that of the loss: element 0, which is w[0, 0]"},
        {"no weights", "of 3 elements 3 are wrong"},
        {"other sums", "gives other bits for the same rows at the same parameters"},
        {"nan loss", "the loss is not finite where a training starts"},
    };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        assert_says(check_gradient(modes[i][0], &found), ERROR_PLUGIN, modes[i][1]);
}

static void a_fifo_is_refused_at_once(void **state) {
    (void)state;
    struct plugin *plugin = NULL;
    char *fifo = beside("library.fifo");
    unlink(fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_says(start("library.fifo", "loop", "", &plugin), ERROR_CONFIG,
                "is no file that could be a library");
    unlink(fifo);
    free(fifo);
}

static void a_loss_that_is_no_number_is_no_error(void **state) {
    (void)state;
    static const char *const modes[] = {"nan loss", "infinite loss"};
    for (size_t i = 0; i < 2; i++) {
        struct plugin *plugin = started(modes[i]);
        struct plugin_result result;
        assert_int_equal(compute(plugin, &dense, true, &result), 0);
        assert_true(result.gradient == NULL && !(fabs(result.loss) <= DBL_MAX));
        assert_null(result.gradient);
        plugin_stop(plugin);
    }
}

static void tensors_that_cannot_be_are_refused(void **state) {
    (void)state;
    static const char *const modes[][2] = {{"many", "gives 33 tensors"},
                                           {"same names", "tensor 1, `w`"},
                                           {"crash in tensors", "crashed in tensors()"}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct plugin *plugin = started(modes[i][0]);
        struct plugin_tensors tensors;
        assert_says(plugin_tensors(plugin, &data, 1, &tensors), ERROR_PLUGIN, modes[i][1]);
        plugin_stop(plugin);
    }
}

static void large_chunks_follow_small_ones(void **state) {
    (void)state;
    enum { ROWS = 40000 };
    struct plugin *plugin = started("");
    struct plugin_result result;
    double *value = memory_new(2 * ROWS, sizeof *value), *label = memory_new(ROWS, sizeof *label);
    struct rows rows = dense;
    for (uint32_t i = 0; i < 2 * ROWS; i++)
        value[i] = i % 7;
    rows.value = value;
    rows.label = label;
    rows.weight = NULL;
    double losses[2];
    for (rows.count = 1; rows.count <= ROWS; rows.count *= 200u) {
        rows.values = 2 * rows.count;
        assert_int_equal(compute(plugin, &rows, true, &result), 0);
        losses[0] = result.loss;
        assert_int_equal(compute(plugin, &rows, true, &result), 0);
        losses[1] = result.loss;
        assert_memory_equal(&losses[0], &losses[1], sizeof losses[0]);
    }
    free(value);
    free(label);
    plugin_stop(plugin);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], PLUGIN_OPTION) == 0)
        return plugin_process(argc - 2, argv + 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_describes_itself_and_its_tensors),
        cmocka_unit_test(dense_and_sparse_rows_reach_it_without_those_of_weight_0),
        cmocka_unit_test(columns_reach_it_in_the_order_of_their_ranks),
        cmocka_unit_test(predictions_and_losses_are_of_all_rows),
        cmocka_unit_test(a_library_that_does_not_fit_is_refused),
        cmocka_unit_test(another_file_than_expected_is_refused_with_both_hashes),
        cmocka_unit_test(what_it_does_wrong_at_its_start_is_named),
        cmocka_unit_test(who_waits_for_a_library_gives_signs_of_life),
        cmocka_unit_test(what_it_does_wrong_with_a_chunk_is_named),
        cmocka_unit_test(what_it_forked_has_ended_when_its_process_is_stopped),
        cmocka_unit_test(what_it_forked_ends_when_its_process_is_killed),
        cmocka_unit_test(what_it_writes_behind_predictions_is_named),
        cmocka_unit_test(what_it_does_in_its_process_harms_no_other_answer),
        cmocka_unit_test(a_gradient_is_compared_with_differences_of_the_loss),
        cmocka_unit_test(a_fifo_is_refused_at_once),
        cmocka_unit_test(a_loss_that_is_no_number_is_no_error),
        cmocka_unit_test(tensors_that_cannot_be_are_refused),
        cmocka_unit_test(large_chunks_follow_small_ones),
    };
    return cmocka_run_group_tests_name("plugin", tests, NULL, NULL);
}
