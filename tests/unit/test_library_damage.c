/* What is no model, or not any more, is refused with a text; and memory that is not to be had is an
 * error of the call and not the end of the process. */
#include <sys/resource.h>

#include "tests/unit/suites.h"
#include "tests/unit/library_fixture.h"

static void assert_refused(int expected) {
    struct dml_model *model = NULL;
    int code = dml_model_open(folder, &model);
    if (code != expected || model || !*dml_error_text())
        fail_msg("%d: %s", code, dml_error_text());
}

static void a_file_that_is_cut_anywhere_is_refused(void **state) {
    (void)state;
    unsigned char tensors[TENSORS_BYTES];
    write_model(of_table, of_table_ids);
    make_tensors(of_table_ids, tensors);
    for (size_t length = 0; length < TENSORS_BYTES; length++) {
        write_file("model.safetensors", tensors, length);
        assert_refused(DML_DATA);
    }
    write_file("model.safetensors", tensors, TENSORS_BYTES);
    for (size_t length = 0; length < sizeof of_table - 1; length++) {
        write_file("model.json", of_table, length);
        assert_refused(DML_DATA);
    }
}

static void a_byte_that_is_changed_never_harms(void **state) {
    (void)state;
    unsigned char tensors[TENSORS_BYTES];
    char json[sizeof of_table];
    struct dml_model *model;
    write_model(of_table, of_table_ids);
    for (size_t i = 0; i < 8 + 312; i++) {
        make_tensors(of_table_ids, tensors);
        tensors[i] = (unsigned char)(tensors[i] ^ 1 << i % 8);
        write_file("model.safetensors", tensors, sizeof tensors);
        if (!dml_model_open(folder, &model))
            dml_model_close(model);
    }
    make_tensors(of_table_ids, tensors);
    write_file("model.safetensors", tensors, sizeof tensors);
    for (size_t i = 0; i < sizeof json - 1; i++) {
        memcpy(json, of_table, sizeof json);
        json[i] = (char)(json[i] ^ 1 << i % 7);
        write_file("model.json", json, sizeof json - 1);
        if (!dml_model_open(folder, &model))
            dml_model_close(model);
    }
}

static void what_is_no_model_is_refused(void **state) {
    (void)state;
    struct dml_model *model = opened_numbers();
    dml_model_close(model);
    assert_says(dml_model_open("no-such-folder", &model), DML_DATA, "No such file");
    assert_null(model);
    write_file("model.json", "{}", 2);
    assert_says(dml_model_open(folder, &model), DML_DATA, "no format_version");
    const char newer[] = "{\"format\":\"dml\",\"format_version\":9999}";
    write_file("model.json", newer, sizeof newer - 1);
    assert_says(dml_model_open(folder, &model), DML_DATA, "9999");
    write_file("model.safetensors", "PK\3\4, as other programs write", 29);
    assert_says(dml_model_open(folder, &model), DML_DATA, "no safetensors file");
}

/* 2^61 features have 2^64 bytes, which a number of 64 bits takes for none. */
static void a_tensor_that_is_larger_than_any_file_is_refused(void **state) {
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"dml\",\"format_version\":\"1\",\"objective\":\"plugin_"
        "own\"},"
        "\"own\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]},"
        "\"feature_id\":{\"dtype\":\"U64\",\"shape\":[2305843009213693952],"
        "\"data_offsets\":[8,8]}}";
    unsigned char tensors[8 + 256 + 8];
    struct dml_model *model;
    uint64_t length = 256;
    (void)state;
    write_model(of_numbers, of_numbers_ids);
    memset(tensors, ' ', sizeof tensors);
    memcpy(tensors, &length, 8);
    memcpy(tensors + 8, header, sizeof header - 1);
    write_file("model.safetensors", tensors, sizeof tensors);
    assert_says(dml_model_open(folder, &model), DML_DATA, "tensor feature_id does not fit");
}

/* So many columns that a limit below holds all else. */
#define COLUMNS (1 << 22)

/* A sanitizer needs memory of its own, and ends the process without. */
#if !SANITIZED
static void want_of_memory_is_an_error(void **state) {
    (void)state;
    struct dml_model *model = opened_numbers();
    struct dml_scorer *scorer;
    uint64_t *ids = malloc(COLUMNS * sizeof *ids);
    struct rlimit before, limit;
    for (uint64_t i = 0; i < COLUMNS; i++)
        ids[i] = COLUMNS - i;
    getrlimit(RLIMIT_DATA, &before);
    limit = (struct rlimit){1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    int code = dml_scorer_of_ids(model, COLUMNS, ids, &scorer);
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_says(code, DML_UNAVAILABLE, "out of memory");
    free(ids);
    dml_model_close(model);
}
#endif

SUITE(library_damage) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(a_byte_that_is_changed_never_harms),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(a_tensor_that_is_larger_than_any_file_is_refused),
#if !SANITIZED
        cmocka_unit_test(want_of_memory_is_an_error),
#endif
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
