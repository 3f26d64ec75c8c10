/* What follows from the data of a run: the shape of its model, what the model's file says of that,
 * and how many workers and curvature pairs it takes. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/resources.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/family.h"
#include "coordinator/job/tiling.h"
#include "coordinator/run/host_lookup.h"
#include "coordinator/run/preview.h"
#include "coordinator/run/summary.h"
#include "coordinator/run/training.h"
#include "model/clusters.h"

/* ---- a plug-in ---- */

static int work_on_tensors(void *context) {
    struct training *run = context;
    struct objective_plugin *own = &run->plugin.own;
    const struct plugin_data data = {.features = (uint32_t)run->shape.features, /* of whole rows */
                                     .outputs = run->shape.outputs};
    struct plugin *plugin;
    int code = plugin_start(&own->source, &plugin);
    if (code)
        return code;
    code = plugin_tensors(plugin, &data, run->session->job->plugin.seed, &own->tensors);
    plugin_stop(plugin);
    return code;
}

/* Asks the job's library for the tensors of a model of this data, beside the loop, and gives them
 * to the run's shape and layout, which have all else already. The library sees the columns, and the
 * model has them, in the order of the features' ids. Harmless for other jobs. */
static int add_plugin(struct training *run) {
    if (!family_of(&run->shape)->own_tensors)
        return 0;
    run->plugin = (struct model_plugin){.name = run->session->job->plugin.description.name,
                                        .own = {.source = job_plugin_source(run->session->job)}};
    struct model_layout *layout = &run->layout;
    assert(layout->features <= UINT32_MAX); /* of whole rows, in 32 bits */
    training_release_plugin(run);
    run->plugin_ids = memory_new(layout->features, sizeof *run->plugin_ids);
    run->plugin_order = memory_new(layout->features, sizeof *run->plugin_order);
    run->plugin_idf = memory_new(layout->idf ? layout->features : 0, sizeof *run->plugin_idf);
    run->plugin_names = memory_new(layout->features, sizeof *run->plugin_names);
    for (uint64_t i = 0; i < layout->features; i++) {
        uint64_t column = column_order_at(&layout->original_order, i);
        run->plugin_order[i] = (uint32_t)i;
        run->plugin_ids[i] = layout->feature_id[column];
        if (layout->idf)
            run->plugin_idf[i] = layout->idf[column];
        run->plugin_names[i] = layout->feature_names ? layout->feature_names[column] : NULL;
    }
    layout->feature_id = run->plugin_ids;
    layout->idf = layout->idf ? run->plugin_idf : NULL;
    layout->feature_names = layout->feature_names ? run->plugin_names : NULL;
    layout->original_order = (struct column_order){.narrow = run->plugin_order};
    run->shape.plugin = &run->plugin.own;
    run->layout.plugin = &run->plugin;
    return loop_beside(&run->session->loop, STAGE_STARTING, work_on_tensors, run);
}

void training_release_plugin(struct training *run) {
    free(run->plugin_ids);
    free(run->plugin_idf);
    free(run->plugin_order);
    free(run->plugin_names);
    run->plugin_ids = NULL;
    run->plugin_idf = NULL;
    run->plugin_order = NULL;
    run->plugin_names = NULL;
}

/* ---- any model ---- */

static int refuse_size(const struct training *run) {
    const struct job_family *family = job_family(run->session->job);
    if (!family->too_large)
        return error_set(ERROR_DATA,
                         "%llu features of %u outputs each are more than the %llu parameters that "
                         "a model may have",
                         (unsigned long long)run->shape.features, run->shape.outputs,
                         (unsigned long long)PARAMETERS_MAX);
    char *why = family->too_large(run->session->job, &run->shape);
    error_set(ERROR_DATA, "%s", why);
    free(why);
    return ERROR_DATA;
}

static void describe_model(struct training *run) {
    struct session *session = run->session;
    const struct set_info *info = set_info(run->set);
    run->layout = (struct model_layout){
        .objective = objective_name(run->shape.kind),
        .loss = run->shape.loss,
        .outputs = run->shape.outputs,
        .shared = objective_of(run->shape.kind)->shares_weights,
        .intercept = run->shape.intercept,
        .network = job_shape(session->job).network,
        .features = info->features,
        .feature_id = info->feature_id,
        .original_order = info->original_order,
        .feature_names = info->feature_names,
        .idf = info->idf,
        .keeps_means = !info->strip_columns && !family_of(&run->shape)->own_tensors,
        .table = info->table,
        .classes = info->classes,
        .class_names = info->class_names,
        .separator = session->job->source.label.separator,
        .needs = {[ROW_OFFSET] = job_has(session->job, ROW_OFFSET),
                  [ROW_EXPOSURE] = job_has(session->job, ROW_EXPOSURE)},
    };
}

static void log_sizes(const struct training *run) {
    struct session *session = run->session;
    const struct set_info *info = set_info(run->set);
    log_info("data: %llu examples, %llu features, %llu values in %u chunks",
             (unsigned long long)info->rows, (unsigned long long)info->features,
             (unsigned long long)info->values, info->chunks);
    if (info->strip_columns)
        log_info("tiles: %u strips of %u columns; a replica holds one at a time", set_strips(info),
                 info->strip_columns);
    else if (tiling_refused(session->job, info))
        log_info("no tiles, so that a replica holds all parameters: %s",
                 tiling_refused(session->job, info));
    if (info->has_offsets)
        log_info("rows have offsets from %.6g to %.6g", info->offsets.least, info->offsets.most);
    if (info->weighted)
        log_info("rows have weights, %.12g in all", info->weight_total);
    if (session->job->l2.automatic)
        log_info("l2 is %.6g: %.6g/(sum of the weights of the rows)", session->job->l2.value,
                 session->job->l2.value * info->weight_total);
    const struct job_family *family = job_family(session->job);
    char *words = family->words_of_shape ? family->words_of_shape(&run->shape) : NULL;
    if (words)
        log_info("%s", words);
    free(words);
}

/* Finds what memory each process needs, and warns if this machine may not have it. Of other hosts
 * it is not known what they have. */
static void check_memory(struct training *run) {
    struct sizing likely = run->sizing; /* what the run will have is not known yet */
    sizing_directions(run->session->job, set_info(run->set), &run->shape, run->preconditioner.form,
                      &likely);
    run->need = memory_need_of(run->session->job, layout_parameters(&run->parameters), &likely,
                               sizing_block(&run->shape, &run->preconditioner));
    char *why = run->session->hosts.count ? NULL : memory_need_exceeds(&run->need);
    if (why)
        log_warning("memory may not suffice: %s; `dml-coordinator check` says what each process "
                    "needs",
                    why);
    free(why);
}

/* What follows from the data: shape, layout of the model, sizes. */
int training_shape(struct training *run) {
    struct session *session = run->session;
    const struct set_info *info = set_info(run->set);
    if (session->job->early_stopping && !(info->holdout_weight_sum > 0))
        return error_set(ERROR_DATA,
                         "%s: key `early_stopping`: the holdout has no row with a label that "
                         "training knows%s; give it others, or set early_stopping = off",
                         session->job->file,
                         info->holdout_rows ? " and a weight other than 0" : "");
    int code = shape_of_data(session->job, info, &run->shape);
    if (code)
        return code;
    job_complete_l2(session->job, info->weight_total,
                    objective_typical_second(&run->shape, info->targets));
    describe_model(run);
    code = add_plugin(run);
    if (code)
        return code;
    run->parameters = objective_layout(&run->shape);
    if (!layout_parameters(&run->parameters))
        return refuse_size(run);
    const uint64_t sums = job_inverts(session->job) ? layout_parameters(&run->parameters) : 1;
    code = session->job->source.property.column[ROW_CLUSTER]
               ? clusters_check(run->set, session->job->file, sums)
               : 0;
    if (!code)
        code = training_check_columns(run);
    if (code)
        return code;
    /* The exponents of the layout; those of a linear model are in its set, with the columns. */
    free(run->exponents);
    run->exponents =
        family_of(&run->shape)->rounds_chunks
            ? objective_exponents(&run->shape, info->exponent, set_training_chunks(info))
            : NULL;
    log_sizes(run);
    uint64_t parameters = layout_parameters(&run->parameters);
    code = sizing_precondition(session->job, info, &run->shape, &run->preconditioner);
    if (!code)
        code = sizing_of(session->job, info, parameters, cpus_usable(), &run->sizing);
    if (!code)
        code = hosts_look_up(session->job, &session->loop, &session->hosts);
    if (!code && session->hosts.count)
        sizing_on_hosts(session->job, info, parameters, session->hosts.count, &run->sizing);
    if (!code)
        check_memory(run);
    return code;
}

/* ---- Downpour ---- */

/* Derivatives of a row by the margins of classes are at most 1; values are about 1 in units. */
#define ROW_FLOOR 0.2

/* A step of Downpour goes over all parameters, at some 10 ns each: of an epoch this is 0.3 s. */
#define PARAMETERS_AN_EPOCH 3e7

struct downpour_settings training_downpour(const struct training *run) {
    const struct job *job = run->session->job;
    if (!job_has_minibatches(job))
        return (struct downpour_settings){0};
    if (job->optimizer != JOB_DOWNPOUR && run->start_model && *run->start_model) {
        log_info("starts from a model: there is no Downpour before L-BFGS");
        return (struct downpour_settings){0};
    }
    const struct set_info *data = set_info(run->set);
    const bool classes = objective_has_classes(objective_of(run->shape.kind));
    /* As many steps as are asked for, while going over all parameters at each of them costs an
     * epoch little. */
    const double products = (double)data->values * run->shape.outputs;
    const double steps_most =
        fmax(PARAMETERS_AN_EPOCH, products) / (double)layout_parameters(&run->parameters);
    assert(layout_parameters(&run->parameters) > 0);
    /* A minibatch larger than the data is no error: tomorrow there may be more rows. */
    const uint32_t batch = job_batch_most(job);
    if ((uint64_t)batch * job->downpour.schedule.value[0] >= data->rows && !job_steps_least(job))
        log_warning("there are %llu rows, so an epoch is one minibatch of them all: set "
                    "downpour.batch (%u) lower for more steps",
                    (unsigned long long)data->rows, batch);
    return (struct downpour_settings){
        .epochs = job->downpour.epochs,
        .batch = job->downpour.batch,
        .steps_least = (uint32_t)fmin(job_steps_least(job), steps_most),
        .seed = job->downpour.seed,
        .rates = job->downpour.rate.value,
        .rate_count = job->downpour.rate.count,
        .multiples = job->downpour.schedule.value,
        .multiple_count = job->downpour.schedule.count,
        .row_floor = job_has_units(job) && classes ? ROW_FLOOR : 0,
        .weight_unit = objective_weight_unit(&run->shape, data->targets),
        .gradient_unit = objective_gradient_unit(&run->shape, data->targets),
        .alone = job->optimizer == JOB_DOWNPOUR,
        .scales = family_of(&run->shape)->rounds_chunks,
        .measures = data->holdout_weight_sum > 0};
}
