#define _GNU_SOURCE
/* Damaged models: a file that is cut, altered or edited is refused by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/unit/model_fixture.h"

struct damage {
    const char *what;
    const char *find, *replace; /* of equal length, in the header; or */
    long cut;                   /* bytes kept; negative: taken off the end; or */
    long hole;                  /* bytes that the file is longer by, none of them on the disk; or */
    uint64_t header_bytes;      /* written over the header's length */
    const char *says;
};

static const struct damage damages[] = {
    {.what = "empty", .cut = 1, .says = "no safetensors"},
    {.what = "cut in the header", .cut = 60, .says = "cut short"},
    {.what = "cut in the data", .cut = -1, .says = "cut short"},
    {.what = "a hole behind the data", .hole = 1l << 40, .says = "follow its tensors"},
    {.what = "header beyond the file", .header_bytes = 1 << 20, .says = "after the end"},
    {.what = "header beyond memory", .header_bytes = UINT64_MAX, .says = "after the end"},
    {.what = "header ends early", .header_bytes = 9, .says = "JSON"},
    {.what = "type", .find = "F64", .replace = "F32", .says = "F32"},
    {.what = "rows", .find = "[3,4]", .replace = "[4,3]", .says = "bias"},
    {.what = "columns", .find = "[3,4]", .replace = "[3,5]", .says = "shape"},
    {.what = "ids", .find = "[4]", .replace = "[5]", .says = "feature_id"},
    {.what = "negative", .find = "[3,4]", .replace = "[3,-]", .says = "JSON"},
    {.what = "no outputs", .find = "[3,4]", .replace = "[0,4]", .says = "shape"},
    {.what = "a vector", .find = "[3,4]", .replace = "[ 12]", .says = "shape"},
    {.what = "offsets", .find = "[0,96]", .replace = "[0,88]", .says = "shape"},
    {.what = "offsets back", .find = "[0,96]", .replace = "[96,0]", .says = "weight"},
    {.what = "offsets far", .find = "[0,96]", .replace = "[0,9e]", .says = "JSON"},
    {.what = "no weight", .find = "weight", .replace = "height", .says = "weight"},
    {.what = "version",
     .find = "\"1\",\"objective\":\"softmax\"",
     .replace = "\"99\",\"objective\":\"softma\"",
     .says = "newer"},
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
    if (damage->hole)
        assert_int_equal(truncate(path, (off_t)length + damage->hole), 0);
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
        {.what = "version",
         .find = "version\": 1",
         .replace = "version\":99",
         .says = "version 99, and this program reads version 1: a newer or a development version"},
        {.what = "of a development version",
         .find = "\"format\": ",
         .replace = "\"formal\": ",
         .says = "a newer or a development version of dml wrote it; use that program, or train"},
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

SUITE(model_damage) {
    const struct CMUnitTest tests[] = {
        HOLDS(damaged_tensors_are_refused_by_name),
        HOLDS(a_damaged_description_is_refused_by_name),
        HOLDS(a_flipped_bit_of_either_file_is_refused_or_changes_nothing_in_scoring),
        HOLDS(a_model_without_checksums_opens_and_may_be_edited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
