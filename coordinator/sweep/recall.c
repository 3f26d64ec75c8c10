#include "coordinator/sweep/recall.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/status/figures.h"

char *sweep_judged_by(const struct dataset *data) {
    char *list = memory_copy_string("");
    for (uint32_t i = 0; i < data->sources.count; i++) {
        const struct dataset_source *source = &data->sources.items[i];
        if (source->use != USE_HOLDOUT)
            continue;
        char *more = memory_format("%s%s%s", list, *list ? "," : "", source->fingerprint);
        free(list);
        list = more;
    }
    return list;
}

static const char *const uses[] = {
    [USE_TRAINING] = "data", [USE_HOLDOUT] = "holdout", [USE_TEST] = "test"};

static enum dataset_use use_of(const char *text) {
    enum dataset_use use = USE_TRAINING;
    while (use < USE_TEST && strcmp(uses[use], text))
        use++;
    return use;
}

char *sweep_sources(const struct dataset *data) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < data->sources.count; i++) {
        const struct dataset_source *source = &data->sources.items[i];
        json_array_append_new(list, json_pack("{s:o, s:s, s:s}", "path", text_to_json(source->path),
                                              "fingerprint", source->fingerprint, "use",
                                              uses[source->use]));
    }
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}

struct recalling {
    const struct job *job;
    struct dataset_sources sources;
    const char *fingerprint;
    struct dataset *data;
};

static void read_sources(const char *text, struct dataset_sources *sources) {
    json_t *list = json_loads(text, 0, NULL), *source;
    size_t i;
    json_array_foreach(list, i, source) {
        struct dataset_source read = {.path = (char *)(uintptr_t)member_text(source, "path"),
                                      .use = use_of(member_text(source, "use"))};
        snprintf(read.fingerprint, sizeof read.fingerprint, "%s",
                 member_text(source, "fingerprint"));
        dataset_add_source(sources, &read);
    }
    json_decref(list);
}

static int work_on_recalling(void *context) {
    struct recalling *recalling = context;
    int code = dataset_recall(recalling->job, &recalling->sources, recalling->data);
    if (!code && strcmp(set_info(recalling->data->set)->fingerprint, recalling->fingerprint))
        code = error_set(ERROR_DATA, "the packs of its files make other data now");
    if (code)
        dataset_release(recalling->data);
    return code;
}

int sweep_recall(struct training *training, const char *sources, const char *fingerprint,
                 struct dataset *data) {
    struct recalling recalling = {.job = training->job, .fingerprint = fingerprint, .data = data};
    read_sources(sources, &recalling.sources);
    int code = loop_beside(&training->loop, STAGE_PACKING, work_on_recalling, &recalling);
    dataset_sources_release(&recalling.sources);
    return code;
}
