#include "coordinator/job/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/job/key.h"

struct network job_network(const struct job *job) {
    struct network network = {0};
    if (!job_is_network(job))
        return network;
    network = job->network;
    network.layers = job->layers.count;
    memcpy(network.units, job->layers.value, network.layers * sizeof *network.units);
    return network;
}

char *job_layers_text(const struct network *network) {
    char *text = memory_format("%u", network->units[0]);
    for (uint32_t i = 1; i < network->layers; i++) {
        char *longer = memory_format("%s - %u", text, network->units[i]);
        free(text);
        text = longer;
    }
    return text;
}

/* ---- defaults ---- */

static bool is_given(const struct job *job, const char *name) {
    return job->given[key_find(name) - keys];
}

static void take_default(struct job *job, const char *name) {
    const struct key *key = key_find(name);
    if (is_given(job, name))
        return;
    key_clear(key, job);
    if (key_assign(key, job, key->initial_network, "default"))
        abort();
}

/* The loss on rows held out turns long before that of the training does. Who sets `holdout` or
 * `early_stopping` to nothing wants neither. */
static void hold_out(struct job *job) {
    if (job->holdout[0] || !is_given(job, "holdout"))
        take_default(job, "early_stopping");
    if (job->early_stopping)
        take_default(job, "holdout");
}

void job_complete_network(struct job *job) {
    job->objective = job_is_network(job) ? job->network_loss : (enum objective_kind)job->trains;
    if (!job_is_network(job))
        return;
    take_default(job, "l2");
    hold_out(job);
}

/* ---- checks ---- */

static int refuse(const struct job *job, const char *key, const char *why) {
    return error_set(ERROR_CONFIG, "%s: key `%s`: %s", job->file, key, why);
}

int job_check_network(const struct job *job) {
    if (job->precondition == PRECONDITION_KRONECKER && !job_is_network(job))
        return refuse(job, "precondition",
                      "only networks have Kronecker factors; allowed here: auto, none, block, "
                      "diagonal");
    if (!job_is_network(job))
        return 0;
    if (!job->intercept)
        return refuse(job, "intercept", "a network has a bias for each unit; allowed: true");
    if (job->precondition == PRECONDITION_BLOCK || job->precondition == PRECONDITION_DIAGONAL)
        return refuse(job, "precondition",
                      "the Hessian of a network is neither sampled nor estimated; allowed: auto, "
                      "none, kronecker");
    if (job->precondition == PRECONDITION_KRONECKER && job->l1.value > 0)
        return refuse(job, "precondition",
                      "`kronecker` and l1 do not go together, because no weight is zero in mixed "
                      "coordinates; take `auto` or `none`, or no l1");
    return 0;
}
