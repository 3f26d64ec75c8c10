#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "coordinator/job/gate.h"
#include "coordinator/job/job.h"
#include "coordinator/job/key.h"

static char folder[64];
static char path[96];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_job.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/adult.conf", folder);
    error_clear();
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_file(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct job *read_text(const char *text) {
    struct job *job = NULL;
    write_file(text);
    if (job_read(path, NULL, 0, NULL, &job))
        fail_msg("%s", error_text());
    return job;
}

static struct job *read_with(const char *setting) {
    struct job *job = NULL;
    write_file("data = a\n");
    if (job_read(path, &setting, 1, NULL, &job))
        fail_msg("%s", error_text());
    return job;
}

/* The file is refused, and the message is its path, then `place_and_text`. */
static void refused(const char *text, const char *place_and_text) {
    struct job *job = NULL;
    char expected[1024];
    error_clear();
    write_file(text);
    assert_int_equal(job_read(path, NULL, 0, NULL, &job), ERROR_CONFIG);
    assert_null(job);
    snprintf(expected, sizeof expected, "%s%s", path, place_and_text);
    if (strncmp(error_text(), expected, strlen(expected)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", error_text(), expected);
}

static void setting_refused(const char *setting, const char *text) {
    struct job *job = NULL;
    error_clear();
    write_file("data = a\n");
    assert_int_equal(job_read(path, &setting, 1, NULL, &job), ERROR_USAGE);
    if (strncmp(error_text(), text, strlen(text)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", error_text(), text);
}

static void what_is_not_said_has_its_default(void **state) {
    (void)state;
    char expected[128];
    struct job *job = read_text("data = a9a.gz\n");
    assert_string_equal(job->name, "adult");
    snprintf(expected, sizeof expected, "%s/adult.state", folder);
    assert_string_equal(job->state, expected);
    assert_string_equal(job->folder, folder);
    assert_null(job->test[0]);
    assert_int_equal(job->source.format, FORMAT_AUTO);
    assert_int_equal(job->source.syntax.header, CSV_HEADER_AUTO);
    assert_null(job->source.label.column);
    assert_null(job->source.table.skip[0]);
    assert_null(job->positive);
    assert_int_equal(job->source.bad_lines_max, 0);
    assert_int_equal(job->objective, OBJECTIVE_LOGISTIC);
    assert_true(job->l2.automatic && job->intercept);
    assert_int_equal(job->history, 0);
    assert_int_equal(job->history_type, HISTORY_FLOAT);
    assert_true(job->gradient_tolerance == 1e-5 && job->loss_tolerance == 1e-9);
    assert_int_equal(job->max_steps, 1000);
    assert_true(isinf(job->max_seconds));
    assert_int_equal(job->replicas + job->shards + job->threads + job->portion_chunks, 0);
    assert_true(job->checkpoint_seconds == 10);
    assert_int_equal(job->reconnect_seconds, 30);
    assert_int_equal(job->flush_ms, 1000);
    assert_null(job->shard_addresses[0]);
    assert_null(job->http);
    job_free(job);
}

static void every_kind_of_value_is_read(void **state) {
    (void)state;
    char expected[128];
    struct job *job = read_text("# a comment\n"
                                "name = \"my job\"\nstate = elsewhere\n"
                                "data = { \"a.gz\", b }\ntest = t\nformat = csv\n"
                                "csv { header = yes\n label = age\n skip = { \"id\", 3 }\n"
                                " positive = M }\n"
                                "objective = logistic\nl2 = 1e-6\nintercept = no\n"
                                "history = 20\nhistory_type = double\nmax_steps = 1e6\n"
                                "max_seconds = 90.5\nhttp = \"127.0.0.1:0\"\n"
                                "shard_addresses = { \"unix:/tmp/x\", \"host:80\" }\n");
    assert_string_equal(job->name, "my job");
    snprintf(expected, sizeof expected, "%s/elsewhere", folder);
    assert_string_equal(job->state, expected);
    assert_string_equal(job->data[0], "a.gz");
    assert_string_equal(job->data[1], "b");
    assert_null(job->data[2]);
    assert_string_equal(job->test[0], "t");
    assert_int_equal(job->source.format, FORMAT_CSV);
    assert_int_equal(job->source.syntax.header, CSV_HEADER_YES);
    assert_string_equal(job->source.label.column, "age");
    assert_string_equal(job->source.table.skip[1], "3");
    assert_string_equal(job->positive, "M");
    assert_true(job->l2.value == 1e-6 && !job->intercept);
    assert_int_equal(job->history, 20);
    assert_int_equal(job->history_type, HISTORY_DOUBLE);
    assert_int_equal(job->max_steps, 1000000);
    assert_true(job->max_seconds == 90.5);
    assert_string_equal(job->http, "127.0.0.1:0");
    assert_string_equal(job->shard_addresses[1], "host:80");
    job_free(job);
}

static void words_stand_for_values(void **state) {
    (void)state;
    struct job *job = read_text("data = a\nhistory = auto\nreplicas = auto\nshards = auto\n"
                                "threads = auto\nformat = auto\nmax_seconds = unlimited\n"
                                "portion_chunks = 0\nhttp = off\n");
    assert_int_equal(job->history + job->replicas + job->shards + job->threads, 0);
    assert_int_equal(job->portion_chunks, 0);
    assert_true(isinf(job->max_seconds));
    assert_null(job->http);
    job_free(job);
}

static void an_unknown_key_is_named_with_its_line_and_the_nearest(void **state) {
    (void)state;
    refused("data = a\n# comment\nlambda = 3\n",
            ":3: key `lambda`: there is no such key; `dml-coordinator check --help` lists them");
    refused("objektive = squared\n",
            ":1: key `objektive`: there is no such key; `dml-coordinator check --help` lists them; "
            "did you mean `objective`?");
    refused("data = a\ncsv {\n  lable = 3\n}\n",
            ":3: key `lable`: there is no such key in csv; `dml-coordinator check --help` lists "
            "them; did you mean `label`?");
}

static void a_key_in_the_wrong_place_is_told_where_it_stands(void **state) {
    (void)state;
    refused("data = a\ncsv.label = 3\n",
            ":2: key `csv.label`: belongs to the section csv; write csv { label = VALUE }");
    refused("label = 3\n",
            ":1: key `label`: belongs to the section csv; write csv { label = VALUE }");
    refused("csv {\n  l2 = 3\n}\n",
            ":2: key `l2`: does not belong to the section csv; write it outside of csv { }");
    setting_refused("label=3", "--set label=3: key `label`: write `csv.label`");
    setting_refused("csv.l2=3", "--set csv.l2=3: key `csv.l2`: write `l2`, which is in no section");
    setting_refused("sweep.bins=3", "--set sweep.bins=3: key `sweep.bins`: write `csv.bins`");
}

static void a_block_does_not_go_together_with_an_orthant_whatever_the_data_is(void **state) {
    (void)state;
    refused("data = a\nprecondition = block\nl1 = 0.1\n",
            ": key `precondition`: `block` and l1 cannot be combined; take `auto` or `none`, or no "
            "l1");
    refused("data = a\nfolds = 2\nprecondition = block\nl1 = { 0, 0.1 }\n",
            ": key `precondition`: `block` and l1 cannot be combined");
    refused("data = a\nprecondition = block\nbounds = \"x = [0, 1]\"\n",
            ": key `precondition`: `block` and bounds cannot be combined");
    refused("data = a\nprecondition = block\ncsv { bins = 4 }\nmonotone = \"x = rising\"\n",
            ": key `precondition`: `block` and monotone cannot be combined");
}

static void a_value_of_the_wrong_type_is_named_with_what_is_allowed(void **state) {
    (void)state;
    refused("data = a\nl2 = small\n",
            ":2: key `l2`: \"small\" is not a number; allowed: auto, or a number from 0");
    refused("data = a\n\nhistory = 2.5\n",
            ":3: key `history`: \"2.5\" is not a whole number; allowed: auto, or a whole number "
            "from 1 to 200");
    refused("data = a\nintercept = perhaps\n",
            ":2: key `intercept`: \"perhaps\" is neither true nor false; allowed: true or false");
    refused("objective = hinge\n",
            ":1: key `objective`: \"hinge\" is not known; allowed: logistic, squared, softmax");
    refused("objective = sqared\n",
            ":1: key `objective`: \"sqared\" is not known; did you mean `squared`?; allowed: ");
    refused("objective = Logit\n",
            ":1: key `objective`: \"Logit\" is not known; did you mean `logistic`?; allowed: ");
    refused("data = a\nmax_seconds = unlimted\n",
            ":2: key `max_seconds`: \"unlimted\" is not a number; did you mean `unlimited`?");
    refused("data = a\nintercept = ture\n",
            ":2: key `intercept`: \"ture\" is neither true nor false; did you mean `true`?");
    refused("data = a\ngate = \"acuracy >= 0.9\"\n",
            ":2: key `gate`: \"acuracy >= 0.9\" is not valid; did you mean `accuracy`?; allowed: ");
    refused("data = a\nhistory = { 1, 2 }\n", ":2: key `history`: a list; allowed: one value");
    refused("data = a\nl2 = nan\n", ":2: key `l2`: \"nan\" is not a number");
    refused("csv {\n header = perhaps\n}\n",
            ":2: key `csv.header`: \"perhaps\" is not known; allowed: auto, yes, no");
}

static void a_value_out_of_range_is_named_with_the_range(void **state) {
    (void)state;
    refused("data = a\nl2 = -1\n",
            ":2: key `l2`: \"-1\" is out of range; allowed: auto, or a number");
    refused("data = a\nl2 = inf\n", ":2: key `l2`: \"inf\" is out of range");
    refused(
        "data = a\nhistory = 201\n",
        ":2: key `history`: \"201\" is out of range; allowed: auto, or a whole number from 1 to "
        "200");
    refused("data = a\nhistory = 0\n", ":2: key `history`: \"0\" is out of range");
    refused("data = a\ngradient_tolerance = -1e-9\n",
            ":2: key `gradient_tolerance`: \"-1e-9\" is out of range");
    refused("data = a\nmax_steps = 1e300\n", ":2: key `max_steps`: \"1e300\" is out of range");
    refused("data = a\nreplicas = 99999\n", ":2: key `replicas`: \"99999\" is out of range");
}

static void a_text_that_does_not_fit_is_named(void **state) {
    (void)state;
    refused("data = a\nhttp = 8080\n",
            ":2: key `http`: \"8080\" is not valid; allowed: off, or ADDRESS:PORT");
    refused("data = a\ndevice = gpu\n",
            ":2: key `device`: \"gpu\" is not valid; allowed: auto, or cpu, cuda, cuda:N (N: the "
            "number of the GPU, from 0), or emulated");
    refused("data = a\nhttp = \"localhost:99999\"\n", ":2: key `http`: \"localhost:99999\"");
    refused("data = a\nreplica_addresses = { \"unix:\" }\n",
            ":2: key `replica_addresses`: \"unix:\" is not valid; allowed: unix:PATH, HOST:PORT, "
            "tls:HOST:PORT or dns:NAME:PORT");
    refused("data = a\nname = \"a/b\"\n", ":2: key `name`: \"a/b\" is not valid");
    refused("data = \"\"\n", ":1: key `data`: \"\" is empty");
}

static void a_holdout_is_a_share_or_files(void **state) {
    (void)state;
    struct job *job = read_text("data = a\n");
    assert_true(job_holdout_share(job) == 0);
    assert_null(job_holdout_paths(job)[0]);
    job_free(job);
    job = read_text("data = a\nholdout = 0.1\n");
    assert_true(job_holdout_share(job) == 0.1);
    assert_null(job_holdout_paths(job)[0]);
    job_free(job);
    job = read_text("data = a\nholdout = { \"./0.1\", \"h-*\" }\n");
    assert_true(job_holdout_share(job) == 0);
    assert_string_equal(job_holdout_paths(job)[0], "./0.1");
    assert_string_equal(job_holdout_paths(job)[1], "h-*");
    job_free(job);
    refused("data = a\nholdout = 20%\n",
            ":2: key `holdout`: \"20%\" is not valid; allowed: a share "
            "of the rows between 0 and 1, like 0.1");
}

static void a_holdout_that_cannot_be_is_named(void **state) {
    (void)state;
    refused("data = a\nholdout = 0\n", ":2: key `holdout`: \"0\" is not valid; allowed: a share of "
                                       "the rows between 0 and 1, like 0.1, or a path or glob");
    refused("data = a\nholdout = 1\n", ":2: key `holdout`: \"1\" is not valid");
    refused("data = a\nholdout = { h, 0.1 }\n",
            ": key `holdout`: the share 0.1 is combined with other entries; allowed: "
            "either one share, or files");
    setting_refused("holdout=7", "--set holdout=7: key `holdout`: \"7\" is not valid");
}

static void a_key_given_twice_is_named_with_both_lines(void **state) {
    (void)state;
    refused("data = a\nl2 = 1\n\nl2 = 2\n", ":4: key `l2`: given twice, first on line 2");
    refused("data = a\ndata = b\n", ":2: key `data`: given twice, first on line 1");
}

static void missing_data_is_named(void **state) {
    (void)state;
    refused("", ": key `data`: missing");
    refused("data = {}\n", ": key `data`: missing");
}

static void syntax_errors_have_their_line(void **state) {
    (void)state;
    refused("data = a\nl2 = }\n", ":2: unexpected token '}'");
    refused("data = a\nl2 3\n", ":2: missing equal sign after option 'l2'");
    refused("data = a\ncsv { label = 15\n", ":2: the { that begins here is not closed");
}

static void comments_are_passed_over_and_their_lines_counted(void **state) {
    (void)state;
    refused("# one\n// two\n/* three\nfour */ data = \"a#b\" # five\n\nfoo = 1\n", ":6: key `foo`");
    struct job *job = read_text("data = \"a#b//c/*d\" # no comment before this\n#end");
    assert_string_equal(job->data[0], "a#b//c/*d");
    job_free(job);
}

static void a_positive_label_needs_two_classes(void **state) {
    (void)state;
    refused("data = a\nobjective = softmax\ncsv { positive = 1 }\n", ": key `csv.positive`:");
}

static void a_missing_job_file_is_named(void **state) {
    (void)state;
    struct job *job;
    assert_int_equal(job_read("/tmp/no/such.conf", NULL, 0, NULL, &job), ERROR_CONFIG);
    assert_non_null(strstr(error_text(), "/tmp/no/such.conf"));
}

static void a_failed_reading_leaves_the_next_one_alone(void **state) {
    (void)state;
    refused("csv { label 3 }\n", ":1: missing equal sign");
    job_free(read_text("data = a\nl2 = 1\n"));
}

static void set_goes_over_the_file(void **state) {
    (void)state;
    const char *settings[] = {"l2=0.5",          "data={ \"x y\", z }", "csv.label=3",
                              "csv.skip={1, 2}", "name=two words",      "l2=0.25"};
    struct job *job;
    write_file("data = a\nl2 = 1\n");
    assert_int_equal(job_read(path, settings, 6, "there", &job), 0);
    assert_true(job->l2.value == 0.25);
    assert_string_equal(job->data[0], "x y");
    assert_string_equal(job->data[1], "z");
    assert_null(job->data[2]);
    assert_string_equal(job->source.label.column, "3");
    assert_string_equal(job->source.table.skip[1], "2");
    assert_string_equal(job->name, "two words");
    assert_string_equal(job->state, "there");
    job_free(job);
    job = read_with("data=one.gz");
    assert_string_equal(job->data[0], "one.gz");
    assert_null(job->data[1]);
    job_free(job);
    const char *list = "l2={ 1e-4, 1e+1 }"; /* a plus as in a file */
    write_file("data = a\nholdout = 0.1\n");
    assert_int_equal(job_read(path, &list, 1, NULL, &job), 0);
    assert_true(job->l2.count == 2 && job->l2.all[0] == 10);
    job_free(job);
}

static void what_a_key_allows_is_told_whole(void **state) {
    (void)state;
    char allowed[KEY_ALLOWED_BYTES];
    for (size_t i = 0; i < keys_count; i++) {
        key_allowed(&keys[i], allowed);
        assert_true(strlen(allowed) < KEY_ALLOWED_BYTES - 1);
    }
    refused("data = a\ngate = \"auc > 2\"\n",
            ":2: key `gate`: \"auc > 2\" is not valid; allowed: " GATE_ALLOWED);
}

static void a_set_without_a_value_restores_the_default(void **state) {
    (void)state;
    const char *settings[] = {"l2=", "scratch=", "hosts=", "csv.label=", "name=", "history="};
    struct job *job;
    write_file("data = a\nl2 = 1\nscratch = /x\nhosts = { b, c }\nname = n\nhistory = 7\n"
               "csv { label = 3 }\n");
    assert_int_equal(job_read(path, settings, 6, NULL, &job), 0);
    assert_true(job->l2.automatic);
    assert_null(job->scratch);
    assert_null(job->hosts[0]);
    assert_null(job->source.label.column);
    assert_string_not_equal(job->name, "n");
    assert_true(key_is_default(key_find("history"), job));
    assert_false(job_gives(job, "l2"));
    job_free(job);
    const char *again[] = {"l2=", "l2=0.5", "history=9", "history="};
    assert_int_equal(job_read(path, again, 4, NULL, &job), 0);
    assert_true(job->l2.value == 0.5 && job_gives(job, "l2"));
    assert_false(job_gives(job, "history"));
    job_free(job);
}

static void a_bad_set_is_a_usage_error_and_quoted(void **state) {
    (void)state;
    setting_refused("l2=-1",
                    "--set l2=-1: key `l2`: \"-1\" is out of range; allowed: auto, or a number");
    setting_refused("lambda=1", "--set lambda=1: key `lambda`: there is no such key; `dml");
    setting_refused("l2", "--set l2: allowed: KEY=VALUE");
    setting_refused("=3", "--set =3: allowed: KEY=VALUE");
    setting_refused("data={ a", "--set data={ a: the { that begins here is not closed");
    setting_refused("csv.label=\"a",
                    "--set csv.label=\"a: the quoted text that begins here is not");
    setting_refused("data={*.csv}", "--set data={*.csv}: a string with * or // in it needs quotes");
    setting_refused("l2={1} max_steps = 3",
                    "--set l2={1} max_steps = 3: sets key `max_steps`, too");
    setting_refused("csv.skip={a}} l2 = {3", "--set csv.skip={a}} l2 = {3: ");
    setting_refused("history={1, 2}", "--set history={1, 2}: key `history`: a list; allowed: one");
    setting_refused("csv.label=\"\"", "--set csv.label=\"\": key `csv.label`: \"\" is empty");
    setting_refused("lambda=", "--set lambda=: key `lambda`: there is no such key; `dml");
}

static void settings_hold_every_key_but_those_of_what_the_job_does_not_do(void **state) {
    (void)state;
    struct job *job = read_text("data = { a, b }\nl2 = 0.5\n");
    json_t *settings = job_settings(job);
    for (size_t i = 0; i < keys_count; i++)
        assert_int_equal(json_object_get(settings, keys[i].name) != NULL,
                         !keys[i].objectives && !keys[i].downpour);
    assert_true(json_real_value(json_object_get(settings, "l2")) == 0.5);
    assert_string_equal(json_string_value(json_object_get(settings, "history")), "auto");
    assert_string_equal(json_string_value(json_object_get(settings, "max_seconds")), "unlimited");
    assert_int_equal(json_array_size(json_object_get(settings, "data")), 2);
    assert_true(json_is_null(json_object_get(settings, "csv.label")));
    json_decref(settings);
    job_free(job);
}

static void limits_tolerances_and_places_keep_the_identity(void **state) {
    (void)state;
    static const char *const may_change[] = {
        "max_steps=5",          "max_seconds=5", "gradient_tolerance=1",
        "loss_tolerance=0",     "replicas=3",    "threads=2",
        "portion_chunks=7",     "flush_ms=5",    "reconnect_seconds=1",
        "checkpoint_seconds=0", "http=a:1",      "state=x"};
    struct job *plain = read_text("data = a\n");
    char *identity = job_identity(plain);
    json_t *settings = job_settings(plain);
    for (size_t i = 0; i < sizeof may_change / sizeof may_change[0]; i++) {
        struct job *job = read_with(may_change[i]);
        char *other = job_identity(job);
        assert_string_equal(identity, other);
        assert_null(job_first_difference(job, settings));
        free(other);
        job_free(job);
    }
    json_decref(settings);
    free(identity);
    job_free(plain);
}

static void other_keys_make_another_run_and_are_named(void **state) {
    (void)state;
    static const char *const makes_another[][2] = {{"data=b", "data"},
                                                   {"l2=1", "l2"},
                                                   {"history=5", "history"},
                                                   {"shards=2", "shards"},
                                                   {"intercept=no", "intercept"},
                                                   {"csv.label=2", "csv.label"},
                                                   {"objective=squared", "objective"}};
    struct job *plain = read_text("data = a\n");
    char *identity = job_identity(plain);
    json_t *settings = job_settings(plain);
    for (size_t i = 0; i < sizeof makes_another / sizeof makes_another[0]; i++) {
        struct job *job = read_with(makes_another[i][0]);
        char *other = job_identity(job);
        assert_string_not_equal(identity, other);
        assert_string_equal(job_first_difference(job, settings), makes_another[i][1]);
        free(other);
        job_free(job);
    }
    json_decref(settings);
    free(identity);
    job_free(plain);
}

/* The identity was written down: keys that are added later must not change it. */
static void keys_at_their_defaults_leave_the_identity_that_a_job_always_had(void **state) {
    (void)state;
    struct job *job = read_text("data = a\nl2 = 0.5\n");
    char *identity = job_identity(job);
    assert_string_equal(identity, "be72d88e93f32b017983d3298c46dbc0");
    free(identity);
    job_free(job);
}

static void a_key_that_stored_settings_lack_had_its_default(void **state) {
    (void)state;
    struct job *job = read_text("data = a\n"), *other = read_with("vanished=keep");
    json_t *settings = job_settings(job);
    json_object_del(settings, "vanished");
    assert_null(job_first_difference(job, settings));
    assert_string_equal(job_first_difference(other, settings), "vanished");
    json_decref(settings);
    job_free(other);
    job_free(job);
}

static void settings_survive_being_stored_as_text(void **state) {
    (void)state;
    struct job *job = read_text("data = a\nl2 = 0.1\ncsv { skip = { x } }\n");
    json_t *settings = job_settings(job);
    char *text = json_dumps(settings, JSON_COMPACT);
    json_t *stored = json_loads(text, 0, NULL);
    assert_null(job_first_difference(job, stored));
    json_decref(stored);
    free(text);
    json_decref(settings);
    job_free(job);
}

static void what_is_printed_gives_the_same_job(void **state) {
    (void)state;
    struct job *job = read_text("data = { \"a b\", \"c\\\"${HOME}\\\\d\" }\nl2 = 1e19\n"
                                "csv { label = 3\n skip = { x } }\nshards = 2\n"
                                "gap_tolerance = 1e-6\n");
    char printed[128];
    snprintf(printed, sizeof printed, "%s/printed.conf", folder);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    assert_non_null(freopen(printed, "w", stdout));
    job_print(job);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    struct job *again = NULL;
    int code = job_read(printed, NULL, 0, NULL, &again);
    unlink(printed);
    if (code)
        fail_msg("%s", error_text());
    json_t *settings = job_settings(job), *settings_again = job_settings(again);
    assert_true(json_equal(settings, settings_again));
    assert_true(job_gives(again, "gap_tolerance"));
    assert_false(job_gives(again, "loss_tolerance"));
    json_decref(settings);
    json_decref(settings_again);
    job_free(job);
    job_free(again);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

SUITE(job) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_said_has_its_default),
        TEST(every_kind_of_value_is_read),
        TEST(words_stand_for_values),
        TEST(an_unknown_key_is_named_with_its_line_and_the_nearest),
        TEST(a_key_in_the_wrong_place_is_told_where_it_stands),
        TEST(a_block_does_not_go_together_with_an_orthant_whatever_the_data_is),
        TEST(a_value_of_the_wrong_type_is_named_with_what_is_allowed),
        TEST(a_value_out_of_range_is_named_with_the_range),
        TEST(a_text_that_does_not_fit_is_named),
        TEST(a_holdout_is_a_share_or_files),
        TEST(a_holdout_that_cannot_be_is_named),
        TEST(a_key_given_twice_is_named_with_both_lines),
        TEST(missing_data_is_named),
        TEST(syntax_errors_have_their_line),
        TEST(comments_are_passed_over_and_their_lines_counted),
        TEST(a_positive_label_needs_two_classes),
        TEST(a_missing_job_file_is_named),
        TEST(a_failed_reading_leaves_the_next_one_alone),
        TEST(set_goes_over_the_file),
        TEST(what_a_key_allows_is_told_whole),
        TEST(a_set_without_a_value_restores_the_default),
        TEST(a_bad_set_is_a_usage_error_and_quoted),
        TEST(settings_hold_every_key_but_those_of_what_the_job_does_not_do),
        TEST(limits_tolerances_and_places_keep_the_identity),
        TEST(other_keys_make_another_run_and_are_named),
        TEST(keys_at_their_defaults_leave_the_identity_that_a_job_always_had),
        TEST(a_key_that_stored_settings_lack_had_its_default),
        TEST(settings_survive_being_stored_as_text),
        TEST(what_is_printed_gives_the_same_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
