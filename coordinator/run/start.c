#include "coordinator/run/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"

/* Raise the version whenever a file of the old version would be read wrongly or lacks something.
 * Files of another version are refused: a run ends with the program that began it. */
#define START_VERSION 1
static const struct container_kind start_kind = {"DMLSTRT\n", START_VERSION, "starting point"};

enum start_section {
    START_FACTS,
    START_PARAMETERS,   /* f64 × parameters, as the run numbers them */
    START_KEPT_IDS,     /* u64 × kept: original ids, rising */
    START_KEPT_WEIGHTS, /* f64 × outputs·kept, row-major */
    START_KEPT_NAMES,   /* texts × kept, if named */
    START_PAIRS,        /* f64 × 2·pairs·parameters: s and y of each pair, oldest first */
};

struct start_facts {
    uint64_t parameters, kept;
    uint32_t outputs, named, pairs, form;
    char run[64], model_sha256[72]; /* padded with 0 */
};
_Static_assert(sizeof(struct start_facts) == 168, "no padding");

static struct start_facts facts_of(const char *run, const char *sha256,
                                   const struct model_layout *layout, uint32_t form) {
    struct start_facts facts = {
        .parameters = model_parameters(layout), .outputs = model_rows(layout), .form = form};
    snprintf(facts.run, sizeof facts.run, "%s", run);
    snprintf(facts.model_sha256, sizeof facts.model_sha256, "%s", sha256);
    return facts;
}

/* ---- writing ---- */

static int write_parameters(struct container_writer *writer, const struct model *model,
                            const struct model_layout *layout, const struct start_options *options,
                            uint64_t parameters) {
    struct container_room room;
    int code = container_room(writer, parameters * sizeof(double), &room);
    if (code)
        return code;
    model_spread(model, layout, room.data);
    if (options->walk)
        scaling_walk_to_scaled(options->walk, 0, parameters, room.data, room.data);
    if (options->unit > 0 && options->unit != 1) {
        const struct layout tensors = model_tensors(layout);
        objective_scale_outputs(&tensors, 1 / options->unit, 0, parameters, room.data);
    }
    container_keep(writer, START_PARAMETERS, &room);
    return 0;
}

static int write_names(struct container_writer *writer, const char *const *name,
                       const uint64_t *ranks, uint64_t count) {
    const char **kept = memory_new(count, sizeof *kept);
    for (uint64_t i = 0; i < count; i++)
        kept[i] = name[ranks[i]];
    int code = container_put_strings(writer, START_KEPT_NAMES, kept, count);
    free(kept);
    return code;
}

static int write_kept(struct container_writer *writer, const struct model *model,
                      const struct model_layout *layout, uint64_t count) {
    uint64_t *ranks = memory_map(count * sizeof *ranks);
    struct container_room room;
    model_vanished(model, layout, ranks);
    int code = container_room(writer, model_rows(layout) * count * sizeof(double), &room);
    if (!code) {
        model_vanished_weights(model, layout, ranks, count, room.data);
        container_keep(writer, START_KEPT_WEIGHTS, &room);
    }
    if (!code && model->layout.feature_names)
        code = write_names(writer, model->layout.feature_names, ranks, count);
    for (uint64_t i = 0; i < count; i++)
        ranks[i] = model->layout.feature_id[ranks[i]];
    if (!code)
        code = container_section(writer, START_KEPT_IDS, ranks, count * sizeof *ranks);
    memory_unmap(ranks, count * sizeof *ranks);
    return code;
}

static int write_pairs(struct container_writer *writer, const struct curvature *curvature,
                       const struct model_layout *layout, uint64_t parameters, uint32_t pairs) {
    struct container_room room;
    int code = container_room(writer, 2 * pairs * parameters * sizeof(double), &room);
    if (code)
        return code;
    curvature_spread(curvature, layout, pairs, room.data);
    container_keep(writer, START_PAIRS, &room);
    return 0;
}

/* A run starts without curvature, if that cannot be read. */
static void open_curvature(const struct model *model, struct curvature *curvature) {
    if (!curvature_open(model, curvature))
        return;
    log_warning("the curvature beside the model is not used: %s", error_text());
    error_clear();
}

int start_write(const char *folder, const char *run, const struct model *model,
                const struct model_layout *layout, const struct start_options *options) {
    struct start_facts facts = facts_of(run, model->sha256, layout, options->form);
    struct container_writer writer = {.file = {.descriptor = -1}};
    struct curvature curvature;
    open_curvature(model, &curvature);
    if (curvature.form == options->form)
        facts.pairs = curvature.pairs < options->pairs_most ? curvature.pairs : options->pairs_most;
    char *path = path_join(folder, "start");
    facts.kept = options->keeps ? model_vanished(model, layout, NULL) : 0;
    facts.named = model->layout.feature_names != NULL;
    int code = failpoint_write(FAILPOINT_start_write)
                   ? error_set_errno(ERROR_IO, "cannot write %s", path)
                   : folder_make(folder, 0700);
    if (!code)
        code = container_create(&writer, &start_kind, path);
    if (!code)
        code = container_section(&writer, START_FACTS, &facts, sizeof facts);
    if (!code)
        code = write_parameters(&writer, model, layout, options, facts.parameters);
    if (!code && facts.kept)
        code = write_kept(&writer, model, layout, facts.kept);
    if (!code && facts.pairs)
        code = write_pairs(&writer, &curvature, layout, facts.parameters, facts.pairs);
    if (!code)
        code = container_publish(&writer, path);
    container_discard(&writer);
    curvature_close(&curvature);
    if (!code)
        failpoint(FAILPOINT_start_written);
    free(path);
    return code;
}

/* ---- reading ---- */

static int read_kept(struct start *start, const struct start_facts *facts) {
    const void *id, *weight;
    const char **names = NULL;
    int code = container_array(&start->file, START_KEPT_IDS, facts->kept, sizeof(uint64_t), &id);
    if (!code)
        code = container_array(&start->file, START_KEPT_WEIGHTS, facts->outputs * facts->kept,
                               sizeof(double), &weight);
    if (!code && facts->named)
        code = container_strings(&start->file, START_KEPT_NAMES, facts->kept, &names);
    if (!code)
        start->kept = (struct model_kept){
            .features = facts->kept, .feature_id = id, .weight = weight, .names = names};
    return code;
}

static int read_sections(struct start *start, const struct start_facts *expected) {
    const void *data;
    int code = container_array(&start->file, START_FACTS, 1, sizeof(struct start_facts), &data);
    if (code)
        return code;
    const struct start_facts *facts = data;
    if (strncmp(facts->run, expected->run, sizeof facts->run) ||
        strncmp(facts->model_sha256, expected->model_sha256, sizeof facts->model_sha256) ||
        facts->parameters != expected->parameters || facts->outputs != expected->outputs ||
        facts->form != expected->form)
        return error_set(ERROR_DATA, "%s is that of another run", start->file.path);
    code =
        container_array(&start->file, START_PARAMETERS, facts->parameters, sizeof(double), &data);
    if (code)
        return code;
    start->parameters = data;
    if (facts->pairs > HISTORY_MAX)
        return error_set(ERROR_DATA, "%s has more curvature pairs than there may be",
                         start->file.path);
    code = container_array(&start->file, START_PAIRS, 2 * facts->pairs * facts->parameters,
                           sizeof(double), &data);
    if (code)
        return code;
    start->vectors = data;
    start->pairs = facts->pairs;
    return read_kept(start, facts);
}

int start_open(const char *folder, const char *run, const char *model_sha256,
               const struct model_layout *layout, uint32_t form, struct start *start) {
    struct start_facts expected = facts_of(run, model_sha256, layout, form);
    char *path = path_join(folder, "start"), *why = NULL;
    *start = (struct start){0};
    int code = container_open(&start->file, &start_kind, path);
    if (!code)
        code = read_sections(start, &expected);
    if (code) {
        why = memory_copy_string(error_text());
        error_clear();
        bool other = code == ERROR_UNAVAILABLE; /* version */
        code = error_set(
            other ? code : ERROR_DATA,
            "the run cannot go on without its starting point: %s; %s, or start anew "
            "with --fresh",
            why, other ? "end the run with the program that began it" : "put the file back");
        start_close(start);
    }
    free(why);
    free(path);
    return code;
}

void start_close(struct start *start) {
    free((void *)start->kept.names);
    container_close(&start->file);
    *start = (struct start){0};
}

/* Raise the version whenever a file of the old version would be read wrongly or lacks something.
 * Files of another version are not used. */
#define CURVATURE_VERSION 2
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

/* Biases are what is not regularised, and come last. */
static uint64_t weights_of(const struct model_layout *layout) {
    struct layout vector = model_tensors(layout);
    for (uint32_t i = 0; i < vector.count; i++)
        if (!vector.tensor[i].regularized)
            return vector.tensor[i].first;
    return layout_parameters(&vector);
}

int curvature_writer_new(const char *folder, const struct model_layout *layout, uint32_t pairs,
                         double bias_scale, uint32_t form, struct curvature_writer **result) {
    struct curvature_writer *writer = memory_new(1, sizeof *writer);
    writer->layout = layout;
    writer->pairs = pairs;
    writer->form = form;
    writer->weights = weights_of(layout);
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
    double scale = vector % 2 ? 1 : 1 / writer->bias_scale; /* vectors are s, q, s, q, … from 1 */
    if (first == 0)
        file_write_back(writer->container.file.descriptor); /* the vectors before this one */
    to += (vector - 1) * model_parameters(writer->layout) + first;
    for (uint64_t i = 0; i < count; i++)
        to[i] = (float)(first + i < writer->weights ? values[i] : scale * values[i]);
}

static int write_sections(struct curvature_writer *writer, const char *model_sha256) {
    const struct model_layout *layout = writer->layout;
    struct curvature_facts facts = {.features = layout->features,
                                    .outputs = layout->outputs,
                                    .intercept = layout->intercept,
                                    .classes = layout->classes,
                                    .pairs = writer->pairs,
                                    .form = writer->form,
                                    .shared = layout->shared};
    snprintf(facts.model_sha256, sizeof facts.model_sha256, "%s", model_sha256);
    struct container_writer *container = &writer->container;
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
    return code;
}

int curvature_writer_publish(struct curvature_writer *writer, const char *model_sha256) {
    container_keep(&writer->container, CURVATURE_VECTORS, &writer->room);
    int code = write_sections(writer, model_sha256);
    if (!code)
        code = container_publish(&writer->container, writer->path);
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

static int curvature_check_order(const struct container *file, const struct column_order *order,
                                 uint64_t features) {
    for (uint64_t i = 0; i < features; i++)
        if (column_order_at(order, i) >= features)
            return error_set(ERROR_DATA, "%s has an order of columns that it lacks", file->path);
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
    code = curvature_check_order(file, &layout->original_order, facts->features);
    if (code)
        return code;
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
    const float *from = curvature->vectors + 2 * (curvature->pairs - count) * before;
    uint64_t *place = model_match(&curvature->layout, layout);
    for (uint64_t i = 0; i < 2 * (uint64_t)count; i++)
        for (uint64_t j = 0; j < after; j++)
            vectors[i * after + j] = place[j] == MODEL_UNMATCHED ? 0 : from[i * before + place[j]];
    memory_unmap(place, after * sizeof *place);
}

/* ---- scaling with Kronecker factors ---- */

/* Chunks that rows of the sample are taken from, evenly spread: rows often come in some order. */
#define SAMPLE_CHUNKS 64

void kronecker_scaling_release(struct kronecker_scaling *scaling) {
    kronecker_work_free(scaling->work);
    kronecker_free(scaling->kronecker);
    free(scaling->factors);
    free(scaling->start);
    free(scaling->model);
    *scaling = (struct kronecker_scaling){0};
}

static int add_sample_rows(struct kronecker_sample *sample, struct set *set) {
    const struct set_info *info = set_info(set);
    uint64_t chunks = info->chunks - info->holdout_chunks;
    uint64_t taken = chunks < SAMPLE_CHUNKS ? chunks : SAMPLE_CHUNKS;
    for (uint64_t i = 0; i < taken; i++) {
        struct rows rows;
        int code = set_chunk(set, (uint32_t)(i * chunks / taken), &rows);
        if (code)
            return code;
        kronecker_sample_add(sample, &rows, (uint32_t)(KRONECKER_ROWS / taken));
    }
    return 0;
}

int kronecker_scaling_find(struct kronecker_scaling *scaling, const struct objective_shape *shape,
                           struct set *set, const struct column_scaling *columns,
                           const double *start) {
    kronecker_scaling_release(scaling);
    struct layout layout = objective_layout(shape);
    uint64_t n = layout_parameters(&layout);
    struct kronecker_sample *sample = kronecker_sample_new(shape, columns);
    int code = add_sample_rows(sample, set);
    if (!code) {
        scaling->start = memory_new(n, sizeof *scaling->start);
        layout_start(&layout, 0, n, scaling->start);
        scaling->factors = kronecker_find(sample, scaling->start);
        scaling->count = kronecker_size(&layout);
        scaling->kronecker = kronecker_new(&layout, scaling->factors);
        scaling->work = kronecker_work_new(scaling->kronecker);
        if (start)
            memcpy(scaling->start, start, n * sizeof *start);
        kronecker_apply_inverse(scaling->kronecker, scaling->work, scaling->start);
    }
    kronecker_sample_free(sample);
    return code;
}

const double *kronecker_scaling_take(struct kronecker_scaling *scaling, uint64_t parameters,
                                     uint64_t first, uint64_t count, const double *values) {
    if (!scaling->model)
        scaling->model = memory_new(parameters, sizeof *scaling->model);
    memcpy(scaling->model + first, values, count * sizeof *values);
    if (first + count < parameters)
        return NULL;
    kronecker_apply(scaling->kronecker, scaling->work, scaling->model);
    return scaling->model;
}
