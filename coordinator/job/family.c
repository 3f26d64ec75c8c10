#include "coordinator/job/family.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "coordinator/job/key.h"
#include "objective/kronecker.h"

static int refuse_together(const struct job *job, const char *key, const char *why) {
    return error_set(ERROR_CONFIG, "%s: key `%s`: %s", job->file, key, why);
}

static int refuse_kronecker(const struct job *job) {
    if (job->precondition != PRECONDITION_KRONECKER)
        return 0;
    return refuse_together(job, "precondition",
                           "only networks have Kronecker factors; allowed here: auto, none, block, "
                           "diagonal");
}

/* ---- linear models ---- */

static int complete_linear(struct job *job) {
    job->objective = (enum objective_kind)job->trains;
    return 0;
}

static const struct job_family linear = {
    .family = &family_linear,
    .loss_key = "objective",
    .loss = "objective",
    .loss_example = "logistic",
    .loss_short = "objective",
    .complete = complete_linear,
    .check = refuse_kronecker,
};

/* ---- networks ---- */

static void set_network_default(struct job *job, const char *name) {
    const struct key *key = key_find(name);
    key_clear(key, job);
    int code = key_assign(key, job, key->initial_network, "default");
    assert(!code); /* a default of the table fits its own row */
}

/* Networks stop early by default, since their loss on rows held out rises again long before that of
 * the training stops falling. A job that sets `holdout` or `early_stopping` to nothing has neither.
 */
static int complete_network(struct job *job) {
    job->objective = job->network_loss;
    if (job->l2.automatic)
        set_network_default(job, "l2");
    if (!job_gives(job, "early_stopping") && (job->holdout[0] || !job_gives(job, "holdout")))
        set_network_default(job, "early_stopping");
    if (!job_gives(job, "holdout") && job->early_stopping)
        set_network_default(job, "holdout");
    return 0;
}

static int check_network(const struct job *job) {
    if (objective_of(job->objective)->parts_outputs)
        return refuse_together(job, "network.loss",
                               "proportional_odds is only for linear models; take ordinal, which "
                               "is also for ordered classes");
    if (!job->intercept)
        return refuse_together(job, "intercept",
                               "a network has a bias for each unit; allowed: true");
    if (job->precondition == PRECONDITION_BLOCK || job->precondition == PRECONDITION_DIAGONAL)
        return refuse_together(
            job, "precondition",
            "the Hessian of a network is neither sampled nor estimated; allowed: auto, "
            "none, kronecker");
    if (job->precondition == PRECONDITION_KRONECKER && job->l1.value > 0)
        return refuse_together(job, "precondition",
                               "`kronecker` and l1 cannot be combined, because no weight is zero "
                               "in mixed coordinates; take `auto` or `none`, or no l1");
    return 0;
}

static void set_layers(const struct job *job, struct objective_shape *shape) {
    struct network *network = &shape->network;
    *network = job->network;
    network->layers = job->layers.count;
    memcpy(network->units, job->layers.value, network->layers * sizeof *network->units);
}

static int choose_kronecker(const struct job *job, struct objective_shape *shape) {
    bool wanted = job->precondition == PRECONDITION_KRONECKER;
    shape->network.kronecker = wanted && shape->features && kronecker_suits(shape);
    if (shape->network.kronecker || !wanted)
        return 0;
    return error_set(ERROR_CONFIG,
                     "%s: key `precondition`: `kronecker` is for networks of at most %u features "
                     "and as many units in a layer, and not for the losses ordinal and "
                     "multilabel; take `auto` or `none`",
                     job->file, KRONECKER_WIDTH_MAX);
}

/* Such as "100 - 50". */
static char *layers_text(const struct network *network) {
    char *text = memory_format("%u", network->units[0]);
    for (uint32_t i = 1; i < network->layers; i++) {
        char *longer = memory_format("%s - %u", text, network->units[i]);
        free(text);
        text = longer;
    }
    return text;
}

/* Without the numbers of features and outputs: they are in the data. */
static char *network_words(const struct job *job) {
    const struct objective_shape shape = job_shape(job);
    char *layers = layers_text(&shape.network);
    char *words =
        memory_format("a network: features - %s - outputs, with %s between them, %s", layers,
                      activation_name(shape.network.activation), objective_name(job->objective));
    free(layers);
    return words;
}

static char *network_words_of_shape(const struct objective_shape *shape) {
    char *layers = layers_text(&shape->network);
    char *words = memory_format("network: %llu features - %s - %u outputs, %s, %llu parameters",
                                (unsigned long long)shape->features, layers, shape->outputs,
                                activation_name(shape->network.activation),
                                (unsigned long long)objective_parameters(shape));
    free(layers);
    return words;
}

static char *network_too_large(const struct job *job, const struct objective_shape *shape) {
    if (shape->features > FEATURES_MAX)
        return memory_format("%s: key `network.layers`: the data has %llu features, and a network "
                             "may have %u: train a linear model, or leave features out",
                             job->file, (unsigned long long)shape->features, FEATURES_MAX);
    return memory_format(
        "%s: key `network.layers`: with %llu features, a first layer of %u units and "
        "%u outputs the network has more than the %llu parameters that a model "
        "may have; make its layers smaller",
        job->file, (unsigned long long)shape->features, shape->network.units[0], shape->outputs,
        (unsigned long long)PARAMETERS_MAX);
}

static char *network_not_finite(const struct job *job) {
    return memory_copy_string(
        job->standardise ? "labels or offsets are too large; scale them"
                         : "a network is made for values of about 1; set standardise = true, or "
                           "scale columns and labels");
}

static const struct job_family network = {
    .family = &family_network,
    .loss_key = "network.loss",
    .loss = "loss of the network",
    .loss_example = "network.loss = logistic",
    .loss_short = "loss",
    .complete = complete_network,
    .check = check_network,
    .set_shape = set_layers,
    .choose_scaling = choose_kronecker,
    .words = network_words,
    .words_of_shape = network_words_of_shape,
    .too_large = network_too_large,
    .not_finite = network_not_finite,
};

/* ---- plug-ins ---- */

struct plugin_source job_plugin_source(const struct job *job) {
    const struct job_plugin *plugin = &job->plugin;
    return (struct plugin_source){.program = plugin->program,
                                  .library = plugin->path,
                                  .options = plugin->options ? plugin->options : "",
                                  .sha256 = plugin->sha256 ? plugin->sha256 : "",
                                  .seconds = plugin->seconds};
}

void job_release_plugin(struct job *job) {
    free(job->plugin.path);
    free(job->plugin.program);
}

/* Asks the library what it is, in a process of its own, and makes that the job's objective.
 * ERROR_CONFIG or ERROR_PLUGIN names the job file. */
static int complete_plugin(struct job *job) {
    struct job_plugin *own = &job->plugin;
    struct plugin *plugin = NULL;
    if (!own->library)
        return error_set(
            ERROR_CONFIG,
            "%s: key `plugin.library`: missing; allowed: the path of a shared library, "
            "see dml-objective(3)",
            job->file);
    char *path = path_join(job->folder, own->library);
    own->path = path_absolute(path);
    free(path);
    own->program = process_beside("dml-replica");
    const struct plugin_source source = job_plugin_source(job);
    int code = plugin_start(&source, &plugin);
    if (code)
        return job_refuse_key(job, "plugin.library", code);
    own->description = *plugin_description(plugin);
    plugin_stop(plugin);
    job->objective = objective_of_plugin(&own->description);
    free(own->sha256);
    own->sha256 = memory_copy_string(own->description.sha256);
    return 0;
}

static int check_plugin(const struct job *job) {
    int code = refuse_kronecker(job);
    if (code)
        return code;
    if (!job->intercept)
        return refuse_together(job, "intercept",
                               "a plug-in has the parameters that it chooses; allowed: true");
    if (job->standardise)
        return refuse_together(job, "standardise",
                               "a plug-in sees columns as they are; allowed: false");
    if (job->precondition == PRECONDITION_BLOCK || job->precondition == PRECONDITION_DIAGONAL)
        return refuse_together(job, "precondition",
                               "nothing is known of the Hessian of a plug-in; allowed: auto, none");
    return 0;
}

static void set_plugin(const struct job *job, struct objective_shape *shape) {
    static const struct objective_plugin not_asked;
    (void)job;
    shape->plugin = &not_asked;
}

static char *plugin_no_lower_loss(const struct job *job, double loss) {
    char *file = shell_word(job->file);
    char *text = memory_format(
        "no step found a lower loss than %.12g, as if the gradient of the plug-in were not that of "
        "its loss; `dml-coordinator check --gradient %s` compares them",
        loss, file);
    free(file);
    return text;
}

static char *plugin_not_finite(const struct job *job) {
    return memory_format("so says the plug-in %s", job->plugin.path);
}

static const struct job_family plugin = {
    .family = &family_plugin,
    .loss_key = "objective",
    .loss = "objective",
    .loss_example = "logistic",
    .loss_short = "objective",
    .complete = complete_plugin,
    .check = check_plugin,
    .set_shape = set_plugin,
    .no_lower_loss = plugin_no_lower_loss,
    .not_finite = plugin_not_finite,
};

/* ---- all ---- */

const struct job_family *job_family(const struct job *job) {
    return job->trains == TRAINS_NETWORK  ? &network
           : job->trains == TRAINS_PLUGIN ? &plugin
                                          : &linear;
}

struct objective_shape job_shape(const struct job *job) {
    const struct job_family *family = job_family(job);
    struct objective_shape shape = {
        .kind = job->objective, .intercept = job->intercept, .loss = job->loss[job->objective]};
    if (family->set_shape)
        family->set_shape(job, &shape);
    return shape;
}
