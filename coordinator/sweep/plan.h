/* The plan of a sweep: several runs of one job, its members, of which one is chosen.
 *
 * Members are numbered. First come the full fits, which are trained on all rows: one for each value
 * of the path, from strong to weak, each started from the one before. Then, fold after fold, a
 * member for each value that is trained on all rows but those of the fold and judged on these; it
 * starts from the full fit of the same value. Networks are trained apart: one that started where
 * the rows of its fold were trained on would remember them, and early stopping would leave it
 * there. So would a few epochs of minibatches that nothing follows.
 *
 * What is next follows from what became of the members and from nothing else. So a sweep that was
 * broken off goes on where it was. */
#ifndef DML_COORDINATOR_SWEEP_PLAN_H
#define DML_COORDINATOR_SWEEP_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct sweep_shape {
    uint32_t values; /* of the path, from 1 */
    uint32_t folds;  /* 0: none, the full fits are judged on the holdout */
    bool apart; /* where a member ends depends on its start, so no member starts from another */
};

uint32_t sweep_members(const struct sweep_shape *shape);

struct sweep_place {
    uint32_t value; /* from 0 */
    uint32_t fold;  /* 0: a full fit; from 1: the fold that is left out */
};

struct sweep_place sweep_place(const struct sweep_shape *shape, uint32_t member);
uint32_t sweep_member_at(const struct sweep_shape *shape, uint32_t value, uint32_t fold);

#define SWEEP_NO_MEMBER UINT32_MAX

/* The member from whose model this one starts; SWEEP_NO_MEMBER for the first, and for all if they
 * are apart. */
uint32_t sweep_start_of(const struct sweep_shape *shape, uint32_t member);

enum member_state {
    MEMBER_OPEN,   /* it has not begun, or can go on */
    MEMBER_DONE,   /* it has a model */
    MEMBER_FAILED, /* it ended without one, or its model was removed */
};

struct sweep_member {
    enum member_state state;
    int64_t run; /* 0: it has not begun */
    double loss; /* of its model on the rows that judge it; NaN: not known */
};

enum sweep_task { SWEEP_TRAIN, SWEEP_CHOOSE, SWEEP_GIVE_UP };

/* The next task, and the member to train if it is that. */
enum sweep_task sweep_next(const struct sweep_shape *shape, const struct sweep_member *members,
                           uint32_t *member);

struct sweep_spread {
    double mean;
    double deviation; /* the standard deviation, from a sum over count − 1; 0 for one number */
};
struct sweep_spread sweep_spread(const double *numbers, uint32_t count);

/* The losses of a value's members over the folds, [folds]. */
void sweep_fold_losses(const struct sweep_shape *shape, const struct sweep_member *members,
                       uint32_t value, double *losses);

/* The value whose model is chosen: that of the least loss, of the least mean over the folds if
 * there are any; among equals the strongest. A loss that is not a number is never the least. */
uint32_t sweep_winner(const struct sweep_shape *shape, const struct sweep_member *members);

#endif
