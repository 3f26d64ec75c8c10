/* The table of figures: each is documented, shown under its heading, and in the answers that the
 * table says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "coordinator/status/eta.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/metrics.h"
#include "coordinator/status/page.h"
#include "coordinator/status/report.h"
#include "coordinator/status/result.h"
#include "tests/unit/coordinator_bench.h"
#include "tests/unit/suites.h"

/* A file of the source tree; free it. */
static char *text_of(const char *path) {
    const char *root = getenv("DML_SOURCE");
    char *whole = memory_format("%s/%s", root ? root : ".", path);
    FILE *file = fopen(whole, "r");
    free(whole);
    if (!file)
        fail_msg("cannot read %s", path);
    char *text = memory_new(1 << 20, 1);
    text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool is_of_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

static bool has_word(const char *text, const char *word) {
    const char *found = strstr(text, word);
    while (found && (is_of_word(found[-1]) || is_of_word(found[strlen(word)])))
        found = strstr(found + 1, word);
    return found != NULL;
}

static void expect_word(const char *text, const char *word, const char *where) {
    if (!has_word(text, word))
        fail_msg("%s does not name %s", where, word);
}

static void each_figure_is_in_its_manual(void **state) {
    (void)state;
    char *status = text_of("man/dml-status.7"), *commands = text_of("man/dml-coordinator.1");
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        if (figure->places & ~(unsigned)IN_RESULT)
            expect_word(status, figure->key, "dml-status(7)");
        if (figure->places & IN_RESULT)
            expect_word(commands, figure->key, "dml-coordinator(1)");
        if (figure->metric.type != METRIC_NONE)
            expect_word(status, figure->metric.name, "dml-status(7)");
    }
    free(status);
    free(commands);
}

static void each_heading_is_on_the_page(void **state) {
    (void)state;
    char *page = memory_format("%.*s", (int)page_html_length, (const char *)page_html);
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        if (!figure->label)
            continue;
        expect_word(page, figure->key, "the page");
        char *alone = memory_format(">%s<", figure->label);
        char *column = memory_format("name: '%s'", figure->label);
        if (!strstr(page, alone) && !strstr(page, column))
            fail_msg("the page has no heading %s", figure->label);
        free(alone);
        free(column);
    }
    free(page);
}

/* Prometheus' habit: a name ends in its unit, and that of a counter in _total. */
static void a_metric_is_named_by_its_unit(void **state) {
    (void)state;
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        const char *name = figure->metric.name;
        if (figure->metric.type == METRIC_NONE)
            continue;
        size_t length = strlen(name);
        assert_true(length > 6);
        assert_int_equal(!strcmp(name + length - 6, "_total"),
                         figure->metric.type == METRIC_COUNTER);
        if (!strcmp(figure->unit, "s"))
            assert_string_equal(name + length - 8, "_seconds");
        if (!strcmp(figure->unit, "1/s"))
            assert_string_equal(name + length - 11, "_per_second");
    }
}

static void a_place_has_a_key_once(void **state) {
    (void)state;
    for (size_t i = 0; i < figure_count; i++)
        for (size_t j = 0; j < i; j++) {
            unsigned both = figure_table[i].places & figure_table[j].places;
            if (both && !strcmp(figure_table[i].key, figure_table[j].key))
                fail_msg("%s is there twice", figure_table[i].key);
        }
}

static void expect_figures(const json_t *object, enum figure_place place) {
    size_t count = 0;
    for (size_t i = 0; i < figure_count; i++)
        if (figure_table[i].places & (unsigned)place) {
            const char *key = figure_table[i].key;
            bool optional = !strcmp(key, "early_stopping") || !strcmp(key, "downpour");
            if (!optional && !json_object_get(object, key))
                fail_msg("%s is missing", key);
            count += json_object_get(object, key) != NULL;
        }
    assert_int_equal(json_object_size(object), count);
}

static struct job *some_job(void) {
    char path[] = "/tmp/test_figure_table.XXXXXX";
    struct job *job = NULL;
    int file = mkstemp(path);
    assert_int_equal(write(file, "data = a\n", 9), 9);
    close(file);
    int code = job_read(path, NULL, 0, NULL, &job);
    unlink(path);
    assert_int_equal(code, 0);
    return job;
}

static void answers_have_the_figures_of_their_place(void **state) {
    const struct fixture *bench = *state;
    struct job *job = some_job();
    struct live live = {.job = job, .seconds = 2};
    json_t *early = report_live_status(&live);
    expect_figures(early, IN_EARLY);
    live.coordinator = bench->coordinator;
    json_t *status = report_live_status(&live);
    expect_figures(status, IN_STATUS);
    expect_figures(json_object_get(status, "evaluation"), IN_EVALUATION);
    expect_figures(json_array_get(json_object_get(status, "processes"), 0), IN_WORKER);
    struct result_seconds seconds = {.total = 3};
    struct result_restarts restarts = {.shard = 1};
    struct optimizer_point answer = coordinator_view(bench->coordinator).answer;
    json_t *result = result_json(bench->coordinator, job, 1, &answer, &seconds, &restarts);
    expect_figures(result, IN_RESULT);
    json_decref(early);
    json_decref(status);
    json_decref(result);
    job_free(job);
}

static void metrics_have_what_is_known(void **state) {
    struct fixture *bench = *state;
    static struct job job = {.name = "job"};
    static const struct counters counters;
    static const struct http_counts http;
    const struct live live = {
        .coordinator = bench->coordinator, .job = &job, .counters = &counters};
    bench_finish_first(bench, 4, 1);
    size_t length;
    char *text = metrics_text(&live, &http, &length);
    struct figure_source source = figures_of_live(&live);
    for (size_t i = 0; i < figure_count; i++) {
        const struct figure *figure = &figure_table[i];
        bool of_run = !strcmp(figure->of, "run") || !strcmp(figure->of, "training");
        if (of_run && figure->metric.type != METRIC_NONE && !isnan(figure->number(&source)))
            expect_word(text, figure->metric.name, "/metrics");
    }
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

SUITE(figure_table) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_figure_is_in_its_manual),
        cmocka_unit_test(each_heading_is_on_the_page),
        cmocka_unit_test(a_metric_is_named_by_its_unit),
        cmocka_unit_test(a_place_has_a_key_once),
        TEST(answers_have_the_figures_of_their_place),
        TEST(metrics_have_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
