#include "coordinator/run/plugin.h"

#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/job/job.h"

static int work_on_tensors(void *context) {
    struct training *run = context;
    struct objective_plugin *own = &run->plugin.own;
    const struct plugin_data data = {.features = run->shape.features,
                                     .outputs = run->shape.outputs};
    struct plugin *plugin;
    int code = plugin_start(&own->source, &plugin);
    if (code)
        return code;
    code = plugin_tensors(plugin, &data, run->job->plugin.seed, &own->tensors);
    plugin_stop(plugin);
    return code;
}

static void order_columns(struct training *run) {
    struct model_layout *layout = &run->layout;
    training_release_plugin(run);
    run->plugin_ids = memory_new(layout->features, sizeof *run->plugin_ids);
    run->plugin_order = memory_new(layout->features, sizeof *run->plugin_order);
    run->plugin_names = memory_new(layout->features, sizeof *run->plugin_names);
    for (uint64_t i = 0; i < layout->features; i++) {
        uint32_t column = layout->original_order[i];
        run->plugin_order[i] = (uint32_t)i;
        run->plugin_ids[i] = layout->feature_id[column];
        run->plugin_names[i] = layout->feature_names ? layout->feature_names[column] : NULL;
    }
    layout->feature_id = run->plugin_ids;
    layout->feature_names = layout->feature_names ? run->plugin_names : NULL;
    layout->original_order = run->plugin_order;
}

int training_add_plugin(struct training *run) {
    if (!job_is_plugin(run->job))
        return 0;
    run->plugin = (struct model_plugin){.name = run->job->plugin.description.name,
                                        .own = {.source = job_plugin_source(run->job)}};
    order_columns(run);
    run->shape.plugin = &run->plugin.own;
    run->layout.plugin = &run->plugin;
    return loop_beside(&run->loop, STAGE_STARTING, work_on_tensors, run);
}

void training_release_plugin(struct training *run) {
    free(run->plugin_ids);
    free(run->plugin_order);
    free(run->plugin_names);
    run->plugin_ids = NULL;
    run->plugin_order = NULL;
    run->plugin_names = NULL;
}
