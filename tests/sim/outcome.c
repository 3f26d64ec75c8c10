#include "tests/sim/outcome.h"

#include <string.h>

#include "tests/sim/cluster.h"

static void take_step(struct process *process, const struct store_step *step) {
    struct outcome *outcome = &cluster_of(process)->outcome;
    world_say(process->world, "step %llu accepted, loss %.17g", (unsigned long long)step->step,
              step->loss);
    cluster_of(process)->tally.common_steps +=
        step->step && cluster_of(process)->job->optimizer.directions;
    if (step->step > JOB_STEPS_MAX)
        world_fail(process->world, "step %llu is beyond the limit", (unsigned long long)step->step);
    else
        outcome->step[step->step] = (struct job_step){true, step->loss, step->gradient_max,
                                                      step->holdout_loss, step->holdout_accuracy};
}

static void take_epoch(struct process *process, const struct store_epoch *epoch) {
    struct cluster *cluster = cluster_of(process);
    world_say(process->world, "epoch %llu is through, loss %.17g", (unsigned long long)epoch->epoch,
              epoch->loss);
    if (epoch->epoch == 0 || epoch->epoch > JOB_EPOCHS_MAX)
        world_fail(process->world, "there is no epoch %llu", (unsigned long long)epoch->epoch);
    else
        cluster->outcome.epoch[epoch->epoch] =
            (struct job_epoch){true,        epoch->minibatches,  epoch->rows,
                               epoch->loss, epoch->holdout_loss, epoch->holdout_accuracy};
    if (epoch->rows != cluster->job->to_train_on)
        world_fail(process->world, "epoch %llu had %llu rows", (unsigned long long)epoch->epoch,
                   (unsigned long long)epoch->rows);
}

static void take_slice(struct process *process, const struct record *record) {
    struct cluster *cluster = cluster_of(process);
    size_t bytes = record->slice.count * sizeof(double);
    uint64_t first = record->slice.first;
    if (record->slice.of == SLICE_MODEL)
        memcpy(cluster->outcome.model + first, record->slice.values, bytes);
    if (record->slice.of == SLICE_VARIANCE)
        memcpy(cluster->outcome.errors + first, record->slice.values, bytes);
    if (record->slice.of == SLICE_ROBUST)
        memcpy(cluster->outcome.errors + cluster->job->parameters + first, record->slice.values,
               bytes);
    if (record->slice.of == SLICE_SAMPLING)
        memcpy(cluster->outcome.errors + 2 * cluster->job->parameters + first, record->slice.values,
               bytes);
    cluster->tally.errors += record->slice.of == SLICE_VARIANCE && !first;
}

void outcome_undo(struct process *process, const struct record *record) {
    struct outcome *outcome = &cluster_of(process)->outcome;
    uint64_t epochs = record->roll_back.to_start ? 0 : record->roll_back.epochs;
    uint64_t first = record->roll_back.to_start ? 0 : record->roll_back.step + 1;
    for (uint64_t epoch = epochs + 1; epoch <= JOB_EPOCHS_MAX; epoch++)
        outcome->epoch[epoch] = (struct job_epoch){0};
    for (uint64_t step = first; step <= JOB_STEPS_MAX; step++)
        outcome->step[step] = (struct job_step){0};
}

static void count_evaluation(struct tally *tally, const struct store_evaluation *evaluation) {
    tally->redone += strcmp(evaluation->outcome, "bound exceeded") == 0;
    tally->products += strcmp(evaluation->outcome, "product") == 0;
    tally->margins_anew += evaluation->step && strcmp(evaluation->outcome, "margins") == 0;
}

/* Records that are only shown or checked here. */
static void tell(struct process *process, const struct record *record) {
    if (record->kind == RECORD_EVENT) {
        world_say(process->world, "event: %s", record->event.text);
        cluster_of(process)->tally.rejoined += strstr(record->event.text, "going on") != NULL;
    }
    if (record->kind != RECORD_EVALUATION)
        return;
    if (record->evaluation.examples != cluster_of(process)->job->to_train_on)
        world_fail(process->world, "evaluation %llu counted %llu examples",
                   (unsigned long long)record->evaluation.evaluation,
                   (unsigned long long)record->evaluation.examples);
    count_evaluation(&cluster_of(process)->tally, &record->evaluation);
    world_say(process->world, "evaluation %llu: %s, loss %.17g",
              (unsigned long long)record->evaluation.evaluation, record->evaluation.outcome,
              record->evaluation.loss);
}

void outcome_take(struct process *process, const struct record *record) {
    if (record->kind == RECORD_STEP)
        take_step(process, &record->step);
    else if (record->kind == RECORD_EPOCH)
        take_epoch(process, &record->epoch);
    else if (record->kind == RECORD_SLICE)
        take_slice(process, record);
    else
        tell(process, record);
}
