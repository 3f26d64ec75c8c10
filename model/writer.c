#define _GNU_SOURCE
#include "model/model.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "model/description.h"
#include "model/family.h"
#include "model/scatter.h"
#include "model/summary.h"
#include "model/tensors.h"

/* The tensors are written through a mapping of their file, so that the system decides how much of
 * them stays in memory. The writer itself holds only the ranks, 4 or 8 bytes a feature, and of a
 * long file up to 64 MiB of weights, which come in another order than they are in there. */
#define WEIGHTS_OF_A_LONG_FILE (UINT64_C(1) << 23)
#define WEIGHTS_THAT_WAIT (UINT32_C(1) << 16) /* for a part of it */

struct model_writer {
    const struct model_layout *layout;
    char *folder;    /* the final place */
    char *temporary; /* the folder written to */
    char *tensors_path, *json_path, *curvature_path, *summary_path;
    int descriptor; /* of model.safetensors */
    uint8_t *file;  /* its mapping */
    struct tensors tensors;
    uint64_t features;       /* of the file: F, and those that are kept besides */
    void *ranks;             /* the place of each of the run's columns among the file's features, of
                                column_number_bytes() each */
    struct scatter *scatter; /* of the weights of a long file; or NULL */
    struct layout vector;    /* the run's parameters, which slices are parts of */
    uint64_t parameters;     /* n */
    uint64_t received;
    bool finished;
    struct tensors_hashes hashes; /* empty until they are asked for */
    json_t *names;                /* of the features of the file; NULL until a view needs them */
    const char **name;            /* the strings in `names` */
};

static size_t rank_bytes(const struct model_writer *writer) {
    return writer->layout->features * column_number_bytes(writer->features);
}

static uint64_t rank_of(const struct model_writer *writer, uint64_t column) {
    const struct column_order ranks = column_order_of(writer->ranks, writer->features);
    return column_order_at(&ranks, column);
}

static void put_rank(struct model_writer *writer, uint64_t column, uint64_t rank) {
    if (column_number_bytes(writer->features) == sizeof(uint32_t))
        ((uint32_t *)writer->ranks)[column] = (uint32_t)rank;
    else
        ((uint64_t *)writer->ranks)[column] = rank;
}

static double *weight_of(const struct model_writer *writer) {
    return (double *)(writer->file + writer->tensors.weight);
}

static double *bias_of(const struct model_writer *writer) {
    return writer->tensors.biases ? (double *)(writer->file + writer->tensors.bias) : NULL;
}

static bool has_vector(const struct model_writer *writer) {
    return writer->tensors.vector.count > 0;
}

/* Weight k of a feature of the file. A vector has the weights of a feature side by side. */
static double *weight_at(const struct model_writer *writer, uint64_t rank, uint64_t k) {
    return weight_of(writer) + (has_vector(writer)
                                    ? rank * writer->tensors.vector.tensor[0].columns + k
                                    : k * writer->features + rank);
}

static void writer_free(struct model_writer *writer) {
    if (writer->file)
        munmap(writer->file, writer->tensors.bytes);
    if (writer->descriptor >= 0)
        close(writer->descriptor);
    memory_unmap(writer->ranks, rank_bytes(writer));
    scatter_free(writer->scatter);
    json_decref(writer->names);
    free(writer->name);
    free(writer->folder);
    free(writer->temporary);
    free(writer->tensors_path);
    free(writer->json_path);
    free(writer->curvature_path);
    free(writer->summary_path);
    free(writer);
}

static void remove_temporary(const struct model_writer *writer) {
    unlink(writer->tensors_path);
    unlink(writer->json_path);
    unlink(writer->curvature_path);
    unlink(writer->summary_path);
    rmdir(writer->temporary);
}

void model_writer_discard(struct model_writer *writer) {
    if (!writer)
        return;
    remove_temporary(writer);
    writer_free(writer);
}

const char *model_writer_folder(const struct model_writer *writer) {
    return writer->temporary;
}

static int map_tensors(struct model_writer *writer) {
    const char *path = writer->tensors_path;
    size_t bytes = writer->tensors.bytes;
    writer->descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (writer->descriptor < 0)
        return error_set_errno(ERROR_CREATE, "cannot create %s", path);
    /* Claim the blocks now: if the disk filled up later, a write to the mapping would kill the
     * process (SIGBUS). */
    errno = posix_fallocate(writer->descriptor, 0, (off_t)bytes);
    if (errno)
        return error_set_errno(ERROR_IO, "cannot make room for the %zu bytes of %s", bytes, path);
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, writer->descriptor, 0);
    if (start == MAP_FAILED)
        return error_set_errno(ERROR_IO, "cannot map %s", path);
    writer->file = start;
    return 0;
}

static double positive_zero(double value) {
    return value == 0 ? 0.0 : value;
}

/* Writes the feature ids and the weights of kept features; notes the ranks of the run's columns. */
static void write_features(struct model_writer *writer) {
    const struct model_layout *layout = writer->layout;
    const struct model_kept *kept = layout->kept;
    uint64_t *feature_id = (uint64_t *)(writer->file + writer->tensors.feature_id);
    double *idf =
        writer->tensors.weighs_words ? (double *)(writer->file + writer->tensors.idf) : NULL;
    struct merge merge = {.layout = layout};
    uint64_t number;
    writer->ranks = memory_map(rank_bytes(writer));
    for (uint64_t r = 0; r < writer->features; r++) {
        if (!merge_next_is_kept(&merge, &number)) {
            feature_id[r] = layout->feature_id[number];
            put_rank(writer, number, r);
            if (idf)
                idf[r] = layout->idf[number];
            continue;
        }
        if (idf)
            idf[r] =
                kept->feature_id[number] < FEATURE_HASHED ? 0 : table_word_idf(layout->table, 0);
        feature_id[r] = kept->feature_id[number];
        for (uint32_t k = 0; k < model_rows(layout); k++)
            *weight_at(writer, r, k) = positive_zero(kept->weight[k * kept->features + number]);
    }
    /* Failpoints that damage the model, for the tests of reading it back. */
    uint64_t id = feature_id[0], rank = rank_of(writer, 0);
    if (writer->features < 2 || writer->layout->features < 2)
        return;
    if (failpoint_hit(FAILPOINT_model_ids)) {
        feature_id[0] = feature_id[1];
        feature_id[1] = id;
    }
    if (failpoint_hit(FAILPOINT_model_weights)) {
        put_rank(writer, 0, rank_of(writer, 1));
        put_rank(writer, 1, rank);
    }
}

/* The tensors of the file, which has the kept features, too. */
static struct tensors tensors_of(const struct model_writer *writer) {
    struct model_layout layout = *writer->layout;
    struct tensors tensors = {.features = writer->features,
                              .weighs_words = writer->layout->idf != NULL,
                              .has_means = writer->layout->keeps_means};
    layout.features = writer->features;
    const struct model_family *family = model_family(&layout);
    if (family->stores_vector) {
        tensors.vector = model_tensors(&layout);
        tensors.matrices = family->family->own_tensors;
    } else {
        tensors.rows = model_rows(&layout);
        tensors.biases = layout.intercept ? layout.outputs : 0;
    }
    return tensors;
}

/* After a power cut nobody looks for it under this name: it need not be on the disk before it is
 * put in its place. */
static int make_temporary(const struct model_writer *writer) {
    if (mkdir(writer->temporary, 0755) && errno != EEXIST)
        return error_set_errno(ERROR_CREATE, "cannot make the folder %s", writer->temporary);
    return 0;
}

static int start_files(struct model_writer *writer) {
    char *above = path_folder(writer->folder);
    int code = folder_make(above, 0755);
    free(above);
    if (!code)
        code = make_temporary(writer);
    if (code)
        return code;
    writer->tensors = tensors_of(writer);
    char *header = tensors_plan(&writer->tensors, writer->layout->objective);
    code = map_tensors(writer);
    if (!code) {
        memcpy(writer->file, header, writer->tensors.weight);
        write_features(writer);
        uint64_t weights = writer->tensors.rows * writer->features;
        if (!has_vector(writer) && weights >= WEIGHTS_OF_A_LONG_FILE)
            writer->scatter = scatter_new(weight_of(writer), weights, WEIGHTS_THAT_WAIT);
    }
    free(header);
    return code;
}

/* A writer that has no file yet. */
static struct model_writer *writer_for(const char *folder, const struct model_layout *layout) {
    struct model_writer *writer = memory_new(1, sizeof *writer);
    writer->layout = layout;
    writer->descriptor = -1;
    writer->folder = memory_copy_string(folder);
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--)
        writer->folder[end - 1] = '\0';
    writer->temporary = memory_format("%s.tmp.%llu", writer->folder, process_number());
    writer->tensors_path = path_join(writer->temporary, "model.safetensors");
    writer->json_path = path_join(writer->temporary, "model.json");
    writer->curvature_path = path_join(writer->temporary, MODEL_CURVATURE);
    writer->summary_path = path_join(writer->temporary, MODEL_SUMMARY);
    return writer;
}

int model_writer_new(const char *folder, const struct model_layout *layout,
                     struct model_writer **result) {
    struct model_writer *writer = writer_for(folder, layout);
    writer->features = layout->features + (layout->kept ? layout->kept->features : 0);
    writer->vector = model_tensors(layout);
    writer->parameters = layout_parameters(&writer->vector);
    int code = guard_check();
    if (!code)
        code = start_files(writer);
    if (code) {
        model_writer_discard(writer);
        return code;
    }
    *result = writer;
    return 0;
}

static double *place_of(const struct model_writer *writer, const struct layout_place *place) {
    size_t number = (size_t)(place->tensor - writer->vector.tensor);
    assert(number < writer->vector.count);
    if (number == 0 && !model_family(writer->layout)->family->own_tensors)
        return weight_at(writer, rank_of(writer, place->row), place->column);
    if (!has_vector(writer))
        return bias_of(writer) + place->column;
    const struct layout_tensor *tensor = &writer->tensors.vector.tensor[number];
    return weight_of(writer) + tensor->first + place->row * tensor->columns + place->column;
}

uint64_t model_writer_parameters(const struct model_writer *writer) {
    return writer->tensors.rows * writer->features + writer->tensors.biases;
}

uint64_t model_writer_features(const struct model_writer *writer) {
    return writer->features;
}

uint64_t model_writer_place(const struct model_writer *writer, uint64_t column) {
    return rank_of(writer, column);
}

uint64_t model_writer_number(const struct model_writer *writer, uint64_t element) {
    assert(!has_vector(writer) && element < writer->parameters);
    struct layout_place place = layout_locate(&writer->vector, element);
    const double *at = place_of(writer, &place);
    bool is_bias = place.tensor != writer->vector.tensor;
    return is_bias ? writer->tensors.rows * writer->features + (uint64_t)(at - bias_of(writer))
                   : (uint64_t)(at - weight_of(writer));
}

static void put(struct model_writer *writer, const struct layout_place *place, double value) {
    double *at = place_of(writer, place);
    if (writer->scatter && place->tensor == writer->vector.tensor)
        scatter_put(writer->scatter, (uint64_t)(at - weight_of(writer)), value);
    else
        *at = value;
}

/* Weights that are one a feature, most parameters of most models, have their places by rank alone.
 * Puts those that come first, and returns how many. */
static uint64_t put_ranked(struct model_writer *writer, uint64_t first, uint64_t count,
                           const double *values) {
    const struct layout_tensor *weights = &writer->vector.tensor[0];
    uint64_t end = weights->first + weights->rows;
    assert(first <= writer->parameters && count <= writer->parameters - first);
    if (has_vector(writer) || writer->scatter || weights->columns != 1 || first >= end)
        return 0;
    count = count < end - first ? count : end - first;
    bool finite = true;
    for (uint64_t i = 0; i < count; i++)
        finite &= isfinite(values[i]) != 0;
    if (!finite)
        return 0;
    assert(column_number_bytes(writer->features) == sizeof(uint32_t));
    const uint32_t *rank = (const uint32_t *)writer->ranks + (first - weights->first);
    double *weight = weight_of(writer);
    for (uint64_t i = 0; i < count; i++)
        weight[rank[i]] = positive_zero(values[i]);
    return count;
}

static int put_each(struct model_writer *writer, uint64_t first, uint64_t count,
                    const double *values) {
    struct layout_place place = {0};
    for (uint64_t i = 0; i < count; i++) {
        if (i == 0)
            place = layout_locate(&writer->vector, first);
        else
            layout_advance(&writer->vector, &place);
        if (!isfinite(values[i]))
            return error_set(ERROR_INTERNAL, "parameter %llu of the model %s is %g: not written",
                             (unsigned long long)(first + i), writer->folder, values[i]);
        put(writer, &place, positive_zero(values[i]));
    }
    return 0;
}

int model_writer_slice(struct model_writer *writer, uint64_t first, uint64_t count,
                       const double *values) {
    if (first > writer->parameters || count > writer->parameters - first ||
        count > writer->parameters - writer->received)
        return error_set(ERROR_INTERNAL, "more parameters were sent than the model %s has",
                         writer->folder);
    uint64_t done = put_ranked(writer, first, count, values);
    int code = put_each(writer, first + done, count - done, values + done);
    if (code)
        return code;
    writer->received += count;
    assert(writer->received <= writer->parameters);
    if (writer->received == writer->parameters) {
        /* All have come, and the file is written back while the caller scores the model and hashes
         * it. */
        if (writer->scatter)
            scatter_settle(writer->scatter);
        scatter_free(writer->scatter);
        writer->scatter = NULL;
        file_write_back(writer->descriptor);
    }
    return 0;
}

int model_writer_replace(struct model_writer *writer, const double *values) {
    assert(writer->received == writer->parameters && !*writer->hashes.parameters);
    writer->received = 0;
    return model_writer_slice(writer, 0, writer->parameters, values);
}

void model_writer_means(struct model_writer *writer, const double *means) {
    assert(writer->tensors.has_means && !*writer->hashes.parameters);
    double *mean = (double *)(writer->file + writer->tensors.mean);
    for (uint64_t column = 0; column < writer->layout->features; column++)
        mean[rank_of(writer, column)] = positive_zero(means[column]);
}

static int check_whole(const struct model_writer *writer) {
    if (writer->received != writer->parameters)
        return error_set(ERROR_INTERNAL, "the model %s has %llu of its %llu parameters",
                         writer->folder, (unsigned long long)writer->received,
                         (unsigned long long)writer->parameters);
    return 0;
}

int model_writer_hash(struct model_writer *writer, char text[SHA256_TEXT]) {
    int code = check_whole(writer);
    if (code)
        return code;
    if (!*writer->hashes.parameters)
        tensors_hash(&writer->tensors, writer->file, writer->tensors.bytes, threads_share,
                     &writer->hashes);
    memcpy(text, writer->hashes.parameters, SHA256_TEXT);
    return 0;
}

/* Makes the names that a view shows; nothing to do if the layout has no names. */
static void make_names(struct model_writer *writer) {
    if (writer->names || !writer->layout->feature_names)
        return;
    writer->names = description_feature_names(writer->layout, writer->features);
    assert(json_array_size(writer->names) == writer->features);
    writer->name = memory_new(writer->features, sizeof *writer->name);
    for (uint64_t r = 0; r < writer->features; r++)
        writer->name[r] = json_string_value(json_array_get(writer->names, r));
}

int model_writer_view(struct model_writer *writer, struct model *view) {
    int code = check_whole(writer);
    if (code)
        return code;
    make_names(writer);
    *view = (struct model){.layout = *writer->layout,
                           .weight = has_vector(writer) ? NULL : weight_of(writer),
                           .bias = bias_of(writer),
                           .vector = has_vector(writer) ? weight_of(writer) : NULL};
    view->layout.features = writer->features;
    view->layout.feature_id = (const uint64_t *)(writer->file + writer->tensors.feature_id);
    view->layout.feature_names = writer->name;
    view->layout.idf =
        writer->tensors.weighs_words ? (const double *)(writer->file + writer->tensors.idf) : NULL;
    view->layout.original_order = (struct column_order){0};
    view->layout.kept = NULL;
    return 0;
}

/* Writes a file of the model, and fsyncs it and its folder. */
static int write_object(const char *path, const json_t *all) {
    char *text = json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    struct new_file file;
    int code = new_file_open(&file, path);
    if (!code) {
        code = new_file_write(&file, text, strlen(text));
        if (!code)
            code = new_file_write(&file, "\n", 1);
        if (code)
            new_file_discard(&file);
        else
            code = new_file_publish(&file);
    }
    free(text);
    return code;
}

static int write_json(struct model_writer *writer, const json_t *details) {
    char sha256[SHA256_TEXT];
    int code = model_writer_hash(writer, sha256);
    if (code)
        return code;
    json_t *all = description_json(writer->layout, writer->features, sha256, details);
    checksum_add(all, writer->hashes.file);
    code = write_object(writer->json_path, all);
    json_decref(all);
    return code;
}

int model_writer_summary(struct model_writer *writer, const json_t *summary) {
    char sha256[SHA256_TEXT];
    int code = model_writer_hash(writer, sha256);
    if (code)
        return code;
    json_t *all = json_copy((json_t *)summary);
    json_object_set_new(all, "model_sha256", json_string(sha256));
    checksum_add_own(all);
    code = write_object(writer->summary_path, all);
    json_decref(all);
    return code;
}

/* Renames the folder to its final place. If there is an old folder, the two change places and the
 * old one is then removed, so that a whole model is there at every instant. */
static int put_in_place(const struct model_writer *writer) {
    assert(writer->finished);
    if (failpoint_write(FAILPOINT_model_publish))
        return error_set_errno(ERROR_CREATE, "cannot put %s in place", writer->folder);
    int code = guard_check();
    if (code)
        return code;
    if (rename(writer->temporary, writer->folder)) {
        if (errno != ENOTEMPTY && errno != EEXIST)
            return error_set_errno(ERROR_CREATE, "cannot put %s in place", writer->folder);
        if (renameat2(AT_FDCWD, writer->temporary, AT_FDCWD, writer->folder, RENAME_EXCHANGE))
            return error_set_errno(ERROR_CREATE, "cannot replace %s", writer->folder);
        remove_temporary(writer);
    }
    char *above = path_folder(writer->folder);
    code = folder_sync(above);
    free(above);
    failpoint(FAILPOINT_model_published);
    return code;
}

int model_writer_finish(struct model_writer *writer, const json_t *details) {
    assert(!writer->finished);
    if (failpoint_write(FAILPOINT_file_fsync) || fsync(writer->descriptor))
        return error_set_errno(ERROR_IO, "cannot write %s to disk", writer->tensors_path);
    int code = write_json(writer, details);
    writer->finished = !code;
    return code;
}

int model_writer_set_aside(struct model_writer *writer, const char *folder) {
    assert(writer->finished && folder);
    static const char *const names[] = {"model.safetensors", "model.json", MODEL_CURVATURE,
                                        MODEL_SUMMARY};
    int code = guard_check();
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !code; i++) {
        char *path = path_join(folder, names[i]);
        unlink(path);
        free(path);
    }
    if (!code && rename(writer->temporary, folder))
        code = error_set_errno(ERROR_CREATE, "cannot put %s in place", folder);
    writer_free(writer);
    return code;
}

int model_writer_publish(struct model_writer *writer, const json_t *details) {
    int code = writer->finished ? 0 : model_writer_finish(writer, details);
    if (!code)
        code = put_in_place(writer);
    if (code)
        remove_temporary(writer);
    writer_free(writer);
    return code;
}

/* ---- a copy with other details ---- */

/* A file that the model lacks is left out. */
static int copy_file(const struct model *model, const char *to) {
    const char *name = strrchr(to, '/') + 1;
    char *from = path_join(model->folder, name);
    const void *data = NULL;
    size_t length = 0;
    struct new_file file;
    int code = 0;
    if (access(from, F_OK) == 0 || errno != ENOENT) {
        code = file_map(from, &data, &length);
        if (!code)
            code = new_file_open(&file, to);
        if (!code && (code = new_file_write(&file, data, length)))
            new_file_discard(&file);
        else if (!code)
            code = new_file_publish(&file);
        memory_unmap((void *)(uintptr_t)data, length);
    }
    free(from);
    return code;
}

/* A member that is null in `changes` goes. */
static json_t *changed_details(const struct model *model, const json_t *changes) {
    json_t *all = json_copy(model->details), *value;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)changes, name, value) {
        if (json_is_null(value))
            json_object_del(all, name);
        else
            json_object_set(all, name, value);
    }
    checksum_add_own(all);
    return all;
}

int model_copy(const struct model *model, const char *folder, const json_t *changes) {
    struct model_writer *writer = writer_for(folder, &model->layout);
    const char *const copied[] = {writer->tensors_path, writer->curvature_path,
                                  writer->summary_path};
    int code = guard_check();
    if (!code)
        code = make_temporary(writer);
    for (size_t i = 0; i < sizeof copied / sizeof *copied && !code; i++)
        code = copy_file(model, copied[i]);
    json_t *all = changed_details(model, changes);
    if (!code)
        code = write_object(writer->json_path, all);
    json_decref(all);
    writer->finished = !code;
    if (!code)
        code = put_in_place(writer);
    if (code)
        remove_temporary(writer);
    writer_free(writer);
    return code;
}

int model_set_current(const char *models_folder, const char *name) {
    char *link = path_join(models_folder, "current");
    char *temporary = memory_format("%s.tmp.%llu", link, process_number());
    unlink(temporary);
    int code = guard_check();
    if (!code && symlink(name, temporary))
        code = error_set_errno(ERROR_CREATE, "cannot create %s", link);
    else if (!code && failpoint_write(FAILPOINT_model_link))
        code = error_set_errno(ERROR_CREATE, "cannot replace %s", link);
    if (!code)
        code = guard_check();
    if (!code && rename(temporary, link))
        code = errno == EISDIR
                   ? error_set(ERROR_CREATE,
                               "cannot replace %s: it is a folder, which a copy that follows links "
                               "makes of the link to the live model; remove it",
                               link)
                   : error_set_errno(ERROR_CREATE, "cannot replace %s", link);
    if (code)
        unlink(temporary);
    if (!code)
        code = folder_sync(models_folder);
    failpoint(FAILPOINT_model_linked);
    free(temporary);
    free(link);
    return code;
}
