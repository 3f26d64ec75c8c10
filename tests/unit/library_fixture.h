/* Small models of two files each, written by hand, and opened by the shared library. */
#ifndef DML_TESTS_UNIT_LIBRARY_FIXTURE_H
#define DML_TESTS_UNIT_LIBRARY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dml/model.h>

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "test-folder-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_file(const char *name, const void *data, size_t length) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* A tensors' file of three features, whose weights are 1, 10 and 100, and a bias of 1000. */
#define TENSORS_BYTES (8 + 312 + 7 * 8)

static void make_tensors(const uint64_t ids[3], unsigned char tensors[TENSORS_BYTES]) {
    static const double numbers[] = {1, 10, 100, 1000};
    uint64_t length = 312;
    memset(tensors, ' ', TENSORS_BYTES);
    memcpy(tensors, &length, 8);
    memcpy(tensors + 8 + length, numbers, sizeof numbers);
    memcpy(tensors + 8 + length + sizeof numbers, ids, 3 * 8);
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"dml\",\"format_version\":\"1\"},"
        "\"weight\":{\"dtype\":\"F64\",\"shape\":[1,3],\"data_offsets\":[0,24]},"
        "\"bias\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[24,32]},"
        "\"feature_id\":{\"dtype\":\"U64\",\"shape\":[3],\"data_offsets\":[32,56]}}";
    memcpy(tensors + 8, header, sizeof header - 1);
}

static void write_model(const char *json, const uint64_t ids[3]) {
    unsigned char tensors[TENSORS_BYTES];
    make_tensors(ids, tensors);
    write_file("model.safetensors", tensors, sizeof tensors);
    write_file("model.json", json, strlen(json));
}

static const char of_numbers[] =
    "{\"format\":\"dml\",\"format_version\":1,\"objective\":\"squared\"}";
static const uint64_t of_numbers_ids[] = {3, 5, 9};

/* Columns 1 and 3 are numbers; the third feature is that column 3 is missing. */
static const char of_table[] =
    "{\"format\":\"dml\",\"format_version\":1,\"objective\":\"logistic\",\"classes\":[\"no\","
    "\"yes\"],"
    "\"threshold\":{\"rule\":\"0.75\",\"probabilities\":[0.75]},"
    "\"preparation\":{\"columns\":[{\"name\":\"size\",\"kind\":\"number\",\"mean\":-95},"
    "{\"name\":\"town\",\"kind\":\"category\"},{\"name\":\"age\",\"kind\":\"number\",\"mean\":-100}"
    ","
    "{\"name\":\"y\",\"kind\":\"label\"}],\"missing\":[\"?\"]}}";
static const uint64_t of_table_ids[] = {1, 3, 9};

static struct dml_model *opened(void) {
    struct dml_model *model;
    if (dml_model_open(folder, &model))
        fail_msg("%s", dml_error_text());
    return model;
}

static struct dml_model *opened_numbers(void) {
    write_model(of_numbers, of_numbers_ids);
    return opened();
}

static void assert_says(int code, int expected, const char *words) {
    if (code != expected || !strstr(dml_error_text(), words))
        fail_msg("%d: %s", code, dml_error_text());
}

#endif
