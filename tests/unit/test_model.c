#define _GNU_SOURCE
/* Models on disk: what is written can be read, and what is damaged is refused. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dirent.h>
#include <openssl/sha.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "model/model.h"
#include "tests/unit/folder_fixture.h"

#define FEATURES 4
#define OUTPUTS 3
#define PARAMETERS ((FEATURES + 1) * OUTPUTS)

static const uint64_t ids[FEATURES] = {70, 3, FEATURE_ID_MAX, 11};
static const uint32_t order[FEATURES] = {1, 3, 0, 2};
static const char *const names[FEATURES] = {"seventy", "na\xef\xe9", "last", "eleven"};
static const char *const classes[OUTPUTS] = {"1", "2", "caf\xc3\xa9"};

static const struct model_layout softmax = {
    .objective = "softmax",
    .outputs = OUTPUTS,
    .intercept = true,
    .features = FEATURES,
    .feature_id = ids,
    .original_order = order,
    .feature_names = names,
    .classes = OUTPUTS,
    .class_names = classes,
};

static size_t entries(const char *path) {
    DIR *list = opendir(path);
    assert_non_null(list);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(list));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(list);
    return count;
}

/* Parameter i of the run's vector. */
static double parameter(uint64_t i) {
    return i == 4 ? -0.0 : (double)i / 7 - 1;
}

static struct model_writer *started(const char *name, const struct model_layout *layout) {
    struct model_writer *writer;
    assert_int_equal(model_writer_new(inside(name), layout, &writer), 0);
    return writer;
}

/* In three slices that cross features, last first. */
static void feed(struct model_writer *writer) {
    static const uint64_t cuts[] = {PARAMETERS, 10, 1, 0};
    for (size_t cut = 0; cut + 1 < sizeof cuts / sizeof cuts[0]; cut++) {
        double slice[PARAMETERS];
        uint64_t first = cuts[cut + 1], count = cuts[cut] - first;
        for (uint64_t i = 0; i < count; i++)
            slice[i] = parameter(first + i);
        assert_int_equal(model_writer_slice(writer, first, count, slice), 0);
    }
}

static void write_model(const char *name) {
    struct model_writer *writer = started(name, &softmax);
    feed(writer);
    json_t *details = json_pack("{s:f, s:s}", "loss", 0.25, "objective", "not this one");
    assert_int_equal(model_writer_publish(writer, details), 0);
    json_decref(details);
}

static void a_model_is_read_as_it_was_written(void **state) {
    (void)state;
    write_model("deep/below/1");
    struct model *model;
    assert_int_equal(model_open(inside("deep/below/1"), &model), 0);
    assert_string_equal(model->layout.objective, "softmax");
    assert_int_equal(model->layout.outputs, OUTPUTS);
    assert_int_equal(model->layout.features, FEATURES);
    assert_true(model->layout.intercept);
    assert_null(model->layout.original_order);
    assert_string_equal(model->layout.class_names[2], "caf\xc3\xa9");
    assert_string_equal(model->layout.feature_names[0], "na\xc3\xaf\xc3\xa9");
    assert_string_equal(model->layout.feature_names[3], "last");
    assert_true(json_real_value(json_object_get(model->details, "loss")) == 0.25);
    model_close(model);
}

static void parameters_are_permuted_to_the_order_of_original_ids(void **state) {
    (void)state;
    write_model("1");
    struct model *model;
    assert_int_equal(model_open(inside("1/model.safetensors"), &model), 0);
    for (uint32_t r = 0; r < FEATURES; r++) {
        assert_int_equal(model->layout.feature_id[r], ids[order[r]]);
        for (uint32_t k = 0; k < OUTPUTS; k++)
            assert_true(model->weight[k * FEATURES + r] == parameter(order[r] * OUTPUTS + k));
    }
    for (uint32_t k = 0; k < OUTPUTS; k++)
        assert_true(model->bias[k] == parameter(FEATURES * OUTPUTS + k));
    assert_false(signbit(model->weight[1 * FEATURES + 0])); /* −0 went in */
    assert_int_equal((uintptr_t)model->weight % 64, 0);
    model_close(model);
}

static void the_hash_is_over_classes_then_original_ids_then_the_intercept(void **state) {
    (void)state;
    double all[PARAMETERS];
    size_t at = 0;
    for (uint32_t k = 0; k < OUTPUTS; k++) {
        for (uint32_t r = 0; r < FEATURES; r++)
            all[at++] = parameter(order[r] * OUTPUTS + k) + 0.0;
        all[at++] = parameter(FEATURES * OUTPUTS + k);
    }
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)all, sizeof all, digest);
    char expected[SHA256_TEXT], actual[SHA256_TEXT];
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(expected + 2 * i, 3, "%02x", digest[i]);

    struct model_writer *writer = started("1", &softmax);
    feed(writer);
    assert_int_equal(model_writer_hash(writer, actual), 0);
    assert_string_equal(actual, expected);
    model_writer_discard(writer);
}

/* The view of one model against another of the same parameters as it is read. */
static void assert_view(const struct model_layout *layout) {
    struct model view, *model;
    struct model_writer *published = started("2", layout), *writer = started("1", layout);
    feed(published);
    assert_int_equal(model_writer_publish(published, NULL), 0);
    assert_int_equal(model_open(inside("2"), &model), 0);
    assert_int_equal(model_writer_view(writer, &view), ERROR_INTERNAL);
    error_clear();
    feed(writer);
    assert_int_equal(model_writer_view(writer, &view), 0);
    uint64_t features = model->layout.features;
    assert_int_equal(view.layout.features, features);
    assert_memory_equal(view.weight, model->weight, OUTPUTS * features * sizeof *view.weight);
    assert_memory_equal(view.bias, model->bias, OUTPUTS * sizeof *view.bias);
    assert_memory_equal(view.layout.feature_id, model->layout.feature_id,
                        features * sizeof *view.layout.feature_id);
    for (uint64_t r = 0; r < features; r++)
        assert_string_equal(view.layout.feature_names[r], model->layout.feature_names[r]);
    assert_null(view.layout.original_order);
    assert_int_equal(view.layout.classes, model->layout.classes);
    model_close(model);
    model_writer_discard(writer);
}

static void the_view_of_a_writer_is_the_model_to_be(void **state) {
    (void)state;
    static const uint64_t kept_id[] = {5};
    static const double kept_weight[OUTPUTS] = {0.5, -0.25, 8};
    static const char *const kept_name[] = {"five"};
    const struct model_kept kept = {1, kept_id, kept_weight, kept_name};
    struct model_layout layout = softmax;
    assert_view(&layout);
    layout.kept = &kept;
    assert_view(&layout);
}

static void a_model_without_intercept_has_no_bias(void **state) {
    (void)state;
    struct model_layout layout = {.objective = "squared",
                                  .outputs = 1,
                                  .features = FEATURES,
                                  .feature_id = ids,
                                  .original_order = order};
    struct model_writer *writer = started("1", &layout);
    assert_int_equal(model_writer_slice(writer, 0, FEATURES, (double[]){1, 2, 3, 4}), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    struct model *model;
    assert_int_equal(model_open(inside("1"), &model), 0);
    assert_null(model->bias);
    assert_null(model->layout.feature_names);
    assert_int_equal(model->layout.classes, 0);
    assert_true(model->weight[0] == 2 && model->weight[3] == 3);
    model_close(model);
}

static void a_state_folder_stands_for_its_current_model(void **state) {
    (void)state;
    write_model("models/1");
    write_model("models/2");
    struct model *model;
    assert_int_equal(model_open(folder, &model), ERROR_DATA);
    assert_non_null(strstr(error_text(), folder));
    error_clear();
    for (const char *const *name = (const char *const[]){"1", "2", NULL}; *name; name++) {
        char target[16] = "";
        assert_int_equal(model_set_current(inside("models"), *name), 0);
        assert_int_equal(readlink(inside("models/current"), target, sizeof target - 1), 1);
        assert_string_equal(target, *name);
        assert_int_equal(model_open(folder, &model), 0);
        model_close(model);
    }
    assert_int_equal(entries(inside("models")), 3);
}

static void a_model_that_is_there_is_replaced(void **state) {
    (void)state;
    write_model("1");
    struct model_writer *writer = started("1/", &softmax);
    double zeros[PARAMETERS] = {0};
    assert_int_equal(model_writer_slice(writer, 0, PARAMETERS, zeros), 0);
    assert_int_equal(model_writer_publish(writer, NULL), 0);
    struct model *model;
    assert_int_equal(model_open(inside("1"), &model), 0);
    assert_true(model->weight[0] == 0);
    model_close(model);
    assert_int_equal(entries(folder), 1);
}

static void a_parameter_that_is_not_finite_is_refused(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        error_clear();
        struct model_writer *writer = started("1", &softmax);
        assert_int_equal(model_writer_slice(writer, 2, 1, bad + i), ERROR_INTERNAL);
        model_writer_discard(writer);
        assert_int_equal(entries(folder), 0);
    }
}

static void parameters_beyond_the_model_are_refused(void **state) {
    (void)state;
    struct model_writer *writer = started("1", &softmax);
    double values[PARAMETERS] = {0};
    assert_int_equal(model_writer_slice(writer, 1, PARAMETERS, values), ERROR_INTERNAL);
    assert_int_equal(model_writer_slice(writer, UINT64_MAX, 2, values), ERROR_INTERNAL);
    model_writer_discard(writer);
}

static void an_unfinished_model_is_not_published(void **state) {
    (void)state;
    char text[SHA256_TEXT];
    struct model_writer *writer = started("1", &softmax);
    assert_int_equal(model_writer_slice(writer, 0, 1, &(double){1}), 0);
    assert_int_equal(model_writer_hash(writer, text), ERROR_INTERNAL);
    assert_int_equal(model_writer_publish(writer, NULL), ERROR_INTERNAL);
    assert_int_equal(entries(folder), 0);
}

static void a_failed_publication_leaves_nothing_behind(void **state) {
    (void)state;
    struct model_writer *writer = started("1", &softmax);
    feed(writer);
    FILE *file = fopen(inside("1"), "w"); /* a file where the folder should go */
    assert_non_null(file);
    fclose(file);
    assert_int_equal(model_writer_publish(writer, NULL), ERROR_CREATE);
    assert_non_null(strstr(error_text(), inside("1")));
    assert_int_equal(entries(folder), 1);
}

static void a_model_too_large_for_the_disk_is_an_error_at_the_start(void **state) {
    (void)state;
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    struct model_writer *writer;
    int code = model_writer_new(inside("1"), &softmax, &writer);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(code, ERROR_IO);
    assert_int_equal(entries(folder), 0);
}

/* ---- damaged files ---- */

struct damage {
    const char *what;
    const char *find, *replace; /* of equal length, in the header; or */
    long cut;                   /* bytes kept; negative: taken off the end; or */
    uint64_t header_bytes;      /* written over the header's length */
    const char *says;
};

static const struct damage damages[] = {
    {.what = "empty", .cut = 1, .says = "no safetensors"},
    {.what = "cut in the header", .cut = 60, .says = "cut short"},
    {.what = "cut in the data", .cut = -1, .says = "cut short"},
    {.what = "header beyond the file", .header_bytes = 1 << 20, .says = "behind it"},
    {.what = "header beyond memory", .header_bytes = UINT64_MAX, .says = "behind it"},
    {.what = "header ends early", .header_bytes = 9, .says = "JSON"},
    {.what = "type", .find = "F64", .replace = "F32", .says = "F32"},
    {.what = "rows", .find = "[3,4]", .replace = "[4,3]", .says = "bias"},
    {.what = "columns", .find = "[3,4]", .replace = "[3,5]", .says = "feature_id"},
    {.what = "negative", .find = "[3,4]", .replace = "[3,-]", .says = "JSON"},
    {.what = "no outputs", .find = "[3,4]", .replace = "[0,4]", .says = "shape"},
    {.what = "a vector", .find = "[3,4]", .replace = "[ 12]", .says = "shape"},
    {.what = "offsets", .find = "[0,96]", .replace = "[0,88]", .says = "shape"},
    {.what = "offsets back", .find = "[0,96]", .replace = "[96,0]", .says = "weight"},
    {.what = "offsets far", .find = "[0,96]", .replace = "[0,9e]", .says = "JSON"},
    {.what = "no weight", .find = "weight", .replace = "height", .says = "weight"},
    {.what = "version", .find = "version\":\"1\"", .replace = "version\":\"9\"", .says = "newer"},
    {.what = "other program",
     .find = "format_version",
     .replace = "somebody_elses",
     .says = "not a model"},
    {.what = "data",
     .find = "\0\0\0\0\0\0\xf0\xbf",
     .replace = "\0\0\0\0\0\0\xf8\xbf",
     .says = "damaged"}, /* −1 → −1.5 */
};

static void overwrite(const char *path, const void *data, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    fclose(file);
}

static void apply(const struct damage *damage, const char *path) {
    char *data;
    size_t length, size = damage->find && damage->find[0] == '\0' ? 8 : 0;
    assert_int_equal(file_read(path, 1 << 20, &data, &length), 0);
    if (damage->find) {
        size = size ? size : strlen(damage->find);
        char *at = memmem(data, length, damage->find, size);
        assert_non_null(at);
        memcpy(at, damage->replace, size);
    }
    if (damage->header_bytes)
        memcpy(data, &damage->header_bytes, 8);
    if (damage->cut)
        length = damage->cut > 0 ? (size_t)damage->cut : length + (size_t)damage->cut;
    overwrite(path, data, length);
    free(data);
}

static void damaged_tensors_are_refused_by_name(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        write_model("1");
        apply(damages + i, inside("1/model.safetensors"));
        struct model *model = NULL;
        error_clear();
        int code = model_open(inside("1"), &model);
        if (code != ERROR_DATA || !strstr(error_text(), inside("1/model.safetensors")) ||
            !strstr(error_text(), damages[i].says))
            fail_msg("%s: %d %s", damages[i].what, code, error_text());
    }
}

static void a_damaged_description_is_refused_by_name(void **state) {
    (void)state;
    static const struct damage wrong[] = {
        {.what = "cut", .cut = -9, .says = "JSON"},
        {.what = "version", .find = "version\": 1", .replace = "version\": 2", .says = "newer"},
        {.what = "no version",
         .find = "format_version",
         .replace = "format_verzion",
         .says = "format_version"},
        {.what = "objective", .find = "softmax", .replace = "squared", .says = "squared"},
        {.what = "no such objective", .find = "softmax", .replace = "hardmax", .says = "hardmax"},
        {.what = "classes",
         .find = "\"classes\"",
         .replace = "\"clusses\"",
         .says = "and 0 classes"},
        {.what = "names", .find = "\"seventy\",", .replace = "          ", .says = "3 features"},
        {.what = "name", .find = "\"seventy\"", .replace = "777777777", .says = "entry 3"},
        {.what = "hash",
         .find = "model_sha256\": \"",
         .replace = "model_sha256\":\"-",
         .says = "hash"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_model("1");
        apply(wrong + i, inside("1/model.json"));
        struct model *model = NULL;
        error_clear();
        int code = model_open(inside("1"), &model);
        if (code != ERROR_DATA || !strstr(error_text(), inside("1/model.json")) ||
            !strstr(error_text(), wrong[i].says))
            fail_msg("%s: %d %s", wrong[i].what, code, error_text());
    }
    write_model("1");
    unlink(inside("1/model.json"));
    struct model *model;
    error_clear();
    assert_int_equal(model_open(inside("1"), &model), ERROR_DATA);
}

/* ---- checksums ---- */

static bool same_texts(const char *const *a, const char *const *b, uint64_t count) {
    bool same = !a == !b;
    for (uint64_t i = 0; a && same && i < count; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

/* Whether scoring finds the same in both: layout, parameters, and how data is to be read. */
static bool scores_alike(const struct model *a, const struct model *b) {
    const struct model_layout *x = &a->layout, *y = &b->layout;
    size_t weights = x->outputs * x->features * sizeof *a->weight;
    return strcmp(x->objective, y->objective) == 0 && x->outputs == y->outputs &&
           x->intercept == y->intercept && x->features == y->features && x->classes == y->classes &&
           same_texts(x->class_names, y->class_names, x->classes) &&
           same_texts(x->feature_names, y->feature_names, x->features) &&
           !memcmp(x->feature_id, y->feature_id, x->features * sizeof *x->feature_id) &&
           !memcmp(a->weight, b->weight, weights) &&
           !memcmp(a->bias, b->bias, x->outputs * sizeof *a->bias) &&
           json_equal(json_object_get(a->details, "source"), json_object_get(b->details, "source"));
}

static void flip_every_bit(const char *name, const struct model *sound) {
    char *data, *path = memory_copy_string(inside(name));
    size_t length, opened = 0;
    assert_int_equal(file_read(path, 1 << 20, &data, &length), 0);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        struct model *model = NULL;
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
        overwrite(path, data, length);
        if (model_open(inside("flipped"), &model) == 0) {
            if (!scores_alike(model, sound))
                fail_msg("bit %zu of %s is not noticed", bit, path);
            opened++;
        }
        error_clear();
        model_close(model);
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
    }
    overwrite(path, data, length);
    free(path);
    free(data);
    assert_true(opened < length / 2); /* most of what is there means something */
}

static void a_flipped_bit_of_either_file_is_refused_or_changes_nothing_in_scoring(void **state) {
    (void)state;
    struct model *sound;
    struct model_writer *writer = started("flipped", &softmax);
    feed(writer);
    json_t *details =
        json_pack("{s:f, s:{s:s, s:i}}", "loss", 0.1, "source", "format", "csv", "bad_lines", 3);
    assert_int_equal(model_writer_publish(writer, details), 0);
    json_decref(details);
    assert_int_equal(model_open(inside("flipped"), &sound), 0);
    char *tensors;
    size_t length;
    assert_int_equal(file_read(inside("flipped/model.safetensors"), 1 << 20, &tensors, &length), 0);
    struct model own = *sound; /* the file changes below its mapping */
    own.weight =
        (const double *)(tensors + ((const char *)sound->weight - (const char *)sound->mapping));
    own.bias =
        (const double *)(tensors + ((const char *)sound->bias - (const char *)sound->mapping));
    own.layout.feature_id = (const uint64_t *)(tensors + ((const char *)sound->layout.feature_id -
                                                          (const char *)sound->mapping));
    flip_every_bit("flipped/model.json", &own);
    flip_every_bit("flipped/model.safetensors", &own);
    model_close(sound);
    free(tensors);
}

/* Takes a member out of a model.json by hand. */
static void take_out(const char *path, const char *member) {
    json_t *all = json_load_file(path, 0, NULL);
    assert_int_equal(json_object_del(all, member), 0);
    assert_int_equal(json_dump_file(all, path, JSON_INDENT(4)), 0);
    json_decref(all);
}

static void a_model_without_checksums_opens_and_may_be_edited(void **state) {
    (void)state;
    struct model *model;
    write_model("1");
    apply(&(struct damage){.find = "seventy", .replace = "SEVENTY"}, inside("1/model.json"));
    assert_int_equal(model_open(inside("1"), &model), ERROR_DATA);
    assert_non_null(strstr(error_text(), "take that member out"));
    error_clear();
    take_out(inside("1/model.json"), "json_sha256");
    assert_int_equal(model_open(inside("1"), &model), 0);
    assert_string_equal(model->layout.feature_names[2], "SEVENTY");
    model_close(model);
    take_out(inside("1/model.json"), "tensors_sha256");
    assert_int_equal(model_open(inside("1"), &model), 0);
    model_close(model);
}

#define HOLDS(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        HOLDS(a_model_is_read_as_it_was_written),
        HOLDS(parameters_are_permuted_to_the_order_of_original_ids),
        HOLDS(the_hash_is_over_classes_then_original_ids_then_the_intercept),
        HOLDS(the_view_of_a_writer_is_the_model_to_be),
        HOLDS(a_model_without_intercept_has_no_bias),
        HOLDS(a_state_folder_stands_for_its_current_model),
        HOLDS(a_model_that_is_there_is_replaced),
        HOLDS(a_parameter_that_is_not_finite_is_refused),
        HOLDS(parameters_beyond_the_model_are_refused),
        HOLDS(an_unfinished_model_is_not_published),
        HOLDS(a_failed_publication_leaves_nothing_behind),
        HOLDS(a_model_too_large_for_the_disk_is_an_error_at_the_start),
        HOLDS(damaged_tensors_are_refused_by_name),
        HOLDS(a_damaged_description_is_refused_by_name),
        HOLDS(a_flipped_bit_of_either_file_is_refused_or_changes_nothing_in_scoring),
        HOLDS(a_model_without_checksums_opens_and_may_be_edited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
