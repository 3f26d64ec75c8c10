#include "coordinator/run/curvature.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"

/* Raise the version whenever a file of the old version would be read wrongly or lacks something.
 * Files of another version are not used. */
#define CURVATURE_VERSION 1
static const struct container_kind curvature_kind = {"DMLCURV\n", CURVATURE_VERSION, "curvature"};

enum curvature_section {
    CURVATURE_FACTS,
    CURVATURE_IDS,     /* u64 × features: original id of each column */
    CURVATURE_ORDER,   /* u32 or u64 × features, as in a set: columns by rising original id */
    CURVATURE_CLASSES, /* texts × classes */
    CURVATURE_VECTORS, /* f32 × 2·pairs·parameters: s and y of each pair */
};

struct curvature_facts {
    uint64_t features;
    uint32_t outputs, intercept, classes, pairs, form, shared;
    char model_sha256[72]; /* padded with 0 */
};
_Static_assert(sizeof(struct curvature_facts) == 104, "no padding");

/* ---- writing ---- */

struct curvature_writer {
    const struct model_layout *layout;
    struct container_writer container;
    struct container_room room; /* of the vectors */
    char *path;
    uint32_t pairs, form;
    uint64_t weights; /* the vector's elements before the biases */
    double bias_scale;
};

int curvature_writer_new(const char *folder, const struct model_layout *layout, uint32_t pairs,
                         double bias_scale, uint32_t form, struct curvature_writer **result) {
    const struct layout vector = model_tensors(layout);
    struct curvature_writer *writer = memory_new(1, sizeof *writer);
    assert(pairs > 0 && pairs <= HISTORY_MAX && bias_scale > 0);
    writer->layout = layout;
    writer->pairs = pairs;
    writer->form = form;
    /* Biases are what is not regularised, and come last. */
    writer->weights = layout_parameters(&vector);
    for (uint32_t i = vector.count; i-- > 0;)
        if (!vector.tensor[i].regularized)
            writer->weights = vector.tensor[i].first;
    writer->bias_scale = bias_scale;
    writer->path = path_join(folder, MODEL_CURVATURE);
    writer->container.file.descriptor = -1;
    int code = container_create(&writer->container, &curvature_kind, writer->path);
    if (!code)
        code = container_room(&writer->container,
                              2 * pairs * model_parameters(layout) * sizeof(float), &writer->room);
    if (code) {
        curvature_writer_discard(writer);
        return code;
    }
    *result = writer;
    return 0;
}

void curvature_writer_slice(struct curvature_writer *writer, uint32_t vector, uint64_t first,
                            uint64_t count, const double *values) {
    float *to = writer->room.data;
    assert(vector > 0 && vector <= 2 * writer->pairs);
    assert(first + count <= model_parameters(writer->layout));
    double scale = vector % 2 ? 1 : 1 / writer->bias_scale; /* vectors are s, q, s, q, … from 1 */
    if (first == 0)
        file_write_back(writer->container.file.descriptor); /* the vectors before this one */
    to += (vector - 1) * model_parameters(writer->layout) + first;
    for (uint64_t i = 0; i < count; i++)
        to[i] = (float)(first + i < writer->weights ? values[i] : scale * values[i]);
}

int curvature_writer_publish(struct curvature_writer *writer, const char *model_sha256) {
    struct container_writer *container = &writer->container;
    const struct model_layout *layout = writer->layout;
    struct curvature_facts facts = {.features = layout->features,
                                    .outputs = layout->outputs,
                                    .intercept = layout->intercept,
                                    .classes = layout->classes,
                                    .pairs = writer->pairs,
                                    .form = writer->form,
                                    .shared = layout->shared};
    snprintf(facts.model_sha256, sizeof facts.model_sha256, "%s", model_sha256);
    container_keep(container, CURVATURE_VECTORS, &writer->room);
    int code = container_section(container, CURVATURE_FACTS, &facts, sizeof facts);
    if (!code)
        code = container_section(container, CURVATURE_IDS, layout->feature_id,
                                 layout->features * sizeof *layout->feature_id);
    if (!code)
        code = container_section(container, CURVATURE_ORDER,
                                 column_order_data(&layout->original_order),
                                 layout->features * column_number_bytes(layout->features));
    if (!code)
        code = container_put_strings(container, CURVATURE_CLASSES, layout->class_names,
                                     layout->classes);
    if (!code)
        code = container_publish(container, writer->path);
    curvature_writer_discard(writer);
    return code;
}

void curvature_writer_discard(struct curvature_writer *writer) {
    if (!writer)
        return;
    container_forget(&writer->room);
    container_discard(&writer->container);
    free(writer->path);
    free(writer);
}

/* ---- reading ---- */

/* A checksum says that the file is as it was written, not that dml wrote it: it comes with a model,
 * which may be another's. */
static int curvature_check_facts(const struct container *file, const struct curvature_facts *facts,
                                 const char *model_sha256) {
    if (strncmp(facts->model_sha256, model_sha256, sizeof facts->model_sha256))
        return error_set(ERROR_DATA, "%s is that of another model", file->path);
    if (facts->pairs > HISTORY_MAX)
        return error_set(ERROR_DATA, "%s has more curvature pairs than there may be", file->path);
    return 0;
}

static int curvature_read_sections(struct curvature *curvature, const struct model *model) {
    const struct container *file = &curvature->file;
    struct model_layout *layout = &curvature->layout;
    const void *data, *id, *order, *vectors;
    int code = container_array(file, CURVATURE_FACTS, 1, sizeof(struct curvature_facts), &data);
    if (code)
        return code;
    const struct curvature_facts *facts = data;
    code = curvature_check_facts(file, facts, model->sha256);
    if (code)
        return code;
    *layout = model->layout;
    layout->outputs = facts->outputs;
    layout->shared = facts->shared;
    layout->intercept = facts->intercept;
    layout->features = facts->features;
    layout->classes = facts->classes;
    code = container_array(file, CURVATURE_IDS, facts->features, sizeof(uint64_t), &id);
    if (!code)
        code = container_array(file, CURVATURE_ORDER, facts->features,
                               column_number_bytes(facts->features), &order);
    if (!code)
        code = container_array(file, CURVATURE_VECTORS, 2 * facts->pairs * model_parameters(layout),
                               sizeof(float), &vectors);
    if (!code)
        code = container_strings(file, CURVATURE_CLASSES, facts->classes, &curvature->class_names);
    if (code)
        return code;
    layout->feature_id = id;
    layout->original_order = column_order_of(order, facts->features);
    for (uint64_t i = 0; i < facts->features; i++)
        if (column_order_at(&layout->original_order, i) >= facts->features)
            return error_set(ERROR_DATA, "%s has an order of columns that it lacks", file->path);
    layout->class_names = curvature->class_names;
    curvature->vectors = vectors;
    curvature->form = facts->form;
    curvature->pairs = facts->pairs;
    return 0;
}

int curvature_open(const struct model *model, struct curvature *curvature) {
    char *path = path_join(model->folder, MODEL_CURVATURE);
    *curvature = (struct curvature){0};
    int code = 0;
    if (access(path, F_OK) == 0) {
        code = container_open(&curvature->file, &curvature_kind, path);
        if (!code)
            code = curvature_read_sections(curvature, model);
        if (code)
            curvature_close(curvature);
    }
    free(path);
    return code;
}

void curvature_close(struct curvature *curvature) {
    free(curvature->class_names);
    container_close(&curvature->file);
    *curvature = (struct curvature){0};
}

void curvature_spread(const struct curvature *curvature, const struct model_layout *layout,
                      uint32_t count, double *vectors) {
    uint64_t before = model_parameters(&curvature->layout), after = model_parameters(layout);
    assert(count <= curvature->pairs);
    const float *from = curvature->vectors + 2 * (curvature->pairs - count) * before;
    uint64_t *place = model_match(&curvature->layout, layout);
    for (uint64_t i = 0; i < 2 * (uint64_t)count; i++)
        for (uint64_t j = 0; j < after; j++)
            vectors[i * after + j] = place[j] == MODEL_UNMATCHED ? 0 : from[i * before + place[j]];
    memory_unmap(place, after * sizeof *place);
}
