/* The plan of a sweep: several runs of one job, its members, of which one is chosen.
 *
 * A value is a penalty, or a pair of an l1 and an l2. Values are in order from strong to weak:
 * pairs by their l1, and pairs with the same l1 by their l2.
 *
 * Members are numbered. The first are the full fits, one for each value, trained on all rows. A
 * full fit starts from the full fit of the value before; the first value of an l1 starts from the
 * first value of the l1 before. After them come the members of the first fold, of the second, and
 * so on: one for each value, trained on all rows except those of the fold, and evaluated on the
 * fold. Such a member starts from the full fit of its value.
 *
 * Members start from no other member (`independent`) where the end of a run depends on its start,
 * because the full fit was trained on the rows of the fold: a network would remember them, and so
 * would a few epochs of minibatches that no other optimizer follows. Early stopping, which
 * evaluates on these rows, would keep the start of any model.
 *
 * The next task follows from the states of the members alone. So an interrupted sweep resumes where
 * it was. */
#ifndef DML_COORDINATOR_SWEEP_PLAN_H
#define DML_COORDINATOR_SWEEP_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/score.h"
#include "optimizer/row.h"
#include "store/store.h"

/* How one value is chosen, from the figure `by` of each fold, or of the holdout without folds. */
struct sweep_rule {
    const struct score_figure *by; /* a figure that is better lower, or better higher */
    bool one_se; /* the strongest value that is within a standard error of the best; needs folds */
};

/* "one_se" or "best", as the job file has it. */
const char *sweep_choose_text(bool one_se);

struct sweep_shape {
    uint32_t values;  /* from 1 */
    uint32_t inner;   /* how many of them follow each other with the same l1; divides `values` */
    uint32_t folds;   /* 0: none, the full fits are evaluated on the holdout */
    bool independent; /* no member starts from another: its end would depend on its start */
    struct sweep_rule rule;
};

/* The shape of a sweep with these settings, as the store has them, except for `independent`,
 * which is false. */
struct sweep_shape sweep_shape_stored(const json_t *settings);

uint32_t sweep_members(const struct sweep_shape *shape);

struct sweep_place {
    uint32_t value; /* from 0 */
    uint32_t fold;  /* 0: a full fit; from 1: the fold that is left out */
};

struct sweep_place sweep_place(const struct sweep_shape *shape, uint32_t member);
uint32_t sweep_member_at(const struct sweep_shape *shape, uint32_t value, uint32_t fold);

#define SWEEP_NO_MEMBER UINT32_MAX

/* The member from whose model this one starts; SWEEP_NO_MEMBER for the first, and for all if they
 * are independent. */
uint32_t sweep_start_of(const struct sweep_shape *shape, uint32_t member);

enum member_state {
    MEMBER_OPEN,   /* it has not begun, or can go on */
    MEMBER_DONE,   /* it has a model */
    MEMBER_FAILED, /* it ended without one, or its model was removed */
};

struct sweep_member {
    enum member_state state;
    int64_t run; /* 0: it has not begun */
};

enum sweep_task { SWEEP_TRAIN, SWEEP_CHOOSE, SWEEP_GIVE_UP };

/* The next task, and the member to train if it is that. */
enum sweep_task sweep_next(const struct sweep_shape *shape, const struct sweep_member *members,
                           uint32_t *member);

/* ---- limits ---- */

/* The setting that is the limit at which a run ended; NULL: it ended at none. */
const char *limit_key(enum reason reason);

/* Whether that limit is higher in the settings `now` than it was `before`. */
bool limit_is_raised(enum reason reason, const json_t *before, const json_t *now);

/* Whether the checkpoints are there with which a run could go on from a limit, by its origin:
 * `prune` and `retrain` remove them. */
bool limit_has_checkpoints(const char *state, int64_t origin);

/* ---- what the store knows of a sweep: how it was begun, and what became of its members ---- */

/* Texts are owned. */
struct sweep_record {
    int64_t sweep; /* 0: there is none */
    char *settings, *data, *evaluated_on, *sources, *start_model, *result;
    int64_t ended_ms;        /* 0: it has not ended */
    int64_t winner, decided; /* as in struct store_sweep */
};

/* Reads the newest sweep of the job with this job_identity(). *record is zeroed, or that of an
 * earlier call, which is released. */
int sweep_record_read(struct store *store, const char *identity, struct sweep_record *record);
void sweep_record_release(struct sweep_record *record);

/* The members of a sweep and, by member, the results of their runs. */
struct sweep_runs {
    uint32_t count;
    struct sweep_member *members;
    json_t **results; /* NULL: not done. "holdout" has the figures on its fold or the holdout */
    bool *removed;    /* the member's model was removed */
};

/* The limits of the job now, which may be higher than those that members ended at. */
struct sweep_limits {
    const json_t *settings; /* job_settings() */
    const char *state;      /* the folder with the checkpoints */
};

/* With `limits`, members are open again that ended at a limit which is higher now, if their
 * checkpoints are there. */
int sweep_runs_read(struct store *store, int64_t sweep, const struct sweep_shape *shape,
                    const struct sweep_limits *limits, struct sweep_runs *runs);

/* Reads again what may have changed since: members that were not done. Of a thousand runs all
 * results would be parsed after each. */
int sweep_runs_refresh(struct store *store, int64_t sweep, const struct sweep_shape *shape,
                       const struct sweep_limits *limits, struct sweep_runs *runs);
void sweep_runs_release(struct sweep_runs *runs);

/* Whether the sweep can go on: it has begun a member, none has failed, and it has not ended, or a
 * member is open again, or it has chosen by another rule than the job has now. */
bool sweep_is_open(const struct sweep_record *record, const struct sweep_shape *shape,
                   const struct sweep_runs *runs);

#endif
