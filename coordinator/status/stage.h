/* What a command does before and after a training. */
#ifndef DML_COORDINATOR_STATUS_STAGE_H
#define DML_COORDINATOR_STATUS_STAGE_H

/*    name             how it is shown */
#define STAGES(X)                                                                                  \
    X(STAGE_STARTING, "starting")                                                                  \
    X(STAGE_PACKING, "packing")                                                                    \
    X(STAGE_CHECKING, "checking the holdout and the test data")                                    \
    X(STAGE_SCORING, "scoring")                                                                    \
    X(STAGE_WRITING, "writing the model")                                                          \
    X(STAGE_JUDGING, "judging")                                                                    \
    X(STAGE_ANNOUNCING, "running on_publish")                                                      \
    X(STAGE_ENDING, "ending")                                                                      \
    X(STAGE_ENDED, "ended")

enum stage {
    STAGE_TRAINING, /* the coordinator's phase says more */
#define X(name, text) name,
    STAGES(X)
#undef X
        STAGE_COUNT
};

/* "packing"; NULL for STAGE_TRAINING. */
const char *stage_text(enum stage stage);

#endif
