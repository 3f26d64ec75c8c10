/* Files below folders: which a list means, and what their folders say of their rows. */
#include "tests/unit/suites.h"

#include <sys/stat.h>

#include "data/remote/pattern.h"
#include "data/source/paths.h"
#include "tests/unit/data_fixture.h"

static void a_deep_pattern_passes_any_number_of_visible_folders(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool fits;
    } cases[] = {
        {"**", "a.csv", true},           {"**", "x/y/a.csv", true},
        {"**", "x/.y/a.csv", false},     {"**", "_x/a.csv", false},
        {"**", "_x=1/a.csv", true},      {"**", "x/_a.csv", false},
        {"**", "x/_a=1.csv", false},     {"**/*.csv", "a.csv", true},
        {"**/*.csv", "x/y/a.csv", true}, {"**/*.csv", "x/y/a.tsv", false},
        {"**/*.csv", "x/_a.csv", false}, {"**/_*.csv", "x/_a.csv", true},
        {"x/**/z/*", "x/z/a", true},     {"x/**/z/*", "x/y/w/z/a", true},
        {"x/**/z/*", "x/y/a", false},    {"x/**/z/*", "x/y/z/w/a", false},
        {"**/x/**/a", "x/x/b/a", true},  {"**/**", "a", true},
        {"*/**/a", "a", false},          {"*/**/a", "x/a", true},
        {"y=[12]/**", "y=2/a", true},    {"y=[12]/**", "y=3/a", false},
        {"x**/a", "xyz/a", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (pattern_fits(cases[i].pattern, cases[i].path) != cases[i].fits)
            fail_msg("%s, %s", cases[i].pattern, cases[i].path);
    assert_true(pattern_leads("x/**/z/*", "x") && pattern_leads("x/**/z/*", "x/y/w"));
    assert_false(pattern_leads("x/**/z/*", "y") || pattern_leads("**", "_x"));
    assert_false(pattern_leads("*/a", "x/a"));
    assert_true(pattern_is_deep("a/**/b") && pattern_is_deep("**"));
    assert_false(pattern_is_deep("a/**b/*") || pattern_is_whole("**/*.csv"));
}

/* Makes the folders of a path, and the file with `text`. */
static void put(const char *path, const char *text) {
    char *folder = memory_copy_string(fixture_path(path));
    for (char *slash = strchr(folder + strlen(fixture_folder) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0755);
        *slash = '/';
    }
    free(folder);
    fixture_text(path, text);
}

/* Checks that an entry means these files, each relative to the scratch folder. */
static void assert_means(const char *entry, const char *const *expected) {
    const char *const entries[] = {entry, NULL};
    char **paths;
    if (source_paths(fixture_folder, entries, &paths))
        fail_msg("%s", error_text());
    for (char **path = paths; *path; path++, expected++) {
        if (!*expected || strcmp(*path, fixture_path(*expected)) != 0)
            fail_msg("%s: %s", entry, *path);
    }
    assert_null(*expected);
    names_free(paths);
}

static void assert_refused(const char *entry, const char *why) {
    const char *const entries[] = {entry, NULL};
    char **paths;
    assert_int_equal(source_paths(fixture_folder, entries, &paths), ERROR_DATA);
    if (!strstr(error_text(), why))
        fail_msg("%s", error_text());
    error_clear();
}

static void an_entry_may_be_a_folder_or_have_folders_in_it(void **state) {
    (void)state;
    const char *const files[] = {"d/y=2/m=1/b.csv",   "d/y=10/m=1/a.csv", "d/y=2/part-00000",
                                 "d/a.parquet",       "d/_SUCCESS",       "d/_spark/x.csv",
                                 "d/.hidden/x.csv",   "d/y=2/.b.csv.crc", "d/README.md",
                                 "d/y=2/m=1/c.CSV.gz"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put(files[i], "1,2\n");
    const char *const all[] = {"d/a.parquet",        "d/y=10/m=1/a.csv", "d/y=2/m=1/b.csv",
                               "d/y=2/m=1/c.CSV.gz", "d/y=2/part-00000", NULL};
    assert_means("d", all);
    assert_means("d/", all);
    assert_means("d/**", all);
    assert_means("[d]/**", all);
    assert_means("**", all);
    assert_means("d/**/*.csv", (const char *const[]){"d/y=10/m=1/a.csv", "d/y=2/m=1/b.csv", NULL});
    assert_means("**/m=*/*.csv",
                 (const char *const[]){"d/y=10/m=1/a.csv", "d/y=2/m=1/b.csv", NULL});
    assert_means("d/y=2/**/*", (const char *const[]){"d/y=2/m=1/b.csv", "d/y=2/m=1/c.CSV.gz",
                                                     "d/y=2/part-00000", NULL});
    assert_means("d/y=2/m=1", (const char *const[]){"d/y=2/m=1/b.csv", "d/y=2/m=1/c.CSV.gz", NULL});
    assert_means("d/**/*.md", (const char *const[]){"d/README.md", NULL});
    put("d/s/dml.db", "");
    put("d/s/x.csv", "1,2\n");
    put("d/job.conf", "data = d\n");
    assert_means("d", all);
    const char *const years[] = {"d/y=10/m=1/a.csv", "d/y=2/m=1/b.csv", "d/y=2/m=1/c.CSV.gz",
                                 "d/y=2/part-00000", NULL};
    const char *const patterns[] = {"d/y=*", "d/y=*/", "d/y=*/**", "[d]/y=*", "**/y=*", "?/[xy]*"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        assert_means(patterns[i], years);
    assert_means("d/y=2/*", (const char *const[]){"d/y=2/part-00000", NULL});
    assert_means("d/y=2/m*", (const char *const[]){"d/y=2/m=1/b.csv", "d/y=2/m=1/c.CSV.gz", NULL});
    assert_refused("d/[s]", "no file matches"); /* a state folder */
    assert_means("d/**/*.conf", (const char *const[]){"d/job.conf", NULL});
    assert_means("d/s", (const char *const[]){"d/s/x.csv", NULL}); /* as the user says */
    assert_refused("d/**/*.svm", "no file matches");
    assert_refused("d/.hidden/**/y.csv", "no file matches");
    put("empty/_SUCCESS", "");
    assert_refused("empty", "is a folder, and no file of data is below it");
}

static void links_are_followed_but_not_in_a_circle(void **state) {
    (void)state;
    put("real/x=1/a.csv", "1,2\n");
    put("linked/b.csv", "1,2\n");
    assert_int_equal(symlink(fixture_path("real"), fixture_path("linked/to")), 0);
    assert_int_equal(symlink(fixture_path("linked"), fixture_path("linked/back")), 0);
    assert_means("linked", (const char *const[]){"linked/b.csv", "linked/to/x=1/a.csv", NULL});
    assert_int_equal(symlink("nowhere", fixture_path("linked/c.csv")), 0);
    const char *const entries[] = {"linked", NULL};
    char **paths;
    assert_int_equal(source_paths(fixture_folder, entries, &paths), ERROR_IO);
    assert_non_null(strstr(error_text(), "cannot look at"));
    error_clear();
}

/* The folders of a path, as NAME=VALUE, each with a semicolon behind it. */
static void assert_folders(const char *base, const char *path, const char *expected) {
    char *paths[] = {(char *)path, NULL}, *found = memory_copy_string("");
    const struct source_options options = {.folders.which = CSV_FOLDERS_AUTO};
    struct source_beside beside = {0};
    source_find_folders(base, paths, &options, false, &beside);
    for (const struct source_folder *folder = beside.folder[0]; folder->name; folder++) {
        char *before = found;
        found = memory_format("%s%s=%s;", before, folder->name, folder->value);
        free(before);
    }
    assert_string_equal(found, expected);
    free(found);
    source_beside_release(&beside);
}

static void folders_of_a_path_are_names_and_values(void **state) {
    (void)state;
    assert_folders("/job", "/job/a=1/b=x/c=3.csv", "a=1;b=x;");
    assert_folders("/job/r=1", "/job/r=1/a=1/x.csv", "a=1;");
    assert_folders("/job/r", "/job/r=1/a=1/x.csv", "r=1;a=1;");
    assert_folders(NULL, "a=1=2/=x/b=/c=__HIVE_DEFAULT_PARTITION__/x.csv", "a=1=2;b=;c=;");
    assert_folders(NULL, "./k%3D%2f=%C3%BC%20%25/100%=%zz/x", "k=/=\xc3\xbc %;100%=%zz;");
    assert_folders(NULL, "a=%00%4/x", "a=%00%4;");
    assert_folders(NULL, "s3://b/p/y=1?2/x.csv", "y=1?2;");
    assert_folders(NULL, "https://h/y=1/x.csv?q=a/z=3/w", "y=1;");
}

SUITE(folders) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deep_pattern_passes_any_number_of_visible_folders),
        cmocka_unit_test(an_entry_may_be_a_folder_or_have_folders_in_it),
        cmocka_unit_test(links_are_followed_but_not_in_a_circle),
        cmocka_unit_test(folders_of_a_path_are_names_and_values),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
