#include "coordinator/sweep/plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

uint32_t sweep_members(const struct sweep_shape *shape) {
    return shape->values * (1 + shape->folds);
}

struct sweep_place sweep_place(const struct sweep_shape *shape, uint32_t member) {
    return (struct sweep_place){.value = member % shape->values, .fold = member / shape->values};
}

uint32_t sweep_member_at(const struct sweep_shape *shape, uint32_t value, uint32_t fold) {
    return fold * shape->values + value;
}

uint32_t sweep_start_of(const struct sweep_shape *shape, uint32_t member) {
    struct sweep_place place = sweep_place(shape, member);
    if (shape->apart)
        return SWEEP_NO_MEMBER;
    if (place.fold)
        return sweep_member_at(shape, place.value, 0);
    return place.value ? member - 1 : SWEEP_NO_MEMBER;
}

enum sweep_task sweep_next(const struct sweep_shape *shape, const struct sweep_member *members,
                           uint32_t *member) {
    uint32_t count = sweep_members(shape);
    for (*member = 0; *member < count; (*member)++) {
        if (members[*member].state == MEMBER_OPEN)
            return SWEEP_TRAIN;
        if (members[*member].state == MEMBER_FAILED)
            return SWEEP_GIVE_UP;
    }
    return SWEEP_CHOOSE;
}

struct sweep_spread sweep_spread(const double *numbers, uint32_t count) {
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += numbers[i];
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (numbers[i] - mean) * (numbers[i] - mean);
    return (struct sweep_spread){mean, count > 1 ? sqrt(squares / (count - 1)) : 0};
}

void sweep_fold_losses(const struct sweep_shape *shape, const struct sweep_member *members,
                       uint32_t value, double *losses) {
    for (uint32_t fold = 1; fold <= shape->folds; fold++)
        losses[fold - 1] = members[sweep_member_at(shape, value, fold)].loss;
}

static double loss_of(const struct sweep_shape *shape, const struct sweep_member *members,
                      uint32_t value) {
    if (!shape->folds)
        return members[value].loss;
    double *losses = memory_new(shape->folds, sizeof *losses);
    sweep_fold_losses(shape, members, value, losses);
    double mean = sweep_spread(losses, shape->folds).mean;
    free(losses);
    return mean;
}

uint32_t sweep_winner(const struct sweep_shape *shape, const struct sweep_member *members) {
    double least = INFINITY;
    uint32_t winner = 0;
    for (uint32_t value = 0; value < shape->values; value++) {
        double loss = loss_of(shape, members, value);
        if (loss < least) {
            least = loss;
            winner = value;
        }
    }
    return winner;
}
