#include "model/summary.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "model/description.h"

#define SUMMARY_BYTES_MAX (UINT64_C(1) << 32)

/* ---- as JSON ---- */

static json_t *number_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/* Adds a list of numbers; nothing if there is none. */
static void add_numbers(json_t *object, const char *member, const double *value, uint64_t count) {
    if (!value)
        return;
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; i++)
        json_array_append_new(list, number_or_null(value[i]));
    json_object_set_new(object, member, list);
}

/* The numbers of the parameters that are marked, rising; `marked` may be NULL. */
static json_t *numbers_json(const struct summary_covariance *covariance, const bool *marked) {
    json_t *list = json_array();
    for (uint64_t i = 0; marked && i < covariance->parameters; i++)
        if (marked[i])
            json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

uint64_t summary_estimated(const struct summary_covariance *covariance) {
    uint64_t estimated = 0;
    for (uint64_t i = 0; covariance->variance && i < covariance->parameters; i++)
        estimated += !(covariance->aliased && covariance->aliased[i]) &&
                     (covariance->elements || !isnan(covariance->variance[i]));
    return estimated;
}

static json_t *covariance_json(const struct summary_covariance *covariance) {
    assert(!covariance->elements || covariance->element_count <= covariance->parameters);
    uint64_t all = covariance->parameters;
    uint64_t count = covariance->elements ? covariance->element_count : all;
    json_t *object = json_pack("{s:I, s:o, s:o, s:b}", "parameters", (json_int_t)all, "aliased",
                               numbers_json(covariance, covariance->aliased), "trace",
                               number_or_null(covariance->trace), "expected", covariance->expected);
    add_numbers(object, "variance", covariance->variance, count);
    add_numbers(object, "sampling", covariance->sampling, count);
    add_numbers(object, "robust", covariance->robust, count);
    add_numbers(object, "clustered", covariance->clustered, count);
    add_numbers(object, "estimate", covariance->estimate, all);
    json_object_set_new(object, "runs_away", numbers_json(covariance, covariance->runs_away));
    if (covariance->elements) {
        /* Which parameters have errors, if not all. */
        json_t *list = json_array();
        for (uint64_t i = 0; i < covariance->element_count; i++)
            json_array_append_new(list, json_integer((json_int_t)covariance->elements[i]));
        json_object_set_new(object, "elements", list);
        json_object_set_new(object, "distance", number_or_null(covariance->distance));
        if (covariance->uncounted)
            json_object_set_new(object, "uncounted", json_true());
    }
    if (covariance->clustered)
        json_object_set_new(object, "clusters",
                            json_pack("{s:s*, s:I, s:I}", "column", covariance->cluster, "count",
                                      (json_int_t)covariance->clusters, "of_one_row",
                                      (json_int_t)covariance->single_rows));
    return object;
}

json_t *summary_json(const json_t *fit, const struct summary_covariance *covariance,
                     const char *why) {
    assert(fit || covariance || why);
    json_t *all = json_pack("{s:i}", "format_version", SUMMARY_FORMAT_VERSION);
    if (fit)
        json_object_set(all, "fit", (json_t *)fit);
    if (covariance)
        json_object_set_new(all, "covariance", covariance_json(covariance));
    if (why)
        json_object_set_new(all, "why", json_string(why));
    return all;
}

/* ---- back from the file ---- */

/* Whether a list that is there has so many numbers or nulls. */
static bool is_list(const json_t *covariance, const char *member, size_t count) {
    const json_t *list = json_object_get(covariance, member);
    if (!list)
        return true;
    bool all = json_is_array(list) && json_array_size(list) == count;
    for (size_t i = 0; i < count && all; i++) {
        const json_t *value = json_array_get(list, i);
        all = json_is_number(value) || json_is_null(value);
    }
    return all;
}

static bool are_numbers(const json_t *list, size_t count) {
    json_int_t last = -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value) || json_integer_value(value) <= last ||
            json_integer_value(value) >= (json_int_t)count)
            return false;
        last = json_integer_value(value);
    }
    return json_is_array(list);
}

static bool is_covariance(const json_t *covariance, const struct model_layout *layout) {
    size_t count =
        model_rows(layout) * layout->features + (layout->intercept ? layout->outputs : 0);
    const json_t *elements = json_object_get(covariance, "elements");
    size_t listed = elements ? json_array_size(elements) : count;
    return json_integer_value(json_object_get(covariance, "parameters")) == (json_int_t)count &&
           are_numbers(json_object_get(covariance, "aliased"), count) &&
           (!elements || are_numbers(elements, count)) &&
           are_numbers(json_object_get(covariance, "runs_away"), count) &&
           is_list(covariance, "variance", listed) && is_list(covariance, "sampling", listed) &&
           is_list(covariance, "robust", listed) && is_list(covariance, "clustered", listed) &&
           is_list(covariance, "estimate", count);
}

static int check_summary(const json_t *all, const struct model *model, const char *path) {
    json_int_t version = json_integer_value(json_object_get(all, "format_version"));
    const char *sha256 = json_string_value(json_object_get(all, "model_sha256"));
    const json_t *covariance = json_object_get(all, "covariance");
    if (version < 1 || version > SUMMARY_FORMAT_VERSION)
        return error_set(ERROR_DATA,
                         "%s has format version %lld, and this program reads version %d: a newer "
                         "or a development version of dml wrote it; use that program, or train the "
                         "model again",
                         path, (long long)version, SUMMARY_FORMAT_VERSION);
    int code = checksum_check_own(all, path);
    if (code)
        return code;
    if (!sha256 || strcmp(sha256, model->sha256) != 0)
        return error_set(ERROR_DATA, "%s is of another model than the one beside it", path);
    if (covariance && !is_covariance(covariance, &model->layout))
        return error_set(ERROR_DATA, "%s does not have a number for each parameter of the model",
                         path);
    return 0;
}

int summary_read(const struct model *model, json_t **summary) {
    char *path = path_join(model->folder, MODEL_SUMMARY), *text = NULL;
    struct stat status;
    size_t length;
    json_error_t error;
    *summary = NULL;
    int code = stat(path, &status) ? 0 : file_read(path, SUMMARY_BYTES_MAX, &text, &length);
    if (!code && text) {
        *summary = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        code = json_is_object(*summary) ? check_summary(*summary, model, path)
                                        : error_set(ERROR_DATA, "%s:%d: not a JSON object: %s",
                                                    path, error.line, error.text);
    }
    if (code) {
        json_decref(*summary);
        *summary = NULL;
    }
    free(text);
    free(path);
    return code;
}
