#include "coordinator/run/start.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/curvature.h"
#include "objective/shape.h"

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

static int write_kept(struct container_writer *writer, const struct model *model,
                      const struct model_layout *layout, uint64_t count) {
    uint64_t *ranks = memory_map(count * sizeof *ranks);
    struct container_room room;
    assert(count > 0);
    model_vanished(model, layout, ranks);
    int code = container_room(writer, model_rows(layout) * count * sizeof(double), &room);
    if (!code) {
        model_vanished_weights(model, layout, ranks, count, room.data);
        container_keep(writer, START_KEPT_WEIGHTS, &room);
    }
    if (!code && model->layout.feature_names) {
        const char **names = memory_new(count, sizeof *names);
        for (uint64_t i = 0; i < count; i++)
            names[i] = model->layout.feature_names[ranks[i]];
        code = container_put_strings(writer, START_KEPT_NAMES, names, count);
        free(names);
    }
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
    assert(pairs > 0 && pairs <= curvature->pairs);
    int code = container_room(writer, 2 * pairs * parameters * sizeof(double), &room);
    if (code)
        return code;
    curvature_spread(curvature, layout, pairs, room.data);
    container_keep(writer, START_PAIRS, &room);
    return 0;
}

int start_write(const char *folder, const char *run, const struct model *model,
                const struct model_layout *layout, const struct start_options *options) {
    struct start_facts facts = facts_of(run, model->sha256, layout, options->form);
    struct container_writer writer = {.file = {.descriptor = -1}};
    struct curvature curvature;
    assert(options->pairs_most <= HISTORY_MAX);
    if (curvature_open(model, &curvature)) { /* the run starts without it */
        log_warning("the curvature beside the model is not used: %s", error_text());
        error_clear();
    }
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
