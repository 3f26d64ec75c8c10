#include "model/tensors.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "model/family.h"

#define ALIGNMENT 64
#define PREFIX_BYTES 8 /* the header's length */

/* The hashes of a shorter file take less than a millisecond. */
#define WORTH_A_THREAD (UINT64_C(1) << 20)

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are mapped as they are stored");
static_assert(sizeof(double) == 8 && sizeof(size_t) == 8, "tensors are mapped as they are stored");

static json_t *shape_of(uint64_t rows, uint64_t columns, bool matrix) {
    return matrix ? json_pack("[I, I]", (json_int_t)rows, (json_int_t)columns)
                  : json_pack("[I]", (json_int_t)columns);
}

/* Adds a tensor of `bytes` at *offset, counted from the end of the header. */
static void add_tensor(json_t *header, const char *name, const char *type, json_t *shape,
                       size_t *offset, size_t bytes) {
    json_t *tensor = json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape,
                               "data_offsets", (json_int_t)*offset, (json_int_t)(*offset + bytes));
    json_object_set_new(header, name, tensor);
    *offset += bytes;
}

bool tensors_is_matrix(const struct layout_tensor *tensor) {
    return tensor->name[0] == 'W';
}

static void add_vector(json_t *header, const struct tensors *tensors, size_t *offset) {
    for (uint32_t i = 0; i < tensors->vector.count; i++) {
        const struct layout_tensor *tensor = &tensors->vector.tensor[i];
        bool matrix = tensors->matrices || tensors_is_matrix(tensor);
        add_tensor(header, tensor->name, "F64", shape_of(tensor->rows, tensor->columns, matrix),
                   offset, 8 * tensor->rows * tensor->columns);
    }
}

char *tensors_plan(struct tensors *tensors, const char *objective) {
    bool vector = tensors->vector.count > 0;
    char version[16];
    snprintf(version, sizeof version, "%d", MODEL_FORMAT_VERSION);
    json_t *header = json_pack("{s:{s:s, s:s, s:s}}", "__metadata__", "format", MODEL_FORMAT,
                               "format_version", version, "objective", objective);
    size_t offset = 0;
    if (vector)
        add_vector(header, tensors, &offset);
    else {
        uint64_t k = tensors->rows, f = tensors->features;
        add_tensor(header, TENSOR_WEIGHT, "F64", shape_of(k, f, true), &offset, 8 * k * f);
        tensors->bias = tensors->biases ? offset : 0;
        if (tensors->biases)
            add_tensor(header, TENSOR_BIAS, "F64", shape_of(1, tensors->biases, false), &offset,
                       8 * (size_t)tensors->biases);
    }
    tensors->feature_id = offset;
    add_tensor(header, "feature_id", "U64", shape_of(1, tensors->features, false), &offset,
               8 * tensors->features);
    tensors->idf = tensors->weighs_words ? offset : 0;
    if (tensors->weighs_words)
        add_tensor(header, "idf", "F64", shape_of(1, tensors->features, false), &offset,
                   8 * tensors->features);
    tensors->mean = tensors->has_means ? offset : 0;
    if (tensors->has_means)
        add_tensor(header, "mean", "F64", shape_of(1, tensors->features, false), &offset,
                   8 * tensors->features);

    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    uint64_t length = strlen(text);
    size_t start = (PREFIX_BYTES + length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *prefix = memory_new(start, 1);
    uint64_t padded = start - PREFIX_BYTES;
    memcpy(prefix, &padded, PREFIX_BYTES);
    memset(prefix + PREFIX_BYTES, ' ', padded);
    memcpy(prefix + PREFIX_BYTES, text, length);
    free(text);

    assert(start % ALIGNMENT == 0 && offset % 8 == 0);
    tensors->weight = start;
    tensors->bias += tensors->biases ? start : 0;
    tensors->feature_id += start;
    tensors->idf += tensors->weighs_words ? start : 0;
    tensors->mean += tensors->has_means ? start : 0;
    tensors->bytes = start + offset;
    return prefix;
}

bool tensors_described(const json_t *header, const char *name, struct described *tensor) {
    json_int_t begin, end;
    json_t *shape;
    const json_t *entry = json_object_get(header, name);
    if (json_unpack((json_t *)entry, "{s:s, s:o, s:[I, I]}", "dtype", &tensor->type, "shape",
                    &shape, "data_offsets", &begin, &end))
        return false;
    tensor->dimensions = json_array_size(shape);
    if (!json_is_array(shape) || tensor->dimensions > 2)
        return false;
    for (size_t i = 0; i < tensor->dimensions; i++) {
        const json_t *dimension = json_array_get(shape, i);
        json_int_t size = json_integer_value(dimension);
        if (!json_is_integer(dimension) || size < 0)
            return false;
        tensor->dimension[i] = (uint64_t)size;
    }
    tensor->begin = (uint64_t)begin;
    tensor->end = (uint64_t)end;
    return begin >= 0 && end >= begin;
}

int tensors_place(const char *path, size_t data, size_t length, const char *name,
                  const struct described *tensor, const char *type, uint64_t elements, size_t *at) {
    if (strcmp(tensor->type, type))
        return error_set(ERROR_DATA, "%s: tensor %s is of type %s, not %s", path, name,
                         tensor->type, type);
    if (tensor->end > length - data)
        return error_set(ERROR_DATA,
                         "%s is cut short: tensor %s ends %llu bytes after the end of the file",
                         path, name, (unsigned long long)(tensor->end - (length - data)));
    uint64_t bytes = tensor->end - tensor->begin; /* 8 * elements may be more than any number */
    if (bytes / 8 != elements || bytes % 8 || (data + tensor->begin) % 8)
        return error_set(ERROR_DATA, "%s: the place of tensor %s does not fit its shape", path,
                         name);
    *at = data + tensor->begin;
    return 0;
}

int tensors_check_version(const char *path, const json_t *members, long long version) {
    const char *format = json_string_value(json_object_get(members, "format"));
    if (format && !strcmp(format, MODEL_FORMAT) && version <= MODEL_FORMAT_VERSION)
        return 0;
    return error_set(ERROR_DATA,
                     "%s has format version %lld, and this program reads version %d: a newer or a "
                     "development version of dml wrote it; use that program, or train the model "
                     "again",
                     path, version, MODEL_FORMAT_VERSION);
}

static int check_version(const char *path, const json_t *header) {
    const json_t *metadata = json_object_get(header, "__metadata__");
    const char *text = json_string_value(json_object_get(metadata, "format_version"));
    char *end = NULL;
    long version = text ? strtol(text, &end, 10) : 0;
    if (version < 1 || *end)
        return error_set(ERROR_DATA, "%s holds tensors, but not a model of this program", path);
    return tensors_check_version(path, metadata, version);
}

int tensors_place_vector(const char *path, const json_t *header, size_t data, size_t length,
                         struct tensors *tensors) {
    const struct layout *vector = &tensors->vector;
    for (uint32_t i = 0; i < vector->count; i++) {
        const struct layout_tensor *tensor = &vector->tensor[i];
        struct described found;
        size_t at = 0;
        tensors_described(header, tensor->name, &found);
        int code = tensors_place(path, data, length, tensor->name, &found, "F64",
                                 tensor->rows * tensor->columns, &at);
        if (code)
            return code;
        if (i == 0)
            tensors->weight = at;
        if (at != tensors->weight + 8 * tensor->first)
            return error_set(ERROR_DATA, "%s: tensor %s does not follow the one before it", path,
                             tensor->name);
    }
    return 0;
}

/* A tensor with an element a feature. */
static int place_by_feature(const char *path, const json_t *header, size_t data, size_t length,
                            const char *name, const char *type, uint64_t features, size_t *at) {
    struct described found;
    if (!tensors_described(header, name, &found))
        return error_set(ERROR_DATA, "%s lacks a well-formed %s", path, name);
    if (found.dimensions != 1 || found.dimension[0] != features)
        return error_set(ERROR_DATA, "%s: tensor %s is not of shape [%llu]", path, name,
                         (unsigned long long)features);
    return tensors_place(path, data, length, name, &found, type, features, at);
}

static int place_all(const char *path, const json_t *header, size_t data, size_t length,
                     struct tensors *tensors) {
    const struct model_family *family = model_family_of_header(header);
    int code = check_version(path, header);
    if (!code)
        code = family->place(path, header, data, length, tensors);
    if (code)
        return code;
    tensors->family = family;
    code = place_by_feature(path, header, data, length, "feature_id", "U64", tensors->features,
                            &tensors->feature_id);
    tensors->weighs_words = json_object_get(header, "idf") != NULL;
    /* A plug-in's tensor of this name is its own. */
    tensors->has_means = !family->family->own_tensors && json_object_get(header, "mean") != NULL;
    if (!code && tensors->weighs_words)
        code = place_by_feature(path, header, data, length, "idf", "F64", tensors->features,
                                &tensors->idf);
    if (!code && tensors->has_means)
        code = place_by_feature(path, header, data, length, "mean", "F64", tensors->features,
                                &tensors->mean);
    return code;
}

/* All of the file is hashed, so that what stands after the tensors would be read first, however
 * much it is. */
static int check_length(const char *path, const json_t *header, size_t data, size_t length) {
    const char *name;
    json_t *tensor;
    size_t end = 0;
    json_object_foreach((json_t *)(uintptr_t)header, name, tensor) {
        struct described found;
        if (strcmp(name, "__metadata__") && tensors_described(header, name, &found) &&
            found.end > end)
            end = found.end;
    }
    if (length - data <= end)
        return 0;
    return error_set(ERROR_DATA, "%s is damaged: %zu bytes follow its tensors", path,
                     length - data - end);
}

int tensors_parse(const char *path, const void *file, size_t length, struct tensors *tensors) {
    uint64_t header_bytes;
    if (length < PREFIX_BYTES)
        return error_set(ERROR_DATA, "%s is no safetensors file: it has %zu bytes", path, length);
    memcpy(&header_bytes, file, PREFIX_BYTES);
    if (header_bytes > length - PREFIX_BYTES)
        return error_set(
            ERROR_DATA,
            "%s is no safetensors file, or cut short: its header would end after the "
            "end of the file; a model is a state folder, a folder below its models, or "
            "a model.safetensors",
            path);
    json_error_t error;
    json_t *header =
        json_loadb((const char *)file + PREFIX_BYTES, header_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(header)) {
        json_decref(header);
        return error_set(ERROR_DATA, "%s is no safetensors file: its header is not a JSON object",
                         path);
    }
    int code = place_all(path, header, PREFIX_BYTES + header_bytes, length, tensors);
    if (!code)
        code = check_length(path, header, PREFIX_BYTES + header_bytes, length);
    json_decref(header);
    return code;
}

/* ---- parameters ---- */

static const double *at(const void *file, size_t offset) {
    return (const double *)((const uint8_t *)file + offset);
}

/* How many numbers lie at `weight`: the whole vector, or the weights of a linear model. */
static uint64_t weights_of(const struct tensors *tensors) {
    return tensors->vector.count ? layout_parameters(&tensors->vector)
                                 : tensors->features * tensors->rows;
}

static void hash_parameters(const struct tensors *tensors, const void *file,
                            char text[SHA256_TEXT]) {
    struct sha256 *sha = sha256_new();
    if (tensors->vector.count)
        sha256_add(sha, at(file, tensors->weight), weights_of(tensors) * sizeof(double));
    else {
        const double *weight = at(file, tensors->weight), *bias = at(file, tensors->bias);
        for (uint32_t k = 0; k < tensors->rows; k++) {
            sha256_add(sha, weight + k * tensors->features, tensors->features * sizeof *weight);
            if (tensors->biases)
                sha256_add(sha, bias + k, sizeof *bias);
        }
        for (uint32_t k = tensors->rows; k < tensors->biases; k++)
            sha256_add(sha, bias + k, sizeof *bias);
    }
    sha256_finish(sha, text);
}

struct hashing {
    const struct tensors *tensors;
    const void *file;
    size_t length;
    struct tensors_hashes *hashes;
};

static void find_hash(void *context, unsigned part) {
    const struct hashing *hashing = context;
    if (part)
        hash_parameters(hashing->tensors, hashing->file, hashing->hashes->parameters);
    else
        sha256_of(hashing->file, hashing->length, hashing->hashes->file);
}

void tensors_hash(const struct tensors *tensors, const void *file, size_t length,
                  parts_function *share, struct tensors_hashes *hashes) {
    struct hashing hashing = {tensors, file, length, hashes};
    if (share && length >= WORTH_A_THREAD) {
        share(2, 2, find_hash, &hashing);
        return;
    }
    find_hash(&hashing, 0);
    find_hash(&hashing, 1);
}

static bool all_finite(const double *value, uint64_t count) {
    bool finite = true;
    for (uint64_t i = 0; i < count && finite; i++)
        finite = isfinite(value[i]);
    return finite;
}

bool tensors_finite(const struct tensors *tensors, const void *file) {
    return all_finite(at(file, tensors->weight), weights_of(tensors)) &&
           all_finite(at(file, tensors->bias), tensors->biases) &&
           all_finite(at(file, tensors->idf), tensors->weighs_words ? tensors->features : 0);
}
